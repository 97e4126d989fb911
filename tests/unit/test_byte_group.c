/* Groups of 8-bit terms: the instructions of every kind that this processor has, against sums one
 * by one. Each sign, all remainders of rows and terms, the largest products. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The text itself, so that the forms which a call would not pick are here too. */
#define om_byte_group_run picked_run
#include "cpu/exact/om_byte_group.c"

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_are_exact),
      cmocka_unit_test(the_largest_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
