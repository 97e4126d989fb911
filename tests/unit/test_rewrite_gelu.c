/* Gelu from its parts, in the forms that exporters write; without the rewrite: exact mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_graph_builder.h"
#include "rewrite/om_rewrite.h"

enum { ELEMS = 64 };

typedef enum form {
  ERF_TORCH,       /* (x * (erf(x / sqrt 2) + 1)) * 0.5 */
  ERF_HALF_FIRST,  /* (0.5 * x) * (1 + erf(x * sqrt 0.5)) */
  ERF_HALF_INSIDE, /* x * (0.5 * (1 + erf(x / sqrt 2))) */
  TANH_POW,        /* (0.5 * x) * (1 + tanh(c * (x + 0.044715 * x^3))) */
  TANH_MUL,        /* the same, the cube as x * (x * x) */
  OTHER_FACTOR,    /* 0.6 in place of 0.5: no Gelu */
  OTHER_X,         /* of two values: no Gelu */
  SQUARE,          /* tanh, with x^2: no Gelu */
  FORM_COUNT,
} form;

typedef struct maker {
  om_graph_builder b;
  int names;
} maker;

static const char *const node_names[] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};

static om_value_id binary(maker *m, const char *type, om_value_id a, om_value_id b) {
  return om_build_node(&m->b, type, node_names[m->names++], 2, (om_value_id[]){a, b});
}

static om_value_id unary(maker *m, const char *type, om_value_id a) {
  return om_build_node(&m->b, type, node_names[m->names++], 1, &a);
}

static om_value_id number(maker *m, const char *name, const float *value) {
  return om_build_constant(&m->b, name, OM_DTYPE_F32, 0, NULL, value);
}

static om_value_id cube(maker *m, form f, om_value_id x) {
  static const float two = 2.0f, three = 3.0f;
  if (f == TANH_MUL) return binary(m, "Mul", x, binary(m, "Mul", x, x));
  return binary(m, "Pow", x, number(m, "exponent", f == SQUARE ? &two : &three));
}

static om_value_id erf_gate(maker *m, form f, om_value_id x, om_value_id one) {
  static const float root = 1.41421356f, inverse = 0.70710678f;
  om_value_id c = number(m, "root", f == ERF_HALF_FIRST ? &inverse : &root);
  om_value_id e = unary(m, "Erf", binary(m, f == ERF_HALF_FIRST ? "Mul" : "Div", x, c));
  return f == ERF_HALF_FIRST ? binary(m, "Add", one, e) : binary(m, "Add", e, one);
}

static om_value_id tanh_gate(maker *m, form f, om_value_id x, om_value_id one) {
  static const float c = 0.79788456f, d = 0.044715f;
  om_value_id inner = binary(m, "Mul", number(m, "d", &d), cube(m, f, x));
  om_value_id sum = binary(m, "Add", x, inner);
  return binary(m, "Add", one, unary(m, "Tanh", binary(m, "Mul", sum, number(m, "c", &c))));
}

static om_model *make_model(form f) {
  static const float one_number = 1.0f, half_number = 0.5f, other_number = 0.6f;
  maker m = {.names = 0};
  om_build_begin(&m.b, 17);
  om_value_id x = om_build_input(&m.b, "x", OM_DTYPE_F32, 1, (int64_t[]){ELEMS}, NULL);
  om_value_id other = f == OTHER_X ? om_build_node(&m.b, "Neg", "negative", 1, &x) : x;
  om_value_id one = number(&m, "one", &one_number);
  om_value_id half = number(&m, "half", f == OTHER_FACTOR ? &other_number : &half_number);
  const bool is_tanh = f == TANH_POW || f == TANH_MUL || f == SQUARE;
  om_value_id gate = is_tanh ? tanh_gate(&m, f, x, one) : erf_gate(&m, f, x, one);
  om_value_id left, right;
  if (f == ERF_HALF_INSIDE) {
    left = other;
    right = binary(&m, "Mul", half, gate);
  } else if (f == ERF_TORCH) {
    left = binary(&m, "Mul", other, gate);
    right = half;
  } else {
    left = binary(&m, "Mul", half, other);
    right = gate;
  }
  om_build_output(&m.b, om_build_node(&m.b, "Mul", "y", 2, (om_value_id[]){left, right}));
  return om_build_model(&m.b);
}

static om_session *make_session(om_model *model, om_mode mode) {
  om_error error;
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = mode;
  if (om_session_create(model, &options, &session, &error) != OM_OK) fail_msg("%s", error.message);
  return session;
}

static const char *type_of_result(om_session *session) {
  om_error error;
  const om_diagnostics *d = NULL;
  assert_int_equal(om_session_diagnose(session, NULL, 0, &d, &error), OM_OK);
  for (size_t i = 0; i < d->node_count; ++i) {
    if (strcmp(d->nodes[i].name, "y") == 0) return d->nodes[i].op_type;
  }
  fail_msg("the diagnostics lack y");
  return NULL;
}

static void run(om_session *session, float out[ELEMS]) {
  static const int64_t dims[] = {ELEMS};
  om_error error;
  float x[ELEMS];
  for (int i = 0; i < ELEMS; ++i) x[i] = ((float)i - 30.5f) / 8.0f;
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, dims, x)};
  om_named_tensor output = {"y", {0}};
  om_run_args args = {sizeof args, &input, 1, &output, 1};
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  assert_int_equal(om_tensor_elems(&output.tensor), ELEMS);
  memcpy(out, output.tensor.data, sizeof x);
}

static void makes_one_gelu_of_its_parts(void **state) {
  float merged[ELEMS], parts[ELEMS];
  (void)state;
  for (int f = 0; f < FORM_COUNT; ++f) {
    om_model *model = make_model((form)f);
    om_session *fast = make_session(model, OM_MODE_FAST);
    om_session *exact = make_session(model, OM_MODE_EXACT);
    assert_string_equal(type_of_result(fast), f < OTHER_FACTOR ? "Gelu" : "Mul");
    assert_string_equal(type_of_result(exact), "Mul");
    run(fast, merged);
    run(exact, parts);
    for (int i = 0; i < ELEMS; ++i) assert_float_equal(merged[i], parts[i], 3e-6f);
    om_session_destroy(fast);
    om_session_destroy(exact);
    om_model_destroy(model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(makes_one_gelu_of_its_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
