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
// What decides the speed: a step should take whole lines of 128 bytes of a (64 float16, 32 float32);
// a subgroup's part should be large, since its fragments are read anew for each; and nothing may be
// loaded under a condition, or the compiler waits for it at once.
//
//! kernel matmul_matrix_128x128              target=vulkan1.3 TILE_M=128 TILE_N=128 WARPS_M=2 WARPS_N=4 SLICES=1 STEP=32 SPREAD=1
//! kernel matmul_matrix_96x128               target=vulkan1.3 TILE_M=96 TILE_N=128 WARPS_M=2 WARPS_N=4 SLICES=1 STEP=32
//! kernel matmul_matrix_64x64                target=vulkan1.3 TILE_M=64 TILE_N=64 WARPS_M=4 WARPS_N=2 SLICES=2 STEP=32
//! kernel matmul_matrix_32x64                target=vulkan1.3 TILE_M=32 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=2 STEP=32
//! kernel matmul_matrix_32x32                target=vulkan1.3 TILE_M=32 TILE_N=32 WARPS_M=2 WARPS_N=2 SLICES=4 STEP=32
//! kernel matmul_matrix_128x128_half         target=vulkan1.3 TILE_M=128 TILE_N=128 WARPS_M=2 WARPS_N=4 SLICES=1 STEP=64 HALF=1
//! kernel matmul_matrix_96x128_half          target=vulkan1.3 TILE_M=96 TILE_N=128 WARPS_M=2 WARPS_N=2 SLICES=1 STEP=64 HALF=1
//! kernel matmul_matrix_96x64_half           target=vulkan1.3 TILE_M=96 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=1 STEP=64 HALF=1
//! kernel matmul_matrix_64x64_half           target=vulkan1.3 TILE_M=64 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=1 STEP=128 HALF=1
//! kernel matmul_matrix_32x64_half           target=vulkan1.3 TILE_M=32 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=2 STEP=64 HALF=1
//! kernel matmul_matrix_32x32_half           target=vulkan1.3 TILE_M=32 TILE_N=32 WARPS_M=2 WARPS_N=2 SLICES=1 STEP=128 HALF=1
//! kernel matmul_matrix_128x128_chunks_half  target=vulkan1.3 TILE_M=128 TILE_N=128 WARPS_M=2 WARPS_N=4 SLICES=1 STEP=64 HALF=1 CHUNKS=1
//! kernel matmul_matrix_96x128_chunks_half   target=vulkan1.3 TILE_M=96 TILE_N=128 WARPS_M=2 WARPS_N=2 SLICES=1 STEP=64 HALF=1 CHUNKS=1
//! kernel matmul_matrix_96x64_chunks_half    target=vulkan1.3 TILE_M=96 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=1 STEP=64 HALF=1 CHUNKS=1
//! kernel matmul_matrix_64x64_chunks_half    target=vulkan1.3 TILE_M=64 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=1 STEP=128 HALF=1 CHUNKS=1
//! kernel matmul_matrix_32x64_chunks_half    target=vulkan1.3 TILE_M=32 TILE_N=64 WARPS_M=2 WARPS_N=2 SLICES=2 STEP=64 HALF=1 CHUNKS=1
//! kernel matmul_matrix_32x32_chunks_half    target=vulkan1.3 TILE_M=32 TILE_N=32 WARPS_M=2 WARPS_N=2 SLICES=1 STEP=128 HALF=1 CHUNKS=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifndef CHUNKS
#  define OM_CHAIN
#  define CHAIN_BASE 2
#  define CHAIN_BINDING 3
#endif
#include "common/om_shader.glsl"
#include "abi/matmul_matrix_params.h"
#ifdef CHUNKS
#  define RESULT float
#  define RESULT4 vec4
#  define KEEP4(values) (values)
#else
#  include "common/chain.glsl"
#  define RESULT ELEMENT
#  define RESULT4 ELEMENT4
#  define KEEP4(values) STORE4(values)
#endif

#if HALF
#  define PARTS 1
#else
#  define PARTS 2
#endif
#ifndef SPREAD
#  define SPREAD 0
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

