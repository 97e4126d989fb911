/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear (docs/exact.md, "Quantization").
 *
 * A scale holds for the whole tensor, for an index along an axis, or for a block along one. Scales
 * and zero points are widened into scratch: [scales] [zero points], 4 bytes each.
 */
#include <inttypes.h>

#include "cpu/exact/om_real.h"
#include "ops/op_quantize.h"

#define OM_DT_QUANTIZED                                                              \
  (OM_DT_BYTE_INT | OM_DT(OM_DTYPE_I16) | OM_DT(OM_DTYPE_U16) | OM_DT(OM_DTYPE_I4) | \
   OM_DT(OM_DTYPE_U4) | OM_DT(OM_DTYPE_F4E2M1) | OM_DT_FLOAT8)

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_quantize_params *p = params;
  int64_t saturate = 1;
  int64_t precision = 0;
  OM_TRY(om_node_attr_int(ctx, node, "axis", 1, &p->axis));
  OM_TRY(om_node_attr_int(ctx, node, "block_size", 0, &p->block_size));
  OM_TRY(om_node_attr_int(ctx, node, "output_dtype", 0, &p->out_dtype));
  OM_TRY(om_node_attr_int(ctx, node, "saturate", 1, &saturate));
  OM_TRY(om_node_attr_int(ctx, node, "precision", 0, &precision));
  p->saturates = saturate != 0;
  if (p->block_size < 0 || p->out_dtype < 0 || p->out_dtype >= OM_DTYPE_COUNT) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "block_size is %" PRId64 " and output_dtype %" PRId64 ".",
                   p->block_size,
                   p->out_dtype);
  }
  if (precision != 0 && precision != OM_DTYPE_F32) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "A division in the precision %" PRId64 " is not implemented; float32 is 1.",
                   precision);
  }
  return OM_OK;
}

/* ---- Places ---- */

static om_status fail_scale(om_ctx *ctx, const om_tensor *x, const om_tensor *scale) {
  char have[OM_SHAPE_TEXT];
  char want[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "A scale of shape %s does not go with an input of shape %s.",
                 om_shape_text(have, sizeof have, scale->rank, scale->dims),
                 om_shape_text(want, sizeof want, x->rank, x->dims));
}

om_status om_quantize_find_place(om_ctx *ctx,
                                 const om_quantize_params *p,
                                 const om_tensor *x,
                                 const om_tensor *scale,
                                 om_quantize_place *out) {
  uint32_t axis = 0;
  *out = (om_quantize_place){.extent = 1, .inner_extent = 1, .block = 1};
  if (p->block_size == 0 && scale->rank <= 1 && om_tensor_elems(scale) == 1) return OM_OK;
  OM_TRY(om_rule_axis(ctx, p->axis, x->rank, &axis));
  out->extent = (size_t)x->dims[axis];
  out->inner_extent = om_rule_product(x->dims, axis + 1, x->rank);
  if (out->extent == 0) out->extent = 1;
  if (out->inner_extent == 0) out->inner_extent = 1;
  if (p->block_size == 0) {
    out->axis_step = 1;
    if (scale->rank != 1 || scale->dims[0] != x->dims[axis]) return fail_scale(ctx, x, scale);
    return OM_OK;
  }
  const int64_t blocks =
      x->dims[axis] / p->block_size + (x->dims[axis] % p->block_size != 0 ? 1 : 0);
  bool fits = scale->rank == x->rank;
  for (uint32_t d = 0; fits && d < x->rank; ++d) {
    fits = scale->dims[d] == (d == axis ? blocks : x->dims[d]);
  }
  if (!fits) return fail_scale(ctx, x, scale);
  out->block = (size_t)p->block_size;
  out->inner_step = 1;
  out->axis_step = out->inner_extent;
  out->outer_step = out->inner_extent * (size_t)blocks;
  return OM_OK;
}

static om_status find_place(om_ctx *ctx, const om_op_call *call, om_quantize_place *out) {
  return om_quantize_find_place(ctx, call->params, call->inputs[0], call->inputs[1], out);
}

