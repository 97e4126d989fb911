/* The provider's edges: options, the choice of a device, lists, and what it refuses. */
#include "unit/gpu_rig.h"

static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;

static om_status open_device(const char *backend, const char *device) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = backend;
  options.device = device;
  rig_init(rig);
  return om_gpu_provider()->open(
      &rig->ctx, om_gpu_provider(), &options, OM_MODE_FAST, &rig->session);
}

static void expect_name(const char *device, const char *part) {
  rig_check(rig, open_device("null", device));
  assert_non_null(strstr(rig->session->info.device.name, part));
  rig_close(rig);
}

static void test_device_by_index_name_and_uuid(void **state) {
  om_gpu_device devices[8];
  size_t count = 0;
  (void)state;
  rig_init(rig);
  rig_check(rig, om_hal_null.list(&rig->ctx, devices, 8, &count));
  assert_true(count >= 2 && count <= 8);
  expect_name(NULL, devices[0].name);
  expect_name("", devices[0].name);
  expect_name("1", devices[1].name);
  expect_name("SEPARATE", "separate");
  for (size_t i = 0; i < count; ++i) expect_name(devices[i].uuid, devices[i].name);
}

static void test_unknown_device_and_backend_are_named(void **state) {
  (void)state;
  assert_int_equal(open_device("null", "Voodoo 2"), OM_E_UNSUPPORTED);
  assert_non_null(strstr(rig->error.message, "'Voodoo 2'"));
  assert_int_equal(open_device("null", "99"), OM_E_UNSUPPORTED);
  assert_int_equal(open_device("glide", NULL), OM_E_UNSUPPORTED);
  assert_non_null(strstr(rig->error.message, "glide"));
  assert_null(rig->session);
  assert_int_equal(rig->use.live_bytes, 0);
}

static void test_options_of_another_size(void **state) {
  om_gpu_options options = {.struct_bytes = 3};
  (void)state;
  rig_init(rig);
  assert_int_equal(
      om_gpu_provider()->open(&rig->ctx, om_gpu_provider(), &options, OM_MODE_FAST, &rig->session),
      OM_E_INVALID_ARGUMENT);
  /* A caller built when the struct ended after `device`. */
  om_error_clear(&rig->error);
  options = (om_gpu_options){.struct_bytes = offsetof(om_gpu_options, backend), .backend = "glide"};
  om_status st =
      om_gpu_provider()->open(&rig->ctx, om_gpu_provider(), &options, OM_MODE_FAST, &rig->session);
  if (st == OM_OK) {
    rig_close(rig);
  } else {
    assert_null(strstr(rig->error.message, "glide"));
  }
}

static void test_check_gives_reasons(void **state) {
  const om_node unknown = {.type = "Frobnicate", .domain = ""};
  const om_node relu = {.type = "Relu", .domain = ""};
  (void)state;
  rig_open(rig, "null", OM_MODE_EXACT, false);
  assert_string_equal(om_gpu_provider()->check(rig->session, &unknown),
                      "no kernel for this operator");
  assert_null(om_gpu_provider()->check(rig->session, &relu));
  rig_close(rig);
}

/* Whether a session on the null device with Hopper's kernels may use them. */
static bool may_use_sm90(om_mode mode, bool no_sm90, bool no_matrix_hardware) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = "null";
  options.device = "Hopper";
  options.no_sm90 = no_sm90;
  options.no_matrix_hardware = no_matrix_hardware;
  rig_open_with(rig, &options, mode);
  const bool may = rig->session->features.sm90;
  assert_true(rig->session->info.has_sm90 == may);
  rig_close(rig);
  return may;
}

static void test_sm90_is_for_both_modes(void **state) {
  (void)state;
  assert_true(may_use_sm90(OM_MODE_FAST, false, false) == om_has_sm90_kernels);
  assert_true(may_use_sm90(OM_MODE_EXACT, false, false) == om_has_sm90_kernels);
  assert_false(may_use_sm90(OM_MODE_EXACT, true, false));
  assert_false(may_use_sm90(OM_MODE_FAST, true, false));
  assert_false(may_use_sm90(OM_MODE_FAST, false, true));
}

