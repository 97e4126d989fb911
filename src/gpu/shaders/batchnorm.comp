// BatchNormalization of float16, or with statistics made at run time: y = x * s + t, with
// s = scale / sqrt(variance + epsilon) and t = bias - mean * s of the channel. One invocation a result.
//
//! kernel batchnorm        OM_EXACT=0
//! kernel batchnorm_exact  OM_EXACT=1
//! kernel batchnorm_half        OM_EXACT=0 HALF=1
//! kernel batchnorm_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 6
#include "common/om_shader.glsl"
#include "abi/batchnorm_params.h"
#include "common/chain.glsl"

#define GROUP 128
layout(local_size_x = GROUP) in;

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scale { ELEMENT scale_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer Bias { ELEMENT bias_data[]; };
layout(set = 0, binding = 3, std430) readonly buffer Mean { ELEMENT mean_data[]; };
layout(set = 0, binding = 4, std430) readonly buffer Variance { ELEMENT variance_data[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Output { ELEMENT output_data[]; };

void main() {
  uint element = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint channel = element / P.inner % P.channels;
    OM_PRECISE float variance = LOAD(variance_data[channel]) + P.epsilon;
    OM_PRECISE float factor = om_div(LOAD(scale_data[channel]), om_sqrt(variance));
    OM_PRECISE float product = LOAD(mean_data[channel]) * factor;
    OM_PRECISE float shift = LOAD(bias_data[channel]) - product;
    OM_PRECISE float value = LOAD(input_data[element]) * factor;
    value = value + shift;
    output_data[element] = STORE(chain_apply(value, element));
  }
}
