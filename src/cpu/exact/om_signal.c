/* Everything is float64 and made of operations that round the same everywhere: the functions are
 * series of our own.
 *
 * A length is an odd number times a power of two. The odd parts are summed term by term, then
 * joined in pairs (decimation in time). Complex numbers are pairs.
 *
 *     scratch: [roots of 1: length * 2] [a row of values for each slot: length * 2]...
 */
#include "cpu/exact/om_signal.h"

#include <math.h>

#include "base/om_thread.h"

enum { OM_DFT_SLOTS = 16 }; /* pieces of parallel work, each with its own row */

/* Of an angle up to pi/4: the terms up to x^17 leave less than a double shows. */
static double series_sin(double x) {
  double sum = 1.0;
  for (int k = 17; k >= 3; k -= 2) sum = 1.0 - sum * (x * x) / (double)(k * (k - 1));
  return sum * x;
}

static double series_cos(double x) {
  double sum = 1.0;
  for (int k = 18; k >= 2; k -= 2) sum = 1.0 - sum * (x * x) / (double)(k * (k - 1));
  return sum;
}

om_turn om_signal_turn(size_t part, size_t whole) {
  const size_t quarter = part * 4 / whole;
  const size_t rest = part * 4 - quarter * whole; /* of a quarter, in wholes */
  const bool is_late = rest * 2 > whole;
  const double way = (double)(is_late ? whole - rest : rest);
  const double angle = way * 1.57079632679489661923 / (double)whole;
  const double near = series_cos(angle);
  const double far = series_sin(angle);
  const double c = is_late ? far : near;
  const double s = is_late ? near : far;
  switch (quarter) {
    case 0:
      return (om_turn){c, s};
    case 1:
      return (om_turn){0.0 - s, c};
    case 2:
      return (om_turn){0.0 - c, 0.0 - s};
    default:
      return (om_turn){s, 0.0 - c};
  }
}

