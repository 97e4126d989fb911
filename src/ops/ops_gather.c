/* Reading at indices: Gather, GatherElements, GatherND, Compress.
 *
 * Indices count from the end where they are negative. All are checked before anything is written.
 */
#include "ops/op_gather.h"

#include <inttypes.h>

#include "base/om_thread.h"
#include "cpu/exact/om_strided.h"

static uint32_t plain_axis(int64_t axis, uint32_t rank) {
  return (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
}

static size_t wrapped(int64_t index, int64_t extent) {
  return (size_t)(index < 0 ? index + extent : index);
}

static om_status axis_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_gather_params *p = params;
  return om_node_attr_int(ctx, node, "axis", 0, &p->axis);
}

static om_status check_indices(om_ctx *ctx, const om_op_call *call, int64_t extent) {
  const om_tensor *indices = call->inputs[1];
  const size_t count = om_tensor_elems(indices);
  size_t ignored = 0;
  for (size_t i = 0; i < count; ++i) {
    OM_TRY(om_rule_index(ctx, call->node->type, om_rule_int(indices, i), extent, &ignored));
  }
  return OM_OK;
}

/* ---- Gather ---- */

static om_status gather_infer(om_ctx *ctx, const om_op_call *call) {
  const om_gather_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  int64_t dims[2 * OM_MAX_RANK] = {0};
  uint32_t axis = 0;
  uint32_t rank = 0;
  OM_TRY(om_rule_check_bytes(ctx, x));
  OM_TRY(om_rule_check_int(ctx, indices, "indices"));
  OM_TRY(om_rule_axis(ctx, p->axis, x->rank, &axis));
  for (uint32_t i = 0; i < axis; ++i) dims[rank++] = x->dims[i];
  for (uint32_t i = 0; i < indices->rank; ++i) dims[rank++] = indices->dims[i];
  for (uint32_t i = axis + 1; i < x->rank; ++i) dims[rank++] = x->dims[i];
  return om_rule_set(ctx, call, 0, x->dtype, rank, dims);
}

typedef struct om_gather_job {
  const om_op_call *call;
  int64_t extent; /* of the axis */
  size_t index_count;
  size_t row_bytes; /* behind the axis */
  uint32_t axis;    /* GatherElements */
  int64_t strides[OM_MAX_RANK];
} om_gather_job;

static void gather_rows(void *arg, size_t begin, size_t end) {
  const om_gather_job *job = arg;
  const om_tensor *indices = job->call->inputs[1];
  const uint8_t *from = job->call->inputs[0]->data;
  uint8_t *to = job->call->outputs[0]->data;
  for (size_t i = begin; i < end; ++i) {
    const size_t outer = i / job->index_count;
    const size_t at = wrapped(om_rule_int(indices, i % job->index_count), job->extent);
    memcpy(to + i * job->row_bytes,
           from + (outer * (size_t)job->extent + at) * job->row_bytes,
           job->row_bytes);
  }
}

static om_status gather_run(om_ctx *ctx, const om_op_call *call) {
  const om_gather_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const uint32_t axis = plain_axis(p->axis, x->rank);
  om_gather_job job = {
      .call = call,
      .extent = x->dims[axis],
      .index_count = om_tensor_elems(call->inputs[1]),
      .row_bytes = om_rule_product(x->dims, axis + 1, x->rank) * om_rule_elem_bytes(x->dtype),
  };
  OM_TRY(check_indices(ctx, call, job.extent));
  if (om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  om_parallel_for(ctx,
                  om_rule_product(x->dims, 0, axis) * job.index_count,
                  65536 / job.row_bytes + 1,
                  gather_rows,
                  &job);
  return OM_OK;
}

/* One index that is known: a part of the data. */
static bool gather_move(const om_op_call *call, uint32_t output, om_strided *out) {
  const om_gather_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  const uint32_t axis = plain_axis(p->axis, x->rank);
  (void)output;
  if (!om_rule_is_known(indices) || om_tensor_elems(indices) != 1) return false;
  const int64_t extent = x->dims[axis];
  const int64_t index = om_rule_int(indices, 0);
  const int64_t outer = (int64_t)om_rule_product(x->dims, 0, axis);
  const int64_t inner = (int64_t)om_rule_product(x->dims, axis + 1, x->rank);
  if (index < -extent || index >= extent) return false;
  *out = (om_strided){.rank = 2,
                      .extents = {outer, inner},
                      .source_strides = {extent * inner, 1},
                      .target_strides = {inner, 1},
                      .source_offset = (int64_t)wrapped(index, extent) * inner};
  return true;
}

/* ---- GatherElements ---- */

static om_status gather_elements_infer(om_ctx *ctx, const om_op_call *call) {
  const om_gather_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  char ours[OM_SHAPE_TEXT];
  char theirs[OM_SHAPE_TEXT];
  uint32_t axis = 0;
  OM_TRY(om_rule_check_bytes(ctx, x));
  OM_TRY(om_rule_check_int(ctx, indices, "indices"));
  OM_TRY(om_rule_axis(ctx, p->axis, x->rank, &axis));
  bool fits = indices->rank == x->rank;
  for (uint32_t i = 0; fits && i < x->rank; ++i) fits = i == axis || indices->dims[i] <= x->dims[i];
  if (!fits) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Indices of shape %s do not fit data of shape %s.",
                   om_shape_text(theirs, sizeof theirs, indices->rank, indices->dims),
                   om_shape_text(ours, sizeof ours, x->rank, x->dims));
  }
  return om_rule_set(ctx, call, 0, x->dtype, indices->rank, indices->dims);
}

