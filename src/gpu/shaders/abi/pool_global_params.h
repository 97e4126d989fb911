/* Parameters of the pools over whole planes. */
#ifndef OM_POOL_GLOBAL_PARAMS_H
#define OM_POOL_GLOBAL_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(pool_global)
OM_UINT(planes)
OM_UINT(plane_elems)
OM_FLOAT(exponent) /* of a pool of powers */
OM_FLOAT(root)     /* 1 / exponent */
OM_PARAMS_END(pool_global)

#endif
