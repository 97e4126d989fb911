/* "If", "Loop" and "Scan": bodies that capture, nest, carry and stack up values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_model_text.h"
#include "harness/om_test_case.h"
#include "onemodel/gpu.h"

static om_named_tensor floats(const char *name, int64_t count, float *data) {
  return (om_named_tensor){name, om_tensor_of(OM_DTYPE_F32, 1, &count, data)};
}

static om_named_tensor boolean(const char *name, uint8_t *data) {
  return (om_named_tensor){name, om_tensor_of(OM_DTYPE_BOOL, 0, NULL, data)};
}

static om_named_tensor integer(const char *name, int64_t *data) {
  return (om_named_tensor){name, om_tensor_of(OM_DTYPE_I64, 0, NULL, data)};
}

static void run(om_text_rig *rig,
                const om_named_tensor *inputs,
                size_t input_count,
                om_named_tensor *outputs,
                size_t output_count) {
  for (size_t i = 0; i < output_count; ++i) outputs[i].tensor = (om_tensor){0};
  if (om_text_rig_run(rig, inputs, input_count, outputs, output_count) != OM_OK) {
    fail_msg("%s", rig->error.message);
  }
}

static void check_floats(const om_tensor *got,
                         uint32_t rank,
                         const int64_t *dims,
                         const float *right) {
  assert_int_equal(got->dtype, OM_DTYPE_F32);
  assert_int_equal(got->rank, rank);
  for (uint32_t i = 0; i < rank; ++i) assert_int_equal(got->dims[i], dims[i]);
  size_t elems = om_tensor_elems(got);
  for (size_t i = 0; i < elems; ++i) {
    if (((const float *)got->data)[i] != right[i]) {
      fail_msg(
          "element %zu is %g, not %g", i, (double)((const float *)got->data)[i], (double)right[i]);
    }
  }
}

static const char branches[] =
    "(c: bool, x: f32[n]) -> y {"
    "  t = Relu(x);"
    "  y = If(c) then_branch={() -> a { a = Add(x, t); }} else_branch={() -> t {}};"
    "}";

static void branches_see_what_is_around(void **state) {
  static om_text_rig rig;
  float x[3] = {-1.0f, 2.0f, 3.0f};
  uint8_t c = 1;
  om_named_tensor output = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig, branches, 17, NULL);
  om_named_tensor inputs[] = {boolean("c", &c), floats("x", 3, x)};
  run(&rig, inputs, 2, &output, 1);
  check_floats(&output.tensor, 1, (int64_t[]){3}, (float[]){-1, 4, 6});
  c = 0;
  run(&rig, inputs, 2, &output, 1);
  check_floats(&output.tensor, 1, (int64_t[]){3}, (float[]){0, 2, 3});
  om_text_rig_close(&rig);
}

static void warm_runs_allocate_nothing(void **state) {
  static om_text_rig rig;
  float x[3] = {-1.0f, 2.0f, 3.0f};
  uint8_t c = 1;
  om_named_tensor output = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig, branches, 17, NULL);
  om_named_tensor inputs[] = {boolean("c", &c), floats("x", 3, x)};
  for (c = 0; c < 2; ++c) run(&rig, inputs, 2, &output, 1);
  uint64_t before = om_session_get_statistics(rig.session).host_allocations;
  for (c = 0; c < 2; ++c) run(&rig, inputs, 2, &output, 1);
  assert_int_equal(om_session_get_statistics(rig.session).host_allocations, before);
  om_text_rig_close(&rig);
}

/* s doubles and shrinks by what is captured; each turn leaves its state and the turn's number. */
static const char doubling[] =
    "(m: i64, x: f32[n], w: f32[n]) -> s, all, turns {"
    "  s, all, turns = Loop(m, , x) body={(i: i64, k: bool, a: f32[n]) -> k2, b, b2, i2 {"
    "    d = Add(a, a); b = Sub(d, w); b2 = Identity(b); k2 = Identity(k); i2 = Identity(i);"
    "  }};"
    "}";

