// The first of the values that breaks a demand: an index outside its axis, a divisor of 0.
//
// One workgroup walks over all values and writes a finding of four words: the place of the first
// that breaks it plus 1 (0: none does), and that value's two words. No order is left to chance.
//
//! kernel demand
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/demand_params.h"

#define GROUP 256
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, KIND, 0)    // om_gpu_demand_kind: 0 an index, 1 a divisor
OM_CONSTANT(1, WORDS, 1)   // of a value

layout(set = 0, binding = 0, std430) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Finding { uint finding[]; };

shared uint firsts[GROUP];

uint get_extent(uint number) {
  switch (number) {
    case 0u: return P.extent_0;
    case 1u: return P.extent_1;
    case 2u: return P.extent_2;
    case 3u: return P.extent_3;
    case 4u: return P.extent_4;
    case 5u: return P.extent_5;
    case 6u: return P.extent_6;
    default: return P.extent_7;
  }
}

uvec2 load(uint words, uint i) {
  uint low = values[i * words];
  uint high = (low & OM_SIGN_BIT) != 0u ? 0xffffffffu : 0u;
  if (words == 2u) high = values[i * 2u + 1u];
  return uvec2(low, high);
}

bool breaks(uint kind, uvec2 value, uint i) {
  if (kind == 1u) return (value.x | value.y) == 0u;
  int extent = int(get_extent(i % P.axes));
  int index = int(value.x);
  bool fits = value.y == ((value.x & OM_SIGN_BIT) != 0u ? 0xffffffffu : 0u);
  return !fits || index >= extent || index < -extent;
}

void main() {
  uint kind = KIND;
  uint words = WORDS;
  uint lane = gl_LocalInvocationID.x;
  uint first = 0xffffffffu;
  for (uint i = lane; i < P.count; i += uint(GROUP)) {
    if (breaks(kind, load(words, i), i)) first = min(first, i);
  }
  firsts[lane] = first;
  for (uint width = uint(GROUP) / 2u; width > 0u; width /= 2u) {
    barrier();
    if (lane < width) firsts[lane] = min(firsts[lane], firsts[lane + width]);
  }
  if (lane == 0u && gl_WorkGroupID.x == 0u) {
    uint place = firsts[0];
    uvec2 value = uvec2(0u, 0u);
    if (place < P.count) value = load(words, place);
    finding[0] = place + 1u;
    finding[1] = value.x;
    finding[2] = value.y;
    finding[3] = 0u;
  }
}
