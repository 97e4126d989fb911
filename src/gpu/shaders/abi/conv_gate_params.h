/* Parameters of the gate of a squeeze-and-excite block: conv_gate.comp. */
#ifndef OM_CONV_GATE_PARAMS_H
#define OM_CONV_GATE_PARAMS_H

#include "abi/om_params.h"

OM_PARAMS_BEGIN(conv_gate)
OM_UINT(channels)
OM_UINT(squeezed)         /* channels between the products */
OM_UINT(pixels)           /* of a channel */
OM_UINT(squeeze_columns)  /* of the first product's packed weights, in elements */
OM_UINT(excite_columns)   /* of the second's */
OM_FLOAT(squeeze_p)       /* scalars of the operation behind the first product */
OM_FLOAT(squeeze_q)
OM_FLOAT(excite_p)        /* and behind the second */
OM_FLOAT(excite_q)
OM_PARAMS_END(conv_gate)

#endif
