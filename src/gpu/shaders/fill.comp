// ConstantOfShape and Range, of elements of one or two words; a constant of bytes fills words.
//
// One invocation makes one element. Element i of a range is start + i * step: integers wrap, floats
// round the product and the sum.
//
//! kernel fill  OM_EXACT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/fill_params.h"
#include "common/whole.glsl"

layout(local_size_x = 256) in;

OM_CONSTANT(0, WORDS, 1)      // of an element
OM_CONSTANT(1, IS_FLOAT, 0)

layout(set = 0, binding = 0, std430) writeonly buffer Output { uint output_data[]; };

uint float_element(uint element) {
  OM_PRECISE float product = float(element) * om_float(P.step_low);
  OM_PRECISE float sum = om_float(P.start_low) + product;
  return om_bits(sum);
}

void main() {
  uint words = WORDS;
  uint is_float = IS_FLOAT;
  uint element = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uvec2 way = whole_multiply(uvec2(P.step_low, P.step_high), uvec2(element, 0u));
    uvec2 value = whole_add(uvec2(P.start_low, P.start_high), way);
    if (is_float != 0u) value.x = float_element(element);
    output_data[element * words] = value.x;
    if (words == 2u) output_data[element * 2u + 1u] = value.y;
  }
}
