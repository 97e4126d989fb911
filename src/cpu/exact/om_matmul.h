/* Matrix products in the order that docs/exact.md fixes ("Products"): blocks of 32 terms, groups
 * of four blocks, groups added in order. Integers wrap; their order does not matter.
 */
#ifndef OM_MATMUL_H
#define OM_MATMUL_H

#include "cpu/exact/om_strided.h"

enum {
  OM_PRODUCT_BLOCK = 32,  /* terms of one chain */
  OM_PRODUCT_GROUP = 128, /* terms whose block sums are added before they join the total */
};

/* y[rows, cols] = a[rows, depth] * b[depth, cols], for each element of the batch. b and y are dense
 * and row-major. */
typedef struct om_matmul {
  size_t rows, cols, depth;
  size_t a_row_stride, a_depth_stride; /* elements */
  om_strided batch;                    /* simplified; source: a, target: b */
} om_matmul;

void om_matmul_f32(om_ctx *ctx, const om_matmul *m, const float *a, const float *b, float *y);
void om_matmul_f64(om_ctx *ctx, const om_matmul *m, const double *a, const double *b, double *y);
void om_matmul_u32(
    om_ctx *ctx, const om_matmul *m, const uint32_t *a, const uint32_t *b, uint32_t *y);
void om_matmul_u64(
    om_ctx *ctx, const om_matmul *m, const uint64_t *a, const uint64_t *b, uint64_t *y);

#endif
