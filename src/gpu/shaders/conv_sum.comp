// Adds the groups' sums of a split convolution, in their order. One invocation an element.
//
//! kernel conv_sum             OM_EXACT=0
//! kernel conv_sum_exact       OM_EXACT=1
//! kernel conv_sum_half        OM_EXACT=0 HALF=1
//! kernel conv_sum_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 2
#include "common/om_shader.glsl"
#include "abi/conv_sum_params.h"
#include "common/chain.glsl"

#define GROUP 128
layout(local_size_x = GROUP) in;

layout(set = 0, binding = 0, std430) readonly buffer Sums { float sums[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT output_data[]; };

void main() {
  uint element = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (element < P.elems) {
    OM_PRECISE float total = sums[element];
    for (uint i = 1u; i < P.splits; ++i) total = total + sums[i * P.elems + element];
    float value = chain_apply_channel(total, element, element / P.pixels % P.channels);
    output_data[element] = STORE(value);
  }
}
