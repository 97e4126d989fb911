// Conv, and ConvTranspose whose kernel is its stride, where each invocation works on its own, without
// shared memory: for devices that run a workgroup's invocations in turn (om_hal_features.in_turn), in
// fast mode.
//
// An invocation makes 4 * QUADS neighbouring channels of four neighbouring pixels, straight from memory.
// The pixels are of one row of the result; in the conv_alone_1x1 variants they lie anywhere in a plane,
// whose size is a multiple of four, and are read at once. conv_alone_shuffle makes all phases of a
// ConvTranspose as if they were channels of a 1x1 Conv, and puts each in its place. Sums of about 32 terms
// are added to the total, which is more accurate than one sum.
//
//! kernel conv_alone_4              QUADS=1
//! kernel conv_alone_8              QUADS=2
//! kernel conv_alone_16             QUADS=4
//! kernel conv_alone_1x1_4          QUADS=1 POINTWISE=1
//! kernel conv_alone_1x1_8          QUADS=2 POINTWISE=1
//! kernel conv_alone_1x1_16         QUADS=4 POINTWISE=1
//! kernel conv_alone_shuffle        QUADS=2 POINTWISE=1 SHUFFLE=1
//! kernel conv_alone_4_half         QUADS=1 HALF=1
//! kernel conv_alone_8_half         QUADS=2 HALF=1
//! kernel conv_alone_16_half        QUADS=4 HALF=1
//! kernel conv_alone_1x1_4_half     QUADS=1 POINTWISE=1 HALF=1
//! kernel conv_alone_1x1_8_half     QUADS=2 POINTWISE=1 HALF=1
//! kernel conv_alone_1x1_16_half    QUADS=4 POINTWISE=1 HALF=1
//! kernel conv_alone_shuffle_half   QUADS=2 POINTWISE=1 SHUFFLE=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 3
#include "common/om_shader.glsl"
#include "abi/conv_alone_params.h"
#include "common/chain.glsl"

#define GROUP 32                   // as om_gpu_conv_alone.c has it
#define CHANNELS (4 * QUADS)
#define BLOCK_TERMS 32
layout(local_size_x = GROUP) in;

