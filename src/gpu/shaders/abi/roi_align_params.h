/* Parameters of RoiAlign. */
#ifndef OM_ROI_ALIGN_PARAMS_H
#define OM_ROI_ALIGN_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(roi_align_kernel)
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(out_h)
OM_UINT(out_w)
OM_UINT(images)
OM_UINT(channels)
OM_UINT(samples) /* of a bin and axis; 0: by its size */
OM_UINT(elems)   /* of the result */
OM_FLOAT(scale)
OM_PARAMS_END(roi_align_kernel)

#endif