double om_signal_ln(double x) {
  int exponent = 0;
  double m = frexp(x, &exponent);
  if (m < 0.70710678118654752440) {
    m *= 2.0;
    --exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  double sum = 0.0;
  for (int k = 41; k >= 1; k -= 2) sum = sum * (s * s) + 2.0 / (double)k;
  return sum * s + (double)exponent * 0.69314718055994530942;
}

double om_signal_exp(double x) {
  const double n = rint(x / 0.69314718055994530942);
  const double r = x - n * 0.69314718055994530942;
  double sum = 1.0;
  for (int k = 24; k >= 1; --k) sum = 1.0 + sum * r / (double)k;
  return ldexp(sum, (int)n);
}

static size_t odd_part(size_t length) {
  while (length > 0 && length % 2 == 0) length /= 2;
  return length;
}

static size_t slot_count(const om_dft *dft) {
  const size_t rows = dft->outer * dft->inner;
  return rows < OM_DFT_SLOTS ? rows : OM_DFT_SLOTS;
}

size_t om_dft_scratch_elems(const om_dft *dft) {
  return (1 + slot_count(dft)) * dft->length * 2;
}

/* `block` with its lowest bits in reverse; count is a power of two. */
static size_t reversed(size_t block, size_t count) {
  size_t result = 0;
  for (size_t bit = 1; bit < count; bit *= 2) {
    result = result * 2 + block % 2;
    block /= 2;
  }
  return result;
}

typedef struct om_dft_job {
  const om_ctx *ctx;
  const om_dft *dft;
  const double *in;
  const double *window;
  const double *roots;
  double *out;
  double *rows;
} om_dft_job;

static void load_sample(const om_dft_job *job, size_t origin, size_t index, double out[2]) {
  const om_dft *dft = job->dft;
  out[0] = 0;
  out[1] = 0;
  if (index >= dft->samples) return;
  const double *x = job->in + (origin + index * dft->sample_step) * dft->parts;
  out[0] = job->window ? x[0] * job->window[index] : x[0];
  if (dft->parts == 2) out[1] = job->window ? x[1] * job->window[index] : x[1];
}

/* The transform of every `count`-th sample from `first` on: `odd` values. */
static void transform_part(
    const om_dft_job *job, size_t origin, size_t first, size_t count, size_t odd, double *values) {
  double x[2];
  if (odd == 1) {
    load_sample(job, origin, first, values);
    return;
  }
  for (size_t k = 0; k < odd && !om_is_cancelled(job->ctx); ++k) {
    double sum[2] = {0, 0};
    for (size_t t = 0; t < odd; ++t) {
      const double *root = job->roots + k * t % odd * count * 2;
      load_sample(job, origin, first + t * count, x);
      sum[0] = sum[0] + (x[0] * root[0] - x[1] * root[1]);
      sum[1] = sum[1] + (x[0] * root[1] + x[1] * root[0]);
    }
    values[k * 2] = sum[0];
    values[k * 2 + 1] = sum[1];
  }
}

/* Joins neighbours of `half` values each. */
static void join_pairs(const om_dft_job *job, size_t half, double *values) {
  const size_t length = job->dft->length;
  const size_t root_step = length / (half * 2);
  for (size_t base = 0; base < length && !om_is_cancelled(job->ctx); base += half * 2) {
    double *even = values + base * 2;
    double *odd = even + half * 2;
    for (size_t k = 0; k < half * 2; k += 2) {
      const double *root = job->roots + k * root_step;
      const double re = odd[k] * root[0] - odd[k + 1] * root[1];
      const double im = odd[k] * root[1] + odd[k + 1] * root[0];
      odd[k] = even[k] - re;
      odd[k + 1] = even[k + 1] - im;
      even[k] = even[k] + re;
      even[k + 1] = even[k + 1] + im;
    }
  }
}

static void run_row(const om_dft_job *job, size_t row, double *values) {
  const om_dft *dft = job->dft;
  const size_t origin =
      row / dft->inner * dft->in_outer_step + row % dft->inner * dft->in_inner_step;
  const size_t target =
      row / dft->inner * dft->out_outer_step + row % dft->inner * dft->out_inner_step;
  const size_t odd = odd_part(dft->length);
  const size_t count = dft->length / odd;
  for (size_t block = 0; block < count; ++block) {
    transform_part(job, origin, reversed(block, count), count, odd, values + block * odd * 2);
  }
  for (size_t half = odd; half < dft->length; half *= 2) join_pairs(job, half, values);
  for (size_t k = 0; k < dft->bins; ++k) {
    double *out = job->out + (target + k * dft->bin_step) * 2;
    out[0] = dft->is_inverse ? values[k * 2] / (double)dft->length : values[k * 2];
    out[1] = dft->is_inverse ? values[k * 2 + 1] / (double)dft->length : values[k * 2 + 1];
  }
}

static void run_slots(void *arg, size_t begin, size_t end) {
  const om_dft_job *job = arg;
  const size_t rows = job->dft->outer * job->dft->inner;
  const size_t slots = slot_count(job->dft);
  for (size_t slot = begin; slot < end; ++slot) {
    for (size_t row = rows * slot / slots; row < rows * (slot + 1) / slots; ++row) {
      if (om_is_cancelled(job->ctx)) return;
      run_row(job, row, job->rows + slot * job->dft->length * 2);
    }
  }
}

void om_dft_run(om_ctx *ctx,
                const om_dft *dft,
                const double *in,
                const double *window,
                double *out,
                double *scratch) {
  om_dft_job job = {ctx, dft, in, window, scratch, out, scratch + dft->length * 2};
  if (dft->length == 0) return;
  for (size_t i = 0; i < dft->length && !om_is_cancelled(ctx); ++i) {
    const om_turn turn = om_signal_turn(i, dft->length);
    scratch[i * 2] = turn.cosine;
    scratch[i * 2 + 1] = dft->is_inverse ? turn.sine : 0.0 - turn.sine;
  }
  om_parallel_for(ctx, slot_count(dft), 1, run_slots, &job);
}
