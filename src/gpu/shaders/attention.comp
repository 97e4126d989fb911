// Attention: softmax(scale * Q K + mask) V, in one pass, strided operands. A mask may also take the
// place of scores (OM_ATTENTION_SELECTS).
//
// A workgroup of 128 invocations makes ROWS = 16 * PER rows of one element of the batch, 32 * PIECES
// columns of them, going over the keys in tiles of 32 and over depth and width in pieces of 32. An
// invocation holds four neighbouring keys (then four neighbouring columns of the result, in each of
// PIECES pieces) of PER rows that lie 16 apart. What a product reads is fetched into registers while
// the product before is computed.
//
// It keeps a running largest and a running sum; what was summed so far is scaled down as the largest
// grows. Exact mode has kernels of its own (attention_product.comp, attention_softmax.comp).
//
// SPLIT: a workgroup takes a chunk of the keys, and stores its sums, not yet divided, with the
// largest score and the sum of exponentials behind each row; attention_merge.comp joins them.
//
//! kernel attention_rows16_32         PER=1 PIECES=1
//! kernel attention_rows16_64         PER=1 PIECES=2
//! kernel attention_rows16_128        PER=1 PIECES=4
//! kernel attention_rows16_256        PER=1 PIECES=8
//! kernel attention_rows32_32         PER=2 PIECES=1
//! kernel attention_rows32_64         PER=2 PIECES=2
//! kernel attention_rows32_128        PER=2 PIECES=4
//! kernel attention_rows64_32         PER=4 PIECES=1
//! kernel attention_rows64_64         PER=4 PIECES=2
//! kernel attention_split_32          PER=1 PIECES=1 SPLIT=1
//! kernel attention_split_64          PER=1 PIECES=2 SPLIT=1
//! kernel attention_split_128         PER=1 PIECES=4 SPLIT=1
//! kernel attention_split_256         PER=1 PIECES=8 SPLIT=1
//! kernel attention_rows16_32_half         PER=1 PIECES=1 HALF=1
//! kernel attention_rows16_64_half         PER=1 PIECES=2 HALF=1
//! kernel attention_rows16_128_half        PER=1 PIECES=4 HALF=1
//! kernel attention_rows16_256_half        PER=1 PIECES=8 HALF=1
//! kernel attention_rows32_32_half         PER=2 PIECES=1 HALF=1
//! kernel attention_rows32_64_half         PER=2 PIECES=2 HALF=1
//! kernel attention_rows32_128_half        PER=2 PIECES=4 HALF=1
//! kernel attention_rows64_32_half         PER=4 PIECES=1 HALF=1
//! kernel attention_rows64_64_half         PER=4 PIECES=2 HALF=1
//! kernel attention_split_32_half          PER=1 PIECES=1 SPLIT=1 HALF=1
//! kernel attention_split_64_half          PER=1 PIECES=2 SPLIT=1 HALF=1
//! kernel attention_split_128_half         PER=1 PIECES=4 SPLIT=1 HALF=1
//! kernel attention_split_256_half         PER=1 PIECES=8 SPLIT=1 HALF=1
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common/om_shader.glsl"
#include "abi/attention_params.h"

#define THREADS 128
#define ROWS (16 * PER)
#define PIECE 32u
layout(local_size_x = THREADS) in;

OM_CONSTANT(0, FLAGS, 0)           // OM_ATTENTION_...
OM_CONSTANT(1, Q_OFFSET, 0)
OM_CONSTANT(2, K_OFFSET, 0)
OM_CONSTANT(3, V_OFFSET, 0)
OM_CONSTANT(4, Q_DEPTH_STRIDE, 1)
OM_CONSTANT(5, V_COL_STRIDE, 1)
OM_CONSTANT(6, Y_COL_STRIDE, 1)

