// Convolutions with one input channel in each group.
//
// An invocation makes four results below each other, so that neighbours read and write what lies side
// by side. The order is docs/exact.md's: taps row by row, blocks of 32 from 0 (a 5x5 kernel is one
// block), four blocks a group, groups in order. The K and S variants know kernel and stride: each
// input element of a column is read once for four results. The pool variants, for fast mode, write the mean
// of each plane as well: `lanes` neighbours of one workgroup make a plane, and their sums meet in shared
// memory in a halving tree.
//
//! kernel conv_depthwise                  OM_EXACT=0
//! kernel conv_depthwise_exact            OM_EXACT=1
//! kernel conv_depthwise_half             OM_EXACT=0 HALF=1
//! kernel conv_depthwise_half_exact       OM_EXACT=1 HALF=1
//! kernel conv_depthwise_k3s1             OM_EXACT=0 K=3 S=1
//! kernel conv_depthwise_k3s1_exact       OM_EXACT=1 K=3 S=1
//! kernel conv_depthwise_k3s1_half        OM_EXACT=0 HALF=1 K=3 S=1
//! kernel conv_depthwise_k3s1_half_exact  OM_EXACT=1 HALF=1 K=3 S=1
//! kernel conv_depthwise_k3s2             OM_EXACT=0 K=3 S=2
//! kernel conv_depthwise_k3s2_exact       OM_EXACT=1 K=3 S=2
//! kernel conv_depthwise_k3s2_half        OM_EXACT=0 HALF=1 K=3 S=2
//! kernel conv_depthwise_k3s2_half_exact  OM_EXACT=1 HALF=1 K=3 S=2
//! kernel conv_depthwise_k5s1             OM_EXACT=0 K=5 S=1
//! kernel conv_depthwise_k5s1_exact       OM_EXACT=1 K=5 S=1
//! kernel conv_depthwise_k5s1_half        OM_EXACT=0 HALF=1 K=5 S=1
//! kernel conv_depthwise_k5s1_half_exact  OM_EXACT=1 HALF=1 K=5 S=1
//! kernel conv_depthwise_k5s2             OM_EXACT=0 K=5 S=2
//! kernel conv_depthwise_k5s2_exact       OM_EXACT=1 K=5 S=2
//! kernel conv_depthwise_k5s2_half        OM_EXACT=0 HALF=1 K=5 S=2
//! kernel conv_depthwise_k5s2_half_exact  OM_EXACT=1 HALF=1 K=5 S=2
//! kernel conv_depthwise_k3s1_pool        OM_EXACT=0 K=3 S=1 POOL=1
//! kernel conv_depthwise_k3s1_pool_half   OM_EXACT=0 HALF=1 K=3 S=1 POOL=1
//! kernel conv_depthwise_k3s2_pool        OM_EXACT=0 K=3 S=2 POOL=1
//! kernel conv_depthwise_k3s2_pool_half   OM_EXACT=0 HALF=1 K=3 S=2 POOL=1
//! kernel conv_depthwise_k5s1_pool        OM_EXACT=0 K=5 S=1 POOL=1
//! kernel conv_depthwise_k5s1_pool_half   OM_EXACT=0 HALF=1 K=5 S=1 POOL=1
//! kernel conv_depthwise_k5s2_pool        OM_EXACT=0 K=5 S=2 POOL=1
//! kernel conv_depthwise_k5s2_pool_half   OM_EXACT=0 HALF=1 K=5 S=2 POOL=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define OM_CHAIN
#define CHAIN_BASE 4
#ifdef POOL
#  define CHAIN_BINDING 4
#  define GROUP 256                // as om_gpu_fuse_pool.c has it
#else
#  define CHAIN_BINDING 3
#  define GROUP 128                // as om_gpu_conv_depthwise.c has it
#endif
#include "common/om_shader.glsl"
#include "abi/conv_depthwise_params.h"
#include "common/chain.glsl"

layout(local_size_x = GROUP) in;

