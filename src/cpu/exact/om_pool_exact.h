/* Exact pools on plain pointers (docs/exact.md, "Pools"). */
#ifndef OM_POOL_EXACT_H
#define OM_POOL_EXACT_H

#include "base/om_base.h"

typedef struct om_pool_window { /* extents of the three spatial axes, in elements */
  size_t planes;                /* batch * channels */
  int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3];
} om_pool_window;

typedef enum om_pool_sum {
  OM_POOL_SUM_MEAN,        /* over the elements inside the input */
  OM_POOL_SUM_MEAN_PADDED, /* over the elements inside the padded input */
  OM_POOL_SUM_LP,          /* (sum of |x|^p)^(1/p) */
} om_pool_sum;

/* y = the greatest element of each window; NaN wins; the first of equals. indices (may be NULL)
 * gets its place in the whole of x, counted row by row, or column by column. A window without an
 * element inside the input gives -infinity and index -1. */
void om_pool_max_f32(om_ctx *ctx,
                     const om_pool_window *window,
                     bool is_column_major,
                     const float *x,
                     float *y,
                     int64_t *indices);
void om_pool_max_f64(om_ctx *ctx,
                     const om_pool_window *window,
                     bool is_column_major,
                     const double *x,
                     double *y,
                     int64_t *indices);

/* Sums in increasing position from 0. exponent is read by OM_POOL_SUM_LP alone. */
void om_pool_sum_f32(om_ctx *ctx,
                     const om_pool_window *window,
                     om_pool_sum kind,
                     float exponent,
                     const float *x,
                     float *y);
void om_pool_sum_f64(om_ctx *ctx,
                     const om_pool_window *window,
                     om_pool_sum kind,
                     float exponent,
                     const double *x,
                     double *y);

/* The same over whole planes of `elems` elements, with the order of a row's reduction. */
void om_pool_global_f32(om_ctx *ctx,
                        size_t planes,
                        size_t elems,
                        om_pool_sum kind,
                        float exponent,
                        const float *x,
                        float *y);
void om_pool_global_f64(om_ctx *ctx,
                        size_t planes,
                        size_t elems,
                        om_pool_sum kind,
                        float exponent,
                        const double *x,
                        double *y);

#endif
