// Matrix products of up to 8 rows in fast mode: bound by reading b, which is read once for all rows.
//
// A workgroup of 256 makes 8 columns of all rows: 128 slices, each every 128th quad of terms, by 2
// lanes of four columns. Rows of a are whole quads. The slices' sums meet in shared memory, up to four
// rows at a time: each invocation adds those of every PARTSth slice for one result, and at the end PARTS
// such sums are added in order.
//
//! kernel matmul_few_1       ROWS=1
//! kernel matmul_few_8       ROWS=8
//! kernel matmul_few_1_half  ROWS=1 HALF=1
//! kernel matmul_few_8_half  ROWS=8 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 3
#include "common/om_shader.glsl"
#include "abi/matmul_few_params.h"
#include "common/chain.glsl"

#define THREADS 256
#define LANES 2
#define SLICES (THREADS / LANES)
#define COLS (LANES * 4)
#if ROWS < 4
#  define BATCH ROWS
#else
#  define BATCH 4
#endif
#define BATCHES (ROWS / BATCH)
#define PARTS (THREADS / (BATCH * COLS)) // invocations that share a result
layout(local_size_x = THREADS) in;

layout(set = 0, binding = 0, std430) readonly buffer A { ELEMENT4 a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { ELEMENT4 b_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { ELEMENT y_data[]; };

shared vec4 sums[BATCH * THREADS];

void main() {
  bool is_real = om_group_index() < P.group_count; // barriers are for all
  uint thread = gl_LocalInvocationID.x;
  uint slice = thread / uint(LANES);
  uint col_begin = om_group_index() * uint(COLS);
  uint quad = min(col_begin / 4u + thread % uint(LANES), P.b_quads - 1u);
  vec4 row_sums[ROWS];
  [[unroll]] for (uint row = 0u; row < uint(ROWS); ++row) row_sums[row] = vec4(0.0);
  for (uint k = slice; k < P.depth / 4u; k += uint(SLICES)) {
    vec4 b[4];
    vec4 a[ROWS];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) b[i] = LOAD4(b_data[(k * 4u + i) * P.b_quads + quad]);
    [[unroll]] for (uint row = 0u; row < uint(ROWS); ++row) {
      a[row] = LOAD4(a_data[min(row, P.rows - 1u) * P.a_row_quads + k]);
    }
    [[unroll]] for (uint row = 0u; row < uint(ROWS); ++row) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i) row_sums[row] = fma(vec4(a[row][i]), b[i], row_sums[row]);
    }
  }
  uint col = thread % uint(COLS);
  uint part = thread / uint(COLS) % uint(PARTS);
  uint own_row = thread / uint(COLS * PARTS); // of a batch
  float parts[BATCHES];
  [[unroll]] for (uint batch = 0u; batch < uint(BATCHES); ++batch) {
    [[unroll]] for (uint i = 0u; i < uint(BATCH); ++i) {
      sums[i * uint(THREADS) + thread] = row_sums[batch * uint(BATCH) + i];
    }
    barrier();
    float sum = 0.0;
    [[unroll]] for (uint i = 0u; i < uint(SLICES / PARTS); ++i) {
      uint at = own_row * uint(THREADS) + (part + i * uint(PARTS)) * uint(LANES) + col / 4u;
      sum += sums[at][col & 3u];
    }
    parts[batch] = sum;
    barrier();
  }
  [[unroll]] for (uint batch = 0u; batch < uint(BATCHES); ++batch) {
    sums[batch * uint(THREADS / 4) + thread / 4u][thread & 3u] = parts[batch];
  }
  barrier();
  uint row = thread / uint(COLS);
  if (is_real && row < min(P.rows, uint(ROWS)) && col_begin + col < P.cols) {
    uint first = row / uint(BATCH) * uint(THREADS) + row % uint(BATCH) * uint(COLS * PARTS) + col;
    float total = 0.0;
    [[unroll]] for (uint i = 0u; i < uint(PARTS); ++i) {
      uint at = first + i * uint(COLS);
      total += sums[at / 4u][at & 3u];
    }
    uint element = row * P.cols + col_begin + col;
    y_data[element] = STORE(chain_apply(total, element));
  }
}
