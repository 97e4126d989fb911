// Matrix products of few rows: bound by reading b, which is read once, straight from memory.
//
// A workgroup of 256 makes 32 columns of one row: 32 slices, each a block of 32 terms, by 8 lanes
// of four columns. The slices' sums meet in shared memory; 1024 terms are one pass.
//
// Order of sums: as in matmul.comp, so that the exact results have the same bits. Fast: the
// slices of a pass added in order. The _chunks variants of float16 leave float32 to matmul_sum.comp.
//
//! kernel matmul_rows        OM_EXACT=0
//! kernel matmul_rows_exact  OM_EXACT=1
//! kernel matmul_rows_half        OM_EXACT=0 HALF=1
//! kernel matmul_rows_half_exact  OM_EXACT=1 HALF=1
//! kernel matmul_rows_chunks_half        OM_EXACT=0 HALF=1 CHUNKS=1
//! kernel matmul_rows_chunks_half_exact  OM_EXACT=1 HALF=1 CHUNKS=1
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef CHUNKS
#  define OM_CHAIN
#  define CHAIN_BASE 0
#  define CHAIN_BINDING 3
#endif
#include "common/om_shader.glsl"
#include "abi/matmul_params.h"
#ifdef CHUNKS
#  define RESULT float
#  define FINISH(value, at) (value)
#else
#  include "common/chain.glsl"
#  define RESULT ELEMENT
#  define FINISH(value, at) STORE(chain_apply(value, at))
#endif

#define BLOCK 32u
#define SLICES 32u
#define LANES 8u
#define COLS 32u   // of a workgroup
layout(local_size_x = 256) in;

layout(set = 0, binding = 0, std430) readonly buffer A { ELEMENT a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { ELEMENT4 b_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { RESULT y_data[]; };

shared float sums[32 * 32];   // by slice and column

// Adds up to eight terms, whose loads are all on their way before the first is used.
vec4 add_terms(vec4 start, uint a_at, uint b_at, uint count) {
  OM_PRECISE vec4 sum = start;
  float a[8];
  vec4 b[8];
  for (uint i = 0u; i < 8u; ++i) {
    uint term = min(i, count - 1u);
    a[i] = LOAD(a_data[a_at + term * P.a_depth_stride]);
    b[i] = LOAD4(b_data[(b_at + term * P.b_depth_stride) / 4u]);
  }
  for (uint i = 0u; i < 8u; ++i) {
    if (i < count) {
#if OM_EXACT
      sum = sum + vec4(a[i]) * b[i];
#else
      sum = fma(vec4(a[i]), b[i], sum);
#endif
    }
  }
  return sum;
}

// Adds the slices' sums of one pass to the total, as groups of four.
float add_slices(float start, uint begin, uint col) {
  OM_PRECISE float total = start;
  OM_PRECISE float part = 0.0;
  for (uint s = 0u; s < SLICES; ++s) {
    uint k = begin + s * BLOCK;
    if (k < P.depth) {
      float block = sums[s * COLS + col];
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
  return total;
}

void main() {
  // A group past the end does the last one's work and stores nothing: barriers are for all.
  bool is_real = om_group_index() < P.group_count;
  uint group = min(om_group_index(), P.group_count - 1u);
  uint thread = gl_LocalInvocationID.x;
  uint col_begin = group % P.col_tiles * COLS;
  uint row = group / P.col_tiles % P.rows;
  uint element = group / P.col_tiles / P.rows;
  uint index_2 = element % P.batch_2;
  uint index_1 = element / P.batch_2 % P.batch_1;
  uint index_0 = element / P.batch_2 / P.batch_1;
  uint a_base = index_0 * P.a_stride_0 + index_1 * P.a_stride_1 + index_2 * P.a_stride_2 +
                row * P.a_row_stride;
  uint b_base = index_0 * P.b_stride_0 + index_1 * P.b_stride_1 + index_2 * P.b_stride_2;
  uint slice = thread / LANES;
  uint lane = thread % LANES;
  uint col = col_begin + lane * 4u;
  float total = 0.0;

  for (uint begin = 0u; begin < P.depth; begin += SLICES * BLOCK) {
    vec4 sum = vec4(0.0);
    uint k_begin = begin + slice * BLOCK;
    uint k_end = min(k_begin + BLOCK, P.depth);
    if (col < P.cols) {
      for (uint k = k_begin; k < k_end; k += 8u) {
        sum = add_terms(sum,
                        a_base + k * P.a_depth_stride,
                        b_base + k * P.b_depth_stride + col,
                        k_end - k);
      }
    }
    barrier();
    uint at = slice * COLS + lane * 4u;
    sums[at] = sum.x;
    sums[at + 1u] = sum.y;
    sums[at + 2u] = sum.z;
    sums[at + 3u] = sum.w;
    barrier();
    if (thread < COLS) total = add_slices(total, begin, thread);
  }

  if (is_real && thread < COLS && col_begin + thread < P.cols) {
    uint at = (element * P.rows + row) * P.cols + col_begin + thread;
    y_data[at] = FINISH(total, at);
  }
}
