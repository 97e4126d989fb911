/* DeformConv (docs/exact.md, "Convolution"): a Conv whose taps are read at places of their own, by
 * linear interpolation. For each image and group the taps are gathered into columns and multiplied
 * by the weights.
 *
 *     scratch: [weights] [columns] [result of a group], float32 or float64
 */
#include "cpu/exact/om_matmul.h"
#include "cpu/exact/om_real.h"
#include "ops/om_rule.h"
#include "ops/op_conv.h"

enum { X, W, OFFSET, B, MASK };

typedef struct om_deform_params {
  om_conv_params conv;
  int64_t offset_group;
} om_deform_params;

/* One application; axes as in om_window, offsets for the last `axes` of them. */
typedef struct om_deform {
  const om_tensor *x, *offset, *mask; /* mask may be NULL */
  om_conv_shape shape;
  om_real real;
  uint32_t axes;
  size_t taps, places; /* of the kernel, of the result */
  size_t channels;     /* of a group */
  size_t offset_groups;
} om_deform;

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_deform_params *p = params;
  OM_TRY(om_conv_resolve(ctx, node, &p->conv));
  OM_TRY(om_node_attr_int(ctx, node, "offset_group", 1, &p->offset_group));
  if (p->offset_group >= 1 && p->offset_group <= INT32_MAX) return OM_OK;
  return OM_FAIL(
      ctx, OM_E_INVALID_MODEL, "The attribute offset_group is %lld.", (long long)p->offset_group);
}

static om_status check_field(
    om_ctx *ctx, const om_op_call *call, uint32_t index, int64_t channels, const om_tensor *y) {
  const om_tensor *t = om_rule_input(call, index);
  char text[OM_SHAPE_TEXT];
  if (!t) return OM_OK;
  bool fits = t->rank == y->rank && t->dtype == call->inputs[X]->dtype;
  for (uint32_t d = 0; fits && d < t->rank; ++d) {
    fits = t->dims[d] == (d == 1 ? channels : y->dims[d]);
  }
  if (fits) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Input %u of shape %s does not go with the result; %lld channels are expected.",
                 (unsigned)index,
                 om_shape_text(text, sizeof text, t->rank, t->dims),
                 (long long)channels);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_deform_params *p = call->params;
  const om_tensor *x = call->inputs[X];
  const om_tensor *w = call->inputs[W];
  const om_tensor *bias = om_rule_input(call, B);
  om_tensor y = *x;
  om_conv_shape shape;
  OM_TRY(om_conv_check(ctx, &p->conv, x, w));
  if (!om_conv_fit(&p->conv, x, w, &shape)) return om_window_fail(ctx, &shape.window);
  om_window_shape(&shape.window, shape.out_channels, x, &y);
  const int64_t axes = (int64_t)x->rank - 2;
  const int64_t taps = (int64_t)om_rule_product(w->dims, 2, w->rank);
  if (x->dims[1] % p->offset_group != 0) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "%lld channels are not divisible by an offset_group of %lld.",
                   (long long)x->dims[1],
                   (long long)p->offset_group);
  }
  OM_TRY(check_field(ctx, call, OFFSET, p->offset_group * taps * axes, &y));
  OM_TRY(check_field(ctx, call, MASK, p->offset_group * taps, &y));
  if (bias && (bias->rank != 1 || bias->dims[0] != shape.out_channels || bias->dtype != x->dtype)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The bias does not go with %lld channels of %s.",
                   (long long)shape.out_channels,
                   om_dtype_name(x->dtype));
  }
  return om_rule_set(ctx, call, 0, x->dtype, y.rank, y.dims);
}

static void describe(const om_op_call *call, om_deform *d) {
  const om_deform_params *p = call->params;
  const om_tensor *w = call->inputs[W];
  d->x = call->inputs[X];
  d->offset = call->inputs[OFFSET];
  d->mask = om_rule_input(call, MASK);
  (void)om_conv_fit(&p->conv, d->x, w, &d->shape); /* infer saw to it */
  d->real = om_real_of(d->x->dtype);
  d->axes = d->x->rank - 2;
  d->taps = om_rule_product(w->dims, 2, w->rank);
  d->places = om_window_elems(d->shape.window.out);
  d->channels = (size_t)w->dims[1];
  d->offset_groups = (size_t)p->offset_group;
}

