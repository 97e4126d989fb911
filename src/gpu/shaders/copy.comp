// Strided copies: what Slice, Split, Expand, Tile and their kin do, and Transpose where little moves.
//
// One invocation copies one word, or four neighbours in the _vec4 variant (both sides dense along
// the innermost axis). Bits are moved as they are.
//
//! kernel copy       WORD=uint
//! kernel copy_vec4  WORD=uvec4
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/copy_params.h"
#include "common/copy.glsl"

layout(local_size_x = 256) in;

layout(set = 0, binding = 0, std430) readonly buffer Source { WORD source_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Target { WORD target_data[]; };

void main() {
  uint rest = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (rest < P.elems) {
    uint source = P.source_offset;
    uint target = P.target_offset;
    for (uint i = 0u; i < P.rank; ++i) {
      copy_axis axis = copy_get_axis(i);
      uint position = rest % axis.extent;
      rest = rest / axis.extent;
      source += position * axis.source_stride;
      target += position * axis.target_stride;
    }
    target_data[target] = source_data[source];
  }
}
