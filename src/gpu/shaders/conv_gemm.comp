// Conv and ConvTranspose as products: output channels by output pixels, without a column matrix.
//
// A workgroup makes BM channels by BN pixels of one image and group, each invocation 4 by 4 of
// them. It takes the terms in blocks of 32: packed weights and gathered pixels go to shared memory
// while the block before is multiplied.
//
//     weights [term][channel]  x  pixels [term][pixel]  ->  [channel][pixel]
//
// The order is docs/exact.md's: a term is (channel, kernel row, kernel column); a block is a
// chain from 0; four blocks make a group; groups are added in order. The _split variants give each
// group a workgroup of its own and write the groups' sums, which conv_sum adds in order: the same
// bits. Fast variants use a fused chain for each block and add the blocks.
//
// A ConvTranspose is a product for each phase (the result's position modulo the stride) with the
// taps that fall on input elements there. Where the kernel is as large as the stride and nothing is
// padded, every phase reads the same pixels: the conv_shuffle variants make all phases of a channel
// as if they were channels of a 1x1 Conv, and put them in their places at the end.
//
//! kernel conv_gemm_64x64              OM_EXACT=0 BM=64 BN=64
//! kernel conv_gemm_64x64_exact        OM_EXACT=1 BM=64 BN=64
//! kernel conv_gemm_32x64              OM_EXACT=0 BM=32 BN=64
//! kernel conv_gemm_32x64_exact        OM_EXACT=1 BM=32 BN=64
//! kernel conv_gemm_32x32              OM_EXACT=0 BM=32 BN=32
//! kernel conv_gemm_32x32_exact        OM_EXACT=1 BM=32 BN=32
//! kernel conv_gemm_16x64              OM_EXACT=0 BM=16 BN=64
//! kernel conv_gemm_16x64_exact        OM_EXACT=1 BM=16 BN=64
//! kernel conv_gemm_split              OM_EXACT=0 BM=32 BN=32 SPLIT=1
//! kernel conv_gemm_split_exact        OM_EXACT=1 BM=32 BN=32 SPLIT=1
//! kernel conv_1x1_64x64               OM_EXACT=0 BM=64 BN=64 POINTWISE=1
//! kernel conv_1x1_64x64_exact         OM_EXACT=1 BM=64 BN=64 POINTWISE=1
//! kernel conv_1x1_32x64               OM_EXACT=0 BM=32 BN=64 POINTWISE=1
//! kernel conv_1x1_32x64_exact         OM_EXACT=1 BM=32 BN=64 POINTWISE=1
//! kernel conv_1x1_32x32               OM_EXACT=0 BM=32 BN=32 POINTWISE=1
//! kernel conv_1x1_32x32_exact         OM_EXACT=1 BM=32 BN=32 POINTWISE=1
//! kernel conv_1x1_16x64               OM_EXACT=0 BM=16 BN=64 POINTWISE=1
//! kernel conv_1x1_16x64_exact         OM_EXACT=1 BM=16 BN=64 POINTWISE=1
//! kernel conv_1x1_split               OM_EXACT=0 BM=32 BN=32 POINTWISE=1 SPLIT=1
//! kernel conv_1x1_split_exact         OM_EXACT=1 BM=32 BN=32 POINTWISE=1 SPLIT=1
//! kernel conv_shuffle_64x64           OM_EXACT=0 BM=64 BN=64 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_64x64_exact     OM_EXACT=1 BM=64 BN=64 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_32x64           OM_EXACT=0 BM=32 BN=64 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_32x64_exact     OM_EXACT=1 BM=32 BN=64 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_16x64           OM_EXACT=0 BM=16 BN=64 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_16x64_exact     OM_EXACT=1 BM=16 BN=64 POINTWISE=1 SHUFFLE=1
//! kernel conv_transpose_32x64         OM_EXACT=0 BM=32 BN=64 TRANSPOSED=1
//! kernel conv_transpose_32x64_exact   OM_EXACT=1 BM=32 BN=64 TRANSPOSED=1
//! kernel conv_transpose_16x64         OM_EXACT=0 BM=16 BN=64 TRANSPOSED=1
//! kernel conv_transpose_16x64_exact   OM_EXACT=1 BM=16 BN=64 TRANSPOSED=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef SPLIT
#  define OM_CHAIN
#  define CHAIN_BASE 4
#  define CHAIN_BINDING 3
#endif
#include "common/om_shader.glsl"
#include "abi/conv_gemm_params.h"
#ifndef SPLIT
#  include "common/chain.glsl"
#endif