/* The reason for a step on a tensor of this type and shape; copied, for it dies with the plan. */
static void expect_reason(om_dtype dtype, uint32_t rank, const int64_t *dims, const char *want) {
  const char *reason = NULL;
  rig_check(rig, open_device("null", NULL));
  om_tensor tensor = om_tensor_of(dtype, rank, dims, NULL);
  rig_unary(rig, "Relu", rig_value(rig, &tensor));
  rig_check(rig, om_gpu_provider()->plan_begin(&rig->ctx, rig->session, &rig->view, &rig->plan));
  for (int i = 0; i < 2; ++i) {
    rig_check(rig, om_gpu_provider()->claim(&rig->ctx, rig->plan, 0, &reason));
    assert_non_null(reason);
    assert_string_equal(reason, want);
  }
  rig_close(rig);
}

/* A device without 16-bit storage takes float16 as float32, and no kernel of halves. */
static void test_halves_are_widened(void **state) {
  const char *reason = NULL;
  (void)state;
  rig_check(rig, open_device("null", "separate"));
  om_tensor tensor = om_tensor_of(OM_DTYPE_F16, 1, (int64_t[]){4}, NULL);
  rig_unary(rig, "Relu", rig_value(rig, &tensor));
  rig_check(rig, om_gpu_provider()->plan_begin(&rig->ctx, rig->session, &rig->view, &rig->plan));
  rig_check(rig, om_gpu_provider()->claim(&rig->ctx, rig->plan, 0, &reason));
  assert_null(reason);
  const om_gpu_step *step = &rig->plan->steps[0];
  assert_int_equal(step->dispatch_count, 1);
  assert_int_equal(om_shader_get(step->dispatches[0].shader)->half_mask, 0);
  rig_close(rig);
}

static void test_claim_gives_reasons(void **state) {
  (void)state;
  expect_reason(OM_DTYPE_F64, 1, (int64_t[]){4}, "no kernel for float64");
  expect_reason(OM_DTYPE_F32, 2, (int64_t[]){0, 4}, "an empty tensor stays on the CPU");
  expect_reason(OM_DTYPE_F32,
                1,
                (int64_t[]){1 << 26},
                "an operand of 268435456 bytes is above the device's binding limit of 134217728");
}

static void test_operators_are_sorted_and_once(void **state) {
  om_gpu_operator_info before = {.domain = "", .type = ""};
  om_gpu_operator_info info;
  size_t count = 0;
  (void)state;
  for (; om_gpu_operator_get(count, &info); ++count) {
    int order = strcmp(before.domain, info.domain);
    assert_true(order < 0 || (order == 0 && strcmp(before.type, info.type) < 0));
    assert_true(info.dtypes[0] != '\0');
    assert_ptr_not_equal(om_gpu_op_find(info.domain, info.type), NULL);
    before = info;
  }
  assert_true(count > 20);
  assert_null(om_gpu_op_get(count));
}

static void test_list_and_info_check_their_arguments(void **state) {
  om_error error;
  om_gpu_info info;
  size_t count = 99;
  (void)state;
  assert_int_equal(om_gpu_list(NULL, 0, &count, &error), OM_OK);
  assert_true(count < 99);
  assert_true(count > 0 || error.message[0] != '\0');
  assert_int_equal(om_gpu_list(NULL, 0, &count, NULL), OM_OK);
  assert_int_equal(om_gpu_list(NULL, 1, &count, &error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_gpu_list(NULL, 0, NULL, NULL), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_gpu_get_info(NULL, &info, &error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_gpu_get_info(NULL, &info, NULL), OM_E_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_device_by_index_name_and_uuid),
      cmocka_unit_test(test_unknown_device_and_backend_are_named),
      cmocka_unit_test(test_options_of_another_size),
      cmocka_unit_test(test_check_gives_reasons),
      cmocka_unit_test(test_sm90_is_for_both_modes),
      cmocka_unit_test(test_claim_gives_reasons),
      cmocka_unit_test(test_halves_are_widened),
      cmocka_unit_test(test_operators_are_sorted_and_once),
      cmocka_unit_test(test_list_and_info_check_their_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
