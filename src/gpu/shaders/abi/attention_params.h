/* Parameters of the attention kernels. Strides count floats. */
#ifndef OM_ATTENTION_PARAMS_H
#define OM_ATTENTION_PARAMS_H

#include "abi/attention_flags.h"
#include "abi/om_params.h"

OM_PARAMS_BEGIN(attention_kernel)
OM_UINT(first_group)   /* of this dispatch */
OM_UINT(row_blocks)    /* of one element of the batch */
OM_UINT(col_blocks)
OM_UINT(chunk_count)   /* of the keys; above 1: y is scratch that a second pass joins */
OM_UINT(chunk_keys)    /* of one; a multiple of 32 where there are several */
OM_UINT(chunk_stride)  /* of y, from chunk to chunk */
OM_UINT(batch_1)       /* the batch is batch_0 by batch_1 */
OM_UINT(rows)
OM_UINT(keys)
OM_UINT(depth)
OM_UINT(width)
OM_UINT(q_stride_0)    /* of the batch's axes; 0: the operand repeats */
OM_UINT(q_stride_1)
OM_UINT(q_row_stride)
OM_UINT(k_stride_0)
OM_UINT(k_stride_1)
OM_UINT(k_depth_stride)
OM_UINT(k_key_stride)
OM_UINT(v_stride_0)
OM_UINT(v_stride_1)
OM_UINT(v_key_stride)
OM_UINT(mask_stride_0)
OM_UINT(mask_stride_1)
OM_UINT(mask_row_stride)
OM_UINT(mask_key_stride)
OM_UINT(y_stride_0)
OM_UINT(y_stride_1)
OM_UINT(y_row_stride)
OM_FLOAT(q_scale)
OM_FLOAT(k_scale)
OM_FLOAT(scale)
OM_PARAMS_END(attention_kernel)

#endif
