// Concatenation of up to four inputs along one axis; more inputs are more dispatches.
//
// One invocation copies one word, or four neighbours in the _vec4 variant. Bits are moved as they are.
//
//! kernel concat       WORD=uint
//! kernel concat_vec4  WORD=uvec4
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
