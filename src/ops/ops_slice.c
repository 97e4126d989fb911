/* Parts and repetitions: Slice, Expand, Tile, Pad.
 *
 * All are one strided copy; Pad fills its result first, and its other modes walk the result
 * element by element.
 */
#include <inttypes.h>

#include "base/om_float16.h"
#include "base/om_thread.h"
#include "ops/op_nibbles.h"
#include "ops/op_slice.h"

static om_status run_copy(om_ctx *ctx, const om_op_call *call, const om_strided *copy) {
  const om_tensor *x = call->inputs[0];
  om_strided_copy(ctx, copy, om_rule_elem_bytes(x->dtype), x->data, call->outputs[0]->data);
  return OM_OK;
}

/* ---- Slice ---- */

static om_status slice_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_slice_params *p = params;
  OM_TRY(om_rule_list_attr(ctx, node, "starts", &p->starts));
  OM_TRY(om_rule_list_attr(ctx, node, "ends", &p->ends));
  return om_rule_list_attr(ctx, node, "axes", &p->axes);
}

typedef struct om_slice_lists {
  int64_t starts[OM_MAX_RANK], ends[OM_MAX_RANK], axes[OM_MAX_RANK], steps[OM_MAX_RANK];
  uint32_t count;
} om_slice_lists;

/* Checks that the lists go together, whichever form the opset has. */
static om_status slice_check(om_ctx *ctx, const om_op_call *call) {
  static const char *const names[] = {NULL, "starts", "ends", "axes", "steps"};
  const om_slice_params *p = call->params;
  size_t starts = 0;
  bool fits = true;
  if (call->node->opset < 10) {
    starts = p->starts.count;
    fits = starts <= OM_MAX_RANK && p->ends.count == starts &&
           (!p->axes.is_given || p->axes.count == starts);
  }
  for (uint32_t i = 1; i < call->input_count; ++i) {
    if (!call->inputs[i]) continue;
    OM_TRY(om_rule_check_list(ctx, call->inputs[i], names[i], OM_MAX_RANK));
    if (i == 1) starts = om_tensor_elems(call->inputs[i]);
    fits = fits && om_tensor_elems(call->inputs[i]) == starts;
  }
  if (fits) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "There are %zu starts, and not as many ends, axes or steps.",
                 starts);
}

/* Reads the lists that slice_check accepted. */
static void slice_read(const om_op_call *call, om_slice_lists *out) {
  const om_slice_params *p = call->params;
  const om_tensor *axes = om_rule_input(call, 3);
  const om_tensor *steps = om_rule_input(call, 4);
  bool has_attrs = call->node->opset < 10;
  if (has_attrs) {
    out->count = (uint32_t)p->starts.count;
  } else {
    out->count = om_rule_read_list(call->inputs[1], out->starts);
    om_rule_read_list(call->inputs[2], out->ends);
  }
  for (uint32_t i = 0; i < out->count; ++i) {
    if (has_attrs) out->starts[i] = p->starts.values[i];
    if (has_attrs) out->ends[i] = p->ends.values[i];
    out->axes[i] = has_attrs && p->axes.is_given ? p->axes.values[i] : (int64_t)i;
    out->steps[i] = 1;
  }
  if (axes) om_rule_read_list(axes, out->axes);
  if (steps) om_rule_read_list(steps, out->steps);
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/* The first element and the number of elements that a slice takes from an axis. */
static void slice_range(int64_t extent,
                        int64_t start,
                        int64_t end,
                        int64_t step,
                        int64_t *out_first,
                        int64_t *out_count) {
  *out_first = 0;
  *out_count = 0;
  if (extent == 0) return;
  if (start < 0) start = start < -extent ? -1 : start + extent;
  if (end < 0) end = end < -extent ? -1 : end + extent;
  uint64_t walk = step > 0 ? (uint64_t)step : (uint64_t)-(step + 1) + 1;
  start = step > 0 ? clamp(start, 0, extent) : clamp(start, 0, extent - 1);
  end = step > 0 ? clamp(end, 0, extent) : clamp(end, -1, extent - 1);
  int64_t span = step > 0 ? end - start : start - end;
  *out_first = start;
  if (span > 0) *out_count = (int64_t)(((uint64_t)span - 1) / walk + 1);
}

static bool slice_is_known(const om_op_call *call) {
  for (uint32_t i = 1; i < call->input_count; ++i) {
    if (call->inputs[i] && !om_rule_is_known(call->inputs[i])) return false;
  }
  return true;
}

static om_status slice_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_slice_lists lists = {.count = 0};
  uint32_t axes[OM_MAX_RANK] = {0};
  int64_t dims[OM_MAX_RANK] = {0};
  OM_TRY(om_rule_check_bytes(ctx, x));
  if (!slice_is_known(call)) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  OM_TRY(slice_check(ctx, call));
  slice_read(call, &lists);
  OM_TRY(om_rule_axes(ctx, lists.axes, lists.count, x->rank, axes));
  for (uint32_t i = 0; i < x->rank; ++i) dims[i] = x->dims[i];
  for (uint32_t i = 0; i < lists.count; ++i) {
    int64_t first = 0;
    if (lists.steps[i] == 0) return OM_FAIL(ctx, OM_E_INVALID_INPUT, "A step is 0.");
    slice_range(
        x->dims[axes[i]], lists.starts[i], lists.ends[i], lists.steps[i], &first, &dims[axes[i]]);
  }
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
}

