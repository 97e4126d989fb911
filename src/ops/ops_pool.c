/* Pools: MaxPool, AveragePool, LpPool, and the global forms (docs/exact.md, "Pools").
 *
 * The maximum of narrow types is found among their float32 values, which is exact. Sums of float16
 * and bfloat16 are taken in float32 and rounded once.
 */
#include "ops/op_pool.h"

#include <math.h>

#include "cpu/exact/om_pool_exact.h"
#include "ops/op_widen.h"

/* ---- Attributes and shapes ---- */

static om_status resolve_max(om_ctx *ctx, const om_node *node, void *out_params) {
  om_pool_params *params = out_params;
  int64_t order = 0;
  params->kind = OM_POOL_MAX;
  OM_TRY(om_window_resolve(ctx, node, &params->window));
  OM_TRY(om_node_attr_int(ctx, node, "storage_order", 0, &order));
  if (order != 0 && order != 1) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "storage_order is %lld; it must be 0 or 1.", (long long)order);
  }
  params->is_column_major = order == 1;
  return OM_OK;
}

static om_status resolve_average(om_ctx *ctx, const om_node *node, void *out_params) {
  om_pool_params *params = out_params;
  int64_t counts_padding = 0;
  params->kind = OM_POOL_AVERAGE;
  OM_TRY(om_window_resolve(ctx, node, &params->window));
  OM_TRY(om_node_attr_int(ctx, node, "count_include_pad", 0, &counts_padding));
  params->counts_padding = counts_padding != 0;
  return OM_OK;
}

/* p: an integer since opset 2, a float in opset 1. */
static om_status resolve_exponent(om_ctx *ctx, const om_node *node, om_pool_params *params) {
  int64_t p = 2;
  if (node->opset < 2) {
    OM_TRY(om_node_attr_float(ctx, node, "p", 2.0f, &params->exponent));
  } else {
    OM_TRY(om_node_attr_int(ctx, node, "p", 2, &p));
    params->exponent = (float)p;
  }
  if (!(params->exponent > 0) || isinf(params->exponent)) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "p is %g; it must be above 0.", (double)params->exponent);
  }
  return OM_OK;
}

static om_status resolve_lp(om_ctx *ctx, const om_node *node, void *out_params) {
  om_pool_params *params = out_params;
  params->kind = OM_POOL_LP;
  OM_TRY(om_window_resolve(ctx, node, &params->window));
  return resolve_exponent(ctx, node, params);
}

static om_status resolve_global_max(om_ctx *ctx, const om_node *node, void *out_params) {
  (void)ctx;
  (void)node;
  *(om_pool_params *)out_params = (om_pool_params){.kind = OM_POOL_MAX, .is_global = true};
  return OM_OK;
}

static om_status resolve_global_average(om_ctx *ctx, const om_node *node, void *out_params) {
  (void)ctx;
  (void)node;
  *(om_pool_params *)out_params = (om_pool_params){.kind = OM_POOL_AVERAGE, .is_global = true};
  return OM_OK;
}

static om_status resolve_global_lp(om_ctx *ctx, const om_node *node, void *out_params) {
  om_pool_params *params = out_params;
  *params = (om_pool_params){.kind = OM_POOL_LP, .is_global = true};
  return resolve_exponent(ctx, node, params);
}

bool om_pool_fit(const om_pool_params *params, const om_tensor *x, om_window *out_window) {
  om_window_params whole;
  if (!params->is_global) {
    return om_window_fit(&params->window, x, params->window.kernel, out_window);
  }
  whole = (om_window_params){.stride = {1, 1, 1}, .dilation = {1, 1, 1}};
  return om_window_fit(&whole, x, x->dims + 2, out_window);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_pool_params *params = call->params;
  const om_tensor *x = call->inputs[0];
  om_window window;
  if (!params->is_global && !params->window.has_kernel) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute kernel_shape is missing.");
  }
  if (params->is_global && x->rank > 2 + OM_WINDOW_AXES) {
    return OM_FAIL(
        ctx, OM_E_UNSUPPORTED, "The input has %u axes; at most 5 are supported.", x->rank);
  }
  OM_TRY(om_window_check(ctx, &params->window, x));
  if (!om_pool_fit(params, x, &window)) return om_window_fail(ctx, &window);
  if (call->outputs[0]) om_window_shape(&window, window.channels, x, call->outputs[0]);
  if (call->output_count > 1 && call->outputs[1]) {
    om_window_shape(&window, window.channels, x, call->outputs[1]);
    call->outputs[1]->dtype = OM_DTYPE_I64;
  }
  return OM_OK;
}

/* ---- Running ---- */

/* Scratch: float32 copies of the input and the result where the type is computed in float32, and
 * a result for an output that nothing reads. */
typedef struct layout {
  size_t elem_bytes;
  size_t x_elems;
  size_t y_elems;
  bool is_wide;
  bool has_own_y;
} layout;

