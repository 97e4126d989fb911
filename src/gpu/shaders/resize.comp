// Resize of the last two axes by tables: for each result of an axis its taps, an input element
// and a weight each. One invocation a result.
//
// Columns first: each row's value is w0 * x0, then + w1 * x1 and so on; the rows' values are
// weighted in the same way. An axis of one tap has no weights.
//
//! kernel resize        OM_EXACT=0
//! kernel resize_exact  OM_EXACT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 2
#define CHAIN_BINDING 4
#include "common/om_shader.glsl"
#include "abi/resize_table_params.h"
#include "common/chain.glsl"

#define GROUP 128
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, TAPS_Y, 1)
OM_CONSTANT(1, TAPS_X, 1)

layout(set = 0, binding = 0, std430) readonly buffer Input { float input_data[]; };
// Pairs of words: an element (all ones: the result is outside), the bits of a weight.
layout(set = 0, binding = 1, std430) readonly buffer TableY { uint table_y[]; };
layout(set = 0, binding = 2, std430) readonly buffer TableX { uint table_x[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Output { float output_data[]; };

const uint OUTSIDE = 0xffffffffu;

// The row's value: the sum over the columns' taps.
float row_value(uint row, uint column) {
  uint taps = TAPS_X;
  uint at = column * taps * 2u;
  OM_PRECISE float value = input_data[row + min(table_x[at], P.in_w - 1u)];
  if (taps != 1u) {
    value = value * uintBitsToFloat(table_x[at + 1u]);
    for (uint t = 1u; t < taps; ++t) {
      value = value + input_data[row + table_x[at + 2u * t]] * uintBitsToFloat(table_x[at + 2u * t + 1u]);
    }
  }
  if (table_x[at] == OUTSIDE) value = P.outside;
  return value;
}

float resized(uint plane, uint row, uint column) {
  uint taps = TAPS_Y;
  uint at = row * taps * 2u;
  uint first = min(table_y[at], P.in_h - 1u);
  OM_PRECISE float value = row_value(plane + first * P.in_w, column);
  if (taps != 1u) {
    value = value * uintBitsToFloat(table_y[at + 1u]);
    for (uint t = 1u; t < taps; ++t) {
      value = value + row_value(plane + table_y[at + 2u * t] * P.in_w, column) *
                          uintBitsToFloat(table_y[at + 2u * t + 1u]);
    }
  }
  if (table_y[at] == OUTSIDE) value = P.outside;
  return value;
}

void main() {
  uint element = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint line = element / P.out_w;
    uint column = element - line * P.out_w;
    uint plane = line / P.out_h;
    float value = resized(plane * P.in_h * P.in_w, line - plane * P.out_h, column);
    output_data[element] = chain_apply(value, element);
  }
}
