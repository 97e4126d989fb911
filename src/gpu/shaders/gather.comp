// Gather along one axis, with indices of one or two words, positive or counted from the end.
//
// One invocation copies one word, or four neighbours in the _vec4 variant, or gathers the four
// bytes of a word in the _bytes variant (whose counts are bytes). Bits are moved as they are. An
// index outside the axis is somebody else's finding (demand.comp): here it is clamped. Where the input
// is a part of a table, rows of other parts are left to other dispatches.
//
//! kernel gather        WORD=uint
//! kernel gather_vec4   WORD=uvec4
//! kernel gather_bytes  WORD=uint BYTES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/gather_params.h"

layout(local_size_x = 256) in;

OM_CONSTANT(0, INDEX_WORDS, 1)

layout(set = 0, binding = 0, std430) readonly buffer Input { WORD input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Indices { uint indices[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { WORD output_data[]; };

const uint ELSEWHERE = 0xffffffffu;

// The place in the input of a word (or byte) of the result; ELSEWHERE: in another part.
uint find_source(uint place) {
  uint words = INDEX_WORDS;
  uint row = place / P.row_words;
  uint outer = row / P.index_count;
  uint index = indices[row % P.index_count * words];
  if ((index & OM_SIGN_BIT) != 0u) index = index + P.extent;
  index = min(index, P.extent - 1u) - P.first;
  if (index >= P.held) return ELSEWHERE;
  return (outer * P.held + index) * P.row_words + place % P.row_words;
}

void main() {
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
#ifdef BYTES
  uint word = 0u;
  for (uint k = 0u; k < 4u; ++k) {
    uint place = thread * 4u + k;
    if (place < P.words) {
      uint source = find_source(place);
      word = word | (((input_data[source / 4u] >> (source % 4u * 8u)) & 255u) << (k * 8u));
    }
  }
  if (thread * 4u < P.words) output_data[thread] = word;
#else
  if (thread < P.words) {
    uint source = find_source(thread);
    if (source != ELSEWHERE) output_data[thread] = input_data[source];
  }
#endif
}
