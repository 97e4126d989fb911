/* Rewrites by two spellings of the same: Sum, Mean, Max and Min of several tensors and Einsum
 * beside what they are composed of, masks that are joined, operands that need not be expanded,
 * zeros that a Conv adds itself. Both have the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "harness/om_model_text.h"

enum { MOST_ELEMS = 256 };

typedef struct result {
  float y[MOST_ELEMS];
  size_t count, composed;
  size_t expands, adds, casts, pads; /* nodes that run */
} result;

/* Runs with x, [3, 4], and w, [4, 4]. */
static void run(const char *nodes, om_mode mode, result *out) {
  float x[12], w[16];
  char text[512];
  om_text_rig rig;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  const om_diagnostics *d = NULL;
  options.mode = mode;
  snprintf(text, sizeof text, "(x: f32[3, 4], w: f32[4, 4]) -> y { %s }", nodes);
  om_text_rig_open(&rig, text, 17, &options);
  for (size_t i = 0; i < 16; ++i) w[i] = (float)(i * 37 % 23) * 0.0781f - 0.83f;
  for (size_t i = 0; i < 12; ++i) x[i] = (float)(i * 41 % 19) * -0.127f + 1.1f;
  x[5] = 0.0f;
  om_named_tensor inputs[2] = {{"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){3, 4}, x)},
                               {"w", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){4, 4}, w)}};
  om_named_tensor output = {"y", {0}};
  const om_status st = om_text_rig_run(&rig, inputs, 2, &output, 1);
  if (st != OM_OK) fail_msg("%s: %s", nodes, rig.error.message);
  out->count = om_tensor_elems(&output.tensor);
  assert_true(out->count > 0 && out->count <= MOST_ELEMS);
  memcpy(out->y, output.tensor.data, out->count * sizeof *out->y);
  assert_int_equal(om_session_diagnose(rig.session, inputs, 2, &d, &rig.error), OM_OK);
  out->composed = out->expands = out->adds = out->casts = out->pads = 0;
  for (size_t i = 0; i < d->node_count; ++i) {
    out->composed += d->nodes[i].reason && strstr(d->nodes[i].reason, "composed of") != NULL;
    if (d->nodes[i].output_count == 0) continue;
    out->expands += strcmp(d->nodes[i].op_type, "Expand") == 0;
    out->adds += strcmp(d->nodes[i].op_type, "Add") == 0;
    out->casts += strcmp(d->nodes[i].op_type, "Cast") == 0;
    out->pads += strcmp(d->nodes[i].op_type, "Pad") == 0;
  }
  om_text_rig_close(&rig);
}

/* `a` has `in_a` composed nodes, `b` has `in_b`. Lends the results of `a`. */
static const result *check_same(
    const char *a, size_t in_a, const char *b, size_t in_b, om_mode mode) {
  static result results[2]; /* large for a frame */
  run(a, mode, &results[0]);
  run(b, mode, &results[1]);
  if (results[0].composed != in_a || results[1].composed != in_b) {
    fail_msg("%s: %zu and %zu nodes are composed", a, results[0].composed, results[1].composed);
  }
  assert_int_equal(results[0].count, results[1].count);
  const size_t bytes = results[0].count * sizeof(float);
  if (memcmp(results[0].y, results[1].y, bytes) != 0) fail_msg("%s: other bits", a);
  return &results[0];
}

/* Two tensors become an operator of two on every executor. Three stay together on the CPU. */
static void several_tensors_have_the_bits_of_a_chain(void **state) {
  static const struct {
    const char *whole, *chain;
    size_t composed;
  } cases[] = {
      {"y = Sum(x, x);", "y = Add(x, x);", 1},
      {"t = Exp(x); y = Sum(x, t, x);", "t = Exp(x); u = Add(x, t); y = Add(u, x);", 0},
      {"t = Exp(x); y = Max(x, t, x);", "t = Exp(x); u = Max(x, t); y = Max(u, x);", 0},
      {"t = Exp(x); y = Min(x, t, x);", "t = Exp(x); u = Min(x, t); y = Min(u, x);", 0},
      {"a = Exp(x); b = Exp(a); y = Mean(x, a, b, x);",
       "a = Exp(x); b = Exp(a); s = Add(x, a); t = Add(s, b); u = Add(t, x); v = Sub(x, x); "
       "w2 = Cos(v); w4 = Add(w2, w2); w8 = Add(w4, w4); y = Div(u, w8);",
       0},
      {"a = Exp(x); y = Mean(x, a);",
       "a = Exp(x); u = Add(x, a); v = Sub(x, x); w1 = Cos(v); w2 = Add(w1, w1); y = Div(u, w2);",
       1},
  };
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    for (int mode = 0; mode < 2; ++mode) {
      const om_mode as = mode == 0 ? OM_MODE_EXACT : OM_MODE_FAST;
      check_same(cases[i].whole, cases[i].composed, cases[i].chain, 0, as);
    }
  }
}

