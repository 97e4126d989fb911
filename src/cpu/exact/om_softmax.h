/* Softmax and its kin over rows. */
#ifndef OM_SOFTMAX_H
#define OM_SOFTMAX_H

#include "cpu/exact/om_row.h"

typedef enum om_softmax_kind {
  OM_SOFTMAX,
  OM_LOG_SOFTMAX,
  OM_HARDMAX, /* 1 at the first largest element, else 0 */
} om_softmax_kind;

/* `out` has the type and shape of `in`: float32, float64, float16 or bfloat16. */
void om_softmax_run(
    om_ctx *ctx, const om_rows *rows, om_softmax_kind kind, const void *in, void *out);

#endif