void om_slice_copy(const om_op_call *call, om_strided *out) {
  const om_tensor *x = call->inputs[0];
  om_slice_lists lists = {.count = 0};
  *out = (om_strided){.rank = x->rank};
  slice_read(call, &lists);
  for (uint32_t i = 0; i < x->rank; ++i) out->extents[i] = x->dims[i];
  om_dense_strides(x->rank, x->dims, out->source_strides);
  for (uint32_t i = 0; i < lists.count; ++i) {
    int64_t first = 0;
    uint32_t axis = (uint32_t)(lists.axes[i] < 0 ? lists.axes[i] + x->rank : lists.axes[i]);
    slice_range(
        x->dims[axis], lists.starts[i], lists.ends[i], lists.steps[i], &first, &out->extents[axis]);
    out->source_offset += first * out->source_strides[axis];
    if (out->extents[axis] > 1) out->source_strides[axis] *= lists.steps[i];
  }
  om_dense_strides(x->rank, out->extents, out->target_strides);
}

static bool slice_move(const om_op_call *call, uint32_t output, om_strided *out) {
  (void)output;
  om_slice_copy(call, out);
  return true;
}

static om_status slice_run(om_ctx *ctx, const om_op_call *call) {
  om_strided copy;
  om_slice_copy(call, &copy);
  return run_copy(ctx, call, &copy);
}

/* ---- Expand, Tile ---- */

static om_status check_not_negative(om_ctx *ctx,
                                    const char *what,
                                    uint32_t count,
                                    const int64_t *list) {
  for (uint32_t i = 0; i < count; ++i) {
    if (list[i] < 0) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "Element %" PRIu32 " of the %s is %" PRId64 ".",
                     i,
                     what,
                     list[i]);
    }
  }
  return OM_OK;
}

static om_status expand_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *shape = call->inputs[1];
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t rank = 0;
  OM_TRY(om_rule_check_bytes(ctx, x));
  if (!om_rule_is_known(shape)) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  OM_TRY(om_rule_ints(ctx, shape, "shape's extents", OM_MAX_RANK, dims, &rank));
  OM_TRY(check_not_negative(ctx, "shape", rank, dims));
  OM_TRY(om_rule_broadcast(ctx, x, &rank, dims));
  return om_rule_set(ctx, call, 0, x->dtype, rank, dims);
}

void om_expand_copy(const om_op_call *call, om_strided *out) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *y = call->outputs[0];
  const uint32_t shift = y->rank - x->rank;
  int64_t strides[OM_MAX_RANK] = {0};
  *out = (om_strided){.rank = y->rank};
  om_dense_strides(x->rank, x->dims, strides);
  om_dense_strides(y->rank, y->dims, out->target_strides);
  for (uint32_t i = 0; i < y->rank; ++i) {
    out->extents[i] = y->dims[i];
    if (i >= shift && x->dims[i - shift] != 1) out->source_strides[i] = strides[i - shift];
  }
}

static bool expand_move(const om_op_call *call, uint32_t output, om_strided *out) {
  (void)output;
  om_expand_copy(call, out);
  return true;
}

static om_status expand_run(om_ctx *ctx, const om_op_call *call) {
  om_strided copy;
  om_expand_copy(call, &copy);
  return run_copy(ctx, call, &copy);
}

