/* Parameters of the depthwise convolutions. */
#ifndef OM_CONV_DEPTHWISE_PARAMS_H
#define OM_CONV_DEPTHWISE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(conv_depthwise)
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(out_h)
OM_UINT(out_w)
OM_UINT(out_channels) /* of all groups */
OM_UINT(multiplier)   /* results of one input channel */
OM_UINT(pad_h)
OM_UINT(pad_w)
OM_UINT(dilation_h)
OM_UINT(dilation_w)
OM_UINT(column_quads) /* pieces of 4 results in a column */
OM_UINT(quads)        /* of all columns, channels and images */
OM_UINT(lanes)        /* invocations for a plane, where its mean is made too; a power of two */
OM_PARAMS_END(conv_depthwise)

#endif
