/* Normalisations. 16-bit floats are computed in float32 and rounded once; float64 has loops of its
 * own at the end. */
#include "cpu/exact/om_norm.h"

#include <math.h>
#include <string.h>

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_elementwise.h"
#include "cpu/exact/om_exact_math.h"

enum {
  OM_NORM_CHUNK = 64,
  OM_NORM_GRAIN = 16384, /* elements a piece of BatchNormalization */
};

typedef struct om_norm_range {
  const om_rows *rows;
  const om_rows *out_rows; /* the same rows of the result's type */
  const om_norm_job *job;
} om_norm_range;

/* The GPU's binder asks, too, for constants that lie unaligned in the model's file. */
static float load_one(const om_tensor *t, size_t i) {
  float value = 0.0f;
  if (t->dtype == OM_DTYPE_F32) {
    memcpy(&value, (const char *)t->data + i * sizeof value, sizeof value);
    return value;
  }
  if (t->dtype == OM_DTYPE_F64) return (float)((const double *)t->data)[i];
  om_half_to_f32(t->dtype, (const uint16_t *)t->data + i, 1, &value);
  return value;
}

static void store_one(om_tensor *t, size_t i, double value) {
  float f32 = (float)value;
  if (t->dtype == OM_DTYPE_F32) {
    ((float *)t->data)[i] = f32;
  } else if (t->dtype == OM_DTYPE_F64) {
    ((double *)t->data)[i] = value;
  } else {
    om_half_from_f32(t->dtype, &f32, 1, (uint16_t *)t->data + i);
  }
}

static size_t place_of(const om_norm_place *p, size_t row, size_t element) {
  return row % p->row_period * p->row_step + element / p->inner % p->period;
}

/* What a row is shifted by, and multiplied or divided by. */
typedef struct om_norm_row {
  float mean;
  float factor;
  bool divides;
} om_norm_row;

static om_norm_row measure(const om_row *row, const om_norm_job *job) {
  om_norm_row r = {0.0f, 1.0f, false};
  float count = (float)row->rows->row_elems;
  float mean_square = 0.0f;
  switch (job->kind) {
    case OM_NORM_DEVIATION:
    case OM_NORM_SHARP:
      r.mean = om_div(om_row_fold(row, OM_ROW_VALUE, 0.0f), count);
      mean_square = om_div(om_row_fold(row, OM_ROW_DIFFERENCE_SQUARE, r.mean), count);
      if (job->kind == OM_NORM_SHARP) {
        r.divides = true;
        r.factor = om_sqrt(mean_square) + job->epsilon;
      } else {
        r.factor = om_div(1.0f, om_sqrt(mean_square + job->epsilon));
      }
      break;
    case OM_NORM_ROOT_MEAN:
      mean_square = om_div(om_row_fold(row, OM_ROW_SQUARE, 0.0f), count);
      r.factor = om_div(1.0f, om_sqrt(mean_square + job->epsilon));
      break;
    case OM_NORM_L1:
      r.divides = true;
      r.factor = om_row_fold(row, OM_ROW_ABS, 0.0f);
      break;
    case OM_NORM_L2:
      r.divides = true;
      r.factor = om_sqrt(om_row_fold(row, OM_ROW_SQUARE, 0.0f));
      break;
  }
  return r;
}

static void standardise(float *values, size_t count, om_norm_row r, bool has_mean) {
  if (has_mean) {
    for (size_t i = 0; i < count; ++i) values[i] = values[i] - r.mean;
  }
  if (r.divides) {
    for (size_t i = 0; i < count; ++i) values[i] = om_div(values[i], r.factor);
  } else {
    for (size_t i = 0; i < count; ++i) values[i] = values[i] * r.factor;
  }
}