layout(set = 0, binding = 0, std430) readonly buffer Q { ELEMENT q_data[]; };
layout(set = 0, binding = 1, std430) readonly buffer K { ELEMENT k_data[]; };
layout(set = 0, binding = 2, std430) readonly buffer V { ELEMENT v_data[]; };
layout(set = 0, binding = 3, std430) readonly buffer Mask { ELEMENT mask_data[]; };
#ifdef SPLIT
#  define RESULT float              // sums, which attention_merge.comp rounds
#  define STORE_RESULT(value) (value)
#else
#  define RESULT ELEMENT
#  define STORE_RESULT(value) STORE(value)
#endif
layout(set = 0, binding = 4, std430) writeonly buffer Y { RESULT y_data[]; };

// Quads are turned by row (term), so that what is read at once lies in different banks.
shared vec4 left_tile[ROWS * 8];    // a piece of Q, or probabilities, by rows
shared vec4 right_tile[32 * 8];     // a piece of K or V, by terms
shared float row_values[ROWS * 8];

struct place {
  uint thread, lane, row; // row: the first of the invocation's, in the workgroup
  uint row_begin;         // of the workgroup
  uint col_begin;         // of the result
  uint q_base, k_base, v_base, mask_base, y_base;
};

uint left_slot(uint row, uint quad) {
  return row * 8u + (quad ^ (row & 7u));
}

uint right_slot(uint term, uint quad) {
  return term * 8u + (quad ^ (term & 7u));
}

float scaled(float value, uint kind, float by) {
  float result = value;
  if (kind == 1u) result = value * by;
  if (kind == 2u) result = value / by;
  return result;
}

// What an invocation loads for one product, while the one before is computed: quads of Q, and of
// K or V.
struct fetched {
  vec4 left[PER];
  vec4 right[2];
};

vec4 fetch_q(place p, uint row, uint k) {
  uint flags = FLAGS;
  uint stride = Q_DEPTH_STRIDE;
  uint kind = (flags >> OM_ATTENTION_Q_SCALE_AT) & 3u;
  vec4 value = vec4(0.0);
  if (p.row_begin + row < P.rows && k < P.depth) {
    uint at = p.q_base + (p.row_begin + row) * P.q_row_stride + k * stride;
    value.x = scaled(LOAD(q_data[at]), kind, P.q_scale);
    if (k + 1u < P.depth) value.y = scaled(LOAD(q_data[at + stride]), kind, P.q_scale);
    if (k + 2u < P.depth) value.z = scaled(LOAD(q_data[at + 2u * stride]), kind, P.q_scale);
    if (k + 3u < P.depth) value.w = scaled(LOAD(q_data[at + 3u * stride]), kind, P.q_scale);
  }
  return value;
}

// Four neighbouring keys of one term; neighbouring invocations read what lies side by side.
uint k_term(uint index) {
  return P.k_key_stride == 1u ? index / 8u : index % 32u;
}

uint k_quad(uint index) {
  return P.k_key_stride == 1u ? index % 8u : index / 32u;
}

vec4 fetch_k(place p, uint key, uint term) {
  uint flags = FLAGS;
  uint kind = (flags >> OM_ATTENTION_K_SCALE_AT) & 3u;
  vec4 value = vec4(0.0);
  if (term < P.depth && key < P.keys) {
    uint at = p.k_base + term * P.k_depth_stride + key * P.k_key_stride;
    value.x = scaled(LOAD(k_data[at]), kind, P.k_scale);
    if (key + 1u < P.keys) value.y = scaled(LOAD(k_data[at + P.k_key_stride]), kind, P.k_scale);
    if (key + 2u < P.keys) value.z = scaled(LOAD(k_data[at + 2u * P.k_key_stride]), kind, P.k_scale);
    if (key + 3u < P.keys) value.w = scaled(LOAD(k_data[at + 3u * P.k_key_stride]), kind, P.k_scale);
  }
  return value;
}

