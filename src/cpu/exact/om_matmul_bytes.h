/* Products of 8-bit integers with zero points (docs/exact.md, "Quantization"):
 *
 *     y = sum of (a - a_zero) * (b - b_zero)
 *       = sum of a * b - a_zero * (sum of b) - b_zero * (sum of (a - a_zero))
 *
 * as int32, which wraps; so the operands are read as they are.
 */
#ifndef OM_MATMUL_BYTES_H
#define OM_MATMUL_BYTES_H

#include "cpu/exact/om_matmul.h"

typedef struct om_matmul_bytes {
  om_matmul m;          /* of dense a and b */
  const uint8_t *a, *b; /* bits of int8 or uint8 */
  bool is_a_signed, is_b_signed;
  const int32_t *a_zeros; /* of each row of a, over its batch */
  const int32_t *b_zeros; /* of each column of b, over its batch: */
  size_t b_zero_count;
  uint32_t *y;           /* the sums, or NULL: floats, */
  float *floats;         /* sums * factor + bias; there are terms, and b has no batch */
  const float *factors;  /* of each column of b */
  const float *bias;     /* likewise; NULL: none */
  const uint8_t *panels; /* om_matmul_bytes_pack of b, which then is not read; NULL: none */
} om_matmul_bytes;

/* Whether panels are worth while: b has no batch, and is not better read as it lies. */
bool om_matmul_bytes_packs(const om_matmul *m);

/* Bytes of b's panels, aligned to 64. */
size_t om_matmul_bytes_panels(const om_matmul *m);

/* Brings b into panels, for all products with such an a; of p, what says so and m are read. */
void om_matmul_bytes_pack(om_ctx *ctx, const om_matmul_bytes *p, uint8_t *panels);

/* Bytes of scratch, aligned to 64; a_rows: over a's batch. */
size_t om_matmul_bytes_scratch(const om_matmul *m, size_t a_rows);

void om_matmul_bytes_run(om_ctx *ctx, const om_matmul_bytes *p, size_t a_rows, void *scratch);

#endif
