// The end of a squeeze-and-excite block in one pass: x times a gate per channel, where the gates are a
// product of few values (the _squeeze variants make those from the pooled channels, with another
// product), plus a bias, through an operation.
//
// A workgroup makes 32 channels by 64 pixels of one image. Each makes the gates that it needs anew: that
// is less than a dispatch costs. 8 invocations make the sum of a channel: in exact mode they take
// docs/exact.md's blocks of 32 terms in turn, in fast mode every eighth term, with more loads under way.
// Their sums meet in shared memory and are added in order.
//
//! kernel conv_gate                     OM_EXACT=0
//! kernel conv_gate_exact               OM_EXACT=1
//! kernel conv_gate_half                OM_EXACT=0 HALF=1
//! kernel conv_gate_half_exact          OM_EXACT=1 HALF=1
//! kernel conv_gate_squeeze             OM_EXACT=0 SQUEEZE=1
//! kernel conv_gate_squeeze_exact       OM_EXACT=1 SQUEEZE=1
//! kernel conv_gate_squeeze_half        OM_EXACT=0 HALF=1 SQUEEZE=1
//! kernel conv_gate_squeeze_half_exact  OM_EXACT=1 HALF=1 SQUEEZE=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common/om_shader.glsl"
#include "abi/conv_gate_params.h"

#define BLOCK_TERMS 32
#define CHANNELS 32
#define BLOCKS 8                   // two groups of four
#define PIXELS 64
#if OM_EXACT
#  define FETCHES 8                // terms whose loads go out together
#else
#  define FETCHES 16
#endif
#define RESULTS (CHANNELS * PIXELS / (CHANNELS * BLOCKS)) // of an invocation
#define MOST_SQUEEZED 64           // as om_gpu_fuse_gate.c has it
layout(local_size_x = CHANNELS, local_size_y = BLOCKS) in;