typedef struct om_deform_scratch { /* in elements */
  size_t columns, sums, own, elem_bytes;
  size_t bytes;
} om_deform_scratch;

static om_matmul product_of(const om_deform *d) {
  return (om_matmul){
      .rows = (size_t)(d->shape.out_channels / d->shape.group),
      .cols = d->places,
      .depth = d->channels * d->taps,
      .a_row_stride = d->channels * d->taps,
      .a_depth_stride = 1,
      .b_depth_stride = d->places,
      .b_col_stride = 1,
      .batch = {.rank = 1, .extents = {1}, .source_strides = {1}, .target_strides = {1}},
  };
}

static om_deform_scratch scratch_of(const om_op_call *call, const om_deform *d) {
  const size_t outputs = (size_t)(d->shape.out_channels / d->shape.group);
  om_deform_scratch s = {.elem_bytes = d->real.is_wide ? sizeof(double) : sizeof(float)};
  s.columns = om_size_align(om_tensor_elems(call->inputs[W]), 16);
  s.sums = s.columns + om_size_align(d->channels * d->taps * d->places, 16);
  s.own = om_size_align(s.sums + outputs * d->places, 16);
  const om_matmul m = product_of(d);
  s.bytes = s.own * s.elem_bytes + om_matmul_scratch_bytes(&m, s.elem_bytes);
  return s;
}

static size_t scratch_bytes(const om_op_call *call) {
  om_deform d;
  describe(call, &d);
  return scratch_of(call, &d).bytes;
}

/* The image at `at`: corners in increasing order, the last axis fastest; 0 outside. */
static double interpolate(const om_deform *d, size_t plane, const double at[OM_WINDOW_AXES]) {
  const int64_t *in = d->shape.window.in;
  double sum = 0.0;
  for (uint32_t axis = OM_WINDOW_AXES - d->axes; axis < OM_WINDOW_AXES; ++axis) {
    if (!(at[axis] > -1.0 && at[axis] < (double)in[axis])) return 0.0;
  }
  for (uint32_t corner = 0; corner < 1u << d->axes; ++corner) {
    double weight = 1.0;
    size_t place = 0;
    bool is_inside = true;
    for (uint32_t axis = 0; axis < OM_WINDOW_AXES; ++axis) {
      const bool is_upper = (corner >> (OM_WINDOW_AXES - 1 - axis) & 1u) != 0;
      const double low = floor(at[axis]);
      const double part = om_real_round(d->real, at[axis] - low);
      const double own = is_upper ? part : om_real_round(d->real, 1.0 - part);
      const int64_t index = (int64_t)low + (is_upper ? 1 : 0);
      is_inside = is_inside && index >= 0 && index < in[axis];
      if (!is_inside) break;
      weight = om_real_round(d->real, weight * own);
      place = place * (size_t)in[axis] + (size_t)index;
    }
    if (!is_inside) continue;
    const double term = om_real_round(d->real, weight * om_real_load(d->x, plane + place));
    sum = om_real_round(d->real, sum + term);
  }
  return sum;
}

/* The value of a tap (its index in the kernel) for one place of the result. */
static double sample(const om_deform *d, size_t image, size_t channel, size_t tap, size_t place) {
  const om_window *w = &d->shape.window;
  const size_t of_group = (size_t)d->shape.in_channels / d->offset_groups;
  const size_t field = (image * d->offset_groups + channel / of_group) * d->taps + tap;
  double at[OM_WINDOW_AXES] = {0.0, 0.0, 0.0};
  size_t k = tap;
  size_t o = place;
  for (uint32_t axis = OM_WINDOW_AXES; axis-- > 0;) {
    const int64_t own = (int64_t)(o % (size_t)w->out[axis]) * w->stride[axis] - w->pad_begin[axis] +
                        (int64_t)(k % (size_t)w->kernel[axis]) * w->dilation[axis];
    o /= (size_t)w->out[axis];
    k /= (size_t)w->kernel[axis];
    if (axis < OM_WINDOW_AXES - d->axes) continue; /* an axis of one element */
    const size_t order = axis - (OM_WINDOW_AXES - d->axes);
    const double shift = om_real_load(d->offset, (field * d->axes + order) * d->places + place);
    at[axis] = om_real_round(d->real, (double)own + shift);
  }
  const size_t plane = (image * (size_t)d->shape.in_channels + channel) * om_window_elems(w->in);
  const double value = interpolate(d, plane, at);
  if (!d->mask) return value;
  return om_real_round(d->real, value * om_real_load(d->mask, field * d->places + place));
}