/* Scales or biases of elements [first, first + count) of a row. */
static void load_chunk(const om_norm_job *job,
                       const om_tensor *t,
                       size_t index,
                       size_t first,
                       size_t count,
                       float *out) {
  const om_norm_place *p = &job->place;
  const size_t at = place_of(p, index, first);
  const bool is_dense = p->inner == 1 && first % p->period + count <= p->period;
  if (is_dense && t->dtype == OM_DTYPE_F32) {
    memcpy(out, (const float *)t->data + at, count * sizeof *out);
    return;
  }
  for (size_t i = 0; i < count; ++i) out[i] = load_one(t, place_of(p, index, first + i));
}

/* Where a dense row's elements have theirs one after the other as float32; else NULL. */
static const float *dense_operand(const om_norm_job *job,
                                  const om_tensor *t,
                                  const om_row *row,
                                  size_t index) {
  const om_norm_place *p = &job->place;
  if (t->dtype != OM_DTYPE_F32 || p->inner != 1 || p->period < row->rows->row_elems) return NULL;
  return (const float *)t->data + place_of(p, index, 0);
}

/* ((x - mean) * factor) * scale + bias; `scale` and `bias` may be NULL. */
OM_CLONES static void normalise_dense(
    const float *x, size_t count, om_norm_row r, const float *scale, const float *bias, float *y) {
  if (scale && bias) {
    for (size_t i = 0; i < count; ++i) y[i] = (x[i] - r.mean) * r.factor * scale[i] + bias[i];
  } else if (scale) {
    for (size_t i = 0; i < count; ++i) y[i] = (x[i] - r.mean) * r.factor * scale[i];
  } else {
    for (size_t i = 0; i < count; ++i) y[i] = (x[i] - r.mean) * r.factor;
  }
}

static void normalise(const om_norm_range *range, const om_row *row, size_t index, om_norm_row r) {
  const om_norm_job *job = range->job;
  const float *x = om_row_dense(row);
  const float *scale = job->scale ? dense_operand(job, job->scale, row, index) : NULL;
  const float *bias = job->bias ? dense_operand(job, job->bias, row, index) : NULL;
  const bool is_short = row->rows->row_elems <= OM_NORM_GRAIN; /* long rows ask for an end within */
  const bool is_plain = x && is_short && range->out_rows->dtype == OM_DTYPE_F32 && !r.divides;
  if (is_plain && !scale == !job->scale && !bias == !job->bias && (scale || !bias)) {
    float *y = (float *)job->out + row->offset;
    normalise_dense(x, row->rows->row_elems, r, scale, bias, y);
    return;
  }
  om_row to = *row;
  float chunk[OM_NORM_CHUNK];
  float other[OM_NORM_CHUNK];
  bool has_mean = job->kind == OM_NORM_DEVIATION || job->kind == OM_NORM_SHARP;
  to.rows = range->out_rows;
  for (size_t first = 0; first < row->rows->row_elems; first += OM_NORM_CHUNK) {
    if (om_row_is_over(row, first)) return;
    size_t left = row->rows->row_elems - first;
    size_t count = left < OM_NORM_CHUNK ? left : OM_NORM_CHUNK;
    om_row_load(row, first, count, chunk);
    standardise(chunk, count, r, has_mean);
    if (job->scale) {
      load_chunk(job, job->scale, index, first, count, other);
      for (size_t i = 0; i < count; ++i) chunk[i] = chunk[i] * other[i];
    }
    if (job->bias) {
      load_chunk(job, job->bias, index, first, count, other);
      for (size_t i = 0; i < count; ++i) chunk[i] = chunk[i] + other[i];
    }
    om_row_store(&to, job->out, first, count, chunk);
  }
}

static void run_range(void *arg, size_t begin, size_t end) {
  const om_norm_range *range = arg;
  for (size_t i = begin; i < end; ++i) {
    om_row row = om_row_get(range->rows, range->job->in, i);
    om_norm_row r = measure(&row, range->job);
    normalise(range, &row, i, r);
    if (range->job->mean) store_one(range->job->mean, i, (double)r.mean);
    if (range->job->inverse) store_one(range->job->inverse, i, (double)r.factor);
  }
}

/* ---- float64 ---- */