vec4 fetch_v(place p, uint key, uint col) {
  uint stride = V_COL_STRIDE;
  vec4 value = vec4(0.0);
  if (key < P.keys && col < P.width) {
    uint at = p.v_base + key * P.v_key_stride + col * stride;
    value.x = LOAD(v_data[at]);
    if (col + 1u < P.width) value.y = LOAD(v_data[at + stride]);
    if (col + 2u < P.width) value.z = LOAD(v_data[at + 2u * stride]);
    if (col + 3u < P.width) value.w = LOAD(v_data[at + 3u * stride]);
  }
  return value;
}

// For a product of Q and K, of the piece of the depth from `begin` on.
void fetch_q_k(place p, uint key_begin, uint begin, inout fetched next) {
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) {
    next.left[i] = fetch_q(p, p.row + i * 16u, begin + p.lane * 4u);
  }
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    uint index = p.thread + i * uint(THREADS);
    next.right[i] = fetch_k(p, key_begin + k_quad(index) * 4u, begin + k_term(index));
  }
}

// For a product with V, of the piece of its columns from `begin` on.
void fetch_keys_of_v(place p, uint key_begin, uint begin, inout fetched next) {
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    next.right[i] = fetch_v(p, key_begin + p.row + i * 16u, begin + p.lane * 4u);
  }
}

void put_q_k(place p, fetched next) {
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) {
    left_tile[left_slot(p.row + i * 16u, p.lane)] = next.left[i];
  }
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    uint index = p.thread + i * uint(THREADS);
    right_tile[right_slot(k_term(index), k_quad(index))] = next.right[i];
  }
}

void put_v(place p, fetched next) {
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    right_tile[right_slot(p.row + i * 16u, p.lane)] = next.right[i];
  }
}

// Adds `terms` (at most 32) terms of the two tiles to the sums, in order.
void multiply(place p, uint terms, inout vec4 result[PER]) {
  vec4 sum[PER];
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) sum[i] = result[i];
  for (uint quad = 0u; quad * 4u < terms; ++quad) {
    uint term = quad * 4u;
    vec4 b0 = right_tile[right_slot(term, p.lane)];
    vec4 b1 = right_tile[right_slot(term + 1u, p.lane)];
    vec4 b2 = right_tile[right_slot(term + 2u, p.lane)];
    vec4 b3 = right_tile[right_slot(term + 3u, p.lane)];
    [[unroll]] for (uint i = 0u; i < uint(PER); ++i) {
      vec4 a = left_tile[left_slot(p.row + i * 16u, quad)];
      sum[i] = fma(vec4(a.x), b0, sum[i]);
      sum[i] = fma(vec4(a.y), b1, sum[i]);
      sum[i] = fma(vec4(a.z), b2, sum[i]);
      sum[i] = fma(vec4(a.w), b3, sum[i]);
    }
  }
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) result[i] = sum[i];
}

// The product of Q and K for the invocation's rows and keys. Its first piece has been fetched;
// what follows the last is fetched here.
void multiply_q_k(place p, uint key_begin, inout fetched next, out vec4 result[PER]) {
  vec4 block[PER];
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) block[i] = vec4(0.0);
  for (uint begin = 0u; begin < P.depth; begin += PIECE) {
    barrier();
    put_q_k(p, next);
    barrier();
    if (begin + PIECE < P.depth) {
      fetch_q_k(p, key_begin, begin + PIECE, next);
    } else {
      fetch_keys_of_v(p, key_begin, p.col_begin, next);
    }
    multiply(p, min(P.depth - begin, PIECE), block);
  }
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) result[i] = block[i];
}

