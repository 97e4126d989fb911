// CumSum of float32, float16, int32 and int64. One invocation makes one line: a chain of additions from its
// first element, or its last.
//
//! kernel cumsum       OM_EXACT=1
//! kernel cumsum_half  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/select_params.h"
#include "common/whole.glsl"

layout(local_size_x = 64) in;

OM_CONSTANT(0, WORDS, 1)          // of an element
OM_CONSTANT(1, IS_FLOAT, 0)
OM_CONSTANT(2, IS_EXCLUSIVE, 0)
OM_CONSTANT(3, IS_REVERSED, 0)

#if HALF
layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT output_data[]; };

uvec2 load(uint element, uint words) {
  return uvec2(om_bits(LOAD(input_data[element])), 0u);
}

void store(uint element, uint words, uvec2 value) {
  output_data[element] = STORE(om_float(value.x));
}
#else
layout(set = 0, binding = 0, std430) readonly buffer Input { uint input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { uint output_data[]; };

uvec2 load(uint element, uint words) {
  return uvec2(input_data[element * words], input_data[element * words + words - 1u]);
}

void store(uint element, uint words, uvec2 value) {
  output_data[element * words] = value.x;
  if (words == 2u) output_data[element * 2u + 1u] = value.y;
}
#endif

uint add_floats(uint a, uint b) {
  OM_PRECISE float sum = om_float(a) + om_float(b);
  return om_bits(sum);
}

void main() {
  uint words = WORDS;
  uint is_float = IS_FLOAT;
  uint is_exclusive = IS_EXCLUSIVE;
  uint is_reversed = IS_REVERSED;
  uint line = om_group_index() * 64u + gl_LocalInvocationID.x;
  if (line < P.elems) {
    uint base = line / P.inner * P.extent * P.inner + line % P.inner;
    uvec2 sum = uvec2(0u, 0u);
    for (uint i = 0u; i < P.extent; ++i) {
      uint along = i;
      if (is_reversed != 0u) along = P.extent - 1u - i;
      uint at = base + along * P.inner;
      uvec2 value = load(at, words);
      uvec2 next = whole_add(sum, value);
      if (is_float != 0u) next.x = add_floats(sum.x, value.x);
      uvec2 made = next;
      if (is_exclusive != 0u) made = sum;
      store(at, words, made);
      sum = next;
    }
  }
}
