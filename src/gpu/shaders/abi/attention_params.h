/* Parameters of the attention kernels. */
#ifndef OM_ATTENTION_PARAMS_H
#define OM_ATTENTION_PARAMS_H

#include "abi/attention_shape.h"

OM_PARAMS_BEGIN(attention_kernel)
OM_UINT(first_group)   /* of this dispatch */
OM_UINT(row_blocks)    /* of one element of the batch */
OM_UINT(col_blocks)
OM_UINT(chunk_count)   /* of the keys; above 1: y is scratch that a second pass joins */
OM_UINT(chunk_keys)    /* of one; a multiple of 32 where there are several */
OM_UINT(chunk_stride)  /* of y, from chunk to chunk */
OM_ATTENTION_SHAPE
OM_PARAMS_END(attention_kernel)

#endif
