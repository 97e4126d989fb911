/* For files whose kernels are one text (.inc) compiled for several widths of vectors: the loops are
 * unrolled, so that sums live in registers, and a call picks the widest form that the processor
 * has.
 */
#ifndef OM_WIDTHS_H
#define OM_WIDTHS_H

/* Without optimisation the sums do not live in registers: a debug build would crawl, and its
 * frames would be above the limit. */
#if defined(__GNUC__) && !defined(__clang__)
#  pragma GCC optimize("O2")
#  define OM_UNROLL _Pragma("GCC unroll 8")
#else
#  define OM_UNROLL
#  if defined(__clang__)
#    pragma clang diagnostic ignored "-Wframe-larger-than" /* 1.5 KiB at -O0 and -O1 */
#  endif
#endif

/* Calls fn and returns where the processor has these instructions; `fn` need not be there in builds
 * for others. */
#if defined(__x86_64__)
#  define OM_PICK(instructions, fn, arg)        \
    if (__builtin_cpu_supports(instructions)) { \
      fn(arg);                                  \
      return;                                   \
    }
#else
#  define OM_PICK(instructions, fn, arg)
#endif

#endif
