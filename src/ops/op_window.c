/* Padding and extents of sliding windows. All arithmetic is on values below 2^32 or on products
 * of two of them, so that nothing overflows int64.
 */
#include "ops/op_window.h"

om_status om_window_list(om_ctx *ctx,
                         const om_node *node,
                         const char *name,
                         int64_t least,
                         uint32_t *axis_count,
                         int64_t out_values[OM_WINDOW_AXES],
                         bool *out_found) {
  const int64_t *values = NULL;
  size_t count = 0;
  OM_TRY(om_node_attr_ints(ctx, node, name, &values, &count));
  if (out_found) *out_found = count != 0;
  if (count == 0) return OM_OK;
  if (count > OM_WINDOW_AXES) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "%s has %zu values; at most 3 spatial axes are supported.",
                   name,
                   count);
  }
  if (*axis_count != 0 && *axis_count != count) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "%s has %zu values where other attributes have %u spatial axes.",
                   name,
                   count,
                   *axis_count);
  }
  *axis_count = (uint32_t)count;
  for (size_t i = 0; i < count; ++i) {
    if (values[i] < least || values[i] > INT32_MAX) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "%s[%zu] is %lld; it must be at least %lld and below 2^31.",
                     name,
                     i,
                     (long long)values[i],
                     (long long)least);
    }
    out_values[i] = values[i];
  }
  return OM_OK;
}

static om_status resolve_pads(om_ctx *ctx, const om_node *node, om_window_params *params) {
  const int64_t *pads = NULL;
  size_t count = 0;
  OM_TRY(om_node_attr_ints(ctx, node, "pads", &pads, &count));
  if (count == 0) return OM_OK;
  if (count % 2 != 0 || (params->axis_count != 0 && count != 2 * (size_t)params->axis_count)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "pads has %zu values; two for each spatial axis are needed.",
                   count);
  }
  if (count > 2 * OM_WINDOW_AXES) {
    return OM_FAIL(
        ctx, OM_E_UNSUPPORTED, "pads has %zu values; at most 3 spatial axes are supported.", count);
  }
  params->axis_count = (uint32_t)(count / 2);
  for (size_t i = 0; i < count; ++i) {
    if (pads[i] < 0 || pads[i] > INT32_MAX) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "pads[%zu] is %lld; it must be at least 0 and below 2^31.",
                     i,
                     (long long)pads[i]);
    }
    if (i < params->axis_count) {
      params->pad_begin[i] = pads[i];
    } else {
      params->pad_end[i - params->axis_count] = pads[i];
    }
  }
  return OM_OK;
}

static om_status resolve_auto_pad(om_ctx *ctx, const om_node *node, om_window_params *params) {
  static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  om_string text;
  OM_TRY(om_node_attr_text(ctx, node, "auto_pad", "NOTSET", &text));
  if (text.bytes == 0) return OM_OK; /* written so by some exporters */
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    if (om_string_is(text, names[i])) {
      params->auto_pad = (om_auto_pad)i;
      return OM_OK;
    }
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "auto_pad is \"%.*s\"; it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID.",
                 (int)(text.bytes < 64 ? text.bytes : 64),
                 text.data);
}

om_status om_window_resolve(om_ctx *ctx, const om_node *node, om_window_params *out_params) {
  om_window_params *params = out_params;
  int64_t rounds_up = 0;
  *params = (om_window_params){.kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
  OM_TRY(om_window_list(
      ctx, node, "kernel_shape", 1, &params->axis_count, params->kernel, &params->has_kernel));
  OM_TRY(om_window_list(ctx, node, "strides", 1, &params->axis_count, params->stride, NULL));
  OM_TRY(om_window_list(ctx, node, "dilations", 1, &params->axis_count, params->dilation, NULL));
  OM_TRY(resolve_pads(ctx, node, params));
  OM_TRY(resolve_auto_pad(ctx, node, params));
  OM_TRY(om_node_attr_int(ctx, node, "ceil_mode", 0, &rounds_up));
  params->rounds_up = rounds_up != 0;
  return OM_OK;
}

om_status om_window_check(om_ctx *ctx, const om_window_params *params, const om_tensor *x) {
  char shape[OM_SHAPE_TEXT];
  om_shape_text(shape, sizeof shape, x->rank, x->dims);
  if (x->rank < 3) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "The input %s has no spatial axis; [N, C, ...] is needed.", shape);
  }
  if (x->rank > 2 + OM_WINDOW_AXES) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The input %s has more than 3 spatial axes.", shape);
  }
  if (params->axis_count != 0 && params->axis_count != x->rank - 2) {
    return OM_FAIL(
        ctx,
        OM_E_INVALID_MODEL,
        "The strides, dilations or kernel shape are for %u spatial axes, the input %s has %u.",
        params->axis_count,
        shape,
        x->rank - 2);
  }
  for (uint32_t i = 2; i < x->rank; ++i) {
    if (x->dims[i] > INT32_MAX) {
      return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The input %s has an extent above 2^31.", shape);
    }
  }
  return OM_OK;
}

