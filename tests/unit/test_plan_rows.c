/* Transposes that put rows in another order, around an attention whose projections come by length
 * and batch: plans without them, against the same graph where something keeps them, with its bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "harness/om_each_mode.h"
#include "harness/om_model_text.h"

enum { BATCH = 2, ROWS = 5, WIDTH = 12, ELEMS = BATCH * ROWS * WIDTH };

typedef struct form {
  const char *name, *before, *behind; /* from t to q, k, v; from o to z0 */
  size_t left_out;                    /* Transposes that are no steps */
} form;

#define PACKED(shape)                                                \
  "s = Constant() value_ints=" shape                                 \
  "; a = Reshape(y, s); "                                            \
  "r = Transpose(a) perm=[2, 0, 1, 3]; i = Constant() value_int=0; " \
  "j = Constant() value_int=1; l = Constant() value_int=-1; "        \
  "qa = Gather(r, i); ka = Gather(r, j); va = Gather(r, l); "
#define HEADS                                                                     \
  "f = Constant() value_ints=[5, 6, 4]; h = Constant() value_ints=[2, 3, 5, 4]; " \
  "qb = Reshape(qa, f); qc = Transpose(qb) perm=[1, 0, 2]; q = Reshape(qc, h); "  \
  "kb = Reshape(ka, f); kc = Transpose(kb) perm=[1, 0, 2]; k = Reshape(kc, h); "  \
  "vb = Reshape(va, f); vc = Transpose(vb) perm=[1, 0, 2]; v = Reshape(vc, h); "
#define PARTS                                                          \
  "m0 = Constant() value_ints=[0]; m1 = Constant() value_ints=[12]; "  \
  "m2 = Constant() value_ints=[24]; m3 = Constant() value_ints=[36]; " \
  "p = Constant() value_ints=[1]; "                                    \
  "wq = Slice(w, m0, m1, p); wk = Slice(w, m1, m2, p); wv = Slice(w, m2, m3, p); "
#define ROWS_OF_12                                                                              \
  "oa = Transpose(o) perm=[2, 0, 1, 3]; ob = Constant() value_ints=[10, 12]; oc = Reshape(oa, " \
  "ob); "
#define BY_LENGTH                                                                \
  "oa = Transpose(o) perm=[2, 0, 1, 3]; ob = Constant() value_ints=[5, 2, 12]; " \
  "oc = Reshape(oa, ob); "

