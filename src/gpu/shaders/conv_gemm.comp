// Conv and ConvTranspose as products: output channels by output pixels, without a column matrix.
//
// A workgroup makes BM channels by BN pixels of one image and group, each invocation TM by 4 of
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
// The conv_volume variants have three axes, whose first is known by constants alone.
//
//! kernel conv_gemm_64x64                   OM_EXACT=0 BM=64 BN=64 TM=4
//! kernel conv_gemm_64x64_exact             OM_EXACT=1 BM=64 BN=64 TM=4
//! kernel conv_gemm_64x64_half              OM_EXACT=0 HALF=1 BM=64 BN=64 TM=4
//! kernel conv_gemm_64x64_half_exact        OM_EXACT=1 HALF=1 BM=64 BN=64 TM=4
//! kernel conv_gemm_32x64                   OM_EXACT=0 BM=32 BN=64 TM=4
//! kernel conv_gemm_32x64_exact             OM_EXACT=1 BM=32 BN=64 TM=4
//! kernel conv_gemm_32x64_half              OM_EXACT=0 HALF=1 BM=32 BN=64 TM=4
//! kernel conv_gemm_32x64_half_exact        OM_EXACT=1 HALF=1 BM=32 BN=64 TM=4
//! kernel conv_gemm_32x32                   OM_EXACT=0 BM=32 BN=32 TM=2
//! kernel conv_gemm_32x32_exact             OM_EXACT=1 BM=32 BN=32 TM=2
//! kernel conv_gemm_32x32_half              OM_EXACT=0 HALF=1 BM=32 BN=32 TM=2
//! kernel conv_gemm_32x32_half_exact        OM_EXACT=1 HALF=1 BM=32 BN=32 TM=2
//! kernel conv_gemm_16x64                   OM_EXACT=0 BM=16 BN=64 TM=2
//! kernel conv_gemm_16x64_exact             OM_EXACT=1 BM=16 BN=64 TM=2
//! kernel conv_gemm_16x64_half              OM_EXACT=0 HALF=1 BM=16 BN=64 TM=2
//! kernel conv_gemm_16x64_half_exact        OM_EXACT=1 HALF=1 BM=16 BN=64 TM=2
//! kernel conv_gemm_split                   OM_EXACT=0 BM=32 BN=32 TM=2 SPLIT=1
//! kernel conv_gemm_split_exact             OM_EXACT=1 BM=32 BN=32 TM=2 SPLIT=1
//! kernel conv_gemm_split_half              OM_EXACT=0 HALF=1 BM=32 BN=32 TM=2 SPLIT=1
//! kernel conv_gemm_split_half_exact        OM_EXACT=1 HALF=1 BM=32 BN=32 TM=2 SPLIT=1
//! kernel conv_1x1_64x64                    OM_EXACT=0 BM=64 BN=64 TM=4 POINTWISE=1
//! kernel conv_1x1_64x64_exact              OM_EXACT=1 BM=64 BN=64 TM=4 POINTWISE=1
//! kernel conv_1x1_64x64_half               OM_EXACT=0 HALF=1 BM=64 BN=64 TM=4 POINTWISE=1
//! kernel conv_1x1_64x64_half_exact         OM_EXACT=1 HALF=1 BM=64 BN=64 TM=4 POINTWISE=1
//! kernel conv_1x1_32x64                    OM_EXACT=0 BM=32 BN=64 TM=4 POINTWISE=1
//! kernel conv_1x1_32x64_exact              OM_EXACT=1 BM=32 BN=64 TM=4 POINTWISE=1
//! kernel conv_1x1_32x64_half               OM_EXACT=0 HALF=1 BM=32 BN=64 TM=4 POINTWISE=1
//! kernel conv_1x1_32x64_half_exact         OM_EXACT=1 HALF=1 BM=32 BN=64 TM=4 POINTWISE=1
//! kernel conv_1x1_32x32                    OM_EXACT=0 BM=32 BN=32 TM=2 POINTWISE=1
//! kernel conv_1x1_32x32_exact              OM_EXACT=1 BM=32 BN=32 TM=2 POINTWISE=1
//! kernel conv_1x1_32x32_half               OM_EXACT=0 HALF=1 BM=32 BN=32 TM=2 POINTWISE=1
//! kernel conv_1x1_32x32_half_exact         OM_EXACT=1 HALF=1 BM=32 BN=32 TM=2 POINTWISE=1
//! kernel conv_1x1_16x64                    OM_EXACT=0 BM=16 BN=64 TM=2 POINTWISE=1
//! kernel conv_1x1_16x64_exact              OM_EXACT=1 BM=16 BN=64 TM=2 POINTWISE=1
//! kernel conv_1x1_16x64_half               OM_EXACT=0 HALF=1 BM=16 BN=64 TM=2 POINTWISE=1
//! kernel conv_1x1_16x64_half_exact         OM_EXACT=1 HALF=1 BM=16 BN=64 TM=2 POINTWISE=1
//! kernel conv_1x1_split                    OM_EXACT=0 BM=32 BN=32 TM=2 POINTWISE=1 SPLIT=1
//! kernel conv_1x1_split_exact              OM_EXACT=1 BM=32 BN=32 TM=2 POINTWISE=1 SPLIT=1
//! kernel conv_1x1_split_half               OM_EXACT=0 HALF=1 BM=32 BN=32 TM=2 POINTWISE=1 SPLIT=1
//! kernel conv_1x1_split_half_exact         OM_EXACT=1 HALF=1 BM=32 BN=32 TM=2 POINTWISE=1 SPLIT=1
//! kernel conv_shuffle_64x64                OM_EXACT=0 BM=64 BN=64 TM=4 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_64x64_exact          OM_EXACT=1 BM=64 BN=64 TM=4 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_64x64_half           OM_EXACT=0 HALF=1 BM=64 BN=64 TM=4 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_64x64_half_exact     OM_EXACT=1 HALF=1 BM=64 BN=64 TM=4 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_32x64                OM_EXACT=0 BM=32 BN=64 TM=4 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_32x64_exact          OM_EXACT=1 BM=32 BN=64 TM=4 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_32x64_half           OM_EXACT=0 HALF=1 BM=32 BN=64 TM=4 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_32x64_half_exact     OM_EXACT=1 HALF=1 BM=32 BN=64 TM=4 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_16x64                OM_EXACT=0 BM=16 BN=64 TM=2 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_16x64_exact          OM_EXACT=1 BM=16 BN=64 TM=2 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_16x64_half           OM_EXACT=0 HALF=1 BM=16 BN=64 TM=2 POINTWISE=1 SHUFFLE=1
//! kernel conv_shuffle_16x64_half_exact     OM_EXACT=1 HALF=1 BM=16 BN=64 TM=2 POINTWISE=1 SHUFFLE=1
//! kernel conv_transpose_32x64              OM_EXACT=0 BM=32 BN=64 TM=4 TRANSPOSED=1
//! kernel conv_transpose_32x64_exact        OM_EXACT=1 BM=32 BN=64 TM=4 TRANSPOSED=1
//! kernel conv_transpose_32x64_half         OM_EXACT=0 HALF=1 BM=32 BN=64 TM=4 TRANSPOSED=1
//! kernel conv_transpose_32x64_half_exact   OM_EXACT=1 HALF=1 BM=32 BN=64 TM=4 TRANSPOSED=1
//! kernel conv_transpose_16x64              OM_EXACT=0 BM=16 BN=64 TM=2 TRANSPOSED=1
//! kernel conv_transpose_16x64_exact        OM_EXACT=1 BM=16 BN=64 TM=2 TRANSPOSED=1
//! kernel conv_transpose_16x64_half         OM_EXACT=0 HALF=1 BM=16 BN=64 TM=2 TRANSPOSED=1
//! kernel conv_transpose_16x64_half_exact   OM_EXACT=1 HALF=1 BM=16 BN=64 TM=2 TRANSPOSED=1
//! kernel conv_volume                       OM_EXACT=0 BM=32 BN=64 TM=4 VOLUME=1
//! kernel conv_volume_exact                 OM_EXACT=1 BM=32 BN=64 TM=4 VOLUME=1
//! kernel conv_volume_half                  OM_EXACT=0 HALF=1 BM=32 BN=64 TM=4 VOLUME=1
//! kernel conv_volume_half_exact            OM_EXACT=1 HALF=1 BM=32 BN=64 TM=4 VOLUME=1
//! kernel conv_volume_transpose             OM_EXACT=0 BM=32 BN=64 TM=4 VOLUME=1 TRANSPOSED=1
//! kernel conv_volume_transpose_exact       OM_EXACT=1 BM=32 BN=64 TM=4 VOLUME=1 TRANSPOSED=1
//! kernel conv_volume_transpose_half        OM_EXACT=0 HALF=1 BM=32 BN=64 TM=4 VOLUME=1 TRANSPOSED=1
//! kernel conv_volume_transpose_half_exact  OM_EXACT=1 HALF=1 BM=32 BN=64 TM=4 VOLUME=1 TRANSPOSED=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef SPLIT
#  define OM_CHAIN
#  ifdef VOLUME
#    define CHAIN_BASE 10
#  else
#    define CHAIN_BASE 4
#  endif
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
#define THREADS ((BM / TM) * B_COLUMNS)
#define A_STEP (THREADS / A_COLUMNS)  // rows of weights that all invocations load at once
#define B_STEP (THREADS / B_COLUMNS)  // rows of pixels
#define A_ROWS (BK / A_STEP)          // that one invocation loads
#define B_ROWS (BK / B_STEP)
layout(local_size_x = THREADS) in;

