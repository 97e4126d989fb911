/* Parameters of the second pass of a split convolution. */
#ifndef OM_CONV_SUM_PARAMS_H
#define OM_CONV_SUM_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(conv_sum)
OM_UINT(elems)  /* of the result */
OM_UINT(splits) /* sums of each, `elems` apart */
OM_UINT(pixels) /* of a channel */
OM_UINT(channels)
OM_PARAMS_END(conv_sum)

#endif
