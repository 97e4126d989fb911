// Packs a Conv's weights [group][channel][term] into [group][term][channel], channels padded with
// zeros to a multiple of 4. Moves values only.
//
//! kernel conv_pack
//! kernel conv_pack_half  HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/conv_pack_params.h"

#define GROUP 128
layout(local_size_x = GROUP) in;

layout(set = 0, binding = 0, std430) readonly buffer Weights { ELEMENT weights[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Packed { ELEMENT packed_weights[]; };

void main() {
  uint at = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (at < P.elems) {
    uint channel = at % P.columns;
    uint row = at / P.columns % P.rows;
    uint group = at / P.columns / P.rows;
    float value = 0.0;
    if (channel < P.out_channels) {
      value = LOAD(weights[(group * P.out_channels + channel) * P.rows + row]);
    }
    packed_weights[at] = STORE(value);
  }
}
