// Packs a ConvTranspose's weights [channel][result channel][kernel] into [group][phase][term][result
// channel], channels padded with zeros to a multiple of 4. Moves values only.
//
//! kernel conv_phases
//! kernel conv_phases_half  HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/conv_phases_params.h"
#include "common/conv_phase.glsl"

#define GROUP 128
layout(local_size_x = GROUP) in;

layout(set = 0, binding = 0, std430) readonly buffer Weights { ELEMENT weights[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Packed { ELEMENT packed_weights[]; };

// One axis: .x the phase's first tap, .y how many it has.
uvec2 axis_taps(uint phase, uint kernel, uint stride, uint pad, uint dilation, uint kernel_step) {
  uint first = phase_first(phase, kernel, stride, pad, dilation, kernel_step);
  if (first == kernel) return uvec2(0u, 0u);
  return uvec2(first, (kernel - 1u - first) / kernel_step + 1u);
}

void main() {
  uint at = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (at < P.elems) {
    uint result = at % P.columns;
    uint term = at / P.columns % P.rows;
    uint slice = at / P.columns / P.rows;
    uint phases = P.stride_d * P.stride_h * P.stride_w;
    uint group = slice / phases;
    uint phase = slice % phases;
    uvec2 z = axis_taps(phase / P.stride_w / P.stride_h, P.kernel_d, P.stride_d, P.pad_d, P.dilation_d,
                        P.kernel_step_d);
    uvec2 y = axis_taps(phase / P.stride_w % P.stride_h, P.kernel_h, P.stride_h, P.pad_h, P.dilation_h,
                        P.kernel_step_h);
    uvec2 x = axis_taps(phase % P.stride_w, P.kernel_w, P.stride_w, P.pad_w, P.dilation_w,
                        P.kernel_step_w);
    uint taps = z.y * y.y * x.y;
    float value = 0.0;
    if (result < P.out_channels && term < P.in_channels * taps) {
      uint channel = group * P.in_channels + term / taps;
      uint tap = term % taps;
      uint kx = x.x + tap % x.y * P.kernel_step_w;
      uint ky = y.x + tap / x.y % y.y * P.kernel_step_h;
      uint kz = z.x + tap / x.y / y.y * P.kernel_step_d;
      value = LOAD(weights[(((channel * P.out_channels + result) * P.kernel_d + kz) * P.kernel_h + ky) *
                          P.kernel_w + kx]);
    }
    packed_weights[at] = STORE(value);
  }
}
