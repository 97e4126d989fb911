/* channels_last and epilogue: graphs in fast mode beside the same in exact mode, where neither
 * rewrite is applied. Which nodes are left is checked too. */
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
  const char *weights; /* name:shape, separated by blanks: waves of these shapes */
  const char *nodes;   /* x, [2, 6, 9, 10], to y */
  int transposes;      /* how many are left; -1: not counted */
} graph_case;

/* Adds nodes that make a wave of this shape, which are computed when the session is made. */
static size_t add_weights(char *text, size_t at, const char *name, const char *shape, int seed) {
  int64_t elems = 1, extent = 0;
  for (const char *c = shape;; ++c) {
    if (*c >= '0' && *c <= '9') {
      extent = extent * 10 + (*c - '0');
      continue;
    }
    elems *= extent;
    extent = 0;
    if (*c == '\0') break;
  }
  return at +
         (size_t)snprintf(text + at,
                          TEXT_BYTES - at,
                          "%s_a = Constant() value_float=%d.0; %s_b = Constant() value_float=%d.0; "
                          "%s_c = Constant() value_float=1.0; %s_d = Range(%s_a, %s_b, %s_c); "
                          "%s_e = Sin(%s_d); %s_s = Constant() value_ints=[%s]; "
                          "%s = Reshape(%s_e, %s_s); ",
                          name,
                          seed,
                          name,
                          seed + (int)elems,
                          name,
                          name,
                          name,
                          name,
                          name,
                          name,
                          name,
                          name,
                          shape,
                          name,
                          name,
                          name);
}

static void write_text(const graph_case *c, char *text) {
  char words[256];
  size_t at = (size_t)snprintf(text, TEXT_BYTES, "(x: f32[2, 6, 9, 10]) -> y { ");
  int seed = 0;
  snprintf(words, sizeof words, "%s", c->weights);
  for (char *word = words; *word;) {
    char *end = word;
    while (*end && *end != ' ') ++end;
    const bool is_last = *end == '\0';
    *end = '\0';
    char *colon = word;
    while (*colon != ':') ++colon;
    *colon = '\0';
    at = add_weights(text, at, word, colon + 1, ++seed);
    word = is_last ? end : end + 1;
  }
  snprintf(text + at, TEXT_BYTES - at, "%s }", c->nodes);
}

static size_t run(const char *text, om_mode mode, float *out, int *out_transposes) {
  om_text_rig rig;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  float x[2 * 6 * 9 * 10];
  for (size_t i = 0; i < OM_COUNT_OF(x); ++i) x[i] = (float)((i * 7919) % 1000) / 500.0f - 1.0f;
  options.mode = mode;
  om_text_rig_open(&rig, text, 17, &options);
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 4, (int64_t[]){2, 6, 9, 10}, x)};
  om_named_tensor output = {"y", {0}};
  if (om_text_rig_run(&rig, &input, 1, &output, 1) != OM_OK) fail_msg("%s", rig.error.message);
  const size_t count = om_tensor_elems(&output.tensor);
  assert_true(count > 0 && count <= MOST_ELEMS);
  memcpy(out, output.tensor.data, count * sizeof *out);
  *out_transposes = om_text_rig_count(&rig, &input, 1, "Transpose");
  om_text_rig_close(&rig);
  return count;
}

static void check(const graph_case *c) {
  static float fast[MOST_ELEMS], exact[MOST_ELEMS];
  static char text[TEXT_BYTES];
  int transposes = 0, unused = 0;
  float largest = 0.0f, difference = 0.0f;
  write_text(c, text);
  const size_t count = run(text, OM_MODE_FAST, fast, &transposes);
  assert_int_equal(run(text, OM_MODE_EXACT, exact, &unused), count);
  for (size_t i = 0; i < count; ++i) {
    const float d = fast[i] > exact[i] ? fast[i] - exact[i] : exact[i] - fast[i];
    const float m = exact[i] > 0 ? exact[i] : -exact[i];
    if (m > largest) largest = m;
    if (!(d <= difference)) difference = d;
  }
  if (!(largest > 0.0f) || !(difference <= 1e-5f * largest)) {
    fail_msg("%s: scaled error %g", c->name, (double)(difference / largest));
  }
  if (c->transposes >= 0 && transposes != c->transposes) {
    fail_msg("%s: %d Transposes are left, not %d", c->name, transposes, c->transposes);
  }
}

