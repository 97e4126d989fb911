/* Groups of 8-bit terms, their panels and what becomes of their sums: the instructions of every
 * kind that this processor has, against the same one by one. Each sign, all remainders of rows and
 * terms, the largest products. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The text itself, so that the forms which a call would not pick are here too. */
#define om_byte_panel_fill picked_panel
#define om_byte_group_run  picked_run
#define om_byte_taps_run   picked_taps
#define om_byte_dots_run   picked_dots
#define om_byte_finish_run picked_finish
#define om_byte_has_tiles  asked_for_tiles
#include "cpu/exact/om_byte_group.c"
#include "harness/om_test_skip.h"

enum { MOST_ROWS = 19, MOST_TERMS = 70, STRIDE = MOST_TERMS + 3 };

static uint8_t a[MOST_ROWS * STRIDE];
static uint8_t panel[(MOST_TERMS + 3) / 4 * OM_BYTE_LANES * 4];

typedef void (*run_fn)(const om_byte_group *g);

static uint32_t value_of(uint8_t byte, bool is_signed) {
  return is_signed && byte > 127 ? byte - 256u : byte;
}

static void check(run_fn run, const om_byte_group *g) {
  uint32_t sums[MOST_ROWS * OM_BYTE_LANES];
  om_byte_group own = *g;
  own.sums = sums;
  for (size_t i = 0; i < OM_COUNT_OF(sums); ++i) sums[i] = 0x80000000u + (uint32_t)i;
  run(&own);
  for (size_t i = 0; i < OM_COUNT_OF(sums); ++i) {
    const size_t row = i / OM_BYTE_LANES, lane = i % OM_BYTE_LANES;
    uint32_t sum = g->is_first && row < g->rows ? 0 : 0x80000000u + (uint32_t)i;
    for (size_t k = 0; row < g->rows && k < g->terms; ++k) {
      sum += value_of(a[row * g->a_stride + k], g->is_a_signed) *
             value_of(panel[(k / 4 * OM_BYTE_LANES + lane) * 4 + k % 4], !g->is_a_signed);
    }
    if (sums[i] != sum) fail_msg("%zu terms, row %zu of %zu", g->terms, row, g->rows);
  }
}

static void check_all(run_fn run) {
  for (size_t rows = 1; rows <= MOST_ROWS; ++rows) {
    for (size_t terms = 1; terms <= MOST_TERMS; ++terms) {
      for (int kind = 0; kind < 4; ++kind) {
        check(run,
              &(om_byte_group){.a = a,
                               .a_stride = STRIDE,
                               .rows = rows,
                               .is_a_signed = kind % 2 != 0,
                               .panel = panel,
                               .terms = terms,
                               .is_first = kind / 2 != 0});
      }
    }
  }
}

static void check_widths(void) {
#if defined(__x86_64__)
  check_all(run_sse2);
  if (__builtin_cpu_supports("avx2")) check_all(run_avx2);
  if (__builtin_cpu_supports("avx512vnni")) check_all(run_vnni);
#endif
  check_all(picked_run);
}

