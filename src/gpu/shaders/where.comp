// Where, with broadcasting: elements of one or two words, or of one or two bytes (_bytes).
//
// One invocation makes one element, or the elements of one word. Bits are moved as they are.
//
//! kernel where
//! kernel where_bytes  BYTES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/broadcast_params.h"
#include "common/broadcast.glsl"

layout(local_size_x = 256) in;

OM_CONSTANT(0, SIZE, 1)   // of an element: words, bytes in _bytes

layout(set = 0, binding = 0, std430) readonly buffer Condition { uint condition[]; };
layout(set = 0, binding = 1, std430) readonly buffer InputX { uint input_x[]; };
layout(set = 0, binding = 2, std430) readonly buffer InputY { uint input_y[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Output { uint output_data[]; };

bool is_true(uint place) {
  return ((condition[place / 4u] >> (place % 4u * 8u)) & 255u) != 0u;
}

#ifdef BYTES
void main() {
  uint size = SIZE;
  uint bits = size * 8u;
  uint count = 4u / size;
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
  uint word = 0u;
  for (uint k = 0u; k < count; ++k) {
    uint element = thread * count + k;
    if (element < P.elems) {
      uvec3 place = broadcast_elements(element);
      uint part = 0u;
      if (is_true(place.x)) {
        part = input_x[place.y / count] >> (place.y % count * bits);
      } else {
        part = input_y[place.z / count] >> (place.z % count * bits);
      }
      word = word | ((part & ((1u << bits) - 1u)) << (k * bits));
    }
  }
  if (thread * count < P.elems) output_data[thread] = word;
}
#else
void main() {
  uint size = SIZE;
  uint element = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uvec3 place = broadcast_elements(element);
    bool takes_x = is_true(place.x);
    for (uint k = 0u; k < size; ++k) {
      uint word = 0u;
      if (takes_x) {
        word = input_x[place.y * size + k];
      } else {
        word = input_y[place.z * size + k];
      }
      output_data[element * size + k] = word;
    }
  }
}
#endif
