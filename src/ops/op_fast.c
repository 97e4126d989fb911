/* Fast mode's kernels as operators use them. */
#include "ops/op_fast.h"

#include "ops/om_rule.h"

om_fast_weights om_fast_weights_of(const om_op_call *call, uint32_t index, uint32_t kept_inputs) {
  return (om_fast_weights){.data = call->inputs[index]->data,
                           .is_kept = (kept_inputs >> index & 1u) != 0};
}

static void destroy(om_ctx *ctx, void *state) {
  om_fast_kernel_destroy(ctx, state);
}

void om_fast_make_ready(om_fast_kernel *kernel,
                        om_status (*run)(om_ctx *ctx, const om_op_call *call, void *state),
                        bool is_packed,
                        om_op_ready *out_ready) {
  if (!kernel) return;
  *out_ready = (om_op_ready){.run = run,
                             .destroy = destroy,
                             .state = kernel,
                             .scratch_bytes = om_fast_scratch_bytes(kernel),
                             .packed_inputs = is_packed ? 2u : 0u};
}

static const void *data_of(const om_op_call *call, uint32_t index) {
  const om_tensor *tensor = om_rule_input(call, index);
  return tensor ? tensor->data : NULL;
}

om_status om_fast_run_call(om_ctx *ctx, const om_op_call *call, void *state) {
  const om_fast_operands operands = {.x = data_of(call, 0),
                                     .w = data_of(call, 1),
                                     .bias = data_of(call, 2),
                                     .residual = data_of(call, 3),
                                     .y = call->outputs[0]->data,
                                     .scratch = call->scratch};
  return om_fast_run(ctx, state, &operands);
}
