/* Parameters of BatchNormalization with statistics made at run time. */
#ifndef OM_BATCHNORM_PARAMS_H
#define OM_BATCHNORM_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(batchnorm_kernel)
OM_UINT(elems)
OM_UINT(inner) /* elements of a channel that are neighbours */
OM_UINT(channels)
OM_FLOAT(epsilon)
OM_PARAMS_END(batchnorm_kernel)

#endif
