/* Functions of a model's own: in place of their calls, with the caller's attributes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_model_text.h"

static void check(const char *text, float x, const float *right, size_t count) {
  static om_text_rig rig;
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 0, NULL, &x)};
  om_named_tensor output = {.name = "y"};
  om_text_rig_open(&rig, text, 17, NULL);
  if (om_text_rig_run(&rig, &input, 1, &output, 1) != OM_OK) fail_msg("%s", rig.error.message);
  assert_int_equal(om_tensor_elems(&output.tensor), count);
  for (size_t i = 0; i < count; ++i) {
    assert_true(((const float *)output.tensor.data)[i] == right[i]);
  }
  om_text_rig_close(&rig);
}

static void functions_call_functions(void **state) {
  (void)state;
  check(
      "(x: f32) -> y { t = own:Twice(x); y = own:Four(t); }"
      "function own:Four (a) -> c { b = own:Twice(a); c = own:Twice(b); }"
      "function own:Twice (a) -> b { b = Add(a, a); }",
      1.5f,
      (float[]){12.0f},
      1);
}

static void outputs_may_be_inputs(void **state) {
  (void)state;
  check(
      "(x: f32) -> y { a, b = own:Swap(x, ); y = Add(a, b); }"
      "function own:Swap (a, b) -> a, c { c = Neg(a); }",
      1.5f,
      (float[]){0.0f},
      1);
}

static void attributes_are_the_callers(void **state) {
  (void)state;
  check(
      "(x: f32) -> y { a = own:Times(x) by=3.0; b = own:Times(x) by=4.0; y = Add(a, b); }"
      "function own:Times (a) -> b { k = Constant() value_float=$by; b = Mul(a, k); }",
      2.0f,
      (float[]){14.0f},
      1);
  /* without one the operator's own default holds: alpha is 1 */
  check(
      "(x: f32) -> y { y = own:Bend(x); }"
      "function own:Bend (a) -> b { b = Elu(a) alpha=$alpha; }",
      3.0f,
      (float[]){3.0f},
      1);
}

/* A body in a function: for each call with that call's attribute and captures. */
static void bodies_refer_to_attributes(void **state) {
  (void)state;
  check(
      "(x: f32) -> y { a = own:Grow(x) by=3.0 turns=2; b = own:Grow(a) by=1.0 turns=1; "
      "  y = Identity(b); }"
      "function own:Grow (a) -> c {"
      "  m = Constant() value_int=$turns;"
      "  c = Loop(m, , a) body={(i, k, s) -> k, t {"
      "    by = Constant() value_float=$by; d = Add(s, by); t = own:Half(d);"
      "  }};"
      "}"
      "function own:Half (a) -> b { k = Constant() value_float=0.5; b = Mul(a, k); }",
      1.0f,
      (float[]){1.75f}, /* ((1 + 3) / 2 + 3) / 2 = 2.5, (2.5 + 1) / 2 */
      1);
}

/* An operand that the caller leaves out is left out inside, in bodies too. */
static void absent_operands_stay_absent(void **state) {
  (void)state;
  check(
      "(x: f32) -> y { y = own:Limit(x); }"
      "function own:Limit (a, low) -> c {"
      "  t = Constant() value_int=1; one = Constant() value_float=1.0;"
      "  c = Loop(t, , a) body={(i, k, s) -> k, r { r = Clip(s, low, one); }};"
      "}",
      3.0f,
      (float[]){1.0f},
      1);
}

static void calls_stay_one_node_in_the_description(void **state) {
  static om_text_rig rig;
  (void)state;
  om_text_rig_open(&rig,
                   "(x: f32) -> y { t = own:Twice(x); y = Neg(t); }"
                   "function own:Twice (a) -> b { b = Add(a, a); }",
                   17,
                   NULL);
  const om_model_info *info = om_model_get_info(rig.model);
  const om_diagnostics *diagnostics = NULL;
  assert_int_equal(info->node_count, 2);
  assert_string_equal(om_model_get_node(rig.model, 0).op_type, "Twice");
  assert_int_equal(om_session_diagnose(rig.session, NULL, 0, &diagnostics, &rig.error), OM_OK);
  assert_int_equal(diagnostics->node_count, 2);
  assert_string_equal(diagnostics->nodes[0].op_type, "Add");
  assert_string_equal(diagnostics->nodes[0].name, "Twice_0/Add_0");
  om_text_rig_close(&rig);
}

static void wrong_functions_are_told(void **state) {
  (void)state;
  om_text_rig_expect(
      "(x: f32) -> y { y = own:Again(x); }"
      "function own:Again (a) -> b { c = Neg(a); b = own:Again(c); }",
      17,
      "does 'Again' call itself");
  om_text_rig_expect(
      "(x: f32) -> y { y = own:One(x, x); }"
      "function own:One (a) -> b { b = Neg(a); }",
      17,
      "has 2 inputs and 1 outputs, but its function has 1 and 1");
  om_text_rig_expect(
      "(x: f32) -> y { y = own:One(x); }"
      "function own:One (a) -> b { b = Neg(c); }",
      17,
      "Function 'One': Node 'Neg_0' (Neg): It reads 'c'");
  om_text_rig_expect("(x: f32) -> y { y = Elu(x) alpha=$alpha; }", 17, "outside of one");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_call_functions),
      cmocka_unit_test(outputs_may_be_inputs),
      cmocka_unit_test(attributes_are_the_callers),
      cmocka_unit_test(bodies_refer_to_attributes),
      cmocka_unit_test(absent_operands_stay_absent),
      cmocka_unit_test(calls_stay_one_node_in_the_description),
      cmocka_unit_test(wrong_functions_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
