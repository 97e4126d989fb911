/* Elementwise operators: an entry for each line of ops/elementwise.def. Floats (32 and 16) become
 * chains; integers have a kernel of their own, where they have one. */
#include "gpu/om_gpu_broadcast.h"
#include "gpu/om_gpu_selftest.h"
#include "gpu/om_gpu_state.h"
#include "ops/op_elementwise.h"

/* What an operation rests on in exact mode shows in its text. */
static uint32_t primitives_of(const char *expression) {
  static const struct {
    const char *word;
    uint32_t primitives;
  } words[] = {
      {"om_div", OM_PRIMITIVE_DIVIDE},
      {"om_quotient", OM_PRIMITIVE_DIVIDE},
      {"om_sqrt", OM_PRIMITIVE_SQRT},
      {"om_floor", OM_PRIMITIVE_ROUND},
      {"om_ceil", OM_PRIMITIVE_ROUND},
      {"om_round", OM_PRIMITIVE_ROUND},
      {"om_sign", OM_PRIMITIVE_ROUND},
      {"om_exp", OM_PRIMITIVE_FUNCTIONS},
      {"om_ln", OM_PRIMITIVE_FUNCTIONS},
      {"om_tanh", OM_PRIMITIVE_FUNCTIONS},
      {"om_erf", OM_PRIMITIVE_FUNCTIONS},
      {"om_sigmoid", OM_PRIMITIVE_FUNCTIONS},
      {"om_sin", OM_PRIMITIVE_FUNCTIONS},
      {"om_cos", OM_PRIMITIVE_FUNCTIONS},
      {"om_pow", OM_PRIMITIVE_FUNCTIONS},
      {"om_softplus", OM_PRIMITIVE_FUNCTIONS},
  };
  uint32_t primitives = OM_PRIMITIVE_ARITHMETIC;
  for (size_t i = 0; i < OM_COUNT_OF(words); ++i) {
    if (strstr(expression, words[i].word)) primitives |= words[i].primitives;
  }
  return primitives;
}

/* Reads Clip's bound where it is a known input; the default stays where it is absent. */
static void read_bound(const om_gpu_binder *b, uint32_t input, float *inout_bound) {
  const om_tensor *tensor = om_gpu_input(b, input);
  if (tensor && tensor->data) *inout_bound = om_gpu_real_at(tensor->dtype, tensor->data, 0);
}

static bool is_made(const om_gpu_binder *b, uint32_t input) {
  const om_tensor *tensor = om_gpu_input(b, input);
  return tensor && !tensor->data;
}

/* Clip whose bounds a run makes: the larger of x and the lower one, then the smaller. */
static const char *bind_made_bounds(om_gpu_binder *b, const float bounds[2]) {
  static const uint8_t ops[] = {OM_CHAIN_Max, OM_CHAIN_Min};
  om_gpu_operand operands[2] = {{.kind = OM_GPU_NOTHING}};
  for (uint32_t i = 0; i < 2; ++i) {
    if (is_made(b, i + 1)) operands[i] = om_gpu_read(b, i + 1);
  }
  om_gpu_dispatch *d = om_gpu_add_elementwise(b, 0);
  if (!d) return om_gpu_no_memory;
  d->chain.inner = (uint32_t)om_tensor_elems(om_gpu_output(b, 0)); /* of a single channel */
  for (uint32_t i = 0; i < 2; ++i) {
    const bool has_operand = operands[i].kind != OM_GPU_NOTHING;
    const om_chain_item item = {.op = ops[i],
                                .source = has_operand ? OM_CHAIN_VECTOR : OM_CHAIN_SCALAR};
    const om_gpu_operand *operand = has_operand ? &operands[i] : NULL;
    if (!om_gpu_chain_add(&d->chain, item, operand, &bounds[i], has_operand ? 0 : 1)) {
      return om_gpu_no_memory;
    }
  }
  return NULL;
}

/* Every entry's bind; `expression` is the line's text. */
static const char *bind(om_gpu_binder *b, bool is_binary, const char *expression) {
  const om_node *node = om_gpu_binder_node(b);
  const om_elementwise_params *params = node->params;
  float scalars[2] = {params->scalars[0], params->scalars[1]};
  const char *reason = NULL;
  if (params->aligns_by_axis) return "it broadcasts by attributes, as before opset 7";
  if ((OM_DT(om_gpu_input(b, 0)->dtype) & OM_DT_REAL) == 0) {
    return params->number == OM_CHAIN_Clip ? om_gpu_bind_integer_clip(b)
                                           : om_gpu_bind_integer(b, params->number);
  }
  if (om_gpu_binder_mode(b) == OM_MODE_EXACT) {
    uint32_t failed = b->plan->session->failed_primitives;
    reason = om_gpu_primitive_reason(primitives_of(expression) & failed);
  }
  if (is_binary && node->input_count != 2) return "it does not have two inputs";
  if (reason) return reason;
  if (params->bounds_are_inputs) {
    read_bound(b, 1, &scalars[0]);
    read_bound(b, 2, &scalars[1]);
    if (is_made(b, 1) || is_made(b, 2)) return bind_made_bounds(b, scalars);
  }
  uint32_t other = is_binary ? 1 : UINT32_MAX;
  return om_gpu_bind_elementwise(b, params->number, 0, other, scalars, params->scalar_count);
}

#define OM_UNARY(number, type, name, opset, scalar_count, expression) \
  static const char *bind_##name(om_gpu_binder *b) {                  \
    return bind(b, false, #expression);                               \
  }
#define OM_BINARY(number, type, name, opset, expression) \
  static const char *bind_##name(om_gpu_binder *b) {     \
    return bind(b, true, #expression);                   \
  }
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY

/* Lines with opset 0 are forms of operators above them: they end the table. */
#define INTEGERS(number) \
  (OM_GPU_HAS_INTEGERS(number) ? OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64) : 0)
#define ENTRY(number, op_type, name, opset)    \
  {                                            \
      .domain = "",                            \
      .type = (opset) > 0 ? #op_type : NULL,   \
      .dtypes = OM_DT_REAL | INTEGERS(number), \
      .has_exact = true,                       \
      .primitives = OM_PRIMITIVE_ARITHMETIC,   \
      .bind = bind_##name,                     \
  },

const om_gpu_op om_gpu_ops_elementwise[] = {
#define OM_UNARY(number, type, name, opset, scalar_count, expression) \
  ENTRY(number, type, name, opset)
#define OM_BINARY(number, type, name, opset, expression) ENTRY(number, type, name, opset)
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY
    {.type = NULL},
};