OM_CONSTANT(0, KERNEL_H, 1)
OM_CONSTANT(1, KERNEL_W, 1)
OM_CONSTANT(2, STRIDE_H, 1)
OM_CONSTANT(3, STRIDE_W, 1)
#ifdef VOLUME
OM_CONSTANT(4, KERNEL_D, 1)
OM_CONSTANT(5, STRIDE_D, 1)
OM_CONSTANT(6, PAD_D, 0)
OM_CONSTANT(7, DILATION_D, 1)
OM_CONSTANT(8, KERNEL_STEP_D, 1)
OM_CONSTANT(9, TAP_STEP_D, 1)
#endif

#ifdef POINTWISE
layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT4 input_data[]; };
#else
layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
#endif
layout(set = 0, binding = 1, std430) readonly buffer Weights { ELEMENT4 weights[]; };
#ifdef SPLIT
layout(set = 0, binding = 2, std430) writeonly buffer Output { float output_data[]; };
#else
layout(set = 0, binding = 2, std430) writeonly buffer Output { ELEMENT output_data[]; };
#endif

// A block's weights and pixels; at the end the results.
#if TM == 4
shared vec4 tile[BK * (A_COLUMNS + B_COLUMNS)];
#  define TILE_B (BK * A_COLUMNS)
#  define KEEP_WEIGHTS(term, column, value) tile[(term) * uint(A_COLUMNS) + (column)] = value;
#else
shared vec2 tile_a[BK * A_COLUMNS * 2];
shared vec4 tile[BK * B_COLUMNS];
#  define TILE_B 0
#  define KEEP_WEIGHTS(term, column, value)                        \
    tile_a[((term) * uint(A_COLUMNS) + (column)) * 2u] = value.xy; \
    tile_a[((term) * uint(A_COLUMNS) + (column)) * 2u + 1u] = value.zw;
