// LayerNormalization and RMSNormalization of rows that stand one after the other and are made of
// quads, a subgroup for each row: the values stay in registers, and there is no barrier.
//
// Invocation t of S has the quads t, t + S, t + 2S ... of its row. In the order of docs/exact.md
// element i goes to lane i mod 256, so quad q goes to the lanes of quad q mod 64: SUMS = 64 / S
// sums of four lanes each. The first levels of the tree join sums of one invocation, the next
// those of two (an addition has the same bits from both sides), the last two the four lanes. A
// residual may be added to the rows first (common/residual.glsl). The _lookup variants make the
// rows, as sums of rows of tables (common/lookup.glsl); they have no chain.
//
//! kernel layernorm_subgroup             target=vulkan1.2 OM_EXACT=0
//! kernel layernorm_subgroup_exact       target=vulkan1.2 OM_EXACT=1
//! kernel layernorm_subgroup_half        target=vulkan1.2 OM_EXACT=0 HALF=1
//! kernel layernorm_subgroup_half_exact  target=vulkan1.2 OM_EXACT=1 HALF=1
//! kernel layernorm_lookup             target=vulkan1.2 OM_EXACT=0 LOOKUP=1
//! kernel layernorm_lookup_exact       target=vulkan1.2 OM_EXACT=1 LOOKUP=1
//! kernel layernorm_lookup_half        target=vulkan1.2 OM_EXACT=0 HALF=1 LOOKUP=1
//! kernel layernorm_lookup_half_exact  target=vulkan1.2 OM_EXACT=1 HALF=1 LOOKUP=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#ifdef LOOKUP
#  include "common/om_shader.glsl"
#  include "abi/lookup_params.h"
#  include "common/residual.glsl"
#else
#  define OM_CHAIN
#  define CHAIN_BASE 5
#  include "common/om_shader.glsl"
#  include "abi/layernorm_params.h"
#  include "common/residual.glsl"
#  include "common/chain.glsl"
#endif

layout(local_size_x = 64) in;

OM_CONSTANT(0, IS_CENTERED, 1)     // the mean is subtracted
OM_CONSTANT(1, HAS_BIAS, 1)
OM_CONSTANT(2, QUADS, 4)           // of an invocation, rounded up
OM_CONSTANT(3, SUMS, 2)            // 64 / the subgroup's size

