/* float16 and bfloat16 are computed in float32, each element rounded once; float64 as it is. */
#include "cpu/exact/om_rotary.h"

#include "base/om_float16.h"
#include "base/om_thread.h"

typedef struct rotary_job {
  const om_rotary *r;
  const om_tensor *x, *cos, *sin;
  const int64_t *positions;
  om_tensor *y;
} rotary_job;

static float load(const om_tensor *t, size_t i) {
  if (t->dtype == OM_DTYPE_F32) return ((const float *)t->data)[i];
  const uint16_t bits = ((const uint16_t *)t->data)[i];
  return t->dtype == OM_DTYPE_F16 ? om_f16_to_f32(bits) : om_bf16_to_f32(bits);
}

static void store(om_tensor *t, size_t i, float value) {
  if (t->dtype == OM_DTYPE_F32) {
    ((float *)t->data)[i] = value;
  } else {
    ((uint16_t *)t->data)[i] =
        t->dtype == OM_DTYPE_F16 ? om_f16_from_f32(value) : om_bf16_from_f32(value);
  }
}

/* The row of the tables that belongs to the head at element `begin`. */
static size_t table_row(const rotary_job *job, size_t begin) {
  const om_rotary *r = job->r;
  const size_t row =
      begin / r->batch_elems * r->length + begin % r->batch_elems / r->row_elems % r->length;
  if (!job->positions) return row;
  const int64_t position = job->positions[row];
  return (size_t)(position < 0 ? position + job->cos->dims[0] : position);
}

static void turn_pair(const rotary_job *job, size_t angle, size_t first, size_t second) {
  const float c = load(job->cos, angle);
  const float s = load(job->sin, angle);
  const float a = load(job->x, first);
  const float b = load(job->x, second);
  const float ca = c * a, sb = s * b, sa = s * a, cb = c * b;
  store(job->y, first, ca - sb);
  store(job->y, second, sa + cb);
}

static void turn_pair_f64(const rotary_job *job, size_t angle, size_t first, size_t second) {
  const double c = ((const double *)job->cos->data)[angle];
  const double s = ((const double *)job->sin->data)[angle];
  const double *x = job->x->data;
  double *y = job->y->data;
  y[first] = c * x[first] - s * x[second];
  y[second] = s * x[first] + c * x[second];
}

static void turn_heads(void *arg, size_t begin, size_t end) {
  const rotary_job *job = arg;
  const om_rotary *r = job->r;
  const size_t step = r->is_interleaved ? 2 : 1;
  const size_t other = r->is_interleaved ? 1 : r->half;
  const size_t bytes = om_dtype_bits(job->x->dtype) / 8;
  const bool is_double = job->x->dtype == OM_DTYPE_F64;
  for (size_t head = begin; head < end; ++head) {
    const size_t from = head * r->size;
    const size_t angle = table_row(job, from) * r->half;
    for (size_t i = 0; i < r->half; ++i) {
      const size_t first = from + i * step;
      if (is_double) {
        turn_pair_f64(job, angle + i, first, first + other);
      } else {
        turn_pair(job, angle + i, first, first + other);
      }
    }
    memcpy((char *)job->y->data + (from + 2 * r->half) * bytes,
           (const char *)job->x->data + (from + 2 * r->half) * bytes,
           (r->size - 2 * r->half) * bytes);
  }
}

void om_rotary_run(om_ctx *ctx,
                   const om_rotary *r,
                   const om_tensor *x,
                   const om_tensor *cos,
                   const om_tensor *sin,
                   const int64_t *positions,
                   om_tensor *y) {
  rotary_job job = {.r = r, .x = x, .cos = cos, .sin = sin, .positions = positions, .y = y};
  if (r->elems == 0) return;
  om_parallel_for(ctx, r->elems / r->size, 8192 / r->size + 1, turn_heads, &job);
}