#endif

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
#ifdef VOLUME
uint pixel_height;                 // rows of a slice (and phase)
uint taps_d;
int tap_z;
int tap_step_z;
uint phase_z;
ivec4 pixel_z;                     // of the four pixels that this invocation loads
#endif

#ifdef TRANSPOSED
#include "common/conv_phase.glsl"

// One axis: the first tap that falls on an input element, how many there are, and where the first
// one falls: .x taps, .y input offset. Sums are kept positive by whole strides.
ivec2 phase_taps(uint phase, uint kernel, uint stride, uint pad, uint dilation, uint kernel_step) {
  uint k = phase_first(phase, kernel, stride, pad, dilation, kernel_step);
  if (k == kernel) return ivec2(0, 0);
  uint position = phase + pad + kernel * dilation * stride - k * dilation;
  return ivec2(int((kernel - 1u - k) / kernel_step + 1u),
               int(position / stride) - int(kernel * dilation));
}
#endif

void locate(uint slice) {
  uint group = slice % P.groups;
  uint image = slice / P.groups;
  input_base = (image * P.groups + group) * P.in_channels * P.in_d * P.in_h * P.in_w;
#ifdef TRANSPOSED
  uint stride_h = STRIDE_H;
  uint stride_w = STRIDE_W;
  uint phases = stride_h * stride_w;
#ifdef VOLUME
  uint stride_d = STRIDE_D;
  phases = phases * stride_d;
#endif
  uint phase = gl_WorkGroupID.z % phases;
  phase_y = phase / stride_w % stride_h;
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
#ifdef VOLUME
  phase_z = phase / stride_w / stride_h;
  ivec2 z = phase_taps(phase_z, KERNEL_D, stride_d, PAD_D, DILATION_D, KERNEL_STEP_D);
  taps_d = uint(z.x);
  tap_z = z.y;
  uint step_d = TAP_STEP_D;
  tap_step_z = -int(step_d);
  pixel_height = pixel_count / max(pixel_width, 1u);
  pixel_count = pixel_count * ((P.out_d + stride_d - 1u - phase_z) / stride_d);
#endif
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
  pixel_count = P.out_d * P.out_h * P.out_w;
#endif
#ifdef VOLUME
  uint pad_d = PAD_D;
  uint dilation_d = DILATION_D;
  taps_d = KERNEL_D;
  tap_z = -int(pad_d);
  tap_step_z = int(dilation_d);
  pixel_height = P.out_h;
#endif
  weights_base = group * P.w_rows * P.w_columns;
#endif
  terms = P.in_channels * taps_h * taps_w;
#ifdef VOLUME
  terms = terms * taps_d;
#endif
}