static void gather_elements(void *arg, size_t begin, size_t end) {
  const om_gather_job *job = arg;
  const om_tensor *indices = job->call->inputs[1];
  const uint8_t *from = job->call->inputs[0]->data;
  uint8_t *to = job->call->outputs[0]->data;
  for (size_t i = begin; i < end; ++i) {
    size_t rest = i;
    size_t at = wrapped(om_rule_int(indices, i), job->extent) * (size_t)job->strides[job->axis];
    for (uint32_t axis = indices->rank; axis-- > 0;) {
      const size_t position = rest % (size_t)indices->dims[axis];
      rest /= (size_t)indices->dims[axis];
      if (axis != job->axis) at += position * (size_t)job->strides[axis];
    }
    memcpy(to + i * job->row_bytes, from + at * job->row_bytes, job->row_bytes);
  }
}

static om_status gather_elements_run(om_ctx *ctx, const om_op_call *call) {
  const om_gather_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  om_gather_job job = {
      .call = call,
      .axis = plain_axis(p->axis, x->rank),
      .row_bytes = om_rule_elem_bytes(x->dtype),
  };
  job.extent = x->dims[job.axis];
  om_dense_strides(x->rank, x->dims, job.strides);
  OM_TRY(check_indices(ctx, call, job.extent));
  om_parallel_for(ctx, om_tensor_elems(call->inputs[1]), 8192, gather_elements, &job);
  return OM_OK;
}

/* ---- GatherND ---- */

static om_status gather_nd_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_gather_nd_params *p = params;
  return om_node_attr_int(ctx, node, "batch_dims", 0, &p->batch_axes);
}

static om_status gather_nd_infer(om_ctx *ctx, const om_op_call *call) {
  const om_gather_nd_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  int64_t dims[2 * OM_MAX_RANK] = {0};
  char ours[OM_SHAPE_TEXT];
  char theirs[OM_SHAPE_TEXT];
  uint32_t rank = 0;
  OM_TRY(om_rule_check_bytes(ctx, x));
  OM_TRY(om_rule_check_int(ctx, indices, "indices"));
  bool fits = x->rank > 0 && indices->rank > 0 && p->batch_axes >= 0 &&
              p->batch_axes < (int64_t)indices->rank && p->batch_axes < (int64_t)x->rank;
  const int64_t tuple = fits ? indices->dims[indices->rank - 1] : 0;
  fits = fits && tuple >= 1 && tuple <= (int64_t)x->rank - p->batch_axes;
  for (uint32_t i = 0; fits && i < (uint32_t)p->batch_axes; ++i) {
    fits = x->dims[i] == indices->dims[i];
  }
  if (!fits) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Indices of shape %s do not fit data of shape %s with batch_dims %" PRId64 ".",
                   om_shape_text(theirs, sizeof theirs, indices->rank, indices->dims),
                   om_shape_text(ours, sizeof ours, x->rank, x->dims),
                   p->batch_axes);
  }
  for (uint32_t i = 0; i + 1 < indices->rank; ++i) dims[rank++] = indices->dims[i];
  for (uint32_t i = (uint32_t)(p->batch_axes + tuple); i < x->rank; ++i) dims[rank++] = x->dims[i];
  return om_rule_set(ctx, call, 0, x->dtype, rank, dims);
}

