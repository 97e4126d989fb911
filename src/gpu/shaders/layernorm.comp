// Normalisations of rows that stand one after the other: LayerNormalization, RMSNormalization,
// InstanceNormalization, GroupNormalization.
//
// common/rows.glsl has how rows fall to workgroups. Three passes: the mean; the mean of the
// squared differences (of the squares, in RMSNormalization), each by lanes and a halving tree;
// the results, every operation rounded on its own.
//
//! kernel layernorm        OM_EXACT=0
//! kernel layernorm_exact  OM_EXACT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 2
#define CHAIN_BINDING 4
#include "common/om_shader.glsl"
#include "abi/layernorm_params.h"
#include "common/chain.glsl"
#include "common/rows.glsl"

OM_CONSTANT(0, IS_CENTERED, 1)     // the mean is subtracted
OM_CONSTANT(1, HAS_BIAS, 1)

layout(set = 0, binding = 0, std430) readonly buffer Input { float input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scale { float scale_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer Bias { float bias_data[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Output { float output_data[]; };

float sum_of_lane(row_place p) {
  OM_PRECISE float sum = 0.0;
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) sum = sum + input_data[p.begin + i];
  }
  return sum;
}

float squares_of_lane(row_place p, bool is_centered, float mean) {
  OM_PRECISE float sum = 0.0;
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      OM_PRECISE float value = input_data[p.begin + i];
      if (is_centered) value = value - mean;
      sum = sum + value * value;
    }
  }
  return sum;
}

float normalised(row_place p, uint i, bool is_centered, float mean, float factor) {
  uint has_bias = HAS_BIAS;
  uint place = (p.row % P.place_row_period) * P.place_row_step +
               (i / P.place_inner) % P.place_period;
  OM_PRECISE float value = input_data[p.begin + i];
  if (is_centered) value = value - mean;
  value = value * factor;
  value = value * scale_data[place];
  if (has_bias != 0u) value = value + bias_data[place];
  return value;
}

void main() {
  uint centered = IS_CENTERED;
  bool is_centered = centered != 0u;
  row_place p = row_locate(false);
  float mean = 0.0;
  if (centered != 0u) mean = om_div(row_fold(p, ROW_ADD, sum_of_lane(p)), P.count);
  float squares = row_fold(p, ROW_ADD, squares_of_lane(p, is_centered, mean));
  OM_PRECISE float variance = om_div(squares, P.count);
  variance = variance + P.epsilon;
  float factor = om_div(1.0, om_sqrt(variance));
  if (p.is_there) {
    for (uint i = p.lane; i < P.row_elems; i += P.lanes) {
      uint element = p.begin + i;
      output_data[element] = chain_apply(normalised(p, i, is_centered, mean, factor), element);
    }
  }
}
