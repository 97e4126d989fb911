/* The self-test: a device passes, and one that gets a single bit wrong loses what rests on it. */
#include "gpu/om_gpu_selftest.h"

#include "unit/gpu_rig.h"

static const int64_t four[] = {4};
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;

enum { CASES = 8192, SOME_CASE = 4101 /* one of moderate operands */ };

/* A device whose results have one bit wrong, in this word of one of its two trials. */
static om_hal broken;
static const om_hal *sound;
static uint32_t trials, wrong_trial, wrong_word, wrong_bit;

static om_status download_wrong(om_ctx *ctx,
                                om_hal_device *device,
                                om_hal_buffer *buffer,
                                uint64_t offset,
                                void *data,
                                uint64_t bytes) {
  om_status st = sound->download(ctx, device, buffer, offset, data, bytes);
  if (st == OM_OK && trials++ == wrong_trial) ((uint32_t *)data)[wrong_word] ^= wrong_bit;
  return st;
}

static void break_trial(uint32_t trial, uint32_t word, uint32_t bit) {
  sound = rig->session->hal;
  broken = *sound;
  broken.download = download_wrong;
  trials = 0;
  wrong_trial = trial;
  wrong_word = word;
  wrong_bit = bit;
  rig->session->hal = &broken;
  rig_check(rig, om_gpu_selftest_run(&rig->ctx, rig->session));
  rig->session->hal = sound;
}

/* In the expression with this number. */
static void break_device(uint32_t number, uint32_t bit) {
  break_trial(0, number * CASES + SOME_CASE, bit);
}

/* The reason for the one step of a plan, or NULL. */
static const char *claim_one(const char *type) {
  const char *reason = NULL;
  uint32_t x = rig_input(rig, 1, four);
  uint32_t y = rig_input(rig, 1, four);
  rig_binary(rig, type, x, y);
  uint32_t step = (uint32_t)rig->view.step_count - 1;
  rig_check(rig, om_gpu_provider()->plan_begin(&rig->ctx, rig->session, &rig->view, &rig->plan));
  rig_check(rig, om_gpu_provider()->claim(&rig->ctx, rig->plan, step, &reason));
  rig_end_plan(rig);
  return reason;
}

static void test_device_passes(void **state) {
  (void)state;
  rig_open(rig, NULL, OM_MODE_EXACT, false);
  assert_string_equal(rig->session->info.exact_failures, "");
  assert_int_equal(rig->session->failed_primitives, 0);
  assert_null(claim_one("Div"));
  rig_close(rig);
}

static void test_one_wrong_bit_is_found(void **state) {
  (void)state;
  rig_open(rig, NULL, OM_MODE_EXACT, false);
  break_device(6, 1); /* the last place of a quotient */
  assert_int_equal(rig->session->failed_primitives, OM_PRIMITIVE_DIVIDE);
  assert_string_equal(rig->session->info.exact_failures, "division");
  assert_string_equal(claim_one("Div"), "the device failed the exact self-test for division");
  assert_null(claim_one("Add"));
  rig_close(rig);
}

static void test_every_expression_counts(void **state) {
  static const struct {
    uint32_t number, primitive;
  } table[] = {
#define OM_SELFTEST(number, primitive, expression) {number, OM_PRIMITIVE_##primitive},
#include "gpu/om_gpu_selftest.def"
#undef OM_SELFTEST
  };
  (void)state;
  rig_open(rig, NULL, OM_MODE_EXACT, false);
  for (size_t i = 0; i < OM_COUNT_OF(table); ++i) {
    break_device(table[i].number, 0x40000000); /* turns 0, infinity and NaN too */
    assert_int_equal(rig->session->failed_primitives, table[i].primitive);
  }
  rig_close(rig);
}

/* Of float16 in memory: one that is loaded, and one that is stored as the even number. */
static void test_halves_count(void **state) {
  enum { HALF_CASES = 1 << 17 };
  (void)state;
  rig_open(rig, NULL, OM_MODE_EXACT, false);
  if (!rig->session->features.storage_16bit) OM_TEST_SKIP("the device has no 16-bit storage");
  break_trial(1, 5, 1);
  assert_int_equal(rig->session->failed_primitives, OM_PRIMITIVE_FLOAT16);
  break_trial(1, HALF_CASES + 5, 1);
  assert_int_equal(rig->session->failed_primitives, OM_PRIMITIVE_FLOAT16);
  assert_string_equal(rig->session->info.exact_failures, "float16");
  assert_null(claim_one("Div"));
  rig_close(rig);
}

/* Kernels for Hopper are tried by themselves: a device that fails keeps the others. The null device
 * computes nothing, so it fails. */
static void test_kernels_for_hopper_count(void **state) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  (void)state;
  if (!om_has_sm90_kernels) OM_TEST_SKIP("kernels for Hopper are not in this build");
  options.backend = "null";
  options.device = "Hopper";
  rig_open_with(rig, &options, OM_MODE_EXACT);
  assert_true(rig->session->features.sm90);
  assert_true(rig->session->info.has_sm90);
  break_trial(0, 0, 0);
  assert_true((rig->session->failed_primitives & OM_PRIMITIVE_SM90) != 0);
  assert_non_null(strstr(rig->session->info.exact_failures, "kernels for Hopper"));
  assert_false(rig->session->features.sm90);
  assert_false(rig->session->info.has_sm90);
  rig_close(rig);
}

/* Everything exact rests on addition: a device that cannot add runs nothing in exact mode. */
static void test_no_arithmetic_no_operators(void **state) {
  const om_node node = {.type = "Relu", .domain = ""};
  (void)state;
  rig_open(rig, NULL, OM_MODE_EXACT, false);
  break_device(3, 1);
  assert_string_equal(om_gpu_provider()->check(rig->session, &node),
                      "the device failed the exact self-test for arithmetic");
  rig_close(rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_device_passes),
      cmocka_unit_test(test_one_wrong_bit_is_found),
      cmocka_unit_test(test_every_expression_counts),
      cmocka_unit_test(test_halves_count),
      cmocka_unit_test(test_kernels_for_hopper_count),
      cmocka_unit_test(test_no_arithmetic_no_operators),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
