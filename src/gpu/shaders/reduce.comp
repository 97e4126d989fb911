// Reductions over one axis or neighbouring axes (ReduceSum, ReduceMean, ...), a result a row.
//
// common/rows.glsl has how rows fall to workgroups. A lane adds its elements in increasing order
// from 0, then the lanes are joined by a halving tree. LogSumExp takes the largest first.
//
//! kernel reduce        OM_EXACT=0
//! kernel reduce_exact  OM_EXACT=1
//! kernel reduce_half        OM_EXACT=0 HALF=1
//! kernel reduce_half_exact  OM_EXACT=1 HALF=1
//! kernel reduce_alone       OM_EXACT=0 ALONE=1
//! kernel reduce_alone_half  OM_EXACT=0 ALONE=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 2
#define CHAIN_BINDING 2
#include "common/om_shader.glsl"
#include "abi/reduce_params.h"
#include "common/chain.glsl"
#include "common/rows.glsl"

OM_CONSTANT(0, KIND, 0)            // om_reduce_kind
OM_CONSTANT(1, IS_INTERLEAVED, 0)

const uint SUM = 0u;
const uint MEAN = 1u;
const uint MAX = 2u;
const uint MIN = 3u;
const uint PROD = 4u;
const uint L1 = 5u;
const uint L2 = 6u;
const uint SUM_SQUARE = 7u;
const uint LOG_SUM = 8u;
const uint LOG_SUM_EXP = 9u;

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { ELEMENT output_data[]; };

float largest_of_lane(row_place p) {
  float best = om_float(OM_INFINITY_BITS | OM_SIGN_BIT);
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      best = om_max(best, LOAD(input_data[p.begin + i * P.elem_stride]));
    }
  }
  return best;
}

float smallest_of_lane(row_place p) {
  float best = om_float(OM_INFINITY_BITS);
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      best = om_min(best, LOAD(input_data[p.begin + i * P.elem_stride]));
    }
  }
  return best;
}

float product_of_lane(row_place p) {
  OM_PRECISE float product = 1.0;
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      product = product * LOAD(input_data[p.begin + i * P.elem_stride]);
    }
  }
  return product;
}

float sum_of_lane(row_place p, uint kind, float shift) {
  OM_PRECISE float sum = 0.0;
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      float value = LOAD(input_data[p.begin + i * P.elem_stride]);
      OM_PRECISE float term = value;
      if (kind == L1) term = om_abs(value);
      if (kind == L2 || kind == SUM_SQUARE) term = value * value;
      if (kind == LOG_SUM_EXP) {
        OM_PRECISE float difference = value - shift;
        term = om_exp(difference);
      }
      sum = sum + term;
    }
  }
  return sum;
}

void main() {
  uint kind = KIND;
  uint is_interleaved = IS_INTERLEAVED;
  row_place p = row_locate(is_interleaved != 0u);
  float shift = 0.0;
  float value = 0.0;
  uint operation = ROW_ADD;
  if (kind == LOG_SUM_EXP) {
    shift = row_fold(p, ROW_MAX, largest_of_lane(p));
    if (om_is_inf(shift)) shift = 0.0;
  }
  if (kind == MAX) {
    operation = ROW_MAX;
    value = largest_of_lane(p);
  } else if (kind == MIN) {
    operation = ROW_MIN;
    value = smallest_of_lane(p);
  } else if (kind == PROD) {
    operation = ROW_MULTIPLY;
    value = product_of_lane(p);
  } else {
    value = sum_of_lane(p, kind, shift);
  }
  value = row_fold(p, operation, value);
  OM_PRECISE float result = value;
  if (kind == MEAN) result = om_div(value, P.count);
  if (kind == L2) result = om_sqrt(value);
  if (kind == LOG_SUM) result = om_ln(value);
  if (kind == LOG_SUM_EXP) result = om_ln(value) + shift;
  if (p.is_there && p.lane == 0u) output_data[p.row] = STORE(chain_apply(result, p.row));
}