static om_status check_operands(om_ctx *ctx,
                                const om_op_call *call,
                                om_dtype_set scale_types,
                                om_dtype_set zero_types) {
  const om_tensor *scale = call->inputs[1];
  const om_tensor *zero = om_rule_input(call, 2);
  om_quantize_place place;
  OM_TRY(om_quantize_check_type(ctx, call, 1, scale_types));
  OM_TRY(om_quantize_check_type(ctx, call, 2, zero_types));
  OM_TRY(find_place(ctx, call, &place));
  if (!zero || om_tensor_elems(zero) == om_tensor_elems(scale)) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "The zero point has %zu elements, but the scale has %zu.",
                 om_tensor_elems(zero),
                 om_tensor_elems(scale));
}

static size_t scratch_bytes(const om_op_call *call) {
  return om_tensor_elems(call->inputs[1]) * (sizeof(float) + sizeof(int32_t));
}

/* `zero_dtype` is what the zero points become. */
static om_status prepare(om_ctx *ctx,
                         const om_op_call *call,
                         om_dtype zero_dtype,
                         om_quantize_job *out) {
  const om_quantize_params *p = call->params;
  const om_tensor *scale = call->inputs[1];
  const om_tensor *zero = om_rule_input(call, 2);
  const size_t count = om_tensor_elems(scale);
  float *scales = call->scratch;
  *out = (om_quantize_job){
      .in = call->inputs[0], .out = call->outputs[0], .scales = scales, .saturates = p->saturates};
  om_cast_elems(scale->dtype, scale->data, OM_DTYPE_F32, scales, count, true);
  if (zero) {
    out->zeros = scales + count;
    om_cast_elems(zero->dtype, zero->data, zero_dtype, scales + count, count, true);
  }
  return find_place(ctx, call, &out->place);
}

/* ---- QuantizeLinear ---- */

static om_status quantize_infer(om_ctx *ctx, const om_op_call *call) {
  const om_quantize_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *zero = om_rule_input(call, 2);
  om_dtype dtype = p->out_dtype ? (om_dtype)p->out_dtype : OM_DTYPE_U8;
  OM_TRY(check_operands(ctx, call, OM_DT_NARROW_FLOAT, OM_DT_QUANTIZED));
  if (zero && p->out_dtype && zero->dtype != dtype) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "output_dtype is %s, but the zero point is %s.",
                   om_dtype_name(dtype),
                   om_dtype_name(zero->dtype));
  }
  if (zero) dtype = zero->dtype;
  if (!(OM_DT(dtype) & OM_DT_QUANTIZED)) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "output_dtype is %s, no quantized type.", om_dtype_name(dtype));
  }
  return om_rule_set(ctx, call, 0, dtype, x->rank, x->dims);
}

static om_status quantize_run(om_ctx *ctx, const om_op_call *call) {
  om_quantize_job job;
  OM_TRY(prepare(ctx, call, OM_DTYPE_F32, &job));
  om_quantize_run(ctx, &job);
  return OM_OK;
}

/* ---- DequantizeLinear ---- */

static om_status dequantize_infer(om_ctx *ctx, const om_op_call *call) {
  const om_quantize_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_dtype dtype = p->out_dtype ? (om_dtype)p->out_dtype : call->inputs[1]->dtype;
  OM_TRY(check_operands(ctx, call, OM_DT_FLOAT, OM_DT(x->dtype)));
  if (!(OM_DT(dtype) & OM_DT_FLOAT)) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "output_dtype is %s, no float.", om_dtype_name(dtype));
  }
  return om_rule_set(ctx, call, 0, dtype, x->rank, x->dims);
}

/* Element `index`, of 4 bits or more. */
static double load(const om_tensor *tensor, size_t index) {
  double values[2] = {0.0, 0.0};
  if (om_dtype_bits(tensor->dtype) >= 8) return om_real_load(tensor, index);
  const void *byte = (const uint8_t *)tensor->data + index / 2;
  om_cast_elems(tensor->dtype, byte, OM_DTYPE_F64, values, 2, true);
  return values[index % 2];
}

/* With a scale of float64 all of it is float64: for a graph that is run in float64. */
static om_status dequantize_wide(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0], *scale = call->inputs[1], *zero = om_rule_input(call, 2);
  om_quantize_place place;
  OM_TRY(find_place(ctx, call, &place));
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    const size_t at = om_quantize_scale_index(&place, i);
    const double value = load(x, i) - (zero ? load(zero, at) : 0.0);
    om_real_store(call->outputs[0], i, value * om_real_load(scale, at));
  }
  return OM_OK;
}

