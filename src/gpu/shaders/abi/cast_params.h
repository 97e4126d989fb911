/* Parameters of the conversion kernel (om_cast_params are the operators'). */
#ifndef OM_CAST_PARAMS_H
#define OM_CAST_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(cast_kernel)
OM_UINT(elems)
OM_PARAMS_END(cast_kernel)

#endif