/* Behind a Flatten, which changes nothing here, the types are not known, so that the Einsum stays.
 */
static void einsum_has_the_bits_of_its_products(void **state) {
  static const char *const equations[] = {
      "ij,jk->ik",
      "ij,jk->k",
      "ij,kl->ljik",
      "ij,ij->ij",
      "ij,kj->i",
      "ij,jj->ij",
      "ij,jj->",
      "ij,kk->ji",
      "ij,kl->i",
      "ij,kl->",
      "ij,jk->i",
  };
  char whole[256], products[256];
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(equations); ++i) {
    const char *e = equations[i];
    const char *other = strcmp(e, "ij,ij->ij") == 0 ? "x" : "w";
    snprintf(whole,
             sizeof whole,
             "a = Flatten(x); b = Flatten(%s); y = Einsum(a, b) equation=\"%s\";",
             other,
             e);
    snprintf(products, sizeof products, "y = Einsum(x, %s) equation=\"%s\";", other, e);
    check_same(whole, 0, products, 1, OM_MODE_EXACT);
  }
  check_same("a = Flatten(x); y = Einsum(a) equation=\"ij->j\";",
             0,
             "y = Einsum(x) equation=\"ij->j\";",
             1,
             OM_MODE_EXACT);
  check_same("a = Flatten(w); y = Einsum(a) equation=\"ii->\";",
             0,
             "y = Einsum(w) equation=\"ii->\";",
             1,
             OM_MODE_EXACT);
  check_same("a = Flatten(x); b = Flatten(w); y = Einsum(a, b, b) equation=\"ij,jk,kl->li\";",
             0,
             "y = Einsum(x, w, w) equation=\"ij,jk,kl->li\";",
             1,
             OM_MODE_EXACT);
}

/* The sum of two masks is one node for both layers, and each layer adds it once. */
static void two_masks_are_added_as_one(void **state) {
  static const char apart[] =
      "m = Abs(x); n = Neg(x); p = MatMul(x, w); q = Add(p, m); r = Add(q, n); a = Softmax(r); "
      "s = MatMul(a, w); t = Add(m, s); u = Add(t, n); b = Softmax(u); y = Mul(a, b);";
  static const char joined[] =
      "m = Abs(x); n = Neg(x); k = Add(m, n); p = MatMul(x, w); r = Add(p, k); a = Softmax(r); "
      "s = MatMul(a, w); u = Add(s, k); b = Softmax(u); y = Mul(a, b);";
  (void)state;
  for (int mode = 0; mode < 2; ++mode) {
    const om_mode as = mode == 0 ? OM_MODE_EXACT : OM_MODE_FAST;
    assert_int_equal(check_same(apart, 0, joined, 0, as)->adds, 3);
  }
  /* A sum that something else reads stays. */
  static const char kept[] =
      "m = Abs(x); n = Neg(x); p = MatMul(x, w); q = Add(p, m); r = Add(q, n); a = Softmax(r); "
      "y = Mul(a, q);";
  assert_int_equal(check_same(kept, 0, kept, 0, OM_MODE_EXACT)->adds, 2);
}

/* Both in one model, so that they are of one layer's kind: scores that a triangle hides, and then a
 * mask of keys. A fill that a score still shows beside is left alone. */
static void a_choice_and_a_mask_are_one(void **state) {
  static const char apart[] =
      "n = Neg(x); g = Greater(x, n); f = Constant() value_float=-3.4e38; p = MatMul(x, w); "
      "q = Where(g, p, f); r = Add(q, n); y = Softmax(r);";
  static const char joined[] =
      "n = Neg(x); g = Greater(x, n); f = Constant() value_float=-3.4e38; p = MatMul(x, w); "
      "h = Add(f, n); q = Where(g, n, h); r = Add(p, q); y = Softmax(r);";
  static const char kept[] =
      "n = Neg(x); g = Greater(x, n); f = Constant() value_float=-10000.0; p = MatMul(x, w); "
      "q = Where(g, p, f); r = Add(q, n); y = Softmax(r);";
  (void)state;
  for (int mode = 0; mode < 2; ++mode) {
    const om_mode as = mode == 0 ? OM_MODE_EXACT : OM_MODE_FAST;
    assert_int_equal(check_same(apart, 0, joined, 0, as)->adds, 2);
    assert_int_equal(check_same(kept, 0, kept, 0, as)->adds, 1);
  }
}

