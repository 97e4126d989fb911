/* Matrix products in the order that docs/exact.md fixes ("Products"): blocks of 32 terms, groups
 * of four blocks, groups added in order. Integers wrap; their order does not matter.
 */
#ifndef OM_MATMUL_H
#define OM_MATMUL_H

#include "cpu/exact/om_product_group.h"
#include "cpu/exact/om_strided.h"

/* y[rows, cols] = a[rows, depth] * b[depth, cols], for each element of the batch. y is dense and
 * row-major. Strides are elements. */
typedef struct om_matmul {
  size_t rows, cols, depth;
  size_t a_row_stride, a_depth_stride;
  size_t b_depth_stride, b_col_stride;
  om_strided batch; /* simplified; source: a, target: b */
} om_matmul;

/* Bytes of scratch, aligned to 64, for elements of 4 or 8 bytes. */
size_t om_matmul_scratch_bytes(const om_matmul *m, size_t elem_bytes);

void om_matmul_f32(
    om_ctx *ctx, const om_matmul *m, const float *a, const float *b, float *y, void *scratch);
void om_matmul_f64(
    om_ctx *ctx, const om_matmul *m, const double *a, const double *b, double *y, void *scratch);
void om_matmul_u32(om_ctx *ctx,
                   const om_matmul *m,
                   const uint32_t *a,
                   const uint32_t *b,
                   uint32_t *y,
                   void *scratch);
void om_matmul_u64(om_ctx *ctx,
                   const om_matmul *m,
                   const uint64_t *a,
                   const uint64_t *b,
                   uint64_t *y,
                   void *scratch);

#endif
