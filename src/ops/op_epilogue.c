/* Residuals and activations behind a product or a convolution. */
#include "ops/op_epilogue.h"

#include "ops/op_elementwise.h"

om_status om_epilogue_resolve(om_ctx *ctx, const om_node *node, om_epilogue_params *out_params) {
  int64_t activation = 0;
  OM_TRY(om_node_attr_int(ctx, node, "activation", 0, &activation));
  OM_TRY(om_node_attr_float(ctx, node, "alpha", 0.0f, &out_params->alpha));
  OM_TRY(om_node_attr_float(ctx, node, "beta", 0.0f, &out_params->beta));
  if (activation < 0 || activation > OM_FAST_HARD_SIGMOID) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "activation is %lld.", (long long)activation);
  }
  out_params->activation = (om_fast_activation)activation;
  return OM_OK;
}

static const struct {
  const char *type;
  om_fast_activation activation;
  uint8_t number; /* of elementwise.def */
} activations[] = {
    {"Relu", OM_FAST_RELU, OM_ELEMENTWISE_Relu},
    {"LeakyRelu", OM_FAST_LEAKY_RELU, OM_ELEMENTWISE_LeakyRelu},
    {"Clip", OM_FAST_CLIP, OM_ELEMENTWISE_Clip},
    {"Sigmoid", OM_FAST_SIGMOID, OM_ELEMENTWISE_Sigmoid},
    {"Tanh", OM_FAST_TANH, OM_ELEMENTWISE_Tanh},
    {"Gelu", OM_FAST_GELU, OM_ELEMENTWISE_Gelu},
    {"HardSwish", OM_FAST_HARD_SWISH, OM_ELEMENTWISE_HardSwish},
    {"HardSigmoid", OM_FAST_HARD_SIGMOID, OM_ELEMENTWISE_HardSigmoid},
};

/* Clip's bounds where they are inputs; false: they are not known. */
static bool read_bounds(const om_tensor *const *constants,
                        uint32_t count,
                        om_epilogue_params *out) {
  float *const bounds[] = {&out->alpha, &out->beta};
  for (uint32_t i = 1; i < count && i < 3; ++i) {
    const om_tensor *bound = constants[i];
    if (!bound || bound->dtype != OM_DTYPE_F32 || om_tensor_elems(bound) != 1) return false;
    memcpy(bounds[i - 1], bound->data, sizeof(float));
  }
  return count == 3;
}

om_status om_epilogue_of_node(om_ctx *ctx,
                              const om_node *node,
                              const om_tensor *const *constants,
                              om_epilogue_params *out_params) {
  (void)ctx;
  *out_params = (om_epilogue_params){.activation = OM_FAST_NONE};
  if (!node->type || !node->op || node->domain[0] != '\0') return OM_OK;
  for (size_t i = 0; i < OM_COUNT_OF(activations); ++i) {
    if (strcmp(node->type, activations[i].type) != 0) continue;
    const om_elementwise_params *p = node->params;
    if (p->number != activations[i].number) return OM_OK; /* Gelu by tanh */
    out_params->alpha = p->scalars[0];
    out_params->beta = p->scalars[1];
    if (activations[i].activation == OM_FAST_HARD_SWISH) {
      out_params->alpha = 1.0f / 6.0f;
      out_params->beta = 0.5f;
    }
    if (p->bounds_are_inputs && !read_bounds(constants, node->input_count, out_params)) {
      return OM_OK;
    }
    out_params->activation = activations[i].activation;
  }
  return OM_OK;
}

void om_epilogue_run(om_ctx *ctx,
                     const om_epilogue_params *params,
                     const om_tensor *y,
                     const om_tensor *residual,
                     om_tensor *result) {
  const float scalars[2] = {params->alpha, params->beta};
  om_elementwise_job job = {.fn = om_elementwise_kernel(OM_ELEMENTWISE_Add, OM_DTYPE_F32),
                            .operands = {y, residual},
                            .operand_count = 2,
                            .result = result};
  if (residual) {
    om_elementwise_run(ctx, &job);
  } else {
    memcpy(result->data, y->data, om_tensor_elems(y) * sizeof(float));
  }
  for (size_t i = 0; i < OM_COUNT_OF(activations); ++i) {
    if (activations[i].activation != params->activation) continue;
    job.fn = om_elementwise_kernel(activations[i].number, OM_DTYPE_F32);
    job.arg = scalars;
    job.operands[0] = result;
    job.operand_count = 1;
    om_elementwise_run(ctx, &job);
  }
}

void om_epilogue_describe(const om_epilogue_params *params,
                          bool has_bias,
                          const om_tensor *residual,
                          om_fast_epilogue *out_epilogue) {
  *out_epilogue = (om_fast_epilogue){.scale = 1.0f,
                                     .has_bias = has_bias,
                                     .has_residual = residual != NULL,
                                     .activation = params->activation,
                                     .alpha = params->alpha,
                                     .beta = params->beta};
}