// A key past the end gets -infinity.
float finished_score(place p, float product, uint row, uint key) {
  uint flags = FLAGS;
  float score = scaled(product, (flags >> OM_ATTENTION_SCALE_AT) & 3u, P.scale);
  if (key >= P.keys) {
    score = om_float(OM_INFINITY_BITS | OM_SIGN_BIT);
  } else if ((flags & uint(OM_ATTENTION_HAS_MASK)) != 0u && row < P.rows) {
    float mask = LOAD(mask_data[p.mask_base + row * P.mask_row_stride + key * P.mask_key_stride]);
    if ((flags & uint(OM_ATTENTION_SELECTS)) == 0u) {
      score = score + mask;
    } else if (mask != 0.0) {
      score = mask;
    }
  }
  return score;
}

void make_scores(place p, uint key_begin, inout fetched next, out vec4 scores[PER]) {
  vec4 products[PER];
  multiply_q_k(p, key_begin, next, products);
  uint key = key_begin + p.lane * 4u;
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) {
    uint row = p.row_begin + p.row + i * 16u;
    scores[i].x = finished_score(p, products[i].x, row, key);
    scores[i].y = finished_score(p, products[i].y, row, key + 1u);
    scores[i].z = finished_score(p, products[i].z, row, key + 2u);
    scores[i].w = finished_score(p, products[i].w, row, key + 3u);
  }
}

float largest_of(vec4 v) {
  return om_max(om_max(v.x, v.y), om_max(v.z, v.w));
}

// The largest of what the eight invocations of each row have. Barriers before and after.
void fold_largest(place p, inout float values[PER]) {
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) row_values[(p.row + i * 16u) * 8u + p.lane] = values[i];
  barrier();
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) {
    [[unroll]] for (uint lane = 0u; lane < 8u; ++lane) {
      values[i] = om_max(values[i], row_values[(p.row + i * 16u) * 8u + lane]);
    }
  }
}

void store(place p, uint begin, uint row, vec4 value) {
  uint stride = Y_COL_STRIDE;
  uint col = begin + p.lane * 4u;
  if (p.row_begin + row >= P.rows) return;
  uint at = p.y_base + (p.row_begin + row) * P.y_row_stride + col * stride;
  if (col < P.width) y_data[at] = STORE_RESULT(value.x);
  if (col + 1u < P.width) y_data[at + stride] = STORE_RESULT(value.y);
  if (col + 2u < P.width) y_data[at + 2u * stride] = STORE_RESULT(value.z);
  if (col + 3u < P.width) y_data[at + 3u * stride] = STORE_RESULT(value.w);
}

// What follows a product with V: its next columns, or scores.
void fetch_after_v(place p, uint key_begin, uint piece, inout fetched next) {
  if (piece + 1u < uint(PIECES)) {
    fetch_keys_of_v(p, key_begin, p.col_begin + (piece + 1u) * PIECE, next);
  } else {
    fetch_q_k(p, key_begin + 32u, 0u, next);
  }
}


