// Attention on matrix hardware: softmax(scale * Q K + mask) V, in one pass; operands whose depth or
// columns lie side by side, in pieces of 16 bytes.
//
// Matrix hardware takes float16 and sums in float32. Operands of float16 go there as they are, and
// so do probabilities. Those of float32 are split in two: common/split.glsl. Q is scaled by its largest
// exponent in the workgroup, K and V by theirs in the step. Probabilities are not divided yet: a
// score less the row's largest, exponentiated, times 2^POWER_EXPONENT, so that their low parts
// have bits enough. The largest may lag by SLACK, which saves scaling down what was summed so far.
//
// A workgroup makes WARPS_M times 16 rows of one element of the batch. Each step takes WARPS_N
// times KEYS keys: into registers while the step before is computed, split into shared memory, and
// WARPS_M by WARPS_N subgroups of 32 multiply 16 rows by KEYS keys each. A subgroup has its own
// largest, sums and result; at the end those of the same rows are joined in order.
//
//! kernel attention_matrix_16x64_32    target=vulkan1.3 HEAD=32 WARPS_M=1 WARPS_N=4 KEYS=16
//! kernel attention_matrix_16x64_64    target=vulkan1.3 HEAD=64 WARPS_M=1 WARPS_N=4 KEYS=16
//! kernel attention_matrix_48x32_64    target=vulkan1.3 HEAD=64 WARPS_M=3 WARPS_N=1 KEYS=32
//! kernel attention_matrix_64x32_32    target=vulkan1.3 HEAD=32 WARPS_M=4 WARPS_N=1 KEYS=32
//! kernel attention_matrix_64x32_64    target=vulkan1.3 HEAD=64 WARPS_M=4 WARPS_N=1 KEYS=32
//! kernel attention_matrix_32x32_128   target=vulkan1.3 HEAD=128 WARPS_M=2 WARPS_N=2 KEYS=16
//! kernel attention_matrix_16x64_32_half   target=vulkan1.3 HEAD=32 WARPS_M=1 WARPS_N=4 KEYS=16 HALF=1
//! kernel attention_matrix_16x64_64_half   target=vulkan1.3 HEAD=64 WARPS_M=1 WARPS_N=4 KEYS=16 HALF=1
//! kernel attention_matrix_48x32_64_half   target=vulkan1.3 HEAD=64 WARPS_M=3 WARPS_N=1 KEYS=32 HALF=1
//! kernel attention_matrix_64x32_32_half   target=vulkan1.3 HEAD=32 WARPS_M=4 WARPS_N=1 KEYS=32 HALF=1
//! kernel attention_matrix_64x32_64_half   target=vulkan1.3 HEAD=64 WARPS_M=4 WARPS_N=1 KEYS=32 HALF=1
//! kernel attention_matrix_32x32_128_half  target=vulkan1.3 HEAD=128 WARPS_M=2 WARPS_N=2 KEYS=16 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "common/om_shader.glsl"
#include "abi/attention_params.h"
#include "common/split.glsl"

#define WARPS (WARPS_M * WARPS_N)
#define THREADS (WARPS * 32)
#define ROWS (WARPS_M * 16)
#define STEP (WARPS_N * KEYS)
#define FRAGS_K (KEYS / 16)
#define FRAGS_H (HEAD / 16)
#define POWER_EXPONENT 5.0
#define SLACK 7.0
#define LOG2_E 1.44269504
layout(local_size_x = THREADS) in;

OM_CONSTANT(0, FLAGS, 0)           // OM_ATTENTION_...
OM_CONSTANT(1, Q_OFFSET, 0)
OM_CONSTANT(2, K_OFFSET, 0)
OM_CONSTANT(3, V_OFFSET, 0)

// 16 bytes of an operand, and how many an octet takes; that is as many as it has parts, too.
#if HALF
#  define PIECE uvec4
#  define PARTS 1
#else
#  define PIECE vec4
#  define PARTS 2
#endif
#define PIECE_ELEMS uint(8 / PARTS)

