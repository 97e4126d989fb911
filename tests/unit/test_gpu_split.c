/* Products on matrix hardware: how a constant is split, a convolution's weights too, and which
 * products are taken. What they compute is compared on a device that has it, by
 * tests/ops/test_matmul.c. */
#include <math.h>

#include "base/om_float16.h"
#include "gpu/om_gpu_conv.h"
#include "gpu/om_gpu_split.h"
#include "unit/gpu_rig.h"

enum { MOST_ELEMS = 768 * 2304 };
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static float weights[MOST_ELEMS];
static uint32_t packed[64 * 1024];

/* ---- Splitting ---- */

enum { DEPTH = 37, COLS = 19 };

/* Columns of magnitudes from 1e-22 to 1e+32. */
static float value_at(size_t term, size_t col) {
  const float sign = (term + col) % 2 == 0 ? 1.0f : -1.0f;
  return sign * (1.0f + (float)(term * 131 % 97) / 77.0f) * powf(10.0f, 3.0f * (float)col - 22.0f);
}

static float part_of(size_t term, size_t col, size_t part) {
  const size_t pitch = om_size_align(COLS, OM_SPLIT_COLS);
  const size_t unit = (term * pitch + col / OM_SPLIT_COLS * OM_SPLIT_COLS) * 2;
  uint16_t half;
  const size_t at = unit + part * OM_SPLIT_COLS + col % OM_SPLIT_COLS;
  memcpy(&half, (const char *)(packed + pitch) + at * sizeof half, sizeof half);
  return om_f16_to_f32(half);
}

static void expect_values(bool is_turned) {
  const om_split_layout layout = {.depth = DEPTH, .cols = COLS, .is_turned = is_turned};
  for (size_t i = 0; i < DEPTH * COLS; ++i) {
    weights[i] = is_turned ? value_at(i % DEPTH, i / DEPTH) : value_at(i / COLS, i % COLS);
  }
  assert_true(om_split_bytes(DEPTH, COLS) <= sizeof packed);
  rig_init(rig);
  rig->ctx.thread_count = 3;
  om_split_fill(&rig->ctx, &layout, weights, packed);
  for (size_t term = 0; term < DEPTH; ++term) {
    for (size_t col = 0; col < COLS; ++col) {
      float factor;
      memcpy(&factor, &packed[col], sizeof factor);
      const double low = (double)part_of(term, col, 1) / (double)OM_SPLIT_LOW_SCALE;
      const double sum = (double)part_of(term, col, 0) + low;
      const double value = ldexp(sum * (double)factor, -OM_SPLIT_EXPONENT);
      const double expected = (double)value_at(term, col);
      assert_true(fabs(value - expected) <= ldexp(fabs(expected), -22));
    }
  }
}

static void test_parts_add_up(void **state) {
  (void)state;
  expect_values(false);
  expect_values(true);
}

static void test_ends_are_zeros(void **state) {
  (void)state;
  memset(packed, 0xff, sizeof packed);
  expect_values(false);
  const size_t pitch = om_size_align(COLS, OM_SPLIT_COLS);
  for (size_t term = 0; term < om_size_align(DEPTH, OM_SPLIT_TERMS); ++term) {
    for (size_t col = term < DEPTH ? COLS : 0; col < pitch; ++col) {
      assert_true(part_of(term, col, 0) == 0.0f && part_of(term, col, 1) == 0.0f);
    }
  }
}

static void test_infinities_are_low_parts(void **state) {
  const om_split_layout layout = {.depth = DEPTH, .cols = COLS};
  (void)state;
  for (size_t i = 0; i < DEPTH * COLS; ++i) weights[i] = 3.0f;
  weights[0] = INFINITY;
  weights[1] = -INFINITY;
  weights[2] = NAN;
  rig_init(rig);
  rig->ctx.thread_count = 3;
  om_split_fill(&rig->ctx, &layout, weights, packed);
  for (size_t col = 0; col < 3; ++col) assert_true(part_of(0, col, 0) == 0.0f);
  assert_true(part_of(0, 0, 1) == INFINITY && part_of(0, 1, 1) == -INFINITY);
  assert_true(isnan(part_of(0, 2, 1)));
  /* The rest of their columns is scaled by its own numbers. */
  assert_true(part_of(1, 0, 0) == ldexpf(1.5f, OM_SPLIT_EXPONENT));
}

/* ---- A convolution's weights ---- */

/* By what the halves of many values are larger than these, on average, over 2^-23 of them. */
static double mean_excess(uint32_t cut_count) {
  enum { VALUES = 4000 };
  double sum = 0;
  for (int i = 0; i < VALUES; ++i) {
    const float value = (i % 2 ? 1.0f : -1.0f) * (1.0f + (float)i / (VALUES - 1)) * 8191.123f;
    const om_gpu_conv_halves halves = om_gpu_conv_split(value, cut_count);
    const double both = (double)om_f16_to_f32(halves.high) + (double)om_f16_to_f32(halves.low);
    sum += both / (double)value - 1;
  }
  return ldexp(sum / (double)VALUES, 23);
}

