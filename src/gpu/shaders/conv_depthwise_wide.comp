// Convolutions with one input channel in each group, of many results: rows of quads.
//
// An invocation makes ROWS rows of COLUMNS results that lie side by side. Each input row that they want
// is read once, as the quads of its columns, and goes into all results it is a tap of; so a result costs
// one load or two instead of a load a tap, and loads are of 16 bytes (of float16 8; they are converted
// behind the branch around the load, which would wait for them). Rows and columns of an image are
// multiples of four, and half a kernel is padded to the left, so that quads are wholly inside or
// outside. Rows of eight results (COLUMNS=8: 3x3 of float16, rows of whole eights) have their own
// eight columns in one load, and one store, of 16 bytes: 3x3 of 32x144 of 112x112 took 81.4 us by
// quads and 80 so, where 5x5 took 122.6 and 131 (NVIDIA H200, 2026-12-01). The order is that of
// conv_depthwise.comp: taps row by row, in one block.
//
//! kernel conv_depthwise_wide_k3s1             OM_EXACT=0 K=3 S=1
//! kernel conv_depthwise_wide_k3s1_exact       OM_EXACT=1 K=3 S=1
//! kernel conv_depthwise_wide_k3s1_half        OM_EXACT=0 HALF=1 K=3 S=1
//! kernel conv_depthwise_wide_k3s1_half_exact  OM_EXACT=1 HALF=1 K=3 S=1
//! kernel conv_depthwise_wide_k3s2             OM_EXACT=0 K=3 S=2
//! kernel conv_depthwise_wide_k3s2_exact       OM_EXACT=1 K=3 S=2
//! kernel conv_depthwise_wide_k3s2_half        OM_EXACT=0 HALF=1 K=3 S=2
//! kernel conv_depthwise_wide_k3s2_half_exact  OM_EXACT=1 HALF=1 K=3 S=2
//! kernel conv_depthwise_wide_k5s1             OM_EXACT=0 K=5 S=1
//! kernel conv_depthwise_wide_k5s1_exact       OM_EXACT=1 K=5 S=1
//! kernel conv_depthwise_wide_k5s1_half        OM_EXACT=0 HALF=1 K=5 S=1
//! kernel conv_depthwise_wide_k5s1_half_exact  OM_EXACT=1 HALF=1 K=5 S=1
//! kernel conv_depthwise_wide_k5s2             OM_EXACT=0 K=5 S=2
//! kernel conv_depthwise_wide_k5s2_exact       OM_EXACT=1 K=5 S=2
//! kernel conv_depthwise_wide_k5s2_half        OM_EXACT=0 HALF=1 K=5 S=2
//! kernel conv_depthwise_wide_k5s2_half_exact  OM_EXACT=1 HALF=1 K=5 S=2
//! kernel conv_depthwise_wide_k3s1_half_8      OM_EXACT=0 HALF=1 K=3 S=1 COLUMNS=8
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define OM_CHAIN
#define CHAIN_BASE 4
#define CHAIN_BINDING 3
#define GROUP 128                    // as om_gpu_conv_depthwise.c has it
#define ROWS 4                       // as P.column_quads has it
#ifndef COLUMNS
#  define COLUMNS 4
#endif
#include "common/om_shader.glsl"
#include "abi/conv_depthwise_params.h"
#include "common/chain.glsl"

layout(local_size_x = GROUP) in;

// As conv_depthwise.comp has them; K and S say the same.
OM_CONSTANT(0, KERNEL_H, 1)
OM_CONSTANT(1, KERNEL_W, 1)
OM_CONSTANT(2, STRIDE_H, 1)
OM_CONSTANT(3, STRIDE_W, 1)

#if HALF
#  define QUAD uvec2
vec4 unpack(uvec2 quad) { return vec4(unpackHalf2x16(quad.x), unpackHalf2x16(quad.y)); }
uvec2 pack(vec4 values) { return uvec2(packHalf2x16(values.xy), packHalf2x16(values.zw)); }
#else
#  define QUAD vec4
vec4 unpack(vec4 quad) { return quad; }
#endif

