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
#include "harness/om_model_text.h"
#include "onemodel/gpu.h"

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

typedef enum executor { CPU, FAKE_DEVICE, NULL_DEVICE } executor;

static om_status create(const om_model *model,
                        const om_allocator *allocator,
                        executor where,
                        om_fake_device *fake,
                        om_session **out_session,
                        om_error *error) {
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  gpu.backend = "null";
  options.allocator = allocator;
  options.thread_count = 1;
  if (where == FAKE_DEVICE) {
    options.provider = om_fake_provider();
    options.provider_options = fake;
  } else if (where == NULL_DEVICE) {
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
  }
  return om_session_create(model, &options, out_session, error);
}

/* The null device computes nothing, so only the status is looked at there. */
static om_status run(om_session *session, int64_t n, bool has_values, om_error *error) {
  float x[12] = {-1, 2, -3, 4, -5, 6, -7, 8, -9, 10, -11, 12};
  int64_t dims[2] = {3, n};
  om_named_tensor inputs[] = {{"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){n, 3}, x)},
                              {"shape", om_tensor_of(OM_DTYPE_I64, 1, (int64_t[]){2}, dims)}};
  om_named_tensor outputs[] = {{"y", {0}}, {"size", {0}}, {"four", {0}}};
  om_run_args args = {sizeof args, inputs, 2, outputs, 3, NULL};
  om_status st = om_session_run(session, &args, error);
  if (st == OM_OK && has_values) {
    assert_true(((float *)outputs[0].tensor.data)[1] == 2.0f);
    assert_int_equal(((int64_t *)outputs[1].tensor.data)[0], n);
    assert_int_equal(((int64_t *)outputs[2].tensor.data)[3], 2);
  }
  return st;
}

/* One life of a session whose allocation `fail_at` fails; false: it has no more allocations. */
static bool live_once(const om_model *model, executor where, size_t fail_at) {
  om_error error;
  om_fault fault = {.fail_at = fail_at};
  om_allocator allocator = om_fault_allocator(&fault);
  om_fake_device fake = {.takes = {"Relu"}};
  om_session *session = NULL;
  void *lent[2] = {NULL};
  bool has_values = where != NULL_DEVICE;
  om_status st = create(model, &allocator, where, &fake, &session, &error);
  if (st == OM_OK) st = om_session_lend_memory(session, 1000, &lent[0], &error);
  if (st == OM_OK) st = run(session, 2, has_values, &error);
  if (st == OM_OK) st = om_session_lend_memory(session, 1000, &lent[1], &error);
  om_session_return_memory(session, lent[0]);
  if (st == OM_OK) st = run(session, 4, has_values, &error);
  bool has_failed = om_fault_has_failed(&fault);
  assert_int_equal(st, has_failed ? OM_E_OUT_OF_MEMORY : OM_OK);
  if (has_failed) {
    assert_int_equal(error.status, OM_E_OUT_OF_MEMORY);
    assert_true(error.message[0] != '\0');
    /* Only the one allocation failed: a session that is there goes on. */
    if (session) assert_int_equal(run(session, 4, has_values, &error), OM_OK);
  }
  om_session_destroy(session);
  assert_int_equal(om_fault_live_blocks(&fault), 0);
  assert_int_equal(fault.damaged_blocks, 0);
  assert_int_equal(fake.open_count, fake.close_count);
  assert_int_equal(fake.plan_count, fake.plan_end_count);
  return has_failed;
}

static void sweep(executor where) {
  om_model *model = make_model();
  size_t fail_at = 0;
  while (fail_at < MOST_ALLOCATIONS && live_once(model, where, fail_at)) ++fail_at;
  assert_true(fail_at > 20 && fail_at < MOST_ALLOCATIONS);
  om_model_destroy(model);
}

static void every_allocation_fails_once_on_the_cpu(void **state) {
  (void)state;
  sweep(CPU);
}

static void every_allocation_fails_once_with_a_provider(void **state) {
  (void)state;
  sweep(FAKE_DEVICE);
}

static void every_allocation_fails_once_in_the_gpu_package(void **state) {
  (void)state;
  sweep(NULL_DEVICE);
}

/* Bodies in bodies, an If that shapes decide, a function, sequences that grow, and text. */
static const char bodies[] =
    "(m: i64, x: f32[n]) -> y, t {"
    "  z = Constant() value_int=0; two = Constant() value_ints=[2]; e = SequenceEmpty();"
    "  r = Shape(x); g = Equal(r, two); c = Squeeze(g);"
    "  w = If(c) then_branch={() -> a { a = own:Twice(x); }} else_branch={() -> x {}};"
    "  s = Loop(m, , e) body={(i: i64, k: bool, q: seq f32[?]) -> k, p: seq f32[?] {"
    "    l = Equal(i, z);"
    "    v = If(l) then_branch={() -> b { b = Neg(w); }} else_branch={() -> w {}};"
    "    p = SequenceInsert(q, v);"
    "  }};"
    "  y = ConcatFromSequence(s) axis=0; t = Cast(y) to=8;"
    "}"
    "function own:Twice (a) -> b { b = Add(a, a); }";

static bool live_with_bodies(size_t fail_at) {
  static om_message bytes;
  static om_error error;
  om_fault fault = {.fail_at = fail_at};
  om_allocator allocator = om_fault_allocator(&fault);
  om_model_options model_options = OM_MODEL_OPTIONS_INIT;
  om_model *model = NULL;
  om_session *session = NULL;
  float x[3] = {1, 2, 3};
  int64_t m = 3;
  om_named_tensor outputs[] = {{"y", {0}}, {"t", {0}}};
  model_options.allocator = &allocator;
  if (bytes.count == 0) bytes = om_model_text(bodies, 17);
  om_status st = om_model_load_memory(bytes.bytes, bytes.count, &model_options, &model, &error);
  if (st == OM_OK) st = create(model, &allocator, CPU, NULL, &session, &error);
  for (int64_t n = 2; n <= 3 && st == OM_OK; ++n) {
    om_named_tensor inputs[] = {{"m", om_tensor_of(OM_DTYPE_I64, 0, NULL, &m)},
                                {"x", om_tensor_of(OM_DTYPE_F32, 1, &n, x)}};
    om_run_args args = {sizeof args, inputs, 2, outputs, 2, NULL};
    st = om_session_run(session, &args, &error);
    if (st == OM_OK) {
      assert_int_equal(om_tensor_elems(&outputs[0].tensor), 3 * n);
      assert_true(((float *)outputs[0].tensor.data)[n] == (n == 2 ? 2.0f : 1.0f));
    }
    for (size_t i = 0; i < 2; ++i) outputs[i].tensor = (om_tensor){0};
  }
  if (st != OM_OK) assert_int_equal(st, OM_E_OUT_OF_MEMORY);
  om_session_destroy(session);
  om_model_destroy(model);
  assert_int_equal(fault.live_blocks, 0);
  return st != OM_OK;
}

static void every_allocation_fails_once_with_bodies(void **state) {
  size_t fail_at = 0;
  (void)state;
  while (live_with_bodies(fail_at)) {
    if (++fail_at > 4 * MOST_ALLOCATIONS) fail_msg("there is no end of allocations");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_allocation_fails_once_on_the_cpu),
      cmocka_unit_test(every_allocation_fails_once_with_a_provider),
      cmocka_unit_test(every_allocation_fails_once_in_the_gpu_package),
      cmocka_unit_test(every_allocation_fails_once_with_bodies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
