/* Fusion: what moves into which chain, and that the bits stay. */
#include "base/om_float16.h"
#include "unit/gpu_rig.h"

static const int64_t image[] = {2, 3, 5, 7};
enum { IMAGE_ELEMS = 210 };
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static float small[] = {0.25f};
static float columns[] = {1, 2, 3, 4, 5, 6, 7};
static float channels[] = {0.5f, -2.0f, 3.0f};
static float rows_of_images[10];
static float columns_of_channels[21];
static float square_weights[49];

/* Values that differ, of both signs. */
static void fill(float *data, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = (float)(int32_t)seed * (1.0f / 536870912.0f);
  }
}

typedef uint32_t (*build_fn)(gpu_rig *r, uint32_t x, uint32_t y);

/* Launches that are left, and the items of the first. */
static void expect(build_fn build, size_t launches, uint32_t items) {
  rig_open(rig, "null", OM_MODE_EXACT, false);
  uint32_t x = rig_input(rig, 4, image);
  uint32_t y = rig_input(rig, 4, image);
  uint32_t out = build(rig, x, y);
  rig_compile(rig, &out, 1);
  assert_int_equal(rig->plan->regions[0].launch_count, launches);
  assert_int_equal(rig->plan->regions[0].launches[0].dispatch->chain.item_count, items);
  rig_close(rig);
}

static void run_once(build_fn build, bool no_fusion, float *result) {
  static float data[2][IMAGE_ELEMS];
  rig_open(rig, NULL, OM_MODE_EXACT, no_fusion);
  uint32_t x = rig_input(rig, 4, image);
  uint32_t y = rig_input(rig, 4, image);
  uint32_t out = build(rig, x, y);
  rig_compile(rig, &out, 1);
  fill(data[0], IMAGE_ELEMS, 1);
  fill(data[1], IMAGE_ELEMS, 2);
  rig_run(rig, (const void *const[]){data[0], data[1]}, (void *const[]){result});
  rig_close(rig);
}

static void expect_same_bits(build_fn build) {
  float fused[IMAGE_ELEMS];
  float apart[IMAGE_ELEMS];
  run_once(build, false, fused);
  run_once(build, true, apart);
  assert_memory_equal(fused, apart, sizeof fused);
}

/* ---- Graphs ---- */

static uint32_t row(gpu_rig *r, uint32_t x, uint32_t y) {
  (void)y;
  uint32_t c = rig_weight(r, 0, NULL, small);
  return rig_unary(r, "Relu", rig_binary(r, "Mul", rig_binary(r, "Sub", c, x), c));
}

static uint32_t per_channel(gpu_rig *r, uint32_t x, uint32_t y) {
  (void)y;
  uint32_t c = rig_weight(r, 4, (int64_t[]){1, 3, 1, 1}, channels);
  return rig_binary(r, "Add", rig_binary(r, "Mul", x, c), c);
}

/* An operand that has two of the result's axes, apart. */
static uint32_t add_repeats(gpu_rig *r, uint32_t v) {
  fill(rows_of_images, OM_COUNT_OF(rows_of_images), 3);
  const uint32_t rows = rig_weight(r, 4, (int64_t[]){2, 1, 5, 1}, rows_of_images);
  return rig_unary(r, "Relu", rig_binary(r, "Sub", rows, v));
}

static uint32_t repeats(gpu_rig *r, uint32_t x, uint32_t y) {
  (void)y;
  fill(columns_of_channels, OM_COUNT_OF(columns_of_channels), 4);
  const uint32_t c = rig_weight(r, 4, (int64_t[]){1, 3, 1, 7}, columns_of_channels);
  return rig_binary(r, "Mul", add_repeats(r, rig_unary(r, "Sigmoid", x)), c);
}

static uint32_t product_with_repeats(gpu_rig *r, uint32_t x, uint32_t y) {
  (void)y;
  fill(square_weights, OM_COUNT_OF(square_weights), 5);
  const uint32_t weights = rig_weight(r, 2, (int64_t[]){7, 7}, square_weights);
  const uint32_t bias = rig_weight(r, 1, (int64_t[]){7}, columns);
  return add_repeats(r, rig_binary(r, "Add", rig_binary(r, "MatMul", x, weights), bias));
}

