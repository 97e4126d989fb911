/* The rewrite "common": which nodes are left out, and that results stay, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_model_text.h"

enum { ELEMS = 12 };

typedef struct graph_case {
  const char *name;
  const char *shared; /* x, [3, 4], to y; y2 where there is a second output */
  const char *single; /* the same with no node twice; NULL: its bits are not compared */
  size_t left_out;
} graph_case;

static void run(const char *text, om_mode mode, float *y, size_t *out_left_out) {
  float x[ELEMS];
  om_text_rig rig;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  const om_diagnostics *d = NULL;
  options.mode = mode;
  om_text_rig_open(&rig, text, 17, &options);
  for (size_t i = 0; i < ELEMS; ++i) x[i] = (float)i * 0.375f - 2.0f;
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){3, 4}, x)};
  om_named_tensor output = {"y", {0}};
  const om_status st = om_text_rig_run(&rig, &input, 1, &output, 1);
  if (st != OM_OK) fail_msg("%s", rig.error.message);
  assert_int_equal(om_tensor_elems(&output.tensor), ELEMS);
  memcpy(y, output.tensor.data, ELEMS * sizeof *y);
  assert_int_equal(om_session_diagnose(rig.session, &input, 1, &d, &rig.error), OM_OK);
  *out_left_out = 0;
  for (size_t i = 0; i < d->node_count; ++i) {
    *out_left_out += d->nodes[i].reason && strstr(d->nodes[i].reason, "computes the same") != NULL;
  }
  om_text_rig_close(&rig);
}

static void check(const graph_case *c, om_mode mode) {
  float y[ELEMS], wanted[ELEMS];
  size_t left_out = 0, none = 0;
  run(c->shared, mode, y, &left_out);
  if (left_out != c->left_out) fail_msg("%s: %zu nodes are left out", c->name, left_out);
  if (!c->single) return;
  run(c->single, mode, wanted, &none);
  assert_int_equal(none, 0);
  if (memcmp(y, wanted, sizeof y) != 0) fail_msg("%s: other bits", c->name);
}

static void what_is_there_twice_is_computed_once(void **state) {
  static const graph_case cases[] = {
      {"three",
       "(x: f32[3, 4]) -> y { a = Exp(x); b = Exp(x); s = Add(a, b); c = Exp(x); y = Sub(s, c); }",
       "(x: f32[3, 4]) -> y { a = Exp(x); s = Add(a, a); y = Sub(s, a); }",
       2},
      {"chains",
       "(x: f32[3, 4]) -> y { a = Abs(x); b = Abs(x); c = Sqrt(a); d = Sqrt(b); y = Mul(c, d); }",
       "(x: f32[3, 4]) -> y { a = Abs(x); c = Sqrt(a); y = Mul(c, c); }",
       2},
      {"other_order_of_operands",
       "(x: f32[3, 4]) -> y { a = Exp(x); b = Sub(a, x); c = Sub(x, a); y = Mul(b, c); }",
       NULL,
       0},
      {"same_attributes",
       "(x: f32[3, 4]) -> y { a = LeakyRelu(x) alpha=0.5; b = LeakyRelu(x) alpha=0.5; "
       "y = Mul(a, b); }",
       "(x: f32[3, 4]) -> y { a = LeakyRelu(x) alpha=0.5; y = Mul(a, a); }",
       1},
      {"other_attributes",
       "(x: f32[3, 4]) -> y { a = LeakyRelu(x) alpha=0.5; b = LeakyRelu(x) alpha=0.25; "
       "y = Mul(a, b); }",
       NULL,
       0},
      {"random",
       "(x: f32[3, 4]) -> y { a = RandomNormalLike(x); b = RandomNormalLike(x); y = Sub(a, b); }",
       NULL,
       0},
      {"an_output_stays",
       "(x: f32[3, 4]) -> y, z { y = Exp(x); z = Exp(x); }",
       "(x: f32[3, 4]) -> y { y = Exp(x); }",
       0},
      {"with_bodies",
       "(x: f32[3, 4]) -> y { r = ReduceMax(x) "
       "keepdims=0; g = Greater(r, r); "
       "a = If(g) then_branch={() -> p { p = Exp(x); }} else_branch={() -> q { q = Neg(x); }}; "
       "b = If(g) then_branch={() -> p { p = Exp(x); }} else_branch={() -> q { q = Neg(x); }}; "
       "y = Add(a, b); }",
       NULL,
       0},
  };
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    check(&cases[i], OM_MODE_EXACT);
    check(&cases[i], OM_MODE_FAST);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_there_twice_is_computed_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
