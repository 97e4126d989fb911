// Strided copies: what Slice, Split, Expand, Tile and their kin do, and Transpose where little moves.
//
// One invocation copies one word, or four neighbours in the _vec4 variant (both sides dense along
// the innermost axis), or gathers the four bytes of a word in the _bytes variant (whose counts are
// bytes, and whose target is dense). Bits are moved as they are.
//
//! kernel copy       WORD=uint
//! kernel copy_vec4  WORD=uvec4
//! kernel copy_bytes WORD=uint BYTES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/copy_params.h"
#include "common/copy.glsl"

layout(local_size_x = 256) in;

layout(set = 0, binding = 0, std430) readonly buffer Source { WORD source_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Target { WORD target_data[]; };

#ifdef BYTES
uint load_byte(uint place) {
  return (source_data[place / 4u] >> (place % 4u * 8u)) & 255u;
}

void main() {
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
  uint word = 0u;
  for (uint k = 0u; k < 4u; ++k) {
    uint rest = thread * 4u + k;
    if (rest < P.elems) {
      uint source = P.source_offset;
      for (uint i = 0u; i < P.rank; ++i) {
        copy_axis axis = copy_get_axis(i);
        source += rest % axis.extent * axis.source_stride;
        rest = rest / axis.extent;
      }
      word = word | (load_byte(source) << (k * 8u));
    }
  }
  if (thread * 4u < P.elems) target_data[thread] = word;
}
#else
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
#endif
