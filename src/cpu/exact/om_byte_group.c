/* Groups of 8-bit terms by what the processor has: on x86 the dot products of AVX-512 VNNI, else
 * products of 16 bits, which add two by two and cannot saturate (those of bytes could); elsewhere
 * the compiler's vectors. A call picks the widest that there is.
 */
#include "cpu/exact/om_byte_group.h"

#include "cpu/exact/om_widths.h"

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

#if defined(__x86_64__) && defined(__linux__)
#  define OM_HAS_TILES 1
#  include <sys/syscall.h>
#  include <unistd.h>
#endif

static inline __attribute__((always_inline)) int load_four(const uint8_t *from) {
  int four;
  memcpy(&four, from, sizeof four);
  return four;
}

/* ---- Panels ---- */

typedef uint8_t bytes_x16 __attribute__((vector_size(16)));
typedef uint16_t pairs_x8 __attribute__((vector_size(16)));

/* Four terms of OM_BYTE_LANES columns. */
static void fill_any(const uint8_t *const line[4], uint8_t flip, uint8_t *panel) {
  for (size_t lane = 0; lane < OM_BYTE_LANES; lane += 16) {
    bytes_x16 in[4];
    pairs_x8 half[4], out[4];
    OM_UNROLL for (size_t k = 0; k < 4; ++k) {
      memcpy(&in[k], line[k] + lane, sizeof in[k]);
      in[k] ^= flip;
    }
    OM_UNROLL for (size_t k = 0; k < 2; ++k) {
      half[k] = (pairs_x8)__builtin_shufflevector(
          in[2 * k], in[2 * k + 1], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      half[2 + k] = (pairs_x8)__builtin_shufflevector(
          in[2 * k], in[2 * k + 1], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    OM_UNROLL for (size_t k = 0; k < 2; ++k) {
      const pairs_x8 low = half[2 * k];
      const pairs_x8 high = half[2 * k + 1];
      out[2 * k] = __builtin_shufflevector(low, high, 0, 8, 1, 9, 2, 10, 3, 11);
      out[2 * k + 1] = __builtin_shufflevector(low, high, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    memcpy(panel + lane * 4, out, sizeof out);
  }
}

typedef void (*fill_fn)(const uint8_t *const line[4], uint8_t flip, uint8_t *panel);

/* Of the `width` last columns, at most OM_BYTE_LANES: nothing is read behind a line. */
static inline __attribute__((always_inline)) void fill_ends(
    const uint8_t *const line[4], size_t width, uint8_t flip, uint8_t *panel, fill_fn fill) {
  uint8_t ends[4][OM_BYTE_LANES];
  const uint8_t *const at[4] = {ends[0], ends[1], ends[2], ends[3]};
  for (size_t k = 0; k < 4; ++k) om_byte_copy(line[k], width, ends[k]);
  fill(at, flip, panel);
}

static inline __attribute__((always_inline)) void fill_panel(const om_byte_panel *p, fill_fn fill) {
  const size_t last = p->terms - 1;
  const size_t whole = p->width / OM_BYTE_LANES * OM_BYTE_LANES;
  for (size_t k = 0; k < p->terms; k += 4) {
    uint8_t *panel = p->panel + k * p->columns;
    const uint8_t *line[4];
    OM_UNROLL for (size_t i = 0; i < 4; ++i) {
      const size_t term = k + i < last ? k + i : last;
      line[i] = p->from + (p->offsets ? p->offsets[term] : term * p->step);
    }
    for (size_t column = 0; column < whole; column += OM_BYTE_LANES) {
      fill(line, p->flip, panel + column * 4);
      OM_UNROLL for (size_t i = 0; i < 4; ++i) line[i] += OM_BYTE_LANES;
    }
    if (whole < p->width) fill_ends(line, p->width - whole, p->flip, panel + whole * 4, fill);
  }
}

static void panel_any(const om_byte_panel *p) {
  fill_panel(p, fill_any);
}

/* ---- Sums ---- */

/* Of one row (om_byte_finish). */
typedef struct om_byte_rounding {
  int32_t add, zero;
  float factor, least, most; /* the result without the zero point is within them */
  float limit;               /* from which distance to a whole number on it is doubtful */
} om_byte_rounding;

/* Bit i of bits: the result at `at` + i is doubtful; there are `left` of them. */
static inline void list_doubts(const om_byte_finish *f, size_t at, size_t left, uint32_t bits) {
  if (left < OM_BYTE_LANES) bits &= ((uint32_t)1 << left) - 1;
  for (; bits != 0; bits &= bits - 1) {
    f->doubts[(*f->doubt_count)++] = (uint32_t)at + (uint32_t)__builtin_ctz(bits);
  }
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

TARGET_256 static inline void fill_256(const uint8_t *const line[4], uint8_t flip, uint8_t *panel) {
  const __m256i flips = _mm256_set1_epi8((char)flip);
  __m256i in[4];
  OM_UNROLL for (size_t k = 0; k < 4; ++k) {
    in[k] = _mm256_xor_si256(_mm256_loadu_si256((const __m256i_u *)(const void *)line[k]), flips);
  }
  /* Each half of a vector holds its own columns: 0..15, 16..31. */
  const __m256i low_01 = _mm256_unpacklo_epi8(in[0], in[1]);
  const __m256i high_01 = _mm256_unpackhi_epi8(in[0], in[1]);
  const __m256i low_23 = _mm256_unpacklo_epi8(in[2], in[3]);
  const __m256i high_23 = _mm256_unpackhi_epi8(in[2], in[3]);
  const __m256i a = _mm256_unpacklo_epi16(low_01, low_23),
                b = _mm256_unpackhi_epi16(low_01, low_23);
  const __m256i c = _mm256_unpacklo_epi16(high_01, high_23);
  const __m256i d = _mm256_unpackhi_epi16(high_01, high_23);
  __m256i_u *out = (__m256i_u *)(void *)panel;
  _mm256_storeu_si256(out, _mm256_permute2x128_si256(a, b, 0x20));
  _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(c, d, 0x20));
  _mm256_storeu_si256(out + 2, _mm256_permute2x128_si256(a, b, 0x31));
  _mm256_storeu_si256(out + 3, _mm256_permute2x128_si256(c, d, 0x31));
}

TARGET_256 static void panel_256(const om_byte_panel *p) {
  fill_panel(p, fill_256);
}

/* A product of four terms takes one operand without and one with sign. */

#  define TARGET_512 __attribute__((target("avx512f,avx512bw,avx512vnni")))

/* 16 sums as floats before rounding, not above the largest byte. */
TARGET_512 static inline __attribute__((always_inline)) __m512 scale_512(const uint32_t *sums,
                                                                         __m512i add,
                                                                         __m512 factor,
                                                                         __m512 most) {
  const __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(sums), add);
  return _mm512_min_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor), most);
}

/* 32 whole numbers as bytes: narrowed two times, where the instructions saturate. */
TARGET_512 static inline __attribute__((always_inline)) __m256i narrow_512(__m512i low,
                                                                           __m512i high,
                                                                           __m512i zero,
                                                                           bool is_signed) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512i pairs = _mm512_adds_epi16(_mm512_packs_epi32(low, high), zero);
  const __m512i bytes =
      is_signed ? _mm512_packs_epi16(pairs, pairs) : _mm512_packus_epi16(pairs, pairs);
  return _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, bytes));
}