static const form forms[] = {
    {"one product, Gemm",
     "ya = MatMul(t, w); y = Add(b, ya); " PACKED("[5, 2, 3, 12]") HEADS,
     ROWS_OF_12 "og = Gemm(oc, u, c) transB=1; od = Constant() value_ints=[5, 2, 12]; "
                "z0 = Reshape(og, od);",
     2},
    {"three products, MatMul",
     PARTS "qa = MatMul(t, wq); ka = MatMul(t, wk); vd = MatMul(t, wv); va = Add(vd, c); " HEADS,
     BY_LENGTH "og = MatMul(oc, u); oe = Add(og, c); z0 = Relu(oe);",
     2},
    {"rows as a matrix",
     "n = Constant() value_ints=[10, 12]; ta = Reshape(t, n); ya = Gemm(ta, w, b); "
     "y = Tanh(ya); " PACKED("[5, 2, 3, 12]") HEADS,
     ROWS_OF_12 "og = Gemm(oc, u, c) alpha=0.5; od = Constant() value_ints=[5, 2, 12]; "
                "oe = Reshape(og, od); z0 = Mul(oe, c);",
     2},
    /* What is added differs from row to row. */
    {"other rows in front",
     "ya = MatMul(t, w); yb = Add(b, ya); yc = Add(yb, g); " /* g: [5, 1, 1] */
     "y = Relu(yc); " PACKED("[5, 2, 3, 12]") HEADS,
     BY_LENGTH "z0 = MatMul(oc, u);",
     1},
    {"other rows behind",
     "y = MatMul(t, w); " PACKED("[5, 2, 3, 12]") HEADS,
     BY_LENGTH "og = MatMul(oc, u); z0 = Add(og, g);",
     1},
    /* What is added has more axes, so the sum has, too. */
    {"another axis in front",
     "e = Constant() value_ints=[1, 1, 1, 36]; be = Reshape(b, e); "
     "ya = MatMul(t, w); y = Add(be, ya); " PACKED("[5, 2, 3, 12]") HEADS,
     BY_LENGTH "z0 = MatMul(oc, u);",
     1},
    {"another axis behind",
     "y = MatMul(t, w); " PACKED("[5, 2, 3, 12]") HEADS,
     BY_LENGTH "e = Constant() value_ints=[1, 1, 1, 12]; ce = Reshape(c, e); "
               "og = MatMul(oc, u); oe = Add(og, ce); od = Constant() value_ints=[5, 2, 12]; "
               "z0 = Reshape(oe, od);",
     1},
    /* A row of each length for both of the batch: [5, 24] has them side by side. */
    {"rows that are joined",
     "n = Constant() value_ints=[5, 24]; ta = Reshape(t, n); tb = Softmax(ta); "
     "tc = Constant() value_ints=[5, 2, 12]; td = Reshape(tb, tc); "
     "y = MatMul(td, w); " PACKED("[5, 2, 3, 12]") HEADS,
     BY_LENGTH "og = MatMul(oc, u); oe = Softmax(og) axis=0; z0 = Relu(oe);",
     0},
    /* Of what would go around, nothing is read but the shape: the other reader is as before. */
    {"a shape is asked behind",
     "y = MatMul(t, w); " PACKED("[5, 2, 3, 12]") HEADS,
     BY_LENGTH "og = MatMul(oc, u); oh = Transpose(og) perm=[1, 0, 2]; oi = Shape(oh); "
               "ok = Expand(c, oi); ol = Transpose(ok) perm=[1, 0, 2]; "
               "z0 = Add(og, ol);",
     1},
    {"a shape is asked in front",
     PARTS "qa = MatMul(t, wq); ka = MatMul(t, wk); va = MatMul(t, wv); ra = MatMul(t, wq); " HEADS
           "rb = Reshape(ra, f); rc = Transpose(rb) perm=[1, 0, 2]; r = Reshape(rc, h); "
           "ks = Transpose(k) perm=[0, 1, 3, 2]; rs = MatMul(r, ks); rw = Softmax(rs); "
           "ro = MatMul(rw, v); n = Shape(ro); ",
     BY_LENGTH "l = Constant() value_float=0.5; og = Expand(l, n); oh = Reshape(og, ob); "
               "oi = Relu(ra); oj = Add(oi, oh); z0 = Add(oc, oj);",
     0},
    /* The projections, or the result, are wanted as they are, too. */
    {"read by others",
     "y = MatMul(t, w); yl = ReduceMax(y) keepdims=0; " PACKED("[5, 2, 3, 12]") HEADS,
     BY_LENGTH "og = MatMul(oc, u); oh = ReduceMax(og) keepdims=0; oi = Add(oh, yl); "
               "z0 = Add(og, oi);",
     0},
};

typedef struct result {
  float y[ELEMS];
  size_t transposes; /* steps */
} result;

static void fill(uint32_t *state, size_t count, float *out) {
  for (size_t i = 0; i < count; ++i) {
    *state = *state * 1664525u + 1013904223u;
    out[i] = (float)(*state >> 8) * 0x1p-23f - 1.0f;
  }
}

/* kept: what the Transposes make and read is the larger of itself and itself, which is no row by
 * itself. */
