/* What the kernels of attention know of its operands. Strides count elements. */
#ifndef OM_ATTENTION_SHAPE_H
#define OM_ATTENTION_SHAPE_H

#include "abi/attention_flags.h"
#include "abi/om_params.h"

/* The batch is batch_0 by batch_1; strides of its axes are 0 where an operand repeats. */
#define OM_ATTENTION_SHAPE \
  OM_UINT(batch_1)         \
  OM_UINT(rows)            \
  OM_UINT(keys)            \
  OM_UINT(depth)           \
  OM_UINT(width)           \
  OM_UINT(q_stride_0)      \
  OM_UINT(q_stride_1)      \
  OM_UINT(q_row_stride)    \
  OM_UINT(k_stride_0)      \
  OM_UINT(k_stride_1)      \
  OM_UINT(k_depth_stride)  \
  OM_UINT(k_key_stride)    \
  OM_UINT(v_stride_0)      \
  OM_UINT(v_stride_1)      \
  OM_UINT(v_key_stride)    \
  OM_UINT(mask_stride_0)   \
  OM_UINT(mask_stride_1)   \
  OM_UINT(mask_row_stride) \
  OM_UINT(mask_key_stride) \
  OM_UINT(y_stride_0)      \
  OM_UINT(y_stride_1)      \
  OM_UINT(y_row_stride)    \
  OM_FLOAT(q_scale)        \
  OM_FLOAT(k_scale)        \
  OM_FLOAT(scale)

#ifdef __STDC_VERSION__
OM_PARAMS_BEGIN(attention_shape)
OM_ATTENTION_SHAPE
OM_PARAMS_END(attention_shape)
#endif

#endif