// The loop's bounds are the same for all groups, as barriers in WGSL demand; the last chunk may run
// out of keys before.
void attend(place p, uint chunk_begin) {
  uint flags = FLAGS;
  float best[PER];
  float sum[PER];
  vec4 result[PER * PIECES];
  fetched next;
  // The lowest number, so that a difference of infinities cannot arise from what is masked out.
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) {
    best[i] = om_float(0xff7fffffu);
    sum[i] = 0.0;
  }
  [[unroll]] for (uint i = 0u; i < uint(PER * PIECES); ++i) result[i] = vec4(0.0);
  fetch_q_k(p, chunk_begin, 0u, next);
  for (uint done = 0u; done < P.chunk_keys; done += 32u) {
    uint key_begin = chunk_begin + done;
    vec4 scores[PER];
    float largest[PER];
    make_scores(p, key_begin, next, scores);
    [[unroll]] for (uint i = 0u; i < uint(PER); ++i) largest[i] = max(best[i], largest_of(scores[i]));
    fold_largest(p, largest);
    [[unroll]] for (uint i = 0u; i < uint(PER); ++i) {
      float factor = exp(best[i] - largest[i]);
      vec4 power = exp(scores[i] - vec4(largest[i]));
      best[i] = largest[i];
      sum[i] = sum[i] * factor + (power.x + power.y) + (power.z + power.w);
      [[unroll]] for (uint piece = 0u; piece < uint(PIECES); ++piece) {
        result[i * uint(PIECES) + piece] = result[i * uint(PIECES) + piece] * vec4(factor);
      }
      left_tile[left_slot(p.row + i * 16u, p.lane)] = power;
    }
    [[unroll]] for (uint piece = 0u; piece < uint(PIECES); ++piece) {
      vec4 block[PER];
      [[unroll]] for (uint i = 0u; i < uint(PER); ++i) block[i] = result[i * uint(PIECES) + piece];
      barrier();
      put_v(p, next);
      barrier();
      fetch_after_v(p, key_begin, piece, next);
      multiply(p, min(max(P.keys, key_begin) - key_begin, 32u), block);
      [[unroll]] for (uint i = 0u; i < uint(PER); ++i) result[i * uint(PIECES) + piece] = block[i];
    }
  }
  barrier();
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) row_values[(p.row + i * 16u) * 8u + p.lane] = sum[i];
  barrier();
  [[unroll]] for (uint i = 0u; i < uint(PER); ++i) {
    float total = 0.0;
    [[unroll]] for (uint lane = 0u; lane < 8u; ++lane) {
      total = total + row_values[(p.row + i * 16u) * 8u + lane];
    }
#ifdef SPLIT
    uint row = p.row_begin + p.row + i * 16u;
    if (p.lane == 0u && p.col_begin == 0u && row < P.rows) {
      y_data[p.y_base + row * P.y_row_stride + P.width] = best[i];
      y_data[p.y_base + row * P.y_row_stride + P.width + 1u] = total;
    }
    [[unroll]] for (uint piece = 0u; piece < uint(PIECES); ++piece) {
      store(p, p.col_begin + piece * PIECE, p.row + i * 16u, result[i * uint(PIECES) + piece]);
    }
#else
    // A row with a key to see has the sum 1 at least.
    bool is_zero = (flags & uint(OM_ATTENTION_ZEROES_NAN)) != 0u && !(total > 0.0);
    [[unroll]] for (uint piece = 0u; piece < uint(PIECES); ++piece) {
      vec4 value = result[i * uint(PIECES) + piece] / vec4(total);
      store(p, p.col_begin + piece * PIECE, p.row + i * 16u, is_zero ? vec4(0.0) : value);
    }
#endif
  }
}

void main() {
  uint group = P.first_group + gl_WorkGroupID.x;
  uint chunk = group % P.chunk_count;
  uint block = group / P.chunk_count;
  uint element = block / P.col_blocks / P.row_blocks;
  uint index_0 = element / P.batch_1;
  uint index_1 = element % P.batch_1;
  uint q_offset = Q_OFFSET;
  uint k_offset = K_OFFSET;
  uint v_offset = V_OFFSET;
  place p;
  p.thread = gl_LocalInvocationID.x;
  p.lane = p.thread % 8u;
  p.row = p.thread / 8u;
  p.row_begin = block / P.col_blocks % P.row_blocks * uint(ROWS);
  p.col_begin = block % P.col_blocks * uint(PIECES) * PIECE;
  p.q_base = q_offset + index_0 * P.q_stride_0 + index_1 * P.q_stride_1;
  p.k_base = k_offset + index_0 * P.k_stride_0 + index_1 * P.k_stride_1;
  p.v_base = v_offset + index_0 * P.v_stride_0 + index_1 * P.v_stride_1;
  p.mask_base = index_0 * P.mask_stride_0 + index_1 * P.mask_stride_1;
  p.y_base = index_0 * P.y_stride_0 + index_1 * P.y_stride_1 + chunk * P.chunk_stride;
  attend(p, chunk * P.chunk_keys);
}
