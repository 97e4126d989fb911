/* Attention: softmax(Q K + mask) V with strided operands, in the order of docs/exact.md.
 *
 * Each operand is a pile of matrices, one for each element of the batch; a stride of 0 repeats.
 * The bits are those of MatMul, Mul or Div, Add or Where, Softmax, MatMul one after the other.
 */
#ifndef OM_ATTENTION_H
#define OM_ATTENTION_H

#include "cpu/exact/om_strided.h"

typedef struct om_attention_side { /* how one operand lies; elements */
  int64_t batch_strides[OM_MAX_RANK];
  int64_t row_stride, col_stride;
  int64_t offset;
} om_attention_side;

typedef enum om_scale_kind {
  OM_SCALE_NONE = 0,
  OM_SCALE_MUL = 1,
  OM_SCALE_DIV = 2,
} om_scale_kind;

typedef struct om_scale {
  om_scale_kind kind;
  float value;
} om_scale;

typedef struct om_attention {
  uint32_t batch_rank;
  int64_t batch[OM_MAX_RANK];
  size_t rows;  /* of Q */
  size_t keys;  /* columns of K, rows of V */
  size_t depth; /* columns of Q, rows of K */
  size_t width; /* columns of V */
  om_attention_side q, k, v, mask, y;
  bool has_mask;
  bool selects;                     /* a mask takes the place of the score, unless it is 0 */
  bool zeroes_nan;                  /* a probability that is NaN becomes 0 */
  om_scale q_scale, k_scale, scale; /* of Q, of K, of their product */
} om_attention;

/* Elements of the batch. */
size_t om_attention_batch(const om_attention *a);

/* Bytes of scratch that a run needs. */
size_t om_attention_scratch(const om_attention *a);

/* mask is read if a->has_mask. */
void om_attention_run_f32(om_ctx *ctx,
                          const om_attention *a,
                          const float *q,
                          const float *k,
                          const float *v,
                          const float *mask,
                          float *y,
                          void *scratch);

#endif
