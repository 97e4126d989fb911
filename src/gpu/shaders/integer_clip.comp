// Clip of int32 and int64: bounds are single values, which may be absent. Where they cross, the upper
// one wins. One invocation makes one element.
//
//! kernel integer_clip
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/broadcast_params.h"
#include "common/whole.glsl"

layout(local_size_x = 256) in;

OM_CONSTANT(0, WORDS, 1)     // of an element
OM_CONSTANT(1, HAS_LOW, 1)
OM_CONSTANT(2, HAS_HIGH, 1)

layout(set = 0, binding = 0, std430) readonly buffer Input { uint input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Low { uint low_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer High { uint high_data[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Output { uint output_data[]; };

void main() {
  uint words = WORDS;
  uint has_low = HAS_LOW;
  uint has_high = HAS_HIGH;
  uint element = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uvec2 value = whole_extend(input_data[element * words]);
    uvec2 low = whole_extend(low_data[0]);
    uvec2 high = whole_extend(high_data[0]);
    if (words == 2u) {
      value.y = input_data[element * 2u + 1u];
      low.y = low_data[1];
      high.y = high_data[1];
    }
    if (has_low != 0u && whole_is_less(value, low)) value = low;
    if (has_high != 0u && whole_is_less(high, value)) value = high;
    output_data[element * words] = value.x;
    if (words == 2u) output_data[element * 2u + 1u] = value.y;
  }
}
