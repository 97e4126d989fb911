/* Resize and Upsample (docs/exact.md, "Resize").
 *
 * Each axis that changes is a pass, the last axis first. Nearest copies elements of any type;
 * linear and cubic compute in float32, or in float64 for float64 and the wide integers.
 */
#include "ops/op_resize.h"

#include <math.h>

#include "cpu/exact/om_resize_exact.h"
#include "ops/op_widen.h"

/* ---- The shape rule ---- */

static om_status check_axes(om_ctx *ctx, const om_resize_params *params, uint32_t rank) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < params->axis_count; ++i) {
    const int64_t axis = params->axes[i];
    const uint32_t bit = 1u << (axis < 0 ? axis + rank : axis) % OM_MAX_RANK;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank || (seen & bit)) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "axes[%u] is %lld, which is outside the input's %u axes or there twice.",
                     i,
                     (long long)axis,
                     rank);
    }
    seen |= bit;
  }
  return OM_OK;
}

static om_status check_operand(
    om_ctx *ctx, const om_tensor *tensor, const char *name, om_dtype_set dtypes, size_t elems) {
  if (!tensor) return OM_OK;
  if ((dtypes & OM_DT(tensor->dtype)) == 0 || om_tensor_elems(tensor) != elems) {
    char text[OM_SHAPE_TEXT];
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "%s is %s of %s; %zu elements are needed.",
                   name,
                   om_shape_text(text, sizeof text, tensor->rank, tensor->dims),
                   om_dtype_name(tensor->dtype),
                   elems);
  }
  return OM_OK;
}

static om_status check_scales(om_ctx *ctx,
                              const om_resize_params *params,
                              const om_tensor *x,
                              const float *scales,
                              uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t in = x->dims[om_resize_axis_of(params, x->rank, i)];
    if (!(scales[i] > 0) || !((double)scales[i] * (double)in <= INT32_MAX)) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "The scale %g of an extent of %lld is not above 0, or gives 2^31 elements.",
                     (double)scales[i],
                     (long long)in);
    }
  }
  return OM_OK;
}

static om_status check_sizes(om_ctx *ctx,
                             const om_resize_params *params,
                             const om_tensor *x,
                             const int64_t *sizes,
                             uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t in = x->dims[om_resize_axis_of(params, x->rank, i)];
    if (sizes[i] < 0 || sizes[i] > INT32_MAX || in > INT32_MAX || (in == 0 && sizes[i] > 0)) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "An extent of %lld cannot become %lld.",
                     (long long)in,
                     (long long)sizes[i]);
    }
  }
  return OM_OK;
}

static om_status check_values(om_ctx *ctx,
                              const om_resize_params *params,
                              const om_op_call *call,
                              const om_tensor *scales,
                              const om_tensor *sizes) {
  const om_tensor *x = call->inputs[0];
  const uint32_t count = params->axis_count ? params->axis_count : x->rank;
  if (sizes) return check_sizes(ctx, params, x, sizes->data, count);
  return check_scales(ctx, params, x, scales ? scales->data : params->scales, count);
}

