// Convolutions on matrix hardware, whose weights are a constant: an implicit product
//
//     weights [channel][term]  x  windows [term][column]  ->  [image][channel][pixel]
//
// A column is a pixel of the result; columns go on from image to image. Terms come in pieces of 16:
// 16 channels of a tap, taps in turn (the last channels' piece is filled up with zeros), or, in the
// mixed variants, for few channels, 16 terms as the weights have them: channel, then tap.
//
// Matrix hardware takes float16 and sums in float32. Of float16 that is all. A float32 is split into
// two float16, the value rounded and what that left off; three products of such parts make one. The
// weights come split, each channel scaled by a power of two so that its largest has the exponent
// 14: a table of the channels' factors as floats, then for each piece and channel two units of 8
// highs and two of 8 lows. The windows are split on their way to shared memory, times 16: the two
// parts keep 20 bits and more of what is near the tile's largest value, where that lies in 2^-8 ..
// 2^11. Where it turns out not to, the tile's largest number is found and the tile is made again with
// a power of two of its own. An infinity is a low part beside a high part of zero then: only
// one product sees it. Matrix hardware may cut off, not round, what does not fit where it adds: a
// piece has sums of its own, the low parts first, and ordinary additions add the pieces.
//
// A workgroup makes TILE_M channels by TILE_P columns. Its teams (SLICES of them) take steps of STEP
// terms in turn; a team of WARPS_M by WARPS_P subgroups of 32 makes the whole tile for its terms. An
// invocation gathers the windows of one column. While a step is multiplied, the next one's data are
// on their way. At the end the slices are added in order. Where there are few tiles the terms are
// split among workgroups, and conv_sum.comp adds their sums, which are float32 (_split).
//
//! kernel conv_matrix_64x64               target=vulkan1.3 TILE_M=64 TILE_P=64 WARPS_M=2 WARPS_P=2 SLICES=1 STEP=16
//! kernel conv_matrix_64x32               target=vulkan1.3 TILE_M=64 TILE_P=32 WARPS_M=1 WARPS_P=1 SLICES=4 STEP=16
//! kernel conv_matrix_32x64               target=vulkan1.3 TILE_M=32 TILE_P=64 WARPS_M=1 WARPS_P=2 SLICES=2 STEP=16
//! kernel conv_matrix_32x32               target=vulkan1.3 TILE_M=32 TILE_P=32 WARPS_M=1 WARPS_P=1 SLICES=4 STEP=32
//! kernel conv_matrix_16x64               target=vulkan1.3 TILE_M=16 TILE_P=64 WARPS_M=1 WARPS_P=2 SLICES=2 STEP=16
//! kernel conv_matrix_mixed               target=vulkan1.3 TILE_M=64 TILE_P=64 WARPS_M=2 WARPS_P=2 SLICES=1 STEP=16 MIXED=1
//! kernel conv_matrix_64x64_half          target=vulkan1.3 TILE_M=64 TILE_P=64 WARPS_M=2 WARPS_P=2 SLICES=1 STEP=32 HALF=1
//! kernel conv_matrix_64x32_half          target=vulkan1.3 TILE_M=64 TILE_P=32 WARPS_M=1 WARPS_P=1 SLICES=4 STEP=32 HALF=1
//! kernel conv_matrix_32x64_half          target=vulkan1.3 TILE_M=32 TILE_P=64 WARPS_M=1 WARPS_P=2 SLICES=2 STEP=32 HALF=1
//! kernel conv_matrix_32x32_half          target=vulkan1.3 TILE_M=32 TILE_P=32 WARPS_M=1 WARPS_P=1 SLICES=4 STEP=32 HALF=1
//! kernel conv_matrix_16x64_half          target=vulkan1.3 TILE_M=16 TILE_P=64 WARPS_M=1 WARPS_P=2 SLICES=2 STEP=32 HALF=1
//! kernel conv_matrix_mixed_half          target=vulkan1.3 TILE_M=64 TILE_P=64 WARPS_M=2 WARPS_P=2 SLICES=1 STEP=32 MIXED=1 HALF=1
//! kernel conv_matrix_64x64_split_half    target=vulkan1.3 TILE_M=64 TILE_P=64 WARPS_M=2 WARPS_P=2 SLICES=1 STEP=32 HALF=1 SPLIT=1
//! kernel conv_matrix_64x32_split_half    target=vulkan1.3 TILE_M=64 TILE_P=32 WARPS_M=1 WARPS_P=1 SLICES=4 STEP=32 HALF=1 SPLIT=1
//! kernel conv_matrix_32x64_split_half    target=vulkan1.3 TILE_M=32 TILE_P=64 WARPS_M=1 WARPS_P=2 SLICES=2 STEP=32 HALF=1 SPLIT=1
//! kernel conv_matrix_32x32_split_half    target=vulkan1.3 TILE_M=32 TILE_P=32 WARPS_M=1 WARPS_P=1 SLICES=4 STEP=32 HALF=1 SPLIT=1
//! kernel conv_matrix_16x64_split_half    target=vulkan1.3 TILE_M=16 TILE_P=64 WARPS_M=1 WARPS_P=2 SLICES=2 STEP=32 HALF=1 SPLIT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifndef SPLIT
#  define OM_CHAIN
#  define CHAIN_BASE 3
#  define CHAIN_BINDING 3
#endif
#include "common/om_shader.glsl"
#include "abi/conv_matrix_params.h"
#ifdef SPLIT
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
#define PIECE 16                   // terms
#define TEAM_WARPS (WARPS_M * WARPS_P)
#define TEAM_THREADS (TEAM_WARPS * 32)
#define THREADS (TEAM_THREADS * SLICES)
#define WARP_ROWS (TILE_M / WARPS_M)
#define WARP_COLS (TILE_P / WARPS_P)
#define FRAGS_M (WARP_ROWS / 16)
#define FRAGS_P (WARP_COLS / 16)
#define STEP_PIECES (STEP / PIECE)
layout(local_size_x = THREADS) in;

