/* Demands on the values of a run: who looks at them, what a broken one leaves behind, and what
 * they cost. */
#include "unit/gpu_rig.h"

enum { ROWS = 4, COLS = 3, PICKS = 5 };
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static float table[ROWS * COLS], result[PICKS * COLS];

static uint32_t int_input(int64_t count) {
  om_tensor tensor = om_tensor_of(OM_DTYPE_I32, 1, &count, NULL);
  uint32_t value = rig_value(rig, &tensor);
  rig->reads[rig->region.read_count++] = value;
  return value;
}

/* Gather of rows at indices that come from the host, or are made by a product before it. */
static void open_gather(const char *backend, bool is_made, uint32_t *out) {
  rig_open(rig, backend, OM_MODE_FAST, false);
  for (int i = 0; i < ROWS * COLS; ++i) table[i] = (float)i;
  uint32_t weight = rig_weight(rig, 2, (int64_t[]){ROWS, COLS}, table);
  uint32_t picks = int_input(PICKS);
  if (is_made) picks = rig_binary(rig, "Mul", picks, int_input(1));
  *out = rig_binary(rig, "Gather", weight, picks);
  rig_compile(rig, out, 1);
}

static om_status run(const int32_t picks[PICKS]) {
  static const int32_t one = 1;
  om_error_clear(&rig->error);
  const om_provider *provider = om_gpu_provider();
  OM_TRY(provider->begin(&rig->ctx, rig->plan, 0, (const void *const[]){picks, &one}));
  return provider->finish(&rig->ctx, rig->plan, 0, (void *const[]){result});
}

static void check_good_run(void) {
  static const int32_t picks[PICKS] = {3, 0, -1, -4, 2};
  static const int rows[PICKS] = {3, 0, 3, 0, 2};
  memset(result, 0, sizeof result);
  rig_check(rig, run(picks));
  for (int i = 0; i < PICKS * COLS; ++i) {
    assert_true(result[i] == (float)(rows[i / COLS] * COLS + i % COLS));
  }
}

static void check_bad_run(void) {
  static const int32_t picks[PICKS] = {0, 1, 4, -9, 2};
  memset(result, 0, sizeof result);
  assert_int_equal(run(picks), OM_E_INVALID_INPUT);
  assert_string_equal(rig->error.message,
                      "Node 'node' (Gather): Gather index 4 is out of range for an extent of 4.");
  for (int i = 0; i < PICKS * COLS; ++i) assert_true(result[i] == 0.0f); /* nothing was written */
}

static void test_host_looks_before_the_upload(void **state) {
  uint32_t out;
  (void)state;
  open_gather(NULL, false, &out);
  assert_int_equal(rig->plan->regions[0].launch_count, 1); /* no kernel looks */
  check_good_run();
  uint64_t submitted = rig->session->submitted;
  check_bad_run();
  assert_int_equal(rig->session->submitted, submitted);
  check_good_run();
  rig_close(rig);
}

static void test_device_looks_at_what_it_makes(void **state) {
  uint32_t out;
  (void)state;
  open_gather(NULL, true, &out);
  assert_int_equal(rig->plan->regions[0].launch_count, 3);
  check_good_run();
  check_bad_run();
  check_good_run();
  uint64_t host = rig->use.allocations;
  uint64_t device = rig->session->info.allocations;
  for (int i = 0; i < 3; ++i) check_good_run();
  assert_int_equal(rig->use.allocations, host);
  assert_int_equal(rig->session->info.allocations, device);
  rig_close(rig);
}

/* A table above one binding is cut along its rows: each index is found in the part that holds it.
 */
static void test_table_in_parts(void **state) {
  uint32_t out;
  (void)state;
  for (int backend = 0; backend < 2; ++backend) {
    rig_open(rig, backend == 0 ? NULL : "null", OM_MODE_FAST, false);
    rig->session->limits.max_binding_bytes = 3 * COLS * sizeof(float); /* of 4 rows */
    for (int i = 0; i < ROWS * COLS; ++i) table[i] = (float)i;
    uint32_t weight = rig_weight(rig, 2, (int64_t[]){ROWS, COLS}, table);
    out = rig_binary(rig, "Gather", weight, int_input(2));
    rig_compile(rig, &out, 1);
    assert_int_equal(rig->plan->regions[0].launch_count, 2);
    const int32_t picks[PICKS] = {3, -4};
    rig_check(rig, run(picks));
    for (int i = 0; backend == 0 && i < COLS; ++i) {
      assert_true(result[i] == (float)(3 * COLS + i));
      assert_true(result[COLS + i] == (float)i);
    }
    rig_close(rig);
  }
}

static void test_table_that_cannot_be_cut(void **state) {
  static uint8_t bytes[ROWS * COLS];
  const char *reason = NULL;
  om_tensor small = om_tensor_of(OM_DTYPE_U8, 2, (int64_t[]){ROWS, COLS}, bytes);
  (void)state;
  rig_open(rig, "null", OM_MODE_FAST, false);
  rig->session->limits.max_binding_bytes = 8; /* two rows of three bytes */
  uint32_t weight = rig_value(rig, &small);
  rig->values[weight].is_weight = true;
  rig_binary(rig, "Gather", weight, int_input(2));
  rig_check(rig, om_gpu_provider()->plan_begin(&rig->ctx, rig->session, &rig->view, &rig->plan));
  rig_check(rig, om_gpu_provider()->claim(&rig->ctx, rig->plan, 0, &reason));
  assert_non_null(reason);
  assert_non_null(strstr(reason, "above the device's binding limit of 8, and rows of its axis"));
  rig_close(rig);
}

/* The null backend checks the recording: bounds, barriers, the finding's way back. */
static void test_null_backend(void **state) {
  static const int32_t picks[PICKS] = {0};
  uint32_t out;
  (void)state;
  for (int is_made = 0; is_made < 2; ++is_made) {
    open_gather("null", is_made != 0, &out);
    for (int i = 0; i < 2; ++i) rig_check(rig, run(picks));
    rig_close(rig);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_host_looks_before_the_upload),
      cmocka_unit_test(test_device_looks_at_what_it_makes),
      cmocka_unit_test(test_table_in_parts),
      cmocka_unit_test(test_table_that_cannot_be_cut),
      cmocka_unit_test(test_null_backend),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
