/* Parameters of GridSample. */
#ifndef OM_GRID_SAMPLE_PARAMS_H
#define OM_GRID_SAMPLE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(grid_sample_kernel)
OM_UINT(in_d) /* 1 in front where there are fewer axes */
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(channels)
OM_UINT(pixels) /* results of a plane */
OM_UINT(elems)  /* of the result */
OM_PARAMS_END(grid_sample_kernel)

#endif
