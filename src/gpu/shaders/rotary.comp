// RotaryEmbedding: one invocation makes one element from the pair that it belongs to.
//
// Positions are read as they are and clamped to the tables; one out of range is somebody else's
// finding (demand.comp).
//
//! kernel rotary        OM_EXACT=0
//! kernel rotary_exact  OM_EXACT=1
//! kernel rotary_half        OM_EXACT=0 HALF=1
//! kernel rotary_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/rotary_params.h"

layout(local_size_x = 256) in;

OM_CONSTANT(0, IS_INTERLEAVED, 0)
OM_CONSTANT(1, HAS_POSITIONS, 1)

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Cos { ELEMENT cos_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer Sin { ELEMENT sin_data[]; };
layout(set = 0, binding = 3, std430) readonly buffer Positions { uint positions[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Output { ELEMENT output_data[]; };

uint table_row(uint element) {
  uint has_positions = HAS_POSITIONS;
  uint row = element / P.batch_elems * P.row_count +
             element % P.batch_elems / P.row_elems % P.row_count;
  if (has_positions != 0u) {
    row = positions[row * 2u];  // the low word
    if ((row & OM_SIGN_BIT) != 0u) row = row + P.table_rows;
    row = min(row, P.table_rows - 1u);
  }
  return row;
}

// Of the pair (a, b) at `pair`: a cos - b sin, or a sin + b cos.
float turned(float a, float b, uint pair, bool is_second) {
  OM_PRECISE float first = LOAD(cos_data[pair]);
  OM_PRECISE float second = LOAD(sin_data[pair]);
  if (is_second) {
    first = first * b;
    second = second * a;
    second = second + first;
  } else {
    first = first * a;
    second = second * b;
    second = first - second;
  }
  return second;
}

void main() {
  uint interleaved = IS_INTERLEAVED;
  uint element = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint place = element % P.size;
    uint head = element - place;
    if (place >= 2u * P.half_size) {
      output_data[element] = input_data[element];
    } else {
      uint number = place % P.half_size;
      uint a = head + number;
      uint b = a + P.half_size;
      if (interleaved != 0u) {
        number = place / 2u;
        a = head + number * 2u;
        b = a + 1u;
      }
      uint pair = table_row(head) * P.half_size + number;
      float value = turned(LOAD(input_data[a]), LOAD(input_data[b]), pair, element == b);
      output_data[element] = STORE(value);
    }
  }
}
