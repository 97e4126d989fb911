// The scale and the zero point that a tensor's own range gives (docs/exact.md, DynamicQuantizeLinear).
//
// First each workgroup finds the least and the largest of its part, 0 among them; then one workgroup
// joins those and writes the scale and the zero point. Least and largest are the same in any order.
//
//! kernel quantize_range       OM_EXACT=1 LAST=0
//! kernel quantize_range_last  OM_EXACT=1 LAST=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/quantize_range_params.h"
#include "common/quantize.glsl"

#define GROUP 256
layout(local_size_x = GROUP) in;

layout(set = 0, binding = 0, std430) readonly buffer Input { float input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { float output_data[]; };
#if LAST
layout(set = 0, binding = 2, std430) writeonly buffer Zero { uint zero[]; };
#endif

shared float least_of[GROUP];
shared float largest_of[GROUP];

void main() {
  uint thread = gl_LocalInvocationID.x;
  uint group = om_group_index();
  float least = 0.0;
  float largest = 0.0;
#if LAST
  for (uint i = thread; i < P.elems; i += uint(GROUP)) {
    least = om_min(least, input_data[2u * i]);
    largest = om_max(largest, input_data[2u * i + 1u]);
  }
#else
  uint step = P.groups * uint(GROUP);
  if (group < P.groups) {
    for (uint i = group * uint(GROUP) + thread; i < P.elems; i += step) {
      least = om_min(least, input_data[i]);
      largest = om_max(largest, input_data[i]);
    }
  }
#endif
  least_of[thread] = least;
  largest_of[thread] = largest;
  barrier();
  for (uint width = uint(GROUP) / 2u; width > 0u; width /= 2u) {
    if (thread < width) {
      least_of[thread] = om_min(least_of[thread], least_of[thread + width]);
      largest_of[thread] = om_max(largest_of[thread], largest_of[thread + width]);
    }
    barrier();
  }
  if (thread == 0u && group < P.groups) {
    least = least_of[0];
    largest = largest_of[0];
#if LAST
    OM_PRECISE float range = largest - least;
    float scale = om_div(range, 255.0);
    if (scale == 0.0) scale = 1.0;
    output_data[0] = scale;
    zero[0] = saturated_bits(om_round(om_div(-least, scale)), TYPE_U8);
#else
    output_data[2u * group] = least;
    output_data[2u * group + 1u] = largest;
#endif
  }
}
