/* ConvInteger and QLinearConv: a Conv of operands without their zero points, as float32 that holds
 * them exactly. Padding lies around the shifted input: it counts as the zero point. Where each
 * result reads one place alone, it is a product of the bytes as they lie.
 *
 *     scratch: [x] [w] [sums] [w's scales] [the convolution's own], 4 bytes an element
 */
#include "cpu/exact/om_cast.h"
#include "cpu/exact/om_matmul_bytes.h"
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

/* Whether each result reads its own place alone: a product of the weights and x as they lie. */
static bool is_product(const om_conv_shape *shape) {
  const om_window *window = &shape->window;
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    if (window->kernel[i] != 1 || window->stride[i] != 1 || window->in[i] != window->out[i] ||
        window->pad_begin[i] != 0) {
      return false;
    }
  }
  return shape->group == 1;
}

static size_t place_count(const om_conv_shape *shape) {
  const om_window *window = &shape->window;
  size_t count = 1;
  for (int i = 0; i < OM_WINDOW_AXES; ++i) count *= (size_t)window->out[i];
  return count;
}

static void describe_product(const om_conv_shape *shape, om_matmul *out) {
  const size_t places = place_count(shape);
  const size_t depth = (size_t)shape->in_channels;
  *out = (om_matmul){.rows = (size_t)shape->out_channels,
                     .cols = places,
                     .depth = depth,
                     .a_row_stride = depth,
                     .a_depth_stride = 1,
                     .b_depth_stride = places,
                     .b_col_stride = 1};
  out->batch.rank = 1;
  out->batch.extents[0] = shape->window.batch;
  out->batch.target_strides[0] = (int64_t)(depth * places);
}

/* Of a product x and w are its zero points. */
static om_qconv_places places_of(const om_op_call *call, const om_conv_shape *shape) {
  const om_qconv_params *p = call->params;
  const bool is_whole = is_product(shape);
  const size_t x = is_whole ? place_count(shape) * (size_t)shape->window.batch
                            : om_tensor_elems(call->inputs[0]);
  const size_t w =
      is_whole ? (size_t)shape->out_channels : om_tensor_elems(call->inputs[p->roles.b]);
  om_qconv_places at = {.x = 0};
  at.w = om_size_align(x, 16);
  at.sums = at.w + om_size_align(w, 16);
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

/* (Functions of their own, as those below: descriptions make large frames.) */
__attribute__((noinline)) static size_t product_scratch(const om_conv_shape *shape) {
  om_matmul m;
  describe_product(shape, &m);
  return om_matmul_bytes_scratch(&m, m.rows);
}

__attribute__((noinline)) static size_t window_scratch(const om_conv_shape *shape) {
  const om_conv_pass pass = om_conv_forward_pass(shape);
  return om_conv_scratch_bytes(&pass, sizeof(int32_t));
}

static size_t scratch_bytes(const om_op_call *call) {
  if (!call->outputs[0]) return 0;
  const om_conv_shape shape = shape_of(call);
  const size_t places = places_of(call, &shape).rest * sizeof(int32_t);
  return places + (is_product(&shape) ? product_scratch(&shape) : window_scratch(&shape));
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

/* The zero points of `count` lines: none, one or a list. */
static void load_zeros(const om_tensor *given, size_t count, int32_t *target) {
  const size_t given_count = given ? om_tensor_elems(given) : 0;
  if (given) om_cast_elems(given->dtype, given->data, OM_DTYPE_I32, target, given_count, true);
  for (size_t i = given_count; i < count; ++i) target[i] = given ? target[0] : 0;
}

__attribute__((noinline)) static void multiply(om_ctx *ctx,
                                               const om_op_call *call,
                                               const om_conv_shape *shape,
                                               int32_t *sums) {
  const om_qconv_params *p = call->params;
  const om_qconv_places at = places_of(call, shape);
  const om_tensor *x = call->inputs[0];
  const om_tensor *w = call->inputs[p->roles.b];
  const om_tensor *bias = om_quantize_operand(call, p->roles.bias);
  int32_t *scratch = call->scratch;
  om_matmul_bytes product = {.a = w->data,
                             .b = x->data,
                             .is_a_signed = w->dtype == OM_DTYPE_I8,
                             .is_b_signed = x->dtype == OM_DTYPE_I8,
                             .a_zeros = scratch + at.w,
                             .b_zeros = scratch + at.x,
                             .y = (uint32_t *)sums};
  describe_product(shape, &product.m);
  const size_t rows = product.m.rows;
  const size_t cols = product.m.cols;
  load_zeros(om_quantize_operand(call, p->roles.b_zero), rows, scratch + at.w);
  load_zeros(om_quantize_operand(call, p->roles.a_zero),
             cols * (size_t)shape->window.batch,
             scratch + at.x);
  om_matmul_bytes_run(ctx, &product, rows, scratch + at.rest);
  for (size_t i = 0; bias && i < rows * (size_t)shape->window.batch; ++i) {
    const uint32_t one = ((const uint32_t *)bias->data)[i % rows];
    uint32_t *y = product.y + i * cols;
    for (size_t k = 0; k < cols; ++k) y[k] += one;
  }
}

__attribute__((noinline)) static void convolve(om_ctx *ctx,
                                               const om_op_call *call,
                                               const om_conv_shape *shape,
                                               void *sums) {
  const om_qconv_params *p = call->params;
  const om_tensor *w = call->inputs[p->roles.b];
  const om_tensor *w_zero = om_quantize_operand(call, p->roles.b_zero);
  const om_tensor *bias = om_quantize_operand(call, p->roles.bias);
  const om_conv_pass pass = om_conv_forward_pass(shape);
  const om_qconv_places at = places_of(call, shape);
  float *scratch = call->scratch;
  om_tensor zero = {.rank = 0};
  if (w_zero) zero = om_quantize_along(w_zero, w->rank, 0);
  om_quantize_shift(
      ctx, call->inputs[0], om_quantize_operand(call, p->roles.a_zero), scratch + at.x);
  om_quantize_shift(ctx, w, w_zero ? &zero : NULL, scratch + at.w);
  om_conv_run_small(ctx,
                    &pass,
                    scratch + at.x,
                    scratch + at.w,
                    bias ? bias->data : NULL,
                    sums,
                    scratch + at.rest);
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_qconv_params *p = call->params;
  if (!call->outputs[0] || om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  const om_conv_shape shape = shape_of(call);
  const om_qconv_places at = places_of(call, &shape);
  float *scratch = call->scratch;
  om_tensor sums = *call->outputs[0];
  if (p->roles.y_scale != NONE) sums.data = scratch + at.sums;
  sums.dtype = OM_DTYPE_I32;
  if (is_product(&shape)) {
    multiply(ctx, call, &shape, sums.data);
  } else {
    convolve(ctx, call, &shape, sums.data);
  }
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
