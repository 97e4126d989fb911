/* Softmax: the largest, exponentials of the differences, their sum, division. The exponentials of
 * a float32 row wait in the result; those of a 16-bit one are computed again, since they would be
 * rounded there. */
#include "cpu/exact/om_softmax.h"

#include <math.h>

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_exact_math.h"

enum { OM_SOFTMAX_CHUNK = 128 };

typedef struct om_softmax_job {
  const om_rows *rows;
  om_softmax_kind kind;
  const void *in;
  void *out;
} om_softmax_job;

static void each_chunk(const om_row *row,
                       void *target,
                       void (*change)(float *values, size_t count, const float *args),
                       const float *args) {
  float chunk[OM_SOFTMAX_CHUNK];
  for (size_t i = 0; i < row->rows->row_elems; i += OM_SOFTMAX_CHUNK) {
    if (om_row_is_over(row, i)) return;
    size_t left = row->rows->row_elems - i;
    size_t count = left < OM_SOFTMAX_CHUNK ? left : OM_SOFTMAX_CHUNK;
    om_row_load(row, i, count, chunk);
    change(chunk, count, args);
    om_row_store(row, target, i, count, chunk);
  }
}

/* args: the row's largest, the sum. */
OM_CLONES static void change_to_exp(float *values, size_t count, const float *args) {
  for (size_t i = 0; i < count; ++i) values[i] = om_exp(values[i] - args[0]);
}

OM_CLONES static void change_by_division(float *values, size_t count, const float *args) {
  for (size_t i = 0; i < count; ++i) values[i] = om_div(values[i], args[1]);
}

OM_CLONES static void change_to_softmax(float *values, size_t count, const float *args) {
  for (size_t i = 0; i < count; ++i) values[i] = om_div(om_exp(values[i] - args[0]), args[1]);
}

OM_CLONES static void change_to_log(float *values, size_t count, const float *args) {
  float log_sum = om_ln(args[1]);
  for (size_t i = 0; i < count; ++i) values[i] = (values[i] - args[0]) - log_sum;
}

static void softmax_row(const om_softmax_job *job, const om_row *row) {
  float args[2] = {om_row_largest(row), 0.0f};
  if (job->kind == OM_SOFTMAX && job->rows->dtype == OM_DTYPE_F32) {
    om_row result = *row;
    result.data = job->out;
    each_chunk(row, job->out, change_to_exp, args);
    args[1] = om_row_fold(&result, OM_ROW_VALUE, 0.0f);
    each_chunk(&result, job->out, change_by_division, args);
    return;
  }
  args[1] = om_row_fold(row, OM_ROW_EXP, args[0]);
  each_chunk(row, job->out, job->kind == OM_SOFTMAX ? change_to_softmax : change_to_log, args);
}

static void hardmax_row(const om_softmax_job *job, const om_row *row) {
  float best = om_row_largest(row);
  bool is_found = false;
  for (size_t i = 0; i < job->rows->row_elems; ++i) {
    if (om_row_is_over(row, i)) return;
    float value = 0.0f;
    om_row_load(row, i, 1, &value);
    bool is_best = value == best || (om_is_nan(best) && om_is_nan(value));
    float mark = is_best && !is_found ? 1.0f : 0.0f;
    is_found = is_found || is_best;
    om_row_store(row, job->out, i, 1, &mark);
  }
}

static void run_range(void *arg, size_t begin, size_t end) {
  const om_softmax_job *job = arg;
  for (size_t i = begin; i < end; ++i) {
    om_row row = om_row_get(job->rows, job->in, i);
    if (job->kind == OM_HARDMAX) {
      hardmax_row(job, &row);
    } else {
      softmax_row(job, &row);
    }
  }
}

/* ---- float64: one chain of additions ---- */

static void row_f64(const om_softmax_job *job, const om_row *row) {
  const double *x = job->in;
  double *y = job->out;
  size_t count = job->rows->row_elems;
  double best = -INFINITY;
  double sum = 0.0;
  bool is_found = false;
  for (size_t i = 0; i < count && !om_row_is_over(row, i); ++i) {
    double v = x[om_row_place(row, i)];
    if (isnan(v) || v > best) best = v;
    if (isnan(best)) break;
  }
  for (size_t i = 0; i < count && !om_row_is_over(row, i); ++i) {
    sum += exp(x[om_row_place(row, i)] - best);
  }
  for (size_t i = 0; i < count && !om_row_is_over(row, i); ++i) {
    size_t at = om_row_place(row, i);
    if (job->kind == OM_SOFTMAX) {
      y[at] = exp(x[at] - best) / sum;
    } else if (job->kind == OM_LOG_SOFTMAX) {
      y[at] = x[at] - best - log(sum);
    } else {
      bool is_best = x[at] == best || (isnan(x[at]) && isnan(best));
      y[at] = is_best && !is_found ? 1.0 : 0.0;
      is_found = is_found || is_best;
    }
  }
}

static void run_range_f64(void *arg, size_t begin, size_t end) {
  const om_softmax_job *job = arg;
  for (size_t i = begin; i < end; ++i) {
    om_row row = om_row_get(job->rows, job->in, i);
    row_f64(job, &row);
  }
}

void om_softmax_run(
    om_ctx *ctx, const om_rows *rows, om_softmax_kind kind, const void *in, void *out) {
  om_rows own = *rows;
  om_softmax_job job = {&own, kind, in, out};
  own.ctx = ctx;
  if (rows->row_elems == 0) return; /* there may be very many such rows */
  om_parallel_for(ctx,
                  rows->row_count,
                  om_rows_grain(rows),
                  rows->dtype == OM_DTYPE_F64 ? run_range_f64 : run_range,
                  &job);
}
