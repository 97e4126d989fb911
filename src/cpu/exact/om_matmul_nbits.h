/* Products by constant matrices of 2, 4 or 8 bits (docs/exact.md, "Quantization"): the terms of a
 * group for 16 columns are widened to float32 where they are multiplied, so the matrix stays as
 * small as it is. */
#ifndef OM_MATMUL_NBITS_H
#define OM_MATMUL_NBITS_H

#include "base/om_base.h"

/* y[rows, cols] = a[rows, depth] * b[cols, depth], turned; b's element (n, k) is
 * (q - zeros[n, g]) * scales[n, g], g the group of k. */
typedef struct om_matmul_nbits {
  size_t rows, cols, depth;
  uint32_t bits;                          /* of an element; low bits of a byte come first */
  size_t block;                           /* elements of a group */
  size_t groups;                          /* of a column */
  const uint8_t *b;                       /* cols * groups * block elements */
  const int32_t *group_of;                /* of k; NULL: k / block */
  const float *a, *scales, *zeros, *bias; /* zeros, bias may be NULL: 2^(bits - 1), none */
  float *y;
} om_matmul_nbits;

/* Bytes of memory, aligned to 64, that a run needs. */
size_t om_matmul_nbits_scratch_bytes(const om_matmul_nbits *m);

void om_matmul_nbits_run(om_ctx *ctx, const om_matmul_nbits *m, void *scratch);

#endif
