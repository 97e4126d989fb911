/* Groups of terms with the compiler's vectors, for what the build assumes of the processor and, on
 * x86, for AVX2 and AVX-512 too; a call picks the widest that there is. The text is the same, and
 * multiplications and additions stay apart (-ffp-contract=off), so the bits are. With separate
 * operations an AMD EPYC of family 25 reaches 104 GFLOP/s by AVX2 and 105 by AVX-512, where its
 * bound is 118 (one core, 2026-11-30); AVX-512 multiplies by an element in memory, which
 * needs one vector a row.
 */
#include "cpu/exact/om_product_group.h"

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

#if defined(__x86_64__)
#  define OM_HAS_AVX 1
#else
#  define OM_HAS_AVX 0
#endif

/* ---- What the build assumes ---- */

typedef float vector_f32x4 __attribute__((vector_size(16)));
typedef double vector_f64x2 __attribute__((vector_size(16)));
typedef uint32_t vector_u32x4 __attribute__((vector_size(16)));

#if defined(__aarch64__)
#  define ROWS 4 /* 16 sums of 32 registers */
#else
#  define ROWS 2 /* 8 sums of 16 registers */
#endif
#define TARGET

#define TYPE       float
#define VECTOR     vector_f32x4
#define NAME(name) name##_f32
#include "cpu/exact/om_product_group.inc"

#define TYPE       double
#define VECTOR     vector_f64x2
#define NAME(name) name##_f64
#include "cpu/exact/om_product_group.inc"

#define TYPE       uint32_t
#define VECTOR     vector_u32x4
#define NAME(name) name##_u32
#include "cpu/exact/om_product_group.inc"

#undef ROWS
#undef TARGET

/* ---- AVX2 ---- */

#if OM_HAS_AVX
typedef float vector_f32x8 __attribute__((vector_size(32)));
typedef double vector_f64x4 __attribute__((vector_size(32)));
typedef uint32_t vector_u32x8 __attribute__((vector_size(32)));

#  define TARGET __attribute__((target("avx2")))
#  define ROWS   4

#  define TYPE       float
#  define VECTOR     vector_f32x8
#  define NAME(name) name##_avx2_f32
#  include "cpu/exact/om_product_group.inc"

#  define TYPE       uint32_t
#  define VECTOR     vector_u32x8
#  define NAME(name) name##_avx2_u32
#  include "cpu/exact/om_product_group.inc"
#  undef ROWS
#  define ROWS 2

#  define TYPE       double
#  define VECTOR     vector_f64x4
#  define NAME(name) name##_avx2_f64
#  include "cpu/exact/om_product_group.inc"
#  undef ROWS
#  undef TARGET

/* ---- AVX-512 ---- */

typedef float vector_f32x16 __attribute__((vector_size(64)));

#  define TARGET __attribute__((target("avx512f")))
#  define ROWS   8

#  define TYPE       float
#  define VECTOR     vector_f32x16
#  define NAME(name) name##_avx512_f32
#  include "cpu/exact/om_product_group.inc"
#  undef ROWS
#  undef TARGET
#endif

/* ---- The widest ---- */

#if OM_HAS_AVX
#  define OM_PICK_AVX512(fn, arg)            \
    if (__builtin_cpu_supports("avx512f")) { \
      fn(arg);                               \
      return;                                \
    }
#  define OM_PICK_AVX2(fn, arg)           \
    if (__builtin_cpu_supports("avx2")) { \
      fn(arg);                            \
      return;                             \
    }
#else
#  define OM_PICK_AVX512(fn, arg)
#  define OM_PICK_AVX2(fn, arg)
#endif

void om_product_group_f32(const om_product_group *g) {
  OM_PICK_AVX512(sum_group_avx512_f32, g)
  OM_PICK_AVX2(sum_group_avx2_f32, g)
  sum_group_f32(g);
}

void om_product_group_f64(const om_product_group *g) {
  OM_PICK_AVX2(sum_group_avx2_f64, g)
  sum_group_f64(g);
}

void om_product_group_u32(const om_product_group *g) {
  OM_PICK_AVX2(sum_group_avx2_u32, g)
  sum_group_u32(g);
}

/* No vectors have this multiplication before AVX-512. */
void om_product_group_u64(const om_product_group *g) {
  for (size_t r = 0; r < g->rows; ++r) {
    const uint64_t *w = (const uint64_t *)g->w + r * g->w_row_stride;
    uint64_t *y = (uint64_t *)g->y + r * g->y_stride;
    for (size_t lane = 0; g->is_first && lane < OM_GROUP_LANES; ++lane) y[lane] = 0;
    for (size_t k = 0; k < g->terms; ++k) {
      const uint64_t *x = (const uint64_t *)g->x + k * g->x_stride;
      for (size_t lane = 0; lane < OM_GROUP_LANES; ++lane)
        y[lane] += x[lane] * w[k * g->w_term_stride];
    }
  }
}

void om_product_taps_f32(const om_product_taps *t) {
  OM_PICK_AVX512(sum_taps_avx512_f32, t)
  OM_PICK_AVX2(sum_taps_avx2_f32, t)
  sum_taps_f32(t);
}

void om_product_taps_f64(const om_product_taps *t) {
  OM_PICK_AVX2(sum_taps_avx2_f64, t)
  sum_taps_f64(t);
}

void om_product_taps_u32(const om_product_taps *t) {
  OM_PICK_AVX2(sum_taps_avx2_u32, t)
  sum_taps_u32(t);
}
