/* The contributed FusedConv: a Conv, then the addition of Z, then an activation, each as the
 * operator of its own. */
#include "ops/om_rule.h"
#include "ops/op_conv.h"
#include "ops/op_elementwise.h"

enum { Z = 3 };

typedef struct om_fused_conv_params {
  om_conv_params conv; /* first: Conv's functions read it */
  uint8_t number;      /* of elementwise.def; 0: no activation */
  float scalars[2];
} om_fused_conv_params;

static const om_op *conv(void) {
  return om_op_find("", "Conv", 22, NULL);
}

static om_status resolve_activation(om_ctx *ctx, const om_node *node, om_fused_conv_params *p) {
  static const struct {
    const char *name;
    uint8_t number;
    uint8_t scalar_count;
  } activations[] = {
      {"", 0, 0},
      {"Relu", OM_ELEMENTWISE_Relu, 0},
      {"Tanh", OM_ELEMENTWISE_Tanh, 0},
      {"Sigmoid", OM_ELEMENTWISE_Sigmoid, 0},
      {"LeakyRelu", OM_ELEMENTWISE_LeakyRelu, 1},
      {"Clip", OM_ELEMENTWISE_Clip, 2},
      {"HardSigmoid", OM_ELEMENTWISE_HardSigmoid, 2},
  };
  const om_attr *values = om_node_attr(node, "activation_params");
  om_string name;
  OM_TRY(om_node_attr_text(ctx, node, "activation", "", &name));
  for (size_t i = 0; i < OM_COUNT_OF(activations); ++i) {
    if (!om_string_is(name, activations[i].name)) continue;
    const uint8_t count = activations[i].scalar_count;
    p->number = activations[i].number;
    if (count == 0) return OM_OK;
    if (!values || values->kind != OM_ATTR_FLOATS || values->count != count) break;
    memcpy(p->scalars, values->floats, count * sizeof(float));
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The activation '%.*s' is unknown, or activation_params does not go with it.",
                 (int)(name.bytes < 40 ? name.bytes : 40),
                 name.data);
}

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_fused_conv_params *p = params;
  OM_TRY(om_conv_resolve(ctx, node, &p->conv));
  return resolve_activation(ctx, node, p);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *z = om_rule_input(call, Z);
  const om_tensor *y = call->outputs[0];
  char have[OM_SHAPE_TEXT];
  char want[OM_SHAPE_TEXT];
  OM_TRY(conv()->infer(ctx, call));
  if (!z || !y) return OM_OK;
  if (z->dtype == y->dtype && z->rank == y->rank &&
      memcmp(z->dims, y->dims, y->rank * sizeof *y->dims) == 0) {
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Z is %s %s, but the result is %s %s.",
                 om_dtype_name(z->dtype),
                 om_shape_text(have, sizeof have, z->rank, z->dims),
                 om_dtype_name(y->dtype),
                 om_shape_text(want, sizeof want, y->rank, y->dims));
}

static size_t scratch_bytes(const om_op_call *call) {
  return conv()->scratch_bytes(call);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_fused_conv_params *p = call->params;
  const om_tensor *z = om_rule_input(call, Z);
  om_tensor *y = call->outputs[0];
  const double wide[2] = {(double)p->scalars[0], (double)p->scalars[1]};
  OM_TRY(conv()->run(ctx, call));
  if (!y || om_tensor_elems(y) == 0) return OM_OK;
  om_elementwise_job job = {.fn = om_elementwise_kernel(OM_ELEMENTWISE_Add, y->dtype),
                            .operands = {y, z},
                            .operand_count = 2,
                            .result = y};
  if (z) om_elementwise_run(ctx, &job);
  if (p->number == 0) return OM_OK;
  job.fn = om_elementwise_kernel(p->number, y->dtype);
  job.arg = y->dtype == OM_DTYPE_F64 ? (const void *)wide : (const void *)p->scalars;
  job.operand_count = 1;
  om_elementwise_run(ctx, &job);
  return OM_OK;
}

const om_op om_ops_fused_conv[] = {
    {.domain = "com.microsoft",
     .type = "FusedConv",
     .first_opset = 1,
     OM_RULE_COUNTS(2, 4, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_fused_conv_params),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
    {.type = NULL},
};
