// Attention in fast mode where each invocation works on its own, without shared memory: for devices
// that run a workgroup's invocations in turn (om_hal_features.in_turn).
//
// An invocation makes one row of one element of the batch, 32 columns of it, four keys at a time. It keeps
// a running largest and a running sum; what was summed so far is scaled down as the largest grows, as in
// attention.comp, whose parameters these are.
//
//! kernel attention_alone            OM_EXACT=0
//! kernel attention_alone_vec4       VEC4=1
//! kernel attention_alone_half       HALF=1
//! kernel attention_alone_vec4_half  VEC4=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/attention_params.h"

#define GROUP 32                   // rows of a workgroup, as gpu_ops_attention.c has it
#define COLUMNS 32u
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, FLAGS, 0)           // OM_ATTENTION_...
OM_CONSTANT(1, Q_OFFSET, 0)
OM_CONSTANT(2, K_OFFSET, 0)
OM_CONSTANT(3, V_OFFSET, 0)
OM_CONSTANT(4, Q_DEPTH_STRIDE, 1)
OM_CONSTANT(5, V_COL_STRIDE, 1)
OM_CONSTANT(6, Y_COL_STRIDE, 1)

#ifdef VEC4
#  define UNIT ELEMENT4
#else
#  define UNIT ELEMENT
#endif
layout(set = 0, binding = 0, std430) readonly buffer Q { UNIT q_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer K { UNIT k_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer V { UNIT v_data[]; };
layout(set = 0, binding = 3, std430) readonly buffer Mask { ELEMENT mask_data[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Y { ELEMENT y_data[]; };

// Four neighbours; of those from `count` on the last one stands for all.
#ifdef VEC4
#  define LOAD_QUAD(data, at, stride, count) LOAD4(data[(at) / 4u])
#else
#  define LOAD_QUAD(data, at, stride, count)                                                  \
    vec4(LOAD(data[at]), LOAD(data[(at) + min(1u, (count)-1u) * (stride)]),                   \
         LOAD(data[(at) + min(2u, (count)-1u) * (stride)]),                                   \
         LOAD(data[(at) + min(3u, (count)-1u) * (stride)]))
#endif

float scaled(float value, uint kind, float by) {
  float result = value;
  if (kind == 1u) result = value * by;
  if (kind == 2u) result = value / by;
  return result;
}

// What Q is multiplied by: its own scale, and that of K.
float operand_scale() {
  uint flags = FLAGS;
  float q = scaled(1.0, (flags >> OM_ATTENTION_Q_SCALE_AT) & 3u, P.q_scale);
  return scaled(q, (flags >> OM_ATTENTION_K_SCALE_AT) & 3u, P.k_scale);
}

// A key past the end gets -infinity.
float finish_score(float product, uint mask_row, uint key) {
  uint flags = FLAGS;
  float score = scaled(product, (flags >> OM_ATTENTION_SCALE_AT) & 3u, P.scale);
  if (key >= P.keys) {
    score = om_float(OM_INFINITY_BITS | OM_SIGN_BIT);
  } else if ((flags & uint(OM_ATTENTION_HAS_MASK)) != 0u) {
    float mask = LOAD(mask_data[mask_row + key * P.mask_key_stride]);
    if ((flags & uint(OM_ATTENTION_SELECTS)) == 0u) {
      score = score + mask;
    } else if (mask != 0.0) {
      score = mask;
    }
  }
  return score;
}

// The scores of four keys.
vec4 make_scores(uint q_row, float q_scale, uint k_base, uint mask_row, uint key) {
  uint q_stride = Q_DEPTH_STRIDE;
  uvec4 rows = k_base + min(uvec4(key, key + 1u, key + 2u, key + 3u), uvec4(P.keys - 1u)) * P.k_key_stride;
  vec4 sums = vec4(0.0);
#ifdef VEC4
  for (uint k = 0u; k < P.depth; k += 4u) {
    vec4 q = LOAD4(q_data[(q_row + k) / 4u]) * q_scale;
    sums.x += dot(q, LOAD4(k_data[(rows.x + k) / 4u]));
    sums.y += dot(q, LOAD4(k_data[(rows.y + k) / 4u]));
    sums.z += dot(q, LOAD4(k_data[(rows.z + k) / 4u]));
    sums.w += dot(q, LOAD4(k_data[(rows.w + k) / 4u]));
  }
#else
  for (uint k = 0u; k < P.depth; ++k) {
    uint at = k * P.k_depth_stride;
    vec4 terms = vec4(LOAD(k_data[rows.x + at]), LOAD(k_data[rows.y + at]), LOAD(k_data[rows.z + at]),
                      LOAD(k_data[rows.w + at]));
    sums = fma(vec4(LOAD(q_data[q_row + k * q_stride]) * q_scale), terms, sums);
  }
#endif
  return vec4(finish_score(sums.x, mask_row, key), finish_score(sums.y, mask_row, key + 1u),
              finish_score(sums.z, mask_row, key + 2u), finish_score(sums.w, mask_row, key + 3u));
}

#define EACH_QUAD(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7)

void main() {
  uint group = P.first_group + gl_WorkGroupID.x;
  uint element = group / P.col_blocks / P.row_blocks;
  uint index_0 = element / P.batch_1;
  uint index_1 = element % P.batch_1;
  uint row = group / P.col_blocks % P.row_blocks * uint(GROUP) + gl_LocalInvocationID.x;
  if (row < P.rows) {
    uint flags = FLAGS;
    uint q_offset = Q_OFFSET;
    uint k_offset = K_OFFSET;
    uint v_offset = V_OFFSET;
    uint v_stride = V_COL_STRIDE;
    uint y_stride = Y_COL_STRIDE;
    uint first_col = group % P.col_blocks * COLUMNS;
    uint col_count = min(COLUMNS, P.width - first_col);
    uint q_row = q_offset + index_0 * P.q_stride_0 + index_1 * P.q_stride_1 + row * P.q_row_stride;
    uint k_base = k_offset + index_0 * P.k_stride_0 + index_1 * P.k_stride_1;
    uint v_base = v_offset + index_0 * P.v_stride_0 + index_1 * P.v_stride_1 + first_col * v_stride;
    uint mask_row = index_0 * P.mask_stride_0 + index_1 * P.mask_stride_1 + row * P.mask_row_stride;
    // The lowest number, so that a difference of infinities cannot arise from what is masked out.
    float q_scale = operand_scale();
    float best = om_float(0xff7fffffu);
    float sum = 0.0;
#define BEGIN(c) vec4 result_##c = vec4(0.0);
    EACH_QUAD(BEGIN)
    for (uint key = 0u; key < P.keys; key += 4u) {
      uint left = P.keys - key; // what lies past the end may be infinite: zero times it is no zero
      vec4 scores = make_scores(q_row, q_scale, k_base, mask_row, key);
      float largest = max(best, om_max(om_max(scores.x, scores.y), om_max(scores.z, scores.w)));
      float factor = exp(best - largest);
      vec4 powers = exp(scores - vec4(largest));
      best = largest;
      sum = sum * factor + (powers.x + powers.y) + (powers.z + powers.w);
      uvec4 rows = v_base + min(uvec4(key, key + 1u, key + 2u, key + 3u), uvec4(P.keys - 1u)) * P.v_key_stride;
#define ADD_KEY(c, component)                                                                           \
  result_##c = fma(vec4(powers.component),                                                              \
                   LOAD_QUAD(v_data, rows.component + 4u * uint(c) * v_stride, v_stride, col_count - 4u * uint(c)), \
                   result_##c);
#define ADD_KEYS(c)                       \
  if (4u * uint(c) < col_count) {         \
    result_##c = result_##c * vec4(factor); \
    ADD_KEY(c, x)                         \
    if (left > 1u) ADD_KEY(c, y)          \
    if (left > 2u) ADD_KEY(c, z)          \
    if (left > 3u) ADD_KEY(c, w)          \
  }
      EACH_QUAD(ADD_KEYS)
    }
    vec4 results[8];
#define KEEP(c) results[c] = result_##c;
    EACH_QUAD(KEEP)
    // A row with a key to see has the sum 1 at least.
    bool is_zero = (flags & uint(OM_ATTENTION_ZEROES_NAN)) != 0u && !(sum > 0.0);
    uint at = index_0 * P.y_stride_0 + index_1 * P.y_stride_1 + row * P.y_row_stride + first_col * y_stride;
    for (uint col = 0u; col < col_count; ++col) {
      float value = results[col / 4u][col & 3u] / sum;
      y_data[at] = STORE(is_zero ? 0.0 : value);
      at += y_stride;
    }
  }
}
