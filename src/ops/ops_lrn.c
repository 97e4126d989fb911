/* LRN: a value is divided by a power of the squares in the channels around it (docs/exact.md,
 * "Normalisations"). Narrower floats are computed in float32. */
#include "ops/om_rule.h"
#include "ops/op_lrn.h"
#include "ops/op_types.h"
#include "ops/op_widen.h"

static om_status resolve(om_ctx *ctx, const om_node *node, void *out_params) {
  om_lrn_params *params = out_params;
  OM_TRY(om_node_attr_float(ctx, node, "alpha", 0.0001f, &params->alpha));
  OM_TRY(om_node_attr_float(ctx, node, "beta", 0.75f, &params->beta));
  OM_TRY(om_node_attr_float(ctx, node, "bias", 1.0f, &params->bias));
  OM_TRY(om_node_attr_int(ctx, node, "size", 0, &params->size));
  if (params->size >= 1 && params->size <= INT32_MAX) return OM_OK;
  return OM_FAIL(
      ctx, OM_E_INVALID_MODEL, "size is %lld; it must be above 0.", (long long)params->size);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  if (x->rank < 2) {
    return OM_FAIL(
        ctx, OM_E_INVALID_INPUT, "Input 0 has rank %u, but it must be at least 2.", x->rank);
  }
  om_copy_type_and_shape(x, call->outputs[0]);
  return OM_OK;
}

om_lrn om_lrn_fit(const om_lrn_params *params, const om_tensor *x) {
  return (om_lrn){
      .images = (size_t)x->dims[0],
      .channels = (size_t)x->dims[1],
      .inner = om_rule_product(x->dims, 2, x->rank),
      .before = (size_t)((params->size - 1) / 2),
      .behind = (size_t)(params->size / 2),
      .factor = params->alpha / (float)params->size,
      .factor_f64 = (double)params->alpha / (double)params->size,
      .beta = params->beta,
      .bias = params->bias,
  };
}

static size_t scratch_bytes(const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  return om_widen_needed(x->dtype) ? 2 * om_tensor_elems(x) * sizeof(float) : 0;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_tensor *y = call->outputs[0];
  float *scratch = call->scratch;
  if (om_tensor_elems(x) == 0) return OM_OK;
  const om_lrn job = om_lrn_fit(call->params, x);
  if (x->dtype == OM_DTYPE_F64) {
    om_lrn_run_f64(ctx, &job, x->data, y->data);
    return OM_OK;
  }
  if (!om_widen_needed(x->dtype)) {
    om_lrn_run(ctx, &job, x->data, y->data);
    return OM_OK;
  }
  float *result = scratch + om_tensor_elems(x);
  om_lrn_run(ctx, &job, om_widen(x, scratch), result);
  om_narrow(result, y);
  return OM_OK;
}

const om_op om_ops_lrn[] = {
    {.domain = "",
     .type = "LRN",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_lrn_params),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
    {.type = NULL},
};
