/* Gelu from its parts, in the forms that exporters write; without the rewrite: exact mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/om_float16.h"
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
  om_dtype dtype; /* float32 or float16 */
  int names, number_count;
} maker;

static const char *const node_names[] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};

static om_value_id binary(maker *m, const char *type, om_value_id a, om_value_id b) {
  return om_build_node(&m->b, type, node_names[m->names++], 2, (om_value_id[]){a, b});
}

static om_value_id unary(maker *m, const char *type, om_value_id a) {
  return om_build_node(&m->b, type, node_names[m->names++], 1, &a);
}

static om_value_id number(maker *m, const char *name, const float *value) {
  static uint16_t halves[8]; /* the model borrows them */
  uint16_t *half = &halves[m->number_count++];
  const void *data = m->dtype == OM_DTYPE_F16 ? (const void *)half : value;
  *half = om_f16_from_f32(*value);
  return om_build_constant(&m->b, name, m->dtype, 0, NULL, data);
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

static om_model *make_model(form f, om_dtype dtype) {
  static const float one_number = 1.0f, half_number = 0.5f, other_number = 0.6f;
  maker m = {.dtype = dtype};
  om_build_begin(&m.b, 17);
  om_value_id x = om_build_input(&m.b, "x", dtype, 1, (int64_t[]){ELEMS}, NULL);
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

static void run(om_session *session, om_dtype dtype, float out[ELEMS]) {
  static const int64_t dims[] = {ELEMS};
  om_error error;
  float x[ELEMS];
  uint16_t halves[ELEMS];
  for (int i = 0; i < ELEMS; ++i) {
    x[i] = ((float)i - 30.5f) / 8.0f;
    halves[i] = om_f16_from_f32(x[i]);
  }
  void *data = dtype == OM_DTYPE_F16 ? (void *)halves : x;
  om_named_tensor input = {"x", om_tensor_of(dtype, 1, dims, data)};
  om_named_tensor output = {"y", {0}};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  assert_int_equal(om_tensor_elems(&output.tensor), ELEMS);
  for (int i = 0; i < ELEMS; ++i) {
    out[i] = dtype == OM_DTYPE_F16 ? om_f16_to_f32(((const uint16_t *)output.tensor.data)[i])
                                   : ((const float *)output.tensor.data)[i];
  }
}

static void check_form(form f, om_dtype dtype, float error) {
  float merged[ELEMS], parts[ELEMS];
  om_model *model = make_model(f, dtype);
  om_session *fast = make_session(model, OM_MODE_FAST);
  om_session *exact = make_session(model, OM_MODE_EXACT);
  assert_string_equal(type_of_result(fast), f < OTHER_FACTOR ? "Gelu" : "Mul");
  assert_string_equal(type_of_result(exact), "Mul");
  run(fast, dtype, merged);
  run(exact, dtype, parts);
  for (int i = 0; i < ELEMS; ++i) assert_float_equal(merged[i], parts[i], error);
  om_session_destroy(fast);
  om_session_destroy(exact);
  om_model_destroy(model);
}

static void makes_one_gelu_of_its_parts(void **state) {
  (void)state;
  for (int f = 0; f < FORM_COUNT; ++f) check_form((form)f, OM_DTYPE_F32, 3e-6f);
}

/* Its constants have eleven bits, and each of its parts rounds. */
static void makes_one_gelu_of_halves(void **state) {
  (void)state;
  for (int f = 0; f < FORM_COUNT; ++f) check_form((form)f, OM_DTYPE_F16, 8e-3f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(makes_one_gelu_of_its_parts),
                                     cmocka_unit_test(makes_one_gelu_of_halves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