layout(set = 0, binding = 1, std430) readonly buffer Weights { ELEMENT weights[]; };
#if COLUMNS == 8
layout(set = 0, binding = 0, std430) readonly buffer Input { uvec4 input_eights[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { uvec4 output_eights[]; };
#else
layout(set = 0, binding = 0, std430) readonly buffer Input { QUAD input_quads[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { ELEMENT4 output_quads[]; };
#endif

#define SPAN (S * (ROWS - 1) + K)    // input rows that the results want
#define FIRST (4 - K / 2)            // the first column that is wanted; the first quad stands to the left
#define QUADS ((FIRST + (COLUMNS - 1) * S + K - 1) / 4 + 1)
#define OUT_QUADS (COLUMNS / 4)      // in a row of the results

#if OM_EXACT
#define MULTIPLY(sum, a, b) sum = sum + (a) * vec4(b);
#else
#define MULTIPLY(sum, a, b) sum = fma(a, vec4(b), sum);
#endif

void main() {
  uint lane = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (lane >= P.quads / uint(COLUMNS)) return;
  uint out_quads = P.out_w / 4u;
  uint in_quads = P.in_w / 4u;
  uint units = P.out_w / uint(COLUMNS);
  uint row_piece = lane / units;
  uint x = (lane - row_piece * units) * uint(OUT_QUADS);
  uint plane = row_piece / P.column_quads;
  uint out_y = (row_piece - plane * P.column_quads) * uint(ROWS);
  uint channel = plane % P.out_channels;
  uint in_plane = plane;
  if (P.multiplier != 1u) {
    in_plane = plane / P.out_channels * (P.out_channels / P.multiplier) + channel / P.multiplier;
  }
  uint kernel_h = KERNEL_H;
  uint kernel_w = KERNEL_W;
  uint stride_h = STRIDE_H;
  uint stride_w = STRIDE_W;
  uint first_tap = channel * kernel_h * kernel_w;
  int y = int(out_y * stride_h) - int(P.pad_h);
  uint first_quad = x * stride_w - 1u;
  uint in_row = in_plane * P.in_h * in_quads + first_quad;
  bool is_inside[QUADS];
  [[unroll]] for (int q = 0; q < QUADS; ++q) is_inside[q] = first_quad + uint(q) < in_quads;
  float taps[K * K];
  [[unroll]] for (int i = 0; i < K * K; ++i) taps[i] = LOAD(weights[first_tap + uint(i)]);

  OM_PRECISE vec4 sums[ROWS * OUT_QUADS];
  [[unroll]] for (int i = 0; i < ROWS * OUT_QUADS; ++i) sums[i] = vec4(OM_START(P.quads));
  [[unroll]] for (int i = 0; i < SPAN; ++i) {
    float v[4 * QUADS];
    QUAD quads[QUADS];
    bool has_row = uint(y + i) < P.in_h;
    uint at = in_row + uint(y + i) * in_quads;
    [[unroll]] for (int q = 0; q < QUADS; ++q) quads[q] = QUAD(0);
#if COLUMNS == 8
    // The first quad is an eight's second one.
    if (has_row && is_inside[0]) quads[0] = input_eights[at / 2u].zw;
    if (has_row) {
      uvec4 eight = input_eights[(at + 1u) / 2u];
      quads[1] = eight.xy;
      quads[2] = eight.zw;
    }
    if (has_row && is_inside[3]) quads[3] = input_eights[(at + 3u) / 2u].xy;
#else
    [[unroll]] for (int q = 0; q < QUADS; ++q) {
      if (has_row && is_inside[q]) quads[q] = input_quads[at + uint(q)];
    }
#endif
    [[unroll]] for (int q = 0; q < QUADS; ++q) {
      vec4 values = unpack(quads[q]);
      [[unroll]] for (int c = 0; c < 4; ++c) v[4 * q + c] = values[c];
    }
    [[unroll]] for (int r = 0; r < ROWS; ++r) {
      int ky = i - r * S;
      if (ky >= 0 && ky < K) {
        [[unroll]] for (int kx = 0; kx < K; ++kx) {
          [[unroll]] for (int q = 0; q < OUT_QUADS; ++q) {
            int c = FIRST + kx + 4 * q * S;
            vec4 own = vec4(v[c], v[c + S], v[c + 2 * S], v[c + 3 * S]);
            MULTIPLY(sums[r * OUT_QUADS + q], own, taps[ky * K + kx])
          }
        }
      }
    }
  }

  uint out_row = (plane * P.out_h + out_y) * out_quads + x;
  uint count = min(uint(ROWS), P.out_h - out_y);
  // All are ready before the first is stored: loads do not pass stores.
  [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) {
    uint element = (out_row + min(r, count - 1u) * out_quads) * 4u;
    [[unroll]] for (uint c = 0u; c < uint(COLUMNS); ++c) {
      uint own = r * uint(OUT_QUADS) + c / 4u;
      sums[own][c % 4u] = chain_apply_channel(sums[own][c % 4u], element + c, channel);
    }
  }
  [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) {
    uint at = out_row + r * out_quads;
#if COLUMNS == 8
    if (r < count) output_eights[at / 2u] = uvec4(pack(sums[2u * r]), pack(sums[2u * r + 1u]));
#else
    if (r < count) output_quads[at] = STORE4(sums[r]);
#endif
  }
}