#ifdef LOOKUP
layout(set = 0, binding = 5, std430) readonly buffer Scale { ELEMENT4 scale_data[]; };
layout(set = 0, binding = 6, std430) readonly buffer Bias { ELEMENT4 bias_data[]; };
layout(set = 0, binding = 7, std430) writeonly buffer Output { ELEMENT4 output_data[]; };
#else
OM_CONSTANT(4, RESIDUAL, 0)
layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT4 input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scale { ELEMENT4 scale_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer Bias { ELEMENT4 bias_data[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Output { ELEMENT4 output_data[]; };
#  if WIDE
layout(set = 0, binding = 3, std430) readonly buffer Residual { uvec2 residual_data[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Wide { vec4 wide_data[]; };

// Quad q is unit q of halves, units 2 * q and 2 * q + 1 of floats.
vec4 read_residual(uint q) {
  uint residual = RESIDUAL;
  if ((residual & RESIDUAL_KIND) == RESIDUAL_FLOATS) {
    return uintBitsToFloat(uvec4(residual_data[2u * q], residual_data[2u * q + 1u]));
  }
  uvec2 halves = residual_data[q];
  return vec4(unpackHalf2x16(halves.x), unpackHalf2x16(halves.y));
}

void store_wide(uint what, uint q, vec4 value) {
  uint residual = RESIDUAL;
  if ((residual & what) != 0u) wide_data[q] = value;
}
#  else
layout(set = 0, binding = 3, std430) readonly buffer Residual { ELEMENT4 residual_data[]; };

vec4 read_residual(uint q) {
  return LOAD4(residual_data[q]);
}

void store_wide(uint what, uint q, vec4 value) {}
#  endif
#endif

// Quads under way at once. They are fetched under no condition: behind one, a driver converts a
// float16 where it was asked for, and waits for each. Scale and bias of the first quads are fetched
// with the values, or they would come late.
#define FETCHED 8
vec4 values[QUADS];
vec4 scales[FETCHED];
vec4 biases[FETCHED];

#define EACH_FETCHED(k) \
  [[unroll]] for (uint k = 0u; k < uint(FETCHED); ++k) if (first + k < uint(QUADS))

// The quad that is this invocation's k-th; past the row's end its last.
uint place_of(uint k) {
  return min(gl_SubgroupInvocationID + k * gl_SubgroupSize, P.row_elems / 4u - 1u);
}

void fetch_places(uint first) {
  uint has_bias = HAS_BIAS;
  EACH_FETCHED(k) scales[k] = LOAD4(scale_data[place_of(first + k)]);
  if (has_bias != 0u) EACH_FETCHED(k) biases[k] = LOAD4(bias_data[place_of(first + k)]);
}

#ifdef LOOKUP
#  include "common/lookup.glsl"
#else
vec4 residuals[FETCHED];

void read_row(uint row) {
  uint residual = RESIDUAL;
  uint kind = residual & RESIDUAL_KIND;
  uint begin = row * (P.row_elems / 4u);
  [[unroll]] for (uint first = 0u; first < uint(QUADS); first += uint(FETCHED)) {
    EACH_FETCHED(k) values[first + k] = LOAD4(input_data[begin + place_of(first + k)]);
    if (kind != 0u) {
      EACH_FETCHED(k) residuals[k] = read_residual(begin + place_of(first + k));
    }
    if (first == 0u) fetch_places(0u);
    if (kind != 0u) {
      EACH_FETCHED(k) values[first + k] = residual_add(values[first + k], residuals[k]);
    }
    EACH_FETCHED(k) {
      uint q = gl_SubgroupInvocationID + (first + k) * gl_SubgroupSize;
      if (q < P.row_elems / 4u) store_wide(STORES_SUM, begin + q, values[first + k]);
    }
  }
}
#endif

#define ROW_QUADS(k, q)                                                                 \
  [[unroll]] for (uint k = 0u, q = gl_SubgroupInvocationID; k < uint(QUADS);            \
                  ++k, q += gl_SubgroupSize)                                            \
    if (q < P.row_elems / 4u)

#if OM_EXACT

// The tree over the lanes.
float fold(vec4 sums[SUMS]) {
  [[unroll]] for (uint n = uint(SUMS) / 2u; n > 0u; n /= 2u) {
    [[unroll]] for (uint i = 0u; i < n; ++i) {
      OM_PRECISE vec4 joined = sums[i] + sums[i + n];
      sums[i] = joined;
    }
  }
  OM_PRECISE vec4 sum = sums[0];
  [[unroll]] for (uint distance = 32u; distance > 0u; distance /= 2u) {
    if (distance < gl_SubgroupSize) sum = sum + subgroupShuffleXor(sum, distance);
  }
  OM_PRECISE float low = sum.x + sum.z;
  OM_PRECISE float high = sum.y + sum.w;
  OM_PRECISE float total = low + high;
  return total;
}

#  define SUM_ROW(k, q, result, expression)                              \
    {                                                                    \
      OM_PRECISE vec4 sums[SUMS];                                        \
      [[unroll]] for (uint i = 0u; i < uint(SUMS); ++i) sums[i] = vec4(0.0); \
      ROW_QUADS(k, q) sums[k % uint(SUMS)] = sums[k % uint(SUMS)] + expression; \
      result = fold(sums);                                               \
    }

#else

#  define SUM_ROW(k, q, result, expression)                              \
    {                                                                    \
      vec4 lanes = vec4(0.0);                                            \
      ROW_QUADS(k, q) lanes += expression;                               \
      result = subgroupAdd((lanes.x + lanes.y) + (lanes.z + lanes.w));   \
    }

#endif

vec4 squares(vec4 value) {
  OM_PRECISE vec4 result = value * value;
  return result;
}

void main() {
  uint centered = IS_CENTERED;
  uint has_bias = HAS_BIAS;
  uint row = om_group_index() * gl_NumSubgroups + gl_SubgroupID;
  if (row >= P.row_count) return;
  uint begin = row * (P.row_elems / 4u);
  read_row(row);
  if (centered != 0u) {
    float sum;
    SUM_ROW(k, q, sum, values[k])
    float mean = om_div(sum, P.count);
    ROW_QUADS(k, q) {
      OM_PRECISE vec4 difference = values[k] - vec4(mean);
      values[k] = difference;
    }
  }
  float sum;
  SUM_ROW(k, q, sum, squares(values[k]))
  OM_PRECISE float variance = om_div(sum, P.count);
  variance = variance + P.epsilon;
  float factor = om_div(1.0, om_sqrt(variance));
  [[unroll]] for (uint first = 0u; first < uint(QUADS); first += uint(FETCHED)) {
    if (first != 0u) fetch_places(first);
    EACH_FETCHED(k) {
      OM_PRECISE vec4 value = values[first + k] * vec4(factor);
      value = value * scales[k];
      if (has_bias != 0u) value = value + biases[k];
      uint q = gl_SubgroupInvocationID + (first + k) * gl_SubgroupSize;
      uint element = (begin + q) * 4u;
      if (q < P.row_elems / 4u) {
#ifndef LOOKUP
        value = vec4(chain_apply(value.x, element), chain_apply(value.y, element + 1u),
                     chain_apply(value.z, element + 2u), chain_apply(value.w, element + 3u));
        store_wide(STORES_RESULT, begin + q, value);
#endif
        output_data[begin + q] = STORE4(value);
      }
    }
  }
}
