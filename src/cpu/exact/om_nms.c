/* Non-maximum suppression: boxes are taken by falling score, from a heap, and one that overlaps
 * none chosen before it is chosen.
 *
 *     scratch: [order: a heap of boxes] [the chosen boxes' edges and sizes, an array each]
 */
#include "cpu/exact/om_nms.h"

#include <string.h>

#include "cpu/exact/om_clones.h"

typedef struct area {
  float low[2];
  float high[2];
} area;

enum { KEPT_ARRAYS = 5 };

typedef struct kept_boxes {
  float *low[2];
  float *high[2];
  float *size;
  size_t count;
} kept_boxes;

size_t om_nms_scratch_bytes(size_t boxes) {
  return boxes * (sizeof(uint32_t) + KEPT_ARRAYS * sizeof(float));
}

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

static float size_of(const area *a) {
  return (a->high[0] - a->low[0]) * (a->high[1] - a->low[1]);
}

/* True if the box and one of those at [begin, end) share more than `overlap` of what they cover. */
OM_CLONES static bool overlaps_some(
    const kept_boxes *kept, size_t begin, size_t end, const area *box, float size, float overlap) {
  uint32_t some = 0;
  for (size_t i = begin; i < end; ++i) {
    float shared[2];
    for (int axis = 0; axis < 2; ++axis) {
      const float low = kept->low[axis][i] > box->low[axis] ? kept->low[axis][i] : box->low[axis];
      const float high =
          kept->high[axis][i] < box->high[axis] ? kept->high[axis][i] : box->high[axis];
      shared[axis] = high - low;
    }
    const float both = shared[0] * shared[1];
    const float share = both / (kept->size[i] + size - both);
    const bool has_size = (shared[0] > 0) & (shared[1] > 0) & (kept->size[i] > 0) & (size > 0);
    some |= (uint32_t)(has_size & (both > 0) & (share > overlap));
  }
  return some != 0;
}

static bool is_free(const kept_boxes *kept, const area *box, float size, float overlap) {
  enum { PIECE = 64 }; /* boxes compared before the answer is looked at */
  for (size_t i = 0; i < kept->count; i += PIECE) {
    const size_t end = kept->count - i < PIECE ? kept->count : i + PIECE;
    if (overlaps_some(kept, i, end, box, size, overlap)) return false;
  }
  return true;
}

/* ---- The heap ---- */

static bool precedes(const float *scores, uint32_t a, uint32_t b) {
  return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
}

static void sink(const float *scores, uint32_t *heap, size_t count, size_t at) {
  const uint32_t box = heap[at];
  for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && precedes(scores, heap[child + 1], heap[child])) ++child;
    if (!precedes(scores, heap[child], box)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = box;
}

/* The boxes whose score counts; returns how many. */
static size_t fill_heap(const om_nms *job, const float *scores, uint32_t *heap) {
  size_t count = 0;
  for (size_t i = 0; i < job->boxes; ++i) {
    if (scores[i] != scores[i] || (job->has_least && !(scores[i] > job->least))) continue;
    heap[count++] = (uint32_t)i;
  }
  for (size_t i = count / 2; i-- > 0;) sink(scores, heap, count, i);
  return count;
}

static uint32_t take_first(const float *scores, uint32_t *heap, size_t *count) {
  const uint32_t first = heap[0];
  heap[0] = heap[--*count];
  sink(scores, heap, *count, 0);
  return first;
}

/* ---- One class of one image ---- */

static void keep(kept_boxes *kept, const area *box, float size) {
  for (int axis = 0; axis < 2; ++axis) {
    kept->low[axis][kept->count] = box->low[axis];
    kept->high[axis][kept->count] = box->high[axis];
  }
  kept->size[kept->count++] = size;
}

size_t om_nms_run(const om_ctx *ctx, const om_nms *job, void *scratch, int64_t *out_chosen) {
  uint32_t *heap = scratch;
  float *arrays = (float *)scratch + job->boxes;
  kept_boxes kept = {.low = {arrays, arrays + job->boxes},
                     .high = {arrays + 2 * job->boxes, arrays + 3 * job->boxes},
                     .size = arrays + 4 * job->boxes};
  size_t total = 0;
  for (size_t i = 0; i < job->images * job->classes && !om_is_cancelled(ctx); ++i) {
    const float *scores = job->scores + i * job->boxes;
    const float *corners = job->corners + i / job->classes * job->boxes * 4;
    size_t count = job->most > 0 ? fill_heap(job, scores, heap) : 0;
    kept.count = 0;
    while (count > 0 && kept.count < job->most && !om_is_cancelled(ctx)) {
      const uint32_t best = take_first(scores, heap, &count);
      const area box = area_of(job, corners + (size_t)best * 4);
      const float size = size_of(&box);
      if (!is_free(&kept, &box, size, job->overlap)) continue;
      keep(&kept, &box, size);
      if (out_chosen) {
        const int64_t place[3] = {
            (int64_t)(i / job->classes), (int64_t)(i % job->classes), (int64_t)best};
        memcpy(out_chosen + total * 3, place, sizeof place);
      }
      ++total;
    }
  }
  return total;
}
