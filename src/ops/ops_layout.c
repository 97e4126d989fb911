/* Moving data as it is: Transpose, Concat, Split, DepthToSpace, SpaceToDepth, ReverseSequence.
 *
 * All but the last are strided copies, one for each input or output.
 */
#include <inttypes.h>

#include "ops/op_layout.h"
#include "ops/op_nibbles.h"

/* ---- Transpose ---- */

static om_status transpose_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_transpose_params *p = params;
  return om_rule_list_attr(ctx, node, "perm", &p->perm);
}

static uint32_t transpose_axis(const om_op_call *call, uint32_t axis) {
  const om_transpose_params *p = call->params;
  return p->perm.is_given ? (uint32_t)p->perm.values[axis] : call->inputs[0]->rank - 1 - axis;
}

static om_status transpose_infer(om_ctx *ctx, const om_op_call *call) {
  const om_transpose_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t seen = 0;
  if (p->perm.is_given && p->perm.count != x->rank) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The attribute perm has %zu axes, the tensor has %" PRIu32 ".",
                   p->perm.count,
                   x->rank);
  }
  for (size_t i = 0; p->perm.is_given && i < p->perm.count; ++i) {
    int64_t axis = p->perm.values[i];
    if (axis < 0 || axis >= (int64_t)x->rank || (seen & (1u << axis))) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "The attribute perm is no permutation of %" PRIu32 " axes: %" PRId64
                     " at position %zu.",
                     x->rank,
                     axis,
                     i);
    }
    seen |= 1u << axis;
  }
  for (uint32_t i = 0; i < x->rank; ++i) dims[i] = x->dims[transpose_axis(call, i)];
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
}

void om_layout_transpose(const om_op_call *call, om_strided *out) {
  const om_tensor *x = call->inputs[0];
  int64_t strides[OM_MAX_RANK] = {0};
  *out = (om_strided){.rank = x->rank};
  om_dense_strides(x->rank, x->dims, strides);
  for (uint32_t i = 0; i < x->rank; ++i) {
    out->extents[i] = x->dims[transpose_axis(call, i)];
    out->source_strides[i] = strides[transpose_axis(call, i)];
  }
  om_dense_strides(x->rank, out->extents, out->target_strides);
}

static bool transpose_move(const om_op_call *call, uint32_t output, om_strided *out) {
  (void)output;
  om_layout_transpose(call, out);
  return true;
}

/* ---- Runs of the operators that are one copy ---- */

static void run_copy(om_ctx *ctx, const om_strided *copy, const om_tensor *from, om_tensor *to) {
  if (to) om_strided_copy(ctx, copy, om_rule_elem_bytes(from->dtype), from->data, to->data);
}

static size_t transpose_scratch(const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  return om_is_nibble(x->dtype) ? 2 * om_tensor_elems(x) : 0;
}

static om_status transpose_run(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_tensor *y = om_rule_output(call, 0);
  om_strided copy;
  om_layout_transpose(call, &copy);
  if (!om_is_nibble(x->dtype) || !y) {
    run_copy(ctx, &copy, x, y);
    return OM_OK;
  }
  uint8_t *moved = (uint8_t *)call->scratch + om_tensor_elems(x);
  const om_tensor wide = om_nibbles_unpack(x, call->scratch);
  om_strided_copy(ctx, &copy, 1, wide.data, moved);
  om_nibbles_pack(moved, y);
  return OM_OK;
}

/* ---- Concat ---- */

static om_status concat_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_concat_params *p = params;
  if (node->opset >= 4 && !om_node_attr(node, "axis")) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute axis is missing.");
  }
  return om_node_attr_int(ctx, node, "axis", 1, &p->axis);
}

