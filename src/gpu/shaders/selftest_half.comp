// The self-test of float16 in memory: each invocation loads a half, whose bits as a float it writes, and
// stores a float, by the way of all kernels with HALF.
//
//! kernel selftest_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/selftest_params.h"

#define GROUP 64
layout(local_size_x = GROUP) in;

layout(set = 0, binding = 0, std430) readonly buffer Halves { ELEMENT halves[]; };
layout(set = 0, binding = 1, std430) readonly buffer Floats { uint floats[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Loaded { uint loaded[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Stored { ELEMENT stored[]; };

void main() {
  uint index = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (index < P.count) {
    loaded[index] = om_bits(LOAD(halves[index]));
    stored[index] = STORE(om_float(floats[index]));
  }
}
