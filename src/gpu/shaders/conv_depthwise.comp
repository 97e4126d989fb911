// Convolutions with one input channel in each group.
//
// An invocation makes four neighbours in a row. The order is docs/exact.md's: taps row by row,
// blocks of 32 from 0 (a 5x5 kernel is one block), four blocks a group, groups in order. The K and
// S variants know kernel and stride: each input element of a row is read once for four results.
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
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define OM_CHAIN
#define CHAIN_BASE 4
#define CHAIN_BINDING 3
#include "common/om_shader.glsl"
#include "abi/conv_depthwise_params.h"
#include "common/chain.glsl"

#define GROUP 128
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, KERNEL_H, 1)
OM_CONSTANT(1, KERNEL_W, 1)
OM_CONSTANT(2, STRIDE_H, 1)        // the K and S variants: stride of the rows alone
OM_CONSTANT(3, STRIDE_W, 1)

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Weights { ELEMENT weights[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { ELEMENT output_data[]; };

// An element of a row of the input; 0 outside.
float load(uint row, bool is_row_inside, int x) {
  if (is_row_inside && uint(x) < P.in_w) return LOAD(input_data[row + uint(x)]);
  return 0.0;
}

#if OM_EXACT
#define MULTIPLY(sum, a, b) sum = sum + (a) * vec4(b);
#else
#define MULTIPLY(sum, a, b) sum = fma(a, vec4(b), sum);
#endif

#ifdef K
#define SPAN (3 * S + K)           // input elements of a row that four results read

vec4 window_sums(uint plane, uint w, int y, int x) {
  OM_PRECISE vec4 sum = vec4(0.0);
  [[unroll]] for (int ky = 0; ky < K; ++ky) {
    bool is_inside = uint(y + ky) < P.in_h;
    uint row = plane + uint(y + ky) * P.in_w;
    float v[SPAN];
    [[unroll]] for (int i = 0; i < SPAN; ++i) v[i] = load(row, is_inside, x + i);
    [[unroll]] for (int kx = 0; kx < K; ++kx) {
      vec4 taps = vec4(v[kx], v[kx + S], v[kx + 2 * S], v[kx + 3 * S]);
      MULTIPLY(sum, taps, LOAD(weights[w + uint(ky * K + kx)]))
    }
  }
  return sum;
}
#else
vec4 window_sums(uint plane, uint w, int y, int x) {
  uint kernel_h = KERNEL_H;
  uint kernel_w = KERNEL_W;
  uint stride_w = STRIDE_W;
  int stride = int(stride_w);
  uint terms = kernel_h * kernel_w;
  uint term = 0u;
  OM_PRECISE vec4 total = vec4(0.0);
  OM_PRECISE vec4 group = vec4(0.0);
  OM_PRECISE vec4 block = vec4(0.0);
  for (uint ky = 0u; ky < kernel_h; ++ky) {
    int at_y = y + int(ky * P.dilation_h);
    bool is_inside = uint(at_y) < P.in_h;
    uint row = plane + uint(at_y) * P.in_w;
    for (uint kx = 0u; kx < kernel_w; ++kx) {
      int at_x = x + int(kx * P.dilation_w);
      vec4 taps = vec4(load(row, is_inside, at_x), load(row, is_inside, at_x + stride),
                       load(row, is_inside, at_x + 2 * stride), load(row, is_inside, at_x + 3 * stride));
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
        block = vec4(0.0);
      }
    }
  }
  return total;
}
#endif

void main() {
  uint quad = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (quad < P.quads) {
    uint row = quad / P.row_quads;
    uint out_x = (quad - row * P.row_quads) * 4u;
    uint plane = row / P.out_h;
    uint out_y = row - plane * P.out_h;
    uint image = plane / P.out_channels;
    uint channel = plane - image * P.out_channels;
    uint in_plane = (image * (P.out_channels / P.multiplier) + channel / P.multiplier) * P.in_h * P.in_w;
    uint stride_h = STRIDE_H;
    uint stride_w = STRIDE_W;
    uint kernel_h = KERNEL_H;
    uint kernel_w = KERNEL_W;
    vec4 sums = window_sums(in_plane, channel * kernel_h * kernel_w, int(out_y * stride_h) - int(P.pad_h),
                            int(out_x * stride_w) - int(P.pad_w));
    uint element = row * P.out_w + out_x;
    uint count = min(4u, P.out_w - out_x);
    for (uint i = 0u; i < count; ++i) {
      float value = chain_apply_channel(sums.x, element + i, channel);
      output_data[element + i] = STORE(value);
      sums = sums.yzwx;
    }
  }
}
