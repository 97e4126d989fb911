/* Cast and CastLike. */
#include "cpu/exact/om_cast.h"
#include "ops/op_elementwise.h"
#include "ops/op_types.h"

static om_status resolve_saturate(om_ctx *ctx, const om_node *node, om_cast_params *params) {
  int64_t saturate = 1;
  OM_TRY(om_node_attr_int(ctx, node, "saturate", 1, &saturate));
  params->saturates = saturate != 0;
  return OM_OK;
}

static om_status resolve_cast(om_ctx *ctx, const om_node *node, void *params) {
  om_cast_params *p = params;
  int64_t to = 0;
  OM_TRY(om_node_attr_int(ctx, node, "to", 0, &to));
  if (to <= OM_DTYPE_NONE || to >= OM_DTYPE_COUNT) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The attribute 'to' is %lld, which is no element type.",
                   (long long)to);
  }
  p->to = (om_dtype)to;
  return resolve_saturate(ctx, node, p);
}

static om_status resolve_cast_like(om_ctx *ctx, const om_node *node, void *params) {
  return resolve_saturate(ctx, node, params);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_cast_params *params = call->params;
  om_tensor *out = call->outputs[0];
  om_copy_type_and_shape(call->inputs[0], out);
  out->dtype = params->to == OM_DTYPE_NONE ? call->inputs[1]->dtype : params->to;
  if (out->dtype != call->inputs[0]->dtype &&
      !om_cast_is_there(call->inputs[0]->dtype, out->dtype)) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "A conversion from %s to %s is not implemented.",
                   om_dtype_name(call->inputs[0]->dtype),
                   om_dtype_name(out->dtype));
  }
  return OM_OK;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_cast_params *params = call->params;
  om_cast_run(ctx, call->inputs[0], call->outputs[0], params->saturates);
  return OM_OK;
}

const om_op om_ops_cast[] = {
    {.domain = "",
     .type = "Cast",
     .first_opset = 6,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_cast_params),
     .resolve = resolve_cast,
     .infer = infer,
     .run = run},
    {.domain = "",
     .type = "CastLike",
     .first_opset = 15,
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_cast_params),
     .resolve = resolve_cast_like,
     .infer = infer,
     .run = run},
    {.type = NULL},
};
