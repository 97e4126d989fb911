/* Exact resizing on plain pointers, one axis at a time (docs/exact.md, "Resize"). */
#ifndef OM_RESIZE_EXACT_H
#define OM_RESIZE_EXACT_H

#include "base/om_base.h"

/* One axis of a tensor seen as [outer, extent, inner]. elems and weights hold `taps` entries for
 * each result; elems[0] of a result is -1 where it lies outside: it becomes the outside value. */
typedef struct om_resize_pass {
  size_t outer, in, out, inner;
  uint32_t taps;
  const int32_t *elems;
  const void *weights; /* of the element type; not read by om_resize_copy */
  const void *outside; /* one element */
} om_resize_pass;

/* y = w0 * x0, then + w1 * x1 and so on, in the order of the taps. */
void om_resize_run_f32(om_ctx *ctx, const om_resize_pass *pass, const float *x, float *y);
void om_resize_run_f64(om_ctx *ctx, const om_resize_pass *pass, const double *x, double *y);

/* One tap without a weight: elements of any type of elem_bytes bytes. */
void om_resize_copy(
    om_ctx *ctx, const om_resize_pass *pass, size_t elem_bytes, const void *x, void *y);

#endif
