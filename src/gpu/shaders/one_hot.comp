// OneHot with int32 or int64 indices; one outside -depth..depth-1 marks nothing.
//
//! kernel one_hot
//! kernel one_hot_bytes  BYTES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/select_params.h"
#include "common/whole.glsl"

layout(local_size_x = 256) in;

OM_CONSTANT(0, SIZE, 1)       // of an element: words, bytes in _bytes
OM_CONSTANT(1, INDEX_WORDS, 1)

layout(set = 0, binding = 0, std430) readonly buffer Indices { uint indices[]; };
layout(set = 0, binding = 1, std430) readonly buffer Pair { uint pair[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { uint output_data[]; };

#include "common/move.glsl"

uvec2 make_element(uint element) {
  uint words = INDEX_WORDS;
  uint i = element / P.inner / P.extent * P.inner + element % P.inner;
  uvec2 index = whole_extend(indices[i * words]);
  if (words == 2u) index.y = indices[i * 2u + 1u];
  if (whole_is_negative(index)) index = whole_add(index, uvec2(P.extent, 0u));
  bool is_marked = index.y == 0u && index.x == element / P.inner % P.extent;
  uint place = is_marked ? 1u : 0u;
  return OM_ELEMENT(pair, place);
}

OM_MOVE_MAIN
