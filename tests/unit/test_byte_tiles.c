/* Products of 8-bit integers by tiles, on any x86: what the instructions do is written out here,
 * with what they ask of the shapes, and takes their places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_test_skip.h"

#if defined(__x86_64__) && defined(__linux__)
#  include "cpu/exact/om_widths.h" /* what it says holds for the intrinsics, too */

#  include <immintrin.h>
#  include <stdbool.h>
#  include <string.h>

typedef struct model_tile {
  size_t rows, row_bytes; /* 0: it has no shape, and may not be used */
  uint8_t at[16][64];
} model_tile;

static model_tile tiles[8];
static size_t loads; /* since the tiles got their shapes */

/* The layout that LDTILECFG reads. */
static void model_loadconfig(const void *from) {
  const uint8_t *bytes = from;
  assert_int_equal(bytes[0], 1);
  loads = 0;
  for (size_t i = 0; i < 16; ++i) {
    uint16_t row_bytes;
    memcpy(&row_bytes, bytes + 16 + 2 * i, sizeof row_bytes);
    assert_true(bytes[48 + i] <= 16 && row_bytes <= 64);
    assert_true((bytes[48 + i] == 0) == (row_bytes == 0));
    if (i < 8) tiles[i] = (model_tile){.rows = bytes[48 + i], .row_bytes = row_bytes};
    if (i >= 8) assert_int_equal(row_bytes, 0);
  }
}

static void model_release(void) {
  memset(tiles, 0, sizeof tiles);
}

static model_tile *tile_at(size_t number) {
  assert_true(tiles[number].rows > 0);
  return &tiles[number];
}

static void model_zero(size_t number) {
  memset(tile_at(number)->at, 0, sizeof tiles->at);
}

static void model_load(size_t number, const void *from, size_t stride) {
  model_tile *t = tile_at(number);
  ++loads;
  for (size_t row = 0; row < t->rows; ++row) {
    memcpy(t->at[row], (const uint8_t *)from + row * stride, t->row_bytes);
  }
}

static void model_store(size_t number, void *to, size_t stride) {
  const model_tile *t = tile_at(number);
  for (size_t row = 0; row < t->rows; ++row) {
    memcpy((uint8_t *)to + row * stride, t->at[row], t->row_bytes);
  }
}

static void model_product(size_t sums, size_t left, size_t right, bool is_left_signed) {
  model_tile *c = tile_at(sums);
  const model_tile *a = tile_at(left), *b = tile_at(right);
  assert_int_equal(a->row_bytes, 4 * b->rows);
  assert_int_equal(a->rows, c->rows);
  assert_int_equal(b->row_bytes, c->row_bytes);
  for (size_t row = 0; row < c->rows; ++row) {
    for (size_t column = 0; column < c->row_bytes / 4; ++column) {
      uint32_t sum;
      memcpy(&sum, c->at[row] + 4 * column, sizeof sum);
      for (size_t k = 0; k < a->row_bytes; ++k) {
        const uint8_t x = a->at[row][k], y = b->at[k / 4][4 * column + k % 4];
        const int32_t product = is_left_signed ? (int8_t)x * y : x * (int8_t)y;
        sum += (uint32_t)product;
      }
      memcpy(c->at[row] + 4 * column, &sum, sizeof sum);
    }
  }
}

#  undef _tile_zero
#  undef _tile_loadd
#  undef _tile_stored
#  undef _tile_dpbusd
#  undef _tile_dpbsud
#  define _tile_loadconfig(from)          model_loadconfig(from)
#  define _tile_release()                 model_release()
#  define _tile_zero(tile)                model_zero(tile)
#  define _tile_loadd(tile, from, stride) model_load(tile, from, stride)
#  define _tile_stored(tile, to, stride)  model_store(tile, to, stride)
#  define _tile_dpbusd(c, a, b)           model_product(c, a, b, false)
#  define _tile_dpbsud(c, a, b)           model_product(c, a, b, true)

/* Functions of wider vectors are not used here but where tiles leave the rest to them. */
#  define om_byte_panel_fill picked_panel
#  define om_byte_group_run  picked_run
#  define om_byte_taps_run   picked_taps
#  define om_byte_dots_run   picked_dots
#  define om_byte_finish_run picked_finish
#  define om_byte_has_tiles  asked_for_tiles
#  include "cpu/exact/om_byte_group.c"

enum { ROWS = 67, TERMS = 262 };

static uint8_t a[ROWS * TERMS], panel[(TERMS + 3) / 4 * OM_BYTE_LANES * 4];
static uint32_t want[ROWS * OM_BYTE_LANES], got[ROWS * OM_BYTE_LANES];

static void check(size_t rows, size_t terms, bool is_a_signed, bool is_first) {
  om_byte_group g = {.a = a,
                     .a_stride = terms,
                     .rows = rows,
                     .is_a_signed = is_a_signed,
                     .panel = panel,
                     .terms = terms,
                     .is_first = is_first,
                     .sums = want};
  for (size_t i = 0; i < OM_COUNT_OF(want); ++i) want[i] = got[i] = (uint32_t)i * 77777u;
  picked_run(&g);
  g.has_tiles = true;
  g.sums = got;
  picked_run(&g);
  if (memcmp(want, got, sizeof want) != 0) fail_msg("%zu terms, %zu rows", terms, rows);
  for (size_t i = 0; i < OM_COUNT_OF(tiles); ++i) assert_int_equal(tiles[i].rows, 0);
}

static void sums_are_those_without_tiles(void **state) {
  static const size_t rows[] = {1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 48, 49, 64, 65, 67};
  uint32_t seed = 1;
  (void)state;
  if (!__builtin_cpu_supports("avx512vnni")) OM_TEST_SKIP("what tiles leave needs AVX-512 VNNI");
  for (size_t i = 0; i < sizeof a; ++i) a[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  for (size_t i = 0; i < sizeof panel; ++i) {
    panel[i] = (uint8_t)((seed = seed * 1664525u + 1u) >> 24);
  }
  for (size_t i = 0; i < OM_COUNT_OF(rows); ++i) {
    for (size_t terms = 1; terms <= TERMS; terms += terms < 140 ? 1 : 7) {
      for (int kind = 0; kind < 4; ++kind) check(rows[i], terms, kind % 2 != 0, kind / 2 != 0);
    }
  }
}

/* 32 rows of 64 terms are where tiles begin; fewer go without. */
static void few_terms_take_none(void **state) {
  (void)state;
  if (!__builtin_cpu_supports("avx512vnni")) OM_TEST_SKIP("what tiles leave needs AVX-512 VNNI");
  loads = 0;
  check(32, 63, false, true);
  check(7, TERMS, false, true);
  assert_int_equal(loads, 0);
  check(32, 64, false, true);
  assert_int_equal(loads, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_are_those_without_tiles),
      cmocka_unit_test(few_terms_take_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void tiles_are_elsewhere(void **state) {
  (void)state;
  OM_TEST_SKIP("tiles of bytes are for Linux on x86-64");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_are_elsewhere)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