static void loops_carry_and_stack(void **state) {
  static om_text_rig rig;
  float x[2] = {1.0f, 2.0f}, w[2] = {1.0f, 0.0f};
  int64_t m = 3;
  om_named_tensor outputs[] = {{.name = "s"}, {.name = "all"}, {.name = "turns"}};
  (void)state;
  om_text_rig_open(&rig, doubling, 17, NULL);
  om_named_tensor inputs[] = {integer("m", &m), floats("x", 2, x), floats("w", 2, w)};
  run(&rig, inputs, 3, outputs, 3);
  check_floats(&outputs[0].tensor, 1, (int64_t[]){2}, (float[]){1, 16});
  check_floats(&outputs[1].tensor, 2, (int64_t[]){3, 2}, (float[]){1, 4, 1, 8, 1, 16});
  assert_int_equal(outputs[2].tensor.dims[0], 3);
  assert_int_equal(((const int64_t *)outputs[2].tensor.data)[2], 2);
  uint64_t before = om_session_get_statistics(rig.session).host_allocations;
  run(&rig, inputs, 3, outputs, 3);
  assert_int_equal(om_session_get_statistics(rig.session).host_allocations, before);

  m = 0;
  run(&rig, inputs, 3, outputs, 3);
  check_floats(&outputs[0].tensor, 1, (int64_t[]){2}, (float[]){1, 2});
  assert_int_equal(outputs[1].tensor.dims[0], 0);
  om_text_rig_close(&rig);
}

/* A loop in a loop that reads both states and what is outside; the state grows. */
static void loops_nest_and_states_grow(void **state) {
  static const char text[] =
      "(m: i64, x: f32[n]) -> y {"
      "  y = Loop(m, , x) body={(i: i64, k: bool, a) -> k, b {"
      "    j = Add(i, i);"
      "    c = Loop(j, , x) body={(i2: i64, k2: bool, e) -> k2, f { f = Add(e, x); }};"
      "    b = Concat(a, c) axis=0;"
      "  }};"
      "}";
  static om_text_rig rig;
  float x[2] = {1.0f, 2.0f};
  int64_t m = 3;
  om_named_tensor output = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  om_named_tensor inputs[] = {integer("m", &m), floats("x", 2, x)};
  for (int i = 0; i < 2; ++i) {
    run(&rig, inputs, 2, &output, 1);
    check_floats(&output.tensor, 1, (int64_t[]){8}, (float[]){1, 2, 1, 2, 3, 6, 5, 10});
  }
  om_text_rig_close(&rig);
}

static void loops_end_by_their_condition(void **state) {
  static const char text[] =
      "(x: f32[1]) -> y {"
      "  one = Constant() value_float=1.0; end = Constant() value_float=5.5;"
      "  y = Loop(, , x) body={(i: i64, k: bool, a) -> k2, b {"
      "    b = Add(a, one); l = Less(b, end); k2 = Squeeze(l);"
      "  }};"
      "}";
  static om_text_rig rig;
  float x[1] = {1.0f};
  om_named_tensor output = {.name = "y"}, input = floats("x", 1, x);
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  run(&rig, &input, 1, &output, 1);
  check_floats(&output.tensor, 1, (int64_t[]){1}, (float[]){6});
  om_text_rig_close(&rig);
}

