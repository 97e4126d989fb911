/* The operators of elementwise.def: an entry for each line. What an operator has beside its
 * expression stands in the tables below: the attributes that are its scalars, whether it takes
 * integers, any number of inputs, or an input more. */
#include "ops/op_elementwise.h"

#include <float.h>
#include <math.h>

#include "cpu/exact/om_mixed.h"
#include "ops/om_rule.h"
#include "ops/op_types.h"

/* ---- Attributes ---- */

typedef struct om_scalar_attrs {
  uint8_t number;
  const char *names[2];
  float fallbacks[2];
} om_scalar_attrs;

static const om_scalar_attrs scalar_attrs[] = {
    {OM_ELEMENTWISE_Clip, {"min", "max"}, {-FLT_MAX, FLT_MAX}},
    {OM_ELEMENTWISE_HardSigmoid, {"alpha", "beta"}, {0.2f, 0.5f}},
    {OM_ELEMENTWISE_LeakyRelu, {"alpha", NULL}, {0.01f, 0.0f}},
    {OM_ELEMENTWISE_Elu, {"alpha", NULL}, {1.0f, 0.0f}},
    {OM_ELEMENTWISE_Selu, {"alpha", "gamma"}, {1.67326319f, 1.05070102f}},
    {OM_ELEMENTWISE_Celu, {"alpha", NULL}, {1.0f, 0.0f}},
    {OM_ELEMENTWISE_ThresholdedRelu, {"alpha", NULL}, {1.0f, 0.0f}},
    {OM_ELEMENTWISE_Swish, {"alpha", NULL}, {1.0f, 0.0f}},
    {OM_ELEMENTWISE_Shrink, {"lambd", "bias"}, {0.5f, 0.0f}},
};

static om_status resolve_number(om_ctx *ctx,
                                const om_node *node,
                                uint8_t number,
                                om_elementwise_params *params) {
  params->number = number;
  params->scalar_count = (uint8_t)om_elementwise_scalar_count(number);
  if (number >= OM_ELEMENTWISE_Add && number != OM_ELEMENTWISE_Min &&
      number != OM_ELEMENTWISE_Max && node->opset < 7) {
    params->aligns_by_axis = true;
    return om_node_attr_int(
        ctx, node, "axis", number == OM_ELEMENTWISE_PRelu ? 1 : -1, &params->axis);
  }
  if (number == OM_ELEMENTWISE_Clip && node->opset >= 11) {
    params->bounds_are_inputs = true;
    params->scalars[0] = -INFINITY;
    params->scalars[1] = INFINITY;
    return OM_OK;
  }
  if (number == OM_ELEMENTWISE_Gelu) {
    om_string form;
    OM_TRY(om_node_attr_text(ctx, node, "approximate", "none", &form));
    if (om_string_is(form, "tanh")) {
      params->number = OM_ELEMENTWISE_GeluTanh;
    } else if (!om_string_is(form, "none")) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "The attribute 'approximate' is '%.*s', but it must be 'none' or 'tanh'.",
                     (int)(form.bytes < 40 ? form.bytes : 40),
                     form.data);
    }
  }
  for (size_t i = 0; i < OM_COUNT_OF(scalar_attrs); ++i) {
    const om_scalar_attrs *a = &scalar_attrs[i];
    if (a->number != number) continue;
    for (uint32_t k = 0; k < params->scalar_count; ++k) {
      OM_TRY(om_node_attr_float(ctx, node, a->names[k], a->fallbacks[k], &params->scalars[k]));
    }
  }
  return OM_OK;
}

#define OM_UNARY(number, type, name, opset, scalar_count, expression)               \
  static om_status resolve_##name(om_ctx *ctx, const om_node *node, void *params) { \
    return resolve_number(ctx, node, number, params);                               \
  }
#define OM_BINARY(number, type, name, opset, expression) \
  OM_UNARY(number, type, name, opset, 0, expression)
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY

/* ---- Shape rule ---- */

