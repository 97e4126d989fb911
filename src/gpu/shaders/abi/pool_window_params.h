/* Parameters of the pools with a sliding window. */
#ifndef OM_POOL_WINDOW_PARAMS_H
#define OM_POOL_WINDOW_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(pool_window)
OM_UINT(in_d) /* three axes each: depth, height, width */
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(out_d)
OM_UINT(out_h)
OM_UINT(out_w)
OM_UINT(dilation_d)
OM_UINT(dilation_h)
OM_UINT(dilation_w)
OM_UINT(pad_d)
OM_UINT(pad_h)
OM_UINT(pad_w)
OM_UINT(counted_d) /* a mean counts taps below this position from the padded edge */
OM_UINT(counted_h) /* all 0: it counts the taps inside the input */
OM_UINT(counted_w)
OM_UINT(elems)        /* of the result */
OM_UINT(is_by_column) /* indices count the first axis fastest */
OM_FLOAT(exponent)    /* of a pool of powers */
OM_FLOAT(root)        /* 1 / exponent */
OM_PARAMS_END(pool_window)

#endif
