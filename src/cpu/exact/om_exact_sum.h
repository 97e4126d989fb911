/* The order in which exact mode adds a row (docs/exact.md).
 *
 * A row has 256 lanes: element i is added to lane i mod 256 in increasing i, starting from 0;
 * then lane[i] += lane[i + 128] for i < 128, + 64, ... + 1. Every addition rounds on its own.
 */
#ifndef OM_EXACT_SUM_H
#define OM_EXACT_SUM_H

#include <stddef.h>

#include "cpu/exact/om_exact_math.h"

/* Part of its caller, which may be compiled for wider vectors. */
#define OM_SUM_FN static inline __attribute__((always_inline))

enum {
  OM_ROW_LANES = 256,
  OM_ROW_SLICE = 64, /* lanes held at a time: three slices fit a small frame */
};

/* lane[i] += lane[i + half] for half = 32, ... 1. */
OM_SUM_FN float om_row_fold_slice(float *lane) {
  for (size_t half = OM_ROW_SLICE / 2; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];
  }
  return lane[0];
}

/* Defines `float name(const float *x, size_t count, float c)`: the sum over a row of `term`, an
 * expression of v (the element) and c. Slices of 64 lanes are done one after the other, in the
 * order in which the tree joins them: (0 + 2) + (1 + 3). */
#define OM_DEFINE_ROW_SUM(name, term)                                                       \
  OM_SUM_FN void name##_slice(const float *x, size_t count, float c, float *lane) {         \
    (void)c;                                                                                \
    for (size_t i = 0; i < OM_ROW_SLICE; ++i) lane[i] = 0.0f;                               \
    for (size_t base = 0; base < count; base += OM_ROW_LANES) {                             \
      size_t left = count - base;                                                           \
      size_t lanes = left < OM_ROW_SLICE ? left : OM_ROW_SLICE;                             \
      for (size_t i = 0; i < lanes; ++i) {                                                  \
        float v = x[base + i];                                                              \
        lane[i] = lane[i] + (term);                                                         \
      }                                                                                     \
    }                                                                                       \
  }                                                                                         \
  OM_SUM_FN void name##_pair(const float *x, size_t count, float c, float *sum) {           \
    float other[OM_ROW_SLICE];                                                              \
    size_t skip = OM_ROW_LANES / 2;                                                         \
    name##_slice(x, count, c, sum);                                                         \
    name##_slice(x + (count > skip ? skip : 0), count > skip ? count - skip : 0, c, other); \
    for (size_t i = 0; i < OM_ROW_SLICE; ++i) sum[i] = sum[i] + other[i];                   \
  }                                                                                         \
  OM_SUM_FN float name(const float *x, size_t count, float c) {                             \
    float even[OM_ROW_SLICE];                                                               \
    float odd[OM_ROW_SLICE];                                                                \
    size_t skip = OM_ROW_SLICE;                                                             \
    if (count <= skip) { /* the other lanes hold 0 */                                       \
      name##_slice(x, count, c, even);                                                      \
    } else {                                                                                \
      name##_pair(x, count, c, even);                                                       \
      name##_pair(x + skip, count - skip, c, odd);                                          \
      for (size_t i = 0; i < OM_ROW_SLICE; ++i) even[i] = even[i] + odd[i];                 \
    }                                                                                       \
    return om_row_fold_slice(even);                                                         \
  }

OM_DEFINE_ROW_SUM(om_row_sum, v)
OM_DEFINE_ROW_SUM(om_row_sum_squares, v *v)
OM_DEFINE_ROW_SUM(om_row_sum_abs, om_abs(v))
OM_DEFINE_ROW_SUM(om_row_sum_exp, om_exp(v - c))
OM_DEFINE_ROW_SUM(om_row_sum_square_differences, (v - c) * (v - c))

/* Maximum and minimum of a row: exact in any order. NaN wins; -infinity and infinity of an empty
 * row. */
static inline float om_row_max(const float *x, size_t count) {
  float best = -INFINITY;
  for (size_t i = 0; i < count; ++i) best = om_max(best, x[i]);
  return best;
}

static inline float om_row_min(const float *x, size_t count) {
  float best = INFINITY;
  for (size_t i = 0; i < count; ++i) best = om_min(best, x[i]);
  return best;
}

#endif
