// Matrix products on matrix hardware: y[rows, cols] = a[rows, depth] * b[depth, cols], then a
// chain; b is a constant.
//
// Matrix hardware takes float16 and sums in float32. Of float16 that is all. A float32 is split into
// two float16: the high part is the value rounded, the low part 2^11 times what that left off;
// together they keep 22 bits. A product is high * high + (high * low + low * high) / 2^11. b comes
// split, each column scaled by a power of two: a table of the columns' factors as floats, then for
// each term and 8 columns a unit of 8 highs and one of 8 lows. a is split on its way to shared
// memory, as it is: that keeps the 22 bits where a row's largest value lies in 2^-14 .. 2^15. Where
// a row of the tile turns out not to, the tile is made again, with a power of two for each row. An
// infinity is a low part beside a high part of zero then: only one product sees it.
//
// A workgroup makes a tile of TILE_M by TILE_N results. Its teams (SLICES of them) take steps of
// STEP terms in turn; a team of WARPS_M by WARPS_N subgroups of 32 makes the whole tile for its
// terms. Each step: the next step's data on its way into registers, this step's fragments, in
// shared memory, into the sums. At the end the slices are added in order. Where there are few tiles
// the depth is cut into chunks of workgroups of their own, and matmul_sum.comp adds their results,
// which are float32, also in the _chunks variants of float16.
//
//! kernel matmul_matrix_128x128              target=vulkan1.3 TILE_M=128 TILE_N=128 WARPS_M=4 WARPS_N=4 SLICES=1 STEP=32
//! kernel matmul_matrix_96x128               target=vulkan1.3 TILE_M=96 TILE_N=128 WARPS_M=3 WARPS_N=4 SLICES=1 STEP=32
//! kernel matmul_matrix_64x64                target=vulkan1.3 TILE_M=64 TILE_N=64 WARPS_M=4 WARPS_N=2 SLICES=2 STEP=32
//! kernel matmul_matrix_32x64                target=vulkan1.3 TILE_M=32 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=2 STEP=32
//! kernel matmul_matrix_32x32                target=vulkan1.3 TILE_M=32 TILE_N=32 WARPS_M=2 WARPS_N=2 SLICES=4 STEP=32
//! kernel matmul_matrix_128x128_half         target=vulkan1.3 TILE_M=128 TILE_N=128 WARPS_M=4 WARPS_N=4 SLICES=1 STEP=64 HALF=1
//! kernel matmul_matrix_96x128_half          target=vulkan1.3 TILE_M=96 TILE_N=128 WARPS_M=3 WARPS_N=4 SLICES=1 STEP=64 HALF=1
//! kernel matmul_matrix_64x64_half           target=vulkan1.3 TILE_M=64 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=2 STEP=64 HALF=1
//! kernel matmul_matrix_32x64_half           target=vulkan1.3 TILE_M=32 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=2 STEP=64 HALF=1
//! kernel matmul_matrix_32x32_half           target=vulkan1.3 TILE_M=32 TILE_N=32 WARPS_M=2 WARPS_N=2 SLICES=4 STEP=64 HALF=1
//! kernel matmul_matrix_128x128_chunks_half  target=vulkan1.3 TILE_M=128 TILE_N=128 WARPS_M=4 WARPS_N=4 SLICES=1 STEP=64 HALF=1 CHUNKS=1
//! kernel matmul_matrix_96x128_chunks_half   target=vulkan1.3 TILE_M=96 TILE_N=128 WARPS_M=3 WARPS_N=4 SLICES=1 STEP=64 HALF=1 CHUNKS=1
//! kernel matmul_matrix_64x64_chunks_half    target=vulkan1.3 TILE_M=64 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=2 STEP=64 HALF=1 CHUNKS=1
//! kernel matmul_matrix_32x64_chunks_half    target=vulkan1.3 TILE_M=32 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=2 STEP=64 HALF=1 CHUNKS=1
//! kernel matmul_matrix_32x32_chunks_half    target=vulkan1.3 TILE_M=32 TILE_N=32 WARPS_M=2 WARPS_N=2 SLICES=4 STEP=64 HALF=1 CHUNKS=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifndef CHUNKS
#  define OM_CHAIN
#  define CHAIN_BASE 0
#  define CHAIN_BINDING 3
#endif
#include "common/om_shader.glsl"
#include "abi/matmul_matrix_params.h"
#ifdef CHUNKS
#  define RESULT float
#else
#  include "common/chain.glsl"
#  define RESULT ELEMENT
#endif