OM_CONSTANT(0, HAS_TAIL, 0)        // the last steps go past the depth
OM_CONSTANT(1, HAS_QUADS, 0)       // rows of y are whole quads

layout(set = 0, binding = 0, std430) readonly buffer A { uvec4 a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { uvec4 b_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { RESULT y_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer YQuads { RESULT4 y_quads[]; };

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
#define WARP_RESULT_UNITS (16 * RESULT_STRIDE)
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
// Where they do come out even an invocation's are rows at the same distance, whose addresses are one
// and offsets.
// With SPREAD, for steps of 32, two rows that eight invocations store side by side are four apart,
// which puts them in different banks.
#if SPREAD
#  define A_FIRST_ROW (thread / 32u * 8u + (thread / 8u & 3u) + (thread / 4u & 1u) * 4u)
#  define A_ROW(i) (A_FIRST_ROW + (i) * uint(TEAM_THREADS / 4))
#  define A_OCTET(i) (thread & 3u)
#elif TEAM_THREADS % (STEP / 8) == 0
#  define A_ROW(i) (thread / A_OCTETS + (i) * (uint(TEAM_THREADS) / A_OCTETS))
#  define A_OCTET(i) (thread % A_OCTETS)
#else
#  define A_ROW(i) ((thread + (i) * uint(TEAM_THREADS)) / A_OCTETS)
#  define A_OCTET(i) ((thread + (i) * uint(TEAM_THREADS)) % A_OCTETS)
#endif
#if TEAM_THREADS % (TILE_N / 8 * PARTS) == 0
#  define B_TERM(i) (thread / B_UNITS + (i) * (uint(TEAM_THREADS) / B_UNITS))
#  define B_UNIT(i) (thread % B_UNITS)
#else
#  define B_TERM(i) ((thread + (i) * uint(TEAM_THREADS)) / B_UNITS)
#  define B_UNIT(i) ((thread + (i) * uint(TEAM_THREADS)) % B_UNITS)
#endif

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

// The element of a chain's operand that has one for each channel.
#ifndef CHUNKS
uint channel_of(uint at, uint col) {
  return P.chain_inner == 1u && P.chain_channels == P.cols ? col : chain_vector_element(at);
}
#endif

void store_quad(uint row, uint col, uint chunk, vec4 value) {
  uint at = row * P.cols + col;
  uint has_quads = HAS_QUADS;
#ifndef CHUNKS
  [[unroll]] for (uint c = 0u; c < 4u; ++c) {
    if (has_quads != 0u || col + c < P.cols) {
      value[c] = chain_apply_channel(value[c], at + c, channel_of(at + c, col + c));
    }
  }
#endif
  at += chunk * P.rows * P.cols;
  if (has_quads != 0u) {
    y_quads[at / 4u] = KEEP4(value);
  } else {
    [[unroll]] for (uint c = 0u; c < 4u; ++c) {
      if (col + c < P.cols) y_data[at + c] = RESULT(value[c]);
    }
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

  uint has_tail = HAS_TAIL;

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
  uint b_last = P.b_terms - uint(STEP);
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
    uint term = min(from, b_last) + B_TERM(i);                                             \
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
      if (has_tail != 0u && from + uint(STEP) > P.depth) {
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
        [[unroll]] for (uint i = 0u; i < uint(FRAGS_M * PARTS); ++i) {
          uint at = area + i % uint(PARTS) * uint(A_PLANE) + k * 2u +
                    (warp_row + i / uint(PARTS) * 16u) * uint(A_STRIDE);
          coopMatLoad(a[i], tile, at, uint(A_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
        }
        // Behind the first fragments, which wait for less.
        if (k == 0u) {
          FETCH(from)
        }
        [[unroll]] for (uint n = 0u; n < uint(FRAGS_N); ++n) {
          B_FRAGMENT b[PARTS];
          [[unroll]] for (uint i = 0u; i < uint(PARTS); ++i) {
            uint at = area + uint(B_BEGIN) + i * uint(B_PLANE) + k * uint(16 * B_STRIDE) +
                      warp_col / 8u + n * 2u;
            coopMatLoad(b[i], tile, at, uint(B_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
          }
          [[unroll]] for (uint m = 0u; m < uint(FRAGS_M); ++m) {
            uint i = m * uint(FRAGS_N) + n;
#if HALF
            high[i] = coopMatMulAdd(a[m], b[0], high[i]);
#else
            low[i] = coopMatMulAdd(a[2u * m], b[1], low[i]);
            low[i] = coopMatMulAdd(a[2u * m + 1u], b[0], low[i]);
            high[i] = coopMatMulAdd(a[2u * m], b[0], high[i]);
#endif
          }
        }
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

#if !HALF
  EACH_SUM high[i] = high[i] + low[i] * (1.0 / LOW_SCALE);
#endif
  // Results by way of shared memory, where the place of each is known: 16 rows of each subgroup at a
  // time, in quads.
#if SLICES > 1
#  define STRIP_QUADS (16 * WARPS_M * TILE_N / 4)
#  define STRIP_THREADS THREADS
#  define STRIP_FIRST index
#  define STRIP_BARRIER barrier()
#else
#  define STRIP_QUADS (16 * WARP_COLS / 4)
#  define STRIP_THREADS 32
#  define STRIP_FIRST lane
#  define STRIP_BARRIER subgroupBarrier()
#endif
  for (uint m = 0u; m < uint(FRAGS_M); ++m) {
    // The index of a sum must be known to the compiler, or all of them leave the registers.
    EACH_SUM {
      if (i / uint(FRAGS_N) == m) {
        uint at = area + warp * uint(WARP_RESULT_UNITS) + i % uint(FRAGS_N) * 4u;
        coopMatStore(high[i], tile, at, uint(RESULT_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
      }
    }
    STRIP_BARRIER;
    for (uint pair = STRIP_FIRST; pair < uint(STRIP_QUADS); pair += uint(2 * STRIP_THREADS)) {
      vec4 sums[2];
      uint rows[2];
      uint cols[2];
      [[unroll]] for (uint j = 0u; j < 2u; ++j) {
        // Past the end, where an invocation has one quad alone, it is that one again.
        uint i = min(pair + j * uint(STRIP_THREADS), uint(STRIP_QUADS - 1));
#if SLICES > 1
        uint row = i / uint(TILE_N / 4);
        uint quad = i % uint(TILE_N / 4);
        uint owner = row / 16u * uint(WARPS_N) + quad / uint(WARP_COLS / 4);
        rows[j] = row / 16u * uint(WARP_ROWS) + m * 16u + row % 16u;
        cols[j] = quad * 4u;
#else
        uint row = i / uint(WARP_COLS / 4);
        uint quad = i % uint(WARP_COLS / 4);
        uint owner = warp;
        rows[j] = warp_row + m * 16u + row;
        cols[j] = warp_col + quad * 4u;
#endif
        uint at = owner * uint(WARP_RESULT_UNITS) + row % 16u * uint(RESULT_STRIDE) +
                  quad % uint(WARP_COLS / 4);
        sums[j] = vec4(0.0);
        [[unroll]] for (uint s = 0u; s < uint(SLICES); ++s) {
          sums[j] += uintBitsToFloat(tile[s * uint(TEAM_UNITS) + at]);
        }
      }
      [[unroll]] for (uint j = 0u; j < 2u; ++j) {
        uint row = row_begin + rows[j];
        uint col = col_begin + cols[j];
        if (row < P.rows && col < P.cols && pair + j * uint(STRIP_THREADS) < uint(STRIP_QUADS)) {
#if !HALF
          float row_factor = is_scaled ? uintBitsToFloat(row_bits[rows[j]]) : 1.0 / 16384.0;
          sums[j] = sums[j] * row_factor * uintBitsToFloat(b_data[col / 4u]);
#endif
          store_quad(row, col, chunk, sums[j]);
        }
      }
    }
    STRIP_BARRIER;
  }
}
