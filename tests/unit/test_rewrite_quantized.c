/* Rewrites of quantized operators.
 *
 * quantized_from_parts: graphs between DequantizeLinear and QuantizeLinear in fast mode beside the
 * same in exact mode, where results are at most one step of y's scale apart; in exact mode beside
 * the same nodes, which an output of the graph in between keeps apart: no bit differs.
 * scaled_products: bits beside those of the same nodes, where another reader keeps them apart.
 * Which nodes are left is checked too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "harness/om_model_text.h"

enum { MOST_ELEMS = 4096, TEXT_BYTES = 8192 };

typedef struct graph_case {
  const char *name;
  const char *nodes; /* from x, [2, 6, 9, 10], or its bytes dequantized, d, to the float f */
  const char *zero;  /* y's zero point */
  const char *left;  /* a type of nodes that are there afterwards */
  int count;         /* of those */
} graph_case;

/* Constants that the cases have:
 *   w, w5, v, g  bytes dequantized: weights of [8, 6, 3, 3] by channel, [6, 1, 5, 5], [8, 6, 1, 1]
 *                of uint8, [540, 7]; gt: as g, turned, by row
 *   b            a bias of w's sums, of int32; c: of float32
 *   e            bytes of [2, 6, 9, 10] with another scale */
static const char constants[] =
    "sx = Constant() value_float=0.0078; n1 = Constant() value_int=121; zx = Cast(n1) to=2; "
    "qx = QuantizeLinear(x, sx, zx); d = DequantizeLinear(qx, sx, zx); "
    "se = Constant() value_float=0.013; xe = Neg(x); qe = QuantizeLinear(xe, se, zx); "
    "e = DequantizeLinear(qe, se, zx); "
    "o = Constant() value_float=0.0; i = Constant() value_float=1.0; m = Constant() "
    "value_float=126.0; n0 = Constant() value_int=0; zi = Cast(n0) to=3; "
    "lw = Constant() value_float=432.0; rw = Range(o, lw, i); tw = Sin(rw); uw = Mul(tw, m); hw = "
    "Constant() value_ints=[8, 6, 3, 3]; jw = Reshape(uw, hw); bw = Cast(jw) to=3; "
    "sw = Constant() value_floats=[0.01, 0.002, 0.003, 0.01, 0.01, 0.02, 0.004, 0.006]; "
    "n8 = Constant() value_ints=[0, 0, 0, 0, 0, 0, 0, 0]; zw = Cast(n8) to=3; "
    "w = DequantizeLinear(bw, sw, zw) axis=0; "
    "l5 = Constant() value_float=150.0; r5 = Range(o, l5, i); t5 = Sin(r5); u5 = Mul(t5, m); h5 = "
    "Constant() value_ints=[6, 1, 5, 5]; j5 = Reshape(u5, h5); b5 = Cast(j5) to=3; "
    "s5 = Constant() value_float=0.003; w5 = DequantizeLinear(b5, s5, zi); "
    "lv = Constant() value_float=48.0; rv = Range(o, lv, i); bv = Cast(rv) to=2; hv = "
    "Constant() value_ints=[8, 6, 1, 1]; jv = Reshape(bv, hv); n24 = Constant() value_int=24; zv = "
    "Cast(n24) to=2; v = DequantizeLinear(jv, s5, zv); "
    "lg = Constant() value_float=3780.0; rg = Range(o, lg, i); tg = Sin(rg); ug = Mul(tg, m); hg = "
    "Constant() value_ints=[540, 7]; jg = Reshape(ug, hg); bg = Cast(jg) to=3; "
    "g = DequantizeLinear(bg, s5, zi); kg = Transpose(bg); sg = Constant() value_floats=[0.01, "
    "0.002, 0.003, 0.01, 0.01, 0.02, 0.004]; n7 = Constant() value_ints=[0, 0, 0, 0, 0, 0, 0]; zg "
    "= "
    "Cast(n7) to=3; gt = DequantizeLinear(kg, sg, zg) axis=0; "
    "nb = Constant() value_ints=[-900, 800, 70, 6, 5, 444, 3, 2]; bb = Cast(nb) to=6; "
    "sb = Mul(sx, sw); b = DequantizeLinear(bb, sb) axis=0; c = Cast(nb) to=1; ";

