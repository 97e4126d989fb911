/* Splitting a constant matrix into pairs of float16. */
#include "gpu/om_gpu_split.h"

#include "base/om_float16.h"
#include "base/om_thread.h"

enum {
  EXPONENTS = 0x7f800000,
  MAGNITUDE = 0x7fffffff,
  EXPONENT_BIAS = 127,
  EXPONENT_SHIFT = 23,
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

static void split(float value, uint16_t *out_high, uint16_t *out_low) {
  const bool is_number = (bits_of(value) & EXPONENTS) != EXPONENTS;
  *out_high = is_number ? om_f16_from_f32(value) : 0;
  *out_low = om_f16_from_f32((value - om_f16_to_f32(*out_high)) * (float)OM_SPLIT_LOW_SCALE);
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

/* The power of two at or below each column's largest number. */
static void find_factors(const work *w,
                         size_t first,
                         size_t count,
                         uint32_t factors[OM_SPLIT_COLS]) {
  for (size_t i = 0; i < OM_SPLIT_COLS; ++i) factors[i] = LEAST_FACTOR;
  for (size_t term = 0; term < w->layout->depth; ++term) {
    for (size_t i = 0; i < count; ++i) {
      const uint32_t magnitude = bits_of(value_at(w, term, first + i)) & MAGNITUDE;
      if (magnitude > factors[i] && magnitude < EXPONENTS) factors[i] = magnitude;
    }
  }
  for (size_t i = 0; i < OM_SPLIT_COLS; ++i) factors[i] &= EXPONENTS;
}

static void fill_octet(const work *w, size_t first) {
  const uint32_t exponents = 2 * EXPONENT_BIAS + OM_SPLIT_EXPONENT;
  const size_t left = w->layout->cols - first;
  const size_t count = left < OM_SPLIT_COLS ? left : OM_SPLIT_COLS;
  uint32_t *factors = w->factors + first;
  find_factors(w, first, count, factors);
  for (size_t term = 0; term < w->terms; ++term) {
    uint16_t *unit = w->units + (term * w->pitch + first) * 2;
    memset(unit, 0, 2 * OM_SPLIT_COLS * sizeof *unit);
    if (term >= w->layout->depth) continue;
    for (size_t i = 0; i < count; ++i) {
      const float scale = float_of((exponents << EXPONENT_SHIFT) - factors[i]);
      split(value_at(w, term, first + i) * scale, &unit[i], &unit[OM_SPLIT_COLS + i]);
    }
  }
}

static void fill_octets(void *arg, size_t begin, size_t end) {
  for (size_t octet = begin; octet < end; ++octet) fill_octet(arg, octet * OM_SPLIT_COLS);
}

void om_split_fill(om_ctx *ctx, const void *arg, const void *source, void *target) {
  enum { OCTETS = 4 }; /* of a piece: two lines of the cache */
  const om_split_layout *layout = arg;
  const size_t pitch = om_size_align(layout->cols, OM_SPLIT_COLS);
  work w = {.layout = layout,
            .source = source,
            .factors = target,
            .pitch = pitch,
            .terms = om_size_align(layout->depth, OM_SPLIT_TERMS)};
  w.units = (uint16_t *)(w.factors + pitch);
  om_parallel_for(ctx, pitch / OM_SPLIT_COLS, OCTETS, fill_octets, &w);
}
