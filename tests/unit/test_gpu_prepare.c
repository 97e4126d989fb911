/* Devices made ready ahead of their sessions. */
#include "unit/gpu_rig.h"

static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;

static om_gpu_options options_for(const char *backend) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = backend;
  options.cache_folder = "";
  return options;
}

static bool has_device(void) {
  size_t count = 0;
  return om_gpu_list(NULL, 0, &count, NULL) == OM_OK && count > 0;
}

static om_gpu_prepared *prepare(const char *backend, om_mode mode, bool is_finished) {
  const om_gpu_options options = options_for(backend);
  om_gpu_prepared *prepared = NULL;
  bool is_done = false;
  rig_init(rig);
  rig_check(rig, om_gpu_prepare_begin(&options, mode, NULL, &prepared, &rig->error));
  while (is_finished && !is_done) {
    rig_check(rig, om_gpu_prepare_poll(prepared, &is_done, &rig->error));
  }
  return prepared;
}

static om_status open_with(om_gpu_prepared *prepared, om_mode mode) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.prepared = prepared;
  return om_gpu_provider()->open(&rig->ctx, om_gpu_provider(), &options, mode, &rig->session);
}

static void expect_refusal(om_gpu_prepared *prepared, om_mode mode, const char *words) {
  om_provider_session *session = rig->session;
  om_error_clear(&rig->error);
  assert_int_equal(open_with(prepared, mode), OM_E_INVALID_ARGUMENT);
  assert_non_null(strstr(rig->error.message, words));
  om_error_clear(&rig->error);
  rig->session = session;
}

static void a_session_takes_it(const char *backend) {
  for (int mode = OM_MODE_FAST; mode <= OM_MODE_EXACT; ++mode) {
    om_gpu_prepared *prepared = prepare(backend, (om_mode)mode, true);
    rig_check(rig, open_with(prepared, (om_mode)mode));
    assert_non_null(rig->session);
    assert_string_equal(rig->session->info.exact_failures, "");
    expect_refusal(prepared, (om_mode)mode, "taken");
    bool is_done = false;
    assert_int_equal(om_gpu_prepare_poll(prepared, &is_done, &rig->error), OM_E_INVALID_ARGUMENT);
    om_error_clear(&rig->error);
    om_gpu_prepared_destroy(prepared);
    rig_close(rig); /* nothing is left, and no more was freed than counted */
  }
}

static void test_null_backend(void **state) {
  (void)state;
  a_session_takes_it("null");
}

static void test_device(void **state) {
  (void)state;
  if (!has_device()) OM_TEST_SKIP("there is no Vulkan device");
  a_session_takes_it(NULL);
}

static void test_nobody_takes_it(void **state) {
  (void)state;
  om_gpu_prepared_destroy(prepare("null", OM_MODE_EXACT, true));
  om_gpu_prepared_destroy(NULL);
  if (!has_device()) return;
  om_gpu_prepared_destroy(prepare(NULL, OM_MODE_EXACT, false)); /* at work */
}

static void test_what_does_not_fit(void **state) {
  (void)state;
  om_gpu_prepared *prepared = prepare("null", OM_MODE_FAST, true);
  expect_refusal(prepared, OM_MODE_EXACT, "another mode");
  om_gpu_prepared_destroy(prepared);
  if (!has_device()) return;
  prepared = prepare(NULL, OM_MODE_EXACT, false);
  expect_refusal(prepared, OM_MODE_EXACT, "not done");
  om_gpu_prepared_destroy(prepared);
}

/* ---- Shared ---- */

static om_status share(om_gpu_prepared *prepared,
                       om_mode mode,
                       bool no_sm90,
                       om_provider_session **out_session) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.shared = prepared;
  options.no_sm90 = no_sm90;
  return om_gpu_provider()->open(&rig->ctx, om_gpu_provider(), &options, mode, out_session);
}