/* Casts to the type that is there are left out; the others stay. */
static void casts_that_change_nothing_go(void **state) {
  static const char cast[] =
      "a = Cast(x) to=1; b = Squeeze(a); s = Softmax(b); c = Cast(s) to=1; g = Greater(c, b); "
      "h = Cast(g) to=9; y = Where(h, c, a);";
  static const char plain[] =
      "b = Squeeze(x); s = Softmax(b); g = Greater(s, b); y = Where(g, s, x);";
  static const char kept[] = "a = Cast(x) to=6; y = Cast(a) to=1;";
  /* Of a type that an exponent, or a scale, does not have. */
  static const char raised[] =
      "a = Cast(x) to=10; f = Floor(a); e = Constant() value_float=2.0; p = Pow(f, e); "
      "y = Cast(p) to=1;";
  static const char narrow[] =
      "a = Cast(x) to=3; s = Constant() value_float=0.5; d = DequantizeLinear(a, s) "
      "output_dtype=10; y = Cast(d) to=1;";
  (void)state;
  for (int mode = 0; mode < 2; ++mode) {
    const om_mode as = mode == 0 ? OM_MODE_EXACT : OM_MODE_FAST;
    assert_int_equal(check_same(cast, 0, plain, 0, as)->casts, 0);
    assert_int_equal(check_same(kept, 0, kept, 0, as)->casts, 2);
    assert_int_equal(check_same(raised, 0, raised, 0, as)->casts, 2);
    assert_int_equal(check_same(narrow, 0, narrow, 0, as)->casts, 2);
  }
}

/* A scale whose Squeeze names no axes by an empty name, and a list of extents with a part that is
 * not there, which the shape rule refuses. */
static void operands_may_be_absent(void **state) {
  static const char scaled[] =
      "h = Shape(x); i = Constant() value_int=0; g = Gather(h, i); f = Cast(g) to=1; "
      "s = Squeeze(f, , ); m = Abs(x); n = Neg(x); p = MatMul(x, w); q = Mul(p, s); r = Add(q, m); "
      "t = Add(r, n); y = Softmax(t);";
  static const char plain[] =
      "h = Shape(x); i = Constant() value_int=0; g = Gather(h, i); s = Cast(g) to=1; "
      "m = Abs(x); n = Neg(x); p = MatMul(x, w); q = Mul(p, s); r = Add(q, m); t = Add(r, n); "
      "y = Softmax(t);";
  (void)state;
  assert_int_equal(check_same(scaled, 0, plain, 0, OM_MODE_EXACT)->adds, 2);
  om_text_rig_expect(
      "(x: f32[n]) -> y { s = Shape(x); l = Concat(, s) axis=0; y = Reshape(x, l); }",
      17,
      "Input 0 is absent");
}

/* Lists of lists, each of which has the same one many times over: who asks how long one is must not
 * walk through all of them. */
static void a_list_of_lists_takes_no_time(void **state) {
  enum { TIMES = 200, LISTS = 5 };
  static char text[LISTS * (TIMES * 4 + 64) + 512];
  size_t at = (size_t)snprintf(text,
                               sizeof text,
                               "(x: f32[n, 3]) -> y { s = Shape(x); z = Constant() value_ints=[0]; "
                               "c0 = Slice(s, z, z); ");
  float x[6] = {0};
  om_text_rig rig;
  (void)state;
  for (int i = 0; i < LISTS; ++i) {
    at += (size_t)snprintf(text + at, sizeof text - at, "c%d = Concat(", i + 1);
    for (int k = 0; k < TIMES; ++k) {
      at += (size_t)snprintf(text + at, sizeof text - at, k > 0 ? ", c%d" : "c%d", i);
    }
    at += (size_t)snprintf(text + at, sizeof text - at, ") axis=0; ");
  }
  at += (size_t)snprintf(
      text + at, sizeof text - at, "l = Concat(c%d, s) axis=0; y = Reshape(x, l); }", LISTS);
  assert_true(at < sizeof text);
  om_text_rig_open(&rig, text, 17, NULL);
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){2, 3}, x)};
  om_named_tensor output = {"y", {0}};
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &output, 1), OM_OK);
  assert_int_equal(om_tensor_elems(&output.tensor), 6);
  om_text_rig_close(&rig);
}

