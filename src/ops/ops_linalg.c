/* Det, and the contributed Inverse: elimination with the largest pivot (docs/exact.md, "Matrices").
 *
 *     scratch: the matrix, of Inverse beside a second one that begins as 1; doubles
 */
#include "cpu/exact/om_real.h"
#include "ops/om_rule.h"

static om_status check_square(om_ctx *ctx, const om_tensor *x) {
  char text[OM_SHAPE_TEXT];
  if (x->rank >= 2 && x->dims[x->rank - 1] == x->dims[x->rank - 2]) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "A tensor of shape %s holds no square matrices.",
                 om_shape_text(text, sizeof text, x->rank, x->dims));
}

static size_t extent_of(const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  return (size_t)x->dims[x->rank - 1];
}

typedef struct om_matrix { /* rows of `cols` elements, of which the first `size` are the matrix */
  om_real real;
  double *a;
  size_t size, cols;
} om_matrix;

/* The row at or below k with the largest magnitude in column k, the first of equals; NaN wins. */
static size_t find_pivot(const om_matrix *m, size_t k) {
  size_t best = k;
  for (size_t row = k + 1; row < m->size; ++row) {
    const double value = fabs(m->a[row * m->cols + k]);
    const double most = fabs(m->a[best * m->cols + k]);
    if (most == most && (value > most || value != value)) best = row;
  }
  return best;
}

static void swap_rows(const om_matrix *m, size_t a, size_t b) {
  for (size_t col = 0; a != b && col < m->cols; ++col) {
    const double value = m->a[a * m->cols + col];
    m->a[a * m->cols + col] = m->a[b * m->cols + col];
    m->a[b * m->cols + col] = value;
  }
}

/* row -= factor * pivot's row, in columns behind k. */
static void eliminate(const om_matrix *m, size_t row, size_t k, double factor) {
  double *target = m->a + row * m->cols;
  const double *source = m->a + k * m->cols;
  for (size_t col = k + 1; col < m->cols; ++col) {
    const double product = om_real_round(m->real, factor * source[col]);
    target[col] = om_real_round(m->real, target[col] - product);
  }
}

/* ---- Det ---- */

static om_status infer_det(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  OM_TRY(check_square(ctx, x));
  return om_rule_set(ctx, call, 0, x->dtype, x->rank - 2, x->dims);
}

static double determinant(const om_ctx *ctx, const om_matrix *m) {
  double det = 1.0;
  bool is_negative = false;
  for (size_t k = 0; k < m->size; ++k) {
    const size_t pivot = find_pivot(m, k);
    is_negative = is_negative != (pivot != k);
    swap_rows(m, k, pivot);
    const double value = m->a[k * m->cols + k];
    det = om_real_round(m->real, det * value);
    if (value == 0.0) return 0.0;
    for (size_t row = k + 1; row < m->size; ++row) {
      if (om_is_cancelled(ctx)) return 0.0;
      eliminate(m, row, k, om_real_round(m->real, m->a[row * m->cols + k] / value));
    }
  }
  return is_negative ? -det : det;
}

static size_t scratch_det(const om_op_call *call) {
  return extent_of(call) * extent_of(call) * sizeof(double);
}

static om_status run_det(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const size_t size = extent_of(call);
  const om_matrix m = {om_real_of(x->dtype), call->scratch, size, size};
  for (size_t i = 0; i < om_tensor_elems(call->outputs[0]); ++i) {
    OM_TRY(om_check_cancelled(ctx));
    for (size_t k = 0; k < size * size; ++k) {
      OM_TRY(om_check_turn(ctx, k));
      m.a[k] = om_real_load(x, i * size * size + k);
    }
    om_real_store(call->outputs[0], i, determinant(ctx, &m));
  }
  return OM_OK;
}

/* ---- Inverse ---- */

static om_status infer_inverse(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  OM_TRY(check_square(ctx, x));
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

/* The right half becomes the inverse of the left one. */
static void invert(const om_ctx *ctx, const om_matrix *m) {
  for (size_t k = 0; k < m->size; ++k) {
    swap_rows(m, k, find_pivot(m, k));
    double *row = m->a + k * m->cols;
    for (size_t col = k + 1; col < m->cols; ++col) {
      row[col] = om_real_round(m->real, row[col] / row[k]);
    }
    for (size_t other = 0; other < m->size && !om_is_cancelled(ctx); ++other) {
      if (other != k) eliminate(m, other, k, m->a[other * m->cols + k]);
    }
  }
}

static size_t scratch_inverse(const om_op_call *call) {
  return 2 * extent_of(call) * extent_of(call) * sizeof(double);
}

static om_status run_inverse(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const size_t size = extent_of(call);
  const om_matrix m = {om_real_of(x->dtype), call->scratch, size, 2 * size};
  for (size_t first = 0; first < om_tensor_elems(x); first += size * size) {
    OM_TRY(om_check_cancelled(ctx));
    for (size_t i = 0; i < size * size; ++i) {
      double *at = m.a + i / size * m.cols + i % size;
      OM_TRY(om_check_turn(ctx, i));
      at[0] = om_real_load(x, first + i);
      at[size] = i / size == i % size ? 1.0 : 0.0;
    }
    invert(ctx, &m);
    for (size_t i = 0; i < size * size; ++i) {
      OM_TRY(om_check_turn(ctx, i));
      om_real_store(call->outputs[0], first + i, m.a[i / size * m.cols + size + i % size]);
    }
  }
  return OM_OK;
}

const om_op om_ops_linalg[] = {
    {.domain = "",
     .type = "Det",
     .first_opset = 11,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .infer = infer_det,
     .scratch_bytes = scratch_det,
     .run = run_det},
    {.domain = "com.microsoft",
     .type = "Inverse",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .infer = infer_inverse,
     .scratch_bytes = scratch_inverse,
     .run = run_inverse},
    {.type = NULL},
};
