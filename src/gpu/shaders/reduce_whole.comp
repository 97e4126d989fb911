// Reductions of int32 and int64 over one axis or neighbouring axes, a result a row; computed in 64
// bits, which wrap.
//
// common/rows.glsl has how rows fall to workgroups. A lane takes its elements, then the lanes are
// joined by a halving tree; the order does not matter.
//
//! kernel reduce_whole
#version 450
#extension GL_GOOGLE_include_directive : require
#define WHOLE
#include "common/om_shader.glsl"
#include "abi/reduce_params.h"
#include "common/whole.glsl"
#include "common/rows.glsl"

OM_CONSTANT(0, KIND, 0)            // om_reduce_kind
OM_CONSTANT(1, IS_INTERLEAVED, 0)
OM_CONSTANT(2, WORDS, 1)           // of an element

const uint MEAN = 1u;
const uint MAX = 2u;
const uint MIN = 3u;
const uint PROD = 4u;
const uint L1 = 5u;
const uint SUM_SQUARE = 7u;

layout(set = 0, binding = 0, std430) readonly buffer Input { uint input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { uint output_data[]; };

shared uint lows[GROUP];
shared uint highs[GROUP];

uvec2 load_element(uint words, uint place) {
  if (words == 1u) return whole_extend(input_data[place]);
  return uvec2(input_data[place * 2u], input_data[place * 2u + 1u]);
}

uvec2 neutral(uint kind) {
  if (kind == MAX) return uvec2(0u, OM_SIGN_BIT);
  if (kind == MIN) return uvec2(0xffffffffu, 0x7fffffffu);
  return uvec2(kind == PROD ? 1u : 0u, 0u);
}

uvec2 term(uint kind, uvec2 x) {
  if (kind == L1 && whole_is_negative(x)) return whole_negate(x);
  if (kind == SUM_SQUARE) return whole_multiply(x, x);
  return x;
}

uvec2 join(uint kind, uvec2 a, uvec2 b) {
  if (kind == MAX || kind == MIN) return whole_is_less(a, b) == (kind == MAX) ? b : a;
  if (kind == PROD) return whole_multiply(a, b);
  return whole_add(a, b);
}

void main() {
  uint kind = KIND;
  uint is_interleaved = IS_INTERLEAVED;
  uint words = WORDS;
  row_place p = row_locate(is_interleaved != 0u);
  uvec2 value = neutral(kind);
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      value = join(kind, value, term(kind, load_element(words, p.begin + i * P.elem_stride)));
    }
  }
  lows[p.slot] = value.x;
  highs[p.slot] = value.y;
  for (uint width = P.lanes / 2u; width > 0u; width /= 2u) {
    barrier();
    if (p.lane < width) {
      uint other = p.slot + width;
      value = join(kind, value, uvec2(lows[other], highs[other]));
      lows[p.slot] = value.x;
      highs[p.slot] = value.y;
    }
  }
  if (p.is_there && p.lane == 0u) {
    if (kind == MEAN) value = whole_divide(value, uvec2(P.row_elems, 0u)).xy;
    output_data[p.row * words] = value.x;
    if (words == 2u) output_data[p.row * 2u + 1u] = value.y;
  }
}
