/* Parameters of the products of all inputs of a recurrent layer. */
#ifndef OM_RECURRENT_INPUTS_PARAMS_H
#define OM_RECURRENT_INPUTS_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(recurrent_inputs)
OM_UINT(elems) /* directions * rows * hidden */
OM_UINT(rows)
OM_UINT(hidden)
OM_UINT(depth) /* elements of a row of x */
OM_PARAMS_END(recurrent_inputs)

#endif
