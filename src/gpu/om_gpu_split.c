/* Splitting a constant matrix into pairs of float16. */
#include "gpu/om_gpu_split.h"

#include "base/om_float16.h"

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

/* The power of two at or below each column's largest number. */
static void fill_factors(const om_split_layout *layout, const float *source, uint32_t *factors) {
  const size_t pitch = om_size_align(layout->cols, OM_SPLIT_COLS);
  for (size_t col = 0; col < pitch; ++col) factors[col] = LEAST_FACTOR;
  for (size_t i = 0; i < layout->depth * layout->cols; ++i) {
    const size_t col = layout->is_turned ? i / layout->depth : i % layout->cols;
    const uint32_t magnitude = bits_of(source[i]) & MAGNITUDE;
    if (magnitude > factors[col] && magnitude < EXPONENTS) factors[col] = magnitude;
  }
  for (size_t col = 0; col < pitch; ++col) factors[col] &= EXPONENTS;
}

static void split(float value, uint16_t *out_high, uint16_t *out_low) {
  const bool is_number = (bits_of(value) & EXPONENTS) != EXPONENTS;
  *out_high = is_number ? om_f16_from_f32(value) : 0;
  *out_low = om_f16_from_f32((value - om_f16_to_f32(*out_high)) * OM_SPLIT_LOW_SCALE);
}

void om_split_fill(const void *arg, const void *source, void *target) {
  const om_split_layout *layout = arg;
  const float *values = source;
  const size_t pitch = om_size_align(layout->cols, OM_SPLIT_COLS);
  const size_t terms = om_size_align(layout->depth, OM_SPLIT_TERMS);
  uint32_t *factors = target;
  uint16_t *units = (uint16_t *)(factors + pitch);
  fill_factors(layout, values, factors);
  memset(units, 0, terms * pitch * 2 * sizeof *units);
  for (size_t i = 0; i < layout->depth * layout->cols; ++i) {
    const size_t col = layout->is_turned ? i / layout->depth : i % layout->cols;
    const size_t term = layout->is_turned ? i % layout->depth : i / layout->cols;
    const uint32_t exponents = 2 * EXPONENT_BIAS + OM_SPLIT_EXPONENT;
    const float scale = float_of((exponents << EXPONENT_SHIFT) - factors[col]);
    uint16_t *unit = units + (term * pitch + col / OM_SPLIT_COLS * OM_SPLIT_COLS) * 2;
    const size_t place = col % OM_SPLIT_COLS;
    split(values[i] * scale, &unit[place], &unit[OM_SPLIT_COLS + place]);
  }
}
