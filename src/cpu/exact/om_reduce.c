/* Reductions. float32 and the 16-bit floats as docs/exact.md defines them; float64 by one chain of
 * additions; integers in 64 bits, of which the low ones are kept. */
#include "cpu/exact/om_reduce.h"

#include <math.h>

#include "base/om_thread.h"
#include "cpu/exact/om_elementwise.h"
#include "cpu/exact/om_exact_math.h"

typedef struct om_reduce_job {
  const om_rows *rows;
  om_reduce_kind kind;
  const void *in;
  void *out;
} om_reduce_job;

/* ---- float32 ---- */

static float reduce_f32(const om_row *row, om_reduce_kind kind) {
  float count = (float)row->rows->row_elems;
  float shift = 0.0f;
  switch (kind) {
    case OM_REDUCE_SUM:
      return om_row_fold(row, OM_ROW_VALUE, 0.0f);
    case OM_REDUCE_MEAN:
      return om_div(om_row_fold(row, OM_ROW_VALUE, 0.0f), count);
    case OM_REDUCE_MAX:
      return om_row_largest(row);
    case OM_REDUCE_MIN:
      return om_row_smallest(row);
    case OM_REDUCE_PROD:
      return om_row_fold(row, OM_ROW_FACTOR, 0.0f);
    case OM_REDUCE_L1:
      return om_row_fold(row, OM_ROW_ABS, 0.0f);
    case OM_REDUCE_L2:
      return om_sqrt(om_row_fold(row, OM_ROW_SQUARE, 0.0f));
    case OM_REDUCE_SUM_SQUARE:
      return om_row_fold(row, OM_ROW_SQUARE, 0.0f);
    case OM_REDUCE_LOG_SUM:
      return om_ln(om_row_fold(row, OM_ROW_VALUE, 0.0f));
    case OM_REDUCE_LOG_SUM_EXP:
      shift = om_row_largest(row);
      if (om_is_inf(shift)) shift = 0.0f;
      return om_ln(om_row_fold(row, OM_ROW_EXP, shift)) + shift;
  }
  return 0.0f;
}

static void reduce_range_f32(void *arg, size_t begin, size_t end) {
  const om_reduce_job *job = arg;
  for (size_t i = begin; i < end; ++i) {
    om_row row = om_row_get(job->rows, job->in, i);
    float value = reduce_f32(&row, job->kind);
    if (job->rows->dtype == OM_DTYPE_F32) {
      ((float *)job->out)[i] = value;
    } else {
      om_half_from_f32(job->rows->dtype, &value, 1, (uint16_t *)job->out + i);
    }
  }
}

/* ---- float64 ---- */

static double larger(double a, double b) {
  return isnan(a) || isnan(b) ? NAN : (a > b ? a : b);
}

static double smaller(double a, double b) {
  return isnan(a) || isnan(b) ? NAN : (a < b ? a : b);
}

static double term_f64(om_reduce_kind kind, double sum, double v) {
  switch (kind) {
    case OM_REDUCE_MAX:
      return larger(sum, v);
    case OM_REDUCE_MIN:
      return smaller(sum, v);
    case OM_REDUCE_PROD:
      return sum * v;
    case OM_REDUCE_L1:
      return sum + fabs(v);
    case OM_REDUCE_L2:
    case OM_REDUCE_SUM_SQUARE:
      return sum + v * v;
    default:
      return sum + v;
  }
}

static double initial_f64(om_reduce_kind kind) {
  switch (kind) {
    case OM_REDUCE_MAX:
      return -INFINITY;
    case OM_REDUCE_MIN:
      return INFINITY;
    case OM_REDUCE_PROD:
      return 1.0;
    default:
      return 0.0;
  }
}

static double finish_f64(om_reduce_kind kind, double sum, double count) {
  switch (kind) {
    case OM_REDUCE_MEAN:
      return sum / count;
    case OM_REDUCE_L2:
      return sqrt(sum);
    case OM_REDUCE_LOG_SUM:
      return log(sum);
    default:
      return sum;
  }
}

static double reduce_f64(const om_row *row, om_reduce_kind kind) {
  const double *x = row->data;
  size_t count = row->rows->row_elems;
  double sum = initial_f64(kind);
  if (kind == OM_REDUCE_LOG_SUM_EXP) {
    double shift = -INFINITY;
    for (size_t i = 0; i < count && !om_row_is_over(row, i); ++i) {
      shift = larger(shift, x[om_row_place(row, i)]);
    }
    if (isinf(shift)) shift = 0.0;
    for (size_t i = 0; i < count && !om_row_is_over(row, i); ++i) {
      sum += exp(x[om_row_place(row, i)] - shift);
    }
    return log(sum) + shift;
  }
  for (size_t i = 0; i < count && !om_row_is_over(row, i); ++i) {
    sum = term_f64(kind, sum, x[om_row_place(row, i)]);
  }
  return finish_f64(kind, sum, (double)count);
}