static layout layout_of(const om_op_call *call, const om_window *window) {
  const om_tensor *x = call->inputs[0];
  layout l = {.elem_bytes = x->dtype == OM_DTYPE_F64 ? 8 : 4, .is_wide = om_widen_needed(x->dtype)};
  l.x_elems = l.is_wide ? om_size_align(om_tensor_elems(x), 16) : 0;
  l.has_own_y = l.is_wide || !call->outputs[0];
  l.y_elems =
      l.has_own_y ? (size_t)(window->batch * window->channels) * om_window_elems(window->out) : 0;
  return l;
}

static size_t scratch_bytes(const om_op_call *call) {
  om_window window;
  if (!om_pool_fit(call->params, call->inputs[0], &window)) return 0;
  const layout l = layout_of(call, &window);
  return (l.x_elems + l.y_elems) * l.elem_bytes;
}

static om_pool_window pool_window(const om_window *w) {
  om_pool_window p = {.planes = (size_t)(w->batch * w->channels)};
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    p.in[i] = w->in[i];
    p.out[i] = w->out[i];
    p.kernel[i] = w->kernel[i];
    p.stride[i] = w->stride[i];
    p.dilation[i] = w->dilation[i];
    p.pad_begin[i] = w->pad_begin[i];
    p.pad_end[i] = w->pad_end[i];
  }
  return p;
}

static om_pool_sum sum_kind(const om_pool_params *params) {
  if (params->kind == OM_POOL_LP) return OM_POOL_SUM_LP;
  return params->counts_padding ? OM_POOL_SUM_MEAN_PADDED : OM_POOL_SUM_MEAN;
}

static void run_typed(om_ctx *ctx,
                      const om_pool_params *params,
                      const om_pool_window *w,
                      bool is_f64,
                      const void *x,
                      void *y,
                      int64_t *indices) {
  const om_pool_sum kind = sum_kind(params);
  const size_t elems = (size_t)(w->in[0] * w->in[1] * w->in[2]);
  if (params->kind == OM_POOL_MAX) {
    if (is_f64) {
      om_pool_max_f64(ctx, w, params->is_column_major, x, y, indices);
    } else {
      om_pool_max_f32(ctx, w, params->is_column_major, x, y, indices);
    }
  } else if (params->is_global) {
    if (is_f64) {
      om_pool_global_f64(ctx, w->planes, elems, kind, params->exponent, x, y);
    } else {
      om_pool_global_f32(ctx, w->planes, elems, kind, params->exponent, x, y);
    }
  } else if (is_f64) {
    om_pool_sum_f64(ctx, w, kind, params->exponent, x, y);
  } else {
    om_pool_sum_f32(ctx, w, kind, params->exponent, x, y);
  }
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_pool_params *params = call->params;
  const om_tensor *x = call->inputs[0];
  om_tensor *y = call->outputs[0];
  om_tensor *indices = call->output_count > 1 ? call->outputs[1] : NULL;
  om_window window;
  if (!om_pool_fit(params, x, &window)) return om_window_fail(ctx, &window);
  const om_pool_window w = pool_window(&window);
  if (w.planes * om_window_elems(window.out) == 0) return OM_OK;
  const layout l = layout_of(call, &window);
  char *scratch = call->scratch;
  const void *source = l.is_wide ? om_widen(x, call->scratch) : x->data;
  void *target = l.has_own_y ? scratch + l.x_elems * l.elem_bytes : y->data;
  run_typed(
      ctx, params, &w, x->dtype == OM_DTYPE_F64, source, target, indices ? indices->data : NULL);
  if (l.is_wide && y) om_narrow(target, y);
  return OM_OK;
}

#define OM_POOL_ENTRY(name, outputs, types, resolve_fn) \
  {.domain = "",                                        \
   .type = name,                                        \
   .first_opset = 1,                                    \
   .min_inputs = 1,                                     \
   .max_inputs = 1,                                     \
   .min_outputs = 1,                                    \
   .max_outputs = outputs,                              \
   .dtypes = types,                                     \
   .params_bytes = sizeof(om_pool_params),              \
   .resolve = resolve_fn,                               \
   .infer = infer,                                      \
   .scratch_bytes = scratch_bytes,                      \
   .run = run}

extern const om_op om_ops_pool[];
const om_op om_ops_pool[] = {
    OM_POOL_ENTRY("AveragePool", 1, OM_DT_FLOAT, resolve_average),
    OM_POOL_ENTRY("GlobalAveragePool", 1, OM_DT_FLOAT, resolve_global_average),
    OM_POOL_ENTRY("GlobalLpPool", 1, OM_DT_FLOAT, resolve_global_lp),
    OM_POOL_ENTRY("GlobalMaxPool", 1, OM_DT_FLOAT, resolve_global_max),
    OM_POOL_ENTRY("LpPool", 1, OM_DT_FLOAT, resolve_lp),
    OM_POOL_ENTRY("MaxPool", 2, OM_DT_FLOAT | OM_DT(OM_DTYPE_I8) | OM_DT(OM_DTYPE_U8), resolve_max),
    {.type = NULL},
};
