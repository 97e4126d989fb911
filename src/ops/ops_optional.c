/* Optionals: a value, or nothing. */
#include "ops/om_rule.h"
#include "ops/op_nested.h"

/* The type attribute tells what nothing is an optional of, which no other operator asks. */
static om_status optional_infer(om_ctx *ctx, const om_op_call *call) {
  om_nested_size size = {0};
  const om_tensor *value = om_rule_input(call, 0);
  if (value) om_nested_add(&size, value);
  return om_nested_set(ctx, call, 0, OM_DTYPE_OPTIONAL, &size);
}

static om_status optional_run(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  const om_tensor *value = om_rule_input(call, 0);
  om_nested_writer writer = om_nested_begin(call->outputs[0]);
  if (value) om_nested_write(&writer, value);
  return OM_OK;
}

static om_status has_element_infer(om_ctx *ctx, const om_op_call *call) {
  return om_rule_set(ctx, call, 0, OM_DTYPE_BOOL, 0, NULL);
}

/* A value that is no optional is there. */
static om_status has_element_run(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  const om_tensor *value = om_rule_input(call, 0);
  bool is_there = value && (value->dtype != OM_DTYPE_OPTIONAL || value->dims[0] == 1);
  *(uint8_t *)call->outputs[0]->data = is_there;
  return OM_OK;
}

static om_status get_element_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *value = call->inputs[0];
  if (value->dtype != OM_DTYPE_OPTIONAL) return om_nested_infer_copy(ctx, call, value);
  if (!value->data && value->dims[0] == 1) {
    om_rule_set_unknown(call, 0, OM_DTYPE_NONE);
    return OM_OK;
  }
  if (value->dims[0] == 0) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The optional is empty: there is no element to get.");
  }
  return om_nested_infer_copy(ctx, call, value->data);
}

static om_status get_element_run(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  const om_tensor *value = call->inputs[0];
  om_nested_run_copy(call, value->dtype == OM_DTYPE_OPTIONAL ? value->data : value);
  return OM_OK;
}

const om_op om_ops_optional[] = {
    {.domain = "",
     .type = "Optional",
     .first_opset = 15,
     OM_RULE_COUNTS(0, 1, 1, 1),
     .infer = optional_infer,
     .run = optional_run},
    {.domain = "",
     .type = "OptionalHasElement",
     .first_opset = 15,
     OM_RULE_COUNTS(0, 1, 1, 1),
     .shaped_inputs = 1u << 0,
     .infer = has_element_infer,
     .run = has_element_run},
    {.domain = "",
     .type = "OptionalGetElement",
     .first_opset = 15,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .infer = get_element_infer,
     .run = get_element_run},
    {.type = NULL},
};
