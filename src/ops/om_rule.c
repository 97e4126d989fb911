#include "ops/om_rule.h"

#include <inttypes.h>

bool om_rule_is_known(const om_tensor *tensor) {
  return tensor->data != NULL || (tensor->rank != OM_RANK_UNKNOWN && om_tensor_elems(tensor) == 0);
}

size_t om_rule_elem_bytes(om_dtype dtype) {
  return dtype == OM_DTYPE_STRING ? sizeof(om_string) : om_dtype_bits(dtype) / 8;
}

om_status om_rule_check_bytes(om_ctx *ctx, const om_tensor *tensor) {
  if (om_rule_elem_bytes(tensor->dtype) != 0) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_UNSUPPORTED,
                 "Elements of %s cannot be moved: they are smaller than a byte.",
                 om_dtype_name(tensor->dtype));
}

om_status om_rule_axis(om_ctx *ctx, int64_t axis, uint32_t rank, uint32_t *out_axis) {
  if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The axis %" PRId64 " is outside a tensor of rank %" PRIu32 ".",
                   axis,
                   rank);
  }
  *out_axis = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
  return OM_OK;
}

om_status om_rule_axes(
    om_ctx *ctx, const int64_t *axes, size_t axis_count, uint32_t rank, uint32_t *out_axes) {
  uint32_t seen = 0;
  for (size_t i = 0; i < axis_count; ++i) {
    OM_TRY(om_rule_axis(ctx, axes[i], rank, &out_axes[i]));
    if (seen & (1u << out_axes[i])) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The axis %" PRId64 " occurs twice.", axes[i]);
    }
    seen |= 1u << out_axes[i];
  }
  return OM_OK;
}

om_status om_rule_check_int(om_ctx *ctx, const om_tensor *tensor, const char *what) {
  if (tensor->dtype == OM_DTYPE_I64 || tensor->dtype == OM_DTYPE_I32) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The %s are %s; int64 or int32 is expected.",
                 what,
                 om_dtype_name(tensor->dtype));
}

om_status om_rule_check_list(om_ctx *ctx,
                             const om_tensor *tensor,
                             const char *what,
                             uint32_t capacity) {
  OM_TRY(om_rule_check_int(ctx, tensor, what));
  if (tensor->rank > 1) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "The %s have rank %" PRIu32 "; a list is expected.",
                   what,
                   tensor->rank);
  }
  size_t count = om_tensor_elems(tensor);
  if (count <= capacity) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The %s have %zu elements; at most %" PRIu32 " are expected.",
                 what,
                 count,
                 capacity);
}

uint32_t om_rule_read_list(const om_tensor *tensor, int64_t *out_values) {
  uint32_t count = (uint32_t)om_tensor_elems(tensor);
  for (uint32_t i = 0; i < count; ++i) out_values[i] = om_rule_int(tensor, i);
  return count;
}

om_status om_rule_ints(om_ctx *ctx,
                       const om_tensor *tensor,
                       const char *what,
                       uint32_t capacity,
                       int64_t *out_values,
                       uint32_t *out_count) {
  OM_TRY(om_rule_check_list(ctx, tensor, what, capacity));
  *out_count = om_rule_read_list(tensor, out_values);
  return OM_OK;
}

om_status om_rule_index(
    om_ctx *ctx, const char *type, int64_t index, int64_t extent, size_t *out_index) {
  if (index < -extent || index >= extent) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "%s index %" PRId64 " is out of range for an extent of %" PRId64 ".",
                   type,
                   index,
                   extent);
  }
  *out_index = (size_t)(index < 0 ? index + extent : index);
  return OM_OK;
}

om_status om_rule_list_attr(om_ctx *ctx, const om_node *node, const char *name, om_rule_list *out) {
  OM_TRY(om_node_attr_ints(ctx, node, name, &out->values, &out->count));
  out->is_given = om_node_attr(node, name) != NULL;
  return OM_OK;
}

om_status om_rule_set(om_ctx *ctx,
                      const om_op_call *call,
                      uint32_t output,
                      om_dtype dtype,
                      uint32_t rank,
                      const int64_t *dims) {
  char text[OM_SHAPE_TEXT];
  if (rank > OM_MAX_RANK) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "The result has rank %" PRIu32 "; at most %d is supported.",
                   rank,
                   OM_MAX_RANK);
  }
  size_t bytes = 0;
  if (!om_shape_bytes(dtype, rank, dims, &bytes) || bytes > OM_RULE_MAX_BYTES) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The result's shape %s is more than a tensor of %s may take.",
                   om_shape_text(text, sizeof text, rank, dims),
                   om_dtype_name(dtype));
  }
  om_tensor *out = om_rule_output(call, output);
  if (!out) return OM_OK;
  out->dtype = dtype;
  out->rank = rank;
  for (uint32_t i = 0; i < rank; ++i) out->dims[i] = dims[i];
  return OM_OK;
}

void om_rule_set_unknown(const om_op_call *call, uint32_t output, om_dtype dtype) {
  om_tensor *out = om_rule_output(call, output);
  if (!out) return;
  out->dtype = dtype;
  out->rank = OM_RANK_UNKNOWN;
}

om_status om_rule_broadcast(om_ctx *ctx, const om_tensor *tensor, uint32_t *rank, int64_t *dims) {
  char ours[OM_SHAPE_TEXT];
  char theirs[OM_SHAPE_TEXT];
  while (*rank < tensor->rank) {
    for (uint32_t i = *rank; i > 0; --i) dims[i] = dims[i - 1];
    dims[0] = 1;
    ++*rank;
  }
  uint32_t shift = *rank - tensor->rank;
  for (uint32_t i = 0; i < tensor->rank; ++i) {
    if (dims[shift + i] == 1) {
      dims[shift + i] = tensor->dims[i];
    } else if (tensor->dims[i] != 1 && tensor->dims[i] != dims[shift + i]) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "The shapes %s and %s do not broadcast.",
                     om_shape_text(ours, sizeof ours, *rank, dims),
                     om_shape_text(theirs, sizeof theirs, tensor->rank, tensor->dims));
    }
  }
  return OM_OK;
}

bool om_rule_has_whole_rows(const om_tensor *x, size_t rows) {
  const size_t elems = om_tensor_elems(x);
  return x->rank > 0 && elems > 0 && elems % rows == 0 &&
         elems / rows % (size_t)x->dims[x->rank - 1] == 0;
}

bool om_rule_is_row(const om_tensor *x, const om_tensor *y) {
  if (!x || om_tensor_elems(x) == 1) return true;
  if (x->rank == 0 || y->rank == 0) return false;
  const int64_t cols = y->dims[y->rank - 1];
  return x->dims[x->rank - 1] == cols && om_tensor_elems(x) == (size_t)cols;
}
