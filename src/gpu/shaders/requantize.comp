// The sums of an integer product times its scales (docs/exact.md, "Quantization"): rounded to 8 bits with
// a zero point, or as float32.
//
// One invocation makes four neighbours. Fast mode has the same arithmetic, as quantize.comp.
//
//! kernel requantize  OM_EXACT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/requantize_params.h"
#include "common/quantize.glsl"

#define GROUP 256
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, TO, 2)          // om_dtype; float32: no scale and zero point of the result
OM_CONSTANT(1, HAS_BIAS, 0)    // of 8 bits an int32 that joins the sum, else a float32 added at the end

layout(set = 0, binding = 0, std430) readonly buffer Sums { int sums[]; };
layout(set = 0, binding = 1, std430) readonly buffer ScalesA { float scales_a[]; };
layout(set = 0, binding = 2, std430) readonly buffer ScalesB { float scales_b[]; };
layout(set = 0, binding = 3, std430) readonly buffer Bias { uint bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer Scale { float scale_of_result[]; };
layout(set = 0, binding = 5, std430) readonly buffer Zero { uint zero_of_result[]; };
layout(set = 0, binding = 6, std430) writeonly buffer Output { uint output_data[]; };

uint result_bits(uint element) {
  uint to = TO;
  uint has_bias = HAS_BIAS;
  uint column = element % P.columns;
  uint row = element / P.columns;
  uint more = 0u;
  if (has_bias != 0u) more = bias[P.row_biases != 0u ? row % P.row_biases : column % P.column_biases];
  int sum = sums[element];
  if (to != TYPE_F32) sum = sum + int(more);
  OM_PRECISE float scale = scales_a[row % P.a_scales] * scales_b[column % P.b_scales];
  float x = float_of_difference(sum, 0);
  if (to == TYPE_F32) {
    OM_PRECISE float product = x * scale;
    if (has_bias != 0u) product = product + om_float(more);
    return om_bits(product);
  }
  OM_PRECISE float value = x * om_div(scale, scale_of_result[0]);
  OM_PRECISE float whole = om_round(value) + float(element_of(zero_of_result[0], to, 0u));
  return saturated_bits(whole, to);
}

void main() {
  uint to = TO;
  uint first = (om_group_index() * uint(GROUP) + gl_LocalInvocationID.x) * 4u;
  uint word = 0u;
  for (uint i = 0u; i < 4u; ++i) {
    uint element = first + i;
    if (element < P.elems) {
      uint made = result_bits(element);
      if (to == TYPE_F32) output_data[element] = made;
      word = word | (made << (i * 8u));
    }
  }
  if (to != TYPE_F32 && first < P.elems) output_data[first / 4u] = word;
}