static uint32_t residual(gpu_rig *r, uint32_t x, uint32_t y) {
  uint32_t left = rig_unary(r, "Sigmoid", x);
  uint32_t right = rig_unary(r, "Relu", y);
  return rig_binary(r, "Sub", left, right);
}

static uint32_t normalised_sum(gpu_rig *r, uint32_t x, uint32_t y) {
  uint32_t scale = rig_weight(r, 1, (int64_t[]){7}, columns);
  return rig_binary(r, "LayerNormalization", rig_binary(r, "Add", x, y), scale);
}

/* Its sum is read twice: it stays. */
static uint32_t normalised_kept_sum(gpu_rig *r, uint32_t x, uint32_t y) {
  uint32_t scale = rig_weight(r, 1, (int64_t[]){7}, columns);
  uint32_t sum = rig_binary(r, "Add", x, y);
  return rig_binary(r, "Add", rig_binary(r, "LayerNormalization", sum, scale), sum);
}

static uint32_t hard_swish(gpu_rig *r, uint32_t x, uint32_t y) {
  uint32_t c = rig_weight(r, 0, NULL, small);
  uint32_t v = rig_binary(r, "Mul", x, y);
  uint32_t w = rig_unary(r, "Relu", rig_binary(r, "Add", v, c));
  return rig_binary(r, "Div", rig_binary(r, "Mul", v, w), c);
}

static uint32_t square(gpu_rig *r, uint32_t x, uint32_t y) {
  uint32_t v = rig_binary(r, "Add", x, y);
  return rig_binary(r, "Mul", v, v);
}

/* The value is read by something outside the chain too. */
static uint32_t read_elsewhere(gpu_rig *r, uint32_t x, uint32_t y) {
  uint32_t v = rig_binary(r, "Mul", x, y);
  uint32_t a = rig_unary(r, "Relu", v);
  uint32_t b = rig_unary(r, "Sigmoid", v);
  return rig_binary(r, "Add", a, rig_binary(r, "Div", b, a));
}

static uint32_t ten_items(gpu_rig *r, uint32_t x, uint32_t y) {
  (void)y;
  for (int i = 0; i < 10; ++i) x = rig_unary(r, i % 2 == 0 ? "Sigmoid" : "Relu", x);
  return x;
}

static uint32_t three_operands(gpu_rig *r, uint32_t x, uint32_t y) {
  uint32_t c = rig_weight(r, 4, (int64_t[]){1, 3, 1, 1}, channels);
  uint32_t d = rig_weight(r, 4, (int64_t[]){1, 1, 1, 7}, columns);
  uint32_t v = rig_binary(r, "Mul", rig_binary(r, "Add", x, c), y);
  return rig_binary(r, "Add", v, d);
}

static uint32_t through_views(gpu_rig *r, uint32_t x, uint32_t y) {
  (void)y;
  uint32_t v = rig_unary(r, "Sigmoid", x);
  return rig_unary(r, "Relu", rig_unary(r, "Identity", v));
}

/* ---- Tests ---- */

static void test_rows_become_one(void **state) {
  (void)state;
  expect(row, 1, 3);
  expect_same_bits(row);
}

static void test_operands_of_any_shape(void **state) {
  (void)state;
  expect(repeats, 1, 4);
  expect_same_bits(repeats);
  expect(product_with_repeats, 1, 3);
  expect_same_bits(product_with_repeats);
}

static void test_channels_share_an_operand(void **state) {
  (void)state;
  expect(per_channel, 1, 2);
  expect_same_bits(per_channel);
}

static void test_residual_moves_into_the_later(void **state) {
  (void)state;
  expect(residual, 2, 1);
  expect_same_bits(residual);
}

static void test_value_is_kept_for_its_second_reader(void **state) {
  (void)state;
  expect(hard_swish, 1, 6); /* Mul, SAVE, Add, Relu, Mul SAVED, Div */
  expect_same_bits(hard_swish);
  expect(square, 1, 3);
  expect_same_bits(square);
}

static void test_falls_back_when_the_reader_does_not_come(void **state) {
  (void)state;
  expect(read_elsewhere, 3, 1);
  expect_same_bits(read_elsewhere);
}

static void test_limits_end_a_chain(void **state) {
  (void)state;
  expect(ten_items, 2, 8);
  expect_same_bits(ten_items);
  expect(three_operands, 2, 2);
  expect_same_bits(three_operands);
}

static void test_views_are_looked_through(void **state) {
  (void)state;
  expect(through_views, 1, 2);
  expect_same_bits(through_views);
}

