/* Exact attention of few keys on Hopper in one pass: scores, probabilities and the product with V
 * of 32 rows are a workgroup's, in the order of docs/exact.md. Operands are of float32, in quads.
 *
 * A core holds some workgroups, whose waits fill each other's gaps: so none takes more than 48 KiB
 * of shared memory, and a thread's registers are few. Of Q and K there is one block of 32 terms at
 * a time; the scores lie in its place when they are done. Of V there are as many keys as 16 KiB
 * hold; the first are brought while the scores are made.
 *
 * In scores a thread has 4 rows by 8 keys, in the product with V ROWS rows by a quad of columns.
 * A warp makes the probabilities of 8 rows, two rows at a time, and then their results: a lane has
 * every 32nd key, which are the first levels of the sum's tree.
 */
//! kernel attention_sm90_whole_exact_32  bindings=r,r,r,r,w params=124 constants=4 threads=128 shared=39424 blocks=4 OM_EXACT=1 WIDTH=32
//! kernel attention_sm90_whole_exact_64  bindings=r,r,r,r,w params=124 constants=4 threads=128 shared=39424 blocks=4 OM_EXACT=1 WIDTH=64
#include "abi/attention_pass_params.h"
#include "gpu/sm90/sm90.h"
#include "gpu/sm90/sm90_math.h"

enum {
  WARP = 32,
  WARPS = OM_THREADS / WARP,
  TILE_ROWS = 32,
  WARP_ROWS = TILE_ROWS / WARPS,
  KEYS = 128, /* at most */
  BLOCK = 32, /* terms */
  PITCH_BYTES = (BLOCK + 4) * 4,
  SCORE_PITCH_BYTES = (KEYS + 4) * 4,
  K_AT = TILE_ROWS * PITCH_BYTES, /* behind Q's block */
  V_AT = K_AT + KEYS * PITCH_BYTES,
  V_KEYS = 4096 / WIDTH,  /* of a piece */
  ROW_KEYS = KEYS / WARP, /* of a row that a lane has */
  ROWS_AT_ONCE = 2,
  SCORE_ROWS = 4, /* a thread's, 8 rows apart */
  SCORE_KEYS = 8, /* 16 keys apart */
  QUADS = WIDTH / 4,
  ROWS = WARP_ROWS * QUADS / WARP,
};
_Static_assert(V_AT + V_KEYS * WIDTH * 4 == OM_SHARED_BYTES, "the head's shared memory");
_Static_assert(TILE_ROWS *SCORE_PITCH_BYTES <= V_AT, "scores in the place of Q and K");
_Static_assert(V_KEYS % BLOCK == 0, "whole blocks");

typedef struct whole_args {
  uint64_t q, k, v, mask, y;
  om_attention_pass_params p;
  uint32_t flags, q_offset, k_offset, v_offset;
} whole_args;

/* What a workgroup works at; sources begin with its rows and its element. */
typedef struct whole_tile {
  const float *q, *k, *v, *mask;
  float *y;
  uint32_t rows; /* that there are from its first on */
} whole_tile;

SM90_INLINE uint32_t least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

SM90_INLINE whole_tile find_tile(const whole_args *args) {
  const om_attention_pass_params *p = &args->p;
  const uint32_t row_tiles = (p->rows + TILE_ROWS - 1) / TILE_ROWS;
  const uint32_t element = group_index() / row_tiles;
  const uint32_t row = group_index() % row_tiles * TILE_ROWS;
  const uint64_t index_0 = element / p->batch_1;
  const uint64_t index_1 = element % p->batch_1;
  const whole_tile t = {
      .q = (const float *)args->q + args->q_offset + index_0 * p->q_stride_0 +
           index_1 * p->q_stride_1 + (uint64_t)row * p->q_row_stride,
      .k = (const float *)args->k + args->k_offset + index_0 * p->k_stride_0 +
           index_1 * p->k_stride_1,
      .v = (const float *)args->v + args->v_offset + index_0 * p->v_stride_0 +
           index_1 * p->v_stride_1,
      .mask = (const float *)args->mask + index_0 * p->mask_stride_0 + index_1 * p->mask_stride_1 +
              (uint64_t)row * p->mask_row_stride,
      .y = (float *)args->y + index_0 * p->y_stride_0 + index_1 * p->y_stride_1 +
           (uint64_t)row * p->y_row_stride,
      .rows = p->rows - row,
  };
  return t;
}