static void graphs_keep_their_results(void **state) {
  static const graph_case cases[] = {
      {"chain",
       "w:8,6,3,3 b:8 v:4,8,1,1",
       "a = Conv(x, w, b) pads=[1, 1, 1, 1]; r = Relu(a); y = Conv(r, v);",
       2},
      {"quantized",
       "w:8,6,3,3 v:4,8,1,1",
       "s = Constant() value_float=0.0625; n = Constant() value_int=3; z = Cast(n) to=2; "
       "a = Conv(x, w) pads=[1, 1, 1, 1]; q = QuantizeLinear(a, s, z); "
       "d = DequantizeLinear(q, s, z); y = Conv(d, v);",
       2},
      {"quantized_by_channel", /* whose axis stays the second */
       "w:8,6,3,3 v:4,8,1,1 t:8",
       "g = Constant() value_float=2.0; s = Add(t, g); "
       "a = Conv(x, w) pads=[1, 1, 1, 1]; q = QuantizeLinear(a, s) axis=1; "
       "d = DequantizeLinear(q, s) axis=1; y = Conv(d, v);",
       4},
      {"residual",
       "w:6,6,3,3 b:6",
       "a = Conv(x, w, b) pads=[1, 1, 1, 1]; s = Add(a, x); y = Relu(s);",
       2},
      {"residual_of_convs",
       "w:8,6,1,1 v:8,6,3,3",
       "a = Conv(x, w); c = Conv(x, v) pads=[1, 1, 1, 1]; s = Add(a, c); y = HardSwish(s);",
       2},
      {"read_twice",
       "w:6,6,3,3 v:6,6,1,1",
       "a = Conv(x, w) pads=[1, 1, 1, 1]; r = Relu(a); c = Conv(r, v); y = Add(r, c);",
       2},
      {"gate",
       "w:8,6,1,1 v:8,8,1,1",
       "a = Conv(x, w); g = GlobalAveragePool(a); h = Conv(g, v); s = HardSigmoid(h); y = Mul(a, "
       "s);",
       2},
      {"broadcast_sum",
       "w:8,6,1,1 v:8,8,1,1",
       "a = Conv(x, w); g = GlobalAveragePool(a); h = Conv(g, v); s = Add(h, a); y = Relu(s);",
       2},
      {"pools",
       "w:8,6,3,3",
       "a = Conv(x, w); p = MaxPool(a) kernel_shape=[2, 2] strides=[2, 2]; "
       "y = AveragePool(p) kernel_shape=[2, 2] ceil_mode=1;",
       2},
      {"by_channel",
       "w:8,6,1,1 m:8,1,1 n:1,8,1,1",
       "a = Conv(x, w); r = Relu(a); p = Mul(r, m); y = Sub(p, n);",
       2},
      {"by_place", "w:8,6,1,1 m:9,10", "a = Conv(x, w); r = Relu(a); y = Mul(r, m);", 2},
      {"concat",
       "w:8,6,1,1 v:4,6,3,3",
       "a = Conv(x, w); c = Conv(x, v) pads=[1, 1, 1, 1]; y = Concat(a, c, x) axis=-3;",
       2},
      {"concat_constant",
       "w:8,6,1,1 z:2,3,9,10 v:4,11,1,1",
       "a = Conv(x, w); c = Concat(a, z) axis=1; y = Conv(c, v);",
       2},
      {"concat_rows", "w:6,6,1,1", "a = Conv(x, w); y = Concat(a, x) axis=2;", 2},
      {"resize",
       "w:4,6,1,1",
       "a = Conv(x, w); k = Constant() value_floats=[1.0, 1.0, 2.0, 1.0]; y = Resize(a, , k) "
       "mode=\"linear\";",
       2},
      {"pad",
       "w:4,6,1,1",
       "a = Conv(x, w); k = Constant() value_ints=[0, 1, 2, 0, 0, 0, 1, 3]; y = Pad(a, k);",
       2},
      {"transposes",
       "w:6,10,1,1 v:6,6,1,1",
       "t = Transpose(x) perm=[0, 3, 1, 2]; a = Conv(t, w); r = Relu(a); c = Conv(r, v); "
       "u = Transpose(c) perm=[0, 2, 3, 1]; y = Neg(u);",
       0},
      {"another_transpose",
       "w:4,6,1,1",
       "a = Conv(x, w); t = Transpose(a) perm=[2, 0, 3, 1]; y = Neg(t);",
       2},
      {"result_in_order", "w:4,6,1,1", "a = Conv(x, w); y = Transpose(a) perm=[0, 2, 3, 1];", 2},
      {"transposed_conv",
       "w:6,4,2,2 b:4",
       "a = ConvTranspose(x, w, b) strides=[2, 2]; y = Relu(a);",
       2},
      {"softmax_between",
       "w:8,6,1,1 v:4,8,1,1",
       "a = Conv(x, w); s = Softmax(a) axis=1; y = Conv(s, v);",
       4},
      {"clip",
       "w:8,6,1,1",
       "a = Conv(x, w); l = Constant() value_float=-0.5; h = Constant() value_float=0.75; "
       "y = Clip(a, l, h);",
       2},
      {"flatten",
       "w:8,6,1,1 v:8,5 b:5",
       "a = Conv(x, w); g = GlobalAveragePool(a); f = Flatten(g); m = MatMul(f, v); y = Add(m, b);",
       -1},
      {"product",
       "w:10,16 b:16 v:16,10 c:10",
       "m = MatMul(x, w); s = Add(b, m); g = Relu(s); n = MatMul(g, v); t = Add(n, c); y = Add(x, "
       "t);",
       0},
      {"product_and_bias_of_rows",
       "w:10,16 b:9,16",
       "m = MatMul(x, w); s = Add(m, b); y = Tanh(s);",
       0},
      {"product_broadcast",
       "w:10,16",
       "m = MatMul(x, w); p = ReduceMean(m) axes=[2]; s = Add(p, m); y = Sigmoid(s);",
       0},
  };
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) check(&cases[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(graphs_keep_their_results)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
