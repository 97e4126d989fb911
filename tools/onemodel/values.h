/* Single elements of a tensor as numbers, whatever its type. */
#ifndef VALUES_H
#define VALUES_H

#include "onemodel/onemodel.h"

bool value_is_integer(om_dtype dtype); /* bool included */
int64_t value_as_integer(const om_tensor *t, size_t index);
double value_as_double(const om_tensor *t, size_t index); /* NaN for types without numbers */

#endif
