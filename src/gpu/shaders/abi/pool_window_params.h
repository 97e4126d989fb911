/* Parameters of the pools with a sliding window. */
#ifndef OM_POOL_WINDOW_PARAMS_H
#define OM_POOL_WINDOW_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(pool_window)
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(out_h)
OM_UINT(out_w)
OM_UINT(kernel_h)
OM_UINT(kernel_w)
OM_UINT(stride_h)
OM_UINT(stride_w)
OM_UINT(dilation_h)
OM_UINT(dilation_w)
OM_UINT(pad_h)
OM_UINT(pad_w)
OM_UINT(counted_h) /* a mean counts taps below this position from the padded edge */
OM_UINT(counted_w) /* 0: it counts the taps inside the input */
OM_UINT(elems)     /* of the result */
OM_FLOAT(start)    /* of a sum: 0; of a maximum: -infinity */
OM_PARAMS_END(pool_window)

#endif
