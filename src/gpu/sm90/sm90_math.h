/* om_exact_math.h in sm90 kernels. OM_EXACT=1 of a kernel's head line gives its functions the bits
 * of docs/exact.md: then the build neither contracts nor approximates (tools/embed_ptx.py).
 */
#ifndef SM90_MATH_H
#define SM90_MATH_H

#ifndef OM_EXACT
#  define OM_EXACT 0
#endif

/* What it asks for of a C library. */
#define memcpy __builtin_memcpy
#if OM_EXACT
#  define sqrtf(x) __nvvm_sqrt_rn_ftz_f(x)
#else
#  define sqrtf(x)  __nvvm_sqrt_approx_f(x)
#  define exp(x)    __nvvm_ex2_approx_f((x) * 1.44269504f)
#  define log(x)    (__nvvm_lg2_approx_f(x) * 0.693147181f)
#  define pow(x, y) __nvvm_ex2_approx_f((y) * __nvvm_lg2_approx_f(x))
#  define sin(x)    __nvvm_sin_approx_f(x)
#  define cos(x)    __nvvm_cos_approx_f(x)
#endif
#include "cpu/exact/om_exact_math.h"

#endif
