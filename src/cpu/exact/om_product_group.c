/* Groups of terms with the compiler's vectors, for what the build assumes of the processor and, on
 * x86, for AVX2 and AVX-512 too; a call picks the widest that there is. The text is the same, and
 * multiplications and additions stay apart (-ffp-contract=off), so the bits are. With separate
 * operations an AMD EPYC of family 25 reaches 104 GFLOP/s by AVX2 and 105 by AVX-512, where its
 * bound is 118 (one core, 2026-11-30); AVX-512 multiplies by an element in memory, which
 * needs one vector a row.
 */
#include "cpu/exact/om_product_group.h"

#include "cpu/exact/om_clones.h"
#include "cpu/exact/om_widths.h"

/* ---- What the build assumes ---- */

typedef float vector_f32x4 __attribute__((vector_size(16)));
typedef double vector_f64x2 __attribute__((vector_size(16)));

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

#undef ROWS
#undef TARGET

/* ---- AVX2 ---- */

#if defined(__x86_64__)
typedef float vector_f32x8 __attribute__((vector_size(32)));
typedef double vector_f64x4 __attribute__((vector_size(32)));

#  define TARGET __attribute__((target("avx2")))
#  define ROWS   4

#  define TYPE       float
#  define VECTOR     vector_f32x8
#  define NAME(name) name##_avx2_f32
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

void om_product_group_f32(const om_product_group *g) {
  OM_PICK("avx512f", sum_group_avx512_f32, g)
  OM_PICK("avx2", sum_group_avx2_f32, g)
  sum_group_f32(g);
}

void om_product_group_f64(const om_product_group *g) {
  OM_PICK("avx2", sum_group_avx2_f64, g)
  sum_group_f64(g);
}

/* Whole numbers of any size: the order does not matter, and no vectors multiply 64 bits before
 * AVX-512. */
#define OM_WHOLE_GROUP(name, type)                                                          \
  OM_CLONES static void name(const om_product_group *g) {                                   \
    for (size_t r = 0; r < g->rows; ++r) {                                                  \
      const type *w = (const type *)g->w + r * g->w_row_stride;                             \
      type *y = (type *)g->y + r * g->y_stride;                                             \
      type sum[OM_GROUP_LANES] = {0};                                                       \
      for (size_t k = 0; k < g->terms; ++k) {                                               \
        const type *x = (const type *)g->x + k * g->x_stride;                               \
        const type weight = w[k * g->w_term_stride];                                        \
        for (size_t lane = 0; lane < OM_GROUP_LANES; ++lane) sum[lane] += x[lane] * weight; \
      }                                                                                     \
      for (size_t lane = 0; lane < OM_GROUP_LANES; ++lane) {                                \
        y[lane] = g->is_first ? sum[lane] : y[lane] + sum[lane];                            \
      }                                                                                     \
    }                                                                                       \
  }
OM_WHOLE_GROUP(whole_group_u32, uint32_t)
OM_WHOLE_GROUP(whole_group_u64, uint64_t)

void om_product_group_u32(const om_product_group *g) {
  whole_group_u32(g);
}

void om_product_group_u64(const om_product_group *g) {
  whole_group_u64(g);
}

void om_product_vector_f32(const om_product_group *g) {
  OM_PICK("avx512f", sum_vector_avx512_f32, g)
  OM_PICK("avx2", sum_vector_avx2_f32, g)
  sum_vector_f32(g);
}

void om_product_vector_f64(const om_product_group *g) {
  OM_PICK("avx2", sum_vector_avx2_f64, g)
  sum_vector_f64(g);
}

void om_product_taps_f32(const om_product_taps *t) {
  OM_PICK("avx512f", sum_taps_avx512_f32, t)
  OM_PICK("avx2", sum_taps_avx2_f32, t)
  sum_taps_f32(t);
}

void om_product_taps_f64(const om_product_taps *t) {
  OM_PICK("avx2", sum_taps_avx2_f64, t)
  sum_taps_f64(t);
}