static om_status concat_infer(om_ctx *ctx, const om_op_call *call) {
  const om_concat_params *p = call->params;
  const om_tensor *first = call->inputs[0];
  int64_t dims[OM_MAX_RANK] = {0};
  char ours[OM_SHAPE_TEXT];
  char theirs[OM_SHAPE_TEXT];
  uint32_t axis = 0;
  OM_TRY(om_rule_check_bytes(ctx, first));
  OM_TRY(om_rule_axis(ctx, p->axis, first->rank, &axis));
  for (uint32_t i = 0; i < first->rank; ++i) dims[i] = first->dims[i];
  for (uint32_t n = 1; n < call->input_count; ++n) {
    const om_tensor *x = call->inputs[n];
    bool fits = x && x->rank == first->rank && x->dtype == first->dtype;
    for (uint32_t i = 0; fits && i < first->rank; ++i) fits = i == axis || x->dims[i] == dims[i];
    if (!fits) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "Input %" PRIu32 " (%s %s) does not go behind %s %s on axis %" PRIu32 ".",
                     n,
                     x ? om_dtype_name(x->dtype) : "absent",
                     x ? om_shape_text(theirs, sizeof theirs, x->rank, x->dims) : "",
                     om_dtype_name(first->dtype),
                     om_shape_text(ours, sizeof ours, first->rank, first->dims),
                     axis);
    }
    if (x->dims[axis] > INT64_MAX - dims[axis]) {
      return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The extents on axis %" PRIu32 " overflow.", axis);
    }
    dims[axis] += x->dims[axis];
  }
  return om_rule_set(ctx, call, 0, first->dtype, first->rank, dims);
}

static uint32_t plain_axis(int64_t axis, uint32_t rank) {
  return (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
}

static om_status concat_run(om_ctx *ctx, const om_op_call *call) {
  const om_concat_params *p = call->params;
  om_tensor *y = call->outputs[0];
  const uint32_t axis = plain_axis(p->axis, y->rank);
  om_strided copy = {.rank = y->rank};
  om_dense_strides(y->rank, y->dims, copy.target_strides);
  for (uint32_t n = 0; n < call->input_count; ++n) {
    const om_tensor *x = call->inputs[n];
    for (uint32_t i = 0; i < x->rank; ++i) copy.extents[i] = x->dims[i];
    om_dense_strides(x->rank, x->dims, copy.source_strides);
    run_copy(ctx, &copy, x, y);
    copy.target_offset += x->dims[axis] * copy.target_strides[axis];
  }
  return OM_OK;
}

/* ---- Split ---- */

static om_status split_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_split_params *p = params;
  OM_TRY(om_node_attr_int(ctx, node, "axis", 0, &p->axis));
  OM_TRY(om_node_attr_int(ctx, node, "num_outputs", 0, &p->part_count));
  if (om_node_attr(node, "num_outputs") && p->part_count != (int64_t)node->output_count) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The attribute num_outputs is %" PRId64 ", the node has %" PRIu32 " outputs.",
                   p->part_count,
                   node->output_count);
  }
  return om_rule_list_attr(ctx, node, "split", &p->sizes);
}

/* Extent of one part; all that decides is known. */
static int64_t split_size(const om_op_call *call, uint32_t part) {
  const om_split_params *p = call->params;
  const om_tensor *sizes = om_rule_input(call, 1);
  const om_tensor *x = call->inputs[0];
  if (sizes) return om_rule_int(sizes, part);
  if (p->sizes.is_given) return p->sizes.values[part];
  int64_t extent = x->dims[plain_axis(p->axis, x->rank)];
  int64_t count = (int64_t)call->output_count;
  int64_t chunk = extent / count + (extent % count != 0);
  int64_t left = extent - chunk * (int64_t)part;
  return left < 0 ? 0 : left < chunk ? left : chunk;
}

