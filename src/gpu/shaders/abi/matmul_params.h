/* Parameters of the matrix products. Strides count floats. */
#ifndef OM_MATMUL_PARAMS_H
#define OM_MATMUL_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(matmul)
OM_UINT(group_count)               /* workgroups: tiles of all chunks and elements of the batch */
OM_UINT(row_tiles)                 /* of one element of the batch */
OM_UINT(col_tiles)
OM_UINT(rows)
OM_UINT(cols)
OM_UINT(depth)
OM_UINT(a_row_stride)
OM_UINT(a_depth_stride)            /* 1 in the _vec4 variants */
OM_UINT(b_depth_stride)
OM_UINT(b_col_stride)              /* 1 in the _vec4 variants */
OM_UINT(batch_1)                   /* the batch is batch_0 by batch_1 by batch_2 */
OM_UINT(batch_2)
OM_UINT(a_stride_0)                /* of the batch's axes; 0: the operand repeats */
OM_UINT(a_stride_1)
OM_UINT(a_stride_2)
OM_UINT(b_stride_0)
OM_UINT(b_stride_1)
OM_UINT(b_stride_2)
OM_UINT(chunk_count)               /* parts that the depth is cut into; above 1: y has a result each */
OM_UINT(chunk_depth)               /* terms of one; a multiple of 128 where there are several */
OM_PARAMS_END(matmul)

#endif
