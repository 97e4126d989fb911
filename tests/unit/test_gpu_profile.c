/* Device time by step: what is counted where, and that it is time. */
#include <stdlib.h>

#include "unit/gpu_rig.h"

enum { COLUMNS = 4096 };
static const int64_t wide[] = {64, COLUMNS};
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static float input[64 * COLUMNS], sums[64 * COLUMNS], activated[64 * COLUMNS];

static void open_profiled(const char *backend) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = backend;
  options.device = backend ? NULL : getenv("OM_TEST_DEVICE");
  options.profile_steps = true;
  rig_open_with(rig, &options, OM_MODE_FAST);
}

/* Softmax, Relu(Exp(x)) of which Relu fuses into Exp. */
static void compile(uint32_t writes[2]) {
  uint32_t x = rig_input(rig, 2, wide);
  writes[0] = rig_unary(rig, "Softmax", x);
  writes[1] = rig_unary(rig, "Relu", rig_unary(rig, "Exp", x));
  rig_compile(rig, writes, 2);
}

static void run(void) {
  const void *const reads[] = {input};
  void *const writes[] = {sums, activated};
  rig_run(rig, reads, writes);
}

static void expect_two_steps(void) {
  const om_provider_plan *plan = rig->session->profiled;
  assert_ptr_equal(plan, rig->plan);
  assert_int_equal(plan->step_time_count, 2);
  assert_string_equal(plan->step_times[0].type, "Softmax");
  assert_string_equal(plan->step_times[1].type, "Exp");
  assert_string_equal(plan->step_times[1].node, "node");
  assert_int_equal(plan->step_times[1].dispatches, 1);
  assert_int_equal(plan->step_times[0].dispatches + plan->step_times[1].dispatches,
                   rig->session->info.dispatches);
}

static void test_fused_steps_are_counted_with_their_host(void **state) {
  uint32_t writes[2];
  (void)state;
  open_profiled("null");
  compile(writes);
  assert_null(rig->session->profiled);
  for (int i = 0; i < 2; ++i) { /* a run's numbers, not a sum over runs */
    run();
    expect_two_steps();
  }
  rig_end_plan(rig);
  assert_null(rig->session->profiled);
  rig_close(rig);
}

static void test_times_are_positive_and_within_the_run(void **state) {
  uint32_t writes[2];
  (void)state;
  open_profiled(NULL);
  if (!rig->session->features.timestamps) {
    rig_close(rig);
    OM_TEST_SKIP("the device has no timestamps");
  }
  compile(writes);
  for (int i = 0; i < 2; ++i) {
    run();
    expect_two_steps();
    double sum = 0.0;
    for (size_t k = 0; k < 2; ++k) {
      assert_true(rig->session->profiled->step_times[k].ms > 0.0);
      sum += rig->session->profiled->step_times[k].ms;
    }
    assert_true(sum <= rig->session->info.device_ms);
  }
  rig_close(rig);
}

/* A second run allocates nothing. */
static void test_a_warm_run_allocates_nothing(void **state) {
  uint32_t writes[2];
  (void)state;
  open_profiled("null");
  compile(writes);
  run();
  uint64_t before = rig->use.allocations;
  run();
  assert_int_equal(rig->use.allocations, before);
  rig_close(rig);
}

static void test_without_the_option_there_are_none(void **state) {
  uint32_t writes[2];
  (void)state;
  rig_open(rig, "null", OM_MODE_FAST, false);
  compile(writes);
  run();
  assert_null(rig->session->profiled);
  assert_null(rig->plan->step_times);
  rig_close(rig);
}

/* ---- Through the public interface ---- */

static om_session *create(const om_model *model, const om_gpu_options *gpu) {
  om_error error;
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  if (gpu) {
    options.provider = om_gpu_provider();
    options.provider_options = gpu;
  }
  assert_int_equal(om_session_create(model, &options, &session, &error), OM_OK);
  return session;
}

static void run_session(om_session *session) {
  om_error error;
  om_named_tensor x = {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){2, 4}, input)};
  om_named_tensor y = {"y", {0}};
  const om_run_args args = {sizeof args, &x, 1, &y, 1, NULL};
  assert_int_equal(om_session_run(session, &args, &error), OM_OK);
}

static void test_the_public_call(void **state) {
  static const char path[] = OM_SOURCE_DIR "/tests/api/example.onnx"; /* y = Relu(x) * 2 */
  const om_gpu_step_time *times = NULL;
  size_t count = 9;
  om_error error;
  om_model *model = NULL;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  (void)state;
  gpu.backend = "null";
  gpu.profile_steps = true;
  assert_int_equal(om_model_load_file(path, NULL, &model, &error), OM_OK);
  om_session *session = create(model, &gpu);
  assert_int_equal(om_gpu_get_step_times(session, &times, &count, &error), OM_OK);
  assert_int_equal(count, 0);
  run_session(session);
  assert_int_equal(om_gpu_get_step_times(session, &times, &count, NULL), OM_OK);
  assert_int_equal(count, 1);
  assert_string_equal(times[0].type, "Relu");
  assert_int_equal(times[0].dispatches, 1);
  assert_int_equal(om_gpu_get_step_times(session, NULL, &count, &error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_gpu_get_step_times(NULL, &times, &count, NULL), OM_E_INVALID_ARGUMENT);
  om_session_destroy(session);
  session = create(model, NULL);
  assert_int_equal(om_gpu_get_step_times(session, &times, &count, &error), OM_E_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "om_gpu_provider"));
  om_session_destroy(session);
  om_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fused_steps_are_counted_with_their_host),
      cmocka_unit_test(test_times_are_positive_and_within_the_run),
      cmocka_unit_test(test_a_warm_run_allocates_nothing),
      cmocka_unit_test(test_without_the_option_there_are_none),
      cmocka_unit_test(test_the_public_call),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