static void test_normalisation_takes_the_sum_before_it(void **state) {
  (void)state;
  expect(normalised_sum, 1, 0);
  expect_same_bits(normalised_sum);
  expect(normalised_kept_sum, 2, 1);
  expect_same_bits(normalised_kept_sum);
}

/* ---- float16 ---- */

enum { HALF_ROWS = 3, HALF_COLS = 16, HALF_ELEMS = HALF_ROWS * HALF_COLS };

static uint32_t half_value(uint32_t rank, const int64_t *dims, uint16_t *data) {
  om_tensor tensor = om_tensor_of(OM_DTYPE_F16, rank, dims, data);
  const uint32_t value = rig_value(rig, &tensor);
  if (data) rig->values[value].is_weight = true;
  if (!data) rig->reads[rig->region.read_count++] = value;
  return value;
}

/* LayerNormalization(x w + y), or of x + y. */
static void open_halves(om_mode mode, bool no_fusion, bool has_product, uint32_t *out) {
  static const int64_t rows[] = {HALF_ROWS, HALF_COLS}, square_dims[] = {HALF_COLS, HALF_COLS};
  static uint16_t weights[HALF_COLS * HALF_COLS];
  for (int i = 0; i < HALF_COLS * HALF_COLS; ++i) {
    weights[i] = om_f16_from_f32((float)(i * 37 % 19 - 9) / 23.0f);
  }
  rig_open(rig, NULL, mode, no_fusion);
  uint32_t x = half_value(2, rows, NULL);
  const uint32_t y = half_value(2, rows, NULL);
  const uint32_t w = half_value(2, square_dims, weights);
  const uint32_t scale = half_value(1, square_dims, weights);
  if (has_product) x = rig_binary(rig, "MatMul", x, w);
  *out = rig_binary(rig, "LayerNormalization", rig_binary(rig, "Add", x, y), scale);
  rig_compile(rig, out, 1);
}

static void run_halves(uint16_t *result) {
  uint16_t data[2][HALF_ELEMS];
  for (int i = 0; i < 2 * HALF_ELEMS; ++i) {
    data[i / HALF_ELEMS][i % HALF_ELEMS] = om_f16_from_f32((float)(i * 29 % 31 - 15) / 7.0f);
  }
  rig_run(rig, (const void *const[]){data[0], data[1]}, (void *const[]){result});
}

/* In exact mode the sum is rounded on its way, in fast mode it is not. */
static void test_sums_of_float16(void **state) {
  uint16_t fused[HALF_ELEMS], apart[HALF_ELEMS];
  uint32_t out;
  (void)state;
  for (int has_product = 0; has_product < 2; ++has_product) {
    open_halves(OM_MODE_EXACT, false, has_product != 0, &out);
    assert_int_equal(rig->plan->regions[0].launch_count, 1 + has_product);
    run_halves(fused);
    rig_close(rig);
    open_halves(OM_MODE_EXACT, true, has_product != 0, &out);
    run_halves(apart);
    rig_close(rig);
    assert_memory_equal(fused, apart, sizeof fused);
  }
  open_halves(OM_MODE_FAST, false, true, &out);
  const om_gpu_region *region = &rig->plan->regions[0];
  assert_int_equal(region->launch_count, 2);
  assert_int_equal(region->launches[0].dispatch->chain.item_count, 0);
  assert_int_equal(region->launches[1].dispatch->operands[3].kind, OM_GPU_VALUE);
  run_halves(apart);
  rig_close(rig);
  for (int i = 0; i < HALF_ELEMS; ++i) {
    const float difference = om_f16_to_f32(fused[i]) - om_f16_to_f32(apart[i]);
    assert_true(difference < 4e-3f && difference > -4e-3f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_become_one),
      cmocka_unit_test(test_operands_of_any_shape),
      cmocka_unit_test(test_channels_share_an_operand),
      cmocka_unit_test(test_residual_moves_into_the_later),
      cmocka_unit_test(test_value_is_kept_for_its_second_reader),
      cmocka_unit_test(test_falls_back_when_the_reader_does_not_come),
      cmocka_unit_test(test_limits_end_a_chain),
      cmocka_unit_test(test_views_are_looked_through),
      cmocka_unit_test(test_normalisation_takes_the_sum_before_it),
      cmocka_unit_test(test_sums_of_float16),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