// Loads never branch, so that all of a block's are in flight at once: what lies outside is read
// from a place inside, and a mask says so when it is kept.

// Four neighbouring channels' weights of a term.
vec4 load_weights(uint term, uint column) {
  uint row = min(term, max(terms, 1u) - 1u);
  return LOAD4(weights[weights_base + row * P.w_columns + min(column, P.w_columns - 1u)]);
}

#ifdef POINTWISE
// Four neighbouring pixels of a term; planes are multiples of 4. Results past the end are dropped.
vec4 load_pixels(uint term, uint pixel, ivec4 y, ivec4 x, uint shift, inout uint mask) {
  if (term < terms) mask |= 15u << shift;
  uint row = min(term, max(terms, 1u) - 1u);
  return LOAD4(input_data[(input_base + row * pixel_count + min(pixel, pixel_count - 4u)) / 4u]);
}
#else
float load_pixel(bool is_term, uint plane, int y, int x, uint shift, inout uint mask) {
  bool is_inside = is_term && uint(y) < P.in_h && uint(x) < P.in_w;
  mask |= uint(is_inside) << shift;
  return LOAD(input_data[is_inside ? plane + uint(y) * P.in_w + uint(x) : 0u]);
}

// Four pixels of a term, at their positions (y, x) before the tap's offset.
vec4 load_pixels(uint term, uint pixel, ivec4 y, ivec4 x, uint shift, inout uint mask) {
  uint taps = max(taps_h * taps_w, 1u);
  uint columns = max(taps_w, 1u);
  uint channel = term / taps;        // of a volume: and the tap of the first axis
  uint tap = term - channel * taps;
  uint row = tap / columns;
  ivec4 at_y = y + (tap_y + int(row) * tap_step_y);
  ivec4 at_x = x + (tap_x + int(tap - row * columns) * tap_step_x);
  bool is_term = term < terms;
  vec4 pixels;
#ifdef VOLUME
  uint slices = max(taps_d, 1u);
  ivec4 at_z = pixel_z + (tap_z + int(channel % slices) * tap_step_z);
  uint plane_elems = P.in_h * P.in_w;
  uint volume = input_base + channel / slices * P.in_d * plane_elems;
  uvec4 planes = volume + uvec4(at_z) * plane_elems;
  bvec4 is_inside = lessThan(uvec4(at_z), uvec4(P.in_d));
  pixels.x = load_pixel(is_term && is_inside.x, planes.x, at_y.x, at_x.x, shift, mask);
  pixels.y = load_pixel(is_term && is_inside.y, planes.y, at_y.y, at_x.y, shift + 1u, mask);
  pixels.z = load_pixel(is_term && is_inside.z, planes.z, at_y.z, at_x.z, shift + 2u, mask);
  pixels.w = load_pixel(is_term && is_inside.w, planes.w, at_y.w, at_x.w, shift + 3u, mask);
#else
  uint plane = input_base + channel * (P.in_h * P.in_w);
  pixels.x = load_pixel(is_term, plane, at_y.x, at_x.x, shift, mask);
  pixels.y = load_pixel(is_term, plane, at_y.y, at_x.y, shift + 1u, mask);
  pixels.z = load_pixel(is_term, plane, at_y.z, at_x.z, shift + 2u, mask);
  pixels.w = load_pixel(is_term, plane, at_y.w, at_x.w, shift + 3u, mask);
#endif
  return pixels;
}
#endif

// The pixels that the mask has; 0 for the others.
vec4 masked(vec4 pixels, uint mask) {
  return vec4((mask & 1u) != 0u ? pixels.x : 0.0, (mask & 2u) != 0u ? pixels.y : 0.0,
              (mask & 4u) != 0u ? pixels.z : 0.0, (mask & 8u) != 0u ? pixels.w : 0.0);
}