static om_status tile_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *repeats = call->inputs[1];
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t count = 0;
  OM_TRY(om_rule_check_bytes(ctx, x));
  if (!om_rule_is_known(repeats)) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  OM_TRY(om_rule_ints(ctx, repeats, "repeats", OM_MAX_RANK, dims, &count));
  OM_TRY(check_not_negative(ctx, "repeats", count, dims));
  if (count != x->rank) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "There are %" PRIu32 " repeats for a tensor of rank %" PRIu32 ".",
                   count,
                   x->rank);
  }
  for (uint32_t i = 0; i < count; ++i) {
    size_t extent = 0;
    if (!om_size_mul((size_t)dims[i], (size_t)x->dims[i], &extent) || extent > INT64_MAX) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "%" PRId64 " repeats of %" PRId64 " elements on axis %" PRIu32 " overflow.",
                     dims[i],
                     x->dims[i],
                     i);
    }
    dims[i] = (int64_t)extent;
  }
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
}

void om_tile_copy(const om_op_call *call, om_strided *out) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *y = call->outputs[0];
  int64_t from[OM_MAX_RANK] = {0};
  int64_t to[OM_MAX_RANK] = {0};
  *out = (om_strided){.rank = 2 * x->rank};
  om_dense_strides(x->rank, x->dims, from);
  om_dense_strides(y->rank, y->dims, to);
  for (uint32_t i = 0; i < x->rank; ++i) {
    const uint32_t outer = 2 * i;
    out->extents[outer] = x->dims[i] == 0 ? 0 : y->dims[i] / x->dims[i];
    out->target_strides[outer] = to[i] * x->dims[i];
    out->extents[outer + 1] = x->dims[i];
    out->source_strides[outer + 1] = from[i];
    out->target_strides[outer + 1] = to[i];
  }
}

static om_status tile_run(om_ctx *ctx, const om_op_call *call) {
  om_strided copy;
  om_tile_copy(call, &copy);
  return run_copy(ctx, call, &copy);
}

/* ---- Pad ---- */

static om_status pad_resolve(om_ctx *ctx, const om_node *node, void *params) {
  static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
  om_pad_params *p = params;
  om_string mode;
  OM_TRY(om_node_attr_text(ctx, node, "mode", "constant", &mode));
  OM_TRY(om_node_attr_float(ctx, node, "value", 0.0f, &p->value));
  OM_TRY(om_rule_list_attr(ctx, node, node->opset < 2 ? "paddings" : "pads", &p->pads));
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    p->mode = (om_pad_mode)i;
    if (om_string_is(mode, names[i])) return OM_OK;
  }
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute mode is not one of Pad's.");
}

static om_status pad_check(om_ctx *ctx, const om_op_call *call) {
  const om_pad_params *p = call->params;
  const uint32_t rank = call->inputs[0]->rank;
  const om_tensor *pads = om_rule_input(call, 1);
  const om_tensor *axes = om_rule_input(call, 3);
  int64_t given[OM_MAX_RANK] = {0};
  uint32_t plain[OM_MAX_RANK] = {0};
  uint32_t axis_count = rank;
  size_t count = p->pads.count;
  if (axes) {
    OM_TRY(om_rule_ints(ctx, axes, "axes", OM_MAX_RANK, given, &axis_count));
    OM_TRY(om_rule_axes(ctx, given, axis_count, rank, plain));
  }
  if (pads) {
    OM_TRY(om_rule_check_list(ctx, pads, "pads", 2 * OM_MAX_RANK));
    count = om_tensor_elems(pads);
  }
  if (count == 2 * (size_t)axis_count) return OM_OK;
  return OM_FAIL(
      ctx, OM_E_INVALID_MODEL, "There are %zu pads for %" PRIu32 " axes.", count, axis_count);
}

void om_pad_read(const om_op_call *call, om_pads *out) {
  const om_pad_params *p = call->params;
  const uint32_t rank = call->inputs[0]->rank;
  const om_tensor *pads = om_rule_input(call, 1);
  const om_tensor *axis_input = om_rule_input(call, 3);
  int64_t list[2 * OM_MAX_RANK] = {0};
  int64_t axes[OM_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  uint32_t count = axis_input ? om_rule_read_list(axis_input, axes) : rank;
  *out = (om_pads){.before = {0}};
  if (pads) om_rule_read_list(pads, list);
  for (size_t i = 0; !pads && i < p->pads.count; ++i) list[i] = p->pads.values[i];
  for (uint32_t i = 0; i < count; ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)rank : axes[i];
    out->before[axis] = list[i];
    out->behind[axis] = list[count + i];
  }
}

