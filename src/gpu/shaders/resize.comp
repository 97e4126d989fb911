// Resize of two axes by tables: for each result of an axis its taps, an input element and a weight
// each. One invocation a result. The tensor is [outer, a, MID, b, INNER].
//
// Axis b first: each of its values is w0 * x0, then + w1 * x1 and so on; those are weighted along a
// in the same way. An axis of one tap has no weights. More axes are more dispatches, with float32
// between those of float16: the first one is resize_first, the last one resize_last.
//
//! kernel resize             OM_EXACT=0
//! kernel resize_exact       OM_EXACT=1
//! kernel resize_half        OM_EXACT=0 HALF=1
//! kernel resize_half_exact  OM_EXACT=1 HALF=1
//! kernel resize_first       OM_EXACT=0 FROM_HALF=1
//! kernel resize_first_exact OM_EXACT=1 FROM_HALF=1
//! kernel resize_last        OM_EXACT=0 HALF=1 FROM_HALF=0
//! kernel resize_last_exact  OM_EXACT=1 HALF=1 FROM_HALF=0
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 4
#define CHAIN_BINDING 4
#include "common/om_shader.glsl"
#include "abi/resize_table_params.h"
#include "common/chain.glsl"

#ifndef FROM_HALF
#  define FROM_HALF HALF
#endif
#if FROM_HALF
#  extension GL_EXT_shader_16bit_storage : require
#  define SOURCE float16_t
#else
#  define SOURCE float
#endif

#define GROUP 128
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, TAPS_A, 1)
OM_CONSTANT(1, TAPS_B, 1)
OM_CONSTANT(2, MID, 1)     // elements between the axes
OM_CONSTANT(3, INNER, 1)   // and inside of b

layout(set = 0, binding = 0, std430) readonly buffer Input { SOURCE input_data[]; };
// Pairs of words: an element (all ones: the result is outside), the bits of a weight.
layout(set = 0, binding = 1, std430) readonly buffer TableA { uint table_a[]; };
layout(set = 0, binding = 2, std430) readonly buffer TableB { uint table_b[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Output { ELEMENT output_data[]; };

const uint OUTSIDE = 0xffffffffu;

// The sum over the taps of b for its result `at_b`; `base` is where b begins.
float inner_value(uint base, uint at_b) {
  uint taps = TAPS_B;
  uint inner = INNER;
  uint at = at_b * taps * 2u;
  OM_PRECISE float value = float(input_data[base + min(table_b[at], P.in_b - 1u) * inner]);
  if (taps != 1u) {
    value = value * uintBitsToFloat(table_b[at + 1u]);
    for (uint t = 1u; t < taps; ++t) {
      value = value + float(input_data[base + table_b[at + 2u * t] * inner]) *
                          uintBitsToFloat(table_b[at + 2u * t + 1u]);
    }
  }
  if (table_b[at] == OUTSIDE) value = P.outside;
  return value;
}

float resized(uint base, uint stride_a, uint at_a, uint at_b) {
  uint taps = TAPS_A;
  uint at = at_a * taps * 2u;
  uint first = min(table_a[at], P.in_a - 1u);
  OM_PRECISE float value = inner_value(base + first * stride_a, at_b);
  if (taps != 1u) {
    value = value * uintBitsToFloat(table_a[at + 1u]);
    for (uint t = 1u; t < taps; ++t) {
      value = value + inner_value(base + table_a[at + 2u * t] * stride_a, at_b) *
                          uintBitsToFloat(table_a[at + 2u * t + 1u]);
    }
  }
  if (table_a[at] == OUTSIDE) value = P.outside;
  return value;
}

void main() {
  uint mid = MID;
  uint inner = INNER;
  uint element = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint in_inner = element % inner;
    uint line = element / inner / P.out_b;
    uint at_b = element / inner - line * P.out_b;
    uint in_mid = line % mid;
    uint outer = line / mid / P.out_a;
    uint at_a = line / mid - outer * P.out_a;
    uint stride_a = mid * P.in_b * inner;
    uint base = outer * P.in_a * stride_a + in_mid * P.in_b * inner + in_inner;
    float value = chain_apply(resized(base, stride_a, at_a, at_b), element);
    output_data[element] = STORE(value);
  }
}
