/* Parameters of Gather. */
#ifndef OM_GATHER_PARAMS_H
#define OM_GATHER_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(gather_rows)
OM_UINT(words)                     /* of the result; bytes in _bytes */
OM_UINT(row_words)                 /* behind the axis; quads in _vec4, bytes in _bytes */
OM_UINT(index_count)
OM_UINT(extent)                    /* of the axis */
OM_UINT(first)                     /* index that the input begins with, where it is a part */
OM_UINT(held)                      /* indices that the input holds; extent where it is whole */
OM_PARAMS_END(gather_rows)

#endif
