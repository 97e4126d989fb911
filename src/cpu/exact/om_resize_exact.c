/* Weighted sums along one axis. Rows are independent, so threads share them out freely. */
#include "cpu/exact/om_resize_exact.h"

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"

enum { ROWS_OF_A_PIECE = 16 }; /* of [outer, out] */

typedef struct resize_run {
  const om_resize_pass *pass;
  size_t elem_bytes;
  const void *x;
  void *y;
} resize_run;

#define OM_RESIZE_ROWS(REAL, name)                                               \
  OM_CLONES static void name(void *arg, size_t begin, size_t end) {              \
    const resize_run *run = arg;                                                 \
    const om_resize_pass *p = run->pass;                                         \
    const size_t inner = p->inner;                                               \
    size_t o = begin % p->out;                                                   \
    const REAL *x = (const REAL *)run->x + begin / p->out * p->in * inner;       \
    REAL *y = (REAL *)run->y + begin * inner;                                    \
    for (size_t row = begin; row < end; ++row, y += inner) {                     \
      const int32_t *elems = p->elems + o * p->taps;                             \
      const REAL *weights = (const REAL *)p->weights + o * p->taps;              \
      const REAL *first = x + (elems[0] < 0 ? 0 : (size_t)elems[0]) * inner;     \
      if (elems[0] < 0) {                                                        \
        for (size_t i = 0; i < inner; ++i) y[i] = *(const REAL *)p->outside;     \
      } else if (inner == 1) {                                                   \
        REAL sum = first[0] * weights[0];                                        \
        for (uint32_t t = 1; t < p->taps; ++t) sum += x[elems[t]] * weights[t];  \
        y[0] = sum;                                                              \
      } else {                                                                   \
        for (size_t i = 0; i < inner; ++i) y[i] = first[i] * weights[0];         \
        for (uint32_t t = 1; t < p->taps; ++t) {                                 \
          const REAL *next = x + (size_t)elems[t] * inner;                       \
          for (size_t i = 0; i < inner; ++i) y[i] = y[i] + next[i] * weights[t]; \
        }                                                                        \
      }                                                                          \
      if (++o < p->out) continue;                                                \
      o = 0; /* of the next row outside */                                       \
      x += p->in * inner;                                                        \
    }                                                                            \
  }

OM_RESIZE_ROWS(float, rows_f32)
OM_RESIZE_ROWS(double, rows_f64)

static void rows_copied(void *arg, size_t begin, size_t end) {
  const resize_run *run = arg;
  const om_resize_pass *p = run->pass;
  const size_t bytes = p->inner * run->elem_bytes;
  for (size_t row = begin; row < end; ++row) {
    const int32_t elem = p->elems[row % p->out];
    const char *x = (const char *)run->x + row / p->out * p->in * bytes;
    char *y = (char *)run->y + row * bytes;
    if (elem >= 0) {
      memcpy(y, x + (size_t)elem * bytes, bytes);
    } else {
      for (size_t i = 0; i < p->inner; ++i) {
        memcpy(y + i * run->elem_bytes, p->outside, run->elem_bytes);
      }
    }
  }
}

void om_resize_run_f32(om_ctx *ctx, const om_resize_pass *pass, const float *x, float *y) {
  resize_run run = {pass, sizeof *x, x, y};
  om_parallel_for(ctx, pass->outer * pass->out, ROWS_OF_A_PIECE, rows_f32, &run);
}

void om_resize_run_f64(om_ctx *ctx, const om_resize_pass *pass, const double *x, double *y) {
  resize_run run = {pass, sizeof *x, x, y};
  om_parallel_for(ctx, pass->outer * pass->out, ROWS_OF_A_PIECE, rows_f64, &run);
}

void om_resize_copy(
    om_ctx *ctx, const om_resize_pass *pass, size_t elem_bytes, const void *x, void *y) {
  resize_run run = {pass, elem_bytes, x, y};
  om_parallel_for(ctx, pass->outer * pass->out, ROWS_OF_A_PIECE, rows_copied, &run);
}