// The positions of four neighbouring pixels; those past the end lie outside the input.
void pixel_positions(uint pixel, out ivec4 y, out ivec4 x) {
#ifdef TRANSPOSED
  uint step_h = 1u;
  uint step_w = 1u;
#else
  uint step_h = STRIDE_H;
  uint step_w = STRIDE_W;
#endif
#ifdef VOLUME
#ifdef TRANSPOSED
  uint step_d = 1u;
#else
  uint step_d = STRIDE_D;
#endif
  pixel_z = ivec4(0);
#endif
  y = ivec4(0x3fffffff);
  x = ivec4(0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (pixel + i < pixel_count) {
      uint row = (pixel + i) / pixel_width;
      x[i] = int((pixel + i - row * pixel_width) * step_w);
#ifdef VOLUME
      uint slice = row / pixel_height;
      pixel_z[i] = int(slice * step_d);
      row = row - slice * pixel_height;
#endif
      y[i] = int(row * step_h);
    }
  }
}

#if OM_EXACT
#define MULTIPLY(sum, a, b) sum = sum + vec4(a) * b;
#else
#define MULTIPLY(sum, a, b) sum = fma(vec4(a), b, sum);
#endif
#if TM == 4
#  define READ_WEIGHTS(k) vec4 a = tile[(k) * uint(A_COLUMNS) + row];
#  define MORE_ROWS(what) what(2, z) what(3, w)
#else
#  define READ_WEIGHTS(k) vec2 a = tile_a[(k) * uint(A_COLUMNS * 2) + row];
#  define MORE_ROWS(what)
#endif
// `what` for each row of an invocation: its number and its component of the weights.
#define EACH_ROW(what) what(0, x) what(1, y) MORE_ROWS(what)
#define MULTIPLY_ROW(number, component) MULTIPLY(block_##number, a.component, b)
#define TERM(k)                                                   \
  {                                                               \
    READ_WEIGHTS(k)                                               \
    vec4 b = tile[uint(TILE_B) + (k) * uint(B_COLUMNS) + column]; \
    EACH_ROW(MULTIPLY_ROW)                                        \
  }

// Where result `at` of the tile goes; false: nowhere, and channel and element are some that exist.
bool find_result(uint at, uint slice, uint first_channel, uint first_pixel, out uint channel,
                 out uint element, out uint source) {
  uint plane = P.out_d * P.out_h * P.out_w;
#ifdef SHUFFLE
  // Neighbours in a row of the result are phases of one pixel.
  uint stride_h = STRIDE_H;
  uint stride_w = STRIDE_W;
  uint phases = stride_h * stride_w;
  uint row_elems = uint(BN) * stride_w;
  uint packed_row = at / row_elems;
  uint in_row = at - packed_row * row_elems;
  uint packed_channel = first_channel + packed_row * stride_w + in_row % stride_w;
  channel = packed_channel / phases;
  uint pixel = first_pixel + in_row / stride_w;
  source = (packed_channel - first_channel) * uint(BN) + pixel - first_pixel;
#else
  channel = first_channel + at / uint(BN);
  uint pixel = first_pixel + at % uint(BN);
  source = at;
#endif
  bool is_there = channel < P.out_channels && pixel < pixel_count;
  element = (slice * P.out_channels + channel) * plane;
#if defined(SHUFFLE)
  uint phase = packed_channel - channel * phases;
  uint phase_row = phase / stride_w;
  uint row = pixel / pixel_width;
  element += (row * stride_h + phase_row) * P.out_w + (pixel - row * pixel_width) * stride_w +
             phase - phase_row * stride_w;
#elif defined(TRANSPOSED)
  uint stride_h = STRIDE_H;
  uint stride_w = STRIDE_W;
  uint row = pixel / max(pixel_width, 1u); // a phase may have no pixels
  element += (pixel - row * pixel_width) * stride_w + phase_x;
#ifdef VOLUME
  uint stride_d = STRIDE_D;
  uint depth = row / max(pixel_height, 1u);
  row = row - depth * pixel_height;
  element += (depth * stride_d + phase_z) * P.out_h * P.out_w;
#endif
  element += (row * stride_h + phase_y) * P.out_w;
#else
  element += pixel;
#endif
  channel = is_there ? channel : 0u;
  element = is_there ? element : 0u;
  return is_there;
}

