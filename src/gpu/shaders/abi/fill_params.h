/* Parameters of ConstantOfShape (whose step is 0) and Range. */
#ifndef OM_FILL_PARAMS_H
#define OM_FILL_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(fill_words)
OM_UINT(elems)     /* of the result; words of a constant of bytes */
OM_UINT(start_low) /* an integer's, or a float's bits */
OM_UINT(start_high)
OM_UINT(step_low)
OM_UINT(step_high)
OM_PARAMS_END(fill_words)

#endif
