/* Parameters of the normalisations' kernels. */
#ifndef OM_LAYERNORM_PARAMS_H
#define OM_LAYERNORM_PARAMS_H

#include "abi/om_params.h"
#include "abi/row_params.h"

OM_PARAMS_BEGIN(layernorm_kernel)
OM_ROW_FIELDS
OM_FLOAT(count) /* row_elems */
OM_FLOAT(epsilon)
OM_UINT(place_row_period) /* om_norm_place */
OM_UINT(place_row_step)
OM_UINT(place_inner)
OM_UINT(place_period)
OM_PARAMS_END(layernorm_kernel)

#endif
