/* Conv and ConvTranspose (docs/exact.md, "Convolution").
 *
 * Inputs: X [N, C, spatial...], W ([M, C/group, kernel...]; of a ConvTranspose [C, M/group,
 * kernel...]), and optionally B [M]. Both become passes of cpu/exact/om_conv.h. float16 and
 * bfloat16 are widened to float32, computed, and rounded once.
 */
#include "ops/op_conv.h"

#include "ops/op_fast.h"
#include "ops/op_widen.h"

extern const om_op om_ops_conv[];

/* ---- Shapes ---- */

static om_status resolve_common(om_ctx *ctx, const om_node *node, om_conv_params *params) {
  OM_TRY(om_window_resolve(ctx, node, &params->window));
  OM_TRY(om_node_attr_int(ctx, node, "group", 1, &params->group));
  if (params->group < 1 || params->group > INT32_MAX) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "group is %lld; it must be at least 1 and below 2^31.",
                   (long long)params->group);
  }
  return OM_OK;
}

om_status om_conv_resolve(om_ctx *ctx, const om_node *node, void *out_params) {
  return resolve_common(ctx, node, out_params);
}

om_status om_conv_resolve_transposed(om_ctx *ctx, const om_node *node, void *out_params) {
  om_conv_params *params = out_params;
  uint32_t *axis_count = &params->window.axis_count;
  params->is_transposed = true;
  OM_TRY(resolve_common(ctx, node, params));
  OM_TRY(om_window_list(ctx, node, "output_padding", 0, axis_count, params->output_padding, NULL));
  return om_window_list(
      ctx, node, "output_shape", 0, axis_count, params->output_shape, &params->has_output_shape);
}

/* ONNX computes either the result's extent from the pads or the pads from the extent. */
static bool fit_transposed_axis(const om_conv_params *params, om_window *w, uint32_t axis) {
  const uint32_t first =
      OM_WINDOW_AXES - (params->window.axis_count ? params->window.axis_count : 3);
  const bool is_named = axis >= first;
  const om_auto_pad auto_pad = params->window.auto_pad;
  const int64_t extra = is_named ? params->output_padding[axis - first] : 0;
  const int64_t full = w->stride[axis] * (w->in[axis] - 1) + extra + om_window_reach(w, axis);
  if (params->has_output_shape) {
    w->out[axis] = is_named ? params->output_shape[axis - first] : 1;
  } else if (auto_pad == OM_PAD_SAME_UPPER || auto_pad == OM_PAD_SAME_LOWER) {
    w->out[axis] = w->in[axis] * w->stride[axis];
  } else {
    w->out[axis] = full - w->pad_begin[axis] - w->pad_end[axis];
    w->bad_axis = axis;
    return w->in[axis] > 0 && w->out[axis] >= 0 && w->out[axis] <= INT32_MAX;
  }
  const int64_t total = full > w->out[axis] ? full - w->out[axis] : 0;
  w->pad_begin[axis] = auto_pad == OM_PAD_SAME_UPPER ? total / 2 : total - total / 2;
  w->pad_end[axis] = total - w->pad_begin[axis];
  w->bad_axis = axis;
  return w->out[axis] <= INT32_MAX;
}

bool om_conv_fit(const om_conv_params *params,
                 const om_tensor *x,
                 const om_tensor *w,
                 om_conv_shape *out_shape) {
  om_conv_shape *shape = out_shape;
  shape->group = params->group;
  shape->is_transposed = params->is_transposed;
  shape->in_channels = x->dims[1];
  shape->out_channels = params->is_transposed ? w->dims[1] * params->group : w->dims[0];
  if (!params->is_transposed) return om_window_fit(&params->window, x, w->dims + 2, &shape->window);
  om_window_align(&params->window, x, w->dims + 2, &shape->window);
  for (uint32_t axis = 0; axis < OM_WINDOW_AXES; ++axis) {
    if (!fit_transposed_axis(params, &shape->window, axis)) return false;
  }
  return true;
}

/* ---- Checks ---- */

static om_status check_kernel(om_ctx *ctx, const om_conv_params *params, const om_tensor *w) {
  char shape[OM_SHAPE_TEXT];
  om_shape_text(shape, sizeof shape, w->rank, w->dims);
  if (w->dims[0] > INT32_MAX || w->dims[1] > INT32_MAX) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The weights %s have 2^31 channels or more.", shape);
  }
  for (uint32_t i = 2; i < w->rank; ++i) {
    if (w->dims[i] < 1 || w->dims[i] > INT32_MAX) {
      return OM_FAIL(
          ctx, OM_E_INVALID_MODEL, "The weights %s have a kernel without elements.", shape);
    }
    if (params->window.has_kernel && params->window.kernel[i - 2] != w->dims[i]) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "kernel_shape[%u] is %lld, but the weights are %s.",
                     i - 2,
                     (long long)params->window.kernel[i - 2],
                     shape);
    }
  }
  return OM_OK;
}