/* The elements of y, of the graph for x, [2, 6, 9, 10]; how many nodes of the type are left. */
static size_t run_text(
    const char *name, const char *text, om_mode mode, const char *type, float *out, int *out_left) {
  om_text_rig rig;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  float x[2 * 6 * 9 * 10];
  for (size_t i = 0; i < OM_COUNT_OF(x); ++i) x[i] = (float)((i * 7919) % 1000) / 500.0f - 1.0f;
  options.mode = mode;
  om_text_rig_open(&rig, text, 17, &options);
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 4, (int64_t[]){2, 6, 9, 10}, x)};
  om_named_tensor output = {"y", {0}};
  if (om_text_rig_run(&rig, &input, 1, &output, 1) != OM_OK) {
    fail_msg("%s: %s", name, rig.error.message);
  }
  const size_t count = om_tensor_elems(&output.tensor);
  assert_true(count > 0 && count <= MOST_ELEMS);
  memcpy(out, output.tensor.data, count * sizeof *out);
  *out_left = om_text_rig_count(&rig, &input, 1, type);
  om_text_rig_close(&rig);
  return count;
}

/* What follows y1, the floats of f's bytes. */
static const char as_it_is[] = "y = Identity(y1);";
static const char read_twice[] = "z = Sub(f, f); y = Add(y1, z);";

static size_t run(const graph_case *c, const char *tail, om_mode mode, float *out, int *out_left) {
  static char text[TEXT_BYTES];
  const int length =
      snprintf(text,
               sizeof text,
               "(x: f32[2, 6, 9, 10]) -> y { %s %s ny = Constant() value_int=%s; zy = "
               "Cast(ny) to=2; sy = Constant() value_float=0.0625; q = "
               "QuantizeLinear(f, sy, zy); y1 = DequantizeLinear(q, sy, zy); %s }",
               constants,
               c->nodes,
               c->zero,
               tail);
  assert_true(length > 0 && length < TEXT_BYTES);
  return run_text(c->name, text, mode, c->left, out, out_left);
}

static void check(const graph_case *c) {
  static float fast[MOST_ELEMS], exact[MOST_ELEMS];
  int left = 0, unused = 0;
  size_t others = 0;
  const size_t count = run(c, as_it_is, OM_MODE_FAST, fast, &left);
  assert_int_equal(run(c, as_it_is, OM_MODE_EXACT, exact, &unused), count);
  bool differs = false;
  for (size_t i = 0; i < count; ++i) {
    const float d = fast[i] > exact[i] ? fast[i] - exact[i] : exact[i] - fast[i];
    if (!(d <= 0.0625f)) fail_msg("%s: %g at %zu", c->name, (double)d, i);
    if (d > 0.0f) others += 1;
    differs = differs || exact[i] != exact[0];
  }
  if (others > count / 50) fail_msg("%s: %zu of %zu differ", c->name, others, count);
  if (!differs) fail_msg("%s: all results are alike", c->name);
  if (left != c->count) fail_msg("%s: %d of %s are left, not %d", c->name, left, c->left, c->count);
}

/* Exact mode. */
static void check_bits(const graph_case *c) {
  static float bytes[MOST_ELEMS], floats[MOST_ELEMS];
  int left = 0, left_apart = 0;
  const size_t count = run(c, as_it_is, OM_MODE_EXACT, bytes, &left);
  assert_int_equal(run(c, read_twice, OM_MODE_EXACT, floats, &left_apart), count);
  if (memcmp(bytes, floats, count * sizeof *bytes) != 0) fail_msg("%s: other bits", c->name);
  if (left != c->count) fail_msg("%s: %d of %s are left, not %d", c->name, left, c->left, c->count);
  if (left_apart != 0) fail_msg("%s: %d are left where f is read twice", c->name, left_apart);
}

static void exact_mode_keeps_the_bits(void **state) {
  static const graph_case cases[] = {
      {"conv", "f = Conv(d, w) pads=[1, 1, 1, 1];", "128", "QuantizedConv", 1},
      {"conv_bias", "f = Conv(d, w, b) strides=[2, 2];", "128", "QuantizedConv", 1},
      {"conv_depthwise", "f = Conv(d, w5) group=6 pads=[2, 2, 2, 2];", "99", "QuantizedConv", 1},
      {"conv_unsigned", "f = Conv(d, v);", "100", "QuantizedConv", 1},
      {"conv_relu", "a = Conv(d, w, b); f = Relu(a);", "0", "QuantizedConv", 1},
      {"sum", "f = Add(d, e);", "128", "QLinearAdd", 1},
      {"sum_relu", "a = Add(d, e); f = Relu(a);", "0", "QLinearAdd", 1},
      {"product", "f = Mul(d, e);", "128", "QLinearMul", 1},
      {"mean", "f = GlobalAveragePool(d);", "128", "QLinearGlobalAveragePool", 0},
      {"relu_cuts", "a = Conv(d, w); f = Relu(a);", "3", "QuantizedConv", 0},
      {"tiny_scale", /* products of floats could vanish */
       "st = Constant() value_float=0.0000000000001; qt = QuantizeLinear(x, st, zx); dt = "
       "DequantizeLinear(qt, st, zx); f = Conv(dt, w);",
       "128",
       "QuantizedConv",
       0},
  };
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) check_bits(&cases[i]);
}

