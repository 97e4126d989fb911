/* Parameters of the elementwise kernels (om_elementwise_params are the operators'). */
#ifndef OM_ELEMENTWISE_PARAMS_H
#define OM_ELEMENTWISE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(elementwise_kernel)
OM_UINT(elems) /* of the result */
OM_UINT(rank)  /* of the extents below; innermost first */
OM_UINT(extent_0)
OM_UINT(extent_1)
OM_UINT(extent_2)
OM_UINT(extent_3)
OM_UINT(extent_4)
OM_UINT(extent_5)
OM_UINT(extent_6)
OM_UINT(extent_7)
OM_UINT(input_mask) /* bit d: the input has extent 1 in dimension d */
OM_UINT(other_mask) /* the same for a BROADCAST operand */
OM_PARAMS_END(elementwise_kernel)

#endif
