/* Splitting a constant matrix into pairs of float16. */
#include "gpu/om_gpu_split.h"

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_exact_math.h"

enum {
  SPLIT_TERMS = 8, /* of an octet of columns, split at once */
  SPLIT = SPLIT_TERMS * OM_SPLIT_COLS,
  BATCH_TERMS = 16, /* put in their place at once: two pieces of a block */
  BATCH = BATCH_TERMS * OM_SPLIT_COLS,
  EXPONENTS = 0x7f800000,
  MAGNITUDE = 0x7fffffff,
  EXPONENT_BIAS = 127,
  EXPONENT_SHIFT = 23,
  HALF_BIAS = 112, /* the exponents' difference */
  HALF_SHIFT = 13,
  HALF_TAIL = 0x1fff,  /* bits that a float16 lacks */
  HALF_ROUND = 0x0fff, /* below half of its last */
  HALF_SIGN = 0x8000,
  HALF_INFINITY = 0x7c00,
  HALF_NAN = 0x7e00,
  LEAST_NORMAL_HALF = 0x38800000,      /* 2^-14 */
  LEAST_INFINITE_HALF = 0x477ff000,    /* 65520, half way to 2^16 */
  LEAST_FACTOR = 32 << EXPONENT_SHIFT, /* 2^-95: the scale of a smaller one is near the end */
};

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

uint64_t om_split_bytes(size_t depth, size_t cols) {
  return (uint64_t)(om_size_align(depth, OM_SPLIT_TERMS) + 1) * om_size_align(cols, OM_SPLIT_COLS) *
         sizeof(float);
}

/* `yes` where `is`, without a branch: a compiler makes no vectors of a loop that has one. */
static inline uint32_t choose(bool is, uint32_t yes, uint32_t no) {
  const uint32_t mask = 0U - (uint32_t)is;
  return (yes & mask) | (no & ~mask);
}

/* The bits of om_round_half(value), and that as a float16. */
static inline uint32_t round_half(float value, uint32_t *out_half) {
  const uint32_t magnitude = bits_of(value) & MAGNITUDE;
  const uint32_t even = magnitude >> HALF_SHIFT & 1;
  const uint32_t units = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f); /* of 2^-24 */
  const uint32_t small = bits_of(float_of(units + bits_of(0.5f)) - 0.5f);
  uint32_t bits = (magnitude + HALF_ROUND + even) & ~(uint32_t)HALF_TAIL;
  uint32_t half = (bits - (HALF_BIAS << EXPONENT_SHIFT)) >> HALF_SHIFT;
  bits = choose(magnitude < LEAST_NORMAL_HALF, small, bits);
  half = choose(magnitude < LEAST_NORMAL_HALF, units, half);
  bits = choose(magnitude >= LEAST_INFINITE_HALF, EXPONENTS, bits);
  half = choose(magnitude >= LEAST_INFINITE_HALF, HALF_INFINITY, half);
  bits = choose(magnitude > EXPONENTS, OM_NAN_BITS, bits);
  half = choose(magnitude > EXPONENTS, HALF_NAN, half);
  *out_half = half | (bits_of(value) >> 16 & HALF_SIGN);
  return bits | (bits_of(value) & ~(uint32_t)MAGNITUDE);
}

/* Without branches and of a fixed length, so that compilers make vector instructions of it: a
 * session with a large model waits for this. */
OM_CLONES static void split(const float values[SPLIT], uint16_t high[SPLIT], uint16_t low[SPLIT]) {
  for (size_t i = 0; i < SPLIT; ++i) {
    const bool is_number = (bits_of(values[i]) & MAGNITUDE) < EXPONENTS;
    uint32_t half;
    const float rounded =
        float_of(round_half(float_of(choose(is_number, bits_of(values[i]), 0)), &half));
    high[i] = (uint16_t)half;
    (void)round_half((values[i] - rounded) * (float)OM_SPLIT_LOW_SCALE, &half);
    low[i] = (uint16_t)half;
  }
}

/* One matrix on its way, for pieces of a few octets of columns. */
typedef struct work {
  const om_split_layout *layout;
  const char *source; /* of float32; may lie unaligned in the model's file */
  uint32_t *factors;
  uint16_t *units;
  size_t pitch, terms; /* of the units: filled up */
} work;

static inline float value_at(const work *w, size_t term, size_t col) {
  const om_split_layout *layout = w->layout;
  const size_t at = layout->is_turned ? col * layout->depth + term : term * layout->cols + col;
  float value;
  memcpy(&value, w->source + at * sizeof value, sizeof value);
  return value;
}

/* Columns of a term, those past the last one 0. */
static inline void read_octet(const work *w, size_t term, size_t first, float out[OM_SPLIT_COLS]) {
  const om_split_layout *layout = w->layout;
  const size_t left = layout->cols - first;
  if (left >= OM_SPLIT_COLS && !layout->is_turned) {
    memcpy(
        out, w->source + (term * layout->cols + first) * sizeof *out, OM_SPLIT_COLS * sizeof *out);
    return;
  }
  for (size_t i = 0; i < OM_SPLIT_COLS; ++i)
    out[i] = i < left ? value_at(w, term, first + i) : 0.0f;
}