/* Input 1 with the dimensions that broadcasting by attributes gives it: input 0's rank. */
static om_status align_by_axis(om_ctx *ctx, const om_op_call *call, om_tensor *out_aligned) {
  const om_elementwise_params *params = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *y = call->inputs[1];
  size_t elems = 0;
  int64_t first = params->axis < 0 ? (int64_t)x->rank - (int64_t)y->rank : params->axis;
  if (om_shape_elems(y->rank, y->dims, &elems) && elems == 1 && y->rank <= 1) first = 0;
  *out_aligned = *y;
  out_aligned->rank = x->rank;
  for (uint32_t d = 0; d < x->rank; ++d) out_aligned->dims[d] = 1;
  bool fits = first >= 0 && (uint64_t)first + y->rank <= (uint64_t)x->rank;
  if (x->rank == 0 && elems == 1) return OM_OK;
  for (uint32_t d = 0; fits && d < y->rank; ++d) {
    int64_t extent = x->dims[first + d];
    out_aligned->dims[first + d] = y->dims[d];
    fits = y->dims[d] == extent || y->dims[d] == 1;
  }
  if (fits) return OM_OK;
  char text_x[OM_SHAPE_TEXT];
  char text_y[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "The shapes %s and %s do not broadcast from axis %lld on.",
                 om_shape_text(text_x, sizeof text_x, x->rank, x->dims),
                 om_shape_text(text_y, sizeof text_y, y->rank, y->dims),
                 (long long)first);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_elementwise_params *params = call->params;
  om_tensor *out = call->outputs[0];
  if (params->aligns_by_axis) {
    om_tensor aligned;
    OM_TRY(om_check_same_dtype(ctx, call));
    OM_TRY(align_by_axis(ctx, call, &aligned));
    om_copy_type_and_shape(call->inputs[0], out);
    return OM_OK;
  }
  if (params->bounds_are_inputs) {
    OM_TRY(om_check_same_dtype(ctx, call));
    for (uint32_t i = 1; i < call->input_count; ++i) {
      const om_tensor *bound = call->inputs[i];
      size_t elems = 0;
      if (!bound) continue;
      if (!om_shape_elems(bound->rank, bound->dims, &elems) || elems != 1) {
        return OM_FAIL(ctx, OM_E_INVALID_INPUT, "Input %u must have one element.", i);
      }
    }
    om_copy_type_and_shape(call->inputs[0], out);
    return OM_OK;
  }
  OM_TRY(om_check_all_there(ctx, call));
  if (params->number == OM_ELEMENTWISE_Clip && (OM_DT(call->inputs[0]->dtype) & OM_DT_INT) != 0) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Clip of integers begins with opset 11.");
  }
  if (params->number != OM_ELEMENTWISE_Pow) OM_TRY(om_check_same_dtype(ctx, call));
  return om_infer_broadcast(ctx, call, call->inputs[0]->dtype);
}

/* ---- CPU ---- */

typedef union om_scalars { /* of the kernel's type, two of them */
  float f32[2];
  double f64[2];
  uint8_t bytes[16];
} om_scalars;

/* The bounds of an integer Clip: the type's own limits where an input is absent. */
static void integer_limits(om_dtype dtype, om_scalars *out) {
  size_t bytes = om_dtype_bits(dtype) / 8;
  bool is_signed = (OM_DT(dtype) & OM_DT_SIGNED) != 0;
  uint64_t low = is_signed ? (uint64_t)1 << (bytes * 8 - 1) : 0;
  uint64_t high = is_signed ? low - 1 : UINT64_MAX;
  /* Little-endian, as the tensors are. */
  memcpy(out->bytes, &low, bytes);
  memcpy(out->bytes + bytes, &high, bytes);
}

static void load_bounds(const om_op_call *call, om_dtype dtype, om_scalars *out) {
  size_t bytes = om_dtype_bits(dtype) / 8;
  if (OM_DT(dtype) & OM_DT_INT) integer_limits(dtype, out);
  for (uint32_t i = 1; i < call->input_count && i <= 2; ++i) {
    const om_tensor *bound = call->inputs[i];
    if (!bound) continue;
    if (dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16) {
      om_half_to_f32(dtype, bound->data, 1, &out->f32[i - 1]);
    } else {
      memcpy(out->bytes + (i - 1) * bytes, bound->data, bytes);
    }
  }
}

static om_dtype kernel_dtype(om_dtype dtype) {
  return dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16 ? OM_DTYPE_F32 : dtype;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_elementwise_params *params = call->params;
  om_dtype dtype = call->inputs[0]->dtype;
  om_scalars scalars = {{params->scalars[0], params->scalars[1]}};
  if (dtype == OM_DTYPE_F64) {
    scalars.f64[0] = (double)params->scalars[0];
    scalars.f64[1] = (double)params->scalars[1];
  }
  if (params->bounds_are_inputs) load_bounds(call, dtype, &scalars);
  bool is_division = params->number == OM_ELEMENTWISE_Div && (OM_DT(dtype) & OM_DT_INT) != 0;
  if (is_division) OM_TRY(om_check_divisor(ctx, call->inputs[1], call->outputs[0]));
  bool is_unary = params->bounds_are_inputs || call->input_count == 1;
  const om_tensor *second = is_unary ? NULL : call->inputs[1];
  om_tensor aligned;
  if (params->aligns_by_axis) {
    OM_TRY(align_by_axis(ctx, call, &aligned));
    second = &aligned;
  }
  om_elementwise_job job = {.fn = om_elementwise_kernel(params->number, dtype),
                            .arg = &scalars,
                            .operands = {call->inputs[0], second},
                            .operand_count = is_unary ? 1 : 2,
                            .result = call->outputs[0]};
  bool is_one_of_many = is_unary && params->number >= OM_ELEMENTWISE_Add;
  if (is_one_of_many) job.fn = om_copy_kernel(dtype);
  om_pow_types types;
  if (params->number == OM_ELEMENTWISE_Pow &&
      (call->inputs[1]->dtype != dtype || (OM_DT(dtype) & OM_DT_INT) != 0)) {
    types = (om_pow_types){kernel_dtype(dtype), kernel_dtype(call->inputs[1]->dtype)};
    job.fn = om_mixed_pow;
    job.arg = &types;
  }
  om_elementwise_run(ctx, &job);
  job.operands[0] = call->outputs[0];
  for (uint32_t i = 2; i < call->input_count && !params->bounds_are_inputs; ++i) {
    job.operands[1] = call->inputs[i];
    om_elementwise_run(ctx, &job);
  }
  return OM_OK;
}

