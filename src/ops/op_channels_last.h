/* Shapes with the channels last, [N, spatial..., C], and first, [N, C, spatial...]. */
#ifndef OP_CHANNELS_LAST_H
#define OP_CHANNELS_LAST_H

#include "cpu/exact/om_strided.h"
#include "graph/om_op.h"

/* The tensor's shape in the other order. */
static inline om_tensor om_channels_first(const om_tensor *last) {
  om_tensor first = *last;
  for (uint32_t i = 2; i < last->rank; ++i) first.dims[i] = last->dims[i - 1];
  if (last->rank > 1) first.dims[1] = last->dims[last->rank - 1];
  return first;
}

static inline om_tensor om_channels_last(const om_tensor *first) {
  om_tensor last = *first;
  for (uint32_t i = 2; i < first->rank; ++i) last.dims[i - 1] = first->dims[i];
  if (first->rank > 1) last.dims[first->rank - 1] = first->dims[1];
  return last;
}

/* Copies float32 elements from one order to the other: `first` has the shape [N, C, spatial...]. */
static inline void om_channels_turn(
    om_ctx *ctx, const om_tensor *first, bool to_last, const void *from, void *to) {
  const int64_t channels = first->dims[1];
  int64_t places = 1;
  for (uint32_t i = 2; i < first->rank; ++i) places *= first->dims[i];
  om_strided turn = {
      .rank = 3,
      .extents = {first->dims[0], to_last ? places : channels, to_last ? channels : places}};
  turn.source_strides[0] = turn.target_strides[0] = channels * places;
  turn.source_strides[1] = 1;
  turn.source_strides[2] = turn.extents[1];
  turn.target_strides[1] = turn.extents[2];
  turn.target_strides[2] = 1;
  om_strided_copy(ctx, &turn, sizeof(float), from, to);
}

#endif