static void reduce_range_f64(void *arg, size_t begin, size_t end) {
  const om_reduce_job *job = arg;
  for (size_t i = begin; i < end; ++i) {
    om_row row = om_row_get(job->rows, job->in, i);
    ((double *)job->out)[i] = reduce_f64(&row, job->kind);
  }
}

/* ---- Integers ---- */

/* Elements as 64 bits: sign-extended, or zero-extended. */
static uint64_t load_int(om_dtype dtype, const void *data, size_t i) {
  switch (dtype) {
    case OM_DTYPE_I8:
      return (uint64_t)((const int8_t *)data)[i];
    case OM_DTYPE_I16:
      return (uint64_t)((const int16_t *)data)[i];
    case OM_DTYPE_I32:
      return (uint64_t)((const int32_t *)data)[i];
    case OM_DTYPE_BOOL:
      return ((const uint8_t *)data)[i] != 0;
    case OM_DTYPE_U8:
      return ((const uint8_t *)data)[i];
    case OM_DTYPE_U16:
      return ((const uint16_t *)data)[i];
    case OM_DTYPE_U32:
      return ((const uint32_t *)data)[i];
    default:
      return ((const uint64_t *)data)[i];
  }
}

static void store_int(om_dtype dtype, uint64_t value, void *data, size_t i) {
  switch (om_dtype_bits(dtype)) {
    case 8:
      ((uint8_t *)data)[i] = (uint8_t)value;
      break;
    case 16:
      ((uint16_t *)data)[i] = (uint16_t)value;
      break;
    case 32:
      ((uint32_t *)data)[i] = (uint32_t)value;
      break;
    default:
      ((uint64_t *)data)[i] = value;
      break;
  }
}

static bool is_signed(om_dtype dtype) {
  return dtype == OM_DTYPE_I8 || dtype == OM_DTYPE_I16 || dtype == OM_DTYPE_I32 ||
         dtype == OM_DTYPE_I64;
}

static bool is_less(bool with_sign, uint64_t a, uint64_t b) {
  return with_sign ? (int64_t)a < (int64_t)b : a < b;
}

/* The type's lowest or highest value, as 64 bits. */
static uint64_t limit_of(om_dtype dtype, bool highest) {
  size_t bits = dtype == OM_DTYPE_BOOL ? 1 : om_dtype_bits(dtype);
  uint64_t all = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
  if (!is_signed(dtype)) return highest ? all : 0;
  return highest ? all >> 1 : ~(all >> 1);
}

static uint64_t magnitude(bool with_sign, uint64_t v) {
  return with_sign && (v >> 63) != 0 ? 0 - v : v;
}

static uint64_t f64_to_bits(double value) {
  if (!(value > -9223372036854775808.0)) return isnan(value) ? 0 : (uint64_t)INT64_MIN;
  return value >= 9223372036854775808.0 ? (uint64_t)INT64_MAX : (uint64_t)(int64_t)value;
}

/* LogSum, LogSumExp and L2 of integers: in float64, toward zero. */
static uint64_t reduce_int_as_f64(const om_row *row, om_reduce_kind kind) {
  om_dtype dtype = row->rows->dtype;
  double sum = 0.0;
  for (size_t i = 0; i < row->rows->row_elems && !om_row_is_over(row, i); ++i) {
    uint64_t bits = load_int(dtype, row->data, om_row_place(row, i));
    double v = is_signed(dtype) ? (double)(int64_t)bits : (double)bits;
    sum += kind == OM_REDUCE_L2 ? v * v : (kind == OM_REDUCE_LOG_SUM ? v : exp(v));
  }
  return f64_to_bits(kind == OM_REDUCE_L2 ? sqrt(sum) : log(sum));
}

