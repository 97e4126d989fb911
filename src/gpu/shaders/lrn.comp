// LRN: x / (bias + factor * s)^beta, with s the sum of the squares at the same place in the channels
// around, in increasing order from 0. One invocation a result.
//
//! kernel lrn             OM_EXACT=0
//! kernel lrn_exact       OM_EXACT=1
//! kernel lrn_half        OM_EXACT=0 HALF=1
//! kernel lrn_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 2
#include "common/om_shader.glsl"
#include "abi/lrn_params.h"
#include "common/chain.glsl"

#define GROUP 128
layout(local_size_x = GROUP) in;

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT output_data[]; };

void main() {
  uint element = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint channel = element / P.inner % P.channels;
    uint first = channel - min(channel, P.before);
    uint last = min(channel + P.behind, P.channels - 1u);
    uint base = element - channel * P.inner;
    OM_PRECISE float sum = 0.0;
    for (uint c = first; c <= last; ++c) {
      float value = LOAD(input_data[base + c * P.inner]);
      sum = sum + value * value;
    }
    OM_PRECISE float scale = P.factor * sum;
    scale = P.bias + scale;
    float value = om_div(LOAD(input_data[element]), om_pow(scale, P.beta));
    value = chain_apply(value, element);
    output_data[element] = STORE(value);
  }
}