/* Strings of a turn are gone with it: stacks and states have copies. */
static void strings_outlive_their_turn(void **state) {
  static const char text[] =
      "(m: i64, x: str[2]) -> y, all {"
      "  y, all = Loop(m, , x) body={(i: i64, k: bool, a: str[2]) -> k, b, c {"
      "    r = Constant() value_ints=[1, 0]; b = Gather(a, r); c = Gather(a, i);"
      "  }};"
      "}";
  static om_text_rig rig;
  om_string x[2] = {{"left", 4}, {"r", 1}};
  int64_t m = 5;
  om_named_tensor outputs[] = {{.name = "y"}, {.name = "all"}};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  m = 2;
  om_named_tensor inputs[] = {integer("m", &m),
                              {"x", om_tensor_of(OM_DTYPE_STRING, 1, (int64_t[]){2}, x)}};
  run(&rig, inputs, 2, outputs, 2);
  const om_string *all = outputs[1].tensor.data;
  assert_int_equal(om_tensor_elems(&outputs[1].tensor), 2);
  assert_true(om_string_is(all[0], "left"));
  assert_true(om_string_is(all[1], "left"));
  assert_true(om_string_is(((const om_string *)outputs[0].tensor.data)[1], "r"));
  om_text_rig_close(&rig);
}

static const char sums[] =
    "(s: f32[2], x: f32[2,3]) -> t, y {"
    "  t, y = Scan(s, x) num_scan_inputs=1 scan_input_axes=[1] scan_output_axes=[-1]"
    "    scan_input_directions=[1] scan_output_directions=[1]"
    "    body={(a: f32[2], b: f32[2]) -> c, d { c = Add(a, b); d = Identity(c); }};"
    "}";

/* Elements of half a byte: three a turn, so that every other turn begins within a byte. */
static void four_bits_are_stacked_and_sliced(void **state) {
  static const char text[] =
      "(c: bool, x: i32[3,3]) -> y, z, w {"
      "  n = Constant() value_int=3; q = Cast(x) to=22;"
      "  a = Loop(n, c) body={(i: i64, k: bool) -> k, e {"
      "    r = Gather(x, i); e = Cast(r) to=22; }};"
      "  b = Scan(q) num_scan_inputs=1 body={(s) -> s {}};"
      "  d = Scan(q) num_scan_inputs=1 scan_input_axes=[1] scan_output_axes=[1]"
      "    scan_input_directions=[1] body={(s) -> s {}};"
      "  y = Cast(a) to=1; z = Cast(b) to=1; w = Cast(d) to=1;"
      "}";
  static om_text_rig rig;
  bool c = true;
  int32_t x[9] = {-8, 7, 1, 2, -3, 4, 5, -6, 0};
  const int64_t dims[] = {3, 3};
  om_named_tensor inputs[] = {{"c", om_tensor_of(OM_DTYPE_BOOL, 0, NULL, &c)},
                              {"x", om_tensor_of(OM_DTYPE_I32, 2, dims, x)}};
  om_named_tensor outputs[] = {{.name = "y"}, {.name = "z"}, {.name = "w"}};
  (void)state;
  om_text_rig_open(&rig, text, 21, NULL);
  for (int turn = 0; turn < 2; ++turn) {
    for (size_t i = 0; i < 3; ++i) outputs[i].tensor = (om_tensor){0};
    if (om_text_rig_run(&rig, inputs, 2, outputs, 3) != OM_OK) fail_msg("%s", rig.error.message);
    const float *y = outputs[0].tensor.data, *z = outputs[1].tensor.data;
    const float *w = outputs[2].tensor.data;
    for (size_t i = 0; i < 9; ++i) {
      assert_true(y[i] == (float)x[i] && z[i] == (float)x[i]);
      assert_true(w[i] == (float)x[i / 3 * 3 + 2 - i % 3]);
    }
  }
  om_text_rig_close(&rig);
}

static void scans_go_along_any_axis_and_backward(void **state) {
  static om_text_rig rig;
  float s[2] = {0, 10}, x[6] = {1, 2, 3, 4, 5, 6};
  om_named_tensor outputs[] = {{.name = "t"}, {.name = "y"}};
  (void)state;
  om_text_rig_open(&rig, sums, 17, NULL);
  om_named_tensor inputs[] = {floats("s", 2, s),
                              {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){2, 3}, x)}};
  run(&rig, inputs, 2, outputs, 2);
  check_floats(&outputs[0].tensor, 1, (int64_t[]){2}, (float[]){6, 25});
  check_floats(&outputs[1].tensor, 2, (int64_t[]){2, 3}, (float[]){6, 5, 3, 25, 21, 16});
  om_text_rig_close(&rig);
}

