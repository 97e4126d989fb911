/* Pools with the channels last. A piece of work is a row of results by a part of the channels. */
#include "cpu/fast/om_pool_last.h"

#include <math.h>

#include "base/om_thread.h"
#include "cpu/exact/om_clones.h"

enum { CHANNELS = 64 }; /* of a part: their sums stay in registers or the nearest cache */

typedef struct job {
  const om_pool_window *w;
  om_pool_last_kind kind;
  int64_t channels, parts;
  const float *x;
  float *y;
} job;

typedef struct taps { /* of a window, along one axis */
  int64_t begin, end; /* those inside the input */
  int64_t padded;     /* how many are inside the padded input */
  int64_t start;
} taps;

static taps taps_of(const om_pool_window *w, int axis, int64_t out) {
  const int64_t step = w->dilation[axis];
  const int64_t start = out * w->stride[axis] - w->pad_begin[axis];
  const int64_t room = w->in[axis] + w->pad_end[axis] - start;
  taps t = {.start = start};
  t.begin = start >= 0 ? 0 : (-start + step - 1) / step;
  t.end = start >= w->in[axis] ? 0 : (w->in[axis] - start + step - 1) / step;
  if (t.end > w->kernel[axis]) t.end = w->kernel[axis];
  t.padded = room <= 0 ? 0 : (room + step - 1) / step;
  if (t.padded > w->kernel[axis]) t.padded = w->kernel[axis];
  return t;
}

/* Joins `places` places that are `step` elements apart into y. */
OM_CLONES static void join_max(
    const float *x, int64_t places, int64_t step, int64_t channels, float *y) {
  for (int64_t i = 0; i < places; ++i, x += step) {
    for (int64_t c = 0; c < channels; ++c) y[c] = x[c] > y[c] || x[c] != x[c] ? x[c] : y[c];
  }
}

OM_CLONES static void join_sum(
    const float *x, int64_t places, int64_t step, int64_t channels, float *y) {
  float sum[CHANNELS] = {0}; /* of this row alone: shorter chains are more accurate */
  for (int64_t i = 0; i < places; ++i, x += step) {
    for (int64_t c = 0; c < channels; ++c) sum[c] += x[c];
  }
  for (int64_t c = 0; c < channels; ++c) y[c] += sum[c];
}

/* Not inlined: a frame of its own. */
static __attribute__((noinline)) void pool_place(
    const job *j, const float *image, const taps t[3], int64_t channels, float *y) {
  const om_pool_window *w = j->w;
  const bool is_max = j->kind == OM_POOL_LAST_MAX;
  const int64_t places = t[2].end - t[2].begin;
  float result[CHANNELS];
  for (int64_t c = 0; c < channels; ++c) result[c] = is_max ? -INFINITY : 0.0f;
  for (int64_t a = t[0].begin; a < t[0].end; ++a) {
    for (int64_t b = t[1].begin; b < t[1].end && places > 0; ++b) {
      const int64_t row =
          (t[0].start + a * w->dilation[0]) * w->in[1] + t[1].start + b * w->dilation[1];
      const int64_t place = row * w->in[2] + t[2].start + t[2].begin * w->dilation[2];
      const float *x = image + place * j->channels;
      if (is_max) {
        join_max(x, places, w->dilation[2] * j->channels, channels, result);
      } else {
        join_sum(x, places, w->dilation[2] * j->channels, channels, result);
      }
    }
  }
  int64_t count = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t inside = t[axis].end > t[axis].begin ? t[axis].end - t[axis].begin : 0;
    count *= j->kind == OM_POOL_LAST_MEAN_PADDED ? t[axis].padded : inside;
  }
  for (int64_t c = 0; c < channels; ++c) y[c] = is_max ? result[c] : result[c] / (float)count;
}

static void run_rows(void *arg, size_t begin, size_t end) {
  const job *j = arg;
  const om_pool_window *w = j->w;
  for (size_t i = begin; i < end; ++i) {
    const int64_t first = (int64_t)i % j->parts * CHANNELS;
    const int64_t left = j->channels - first;
    const int64_t channels = left < CHANNELS ? left : CHANNELS;
    const int64_t row = (int64_t)i / j->parts; /* of all results */
    const int64_t image = row / w->out[1] / w->out[0];
    const float *x = j->x + image * w->in[0] * w->in[1] * w->in[2] * j->channels + first;
    taps t[3] = {taps_of(w, 0, row / w->out[1] % w->out[0]), taps_of(w, 1, row % w->out[1])};
    for (int64_t out = 0; out < w->out[2]; ++out) {
      t[2] = taps_of(w, 2, out);
      pool_place(j, x, t, channels, j->y + (row * w->out[2] + out) * j->channels + first);
    }
  }
}

void om_pool_last_run(om_ctx *ctx,
                      const om_pool_window *window,
                      om_pool_last_kind kind,
                      int64_t batch,
                      int64_t channels,
                      const float *x,
                      float *y) {
  job j = {.w = window,
           .kind = kind,
           .channels = channels,
           .parts = (channels + CHANNELS - 1) / CHANNELS,
           .x = x,
           .y = y};
  const size_t rows = (size_t)(batch * window->out[0] * window->out[1]);
  om_parallel_for(ctx, rows * (size_t)j.parts, 1, run_rows, &j);
}
