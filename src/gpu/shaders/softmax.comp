// Softmax and LogSoftmax along one axis, or over neighbouring axes.
//
// common/rows.glsl has how rows fall to workgroups. Three passes: the largest; the sum of
// exp(x - largest), by lanes and a halving tree; the results.
//
//! kernel softmax        OM_EXACT=0
//! kernel softmax_exact  OM_EXACT=1
//! kernel softmax_half        OM_EXACT=0 HALF=1
//! kernel softmax_half_exact  OM_EXACT=1 HALF=1
//! kernel softmax_alone       OM_EXACT=0 ALONE=1
//! kernel softmax_alone_half  OM_EXACT=0 ALONE=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/softmax_params.h"
#include "common/rows.glsl"

OM_CONSTANT(0, IS_LOG, 0)
OM_CONSTANT(1, IS_INTERLEAVED, 0)

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT output_data[]; };

float difference_at(row_place p, uint i, float largest) {
  OM_PRECISE float difference = LOAD(input_data[p.begin + i * P.elem_stride]) - largest;
  return difference;
}

float largest_of_lane(row_place p) {
  float best = om_float(OM_INFINITY_BITS | OM_SIGN_BIT);
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      best = om_max(best, LOAD(input_data[p.begin + i * P.elem_stride]));
    }
  }
  return best;
}

float sum_of_lane(row_place p, float largest) {
  OM_PRECISE float sum = 0.0;
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      sum = sum + om_exp(difference_at(p, i, largest));
    }
  }
  return sum;
}

void main() {
  uint is_log = IS_LOG;
  uint is_interleaved = IS_INTERLEAVED;
  row_place p = row_locate(is_interleaved != 0u);
  float largest = row_fold(p, ROW_MAX, largest_of_lane(p));
  float sum = row_fold(p, ROW_ADD, sum_of_lane(p, largest));
  om_divisor divisor = om_divisor_of(sum);
  float log_sum = 0.0;
  if (is_log != 0u) log_sum = om_ln(sum);
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      float difference = difference_at(p, i, largest);
      OM_PRECISE float result = difference - log_sum;
      if (is_log == 0u) result = om_div_by(om_exp(difference), divisor);
      output_data[p.begin + i * P.elem_stride] = STORE(result);
    }
  }
}
