/* Non-maximum suppression on plain pointers (docs/exact.md, "Samples"). */
#ifndef OM_NMS_H
#define OM_NMS_H

#include "base/om_base.h"

typedef struct om_nms {
  size_t images, classes, boxes;
  const float *corners; /* [images, boxes, 4] */
  const float *scores;  /* [images, classes, boxes] */
  bool is_by_center;    /* x, y of the middle, width, height; else y, x of two corners */
  size_t most;          /* boxes of a class */
  float overlap;        /* a box that overlaps a chosen one by more is dropped */
  bool has_least;
  float least; /* a score must be above it */
} om_nms;

/* The number of chosen boxes; *out_chosen (NULL: only counted) gets [image, class, box] for each,
 * by image, class, and falling score; of equals the first. Fewer where it is cancelled. Scratch has
 * 4 as its alignment. */
size_t om_nms_run(const om_ctx *ctx, const om_nms *job, void *scratch, int64_t *out_chosen);

size_t om_nms_scratch_bytes(size_t boxes);

#endif
