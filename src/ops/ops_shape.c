/* Shapes as data, and data under another shape: Shape, Size, Reshape, Flatten, Squeeze, Unsqueeze,
 * Identity.
 *
 * But for Shape and Size each of them copies its input's bytes; a device makes a view of it.
 */
#include <inttypes.h>

#include "cpu/exact/om_strided.h"
#include "ops/op_nested.h"
#include "ops/op_shape.h"

static om_status copy_run(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  const om_tensor *x = call->inputs[0];
  om_tensor *y = om_rule_output(call, 0);
  size_t bytes = 0;
  if (x->dtype == OM_DTYPE_STRING) {
    bytes = om_tensor_elems(x) * sizeof(om_string);
  } else if (!om_shape_bytes(x->dtype, x->rank, x->dims, &bytes)) {
    bytes = 0;
  }
  if (y && bytes != 0 && y->data != x->data) memcpy(y->data, x->data, bytes);
  return OM_OK;
}

/* ---- Shape, Size ---- */

static om_status shape_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_shape_params *p = params;
  OM_TRY(om_node_attr_int(ctx, node, "start", 0, &p->start));
  return om_node_attr_int(ctx, node, "end", INT64_MAX, &p->end);
}

static uint32_t clamp_axis(int64_t axis, uint32_t rank) {
  if (axis < 0) axis = axis < -(int64_t)rank ? 0 : axis + (int64_t)rank;
  return axis > (int64_t)rank ? rank : (uint32_t)axis;
}

static om_status shape_infer(om_ctx *ctx, const om_op_call *call) {
  const om_shape_params *p = call->params;
  uint32_t begin = clamp_axis(p->start, call->inputs[0]->rank);
  uint32_t end = clamp_axis(p->end, call->inputs[0]->rank);
  return om_rule_set(ctx, call, 0, OM_DTYPE_I64, 1, (int64_t[]){end > begin ? end - begin : 0});
}

static om_status shape_run(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  const om_shape_params *p = call->params;
  uint32_t begin = clamp_axis(p->start, call->inputs[0]->rank);
  int64_t *y = call->outputs[0]->data;
  for (int64_t i = 0; i < call->outputs[0]->dims[0]; ++i) y[i] = call->inputs[0]->dims[begin + i];
  return OM_OK;
}

static om_status size_infer(om_ctx *ctx, const om_op_call *call) {
  return om_rule_set(ctx, call, 0, OM_DTYPE_I64, 0, NULL);
}

static om_status size_run(om_ctx *ctx, const om_op_call *call) {
  (void)ctx;
  *(int64_t *)call->outputs[0]->data = (int64_t)om_tensor_elems(call->inputs[0]);
  return OM_OK;
}

/* ---- Reshape, Flatten ---- */

static om_status reshape_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_reshape_params *p = params;
  int64_t allow_zero = 0;
  OM_TRY(om_node_attr_int(ctx, node, "allowzero", 0, &allow_zero));
  p->allow_zero = allow_zero != 0;
  return om_rule_list_attr(ctx, node, "shape", &p->shape);
}

static om_status reshape_fail(om_ctx *ctx,
                              const om_tensor *x,
                              uint32_t rank,
                              const int64_t *shape) {
  char from[OM_SHAPE_TEXT];
  char to[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "A tensor of shape %s does not fit the shape %s.",
                 om_shape_text(from, sizeof from, x->rank, x->dims),
                 om_shape_text(to, sizeof to, rank, shape));
}

/* Replaces 0 and -1 in the wanted shape by what they stand for. */
static om_status reshape_dims(om_ctx *ctx,
                              const om_tensor *x,
                              bool allow_zero,
                              uint32_t rank,
                              const int64_t *shape,
                              int64_t *out_dims) {
  uint32_t open = UINT32_MAX; /* the -1 */
  size_t known = 1;
  bool overflows = false;
  for (uint32_t i = 0; i < rank; ++i) {
    out_dims[i] = shape[i];
    if (shape[i] == 0 && !allow_zero) {
      if (i >= x->rank) return reshape_fail(ctx, x, rank, shape);
      out_dims[i] = x->dims[i];
    }
    if (shape[i] < -1 || (shape[i] == -1 && open != UINT32_MAX)) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     shape[i] == -1 ? "The shape has more than one -1 (at %" PRIu32 "): %" PRId64
                                      "."
                                    : "The shape's element %" PRIu32 " is %" PRId64 ".",
                     i,
                     shape[i]);
    }
    if (shape[i] == -1) {
      open = i;
    } else {
      overflows |= !om_size_mul(known, (size_t)out_dims[i], &known);
    }
  }
  size_t elems = om_tensor_elems(x);
  if (overflows) return reshape_fail(ctx, x, rank, shape);
  if (open == UINT32_MAX) return known == elems ? OM_OK : reshape_fail(ctx, x, rank, shape);
  if (known == 0 || elems % known != 0) return reshape_fail(ctx, x, rank, shape);
  out_dims[open] = (int64_t)(elems / known);
  return OM_OK;
}

