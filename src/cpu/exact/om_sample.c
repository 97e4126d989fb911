/* GridSample and RoiAlign: a result is made on its own, so threads share them out freely. */
#include "cpu/exact/om_sample.h"

#include "base/om_thread.h"
#include "cpu/exact/om_exact_sample.h"

enum { GRAIN = 256, TAPS = 4 };

/* ---- GridSample ---- */

typedef struct grid_run {
  const om_grid_sample *job;
  const float *x;
  const float *grid;
  float *y;
} grid_run;

typedef struct axis_taps {
  uint32_t count;
  int elems[TAPS]; /* -1: 0 */
  float weights[TAPS];
} axis_taps;

static axis_taps taps_of(const om_grid_sample *job, int axis, const float *point) {
  const int missing = OM_SAMPLE_AXES - (int)job->axis_count;
  const int length = (int)job->in[axis];
  axis_taps taps = {.count = 1, .weights = {1}};
  if (axis < missing) return taps;
  const float n = point[OM_SAMPLE_AXES - 1 - axis];
  const float x = om_sample_coordinate(n, (float)length, job->mode, job->padding, job->is_aligned);
  const int first = om_sample_first(x, job->mode);
  taps.count = om_sample_taps(job->mode);
  for (uint32_t t = 0; t < taps.count; ++t) {
    taps.elems[t] = om_sample_element(first + (int)t, length, job->padding, job->is_aligned);
    taps.weights[t] = om_sample_weight(x, job->mode, t);
  }
  return taps;
}

static float next_sum(const axis_taps *taps, uint32_t t, float sum, float value) {
  if (taps->count == 1) return value;
  const float term = taps->weights[t] * value;
  return t == 0 ? term : sum + term;
}

static float sampled(const om_grid_sample *job, const axis_taps taps[3], const float *plane) {
  float volume = 0;
  for (uint32_t z = 0; z < taps[0].count; ++z) {
    float slice = 0;
    for (uint32_t y = 0; y < taps[1].count; ++y) {
      float row = 0;
      for (uint32_t x = 0; x < taps[2].count; ++x) {
        const int64_t at[3] = {taps[0].elems[z], taps[1].elems[y], taps[2].elems[x]};
        const bool is_inside = at[0] >= 0 && at[1] >= 0 && at[2] >= 0;
        const float value =
            is_inside ? plane[(at[0] * job->in[1] + at[1]) * job->in[2] + at[2]] : 0.0f;
        row = next_sum(&taps[2], x, row, value);
      }
      slice = next_sum(&taps[1], y, slice, row);
    }
    volume = next_sum(&taps[0], z, volume, slice);
  }
  return volume;
}

static void grid_pixels(void *arg, size_t begin, size_t end) {
  const grid_run *run = arg;
  const om_grid_sample *job = run->job;
  const size_t in_elems = (size_t)(job->in[0] * job->in[1] * job->in[2]);
  for (size_t i = begin; i < end; ++i) { /* of [batch, pixels] */
    const size_t image = i / job->pixels;
    axis_taps taps[OM_SAMPLE_AXES];
    for (int axis = 0; axis < OM_SAMPLE_AXES; ++axis) {
      taps[axis] = taps_of(job, axis, run->grid + i * job->axis_count);
    }
    for (size_t c = 0; c < job->channels; ++c) {
      const size_t plane = image * job->channels + c;
      run->y[plane * job->pixels + i % job->pixels] = sampled(job, taps, run->x + plane * in_elems);
    }
  }
}

void om_grid_sample_run(
    om_ctx *ctx, const om_grid_sample *job, const float *x, const float *grid, float *y) {
  grid_run run = {job, x, grid, y};
  om_parallel_for(ctx, job->batch * job->pixels, GRAIN, grid_pixels, &run);
}

/* ---- RoiAlign ---- */

typedef struct roi_run {
  const om_roi_align *job;
  const float *x;
  const float *rois;
  const int64_t *images;
  float *y;
} roi_run;

