// GatherElements (an index for each element) and GatherND (a tuple of indices for each row).
//
// One invocation makes one element, or the elements of one word. Bits are moved as they are.
//
//! kernel gather_elements
//! kernel gather_elements_bytes  BYTES=1
//! kernel gather_nd              TUPLES=1
//! kernel gather_nd_bytes        TUPLES=1 BYTES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/index_params.h"
#include "common/index.glsl"

layout(local_size_x = 256) in;

OM_CONSTANT(0, SIZE, 1)          // of an element: words, bytes in _bytes
OM_CONSTANT(1, INDEX_WORDS, 1)

layout(set = 0, binding = 0, std430) readonly buffer Input { uint input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Indices { uint indices[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { uint output_data[]; };

#include "common/move.glsl"

#ifdef TUPLES
uint find_source(uint element) {
  uint words = INDEX_WORDS;
  uint tuple = element / P.row_elems;
  uint source = tuple / P.batch_tuples * P.batch_elems + element % P.row_elems;
  for (uint i = 0u; i < P.rank; ++i) {
    uint index = index_wrap(indices[(tuple * P.rank + i) * words], index_extent(i));
    source += index * index_stride(i);
  }
  return source;
}
#else
uint find_source(uint element) {
  uint words = INDEX_WORDS;
  uint rest = element;
  uint source = 0u;
  for (uint i = 0u; i < P.rank; ++i) {
    uint extent = index_extent(i);
    uint position = rest % extent;
    rest = rest / extent;
    if (i == P.axis) position = index_wrap(indices[element * words], P.axis_extent);
    source += position * index_stride(i);
  }
  return source;
}
#endif

uvec2 make_element(uint element) {
  uint place = find_source(element);
  return OM_ELEMENT(input_data, place);
}

OM_MOVE_MAIN
