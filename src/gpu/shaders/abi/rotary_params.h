/* Parameters of RotaryEmbedding; om_rotary has the fields' meaning. */
#ifndef OM_ROTARY_PARAMS_H
#define OM_ROTARY_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(rotary_kernel)
OM_UINT(elems)
OM_UINT(size)
OM_UINT(half_size)
OM_UINT(row_count)
OM_UINT(batch_elems)
OM_UINT(row_elems)
OM_UINT(table_rows)                /* that positions count */
OM_PARAMS_END(rotary_kernel)

#endif