#ifdef POINTWISE
layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT4 input_data[]; };
#else
layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
#endif
layout(set = 0, binding = 1, std430) readonly buffer Weights { ELEMENT4 weights[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { ELEMENT output_data[]; };

#if QUADS == 4
#  define EACH_QUAD(what) what(0) what(1) what(2) what(3)
#elif QUADS == 2
#  define EACH_QUAD(what) what(0) what(1)
#else
#  define EACH_QUAD(what) what(0)
#endif
// Of a quad of channels: a sum over four pixels for each, and a total. The last quad of the weights stands
// for those past the end.
#define BEGIN(q)                                                               \
  uint column_##q = min(first_column + uint(q), P.w_columns - 1u);             \
  vec4 x_##q = vec4(0.0);                                                      \
  vec4 y_##q = vec4(0.0);                                                      \
  vec4 z_##q = vec4(0.0);                                                      \
  vec4 w_##q = vec4(0.0);                                                      \
  vec4 total_x_##q = vec4(0.0);                                                \
  vec4 total_y_##q = vec4(0.0);                                                \
  vec4 total_z_##q = vec4(0.0);                                                \
  vec4 total_w_##q = vec4(0.0);
#define FOLD_CHANNEL(total, sum)                                               \
  total = total + sum;                                                         \
  sum = vec4(0.0);
#define FOLD(q)                                                                \
  FOLD_CHANNEL(total_x_##q, x_##q)                                             \
  FOLD_CHANNEL(total_y_##q, y_##q)                                             \
  FOLD_CHANNEL(total_z_##q, z_##q)                                             \
  FOLD_CHANNEL(total_w_##q, w_##q)
#define TERM(q)                                                                \
  {                                                                            \
    vec4 w = LOAD4(weights[weights_row + column_##q]);                         \
    x_##q = fma(vec4(w.x), pixels, x_##q);                                     \
    y_##q = fma(vec4(w.y), pixels, y_##q);                                     \
    z_##q = fma(vec4(w.z), pixels, z_##q);                                     \
    w_##q = fma(vec4(w.w), pixels, w_##q);                                     \
  }
#define KEEP(q)                                                                \
  sums[4 * q] = total_x_##q;                                                   \
  sums[4 * q + 1] = total_y_##q;                                               \
  sums[4 * q + 2] = total_z_##q;                                               \
  sums[4 * q + 3] = total_w_##q;

#ifndef POINTWISE
// An element of a row of the input; 0 outside.
float load(uint row, int x) {
  bool is_inside = uint(x) < P.in_w;
  float value = LOAD(input_data[is_inside ? row + uint(x) : 0u]);
  return is_inside ? value : 0.0;
}
#endif

void main() {
  uint number = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (number < P.count) {
    uint rest = number / P.row_quads;
    uint quad = number - rest * P.row_quads;
#ifdef POINTWISE
    uint out_row = 0u;
#else
    uint above = rest / P.out_h;
    uint out_row = rest - above * P.out_h;
    rest = above;
#endif
    uint slice = rest / P.column_tiles;
    uint first_column = (rest - slice * P.column_tiles) * uint(QUADS);
    uint image = slice / P.groups;
    uint group = slice - image * P.groups;
    uint in_plane = P.in_h * P.in_w;
    uint plane = slice * P.in_channels * in_plane;
    uint taps = P.kernel_h * P.kernel_w;
    EACH_QUAD(BEGIN)
#ifdef POINTWISE
    uint weights_row = group * P.in_channels * P.w_columns;
    uint at = plane / 4u + quad;
    for (uint begin = 0u; begin < P.in_channels; begin += uint(BLOCK_TERMS)) {
      for (uint channel = begin; channel < min(begin + uint(BLOCK_TERMS), P.in_channels); ++channel) {
        vec4 pixels = LOAD4(input_data[at]);
        EACH_QUAD(TERM)
        weights_row += P.w_columns;
        at += in_plane / 4u;
      }
      EACH_QUAD(FOLD)
    }
#else
    int first_y = int(out_row * P.stride_h) - int(P.pad_h);
    int first_x = int(quad * 4u * P.stride_w) - int(P.pad_w);
    int step = int(P.stride_w);
    uint weights_channel = group * P.in_channels * taps * P.w_columns;
    uint terms = 0u;
    for (uint channel = 0u; channel < P.in_channels; ++channel) {
      uint weights_line = weights_channel;
      int y = first_y;
      for (uint ky = 0u; ky < P.kernel_h; ++ky) {
        if (uint(y) < P.in_h) {
          uint row = plane + uint(y) * P.in_w;
          uint weights_row = weights_line;
          int x = first_x;
          for (uint kx = 0u; kx < P.kernel_w; ++kx) {
            vec4 pixels = vec4(load(row, x), load(row, x + step), load(row, x + 2 * step), load(row, x + 3 * step));
            EACH_QUAD(TERM)
            weights_row += P.w_columns;
            x += int(P.dilation_w);
          }
        }
        weights_line += P.kernel_w * P.w_columns;
        y += int(P.dilation_h);
      }
      weights_channel += taps * P.w_columns;
      plane += in_plane;
      terms += taps;
      if (terms >= uint(BLOCK_TERMS) || channel + 1u == P.in_channels) {
        EACH_QUAD(FOLD)
        terms = 0u;
      }
    }
#endif
    vec4 sums[CHANNELS];
    EACH_QUAD(KEEP)
    uint first_channel = first_column * 4u;
    uint channel_count = min(uint(CHANNELS), P.out_channels - first_channel);
    uint out_plane = P.out_h * P.out_w;
#ifdef SHUFFLE
    uint phases = P.stride_h * P.stride_w;
    for (uint i = 0u; i < channel_count; ++i) {
      uint channel = (first_channel + i) / phases;
      uint phase = first_channel + i - channel * phases;
      uint phase_y = phase / P.stride_w;
      uint phase_x = phase - phase_y * P.stride_w;
      vec4 values = sums[i];
      for (uint k = 0u; k < 4u; ++k) {
        uint pixel = quad * 4u + k;
        uint y = pixel / P.in_w;
        uint element = (image * (P.out_channels / phases) + channel) * out_plane +
                       (y * P.stride_h + phase_y) * P.out_w + (pixel - y * P.in_w) * P.stride_w + phase_x;
        output_data[element] = STORE(chain_apply_channel(values.x, element, channel));
        values = values.yzwx;
      }
    }
#else
    uint first_pixel = out_row * P.out_w + quad * 4u;
#  ifdef POINTWISE
    uint pixel_count = 4u;
#  else
    uint pixel_count = min(4u, P.out_w - quad * 4u);
#  endif
    for (uint i = 0u; i < channel_count; ++i) {
      uint channel = group * P.out_channels + first_channel + i;
      uint element = (slice * P.out_channels + first_channel + i) * out_plane + first_pixel;
      vec4 values = sums[i];
      for (uint k = 0u; k < pixel_count; ++k) {
        output_data[element] = STORE(chain_apply_channel(values.x, element, channel));
        values = values.yzwx;
        element += 1u;
      }
    }
#endif
  }
}
