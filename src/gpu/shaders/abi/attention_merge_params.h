/* Parameters of the pass that joins an attention's chunks of keys. Strides count floats. */
#ifndef OM_ATTENTION_MERGE_PARAMS_H
#define OM_ATTENTION_MERGE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(attention_merge)
OM_UINT(elems)
OM_UINT(rows)
OM_UINT(width)
OM_UINT(batch_1)
OM_UINT(chunk_count)
OM_UINT(chunk_stride)
OM_UINT(zeroes_nan)
OM_UINT(y_stride_0)
OM_UINT(y_stride_1)
OM_UINT(y_row_stride)
OM_UINT(y_col_stride)
OM_PARAMS_END(attention_merge)

#endif
