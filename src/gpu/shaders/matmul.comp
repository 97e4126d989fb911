// Matrix products: y[batch, rows, cols] = a[batch, rows, depth] * b[batch, depth, cols], then a chain.
//
// A workgroup of 256 (64 for tiles of 32) makes one tile of TILE by TILE results from pieces of 32 * SLICES terms in
// shared memory, the next piece on its way while it computes. An invocation has ROWS rows by four
// columns. With SLICES 4 (small tiles, for products with few results) a quarter of the workgroup
// takes each block of 32 terms, and the four sums meet in shared memory.
// Where there are few tiles and many terms, the depth is cut into chunks of workgroups of their own,
// and matmul_sum.comp adds their results; those are float32, also in the _chunks variants of float16.
//
// Order of sums, exact: blocks of 32 terms in increasing k, product and sum rounded; four block
// sums added in order make a group; groups added in order to the total (docs/exact.md, Products).
// Blocks past the depth take no part. Fast: fused multiply-adds in increasing k; slices added in order.
//
//! kernel matmul_tile64             OM_EXACT=0 TILE=64 ROWS=4 SLICES=1
//! kernel matmul_tile64_exact       OM_EXACT=1 TILE=64 ROWS=4 SLICES=1
//! kernel matmul_tile64_vec4        OM_EXACT=0 TILE=64 ROWS=4 SLICES=1 VEC4=1
//! kernel matmul_tile64_vec4_exact  OM_EXACT=1 TILE=64 ROWS=4 SLICES=1 VEC4=1
//! kernel matmul_tile32             OM_EXACT=0 TILE=32 ROWS=4 SLICES=1
//! kernel matmul_tile32_exact       OM_EXACT=1 TILE=32 ROWS=4 SLICES=1
//! kernel matmul_tile32_vec4        OM_EXACT=0 TILE=32 ROWS=4 SLICES=1 VEC4=1
//! kernel matmul_tile32_vec4_exact  OM_EXACT=1 TILE=32 ROWS=4 SLICES=1 VEC4=1
//! kernel matmul_tile16             OM_EXACT=0 TILE=16 ROWS=1 SLICES=4
//! kernel matmul_tile16_exact       OM_EXACT=1 TILE=16 ROWS=1 SLICES=4
//! kernel matmul_tile16_vec4        OM_EXACT=0 TILE=16 ROWS=1 SLICES=4 VEC4=1
//! kernel matmul_tile16_vec4_exact  OM_EXACT=1 TILE=16 ROWS=1 SLICES=4 VEC4=1
//! kernel matmul_tile64_half                    OM_EXACT=0 TILE=64 ROWS=4 SLICES=1 HALF=1
//! kernel matmul_tile64_half_exact              OM_EXACT=1 TILE=64 ROWS=4 SLICES=1 HALF=1
//! kernel matmul_tile64_vec4_half               OM_EXACT=0 TILE=64 ROWS=4 SLICES=1 VEC4=1 HALF=1
//! kernel matmul_tile64_vec4_half_exact         OM_EXACT=1 TILE=64 ROWS=4 SLICES=1 VEC4=1 HALF=1
//! kernel matmul_tile32_half                    OM_EXACT=0 TILE=32 ROWS=4 SLICES=1 HALF=1
//! kernel matmul_tile32_half_exact              OM_EXACT=1 TILE=32 ROWS=4 SLICES=1 HALF=1
//! kernel matmul_tile32_vec4_half               OM_EXACT=0 TILE=32 ROWS=4 SLICES=1 VEC4=1 HALF=1
//! kernel matmul_tile32_vec4_half_exact         OM_EXACT=1 TILE=32 ROWS=4 SLICES=1 VEC4=1 HALF=1
//! kernel matmul_tile16_half                    OM_EXACT=0 TILE=16 ROWS=1 SLICES=4 HALF=1
//! kernel matmul_tile16_half_exact              OM_EXACT=1 TILE=16 ROWS=1 SLICES=4 HALF=1
//! kernel matmul_tile16_vec4_half               OM_EXACT=0 TILE=16 ROWS=1 SLICES=4 VEC4=1 HALF=1
//! kernel matmul_tile16_vec4_half_exact         OM_EXACT=1 TILE=16 ROWS=1 SLICES=4 VEC4=1 HALF=1
//! kernel matmul_tile64_chunks_half             OM_EXACT=0 TILE=64 ROWS=4 SLICES=1 HALF=1 CHUNKS=1
//! kernel matmul_tile64_chunks_half_exact       OM_EXACT=1 TILE=64 ROWS=4 SLICES=1 HALF=1 CHUNKS=1
//! kernel matmul_tile64_vec4_chunks_half        OM_EXACT=0 TILE=64 ROWS=4 SLICES=1 VEC4=1 HALF=1 CHUNKS=1
//! kernel matmul_tile64_vec4_chunks_half_exact  OM_EXACT=1 TILE=64 ROWS=4 SLICES=1 VEC4=1 HALF=1 CHUNKS=1
//! kernel matmul_tile32_chunks_half             OM_EXACT=0 TILE=32 ROWS=4 SLICES=1 HALF=1 CHUNKS=1
//! kernel matmul_tile32_chunks_half_exact       OM_EXACT=1 TILE=32 ROWS=4 SLICES=1 HALF=1 CHUNKS=1
//! kernel matmul_tile32_vec4_chunks_half        OM_EXACT=0 TILE=32 ROWS=4 SLICES=1 VEC4=1 HALF=1 CHUNKS=1
//! kernel matmul_tile32_vec4_chunks_half_exact  OM_EXACT=1 TILE=32 ROWS=4 SLICES=1 VEC4=1 HALF=1 CHUNKS=1
//! kernel matmul_tile16_chunks_half             OM_EXACT=0 TILE=16 ROWS=1 SLICES=4 HALF=1 CHUNKS=1
//! kernel matmul_tile16_chunks_half_exact       OM_EXACT=1 TILE=16 ROWS=1 SLICES=4 HALF=1 CHUNKS=1
//! kernel matmul_tile16_vec4_chunks_half        OM_EXACT=0 TILE=16 ROWS=1 SLICES=4 VEC4=1 HALF=1 CHUNKS=1
//! kernel matmul_tile16_vec4_chunks_half_exact  OM_EXACT=1 TILE=16 ROWS=1 SLICES=4 VEC4=1 HALF=1 CHUNKS=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef CHUNKS
#  define OM_CHAIN
#  define CHAIN_BASE 0
#  define CHAIN_BINDING 3
#endif
#include "common/om_shader.glsl"
#include "abi/matmul_params.h"
#ifdef CHUNKS
#  define RESULT float
#  define FINISH(value, at, col) (value)
#else
#  include "common/chain.glsl"
#  define RESULT ELEMENT
// A vector that belongs to the columns, a bias, needs no division.
uint vector_element(uint at, uint col) {
  return P.chain_inner == 1u && P.chain_channels == P.cols ? col : chain_vector_element(at);
}
#  define FINISH(value, at, col) STORE(chain_apply_channel(value, at, vector_element(at, col)))
#endif