/* One sample: the terms of its four neighbours, added or the greatest. */
static float roi_sample(const om_roi_align *job, const float *plane, const float place[2]) {
  float value[4];
  uint32_t at[2];
  uint32_t next[2];
  float part[2];
  float rest[2];
  for (int axis = 0; axis < 2; ++axis) {
    at[axis] = om_roi_element(place[axis], job->in[axis]);
    next[axis] = at[axis] + 1 < job->in[axis] ? at[axis] + 1 : at[axis];
    part[axis] = om_roi_part(place[axis], job->in[axis]);
    rest[axis] = 1.0f - part[axis];
  }
  const size_t width = job->in[1];
  value[0] = rest[0] * rest[1] * plane[at[0] * width + at[1]];
  value[1] = rest[0] * part[1] * plane[at[0] * width + next[1]];
  value[2] = part[0] * rest[1] * plane[next[0] * width + at[1]];
  value[3] = part[0] * part[1] * plane[next[0] * width + next[1]];
  if (job->is_max) return om_max(om_max(om_max(value[0], value[1]), value[2]), value[3]);
  return value[0] + value[1] + value[2] + value[3];
}

static float roi_bin(const om_roi_align *job,
                     const float *plane,
                     const float *roi,
                     const uint32_t bin_number[2]) {
  float begin[2];
  float bin[2];
  uint32_t samples[2];
  float value = 0;
  bool is_first = true;
  for (int axis = 0; axis < 2; ++axis) { /* rows, then columns; a region has x first */
    begin[axis] = om_roi_edge(roi[1 - axis], job->scale, job->is_half_pixel);
    const float end = om_roi_edge(roi[3 - axis], job->scale, job->is_half_pixel);
    bin[axis] = om_roi_bin(begin[axis], end, (float)job->out[axis], job->is_half_pixel);
    samples[axis] = om_roi_samples(bin[axis], job->samples, job->in[axis]);
  }
  for (uint32_t y = 0; y < samples[0]; ++y) {
    for (uint32_t x = 0; x < samples[1]; ++x) {
      const float place[2] = {om_roi_place(begin[0], bin[0], bin_number[0], y, samples[0]),
                              om_roi_place(begin[1], bin[1], bin_number[1], x, samples[1])};
      const bool is_inside =
          om_roi_is_inside(place[0], job->in[0]) && om_roi_is_inside(place[1], job->in[1]);
      const float sample = is_inside ? roi_sample(job, plane, place) : 0.0f;
      if (job->is_max) {
        value = is_first ? sample : om_max(value, sample);
      } else {
        value = value + sample;
      }
      is_first = false;
    }
  }
  if (job->is_max || is_first) return value;
  return om_div(value, (float)samples[0] * (float)samples[1]);
}

static void roi_results(void *arg, size_t begin, size_t end) {
  const roi_run *run = arg;
  const om_roi_align *job = run->job;
  const size_t plane_elems = (size_t)job->in[0] * job->in[1];
  for (size_t i = begin; i < end; ++i) {
    const uint32_t bin[2] = {(uint32_t)(i / job->out[1] % job->out[0]),
                             (uint32_t)(i % job->out[1])};
    const size_t plane = i / job->out[1] / job->out[0];
    const size_t region = plane / job->channels;
    const size_t source = (size_t)run->images[region] * job->channels + plane % job->channels;
    run->y[i] = roi_bin(job, run->x + source * plane_elems, run->rois + region * 4, bin);
  }
}

void om_roi_align_run(om_ctx *ctx,
                      const om_roi_align *job,
                      const float *x,
                      const float *rois,
                      const int64_t *images,
                      float *y) {
  roi_run run = {job, x, rois, images, y};
  const size_t elems = job->regions * job->channels * job->out[0] * job->out[1];
  om_parallel_for(ctx, elems, GRAIN, roi_results, &run);
}
