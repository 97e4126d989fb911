/* Parameters of the softmax kernels (om_softmax_params are the operators'). */
#ifndef OM_SOFTMAX_PARAMS_H
#define OM_SOFTMAX_PARAMS_H

#include "abi/om_params.h"
#include "abi/row_params.h"

OM_PARAMS_BEGIN(softmax_kernel)
OM_ROW_FIELDS
OM_PARAMS_END(softmax_kernel)

#endif