/* Not inlined, nor the next two: their caller's frame already holds the shape. */
__attribute__((noinline)) static om_status gather(
    om_ctx *ctx, const om_deform *d, size_t image, size_t group, const om_tensor *columns) {
  for (size_t row = 0; row < d->channels * d->taps; ++row) {
    const size_t channel = group * d->channels + row / d->taps;
    for (size_t place = 0; place < d->places; ++place) {
      OM_TRY(om_check_turn(ctx, place));
      om_real_store(
          columns, row * d->places + place, sample(d, image, channel, row % d->taps, place));
    }
  }
  return OM_OK;
}

__attribute__((noinline)) static void multiply(
    om_ctx *ctx, const om_deform *d, const void *a, const void *b, void *y, void *own) {
  const om_matmul m = product_of(d);
  if (d->real.is_wide) {
    om_matmul_f64(ctx, &m, a, b, y, own);
  } else {
    om_matmul_f32(ctx, &m, a, b, y, own);
  }
}

/* Rows of sums become channels of the result, with their bias. */
__attribute__((noinline)) static om_status store(om_ctx *ctx,
                                                 const om_op_call *call,
                                                 const om_deform *d,
                                                 const om_tensor *sums,
                                                 size_t first,
                                                 size_t rows) {
  const om_tensor *bias = om_rule_input(call, B);
  for (size_t i = 0; i < rows * d->places; ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const size_t channel = (first + i / d->places) % (size_t)d->shape.out_channels;
    double value = om_real_load(sums, i);
    if (bias) value = om_real_round(d->real, value + om_real_load(bias, channel));
    om_real_store(call->outputs[0], first * d->places + i, value);
  }
  return OM_OK;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  om_deform d;
  describe(call, &d);
  const om_deform_scratch s = scratch_of(call, &d);
  const size_t groups = (size_t)d.shape.group;
  const size_t outputs = (size_t)d.shape.out_channels / groups;
  char *scratch = call->scratch;
  const om_dtype dtype = d.real.is_wide ? OM_DTYPE_F64 : OM_DTYPE_F32;
  const om_tensor columns = {.dtype = dtype, .data = scratch + s.columns * s.elem_bytes};
  const om_tensor sums = {.dtype = dtype, .data = scratch + s.sums * s.elem_bytes};
  if (om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  const om_tensor *w = call->inputs[W];
  om_cast_elems(w->dtype, w->data, dtype, scratch, om_tensor_elems(w), true);
  for (size_t i = 0; i < (size_t)d.x->dims[0] * groups; ++i) {
    const size_t group = i % groups;
    OM_TRY(gather(ctx, &d, i / groups, group, &columns));
    multiply(ctx,
             &d,
             scratch + group * outputs * d.channels * d.taps * s.elem_bytes,
             columns.data,
             sums.data,
             scratch + s.own * s.elem_bytes);
    OM_TRY(store(ctx, call, &d, &sums, i * outputs, outputs));
  }
  return OM_OK;
}

const om_op om_ops_deform_conv[] = {
    {.domain = "",
     .type = "DeformConv",
     .first_opset = 19,
     OM_RULE_COUNTS(3, 5, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_deform_params),
     .resolve = resolve,
     .infer = infer,
     .scratch_bytes = scratch_bytes,
     .run = run},
    {.type = NULL},
};
