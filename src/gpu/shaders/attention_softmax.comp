// The middle pass of exact attention: scores, in scratch memory, become probabilities.
//
// A row has `lanes` invocations of a workgroup of 256: as many as keys, rounded up to a power of
// two, at most 256; key i is lane i mod 256's. Each scales its scores and adds the mask, then come
// the largest, exp(score - largest) and their sum by a halving tree, and the quotients. An invocation
// keeps its first KEPT keys in registers; what lies beyond goes through the scratch memory. Quads
// at a row's end are filled up with -0, which changes no sum of the product that follows.
//
//! kernel attention_softmax_exact       OM_EXACT=1
//! kernel attention_softmax_half_exact  OM_EXACT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common/om_shader.glsl"
#include "abi/attention_pass_params.h"
#include "common/attention_pass.glsl"

#define GROUP 256u
#define KEPT 8u
layout(local_size_x = 256) in;

OM_CONSTANT(0, FLAGS, 0)           // OM_ATTENTION_...

layout(set = 0, binding = 0, std430) readonly buffer Mask { ELEMENT mask_data[]; };
layout(set = 0, binding = 1, std430) buffer Scores { float score_data[]; };

shared float lane_values[GROUP];

// Which of two zeros is the largest changes no difference, and what a NaN makes of it is caught by
// the sum, which is NaN then.
float larger(float a, float b) {
  return a > b ? a : b;
}

float join(bool is_sum, float a, float b) {
  OM_PRECISE float sum = a + b;
  return is_sum ? sum : larger(a, b);
}

// A level of the tree: of two lanes.
float join_pair(bool is_sum, uint slot, uint distance) {
  return join(is_sum, lane_values[slot], lane_values[slot + distance]);
}

// Two levels: of four lanes, `distance` apart.
float join_four(bool is_sum, uint slot, uint distance) {
  return join(is_sum, join_pair(is_sum, slot, 2u * distance),
              join_pair(is_sum, slot + distance, 2u * distance));
}

// The halving tree; every invocation of a row gets the result. Barriers cost more than additions:
// there is one for two levels.
float fold(uint lane, bool is_sum, float value) {
  uint slot = gl_LocalInvocationID.x;
  uint width = P.lanes;
  barrier();
  lane_values[slot] = value;
  barrier();
  for (; width > 4u; width /= 4u) {
    if (lane < width / 4u) lane_values[slot] = join_four(is_sum, slot, width / 4u);
    barrier();
  }
  uint first = slot - lane;
  if (width == 1u) return lane_values[first];
  if (width == 2u) return join_pair(is_sum, first, 1u);
  return join_four(is_sum, first, 1u);
}

float finished(float product, uint mask_row, uint key) {
  uint flags = FLAGS;
  OM_PRECISE float score = pass_scaled(product, (flags >> OM_ATTENTION_SCALE_AT) & 3u, P.scale);
  if ((flags & uint(OM_ATTENTION_HAS_MASK)) != 0u) {
    float mask = LOAD(mask_data[mask_row + key * P.mask_key_stride]);
    if ((flags & uint(OM_ATTENTION_SELECTS)) == 0u) {
      score = score + mask;
    } else if (mask != 0.0) {
      score = mask;
    }
  }
  return score;
}

float power_of(float score, float largest) {
  OM_PRECISE float difference = score - largest;
  return om_exp(difference);
}

float probability(float power, om_divisor sum) {
  uint flags = FLAGS;
  float result = om_div_by(power, sum);
  if ((flags & uint(OM_ATTENTION_ZEROES_NAN)) != 0u && om_is_nan(result)) result = 0.0;
  return result;
}

void main() {
  uint lane = gl_LocalInvocationID.x % P.lanes;
  uint row = om_group_index() * (GROUP / P.lanes) + gl_LocalInvocationID.x / P.lanes;
  pass_block place = pass_locate(row / uint(OM_ATTENTION_BLOCK));
  uint row_in_element = place.row_begin + row % uint(OM_ATTENTION_BLOCK);
  bool is_there = om_group_index() < P.group_count && row_in_element < P.rows;
  uint begin = row * P.pitch;
  uint keys = is_there ? P.keys : 0u;
  uint mask_row = place.index_0 * P.mask_stride_0 + place.index_1 * P.mask_stride_1 +
                  row_in_element * P.mask_row_stride;
  float kept[KEPT];
  float largest = om_float(OM_INFINITY_BITS | OM_SIGN_BIT);
  [[unroll]] for (uint i = 0u; i < KEPT; ++i) {
    uint key = lane + i * P.lanes;
    kept[i] = 0.0;
    if (key < keys) {
      kept[i] = finished(score_data[begin + key], mask_row, key);
      largest = larger(largest, kept[i]);
    }
  }
  for (uint key = lane + KEPT * P.lanes; key < keys; key += P.lanes) {
    float score = finished(score_data[begin + key], mask_row, key);
    score_data[begin + key] = score;
    largest = larger(largest, score);
  }
  largest = fold(lane, false, largest);

  OM_PRECISE float sum = 0.0;
  [[unroll]] for (uint i = 0u; i < KEPT; ++i) {
    if (lane + i * P.lanes < keys) {
      kept[i] = power_of(kept[i], largest);
      sum = sum + kept[i];
    }
  }
  for (uint key = lane + KEPT * P.lanes; key < keys; key += P.lanes) {
    float power = power_of(score_data[begin + key], largest);
    score_data[begin + key] = power;
    sum = sum + power;
  }
  om_divisor total = om_divisor_of(fold(lane, true, sum));

  [[unroll]] for (uint i = 0u; i < KEPT; ++i) {
    uint key = lane + i * P.lanes;
    if (key < keys) score_data[begin + key] = probability(kept[i], total);
  }
  for (uint key = lane + KEPT * P.lanes; key < keys; key += P.lanes) {
    score_data[begin + key] = probability(score_data[begin + key], total);
  }
  for (uint key = P.keys + lane; is_there && key < P.pitch; key += P.lanes) {
    score_data[begin + key] = -0.0;
  }
}
