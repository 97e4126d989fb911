/* Parameters of exact attention's three passes. */
#ifndef OM_ATTENTION_PASS_PARAMS_H
#define OM_ATTENTION_PASS_PARAMS_H

#include "abi/attention_shape.h"

#define OM_ATTENTION_BLOCK 64 /* rows of a block */
#define OM_ATTENTION_TILE  32 /* rows and columns of a product's tile */

OM_PARAMS_BEGIN(attention_pass)
OM_UINT(group_count)   /* of this dispatch */
OM_UINT(first_block)   /* of this turn: the scratch memory begins with it */
OM_UINT(row_blocks)    /* of one element of the batch */
OM_UINT(col_tiles)     /* of a product's result */
OM_UINT(pitch)         /* from row to row of the scores; a multiple of 4 */
OM_UINT(lanes)         /* of a row in the pass over rows: a power of two, at most 256 */
OM_ATTENTION_SHAPE
OM_PARAMS_END(attention_pass)

#endif