#include "common/product.glsl"

#ifdef VEC4
layout(set = 0, binding = 0, std430) readonly buffer A { ELEMENT4 a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { ELEMENT4 b_data[]; };
#else
layout(set = 0, binding = 0, std430) readonly buffer A { ELEMENT a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { ELEMENT b_data[]; };
#endif
layout(set = 0, binding = 2, std430) writeonly buffer Y { RESULT y_data[]; };

vec4 fetch_a(uint base, uint row, uint k) {
  vec4 quad = vec4(-0.0);
  if (row < P.rows && k < P.depth) {
#ifdef VEC4
    quad = LOAD4(a_data[(base + row * P.a_row_stride + k) / 4u]);
#else
    uint at = base + row * P.a_row_stride + k * P.a_depth_stride;
    quad.x = LOAD(a_data[at]);
    if (k + 1u < P.depth) quad.y = LOAD(a_data[at + P.a_depth_stride]);
    if (k + 2u < P.depth) quad.z = LOAD(a_data[at + 2u * P.a_depth_stride]);
    if (k + 3u < P.depth) quad.w = LOAD(a_data[at + 3u * P.a_depth_stride]);
#endif
  }
  return quad;
}

vec4 fetch_b(uint base, uint k, uint col) {
  vec4 quad = vec4(0.0);
  if (k < P.depth && col < P.cols) {
#ifdef VEC4
    quad = LOAD4(b_data[(base + k * P.b_depth_stride + col) / 4u]);
#else
    uint at = base + k * P.b_depth_stride + col * P.b_col_stride;
    quad.x = LOAD(b_data[at]);
    if (col + 1u < P.cols) quad.y = LOAD(b_data[at + P.b_col_stride]);
    if (col + 2u < P.cols) quad.z = LOAD(b_data[at + 2u * P.b_col_stride]);
    if (col + 3u < P.cols) quad.w = LOAD(b_data[at + 3u * P.b_col_stride]);
#endif
  }
  return quad;
}

void main() {
  // A group past the end does the last one's work and stores nothing: barriers are for all.
  bool is_real = om_group_index() < P.group_count;
  uint group = min(om_group_index(), P.group_count - 1u);
  uint thread = gl_LocalInvocationID.x;
  uint col_begin = group % P.col_tiles * uint(TILE);
  uint row_begin = group / P.col_tiles % P.row_tiles * uint(TILE);
  uint chunk = group / P.col_tiles / P.row_tiles % P.chunk_count;
  uint element = group / P.col_tiles / P.row_tiles / P.chunk_count;
  uint index_2 = element % P.batch_2;
  uint index_1 = element / P.batch_2 % P.batch_1;
  uint index_0 = element / P.batch_2 / P.batch_1;
  uint a_base = index_0 * P.a_stride_0 + index_1 * P.a_stride_1 + index_2 * P.a_stride_2;
  uint b_base = index_0 * P.b_stride_0 + index_1 * P.b_stride_1 + index_2 * P.b_stride_2;

  uint slice = thread / (THREADS / uint(SLICES));
  uint place = thread % (THREADS / uint(SLICES));
  uint lane = place % uint(LANES);
  uint first_row = place / uint(LANES);

  vec4 sum[ROWS];
  [[unroll]] for (uint r = 0u; r < uint(ROWS); ++r) sum[r] = vec4(0.0);
#if OM_EXACT && SLICES == 1
  product_sums sums = product_begin();
#endif
#if SLICES > 1
  OM_PRECISE float total = 0.0;
  uint own_row = thread / uint(TILE);
  uint own_col = thread % uint(TILE);
#endif
  uint chunk_begin = chunk * P.chunk_depth;
  uint chunk_end = min(chunk_begin + P.chunk_depth, P.depth);
  vec4 a_next[FETCHES];
  vec4 b_next[FETCHES];
  [[unroll]] for (uint i = 0u; i < FETCHES; ++i) {
    uint quad = thread + i * THREADS;
    a_next[i] = fetch_a(a_base, row_begin + quad / A_QUADS, chunk_begin + quad % A_QUADS * 4u);
    b_next[i] =
        fetch_b(b_base, chunk_begin + quad / uint(LANES), col_begin + quad % uint(LANES) * 4u);
  }

  // The bounds are the same for all groups; the last chunk may run out of terms before.
  for (uint done = 0u; done < P.chunk_depth; done += STEP) {
    uint begin = chunk_begin + done;
    barrier();
    [[unroll]] for (uint i = 0u; i < FETCHES; ++i) {
      uint quad = thread + i * THREADS;
      a_tile[a_slot(quad / A_QUADS, quad % A_QUADS)] = a_next[i];
      b_tile[b_slot(quad / uint(LANES), quad % uint(LANES))] = b_next[i];
    }
    barrier();
    uint next = begin + STEP;
    if (next < chunk_end) {
      [[unroll]] for (uint i = 0u; i < FETCHES; ++i) {
        uint quad = thread + i * THREADS;
        a_next[i] = fetch_a(a_base, row_begin + quad / A_QUADS, next + quad % A_QUADS * 4u);
        b_next[i] = fetch_b(b_base, next + quad / uint(LANES), col_begin + quad % uint(LANES) * 4u);
      }
    }

    // A block past the end, whose places hold what was there before, takes no part.
    if (begin + slice * BLOCK < chunk_end) product_multiply(first_row, lane, slice, sum);
#if OM_EXACT && SLICES == 1
    if (begin < chunk_end) product_fold(done % 128u == 96u, sum, sums);
#endif
#if OM_EXACT && SLICES > 1
    // A piece is a group: its four block sums, by way of a's tile.
    barrier();
    a_tile[thread] = sum[0];
    sum[0] = vec4(0.0);
    barrier();
    OM_PRECISE float part = 0.0;
    [[unroll]] for (uint s = 0u; s < uint(SLICES); ++s) {
      if (begin + s * BLOCK < chunk_end) {
        float block = a_tile[s * (THREADS / uint(SLICES)) + thread / 4u][thread & 3u];
        if (s == 0u) {
          part = block;
        } else {
          part = part + block;
        }
      }
    }
    if (done == 0u) {
      total = part;
    } else if (begin < chunk_end) {
      total = total + part;
    }
#endif
  }

  uint elements = P.group_count / P.col_tiles / P.row_tiles / P.chunk_count;
  uint y_base = (chunk * elements + element) * P.rows * P.cols;
#if SLICES > 1
#  if !OM_EXACT
  barrier();
  a_tile[thread] = sum[0];
  barrier();
  [[unroll]] for (uint s = 0u; s < uint(SLICES); ++s) {
    total = total + a_tile[s * (THREADS / uint(SLICES)) + thread / 4u][thread & 3u];
  }
#  endif
  uint row = row_begin + own_row;
  uint col = col_begin + own_col;
  if (is_real && row < P.rows && col < P.cols) {
    uint at = y_base + row * P.cols + col;
    y_data[at] = FINISH(total, at, col);
  }
#else
  for (uint r = 0u; r < uint(ROWS); ++r) {
    uint row = row_begin + first_row + r * APART;
#  if OM_EXACT
    vec4 result = product_result(sums, r);
#  else
    vec4 result = sum[r];
#  endif
    for (uint c = 0u; c < 4u; ++c) {
      uint col = col_begin + lane * 4u + c;
      if (is_real && row < P.rows && col < P.cols) {
        uint at = y_base + row * P.cols + col;
        y_data[at] = FINISH(result[c], at, col);
      }
    }
  }
#endif
}
