// The products of all inputs of a recurrent layer with W, in all directions: x W for each row of x
// and each element of a state, its four gates (absent ones are 0) side by side. One invocation makes
// one element. W lies by terms: [direction, term, element, gate].
//
//! kernel recurrent_inputs        OM_EXACT=0
//! kernel recurrent_inputs_exact  OM_EXACT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/recurrent_inputs_params.h"
#include "common/recurrent.glsl"

layout(local_size_x = 256) in;

layout(set = 0, binding = 0, std430) readonly buffer X { float x_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer W { vec4 w_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { vec4 output_data[]; };

void main() {
  uint element = om_group_index() * 256u + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint depth = P.depth;
    uint row = element / P.hidden % P.rows;
    uint x_begin = row * depth;
    uint w_begin = element / (P.hidden * P.rows) * depth * P.hidden + element % P.hidden;
    RECURRENT_PRODUCT(result, depth, x_data[x_begin + term], w_data[w_begin + term * P.hidden])
    output_data[element] = result;
  }
}
