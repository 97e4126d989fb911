/* Parameters of the products of 8-bit operands. A product's slices are its batch; of a convolution
 * they are images and groups. */
#ifndef OM_INTEGER_PRODUCT_PARAMS_H
#define OM_INTEGER_PRODUCT_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(integer_product)
OM_UINT(rows) /* of a slice's result: output channels of a group */
OM_UINT(columns)
OM_UINT(terms)
OM_UINT(a_words) /* of 32 bits, in the whole operand */
OM_UINT(b_words)
OM_UINT(a_divide) /* a slice reads the matrix slice / a_divide % a_modulo of a; b likewise */
OM_UINT(a_modulo)
OM_UINT(b_divide)
OM_UINT(b_modulo)
OM_UINT(a_zeros) /* zero points; row r of all of a has number r % a_zeros, a column of b likewise */
OM_UINT(b_zeros)
OM_UINT(in_d)        /* b is [channels, in_d, in_h, in_w]; of a matrix [terms, 1, 1, columns] */
OM_UINT(in_h)
OM_UINT(in_w)
OM_UINT(out_h)
OM_UINT(out_w)
OM_UINT(dilation_d)
OM_UINT(dilation_h)
OM_UINT(dilation_w)
OM_UINT(pad_d)
OM_UINT(pad_h)
OM_UINT(pad_w)
OM_PARAMS_END(integer_product)

#endif
