/* ConvInteger and QLinearConv: convolutions of the bytes as they are, with their zero points beside
 * them. Padding counts as the zero point.
 *
 * QuantizedConv is QLinearConv with a list of the bias's scales at its end, and the bits of a Conv
 * between DequantizeLinear and QuantizeLinear: exact mode's form of those (om_rewrite_quantized.c).
 *
 *     scratch: [lists] [the convolution's own]
 *     lists:   of a value for each channel, 4 bytes an element
 */
#include "cpu/exact/om_cast.h"
#include "cpu/exact/om_conv_bytes.h"
#include "cpu/exact/om_exact_math.h"
#include "ops/op_quantize.h"

enum { NONE = OM_QUANTIZE_NONE };

static om_status resolve_integer(om_ctx *ctx, const om_node *node, void *params) {
  om_qconv_params *p = params;
  *p = (om_qconv_params){.roles = {.b = 1,
                                   .a_zero = 2,
                                   .b_zero = 3,
                                   .a_scale = NONE,
                                   .b_scale = NONE,
                                   .y_scale = NONE,
                                   .y_zero = NONE,
                                   .bias = NONE}};
  return om_conv_resolve(ctx, node, &p->conv);
}

enum { W_ZEROS, FACTORS, W_SCALES, BIAS_SCALES, LISTS }; /* in scratch */

static om_status resolve_linear(om_ctx *ctx, const om_node *node, void *params) {
  om_qconv_params *p = params;
  *p = (om_qconv_params){.roles = {.a_scale = 1,
                                   .a_zero = 2,
                                   .b = 3,
                                   .b_scale = 4,
                                   .b_zero = 5,
                                   .y_scale = 6,
                                   .y_zero = 7,
                                   .bias = 8}};
  return om_conv_resolve(ctx, node, &p->conv);
}

static om_status resolve_floats(om_ctx *ctx, const om_node *node, void *params) {
  om_qconv_params *p = params;
  OM_TRY(resolve_linear(ctx, node, params));
  p->bias_scale = 9;
  return OM_OK;
}

/* x and w as a Conv of one type. */
static om_status fit(om_ctx *ctx, const om_op_call *call, om_conv_shape *out_shape) {
  const om_qconv_params *p = call->params;
  om_tensor w = *call->inputs[p->roles.b];
  w.dtype = call->inputs[0]->dtype;
  OM_TRY(om_conv_check(ctx, &p->conv, call->inputs[0], &w));
  if (om_conv_fit(&p->conv, call->inputs[0], &w, out_shape)) return OM_OK;
  return om_window_fail(ctx, &out_shape->window);
}

static om_status check_scales(om_ctx *ctx, const om_op_call *call, int64_t channels) {
  const om_qconv_params *p = call->params;
  const om_dtype_set scales = OM_DT(OM_DTYPE_F32);
  const om_tensor *bias = om_quantize_operand(call, p->roles.bias);
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.a_scale, scales));
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.b_scale, scales));
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.y_scale, scales));
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.y_zero, OM_DT_BYTE_INT));
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.bias, OM_DT(OM_DTYPE_I32)));
  OM_TRY(om_quantize_check_single(ctx, call, p->roles.a_scale));
  OM_TRY(om_quantize_check_single(ctx, call, p->roles.y_scale));
  OM_TRY(om_quantize_check_single(ctx, call, p->roles.y_zero));
  OM_TRY(om_quantize_check_list(ctx, call, p->roles.b_scale, channels));
  if (p->bias_scale != 0) {
    OM_TRY(om_quantize_check_type(ctx, call, p->bias_scale, scales));
    OM_TRY(om_quantize_check_list(ctx, call, p->bias_scale, channels));
    if (bias && !om_rule_input(call, p->bias_scale)) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The bias has no scale.");
    }
  }
  if (bias && (bias->rank != 1 || bias->dims[0] != channels)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The bias has %zu elements, but there are %lld channels.",
                   om_tensor_elems(bias),
                   (long long)channels);
  }
  return OM_OK;
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_qconv_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  om_tensor *y = call->outputs[0];
  om_conv_shape shape;
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.b, OM_DT_BYTE_INT));
  OM_TRY(fit(ctx, call, &shape));
  OM_TRY(om_quantize_check_type(ctx, call, p->roles.a_zero, OM_DT(x->dtype)));
  OM_TRY(
      om_quantize_check_type(ctx, call, p->roles.b_zero, OM_DT(call->inputs[p->roles.b]->dtype)));
  OM_TRY(om_quantize_check_single(ctx, call, p->roles.a_zero));
  OM_TRY(om_quantize_check_list(ctx, call, p->roles.b_zero, shape.out_channels));
  if (p->roles.y_scale != NONE) OM_TRY(check_scales(ctx, call, shape.out_channels));
  if (!y) return OM_OK;
  om_window_shape(&shape.window, shape.out_channels, x, y);
  y->dtype = p->roles.y_zero == NONE ? OM_DTYPE_I32 : call->inputs[p->roles.y_zero]->dtype;
  return OM_OK;
}

static om_conv_shape shape_of(const om_op_call *call) {
  const om_qconv_params *p = call->params;
  om_conv_shape shape = {.group = 0};
  (void)om_conv_fit(
      &p->conv, call->inputs[0], call->inputs[p->roles.b], &shape); /* infer saw to it */
  return shape;
}

