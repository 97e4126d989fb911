// Trilu: one half of each matrix, the other half zero. Bits are moved as they are.
//
//! kernel trilu
//! kernel trilu_bytes  BYTES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/select_params.h"

layout(local_size_x = 256) in;

OM_CONSTANT(0, SIZE, 1)       // of an element: words, bytes in _bytes
OM_CONSTANT(1, IS_UPPER, 1)

layout(set = 0, binding = 0, std430) readonly buffer Input { uint input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { uint output_data[]; };

#include "common/move.glsl"

uvec2 make_element(uint element) {
  uint is_upper = IS_UPPER;
  int col = int(element % P.inner);
  int border = int(element / P.inner % P.extent) + P.k;
  bool keeps = is_upper != 0u ? col >= border : col <= border;
  uvec2 value = OM_ELEMENT(input_data, element);
  if (!keeps) value = uvec2(0u, 0u);
  return value;
}

OM_MOVE_MAIN
