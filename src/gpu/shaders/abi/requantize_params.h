/* Parameters of what turns the sums of an integer product into its result. */
#ifndef OM_REQUANTIZE_PARAMS_H
#define OM_REQUANTIZE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(requantize)
OM_UINT(elems)
OM_UINT(columns)
OM_UINT(a_scales) /* row r of all slices has number r % a_scales; column c number c % b_scales */
OM_UINT(b_scales)
OM_UINT(row_biases) /* 0: columns have biases, rows none */
OM_UINT(column_biases)
OM_PARAMS_END(requantize)

#endif
