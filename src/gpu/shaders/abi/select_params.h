/* Parameters of Trilu, OneHot, CumSum, ArgMax and TopK: element (o, a, i) of the data is
 * (o * extent + a) * inner + i. */
#ifndef OM_SELECT_PARAMS_H
#define OM_SELECT_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(select)
OM_UINT(elems)  /* of the result; CumSum, ArgMax, TopK: lines */
OM_UINT(extent) /* of the axis; Trilu: rows; OneHot: the depth */
OM_UINT(inner)  /* behind the axis; Trilu: columns */
OM_INT(k)       /* Trilu: the diagonal; TopK: how many */
OM_PARAMS_END(select)

#endif
