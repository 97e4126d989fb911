/* Parameters of LRN. */
#ifndef OM_LRN_PARAMS_H
#define OM_LRN_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(lrn_kernel)
OM_UINT(elems)
OM_UINT(inner) /* elements of a channel */
OM_UINT(channels)
OM_UINT(before) /* channels of the sum in front of its own */
OM_UINT(behind)
OM_FLOAT(factor) /* alpha / size */
OM_FLOAT(beta)
OM_FLOAT(bias)
OM_PARAMS_END(lrn_kernel)

#endif