static uint64_t reduce_int(const om_row *row, om_reduce_kind kind) {
  om_dtype dtype = row->rows->dtype;
  bool with_sign = is_signed(dtype);
  size_t count = row->rows->row_elems;
  uint64_t sum = kind == OM_REDUCE_PROD ? 1 : 0;
  if (kind == OM_REDUCE_L2 || kind >= OM_REDUCE_LOG_SUM) return reduce_int_as_f64(row, kind);
  if (kind == OM_REDUCE_MAX) sum = limit_of(dtype, false);
  if (kind == OM_REDUCE_MIN) sum = limit_of(dtype, true);
  for (size_t i = 0; i < count && !om_row_is_over(row, i); ++i) {
    uint64_t v = load_int(dtype, row->data, om_row_place(row, i));
    switch (kind) {
      case OM_REDUCE_MAX:
        sum = is_less(with_sign, sum, v) ? v : sum;
        break;
      case OM_REDUCE_MIN:
        sum = is_less(with_sign, v, sum) ? v : sum;
        break;
      case OM_REDUCE_PROD:
        sum *= v;
        break;
      case OM_REDUCE_L1:
        sum += magnitude(with_sign, v);
        break;
      case OM_REDUCE_SUM_SQUARE:
        sum += v * v;
        break;
      default:
        sum += v;
        break;
    }
  }
  if (kind != OM_REDUCE_MEAN) return sum;
  if (count == 0) return 0;
  return with_sign ? (uint64_t)((int64_t)sum / (int64_t)count) : sum / count;
}

static void reduce_range_int(void *arg, size_t begin, size_t end) {
  const om_reduce_job *job = arg;
  for (size_t i = begin; i < end; ++i) {
    om_row row = om_row_get(job->rows, job->in, i);
    store_int(job->rows->dtype, reduce_int(&row, job->kind), job->out, i);
  }
}

static bool is_f32_or_half(om_dtype dtype) {
  return dtype == OM_DTYPE_F32 || dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16;
}

void om_reduce_run(
    om_ctx *ctx, const om_rows *rows, om_reduce_kind kind, const void *in, void *out) {
  om_rows own = *rows;
  om_reduce_job job = {&own, kind, in, out};
  om_range_fn fn = reduce_range_int;
  own.ctx = ctx;
  if (is_f32_or_half(rows->dtype)) fn = reduce_range_f32;
  if (rows->dtype == OM_DTYPE_F64) fn = reduce_range_f64;
  om_parallel_for(ctx, rows->row_count, om_rows_grain(rows), fn, &job);
}

/* ---- The place of the largest ---- */

typedef struct om_arg_range {
  const om_rows *rows;
  const om_arg_job *job;
  const void *in;
  int64_t *out;
} om_arg_range;

/* -1, 0 or 1: `a` comes before, beside or after `b` in the order that is asked for. */
static int order_of(const om_arg_range *r, const om_row *row, size_t a, size_t b) {
  om_dtype dtype = r->rows->dtype;
  size_t at_a = om_row_place(row, a);
  size_t at_b = om_row_place(row, b);
  bool is_before = false;
  bool is_after = false;
  if (is_f32_or_half(dtype) || dtype == OM_DTYPE_F64) {
    double x = 0.0;
    double y = 0.0;
    if (dtype == OM_DTYPE_F64) {
      x = ((const double *)row->data)[at_a];
      y = ((const double *)row->data)[at_b];
    } else {
      float value = 0.0f;
      om_row_load(row, a, 1, &value);
      x = (double)value;
      om_row_load(row, b, 1, &value);
      y = (double)value;
    }
    if (isnan(x) || isnan(y)) return (isnan(y) ? 1 : 0) - (isnan(x) ? 1 : 0);
    is_before = r->job->wants_largest ? x > y : x < y;
    is_after = r->job->wants_largest ? x < y : x > y;
  } else {
    uint64_t x = load_int(dtype, row->data, at_a);
    uint64_t y = load_int(dtype, row->data, at_b);
    bool is_lower = is_less(is_signed(dtype), x, y);
    is_before = x != y && (r->job->wants_largest ? !is_lower : is_lower);
    is_after = x != y && !is_before;
  }
  return is_before ? -1 : (is_after ? 1 : 0);
}

static void arg_range(void *arg, size_t begin, size_t end) {
  const om_arg_range *r = arg;
  for (size_t i = begin; i < end; ++i) {
    om_row row = om_row_get(r->rows, r->in, i);
    size_t best = 0;
    for (size_t k = 1; k < r->rows->row_elems && !om_row_is_over(&row, k); ++k) {
      int order = order_of(r, &row, k, best);
      if (order < 0 || (order == 0 && r->job->wants_last)) best = k;
    }
    r->out[i] = (int64_t)best;
  }
}

void om_arg_run(
    om_ctx *ctx, const om_rows *rows, const om_arg_job *job, const void *in, int64_t *out) {
  om_rows own = *rows;
  om_arg_range range = {&own, job, in, out};
  own.ctx = ctx;
  om_parallel_for(ctx, rows->row_count, om_rows_grain(rows), arg_range, &range);
}
