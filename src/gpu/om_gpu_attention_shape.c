/* What every kernel of attention is told of its operands. */
#include "gpu/om_gpu_attention.h"

uint32_t om_gpu_attention_flags(const om_attention *a) {
  return (uint32_t)a->q_scale.kind << OM_ATTENTION_Q_SCALE_AT |
         (uint32_t)a->k_scale.kind << OM_ATTENTION_K_SCALE_AT |
         (uint32_t)a->scale.kind << OM_ATTENTION_SCALE_AT |
         (a->has_mask ? OM_ATTENTION_HAS_MASK : 0u) | (a->selects ? OM_ATTENTION_SELECTS : 0u) |
         (a->zeroes_nan ? OM_ATTENTION_ZEROES_NAN : 0u);
}

om_attention_shape_params om_gpu_attention_shape(const om_attention *a) {
  const uint32_t last = a->batch_rank > 0 ? a->batch_rank - 1 : 0;
  om_attention_shape_params p = {
      .batch_1 = a->batch_rank > 0 ? (uint32_t)a->batch[last] : 1,
      .rows = (uint32_t)a->rows,
      .keys = (uint32_t)a->keys,
      .depth = (uint32_t)a->depth,
      .width = (uint32_t)a->width,
      .q_row_stride = (uint32_t)a->q.row_stride,
      .k_depth_stride = (uint32_t)a->k.row_stride,
      .k_key_stride = (uint32_t)a->k.col_stride,
      .v_key_stride = (uint32_t)a->v.row_stride,
      .mask_row_stride = (uint32_t)a->mask.row_stride,
      .mask_key_stride = (uint32_t)a->mask.col_stride,
      .y_row_stride = (uint32_t)a->y.row_stride,
      .q_scale = a->q_scale.value,
      .k_scale = a->k_scale.value,
      .scale = a->scale.value,
  };
  uint32_t *const strides[][2] = {{&p.q_stride_0, &p.q_stride_1},
                                  {&p.k_stride_0, &p.k_stride_1},
                                  {&p.v_stride_0, &p.v_stride_1},
                                  {&p.mask_stride_0, &p.mask_stride_1},
                                  {&p.y_stride_0, &p.y_stride_1}};
  const om_attention_side *const sides[] = {&a->q, &a->k, &a->v, &a->mask, &a->y};
  for (size_t i = 0; i < OM_COUNT_OF(sides); ++i) {
    if (a->batch_rank > 1) *strides[i][0] = (uint32_t)sides[i]->batch_strides[0];
    if (a->batch_rank > 0) *strides[i][1] = (uint32_t)sides[i]->batch_strides[last];
  }
  return p;
}
