/* Attributes of the matrix products, and their shapes as one batched product. */
#ifndef OP_MATMUL_H
#define OP_MATMUL_H

#include "cpu/exact/om_matmul.h"
#include "ops/om_rule.h"

typedef struct om_gemm_params {
  float alpha, beta;
  bool is_a_transposed, is_b_transposed;
} om_gemm_params;

/* The shape of a MatMul's result, whatever the types; OM_E_INVALID_INPUT names operands that do not
 * go together. */
om_status om_matmul_shape(om_ctx *ctx,
                          const om_tensor *a,
                          const om_tensor *b,
                          uint32_t *out_rank,
                          int64_t out_dims[OM_MAX_RANK + 2]);

/* The product of a MatMul with these operands' shapes, which infer has accepted. A batch that only
 * a has is folded into its rows. */
void om_matmul_describe(const om_tensor *a, const om_tensor *b, om_matmul *out);

/* The same for a Gemm. */
void om_gemm_describe(const om_gemm_params *p,
                      const om_tensor *a,
                      const om_tensor *b,
                      om_matmul *out);

/* om_op.is_by_rows of a MatMul: B is one matrix for all rows. */
bool om_matmul_is_by_rows(const om_op_call *call, uint32_t input, size_t rows);

#endif