static om_status pad_extent(om_ctx *ctx,
                            om_pad_mode mode,
                            int64_t extent,
                            int64_t before,
                            int64_t behind,
                            int64_t *out_extent) {
  const int64_t most = INT64_MAX / 4;
  bool fits = before >= -most && before <= most && behind >= -most && behind <= most;
  if (fits) *out_extent = extent + before + behind;
  if (fits && *out_extent >= 0 && (mode == OM_PAD_CONSTANT || extent > 0 || *out_extent == 0)) {
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Pads of %" PRId64 " and %" PRId64 " do not fit an extent of %" PRId64 ".",
                 before,
                 behind,
                 extent);
}

static om_status pad_infer(om_ctx *ctx, const om_op_call *call) {
  const om_pad_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *pads = om_rule_input(call, 1);
  const om_tensor *value = om_rule_input(call, 2);
  const om_tensor *axes = om_rule_input(call, 3);
  int64_t dims[OM_MAX_RANK] = {0};
  om_pads read;
  if (value && (value->dtype != x->dtype || om_tensor_elems(value) != 1)) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The value is no single %s.", om_dtype_name(x->dtype));
  }
  if ((pads && !om_rule_is_known(pads)) || (axes && !om_rule_is_known(axes))) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  OM_TRY(pad_check(ctx, call));
  om_pad_read(call, &read);
  for (uint32_t i = 0; i < x->rank; ++i) {
    OM_TRY(pad_extent(ctx, p->mode, x->dims[i], read.before[i], read.behind[i], &dims[i]));
  }
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
}

/* The part of the input that the result keeps. */
static void pad_copy(const om_op_call *call, om_strided *out) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *y = call->outputs[0];
  om_pads pads;
  om_pad_read(call, &pads);
  *out = (om_strided){.rank = x->rank};
  om_dense_strides(x->rank, x->dims, out->source_strides);
  om_dense_strides(y->rank, y->dims, out->target_strides);
  for (uint32_t i = 0; i < x->rank; ++i) {
    int64_t from = pads.before[i] < 0 ? -pads.before[i] : 0;
    int64_t to = pads.behind[i] < 0 ? x->dims[i] + pads.behind[i] : x->dims[i];
    out->extents[i] = to > from ? to - from : 0;
    out->source_offset += from * out->source_strides[i];
    out->target_offset += (pads.before[i] > 0 ? pads.before[i] : 0) * out->target_strides[i];
  }
}

/* The source position for a result position relative to the source's first element. */
static int64_t pad_source(om_pad_mode mode, int64_t at, int64_t extent) {
  if (mode == OM_PAD_EDGE) return clamp(at, 0, extent - 1);
  int64_t period = mode == OM_PAD_WRAP ? extent : 2 * (extent - 1);
  if (period == 0) return 0;
  at %= period;
  if (at < 0) at += period;
  return at < extent ? at : period - at;
}

typedef struct om_pad_job {
  const om_op_call *call;
  om_pad_mode mode;
  om_pads pads;
  int64_t strides[OM_MAX_RANK]; /* of the source */
} om_pad_job;

static void pad_range(void *arg, size_t begin, size_t end) {
  const om_pad_job *job = arg;
  const om_tensor *x = job->call->inputs[0];
  const om_tensor *y = job->call->outputs[0];
  const size_t bytes = om_rule_elem_bytes(x->dtype);
  for (size_t i = begin; i < end; ++i) {
    size_t rest = i;
    int64_t from = 0;
    for (uint32_t axis = y->rank; axis-- > 0;) {
      int64_t at = (int64_t)(rest % (size_t)y->dims[axis]) - job->pads.before[axis];
      rest /= (size_t)y->dims[axis];
      from += pad_source(job->mode, at, x->dims[axis]) * job->strides[axis];
    }
    memcpy((uint8_t *)y->data + i * bytes, (const uint8_t *)x->data + (size_t)from * bytes, bytes);
  }
}

