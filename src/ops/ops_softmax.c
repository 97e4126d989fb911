/* Softmax, LogSoftmax and Hardmax. */
#include "cpu/fast/om_fast_attention.h"
#include "ops/op_softmax.h"
#include "ops/op_types.h"

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_softmax_params *p = params;
  p->kind = OM_SOFTMAX;
  if (strcmp(node->type, "LogSoftmax") == 0) p->kind = OM_LOG_SOFTMAX;
  if (strcmp(node->type, "Hardmax") == 0) p->kind = OM_HARDMAX;
  p->is_flat = node->opset < 13;
  return om_node_attr_int(ctx, node, "axis", p->is_flat ? 1 : -1, &p->axis);
}

om_status om_softmax_axes(om_ctx *ctx,
                          const om_softmax_params *params,
                          const om_tensor *input,
                          uint32_t *out_mask) {
  uint32_t axis = 0;
  /* A flattened row may begin behind the last axis: rows of one element. */
  if (params->is_flat && params->axis == (int64_t)input->rank) {
    *out_mask = 0;
    return OM_OK;
  }
  OM_TRY(om_rule_axis(ctx, params->axis, input->rank, &axis));
  uint32_t all = (1u << input->rank) - 1;
  *out_mask = params->is_flat ? all & ~((1u << axis) - 1) : 1u << axis;
  return OM_OK;
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  uint32_t mask = 0;
  OM_TRY(om_softmax_axes(ctx, call->params, call->inputs[0], &mask));
  om_copy_type_and_shape(call->inputs[0], call->outputs[0]);
  return OM_OK;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_softmax_params *params = call->params;
  uint32_t mask = 0;
  om_rows rows;
  OM_TRY(om_softmax_axes(ctx, params, call->inputs[0], &mask));
  om_rows_init(&rows, call->inputs[0], mask);
  om_softmax_run(ctx, &rows, params->kind, call->inputs[0]->data, call->outputs[0]->data);
  return OM_OK;
}

/* Rows that are dense: the axes are the last ones. */
static om_status run_fast(om_ctx *ctx, const om_op_call *call, void *state) {
  const om_tensor *x = call->inputs[0];
  uint32_t mask = 0;
  size_t cols = 1;
  (void)state;
  OM_TRY(om_softmax_axes(ctx, call->params, x, &mask));
  for (uint32_t i = 0; i < x->rank; ++i) {
    if (mask >> i & 1u) cols *= (size_t)x->dims[i];
  }
  om_fast_softmax(ctx, om_tensor_elems(x) / cols, cols, x->data, call->outputs[0]->data);
  return OM_OK;
}

static om_status make_ready(om_ctx *ctx,
                            const om_op_call *call,
                            uint32_t kept_inputs,
                            om_fast *fast,
                            om_op_ready *out_ready) {
  const om_softmax_params *params = call->params;
  const om_tensor *x = call->inputs[0];
  const uint32_t all = (1u << x->rank) - 1;
  uint32_t mask = 0;
  (void)kept_inputs;
  (void)fast;
  OM_TRY(om_softmax_axes(ctx, params, x, &mask));
  const bool is_behind = mask != 0 && ((all & ~mask) & ((all & ~mask) + 1)) == 0;
  if (params->kind == OM_SOFTMAX && x->dtype == OM_DTYPE_F32 && is_behind &&
      om_tensor_elems(x) > 0) {
    out_ready->run = run_fast;
  }
  return OM_OK;
}

#define OM_SOFTMAX_ENTRY(name)                \
  {.domain = "",                              \
   .type = (name),                            \
   .first_opset = 1,                          \
   OM_RULE_COUNTS(1, 1, 1, 1),                \
   .dtypes = OM_DT_FLOAT,                     \
   .params_bytes = sizeof(om_softmax_params), \
   .resolve = resolve,                        \
   .infer = infer,                            \
   .run = run,                                \
   .make_ready = make_ready}

const om_op om_ops_softmax[] = {
    OM_SOFTMAX_ENTRY("Softmax"),
    OM_SOFTMAX_ENTRY("LogSoftmax"),
    OM_SOFTMAX_ENTRY("Hardmax"),
    {.type = NULL},
};