/* Checks what is there; *out_is_known says whether all of it is. */
static om_status check(om_ctx *ctx, const om_op_call *call, bool *out_is_known) {
  const om_resize_params *params = call->params;
  const om_tensor *x = call->inputs[0];
  const uint32_t count = params->axis_count ? params->axis_count : x->rank;
  const bool crops = params->coordinates == OM_RESIZE_TF_CROP_AND_RESIZE;
  const om_tensor *scales =
      om_resize_operand(call->inputs, call->input_count, params->scales_input);
  const om_tensor *sizes = om_resize_operand(call->inputs, call->input_count, params->sizes_input);
  const om_tensor *roi = om_resize_operand(call->inputs, call->input_count, params->roi_input);
  if (params->mode != OM_RESIZE_NEAREST && (OM_DT(x->dtype) & OM_DT_NUMBER) == 0) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "Elements of %s cannot be interpolated.", om_dtype_name(x->dtype));
  }
  OM_TRY(check_axes(ctx, params, x->rank));
  OM_TRY(check_operand(ctx, scales, "scales", OM_DT(OM_DTYPE_F32), count));
  OM_TRY(check_operand(ctx, sizes, "sizes", OM_DT(OM_DTYPE_I64), count));
  if (crops) {
    OM_TRY(check_operand(
        ctx, roi, "roi", OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F64), 2 * (size_t)count));
  }
  if ((scales && sizes) || (!scales && !sizes && params->scale_count != count) || (crops && !roi)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   crops && !roi ? "tf_crop_and_resize needs the input roi."
                                 : "Either scales or sizes must be given, one for each axis.");
  }
  *out_is_known = (!scales || scales->data) && (!sizes || sizes->data) && (!crops || roi->data);
  return *out_is_known ? check_values(ctx, params, call, scales, sizes) : OM_OK;
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  om_tensor *y = call->outputs[0];
  om_resize_shape shape;
  bool is_known = false;
  OM_TRY(check(ctx, call, &is_known));
  if (!y) return OM_OK;
  y->dtype = call->inputs[0]->dtype;
  y->rank = OM_RANK_UNKNOWN;
  if (!is_known) return OM_OK;
  om_resize_fit(call->params, call->inputs, call->input_count, &shape);
  y->rank = shape.rank;
  for (uint32_t i = 0; i < shape.rank; ++i) {
    if (shape.axes[i].out > INT32_MAX) {
      return OM_FAIL(
          ctx, OM_E_INVALID_INPUT, "Axis %u of the result has 2^31 elements or more.", i);
    }
    y->dims[i] = shape.axes[i].out;
  }
  return OM_OK;
}

/* ---- Running ---- */

/* Scratch, in bytes: the widened input and result, two intermediates that passes take turns with,
 * and the tables of the widest axis. */
typedef struct layout {
  size_t elem_bytes; /* of the computing type; of the type itself for nearest */
  bool is_converted;
  size_t x, y, turn[2], elems, weights, taps, bytes;
} layout;

static bool is_f64(const om_op_call *call) {
  const om_dtype dtype = call->inputs[0]->dtype;
  return dtype != OM_DTYPE_F32 && !om_widen_needed(dtype);
}

static size_t take(layout *l, size_t bytes) {
  const size_t at = l->bytes;
  l->bytes = om_size_align(at + bytes, 64);
  return at;
}

static layout layout_of(const om_op_call *call, const om_resize_shape *shape) {
  const om_resize_params *params = call->params;
  const om_tensor *x = call->inputs[0];
  const bool copies = params->mode == OM_RESIZE_NEAREST;
  layout l = {.elem_bytes = copies ? om_dtype_bits(x->dtype) / 8 : is_f64(call) ? 8 : 4};
  size_t elems = om_tensor_elems(x);
  size_t most[2] = {0, 0};
  size_t widest = 0;
  uint32_t pass = 0;
  uint32_t taps = 1;
  l.is_converted = !copies && x->dtype != OM_DTYPE_F32 && x->dtype != OM_DTYPE_F64;
  if (l.is_converted) l.x = take(&l, elems * l.elem_bytes);
  for (uint32_t i = shape->rank; i-- > 0;) {
    const om_resize_axis *axis = &shape->axes[i];
    if (axis->is_identity || axis->in == 0) continue;
    elems = elems / (size_t)axis->in * (size_t)axis->out;
    if (elems > most[pass % 2]) most[pass % 2] = elems;
    if ((size_t)axis->out * axis->taps > widest) widest = (size_t)axis->out * axis->taps;
    if (axis->taps > taps) taps = axis->taps;
    ++pass;
  }
  if (l.is_converted) l.y = take(&l, elems * l.elem_bytes);
  for (int i = 0; i < 2; ++i) l.turn[i] = take(&l, most[i] * l.elem_bytes);
  l.elems = take(&l, widest * sizeof(int32_t));
  l.weights = take(&l, widest * l.elem_bytes);
  l.taps = take(&l, taps * sizeof(double));
  return l;
}

static size_t scratch_bytes(const om_op_call *call) {
  om_resize_shape shape;
  om_resize_fit(call->params, call->inputs, call->input_count, &shape);
  return layout_of(call, &shape).bytes;
}

