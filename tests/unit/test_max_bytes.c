/* max_bytes: models and sessions hold no more memory than that, whatever a file asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_model_text.h"

enum { MIB = 1 << 20 };

static om_status open_session(om_text_rig *rig, const char *text, uint64_t max_bytes) {
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = OM_MODE_EXACT;
  options.max_bytes = max_bytes;
  *rig = (om_text_rig){.bytes = om_model_text(text, 17)};
  assert_int_equal(
      om_model_load_memory(rig->bytes.bytes, rig->bytes.count, NULL, &rig->model, &rig->error),
      OM_OK);
  return om_session_create(rig->model, &options, &rig->session, &rig->error);
}

/* A few bytes of a file ask for 40 MB of intermediate values. */
static void plans_stay_below(void **state) {
  static const char text[] =
      "(x: f32[10000,1], z: f32[1,1000]) -> y { t = Add(x, z); y = ReduceSum(t); }";
  static om_text_rig rig;
  (void)state;
  assert_int_equal(open_session(&rig, text, 8 * MIB), OM_E_OUT_OF_MEMORY);
  assert_non_null(strstr(rig.error.message, "above the limit of 8388608 bytes"));
  assert_null(rig.session);
  om_model_destroy(rig.model);
  assert_int_equal(open_session(&rig, text, 80 * MIB), OM_OK);
  om_text_rig_close(&rig);
}

/* What a run's data ask for; afterwards the session goes on. */
static void runs_stay_below(void **state) {
  static const char text[] = "(x: f32, n: i64[1]) -> y { t = Expand(x, n); y = ReduceSum(t); }";
  static om_text_rig rig;
  float x = 1.0f;
  int64_t n = 100 * MIB;
  const int64_t one = 1;
  om_named_tensor inputs[] = {{"x", om_tensor_of(OM_DTYPE_F32, 0, NULL, &x)},
                              {"n", om_tensor_of(OM_DTYPE_I64, 1, &one, &n)}};
  om_named_tensor output = {.name = "y"};
  (void)state;
  assert_int_equal(open_session(&rig, text, 16 * MIB), OM_OK);
  assert_int_equal(om_text_rig_run(&rig, inputs, 2, &output, 1), OM_E_OUT_OF_MEMORY);
  assert_non_null(strstr(rig.error.message, "max_bytes"));
  n = 1000;
  assert_int_equal(om_text_rig_run(&rig, inputs, 2, &output, 1), OM_OK);
  assert_true(*(const float *)output.tensor.data == 1000.0f);
  const om_session_statistics use = om_session_get_statistics(rig.session);
  assert_true(use.host_peak_bytes <= 16 * MIB);
  om_text_rig_close(&rig);
}

static void loops_stay_below(void **state) {
  static const char text[] =
      "(c: bool, x: f32[1000]) -> y {"
      "  n = Constant() value_int=1000000000;"
      "  s, y = Loop(n, c, x) body={(i: i64, a: bool, b: f32[1000]) -> a, d, e {"
      "    d = Add(b, b); e = Neg(d); }};"
      "}";
  static om_text_rig rig;
  static float x[1000];
  bool c = true;
  const int64_t thousand = 1000;
  om_named_tensor inputs[] = {{"c", om_tensor_of(OM_DTYPE_BOOL, 0, NULL, &c)},
                              {"x", om_tensor_of(OM_DTYPE_F32, 1, &thousand, x)}};
  om_named_tensor output = {.name = "y"};
  (void)state;
  assert_int_equal(open_session(&rig, text, 4 * MIB), OM_OK);
  assert_int_equal(om_text_rig_run(&rig, inputs, 2, &output, 1), OM_E_OUT_OF_MEMORY);
  om_text_rig_close(&rig);
}

static void models_stay_below(void **state) {
  om_message bytes = om_model_text("(x: f32) -> y { y = Neg(x); }", 17);
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  om_model *model = NULL;
  om_error error = {0};
  (void)state;
  options.max_bytes = 1000;
  assert_int_equal(om_model_load_memory(bytes.bytes, bytes.count, &options, &model, &error),
                   OM_E_OUT_OF_MEMORY);
  assert_null(model);
  assert_non_null(strstr(error.message, "max_bytes"));
  options.max_bytes = MIB;
  assert_int_equal(om_model_load_memory(bytes.bytes, bytes.count, &options, &model, &error), OM_OK);
  om_model_destroy(model);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_stay_below),
      cmocka_unit_test(runs_stay_below),
      cmocka_unit_test(loops_stay_below),
      cmocka_unit_test(models_stay_below),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
