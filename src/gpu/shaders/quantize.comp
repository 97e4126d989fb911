// To and from integers of 8 and 16 bits with scales and zero points (docs/exact.md, "Quantization").
//
// One invocation makes four neighbours: whole words of every type. Fast mode has the same arithmetic,
// since a quotient rounded otherwise may be another integer.
//
//! kernel quantize    OM_EXACT=1 DEQUANTIZE=0
//! kernel dequantize  OM_EXACT=1 DEQUANTIZE=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/quantize_params.h"
#include "common/quantize.glsl"

#define GROUP 256
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, FROM, 1)     // om_dtype
OM_CONSTANT(1, TO, 1)
OM_CONSTANT(2, SCALE, 1)
OM_CONSTANT(3, ZERO, 0)     // 0: no zero points

layout(set = 0, binding = 0, std430) readonly buffer Input { uint input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scales { uint scales[]; };
layout(set = 0, binding = 2, std430) readonly buffer Zeros { uint zeros[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Output { uint output_data[]; };

uint scale_index(uint element) {
  uint inner = element % P.inner_extent;
  uint rest = element / P.inner_extent;
  uint along = rest % P.extent;
  return rest / P.extent * P.outer_step + along / P.block * P.axis_step + inner * P.inner_step;
}

// The element's bits.
uint convert(uint element) {
  uint from = FROM;
  uint to = TO;
  uint scale_type = SCALE;
  uint zero_type = ZERO;
  uint at = scale_index(element);
  float scale = real_of(scales[at * type_bits(scale_type) / 32u], scale_type, at);
  int zero = 0;
  if (zero_type != TYPE_NONE) zero = element_of(zeros[at * type_bits(zero_type) / 32u], zero_type, at);
  uint word = input_data[element * type_bits(from) / 32u];
#if DEQUANTIZE
  OM_PRECISE float x = float_of_difference(element_of(word, from, element), zero) * scale;
  if (to == TYPE_F16) return half_from_float(x);
  return om_bits(x);
#else
  float x = real_of(word, from, element);
  if (from == TYPE_I32) x = float_of_difference(int(word), 0);
  OM_PRECISE float whole = om_round(om_div(x, scale));
  if (zero_type != TYPE_NONE) whole = whole + float(zero);
  return saturated_bits(whole, to);
#endif
}

void main() {
  uint to = TO;
  uint bits = type_bits(to);
  uint first = (om_group_index() * uint(GROUP) + gl_LocalInvocationID.x) * 4u;
  uint count = 32u / bits;
  for (uint i = 0u; i < 4u; i += count) {
    uint word = 0u;
    for (uint k = 0u; k < count; ++k) {
      uint element = first + i + k;
      if (element < P.elems) word = word | (convert(element) << (k * bits % 32u));
    }
    if (first + i < P.elems) output_data[(first + i) / count] = word;
  }
}