/* Fills the tables of one axis. */
static void make_table(const om_op_call *call, const om_resize_axis *axis, const layout *l) {
  const om_resize_params *params = call->params;
  char *scratch = call->scratch;
  int32_t *elems = (int32_t *)(scratch + l->elems);
  void *weights = scratch + l->weights;
  double *taps = (double *)(scratch + l->taps);
  for (int64_t o = 0; o < axis->out; ++o, elems += axis->taps) {
    if (!om_resize_taps(params, axis, o, elems, taps)) elems[0] = -1;
    if (params->mode == OM_RESIZE_NEAREST) continue;
    for (uint32_t t = 0; t < axis->taps; ++t) {
      const size_t at = (size_t)o * axis->taps + t;
      if (l->elem_bytes == 8) {
        ((double *)weights)[at] = taps[t];
      } else {
        ((float *)weights)[at] = (float)taps[t];
      }
    }
  }
}

#define OM_TO_F64(type)                                           \
  do {                                                            \
    const type *in = x->data;                                     \
    for (size_t i = 0; i < count; ++i) target[i] = (double)in[i]; \
  } while (0)

static void convert_in(const om_tensor *x, void *scratch) {
  const size_t count = om_tensor_elems(x);
  double *target = scratch;
  switch (x->dtype) {
    case OM_DTYPE_I32:
      OM_TO_F64(int32_t);
      break;
    case OM_DTYPE_I64:
      OM_TO_F64(int64_t);
      break;
    case OM_DTYPE_U32:
      OM_TO_F64(uint32_t);
      break;
    case OM_DTYPE_U64:
      OM_TO_F64(uint64_t);
      break;
    default:
      om_widen(x, scratch);
      break;
  }
}

/* Truncated and saturated; `least` and `past` are powers of two or 0, so exact in float64. */
#define OM_FROM_F64(type, least, past, greatest) \
  do {                                           \
    type *out = y->data;                         \
    for (size_t i = 0; i < count; ++i) {         \
      const double v = source[i];                \
      out[i] = v >= (past)    ? (greatest)       \
               : v >= (least) ? (type)v          \
               : v < (least)  ? (type)(least)    \
                              : 0;                \
    }                                            \
  } while (0)

static void convert_out(const void *scratch, const om_tensor *y) {
  const size_t count = om_tensor_elems(y);
  const double *source = scratch;
  switch (y->dtype) {
    case OM_DTYPE_I32:
      OM_FROM_F64(int32_t, -0x1p31, 0x1p31, INT32_MAX);
      break;
    case OM_DTYPE_I64:
      OM_FROM_F64(int64_t, -0x1p63, 0x1p63, INT64_MAX);
      break;
    case OM_DTYPE_U32:
      OM_FROM_F64(uint32_t, 0.0, 0x1p32, UINT32_MAX);
      break;
    case OM_DTYPE_U64:
      OM_FROM_F64(uint64_t, 0.0, 0x1p64, UINT64_MAX);
      break;
    default:
      om_narrow(scratch, y);
      break;
  }
}

/* The extrapolation value as an element of the computing type (16 bytes hold any). */
static void outside_element(const om_op_call *call, size_t elem_bytes, void *out_element) {
  const om_resize_params *params = call->params;
  const om_dtype dtype = call->inputs[0]->dtype;
  const double wide = (double)params->extrapolation_value;
  memset(out_element, 0, 16);
  if (params->mode == OM_RESIZE_NEAREST && dtype != OM_DTYPE_F32 && dtype != OM_DTYPE_F64) {
    const om_tensor one = om_tensor_of(dtype, 0, NULL, out_element);
    if (om_widen_needed(dtype)) {
      om_narrow(&params->extrapolation_value, &one);
    } else if (OM_DT(dtype) & OM_DT_INT) {
      convert_out(&wide, &one);
    }
  } else if (elem_bytes == 8) {
    memcpy(out_element, &wide, 8);
  } else {
    memcpy(out_element, &params->extrapolation_value, 4);
  }
}

