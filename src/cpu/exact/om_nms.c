/* Non-maximum suppression: the best box that is left is chosen, and drops those that overlap it. */
#include "cpu/exact/om_nms.h"

#include <string.h>

typedef struct area {
  float low[2];
  float high[2];
} area;

static area area_of(const om_nms *job, const float *corners) {
  area a;
  for (int axis = 0; axis < 2; ++axis) {
    float begin = corners[axis];
    float end = corners[axis + 2];
    if (job->is_by_center) {
      const float half = corners[axis + 2] * 0.5f;
      begin = corners[axis] - half;
      end = corners[axis] + half;
    }
    a.low[axis] = begin < end ? begin : end;
    a.high[axis] = begin < end ? end : begin;
  }
  return a;
}

/* True if the two share more than job->overlap of what they cover. */
static bool overlaps(const om_nms *job, const area *a, const area *b) {
  float shared[2];
  for (int axis = 0; axis < 2; ++axis) {
    const float low = a->low[axis] > b->low[axis] ? a->low[axis] : b->low[axis];
    const float high = a->high[axis] < b->high[axis] ? a->high[axis] : b->high[axis];
    shared[axis] = high - low;
    if (!(shared[axis] > 0)) return false;
  }
  const float size_a = (a->high[0] - a->low[0]) * (a->high[1] - a->low[1]);
  const float size_b = (b->high[0] - b->low[0]) * (b->high[1] - b->low[1]);
  const float both = shared[0] * shared[1];
  if (!(size_a > 0) || !(size_b > 0) || !(both > 0)) return false;
  return both / (size_a + size_b - both) > job->overlap;
}

/* The best box that is left, or job->boxes. */
static size_t best_of(const om_nms *job, const float *scores, const uint8_t *is_gone) {
  size_t best = job->boxes;
  for (size_t i = 0; i < job->boxes; ++i) {
    if (is_gone[i] || scores[i] != scores[i]) continue;
    if (job->has_least && !(scores[i] > job->least)) continue;
    if (best == job->boxes || scores[i] > scores[best]) best = i;
  }
  return best;
}

size_t om_nms_run(const om_nms *job, uint8_t *is_gone, int64_t *out_chosen) {
  size_t count = 0;
  for (size_t i = 0; i < job->images * job->classes; ++i) {
    const float *scores = job->scores + i * job->boxes;
    const float *corners = job->corners + i / job->classes * job->boxes * 4;
    memset(is_gone, 0, job->boxes);
    for (size_t chosen = 0; chosen < job->most; ++chosen) {
      const size_t best = best_of(job, scores, is_gone);
      if (best == job->boxes) break;
      const area kept = area_of(job, corners + best * 4);
      is_gone[best] = 1;
      for (size_t k = 0; k < job->boxes; ++k) {
        if (is_gone[k]) continue;
        const area other = area_of(job, corners + k * 4);
        if (overlaps(job, &kept, &other)) is_gone[k] = 1;
      }
      if (out_chosen) {
        const int64_t place[3] = {
            (int64_t)(i / job->classes), (int64_t)(i % job->classes), (int64_t)best};
        memcpy(out_chosen + count * 3, place, sizeof place);
      }
      ++count;
    }
  }
  return count;
}