static om_status split_check(om_ctx *ctx, const om_op_call *call, int64_t extent) {
  const om_split_params *p = call->params;
  const om_tensor *sizes = om_rule_input(call, 1);
  size_t count = call->output_count;
  if (sizes) {
    OM_TRY(om_rule_check_int(ctx, sizes, "sizes"));
    count = om_tensor_elems(sizes);
  } else if (p->sizes.is_given) {
    count = p->sizes.count;
  } else if (p->part_count == 0 && extent % (int64_t)count != 0) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "An extent of %" PRId64 " does not split into %zu equal parts.",
                   extent,
                   count);
  }
  if (count != call->output_count) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "There are %zu sizes for %" PRIu32 " outputs.",
                   count,
                   call->output_count);
  }
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (split_size(call, i) >= 0) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Part %" PRIu32 " has %" PRId64 " elements.",
                   i,
                   split_size(call, i));
  }
  int64_t left = extent;
  for (uint32_t i = 0; i < call->output_count; ++i) {
    int64_t size = split_size(call, i);
    if (size > left || (i + 1 == call->output_count && size != left)) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "The sizes do not add up to the extent of %" PRId64 ": part %" PRIu32
                     " is %" PRId64 ", where %" PRId64 " are left.",
                     extent,
                     i,
                     size,
                     left);
    }
    left -= size;
  }
  return OM_OK;
}

static om_status split_infer(om_ctx *ctx, const om_op_call *call) {
  const om_split_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *sizes = om_rule_input(call, 1);
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t axis = 0;
  OM_TRY(om_rule_check_bytes(ctx, x));
  OM_TRY(om_rule_axis(ctx, p->axis, x->rank, &axis));
  if (sizes && !om_rule_is_known(sizes)) {
    for (uint32_t i = 0; i < call->output_count; ++i) om_rule_set_unknown(call, i, x->dtype);
    return OM_OK;
  }
  OM_TRY(split_check(ctx, call, x->dims[axis]));
  for (uint32_t i = 0; i < x->rank; ++i) dims[i] = x->dims[i];
  for (uint32_t i = 0; i < call->output_count; ++i) {
    dims[axis] = split_size(call, i);
    OM_TRY(om_rule_set(ctx, call, i, x->dtype, x->rank, dims));
  }
  return OM_OK;
}

static void split_part(const om_op_call *call, int64_t before, int64_t size, om_strided *out) {
  const om_split_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const uint32_t axis = plain_axis(p->axis, x->rank);
  *out = (om_strided){.rank = x->rank};
  for (uint32_t i = 0; i < x->rank; ++i) out->extents[i] = x->dims[i];
  out->extents[axis] = size;
  om_dense_strides(x->rank, x->dims, out->source_strides);
  om_dense_strides(x->rank, out->extents, out->target_strides);
  out->source_offset = before * out->source_strides[axis];
}

void om_layout_split(const om_op_call *call, uint32_t output, om_strided *out) {
  int64_t before = 0;
  for (uint32_t i = 0; i < output; ++i) before += split_size(call, i);
  split_part(call, before, split_size(call, output), out);
}

static bool split_move(const om_op_call *call, uint32_t output, om_strided *out) {
  om_layout_split(call, output, out);
  return true;
}

static om_status split_run(om_ctx *ctx, const om_op_call *call) {
  int64_t before = 0;
  for (uint32_t i = 0; i < call->output_count; ++i) {
    om_strided copy;
    int64_t size = split_size(call, i);
    split_part(call, before, size, &copy);
    run_copy(ctx, &copy, call->inputs[0], call->outputs[i]);
    before += size;
  }
  return OM_OK;
}

/* ---- DepthToSpace, SpaceToDepth ---- */

static om_status block_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_block_params *p = params;
  om_string mode;
  OM_TRY(om_node_attr_int(ctx, node, "blocksize", 0, &p->block));
  if (p->block < 1 || p->block > INT32_MAX) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute blocksize is %" PRId64 ".", p->block);
  }
  OM_TRY(om_node_attr_text(ctx, node, "mode", "DCR", &mode));
  p->is_crd = om_string_is(mode, "CRD");
  if (!p->is_crd && !om_string_is(mode, "DCR")) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute mode is neither DCR nor CRD.");
  }
  return OM_OK;
}

static om_status block_fail(om_ctx *ctx, const om_tensor *x, int64_t block) {
  char text[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Blocks of %" PRId64 " by %" PRId64 " do not fit a tensor of shape %s.",
                 block,
                 block,
                 om_shape_text(text, sizeof text, x->rank, x->dims));
}

