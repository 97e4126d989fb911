/* Attributes of the matrix products, and their shapes as one batched product. */
#ifndef OP_MATMUL_H
#define OP_MATMUL_H

#include "cpu/exact/om_matmul.h"
#include "ops/om_rule.h"

typedef struct om_gemm_params {
  float alpha, beta;
  bool is_a_transposed, is_b_transposed;
} om_gemm_params;

/* The product of a MatMul with these operands' shapes, which infer has accepted. A batch that only
 * a has is folded into its rows. */
void om_matmul_describe(const om_tensor *a, const om_tensor *b, om_matmul *out);

/* The same for a Gemm, b taken as [depth, cols] whatever its attribute says. */
void om_gemm_describe(const om_gemm_params *p,
                      const om_tensor *a,
                      const om_tensor *b,
                      om_matmul *out);

#endif