OM_CONSTANT(0, SQUEEZE_OPERATION, 0) // a number of elementwise.def, or 0: none
OM_CONSTANT(1, EXCITE_OPERATION, 0)

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Pooled { ELEMENT pooled[]; };
layout(set = 0, binding = 2, std430) readonly buffer ExciteWeights { ELEMENT excite_weights[]; };
layout(set = 0, binding = 3, std430) readonly buffer ExciteBias { ELEMENT excite_bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer SqueezeWeights { ELEMENT squeeze_weights[]; };
layout(set = 0, binding = 5, std430) readonly buffer SqueezeBias { ELEMENT squeeze_bias[]; };
layout(set = 0, binding = 6, std430) writeonly buffer Output { ELEMENT output_data[]; };

shared float block_sums[BLOCKS * CHANNELS];
shared float gates[CHANNELS];
#ifdef SQUEEZE
shared float squeezed_values[MOST_SQUEEZED];
#endif

#if OM_EXACT
#define MULTIPLY(sum, a, b) sum = sum + (a) * (b);
#else
#define MULTIPLY(sum, a, b) sum = fma(a, b, sum);
#endif

// What an operator stores: only exact mode rounds between operators of one pass.
float stored(float value) {
#if HALF && OM_EXACT
  return om_round_half(value);
#else
  return value;
#endif
}

// The operations of elementwise.def that stand in such blocks.
float operate(uint operation, float x, float p, float q) {
  OM_PRECISE float share = om_max(0.0, om_min(1.0, om_mul_add(x, 0.16666666666666667, 0.5)));
  OM_PRECISE float swish = x * share;
  if (operation == 1u) return stored(om_max(x, 0.0));
  if (operation == 2u) return stored(om_min(om_max(x, p), q));
  if (operation == 3u) return stored(om_sigmoid(x));
  if (operation == 4u) return stored(om_max(0.0, om_min(1.0, om_mul_add(x, p, q))));
  if (operation == 5u) return stored(swish);
  return x;
}

// Blocks of a sum of so many terms: in fast mode one for each invocation.
uint block_count_of(uint terms) {
#if OM_EXACT
  return (terms + uint(BLOCK_TERMS - 1)) / uint(BLOCK_TERMS);
#else
  return uint(BLOCKS);
#endif
}

// Adds the block sums of a round in their order to the total so far.
float add_blocks(float total, uint lane, uint first, uint block_count) {
  OM_PRECISE float sum = total;
  uint count = min(uint(BLOCKS), block_count - first);
  for (uint start = 0u; start < count; start += 4u) {
    OM_PRECISE float group = block_sums[start * uint(CHANNELS) + lane];
    for (uint i = start + 1u; i < min(start + 4u, count); ++i) {
      group = group + block_sums[i * uint(CHANNELS) + lane];
    }
    if (first + start == 0u) {
      sum = group;
    } else {
      sum = sum + group;
    }
  }
  return sum;
}

// A block's sum. X(k) and W(k) are the factors of a term.
#if OM_EXACT
#define SUM_BLOCK(terms, X, W)                                                    \
  uint k = block * uint(BLOCK_TERMS);                                             \
  uint end = min(k + uint(BLOCK_TERMS), terms);                                   \
  for (; k + uint(FETCHES) <= end; k += uint(FETCHES)) {                          \
    float x[FETCHES];                                                             \
    float w[FETCHES];                                                             \
    [[unroll]] for (uint i = 0u; i < uint(FETCHES); ++i) {                        \
      x[i] = X(k + i);                                                            \
      w[i] = W(k + i);                                                            \
    }                                                                             \
    [[unroll]] for (uint i = 0u; i < uint(FETCHES); ++i) MULTIPLY(sum, x[i], w[i]) \
  }                                                                               \
  for (; k < end; ++k) MULTIPLY(sum, X(k), W(k))
#else
#define SUM_BLOCK(terms, X, W)                                                    \
  for (uint k = block; k < terms; k += uint(FETCHES * BLOCKS)) {                  \
    float x[FETCHES];                                                             \
    float w[FETCHES];                                                             \
    [[unroll]] for (uint i = 0u; i < uint(FETCHES); ++i) {                        \
      uint own = min(k + i * uint(BLOCKS), terms - 1u);                           \
      x[i] = X(own);                                                              \
      w[i] = W(own);                                                              \
    }                                                                             \
    [[unroll]] for (uint i = 0u; i < uint(FETCHES); ++i) {                        \
      if (k + i * uint(BLOCKS) < terms) MULTIPLY(sum, x[i], w[i])                 \
    }                                                                             \
  }
#endif

#ifdef SQUEEZE
float squeeze_block(uint image, uint block, uint channel) {
  OM_PRECISE float sum = 0.0;
#define POOLED(k) LOAD(pooled[image * P.channels + (k)])
#define SQUEEZE_WEIGHT(k) LOAD(squeeze_weights[(k) * P.squeeze_columns + channel])
  SUM_BLOCK(P.channels, POOLED, SQUEEZE_WEIGHT)
  return sum;
}

void squeeze(uint image, uint lane, uint own_block) {
  uint operation = SQUEEZE_OPERATION;
  uint block_count = block_count_of(P.channels);
  for (uint base = 0u; base < P.squeezed; base += uint(CHANNELS)) {
    uint channel = base + lane;
    float total = 0.0;
    for (uint first = 0u; first < block_count; first += uint(BLOCKS)) {
      if (channel < P.squeezed) {
        block_sums[own_block * uint(CHANNELS) + lane] = squeeze_block(image, first + own_block, channel);
      }
      barrier();
      if (own_block == 0u) total = add_blocks(total, lane, first, block_count);
      barrier();
    }
    if (own_block == 0u && channel < P.squeezed) {
      OM_PRECISE float value = total + LOAD(squeeze_bias[channel]);
      squeezed_values[channel] = operate(operation, stored(value), P.squeeze_p, P.squeeze_q);
    }
  }
  barrier();
}
#endif

float squeezed_value(uint image, uint k) {
#ifdef SQUEEZE
  return squeezed_values[k];
#else
  return LOAD(pooled[image * P.squeezed + k]);
#endif
}

float excite_block(uint image, uint block, uint channel) {
  OM_PRECISE float sum = 0.0;
#define SQUEEZED(k) squeezed_value(image, k)
#define EXCITE_WEIGHT(k) LOAD(excite_weights[(k) * P.excite_columns + channel])
  SUM_BLOCK(P.squeezed, SQUEEZED, EXCITE_WEIGHT)
  return sum;
}

void excite(uint image, uint lane, uint own_block, uint channel) {
  uint operation = EXCITE_OPERATION;
  uint block_count = block_count_of(P.squeezed);
  float total = 0.0;
  for (uint first = 0u; first < block_count; first += uint(BLOCKS)) {
    if (channel < P.channels) {
      block_sums[own_block * uint(CHANNELS) + lane] = excite_block(image, first + own_block, channel);
    }
    barrier();
    if (own_block == 0u) total = add_blocks(total, lane, first, block_count);
    barrier();
  }
  if (own_block == 0u && channel < P.channels) {
    OM_PRECISE float value = total + LOAD(excite_bias[channel]);
    gates[lane] = operate(operation, stored(value), P.excite_p, P.excite_q);
  }
  barrier();
}

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint own_block = gl_LocalInvocationID.y;
  uint first_channel = gl_WorkGroupID.x * uint(CHANNELS);
  uint first_pixel = gl_WorkGroupID.y * uint(PIXELS);
  uint image = gl_WorkGroupID.z;
  // What is multiplied is under way while the gates are made.
  float values[RESULTS];
  bool is_there[RESULTS];
  uint elements[RESULTS];
  [[unroll]] for (uint i = 0u; i < uint(RESULTS); ++i) {
    uint own = (i * uint(BLOCKS) + own_block) * uint(CHANNELS) + lane;
    uint channel = first_channel + own / uint(PIXELS);
    uint pixel = first_pixel + own % uint(PIXELS);
    is_there[i] = channel < P.channels && pixel < P.pixels;
    elements[i] = is_there[i] ? (image * P.channels + channel) * P.pixels + pixel : 0u;
    values[i] = LOAD(input_data[elements[i]]);
  }
#ifdef SQUEEZE
  squeeze(image, lane, own_block);
#endif
  excite(image, lane, own_block, first_channel + lane);
  [[unroll]] for (uint i = 0u; i < uint(RESULTS); ++i) {
    uint own = (i * uint(BLOCKS) + own_block) * uint(CHANNELS) + lane;
    OM_PRECISE float value = values[i] * gates[own / uint(PIXELS)];
    if (is_there[i]) output_data[elements[i]] = STORE(value);
  }
}
