/* Floats of 16, 8 and 4 bits in integer arithmetic: rounding to nearest even. */
#ifndef OM_SMALL_FLOAT_H
#define OM_SMALL_FLOAT_H

#include "base/om_base.h"

/* The type is a float of at most 16 bits. */
bool om_is_small_float(om_dtype dtype);

/* The value of the bits. */
float om_small_float_decode(om_dtype dtype, uint32_t bits);

/* Bits of the value rounded. What is too large becomes the largest value if `saturates`, else
 * infinity, or NaN in types without one; float16 and bfloat16 never saturate, float4 always
 * does. NaN stays NaN; float4 has none: 0. */
uint32_t om_small_float_encode(om_dtype dtype, float value, bool saturates);

/* The float32 toward zero, its last bit set where anything was cut off: a value that rounds to
 * any shorter float as `value` does. */
float om_f32_sticky(double value);

#endif