static double load_one_f64(const om_tensor *t, size_t i) {
  return t->dtype == OM_DTYPE_F64 ? ((const double *)t->data)[i] : (double)load_one(t, i);
}

/* Element `index` of the row, of any float type. */
static double load_row_f64(const om_row *row, size_t index) {
  float value = 0.0f;
  if (row->rows->dtype == OM_DTYPE_F64) {
    return ((const double *)row->data)[om_row_place(row, index)];
  }
  om_row_load(row, index, 1, &value);
  return (double)value;
}

typedef struct om_norm_row_f64 {
  double mean;
  double factor; /* to divide by */
} om_norm_row_f64;

static om_norm_row_f64 measure_f64(const om_row *row, const om_norm_job *job) {
  size_t count = row->rows->row_elems;
  double epsilon = (double)job->epsilon;
  double sum = 0.0;
  double squares = 0.0;
  om_norm_row_f64 r = {0.0, 1.0};
  if (job->kind == OM_NORM_DEVIATION || job->kind == OM_NORM_SHARP) {
    for (size_t i = 0; i < count && !om_row_is_over(row, i); ++i) {
      sum += load_row_f64(row, i);
    }
    r.mean = sum / (double)count;
  }
  sum = 0.0;
  for (size_t i = 0; i < count && !om_row_is_over(row, i); ++i) {
    double v = load_row_f64(row, i) - r.mean;
    squares += v * v;
    sum += fabs(v);
  }
  switch (job->kind) {
    case OM_NORM_DEVIATION:
    case OM_NORM_ROOT_MEAN:
      r.factor = sqrt(squares / (double)count + epsilon);
      break;
    case OM_NORM_SHARP:
      r.factor = sqrt(squares / (double)count) + epsilon;
      break;
    case OM_NORM_L1:
      r.factor = sum;
      break;
    case OM_NORM_L2:
      r.factor = sqrt(squares);
      break;
  }
  return r;
}

static void run_range_f64(void *arg, size_t begin, size_t end) {
  const om_norm_range *range = arg;
  const om_norm_job *job = range->job;
  om_tensor y = {.dtype = job->out_dtype, .data = job->out};
  for (size_t i = begin; i < end; ++i) {
    om_row row = om_row_get(range->rows, job->in, i);
    om_norm_row_f64 r = measure_f64(&row, job);
    for (size_t k = 0; k < range->rows->row_elems && !om_row_is_over(&row, k); ++k) {
      size_t at = om_row_place(&row, k);
      size_t place = place_of(&job->place, i, k);
      double value = (load_row_f64(&row, k) - r.mean) / r.factor;
      if (job->scale) value *= load_one_f64(job->scale, place);
      if (job->bias) value += load_one_f64(job->bias, place);
      store_one(&y, at, value);
    }
    if (job->mean) store_one(job->mean, i, r.mean);
    if (job->inverse) store_one(job->inverse, i, 1.0 / r.factor);
  }
}

void om_norm_run(om_ctx *ctx, const om_rows *rows, const om_norm_job *job) {
  om_rows own = *rows;
  own.ctx = ctx;
  om_rows target = own;
  target.dtype = job->out_dtype;
  om_norm_range range = {&own, &target, job};
  const bool is_f64 = own.dtype == OM_DTYPE_F64 || target.dtype == OM_DTYPE_F64;
  /* There may be very many rows of no elements. */
  if (rows->row_elems == 0 && !job->mean && !job->inverse) return;
  om_parallel_for(
      ctx, rows->row_count, om_rows_grain(rows), is_f64 ? run_range_f64 : run_range, &range);
}

/* ---- BatchNormalization ---- */

void om_batch_norm_factors(const om_batch_norm_job *job,
                           size_t channel,
                           float *out_s,
                           float *out_t) {
  float root = om_sqrt(load_one(job->variance, channel) + job->epsilon);
  float s = om_div(load_one(job->scale, channel), root);
  float shift = load_one(job->mean, channel) * s;
  *out_s = s;
  *out_t = load_one(job->bias, channel) - shift;
}