/* ---- Copies ---- */

/* A block of `count` rows by terms, from term `from` on. Rows past the end repeat the last, terms
 * past it are zeros: nobody uses either. */
SM90_INLINE void bring_rows(const float *source,
                            uint32_t pitch,
                            uint32_t rows,
                            uint32_t depth,
                            uint32_t from,
                            uint32_t target,
                            const uint32_t count) {
  enum { PIECES = BLOCK / 4, AT_ONCE = OM_THREADS / PIECES };
  const uint32_t piece = thread_index() % PIECES;
  const uint32_t term = from + piece * 4;
  const uint32_t bytes = term < depth ? 16 : 0;
  SM90_UNROLL for (uint32_t i = 0; i < count / AT_ONCE; ++i) {
    const uint32_t row = thread_index() / PIECES + i * AT_ONCE;
    const uint64_t at = (uint64_t)least(row, rows - 1) * pitch + (bytes ? term : 0);
    copy16(target + row * PITCH_BYTES + piece * 16, source + at, bytes);
  }
}

/* A piece of V from key `from` on; what is not there is zeros. */
SM90_INLINE void bring_values(const whole_args *args, const whole_tile *t, uint32_t from) {
  enum { AT_ONCE = OM_THREADS / QUADS };
  const uint32_t col = thread_index() % QUADS * 4;
  SM90_UNROLL for (uint32_t i = 0; i < V_KEYS / AT_ONCE; ++i) {
    const uint32_t key = thread_index() / QUADS + i * AT_ONCE;
    const bool is_there = from + key < args->p.keys && col < args->p.width;
    const uint64_t at = is_there ? (uint64_t)(from + key) * args->p.v_key_stride + col : 0;
    copy16(shared_address(V_AT + (key * WIDTH + col) * 4), t->v + at, is_there ? 16 : 0);
  }
  copies_commit();
}

SM90_INLINE void bring_terms(const whole_args *args, const whole_tile *t, uint32_t from) {
  const om_attention_pass_params *p = &args->p;
  bring_rows(t->q, p->q_row_stride, t->rows, p->depth, from, shared_address(0), TILE_ROWS);
  bring_rows(t->k, p->k_key_stride, p->keys, p->depth, from, shared_address(K_AT), KEYS);
  copies_commit();
}

/* ---- Scores ---- */

SM90_INLINE void multiply_add(float a, float b, float *sum) {
  *sum = __nvvm_add_rn_ftz_f(*sum, __nvvm_mul_rn_ftz_f(a, b));
}

SM90_INLINE uint32_t score_row(void) {
  return thread_index() % WARP / 4;
}

SM90_INLINE uint32_t score_key(void) {
  return thread_index() % 4 + thread_index() / WARP * 4;
}

/* A block's sums, four terms at a time. */
SM90_INLINE void multiply_block(uint32_t quads, float sums[SCORE_ROWS][SCORE_KEYS]) {
  uint32_t q = shared_address(score_row() * PITCH_BYTES);
  uint32_t k = shared_address(K_AT + score_key() * PITCH_BYTES);
  SM90_UNROLL for (uint32_t m = 0; m < SCORE_ROWS; ++m) {
    SM90_UNROLL for (uint32_t n = 0; n < SCORE_KEYS; ++n) sums[m][n] = 0.0f;
  }
  SM90_LOOP for (uint32_t i = 0; i < quads; ++i, q += 16, k += 16) {
    float rows[SCORE_ROWS][4];
    SM90_UNROLL for (uint32_t m = 0; m < SCORE_ROWS; ++m) {
      shared_load4(q + m * 8 * PITCH_BYTES, rows[m]);
    }
    SM90_UNROLL for (uint32_t n = 0; n < SCORE_KEYS; ++n) {
      float key[4];
      shared_load4(k + n * 16 * PITCH_BYTES, key);
      SM90_UNROLL for (uint32_t term = 0; term < 4; ++term) {
        SM90_UNROLL for (uint32_t m = 0; m < SCORE_ROWS; ++m) {
          multiply_add(rows[m][term], key[term], &sums[m][n]);
        }
      }
    }
  }
}

