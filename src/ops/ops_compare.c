/* Comparisons, logic, bits and selection. An entry's kernel is found from its type's text in the
 * table below; run is one for all. */
#include "cpu/exact/om_compare.h"
#include "cpu/exact/om_real.h"
#include "ops/op_elementwise.h"
#include "ops/op_types.h"

static const struct {
  const char *type;
  om_compare_params params;
} operations[] = {
    {"Equal", {OM_KIND_COMPARE, OM_COMPARE_EQUAL}},
    {"Less", {OM_KIND_COMPARE, OM_COMPARE_LESS}},
    {"Greater", {OM_KIND_COMPARE, OM_COMPARE_GREATER}},
    {"LessOrEqual", {OM_KIND_COMPARE, OM_COMPARE_LESS_OR_EQUAL}},
    {"GreaterOrEqual", {OM_KIND_COMPARE, OM_COMPARE_GREATER_OR_EQUAL}},
    {"And", {OM_KIND_LOGIC, OM_BITWISE_AND}},
    {"Or", {OM_KIND_LOGIC, OM_BITWISE_OR}},
    {"Xor", {OM_KIND_LOGIC, OM_BITWISE_XOR}},
    {"Not", {OM_KIND_LOGIC, OM_BITWISE_NOT}},
    {"BitwiseAnd", {OM_KIND_BITWISE, OM_BITWISE_AND}},
    {"BitwiseOr", {OM_KIND_BITWISE, OM_BITWISE_OR}},
    {"BitwiseXor", {OM_KIND_BITWISE, OM_BITWISE_XOR}},
    {"BitwiseNot", {OM_KIND_BITWISE, OM_BITWISE_NOT}},
};

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  for (size_t i = 0; i < OM_COUNT_OF(operations); ++i) {
    if (strcmp(operations[i].type, node->type) == 0) {
      *(om_compare_params *)params = operations[i].params;
      return OM_OK;
    }
  }
  return OM_FAIL(ctx, OM_E_INTERNAL, "There is no comparison '%s'.", node->type);
}

static om_status resolve_shift(om_ctx *ctx, const om_node *node, void *params) {
  om_string direction;
  OM_TRY(om_node_attr_text(ctx, node, "direction", "", &direction));
  bool is_left = om_string_is(direction, "LEFT");
  if (!is_left && !om_string_is(direction, "RIGHT")) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The attribute 'direction' is '%.*s', but it must be 'LEFT' or 'RIGHT'.",
                   (int)(direction.bytes < 40 ? direction.bytes : 40),
                   direction.data);
  }
  *(om_compare_params *)params = (om_compare_params){
      OM_KIND_BITWISE, is_left ? OM_BITWISE_SHIFT_LEFT : OM_BITWISE_SHIFT_RIGHT};
  return OM_OK;
}

static om_status infer_bool(om_ctx *ctx, const om_op_call *call) {
  OM_TRY(om_check_same_dtype(ctx, call));
  return om_infer_broadcast(ctx, call, OM_DTYPE_BOOL);
}

static om_status infer_same(om_ctx *ctx, const om_op_call *call) {
  OM_TRY(om_check_same_dtype(ctx, call));
  return om_infer_broadcast(ctx, call, call->inputs[0]->dtype);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_compare_params *params = call->params;
  om_dtype dtype = call->inputs[0]->dtype;
  om_elementwise_job job = {
      .operands = {call->inputs[0], call->input_count > 1 ? call->inputs[1] : NULL},
      .operand_count = call->input_count,
      .result = call->outputs[0]};
  switch (params->kind) {
    case OM_KIND_COMPARE:
      job.fn = om_compare_kernel((om_comparison)params->operation, dtype);
      break;
    case OM_KIND_LOGIC:
      job.fn = om_logic_kernel((om_bitwise)params->operation);
      break;
    case OM_KIND_BITWISE:
      job.fn = om_bitwise_kernel((om_bitwise)params->operation, dtype);
      break;
  }
  om_elementwise_run(ctx, &job);
  return OM_OK;
}

/* ---- Classification ---- */

static om_status resolve_is_inf(om_ctx *ctx, const om_node *node, void *params) {
  om_is_inf_params *p = params;
  int64_t positive = 1;
  int64_t negative = 1;
  OM_TRY(om_node_attr_int(ctx, node, "detect_positive", 1, &positive));
  OM_TRY(om_node_attr_int(ctx, node, "detect_negative", 1, &negative));
  p->positive = positive != 0;
  p->negative = negative != 0;
  return OM_OK;
}

/* 8-bit floats, one by one: what counts is NaN (p NULL), or the infinities that p asks for. */
static bool run_small(const om_op_call *call, const om_is_inf_params *p) {
  const om_tensor *x = call->inputs[0];
  if (!(OM_DT(x->dtype) & OM_DT_FLOAT8)) return false;
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    const double value = om_real_load(x, i);
    const bool is_inf = p && isinf(value) && (value > 0.0 ? p->positive : p->negative);
    ((uint8_t *)call->outputs[0]->data)[i] = p ? is_inf : value != value;
  }
  return true;
}