static om_status reshape_infer(om_ctx *ctx, const om_op_call *call) {
  const om_reshape_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *wanted = om_rule_input(call, 1);
  int64_t shape[OM_MAX_RANK] = {0};
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t rank = 0;
  if (wanted) {
    if (!om_rule_is_known(wanted)) {
      om_rule_set_unknown(call, 0, x->dtype);
      return OM_OK;
    }
    OM_TRY(om_rule_ints(ctx, wanted, "shape's extents", OM_MAX_RANK, shape, &rank));
  } else {
    if (!p->shape.is_given || p->shape.count > OM_MAX_RANK) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The shape has %zu extents.", p->shape.count);
    }
    rank = (uint32_t)p->shape.count;
    for (uint32_t i = 0; i < rank; ++i) shape[i] = p->shape.values[i];
  }
  OM_TRY(reshape_dims(ctx, x, p->allow_zero, rank, shape, dims));
  return om_rule_set(ctx, call, 0, x->dtype, rank, dims);
}

static om_status flatten_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_flatten_params *p = params;
  return om_node_attr_int(ctx, node, "axis", 1, &p->axis);
}

static om_status flatten_infer(om_ctx *ctx, const om_op_call *call) {
  const om_flatten_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  uint32_t axis = x->rank; /* the rank itself is allowed */
  if (p->axis != (int64_t)x->rank) OM_TRY(om_rule_axis(ctx, p->axis, x->rank, &axis));
  int64_t dims[2] = {(int64_t)om_rule_product(x->dims, 0, axis),
                     (int64_t)om_rule_product(x->dims, axis, x->rank)};
  return om_rule_set(ctx, call, 0, x->dtype, 2, dims);
}

/* ---- Squeeze, Unsqueeze ---- */

static om_status squeeze_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_squeeze_params *p = params;
  return om_rule_list_attr(ctx, node, "axes", &p->axes);
}

/* The axes from the input or the attribute. *out_count UINT32_MAX: none are given. False: they
 * are not known yet. */
static om_status squeeze_axes(om_ctx *ctx,
                              const om_op_call *call,
                              int64_t *out_axes,
                              uint32_t *out_count,
                              bool *out_is_known) {
  const om_squeeze_params *p = call->params;
  const om_tensor *axes = om_rule_input(call, 1);
  *out_count = UINT32_MAX;
  *out_is_known = true;
  if (axes) {
    *out_is_known = om_rule_is_known(axes);
    return *out_is_known ? om_rule_ints(ctx, axes, "axes", OM_MAX_RANK, out_axes, out_count)
                         : OM_OK;
  }
  if (!p->axes.is_given) return OM_OK;
  if (p->axes.count > OM_MAX_RANK) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "There are %zu axes.", p->axes.count);
  }
  *out_count = (uint32_t)p->axes.count;
  for (uint32_t i = 0; i < *out_count; ++i) out_axes[i] = p->axes.values[i];
  return OM_OK;
}

static om_status squeeze_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  int64_t list[OM_MAX_RANK] = {0};
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t axes[OM_MAX_RANK] = {0};
  uint32_t count = 0;
  uint32_t dropped = 0; /* a bit an axis */
  bool is_known = true;
  OM_TRY(squeeze_axes(ctx, call, list, &count, &is_known));
  if (!is_known) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  if (count == UINT32_MAX) {
    for (uint32_t i = 0; i < x->rank; ++i) dropped |= (uint32_t)(x->dims[i] == 1) << i;
  } else {
    OM_TRY(om_rule_axes(ctx, list, count, x->rank, axes));
    for (uint32_t i = 0; i < count; ++i) dropped |= 1u << axes[i];
  }
  uint32_t rank = 0;
  for (uint32_t i = 0; i < x->rank; ++i) {
    if (!(dropped & (1u << i))) {
      dims[rank++] = x->dims[i];
    } else if (x->dims[i] != 1) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "The axis %" PRIu32 " has %" PRId64 " elements; only an extent of 1 can go.",
                     i,
                     x->dims[i]);
    }
  }
  return om_rule_set(ctx, call, 0, x->dtype, rank, dims);
}