static void old_scans_have_batches_and_lengths(void **state) {
  static const char text[] =
      "(l: i64[2], s: f32[2], x: f32[2,3]) -> t, y {"
      "  t, y = Scan(l, s, x) num_scan_inputs=1"
      "    body={(a: f32, b: f32) -> c, d { c = Add(a, b); d = Identity(c); }};"
      "}";
  static om_text_rig rig;
  float s[2] = {0, 10}, x[6] = {1, 2, 3, 4, 5, 6};
  int64_t l[2] = {3, 2};
  om_named_tensor outputs[] = {{.name = "t"}, {.name = "y"}};
  (void)state;
  om_text_rig_open(&rig, text, 8, NULL);
  om_named_tensor inputs[] = {{"l", om_tensor_of(OM_DTYPE_I64, 1, (int64_t[]){2}, l)},
                              floats("s", 2, s),
                              {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){2, 3}, x)}};
  run(&rig, inputs, 3, outputs, 2);
  check_floats(&outputs[0].tensor, 1, (int64_t[]){2}, (float[]){6, 19});
  check_floats(&outputs[1].tensor, 2, (int64_t[]){2, 3}, (float[]){1, 3, 6, 14, 19, 0});
  om_text_rig_close(&rig);
}

/* The message names the way to the place. */
static void failures_name_the_body(void **state) {
  static const char text[] =
      "(m: i64, x: f32[n]) -> y {"
      "  y = Loop(m, , x) body={(i: i64, k: bool, a) -> k, b {"
      "    r = Gather(x, i); b = Add(a, r);"
      "  }};"
      "}";
  static om_text_rig rig;
  float x[2] = {1.0f, 2.0f};
  int64_t m = 3;
  om_named_tensor output = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  om_named_tensor inputs[] = {integer("m", &m), floats("x", 2, x)};
  assert_int_equal(om_text_rig_run(&rig, inputs, 2, &output, 1), OM_E_INVALID_INPUT);
  assert_string_equal(rig.error.message,
                      "Node 'Loop_0' (Loop): Turn 2: Node 'Gather_0' (Gather): Gather index 2 is "
                      "out of range for an extent of 2.");
  m = 2; /* the session is as good as before */
  run(&rig, inputs, 2, &output, 1);
  check_floats(&output.tensor, 1, (int64_t[]){2}, (float[]){4, 5});
  om_text_rig_close(&rig);
}

static void wrong_bodies_are_refused(void **state) {
  (void)state;
  om_text_rig_expect("(c: bool) -> y { y = If(c) then_branch={() -> c {}}; }", 17, "'else_branch'");
  om_text_rig_expect("(c: bool) -> y { y = If(c) then_branch=1 else_branch={() -> c {}}; }",
                     17,
                     "'then_branch' is no graph");
  om_text_rig_expect("(m: i64, x: f32) -> y { y = Loop(m, , x) body={(i, k) -> k, k {}}; }",
                     17,
                     "has 2 inputs, but gets 3");
  om_text_rig_expect("(m: i64, x: f32) -> y { y = Loop(m, , x) body={(i, k, a) -> k {}}; }",
                     17,
                     "has 1 outputs, but 2 are expected");
  om_text_rig_expect("(x: f32[2]) -> y { y = Scan(x) num_scan_inputs=2 body={(a) -> a {}}; }",
                     17,
                     "num_scan_inputs is 2");
  om_text_rig_expect(
      "(m: i64, x: f32) -> y { y = Loop(m, , x) body={(i, k, a) -> k, b { b = Nonsense(a); }}; }",
      17,
      "Node 'Loop_0' (Loop): Attribute 'body': The model uses unknown operators: Nonsense");
}

