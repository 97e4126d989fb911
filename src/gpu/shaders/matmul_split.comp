// Matrix products of float32 on matrix hardware: y[rows, cols] = a[rows, depth] * b[depth, cols],
// then a chain; b is a constant.
//
// Matrix hardware takes float16 and sums in float32. A value is scaled by a power of two and split
// into two float16, high and low, which keep 22 bits; a product is high * high + high * low +
// low * high. b comes scaled (each column by its largest exponent) and split: a table of the
// columns' factors as floats, then for each term and 8 columns a unit of 8 highs and one of 8 lows.
// a is scaled and split on its way to shared memory, each step by the largest exponent in it.
// An infinity or NaN is a low part beside a high part of zero: only one product sees it.
//
// A workgroup makes a tile of TILE_M by TILE_N results. Its teams (SLICES of them) take steps of
// STEP terms in turn; a team of WARPS_M by WARPS_N subgroups of 32 makes the whole tile for its
// terms. With several slices a team is one subgroup, which waits for no other until the end.
// Each step: the next step's data on its way into registers, this step's fragments multiplied into
// accumulators of their own, small products first; these are scaled and added to the totals, which
// keeps what the hardware cuts off small. At the end the slices are added in order.
//
//! kernel matmul_split_64x64  target=vulkan1.3 TILE_M=64 TILE_N=64 WARPS_M=4 WARPS_N=2 SLICES=1 STEP=32
//! kernel matmul_split_32x64  target=vulkan1.3 TILE_M=32 TILE_N=64 WARPS_M=1 WARPS_N=1 SLICES=4 STEP=16
//! kernel matmul_split_32x32  target=vulkan1.3 TILE_M=32 TILE_N=32 WARPS_M=1 WARPS_N=1 SLICES=8 STEP=16
//! kernel matmul_split_16x32  target=vulkan1.3 TILE_M=16 TILE_N=32 WARPS_M=1 WARPS_N=1 SLICES=4 STEP=32
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define OM_CHAIN
#define CHAIN_BASE 0
#define CHAIN_BINDING 3
#include "common/om_shader.glsl"
#include "abi/matmul_split_params.h"
#include "common/chain.glsl"

#define TEAM_WARPS (WARPS_M * WARPS_N)
#define TEAM_THREADS uint(TEAM_WARPS * 32)
#define THREADS (TEAM_WARPS * SLICES * 32)
#define WARP_ROWS (TILE_M / WARPS_M)
#define WARP_COLS (TILE_N / WARPS_N)
#define FRAGS_M (WARP_ROWS / 16)
#define FRAGS_N (WARP_COLS / 16)
#define FRAGS_K (STEP / 16)
layout(local_size_x = THREADS) in;

