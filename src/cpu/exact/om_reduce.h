/* Reductions over rows. */
#ifndef OM_REDUCE_H
#define OM_REDUCE_H

#include "cpu/exact/om_row.h"

typedef enum om_reduce_kind {
  OM_REDUCE_SUM,
  OM_REDUCE_MEAN,
  OM_REDUCE_MAX,
  OM_REDUCE_MIN,
  OM_REDUCE_PROD,
  OM_REDUCE_L1,
  OM_REDUCE_L2,
  OM_REDUCE_SUM_SQUARE,
  OM_REDUCE_LOG_SUM,
  OM_REDUCE_LOG_SUM_EXP,
} om_reduce_kind;

/* out[i] = the reduction of row i, in the rows' type: floats, integers, and bool for the
 * largest and smallest. */
void om_reduce_run(
    om_ctx *ctx, const om_rows *rows, om_reduce_kind kind, const void *in, void *out);

/* out[i] = where row i has its largest (or smallest) element: the first such place, or the last.
 * NaN counts as the largest and as the smallest. */
typedef struct om_arg_job {
  bool wants_largest;
  bool wants_last;
} om_arg_job;
void om_arg_run(
    om_ctx *ctx, const om_rows *rows, const om_arg_job *job, const void *in, int64_t *out);

#endif
