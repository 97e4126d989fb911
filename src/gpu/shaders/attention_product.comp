// The two products of exact attention: scores = Q K, and probabilities times V.
//
// A workgroup of 64 makes 32 rows by 32 keys (columns of the result), as matmul.comp does; the
// scores wait in scratch memory for attention_softmax.comp, which makes probabilities of them. Operands
// have any strides. K is brought by neighbouring terms: it mostly lies by keys.
//
// Order of sums: docs/exact.md, Products, by common/product.glsl.
//
//! kernel attention_scores_exact       OM_EXACT=1 VALUES=0
//! kernel attention_values_exact       OM_EXACT=1 VALUES=1
//! kernel attention_scores_half_exact  OM_EXACT=1 VALUES=0 HALF=1
//! kernel attention_values_half_exact  OM_EXACT=1 VALUES=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common/om_shader.glsl"
#include "abi/attention_pass_params.h"
#include "common/attention_pass.glsl"

#define TILE OM_ATTENTION_TILE
#define ROWS 4
#define SLICES 1
#if !VALUES
#  define TURNS_B
#endif
#include "common/product.glsl"

OM_CONSTANT(0, FLAGS, 0)           // OM_ATTENTION_...
OM_CONSTANT(1, A_OFFSET, 0)
OM_CONSTANT(2, B_OFFSET, 0)
OM_CONSTANT(3, A_DEPTH_STRIDE, 1)
OM_CONSTANT(4, B_COL_STRIDE, 1)
OM_CONSTANT(5, Y_COL_STRIDE, 1)