static om_status depth_to_space_infer(om_ctx *ctx, const om_op_call *call) {
  const om_block_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  size_t height = 0;
  size_t width = 0;
  OM_TRY(om_rule_check_bytes(ctx, x));
  if (x->rank != 4 || x->dims[1] % (p->block * p->block) != 0 ||
      !om_size_mul((size_t)x->dims[2], (size_t)p->block, &height) ||
      !om_size_mul((size_t)x->dims[3], (size_t)p->block, &width)) {
    return block_fail(ctx, x, p->block);
  }
  int64_t dims[4] = {
      x->dims[0], x->dims[1] / (p->block * p->block), (int64_t)height, (int64_t)width};
  return om_rule_set(ctx, call, 0, x->dtype, 4, dims);
}

void om_layout_depth_to_space(const om_op_call *call, om_strided *out) {
  const om_block_params *p = call->params;
  const int64_t *x = call->inputs[0]->dims;
  const int64_t b = p->block;
  const int64_t plane = x[2] * x[3];
  const int64_t channels = x[1] / (b * b);
  const int64_t extents[6] = {x[0], channels, x[2], b, x[3], b};
  const int64_t dcr[6] = {x[1] * plane, plane, x[3], b * channels * plane, 1, channels * plane};
  const int64_t crd[6] = {x[1] * plane, b * b * plane, x[3], b * plane, 1, plane};
  *out = (om_strided){.rank = 6};
  memcpy(out->extents, extents, sizeof extents);
  memcpy(out->source_strides, p->is_crd ? crd : dcr, sizeof dcr);
  om_dense_strides(6, extents, out->target_strides);
}

static om_status depth_to_space_run(om_ctx *ctx, const om_op_call *call) {
  om_strided copy;
  om_layout_depth_to_space(call, &copy);
  run_copy(ctx, &copy, call->inputs[0], om_rule_output(call, 0));
  return OM_OK;
}

static om_status space_to_depth_infer(om_ctx *ctx, const om_op_call *call) {
  const om_block_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  size_t channels = 0;
  OM_TRY(om_rule_check_bytes(ctx, x));
  if (x->rank != 4 || x->dims[2] % p->block != 0 || x->dims[3] % p->block != 0 ||
      !om_size_mul((size_t)x->dims[1], (size_t)(p->block * p->block), &channels) ||
      channels > INT64_MAX) {
    return block_fail(ctx, x, p->block);
  }
  int64_t dims[4] = {x->dims[0], (int64_t)channels, x->dims[2] / p->block, x->dims[3] / p->block};
  return om_rule_set(ctx, call, 0, x->dtype, 4, dims);
}

void om_layout_space_to_depth(const om_op_call *call, om_strided *out) {
  const om_block_params *p = call->params;
  const int64_t *x = call->inputs[0]->dims;
  const int64_t b = p->block;
  const int64_t plane = x[2] * x[3];
  const int64_t extents[6] = {x[0], b, b, x[1], x[2] / b, x[3] / b};
  const int64_t strides[6] = {x[1] * plane, x[3], 1, plane, b * x[3], b};
  *out = (om_strided){.rank = 6};
  memcpy(out->extents, extents, sizeof extents);
  memcpy(out->source_strides, strides, sizeof strides);
  om_dense_strides(6, extents, out->target_strides);
}

static om_status space_to_depth_run(om_ctx *ctx, const om_op_call *call) {
  om_strided copy;
  om_layout_space_to_depth(call, &copy);
  run_copy(ctx, &copy, call->inputs[0], om_rule_output(call, 0));
  return OM_OK;
}

/* ---- ReverseSequence ---- */

static om_status reverse_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_reverse_params *p = params;
  OM_TRY(om_node_attr_int(ctx, node, "batch_axis", 1, &p->batch_axis));
  OM_TRY(om_node_attr_int(ctx, node, "time_axis", 0, &p->time_axis));
  if (p->batch_axis == 0 && p->time_axis == 1) return OM_OK;
  if (p->batch_axis == 1 && p->time_axis == 0) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The attributes batch_axis %" PRId64 " and time_axis %" PRId64 " are not 0 and 1.",
                 p->batch_axis,
                 p->time_axis);
}