static void operators_run_on_bytes(void **state) {
  static const graph_case cases[] = {
      {"conv", "f = Conv(d, w) pads=[1, 1, 1, 1];", "128", "QLinearConv", 1},
      {"conv_bias", "f = Conv(d, w, b) strides=[2, 2];", "128", "QLinearConv", 1},
      {"conv_depthwise", "f = Conv(d, w5) group=6 pads=[2, 2, 2, 2];", "99", "QLinearConv", 1},
      {"conv_unsigned", "f = Conv(d, v);", "100", "QLinearConv", 1},
      {"conv_relu", "a = Conv(d, w, b); f = Relu(a);", "0", "Relu", 0},
      {"conv_clip",
       "k = Constant() value_float=15.9375; a = Conv(d, w, b); f = Clip(a, o, k);",
       "0",
       "QLinearConv",
       1},
      {"conv_least", "a = Conv(d, w, b); f = Clip(a, o);", "0", "QLinearConv", 1},
      {"chain",
       "a = Conv(d, v); qa = QuantizeLinear(a, s5, zv); da = DequantizeLinear(qa, s5, zv); "
       "p = MaxPool(da) kernel_shape=[2, 2]; qp = QuantizeLinear(p, s5, zv); dp = "
       "DequantizeLinear(qp, s5, zv); f = GlobalAveragePool(dp);",
       "200",
       "QLinearGlobalAveragePool",
       1},
      {"sum", "f = Add(d, e);", "128", "QLinearAdd", 1},
      {"sum_relu", "a = Add(d, e); f = Relu(a);", "0", "QLinearAdd", 1},
      {"product", "f = Mul(d, e);", "128", "QLinearMul", 1},
      {"gemm",
       "r = Flatten(x); q1 = QuantizeLinear(r, sx, zx); d1 = DequantizeLinear(q1, sx, zx); "
       "f = Gemm(d1, g);",
       "128",
       "QGemm",
       1},
      {"gemm_turned",
       "r = Flatten(d); q1 = QuantizeLinear(r, sx, zx); d1 = DequantizeLinear(q1, sx, zx); "
       "f = Gemm(d1, gt) transB=1;",
       "128",
       "QGemm",
       1},
      {"moved", /* Flatten is of bytes: one DequantizeLinear, of y */
       "r = Flatten(d); q1 = QuantizeLinear(r, sx, zx); d1 = DequantizeLinear(q1, sx, zx); "
       "f = Gemm(d1, g);",
       "128",
       "DequantizeLinear",
       1},
      {"matmul",
       "r = Flatten(d); q1 = QuantizeLinear(r, sx, zx); d1 = DequantizeLinear(q1, sx, zx); "
       "f = MatMul(d1, g);",
       "128",
       "QLinearMatMul",
       1},
  };
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) check(&cases[i]);
}