/* Puts all scores of the tile where Q and K lay: sums of blocks, which are one group. V's first
 * piece is there, too, behind this. */
SM90_INLINE void make_scores(const whole_args *args, const whole_tile *t) {
  const uint32_t depth = args->p.depth;
  float total[SCORE_ROWS][SCORE_KEYS];
  SM90_UNROLL for (uint32_t m = 0; m < SCORE_ROWS; ++m) {
    /* -0 changes nothing that is added to it. */
    SM90_UNROLL for (uint32_t n = 0; n < SCORE_KEYS; ++n) total[m][n] = -0.0f;
  }
  SM90_LOOP for (uint32_t from = 0; from < depth; from += BLOCK) {
    float sums[SCORE_ROWS][SCORE_KEYS];
    if (from != 0) {
      barrier_all(); /* the block before has been read */
      bring_terms(args, t, from);
      copies_wait(0);
    } else {
      copies_wait(1); /* V may be under way */
    }
    barrier_all();
    multiply_block(least(depth - from, BLOCK) / 4, sums);
    SM90_UNROLL for (uint32_t m = 0; m < SCORE_ROWS; ++m) {
      SM90_UNROLL for (uint32_t n = 0; n < SCORE_KEYS; ++n) {
        total[m][n] = __nvvm_add_rn_ftz_f(total[m][n], sums[m][n]);
      }
    }
  }
  copies_wait(0);
  barrier_all();
  SM90_UNROLL for (uint32_t m = 0; m < SCORE_ROWS; ++m) {
    const uint32_t row = shared_address((score_row() + m * 8) * SCORE_PITCH_BYTES);
    SM90_UNROLL for (uint32_t n = 0; n < SCORE_KEYS; ++n) {
      shared_store1(row + (score_key() + n * 16) * 4, om_bits(total[m][n]));
    }
  }
  barrier_all();
}

/* ---- Probabilities ---- */

SM90_INLINE float exchanged(float value, uint32_t distance) {
  return __nvvm_shfl_sync_bfly_f32(0xffffffffu, value, (int)distance, WARP - 1);
}

/* om_exp where x is at most 0; of a NaN something. */
SM90_INLINE float exp_of_difference(float x) {
  const float t = x > -88.0f ? x : -88.0f;
  const int n = OM_TO_INT(t * 1.44269502f - 0.5f);
  const uint32_t bits = om_bits(om_exp_rest(t, n)) + ((uint32_t)n << 23);
  return om_float(x < -87.3365402f ? 0u : bits);
}

#define EACH_ROW SM90_UNROLL for (uint32_t r = 0; r < ROWS_AT_ONCE; ++r)
#define EACH_KEY SM90_UNROLL for (uint32_t i = 0; i < ROW_KEYS; ++i)

/* A lane's keys of the rows at hand. */
typedef float row_keys[ROWS_AT_ONCE][ROW_KEYS];

SM90_INLINE void divide_scores(float divisor, row_keys kept) {
  const float reciprocal = om_div(1.0f, divisor);
  float smallest = __builtin_fabsf(divisor), largest = smallest;
  bool is_plain = smallest > 0x1p-20f && largest < 0x1p20f;
  EACH_ROW EACH_KEY {
    smallest = __nvvm_fmin_ftz_f(smallest, __builtin_fabsf(kept[r][i]));
    largest = __nvvm_fmax_ftz_f(largest, __builtin_fabsf(kept[r][i]));
  }
  is_plain = is_plain && smallest > 0x1p-80f && largest < 0x1p80f;
  if (is_plain) {
    EACH_ROW EACH_KEY kept[r][i] = exact_quotient(kept[r][i], divisor, reciprocal);
  } else {
    EACH_ROW EACH_KEY kept[r][i] = om_div(kept[r][i], divisor);
  }
}