static bool is_by_rows(const om_op_call *call, uint32_t input, size_t rows) {
  const om_elementwise_params *params = call->params;
  const om_tensor *y = call->outputs[0];
  if (params->aligns_by_axis || !om_rule_has_whole_rows(y, rows)) return false;
  for (uint32_t i = 0; i < call->input_count; ++i) {
    if (i != input && !om_rule_is_row(call->inputs[i], y)) return false;
  }
  return om_tensor_elems(call->inputs[input]) == om_tensor_elems(y);
}

/* ---- Entries ---- */

#define OM_IS_VARIADIC(number) ((number) == OM_ELEMENTWISE_Min || (number) == OM_ELEMENTWISE_Max)
#define OM_TAKES_INT(number)                                               \
  (((number) >= OM_ELEMENTWISE_Add && (number) <= OM_ELEMENTWISE_Max) ||   \
   (number) == OM_ELEMENTWISE_Relu || (number) == OM_ELEMENTWISE_Clip ||   \
   (number) == OM_ELEMENTWISE_Neg || (number) == OM_ELEMENTWISE_Abs ||     \
   (number) == OM_ELEMENTWISE_Sign || (number) == OM_ELEMENTWISE_Shrink || \
   (number) == OM_ELEMENTWISE_Erf || (number) == OM_ELEMENTWISE_PRelu)

#define OM_ENTRY(number, name_text, function, opset, least, most) \
  {.domain = "",                                                  \
   .type = (opset) == 0 ? NULL : (name_text),                     \
   .first_opset = (opset),                                        \
   .min_inputs = (least),                                         \
   .max_inputs = (most),                                          \
   .min_outputs = 1,                                              \
   .max_outputs = 1,                                              \
   .dtypes = OM_TAKES_INT(number) ? OM_DT_NUMBER : OM_DT_FLOAT,   \
   .params_bytes = sizeof(om_elementwise_params),                 \
   .resolve = (function),                                         \
   .infer = infer,                                                \
   .run = run,                                                    \
   .is_by_rows = is_by_rows},
#define OM_UNARY(number, type, name, opset, scalar_count, expression) \
  OM_ENTRY(number, #type, resolve_##name, opset, 1, (number) == OM_ELEMENTWISE_Clip ? 3 : 1)
#define OM_BINARY(number, type, name, opset, expression) \
  OM_ENTRY(number,                                       \
           #type,                                        \
           resolve_##name,                               \
           opset,                                        \
           OM_IS_VARIADIC(number) ? 1 : 2,               \
           OM_IS_VARIADIC(number) ? UINT8_MAX : 2)
/* Before opset 7 operands are aligned by attributes. */
#define OM_OLD_ENTRY(name_text, function)         \
  {.domain = "",                                  \
   .type = (name_text),                           \
   .first_opset = 1,                              \
   .last_opset = 6,                               \
   .min_inputs = 2,                               \
   .max_inputs = 2,                               \
   .min_outputs = 1,                              \
   .max_outputs = 1,                              \
   .dtypes = OM_DT_NUMBER,                        \
   .params_bytes = sizeof(om_elementwise_params), \
   .resolve = (function),                         \
   .infer = infer,                                \
   .run = run},

const om_op om_ops_elementwise[] = {
    OM_OLD_ENTRY("Add", resolve_add) OM_OLD_ENTRY("Sub", resolve_sub)
        OM_OLD_ENTRY("Mul", resolve_mul) OM_OLD_ENTRY("Div", resolve_div)
            OM_OLD_ENTRY("Pow", resolve_pow) OM_OLD_ENTRY("PRelu", resolve_prelu)
#include "ops/elementwise.def"
                {.type = NULL},
};