/* Bit i: the float i is doubtful. */
TARGET_512 static inline __attribute__((always_inline)) uint32_t doubt_512(__m512 x,
                                                                           __m512 least,
                                                                           __m512 limit) {
  const __m512 shift = _mm512_set1_ps(0x1.8p23f), kept = _mm512_max_ps(x, least);
  const __m512 whole = _mm512_sub_ps(_mm512_add_ps(kept, shift), shift);
  return _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_sub_ps(kept, whole)), limit, _CMP_NLT_UQ);
}

TARGET_512 static inline __attribute__((always_inline)) void finish_lanes_512(
    const om_byte_finish *f, size_t row, om_byte_rounding r, bool is_signed, bool has_doubts) {
  const __m512i add = _mm512_set1_epi32(r.add), zero = _mm512_set1_epi16((int16_t)r.zero);
  const __m512 factor = _mm512_set1_ps(r.factor), most = _mm512_set1_ps(r.most);
  const __m512 least = _mm512_set1_ps(r.least), limit = _mm512_set1_ps(r.limit);
  const uint32_t *sums = f->sums + row * f->stride;
  uint8_t *y = f->y + row * f->y_stride;
  const size_t width = f->width;
  for (size_t lane = 0; lane < width; lane += OM_BYTE_LANES) {
    const size_t left = width - lane;
    const __m512 low = scale_512(sums + lane, add, factor, most);
    const __m512 high = scale_512(sums + lane + 16, add, factor, most);
    const __m256i bytes =
        narrow_512(_mm512_cvtps_epi32(low), _mm512_cvtps_epi32(high), zero, is_signed);
    if (left >= OM_BYTE_LANES) {
      _mm256_storeu_si256((__m256i_u *)(void *)(y + lane), bytes);
    } else {
      uint8_t ends[OM_BYTE_LANES];
      _mm256_storeu_si256((__m256i_u *)(void *)ends, bytes);
      om_byte_copy(ends, left, y + lane);
    }
    if (!has_doubts) continue;
    const uint32_t bits = doubt_512(low, least, limit) | doubt_512(high, least, limit) << 16;
    list_doubts(f, row * f->stride + lane, left, bits);
  }
}