static om_status reverse_infer(om_ctx *ctx, const om_op_call *call) {
  const om_reverse_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *lengths = call->inputs[1];
  char text[OM_SHAPE_TEXT];
  OM_TRY(om_rule_check_bytes(ctx, x));
  OM_TRY(om_rule_check_int(ctx, lengths, "lengths"));
  if (x->rank < 2 || lengths->rank != 1 || lengths->dims[0] != x->dims[p->batch_axis]) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The lengths do not fit a tensor of shape %s.",
                   om_shape_text(text, sizeof text, x->rank, x->dims));
  }
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

static om_status reverse_run(om_ctx *ctx, const om_op_call *call) {
  const om_reverse_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const int64_t steps = x->dims[p->time_axis];
  const size_t row = om_rule_product(x->dims, 2, x->rank) * om_rule_elem_bytes(x->dtype);
  const int64_t batch_stride = p->batch_axis == 0 ? x->dims[1] : 1;
  const int64_t step_stride = p->time_axis == 0 ? x->dims[1] : 1;
  for (int64_t b = 0; b < x->dims[p->batch_axis]; ++b) {
    int64_t length = om_rule_int(call->inputs[1], (size_t)b);
    if (length < 0 || length > steps) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "The length %" PRId64 " of sequence %" PRId64 " is outside 0..%" PRId64 ".",
                     length,
                     b,
                     steps);
    }
    OM_TRY(om_check_cancelled(ctx));
    for (int64_t t = 0; t < steps; ++t) {
      int64_t from = t < length ? length - 1 - t : t;
      memcpy((uint8_t *)call->outputs[0]->data + (size_t)(b * batch_stride + t * step_stride) * row,
             (const uint8_t *)x->data + (size_t)(b * batch_stride + from * step_stride) * row,
             row);
    }
  }
  return OM_OK;
}

#define OM_LAYOUT_OP(name, first, last, params_type, function)                           \
  .domain = "", .type = (name), .first_opset = (first), .last_opset = (last),            \
  .dtypes = OM_DT_BYTES, .params_bytes = sizeof(params_type), .infer = function##_infer, \
  .run = function##_run

const om_op om_ops_layout[] = {
    {.domain = "",
     .type = "Transpose",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_transpose_params),
     .resolve = transpose_resolve,
     .infer = transpose_infer,
     .scratch_bytes = transpose_scratch,
     .run = transpose_run,
     .describe_move = transpose_move},
    {OM_LAYOUT_OP("Concat", 1, 0, om_concat_params, concat),
     OM_RULE_COUNTS(1, UINT8_MAX, 1, 1),
     .resolve = concat_resolve},
    {OM_LAYOUT_OP("Split", 1, 1, om_split_params, split),
     OM_RULE_COUNTS(1, 2, 1, UINT8_MAX),
     .resolve = split_resolve,
     .describe_move = split_move},
    {OM_LAYOUT_OP("Split", 2, 12, om_split_params, split),
     OM_RULE_COUNTS(1, 1, 1, UINT8_MAX),
     .resolve = split_resolve,
     .describe_move = split_move},
    {OM_LAYOUT_OP("Split", 13, 0, om_split_params, split),
     OM_RULE_COUNTS(1, 2, 1, UINT8_MAX),
     .resolve = split_resolve,
     .describe_move = split_move},
    {OM_LAYOUT_OP("DepthToSpace", 1, 0, om_block_params, depth_to_space),
     OM_RULE_COUNTS(1, 1, 1, 1),
     .resolve = block_resolve},
    {OM_LAYOUT_OP("SpaceToDepth", 1, 0, om_block_params, space_to_depth),
     OM_RULE_COUNTS(1, 1, 1, 1),
     .resolve = block_resolve},
    {OM_LAYOUT_OP("ReverseSequence", 10, 0, om_reverse_params, reverse),
     OM_RULE_COUNTS(2, 2, 1, 1),
     .resolve = reverse_resolve},
    {.type = NULL},
};
