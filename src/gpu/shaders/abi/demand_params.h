/* Parameters of the kernel that looks for a value that breaks a demand (om_gpu_demand.c). */
#ifndef OM_DEMAND_PARAMS_H
#define OM_DEMAND_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(demand_kernel)
OM_UINT(count)                     /* of values */
OM_UINT(axes)                      /* of the extents below; value i is held against i mod axes */
OM_UINT(extent_0)
OM_UINT(extent_1)
OM_UINT(extent_2)
OM_UINT(extent_3)
OM_UINT(extent_4)
OM_UINT(extent_5)
OM_UINT(extent_6)
OM_UINT(extent_7)
OM_PARAMS_END(demand_kernel)

#endif