static void run_pass(om_ctx *ctx,
                     const om_op_call *call,
                     const om_resize_pass *pass,
                     size_t elem_bytes,
                     const void *x,
                     void *y) {
  const om_resize_params *params = call->params;
  if (params->mode == OM_RESIZE_NEAREST) {
    om_resize_copy(ctx, pass, elem_bytes, x, y);
  } else if (elem_bytes == 8) {
    om_resize_run_f64(ctx, pass, x, y);
  } else {
    om_resize_run_f32(ctx, pass, x, y);
  }
}

/* Runs the passes from x to y; both are of the computing type. */
static void run_passes(om_ctx *ctx,
                       const om_op_call *call,
                       const om_resize_shape *shape,
                       const layout *l,
                       const void *x,
                       void *y) {
  char *scratch = call->scratch;
  unsigned char outside[16];
  size_t inner = 1;
  size_t elems = om_tensor_elems(call->inputs[0]);
  uint32_t left = 0;
  uint32_t turn = 0;
  outside_element(call, l->elem_bytes, outside);
  for (uint32_t i = 0; i < shape->rank; ++i) left += !shape->axes[i].is_identity;
  if (left == 0) memcpy(y, x, elems * l->elem_bytes);
  for (uint32_t i = shape->rank; i-- > 0;) {
    const om_resize_axis *axis = &shape->axes[i];
    if (!axis->is_identity) {
      void *target = --left == 0 ? y : scratch + l->turn[turn++ % 2];
      const om_resize_pass pass = {
          .outer = elems / inner / (size_t)axis->in,
          .in = (size_t)axis->in,
          .out = (size_t)axis->out,
          .inner = inner,
          .taps = axis->taps,
          .elems = (const int32_t *)(scratch + l->elems),
          .weights = scratch + l->weights,
          .outside = outside,
      };
      make_table(call, axis, l);
      run_pass(ctx, call, &pass, l->elem_bytes, x, target);
      elems = pass.outer * pass.out * inner;
      x = target;
    }
    inner *= (size_t)axis->out;
  }
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_tensor *y = call->outputs[0];
  om_resize_shape shape;
  if (!y || om_tensor_elems(y) == 0) return OM_OK;
  om_resize_fit(call->params, call->inputs, call->input_count, &shape);
  const layout l = layout_of(call, &shape);
  char *scratch = call->scratch;
  if (l.is_converted) convert_in(x, scratch + l.x);
  run_passes(ctx,
             call,
             &shape,
             &l,
             l.is_converted ? scratch + l.x : x->data,
             l.is_converted ? scratch + l.y : y->data);
  if (l.is_converted) convert_out(scratch + l.y, y);
  return OM_OK;
}

#define OM_RESIZE_TYPES                                                                 \
  (OM_DT_NUMBER | OM_DT(OM_DTYPE_BOOL) | OM_DT(OM_DTYPE_STRING) | OM_DT(OM_DTYPE_C64) | \
   OM_DT(OM_DTYPE_C128))

#define OM_RESIZE_ENTRY(name, first, last, least, most, scales) \
  {.domain = "",                                                \
   .type = name,                                                \
   .first_opset = first,                                        \
   .last_opset = last,                                          \
   .min_inputs = least,                                         \
   .max_inputs = most,                                          \
   .min_outputs = 1,                                            \
   .max_outputs = 1,                                            \
   .dtypes = OM_RESIZE_TYPES,                                   \
   .float32_inputs = (scales),                                  \
   .params_bytes = sizeof(om_resize_params),                    \
   .resolve = om_resize_resolve,                                \
   .infer = infer,                                              \
   .scratch_bytes = scratch_bytes,                              \
   .run = run}

extern const om_op om_ops_resize[];
const om_op om_ops_resize[] = {
    OM_RESIZE_ENTRY("Resize", 10, 10, 2, 2, 1u << 1),
    OM_RESIZE_ENTRY("Resize", 11, 0, 1, 4, 1u << 2),
    OM_RESIZE_ENTRY("Upsample", 7, 8, 1, 1, 0),
    OM_RESIZE_ENTRY("Upsample", 9, 9, 2, 2, 1u << 1),
    {.type = NULL},
};