static void test_weights_make_up_for_cuts(void **state) {
  (void)state;
  const double part = 1 / (4 * log(2.0));
  for (uint32_t cuts = 0; cuts <= 4; ++cuts) {
    assert_true(fabs(mean_excess(cuts) - part * cuts) < 0.04);
  }
  /* Of 11 bits: as they are. */
  for (int i = -2047; i <= 2047; ++i) {
    const om_gpu_conv_halves halves = om_gpu_conv_split((float)i * 8, 4);
    assert_true(om_f16_to_f32(halves.high) == (float)i * 8);
    assert_int_equal(halves.low, 0);
  }
  for (uint32_t cuts = 0; cuts <= 4; ++cuts) {
    const om_gpu_conv_halves infinity = om_gpu_conv_split(-INFINITY, cuts);
    assert_int_equal(infinity.high, 0);
    assert_true(om_f16_to_f32(infinity.low) == -INFINITY);
    assert_true(isnan(om_f16_to_f32(om_gpu_conv_split(NAN, cuts).low)));
  }
}

/* ---- Choosing ---- */

/* The kernels of a product by a constant, with a Relu behind it that joins the last. */
static void expect_kernels(
    om_mode mode, const int64_t a[2], int64_t cols, size_t launches, const char *first) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  const int64_t b[2] = {a[1], cols};
  options.backend = "null";
  options.device = "matrix hardware";
  rig_open_with(rig, &options, mode);
  assert_true(a[1] * cols <= MOST_ELEMS);
  const uint32_t x = rig_input(rig, 2, a);
  const uint32_t y = rig_binary(rig, "MatMul", x, rig_weight(rig, 2, b, weights));
  const uint32_t out = rig_unary(rig, "Relu", y);
  rig_compile(rig, &out, 1);
  const om_gpu_launch *l = rig->plan->regions[0].launches;
  assert_int_equal(rig->plan->regions[0].launch_count, launches);
  const char *name = om_shader_get(l[0].dispatch->shader)->name;
  if (strncmp(name, first, strlen(first)) != 0) fail_msg("%s instead of %s", name, first);
  assert_int_equal(l[launches - 1].dispatch->chain.item_count, 1);
  rig_close(rig);
}

static void test_products_by_size(void **state) {
  (void)state;
  memset(weights, 0, sizeof weights);
  expect_kernels(OM_MODE_FAST, (int64_t[]){128, 768}, 768, 1, "matmul_matrix_32x32");
  expect_kernels(OM_MODE_FAST, (int64_t[]){1024, 768}, 768, 2, "matmul_matrix_96x128");
  expect_kernels(OM_MODE_FAST, (int64_t[]){6000, 768}, 1024, 1, "matmul_matrix_128x128");
  expect_kernels(OM_MODE_FAST, (int64_t[]){128, 384}, 1536, 1, "matmul_matrix_32x64");
  expect_kernels(OM_MODE_FAST, (int64_t[]){128, 768}, 2304, 1, "matmul_matrix_64x64");
}

static void test_others_stay_portable(void **state) {
  (void)state;
  expect_kernels(OM_MODE_EXACT, (int64_t[]){1024, 384}, 768, 1, "matmul_tile");
  expect_kernels(OM_MODE_FAST, (int64_t[]){16, 120}, 64, 1, "matmul_tile");
  expect_kernels(OM_MODE_FAST, (int64_t[]){1024, 770}, 768, 1, "matmul_tile"); /* no quads */
  expect_kernels(OM_MODE_FAST, (int64_t[]){4, 768}, 768, 1, "matmul_few_8");
  expect_kernels(OM_MODE_EXACT, (int64_t[]){4, 768}, 768, 1, "matmul_rows");
}

/* A run, so that the recording is checked too. */
static void test_a_run(void **state) {
  static float x[128 * 768], y[128 * 768];
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  (void)state;
  options.backend = "null";
  options.device = "matrix hardware";
  rig_open_with(rig, &options, OM_MODE_FAST);
  const uint32_t in = rig_input(rig, 2, (int64_t[]){128, 768});
  const uint32_t w = rig_weight(rig, 2, (int64_t[]){768, 768}, weights);
  const uint32_t out = rig_binary(rig, "MatMul", in, w);
  rig_compile(rig, &out, 1);
  rig_run(rig, (const void *const[]){x}, (void *const[]){y});
  assert_int_equal(rig->session->info.dispatches, 1);
  rig_close(rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parts_add_up),
      cmocka_unit_test(test_ends_are_zeros),
      cmocka_unit_test(test_infinities_are_low_parts),
      cmocka_unit_test(test_weights_make_up_for_cuts),
      cmocka_unit_test(test_products_by_size),
      cmocka_unit_test(test_others_stay_portable),
      cmocka_unit_test(test_a_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