#if VALUES
layout(set = 0, binding = 0, std430) readonly buffer Scores { vec4 score_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer V { ELEMENT b_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { ELEMENT y_data[]; };
#else
layout(set = 0, binding = 0, std430) readonly buffer Q { ELEMENT a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer K { ELEMENT b_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Scores { float score_data[]; };
#endif

// Four terms of a row; `base` is of row 0.
vec4 fetch_a(uint base, uint row, uint k) {
  vec4 quad = vec4(-0.0);
#if VALUES
  if (k < P.keys) quad = score_data[(base + row * P.pitch + k) / 4u];
#else
  uint stride = A_DEPTH_STRIDE;
  uint flags = FLAGS;
  uint kind = (flags >> OM_ATTENTION_Q_SCALE_AT) & 3u;
  if (row < P.rows && k < P.depth) {
    uint at = base + row * P.q_row_stride + k * stride;
    quad.x = pass_scaled(LOAD(a_data[at]), kind, P.q_scale);
    if (k + 1u < P.depth) quad.y = pass_scaled(LOAD(a_data[at + stride]), kind, P.q_scale);
    if (k + 2u < P.depth) quad.z = pass_scaled(LOAD(a_data[at + 2u * stride]), kind, P.q_scale);
    if (k + 3u < P.depth) quad.w = pass_scaled(LOAD(a_data[at + 3u * stride]), kind, P.q_scale);
  }
#endif
  return quad;
}

// Four columns of a term.
vec4 fetch_b(uint base, uint k, uint col) {
#if VALUES
  uint depth = P.keys;
  uint cols = P.width;
  uint row_stride = P.v_key_stride;
  uint stride = B_COL_STRIDE;
  uint kind = 0u;
#else
  uint depth = P.depth;
  uint cols = P.keys;
  uint row_stride = P.k_depth_stride;
  uint stride = P.k_key_stride;
  uint flags = FLAGS;
  uint kind = (flags >> OM_ATTENTION_K_SCALE_AT) & 3u;
#endif
  vec4 quad = vec4(0.0);
  if (k < depth && col < cols) {
    uint at = base + k * row_stride + col * stride;
    quad.x = pass_scaled(LOAD(b_data[at]), kind, P.k_scale);
    if (col + 1u < cols) quad.y = pass_scaled(LOAD(b_data[at + stride]), kind, P.k_scale);
    if (col + 2u < cols) quad.z = pass_scaled(LOAD(b_data[at + 2u * stride]), kind, P.k_scale);
    if (col + 3u < cols) quad.w = pass_scaled(LOAD(b_data[at + 3u * stride]), kind, P.k_scale);
  }
  return quad;
}

// The quad of b's piece that an invocation brings: neighbours bring what lies side by side.
uint b_term(uint quad) {
#if VALUES
  return quad / uint(LANES);
#else
  return quad % BLOCK;
#endif
}

uint b_quad(uint quad) {
#if VALUES
  return quad % uint(LANES);
#else
  return quad / BLOCK;
#endif
}

void main() {
  // A group past the end does the last one's work and stores nothing: barriers are for all.
  bool is_real = om_group_index() < P.group_count;
  uint group = min(om_group_index(), P.group_count - 1u);
  uint thread = gl_LocalInvocationID.x;
  const uint parts = uint(OM_ATTENTION_BLOCK / TILE);
  uint block = group / P.col_tiles / parts;
  uint row_in_block = group / P.col_tiles % parts * uint(TILE);
  uint col_begin = group % P.col_tiles * uint(TILE);
  pass_block place = pass_locate(block);
  uint row_begin = place.row_begin + row_in_block;
  uint scores = (block * uint(OM_ATTENTION_BLOCK) + row_in_block) * P.pitch;
  uint b_offset = B_OFFSET;
#if VALUES
  uint depth = P.keys;
  uint a_base = scores;
  uint a_row = 0u;
  uint b_base = b_offset + place.index_0 * P.v_stride_0 + place.index_1 * P.v_stride_1;
#else
  uint depth = P.depth;
  uint a_offset = A_OFFSET;
  uint a_base = a_offset + place.index_0 * P.q_stride_0 + place.index_1 * P.q_stride_1;
  uint a_row = row_begin;
  uint b_base = b_offset + place.index_0 * P.k_stride_0 + place.index_1 * P.k_stride_1;
#endif
  uint lane = thread % uint(LANES);
  uint first_row = thread / uint(LANES);

  vec4 sum[ROWS];
  product_sums sums = product_begin();
  [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) sum[r] = vec4(0.0);
  vec4 a_next[FETCHES];
  vec4 b_next[FETCHES];
  [[unroll]] for (uint i = 0u; i < FETCHES; ++i) {
    uint quad = thread + i * THREADS;
    a_next[i] = fetch_a(a_base, a_row + quad / A_QUADS, quad % A_QUADS * 4u);
    b_next[i] = fetch_b(b_base, b_term(quad), col_begin + b_quad(quad) * 4u);
  }
  for (uint begin = 0u; begin < depth; begin += STEP) {
    barrier();
    [[unroll]] for (uint i = 0u; i < FETCHES; ++i) {
      uint quad = thread + i * THREADS;
      a_tile[a_slot(quad / A_QUADS, quad % A_QUADS)] = a_next[i];
      b_tile[b_slot(b_term(quad), b_quad(quad))] = b_next[i];
    }
    barrier();
    uint next = begin + STEP;
    if (next < depth) {
      [[unroll]] for (uint i = 0u; i < FETCHES; ++i) {
        uint quad = thread + i * THREADS;
        a_next[i] = fetch_a(a_base, a_row + quad / A_QUADS, next + quad % A_QUADS * 4u);
        b_next[i] = fetch_b(b_base, next + b_term(quad), col_begin + b_quad(quad) * 4u);
      }
    }
    product_multiply(first_row, lane, 0u, sum);
    product_fold(begin % 128u == 96u, sum, sums);
  }

#if VALUES
  uint stride = Y_COL_STRIDE;
  uint y_base = place.index_0 * P.y_stride_0 + place.index_1 * P.y_stride_1;
#endif
  [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) {
    vec4 result = product_result(sums, r);
    uint row = first_row + r * APART;
    [[unroll]] for (uint c = 0u; c < 4u; ++c) {
      uint col = col_begin + lane * 4u + c;
      if (is_real && row_begin + row < P.rows) {
#if VALUES
        uint at = y_base + (row_begin + row) * P.y_row_stride + col * stride;
        if (col < P.width) y_data[at] = STORE(result[c]);
#else
        if (col < P.keys) score_data[scores + row * P.pitch + col] = result[c];
#endif
      }
    }
  }
}