static om_status gather_nd_run(om_ctx *ctx, const om_op_call *call) {
  const om_gather_nd_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  const uint32_t batch_axes = (uint32_t)p->batch_axes;
  const uint32_t tuple = (uint32_t)indices->dims[indices->rank - 1];
  const size_t tuples = om_tensor_elems(indices) / tuple;
  const size_t batch = om_rule_product(x->dims, 0, batch_axes);
  const size_t batch_elems = om_rule_product(x->dims, batch_axes, x->rank);
  const size_t bytes = om_rule_elem_bytes(x->dtype);
  const size_t row = om_rule_product(x->dims, batch_axes + tuple, x->rank) * bytes;
  int64_t strides[OM_MAX_RANK] = {0};
  om_dense_strides(x->rank, x->dims, strides);
  for (size_t i = 0; i < tuples; ++i) {
    size_t at = i / (tuples / batch) * batch_elems;
    OM_TRY(om_check_turn(ctx, i));
    for (uint32_t t = 0; t < tuple; ++t) {
      const uint32_t axis = batch_axes + t;
      size_t index = 0;
      OM_TRY(om_rule_index(
          ctx, call->node->type, om_rule_int(indices, i * tuple + t), x->dims[axis], &index));
      at += index * (size_t)strides[axis];
    }
    if (row == 0) continue;
    memcpy((uint8_t *)call->outputs[0]->data + i * row, (const uint8_t *)x->data + at * bytes, row);
  }
  return OM_OK;
}

/* ---- Compress ---- */

static om_status compress_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_compress_params *p = params;
  p->has_axis = om_node_attr(node, "axis") != NULL;
  return om_node_attr_int(ctx, node, "axis", 0, &p->axis);
}

static om_status compress_infer(om_ctx *ctx, const om_op_call *call) {
  const om_compress_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *keep = call->inputs[1];
  int64_t dims[OM_MAX_RANK] = {0};
  int64_t kept = 0;
  uint32_t axis = 0;
  OM_TRY(om_rule_check_bytes(ctx, x));
  if (p->has_axis) OM_TRY(om_rule_axis(ctx, p->axis, x->rank, &axis));
  const int64_t extent = p->has_axis ? x->dims[axis] : (int64_t)om_tensor_elems(x);
  if (keep->dtype != OM_DTYPE_BOOL || keep->rank != 1 || keep->dims[0] > extent) {
    return OM_FAIL(
        ctx, OM_E_INVALID_INPUT, "The condition is no list of at most %" PRId64 " bools.", extent);
  }
  if (!om_rule_is_known(keep)) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  for (int64_t i = 0; i < keep->dims[0]; ++i) {
    OM_TRY(om_check_turn(ctx, (size_t)i));
    kept += ((const uint8_t *)keep->data)[i] != 0;
  }
  for (uint32_t i = 0; i < x->rank; ++i) dims[i] = x->dims[i];
  dims[axis] = kept;
  return om_rule_set(ctx, call, 0, x->dtype, p->has_axis ? x->rank : 1, dims);
}

static om_status compress_run(om_ctx *ctx, const om_op_call *call) {
  const om_compress_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *keep = call->inputs[1];
  const uint32_t axis = p->has_axis ? plain_axis(p->axis, x->rank) : 0;
  const size_t outer = p->has_axis ? om_rule_product(x->dims, 0, axis) : 1;
  const size_t extent = p->has_axis ? (size_t)x->dims[axis] : om_tensor_elems(x);
  const size_t inner = p->has_axis ? om_rule_product(x->dims, axis + 1, x->rank) : 1;
  const size_t row = inner * om_rule_elem_bytes(x->dtype);
  uint8_t *to = call->outputs[0]->data;
  for (size_t o = 0; row != 0 && o < outer; ++o) {
    for (size_t i = 0; i < (size_t)keep->dims[0]; ++i) {
      OM_TRY(om_check_turn(ctx, i));
      if (((const uint8_t *)keep->data)[i] == 0) continue;
      memcpy(to, (const uint8_t *)x->data + (o * extent + i) * row, row);
      to += row;
    }
  }
  return OM_OK;
}

const om_op om_ops_gather[] = {
    {.domain = "",
     .type = "Gather",
     .first_opset = 1,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_BYTES,
     .params_bytes = sizeof(om_gather_params),
     .copied_inputs = 1u << 0,
     .resolve = axis_resolve,
     .infer = gather_infer,
     .run = gather_run,
     .describe_move = gather_move},
    {.domain = "",
     .type = "GatherElements",
     .first_opset = 11,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_BYTES,
     .params_bytes = sizeof(om_gather_params),
     .resolve = axis_resolve,
     .infer = gather_elements_infer,
     .run = gather_elements_run},
    {.domain = "",
     .type = "GatherND",
     .first_opset = 11,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_BYTES,
     .params_bytes = sizeof(om_gather_nd_params),
     .resolve = gather_nd_resolve,
     .infer = gather_nd_infer,
     .run = gather_nd_run},
    {.domain = "",
     .type = "Compress",
     .first_opset = 9,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_BYTES,
     .params_bytes = sizeof(om_compress_params),
     .resolve = compress_resolve,
     .is_sized_by_data = true,
     .infer = compress_infer,
     .run = compress_run},
    {.type = NULL},
};
