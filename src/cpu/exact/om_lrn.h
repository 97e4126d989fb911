/* Local response normalisation on plain pointers (docs/exact.md, "Normalisations"). */
#ifndef OM_LRN_H
#define OM_LRN_H

#include "base/om_base.h"

typedef struct om_lrn {
  size_t images, channels, inner; /* the tensor is [images, channels, inner] */
  size_t before, behind;          /* channels of a sum in front of its own, and behind */
  float factor;                   /* alpha / size */
  double factor_f64;              /* the same, of float64 */
  float beta;
  float bias;
} om_lrn;

void om_lrn_run(om_ctx *ctx, const om_lrn *job, const float *x, float *y);
void om_lrn_run_f64(om_ctx *ctx, const om_lrn *job, const double *x, double *y);

#endif
