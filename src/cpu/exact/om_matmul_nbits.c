/* Products by matrices of few bits: see om_matmul_nbits.h. */
#include "cpu/exact/om_matmul_nbits.h"

#include "base/om_thread.h"
#include "cpu/exact/om_matmul.h"

typedef struct widening { /* of columns first .. first + count, to b[depth, count] */
  const om_matmul_nbits *m;
  size_t first, count;
  float *b;
} widening;

static size_t cols_at_once(const om_matmul_nbits *m) {
  return m->cols < OM_NBITS_COLS ? m->cols : OM_NBITS_COLS;
}

static om_matmul product_of(const om_matmul_nbits *m, size_t cols) {
  return (om_matmul){.rows = m->rows,
                     .cols = cols,
                     .depth = m->depth,
                     .a_row_stride = m->depth,
                     .a_depth_stride = 1,
                     .b_depth_stride = cols,
                     .b_col_stride = 1};
}

static size_t product_floats(const om_matmul_nbits *m) {
  const om_matmul product = product_of(m, cols_at_once(m));
  const om_matmul last = product_of(m, m->cols % OM_NBITS_COLS);
  const size_t most = om_matmul_scratch_bytes(&product, sizeof(float));
  const size_t of_last = om_matmul_scratch_bytes(&last, sizeof(float));
  return (most > of_last ? most : of_last) / sizeof(float);
}

bool om_matmul_nbits_scratch(const om_matmul_nbits *m, size_t *out_floats) {
  return om_size_add(m->depth, m->rows, out_floats) &&
         om_size_mul(*out_floats, cols_at_once(m), out_floats) &&
         om_size_add(*out_floats, product_floats(m), out_floats);
}

static void widen(void *arg, size_t begin, size_t end) {
  const widening *w = arg;
  const om_matmul_nbits *m = w->m;
  const uint32_t mask = (1u << m->bits) - 1;
  const size_t col_bytes = m->groups * m->block * m->bits / 8;
  const float middle = (float)(1u << (m->bits - 1));
  for (size_t i = begin; i < end; ++i) {
    const size_t col = w->first + i;
    const uint8_t *packed = m->b + col * col_bytes;
    const float *scales = m->scales + col * m->groups;
    const float *zeros = m->zeros ? m->zeros + col * m->groups : NULL;
    for (size_t k = 0; k < m->depth; ++k) {
      const size_t group = m->group_of ? (size_t)m->group_of[k] : k / m->block;
      const size_t bit = k * m->bits;
      const float q = (float)((uint32_t)(packed[bit / 8] >> bit % 8) & mask);
      w->b[k * w->count + i] = (q - (zeros ? zeros[group] : middle)) * scales[group];
    }
  }
}

static void store(const om_matmul_nbits *m, const widening *w, const float *part) {
  for (size_t row = 0; row < m->rows; ++row) {
    float *y = m->y + row * m->cols + w->first;
    const float *from = part + row * w->count;
    for (size_t i = 0; i < w->count; ++i)
      y[i] = m->bias ? from[i] + m->bias[w->first + i] : from[i];
  }
}

void om_matmul_nbits_run(om_ctx *ctx, const om_matmul_nbits *m, float *scratch) {
  const size_t most = cols_at_once(m);
  widening w = {.m = m};
  float *own = scratch;
  w.b = own + product_floats(m);
  float *part = w.b + m->depth * most;
  for (; w.first < m->cols; w.first += most) {
    w.count = m->cols - w.first < most ? m->cols - w.first : most;
    om_parallel_for(ctx, w.count, 16, widen, &w);
    const om_matmul product = product_of(m, w.count);
    om_matmul_f32(ctx, &product, m->a, w.b, part, own);
    store(m, &w, part);
  }
}