// Four results are ready before the first of them is stored: loads do not pass stores.
void store(uint slice, uint first_channel, uint first_pixel, uint thread, uint split) {
  for (uint first = thread; first < uint(BM * BN); first += uint(4 * THREADS)) {
    float values[4];
    uint elements[4];
    bool are_there[4];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      uint channel;
      uint element;
      uint source;
      are_there[i] = find_result(first + i * uint(THREADS), slice, first_channel, first_pixel, channel,
                                 element, source);
      elements[i] = element;
      values[i] = tile[source >> 2u][source & 3u];
#ifndef SPLIT
      values[i] = chain_apply_channel(values[i], element, slice % P.groups * P.out_channels + channel);
#endif
    }
#ifdef SPLIT
    uint begin = split * (gl_NumWorkGroups.z / P.splits * P.out_channels * P.out_d * P.out_h * P.out_w);
#endif
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
#ifdef SPLIT
      if (are_there[i]) output_data[begin + elements[i]] = values[i];
#else
      if (are_there[i]) output_data[elements[i]] = STORE(values[i]);
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
#ifdef VOLUME
  uint stride_d = STRIDE_D;
  slice = slice / stride_d;
#endif
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
  uint next_mask = 0u;
  [[unroll]] for (uint i = 0u; i < uint(A_ROWS); ++i) {
    next_a[i] = load_weights(first_term + a_row + i * uint(A_STEP), first_channel / 4u + a_column);
  }
  [[unroll]] for (uint i = 0u; i < uint(B_ROWS); ++i) {
    next_b[i] = load_pixels(first_term + row + i * uint(B_STEP), b_pixel, y, x, i * 4u, next_mask);
  }

#define NEW_TOTAL(number, component) OM_PRECISE vec4 total_##number = vec4(0.0);
  EACH_ROW(NEW_TOTAL)
#if OM_EXACT
#  define NEW_GROUP(number, component) precise vec4 group_##number = vec4(0.0);
  EACH_ROW(NEW_GROUP)
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
      bool is_term = first + a_row + i * uint(A_STEP) < terms;
      vec4 kept = is_term ? next_a[i] : vec4(0.0);
      KEEP_WEIGHTS(a_row + i * uint(A_STEP), a_column, kept)
    }
    [[unroll]] for (uint i = 0u; i < uint(B_ROWS); ++i) {
      tile[uint(TILE_B) + (row + i * uint(B_STEP)) * uint(B_COLUMNS) + column] =
          masked(next_b[i], next_mask >> (i * 4u));
    }
    barrier();
    uint following = first + uint(BK);
    if (following < last_term) {
      next_mask = 0u;
      [[unroll]] for (uint i = 0u; i < uint(A_ROWS); ++i) {
        next_a[i] = load_weights(following + a_row + i * uint(A_STEP), first_channel / 4u + a_column);
      }
      [[unroll]] for (uint i = 0u; i < uint(B_ROWS); ++i) {
        next_b[i] = load_pixels(following + row + i * uint(B_STEP), b_pixel, y, x, i * 4u, next_mask);
      }
    }
#define NEW_BLOCK(number, component) OM_PRECISE vec4 block_##number = vec4(0.0);
    EACH_ROW(NEW_BLOCK)
#if OM_EXACT
    uint whole = following <= last_term ? uint(BK) : 0u;
#else
    // What is past the end is 0 and changes nothing here.
    uint whole = first < last_term ? min(uint(BK), last_term - first) : 0u;
#endif
    if (whole != 0u) {
      for (uint k = 0u; k < whole; k += 8u) {
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
#define START_GROUP(number, component) group_##number = block_##number;
#define ADD_BLOCK(number, component) group_##number = group_##number + block_##number;
    if (starts) {
      EACH_ROW(START_GROUP)
    } else if (exists) {
      EACH_ROW(ADD_BLOCK)
    }
#define START_TOTAL(number, component) total_##number = group_##number;
#define ADD_GROUP(number, component) total_##number = total_##number + group_##number;
    if (ends && block < uint(GROUP_BLOCKS)) {
      EACH_ROW(START_TOTAL)
    } else if (ends) {
      EACH_ROW(ADD_GROUP)
    }
#else
#define ADD_TOTAL(number, component) total_##number += block_##number;
    EACH_ROW(ADD_TOTAL)
#endif
    barrier();
  }
#define KEEP_TOTAL(number, component) \
  tile[(row * uint(TM) + uint(number)) * uint(B_COLUMNS) + column] = total_##number;
  EACH_ROW(KEEP_TOTAL)
  barrier();
  store(slice, first_channel, first_pixel, thread, split);
}
