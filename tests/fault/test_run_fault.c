/* Every allocation of creating a session and running it fails once, in turn: the status says so,
 * nothing leaks, and what was there before stays usable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_fake_provider.h"
#include "harness/om_fault.h"
#include "harness/om_graph_builder.h"

enum { MOST_ALLOCATIONS = 2000 };

/* Folding at load and in the plan, a rewrite, a dynamic step, and two steps for the device. */
static om_model *make_model(void) {
  static const int64_t twos[2] = {2, 2}, rows = -1;
  om_graph_builder b;
  om_build_begin(&b, 13);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 2, (int64_t[]){-1, 3}, NULL);
  om_value_id shape = om_build_input(&b, "shape", OM_DTYPE_I64, 1, (int64_t[]){2}, NULL);
  om_value_id two = om_build_constant(&b, "two", OM_DTYPE_I64, 1, (int64_t[]){2}, twos);
  om_value_id rest = om_build_constant(&b, "rest", OM_DTYPE_I64, 1, (int64_t[]){1}, &rows);
  om_value_id four = om_build_node(&b, "Concat", "four", 2, (om_value_id[]){two, two});
  om_build_int(&b, "axis", 0);
  om_value_id same = om_build_node(&b, "Identity", "same", 1, &x);
  om_value_id flat = om_build_node(&b, "Reshape", "flat", 2, (om_value_id[]){same, rest});
  om_value_id relu = om_build_node(&b, "Relu", "relu", 1, &flat);
  om_value_id late = om_build_node(&b, "Reshape", "late", 2, (om_value_id[]){relu, shape});
  om_value_id size = om_build_node(&b, "Shape", "size", 1, &x);
  om_build_output(&b, om_build_node(&b, "Relu", "y", 1, &late));
  om_build_output(&b, size);
  om_build_output(&b, four);
  return om_build_model(&b);
}

static om_status run(om_session *session, int64_t n, om_error *error) {
  float x[12] = {-1, 2, -3, 4, -5, 6, -7, 8, -9, 10, -11, 12};
  int64_t dims[2] = {3, n};
  om_named_tensor inputs[] = {{"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){n, 3}, x)},
                              {"shape", om_tensor_of(OM_DTYPE_I64, 1, (int64_t[]){2}, dims)}};
  om_named_tensor outputs[] = {{"y", {0}}, {"size", {0}}, {"four", {0}}};
  om_run_args args = {sizeof args, inputs, 2, outputs, 3};
  om_status st = om_session_run(session, &args, error);
  if (st == OM_OK) {
    assert_true(((float *)outputs[0].tensor.data)[1] == 2.0f);
    assert_int_equal(((int64_t *)outputs[1].tensor.data)[0], n);
    assert_int_equal(((int64_t *)outputs[2].tensor.data)[3], 2);
  }
  return st;
}

static om_status create(const om_model *model,
                        om_fault *fault,
                        om_allocator *allocator,
                        om_fake_device *device,
                        om_session **out_session,
                        om_error *error) {
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  *allocator = om_fault_allocator(fault);
  options.allocator = allocator;
  options.provider = device ? om_fake_provider() : NULL;
  options.provider_options = device;
  options.thread_count = 1;
  return om_session_create(model, &options, out_session, error);
}

static void sweep(const om_model *model, bool has_device) {
  size_t failures = 0;
  for (size_t fail_at = 0; fail_at < MOST_ALLOCATIONS; ++fail_at) {
    om_error error;
    om_allocator allocator;
    om_fault fault = {.fail_at = fail_at};
    om_fake_device device = {.takes = {"Relu"}};
    om_session *session = NULL;
    om_status st = create(model, &fault, &allocator, has_device ? &device : NULL, &session, &error);
    if (st == OM_OK) st = run(session, 2, &error);
    if (st == OM_OK) st = run(session, 4, &error);
    bool has_failed = om_fault_has_failed(&fault);
    if (has_failed) {
      assert_int_equal(st, OM_E_OUT_OF_MEMORY);
      assert_int_equal(error.status, OM_E_OUT_OF_MEMORY);
      assert_true(error.message[0] != '\0');
      failures += 1;
      /* Only the one allocation failed: a session that is there goes on. */
      if (session) assert_int_equal(run(session, 4, &error), OM_OK);
    } else {
      assert_int_equal(st, OM_OK);
    }
    om_session_destroy(session);
    assert_int_equal(om_fault_live_blocks(&fault), 0);
    assert_int_equal(fault.damaged_blocks, 0);
    assert_int_equal(device.open_count, device.close_count);
    assert_int_equal(device.plan_count, device.plan_end_count);
    if (!has_failed) break;
  }
  assert_true(failures > 20 && failures < MOST_ALLOCATIONS);
}

static void every_allocation_fails_once(void **state) {
  om_model *model = make_model();
  (void)state;
  sweep(model, false);
  om_model_destroy(model);
}

static void every_allocation_fails_once_with_a_device(void **state) {
  om_model *model = make_model();
  (void)state;
  sweep(model, true);
  om_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(every_allocation_fails_once_with_a_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
