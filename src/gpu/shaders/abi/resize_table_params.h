/* Parameters of the resizing kernel. */
#ifndef OM_RESIZE_TABLE_PARAMS_H
#define OM_RESIZE_TABLE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(resize_table)
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(out_h)
OM_UINT(out_w)
OM_UINT(elems)    /* of the result */
OM_FLOAT(outside) /* the value of results outside the region */
OM_PARAMS_END(resize_table)

#endif
