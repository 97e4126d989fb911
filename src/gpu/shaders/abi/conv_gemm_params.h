/* Parameters of the convolutions that are products: conv_gemm.comp. */
#ifndef OM_CONV_GEMM_PARAMS_H
#define OM_CONV_GEMM_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(conv_gemm)
OM_UINT(in_d) /* 1, except for a volume */
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(out_d)
OM_UINT(out_h)
OM_UINT(out_w)
OM_UINT(in_channels)  /* of one group */
OM_UINT(out_channels) /* of one group */
OM_UINT(groups)
OM_UINT(pad_h)
OM_UINT(pad_w)
OM_UINT(dilation_h)
OM_UINT(dilation_w)
OM_UINT(w_columns)     /* vec4 columns of the packed weights: out_channels / 4, up */
OM_UINT(w_rows)        /* rows of one group's (and phase's) packed weights */
OM_UINT(kernel_step_h) /* transposed: taps of one phase are so far apart */
OM_UINT(kernel_step_w)
OM_UINT(tap_step_h) /* transposed: and go back so many input elements */
OM_UINT(tap_step_w)
OM_UINT(splits) /* groups of 128 terms, each its own workgroup */
OM_PARAMS_END(conv_gemm)

#endif
