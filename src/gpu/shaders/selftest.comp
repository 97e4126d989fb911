// The self-test: one expression of om_gpu_selftest.def over a list of cases, a case an invocation.
// Values travel as bits, so that no load or store may touch them.
//
//! kernel selftest_exact  OM_EXACT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/selftest_params.h"

#define GROUP 64
layout(local_size_x = GROUP) in;

layout(set = 0, binding = 0, std430) readonly buffer InputA { uint input_a[]; };
layout(set = 0, binding = 1, std430) readonly buffer InputB { uint input_b[]; };
layout(set = 0, binding = 2, std430) readonly buffer InputC { uint input_c[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Output { uint output_data[]; };

float evaluate(uint number, float a, float b, float c) {
  OM_PRECISE float result = 0.0;
  switch (number) {
#define OM_SELFTEST(id, primitive, expression) \
    case uint(id): result = expression; break;
#include "gpu/om_gpu_selftest.def"
#undef OM_SELFTEST
    default: break;
  }
  return result;
}

void main() {
  uint index = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (index < P.count) {
    float a = uintBitsToFloat(input_a[index]);
    float b = uintBitsToFloat(input_b[index]);
    float c = uintBitsToFloat(input_c[index]);
    output_data[index] = floatBitsToUint(evaluate(P.number, a, b, c));
  }
}
