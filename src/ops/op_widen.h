/* Types that are computed in float32: widened before, rounded once after. */
#ifndef OP_WIDEN_H
#define OP_WIDEN_H

#include "base/om_base.h"

/* True for float16, bfloat16 and the 8- and 16-bit integers. */
bool om_widen_needed(om_dtype dtype);

/* Fills target with the tensor's elements; returns it. */
const float *om_widen(const om_tensor *tensor, float *target);

/* Fills the tensor: floats rounded to nearest even, integers truncated and saturated (NaN is 0). */
void om_narrow(const float *source, const om_tensor *tensor);

#endif
