/* Local response normalisation: a channel's plane is a piece of work. */
#include "cpu/exact/om_lrn.h"

#include <math.h>

#include "base/om_thread.h"
#include "cpu/exact/om_exact_math.h"

typedef struct lrn_run {
  const om_lrn *job;
  const void *x;
  void *y;
} lrn_run;

/* Defines `planes_<suffix>` for elements of a type with its division and power. */
#define OM_LRN_PLANES(type, suffix, ratio, divide, power)                             \
  static void planes_##suffix(void *arg, size_t begin, size_t end) {                  \
    const lrn_run *run = arg;                                                         \
    const om_lrn *job = run->job;                                                     \
    const type factor = job->ratio, bias = (type)job->bias, beta = (type)job->beta;   \
    for (size_t plane = begin; plane < end; ++plane) {                                \
      const size_t channel = plane % job->channels;                                   \
      const size_t first = channel - (channel < job->before ? channel : job->before); \
      const size_t left = job->channels - 1 - channel;                                \
      const size_t last = channel + (left < job->behind ? left : job->behind);        \
      const type *x = (const type *)run->x + (plane - channel) * job->inner;          \
      type *y = (type *)run->y + plane * job->inner;                                  \
      for (size_t i = 0; i < job->inner; ++i) {                                       \
        type sum = 0;                                                                 \
        for (size_t c = first; c <= last; ++c) {                                      \
          sum = sum + x[c * job->inner + i] * x[c * job->inner + i];                  \
        }                                                                             \
        y[i] = divide(x[channel * job->inner + i], power(bias + factor * sum, beta)); \
      }                                                                               \
    }                                                                                 \
  }

static double divide_f64(double a, double b) {
  return a / b;
}

OM_LRN_PLANES(float, f32, factor, om_div, om_pow)
OM_LRN_PLANES(double, f64, factor_f64, divide_f64, pow)

void om_lrn_run(om_ctx *ctx, const om_lrn *job, const float *x, float *y) {
  lrn_run run = {job, x, y};
  om_parallel_for(ctx, job->images * job->channels, 1, planes_f32, &run);
}

void om_lrn_run_f64(om_ctx *ctx, const om_lrn *job, const double *x, double *y) {
  lrn_run run = {job, x, y};
  om_parallel_for(ctx, job->images * job->channels, 1, planes_f64, &run);
}