#if HALF
#  define PARTS 1
#else
#  define PARTS 2
#endif
#define TEAM_WARPS (WARPS_M * WARPS_N)
#define TEAM_THREADS (TEAM_WARPS * 32)
#define THREADS (TEAM_THREADS * SLICES)
#define WARP_ROWS (TILE_M / WARPS_M)
#define WARP_COLS (TILE_N / WARPS_N)
#define FRAGS_M (WARP_ROWS / 16)
#define FRAGS_N (WARP_COLS / 16)
#define FRAGS_K (STEP / 16)
layout(local_size_x = THREADS) in;

layout(set = 0, binding = 0, std430) readonly buffer A { uvec4 a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { uvec4 b_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { RESULT y_data[]; };

// Shared memory counts units of 16 bytes: 8 halves, or 4 floats. A team's area holds a's highs and
// lows by rows, then b's by terms; a unit more a row puts rows in different banks, four more
// between highs and lows those of b. At the end it holds results.
#define A_STRIDE (STEP / 8 + 1)
#define A_PLANE (TILE_M * A_STRIDE)
#define B_STRIDE (TILE_N / 8 + 1)
#define B_BEGIN (PARTS * A_PLANE)
#define B_PLANE (STEP * B_STRIDE + 4)
#define STEP_UNITS (B_BEGIN + PARTS * B_PLANE)
#define RESULT_STRIDE (WARP_COLS / 4 + 1)
#if SLICES > 1
#  define RESULT_ROWS WARP_ROWS
#else
#  define RESULT_ROWS 16
#endif
#define WARP_RESULT_UNITS (RESULT_ROWS * RESULT_STRIDE)
#define RESULT_UNITS (TEAM_WARPS * WARP_RESULT_UNITS)
#if STEP_UNITS > RESULT_UNITS
#  define TEAM_UNITS STEP_UNITS
#else
#  define TEAM_UNITS RESULT_UNITS
#endif
shared uvec4 tile[SLICES * TEAM_UNITS];

#define A_OCTETS uint(STEP / 8)          // of one row of a's step
#define B_UNITS uint(TILE_N / 8 * PARTS) // of one term of b's step
// What an invocation brings: octets of a's step, units of b's; where they do not come out even the
// last is not for all.
#define A_COUNT (TILE_M * STEP / 8)
#define B_COUNT (STEP * TILE_N / 8 * PARTS)
#define A_FETCHES uint((A_COUNT + TEAM_THREADS - 1) / TEAM_THREADS)
#define B_FETCHES uint((B_COUNT + TEAM_THREADS - 1) / TEAM_THREADS)
#define HAS_A(i) (A_COUNT % TEAM_THREADS == 0 || thread + (i) * uint(TEAM_THREADS) < uint(A_COUNT))
#define HAS_B(i) (B_COUNT % TEAM_THREADS == 0 || thread + (i) * uint(TEAM_THREADS) < uint(B_COUNT))
#define A_ROW(i) ((thread + (i) * uint(TEAM_THREADS)) / A_OCTETS)
#define A_OCTET(i) ((thread + (i) * uint(TEAM_THREADS)) % A_OCTETS)

#define B_TERM(i) ((thread + (i) * uint(TEAM_THREADS)) / B_UNITS)
#define B_UNIT(i) ((thread + (i) * uint(TEAM_THREADS)) % B_UNITS)

#define A_FRAGMENT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define B_FRAGMENT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define EACH_SUM [[unroll]] for (uint i = 0u; i < uint(FRAGS_M * FRAGS_N); ++i)

#define A_UNIT(i, from) \
  ((from) / 8u * A_UNITS_PER_OCTET + A_OCTET((i) / A_UNITS_PER_OCTET) * A_UNITS_PER_OCTET + \
   (i) % A_UNITS_PER_OCTET)
#if HALF
#  define A_UNITS_PER_OCTET 1u
#  define B_FIRST 0u
#else
#  define A_UNITS_PER_OCTET 2u
#  define B_FIRST P.b_row_units          // behind the columns' factors
#  define LOW_SCALE 2048.0

const uint INFINITY_BITS = 0x7f800000u;
// A row's magnitudes as bits: the largest, then the power of two that the row is divided by.
shared uint row_bits[TILE_M];
shared uint far_rows;

uint pack(vec2 values) {
  return packFloat2x16(f16vec2(values));
}

// The high parts as floats. The compiler would take away a conversion there and back if it saw both.
vec4 unpack(uvec2 highs) {
  highs ^= P.zero;
  return vec4(unpackFloat2x16(highs.x), unpackFloat2x16(highs.y));
}

bvec4 are_numbers(vec4 values) {
  return lessThan(floatBitsToUint(values) & 0x7fffffffu, uvec4(INFINITY_BITS));
}

// The largest magnitude of numbers.
float largest_number(vec4 values) {
  vec4 m = mix(vec4(0.0), abs(values), are_numbers(values));
  return max(max(m.x, m.y), max(m.z, m.w));
}
#endif

uint result_at(uint unit, uint column) {
  return tile[unit + column / 4u][column & 3u];
}

void store(uint row, uint col, uint chunk, float sum, uint tile_row, bool is_scaled) {
  if (row < P.rows && col < P.cols) {
#if HALF
    float value = sum;
#else
    float row_factor = is_scaled ? uintBitsToFloat(row_bits[tile_row]) : 1.0 / 16384.0;
    float value = sum * row_factor * uintBitsToFloat(b_data[col / 4u][col & 3u]);
#endif
    uint at = row * P.cols + col;
#ifdef CHUNKS
    y_data[chunk * P.rows * P.cols + at] = value;
#else
    uint vector_element = col;
    if (P.chain_inner != 1u || P.chain_channels != P.cols) vector_element = chain_vector_element(at);
    y_data[chunk * P.rows * P.cols + at] = STORE(chain_apply_channel(value, at, vector_element));
#endif
  }
}

void main() {
  uint group = om_group_index();
  if (group >= P.group_count) return;
  uint chunk = group / P.tile_count;
  uint col_begin = group % P.tile_count % P.col_tiles * uint(TILE_N);
  uint row_begin = group % P.tile_count / P.col_tiles * uint(TILE_M);
  uint slice = gl_SubgroupID / uint(TEAM_WARPS);
  uint warp = gl_SubgroupID % uint(TEAM_WARPS);
  uint lane = gl_SubgroupInvocationID;
  uint thread = warp * 32u + lane;
  uint index = gl_SubgroupID * 32u + lane;
  uint warp_row = warp / uint(WARPS_N) * uint(WARP_ROWS);
  uint warp_col = warp % uint(WARPS_N) * uint(WARP_COLS);
  uint area = slice * uint(TEAM_UNITS);
  uint begin = chunk * P.chunk_depth;
  uint end = min(begin + P.chunk_depth, P.depth);

  // Rows and columns past the end repeat the last; no result shows them.
  uint a_row[A_FETCHES];
  [[unroll]] for (uint i = 0u; i < A_FETCHES; ++i) {
    a_row[i] = min(row_begin + A_ROW(i), P.rows - 1u) * P.a_row_units;
  }
  uint b_column[B_FETCHES];
  [[unroll]] for (uint i = 0u; i < B_FETCHES; ++i) {
    b_column[i] = B_FIRST + min(col_begin / 8u * uint(PARTS) + B_UNIT(i), P.b_row_units - 1u);
  }
  uint a_units = P.depth * A_UNITS_PER_OCTET / 8u;
#if !HALF
  float largest[A_FETCHES];
  [[unroll]] for (uint i = 0u; i < A_FETCHES; ++i) largest[i] = 0.0;
  for (uint i = index; i < uint(TILE_M); i += uint(THREADS)) row_bits[i] = 0u;
  if (index == 0u) far_rows = 0u;
#endif
  SUMS high[FRAGS_M * FRAGS_N];
#if !HALF
  SUMS low[FRAGS_M * FRAGS_N];
#endif
  uvec4 a_next[A_UNITS_PER_OCTET * A_FETCHES];
  uvec4 b_next[B_FETCHES];

  // Without branches, so that the loads go out together. What lies past the end repeats the last.
#define FETCH(from)                                                                        \
  [[unroll]] for (uint i = 0u; i < A_UNITS_PER_OCTET * A_FETCHES; ++i) {                   \
    a_next[i] = a_data[a_row[i / A_UNITS_PER_OCTET] + min(A_UNIT(i, from), a_units - 1u)]; \
  }                                                                                        \
  [[unroll]] for (uint i = 0u; i < B_FETCHES; ++i) {                                       \
    uint term = min(from + B_TERM(i), P.b_terms - 1u);                                     \
    b_next[i] = b_data[b_column[i] + term * P.b_row_units];                                \
  }

  bool is_scaled = false;
  for (;;) {
    EACH_SUM high[i] = SUMS(0.0);
#if !HALF
    EACH_SUM low[i] = SUMS(0.0);
#endif
    uint from = begin + slice * uint(STEP);
    FETCH(from)
    for (uint round = begin; round < end; round += uint(STEP * SLICES)) {
      // Nobody reads the last step's data any more, then everything is there.
      barrier();
      // b's terms past the end are zero, and so are a's: an infinity times zero is none.
      if (from + uint(STEP) > P.depth) {
        [[unroll]] for (uint i = 0u; i < A_UNITS_PER_OCTET * A_FETCHES; ++i) {
          if (A_UNIT(i, from) >= a_units) a_next[i] = uvec4(0u);
        }
      }
      [[unroll]] for (uint i = 0u; i < A_FETCHES; ++i) {
        uint at = area + A_ROW(i) * uint(A_STRIDE) + A_OCTET(i);
#if HALF
        if (HAS_A(i)) tile[at] = a_next[i];
#else
        vec4 p = uintBitsToFloat(a_next[2u * i]);
        vec4 q = uintBitsToFloat(a_next[2u * i + 1u]);
        if (is_scaled) {
          float scale = uintBitsToFloat((240u << 23u) - row_bits[min(A_ROW(i), uint(TILE_M - 1))]);
          p *= scale;
          q *= scale;
        }
        vec4 magnitudes = max(abs(p), abs(q));
        largest[i] = max(largest[i], max(max(magnitudes.x, magnitudes.y),
                                         max(magnitudes.z, magnitudes.w)));
        uvec4 highs = uvec4(pack(p.xy), pack(p.zw), pack(q.xy), pack(q.zw));
        if (is_scaled) {
          vec4 p_high = mix(vec4(0.0), unpack(highs.xy), are_numbers(p));
          vec4 q_high = mix(vec4(0.0), unpack(highs.zw), are_numbers(q));
          highs = uvec4(pack(p_high.xy), pack(p_high.zw), pack(q_high.xy), pack(q_high.zw));
        }
        p = (p - unpack(highs.xy)) * LOW_SCALE;
        q = (q - unpack(highs.zw)) * LOW_SCALE;
        if (HAS_A(i)) {
          tile[at] = highs;
          tile[at + uint(A_PLANE)] = uvec4(pack(p.xy), pack(p.zw), pack(q.xy), pack(q.zw));
        }
#endif
      }
      [[unroll]] for (uint i = 0u; i < B_FETCHES; ++i) {
        uint at = area + uint(B_BEGIN) + B_UNIT(i) % uint(PARTS) * uint(B_PLANE) +
                  B_TERM(i) * uint(B_STRIDE) + B_UNIT(i) / uint(PARTS);
        if (HAS_B(i)) tile[at] = b_next[i];
      }
      barrier();
      from += uint(STEP * SLICES);
      [[unroll]] for (uint k = 0u; k < uint(FRAGS_K); ++k) {
        A_FRAGMENT a[FRAGS_M * PARTS];
        B_FRAGMENT b[FRAGS_N * PARTS];
        [[unroll]] for (uint i = 0u; i < uint(FRAGS_M * PARTS); ++i) {
          uint at = area + i % uint(PARTS) * uint(A_PLANE) + k * 2u +
                    (warp_row + i / uint(PARTS) * 16u) * uint(A_STRIDE);
          coopMatLoad(a[i], tile, at, uint(A_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
        }
        [[unroll]] for (uint i = 0u; i < uint(FRAGS_N * PARTS); ++i) {
          uint at = area + uint(B_BEGIN) + i % uint(PARTS) * uint(B_PLANE) +
                    k * uint(16 * B_STRIDE) + warp_col / 8u + i / uint(PARTS) * 2u;
          coopMatLoad(b[i], tile, at, uint(B_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
        }
        // Behind the first fragments, which wait for less.
        if (k == 0u) {
          FETCH(from)
        }
#define M (i / uint(FRAGS_N) * uint(PARTS))
#define N (i % uint(FRAGS_N) * uint(PARTS))
#if !HALF
        EACH_SUM low[i] = coopMatMulAdd(a[M], b[N + 1u], low[i]);
        EACH_SUM low[i] = coopMatMulAdd(a[M + 1u], b[N], low[i]);
#endif
        EACH_SUM high[i] = coopMatMulAdd(a[M], b[N], high[i]);
      }
    }
    barrier();
#if HALF
    break;
#else
    if (is_scaled) break;
    [[unroll]] for (uint i = 0u; i < A_FETCHES; ++i) {
      if (HAS_A(i)) atomicMax(row_bits[A_ROW(i)], floatBitsToUint(largest[i]));
    }
    barrier();
    for (uint i = index; i < uint(TILE_M); i += uint(THREADS)) {
      float row_largest = uintBitsToFloat(row_bits[i]);
      if (row_largest != 0.0 && !(row_largest >= 1.0 / 16384.0 && row_largest <= 32768.0)) {
        far_rows = 1u;
      }
    }
    barrier();
    if (far_rows == 0u) break;
    // The largest numbers anew, infinities left out, as powers of two.
    for (uint i = index; i < uint(TILE_M); i += uint(THREADS)) row_bits[i] = 0u;
    barrier();
    for (uint row = gl_SubgroupID; row < uint(TILE_M); row += uint(THREADS / 32)) {
      uint row_unit = min(row_begin + row, P.rows - 1u) * P.a_row_units;
      float most = 0.0;
      for (uint at = begin / 4u + lane; at < end / 4u; at += 32u) {
        most = max(most, largest_number(uintBitsToFloat(a_data[row_unit + at])));
      }
      atomicMax(row_bits[row], floatBitsToUint(most));
    }
    barrier();
    for (uint i = index; i < uint(TILE_M); i += uint(THREADS)) {
      row_bits[i] = max(row_bits[i] & INFINITY_BITS, 29u << 23u) - (28u << 23u);
    }
    barrier();
    is_scaled = true;
#endif
  }

  // Results by way of shared memory, where the place of each is known; four at a time.
#define EACH_RESULT(first, count, stride)                                              \
  for (uint quad = first; quad < uint(count); quad += uint(4 * (stride)))              \
    [[unroll]] for (uint i = quad; i < quad + uint(4 * (stride)); i += uint(stride))   \
      if ((count) % (4 * (stride)) == 0 || i < uint(count))
#if !HALF
  EACH_SUM high[i] = high[i] + low[i] * (1.0 / LOW_SCALE);
#endif
#if SLICES > 1
  EACH_SUM {
    uint at = area + warp * uint(WARP_RESULT_UNITS) + i / uint(FRAGS_N) * uint(16 * RESULT_STRIDE) +
              i % uint(FRAGS_N) * 4u;
    coopMatStore(high[i], tile, at, uint(RESULT_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
  }
  barrier();
  EACH_RESULT(index, TILE_M * TILE_N, THREADS) {
    uint row = i / uint(TILE_N);
    uint col = i % uint(TILE_N);
    uint at = (row / uint(WARP_ROWS) * uint(WARPS_N) + col / uint(WARP_COLS)) *
                  uint(WARP_RESULT_UNITS) +
              row % uint(WARP_ROWS) * uint(RESULT_STRIDE);
    float sum = 0.0;
    [[unroll]] for (uint s = 0u; s < uint(SLICES); ++s) {
      sum += uintBitsToFloat(result_at(s * uint(TEAM_UNITS) + at, col % uint(WARP_COLS)));
    }
    store(row_begin + row, col_begin + col, chunk, sum, row, is_scaled);
  }
#else
  uint corner = warp * uint(WARP_RESULT_UNITS);
  for (uint m = 0u; m < uint(FRAGS_M); ++m) {
    // The index of a sum must be known to the compiler, or all of them leave the registers.
    EACH_SUM {
      if (i / uint(FRAGS_N) == m) {
        coopMatStore(high[i], tile, corner + i % uint(FRAGS_N) * 4u, uint(RESULT_STRIDE),
                     gl_CooperativeMatrixLayoutRowMajor);
      }
    }
    subgroupBarrier();
    EACH_RESULT(lane, 16 * WARP_COLS, 32) {
      uint row = warp_row + m * 16u + i / uint(WARP_COLS);
      uint col = i % uint(WARP_COLS);
      float sum = uintBitsToFloat(result_at(corner + i / uint(WARP_COLS) * uint(RESULT_STRIDE), col));
      store(row_begin + row, col_begin + warp_col + col, chunk, sum, row, is_scaled);
    }
    subgroupBarrier();
  }
#endif
}
