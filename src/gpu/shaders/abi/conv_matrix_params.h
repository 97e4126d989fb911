/* Parameters of the convolutions on matrix hardware. */
#ifndef OM_CONV_MATRIX_PARAMS_H
#define OM_CONV_MATRIX_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(conv_matrix)
OM_UINT(group_count) /* workgroups: tiles of all splits */
OM_UINT(tile_count)  /* of one split */
OM_UINT(channel_tiles)
OM_UINT(columns) /* pixels of all images' results */
OM_UINT(pixels)  /* of one image's result */
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(out_w)
OM_UINT(in_channels)
OM_UINT(out_channels)
OM_UINT(pad_h)
OM_UINT(pad_w)
OM_UINT(dilation_h)
OM_UINT(dilation_w)
OM_UINT(stride_h)
OM_UINT(stride_w)
OM_UINT(tap_pieces)  /* of 16 channels, of one tap */
OM_UINT(tap_inverse) /* 2^20 / tap_pieces, up */
OM_UINT(weight_rows) /* channels of the packed weights: a multiple of 16 */
OM_UINT(piece_count) /* of 16 terms; one of zeros stands behind them */
OM_UINT(round_count) /* rounds of all slices' steps, of one split */
OM_UINT(zero)        /* 0, which the driver's compiler does not know */
OM_PARAMS_END(conv_matrix)

#endif
