/* How elements are read where they lie: axes over the elements of a dense tensor. A view on what a
 * copy made becomes one on what was copied, where its axes allow it; then the copy is not needed.
 */
#ifndef OM_VIEW_H
#define OM_VIEW_H

#include "cpu/exact/om_strided.h"

typedef struct om_view { /* elements */
  uint32_t rank;
  int64_t dims[OM_MAX_RANK];
  int64_t strides[OM_MAX_RANK];
  int64_t offset;
} om_view;

/* The view on the dense target of `copy`, which the copy writes as a whole, becomes one on its
 * source. False, and nothing has changed, where an axis would have two strides. */
bool om_view_through(const om_strided *copy, om_view *inout_view);

#endif
