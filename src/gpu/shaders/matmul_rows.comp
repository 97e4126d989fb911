// Matrix products of few rows: bound by reading b, which is read once, straight from memory.
//
// A workgroup of 256 makes ROWS rows by 32 columns: 32 slices, each a block of 32 terms, by 8
// lanes of four columns. The slices' sums meet in shared memory; 1024 terms are one pass.
//
// Order of sums: as in matmul.comp, so that the exact results have the same bits. Fast: the
// slices of a pass added in order.
//
//! kernel matmul_rows1        OM_EXACT=0 ROWS=1
//! kernel matmul_rows1_exact  OM_EXACT=1 ROWS=1
//! kernel matmul_rows4        OM_EXACT=0 ROWS=4
//! kernel matmul_rows4_exact  OM_EXACT=1 ROWS=4
#version 450
#extension GL_GOOGLE_include_directive : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 3
#include "common/om_shader.glsl"
#include "abi/matmul_params.h"
#include "common/chain.glsl"

#define BLOCK 32u
#define SLICES 32u
#define LANES 8u
#define COLS 32u   // of a workgroup
layout(local_size_x = 256) in;

layout(set = 0, binding = 0, std430) readonly buffer A { float a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { vec4 b_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y_data[]; };

shared float sums[ROWS * 32 * 32];   // by row, slice, column

void main() {
  uint group = om_group_index();
  if (group >= P.group_count) return;
  uint thread = gl_LocalInvocationID.x;
  uint col_begin = group % P.col_tiles * COLS;
  uint row_begin = group / P.col_tiles % P.row_tiles * uint(ROWS);
  uint element = group / P.col_tiles / P.row_tiles;
  uint index_2 = element % P.batch_2;
  uint index_1 = element / P.batch_2 % P.batch_1;
  uint index_0 = element / P.batch_2 / P.batch_1;
  uint a_base = index_0 * P.a_stride_0 + index_1 * P.a_stride_1 + index_2 * P.a_stride_2;
  uint b_base = index_0 * P.b_stride_0 + index_1 * P.b_stride_1 + index_2 * P.b_stride_2;
  uint slice = thread / LANES;
  uint lane = thread % LANES;
  uint col = col_begin + lane * 4u;

  // The result that this invocation finishes.
  uint own_row = thread / COLS;
  uint own_col = thread % COLS;
  OM_PRECISE float total = 0.0;

  for (uint begin = 0u; begin < P.depth; begin += SLICES * BLOCK) {
    OM_PRECISE vec4 sum[ROWS];
    for (uint r = 0u; r < uint(ROWS); ++r) sum[r] = vec4(0.0);
    uint k_begin = begin + slice * BLOCK;
    uint k_end = min(k_begin + BLOCK, P.depth);
    if (col < P.cols) {
      for (uint k = k_begin; k < k_end; ++k) {
        vec4 b = b_data[(b_base + k * P.b_depth_stride + col) / 4u];
        for (uint r = 0u; r < uint(ROWS); ++r) {
          uint row = min(row_begin + r, P.rows - 1u);
          float a = a_data[a_base + row * P.a_row_stride + k * P.a_depth_stride];
#if OM_EXACT
          sum[r] = sum[r] + vec4(a) * b;
#else
          sum[r] = fma(vec4(a), b, sum[r]);
#endif
        }
      }
    }
    barrier();
    for (uint r = 0u; r < uint(ROWS); ++r) {
      uint at = (r * SLICES + slice) * COLS + lane * 4u;
      sums[at] = sum[r].x;
      sums[at + 1u] = sum[r].y;
      sums[at + 2u] = sum[r].z;
      sums[at + 3u] = sum[r].w;
    }
    barrier();
    if (own_row < uint(ROWS)) {
      OM_PRECISE float part = 0.0;
      for (uint s = 0u; s < SLICES; ++s) {
        uint k = begin + s * BLOCK;
        if (k < P.depth) {
          float block = sums[(own_row * SLICES + s) * COLS + own_col];
          if (s % 4u == 0u) {
            part = block;
          } else {
            part = part + block;
          }
          if (s % 4u == 3u || k + BLOCK >= P.depth) {
            if (k < 4u * BLOCK) {
              total = part;
            } else {
              total = total + part;
            }
          }
        }
      }
    }
  }

  uint row = row_begin + own_row;
  if (own_row < uint(ROWS) && row < P.rows && col_begin + own_col < P.cols) {
    uint at = (element * P.rows + row) * P.cols + col_begin + own_col;
    y_data[at] = chain_apply(total, at);
  }
}
