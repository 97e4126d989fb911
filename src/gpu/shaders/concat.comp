// Concatenation of up to four inputs along one axis; more inputs are more dispatches.
//
// One invocation copies one word, or four neighbours in the _vec4 variant, or gathers the four bytes of
// a word in the _bytes variant, whose dispatch makes the whole result. Bits are moved as they are.
//
//! kernel concat       WORD=uint
//! kernel concat_vec4  WORD=uvec4
//! kernel concat_bytes WORD=uint BYTES=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/concat_params.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 0, std430) readonly buffer Input0 { WORD input_0[]; };
layout(set = 0, binding = 1, std430) readonly buffer Input1 { WORD input_1[]; };
layout(set = 0, binding = 2, std430) readonly buffer Input2 { WORD input_2[]; };
layout(set = 0, binding = 3, std430) readonly buffer Input3 { WORD input_3[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Output { WORD output_data[]; };

#ifdef BYTES
uint byte_of(uint word, uint place) {
  return (word >> (place % 4u * 8u)) & 255u;
}

uint load_byte(uint row, uint col) {
  uint end_1 = P.width_0 + P.width_1;
  uint end_2 = end_1 + P.width_2;
  if (col < P.width_0) {
    uint place = row * P.width_0 + col;
    return byte_of(input_0[place / 4u], place);
  }
  if (col < end_1) {
    uint place = row * P.width_1 + col - P.width_0;
    return byte_of(input_1[place / 4u], place);
  }
  if (col < end_2) {
    uint place = row * P.width_2 + col - end_1;
    return byte_of(input_2[place / 4u], place);
  }
  uint place = row * P.width_3 + col - end_2;
  return byte_of(input_3[place / 4u], place);
}

void main() {
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
  uint bytes = P.rows * P.width;
  uint word = 0u;
  for (uint k = 0u; k < 4u; ++k) {
    uint place = thread * 4u + k;
    if (place < bytes) word = word | (load_byte(place / P.width, place % P.width) << (k * 8u));
  }
  if (thread * 4u < bytes) output_data[thread] = word;
}
#else
void main() {
  uint thread = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (thread < P.rows * P.width) {
    uint row = thread / P.width;
    uint col = thread % P.width;
    uint end_1 = P.width_0 + P.width_1;
    uint end_2 = end_1 + P.width_2;
    WORD word;
    if (col < P.width_0) {
      word = input_0[row * P.width_0 + col];
    } else if (col < end_1) {
      word = input_1[row * P.width_1 + col - P.width_0];
    } else if (col < end_2) {
      word = input_2[row * P.width_2 + col - end_1];
    } else {
      word = input_3[row * P.width_3 + col - end_2];
    }
    output_data[row * P.row_words + P.begin + col] = word;
  }
}
#endif