static om_status unsqueeze_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  int64_t list[OM_MAX_RANK] = {0};
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t axes[OM_MAX_RANK] = {0};
  uint32_t count = 0;
  uint32_t inserted = 0;
  bool is_known = true;
  OM_TRY(squeeze_axes(ctx, call, list, &count, &is_known));
  if (!is_known) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  if (count == UINT32_MAX) return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The axes are missing.");
  uint32_t rank = x->rank + count;
  if (rank > OM_MAX_RANK) return om_rule_set(ctx, call, 0, x->dtype, rank, dims);
  OM_TRY(om_rule_axes(ctx, list, count, rank, axes));
  for (uint32_t i = 0; i < count; ++i) inserted |= 1u << axes[i];
  for (uint32_t i = 0, from = 0; i < rank; ++i) {
    dims[i] = inserted & (1u << i) ? 1 : x->dims[from++];
  }
  return om_rule_set(ctx, call, 0, x->dtype, rank, dims);
}

/* ---- Identity ---- */

static om_status identity_infer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  if (om_dtype_is_nested(x->dtype)) return om_nested_infer_copy(ctx, call, x);
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

static om_status identity_run(om_ctx *ctx, const om_op_call *call) {
  if (!om_dtype_is_nested(call->inputs[0]->dtype)) return copy_run(ctx, call);
  om_nested_run_copy(call, call->inputs[0]);
  return OM_OK;
}

/* All elements in their order. */
static bool copy_move(const om_op_call *call, uint32_t output, om_strided *out) {
  (void)output;
  *out = (om_strided){.rank = 1,
                      .extents = {(int64_t)om_tensor_elems(call->inputs[0])},
                      .source_strides = {1},
                      .target_strides = {1}};
  return true;
}

const om_op om_ops_shape[] = {
    {.domain = "",
     .type = "Shape",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_shape_params),
     .shaped_inputs = 1u << 0,
     .resolve = shape_resolve,
     .infer = shape_infer,
     .run = shape_run},
    {.domain = "",
     .type = "Size",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ALL,
     .shaped_inputs = 1u << 0,
     .infer = size_infer,
     .run = size_run},
    {.domain = "",
     .type = "Reshape",
     .first_opset = 1,
     .last_opset = 4,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_reshape_params),
     .resolve = reshape_resolve,
     .infer = reshape_infer,
     .run = copy_run,
     .describe_move = copy_move},
    {.domain = "",
     .type = "Reshape",
     .first_opset = 5,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_reshape_params),
     .resolve = reshape_resolve,
     .infer = reshape_infer,
     .run = copy_run,
     .describe_move = copy_move},
    {.domain = "",
     .type = "Flatten",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_flatten_params),
     .resolve = flatten_resolve,
     .infer = flatten_infer,
     .run = copy_run,
     .describe_move = copy_move},
    {.domain = "",
     .type = "Squeeze",
     .first_opset = 1,
     .last_opset = 12,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_squeeze_params),
     .resolve = squeeze_resolve,
     .infer = squeeze_infer,
     .run = copy_run,
     .describe_move = copy_move},
    {.domain = "",
     .type = "Squeeze",
     .first_opset = 13,
     OM_RULE_COUNTS(1, 2, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_squeeze_params),
     .resolve = squeeze_resolve,
     .infer = squeeze_infer,
     .run = copy_run,
     .describe_move = copy_move},
    {.domain = "",
     .type = "Unsqueeze",
     .first_opset = 1,
     .last_opset = 12,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_squeeze_params),
     .resolve = squeeze_resolve,
     .infer = unsqueeze_infer,
     .run = copy_run,
     .describe_move = copy_move},
    {.domain = "",
     .type = "Unsqueeze",
     .first_opset = 13,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_squeeze_params),
     .resolve = squeeze_resolve,
     .infer = unsqueeze_infer,
     .run = copy_run,
     .describe_move = copy_move},
    {.domain = "",
     .type = "Identity",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ALL | OM_DT_NESTED,
     .infer = identity_infer,
     .run = identity_run},
    {.type = NULL},
};
