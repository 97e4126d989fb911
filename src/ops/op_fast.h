/* Fast mode's kernels (cpu/fast/om_fast.h) as operators use them. */
#ifndef OP_FAST_H
#define OP_FAST_H

#include "cpu/fast/om_fast.h"
#include "graph/om_op.h"
#include "ops/op_conv.h"
#include "ops/op_matmul.h"

/* om_op.make_ready of MatMul, Gemm, Conv and ConvTranspose. */
om_status om_matmul_ready(om_ctx *ctx,
                          const om_op_call *call,
                          uint32_t kept_inputs,
                          om_fast *fast,
                          om_op_ready *out_ready);
om_status om_gemm_ready(om_ctx *ctx,
                        const om_op_call *call,
                        uint32_t kept_inputs,
                        om_fast *fast,
                        om_op_ready *out_ready);
om_status om_conv_ready(om_ctx *ctx,
                        const om_op_call *call,
                        uint32_t kept_inputs,
                        om_fast *fast,
                        om_op_ready *out_ready);

/* The description of a product, without weights and epilogue. False: too many axes. */
bool om_fast_product_of(const om_matmul *m, bool is_b_turned, om_fast_product *out);

/* The description of a convolution, without weights and epilogue; x: channels first. */
om_status om_fast_conv_of(om_ctx *ctx,
                          const om_conv_params *params,
                          const om_tensor *x,
                          const om_tensor *weights,
                          om_fast_conv *out);

/* The weights that input `index` is. */
om_fast_weights om_fast_weights_of(const om_op_call *call, uint32_t index, uint32_t kept_inputs);

/* Lets the step run `kernel`, which may be NULL, on inputs 0 and 1, a bias or a residual as input
 * 2, a residual as input 3. Input 1 is packed where `is_packed`. */
void om_fast_make_ready(om_fast_kernel *kernel,
                        om_status (*run)(om_ctx *ctx, const om_op_call *call, void *state),
                        bool is_packed,
                        om_op_ready *out_ready);

/* Runs it on inputs 0 to 3: x, w, bias, residual. */
om_status om_fast_run_call(om_ctx *ctx, const om_op_call *call, void *state);

#endif
