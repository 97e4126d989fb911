// GridSample over one to three axes: one invocation a result. The taps and weights of an axis are
// those of cpu/exact/om_exact_sample.h. From the last axis to the first, w0 * v0, then + w1 * v1
// and so on.
//
//! kernel grid_sample             OM_EXACT=0
//! kernel grid_sample_exact       OM_EXACT=1
//! kernel grid_sample_half        OM_EXACT=0 HALF=1
//! kernel grid_sample_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 4
#define CHAIN_BINDING 3
#include "common/om_shader.glsl"
#include "cpu/exact/om_exact_sample.h"
#include "abi/grid_sample_params.h"
#include "common/chain.glsl"

#define GROUP 128
#define TAPS 4
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, MODE, 0)
OM_CONSTANT(1, PADDING, 0)
OM_CONSTANT(2, IS_ALIGNED, 0)
OM_CONSTANT(3, AXES, 2)

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Grid { ELEMENT grid_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { ELEMENT output_data[]; };

struct axis_taps {
  uint count;
  int elems[TAPS];                 // -1: 0
  float weights[TAPS];
};

// `axis` counts from the last one; `point` is where the result's coordinates begin.
axis_taps taps_of(uint axis, uint length, uint point) {
  uint mode = MODE;
  uint padding = PADDING;
  uint aligned = IS_ALIGNED;
  uint axes = AXES;
  bool is_aligned = aligned != 0u;
  axis_taps taps;
  taps.count = 1u;
  for (uint t = 0u; t < uint(TAPS); ++t) {
    taps.elems[t] = 0;
    taps.weights[t] = 1.0;
  }
  if (axis < axes) {
    float x = om_sample_coordinate(LOAD(grid_data[point + axis]), float(length), mode, padding, is_aligned);
    int first = om_sample_first(x, mode);
    taps.count = om_sample_taps(mode);
    for (uint t = 0u; t < uint(TAPS); ++t) {
      taps.elems[t] = om_sample_element(first + int(t), int(length), padding, is_aligned);
      taps.weights[t] = om_sample_weight(x, mode, t);
    }
  }
  return taps;
}

float next_sum(uint count, float weight, uint t, float sum, float value) {
  OM_PRECISE float term = weight * value;
  OM_PRECISE float added = sum + term;
  if (count == 1u) return value;
  return t == 0u ? term : added;
}

void main() {
  uint element = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (element < P.elems) {
    uint axes = AXES;
    uint plane = element / P.pixels;
    uint pixel = element - plane * P.pixels;
    uint point = (plane / P.channels * P.pixels + pixel) * axes;
    uint base = plane * P.in_d * P.in_h * P.in_w;
    axis_taps tz = taps_of(2u, P.in_d, point);
    axis_taps ty = taps_of(1u, P.in_h, point);
    axis_taps tx = taps_of(0u, P.in_w, point);
    float volume = 0.0;
    for (uint z = 0u; z < tz.count; ++z) {
      float slice = 0.0;
      for (uint y = 0u; y < ty.count; ++y) {
        float row = 0.0;
        for (uint x = 0u; x < tx.count; ++x) {
          int at_z = tz.elems[z];
          int at_y = ty.elems[y];
          int at_x = tx.elems[x];
          float value = 0.0;
          if (at_z >= 0 && at_y >= 0 && at_x >= 0) {
            uint at = (uint(at_z) * P.in_h + uint(at_y)) * P.in_w + uint(at_x);
            value = LOAD(input_data[base + at]);
          }
          row = next_sum(tx.count, tx.weights[x], x, row, value);
        }
        slice = next_sum(ty.count, ty.weights[y], y, slice, row);
      }
      volume = next_sum(tz.count, tz.weights[z], z, volume, slice);
    }
    float value = chain_apply(volume, element);
    output_data[element] = STORE(value);
  }
}
