/* Groups of terms: the bits of every width of vectors that this processor has, against the
 * definition written out (docs/exact.md, "Products"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_test_skip.h"

/* The text itself, so that the forms which a call would not pick are here too. */
#define om_product_group_f32  picked_group_f32
#define om_product_group_f64  picked_group_f64
#define om_product_group_u32  picked_group_u32
#define om_product_group_u64  picked_group_u64
#define om_product_vector_f32 picked_vector_f32
#define om_product_vector_f64 picked_vector_f64
#define om_product_taps_f32   picked_taps_f32
#define om_product_taps_f64   picked_taps_f64
#include "cpu/exact/om_product_group.c"

enum { MOST_ROWS = 19, GUARD = 0x7f };

static float x[OM_PRODUCT_GROUP * (OM_GROUP_LANES + 3) + (MOST_ROWS + 1) * OM_GROUP_LANES];
static float w[MOST_ROWS * (OM_PRODUCT_GROUP + 5)];
static uint32_t offsets[OM_PRODUCT_GROUP];

static float random_value(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return ((float)(*state >> 8) - 8388608.0f) * 0x1p-23f;
}

static void fill(float *values, size_t count, uint32_t *state) {
  for (size_t i = 0; i < count; ++i) values[i] = random_value(state);
}

/* Not inlined, each operation through memory: nothing to vectorise or to fuse. */
static float chain(const float *a, size_t a_step, const float *b, size_t b_step, size_t terms) {
  volatile float total = 0.0f;
  for (size_t begin = 0; begin < terms; begin += 32) {
    volatile float sum = 0.0f;
    for (size_t k = begin; k < terms && k < begin + 32; ++k) {
      const volatile float product = a[k * a_step] * b[k * b_step];
      sum = sum + product;
    }
    total = begin == 0 ? sum : total + sum;
  }
  return total;
}

typedef void (*group_fn)(const om_product_group *g);
typedef void (*taps_fn)(const om_product_taps *t);

static void check_group(group_fn fn, size_t rows, size_t terms, bool is_first, uint32_t *state) {
  const size_t x_stride = OM_GROUP_LANES + (terms & 3);
  const size_t y_stride = OM_GROUP_LANES + 1;
  float y[MOST_ROWS * (OM_GROUP_LANES + 1)];
  float want[MOST_ROWS * (OM_GROUP_LANES + 1)];
  const om_product_group g = {.x = x,
                              .w = w,
                              .y = y,
                              .x_stride = x_stride,
                              .w_row_stride = (terms & 1) ? 1 : terms,
                              .w_term_stride = (terms & 1) ? rows : 1,
                              .y_stride = y_stride,
                              .terms = terms,
                              .rows = rows,
                              .is_first = is_first};
  fill(y, OM_COUNT_OF(y), state);
  memcpy(want, y, sizeof y);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t lane = 0; lane < OM_GROUP_LANES; ++lane) {
      float *to = &want[row * y_stride + lane];
      const float *weights = w + row * g.w_row_stride;
      const float sum = chain(x + lane, x_stride, weights, g.w_term_stride, terms);
      *to = is_first ? sum : *to + sum;
    }
  }
  fn(&g);
  assert_memory_equal(y, want, sizeof y); /* what lies between rows is as it was */
}

static void check_taps(taps_fn fn, size_t rows, size_t terms) {
  float y[(MOST_ROWS + 1) * OM_GROUP_LANES];
  const om_product_taps t = {
      .x = x, .w = w, .y = y, .offsets = offsets, .terms = terms, .rows = rows};
  memset(y, GUARD, sizeof y);
  fn(&t);
  for (size_t i = 0; i < rows * OM_GROUP_LANES; ++i) {
    float column[OM_PRODUCT_GROUP];
    for (size_t k = 0; k < terms; ++k) column[k] = x[i + offsets[k]];
    const float want = chain(column, 1, w, 1, terms);
    assert_memory_equal(&y[i], &want, sizeof want);
  }
  for (size_t i = rows * OM_GROUP_LANES * sizeof *y; i < sizeof y; ++i) {
    assert_int_equal(((const unsigned char *)y)[i], GUARD);
  }
}

