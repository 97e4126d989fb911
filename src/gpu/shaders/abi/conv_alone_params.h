/* Parameters of the convolutions without shared memory: conv_alone.comp. */
#ifndef OM_CONV_ALONE_PARAMS_H
#define OM_CONV_ALONE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(conv_alone)
OM_UINT(count)        /* of pieces: what one invocation makes */
OM_UINT(column_tiles) /* runs of channels of one group */
OM_UINT(row_quads)    /* of pixels: of a row; of a plane where the kernel is one element */
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(out_h)
OM_UINT(out_w)
OM_UINT(in_channels)  /* of one group */
OM_UINT(out_channels) /* of one group; of all phases in the _shuffle variants */
OM_UINT(groups)
OM_UINT(pad_h)
OM_UINT(pad_w)
OM_UINT(dilation_h)
OM_UINT(dilation_w)
OM_UINT(kernel_h)
OM_UINT(kernel_w)
OM_UINT(stride_h)
OM_UINT(stride_w)
OM_UINT(w_columns) /* vec4 columns of the packed weights: out_channels / 4, up */
OM_PARAMS_END(conv_alone)

#endif
