/* Runs that do not wait: turns, results, errors; and where nothing may wait, as in a browser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/om_fake_provider.h"
#include "harness/om_graph_builder.h"

enum { ROWS = 3, COLUMNS = 5, ELEMS = ROWS * COLUMNS };

typedef struct fixture {
  om_model *model;
  om_fake_device device; /* takes Relu: a region between CPU steps, whose end takes four polls */
  om_session *session;
  om_error error;
} fixture;

/* y = relu(x + x) + x, and z = relu(y). */
static om_model *make_model(void) {
  static const char *const symbols[] = {"N", NULL};
  om_graph_builder b;
  om_build_begin(&b, 14);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 2, (int64_t[]){-1, COLUMNS}, symbols);
  om_value_id sum = om_build_node(&b, "Add", "sum", 2, (om_value_id[]){x, x});
  om_value_id relu = om_build_node(&b, "Relu", "relu", 1, &sum);
  om_value_id y = om_build_node(&b, "Add", "y", 2, (om_value_id[]){relu, x});
  om_build_output(&b, y);
  om_build_output(&b, om_build_node(&b, "Relu", "z", 1, &y));
  return om_build_model(&b);
}

static int setup(void **state) {
  static fixture f;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  f = (fixture){.device = {.takes = {"Relu"}, .polls = 4}};
  f.model = make_model();
  options.provider = om_fake_provider();
  options.provider_options = &f.device;
  assert_int_equal(om_session_create(f.model, &options, &f.session, &f.error), OM_OK);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  om_session_destroy(f->session);
  om_model_destroy(f->model);
  return 0;
}

typedef struct call { /* what a run gets and gives */
  float x[ELEMS], y[ELEMS], z[ELEMS];
  om_named_tensor input;
  om_named_tensor outputs[2];
  om_run *run;
} call;