static om_status run_is_inf(om_ctx *ctx, const om_op_call *call) {
  const om_is_inf_params *p = call->params;
  if (run_small(call, p)) return OM_OK;
  bool counts[2] = {p->positive, p->negative};
  om_elementwise_job job = {.fn = om_is_inf_kernel(call->inputs[0]->dtype),
                            .arg = counts,
                            .operands = {call->inputs[0]},
                            .operand_count = 1,
                            .result = call->outputs[0]};
  om_elementwise_run(ctx, &job);
  return OM_OK;
}

static om_status run_is_nan(om_ctx *ctx, const om_op_call *call) {
  if (run_small(call, NULL)) return OM_OK;
  om_elementwise_job job = {.fn = om_is_nan_kernel(call->inputs[0]->dtype),
                            .operands = {call->inputs[0]},
                            .operand_count = 1,
                            .result = call->outputs[0]};
  om_elementwise_run(ctx, &job);
  return OM_OK;
}

/* ---- Where ---- */

static om_status infer_where(om_ctx *ctx, const om_op_call *call) {
  if (call->inputs[1]->dtype != call->inputs[2]->dtype) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "Input 1 is %s, but input 2 is %s.",
                   om_dtype_name(call->inputs[1]->dtype),
                   om_dtype_name(call->inputs[2]->dtype));
  }
  if (!om_where_kernel(call->inputs[1]->dtype)) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "Elements of type %s are not implemented here.",
                   om_dtype_name(call->inputs[1]->dtype));
  }
  return om_infer_broadcast(ctx, call, call->inputs[1]->dtype);
}

static bool is_half(om_dtype dtype) {
  return dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16;
}

static om_status run_where(om_ctx *ctx, const om_op_call *call) {
  om_tensor x = *call->inputs[1];
  om_tensor y = *call->inputs[2];
  om_tensor out = *call->outputs[0];
  if (is_half(out.dtype)) x.dtype = y.dtype = out.dtype = OM_DTYPE_U16;
  om_elementwise_job job = {.fn = om_where_kernel(out.dtype),
                            .operands = {call->inputs[0], &x, &y},
                            .operand_count = 3,
                            .result = &out};
  om_elementwise_run(ctx, &job);
  return OM_OK;
}

/* ---- Entries ---- */

#define OM_BINARY_ENTRY(name, first, set, resolve_fn, infer_fn, inputs) \
  {.domain = "",                                                        \
   .type = (name),                                                      \
   .first_opset = (first),                                              \
   .min_inputs = (inputs),                                              \
   .max_inputs = (inputs),                                              \
   .min_outputs = 1,                                                    \
   .max_outputs = 1,                                                    \
   .dtypes = (set),                                                     \
   .params_bytes = sizeof(om_compare_params),                           \
   .resolve = (resolve_fn),                                             \
   .infer = (infer_fn),                                                 \
   .run = run}
#define OM_COMPARISON(name, first, set) OM_BINARY_ENTRY(name, first, set, resolve, infer_bool, 2)

const om_op om_ops_compare[] = {
    OM_COMPARISON("Equal", 7, OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL) | OM_DT(OM_DTYPE_STRING)),
    OM_COMPARISON("Less", 7, OM_DT_NUMBER),
    OM_COMPARISON("Greater", 7, OM_DT_NUMBER),
    OM_COMPARISON("LessOrEqual", 12, OM_DT_NUMBER),
    OM_COMPARISON("GreaterOrEqual", 12, OM_DT_NUMBER),
    OM_COMPARISON("And", 7, OM_DT(OM_DTYPE_BOOL)),
    OM_COMPARISON("Or", 7, OM_DT(OM_DTYPE_BOOL)),
    OM_COMPARISON("Xor", 7, OM_DT(OM_DTYPE_BOOL)),
    OM_BINARY_ENTRY("Not", 1, OM_DT(OM_DTYPE_BOOL), resolve, infer_bool, 1),
    OM_BINARY_ENTRY("BitwiseAnd", 18, OM_DT_INT, resolve, infer_same, 2),
    OM_BINARY_ENTRY("BitwiseOr", 18, OM_DT_INT, resolve, infer_same, 2),
    OM_BINARY_ENTRY("BitwiseXor", 18, OM_DT_INT, resolve, infer_same, 2),
    OM_BINARY_ENTRY("BitwiseNot", 18, OM_DT_INT, resolve, infer_same, 1),
    OM_BINARY_ENTRY("BitShift", 11, OM_DT_UNSIGNED, resolve_shift, infer_same, 2),
    {.domain = "",
     .type = "IsNaN",
     .first_opset = 9,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT_FLOAT | OM_DT_FLOAT8,
     .infer = infer_bool,
     .run = run_is_nan},
    {.domain = "",
     .type = "IsInf",
     .first_opset = 10,
     .min_inputs = 1,
     .max_inputs = 1,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT_FLOAT | OM_DT_FLOAT8,
     .params_bytes = sizeof(om_is_inf_params),
     .resolve = resolve_is_inf,
     .infer = infer_bool,
     .run = run_is_inf},
    {.domain = "",
     .type = "Where",
     .first_opset = 9,
     .min_inputs = 3,
     .max_inputs = 3,
     .min_outputs = 1,
     .max_outputs = 1,
     .dtypes = OM_DT(OM_DTYPE_BOOL),
     .infer = infer_where,
     .run = run_where},
    {.type = NULL},
};