void om_window_align(const om_window_params *params,
                     const om_tensor *x,
                     const int64_t *kernel,
                     om_window *out_window) {
  om_window *w = out_window;
  const uint32_t axes = x->rank - 2;
  const uint32_t first = OM_WINDOW_AXES - axes;
  *w = (om_window){
      .batch = x->dims[0],
      .channels = x->dims[1],
      .in = {1, 1, 1},
      .out = {1, 1, 1},
      .kernel = {1, 1, 1},
      .stride = {1, 1, 1},
      .dilation = {1, 1, 1},
  };
  for (uint32_t i = 0; i < axes; ++i) {
    w->in[first + i] = x->dims[2 + i];
    w->kernel[first + i] = kernel[i];
    w->stride[first + i] = params->stride[i];
    w->dilation[first + i] = params->dilation[i];
    if (params->auto_pad == OM_PAD_EXPLICIT) {
      w->pad_begin[first + i] = params->pad_begin[i];
      w->pad_end[first + i] = params->pad_end[i];
    }
  }
}

/* ONNX: the result has ceil(in / stride) elements, whatever pads that takes. */
static void fit_same(om_window *w, uint32_t axis, bool is_upper) {
  w->out[axis] = (w->in[axis] + w->stride[axis] - 1) / w->stride[axis];
  int64_t total = (w->out[axis] - 1) * w->stride[axis] + om_window_reach(w, axis) - w->in[axis];
  if (total < 0 || w->out[axis] == 0) total = 0;
  w->pad_begin[axis] = is_upper ? total / 2 : total - total / 2;
  w->pad_end[axis] = total - w->pad_begin[axis];
}

bool om_window_fit(const om_window_params *params,
                   const om_tensor *x,
                   const int64_t *kernel,
                   om_window *out_window) {
  om_window *w = out_window;
  om_window_align(params, x, kernel, w);
  for (uint32_t axis = 0; axis < OM_WINDOW_AXES; ++axis) {
    if (params->auto_pad == OM_PAD_SAME_UPPER || params->auto_pad == OM_PAD_SAME_LOWER) {
      fit_same(w, axis, params->auto_pad == OM_PAD_SAME_UPPER);
      continue;
    }
    const int64_t room =
        w->in[axis] + w->pad_begin[axis] + w->pad_end[axis] - om_window_reach(w, axis);
    const bool rounds_up = params->rounds_up && params->auto_pad == OM_PAD_EXPLICIT;
    /* A kernel longer than the padded input has the window that rounding up adds, if any. */
    const bool has_first = room >= 0 || (rounds_up && room > -w->stride[axis] && w->in[axis] > 0);
    if (!has_first) {
      w->bad_axis = axis;
      return false;
    }
    w->out[axis] = room / w->stride[axis] + 1;
    /* One more window where the last ends before the input does, unless it would begin in the
     * padding at the end. */
    if (rounds_up && room > 0 && room % w->stride[axis] != 0 &&
        w->out[axis] * w->stride[axis] < w->in[axis] + w->pad_begin[axis]) {
      ++w->out[axis];
    }
  }
  return true;
}

om_status om_window_fail(om_ctx *ctx, const om_window *window) {
  const uint32_t axis = window->bad_axis;
  return OM_FAIL(
      ctx,
      OM_E_INVALID_INPUT,
      "A kernel that reaches over %lld elements does not fit into an extent of %lld with "
      "pads %lld and %lld.",
      (long long)om_window_reach(window, axis),
      (long long)window->in[axis],
      (long long)window->pad_begin[axis],
      (long long)window->pad_end[axis]);
}

void om_window_shape(const om_window *window, int64_t channels, const om_tensor *x, om_tensor *y) {
  const uint32_t first = OM_WINDOW_AXES + 2 - x->rank;
  y->dtype = x->dtype;
  y->rank = x->rank;
  y->dims[0] = window->batch;
  y->dims[1] = channels;
  for (uint32_t i = 2; i < x->rank; ++i) y->dims[i] = window->out[first + i - 2];
}
