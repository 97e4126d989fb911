/* Local response normalisation: a channel's plane is a piece of work. */
#include "cpu/exact/om_lrn.h"

#include "base/om_thread.h"
#include "cpu/exact/om_exact_math.h"

typedef struct lrn_run {
  const om_lrn *job;
  const float *x;
  float *y;
} lrn_run;

static void planes(void *arg, size_t begin, size_t end) {
  const lrn_run *run = arg;
  const om_lrn *job = run->job;
  for (size_t plane = begin; plane < end; ++plane) {
    const size_t channel = plane % job->channels;
    const size_t first = channel - (channel < job->before ? channel : job->before);
    const size_t left = job->channels - 1 - channel;
    const size_t last = channel + (left < job->behind ? left : job->behind);
    const float *x = run->x + (plane - channel) * job->inner;
    for (size_t i = 0; i < job->inner; ++i) {
      float sum = 0;
      for (size_t c = first; c <= last; ++c) {
        sum = sum + x[c * job->inner + i] * x[c * job->inner + i];
      }
      const float scale = job->bias + job->factor * sum;
      run->y[plane * job->inner + i] =
          om_div(x[channel * job->inner + i], om_pow(scale, job->beta));
    }
  }
}

void om_lrn_run(om_ctx *ctx, const om_lrn *job, const float *x, float *y) {
  lrn_run run = {job, x, y};
  om_parallel_for(ctx, job->images * job->channels, 1, planes, &run);
}
