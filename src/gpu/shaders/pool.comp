// MaxPool and AveragePool over one or two axes: one invocation a result.
//
// A mean is the sum of the window's elements inside the input, row by row from 0, divided by their
// number (or by that of the taps inside the padded input). A maximum has no order; NaN wins.
//
//! kernel pool_max            OM_EXACT=0 IS_MAX=1
//! kernel pool_max_exact      OM_EXACT=1 IS_MAX=1
//! kernel pool_average        OM_EXACT=0 IS_MAX=0
//! kernel pool_average_exact  OM_EXACT=1 IS_MAX=0
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 2
#include "common/om_shader.glsl"
#include "abi/pool_window_params.h"
#include "common/chain.glsl"

#define GROUP 128
layout(local_size_x = GROUP) in;

layout(set = 0, binding = 0, std430) readonly buffer Input { float input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { float output_data[]; };

// Taps of a window that starts at `start` (counted from the padded edge) and are before `limit`.
uint taps_before(uint start, uint limit, uint kernel, uint dilation) {
  uint count = 0u;
  if (start < limit) count = (limit - start + dilation - 1u) / dilation;
  return min(count, kernel);
}

float pool_window(uint plane, uint start_y, uint start_x) {
  OM_PRECISE float value = P.start;
  uint count = 0u;
  for (uint ky = 0u; ky < P.kernel_h; ++ky) {
    uint y = start_y + ky * P.dilation_h - P.pad_h; // wraps where it is before the input
    if (y < P.in_h) {
      for (uint kx = 0u; kx < P.kernel_w; ++kx) {
        uint x = start_x + kx * P.dilation_w - P.pad_w;
        if (x < P.in_w) {
          float element = input_data[plane + y * P.in_w + x];
#if IS_MAX
          value = om_max(value, element);
#else
          value = value + element;
#endif
          ++count;
        }
      }
    }
  }
#if !IS_MAX
  if (P.counted_h != 0u) {
    count = taps_before(start_y, P.counted_h, P.kernel_h, P.dilation_h) *
            taps_before(start_x, P.counted_w, P.kernel_w, P.dilation_w);
  }
  value = om_div(value, float(count));
#endif
  return value;
}

void main() {
  uint element = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint row = element / P.out_w;
    uint out_x = element - row * P.out_w;
    uint plane = row / P.out_h;
    uint out_y = row - plane * P.out_h;
    float value = pool_window(plane * P.in_h * P.in_w, out_y * P.stride_h, out_x * P.stride_w);
    output_data[element] = chain_apply(value, element);
  }
}
