/* ops/elementwise.def read in double precision. */
#ifndef OM_ELEMENTWISE_F64_H
#define OM_ELEMENTWISE_F64_H

#include "cpu/exact/om_elementwise.h"

/* NULL: no such operation. The scalars (arg) are float64. */
om_elementwise_fn om_elementwise_f64_kernel(uint8_t number);

#endif
