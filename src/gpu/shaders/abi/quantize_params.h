/* Parameters of the quantizing kernels (om_quantize_params are the operators'). */
#ifndef OM_QUANTIZE_KERNEL_PARAMS_H
#define OM_QUANTIZE_KERNEL_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(quantize_kernel)
OM_UINT(elems)
OM_UINT(extent) /* of the axis that scales follow; om_quantize_place has the rest */
OM_UINT(inner_extent)
OM_UINT(block)
OM_UINT(outer_step)
OM_UINT(axis_step)
OM_UINT(inner_step)
OM_PARAMS_END(quantize_kernel)

#endif