OM_CONSTANT(0, KERNEL_H, 1)
OM_CONSTANT(1, KERNEL_W, 1)
OM_CONSTANT(2, STRIDE_H, 1)
OM_CONSTANT(3, STRIDE_W, 1)        // the K and S variants: stride of the columns alone

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Weights { ELEMENT weights[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { ELEMENT output_data[]; };
#ifdef POOL
layout(set = 0, binding = 3, std430) writeonly buffer Means { ELEMENT means[]; };
shared float plane_sums[GROUP];
#endif

// An element of a column of the input; 0 outside.
float load(uint column, bool is_column_inside, int y) {
  if (is_column_inside && uint(y) < P.in_h) return LOAD(input_data[column + uint(y) * P.in_w]);
  return 0.0;
}

#if OM_EXACT
#define MULTIPLY(sum, a, b) sum = sum + (a) * vec4(b);
#else
#define MULTIPLY(sum, a, b) sum = fma(a, vec4(b), sum);
#endif

#ifdef K
#define SPAN (3 * S + K)           // input elements of a column that four results read

vec4 window_sums(uint plane, uint w, int y, int x) {
  OM_PRECISE vec4 sum = vec4(OM_START(P.quads));
  float v[K * SPAN];
  [[unroll]] for (int kx = 0; kx < K; ++kx) {
    bool is_inside = uint(x + kx) < P.in_w;
    [[unroll]] for (int i = 0; i < SPAN; ++i) {
      v[kx * SPAN + i] = load(plane + uint(x + kx), is_inside, y + i);
    }
  }
  [[unroll]] for (int ky = 0; ky < K; ++ky) {
    [[unroll]] for (int kx = 0; kx < K; ++kx) {
      int at = kx * SPAN + ky;
      vec4 taps = vec4(v[at], v[at + S], v[at + 2 * S], v[at + 3 * S]);
      MULTIPLY(sum, taps, LOAD(weights[w + uint(ky * K + kx)]))
    }
  }
  return sum;
}
#else
vec4 window_sums(uint plane, uint w, int y, int x) {
  uint kernel_h = KERNEL_H;
  uint kernel_w = KERNEL_W;
  uint stride_h = STRIDE_H;
  int stride = int(stride_h);
  uint terms = kernel_h * kernel_w;
  uint term = 0u;
  OM_PRECISE vec4 total = vec4(0.0);
  OM_PRECISE vec4 group = vec4(0.0);
  vec4 start = vec4(OM_START(P.quads));
  OM_PRECISE vec4 block = start;
  for (uint ky = 0u; ky < kernel_h; ++ky) {
    int at_y = y + int(ky * P.dilation_h);
    for (uint kx = 0u; kx < kernel_w; ++kx) {
      uint at_x = uint(x + int(kx * P.dilation_w));
      bool is_inside = at_x < P.in_w;
      uint column = plane + at_x;
      vec4 taps = vec4(load(column, is_inside, at_y), load(column, is_inside, at_y + stride),
                       load(column, is_inside, at_y + 2 * stride), load(column, is_inside, at_y + 3 * stride));
      MULTIPLY(block, taps, LOAD(weights[w + term]))
      ++term;
      if (term % 32u == 0u || term == terms) {
        uint number = (term - 1u) / 32u;
        if (number % 4u == 0u) {
          group = block;
        } else {
          group = group + block;
        }
        if (number % 4u == 3u || term == terms) {
          if (number < 4u) {
            total = group;
          } else {
            total = total + group;
          }
        }
        block = start;
      }
    }
  }
  return total;
}
#endif

// Makes the results of a quad; their sum.
float make_quad(uint plane, uint column_quad, uint out_x) {
  uint out_y = column_quad * 4u;
  uint image = plane / P.out_channels;
  uint channel = plane - image * P.out_channels;
  uint in_plane = (image * (P.out_channels / P.multiplier) + channel / P.multiplier) * P.in_h * P.in_w;
  uint stride_h = STRIDE_H;
  uint stride_w = STRIDE_W;
  uint kernel_h = KERNEL_H;
  uint kernel_w = KERNEL_W;
  vec4 sums = window_sums(in_plane, channel * kernel_h * kernel_w, int(out_y * stride_h) - int(P.pad_h),
                          int(out_x * stride_w) - int(P.pad_w));
  uint element = (plane * P.out_h + out_y) * P.out_w + out_x;
  uint count = min(4u, P.out_h - out_y);
  // All are ready before the first is stored: loads do not pass stores.
  vec4 results;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    results[i] = chain_apply_channel(sums[i], element + min(i, count - 1u) * P.out_w, channel);
  }
  float sum = 0.0;
  for (uint i = 0u; i < count; ++i) {
    output_data[element] = STORE(results.x);
    sum += results.x;
    results = results.yzwx;
    element += P.out_w;
  }
  return sum;
}

#ifdef POOL
void main() {
  uint thread = gl_LocalInvocationID.x;
  uint lane = thread % P.lanes;
  uint plane = om_group_index() * (uint(GROUP) / P.lanes) + thread / P.lanes;
  uint plane_quads = P.column_quads * P.out_w;
  bool has_plane = plane * plane_quads < P.quads;
  float sum = 0.0;
  if (has_plane && lane < plane_quads) {
    uint column_quad = lane / P.out_w;
    sum = make_quad(plane, column_quad, lane - column_quad * P.out_w);
  }
  plane_sums[thread] = sum;
  barrier();
  for (uint distance = P.lanes / 2u; distance != 0u; distance = distance / 2u) {
    if (lane < distance) plane_sums[thread] += plane_sums[thread + distance];
    barrier();
  }
  if (has_plane && lane == 0u) {
    means[plane] = STORE(plane_sums[thread] / float(P.out_h * P.out_w));
  }
}
#else
void main() {
  uint quad = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (quad < P.quads) {
    uint row = quad / P.out_w;
    uint plane = row / P.column_quads;
    make_quad(plane, row - plane * P.column_quads, quad - row * P.out_w);
  }
}
#endif