/* The value of opsets below 11 stands in an attribute; only float types had Pad then. */
static void pad_attr_value(om_dtype dtype, float value, uint8_t *out_elem) {
  double wide = (double)value;
  uint16_t half = dtype == OM_DTYPE_F16 ? om_f16_from_f32(value) : om_bf16_from_f32(value);
  if (dtype == OM_DTYPE_F32) memcpy(out_elem, &value, sizeof value);
  if (dtype == OM_DTYPE_F64) memcpy(out_elem, &wide, sizeof wide);
  if (dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16) memcpy(out_elem, &half, sizeof half);
}

static om_status pad_bytes(om_ctx *ctx, const om_op_call *call) {
  const om_pad_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *value = om_rule_input(call, 2);
  om_tensor *y = call->outputs[0];
  const size_t bytes = om_rule_elem_bytes(x->dtype);
  uint8_t elem[sizeof(om_string)] = {0};
  if (p->mode != OM_PAD_CONSTANT) {
    om_pad_job job = {.call = call, .mode = p->mode};
    om_pad_read(call, &job.pads);
    om_dense_strides(x->rank, x->dims, job.strides);
    om_parallel_for(ctx, om_tensor_elems(y), 4096, pad_range, &job);
    return OM_OK;
  }
  if (value) {
    memcpy(elem, value->data, bytes);
  } else {
    pad_attr_value(x->dtype, p->value, elem);
  }
  om_fill(ctx, y->data, om_tensor_elems(y), elem, bytes);
  om_strided copy;
  pad_copy(call, &copy);
  return run_copy(ctx, call, &copy);
}

static size_t pad_scratch(const om_op_call *call) {
  const om_tensor *y = call->outputs[0];
  if (!om_is_nibble(call->inputs[0]->dtype) || !y) return 0;
  return om_tensor_elems(call->inputs[0]) + om_tensor_elems(y) + 1;
}

/* Elements of 4 bits are padded as bytes. */
static om_status pad_run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  if (!om_is_nibble(x->dtype)) return pad_bytes(ctx, call);
  uint8_t *scratch = call->scratch;
  const om_tensor *inputs[4] = {NULL};
  om_tensor wide = om_nibbles_unpack(x, scratch);
  om_tensor value, y = *call->outputs[0];
  om_tensor *outputs[1] = {&y};
  om_op_call bytes = *call;
  for (uint32_t i = 0; i < call->input_count && i < 4; ++i) inputs[i] = call->inputs[i];
  inputs[0] = &wide;
  if (inputs[2]) {
    value = om_nibbles_unpack(inputs[2], scratch + om_tensor_elems(x));
    inputs[2] = &value;
  }
  y.dtype = OM_DTYPE_U8;
  y.data = scratch + om_tensor_elems(x) + 1;
  bytes.inputs = inputs;
  bytes.outputs = outputs;
  OM_TRY(pad_bytes(ctx, &bytes));
  om_nibbles_pack(y.data, call->outputs[0]);
  return OM_OK;
}

const om_op om_ops_slice[] = {
    {.domain = "",
     .type = "Slice",
     .first_opset = 1,
     .last_opset = 9,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_BYTES,
     .params_bytes = sizeof(om_slice_params),
     .resolve = slice_resolve,
     .infer = slice_infer,
     .run = slice_run,
     .describe_move = slice_move},
    {.domain = "",
     .type = "Slice",
     .first_opset = 10,
     OM_RULE_COUNTS(3, 5, 1, 1),
     .dtypes = OM_DT_BYTES,
     .infer = slice_infer,
     .run = slice_run,
     .describe_move = slice_move},
    {.domain = "",
     .type = "Expand",
     .first_opset = 8,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_BYTES,
     .infer = expand_infer,
     .run = expand_run,
     .describe_move = expand_move},
    {.domain = "",
     .type = "Tile",
     .first_opset = 6,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_BYTES,
     .infer = tile_infer,
     .run = tile_run},
    {.domain = "",
     .type = "Pad",
     .first_opset = 1,
     .last_opset = 10,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_pad_params),
     .resolve = pad_resolve,
     .infer = pad_infer,
     .run = pad_run},
    {.domain = "",
     .type = "Pad",
     .first_opset = 11,
     OM_RULE_COUNTS(2, 4, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_pad_params),
     .resolve = pad_resolve,
     .infer = pad_infer,
     .scratch_bytes = pad_scratch,
     .run = pad_run},
    {.type = NULL},
};