/* What is not finite is left to the text of the others, which knows NaN. Far below, the conversion
 * gives the least integer. */
TARGET_512 static void finish_row_512(const om_byte_finish *f, size_t row, om_byte_rounding r) {
  if (f->limits) {
    finish_lanes_512(f, row, r, f->is_signed, true);
  } else if (f->is_signed) {
    finish_lanes_512(f, row, r, true, false);
  } else {
    finish_lanes_512(f, row, r, false, false);
  }
}

#  define FINISH_ROW(f, row, r) finish_row_512(f, row, r)
#  define VECTOR                __m512i
#  define PART                  __m512i
#  define SPREAD(x)             _mm512_set1_epi32(x)
#  define SPLIT(x, s)           (x)
#  define DOT(sum, a, b, s)     ((s) ? _mm512_dpbusd_epi32(sum, b, a) : _mm512_dpbusd_epi32(sum, a, b))
#  define ROWS                  8 /* 16 sums of 32 registers */
#  define TARGET                TARGET_512
#  define NAME(name)            name##_vnni
#  include "cpu/exact/om_byte_group.inc"

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
#endif

/* ---- Tiles ---- */

#ifdef OM_HAS_TILES
#  define TARGET_TILES __attribute__((target("amx-tile,amx-int8")))

enum {
  TILE_ROWS = 16,
  TILE_BYTES = 64,      /* of a row */
  FEWEST_BYTES = 2048,  /* of a, for which setting tiles up, 0.13 us, is worth while, */
  FEWEST_TILE_ROWS = 8, /* and rows and terms: one takes as long as all of a tile */
  FEWEST_TILE_TERMS = 16,
};

