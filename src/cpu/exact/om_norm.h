/* Normalisations of rows: subtract the mean, divide by the deviation, scale, shift.
 */
#ifndef OM_NORM_H
#define OM_NORM_H

#include "cpu/exact/om_row.h"

typedef enum om_norm_kind {
  OM_NORM_DEVIATION, /* (x - mean) * (1 / sqrt(variance + epsilon)) */
  OM_NORM_ROOT_MEAN, /* x * (1 / sqrt(mean of squares + epsilon)) */
  OM_NORM_SHARP,     /* (x - mean) / (sqrt(variance) + epsilon) */
  OM_NORM_L1,        /* x / sum of |x| */
  OM_NORM_L2,        /* x / sqrt(sum of squares) */
} om_norm_kind;

/* Where the scale and bias of an element stand in their tensors:
 * (row mod row_period) * row_step + (element / inner) mod period. */
typedef struct om_norm_place {
  size_t row_period;
  size_t row_step;
  size_t inner;
  size_t period;
} om_norm_place;

typedef struct om_norm_job {
  om_norm_kind kind;
  float epsilon;
  const om_tensor *scale; /* NULL: none; any float type */
  const om_tensor *bias;  /* NULL: none */
  om_norm_place place;
  const void *in;
  void *out;          /* the shape of `in` */
  om_dtype out_dtype; /* RMSNormalization's is the scale's, else that of `in` */
  om_tensor *mean;    /* NULL, or an element a row */
  om_tensor *inverse; /* NULL, or an element a row: 1 / deviation */
} om_norm_job;

void om_norm_run(om_ctx *ctx, const om_rows *rows, const om_norm_job *job);

/* BatchNormalization: y = x * s + t with s = scale / sqrt(variance + epsilon) and
 * t = bias - mean * s, for element i of channel (i / inner) mod channels. */
typedef struct om_batch_norm_job {
  float epsilon;
  const om_tensor *scale, *bias, *mean, *variance; /* an element a channel */
  size_t channels;
  size_t inner;
  const om_tensor *in;
  om_tensor *out;
} om_batch_norm_job;

void om_batch_norm_run(om_ctx *ctx, const om_batch_norm_job *job);

/* s and t of a channel. */
void om_batch_norm_factors(const om_batch_norm_job *job,
                           size_t channel,
                           float *out_s,
                           float *out_t);

/* The mean and variance of each channel (axis 1) over all other axes; not float64. */
void om_batch_norm_measure(const om_ctx *ctx,
                           const om_tensor *in,
                           float *out_mean,
                           float *out_variance);

/* out = running * momentum + measured * (1 - momentum). */
void om_batch_norm_update(const om_tensor *running,
                          const om_tensor *measured,
                          float momentum,
                          om_tensor *out);

#endif
