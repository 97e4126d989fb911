/* Kernels of trigonometric and hyperbolic functions; "Atan", ... NULL for another name. */
#ifndef OM_TRIGONOMETRY_H
#define OM_TRIGONOMETRY_H

#include "cpu/exact/om_elementwise.h"

om_elementwise_fn om_trigonometry_kernel(const char *type, om_dtype dtype);

#endif
