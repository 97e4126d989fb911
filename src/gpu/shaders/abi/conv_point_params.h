/* Parameters of the convolutions with few results in a channel. */
#ifndef OM_CONV_POINT_PARAMS_H
#define OM_CONV_POINT_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(conv_point)
OM_UINT(in_channels)
OM_UINT(out_channels)
OM_UINT(pixels)    /* of a channel */
OM_UINT(w_columns) /* of the packed weights, in floats */
OM_PARAMS_END(conv_point)

#endif
