/* Parameters of the reductions' kernels (om_reduce_params are the operators'). */
#ifndef OM_REDUCE_PARAMS_H
#define OM_REDUCE_PARAMS_H

#include "abi/om_params.h"
#include "abi/row_params.h"

OM_PARAMS_BEGIN(reduce_kernel)
OM_ROW_FIELDS
OM_FLOAT(count) /* row_elems */
OM_PARAMS_END(reduce_kernel)

#endif
