// TopK of float32, float16, int32 and int64, in order. One invocation takes one element and counts those of its
// line that come before it: that is its place. Among equals the first comes first; NaN is largest.
//
//! kernel topk
//! kernel topk_half  HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/select_params.h"
#include "common/order.glsl"

layout(local_size_x = 256) in;

OM_CONSTANT(0, TYPE, 1)           // om_dtype
OM_CONSTANT(1, WANTS_SMALLEST, 0)

ORDER_BUFFER(0, Input, input)
#if HALF
layout(set = 0, binding = 1, std430) writeonly buffer Values { ELEMENT output_values[]; };
#else
layout(set = 0, binding = 1, std430) writeonly buffer Values { uint output_values[]; };
#endif
layout(set = 0, binding = 2, std430) writeonly buffer Places { uint output_places[]; };

uvec2 load_key(uint type, uint element) {
  uvec2 words = ORDER_LOAD(input, type, element);
  return order_key(type, words.x, words.y);
}

void main() {
  uint type = TYPE;
  uint wants_smallest = WANTS_SMALLEST;
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
  uint line = thread / P.extent;
  uint own = thread % P.extent;
  if (line < P.elems) {
    uint base = line / P.inner * P.extent * P.inner + line % P.inner;
    uvec2 key = load_key(type, base + own * P.inner);
    uint place = 0u;
    for (uint i = 0u; i < P.extent; ++i) {
      uvec2 other = load_key(type, base + i * P.inner);
      bool is_before = false;
      if (wants_smallest != 0u) {
        is_before = whole_is_less_unsigned(other, key);
      } else {
        is_before = whole_is_less_unsigned(key, other);
      }
      if (other == key) is_before = i < own;
      if (is_before) place = place + 1u;
    }
    uint k = uint(P.k);
    if (place < k) {
      uint to = line / P.inner * k * P.inner + place * P.inner + line % P.inner;
#if HALF
      output_values[to] = input_data[base + own * P.inner];
#else
      uvec2 words = ORDER_LOAD(input, type, base + own * P.inner);
      uint size = type == ORDER_I64 ? 2u : 1u;
      output_values[to * size] = words.x;
      if (size == 2u) output_values[to * 2u + 1u] = words.y;
#endif
      output_places[to * 2u] = own;
      output_places[to * 2u + 1u] = 0u;
    }
  }
}
