// Gather along one axis, with indices that the host has checked and made positive.
//
// One invocation copies one word, or four neighbours in the _vec4 variant. Bits are moved as they are.
//
//! kernel gather       WORD=uint
//! kernel gather_vec4  WORD=uvec4
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/gather_params.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 0, std430) readonly buffer Input { WORD input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Indices { uint indices[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { WORD output_data[]; };

void main() {
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (thread < P.words) {
    uint row = thread / P.row_words;
    uint outer = row / P.index_count;
    uint index = min(indices[row % P.index_count], P.extent - 1u);
    output_data[thread] =
        input_data[(outer * P.extent + index) * P.row_words + thread % P.row_words];
  }
}
