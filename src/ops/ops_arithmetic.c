/* Arithmetic beside the lines of elementwise.def: Mod, Sum and Mean. */
#include "cpu/exact/om_mixed.h"
#include "ops/op_elementwise.h"
#include "ops/op_types.h"

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  OM_TRY(om_check_all_there(ctx, call));
  OM_TRY(om_check_same_dtype(ctx, call));
  return om_infer_broadcast(ctx, call, call->inputs[0]->dtype);
}

static om_status resolve_mod(om_ctx *ctx, const om_node *node, void *params) {
  om_mod_params *p = params;
  int64_t is_fmod = 0;
  OM_TRY(om_node_attr_int(ctx, node, "fmod", 0, &is_fmod));
  p->is_fmod = is_fmod != 0;
  return OM_OK;
}

static om_status run_mod(om_ctx *ctx, const om_op_call *call) {
  const om_mod_params *p = call->params;
  om_dtype dtype = call->inputs[0]->dtype;
  if (OM_DT(dtype) & OM_DT_INT) OM_TRY(om_check_divisor(ctx, call->inputs[1], call->outputs[0]));
  om_elementwise_job job = {.fn = om_mod_kernel(dtype, p->is_fmod),
                            .operands = {call->inputs[0], call->inputs[1]},
                            .operand_count = 2,
                            .result = call->outputs[0]};
  om_elementwise_run(ctx, &job);
  return OM_OK;
}

/* Adds the inputs in order, each sum rounded to the tensor's type. */
static om_status run_sum(om_ctx *ctx, const om_op_call *call) {
  om_dtype dtype = call->inputs[0]->dtype;
  om_elementwise_job job = {.fn = om_copy_kernel(dtype),
                            .operands = {call->inputs[0]},
                            .operand_count = 1,
                            .result = call->outputs[0]};
  om_elementwise_run(ctx, &job);
  job.fn = om_elementwise_kernel(OM_ELEMENTWISE_Add, dtype);
  job.operand_count = 2;
  job.operands[0] = call->outputs[0];
  for (uint32_t i = 1; i < call->input_count; ++i) {
    job.operands[1] = call->inputs[i];
    om_elementwise_run(ctx, &job);
  }
  return OM_OK;
}

static om_status run_mean(om_ctx *ctx, const om_op_call *call) {
  om_tensor count = {.dtype = OM_DTYPE_F32};
  float count_f32 = (float)call->input_count;
  double count_f64 = (double)call->input_count;
  om_dtype dtype = call->inputs[0]->dtype;
  uint16_t count_half = 0;
  OM_TRY(run_sum(ctx, call));
  count.dtype = dtype;
  count.data = &count_f32;
  if (dtype == OM_DTYPE_F64) count.data = &count_f64;
  if (dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16) {
    om_half_from_f32(dtype, &count_f32, 1, &count_half);
    count.data = &count_half;
  }
  om_elementwise_job job = {.fn = om_elementwise_kernel(OM_ELEMENTWISE_Div, dtype),
                            .operands = {call->outputs[0], &count},
                            .operand_count = 2,
                            .result = call->outputs[0]};
  om_elementwise_run(ctx, &job);
  return OM_OK;
}

const om_op om_ops_arithmetic[] = {
    {.domain = "",
     .type = "Mod",
     .first_opset = 10,
     .min_inputs = 2,
     .max_inputs = 2,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT_NUMBER,
     .params_bytes = sizeof(om_mod_params),
     .resolve = resolve_mod,
     .infer = infer,
     .run = run_mod},
    {.domain = "",
     .type = "Sum",
     .first_opset = 1,
     .min_inputs = 1,
     .max_inputs = UINT8_MAX,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT_FLOAT,
     .may_be_composed = true,
     .infer = infer,
     .run = run_sum},
    {.domain = "",
     .type = "Mean",
     .first_opset = 1,
     .min_inputs = 1,
     .max_inputs = UINT8_MAX,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT_FLOAT,
     .may_be_composed = true,
     .infer = infer,
     .run = run_mean},
    {.type = NULL},
};
