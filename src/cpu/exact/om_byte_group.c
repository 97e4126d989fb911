/* Groups of 8-bit terms by what the processor has: on x86 the dot products of AVX-512 VNNI, else
 * products of 16 bits, which add two by two and cannot saturate (those of bytes could); elsewhere
 * the compiler's vectors. A call picks the widest that there is.
 */
#include "cpu/exact/om_byte_group.h"

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

/* Without optimisation the sums do not live in registers (as om_product_group.c says). */
#if defined(__GNUC__) && !defined(__clang__)
#  pragma GCC optimize("O2")
#  define OM_UNROLL _Pragma("GCC unroll 8")
#else
#  define OM_UNROLL
#  if defined(__clang__)
#    pragma clang diagnostic ignored "-Wframe-larger-than"
#  endif
#endif

static inline __attribute__((always_inline)) int load_four(const uint8_t *from) {
  int four;
  memcpy(&four, from, sizeof four);
  return four;
}

/* One to three, with zeros behind them. Without a loop, which would become a call. */
static inline __attribute__((always_inline)) int load_rest(const uint8_t *from, size_t count) {
  const uint8_t bytes[4] = {from[0], count > 1 ? from[1] : 0, count > 2 ? from[2] : 0, 0};
  return load_four(bytes);
}

#if defined(__x86_64__)
typedef struct pair_128 { /* bytes 0 and 2, bytes 1 and 3 of each four, as 16 bits */
  __m128i even, odd;
} pair_128;

static inline __attribute__((always_inline)) pair_128 split_128(__m128i x, bool is_signed) {
  pair_128 p;
  p.even =
      is_signed ? _mm_srai_epi16(_mm_slli_epi16(x, 8), 8) : _mm_srli_epi16(_mm_slli_epi16(x, 8), 8);
  p.odd = is_signed ? _mm_srai_epi16(x, 8) : _mm_srli_epi16(x, 8);
  return p;
}

static inline __attribute__((always_inline)) __m128i dot_128(__m128i sum, pair_128 a, pair_128 b) {
  const __m128i even = _mm_madd_epi16(a.even, b.even);
  return _mm_add_epi32(sum, _mm_add_epi32(even, _mm_madd_epi16(a.odd, b.odd)));
}

#  define VECTOR            __m128i
#  define PART              pair_128
#  define SPREAD(x)         _mm_set1_epi32(x)
#  define SPLIT(x, s)       split_128(x, s)
#  define DOT(sum, a, b, s) dot_128(sum, a, b)
#  define ROWS              1
#  define TARGET
#  define NAME(name) name##_sse2
#  include "cpu/exact/om_byte_group.inc"

typedef struct pair_256 {
  __m256i even, odd;
} pair_256;

#  define TARGET_256 __attribute__((target("avx2")))

TARGET_256 static inline __attribute__((always_inline)) pair_256 split_256(__m256i x,
                                                                           bool is_signed) {
  pair_256 p;
  p.even = is_signed ? _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8)
                     : _mm256_srli_epi16(_mm256_slli_epi16(x, 8), 8);
  p.odd = is_signed ? _mm256_srai_epi16(x, 8) : _mm256_srli_epi16(x, 8);
  return p;
}

TARGET_256 static inline __attribute__((always_inline)) __m256i dot_256(__m256i sum,
                                                                        pair_256 a,
                                                                        pair_256 b) {
  const __m256i even = _mm256_madd_epi16(a.even, b.even);
  return _mm256_add_epi32(sum, _mm256_add_epi32(even, _mm256_madd_epi16(a.odd, b.odd)));
}

#  define VECTOR            __m256i
#  define PART              pair_256
#  define SPREAD(x)         _mm256_set1_epi32(x)
#  define SPLIT(x, s)       split_256(x, s)
#  define DOT(sum, a, b, s) dot_256(sum, a, b)
#  define ROWS              2 /* 8 sums of 16 registers */
#  define TARGET            TARGET_256
#  define NAME(name)        name##_avx2
#  include "cpu/exact/om_byte_group.inc"

/* A product of four terms takes one operand without and one with sign. */
#  define VECTOR            __m512i
#  define PART              __m512i
#  define SPREAD(x)         _mm512_set1_epi32(x)
#  define SPLIT(x, s)       (x)
#  define DOT(sum, a, b, s) ((s) ? _mm512_dpbusd_epi32(sum, b, a) : _mm512_dpbusd_epi32(sum, a, b))
#  define ROWS              8 /* 16 sums of 32 registers */
#  define TARGET            __attribute__((target("avx512f,avx512vnni")))
#  define NAME(name)        name##_vnni
#  include "cpu/exact/om_byte_group.inc"

void om_byte_group_run(const om_byte_group *g) {
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512f")) {
    run_vnni(g);
  } else if (__builtin_cpu_supports("avx2")) {
    run_avx2(g);
  } else {
    run_sse2(g);
  }
}

#else
typedef int32_t whole_x4 __attribute__((vector_size(16)));
typedef uint32_t bits_x4 __attribute__((vector_size(16)));
typedef struct bytes_x4 {
  whole_x4 term[4];
} bytes_x4;

static inline __attribute__((always_inline)) bytes_x4 split_bytes(whole_x4 x, bool is_signed) {
  bytes_x4 p;
  for (int i = 0; i < 4; ++i) {
    const bits_x4 top = (bits_x4)x << (24 - 8 * i);
    p.term[i] = is_signed ? (whole_x4)top >> 24 : (whole_x4)(top >> 24);
  }
  return p;
}

static inline __attribute__((always_inline)) whole_x4 dot_bytes(whole_x4 sum,
                                                                bytes_x4 a,
                                                                bytes_x4 b) {
  bits_x4 total = (bits_x4)sum; /* wraps */
  for (int i = 0; i < 4; ++i) total += (bits_x4)(a.term[i] * b.term[i]);
  return (whole_x4)total;
}

#  define VECTOR            whole_x4
#  define PART              bytes_x4
#  define SPREAD(x)         ((whole_x4){x, x, x, x})
#  define SPLIT(x, s)       split_bytes(x, s)
#  define DOT(sum, a, b, s) dot_bytes(sum, a, b)
#  define ROWS              2
#  define TARGET
#  define NAME(name) name##_any
#  include "cpu/exact/om_byte_group.inc"

void om_byte_group_run(const om_byte_group *g) {
  run_any(g);
}
#endif
