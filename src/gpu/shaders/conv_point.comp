// A 1x1 convolution of few pixels (after a global pool): a product of the weights and one vector.
//
// A workgroup makes 32 channels of one pixel: 8 invocations for each channel take the blocks of
// 32 terms in turn. The block sums meet in shared memory and are added in docs/exact.md's order.
//
//! kernel conv_point             OM_EXACT=0
//! kernel conv_point_exact       OM_EXACT=1
//! kernel conv_point_half        OM_EXACT=0 HALF=1
//! kernel conv_point_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 3
#include "common/om_shader.glsl"
#include "abi/conv_point_params.h"
#include "common/chain.glsl"

#define BLOCK_TERMS 32
#define CHANNELS 32
#define BLOCKS 8                   // two groups of four
layout(local_size_x = CHANNELS, local_size_y = BLOCKS) in;

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Weights { ELEMENT weights[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { ELEMENT output_data[]; };

shared float block_sums[BLOCKS * CHANNELS];

#if OM_EXACT
#define MULTIPLY(sum, a, b) sum = sum + (a) * (b);
#else
#define MULTIPLY(sum, a, b) sum = fma(a, b, sum);
#endif

// The chain over one block of terms, which may lie past the end. Eight terms are fetched at a
// time: one by one they would wait for memory in turn.
float block_sum(uint first, uint input_base, uint channel) {
  OM_PRECISE float sum = 0.0;
  uint end = min(first + uint(BLOCK_TERMS), P.in_channels);
  uint k = first;
  for (; k + 8u <= end; k += 8u) {
    float x[8];
    float w[8];
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      x[i] = LOAD(input_data[input_base + (k + i) * P.pixels]);
      w[i] = LOAD(weights[(k + i) * P.w_columns + channel]);
    }
    [[unroll]] for (uint i = 0u; i < 8u; ++i) MULTIPLY(sum, x[i], w[i])
  }
  for (; k < end; ++k) {
    float x = LOAD(input_data[input_base + k * P.pixels]);
    float w = LOAD(weights[k * P.w_columns + channel]);
    MULTIPLY(sum, x, w)
  }
  return sum;
}

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint own_block = gl_LocalInvocationID.y;
  uint channel = gl_WorkGroupID.x * uint(CHANNELS) + lane;
  uint pixel = gl_WorkGroupID.y;
  uint image = gl_WorkGroupID.z;
  uint input_base = image * P.in_channels * P.pixels + pixel;
  uint block_count = (P.in_channels + uint(BLOCK_TERMS - 1)) / uint(BLOCK_TERMS);
  OM_PRECISE float total = 0.0;
  for (uint first = 0u; first < block_count; first += uint(BLOCKS)) {
    if (channel < P.out_channels) {
      block_sums[own_block * uint(CHANNELS) + lane] =
          block_sum((first + own_block) * uint(BLOCK_TERMS), input_base, channel);
    }
    barrier();
    if (own_block == 0u && channel < P.out_channels) {
      uint count = min(uint(BLOCKS), block_count - first);
      for (uint start = 0u; start < count; start += 4u) {
        OM_PRECISE float group = block_sums[start * uint(CHANNELS) + lane];
        for (uint i = start + 1u; i < min(start + 4u, count); ++i) {
          group = group + block_sums[i * uint(CHANNELS) + lane];
        }
        if (first + start == 0u) {
          total = group;
        } else {
          total = total + group;
        }
      }
    }
    barrier();
  }
  if (own_block == 0u && channel < P.out_channels) {
    uint element = (image * P.out_channels + channel) * P.pixels + pixel;
    float value = chain_apply_channel(total, element, channel);
    output_data[element] = STORE(value);
  }
}