layout(set = 0, binding = 0, std430) readonly buffer Q { PIECE q_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer K { PIECE k_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer V { PIECE v_data[]; };
layout(set = 0, binding = 3, std430) readonly buffer Mask { ELEMENT mask_data[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Y { ELEMENT4 y_data[]; };

// Shared memory counts units of 16 bytes: 8 halves, or 4 floats. A unit more a row puts rows in
// different banks. First K's parts (highs, then lows) by keys, then V's, then an area for each subgroup:
// scores, then probabilities, in parts too. Q's rows before the first step and results at the end
// lie in the same place as all that.
#define OCTETS (HEAD / 8)
#define STRIDE (OCTETS + 1)
#define PLANE (STEP * STRIDE)
#define V_BEGIN (PARTS * PLANE)
#define Q_PLANE (ROWS * STRIDE)
#define RESULT_STRIDE (HEAD / 4 + 1)
#define RESULT_UNITS (16 * RESULT_STRIDE)
#define LARGER_OF(a, b) ((a) > (b) ? (a) : (b))
#define SCORE_STRIDE (KEYS / 4 + 1)
#define POWER_STRIDE (KEYS / 8 + 1)
#define POWER_PLANE (16 * POWER_STRIDE)
#define FACTOR_STRIDE 5
#define WARP_UNITS LARGER_OF(LARGER_OF(16 * SCORE_STRIDE, PARTS * POWER_PLANE), 16 * FACTOR_STRIDE)
#define STEP_UNITS (2 * PARTS * PLANE + WARPS * WARP_UNITS)
shared uvec4 tile[LARGER_OF(LARGER_OF(STEP_UNITS, PARTS * Q_PLANE), WARPS * RESULT_UNITS)];
#if !HALF
shared uint warp_largest[2 * WARPS];
#endif
shared vec2 row_sums[WARPS * 16];  // the largest score, and the sum of powers

// Octets of K, and of V, of an invocation; where they do not come out even, some are fetched twice.
#define FETCHES ((STEP * OCTETS + THREADS - 1) / THREADS)
#if STEP * OCTETS % THREADS == 0
#  define OCTET(i) (thread + (i) * uint(THREADS))
#else
#  define OCTET(i) ((thread + (i) * uint(THREADS)) % uint(STEP * OCTETS))
#endif
#define LANE_QUADS (KEYS / 8)      // of scores, of an invocation: half a row

#define MATRIX_A coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define MATRIX_SUM coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

uint warp;  // of the workgroup
uint lane;
uint thread;

// What the pieces of a step, or of Q, are scaled by: the largest of Q, or of K and of V.
struct scales {
  uvec2 largest;
  bool are_numbers;
};

// FIND_SCALES(add_all) sets `all`; add_all(only_numbers) adds what the invocation holds to `own`.
// Nobody reads the last step's data any more when it is done.
#if HALF

#  define FIND_SCALES(add_all) barrier();

float factor_of(uint largest) {
  return 1.0;
}

void put(uint at, uint plane, PIECE pieces[PARTS], uint largest, bool are_numbers) {
  tile[at] = pieces[0];
}

void put_powers(uint at, vec4 a, vec4 b) {
  tile[at] = uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw), packHalf2x16(b.xy), packHalf2x16(b.zw));
}

#else

#  define FIND_SCALES(add_all)                                                        \
    {                                                                                 \
      uvec2 own = uvec2(0u);                                                          \
      add_all(false)                                                                  \
      all.largest = group_largest(own);                                               \
      all.are_numbers = max(all.largest.x, all.largest.y) < SPLIT_EXPONENTS;          \
      if (!all.are_numbers) {                                                         \
        own = uvec2(0u);                                                              \
        add_all(true)                                                                 \
        barrier();                                                                    \
        all.largest = group_largest(own);                                             \
      }                                                                               \
    }

uvec2 group_largest(uvec2 own) {
  uvec2 largest = uvec2(subgroupMax(own.x), subgroupMax(own.y));
  if (lane == 0u) {
    warp_largest[2u * warp] = largest.x;
    warp_largest[2u * warp + 1u] = largest.y;
  }
  barrier();
  largest = uvec2(0u);
  [[unroll]] for (uint i = 0u; i < uint(WARPS); ++i) {
    largest = max(largest, uvec2(warp_largest[2u * i], warp_largest[2u * i + 1u]));
  }
  return largest;
}

uint add_piece(uint largest, PIECE piece, bool only_numbers) {
  return split_largest(largest, only_numbers ? split_numbers(piece, piece) : piece);
}

float factor_of(uint largest) {
  return split_factor(largest);
}

// An octet into shared memory.
void put(uint at, uint plane, PIECE pieces[PARTS], uint largest, bool are_numbers) {
  float scale = split_scale(largest);
  split_octet octet = split_eight(pieces[0] * scale, pieces[1] * scale, are_numbers);
  tile[at] = octet.high;
  tile[at + plane] = octet.low;
}

void put_powers(uint at, vec4 a, vec4 b) {
  split_octet octet = split_eight(a, b, true);
  tile[at] = octet.high;
  tile[at + uint(POWER_PLANE)] = octet.low;
}

#endif

// A piece of Q; rows past the end repeat the last.
PIECE fetch_q(uint base, uint row_begin, uint octet, uint part) {
  uint piece = octet % uint(OCTETS) * uint(PARTS) + part;
  uint row = min(row_begin + octet / uint(OCTETS), P.rows - 1u);
  if (piece >= P.depth / PIECE_ELEMS) return PIECE(0);
  return q_data[base + row * (P.q_row_stride / PIECE_ELEMS) + piece];
}

void main() {
  uint flags = FLAGS;
  uint q_offset = Q_OFFSET;
  uint k_offset = K_OFFSET;
  uint v_offset = V_OFFSET;
  uint block = P.first_group + gl_WorkGroupID.x;
  uint element = block / P.row_blocks;
  uint index_0 = element / P.batch_1;
  uint index_1 = element % P.batch_1;
  uint row_begin = block % P.row_blocks * uint(ROWS);
  uint q_base = (q_offset + index_0 * P.q_stride_0 + index_1 * P.q_stride_1) / PIECE_ELEMS;
  uint k_base = (k_offset + index_0 * P.k_stride_0 + index_1 * P.k_stride_1) / PIECE_ELEMS;
  uint v_base = (v_offset + index_0 * P.v_stride_0 + index_1 * P.v_stride_1) / PIECE_ELEMS;
  uint y_base = (index_0 * P.y_stride_0 + index_1 * P.y_stride_1) / 4u;
  uint depth_pieces = P.depth / PIECE_ELEMS;
  uint width_pieces = P.width / PIECE_ELEMS;
  warp = gl_SubgroupID;
  lane = gl_SubgroupInvocationID;
  thread = warp * 32u + lane;
  uint warp_row = warp / uint(WARPS_N) * 16u;
  uint warp_key = warp % uint(WARPS_N) * uint(KEYS);
  uint area = uint(2 * PARTS * PLANE) + warp * uint(WARP_UNITS);

  bool has_mask = (flags & uint(OM_ATTENTION_HAS_MASK)) != 0u;
  bool selects = (flags & uint(OM_ATTENTION_SELECTS)) != 0u;
  bool has_tail = (flags & uint(OM_ATTENTION_HAS_TAIL)) != 0u;
  bool is_narrow = (flags & uint(OM_ATTENTION_IS_NARROW)) != 0u;

  // Keys and pieces past the end repeat the last, and are zeroed where that matters.
  PIECE k_next[PARTS * FETCHES];
  PIECE v_next[PARTS * FETCHES];
#define FETCH(from)                                                                    \
  [[unroll]] for (uint i = 0u; i < uint(PARTS * FETCHES); ++i) {                       \
    uint octet = OCTET(i / uint(PARTS));                                               \
    uint piece = octet % uint(OCTETS) * uint(PARTS) + i % uint(PARTS);                 \
    uint key = min(from + octet / uint(OCTETS), P.keys - 1u);                          \
    uint k_piece = is_narrow ? min(piece, depth_pieces - 1u) : piece;                  \
    uint v_piece = is_narrow ? min(piece, width_pieces - 1u) : piece;                  \
    k_next[i] = k_data[k_base + key * (P.k_key_stride / PIECE_ELEMS) + k_piece];       \
    v_next[i] = v_data[v_base + key * (P.v_key_stride / PIECE_ELEMS) + v_piece];       \
  }
  FETCH(0u)

  // Q, into fragments that stay.
  PIECE pieces[PARTS];
  scales all = scales(uvec2(0u), true);
#define ADD_Q(only_numbers)                                                                   \
  for (uint octet = thread; octet < uint(ROWS * OCTETS); octet += uint(THREADS)) {            \
    own.x = add_piece(own.x, fetch_q(q_base, row_begin, octet, 0u), only_numbers);            \
    own.x = add_piece(own.x, fetch_q(q_base, row_begin, octet, 1u), only_numbers);            \
  }
  FIND_SCALES(ADD_Q)
  float q_factor = factor_of(all.largest.x) * P.scale;
  for (uint octet = thread; octet < uint(ROWS * OCTETS); octet += uint(THREADS)) {
    [[unroll]] for (uint i = 0u; i < uint(PARTS); ++i) {
      pieces[i] = fetch_q(q_base, row_begin, octet, i);
    }
    put(octet / uint(OCTETS) * uint(STRIDE) + octet % uint(OCTETS), uint(Q_PLANE), pieces,
        all.largest.x, all.are_numbers);
  }
  barrier();
  MATRIX_A q_high[FRAGS_H];
#if !HALF
  MATRIX_A q_low[FRAGS_H];
#endif
  [[unroll]] for (uint k = 0u; k < uint(FRAGS_H); ++k) {
    uint at = warp_row * uint(STRIDE) + k * 2u;
    coopMatLoad(q_high[k], tile, at, uint(STRIDE), gl_CooperativeMatrixLayoutRowMajor);
#if !HALF
    coopMatLoad(q_low[k], tile, at + uint(Q_PLANE), uint(STRIDE),
                gl_CooperativeMatrixLayoutRowMajor);
#endif
  }

  MATRIX_SUM result[FRAGS_H];
  [[unroll]] for (uint n = 0u; n < uint(FRAGS_H); ++n) result[n] = MATRIX_SUM(0.0);
  // The lowest number, so that a difference of infinities cannot arise from what is masked out.
  float best = om_float(0xff7fffffu);
  float sum = 0.0;
  uint row = min(row_begin + warp_row + lane / 2u, P.rows - 1u);
  uint lane_key = warp_key + lane % 2u * uint(KEYS / 2);
  uint mask_base = index_0 * P.mask_stride_0 + index_1 * P.mask_stride_1 + row * P.mask_row_stride;

  for (uint begin = 0u; begin < P.keys; begin += uint(STEP)) {
    [[unroll]] for (uint i = 0u; i < uint(PARTS * FETCHES); ++i) {
      uint octet = OCTET(i / uint(PARTS));
      uint piece = octet % uint(OCTETS) * uint(PARTS) + i % uint(PARTS);
      if (is_narrow && piece >= depth_pieces) k_next[i] = PIECE(0);
      if (is_narrow && piece >= width_pieces) v_next[i] = PIECE(0);
      if (has_tail && begin + octet / uint(OCTETS) >= P.keys) v_next[i] = PIECE(0);
    }
#define ADD_K_V(only_numbers)                                                  \
  [[unroll]] for (uint i = 0u; i < uint(PARTS * FETCHES); ++i) {               \
    own.x = add_piece(own.x, k_next[i], only_numbers);                         \
    own.y = add_piece(own.y, v_next[i], only_numbers);                         \
  }
    FIND_SCALES(ADD_K_V)
    [[unroll]] for (uint i = 0u; i < uint(FETCHES); ++i) {
      uint octet = OCTET(i);
      uint at = octet / uint(OCTETS) * uint(STRIDE) + octet % uint(OCTETS);
      [[unroll]] for (uint k = 0u; k < uint(PARTS); ++k) pieces[k] = k_next[uint(PARTS) * i + k];
      put(at, uint(PLANE), pieces, all.largest.x, all.are_numbers);
      [[unroll]] for (uint k = 0u; k < uint(PARTS); ++k) pieces[k] = v_next[uint(PARTS) * i + k];
      put(at + uint(V_BEGIN), uint(PLANE), pieces, all.largest.y, all.are_numbers);
    }
    barrier();
    FETCH(begin + uint(STEP))
    // No branches, so that the loads go out together.
    vec4 mask[LANE_QUADS];
    [[unroll]] for (uint i = 0u; i < uint(LANE_QUADS); ++i) {
      mask[i] = vec4(0.0);
      [[unroll]] for (uint c = 0u; c < 4u; ++c) {
        uint key = begin + lane_key + i * 4u + c;
        uint at = mask_base + min(key, P.keys - 1u) * P.mask_key_stride;
        if (has_mask) mask[i][c] = LOAD(mask_data[at]);
        if (has_tail && key >= P.keys) mask[i][c] = om_float(OM_INFINITY_BITS | OM_SIGN_BIT);
      }
    }

    [[unroll]] for (uint n = 0u; n < uint(FRAGS_K); ++n) {
      MATRIX_SUM whole = MATRIX_SUM(0.0);
#if !HALF
      MATRIX_SUM left = MATRIX_SUM(0.0);
      MATRIX_SUM right = MATRIX_SUM(0.0);
#endif
      [[unroll]] for (uint k = 0u; k < uint(FRAGS_H); ++k) {
        MATRIX_B k_high;
        uint at = (warp_key + n * 16u) * uint(STRIDE) + k * 2u;
        coopMatLoad(k_high, tile, at, uint(STRIDE), gl_CooperativeMatrixLayoutColumnMajor);
#if !HALF
        MATRIX_B k_low;
        coopMatLoad(k_low, tile, at + uint(PLANE), uint(STRIDE),
                    gl_CooperativeMatrixLayoutColumnMajor);
        left = coopMatMulAdd(q_low[k], k_high, left);
        right = coopMatMulAdd(q_high[k], k_low, right);
#endif
        whole = coopMatMulAdd(q_high[k], k_high, whole);
      }
#if !HALF
      whole = whole + (left + right);
#endif
      coopMatStore(whole, tile, area + n * 4u, uint(SCORE_STRIDE),
                   gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroupBarrier();

    float k_factor = factor_of(all.largest.x);
    vec4 powers[LANE_QUADS];
    float highest = best;
    [[unroll]] for (uint i = 0u; i < uint(LANE_QUADS); ++i) {
      uint at = area + lane / 2u * uint(SCORE_STRIDE) + lane % 2u * uint(LANE_QUADS) + i;
      vec4 score = uintBitsToFloat(tile[at]) * q_factor * k_factor;
      powers[i] = selects ? mix(mask[i], score, equal(mask[i], vec4(0.0))) : score + mask[i];
      highest = max(highest, max(max(powers[i].x, powers[i].y), max(powers[i].z, powers[i].w)));
    }
    highest = max(highest, subgroupShuffleXor(highest, 1u));
    float factor = 1.0;
    if (highest > best + SLACK) {
      factor = exp(best - highest);
      best = highest;
    }
    subgroupBarrier();
    if (subgroupAny(factor != 1.0)) {
      uint at = area + lane / 2u * uint(FACTOR_STRIDE) + lane % 2u * 2u;
      tile[at] = uvec4(floatBitsToUint(factor));
      tile[at + 1u] = uvec4(floatBitsToUint(factor));
      subgroupBarrier();
      MATRIX_SUM factors;
      coopMatLoad(factors, tile, area, uint(FACTOR_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
      [[unroll]] for (uint n = 0u; n < uint(FRAGS_H); ++n) result[n] = result[n] * factors;
      sum *= factor;
      subgroupBarrier();
    }
    [[unroll]] for (uint i = 0u; i < uint(LANE_QUADS); ++i) {
      powers[i] = exp2((powers[i] - vec4(best)) * LOG2_E + vec4(POWER_EXPONENT));
      sum += (powers[i].x + powers[i].y) + (powers[i].z + powers[i].w);
    }
    [[unroll]] for (uint i = 0u; i < uint(LANE_QUADS / 2); ++i) {
      uint at = area + lane / 2u * uint(POWER_STRIDE) + lane % 2u * uint(LANE_QUADS / 2) + i;
      put_powers(at, powers[2u * i], powers[2u * i + 1u]);
    }
    subgroupBarrier();

    MATRIX_A p_high[FRAGS_K];
#if !HALF
    MATRIX_A p_low[FRAGS_K];
#endif
    [[unroll]] for (uint k = 0u; k < uint(FRAGS_K); ++k) {
      uint at = area + k * 2u;
      coopMatLoad(p_high[k], tile, at, uint(POWER_STRIDE), gl_CooperativeMatrixLayoutRowMajor);
#if !HALF
      coopMatLoad(p_low[k], tile, at + uint(POWER_PLANE), uint(POWER_STRIDE),
                  gl_CooperativeMatrixLayoutRowMajor);
#endif
    }
    float v_factor = factor_of(all.largest.y);
    [[unroll]] for (uint n = 0u; n < uint(FRAGS_H); ++n) {
#if HALF
      MATRIX_SUM whole = result[n];
#else
      MATRIX_SUM whole = MATRIX_SUM(0.0);
      MATRIX_SUM parts = MATRIX_SUM(0.0);
#endif
      [[unroll]] for (uint k = 0u; k < uint(FRAGS_K); ++k) {
        MATRIX_B v_high;
        uint at = uint(V_BEGIN) + (warp_key + k * 16u) * uint(STRIDE) + n * 2u;
        coopMatLoad(v_high, tile, at, uint(STRIDE), gl_CooperativeMatrixLayoutRowMajor);
#if !HALF
        MATRIX_B v_low;
        coopMatLoad(v_low, tile, at + uint(PLANE), uint(STRIDE),
                    gl_CooperativeMatrixLayoutRowMajor);
        parts = coopMatMulAdd(p_low[k], v_high, parts);
        parts = coopMatMulAdd(p_high[k], v_low, parts);
#endif
        whole = coopMatMulAdd(p_high[k], v_high, whole);
      }
#if HALF
      result[n] = whole;
#else
      result[n] = result[n] + (whole + parts) * v_factor;
#endif
    }
  }

  // Results by way of shared memory, where the place of each is known.
  sum += subgroupShuffleXor(sum, 1u);
  if (lane % 2u == 0u) row_sums[warp * 16u + lane / 2u] = vec2(best, sum);
  barrier();
  [[unroll]] for (uint n = 0u; n < uint(FRAGS_H); ++n) {
    coopMatStore(result[n], tile, warp * uint(RESULT_UNITS) + n * 4u, uint(RESULT_STRIDE),
                 gl_CooperativeMatrixLayoutRowMajor);
  }
  barrier();
  uint width_quads = P.width / 4u;
  for (uint i = thread; i < uint(ROWS) * width_quads; i += uint(THREADS)) {
    uint r = i / width_quads;
    uint quad = i % width_quads;
    uint first = r / 16u * uint(WARPS_N);
    float top = row_sums[first * 16u + r % 16u].x;
    [[unroll]] for (uint w = 1u; w < uint(WARPS_N); ++w) {
      top = max(top, row_sums[(first + w) * 16u + r % 16u].x);
    }
    float total = 0.0;
    vec4 value = vec4(0.0);
    [[unroll]] for (uint w = 0u; w < uint(WARPS_N); ++w) {
      vec2 of_warp = row_sums[(first + w) * 16u + r % 16u];
      float factor = exp(of_warp.x - top);
      uint at = (first + w) * uint(RESULT_UNITS) + r % 16u * uint(RESULT_STRIDE) + quad;
      total += of_warp.y * factor;
      value += uintBitsToFloat(tile[at]) * factor;
    }
    // A row with a key to see has a sum above 0.
    value = value / vec4(total);
    if ((flags & uint(OM_ATTENTION_ZEROES_NAN)) != 0u && !(total > 0.0)) value = vec4(0.0);
    if (row_begin + r < P.rows) {
      y_data[y_base + (row_begin + r) * (P.y_row_stride / 4u) + quad] = STORE4(value);
    }
  }
}
