/* Block sums with the compiler's vectors. The wide form is the same text compiled for AVX (which
 * has no fused multiply-add): the bits are the same, only more lanes go at once.
 */
#include "cpu/exact/om_conv_block.h"

#include <stdbool.h>
#include <string.h>

enum { LANES = OM_CONV_LANES };

typedef float vector4 __attribute__((vector_size(16)));
typedef float vector8 __attribute__((vector_size(32)));

/* Sums of ROWS rows over two vectors of lanes at a time: ROWS * 2 accumulators in registers. */
#define OM_BLOCK(VECTOR, ROWS)                                  \
  do {                                                          \
    enum { WIDTH = (int)(sizeof(VECTOR) / sizeof(float)) };     \
    for (int lane = 0; lane < LANES; lane += 2 * WIDTH) {       \
      VECTOR acc[ROWS][2];                                      \
      memset(acc, 0, sizeof acc);                               \
      for (uint32_t term = 0; term < terms; ++term) {           \
        VECTOR x[2];                                            \
        memcpy(x, panel + term * LANES + lane, sizeof x);       \
        for (int r = 0; r < (ROWS); ++r) {                      \
          const float weight = w[r * stride + term];            \
          acc[r][0] += x[0] * weight;                           \
          acc[r][1] += x[1] * weight;                           \
        }                                                       \
      }                                                         \
      for (int r = 0; r < (ROWS); ++r) {                        \
        memcpy(sums + r * LANES + lane, acc[r], sizeof acc[r]); \
      }                                                         \
    }                                                           \
  } while (0)

#if defined(__x86_64__)
__attribute__((target("avx"))) static void block_wide(
    const float *panel, const float *w, int64_t stride, uint32_t terms, int rows, float *sums) {
  if (rows == OM_CONV_ROWS) {
    OM_BLOCK(vector8, OM_CONV_ROWS);
    return;
  }
  for (int row = 0; row < rows; ++row, w += stride, sums += LANES) OM_BLOCK(vector8, 1);
}
#endif

static void block_narrow(
    const float *panel, const float *w, int64_t stride, uint32_t terms, int rows, float *sums) {
  if (rows == OM_CONV_ROWS) {
    OM_BLOCK(vector4, OM_CONV_ROWS);
    return;
  }
  for (int row = 0; row < rows; ++row, w += stride, sums += LANES) OM_BLOCK(vector4, 1);
}

void om_conv_block_f32(
    const float *panel, const float *w, int64_t stride, uint32_t terms, int rows, float *sums) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx")) {
    block_wide(panel, w, stride, terms, rows, sums);
    return;
  }
#endif
  block_narrow(panel, w, stride, terms, rows, sums);
}

#define OM_PLAIN_BLOCK(name, type)                                                              \
  void name(                                                                                    \
      const type *panel, const type *w, int64_t stride, uint32_t terms, int rows, type *sums) { \
    for (int r = 0; r < rows; ++r) {                                                            \
      type *sum = sums + r * LANES;                                                             \
      for (int lane = 0; lane < LANES; ++lane) sum[lane] = 0;                                   \
      for (uint32_t term = 0; term < terms; ++term) {                                           \
        const type weight = w[r * stride + term];                                               \
        const type *x = panel + term * LANES;                                                   \
        for (int lane = 0; lane < LANES; ++lane) sum[lane] += x[lane] * weight;                 \
      }                                                                                         \
    }                                                                                           \
  }

OM_PLAIN_BLOCK(om_conv_block_f64, double)
OM_PLAIN_BLOCK(om_conv_block_u32, uint32_t)
