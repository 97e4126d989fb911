/* Pools of float32 with the channels last: all channels of a place go at once. */
#ifndef OM_POOL_LAST_H
#define OM_POOL_LAST_H

#include "cpu/exact/om_pool_exact.h"

typedef enum om_pool_last_kind {
  OM_POOL_LAST_MAX,         /* NaN wins; -infinity where no element is inside the input */
  OM_POOL_LAST_MEAN,        /* over the elements inside the input */
  OM_POOL_LAST_MEAN_PADDED, /* over those inside the padded input */
} om_pool_last_kind;

/* x: [batch, in..., channels], y: [batch, out..., channels]; window->planes is not read. */
void om_pool_last_run(om_ctx *ctx,
                      const om_pool_window *window,
                      om_pool_last_kind kind,
                      int64_t batch,
                      int64_t channels,
                      const float *x,
                      float *y);

#endif