OM_CONSTANT(0, KERNEL_H, 1)
OM_CONSTANT(1, KERNEL_W, 1)
OM_CONSTANT(2, IS_WHOLE, 0)        // the channels are a multiple of 8

layout(set = 0, binding = 0, std430) readonly buffer Input { ELEMENT input_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer Weights { uvec4 weights[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Output { RESULT output_data[]; };

// Shared memory counts units of 16 bytes: 8 halves, or 4 floats. A stage of a team holds the weights
// by channels, then the windows by columns, highs and lows each; a unit more a row puts rows in
// different banks. A team of one subgroup needs one stage, others two. At the end it holds results.
#define ROW_UNITS (STEP / 8 + 1)
#define W_PLANE (TILE_M * ROW_UNITS)
#define X_BEGIN (PARTS * W_PLANE)
#define X_PLANE (TILE_P * ROW_UNITS)
#define STAGE_UNITS (X_BEGIN + PARTS * X_PLANE)
#if TEAM_WARPS > 1
#  define STAGES 2
#  define STEP_BARRIER barrier()
#else
#  define STAGES 1
#  define STEP_BARRIER subgroupBarrier()
#endif
#define RESULT_UNITS (WARP_COLS / 4 + 1) // of a row
#define WARP_RESULT_UNITS (WARP_ROWS * RESULT_UNITS)
#define TEAM_RESULT_UNITS (TEAM_WARPS * WARP_RESULT_UNITS)
#if STAGES * STAGE_UNITS > TEAM_RESULT_UNITS
#  define TEAM_UNITS (STAGES * STAGE_UNITS)
#else
#  define TEAM_UNITS TEAM_RESULT_UNITS
#endif
shared uvec4 tile[SLICES * TEAM_UNITS];

#define A_FRAGMENT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define B_FRAGMENT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define NO_SUMS SUMS(0.0)
#define EACH_SUM [[unroll]] for (uint i = 0u; i < uint(FRAGS_M * FRAGS_P); ++i)

// What an invocation brings: octets of its column's terms, units of weights; where the latter do not come
// out even the last is not for all.
#define X_OCTETS (TILE_P * STEP / 8 / TEAM_THREADS)
#define X_OCTET(i) (thread / uint(TILE_P) + (i) * uint(TEAM_THREADS / TILE_P))
#define PIECE_UNITS (TILE_M * 2 * PARTS)
#define W_COUNT (STEP_PIECES * PIECE_UNITS)
#define W_UNITS ((W_COUNT + TEAM_THREADS - 1) / TEAM_THREADS)
#define W_UNIT(i) (thread + (i) * uint(TEAM_THREADS))
#define HAS_W(i) (W_COUNT % TEAM_THREADS == 0 || W_UNIT(i) < uint(W_COUNT))

#if HALF
#  define FIRST_UNIT 0u
#else
#  define FIRST_UNIT (P.weight_rows / 4u) // behind the channels' factors
#  define WINDOW_SCALE 16.0

const uint INFINITY_BITS = 0x7f800000u;
shared uint largest_bits;          // of the tile's windows, as magnitudes

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
#endif

// The column of an invocation.
uint column_base;                  // of its image, in elements of the input
int column_y;                      // of its first tap
int column_x;

void locate(uint column) {
  uint image = column / P.pixels;
  uint pixel = column - image * P.pixels;
  uint row = pixel / P.out_w;
  column_base = image * P.in_channels * P.in_h * P.in_w;
  column_y = int(row * P.stride_h) - int(P.pad_h);
  column_x = int((pixel - row * P.out_w) * P.stride_w) - int(P.pad_w);
}

// The element of a tap, from the beginning of its plane; false outside.
bool find_tap(uint tap, out uint at) {
  uint kernel_w = KERNEL_W;
  uint ky = tap / kernel_w;
  uint y = uint(column_y + int(ky * P.dilation_h));
  uint x = uint(column_x + int((tap - ky * kernel_w) * P.dilation_w));
  at = y * P.in_w + x;
  return ky < KERNEL_H && y < P.in_h && x < P.in_w;
}

// Eight terms, without branches, so that the loads go out together; a mask says what is kept of them.
#ifdef MIXED
#define FETCH_OCTET(i, piece)                                                            \
  {                                                                                      \
    uint plane = P.in_h * P.in_w;                                                        \
    uint taps = KERNEL_H * KERNEL_W;                                                     \
    x_mask[i] = 0u;                                                                      \
    [[unroll]] for (uint j = 0u; j < 8u; ++j) {                                          \
      uint term = (piece) * uint(PIECE) + X_OCTET(i) * 8u + j;                           \
      uint channel = term / taps;                                                        \
      uint at;                                                                           \
      bool is_inside = find_tap(term - channel * taps, at) && channel < P.in_channels;   \
      x_mask[i] |= uint(is_inside) << j;                                                 \
      x_next[(i) * 8u + j] = input_data[is_inside ? column_base + channel * plane + at : 0u]; \
    }                                                                                    \
  }
#else
#define FETCH_OCTET(i, piece)                                                            \
  {                                                                                      \
    uint plane = P.in_h * P.in_w;                                                        \
    uint own = (piece) + X_OCTET(i) / 2u;                                                \
    uint tap = own * P.tap_inverse >> 20u;                                               \
    uint channel = (own - tap * P.tap_pieces) * uint(PIECE) + X_OCTET(i) % 2u * 8u;      \
    uint at;                                                                             \
    bool is_inside = find_tap(tap, at) && channel < P.in_channels;                       \
    at = is_inside ? column_base + channel * plane + at : 0u;                            \
    uint count = is_inside ? min(P.in_channels - channel, 8u) : 0u;                      \
    uint last = is_inside ? count - 1u : 0u;                                             \
    x_mask[i] = (1u << count) - 1u;                                                      \
    [[unroll]] for (uint j = 0u; j < 8u; ++j) {                                          \
      uint k = is_whole ? j : min(j, last);                                              \
      x_next[(i) * 8u + j] = input_data[at + k * plane];                                 \
    }                                                                                    \
  }
#endif
#define IS_KEPT(i, j) (is_whole ? x_mask[i] != 0u : (x_mask[i] >> (j) & 1u) != 0u)

#define FETCH(piece)                                                                     \
  {                                                                                      \
    uint first_piece = piece;                                                            \
    [[unroll]] for (uint i = 0u; i < uint(X_OCTETS); ++i) FETCH_OCTET(i, first_piece)    \
    [[unroll]] for (uint i = 0u; i < uint(W_UNITS); ++i) {                               \
      uint unit = min(W_UNIT(i), uint(W_COUNT - 1));                                     \
      uint own = min(first_piece + unit / uint(PIECE_UNITS), P.piece_count);              \
      uint row = own * P.weight_rows + first_channel;                                    \
      w_next[i] = weights[FIRST_UNIT + row * uint(2 * PARTS) + unit % uint(PIECE_UNITS)]; \
    }                                                                                    \
  }

uint result_at(uint unit, uint column) {
  return tile[unit + column / 4u][column & 3u];
}

// A result, ready to be stored.
RESULT finish(uint channel, uint element, float sum, float factor) {
#if HALF
  float value = sum;
#else
  float value = sum * (factor * uintBitsToFloat(weights[channel / 4u][channel & 3u]));
#endif
#ifdef SPLIT
  return value;
#else
  return STORE(chain_apply_channel(value, element, channel));
#endif
}

void main() {
  uint group = om_group_index();
  if (group >= P.group_count) return;
  uint split = group / P.tile_count;
  uint first_channel = group % P.tile_count % P.channel_tiles * uint(TILE_M);
  uint first_column = group % P.tile_count / P.channel_tiles * uint(TILE_P);
  uint slice = gl_SubgroupID / uint(TEAM_WARPS);
  uint warp = gl_SubgroupID % uint(TEAM_WARPS);
  uint lane = gl_SubgroupInvocationID;
  uint thread = warp * 32u + lane;
  uint warp_row = warp / uint(WARPS_P) * uint(WARP_ROWS);
  uint warp_col = warp % uint(WARPS_P) * uint(WARP_COLS);
  uint area = slice * uint(TEAM_UNITS);
  uint is_whole_word = IS_WHOLE;
  bool is_whole = is_whole_word != 0u;
  uint begin = (split * P.round_count * uint(SLICES) + slice) * uint(STEP_PIECES);

  // Columns past the end repeat the last; no result shows them.
  locate(min(first_column + thread % uint(TILE_P), P.columns - 1u));

  SUMS sums[FRAGS_M * FRAGS_P];
  ELEMENT x_next[X_OCTETS * 8];
  uint x_mask[X_OCTETS];
  uvec4 w_next[W_UNITS];
#if !HALF
  float scale = WINDOW_SCALE;
  float largest = 0.0;
  uint attempt = 0u;               // 1: finds the tile's largest number, 2: with a scale of its own
  if (gl_LocalInvocationIndex == 0u) largest_bits = 0u;
#endif

  for (;;) {
    EACH_SUM sums[i] = NO_SUMS;
    // Round r gathers its step, multiplies the step of the round before, and keeps its own.
    for (uint round = 0u; round <= P.round_count; ++round) {
      if (round < P.round_count) FETCH(begin + round * uint(STEP_PIECES * SLICES))
      uint stage = area + round % uint(STAGES) * uint(STAGE_UNITS);
      uint stage_before = area + (round + 1u) % uint(STAGES) * uint(STAGE_UNITS);
#if HALF
      if (round != 0u) {
#else
      if (round != 0u && attempt != 1u) {
#endif
        [[unroll]] for (uint k = 0u; k < uint(STEP_PIECES); ++k) {
          A_FRAGMENT a[FRAGS_M * PARTS];
          B_FRAGMENT b[FRAGS_P * PARTS];
          [[unroll]] for (uint i = 0u; i < uint(FRAGS_M * PARTS); ++i) {
            uint at = stage_before + i % uint(PARTS) * uint(W_PLANE) + k * 2u +
                      (warp_row + i / uint(PARTS) * 16u) * uint(ROW_UNITS);
            coopMatLoad(a[i], tile, at, uint(ROW_UNITS), gl_CooperativeMatrixLayoutRowMajor);
          }
          [[unroll]] for (uint i = 0u; i < uint(FRAGS_P * PARTS); ++i) {
            uint at = stage_before + uint(X_BEGIN) + i % uint(PARTS) * uint(X_PLANE) + k * 2u +
                      (warp_col + i / uint(PARTS) * 16u) * uint(ROW_UNITS);
            coopMatLoad(b[i], tile, at, uint(ROW_UNITS), gl_CooperativeMatrixLayoutColumnMajor);
          }
#define M (i / uint(FRAGS_P) * uint(PARTS))
#define N (i % uint(FRAGS_P) * uint(PARTS))
#if HALF
          EACH_SUM sums[i] = coopMatMulAdd(a[M], b[N], sums[i]);
#else
          SUMS own[FRAGS_M * FRAGS_P];
          EACH_SUM own[i] = coopMatMulAdd(a[M], b[N + 1u], NO_SUMS);
          EACH_SUM own[i] = coopMatMulAdd(a[M + 1u], b[N], own[i]);
          EACH_SUM sums[i] += coopMatMulAdd(a[M], b[N], own[i]);
#endif
        }
      }
      if (round == P.round_count) break;
#if STAGES == 1
      STEP_BARRIER;                // nobody reads the last step's data any more
#endif
      [[unroll]] for (uint i = 0u; i < uint(X_OCTETS); ++i) {
        uint at = stage + uint(X_BEGIN) + thread % uint(TILE_P) * uint(ROW_UNITS) + X_OCTET(i);
#if HALF
        f16vec4 p = f16vec4(x_next[i * 8u], x_next[i * 8u + 1u], x_next[i * 8u + 2u], x_next[i * 8u + 3u]);
        f16vec4 q = f16vec4(x_next[i * 8u + 4u], x_next[i * 8u + 5u], x_next[i * 8u + 6u], x_next[i * 8u + 7u]);
        uvec4 halves = uvec4(packFloat2x16(p.xy), packFloat2x16(p.zw), packFloat2x16(q.xy), packFloat2x16(q.zw));
        if (is_whole) {
          if (x_mask[i] == 0u) halves = uvec4(0u);
        } else {
          uvec4 bits = (uvec4(x_mask[i]) >> uvec4(0u, 2u, 4u, 6u)) & 3u;
          halves &= (bits & 1u) * 0xffffu | (bits >> 1u) * 0xffff0000u;
        }
        tile[at] = halves;
#else
        vec4 p, q;
        [[unroll]] for (uint j = 0u; j < 4u; ++j) {
          p[j] = IS_KEPT(i, j) ? x_next[i * 8u + j] : 0.0;
          q[j] = IS_KEPT(i, j + 4u) ? x_next[i * 8u + j + 4u] : 0.0;
        }
        if (attempt == 1u) {
          p = mix(vec4(0.0), p, are_numbers(p));
          q = mix(vec4(0.0), q, are_numbers(q));
        }
        vec4 magnitudes = max(abs(p), abs(q));
        largest = max(largest, max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w)));
        p *= scale;
        q *= scale;
        uvec4 highs = uvec4(pack(p.xy), pack(p.zw), pack(q.xy), pack(q.zw));
        if (attempt == 2u) {
          vec4 p_high = mix(vec4(0.0), unpack(highs.xy), are_numbers(p));
          vec4 q_high = mix(vec4(0.0), unpack(highs.zw), are_numbers(q));
          highs = uvec4(pack(p_high.xy), pack(p_high.zw), pack(q_high.xy), pack(q_high.zw));
        }
        p -= unpack(highs.xy);
        q -= unpack(highs.zw);
        tile[at] = highs;
        tile[at + uint(X_PLANE)] = uvec4(pack(p.xy), pack(p.zw), pack(q.xy), pack(q.zw));
#endif
      }
      [[unroll]] for (uint i = 0u; i < uint(W_UNITS); ++i) {
        uint piece = W_UNIT(i) / uint(PIECE_UNITS);
        uint unit = W_UNIT(i) % uint(PIECE_UNITS);
        uint at = stage + unit / 2u % uint(PARTS) * uint(W_PLANE) +
                  unit / uint(2 * PARTS) * uint(ROW_UNITS) + piece * 2u + unit % 2u;
        if (HAS_W(i)) tile[at] = w_next[i];
      }
      STEP_BARRIER;
    }
    barrier();
#if HALF
    break;
#else
    if (attempt == 2u) break;
    atomicMax(largest_bits, floatBitsToUint(largest));
    barrier();
    float most = uintBitsToFloat(largest_bits);
    if (attempt == 0u && (most == 0.0 || (most >= 1.0 / 256.0 && most <= 2048.0))) break;
    barrier();
    largest = 0.0;
    if (gl_LocalInvocationIndex == 0u) largest_bits = 0u;
    barrier();
    if (attempt == 1u) {
      // The largest number's exponent becomes 14, where the scale is a number.
      uint exponent = clamp(floatBitsToUint(most) >> 23u, 29u, 254u);
      scale = uintBitsToFloat((min(268u - exponent, 254u)) << 23u);
    }
    attempt += 1u;
#endif
  }

  // Results by way of shared memory, where the place of each is known. An invocation has a column.
#if HALF
  float factor = 1.0;
#else
  float factor = 1.0 / 16384.0 / scale;
#endif
  EACH_SUM {
    uint at = area + warp * uint(WARP_RESULT_UNITS) + i / uint(FRAGS_P) * uint(16 * RESULT_UNITS) +
              i % uint(FRAGS_P) * 4u;
    coopMatStore(sums[i], tile, at, uint(RESULT_UNITS), gl_CooperativeMatrixLayoutRowMajor);
  }
  barrier();
  uint index = slice * uint(TEAM_THREADS) + thread;
  uint col = index % uint(TILE_P);
  uint column = first_column + col;
  uint image = column / P.pixels;
  uint element = image * (P.out_channels * P.pixels) + column - image * P.pixels;
  uint col_unit = col / uint(WARP_COLS) * uint(WARP_RESULT_UNITS);
  uint sums_begin = split * (P.out_channels * P.columns);
#define ROW_STEP uint(THREADS / TILE_P)
#define BATCH 8u                   // rows whose operands are read before the first is stored: loads do
                                   // not pass stores
  if (column < P.columns) {
    for (uint first = index / uint(TILE_P); first < uint(TILE_M); first += BATCH * ROW_STEP) {
      RESULT results[BATCH];
      [[unroll]] for (uint i = 0u; i < BATCH; ++i) {
        uint row = first + i * ROW_STEP;
        uint channel = min(first_channel + row, P.out_channels - 1u);
        uint at = row / uint(WARP_ROWS) * uint(WARPS_P * WARP_RESULT_UNITS) + col_unit +
                  row % uint(WARP_ROWS) * uint(RESULT_UNITS);
        float sum = 0.0;
        [[unroll]] for (uint s = 0u; s < uint(SLICES); ++s) {
          sum += uintBitsToFloat(result_at(s * uint(TEAM_UNITS) + at, col % uint(WARP_COLS)));
        }
        results[i] = finish(channel, element + channel * P.pixels, sum, factor);
      }
      [[unroll]] for (uint i = 0u; i < BATCH; ++i) {
        uint channel = first_channel + first + i * ROW_STEP;
        if (channel < P.out_channels) {
          output_data[sums_begin + element + channel * P.pixels] = results[i];
        }
      }
    }
  }
}