static void batch_norm_f64(const om_batch_norm_job *job,
                           size_t channel,
                           size_t first,
                           size_t count) {
  const double *x = (const double *)job->in->data + first;
  double *y = (double *)job->out->data + first;
  double root = sqrt(load_one_f64(job->variance, channel) + (double)job->epsilon);
  double s = load_one_f64(job->scale, channel) / root;
  double t = load_one_f64(job->bias, channel) - load_one_f64(job->mean, channel) * s;
  for (size_t i = 0; i < count; ++i) y[i] = x[i] * s + t;
}

static void batch_norm_half(const om_batch_norm_job *job,
                            size_t channel,
                            size_t first,
                            size_t count) {
  const uint16_t *x = (const uint16_t *)job->in->data + first;
  uint16_t *y = (uint16_t *)job->out->data + first;
  float chunk[OM_NORM_CHUNK];
  float s = 0.0f;
  float t = 0.0f;
  om_batch_norm_factors(job, channel, &s, &t);
  for (size_t done = 0; done < count; done += OM_NORM_CHUNK) {
    size_t part = count - done < OM_NORM_CHUNK ? count - done : OM_NORM_CHUNK;
    om_half_to_f32(job->in->dtype, x + done, part, chunk);
    for (size_t i = 0; i < part; ++i) chunk[i] = chunk[i] * s + t;
    om_half_from_f32(job->in->dtype, chunk, part, y + done);
  }
}

static void batch_norm_range(void *arg, size_t begin, size_t end) {
  const om_batch_norm_job *job = arg;
  for (size_t first = begin; first < end;) {
    size_t channel = first / job->inner % job->channels;
    size_t count = job->inner - first % job->inner;
    if (count > end - first) count = end - first;
    if (job->in->dtype == OM_DTYPE_F64) {
      batch_norm_f64(job, channel, first, count);
    } else if (job->in->dtype == OM_DTYPE_F32) {
      const float *x = (const float *)job->in->data + first;
      float *y = (float *)job->out->data + first;
      float s = 0.0f;
      float t = 0.0f;
      om_batch_norm_factors(job, channel, &s, &t);
      for (size_t i = 0; i < count; ++i) y[i] = x[i] * s + t;
    } else {
      batch_norm_half(job, channel, first, count);
    }
    first += count;
  }
}

void om_batch_norm_run(om_ctx *ctx, const om_batch_norm_job *job) {
  om_batch_norm_job copy = *job;
  size_t count = 1;
  for (uint32_t d = 0; d < job->in->rank; ++d) count *= (size_t)job->in->dims[d];
  om_parallel_for(ctx, count, OM_NORM_GRAIN, batch_norm_range, &copy);
}

void om_batch_norm_measure(const om_ctx *ctx,
                           const om_tensor *in,
                           float *out_mean,
                           float *out_variance) {
  om_rows rows;
  uint32_t all = (1u << in->rank) - 1;
  om_rows_init(&rows, in, in->rank > 1 ? all & ~2u : all);
  rows.ctx = ctx;
  for (size_t c = 0; c < rows.row_count && !om_is_cancelled(ctx); ++c) {
    om_row row = om_row_get(&rows, in->data, c);
    float count = (float)rows.row_elems;
    out_mean[c] = om_div(om_row_fold(&row, OM_ROW_VALUE, 0.0f), count);
    out_variance[c] = om_div(om_row_fold(&row, OM_ROW_DIFFERENCE_SQUARE, out_mean[c]), count);
  }
}

void om_batch_norm_update(const om_tensor *running,
                          const om_tensor *measured,
                          float momentum,
                          om_tensor *out) {
  float rest = 1.0f - momentum;
  for (size_t c = 0; c < (size_t)out->dims[0]; ++c) {
    float kept = load_one(running, c) * momentum;
    float added = load_one(measured, c) * rest;
    store_one(out, c, (double)(kept + added));
  }
}
