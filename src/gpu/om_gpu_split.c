/* Splitting a constant matrix into pairs of float16. */
#include "gpu/om_gpu_split.h"

#include "base/om_thread.h"
#include "cpu/exact/om_exact_math.h"

enum {
  BATCH_TERMS = 8, /* of an octet of columns, split at once */
  BATCH = BATCH_TERMS * OM_SPLIT_COLS,
  EXPONENTS = 0x7f800000,
  MAGNITUDE = 0x7fffffff,
  EXPONENT_BIAS = 127,
  EXPONENT_SHIFT = 23,
  HALF_BIAS = 112, /* the exponents' difference */
  HALF_SHIFT = 13,
  HALF_SIGN = 0x8000,
  HALF_INFINITY = 0x7c00,
  HALF_NAN = 0x7e00,
  LEAST_NORMAL_HALF = 0x38800000,      /* 2^-14 */
  LEAST_FACTOR = 32 << EXPONENT_SHIFT, /* 2^-95: the scale of a smaller one is near the end */
};

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

uint64_t om_split_bytes(size_t depth, size_t cols) {
  return (uint64_t)(om_size_align(depth, OM_SPLIT_TERMS) + 1) * om_size_align(cols, OM_SPLIT_COLS) *
         sizeof(float);
}

/* A value that om_round_half gave, as a float16. */
static uint32_t half_bits(float value) {
  const uint32_t magnitude = bits_of(value) & MAGNITUDE;
  const uint32_t normal = (magnitude - (HALF_BIAS << EXPONENT_SHIFT)) >> HALF_SHIFT;
  const uint32_t small = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  uint32_t bits = magnitude < LEAST_NORMAL_HALF ? small : normal;
  bits = magnitude >= EXPONENTS ? HALF_INFINITY : bits;
  bits = magnitude > EXPONENTS ? HALF_NAN : bits;
  return bits | (bits_of(value) >> 16 & HALF_SIGN);
}

/* Without branches and of a fixed length, so that compilers make vector instructions of it: a
 * session with a large model waits for this. */
static void split(const float values[BATCH], uint16_t high[BATCH], uint16_t low[BATCH]) {
  for (size_t i = 0; i < BATCH; ++i) {
    const bool is_number = (bits_of(values[i]) & MAGNITUDE) < EXPONENTS;
    const float rounded = om_round_half(float_of(is_number ? bits_of(values[i]) : 0));
    const float rest = (values[i] - rounded) * (float)OM_SPLIT_LOW_SCALE;
    high[i] = (uint16_t)half_bits(rounded);
    low[i] = (uint16_t)half_bits(om_round_half(rest));
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

static float value_at(const work *w, size_t term, size_t col) {
  const om_split_layout *layout = w->layout;
  const size_t at = layout->is_turned ? col * layout->depth + term : term * layout->cols + col;
  float value;
  memcpy(&value, w->source + at * sizeof value, sizeof value);
  return value;
}

/* Columns of a term, those past the last one 0. */
static void read_octet(const work *w, size_t term, size_t first, float out[OM_SPLIT_COLS]) {
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
static void find_factors(const work *w, size_t first, uint32_t factors[OM_SPLIT_COLS]) {
  float values[OM_SPLIT_COLS];
  for (size_t i = 0; i < OM_SPLIT_COLS; ++i) factors[i] = LEAST_FACTOR;
  for (size_t term = 0; term < w->layout->depth; ++term) {
    read_octet(w, term, first, values);
    for (size_t i = 0; i < OM_SPLIT_COLS; ++i) {
      const uint32_t magnitude = bits_of(values[i]) & MAGNITUDE;
      factors[i] = magnitude > factors[i] && magnitude < EXPONENTS ? magnitude : factors[i];
    }
  }
  for (size_t i = 0; i < OM_SPLIT_COLS; ++i) factors[i] &= EXPONENTS;
}

/* A batch of split values to where they belong; term: its first. */
static void place_batch(const work *w,
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
  for (size_t i = 0; i < BATCH; ++i) {
    const size_t in_block = term % OM_BLOCK_TERMS + i / OM_SPLIT_COLS;
    const size_t at = om_block_place(in_block, i % OM_SPLIT_COLS, false);
    block[at] = high[i];
    block[OM_BLOCK_ELEMS + at] = low[i];
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
    float values[BATCH] = {0};
    uint16_t high[BATCH];
    uint16_t low[BATCH];
    for (size_t i = 0; i < BATCH_TERMS && term + i < w->layout->depth; ++i) {
      float *row = values + i * OM_SPLIT_COLS;
      read_octet(w, term + i, first, row);
      for (size_t k = 0; k < OM_SPLIT_COLS; ++k) row[k] *= scales[k];
    }
    split(values, high, low);
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