om_status om_conv_check(om_ctx *ctx,
                        const om_conv_params *params,
                        const om_tensor *x,
                        const om_tensor *w) {
  char x_shape[OM_SHAPE_TEXT];
  char w_shape[OM_SHAPE_TEXT];
  OM_TRY(om_window_check(ctx, &params->window, x));
  om_shape_text(x_shape, sizeof x_shape, x->rank, x->dims);
  om_shape_text(w_shape, sizeof w_shape, w->rank, w->dims);
  if (w->rank != x->rank || w->dtype != x->dtype) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The weights %s of %s do not go with the input %s of %s.",
                   w_shape,
                   om_dtype_name(w->dtype),
                   x_shape,
                   om_dtype_name(x->dtype));
  }
  OM_TRY(check_kernel(ctx, params, w));
  const int64_t channels = params->is_transposed ? w->dims[0] : w->dims[1] * params->group;
  if (x->dims[1] != channels || (params->is_transposed && w->dims[0] % params->group != 0) ||
      (!params->is_transposed && w->dims[0] % params->group != 0)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The weights %s with group %lld do not go with the input %s.",
                   w_shape,
                   (long long)params->group,
                   x_shape);
  }
  return OM_OK;
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_conv_params *params = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *w = call->inputs[1];
  const om_tensor *bias = call->input_count > 2 ? call->inputs[2] : NULL;
  om_conv_shape shape;
  OM_TRY(om_conv_check(ctx, params, x, w));
  if (!om_conv_fit(params, x, w, &shape)) return om_window_fail(ctx, &shape.window);
  if (bias && (bias->rank != 1 || bias->dims[0] != shape.out_channels || bias->dtype != x->dtype)) {
    char text[OM_SHAPE_TEXT];
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The bias %s of %s does not go with %lld channels of %s.",
                   om_shape_text(text, sizeof text, bias->rank, bias->dims),
                   om_dtype_name(bias->dtype),
                   (long long)shape.out_channels,
                   om_dtype_name(x->dtype));
  }
  if (call->outputs[0]) om_window_shape(&shape.window, shape.out_channels, x, call->outputs[0]);
  return OM_OK;
}

/* ---- Running ---- */

/* The pass of a Conv, or a ConvTranspose's pass for the results at remainder first[axis]. */
static om_conv_pass pass_of(const om_conv_shape *shape, const int64_t first[OM_WINDOW_AXES]) {
  const om_window *w = &shape->window;
  om_conv_pass pass = {
      .batch = w->batch,
      .groups = shape->group,
      .in_channels = shape->in_channels / shape->group,
      .out_channels = shape->out_channels / shape->group,
  };
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    pass.axes[i] =
        shape->is_transposed
            ? om_conv_axis_transposed(w->in[i],
                                      w->out[i],
                                      w->kernel[i],
                                      w->stride[i],
                                      w->dilation[i],
                                      w->pad_begin[i],
                                      first[i])
            : om_conv_axis_forward(
                  w->in[i], w->out[i], w->kernel[i], w->stride[i], w->dilation[i], w->pad_begin[i]);
  }
  return pass;
}

om_conv_pass om_conv_forward_pass(const om_conv_shape *shape) {
  return pass_of(shape, (const int64_t[OM_WINDOW_AXES]){0});
}

/* Where run's pieces of scratch lie, in elements of the computing type. */
typedef struct layout {
  size_t elem_bytes;
  bool is_wide; /* x, w, bias and y have float32 copies in scratch */
  size_t x, w, bias, y, repacked, sums;
  size_t bytes;
} layout;

static layout layout_of(const om_op_call *call, const om_conv_shape *shape) {
  const om_tensor *x = call->inputs[0];
  const size_t w_elems = om_tensor_elems(call->inputs[1]);
  layout l = {.elem_bytes = x->dtype == OM_DTYPE_F64 ? 8 : 4};
  size_t at = 0;
  l.is_wide = om_widen_needed(x->dtype);
  if (l.is_wide) {
    l.x = at;
    at = om_size_align(at + om_tensor_elems(x), 16);
    l.w = at;
    at = om_size_align(at + w_elems, 16);
    l.bias = at;
    at = om_size_align(at + (size_t)shape->out_channels, 16);
    l.y = at;
    at = om_size_align(at + om_tensor_elems(call->outputs[0]), 16);
  }
  l.repacked = at;
  if (shape->is_transposed) at = om_size_align(at + w_elems, 16);
  l.sums = at;
  const om_conv_pass pass = om_conv_forward_pass(shape);
  l.bytes = at * l.elem_bytes + om_conv_scratch_bytes(&pass, l.elem_bytes);
  return l;
}

static size_t scratch_bytes(const om_op_call *call) {
  om_conv_shape shape;
  if (!call->outputs[0] || !om_conv_fit(call->params, call->inputs[0], call->inputs[1], &shape)) {
    return 0;
  }
  return layout_of(call, &shape).bytes;
}

