// Matrix products where each invocation works on its own, without shared memory: for devices that
// run a workgroup's invocations in turn (om_hal_features.in_turn), in fast mode.
//
// An invocation makes ROWS rows by four columns, straight from memory. What it loads for one term
// of each row it uses for four columns, and what it loads of b for all rows. P.row_tiles and
// P.col_tiles count such pieces, P.group_count all of them.
//
//! kernel matmul_alone_1            ROWS=1
//! kernel matmul_alone_4            ROWS=4
//! kernel matmul_alone_8            ROWS=8
//! kernel matmul_alone_vec4_1       ROWS=1 VEC4=1
//! kernel matmul_alone_vec4_4       ROWS=4 VEC4=1
//! kernel matmul_alone_vec4_8       ROWS=8 VEC4=1
//! kernel matmul_alone_1_half       ROWS=1 HALF=1
//! kernel matmul_alone_4_half       ROWS=4 HALF=1
//! kernel matmul_alone_8_half       ROWS=8 HALF=1
//! kernel matmul_alone_vec4_1_half  ROWS=1 VEC4=1 HALF=1
//! kernel matmul_alone_vec4_4_half  ROWS=4 VEC4=1 HALF=1
//! kernel matmul_alone_vec4_8_half  ROWS=8 VEC4=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 3
#include "common/om_shader.glsl"
#include "abi/matmul_params.h"
#include "common/chain.glsl"

#define GROUP 32                   // as gpu_ops_matmul.c has it
layout(local_size_x = GROUP) in;

#ifdef VEC4
layout(set = 0, binding = 0, std430) readonly buffer A { ELEMENT4 a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { ELEMENT4 b_data[]; };
#else
layout(set = 0, binding = 0, std430) readonly buffer A { ELEMENT a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { ELEMENT b_data[]; };
#endif
layout(set = 0, binding = 2, std430) writeonly buffer Y { ELEMENT y_data[]; };

#if ROWS == 8
#  define EACH_ROW(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7)
#elif ROWS == 4
#  define EACH_ROW(what) what(0) what(1) what(2) what(3)
#else
#  define EACH_ROW(what) what(0)
#endif

// Four columns of a term; those past the end are read from the last one.
vec4 load_b(uint at, uvec4 columns) {
#ifdef VEC4
  return LOAD4(b_data[at / 4u]);
#else
  return vec4(LOAD(b_data[at + columns.x]), LOAD(b_data[at + columns.y]), LOAD(b_data[at + columns.z]),
              LOAD(b_data[at + columns.w]));
#endif
}

void main() {
  uint number = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  if (number < P.group_count) {
    uint col = number % P.col_tiles * 4u;
    uint piece = number / P.col_tiles;
    uint first_row = piece % P.row_tiles * uint(ROWS);
    uint element = piece / P.row_tiles;
    uint pair = element / P.batch_2;
    uint index_2 = element - pair * P.batch_2;
    uint index_0 = pair / P.batch_1;
    uint index_1 = pair - index_0 * P.batch_1;
    uint a_base = index_0 * P.a_stride_0 + index_1 * P.a_stride_1 + index_2 * P.a_stride_2;
    uint b_at = index_0 * P.b_stride_0 + index_1 * P.b_stride_1 + index_2 * P.b_stride_2;
    uint last_row = P.rows - 1u;
    uvec4 columns = min(uvec4(col, col + 1u, col + 2u, col + 3u), uvec4(P.cols - 1u)) * P.b_col_stride;
#define BEGIN(r)                                                                \
  vec4 sum_##r = vec4(0.0);                                                     \
  uint a_at_##r = a_base + min(first_row + uint(r), last_row) * P.a_row_stride;
    EACH_ROW(BEGIN)
#ifdef VEC4
    b_at += col;
    for (uint k = 0u; k < P.depth; k += 4u) {
      vec4 b0 = load_b(b_at, columns);
      vec4 b1 = load_b(b_at + P.b_depth_stride, columns);
      vec4 b2 = load_b(b_at + 2u * P.b_depth_stride, columns);
      vec4 b3 = load_b(b_at + 3u * P.b_depth_stride, columns);
      b_at += 4u * P.b_depth_stride;
#define TERMS(r)                                   \
  {                                                \
    vec4 a = LOAD4(a_data[(a_at_##r + k) / 4u]);   \
    sum_##r = fma(vec4(a.x), b0, sum_##r);         \
    sum_##r = fma(vec4(a.y), b1, sum_##r);         \
    sum_##r = fma(vec4(a.z), b2, sum_##r);         \
    sum_##r = fma(vec4(a.w), b3, sum_##r);         \
  }
      EACH_ROW(TERMS)
    }
#else
    for (uint k = 0u; k < P.depth; ++k) {
      vec4 b = load_b(b_at, columns);
      b_at += P.b_depth_stride;
#define TERM(r) sum_##r = fma(vec4(LOAD(a_data[a_at_##r + k * P.a_depth_stride])), b, sum_##r);
      EACH_ROW(TERM)
    }
#endif
    vec4 sums[ROWS];
#define KEEP(r) sums[r] = sum_##r;
    EACH_ROW(KEEP)
    uint row_count = min(uint(ROWS), P.rows - first_row);
    uint col_count = min(4u, P.cols - col);
    for (uint r = 0u; r < row_count; ++r) {
      uint at = (element * P.rows + first_row + r) * P.cols + col;
      vec4 values = sums[r];
      for (uint c = 0u; c < col_count; ++c) {
        y_data[at] = STORE(chain_apply(values.x, at));
        values = values.yzwx;
        at += 1u;
      }
    }
  }
}