/* Sessions of both modes; the first goes on when the others and the owner have left. */
static void sessions_share_it(const char *backend) {
  for (int prepared_for = OM_MODE_FAST; prepared_for <= OM_MODE_EXACT; ++prepared_for) {
    om_gpu_prepared *prepared = prepare(backend, (om_mode)prepared_for, true);
    om_provider_session *sessions[3];
    rig_check(rig, share(prepared, OM_MODE_EXACT, false, &rig->session));
    for (int i = 0; i < 3; ++i) {
      rig_check(rig, share(prepared, i > 0 ? OM_MODE_FAST : OM_MODE_EXACT, i > 1, &sessions[i]));
      assert_string_equal(sessions[i]->info.device.uuid, rig->session->info.device.uuid);
      assert_string_equal(sessions[i]->info.exact_failures, "");
    }
    assert_int_equal(sessions[0]->info.keeps_subnormals, rig->session->info.keeps_subnormals);
    assert_int_equal(sessions[1]->info.has_sm90, rig->session->info.has_sm90);
    assert_false(sessions[2]->info.has_sm90);
    expect_refusal(prepared, (om_mode)prepared_for, "shared");
    for (int i = 0; i < 3; ++i) om_gpu_provider()->close(&rig->ctx, sessions[i]);
    om_gpu_prepared_destroy(prepared);

    const uint32_t y = rig_unary(rig, "Relu", rig_input(rig, 1, (int64_t[]){4}));
    const float x[4] = {-1.0F, 2.0F, -3.0F, 4.0F};
    float result[4] = {0};
    rig_compile(rig, (uint32_t[]){y}, 1);
    rig_run(rig, (const void *[]){x}, (void *[]){result});
    if (strcmp(rig->session->info.device.backend, "null") != 0) {
      for (int i = 0; i < 4; ++i) assert_true(result[i] == (x[i] > 0 ? x[i] : 0));
    }
    rig_close(rig);
  }
}

static void test_shared_null_device(void **state) {
  (void)state;
  sessions_share_it("null");
}

static void test_shared_device(void **state) {
  (void)state;
  if (!has_device()) OM_TEST_SKIP("there is no Vulkan device");
  sessions_share_it(NULL);
}

static void expect_not_shared(om_gpu_prepared *prepared, const char *words) {
  om_provider_session *session = NULL;
  om_error_clear(&rig->error);
  assert_int_equal(share(prepared, OM_MODE_EXACT, false, &session), OM_E_INVALID_ARGUMENT);
  assert_null(session);
  assert_non_null(strstr(rig->error.message, words));
}

static void test_what_cannot_be_shared(void **state) {
  (void)state;
  om_gpu_prepared *prepared = prepare("null", OM_MODE_EXACT, true);
  rig_check(rig, open_with(prepared, OM_MODE_EXACT));
  expect_not_shared(prepared, "taken");
  om_gpu_prepared_destroy(prepared);
  rig_close(rig);
  if (!has_device()) return;
  prepared = prepare(NULL, OM_MODE_EXACT, false);
  expect_not_shared(prepared, "not done");
  om_gpu_prepared_destroy(prepared);
}

static void test_taken_or_shared(void **state) {
  (void)state;
  om_gpu_prepared *prepared = prepare("null", OM_MODE_EXACT, true);
  om_provider_session *session = NULL;
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.prepared = prepared;
  options.shared = prepared;
  const om_status st =
      om_gpu_provider()->open(&rig->ctx, om_gpu_provider(), &options, OM_MODE_EXACT, &session);
  if (session) om_gpu_provider()->close(&rig->ctx, session);
  assert_int_equal(st, OM_E_INVALID_ARGUMENT);
  assert_non_null(strstr(rig->error.message, "both"));
  om_gpu_prepared_destroy(prepared);
}

static void test_failures_are_told(void **state) {
  const om_gpu_options options = options_for("glide");
  om_gpu_prepared *prepared = NULL;
  bool is_done = true;
  (void)state;
  rig_init(rig);
  assert_int_equal(om_gpu_prepare_begin(&options, OM_MODE_FAST, NULL, &prepared, &rig->error),
                   OM_E_UNSUPPORTED);
  assert_null(prepared);
  assert_non_null(strstr(rig->error.message, "glide"));
  assert_int_equal(om_gpu_prepare_begin(&options, OM_MODE_FAST, NULL, NULL, NULL),
                   OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_gpu_prepare_poll(NULL, &is_done, NULL), OM_E_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_null_backend),
      cmocka_unit_test(test_device),
      cmocka_unit_test(test_nobody_takes_it),
      cmocka_unit_test(test_what_does_not_fit),
      cmocka_unit_test(test_shared_null_device),
      cmocka_unit_test(test_shared_device),
      cmocka_unit_test(test_what_cannot_be_shared),
      cmocka_unit_test(test_taken_or_shared),
      cmocka_unit_test(test_failures_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
