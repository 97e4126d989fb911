// Normalisations of rows that stand one after the other: LayerNormalization, RMSNormalization,
// InstanceNormalization, GroupNormalization.
//
// common/rows.glsl has how rows fall to workgroups. The first MOST_KEPT elements of a lane stay in
// registers, what lies behind them is read again. Three passes: the mean; the mean of the squared
// differences (of the squares, in RMSNormalization), each by lanes and a halving tree; the results,
// every operation rounded on its own. layernorm_subgroup.comp is for rows of quads. A residual may
// be added to the rows first (common/residual.glsl).
//
//! kernel layernorm             OM_EXACT=0
//! kernel layernorm_exact       OM_EXACT=1
//! kernel layernorm_half        OM_EXACT=0 HALF=1
//! kernel layernorm_half_exact  OM_EXACT=1 HALF=1
//! kernel layernorm_alone       OM_EXACT=0 ALONE=1
//! kernel layernorm_alone_half  OM_EXACT=0 ALONE=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define OM_CHAIN
#define CHAIN_BASE 4
#include "common/om_shader.glsl"
#include "abi/layernorm_params.h"
#include "common/residual.glsl"
#include "common/chain.glsl"
#include "common/rows.glsl"

OM_CONSTANT(0, IS_CENTERED, 1)     // the mean is subtracted
OM_CONSTANT(1, HAS_BIAS, 1)
OM_CONSTANT(2, KEPT, 8)            // elements of a lane in registers, at most MOST_KEPT

OM_CONSTANT(3, RESIDUAL, 0)

#ifdef ALONE
#  define MOST_KEPT 1              // and KEPT is 0: a row is too long for registers
#else
#  define MOST_KEPT 8
#endif

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scale { ELEMENT scale_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer Bias { ELEMENT bias_data[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Output { ELEMENT output_data[]; };

#if WIDE

layout(set = 0, binding = 3, std430) readonly buffer Residual { uint residual_data[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Wide { float wide_data[]; };

float read_residual(uint at) {
  uint residual = RESIDUAL;
  if ((residual & RESIDUAL_KIND) == RESIDUAL_FLOATS) return uintBitsToFloat(residual_data[at]);
  vec2 pair = unpackHalf2x16(residual_data[at / 2u]);
  return at % 2u == 0u ? pair.x : pair.y;
}

void store_wide(uint what, uint at, float value) {
  uint residual = RESIDUAL;
  if ((residual & what) != 0u) wide_data[at] = value;
}

#else

layout(set = 0, binding = 3, std430) readonly buffer Residual { ELEMENT residual_data[]; };

float read_residual(uint at) {
  return LOAD(residual_data[at]);
}

void store_wide(uint what, uint at, float value) {}

#endif

float read(uint at) {
  uint residual = RESIDUAL;
  float value = LOAD(input_data[at]);
  if ((residual & RESIDUAL_KIND) != 0u) {
    value = residual_add(vec4(value), vec4(read_residual(at))).x;
  }
  return value;
}

struct kept_elements {
  float values[MOST_KEPT];
};

#define KEPT_ELEMENTS(k, i)                                                        \
  [[unroll]] for (uint k = 0u, i = p.lane; k < uint(MOST_KEPT); ++k, i += P.lanes) \
    if (k < kept && i < P.row_elems)

kept_elements read_kept(row_place p) {
  uint kept = KEPT;
  kept_elements e;
  KEPT_ELEMENTS(k, i) e.values[k] = p.is_there ? read(p.begin + i) : 0.0;
  return e;
}

float sum_of_lane(row_place p, kept_elements e) {
  uint kept = KEPT;
  OM_PRECISE float sum = 0.0;
  if (p.is_there) {
    KEPT_ELEMENTS(k, i) sum = sum + e.values[k];
    for (uint i = p.lane + kept * P.lanes; i < P.row_elems; i += P.lanes) {
      sum = sum + read(p.begin + i);
    }
  }
  return sum;
}

float square(float element, bool is_centered, float mean) {
  OM_PRECISE float value = element;
  if (is_centered) value = value - mean;
  return value * value;
}

float squares_of_lane(row_place p, kept_elements e, bool is_centered, float mean) {
  uint kept = KEPT;
  OM_PRECISE float sum = 0.0;
  if (p.is_there) {
    KEPT_ELEMENTS(k, i) sum = sum + square(e.values[k], is_centered, mean);
    for (uint i = p.lane + kept * P.lanes; i < P.row_elems; i += P.lanes) {
      sum = sum + square(read(p.begin + i), is_centered, mean);
    }
  }
  return sum;
}

void store(row_place p, uint i, float element, bool is_centered, float mean, float factor) {
  uint has_bias = HAS_BIAS;
  uint place = (p.row % P.place_row_period) * P.place_row_step +
               (i / P.place_inner) % P.place_period;
  OM_PRECISE float value = element;
  store_wide(STORES_SUM, p.begin + i, element);
  if (is_centered) value = value - mean;
  value = value * factor;
  value = value * LOAD(scale_data[place]);
  if (has_bias != 0u) value = value + LOAD(bias_data[place]);
  value = chain_apply(value, p.begin + i);
  store_wide(STORES_RESULT, p.begin + i, value);
  output_data[p.begin + i] = STORE(value);
}

void main() {
  uint centered = IS_CENTERED;
  uint kept = KEPT;
  bool is_centered = centered != 0u;
  row_place p = row_locate(false);
  kept_elements e = read_kept(p);
  float mean = 0.0;
  if (centered != 0u) mean = om_div(row_fold(p, ROW_ADD, sum_of_lane(p, e)), P.count);
  float squares = row_fold(p, ROW_ADD, squares_of_lane(p, e, is_centered, mean));
  OM_PRECISE float variance = om_div(squares, P.count);
  variance = variance + P.epsilon;
  float factor = om_div(1.0, om_sqrt(variance));
  if (p.is_there) {
    KEPT_ELEMENTS(k, i) store(p, i, e.values[k], is_centered, mean, factor);
    for (uint i = p.lane + kept * P.lanes; i < P.row_elems; i += P.lanes) {
      store(p, i, read(p.begin + i), is_centered, mean, factor);
    }
  }
}
