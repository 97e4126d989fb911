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

#if OM_EXACT
/* a * b + c, rounded once, with subnormals. It serves to find a quotient's remainder, which is a
 * number without any rounding; no exact sum is made so. */
static inline __attribute__((always_inline, unused)) float exact_fma(float a, float b, float c) {
  float result;
  __asm__("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
  return result;
}

/* om_div(a, b) with 1 / b, correctly rounded, in hand; a is within 2^-80 and 2^80, b within 2^-20
 * and 2^20, or NaN, so that remainders are numbers. The first correction makes it one of the
 * quotient's neighbours, from which the second, with a reciprocal so exact, makes the nearest
 * (Markstein). Of a zero it is +0. */
static inline __attribute__((always_inline, unused)) float exact_quotient(float a,
                                                                          float b,
                                                                          float reciprocal) {
  float q = a * reciprocal;
  q = exact_fma(exact_fma(-b, q, a), reciprocal, q);
  return exact_fma(exact_fma(-b, q, a), reciprocal, q);
}
#endif

#endif