static void check_vector(group_fn fn, size_t strips, size_t terms, bool is_first) {
  float y[(MOST_ROWS + 1) * OM_GROUP_LANES];
  const om_product_group g = {.x = x,
                              .w = w,
                              .y = y,
                              .x_stride = OM_GROUP_LANES + 3,
                              .w_term_stride = 2,
                              .terms = terms,
                              .rows = strips,
                              .is_first = is_first};
  for (size_t i = 0; i < OM_COUNT_OF(y); ++i) y[i] = (float)i;
  fn(&g);
  for (size_t i = 0; i < OM_COUNT_OF(y); ++i) {
    const float sum = chain(x + i, g.x_stride, w, 2, terms);
    const float added = is_first ? sum : (float)i + sum;
    const float want = i < strips * OM_GROUP_LANES ? added : (float)i;
    assert_memory_equal(&y[i], &want, sizeof want);
  }
}

static void check_form(group_fn group, taps_fn taps, group_fn vector) {
  uint32_t state = 7;
  fill(x, OM_COUNT_OF(x), &state);
  fill(w, OM_COUNT_OF(w), &state);
  for (size_t k = 0; k < OM_PRODUCT_GROUP; ++k) offsets[k] = (uint32_t)(k * 37 % 101);
  for (size_t rows = 1; rows <= MOST_ROWS; ++rows) {
    for (size_t terms = 1; terms <= OM_PRODUCT_GROUP; terms += terms < 34 ? 1 : 31) {
      check_group(group, rows, terms, true, &state);
      check_group(group, rows, terms, false, &state);
      check_taps(taps, rows, terms);
      check_vector(vector, rows, terms, true);
      check_vector(vector, rows, terms, false);
    }
  }
}

static void test_what_the_build_assumes(void **state) {
  (void)state;
  check_form(sum_group_f32, sum_taps_f32, sum_vector_f32);
}

static void test_avx2(void **state) {
  (void)state;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    check_form(sum_group_avx2_f32, sum_taps_avx2_f32, sum_vector_avx2_f32);
    return;
  }
#endif
  OM_TEST_SKIP("the processor has no AVX2");
}

static void test_avx512(void **state) {
  (void)state;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    check_form(sum_group_avx512_f32, sum_taps_avx512_f32, sum_vector_avx512_f32);
    return;
  }
#endif
  OM_TEST_SKIP("the processor has no AVX-512");
}

/* Integers wrap: the order does not matter, and 64-bit sums tell whether each term was taken. */
static void test_integers(void **state) {
  enum { ROWS = 5, TERMS = 41 };
  uint32_t x32[TERMS * OM_GROUP_LANES], w32[ROWS * TERMS], y32[ROWS * OM_GROUP_LANES];
  uint64_t x64[TERMS * OM_GROUP_LANES], w64[ROWS * TERMS], y64[ROWS * OM_GROUP_LANES];
  uint32_t random = 3;
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(x32); ++i) x64[i] = x32[i] = random = random * 1664525u + 1u;
  for (size_t i = 0; i < OM_COUNT_OF(w32); ++i) w64[i] = w32[i] = random = random * 1664525u + 1u;
  om_product_group g = {.x = x32,
                        .w = w32,
                        .y = y32,
                        .x_stride = OM_GROUP_LANES,
                        .w_row_stride = TERMS,
                        .w_term_stride = 1,
                        .y_stride = OM_GROUP_LANES,
                        .terms = TERMS,
                        .rows = ROWS,
                        .is_first = true};
  picked_group_u32(&g);
  g.x = x64;
  g.w = w64;
  g.y = y64;
  picked_group_u64(&g);
  for (size_t i = 0; i < OM_COUNT_OF(y32); ++i) {
    uint64_t want = 0;
    for (size_t k = 0; k < TERMS; ++k) {
      want += x64[k * OM_GROUP_LANES + i % OM_GROUP_LANES] * w64[i / OM_GROUP_LANES * TERMS + k];
    }
    assert_true(y64[i] == want);
    assert_true(y32[i] == (uint32_t)want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_the_build_assumes),
      cmocka_unit_test(test_avx2),
      cmocka_unit_test(test_avx512),
      cmocka_unit_test(test_integers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
