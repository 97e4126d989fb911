/* Trigonometric and hyperbolic functions beside Sin and Cos: on the CPU alone. */
#include "cpu/exact/om_trigonometry.h"
#include "ops/om_rule.h"
#include "ops/op_types.h"

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  om_copy_type_and_shape(call->inputs[0], call->outputs[0]);
  return OM_OK;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  om_elementwise_job job = {.fn = om_trigonometry_kernel(call->node->type, call->inputs[0]->dtype),
                            .operands = {call->inputs[0]},
                            .operand_count = 1,
                            .result = call->outputs[0]};
  om_elementwise_run(ctx, &job);
  return OM_OK;
}

#define OM_ENTRY(name, first)  \
  {.domain = "",               \
   .type = (name),             \
   .first_opset = (first),     \
   OM_RULE_COUNTS(1, 1, 1, 1), \
   .dtypes = OM_DT_FLOAT,      \
   .infer = infer,             \
   .run = run}

const om_op om_ops_trigonometry[] = {
    OM_ENTRY("Tan", 7),
    OM_ENTRY("Asin", 7),
    OM_ENTRY("Acos", 7),
    OM_ENTRY("Atan", 7),
    OM_ENTRY("Sinh", 9),
    OM_ENTRY("Cosh", 9),
    OM_ENTRY("Asinh", 9),
    OM_ENTRY("Acosh", 9),
    OM_ENTRY("Atanh", 9),
    {.type = NULL},
};