static void others_stay(void **state) {
  static const graph_case cases[] = {
      {"relu_cuts", "a = Conv(d, w); f = Relu(a);", "3", "QLinearConv", 0},
      {"clip_cuts",
       "k = Constant() value_float=15.0; a = Conv(d, w, b); f = Clip(a, o, k);",
       "0",
       "QLinearConv",
       0},
      {"bias_of_floats", "f = Conv(d, w, c);", "128", "QLinearConv", 0},
      {"bias_scale",
       "k = DequantizeLinear(bb, sw) axis=0; f = Conv(d, w, k);",
       "128",
       "QLinearConv",
       0},
      {"bias_that_would_wrap",
       "nk = Constant() value_ints=[2147483000, 800, 70, 6, 5, 444, 3, 2]; bk = Cast(nk) to=6; "
       "k = DequantizeLinear(bk, sb) axis=0; f = Conv(d, w, k);",
       "128",
       "QLinearConv",
       0},
      {"x_of_floats", "f = Conv(x, w);", "128", "QLinearConv", 0},
      {"read_twice",
       "a = Conv(d, w); k = QuantizeLinear(a, sx, zx); u = DequantizeLinear(k, sx, zx); f = Add(a, "
       "u);",
       "128",
       "QLinearConv",
       0},
      {"by_terms", /* a scale for each input channel */
       "k = Constant() value_floats=[0.1, 0.2, 0.3, 0.1, 0.2, 0.3]; n6 = Constant() value_ints=[0, "
       "0, "
       "0, 0, 0, 0]; z6 = Cast(n6) to=3; u = DequantizeLinear(bw, k, z6) axis=1; f = Conv(d, u);",
       "128",
       "QLinearConv",
       0},
      {"gemm_alpha",
       "r = Flatten(d); q1 = QuantizeLinear(r, sx, zx); d1 = DequantizeLinear(q1, sx, zx); "
       "f = Gemm(d1, g) alpha=0.5;",
       "128",
       "QGemm",
       0},
      {"of_float16",
       "h = DequantizeLinear(qx, sx, zx) output_dtype=10; k = DequantizeLinear(bw, sw, zw) axis=0 "
       "output_dtype=10; f = Conv(h, k);",
       "128",
       "QLinearConv",
       0},
      {"moved_and_scaled", "f = MaxPool(d) kernel_shape=[2, 2];", "121", "DequantizeLinear", 2},
  };
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) check(&cases[i]);
}

/* The product that two read keeps its parts. Both halves of y are the same. */
static void products_make_floats(void **state) {
  static const struct {
    const char *name, *nodes; /* from the sums m, twice: c and k, and the scale s, to f and g */
    int count;
  } cases[] = {
      {"bias", "t = Mul(c, s); f = Add(t, b); u = Mul(k, s); g = Add(u, b);", 1},
      {"bias_first", "t = Mul(s, c); f = Add(b, t); u = Mul(s, k); g = Add(b, u);", 1},
      {"no_bias", "f = Mul(c, s); g = Mul(k, s);", 1},
      {"rows_of_bias", "t = Mul(c, s); f = Add(t, r); u = Mul(k, s); g = Add(u, r);", 1},
      {"scales_of_columns",
       "sc = Constant() value_floats=[0.01, 0.002, 0.003, 0.01, 0.01, 0.02, 0.004, 0.006]; "
       "p = Mul(sq, sc); t = Mul(c, p); f = Add(t, b); u = Mul(k, p); g = Add(u, b);",
       1},
      {"other_scale", "f = Mul(c, b); g = Mul(k, b);", 0},
  };
  static float y[MOST_ELEMS];
  static char text[TEXT_BYTES];
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    int left = 0;
    snprintf(
        text,
        sizeof text,
        "(x: f32[2, 6, 9, 10]) -> y { q, sq, zq = DynamicQuantizeLinear(x); "
        "o = Constant() value_float=0.0; l = Constant() value_float=80.0; i = Constant() "
        "value_float=1.0; w1 = Range(o, l, i); w2 = Sin(w1); w3 = Constant() value_float=100.0; "
        "w4 = Mul(w2, w3); h = Constant() value_ints=[10, 8]; w5 = Reshape(w4, h); w = "
        "Cast(w5) to=3; sw = Constant() value_float=0.003; s = Mul(sq, sw); "
        "b = Constant() value_floats=[0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, 0.8]; "
        "r1 = Constant() value_ints=[9, 1]; r2 = Constant() value_float=9.0; r3 = Range(o, r2, "
        "i); r = Reshape(r3, r1); "
        "m = MatMulInteger(q, w, zq); c = Cast(m) to=1; "
        "n = MatMulInteger(q, w, zq); k = Cast(n) to=1; "
        "%s e = Sub(k, k); v = Add(g, e); y = Concat(f, v) axis=0; }",
        cases[i].nodes);
    for (int mode = 0; mode < 2; ++mode) {
      const size_t count = run_text(cases[i].name,
                                    text,
                                    mode == 0 ? OM_MODE_EXACT : OM_MODE_FAST,
                                    "MatMulIntegerToFloat",
                                    y,
                                    &left);
      assert_memory_equal(y, y + count / 2, count / 2 * sizeof *y);
      if (left != cases[i].count) fail_msg("%s: %d are left", cases[i].name, left);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exact_mode_keeps_the_bits),
      cmocka_unit_test(operators_run_on_bytes),
      cmocka_unit_test(others_stay),
      cmocka_unit_test(products_make_floats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
