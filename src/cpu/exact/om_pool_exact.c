/* Exact pools for float32 and float64: om_pool_exact.inc, twice. */
#include "cpu/exact/om_pool_exact.h"

#include <math.h>

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_exact_sum.h"
#include "cpu/exact/om_extremes.h"

enum { REDUCE_LANES = 256 }; /* docs/exact.md, "Reductions" */

/* The taps of a window along one axis that are inside [0, in): begin..end-1. */
static void taps_inside(
    const om_pool_window *w, int axis, int64_t start, int64_t *begin, int64_t *end) {
  const int64_t step = w->dilation[axis];
  *begin = start >= 0 ? 0 : (-start + step - 1) / step;
  *end = start >= w->in[axis] ? 0 : (w->in[axis] - start + step - 1) / step;
  if (*end > w->kernel[axis]) *end = w->kernel[axis];
}

/* How many taps of a window are inside the padded input. */
static int64_t taps_padded(const om_pool_window *w, int axis, int64_t start) {
  const int64_t step = w->dilation[axis];
  const int64_t room = w->in[axis] + w->pad_end[axis] - start;
  const int64_t taps = room <= 0 ? 0 : (room + step - 1) / step;
  return taps < w->kernel[axis] ? taps : w->kernel[axis];
}

/* The taps of a window by which a mean divides. */
static int64_t taps_counted(const om_pool_window *w, bool is_padded, int axis, int64_t start) {
  int64_t begin, end;
  if (is_padded) return taps_padded(w, axis, start);
  taps_inside(w, axis, start, &begin, &end);
  return end > begin ? end - begin : 0;
}

/* Places of one window: the taps inside the input, and the result it makes. */
typedef struct window_at {
  int64_t start[3];
  int64_t begin[3];
  int64_t end[3];
} window_at;

static window_at window_of(const om_pool_window *w, int64_t pixel) {
  window_at at;
  for (int axis = 2; axis >= 0; --axis) {
    at.start[axis] = pixel % w->out[axis] * w->stride[axis] - w->pad_begin[axis];
    pixel /= w->out[axis];
    taps_inside(w, axis, at.start[axis], &at.begin[axis], &at.end[axis]);
  }
  return at;
}

static int64_t index_of(const om_pool_window *w, bool is_column_major, const int64_t at[3]) {
  return is_column_major ? at[0] + w->in[0] * (at[1] + w->in[1] * at[2])
                         : (at[0] * w->in[1] + at[1]) * w->in[2] + at[2];
}

/* A subnormal is a zero of its sign. */
static inline float flushed_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7f800000u) == 0) bits &= 0x80000000u;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline double flushed_f64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7ff0000000000000u) == 0) bits &= 0x8000000000000000u;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Taps begin..end-1, or results begin..end-1, of a row. */
typedef struct row_span {
  int64_t begin;
  int64_t end;
} row_span;

/* Results of a row whose tap at `start`, for the first result, is inside the input. */
static row_span results_inside(const om_pool_window *w, int64_t start) {
  const int64_t step = w->stride[2];
  row_span span = {.begin = start >= 0 ? 0 : (-start + step - 1) / step};
  if (start < w->in[2]) span.end = (w->in[2] - 1 - start) / step + 1;
  if (span.end > w->out[2]) span.end = w->out[2];
  return span;
}

OM_CLONES static float sum_row(const float *x, size_t count) {
  return om_row_sum(x, count, 0.0f);
}

static double greater_f64(double a, double b) {
  if (a != a || b != b) return (double)NAN;
  return b > a || (a == 0 && b == 0 && signbit(a)) ? b : a;
}

/* The taps that are inside the input for some result of a row, as far as its ends tell. */
static row_span taps_of_row(const om_pool_window *w) {
  const int64_t reach = (w->out[2] - 1) * w->stride[2];
  row_span taps, last;
  taps_inside(w, 2, reach - w->pad_begin[2], &taps.begin, &last.end);
  taps_inside(w, 2, -w->pad_begin[2], &last.begin, &taps.end);
  return taps;
}

#define REAL                float
#define NAME(name)          name##_f32
#define ABS(x)              fabsf(x)
#define SQRT(x)             sqrtf(x)
#define POW(x, y)           om_pow(x, y)
#define MAX(x, y)           om_lane_max(x, y)
#define PLAIN_SUM(fn, p, x) sum_row(x, (p)->elems)
#include "cpu/exact/om_pool_exact.inc"
#undef REAL
#undef NAME
#undef ABS
#undef SQRT
#undef POW
#undef MAX
#undef PLAIN_SUM

#define REAL                double
#define NAME(name)          name##_f64
#define ABS(x)              fabs(x)
#define SQRT(x)             sqrt(x)
#define POW(x, y)           pow(x, y)
#define MAX(x, y)           greater_f64(x, flushed_f64(y))
#define PLAIN_SUM(fn, p, x) fn(p, x)
#include "cpu/exact/om_pool_exact.inc"
