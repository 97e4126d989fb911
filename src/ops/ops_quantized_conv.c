/* ConvInteger and QLinearConv: a Conv of int32 operands without their zero points. Padding lies
 * around the shifted input: it counts as the zero point.
 *
 *     scratch: [x] [w] [sums] [w's scales] [the convolution's own], 4 bytes an element
 */
#include "cpu/exact/om_cast.h"
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

typedef struct om_qconv_places { /* in elements of 4 bytes */
  size_t x, w, sums, scales, rest;
} om_qconv_places;

static om_qconv_places places_of(const om_op_call *call, const om_conv_shape *shape) {
  const om_qconv_params *p = call->params;
  om_qconv_places at = {.x = 0};
  at.w = om_size_align(om_tensor_elems(call->inputs[0]), 16);
  at.sums = at.w + om_size_align(om_tensor_elems(call->inputs[p->roles.b]), 16);
  at.scales = at.sums + om_size_align(om_tensor_elems(call->outputs[0]), 16);
  at.rest = at.scales + om_size_align((size_t)shape->out_channels, 16);
  return at;
}

static om_conv_shape shape_of(const om_op_call *call) {
  const om_qconv_params *p = call->params;
  om_conv_shape shape = {.group = 0};
  (void)om_conv_fit(
      &p->conv, call->inputs[0], call->inputs[p->roles.b], &shape); /* infer saw to it */
  return shape;
}

static size_t scratch_bytes(const om_op_call *call) {
  if (!call->outputs[0]) return 0;
  const om_conv_shape shape = shape_of(call);
  const om_conv_pass pass = om_conv_forward_pass(&shape);
  return places_of(call, &shape).rest * sizeof(int32_t) +
         om_conv_scratch_bytes(&pass, sizeof(int32_t));
}

/* Not inlined: its caller's frame is full of shapes. */
__attribute__((noinline)) static void requantize(om_ctx *ctx,
                                                 const om_op_call *call,
                                                 const om_tensor *sums,
                                                 float *scales) {
  const om_qconv_params *p = call->params;
  const om_tensor *w_scale = call->inputs[p->roles.b_scale];
  const float x_scale = om_quantize_single(call->inputs[p->roles.a_scale], 1.0f);
  om_cast_elems(
      w_scale->dtype, w_scale->data, OM_DTYPE_F32, scales, om_tensor_elems(w_scale), true);
  const om_requantize_job job = {
      .sums = sums,
      .a_scale = &x_scale,
      .b_scale = scales,
      .a_shape = {.dtype = OM_DTYPE_F32},
      .b_shape = om_quantize_along(w_scale, sums->rank, 1),
      .is_quantized = true,
      .scale = om_quantize_single(call->inputs[p->roles.y_scale], 1.0f),
      .zero = om_quantize_single(om_quantize_operand(call, p->roles.y_zero), 0.0f),
      .out = call->outputs[0],
  };
  om_requantize_run(ctx, &job);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_qconv_params *p = call->params;
  const om_tensor *w = call->inputs[p->roles.b];
  const om_tensor *w_zero = om_quantize_operand(call, p->roles.b_zero);
  const om_tensor *bias = om_quantize_operand(call, p->roles.bias);
  if (!call->outputs[0] || om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  const om_conv_shape shape = shape_of(call);
  const om_conv_pass pass = om_conv_forward_pass(&shape);
  const om_qconv_places at = places_of(call, &shape);
  float *scratch = call->scratch;
  om_tensor sums = *call->outputs[0];
  om_tensor zero = {.rank = 0};
  if (p->roles.y_scale != NONE) sums.data = scratch + at.sums;
  sums.dtype = OM_DTYPE_I32;
  if (w_zero) zero = om_quantize_along(w_zero, w->rank, 0);
  om_quantize_shift(
      ctx, call->inputs[0], om_quantize_operand(call, p->roles.a_zero), scratch + at.x);
  om_quantize_shift(ctx, w, w_zero ? &zero : NULL, scratch + at.w);
  om_conv_run_small(ctx,
                    &pass,
                    scratch + at.x,
                    scratch + at.w,
                    bias ? bias->data : NULL,
                    sums.data,
                    scratch + at.rest);
  if (p->roles.y_scale != NONE) requantize(ctx, call, &sums, scratch + at.scales);
  return OM_OK;
}

#define OM_QCONV_ENTRY(name, least, most, resolve_fn) \
  {.domain = "",                                      \
   .type = name,                                      \
   .first_opset = 10,                                 \
   OM_RULE_COUNTS(least, most, 1, 1),                 \
   .dtypes = OM_DT_BYTE_INT,                          \
   .params_bytes = sizeof(om_qconv_params),           \
   .resolve = resolve_fn,                             \
   .infer = infer,                                    \
   .scratch_bytes = scratch_bytes,                    \
   .run = run}

const om_op om_ops_quantized_conv[] = {
    OM_QCONV_ENTRY("ConvInteger", 2, 4, resolve_integer),
    OM_QCONV_ENTRY("QLinearConv", 8, 9, resolve_linear),
    {.type = NULL},
};
