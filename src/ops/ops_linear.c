/* onemodel.MatMul: a MatMul of float32 with constant weights, then the addition of a bias and of a
 * residual, then an activation. Rewrites make it for the CPU's fast mode.
 *
 *     inputs: A, B [depth, cols], bias (optional) [cols], residual (optional), which broadcasts
 *     attributes: op_epilogue.h
 *
 *     scratch without a fast kernel: [the product] [with its bias] [the exact kernel's own]
 */
#include "ops/om_rule.h"
#include "ops/op_epilogue.h"
#include "ops/op_fast.h"
#include "ops/op_matmul.h"

enum { A = 0, WEIGHTS = 1, BIAS = 2, RESIDUAL = 3 };

static const om_op *matmul(void) {
  return om_op_find("", "MatMul", 13, NULL);
}

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  return om_epilogue_resolve(ctx, node, params);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *const behind[] = {om_rule_input(call, BIAS), om_rule_input(call, RESIDUAL)};
  int64_t dims[OM_MAX_RANK + 2] = {0};
  uint32_t rank = 0;
  OM_TRY(om_matmul_shape(ctx, call->inputs[A], call->inputs[WEIGHTS], &rank, dims));
  for (size_t i = 0; i < OM_COUNT_OF(behind); ++i) {
    if (behind[i]) OM_TRY(om_rule_broadcast(ctx, behind[i], &rank, dims));
  }
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, rank, dims);
}

/* The product alone; NULL as the context of what infer has accepted. */
static om_tensor product_shape(const om_op_call *call) {
  int64_t dims[OM_MAX_RANK + 2] = {0};
  om_tensor y = {.dtype = OM_DTYPE_F32};
  OM_IGNORE(om_matmul_shape(NULL, call->inputs[A], call->inputs[WEIGHTS], &y.rank, dims));
  memcpy(y.dims, dims, sizeof y.dims);
  return y;
}

static size_t product_bytes(const om_op_call *call) {
  const om_tensor y = product_shape(call);
  return om_size_align(om_tensor_elems(&y) * sizeof(float), 64);
}

static size_t scratch_bytes(const om_op_call *call) {
  return 2 * product_bytes(call) + matmul()->scratch_bytes(call);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_epilogue_params none = {.activation = OM_FAST_NONE};
  const size_t bytes = product_bytes(call);
  uint8_t *scratch = call->scratch;
  om_tensor y = product_shape(call);
  om_tensor biased = y;
  om_tensor *outputs[] = {&y};
  om_op_call product = *call;
  if (om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  y.data = scratch;
  biased.data = scratch + bytes;
  product.outputs = outputs;
  product.scratch = scratch + 2 * bytes;
  OM_TRY(matmul()->run(ctx, &product));
  om_epilogue_run(ctx, &none, &y, om_rule_input(call, BIAS), &biased);
  om_epilogue_run(ctx, call->params, &biased, om_rule_input(call, RESIDUAL), call->outputs[0]);
  return OM_OK;
}

static bool is_by_rows(const om_op_call *call, uint32_t input, size_t rows) {
  return om_matmul_is_by_rows(call, input, rows) &&
         om_rule_is_row(om_rule_input(call, BIAS), call->outputs[0]) &&
         om_rule_is_row(om_rule_input(call, RESIDUAL), call->outputs[0]);
}

/* ---- Fast mode ---- */

static const void *data_of(const om_tensor *tensor) {
  return tensor ? tensor->data : NULL;
}

/* The residual broadcasts: it is added to a result in scratch, behind what the kernel needs. */
static om_status run_apart(om_ctx *ctx, const om_op_call *call, void *state) {
  om_tensor y = product_shape(call);
  y.data = (uint8_t *)call->scratch + om_fast_scratch_bytes(state);
  const om_fast_operands operands = {.x = call->inputs[A]->data,
                                     .w = call->inputs[WEIGHTS]->data,
                                     .bias = data_of(om_rule_input(call, BIAS)),
                                     .y = y.data,
                                     .scratch = call->scratch};
  OM_TRY(om_fast_run(ctx, state, &operands));
  om_epilogue_run(ctx, call->params, &y, om_rule_input(call, RESIDUAL), call->outputs[0]);
  return OM_OK;
}

static om_status create_kernel(om_ctx *ctx,
                               const om_op_call *call,
                               bool is_apart,
                               om_fast *fast,
                               om_fast_product *product,
                               om_fast_kernel **out_kernel) {
  const om_epilogue_params none = {.activation = OM_FAST_NONE};
  om_epilogue_describe(is_apart ? &none : call->params,
                       om_rule_input(call, BIAS) != NULL,
                       is_apart ? NULL : om_rule_input(call, RESIDUAL),
                       &product->epilogue);
  memcpy(product->epilogue.residual_dims, product->y_dims, sizeof product->y_dims);
  return om_fast_product_create(ctx, fast, product, out_kernel);
}

static om_status make_ready(om_ctx *ctx,
                            const om_op_call *call,
                            uint32_t kept_inputs,
                            om_fast *fast,
                            om_op_ready *out_ready) {
  om_status st = OM_OK;
  om_matmul m;
  om_fast_product *product = NULL; /* large for the stack */
  om_fast_kernel *kernel = NULL;
  const om_tensor *bias = om_rule_input(call, BIAS);
  const om_tensor *residual = om_rule_input(call, RESIDUAL);
  OM_GO_NEW(product, 1);
  om_matmul_describe(call->inputs[A], call->inputs[WEIGHTS], &m);
  if (m.depth == 0 || om_tensor_elems(call->outputs[0]) == 0) goto done;
  if (bias && om_tensor_elems(bias) != m.cols) goto done;
  if (!om_fast_product_of(&m, false, product)) goto done;
  const om_tensor y = product_shape(call);
  const bool is_apart = residual && om_tensor_elems(residual) != om_tensor_elems(&y);
  product->b = om_fast_weights_of(call, WEIGHTS, kept_inputs);
  OM_GO(create_kernel(ctx, call, is_apart, fast, product, &kernel));
  om_fast_make_ready(
      kernel, is_apart ? run_apart : om_fast_run_call, product->b.data != NULL, out_ready);
  if (is_apart) out_ready->scratch_bytes += product_bytes(call);
done:
  om_delete(ctx, product);
  return st;
}

extern const om_op om_ops_linear[];
const om_op om_ops_linear[] = {
    {.domain = "onemodel",
     .type = "MatMul",
     .first_opset = 1,
     OM_RULE_COUNTS(2, 4, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_F32),
     .params_bytes = sizeof(om_epilogue_params),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run,
     .is_by_rows = is_by_rows,
     .make_ready = make_ready},
    {.type = NULL},
};