/* Scales the scores, adds the mask, and makes -infinity of what is past the last key. */
SM90_INLINE void finish_scores(const whole_args *args,
                               const whole_tile *t,
                               uint32_t first_row,
                               row_keys kept) {
  const uint32_t kind = args->flags >> OM_ATTENTION_SCALE_AT & 3;
  const uint32_t lane = thread_index() % WARP;
  const float lowest = om_float(OM_INFINITY_BITS | OM_SIGN_BIT);
  if (kind == 1) EACH_ROW EACH_KEY kept[r][i] *= args->p.scale;
  if (kind == 2) divide_scores(args->p.scale, kept);
  if ((args->flags & OM_ATTENTION_HAS_MASK) != 0) {
    const bool selects = (args->flags & OM_ATTENTION_SELECTS) != 0;
    EACH_ROW {
      const uint64_t row = least(first_row + r, t->rows - 1);
      EACH_KEY {
        const uint64_t key = least(lane + i * WARP, args->p.keys - 1);
        const float mask = t->mask[row * args->p.mask_row_stride + key * args->p.mask_key_stride];
        const float sum = kept[r][i] + mask;
        kept[r][i] = selects ? (mask != 0.0f ? mask : kept[r][i]) : sum;
      }
    }
  }
  EACH_ROW EACH_KEY kept[r][i] = lane + i * WARP < args->p.keys ? kept[r][i] : lowest;
}

/* Exponentials of what the scores are below their largest, and in `sums` their sums; NaN where the
 * largest is NaN or infinite, as some difference is then. Both ends of an exchange add the same
 * two numbers, in either order. */
SM90_INLINE void make_powers(row_keys kept, float sums[ROWS_AT_ONCE]) {
  float largest[ROWS_AT_ONCE];
  EACH_ROW largest[r] = kept[r][0];
  EACH_ROW EACH_KEY largest[r] = __nvvm_fmax_ftz_nan_f(largest[r], kept[r][i]);
  SM90_UNROLL for (uint32_t d = WARP / 2; d > 0; d /= 2) {
    EACH_ROW largest[r] = __nvvm_fmax_ftz_nan_f(largest[r], exchanged(largest[r], d));
  }
  EACH_ROW EACH_KEY kept[r][i] = exp_of_difference(kept[r][i] - largest[r]);
  EACH_ROW sums[r] = (kept[r][0] + kept[r][2]) + (kept[r][1] + kept[r][3]);
  SM90_UNROLL for (uint32_t d = WARP / 2; d > 0; d /= 2) {
    EACH_ROW sums[r] += exchanged(sums[r], d);
  }
  EACH_ROW {
    const bool is_finite = (om_bits(largest[r]) & ~OM_SIGN_BIT) < OM_INFINITY_BITS;
    sums[r] = is_finite ? sums[r] : om_float(OM_NAN_BITS);
  }
}
_Static_assert(ROW_KEYS == 4, "the sum's first levels");

/* Of a warp's rows. Past the last key they are -0, which changes no sum of the product. */
SM90_INLINE void make_probabilities(const whole_args *args, const whole_tile *t) {
  const bool zeroes_nan = (args->flags & OM_ATTENTION_ZEROES_NAN) != 0;
  const uint32_t lane = thread_index() % WARP;
  SM90_LOOP for (uint32_t first = 0; first < WARP_ROWS; first += ROWS_AT_ONCE) {
    const uint32_t row = thread_index() / WARP * WARP_ROWS + first;
    const uint32_t at = shared_address(row * SCORE_PITCH_BYTES + lane * 4);
    row_keys kept;
    float sums[ROWS_AT_ONCE];
    EACH_ROW EACH_KEY {
      kept[r][i] = om_float(shared_load1(at + r * SCORE_PITCH_BYTES + i * WARP * 4));
    }
    finish_scores(args, t, row, kept);
    make_powers(kept, sums);
    float reciprocals[ROWS_AT_ONCE];
    EACH_ROW reciprocals[r] = om_div(1.0f, sums[r]);
    EACH_ROW EACH_KEY {
      /* A power is 0 or from 2^-126 to 1, and a sum from 1 to 128. */
      const float quotient =
          exact_quotient(kept[r][i] * 0x1p64f, sums[r], reciprocals[r]) * 0x1p-64f;
      const float result = zeroes_nan && om_is_nan(sums[r]) ? 0.0f : quotient;
      const float stored = lane + i * WARP < args->p.keys ? result : -0.0f;
      shared_store1(at + r * SCORE_PITCH_BYTES + i * WARP * 4, om_bits(stored));
    }
  }
}

