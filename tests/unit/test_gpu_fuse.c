/* Fusion: what moves into which chain, and that the bits stay. */
#include "unit/gpu_rig.h"

static const int64_t image[] = {2, 3, 5, 7};
enum { IMAGE_ELEMS = 210 };
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static float small[] = {0.25f};
static float columns[] = {1, 2, 3, 4, 5, 6, 7};
static float channels[] = {0.5f, -2.0f, 3.0f};

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

static uint32_t residual(gpu_rig *r, uint32_t x, uint32_t y) {
  uint32_t left = rig_unary(r, "Sigmoid", x);
  uint32_t right = rig_unary(r, "Relu", y);
  return rig_binary(r, "Sub", left, right);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_become_one),
      cmocka_unit_test(test_channels_share_an_operand),
      cmocka_unit_test(test_residual_moves_into_the_later),
      cmocka_unit_test(test_value_is_kept_for_its_second_reader),
      cmocka_unit_test(test_falls_back_when_the_reader_does_not_come),
      cmocka_unit_test(test_limits_end_a_chain),
      cmocka_unit_test(test_views_are_looked_through),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
