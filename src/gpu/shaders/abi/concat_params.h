/* Parameters of the concatenation. Counts are words of 32 bits, quads of them in _vec4, bytes in
 * _bytes. */
#ifndef OM_CONCAT_PARAMS_H
#define OM_CONCAT_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(concat_rows)
OM_UINT(rows)                      /* the product of the extents before the axis */
OM_UINT(row_words)                 /* of the result */
OM_UINT(begin)                     /* of the first input in the result's row */
OM_UINT(width)                     /* of all four together */
OM_UINT(width_0)                   /* row of each input; 0: unused */
OM_UINT(width_1)
OM_UINT(width_2)
OM_UINT(width_3)
OM_PARAMS_END(concat_rows)

#endif
