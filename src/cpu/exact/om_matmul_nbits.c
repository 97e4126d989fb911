/* Products by matrices of few bits: see om_matmul_nbits.h. */
#include "cpu/exact/om_matmul_nbits.h"

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_matmul.h"

typedef struct widening { /* of columns first .. first + count, to b[count, depth] */
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
                     .b_depth_stride = 1,
                     .b_col_stride = m->depth};
}

/* (A frame of its own: the descriptions are large.) */
__attribute__((noinline)) static size_t product_floats(const om_matmul_nbits *m) {
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

/* `count` elements of one group, from a whole byte on. */
#define OM_WIDEN(name, bits)                                                               \
  OM_CLONES static void name(                                                              \
      const uint8_t *packed, size_t count, float zero, float scale, float *b) {            \
    enum { PER_BYTE = 8 / (bits) };                                                        \
    for (size_t i = 0; i < count / PER_BYTE; ++i) {                                        \
      for (unsigned k = 0; k < PER_BYTE; ++k) {                                            \
        const int q = packed[i] >> (k * (bits)) & ((1 << (bits)) - 1);                     \
        b[i * PER_BYTE + k] = ((float)q - zero) * scale;                                   \
      }                                                                                    \
    }                                                                                      \
    for (size_t k = count - count % PER_BYTE; k < count; ++k) {                            \
      const int q = packed[k / PER_BYTE] >> (k % PER_BYTE * (bits)) & ((1 << (bits)) - 1); \
      b[k] = ((float)q - zero) * scale;                                                    \
    }                                                                                      \
  }
OM_WIDEN(widen_2, 2)
OM_WIDEN(widen_4, 4)
OM_WIDEN(widen_8, 8)

static float element_of(const om_matmul_nbits *m, const uint8_t *packed, size_t k) {
  const size_t bit = k * m->bits;
  return (float)((uint32_t)(packed[bit / 8] >> bit % 8) & ((1u << m->bits) - 1));
}

static void widen(void *arg, size_t begin, size_t end) {
  const widening *w = arg;
  const om_matmul_nbits *m = w->m;
  const size_t group_bytes = m->block * m->bits / 8;
  const float middle = (float)(1u << (m->bits - 1));
  void (*const run)(const uint8_t *, size_t, float, float, float *) =
      m->bits == 2 ? widen_2 : (m->bits == 4 ? widen_4 : widen_8);
  for (size_t i = begin; i < end; ++i) {
    const size_t col = w->first + i;
    const uint8_t *packed = m->b + col * m->groups * group_bytes;
    const float *scales = m->scales + col * m->groups;
    const float *zeros = m->zeros ? m->zeros + col * m->groups : NULL;
    float *b = w->b + i * m->depth;
    for (size_t k = 0; m->group_of && k < m->depth; ++k) {
      const size_t group = (size_t)m->group_of[k];
      b[k] = (element_of(m, packed, k) - (zeros ? zeros[group] : middle)) * scales[group];
    }
    for (size_t group = 0; !m->group_of && group * m->block < m->depth; ++group) {
      const size_t left = m->depth - group * m->block;
      const size_t count = left < m->block ? left : m->block;
      const float zero = zeros ? zeros[group] : middle;
      run(packed + group * group_bytes, count, zero, scales[group], b + group * m->block);
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
