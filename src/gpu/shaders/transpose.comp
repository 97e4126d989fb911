// A strided copy whose axis 0 is dense in the target and whose axis 1 is dense in the source: tiles go
// through shared memory, so that both sides are walked along their rows.
//
// A workgroup of 256 takes one tile, eight rows at a time: 32 by 32 words, or in the _pairs variant 64
// by 64 elements of 16 bits, two in a word (counts are elements; all that is no dense stride is even,
// and so is the extent of axis 0). Bits are moved as they are.
//
//! kernel transpose
//! kernel transpose_pairs PAIRS=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/copy_params.h"
#include "common/copy.glsl"

#ifdef PAIRS
#define PER_WORD 2u
#define TILE     64u
shared uint tile[64 * 33];
#else
#define PER_WORD 1u
#define TILE     32u
shared uint tile[32 * 33];
#endif
layout(local_size_x = 32, local_size_y = 8) in;

layout(set = 0, binding = 0, std430) readonly buffer Source { uint source_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Target { uint target_data[]; };

// A word of the target: row `at_1` of the tile, from column `at_0` on.
uint turned(uint at_0, uint at_1) {
#ifdef PAIRS
  uint shift = at_1 % 2u * 16u;
  uint low = tile[at_0 * 33u + at_1 / 2u] >> shift & 0xffffu;
  uint high = tile[(at_0 + 1u) * 33u + at_1 / 2u] >> shift & 0xffffu;
  return low | (high << 16);
#else
  return tile[at_0 * 33u + at_1];
#endif
}

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
    uint at_1 = begin_1 + x * PER_WORD;
    if (is_real && at_0 < P.extent_0 && at_1 < P.extent_1) {
      tile[y * 33u + x] = source_data[(source + at_0 * P.source_stride_0 + at_1) / PER_WORD];
    }
  }
  barrier();
  for (uint y = gl_LocalInvocationID.y; y < TILE; y += 8u) {
    uint at_0 = begin_0 + x * PER_WORD;
    uint at_1 = begin_1 + y;
    if (is_real && at_0 < P.extent_0 && at_1 < P.extent_1) {
      target_data[(target + at_1 * P.target_stride_1 + at_0) / PER_WORD] = turned(x * PER_WORD, y);
    }
  }
}
