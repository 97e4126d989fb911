/* The parameters of Softmax, LogSoftmax and Hardmax. */
#ifndef OP_SOFTMAX_H
#define OP_SOFTMAX_H

#include "cpu/exact/om_softmax.h"
#include "ops/om_rule.h"

typedef struct om_softmax_params {
  om_softmax_kind kind;
  int64_t axis;
  bool is_flat; /* before opset 13: the axis and all after it are one row */
} om_softmax_params;

/* The reduced axes of a row; bit d: axis d. */
om_status om_softmax_axes(om_ctx *ctx,
                          const om_softmax_params *params,
                          const om_tensor *input,
                          uint32_t *out_mask);

#endif
