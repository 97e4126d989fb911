/* Parameters of exact attention's three passes. Strides count elements. */
#ifndef OM_ATTENTION_PASS_PARAMS_H
#define OM_ATTENTION_PASS_PARAMS_H

#include "abi/attention_flags.h"
#include "abi/om_params.h"

#define OM_ATTENTION_BLOCK 64 /* rows of a block */
#define OM_ATTENTION_TILE  32 /* rows and columns of a product's tile */

OM_PARAMS_BEGIN(attention_pass)
OM_UINT(group_count)   /* of this dispatch */
OM_UINT(first_block)   /* of this turn: the scratch memory begins with it */
OM_UINT(row_blocks)    /* of one element of the batch */
OM_UINT(col_tiles)     /* of a product's result */
OM_UINT(pitch)         /* from row to row of the scores; a multiple of 4 */
OM_UINT(lanes)         /* of a row in the pass over rows: a power of two, at most 256 */
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
OM_PARAMS_END(attention_pass)

#endif
