/* Tiles for the widths of vectors that a processor may have (om_tile.inc). */
#include "cpu/fast/om_tile.h"

#include <math.h>

#include "cpu/fast/om_finish.h"

#if defined(__clang__)
#  define UNROLL _Pragma("clang loop unroll(full)")
#else
#  define UNROLL _Pragma("GCC unroll 16")
#endif

enum { APART_TAPS = 25 }; /* at once: their places lie on the stack */

/* Fewer than `lanes` elements. A call would have all sums saved around it. */
static inline __attribute__((always_inline)) void copy_part(float *to,
                                                            const float *from,
                                                            size_t count,
                                                            size_t lanes) {
#define COPY(size)                            \
  if ((size) < lanes && (count & (size))) {   \
    memcpy(to, from, (size) * sizeof(float)); \
    to += (size);                             \
    from += (size);                           \
  }
  COPY(8u)
  COPY(4u)
  COPY(2u)
  if (count & 1u) *to = *from;
#undef COPY
}

/* Columns c and on of a depthwise convolution, one by one. */
static void add_apart(const om_tile *t,
                      size_t first,
                      size_t taps,
                      size_t rows,
                      const float *const *places,
                      size_t c) {
  for (; c < t->cols; ++c) {
    for (size_t i = 0; i < taps; ++i) {
      const float w = t->w[(first + i) * t->w_step + c];
      for (size_t r = 0; r < rows; ++r) t->y[r][c] += w * places[i * rows + r][c];
    }
  }
}

static void clamp_row(float low, float high, size_t cols, float *y) {
  for (size_t c = 0; c < cols; ++c) {
    const float x = y[c] < low ? low : y[c];
    y[c] = x > high ? high : x;
  }
}

#if defined(__x86_64__)
#  include <immintrin.h>

#  define LANES   16
#  define TARGET  __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#  define NAME(n) n##_16
#  include "cpu/fast/om_tile.inc"
#  undef LANES
#  undef TARGET
#  undef NAME

#  define LANES   8
#  define TARGET  __attribute__((target("avx2,fma")))
#  define NAME(n) n##_8
#  include "cpu/fast/om_tile.inc"
#  undef LANES
#  undef TARGET
#  undef NAME
#endif

#define LANES 4
#define TARGET
#define NAME(n) n##_4
#include "cpu/fast/om_tile.inc"

const om_tile_set *om_tile_set_for(size_t cols) {
#if defined(__x86_64__)
  const bool has_8 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_16 = has_8 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq");
  if (has_16 && cols >= 16) return &tile_set_16;
  if (has_8 && cols >= 8) return &tile_set_8;
#endif
  return cols >= 4 ? &tile_set_4 : NULL;
}

const om_tile_set *om_tile_set_get(void) {
  return om_tile_set_for(SIZE_MAX);
}