/* As LDTILECFG reads it. */
typedef struct tile_shapes {
  uint8_t palette, start_row, unused[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} tile_shapes;

/* `terms` of each row of a at a time. Sums are tiles 0 and 1 of the upper rows, 2 and 3 of the
 * lower ones, a 4 and 5, the panel 6 and 7. */
static tile_shapes shapes_of(size_t rows, size_t terms) {
  tile_shapes t = {.palette = 1};
  const size_t upper = rows < TILE_ROWS ? rows : TILE_ROWS;
  const size_t lower = rows - upper < TILE_ROWS ? rows - upper : TILE_ROWS;
  for (size_t i = 0; i < 8; ++i) {
    const size_t height = i < 2 || i == 4 ? upper : i < 6 ? lower : terms / 4;
    t.rows[i] = (uint8_t)height;
    t.row_bytes[i] = height == 0 ? 0 : (uint16_t)(i == 4 || i == 5 ? terms : TILE_BYTES);
  }
  return t;
}

/* Tiles are read and written behind the compiler's back. */
#  define OM_TILES_SEE_MEMORY() __asm__ volatile("" ::: "memory")

/* Up to 32 rows. */
TARGET_TILES static void sum_tiles(const om_byte_group *g, size_t row, size_t terms, size_t steps) {
  enum { STRIDE = OM_BYTE_LANES * 4, HALF = OM_BYTE_LANES / 2 };
  const size_t a_stride = g->a_stride;
  const uint8_t *a = g->a + row * a_stride, *panel = g->panel;
  uint32_t *const upper = g->sums + row * OM_BYTE_LANES;
  uint32_t *const lower = upper + TILE_ROWS * OM_BYTE_LANES;
  const bool has_lower = g->rows - row > TILE_ROWS;
  if (g->is_first) {
    _tile_zero(0);
    _tile_zero(1);
    if (has_lower) _tile_zero(2);
    if (has_lower) _tile_zero(3);
  } else {
    _tile_loadd(0, upper, STRIDE);
    _tile_loadd(1, upper + HALF, STRIDE);
    if (has_lower) _tile_loadd(2, lower, STRIDE);
    if (has_lower) _tile_loadd(3, lower + HALF, STRIDE);
  }
  for (; steps > 0; --steps) {
    _tile_loadd(4, a, a_stride);
    _tile_loadd(6, panel, STRIDE);
    _tile_loadd(7, panel + TILE_BYTES, STRIDE);
    if (has_lower) _tile_loadd(5, a + TILE_ROWS * a_stride, a_stride);
    if (g->is_a_signed) {
      _tile_dpbsud(0, 4, 6);
      _tile_dpbsud(1, 4, 7);
      if (has_lower) _tile_dpbsud(2, 5, 6);
      if (has_lower) _tile_dpbsud(3, 5, 7);
    } else {
      _tile_dpbusd(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      if (has_lower) _tile_dpbusd(2, 5, 6);
      if (has_lower) _tile_dpbusd(3, 5, 7);
    }
    a += terms;
    panel += terms * OM_BYTE_LANES;
  }
  _tile_stored(0, upper, STRIDE);
  _tile_stored(1, upper + HALF, STRIDE);
  if (has_lower) _tile_stored(2, lower, STRIDE);
  if (has_lower) _tile_stored(3, lower + HALF, STRIDE);
}

/* The terms go in steps that are alike, since tiles keep their shapes; the few that are left go
 * without tiles. */
TARGET_TILES static void run_tiles(const om_byte_group *g) {
  enum { ROWS = 2 * TILE_ROWS };
  if (g->rows < FEWEST_TILE_ROWS || g->terms < FEWEST_TILE_TERMS ||
      g->rows * g->terms < FEWEST_BYTES) {
    run_vnni(g);
    return;
  }
  const size_t steps = (g->terms + TILE_BYTES - 1) / TILE_BYTES;
  const size_t terms = g->terms / steps / 4 * 4;
  size_t shaped = 0; /* rows that the tiles have */
  for (size_t row = 0; row < g->rows; row += ROWS) {
    const size_t rows = g->rows - row < ROWS ? g->rows - row : ROWS;
    if (rows != shaped) {
      const tile_shapes shapes = shapes_of(rows, terms);
      OM_TILES_SEE_MEMORY();
      _tile_loadconfig(&shapes);
      shaped = rows;
    }
    sum_tiles(g, row, terms, steps);
  }
  _tile_release();
  if (steps * terms == g->terms) return;
  om_byte_group rest = *g;
  rest.a += steps * terms;
  rest.panel += steps * terms * OM_BYTE_LANES;
  rest.terms -= steps * terms;
  rest.is_first = false;
  run_vnni(&rest);
}

/* Linux gives a process the tiles' state when it asks for it, and again when it asks again. */
bool om_byte_has_tiles(void) {
  enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
  return __builtin_cpu_supports("amx-int8") && __builtin_cpu_supports("avx512vnni") &&
         __builtin_cpu_supports("avx512bw") && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

#else
bool om_byte_has_tiles(void) {
  return false;
}
#endif

/* ---- The widest ---- */

#if defined(__x86_64__)
#  define OM_NARROWEST(name) name##_sse2
#else
#  define OM_NARROWEST(name) name##_any
#endif

#if defined(__x86_64__)
#  define OM_PICK_512(fn, arg) \
    if (__builtin_cpu_supports("avx512bw")) OM_PICK("avx512vnni", fn, arg)
#else
#  define OM_PICK_512(fn, arg)
#endif

void om_byte_panel_fill(const om_byte_panel *p) {
  OM_PICK("avx2", panel_256, p)
  panel_any(p);
}

void om_byte_group_run(const om_byte_group *g) {
#ifdef OM_HAS_TILES
  if (g->has_tiles) {
    run_tiles(g);
    return;
  }
#endif
  OM_PICK_512(run_vnni, g)
  OM_PICK("avx2", run_avx2, g)
  OM_NARROWEST(run)(g);
}

void om_byte_taps_run(const om_byte_taps *t) {
  OM_PICK_512(taps_vnni, t)
  OM_PICK("avx2", taps_avx2, t)
  OM_NARROWEST(taps)(t);
}

void om_byte_dots_run(const om_byte_dots *d) {
  OM_PICK_512(dots_vnni, d)
  OM_PICK("avx2", dots_avx2, d)
  OM_NARROWEST(dots)(d);
}

void om_byte_finish_run(const om_byte_finish *f) {
  OM_PICK_512(finish_vnni, f)
  OM_PICK("avx2", finish_avx2, f)
  OM_NARROWEST(finish)(f);
}