static om_conv_pass pass_of(const om_op_call *call) {
  const om_conv_shape shape = shape_of(call);
  return om_conv_forward_pass(&shape);
}

/* Of a list in scratch. */
static size_t list_bytes(const om_op_call *call) {
  return om_size_align(
      (size_t)call->inputs[((const om_qconv_params *)call->params)->roles.b]->dims[0] * 4, 64);
}

static bool has_floats(const om_op_call *call) {
  return ((const om_qconv_params *)call->params)->bias_scale != 0;
}

static size_t scratch_bytes(const om_op_call *call) {
  size_t bytes = SIZE_MAX;
  if (!call->outputs[0]) return 0;
  const om_conv_pass pass = pass_of(call);
  const size_t own = om_conv_bytes_scratch(&pass, has_floats(call));
  return om_size_add(own, LISTS * list_bytes(call), &bytes) ? bytes : SIZE_MAX;
}

static void *list_at(const om_op_call *call, size_t list) {
  return (uint8_t *)call->scratch + list * list_bytes(call);
}

/* The zero points of `count` channels: none, one or a list. */
static void load_zeros(const om_tensor *given, size_t count, int32_t *target) {
  const size_t given_count = given ? om_tensor_elems(given) : 0;
  if (given) om_cast_elems(given->dtype, given->data, OM_DTYPE_I32, target, given_count, true);
  for (size_t i = given_count; i < count; ++i) target[i] = given ? target[0] : 0;
}

/* The scales of `count` channels: one or a list. */
static void load_scales(const om_tensor *given, size_t count, float *target) {
  const float *scales = given->data;
  const bool is_list = om_tensor_elems(given) > 1;
  for (size_t i = 0; i < count; ++i) target[i] = scales[is_list ? i : 0];
}

/* What the sums of `count` channels are multiplied by. */
static void load_factors(const om_conv_floats *f, size_t count, float *factors) {
  for (size_t i = 0; i < count; ++i) factors[i] = om_div(f->x_scale * f->w_scales[i], f->y_scale);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_qconv_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *w = call->inputs[p->roles.b];
  const om_tensor *bias = om_quantize_operand(call, p->roles.bias);
  const om_tensor *y = call->outputs[0];
  if (!y || om_tensor_elems(y) == 0) return OM_OK;
  const om_conv_pass pass = pass_of(call);
  const size_t channels = (size_t)w->dims[0];
  int32_t *w_zeros = list_at(call, W_ZEROS);
  om_conv_floats floats = {.x_scale = 0.0f};
  om_conv_bytes conv = {
      .pass = &pass,
      .x = x->data,
      .w = w->data,
      .is_x_signed = x->dtype == OM_DTYPE_I8,
      .is_w_signed = w->dtype == OM_DTYPE_I8,
      .x_zero = (int32_t)om_quantize_single(om_quantize_operand(call, p->roles.a_zero), 0.0f),
      .w_zeros = w_zeros,
      .bias = bias ? bias->data : NULL};
  load_zeros(om_quantize_operand(call, p->roles.b_zero), channels, w_zeros);
  if (p->roles.y_scale == NONE) {
    conv.sums = y->data;
  } else {
    floats.x_scale = om_quantize_single(call->inputs[p->roles.a_scale], 1.0f);
    floats.y_scale = om_quantize_single(call->inputs[p->roles.y_scale], 1.0f);
    floats.w_scales = list_at(call, W_SCALES);
    floats.bias_scales = list_at(call, BIAS_SCALES);
    conv.floats = has_floats(call) ? &floats : NULL;
    load_scales(call->inputs[p->roles.b_scale], channels, list_at(call, W_SCALES));
    if (bias && has_floats(call)) {
      load_scales(call->inputs[p->bias_scale], channels, list_at(call, BIAS_SCALES));
    }
    load_factors(&floats, channels, list_at(call, FACTORS));
    conv.y = y->data;
    conv.factors = list_at(call, FACTORS);
    conv.y_zero = (int32_t)om_quantize_single(om_quantize_operand(call, p->roles.y_zero), 0.0f);
    conv.is_y_signed = y->dtype == OM_DTYPE_I8;
  }
  om_conv_bytes_run(ctx, &conv, list_at(call, LISTS));
  return OM_OK;
}

#define OM_QCONV_ENTRY(domain_name, name, first, least, most, resolve_fn) \
  {.domain = domain_name,                                                 \
   .type = name,                                                          \
   .first_opset = first,                                                  \
   OM_RULE_COUNTS(least, most, 1, 1),                                     \
   .dtypes = OM_DT_BYTE_INT,                                              \
   .params_bytes = sizeof(om_qconv_params),                               \
   .resolve = resolve_fn,                                                 \
   .infer = infer,                                                        \
   .scratch_bytes = scratch_bytes,                                        \
   .run = run}

const om_op om_ops_quantized_conv[] = {
    OM_QCONV_ENTRY("", "ConvInteger", 10, 2, 4, resolve_integer),
    OM_QCONV_ENTRY("", "QLinearConv", 10, 8, 9, resolve_linear),
    OM_QCONV_ENTRY("onemodel", "QuantizedConv", 1, 8, 10, resolve_floats),
    {.type = NULL},
};
