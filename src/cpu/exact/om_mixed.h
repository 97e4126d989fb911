/* Kernels whose operands have types of their own: powers, copies, integer remainders. */
#ifndef OM_MIXED_H
#define OM_MIXED_H

#include "cpu/exact/om_elementwise.h"

/* arg of om_pow_kernel: the types as the kernel sees them (float32 for the 16-bit floats). */
typedef struct om_pow_types {
  om_dtype base;
  om_dtype exponent;
} om_pow_types;

void om_mixed_pow(const void *const *in, void *out, size_t count, const void *arg);

/* The remainder with the divisor's sign (is_fmod false) or the dividend's. */
om_elementwise_fn om_mod_kernel(om_dtype dtype, bool is_fmod);

/* Copies elements of the type; of float16 and bfloat16 as the engine converts them. */
om_elementwise_fn om_copy_kernel(om_dtype dtype);

#endif
