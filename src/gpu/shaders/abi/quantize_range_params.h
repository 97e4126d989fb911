/* Parameters of the kernels that find the range of a tensor's values. */
#ifndef OM_QUANTIZE_RANGE_PARAMS_H
#define OM_QUANTIZE_RANGE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(quantize_range)
OM_UINT(elems) /* of the tensor; of the last pass the number of ranges */
OM_UINT(groups)
OM_PARAMS_END(quantize_range)

#endif