/* The power of two at or below each column's largest number. */
OM_CLONES static void find_factors(const work *w, size_t first, uint32_t factors[OM_SPLIT_COLS]) {
  float values[OM_SPLIT_COLS];
  int32_t most[OM_SPLIT_COLS];
  for (size_t i = 0; i < OM_SPLIT_COLS; ++i) most[i] = LEAST_FACTOR;
  for (size_t term = 0; term < w->layout->depth; ++term) {
    read_octet(w, term, first, values);
    for (size_t i = 0; i < OM_SPLIT_COLS; ++i) {
      const int32_t magnitude = (int32_t)(bits_of(values[i]) & MAGNITUDE);
      const int32_t number = magnitude < EXPONENTS ? magnitude : 0;
      most[i] = number > most[i] ? number : most[i];
    }
  }
  for (size_t i = 0; i < OM_SPLIT_COLS; ++i) factors[i] = (uint32_t)most[i] & EXPONENTS;
}

/* A batch of split values to where they belong; term: its first. */
OM_CLONES static void place_batch(const work *w,
                                  size_t term,
                                  size_t first,
                                  const uint16_t high[BATCH],
                                  const uint16_t low[BATCH]) {
  if (!w->layout->is_blocks) {
    for (size_t i = 0; i < BATCH_TERMS; ++i) {
      uint16_t *unit = w->units + ((term + i) * w->pitch + first) * 2;
      memcpy(unit, high + i * OM_SPLIT_COLS, OM_SPLIT_COLS * sizeof *unit);
      memcpy(unit + OM_SPLIT_COLS, low + i * OM_SPLIT_COLS, OM_SPLIT_COLS * sizeof *unit);
    }
    return;
  }
  const size_t number = term / OM_BLOCK_TERMS * (w->pitch / OM_SPLIT_COLS) + first / OM_SPLIT_COLS;
  uint16_t *block = w->units + number * 2 * OM_BLOCK_ELEMS;
  for (size_t col = 0; col < OM_SPLIT_COLS; ++col) {
    for (size_t piece = 0; piece < 2; ++piece) {
      uint16_t *to = block + om_block_place(term % OM_BLOCK_TERMS + 2 * piece, col, false);
      for (size_t k = 0; k < 8; ++k) {
        const size_t from = k / 2 * 4 + k % 2 + 2 * piece;
        to[k] = high[from * OM_SPLIT_COLS + col];
        to[OM_BLOCK_ELEMS + k] = low[from * OM_SPLIT_COLS + col];
      }
    }
  }
}

/* The values of SPLIT_TERMS terms, scaled; those past the last one 0. */
static inline void read_scaled(const work *w,
                               size_t term,
                               size_t first,
                               const float scales[OM_SPLIT_COLS],
                               float values[SPLIT]) {
  for (size_t i = 0; i < SPLIT_TERMS; ++i) {
    float *row = values + i * OM_SPLIT_COLS;
    if (term + i < w->layout->depth) {
      read_octet(w, term + i, first, row);
      for (size_t k = 0; k < OM_SPLIT_COLS; ++k) row[k] *= scales[k];
    } else {
      memset(row, 0, OM_SPLIT_COLS * sizeof *row);
    }
  }
}

static void fill_octet(const work *w, size_t first) {
  const uint32_t exponents = 2 * EXPONENT_BIAS + OM_SPLIT_EXPONENT;
  uint32_t *factors = w->factors + first;
  float scales[OM_SPLIT_COLS];
  find_factors(w, first, factors);
  for (size_t i = 0; i < OM_SPLIT_COLS; ++i) {
    scales[i] = float_of((exponents << EXPONENT_SHIFT) - factors[i]);
  }
  for (size_t term = 0; term < w->terms; term += BATCH_TERMS) {
    uint16_t high[BATCH];
    uint16_t low[BATCH];
    for (size_t at = 0; at < BATCH; at += SPLIT) {
      float values[SPLIT];
      read_scaled(w, term + at / OM_SPLIT_COLS, first, scales, values);
      split(values, high + at, low + at);
    }
    place_batch(w, term, first, high, low);
  }
}

static void fill_octets(void *arg, size_t begin, size_t end) {
  for (size_t octet = begin; octet < end; ++octet) fill_octet(arg, octet * OM_SPLIT_COLS);
}

void om_split_fill(om_ctx *ctx, const void *arg, const void *source, void *target) {
  enum { OCTETS = 4 }; /* of a piece: two lines of the cache */
  const om_split_layout *layout = arg;
  const size_t pitch = om_size_align(layout->cols, OM_SPLIT_COLS);
  work w = {
      .layout = layout,
      .source = source,
      .factors = target,
      .pitch = pitch,
      .terms = om_size_align(layout->depth, layout->is_blocks ? OM_BLOCK_TERMS : OM_SPLIT_TERMS)};
  w.units = (uint16_t *)(w.factors + pitch);
  om_parallel_for(ctx, pitch / OM_SPLIT_COLS, OCTETS, fill_octets, &w);
}
