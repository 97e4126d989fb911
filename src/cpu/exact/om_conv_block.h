/* The innermost loop of exact convolutions: block sums for a few channels and 16 results. */
#ifndef OM_CONV_BLOCK_H
#define OM_CONV_BLOCK_H

#include <stdint.h>

enum { OM_CONV_LANES = 16, OM_CONV_ROWS = 4 };

/* sums[r * 16 + lane] = the chain over `terms` terms, from 0, of panel[term * 16 + lane] times
 * w[r * stride + term]; rows is 1..OM_CONV_ROWS. */
void om_conv_block_f32(
    const float *panel, const float *w, int64_t stride, uint32_t terms, int rows, float *sums);
void om_conv_block_f64(
    const double *panel, const double *w, int64_t stride, uint32_t terms, int rows, double *sums);

void om_conv_block_u32(const uint32_t *panel,
                       const uint32_t *w,
                       int64_t stride,
                       uint32_t terms,
                       int rows,
                       uint32_t *sums);

#endif
