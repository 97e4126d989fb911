/* OM_CLONES: a function is compiled for wider vectors too, and the loader picks what the processor
 * has. Additions and multiplications stay apart (-ffp-contract=off), and lanes are independent
 * results, so the bits are the same. */
#ifndef OM_CLONES_H
#define OM_CLONES_H

/* OM_CLONES_WIDE: for AVX-512, too, where that is worth the bytes: long polynomials, whose values
 * do not fit in the registers of AVX2. Sanitizers run before the loader's resolvers may. */
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#  define OM_CLONES      __attribute__((target_clones("avx2", "default")))
#  define OM_CLONES_WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#  define OM_CLONES
#  define OM_CLONES_WIDE
#endif

#endif