static void conditions_are_one_element(void **state) {
  static om_text_rig rig;
  float x[3] = {1, 2, 3};
  uint8_t c[2] = {1, 1};
  om_named_tensor output = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig,
                   "(c: bool[2], x: f32[n]) -> y {"
                   "  y = If(c) then_branch={() -> x {}} else_branch={() -> x {}};"
                   "}",
                   17,
                   NULL);
  om_named_tensor inputs[] = {{"c", om_tensor_of(OM_DTYPE_BOOL, 1, (int64_t[]){2}, c)},
                              floats("x", 3, x)};
  assert_int_equal(om_text_rig_run(&rig, inputs, 2, &output, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "condition is bool of shape [2]"));
  om_text_rig_close(&rig);
}

static const om_node_diagnostics *find_node(const om_diagnostics *d, const char *name) {
  for (size_t i = 0; i < d->node_count; ++i) {
    if (strcmp(d->nodes[i].name, name) == 0) return &d->nodes[i];
  }
  fail_msg("no node '%s'", name);
  return NULL;
}

/* The shapes decide the outer If, its branch's constant the inner one; what is captured and
 * constant (w) is found again. */
static const char deciding[] =
    "(x: f32[n], w: f32[m]) -> y {"
    "  two = Constant() value_ints=[2];"
    "  s = Shape(x); g = Equal(s, two); c = Squeeze(g);"
    "  y = If(c)"
    "    then_branch={() -> a {"
    "      o = Constant() value_ints=[1]; h = Greater(two, o); k = Squeeze(h);"
    "      a = If(k) then_branch={() -> b { b = Add(x, w); }} else_branch={() -> e { e = Sub(x, "
    "w); }};"
    "    }}"
    "    else_branch={() -> d { d = Mul(x, w); }};"
    "}";

static void shapes_decide(void **state) {
  static om_text_rig rig;
  float x[3] = {1, 2, 3}, w[3] = {10, 20, 30};
  om_named_tensor output = {.name = "y"};
  const om_diagnostics *diagnostics = NULL;
  (void)state;
  om_text_rig_open(&rig, deciding, 17, NULL);
  for (int i = 0; i < 2; ++i) {
    om_named_tensor two[] = {floats("x", 2, x), floats("w", 2, w)};
    om_named_tensor three[] = {floats("x", 3, x), floats("w", 3, w)};
    run(&rig, two, 2, &output, 1);
    check_floats(&output.tensor, 1, (int64_t[]){2}, (float[]){11, 22});
    run(&rig, three, 2, &output, 1);
    check_floats(&output.tensor, 1, (int64_t[]){3}, (float[]){10, 40, 90});
    assert_int_equal(om_session_diagnose(rig.session, two, 2, &diagnostics, &rig.error), OM_OK);
    const om_node_diagnostics *node = find_node(diagnostics, "If_4");
    assert_int_equal(node->place, OM_PLACE_FOLDED);
    assert_non_null(strstr(node->reason, "its then_branch stands in its place"));
    assert_int_equal(find_node(diagnostics, "If_4/If_3/Add_0")->place, OM_PLACE_CPU);
  }
  assert_int_equal(om_session_get_statistics(rig.session).plans_built, 2);
  om_text_rig_close(&rig);
}