/* Brings [C, M/group, kernel] into [M, C/group, the pass's taps]. */
static void repack(const om_ctx *ctx,
                   const om_conv_pass *pass,
                   const void *source,
                   size_t elem_bytes,
                   void *target) {
  const om_conv_axis *a = pass->axes;
  const int64_t kernel = a[0].kernel * a[1].kernel * a[2].kernel;
  char *out = target;
  for (int64_t m = 0; m < pass->groups * pass->out_channels; ++m) {
    for (int64_t c = 0; c < pass->in_channels && !om_is_cancelled(ctx); ++c) {
      const int64_t channel = m / pass->out_channels * pass->in_channels + c;
      const char *in =
          (const char *)source +
          (size_t)((channel * pass->out_channels + m % pass->out_channels) * kernel) * elem_bytes;
      for (int64_t z = 0; z < a[0].taps; ++z) {
        for (int64_t y = 0; y < a[1].taps; ++y) {
          for (int64_t x = 0; x < a[2].taps; ++x, out += elem_bytes) {
            const int64_t k = ((a[0].kernel_first + z * a[0].kernel_step) * a[1].kernel +
                               a[1].kernel_first + y * a[1].kernel_step) *
                                  a[2].kernel +
                              a[2].kernel_first + x * a[2].kernel_step;
            memcpy(out, in + (size_t)k * elem_bytes, elem_bytes);
          }
        }
      }
    }
  }
}

typedef struct operands {
  const void *x;
  const void *w;
  const void *bias; /* NULL: none */
  void *y;
  bool is_f64;
} operands;

static void run_pass(
    om_ctx *ctx, const om_conv_pass *pass, const operands *o, const void *w, void *scratch) {
  if (o->is_f64) {
    om_conv_run_f64(ctx, pass, o->x, w, o->bias, o->y, scratch);
  } else {
    om_conv_run_f32(ctx, pass, o->x, w, o->bias, o->y, scratch);
  }
}

static void run_transposed(
    om_ctx *ctx, const om_conv_shape *shape, const operands *o, void *repacked, void *scratch) {
  const int64_t *stride = shape->window.stride;
  const int64_t *out = shape->window.out;
  int64_t first[OM_WINDOW_AXES];
  for (first[0] = 0; first[0] < stride[0] && first[0] < out[0]; ++first[0]) {
    for (first[1] = 0; first[1] < stride[1] && first[1] < out[1]; ++first[1]) {
      for (first[2] = 0; first[2] < stride[2] && first[2] < out[2]; ++first[2]) {
        const om_conv_pass pass = pass_of(shape, first);
        if (om_is_cancelled(ctx)) return;
        repack(ctx, &pass, o->w, o->is_f64 ? 8 : 4, repacked);
        run_pass(ctx, &pass, o, repacked, scratch);
      }
    }
  }
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *w = call->inputs[1];
  const om_tensor *bias = call->input_count > 2 ? call->inputs[2] : NULL;
  om_tensor *y = call->outputs[0];
  om_conv_shape shape;
  if (!y || om_tensor_elems(y) == 0) return OM_OK;
  if (!om_conv_fit(call->params, x, w, &shape)) return om_window_fail(ctx, &shape.window);
  const layout l = layout_of(call, &shape);
  operands o = {x->data, w->data, bias ? bias->data : NULL, y->data, x->dtype == OM_DTYPE_F64};
  char *scratch = call->scratch;
  if (l.is_wide) {
    o.x = om_widen(x, (float *)call->scratch + l.x);
    o.w = om_widen(w, (float *)call->scratch + l.w);
    if (bias) o.bias = om_widen(bias, (float *)call->scratch + l.bias);
    o.y = (float *)call->scratch + l.y;
  }
  if (shape.is_transposed) {
    run_transposed(
        ctx, &shape, &o, scratch + l.repacked * l.elem_bytes, scratch + l.sums * l.elem_bytes);
  } else {
    const om_conv_pass pass = om_conv_forward_pass(&shape);
    run_pass(ctx, &pass, &o, o.w, scratch + l.sums * l.elem_bytes);
  }
  if (l.is_wide) om_narrow(o.y, y);
  return OM_OK;
}

#define OM_CONV_ENTRY(name, resolve_fn)    \
  {.domain = "",                           \
   .type = name,                           \
   .first_opset = 1,                       \
   .min_inputs = 2,                        \
   .max_inputs = 3,                        \
   .min_outputs = 1,                       \
   .max_outputs = 1,                       \
   .dtypes = OM_DT_FLOAT,                  \
   .params_bytes = sizeof(om_conv_params), \
   .resolve = resolve_fn,                  \
   .infer = infer,                         \
   .scratch_bytes = scratch_bytes,         \
   .run = run,                             \
   .make_ready = om_conv_ready}

const om_op om_ops_conv[] = {
    OM_CONV_ENTRY("Conv", om_conv_resolve),
    OM_CONV_ENTRY("ConvTranspose", om_conv_resolve_transposed),
    {.type = NULL},
};