layout(set = 0, binding = 0, std430) readonly buffer A { vec4 a_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer B { uvec4 b_data[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y_data[]; };

// Shared memory counts units of 16 bytes: 8 halves, or 4 floats. A team's area holds a's highs and
// lows by rows, then b's by terms; a unit more a row puts rows in different banks, four more
// between highs and lows those of b. At the end it holds results.
#define A_STRIDE (STEP / 8 + 1)
#define A_PLANE (TILE_M * A_STRIDE)
#define B_STRIDE (TILE_N / 8 + 1)
#define B_BEGIN (2 * A_PLANE)
#define B_PLANE (STEP * B_STRIDE + 4)
#define STEP_UNITS (B_BEGIN + 2 * B_PLANE)
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
#if TEAM_WARPS > 1
shared uint warp_largest[TEAM_WARPS];
#  define TEAM_BARRIER() barrier()
#else
#  define TEAM_BARRIER() subgroupBarrier()
#endif

#define A_OCTETS uint(STEP / 8)    // of one row of a's step
#define B_UNITS uint(TILE_N / 4)   // of one term of b's step
#define A_FETCHES uint(TILE_M * STEP / 8 / (TEAM_WARPS * 32))
#define B_FETCHES uint(STEP * TILE_N / 4 / (TEAM_WARPS * 32))

#define EXPONENTS 0x7f800000u

// The larger of `largest` and the values' magnitudes, as bits: above all numbers' where one is none.
uint add_largest(uint largest, vec4 values) {
  uvec4 bits = floatBitsToUint(values) & 0x7fffffffu;
  return max(max(largest, max(bits.x, bits.y)), max(bits.z, bits.w));
}

// Zero where the value is an infinity or NaN.
vec4 keep_numbers(vec4 kept, vec4 values) {
  bvec4 is_none = equal(floatBitsToUint(values) & EXPONENTS, uvec4(EXPONENTS));
  return mix(kept, vec4(0.0), is_none);
}

// Rounded to 11 bits.
vec4 high_part(vec4 values) {
  return uintBitsToFloat((floatBitsToUint(values) + 0x1000u) & 0xffffe000u);
}

// The largest of the team. Nobody reads the last step's data any more when it returns.
uint team_largest(uint warp, uint own) {
  uint largest = subgroupMax(own);
#if TEAM_WARPS > 1
  if (subgroupElect()) warp_largest[warp] = largest;
  barrier();
  [[unroll]] for (uint i = 0u; i < uint(TEAM_WARPS); ++i) {
    largest = max(largest, warp_largest[i]);
  }
#else
  subgroupBarrier();
#endif
  return largest;
}

void main() {
  uint group = om_group_index();
  if (group >= P.group_count) return;
  uint col_begin = group % P.col_tiles * uint(TILE_N);
  uint row_begin = group / P.col_tiles * uint(TILE_M);
  uint slice = gl_SubgroupID / uint(TEAM_WARPS);
  uint warp = gl_SubgroupID % uint(TEAM_WARPS);
  uint lane = gl_SubgroupInvocationID;
  uint thread = warp * 32u + lane;
  uint warp_row = warp / uint(WARPS_N) * uint(WARP_ROWS);
  uint warp_col = warp % uint(WARPS_N) * uint(WARP_COLS);
  uint area = slice * uint(TEAM_UNITS);

  coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> total[FRAGS_M * FRAGS_N];
  [[unroll]] for (uint i = 0u; i < uint(FRAGS_M * FRAGS_N); ++i) {
    total[i] = coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
  }

  uint begin = slice * uint(STEP);
  vec4 a_next[2u * A_FETCHES];
  uvec4 b_next[B_FETCHES];
  // No branches, so that the loads go out together. Rows, columns and terms past the
  // end repeat the last; no result shows them, and b's terms there are zero.
#define FETCH(from)                                                                      \
  [[unroll]] for (uint i = 0u; i < A_FETCHES; ++i) {                                     \
    uint octet = thread + i * TEAM_THREADS;                                              \
    uint row = min(row_begin + octet / A_OCTETS, P.rows - 1u) * P.a_row_quads;           \
    uint quad = (from + octet % A_OCTETS * 8u) / 4u;                                     \
    a_next[2u * i] = a_data[row + min(quad, P.depth / 4u - 1u)];                         \
    a_next[2u * i + 1u] = a_data[row + min(quad + 1u, P.depth / 4u - 1u)];               \
  }                                                                                      \
  [[unroll]] for (uint i = 0u; i < B_FETCHES; ++i) {                                     \
    uint unit = thread + i * TEAM_THREADS;                                               \
    uint k = min(from + unit / B_UNITS, P.b_terms - 1u);                                 \
    uint column = min(col_begin / 4u + unit % B_UNITS, P.b_row_units - 1u);              \
    b_next[i] = b_data[(1u + k) * P.b_row_units + column];                               \
  }
  FETCH(begin)

  for (; begin < P.depth; begin += uint(STEP * SLICES)) {
    if (begin + uint(STEP) > P.depth) {
      [[unroll]] for (uint i = 0u; i < 2u * A_FETCHES; ++i) {
        uint octet = thread + i / 2u * TEAM_THREADS;
        if (begin + octet % A_OCTETS * 8u + i % 2u * 4u >= P.depth) a_next[i] = vec4(0.0);
      }
    }
    uint largest = 0u;
    [[unroll]] for (uint i = 0u; i < 2u * A_FETCHES; ++i) {
      largest = add_largest(largest, a_next[i]);
    }
    largest = team_largest(warp, largest);
    bool are_numbers = largest < EXPONENTS;
    if (!are_numbers) {
      largest = 0u;
      [[unroll]] for (uint i = 0u; i < 2u * A_FETCHES; ++i) {
        largest = add_largest(largest, keep_numbers(a_next[i], a_next[i]));
      }
      TEAM_BARRIER();
      largest = team_largest(warp, largest);
    }
    // Values below 2^15 in magnitude; the factor undoes that and b's, whose columns' factors
    // leave values below 2.
    uint exponent = max(largest >> 23u, 29u);
    float scale = uintBitsToFloat((268u - exponent) << 23u);
    float factor = uintBitsToFloat((exponent - 28u) << 23u);
    [[unroll]] for (uint i = 0u; i < A_FETCHES; ++i) {
      uint octet = thread + i * TEAM_THREADS;
      vec4 p = a_next[2u * i] * scale;
      vec4 q = a_next[2u * i + 1u] * scale;
      vec4 p_high = high_part(p);
      vec4 q_high = high_part(q);
      if (!are_numbers) {
        p_high = keep_numbers(p_high, p);
        q_high = keep_numbers(q_high, q);
      }
      vec4 p_low = p - p_high;
      vec4 q_low = q - q_high;
      uint at = area + octet / A_OCTETS * uint(A_STRIDE) + octet % A_OCTETS;
      tile[at] = uvec4(packHalf2x16(p_high.xy), packHalf2x16(p_high.zw),
                       packHalf2x16(q_high.xy), packHalf2x16(q_high.zw));
      tile[at + uint(A_PLANE)] = uvec4(packHalf2x16(p_low.xy), packHalf2x16(p_low.zw),
                                       packHalf2x16(q_low.xy), packHalf2x16(q_low.zw));
    }
    [[unroll]] for (uint i = 0u; i < B_FETCHES; ++i) {
      uint unit = thread + i * TEAM_THREADS;
      uint column = unit % B_UNITS;
      tile[area + uint(B_BEGIN) + (column & 1u) * uint(B_PLANE) +
           unit / B_UNITS * uint(B_STRIDE) + column / 2u] = b_next[i];
    }
    TEAM_BARRIER();
    uint next = begin + uint(STEP * SLICES);
    FETCH(next)

    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b_high[FRAGS_K * FRAGS_N];
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b_low[FRAGS_K * FRAGS_N];
    [[unroll]] for (uint k = 0u; k < uint(FRAGS_K); ++k) {
      [[unroll]] for (uint n = 0u; n < uint(FRAGS_N); ++n) {
        uint at = area + uint(B_BEGIN) + k * uint(16 * B_STRIDE) + warp_col / 8u + n * 2u;
        coopMatLoad(b_high[k * uint(FRAGS_N) + n], tile, at, uint(B_STRIDE),
                    gl_CooperativeMatrixLayoutRowMajor);
        coopMatLoad(b_low[k * uint(FRAGS_N) + n], tile, at + uint(B_PLANE), uint(B_STRIDE),
                    gl_CooperativeMatrixLayoutRowMajor);
      }
    }
    [[unroll]] for (uint m = 0u; m < uint(FRAGS_M); ++m) {
      coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a_high[FRAGS_K];
      coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a_low[FRAGS_K];
      [[unroll]] for (uint k = 0u; k < uint(FRAGS_K); ++k) {
        uint at = area + (warp_row + m * 16u) * uint(A_STRIDE) + k * 2u;
        coopMatLoad(a_high[k], tile, at, uint(A_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
        coopMatLoad(a_low[k], tile, at + uint(A_PLANE), uint(A_STRIDE),
                    gl_CooperativeMatrixLayoutRowMajor);
      }
      [[unroll]] for (uint n = 0u; n < uint(FRAGS_N); ++n) {
        coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> part =
            coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
        [[unroll]] for (uint k = 0u; k < uint(FRAGS_K); ++k) {
          part = coopMatMulAdd(a_low[k], b_high[k * uint(FRAGS_N) + n], part);
          part = coopMatMulAdd(a_high[k], b_low[k * uint(FRAGS_N) + n], part);
        }
        [[unroll]] for (uint k = 0u; k < uint(FRAGS_K); ++k) {
          part = coopMatMulAdd(a_high[k], b_high[k * uint(FRAGS_N) + n], part);
        }
        total[m * uint(FRAGS_N) + n] = total[m * uint(FRAGS_N) + n] + part * factor;
      }
    }
  }

  // Results by way of shared memory, where the place of each is known.
  TEAM_BARRIER();
#if SLICES > 1
  [[unroll]] for (uint i = 0u; i < uint(FRAGS_M * FRAGS_N); ++i) {
    uint at = area + i / uint(FRAGS_N) * uint(16 * RESULT_STRIDE) + i % uint(FRAGS_N) * 4u;
    coopMatStore(total[i], tile, at, uint(RESULT_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
  }
  barrier();
  for (uint i = slice * 32u + lane; i < uint(TILE_M * TILE_N); i += uint(THREADS)) {
    uint r = i / uint(TILE_N);
    uint c = i % uint(TILE_N);
    uint row = row_begin + r;
    uint col = col_begin + c;
    if (row < P.rows && col < P.cols) {
      float sum = 0.0;
      [[unroll]] for (uint s = 0u; s < uint(SLICES); ++s) {
        sum += uintBitsToFloat(tile[s * uint(TEAM_UNITS) + r * uint(RESULT_STRIDE) + c / 4u][c & 3u]);
      }
      float value = sum * uintBitsToFloat(b_data[col / 4u][col & 3u]);
      uint at = row * P.cols + col;
      y_data[at] = chain_apply(value, at);
    }
  }
#else
  uint corner = warp * uint(WARP_RESULT_UNITS);
  [[unroll]] for (uint m = 0u; m < uint(FRAGS_M); ++m) {
    [[unroll]] for (uint n = 0u; n < uint(FRAGS_N); ++n) {
      coopMatStore(total[m * uint(FRAGS_N) + n], tile, corner + n * 4u, uint(RESULT_STRIDE),
                   gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroupBarrier();
    for (uint i = lane; i < uint(16 * WARP_COLS); i += 32u) {
      uint r = i / uint(WARP_COLS);
      uint c = i % uint(WARP_COLS);
      uint row = row_begin + warp_row + m * 16u + r;
      uint col = col_begin + warp_col + c;
      if (row < P.rows && col < P.cols) {
        float sum = uintBitsToFloat(tile[corner + r * uint(RESULT_STRIDE) + c / 4u][c & 3u]);
        float value = sum * uintBitsToFloat(b_data[col / 4u][col & 3u]);
        uint at = row * P.cols + col;
        y_data[at] = chain_apply(value, at);
      }
    }
    subgroupBarrier();
  }
#endif
}
