/* Parameters of the kernel that packs a ConvTranspose's weights made at run time. */
#ifndef OM_CONV_PHASES_PARAMS_H
#define OM_CONV_PHASES_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(conv_phases)
OM_UINT(in_channels)  /* of one group */
OM_UINT(out_channels) /* of one group */
OM_UINT(columns)      /* packed channels of one group: a multiple of 4 */
OM_UINT(rows)         /* terms of one group and phase */
OM_UINT(elems)        /* of the packed weights */
OM_UINT(kernel_d)
OM_UINT(kernel_h)
OM_UINT(kernel_w)
OM_UINT(stride_d)
OM_UINT(stride_h)
OM_UINT(stride_w)
OM_UINT(pad_d)
OM_UINT(pad_h)
OM_UINT(pad_w)
OM_UINT(dilation_d)
OM_UINT(dilation_h)
OM_UINT(dilation_w)
OM_UINT(kernel_step_d)
OM_UINT(kernel_step_h)
OM_UINT(kernel_step_w)
OM_PARAMS_END(conv_phases)

#endif