static om_status dequantize_run(om_ctx *ctx, const om_op_call *call) {
  if (call->inputs[1]->dtype == OM_DTYPE_F64) return dequantize_wide(ctx, call);
  const om_dtype_set small = OM_DT_FLOAT8 | OM_DT(OM_DTYPE_F4E2M1);
  const bool is_float = (OM_DT(call->inputs[0]->dtype) & small) != 0;
  om_quantize_job job;
  OM_TRY(prepare(ctx, call, is_float ? OM_DTYPE_F32 : OM_DTYPE_I32, &job));
  om_dequantize_run(ctx, &job);
  return OM_OK;
}

/* ---- DynamicQuantizeLinear ---- */

static om_status dynamic_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  OM_TRY(om_rule_set(ctx, call, 0, OM_DTYPE_U8, x->rank, x->dims));
  OM_TRY(om_rule_set(ctx, call, 1, x->dtype, 0, NULL));
  return om_rule_set(ctx, call, 2, OM_DTYPE_U8, 0, NULL);
}

/* float64 is rounded to float32 first: a graph in float64 quantizes as the graph itself does. */
static size_t dynamic_scratch(const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  return x->dtype == OM_DTYPE_F64 ? om_tensor_elems(x) * sizeof(float) : 0;
}

static om_status dynamic_run(om_ctx *ctx, const om_op_call *call) {
  om_tensor x = *call->inputs[0];
  float scale = 1.0f;
  float zero = 0.0f;
  if (x.dtype == OM_DTYPE_F64) {
    x.dtype = OM_DTYPE_F32;
    x.data = call->scratch;
    om_cast_run(ctx, call->inputs[0], &x, true);
  }
  om_quantize_range(x.data, om_tensor_elems(&x), &scale, &zero);
  const om_quantize_job job = {.in = &x,
                               .out = call->outputs[0],
                               .place = {.extent = 1, .inner_extent = 1, .block = 1},
                               .scales = &scale,
                               .zeros = &zero};
  if (call->outputs[0]) om_quantize_run(ctx, &job);
  if (call->outputs[1]) om_real_store(call->outputs[1], 0, (double)scale);
  if (call->outputs[2]) {
    om_cast_elems(OM_DTYPE_F32, &zero, OM_DTYPE_U8, call->outputs[2]->data, 1, true);
  }
  return OM_OK;
}

/* com.microsoft has both for types that ONNX took up later. */
#define OM_QUANTIZE_ENTRIES(domain_name, first)                                             \
  {.domain = domain_name,                                                                   \
   .type = "QuantizeLinear",                                                                \
   .first_opset = first,                                                                    \
   OM_RULE_COUNTS(2, 3, 1, 1),                                                              \
   .dtypes = OM_DT_NARROW_FLOAT | OM_DT(OM_DTYPE_I32),                                      \
   .float32_inputs = 1u << 0 | 1u << 1,                                                     \
   .params_bytes = sizeof(om_quantize_params),                                              \
   .resolve = resolve,                                                                      \
   .infer = quantize_infer,                                                                 \
   .scratch_bytes = scratch_bytes,                                                          \
   .run = quantize_run},                                                                    \
  {                                                                                         \
    .domain = domain_name, .type = "DequantizeLinear", .first_opset = first,                \
    OM_RULE_COUNTS(2, 3, 1, 1), .dtypes = OM_DT_QUANTIZED | OM_DT(OM_DTYPE_I32),            \
    .is_folded_late = true, .params_bytes = sizeof(om_quantize_params), .resolve = resolve, \
    .infer = dequantize_infer, .scratch_bytes = scratch_bytes, .run = dequantize_run        \
  }

const om_op om_ops_quantize[] = {
    OM_QUANTIZE_ENTRIES("", 10),
    OM_QUANTIZE_ENTRIES("com.microsoft", 1),
    {.domain = "",
     .type = "DynamicQuantizeLinear",
     .first_opset = 11,
     OM_RULE_COUNTS(1, 1, 3, 3),
     .dtypes = OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F64),
     .infer = dynamic_infer,
     .scratch_bytes = dynamic_scratch,
     .run = dynamic_run},
    {.type = NULL},
};
