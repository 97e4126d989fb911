/* See om_batchnorm_factors.h. A file of its own: the primitives share the name om_log with the
 * public header's type, so no file can include both. */
#include "rewrite/om_batchnorm_factors.h"

#include "cpu/exact/om_exact_math.h"

void om_batchnorm_factors(float scale,
                          float bias,
                          float mean,
                          float variance,
                          float epsilon,
                          float *out_s,
                          float *out_t) {
  float s = om_div(scale, om_sqrt(variance + epsilon));
  float shift = mean * s;
  *out_s = s;
  *out_t = bias - shift;
}