#define BK 32                      // terms of a block
#define GROUP_BLOCKS 4
#define A_COLUMNS (BM / 4)
#define B_COLUMNS (BN / 4)
#define THREADS (A_COLUMNS * B_COLUMNS)
#define A_ROWS (BK / B_COLUMNS)    // rows of weights that one invocation loads
#define B_ROWS (BK / A_COLUMNS)    // rows of pixels that one invocation loads
layout(local_size_x = THREADS) in;

OM_CONSTANT(0, KERNEL_H, 1)
OM_CONSTANT(1, KERNEL_W, 1)
OM_CONSTANT(2, STRIDE_H, 1)
OM_CONSTANT(3, STRIDE_W, 1)

#ifdef POINTWISE
layout(set = 0, binding = 0, std430) readonly buffer Input { vec4 input_data[]; };
#else
layout(set = 0, binding = 0, std430) readonly buffer Input { float input_data[]; };
#endif
layout(set = 0, binding = 1, std430) readonly buffer Weights { vec4 weights[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { float output_data[]; };

// Weights of a block, then its pixels; at the end the results.
shared vec4 tile[BK * (A_COLUMNS + B_COLUMNS)];
#define TILE_B (BK * A_COLUMNS)

// What one workgroup works on.
uint terms;                        // of each sum
uint pixel_count;                  // results of a channel (and phase)
uint pixel_width;                  // results of a row (and phase)
uint input_base;                   // of the image and group, in elements
uint weights_base;                 // in vec4
uint taps_h;                       // of one channel
uint taps_w;
int tap_y;                         // of the first tap, from the pixel's position
int tap_x;
int tap_step_y;
int tap_step_x;
uint phase_y;
uint phase_x;

#ifdef TRANSPOSED
// One axis: the first tap that falls on an input element, how many there are, and where the first
// one falls: .x taps, .y input offset. Sums are kept positive by whole strides.
ivec2 phase_taps(uint phase, uint kernel, uint stride, uint pad, uint dilation, uint kernel_step) {
  uint shift = kernel * dilation;
  for (uint k = 0u; k < kernel_step && k < kernel; ++k) {
    uint position = phase + pad + shift * stride - k * dilation;
    if (position % stride == 0u) {
      return ivec2(int((kernel - 1u - k) / kernel_step + 1u), int(position / stride) - int(shift));
    }
  }
  return ivec2(0, 0);
}
#endif

void locate(uint slice) {
  uint group = slice % P.groups;
  uint image = slice / P.groups;
  input_base = (image * P.groups + group) * P.in_channels * P.in_h * P.in_w;
#ifdef TRANSPOSED
  uint stride_h = STRIDE_H;
  uint stride_w = STRIDE_W;
  uint phases = stride_h * stride_w;
  uint phase = gl_WorkGroupID.z % phases;
  phase_y = phase / stride_w;
  phase_x = phase % stride_w;
  ivec2 y = phase_taps(phase_y, KERNEL_H, stride_h, P.pad_h, P.dilation_h, P.kernel_step_h);
  ivec2 x = phase_taps(phase_x, KERNEL_W, stride_w, P.pad_w, P.dilation_w, P.kernel_step_w);
  taps_h = uint(y.x);
  taps_w = uint(x.x);
  tap_y = y.y;
  tap_x = x.y;
  tap_step_y = -int(P.tap_step_h);
  tap_step_x = -int(P.tap_step_w);
  pixel_width = (P.out_w + stride_w - 1u - phase_x) / stride_w;
  pixel_count = (P.out_h + stride_h - 1u - phase_y) / stride_h * pixel_width;
  weights_base = (group * phases + phase) * P.w_rows * P.w_columns;
#else
#ifdef SHUFFLE
  taps_h = 1u;
  taps_w = 1u;
#else
  taps_h = KERNEL_H;
  taps_w = KERNEL_W;
#endif
  tap_y = -int(P.pad_h);
  tap_x = -int(P.pad_w);
  tap_step_y = int(P.dilation_h);
  tap_step_x = int(P.dilation_w);
#ifdef SHUFFLE
  pixel_width = P.in_w;
  pixel_count = P.in_h * P.in_w;
#else
  pixel_width = P.out_w;
  pixel_count = P.out_h * P.out_w;
#endif
  weights_base = group * P.w_rows * P.w_columns;
#endif
  terms = P.in_channels * taps_h * taps_w;
}

// Four neighbouring channels' weights of a term; 0 past the end.
vec4 load_weights(uint term, uint column) {
  if (term < terms && column < P.w_columns) {
    return weights[weights_base + term * P.w_columns + column];
  }
  return vec4(0.0);
}

#ifdef POINTWISE
// Four neighbouring pixels of a term; planes are multiples of 4.
vec4 load_pixels(uint term, uint pixel, ivec4 y, ivec4 x) {
  if (term < terms && pixel < pixel_count) {
    return input_data[(input_base + term * pixel_count + pixel) / 4u];
  }
  return vec4(0.0);
}
#else
float load_pixel(uint plane, int y, int x) {
  if (uint(y) < P.in_h && uint(x) < P.in_w) return input_data[plane + uint(y) * P.in_w + uint(x)];
  return 0.0;
}

// Four pixels of a term, at their positions (y, x) before the tap's offset.
vec4 load_pixels(uint term, uint pixel, ivec4 y, ivec4 x) {
  vec4 pixels = vec4(0.0);
  if (term < terms) {
    uint taps = taps_h * taps_w;
    uint channel = term / taps;
    uint tap = term - channel * taps;
    uint row = tap / taps_w;
    ivec4 at_y = y + (tap_y + int(row) * tap_step_y);
    ivec4 at_x = x + (tap_x + int(tap - row * taps_w) * tap_step_x);
    uint plane = input_base + channel * (P.in_h * P.in_w);
    pixels.x = load_pixel(plane, at_y.x, at_x.x);
    pixels.y = load_pixel(plane, at_y.y, at_x.y);
    pixels.z = load_pixel(plane, at_y.z, at_x.z);
    pixels.w = load_pixel(plane, at_y.w, at_x.w);
  }
  return pixels;
}
#endif

// The positions of four neighbouring pixels; those past the end lie outside the input.
void pixel_positions(uint pixel, out ivec4 y, out ivec4 x) {
#ifdef TRANSPOSED
  uint step_h = 1u;
  uint step_w = 1u;
#else
  uint step_h = STRIDE_H;
  uint step_w = STRIDE_W;
#endif
  y = ivec4(0x3fffffff);
  x = ivec4(0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (pixel + i < pixel_count) {
      uint row = (pixel + i) / pixel_width;
      y[i] = int(row * step_h);
      x[i] = int((pixel + i - row * pixel_width) * step_w);
    }
  }
}

#if OM_EXACT
#define MULTIPLY(sum, a, b) sum = sum + vec4(a) * b;
#else
#define MULTIPLY(sum, a, b) sum = fma(vec4(a), b, sum);
#endif
#define TERM(k)                                            \
  {                                                        \
    vec4 a = tile[(k) * uint(A_COLUMNS) + row];            \
    vec4 b = tile[uint(TILE_B) + (k) * uint(B_COLUMNS) + column]; \
    MULTIPLY(block_0, a.x, b)                              \
    MULTIPLY(block_1, a.y, b)                              \
    MULTIPLY(block_2, a.z, b)                              \
    MULTIPLY(block_3, a.w, b)                              \
  }

void store(uint slice, uint first_channel, uint first_pixel, uint thread, uint split) {
  uint plane = P.out_h * P.out_w;
  for (uint i = 0u; i < 16u; ++i) {
    uint at = i * uint(THREADS) + thread;
#ifdef SHUFFLE
    // Neighbours in a row of the result are phases of one pixel.
    uint stride_h = STRIDE_H;
    uint stride_w = STRIDE_W;
    uint phases = stride_h * stride_w;
    uint row_elems = uint(BN) * stride_w;
    uint packed_row = at / row_elems;
    uint in_row = at - packed_row * row_elems;
    uint packed_channel = first_channel + packed_row * stride_w + in_row % stride_w;
    uint channel = packed_channel / phases;
    uint pixel = first_pixel + in_row / stride_w;
    uint source = (packed_channel - first_channel) * uint(BN) + pixel - first_pixel;
#else
    uint channel = first_channel + at / uint(BN);
    uint pixel = first_pixel + at % uint(BN);
    uint source = at;
#endif
    if (channel < P.out_channels && pixel < pixel_count) {
      uint element = (slice * P.out_channels + channel) * plane;
#if defined(SHUFFLE)
      uint phase = packed_channel - channel * phases;
      uint phase_row = phase / stride_w;
      uint row = pixel / pixel_width;
      element += (row * stride_h + phase_row) * P.out_w + (pixel - row * pixel_width) * stride_w +
                 phase - phase_row * stride_w;
#elif defined(TRANSPOSED)
      uint stride_h = STRIDE_H;
      uint stride_w = STRIDE_W;
      uint row = pixel / pixel_width;
      element += (row * stride_h + phase_y) * P.out_w + (pixel - row * pixel_width) * stride_w + phase_x;
#else
      element += pixel;
#endif
      float value = tile[source >> 2u][source & 3u];
#ifdef SPLIT
      output_data[split * (gl_NumWorkGroups.z / P.splits * P.out_channels * plane) + element] = value;
#else
      output_data[element] =
          chain_apply_channel(value, element, slice % P.groups * P.out_channels + channel);
#endif
    }
  }
}

void main() {
  uint thread = gl_LocalInvocationID.x;
  uint column = thread % uint(B_COLUMNS);
  uint row = thread / uint(B_COLUMNS);
  uint first_pixel = gl_WorkGroupID.x * uint(BN);
  uint first_channel = gl_WorkGroupID.y * uint(BM);
  uint slice = gl_WorkGroupID.z;
  uint split = 0u;
#ifdef SPLIT
  split = slice % P.splits;
  slice = slice / P.splits;
#endif
#ifdef TRANSPOSED
  uint stride_h = STRIDE_H;
  uint stride_w = STRIDE_W;
  slice = slice / (stride_h * stride_w);
#endif
  locate(slice);
  uint first_term = split * uint(BK * GROUP_BLOCKS);
#ifdef SPLIT
  uint last_term = min(terms, first_term + uint(BK * GROUP_BLOCKS));
#else
  uint last_term = terms;
#endif

  // What this invocation loads: 4 channels of some terms, 4 pixels of some terms.
  uint a_column = thread % uint(A_COLUMNS);
  uint a_row = thread / uint(A_COLUMNS);
  uint b_pixel = first_pixel + column * 4u;
  ivec4 y = ivec4(0);
  ivec4 x = ivec4(0);
#ifndef POINTWISE
  pixel_positions(b_pixel, y, x);
#endif
  vec4 next_a[A_ROWS];
  vec4 next_b[B_ROWS];
  [[unroll]] for (uint i = 0u; i < uint(A_ROWS); ++i) {
    next_a[i] = load_weights(first_term + a_row + i * uint(B_COLUMNS), first_channel / 4u + a_column);
  }
  [[unroll]] for (uint i = 0u; i < uint(B_ROWS); ++i) {
    next_b[i] = load_pixels(first_term + row + i * uint(A_COLUMNS), b_pixel, y, x);
  }

  OM_PRECISE vec4 total_0 = vec4(0.0);
  OM_PRECISE vec4 total_1 = vec4(0.0);
  OM_PRECISE vec4 total_2 = vec4(0.0);
  OM_PRECISE vec4 total_3 = vec4(0.0);
#if OM_EXACT
  precise vec4 group_0 = vec4(0.0);
  precise vec4 group_1 = vec4(0.0);
  precise vec4 group_2 = vec4(0.0);
  precise vec4 group_3 = vec4(0.0);
#endif
  // The loop's bound comes from the parameters alone, so that the barriers are in uniform flow.
#ifdef SPLIT
  uint block_count = uint(GROUP_BLOCKS);
#else
  uint block_count = (P.w_rows + uint(BK - 1)) / uint(BK);
#endif
  for (uint block = 0u; block < block_count; ++block) {
    uint first = first_term + block * uint(BK);
    [[unroll]] for (uint i = 0u; i < uint(A_ROWS); ++i) {
      tile[(a_row + i * uint(B_COLUMNS)) * uint(A_COLUMNS) + a_column] = next_a[i];
    }
    [[unroll]] for (uint i = 0u; i < uint(B_ROWS); ++i) {
      tile[uint(TILE_B) + (row + i * uint(A_COLUMNS)) * uint(B_COLUMNS) + column] = next_b[i];
    }
    barrier();
    uint following = first + uint(BK);
    if (following < last_term) {
      [[unroll]] for (uint i = 0u; i < uint(A_ROWS); ++i) {
        next_a[i] = load_weights(following + a_row + i * uint(B_COLUMNS), first_channel / 4u + a_column);
      }
      [[unroll]] for (uint i = 0u; i < uint(B_ROWS); ++i) {
        next_b[i] = load_pixels(following + row + i * uint(A_COLUMNS), b_pixel, y, x);
      }
    }
    OM_PRECISE vec4 block_0 = vec4(0.0);
    OM_PRECISE vec4 block_1 = vec4(0.0);
    OM_PRECISE vec4 block_2 = vec4(0.0);
    OM_PRECISE vec4 block_3 = vec4(0.0);
    if (following <= last_term) {
      for (uint k = 0u; k < uint(BK); k += 8u) {
        TERM(k)
        TERM(k + 1u)
        TERM(k + 2u)
        TERM(k + 3u)
        TERM(k + 4u)
        TERM(k + 5u)
        TERM(k + 6u)
        TERM(k + 7u)
      }
    } else if (first < last_term) {
      for (uint k = 0u; k < last_term - first; ++k) TERM(k)
    }
#if OM_EXACT
    bool exists = first < last_term;
    bool starts = block % uint(GROUP_BLOCKS) == 0u;
    bool ends = exists && (block % uint(GROUP_BLOCKS) == uint(GROUP_BLOCKS - 1) || following >= last_term);
    if (starts) {
      group_0 = block_0;
      group_1 = block_1;
      group_2 = block_2;
      group_3 = block_3;
    } else if (exists) {
      group_0 = group_0 + block_0;
      group_1 = group_1 + block_1;
      group_2 = group_2 + block_2;
      group_3 = group_3 + block_3;
    }
    if (ends && block < uint(GROUP_BLOCKS)) {
      total_0 = group_0;
      total_1 = group_1;
      total_2 = group_2;
      total_3 = group_3;
    } else if (ends) {
      total_0 = total_0 + group_0;
      total_1 = total_1 + group_1;
      total_2 = total_2 + group_2;
      total_3 = total_3 + group_3;
    }
#else
    total_0 += block_0;
    total_1 += block_1;
    total_2 += block_2;
    total_3 += block_3;
#endif
    barrier();
  }
  tile[(row * 4u + 0u) * uint(B_COLUMNS) + column] = total_0;
  tile[(row * 4u + 1u) * uint(B_COLUMNS) + column] = total_1;
  tile[(row * 4u + 2u) * uint(B_COLUMNS) + column] = total_2;
  tile[(row * 4u + 3u) * uint(B_COLUMNS) + column] = total_3;
  barrier();
  store(slice, first_channel, first_pixel, thread, split);
}
