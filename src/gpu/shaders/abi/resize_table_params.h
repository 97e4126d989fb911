/* Parameters of the resizing kernel. */
#ifndef OM_RESIZE_TABLE_PARAMS_H
#define OM_RESIZE_TABLE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(resize_table)
OM_UINT(in_a) /* extents of the two axes, a outside of b */
OM_UINT(in_b)
OM_UINT(out_a)
OM_UINT(out_b)
OM_UINT(elems)    /* of the result */
OM_FLOAT(outside) /* the value of results outside the region */
OM_PARAMS_END(resize_table)

#endif
