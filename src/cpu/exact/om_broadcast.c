/* Broadcasting as a walk over rows. Neighbouring dimensions along which every operand either
 * advances or repeats are merged, so that equal shapes are one row. */
#include "cpu/exact/om_broadcast.h"

om_status om_broadcast_shape(om_ctx *ctx,
                             const om_tensor *const *operands,
                             uint32_t operand_count,
                             uint32_t *out_rank,
                             int64_t out_dims[OM_MAX_RANK]) {
  uint32_t rank = 0;
  for (uint32_t i = 0; i < operand_count; ++i) {
    if (operands[i] && operands[i]->rank > rank) rank = operands[i]->rank;
  }
  for (uint32_t d = 0; d < rank; ++d) out_dims[d] = 1;
  for (uint32_t i = 0; i < operand_count; ++i) {
    const om_tensor *t = operands[i];
    if (!t) continue;
    for (uint32_t d = 0; d < t->rank; ++d) {
      int64_t *target = &out_dims[rank - t->rank + d];
      if (*target == 1) {
        *target = t->dims[d];
      } else if (t->dims[d] != 1 && t->dims[d] != *target) {
        char so_far[OM_SHAPE_TEXT];
        char other[OM_SHAPE_TEXT];
        return OM_FAIL(ctx,
                       OM_E_INVALID_INPUT,
                       "The shapes %s and %s do not broadcast.",
                       om_shape_text(so_far, sizeof so_far, rank, out_dims),
                       om_shape_text(other, sizeof other, t->rank, t->dims));
      }
    }
  }
  *out_rank = rank;
  return OM_OK;
}

/* Appends a dimension, or merges it with the one before: possible if each operand goes on there
 * where the outer one's step would lead. */
static void add_dimension(om_broadcast *b, size_t extent, const size_t *strides) {
  if (b->rank > 0) {
    uint32_t last = b->rank - 1;
    bool merges = true;
    for (uint32_t i = 0; i < b->operand_count; ++i) {
      if (b->strides[i][last] != strides[i] * extent) merges = false;
    }
    if (merges) {
      b->extents[last] *= extent;
      for (uint32_t i = 0; i < b->operand_count; ++i) b->strides[i][last] = strides[i];
      return;
    }
  }
  b->extents[b->rank] = extent;
  for (uint32_t i = 0; i < b->operand_count; ++i) b->strides[i][b->rank] = strides[i];
  ++b->rank;
}

void om_broadcast_init(om_broadcast *b,
                       const om_tensor *const *operands,
                       uint32_t operand_count,
                       const om_tensor *result) {
  size_t dense[OM_BROADCAST_OPERANDS][OM_MAX_RANK] = {{0}};
  memset(b, 0, sizeof *b);
  b->operand_count = operand_count;
  b->count = 1;
  for (uint32_t d = 0; d < result->rank; ++d) b->count *= (size_t)result->dims[d];
  for (uint32_t i = 0; i < operand_count; ++i) {
    size_t stride = 1;
    const om_tensor *t = operands[i];
    for (uint32_t d = t->rank; d-- > 0;) {
      if (t->dims[d] != 1) dense[i][result->rank - t->rank + d] = stride;
      stride *= (size_t)t->dims[d];
    }
  }
  for (uint32_t d = 0; d < result->rank; ++d) {
    if (result->dims[d] == 1) continue;
    size_t strides[OM_BROADCAST_OPERANDS] = {0};
    for (uint32_t i = 0; i < operand_count; ++i) strides[i] = dense[i][d];
    add_dimension(b, (size_t)result->dims[d], strides);
  }
  if (b->rank == 0) {
    b->rank = 1;
    b->extents[0] = 1;
  }
}

om_broadcast_row om_broadcast_row_at(const om_broadcast *b, size_t first, size_t end) {
  uint32_t last = b->rank - 1;
  size_t rest = first / b->extents[last];
  size_t column = first % b->extents[last];
  om_broadcast_row row = {.first = first, .count = b->extents[last] - column};
  if (row.count > end - first) row.count = end - first;
  for (uint32_t i = 0; i < b->operand_count; ++i) {
    row.advances[i] = b->strides[i][last] != 0;
    row.offsets[i] = column * b->strides[i][last];
  }
  for (uint32_t d = last; d-- > 0;) {
    size_t index = rest % b->extents[d];
    rest /= b->extents[d];
    for (uint32_t i = 0; i < b->operand_count; ++i) row.offsets[i] += index * b->strides[i][d];
  }
  return row;
}