/* ---- The product with V ---- */

SM90_INLINE uint32_t value_row(void) {
  return thread_index() / WARP * WARP_ROWS + thread_index() % WARP / QUADS;
}

SM90_INLINE void multiply_four_keys(uint32_t scores, uint32_t values, float sums[ROWS * 4]) {
  enum { APART = WARP / QUADS };
  float rows[ROWS][4];
  SM90_UNROLL for (uint32_t m = 0; m < ROWS; ++m) {
    shared_load4(scores + m * APART * SCORE_PITCH_BYTES, rows[m]);
  }
  SM90_UNROLL for (uint32_t key = 0; key < 4; ++key) {
    float quad[4];
    shared_load4(values + key * WIDTH * 4, quad);
    SM90_UNROLL for (uint32_t j = 0; j < ROWS * 4; ++j) {
      multiply_add(rows[j / 4][key], quad[j % 4], &sums[j]);
    }
  }
}

/* The sums of a block of keys, eight at a time: past the last one the scores are -0. */
SM90_INLINE void multiply_values(uint32_t scores, uint32_t values, uint32_t eights, float *sums) {
  SM90_UNROLL for (uint32_t i = 0; i < ROWS * 4; ++i) sums[i] = 0.0f;
  SM90_LOOP for (uint32_t i = 0; i < eights; ++i, scores += 32, values += 8 * WIDTH * 4) {
    multiply_four_keys(scores, values, sums);
    multiply_four_keys(scores + 16, values + 4 * WIDTH * 4, sums);
  }
}

SM90_INLINE void store_results(const whole_args *args, const whole_tile *t, const float *total) {
  const uint32_t col = thread_index() % QUADS * 4;
  if (col >= args->p.width) return;
  SM90_UNROLL for (uint32_t m = 0; m < ROWS; ++m) {
    const uint32_t row = value_row() + m * (WARP / QUADS);
    word4 words;
    SM90_UNROLL for (uint32_t i = 0; i < 4; ++i) words[i] = om_bits(total[m * 4 + i]);
    if (row < t->rows) {
      *(word4 *)(void *)(t->y + (uint64_t)row * args->p.y_row_stride + col) = words;
    }
  }
}

/* All keys are one group. */
SM90_INLINE void make_results(const whole_args *args, const whole_tile *t) {
  const uint32_t keys = args->p.keys;
  float total[ROWS * 4];
  SM90_UNROLL for (uint32_t i = 0; i < ROWS * 4; ++i) total[i] = -0.0f;
  SM90_LOOP for (uint32_t from = 0; from < keys; from += BLOCK) {
    float sums[ROWS * 4];
    if (from != 0 && from % V_KEYS == 0) {
      barrier_all(); /* the piece before has been read */
      bring_values(args, t, from);
      copies_wait(0);
      barrier_all();
    }
    multiply_values(shared_address(value_row() * SCORE_PITCH_BYTES + from * 4),
                    shared_address(V_AT + (from % V_KEYS * WIDTH + thread_index() % QUADS * 4) * 4),
                    (least(keys - from, BLOCK) + 7) / 8,
                    sums);
    SM90_UNROLL for (uint32_t i = 0; i < ROWS * 4; ++i) {
      total[i] = __nvvm_add_rn_ftz_f(total[i], sums[i]);
    }
  }
  store_results(args, t, total);
}

SM90_KERNEL void OM_KERNEL(whole_args args) {
  if (group_index() >= args.p.group_count) return;
  const whole_tile t = find_tile(&args);
  bring_terms(&args, &t, 0);
  bring_values(&args, &t, 0);
  make_scores(&args, &t);
  make_probabilities(&args, &t);
  warp_sync();
  make_results(&args, &t);
}