static void run(const form *f, bool are_kept, const om_session_options *options, result *out) {
  static const char direct[] = "t = Identity(t0); ", kept[] = "t = Max(t0, t0); ";
  static const char direct_z[] = "z = Identity(z0); ", kept_z[] = "z = Max(z0, z0); ";
  float x[ELEMS], w[WIDTH * 3 * WIDTH], b[3 * WIDTH], u[WIDTH * WIDTH], c[WIDTH], g[ROWS];
  const struct {
    const char *name;
    float *data;
    size_t count;
    uint32_t rank;
    int64_t dims[3];
  } of[] = {
      {"x", x, OM_COUNT_OF(x), 3, {BATCH, ROWS, WIDTH}},
      {"w", w, OM_COUNT_OF(w), 2, {WIDTH, 3 * WIDTH}},
      {"b", b, OM_COUNT_OF(b), 1, {3 * WIDTH}},
      {"u", u, OM_COUNT_OF(u), 2, {WIDTH, WIDTH}},
      {"c", c, OM_COUNT_OF(c), 1, {WIDTH}},
      {"g", g, OM_COUNT_OF(g), 3, {ROWS, 1, 1}},
  };
  om_named_tensor inputs[OM_COUNT_OF(of)], output = {"y_all", {0}};
  uint32_t seed = 11;
  char text[3072];
  om_text_rig rig;
  const om_diagnostics *d = NULL;
  snprintf(text,
           sizeof text,
           "(x: f32[2, 5, 12], w: f32[12, 36], b: f32[36], u: f32[12, 12], c: f32[12], "
           "g: f32[5, 1, 1]) -> y_all { t0 = Transpose(x) perm=[1, 0, 2]; %s %s "
           "kt = Transpose(k) perm=[0, 1, 3, 2]; scores = MatMul(q, kt); "
           "weights = Softmax(scores); o = MatMul(weights, v); %s %s "
           "y_all = Transpose(z) perm=[1, 0, 2]; }",
           are_kept ? kept : direct,
           f->before,
           f->behind,
           are_kept ? kept_z : direct_z);
  for (size_t i = 0; i < OM_COUNT_OF(of); ++i) {
    fill(&seed, of[i].count, of[i].data);
    inputs[i] = (om_named_tensor){of[i].name,
                                  om_tensor_of(OM_DTYPE_F32, of[i].rank, of[i].dims, of[i].data)};
  }
  om_text_rig_open(&rig, text, 17, options);
  if (om_text_rig_run(&rig, inputs, OM_COUNT_OF(inputs), &output, 1) != OM_OK) {
    fail_msg("%s", rig.error.message);
  }
  assert_int_equal(output.tensor.data_bytes, sizeof out->y);
  assert_int_equal(output.tensor.dims[0], BATCH);
  memcpy(out->y, output.tensor.data, sizeof out->y);
  assert_int_equal(om_session_diagnose(rig.session, inputs, OM_COUNT_OF(inputs), &d, &rig.error),
                   OM_OK);
  out->transposes = 0;
  for (size_t i = 0; i < d->node_count; ++i) {
    if (d->nodes[i].place == OM_PLACE_FOLDED) continue;
    out->transposes += strcmp(d->nodes[i].op_type, "Transpose") == 0;
  }
  om_text_rig_close(&rig);
}

static void check(const om_session_options *options) {
  static result without, with; /* large for a frame */
  for (size_t i = 0; i < OM_COUNT_OF(forms); ++i) {
    print_message("# %s\n", forms[i].name);
    run(&forms[i], false, options, &without);
    run(&forms[i], true, options, &with);
    assert_int_equal(with.transposes - without.transposes, forms[i].left_out);
    if (options->mode == OM_MODE_EXACT) {
      assert_memory_equal(without.y, with.y, sizeof with.y);
      continue;
    }
    for (size_t k = 0; k < ELEMS; ++k) assert_float_equal(without.y[k], with.y[k], 1e-5f);
  }
}

static void transposes_of_rows_go_on_the_cpu(void **state) {
  (void)state;
  om_each_mode_on_the_cpu(check);
}

static void transposes_of_rows_go_on_a_device(void **state) {
  (void)state;
  om_each_mode_on_a_device(check);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(transposes_of_rows_go_on_the_cpu),
                                     cmocka_unit_test(transposes_of_rows_go_on_a_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
