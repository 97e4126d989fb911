/* BatchNormalization of one channel as y = x * s + t, by the exact primitives (docs/exact.md):
 * s = scale / sqrt(variance + epsilon), t = bias - mean * s. */
#ifndef OM_BATCHNORM_FACTORS_H
#define OM_BATCHNORM_FACTORS_H

void om_batchnorm_factors(
    float scale, float bias, float mean, float variance, float epsilon, float *out_s, float *out_t);

#endif
