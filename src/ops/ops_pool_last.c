/* onemodel.MaxPool, onemodel.AveragePool and onemodel.GlobalAveragePool: those of ONNX in float32
 * with the channels last, and without indices. Rewrites make them for the CPU's fast mode. */
#include "cpu/fast/om_pool_last.h"
#include "ops/om_rule.h"
#include "ops/op_channels_last.h"
#include "ops/op_pool.h"

extern const om_op om_ops_pool_last[];

static const om_op *first_op(const om_node *node) {
  return om_op_find("", node->type, 22, NULL);
}

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  return first_op(node)->resolve(ctx, node, params);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor x = om_channels_first(call->inputs[0]);
  const om_tensor *inputs[] = {&x};
  om_tensor y = {.dtype = OM_DTYPE_F32};
  om_tensor *outputs[] = {&y};
  om_op_call first = *call;
  first.inputs = inputs;
  first.outputs = outputs;
  first.output_count = 1;
  OM_TRY(first_op(call->node)->infer(ctx, &first));
  y = om_channels_last(&y);
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, y.rank, y.dims);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_pool_params *params = call->params;
  const om_tensor x = om_channels_first(call->inputs[0]);
  om_window w;
  om_pool_window p = {.planes = 0};
  if (!om_pool_fit(params, &x, &w)) return om_window_fail(ctx, &w);
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    p.in[i] = w.in[i];
    p.out[i] = w.out[i];
    p.kernel[i] = w.kernel[i];
    p.stride[i] = w.stride[i];
    p.dilation[i] = w.dilation[i];
    p.pad_begin[i] = w.pad_begin[i];
    p.pad_end[i] = w.pad_end[i];
  }
  om_pool_last_run(ctx,
                   &p,
                   params->kind == OM_POOL_MAX ? OM_POOL_LAST_MAX
                   : params->counts_padding    ? OM_POOL_LAST_MEAN_PADDED
                                               : OM_POOL_LAST_MEAN,
                   w.batch,
                   w.channels,
                   x.data,
                   call->outputs[0]->data);
  return OM_OK;
}

#define ENTRY(name)                        \
  {.domain = "onemodel",                   \
   .type = name,                           \
   .first_opset = 1,                       \
   OM_RULE_COUNTS(1, 1, 1, 1),             \
   .dtypes = OM_DT(OM_DTYPE_F32),          \
   .params_bytes = sizeof(om_pool_params), \
   .resolve = resolve,                     \
   .infer = infer,                         \
   .run = run}

const om_op om_ops_pool_last[] = {
    ENTRY("AveragePool"),
    ENTRY("GlobalAveragePool"),
    ENTRY("MaxPool"),
    {.type = NULL},
};
