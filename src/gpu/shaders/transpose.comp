// A strided copy whose axis 0 is dense in the target and whose axis 1 is dense in the source: tiles of
// 32 by 32 words go through shared memory, so that both sides are walked along their rows.
//
// A workgroup of 256 takes one tile, eight rows at a time. Bits are moved as they are.
//
//! kernel transpose
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/copy_params.h"
#include "common/copy.glsl"

#define TILE 32u
layout(local_size_x = 32, local_size_y = 8) in;

layout(set = 0, binding = 0, std430) readonly buffer Source { uint source_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Target { uint target_data[]; };

shared uint tile[32 * 33];

void main() {
  uint across = (P.extent_0 + TILE - 1u) / TILE;
  uint down = (P.extent_1 + TILE - 1u) / TILE;
  uint group = om_group_index();
  bool is_real = group < across * down * (P.elems / P.extent_0 / P.extent_1);
  uint begin_0 = group % across * TILE;
  uint begin_1 = group / across % down * TILE;
  uint rest = group / across / down;
  uint source = P.source_offset;
  uint target = P.target_offset;
  for (uint i = 2u; i < P.rank; ++i) {
    copy_axis axis = copy_get_axis(i);
    uint position = rest % axis.extent;
    rest = rest / axis.extent;
    source += position * axis.source_stride;
    target += position * axis.target_stride;
  }
  uint x = gl_LocalInvocationID.x;
  for (uint y = gl_LocalInvocationID.y; y < TILE; y += 8u) {
    uint at_0 = begin_0 + y;
    uint at_1 = begin_1 + x;
    if (is_real && at_0 < P.extent_0 && at_1 < P.extent_1) {
      tile[y * 33u + x] = source_data[source + at_0 * P.source_stride_0 + at_1];
    }
  }
  barrier();
  for (uint y = gl_LocalInvocationID.y; y < TILE; y += 8u) {
    uint at_0 = begin_0 + x;
    uint at_1 = begin_1 + y;
    if (is_real && at_0 < P.extent_0 && at_1 < P.extent_1) {
      target_data[target + at_1 * P.target_stride_1 + at_0] = tile[x * 33u + y];
    }
  }
}