static void operands_that_broadcast_are_not_expanded(void **state) {
  static const struct {
    const char *expanded, *plain;
  } cases[] = {
      {"r = ReduceMax(x) axes=[1]; s = Shape(x); e = Expand(r, s); y = Sub(x, e);",
       "r = ReduceMax(x) axes=[1]; y = Sub(x, r);"},
      {"r = ReduceMax(x) axes=[1]; g = Greater(r, x); h = ReduceMin(x) axes=[0]; s = Shape(x); "
       "e = Expand(h, s); y = Where(g, e, x);",
       "r = ReduceMax(x) axes=[1]; g = Greater(r, x); h = ReduceMin(x) axes=[0]; "
       "y = Where(g, h, x);"},
  };
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    assert_int_equal(check_same(cases[i].expanded, 0, cases[i].plain, 0, OM_MODE_EXACT)->expands,
                     0);
  }
  static const char of_another[] =
      "r = ReduceMax(x) axes=[1]; a = Exp(x); s = Shape(a); e = Expand(r, s); y = Sub(x, e);";
  assert_int_equal(check_same(of_another, 0, of_another, 0, OM_MODE_EXACT)->expands, 1);
}

#define IMAGES                                                                   \
  "z = Constant() value_ints=[0, 1]; u = Unsqueeze(x, z); k = Unsqueeze(w, z); " \
  "p = Constant() value_ints=[0, 0, 1, 2, 0, 0, 2, 1]; "

static void zeros_in_front_of_a_convolution_are_its_pads(void **state) {
  static const struct {
    const char *padded, *plain;
  } cases[] = {
      {IMAGES "q = Pad(u, p); y = Conv(q, k);", IMAGES "y = Conv(u, k) pads=[1, 2, 2, 1];"},
      {IMAGES "o = Constant() value_float=0.0; q = Pad(u, p, o) mode=\"constant\"; "
              "y = Conv(q, k) pads=[0, 1, 2, 0] strides=[2, 1];",
       IMAGES "y = Conv(u, k) pads=[1, 3, 4, 1] strides=[2, 1];"},
  };
  static const char *const kept[] = {
      IMAGES "o = Constant() value_float=0.5; q = Pad(u, p, o); y = Conv(q, k);",
      IMAGES "o = Constant() value_float=-0.0; q = Pad(u, p, o); y = Conv(q, k);",
      IMAGES "q = Pad(u, p) mode=\"edge\"; y = Conv(q, k);",
      IMAGES "q = Pad(u, p); y = Conv(q, k) auto_pad=\"SAME_UPPER\";",
      IMAGES "q = Pad(u, p); a = Conv(q, k); s = ReduceSum(q); y = Add(a, s);",
      IMAGES "r = Constant() value_ints=[1, 0, 0, 0, 0, 0, 1, 0]; q = Pad(u, r); y = Conv(q, k);",
  };
  /* The zeros are written by a Pad that stays, as the sum reads it, too; and they are not. */
  static const char *const written = IMAGES
      "q = Pad(u, p); s = ReduceSum(q); a = Conv(q, k) strides=[2, 1]; "
      "b = Flatten(a); c = Flatten(s); y = Concat(b, c) axis=1;";
  static const char *const left_out = IMAGES
      "q = Pad(u, p); s = ReduceSum(q); a = Conv(u, k) pads=[1, 2, 2, 1] strides=[2, 1]; "
      "b = Flatten(a); c = Flatten(s); y = Concat(b, c) axis=1;";
  (void)state;
  for (int mode = 0; mode < 2; ++mode) {
    const om_mode as = mode == 0 ? OM_MODE_EXACT : OM_MODE_FAST;
    for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
      assert_int_equal(check_same(cases[i].padded, 0, cases[i].plain, 0, as)->pads, 0);
    }
    assert_int_equal(check_same(written, 0, left_out, 0, as)->pads, 1);
    for (size_t i = 0; i < OM_COUNT_OF(kept); ++i) {
      assert_int_equal(check_same(kept[i], 0, kept[i], 0, as)->pads, 1);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(several_tensors_have_the_bits_of_a_chain),
      cmocka_unit_test(einsum_has_the_bits_of_its_products),
      cmocka_unit_test(two_masks_are_added_as_one),
      cmocka_unit_test(a_choice_and_a_mask_are_one),
      cmocka_unit_test(casts_that_change_nothing_go),
      cmocka_unit_test(operands_may_be_absent),
      cmocka_unit_test(a_list_of_lists_takes_no_time),
      cmocka_unit_test(operands_that_broadcast_are_not_expanded),
      cmocka_unit_test(zeros_in_front_of_a_convolution_are_its_pads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