static om_run_args prepare(call *c, float first) {
  for (size_t i = 0; i < ELEMS; ++i) c->x[i] = first - (float)i;
  c->input =
      (om_named_tensor){"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){ROWS, COLUMNS}, c->x)};
  c->outputs[0] = (om_named_tensor){"y", {.data = c->y, .data_bytes = sizeof c->y}};
  c->outputs[1] = (om_named_tensor){"z", {.data = c->z, .data_bytes = sizeof c->z}};
  return (om_run_args){sizeof(om_run_args), &c->input, 1, c->outputs, 2, NULL};
}

static void begin(fixture *f, call *c, float first) {
  om_run_args args = prepare(c, first);
  assert_int_equal(om_session_run_begin(f->session, &args, &c->run, &f->error), OM_OK);
}

static bool poll(fixture *f, const call *c) {
  bool is_done = false;
  assert_int_equal(om_run_poll(c->run, &is_done, &f->error), OM_OK);
  return is_done;
}

static void check(const call *c) {
  for (size_t i = 0; i < ELEMS; ++i) {
    float doubled = c->x[i] + c->x[i];
    float y = (doubled > 0.0f ? doubled : 0.0f) + c->x[i];
    assert_true(c->y[i] == y);
    assert_true(c->z[i] == (y > 0.0f ? y : 0.0f));
  }
  assert_int_equal(c->outputs[1].tensor.rank, 2);
  assert_int_equal(c->outputs[1].tensor.dims[0], ROWS);
}

static void goes_on_when_polled(void **state) {
  fixture *f = *state;
  call c;
  int polls = 1;
  begin(f, &c, 7.0f);
  while (!poll(f, &c)) polls += 1;
  assert_int_equal(polls, 2 * (f->device.polls - 1)); /* begin asks once; two regions */
  assert_int_equal(om_run_finish(c.run, &f->error), OM_OK);
  check(&c);
}

static void finish_waits(void **state) {
  fixture *f = *state;
  call c;
  begin(f, &c, 3.0f);
  assert_int_equal(om_run_finish(c.run, &f->error), OM_OK);
  check(&c);
}

static void takes_turns(void **state) {
  fixture *f = *state;
  call a, b, c;
  begin(f, &a, 1.0f);
  begin(f, &b, 2.0f);
  begin(f, &c, 3.0f);
  for (int i = 0; i < 20; ++i) assert_false(poll(f, &b)); /* not its turn */
  while (!poll(f, &a)) continue;
  assert_false(poll(f, &c));
  assert_int_equal(om_run_finish(c.run, &f->error), OM_OK); /* ends b as well */
  assert_true(poll(f, &b));
  assert_int_equal(om_run_finish(b.run, &f->error), OM_OK);
  assert_int_equal(om_run_finish(a.run, &f->error), OM_OK);
  check(&a);
  check(&b);
  check(&c);
  assert_int_equal(om_session_get_statistics(f->session).run_count, 3);
}

static void other_calls_end_what_is_under_way(void **state) {
  fixture *f = *state;
  call a, b;
  const om_diagnostics *diagnostics = NULL;
  begin(f, &a, 1.0f);
  om_run_args args = prepare(&b, 2.0f);
  assert_int_equal(om_session_run(f->session, &args, &f->error), OM_OK);
  assert_true(poll(f, &a));
  assert_int_equal(om_run_finish(a.run, &f->error), OM_OK);
  check(&a);
  check(&b);
  begin(f, &a, 5.0f);
  assert_int_equal(om_session_diagnose(f->session, &b.input, 1, &diagnostics, &f->error), OM_OK);
  assert_true(poll(f, &a));
  assert_int_equal(om_run_finish(a.run, &f->error), OM_OK);
  check(&a);
}

static void a_failure_is_its_run_s_own(void **state) {
  fixture *f = *state;
  call good, bad;
  om_run_args args = prepare(&bad, 1.0f);
  begin(f, &good, 1.0f);
  bad.input.name = "q";
  assert_int_equal(om_session_run_begin(f->session, &args, &bad.run, &f->error), OM_OK);
  while (!poll(f, &good)) continue;
  assert_true(poll(f, &bad));
  assert_int_equal(om_run_finish(good.run, &f->error), OM_OK);
  check(&good);
  assert_int_equal(om_run_finish(bad.run, &f->error), OM_E_INVALID_INPUT);
  assert_non_null(strstr(f->error.message, "'q'"));
  f->device.run_status = OM_E_DEVICE_LOST;
  begin(f, &good, 1.0f);
  assert_int_equal(om_run_finish(good.run, &f->error), OM_E_DEVICE_LOST);
  f->device.run_status = OM_OK;
  begin(f, &good, 1.0f);
  assert_int_equal(om_run_finish(good.run, &f->error), OM_OK);
}

static uint64_t count_allocations(fixture *f) {
  return om_session_get_statistics(f->session).host_allocations;
}

/* Beside what the fake device allocates for itself in any run. */
static void allocates_nothing_on_the_second_run(void **state) {
  fixture *f = *state;
  call c;
  begin(f, &c, 1.0f);
  assert_int_equal(om_run_finish(c.run, &f->error), OM_OK);
  uint64_t first = count_allocations(f);
  om_run_args args = prepare(&c, 2.0f);
  assert_int_equal(om_session_run(f->session, &args, &f->error), OM_OK);
  uint64_t blocking = count_allocations(f);
  begin(f, &c, 3.0f);
  assert_int_equal(om_run_finish(c.run, &f->error), OM_OK);
  assert_int_equal(count_allocations(f) - blocking, blocking - first);
}

static void a_browser_never_waits(void **state) {
  fixture *f = *state;
  call a, b;
  f->device.never_waits = true;
  om_run_args args = prepare(&b, 2.0f);
  assert_int_equal(om_session_run(f->session, &args, &f->error), OM_E_UNSUPPORTED);
  assert_non_null(strstr(f->error.message, "om_session_run_begin"));
  begin(f, &a, 1.0f);
  assert_int_equal(om_run_finish(a.run, &f->error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_run(f->session, &args, &f->error), OM_E_UNSUPPORTED);
  assert_non_null(strstr(f->error.message, "under way"));
  assert_int_equal(om_session_prepare(f->session, &a.input, 1, &f->error), OM_E_UNSUPPORTED);
  while (!poll(f, &a)) continue;
  assert_int_equal(om_run_finish(a.run, &f->error), OM_OK);
  check(&a);
  assert_int_equal(om_session_prepare(f->session, &a.input, 1, &f->error), OM_OK);
}

static void refuses_null(void **state) {
  fixture *f = *state;
  call c;
  bool is_done = true;
  om_run_args args = prepare(&c, 2.0f);
  assert_int_equal(om_session_run_begin(NULL, &args, &c.run, &f->error), OM_E_INVALID_ARGUMENT);
  assert_null(c.run);
  assert_int_equal(om_session_run_begin(f->session, &args, NULL, NULL), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_run_begin(f->session, NULL, &c.run, NULL), OM_E_INVALID_ARGUMENT);
  args.struct_bytes = 3;
  assert_int_equal(om_session_run_begin(f->session, &args, &c.run, NULL), OM_E_INVALID_ARGUMENT);
  assert_null(c.run);
  assert_int_equal(om_run_poll(NULL, &is_done, &f->error), OM_E_INVALID_ARGUMENT);
  assert_false(is_done);
  assert_int_equal(om_run_finish(NULL, &f->error), OM_E_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(goes_on_when_polled, setup, teardown),
      cmocka_unit_test_setup_teardown(finish_waits, setup, teardown),
      cmocka_unit_test_setup_teardown(takes_turns, setup, teardown),
      cmocka_unit_test_setup_teardown(other_calls_end_what_is_under_way, setup, teardown),
      cmocka_unit_test_setup_teardown(a_failure_is_its_run_s_own, setup, teardown),
      cmocka_unit_test_setup_teardown(allocates_nothing_on_the_second_run, setup, teardown),
      cmocka_unit_test_setup_teardown(a_browser_never_waits, setup, teardown),
      cmocka_unit_test_setup_teardown(refuses_null, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