static void nodes_of_bodies_are_listed(void **state) {
  static om_text_rig rig;
  float x[2] = {1.0f, 2.0f}, w[2] = {1.0f, 0.0f};
  int64_t m = 3;
  om_named_tensor output = {.name = "s"};
  const om_diagnostics *diagnostics = NULL;
  (void)state;
  om_text_rig_open(&rig, doubling, 17, NULL);
  om_named_tensor inputs[] = {integer("m", &m), floats("x", 2, x), floats("w", 2, w)};
  assert_int_equal(om_session_diagnose(rig.session, inputs, 3, &diagnostics, &rig.error), OM_OK);
  const om_node_diagnostics *node = find_node(diagnostics, "Sub_1");
  assert_non_null(strstr(node->reason, "has not run"));
  run(&rig, inputs, 3, &output, 1);
  assert_int_equal(om_session_diagnose(rig.session, inputs, 3, &diagnostics, &rig.error), OM_OK);
  node = find_node(diagnostics, "Sub_1");
  assert_string_equal(node->reason, "the session has no device");
  assert_string_equal(node->body, "body");
  assert_string_equal(diagnostics->nodes[node->outer].name, "Loop_0");
  assert_true(diagnostics->nodes[node->outer].outer == OM_NO_OUTER);
  om_text_rig_close(&rig);
}

/* With nothing left to decide the whole may have to run on the device. */
static void decided_branches_are_on_the_device(void **state) {
  static om_text_rig rig;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  float x[2] = {1, 2}, w[2] = {10, 20};
  om_named_tensor output = {.name = "y"};
  (void)state;
  gpu.backend = "null";
  options.mode = OM_MODE_EXACT;
  options.provider = om_gpu_provider();
  options.provider_options = &gpu;
  options.require_gpu = true;
  om_text_rig_open(&rig, deciding, 17, &options);
  om_named_tensor inputs[] = {floats("x", 2, x), floats("w", 2, w)};
  run(&rig, inputs, 2, &output, 1);
  om_text_rig_close(&rig);
}

/* Regions of bodies run on a device too, with the CPU's bits. */
static void bodies_run_on_a_device(void **state) {
  static om_text_rig rig, cpu;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  float x[2] = {1.0f, 2.0f}, w[2] = {1.0f, 0.0f};
  int64_t m = 3;
  om_named_tensor outputs[] = {{.name = "s"}, {.name = "all"}},
                  right[] = {{.name = "s"}, {.name = "all"}};
  (void)state;
  gpu.backend = "vulkan";
  if (!om_test_backend_is_there("vulkan")) gpu.backend = "null";
  options.mode = OM_MODE_EXACT;
  options.provider = om_gpu_provider();
  options.provider_options = &gpu;
  om_text_rig_open(&rig, doubling, 17, &options);
  om_text_rig_open(&cpu, doubling, 17, NULL);
  om_named_tensor inputs[] = {integer("m", &m), floats("x", 2, x), floats("w", 2, w)};
  run(&cpu, inputs, 3, right, 2);
  for (int i = 0; i < 2; ++i) {
    run(&rig, inputs, 3, outputs, 2);
    if (strcmp(gpu.backend, "null") == 0) continue;
    check_floats(&outputs[0].tensor, 1, (int64_t[]){2}, right[0].tensor.data);
    check_floats(&outputs[1].tensor, 2, (int64_t[]){3, 2}, right[1].tensor.data);
  }
  om_text_rig_close(&rig);
  om_text_rig_close(&cpu);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(branches_see_what_is_around),
      cmocka_unit_test(warm_runs_allocate_nothing),
      cmocka_unit_test(loops_carry_and_stack),
      cmocka_unit_test(loops_nest_and_states_grow),
      cmocka_unit_test(loops_end_by_their_condition),
      cmocka_unit_test(strings_outlive_their_turn),
      cmocka_unit_test(four_bits_are_stacked_and_sliced),
      cmocka_unit_test(scans_go_along_any_axis_and_backward),
      cmocka_unit_test(old_scans_have_batches_and_lengths),
      cmocka_unit_test(failures_name_the_body),
      cmocka_unit_test(wrong_bodies_are_refused),
      cmocka_unit_test(conditions_are_one_element),
      cmocka_unit_test(shapes_decide),
      cmocka_unit_test(nodes_of_bodies_are_listed),
      cmocka_unit_test(decided_branches_are_on_the_device),
      cmocka_unit_test(bodies_run_on_a_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