static void sums_are_exact(void **state) {
  uint32_t seed = 1;
  (void)state;
  for (size_t i = 0; i < sizeof a; ++i) a[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  for (size_t i = 0; i < sizeof panel; ++i) {
    panel[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  }
  check_widths();
}

/* Two products of the largest bytes do not fit in 16 bits. */
static void the_largest_fit(void **state) {
  static const uint8_t bytes[] = {0xff, 0x80, 0x7f};
  (void)state;
  for (size_t i = 0; i < 9; ++i) {
    memset(a, bytes[i / 3], sizeof a);
    memset(panel, bytes[i % 3], sizeof panel);
    check_widths();
  }
}

/* Some rows and terms more than the others take: two blocks of tiles, steps of all lengths. */
static void tiles_are_exact(void **state) {
  enum { ROWS = 67, TERMS = 262 };
  static uint8_t rows_of_a[ROWS * TERMS], lines[(TERMS + 3) / 4 * OM_BYTE_LANES * 4];
  static uint32_t want[ROWS * OM_BYTE_LANES], got[ROWS * OM_BYTE_LANES];
  uint32_t seed = 7;
  (void)state;
  if (!asked_for_tiles()) OM_TEST_SKIP("this processor has no tiles of bytes, or they are kept");
  for (size_t i = 0; i < sizeof rows_of_a; ++i) {
    rows_of_a[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  }
  for (size_t i = 0; i < sizeof lines; ++i) {
    lines[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  }
  for (size_t rows = 1; rows <= ROWS; ++rows) {
    for (size_t terms = 1; terms <= TERMS; ++terms) {
      for (int kind = 0; kind < 4; ++kind) {
        om_byte_group g = {.a = rows_of_a,
                           .a_stride = terms,
                           .rows = rows,
                           .is_a_signed = kind % 2 != 0,
                           .panel = lines,
                           .terms = terms,
                           .is_first = kind / 2 != 0,
                           .sums = want};
        for (size_t i = 0; i < OM_COUNT_OF(want); ++i) want[i] = got[i] = (uint32_t)i * 77777u;
        picked_run(&g);
        g.has_tiles = true;
        g.sums = got;
        picked_run(&g);
        if (memcmp(want, got, sizeof want) != 0) fail_msg("%zu terms, %zu rows", terms, rows);
      }
    }
  }
}

/* ---- Panels ---- */

typedef void (*panel_fn)(const om_byte_panel *p);

enum { LINE_COUNT = 7, LINE = 3 * OM_BYTE_LANES };

static void check_panel(panel_fn fill, size_t terms, size_t width, bool has_offsets) {
  static const size_t offsets[LINE_COUNT] = {5, 0, 99, 31, 2, 2, 64};
  const size_t columns = om_size_align(width, OM_BYTE_LANES);
  uint8_t filled[8 * LINE];
  const om_byte_panel p = {.from = a,
                           .offsets = has_offsets ? offsets : NULL,
                           .step = 3,
                           .terms = terms,
                           .columns = columns,
                           .width = width,
                           .flip = 0x80,
                           .panel = filled};
  fill(&p);
  for (size_t k = 0; k < terms; ++k) {
    for (size_t i = 0; i < width; ++i) {
      const size_t from = (has_offsets ? offsets[k] : k * 3) + i;
      assert_int_equal(filled[(k / 4 * columns + i) * 4 + k % 4], a[from] ^ 0x80);
    }
  }
}

static void panels_have_each_term(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof a; ++i) a[i] = (uint8_t)(i * 7 + i / 256);
  for (size_t terms = 1; terms <= LINE_COUNT; ++terms) {
    for (size_t width = 1; width <= LINE; ++width) {
      for (int has_offsets = 0; has_offsets < 2; ++has_offsets) {
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2")) check_panel(panel_256, terms, width, has_offsets);
#endif
        check_panel(panel_any, terms, width, has_offsets);
        check_panel(picked_panel, terms, width, has_offsets);
      }
    }
  }
}

/* ---- Windows of one channel ---- */

typedef void (*taps_fn)(const om_byte_taps *t);

static void check_taps(taps_fn run) {
  enum { QUADS = 3, TAP_LANES = 2 * OM_BYTE_RUN };
  static const uint32_t offsets[QUADS] = {0, 1, 9};
  uint32_t sums[TAP_LANES];
  for (int is_signed = 0; is_signed < 2; ++is_signed) {
    run(&(om_byte_taps){.a = a,
                        .is_a_signed = is_signed != 0,
                        .panel = panel,
                        .offsets = offsets,
                        .quads = QUADS,
                        .lanes = TAP_LANES,
                        .sums = sums});
    for (size_t lane = 0; lane < TAP_LANES; ++lane) {
      uint32_t sum = 0;
      for (size_t k = 0; k < QUADS * 4; ++k) {
        const uint8_t x = panel[(offsets[k / 4] + lane) * 4 + k % 4];
        sum += value_of(a[k], is_signed != 0) * value_of(x, is_signed == 0);
      }
      assert_int_equal(sums[lane], sum);
    }
  }
}

static void windows_overlap(void **state) {
  uint32_t seed = 3;
  (void)state;
  for (size_t i = 0; i < sizeof a; ++i) a[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  for (size_t i = 0; i < sizeof panel; ++i) {
    panel[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  }
#if defined(__x86_64__)
  check_taps(taps_sse2);
  if (__builtin_cpu_supports("avx2")) check_taps(taps_avx2);
  if (__builtin_cpu_supports("avx512vnni")) check_taps(taps_vnni);
#endif
  check_taps(picked_taps);
}

/* ---- One row ---- */

typedef void (*dots_fn)(const om_byte_dots *d);

static void check_dots(dots_fn run) {
  enum { COLS = 3, MOST = 300, B_STRIDE = MOST + 5 };
  for (size_t terms = 1; terms <= MOST; ++terms) {
    for (int kind = 0; kind < 8; ++kind) {
      const bool is_signed = kind % 2 != 0;
      uint32_t sums[COLS] = {7, 8, 9};
      const om_byte_dots d = {.a = a,
                              .b = panel,
                              .b_stride = B_STRIDE,
                              .flip = (uint8_t)(kind / 2 % 2 * 0x80),
                              .is_a_signed = is_signed,
                              .terms = terms,
                              .count = COLS,
                              .is_first = kind / 4 != 0,
                              .sums = sums};
      run(&d);
      for (size_t i = 0; i < COLS; ++i) {
        uint32_t sum = d.is_first ? 0 : 7 + (uint32_t)i;
        for (size_t k = 0; k < terms; ++k) {
          sum += value_of(a[k], is_signed) * value_of(panel[i * B_STRIDE + k] ^ d.flip, !is_signed);
        }
        assert_int_equal(sums[i], sum);
      }
    }
  }
}

static void rows_of_one(void **state) {
  uint32_t seed = 5;
  (void)state;
  for (size_t i = 0; i < sizeof a; ++i) a[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  for (size_t i = 0; i < sizeof panel; ++i) {
    panel[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  }
#if defined(__x86_64__)
  check_dots(dots_sse2);
  if (__builtin_cpu_supports("avx2")) check_dots(dots_avx2);
  if (__builtin_cpu_supports("avx512vnni")) check_dots(dots_vnni);
#endif
  check_dots(picked_dots);
}

/* ---- Sums to bytes ---- */

typedef void (*finish_fn)(const om_byte_finish *f);

static uint8_t finished(uint32_t sum, float factor, int32_t zero, bool is_signed) {
  const float x = (float)(int32_t)sum * factor;
  const double value = rint((double)x) + zero;
  const double least = is_signed ? -128 : 0, most = is_signed ? 127 : 255;
  if (isnan(x)) return 0;
  return (uint8_t)(int)(value < least ? least : value > most ? most : value);
}

/* Whether a sum that bounds do not take off is further from a whole number than the limit. */
static bool is_doubtful(
    uint32_t sum, float factor, int32_t zero, bool is_signed, float limit, bool *out_is_known) {
  const float x = (float)(int32_t)sum * factor;
  const float least = (float)((is_signed ? -128 : 0) - zero);
  const float most = (float)((is_signed ? 127 : 255) - zero);
  const float kept = fminf(fmaxf(x, least), most);
  *out_is_known = !isnan(x);
  return fabsf(kept - rintf(kept)) >= limit;
}

static void check_finish(finish_fn run) {
  enum { ROW_COUNT = 8, WIDTHS = 2 * OM_BYTE_LANES };
  static const uint32_t adds[ROW_COUNT] = {0, 5, (uint32_t)-9, 0x7fffffff, 1u << 31, 0, 0, 3};
  const float factors[ROW_COUNT] = {0.5f, 0.37f, -1e-3f, 1e30f, -1e30f, NAN, INFINITY, 0.25f};
  uint32_t sums[ROW_COUNT * WIDTHS];
  uint8_t y[ROW_COUNT * WIDTHS];
  const float limits[ROW_COUNT] = {0.5f, 0.4f, 0.25f, 0.1f, 0.1f, 0.1f, 0.1f, 0.0f};
  for (size_t i = 0; i < OM_COUNT_OF(sums); ++i) sums[i] = (uint32_t)(i % WIDTHS * 9) - 250;
  sums[WIDTHS * ROW_COUNT - 1] = 0x7fffffff;
  for (size_t width = 1; width <= WIDTHS; ++width) {
    for (int kind = 0; kind < 8; ++kind) {
      const bool is_signed = kind % 2 != 0, has_limits = kind / 4 != 0;
      static uint32_t doubts[OM_COUNT_OF(sums)];
      size_t doubt_count = 0, found = 0;
      const int32_t zero = kind / 2 % 2 == 0 ? 0 : is_signed ? -128 : 255;
      memset(y, 0x5a, sizeof y);
      run(&(om_byte_finish){.sums = sums,
                            .stride = WIDTHS,
                            .rows = ROW_COUNT,
                            .width = width,
                            .adds = adds,
                            .factors = factors,
                            .zero = zero,
                            .is_signed = is_signed,
                            .y = y,
                            .y_stride = WIDTHS,
                            .limits = has_limits ? limits : NULL,
                            .doubts = doubts,
                            .doubt_count = &doubt_count});
      for (size_t i = 0; i < OM_COUNT_OF(y); ++i) {
        const size_t row = i / WIDTHS;
        const uint8_t want = finished(sums[i] + adds[row], factors[row], zero, is_signed);
        assert_int_equal(y[i], i % WIDTHS < width ? want : 0x5a);
        bool is_known;
        const bool is_listed = found < doubt_count && doubts[found] == i;
        const bool is_doubted =
            is_doubtful(sums[i] + adds[row], factors[row], zero, is_signed, limits[row], &is_known);
        found += is_listed;
        if (is_known || i % WIDTHS >= width) {
          assert_int_equal(is_listed, has_limits && i % WIDTHS < width && is_doubted);
        }
      }
      assert_int_equal(found, doubt_count);
    }
  }
}

static void sums_are_rounded(void **state) {
  (void)state;
#if defined(__x86_64__)
  check_finish(finish_sse2);
  if (__builtin_cpu_supports("avx2")) check_finish(finish_avx2);
  if (__builtin_cpu_supports("avx512vnni")) check_finish(finish_vnni);
#endif
  check_finish(picked_finish);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_are_exact),
      cmocka_unit_test(the_largest_fit),
      cmocka_unit_test(tiles_are_exact),
      cmocka_unit_test(panels_have_each_term),
      cmocka_unit_test(windows_overlap),
      cmocka_unit_test(rows_of_one),
      cmocka_unit_test(sums_are_rounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
