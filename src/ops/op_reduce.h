/* The parameters of reductions. */
#ifndef OP_REDUCE_H
#define OP_REDUCE_H

#include "cpu/exact/om_reduce.h"
#include "ops/om_rule.h"

/* Reduce*: axes are input 1 where that is there, else the attribute, else all. */
typedef struct om_reduce_params {
  om_reduce_kind kind;
  bool keeps_dims;
  bool empty_is_none; /* without axes nothing is reduced */
  om_rule_list axes;  /* the attribute */
} om_reduce_params;

/* ArgMax, ArgMin. */
typedef struct om_arg_params {
  int64_t axis;
  bool keeps_dims;
  om_arg_job job;
} om_arg_params;

/* Sets bit d of *out_mask where axis d of input 0 is reduced; bit 31 where nothing is computed:
 * the result is the input. The axes' data must be there. */
#define OM_REDUCE_NOTHING (1u << 31)
om_status om_reduce_axes(om_ctx *ctx,
                         const om_reduce_params *params,
                         const om_tensor *input,
                         const om_tensor *axes,
                         uint32_t *out_mask);

#endif
