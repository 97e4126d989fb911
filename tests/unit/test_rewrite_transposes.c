/* Transposes that are saved, in models of a few nodes: how many are left, and that the bits are
 * those of the model as it is. "As it is" is a session that returns every value, which keeps each
 * Transpose where it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_fault.h"
#include "harness/om_model_text.h"
#include "harness/om_test_compare.h"
#include "onemodel/gpu.h"

enum { MOST_INPUTS = 3, MOST_OUTPUTS = 2, MOST_VALUES = 16 };

typedef struct model_case {
  const char *name;
  const char *graph;
  const char *values; /* that the second session returns */
  size_t inputs;      /* x0, x1, ...: float32 [2, 3, 4, 5] each, but for the last one's dims */
  int64_t last_dims[4];
  size_t left; /* Transposes */
} model_case;

#define IN   "(x0: f32[2, 3, 4, 5]) -> "
#define TWO  "(x0: f32[2, 3, 4, 5], x1: f32[2, 3, 4, 5]) -> "
#define LAST " perm=[0, 2, 3, 1]; "
#define BACK " perm=[0, 3, 1, 2]; "

static const model_case cases[] = {
    {"chain",
     IN "y0 { a = Transpose(x0)" LAST
        "c = Constant() value_floats=[1.5, -2.0, 0.25]; b = Add(a, c); "
        "d = Relu(b); y0 = Transpose(d)" BACK "}",
     "a b d",
     1,
     {2, 3, 4, 5},
     0},
    {"scalars",
     IN "y0 { a = Transpose(x0)" LAST
        "l = Constant() value_float=-0.5; h = Constant() value_float=0.5; "
        "m = Constant() value_floats=[3.0]; b = Clip(a, l, h); d = Mul(m, b); e = Greater(d, a); "
        "f = Where(e, d, a); g = LeakyRelu(f) alpha=0.2; y0 = Transpose(g)" BACK "}",
     "a b d e f g",
     1,
     {2, 3, 4, 5},
     0},
    {"join",
     TWO
     "y0 { a = Transpose(x0)" LAST "b = Transpose(x1)" LAST
     "c = Concat(a, b) axis=-1; p = Constant() value_ints=[0, 1, 0, 0, 0, 0, 2, 1]; d = Pad(c, p); "
     "s = Constant() value_ints=[1, 0]; e = Constant() value_ints=[7, 9]; k = Constant() "
     "value_ints=[-1, 1]; f = Slice(d, s, e, k); y0 = Transpose(f)" BACK "}",
     "a b c d f",
     2,
     {2, 3, 4, 5},
     0},
    {"split",
     IN "y0, y1 { a = Transpose(x0)" LAST "b, c = Split(a) axis=1; d = Tanh(b); e = Sqrt(c); y0 = "
        "Transpose(d)" BACK "y1 = Transpose(e)" BACK "}",
     "a b c d e",
     1,
     {2, 3, 4, 5},
     0},
    {"softmax",
     IN "y0 { a = Transpose(x0)" LAST "b = Softmax(a) axis=3; y0 = Transpose(b)" BACK "}",
     "a b",
     1,
     {2, 3, 4, 5},
     0},
    {"quantized",
     IN "y0 { a = Transpose(x0)" LAST "s = Constant() value_float=0.125; t = Constant() "
        "value_floats=[0.5, 0.25, 0.0625]; b = QuantizeLinear(a, s); c = DequantizeLinear(b, t) "
        "axis=3; y0 = Transpose(c)" BACK "}",
     "a b c",
     1,
     {2, 3, 4, 5},
     0},
    {"mean_keeps",
     IN "y0 { a = Transpose(x0)" LAST "b = ReduceMean(a) axes=[1, -2] keepdims=1; c = Mul(b, a); "
        "y0 = Transpose(c)" BACK "}",
     "a b c",
     1,
     {2, 3, 4, 5},
     0},
    {"mean_ends",
     IN "y0 { a = Transpose(x0)" LAST "b = Neg(a); y0 = ReduceMean(b) axes=[1, 2] keepdims=0; }",
     "a b",
     1,
     {2, 3, 4, 5},
     0},
    {"sum_of_another_order", /* of height, width and channels: other bits */
     IN "y0 { a = Transpose(x0)" LAST "y0 = ReduceMean(a) axes=[1, 2, 3] keepdims=0; }",
     "a",
     1,
     {2, 3, 4, 5},
     1},
    {"result_in_another_order",
     IN "y0 { a = Transpose(x0)" LAST "y0 = ReduceMean(a) axes=[1] keepdims=0; }",
     "a",
     1,
     {2, 3, 4, 5},
     1},
    {"nothing_to_save",
     IN "y0 { a = Transpose(x0)" LAST "b = Relu(a); c = Neg(b); y0 = Abs(c); }",
     "a b c",
     1,
     {2, 3, 4, 5},
     1},
    {"plain_value_wanted_too", /* two go, one comes */
     IN "y0, y1 { a = Transpose(x0)" LAST "y0 = Relu(a); b = Neg(y0); y1 = Transpose(b)" BACK "}",
     "a b",
     1,
     {2, 3, 4, 5},
     1},
    {"one_operand_not_turned", /* one goes, one would come for x1 */
     "(x0: f32[2, 3, 4, 5], x1: f32[2, 4, 5, 3]) -> y0 { a = Transpose(x0)" LAST
     "b = Add(a, x1); y0 = Relu(b); }",
     "a b",
     2,
     {2, 4, 5, 3},
     1},
    {"pairs",
     IN "y0, y1 { a = Transpose(x0)" LAST "y0 = Transpose(a)" BACK
        "b = Transpose(a) perm=[0, 2, 1, 3]; "
        "y1 = Relu(b); }",
     "a b",
     1,
     {2, 3, 4, 5},
     1},
    {"unknown_rank",
     "(x0: f32[2, 3, 4, 5], x1: f32[?]) -> y0 { a = Transpose(x0)" LAST "b = Add(a, x1); y0 = "
     "Transpose(b)" BACK "}",
     "a b",
     2,
     {2, 4, 5, 3},
     2},
    {"convolutions", /* the ends of the model are channels last */
     "(x0: f32[2, 3, 4, 5], x1: f32[5, 5, 1, 1]) -> y0 { a = Transpose(x0)" BACK "b = Conv(a, x1); "
     "c = Transpose(b)" LAST "d = Relu(c); e = Transpose(d)" BACK "f = Conv(e, x1); g = "
     "Transpose(f)" LAST "h = Add(g, d); y0 = Relu(h); }",
     "a b c d e f g h",
     2,
     {5, 5, 1, 1},
     2},
};

static om_named_tensor make_input(const model_case *c, size_t index) {
  static const char *const names[MOST_INPUTS] = {"x0", "x1", "x2"};
  static const int64_t dims[4] = {2, 3, 4, 5};
  om_named_tensor input = {
      names[index],
      om_tensor_of(OM_DTYPE_F32, 4, index + 1 == c->inputs ? c->last_dims : dims, NULL)};
  float *data = input.tensor.data = malloc(input.tensor.data_bytes);
  uint32_t seed = (uint32_t)index + 1;
  assert_non_null(data);
  for (size_t i = 0; i < om_tensor_elems(&input.tensor); ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
  }
  return input;
}

static size_t count_transposes(om_text_rig *rig, const om_named_tensor *inputs, size_t count) {
  const om_diagnostics *found = NULL;
  size_t left = 0;
  if (om_session_diagnose(rig->session, inputs, count, &found, &rig->error) != OM_OK) {
    fail_msg("%s", rig->error.message);
  }
  for (size_t i = 0; i < found->node_count; ++i) {
    left += found->nodes[i].place != OM_PLACE_FOLDED &&
            strcmp(found->nodes[i].op_type, "Transpose") == 0;
  }
  return left;
}

static void run(om_text_rig *rig,
                const om_named_tensor *inputs,
                size_t input_count,
                om_named_tensor *outputs,
                size_t output_count) {
  for (size_t i = 0; i < output_count; ++i) outputs[i] = (om_named_tensor){.name = i ? "y1" : "y0"};
  if (om_text_rig_run(rig, inputs, input_count, outputs, output_count) != OM_OK) {
    fail_msg("%s", rig->error.message);
  }
}

/* Splits the names in place; returns their count. */
static size_t split_names(char *text, const char *names[MOST_VALUES]) {
  size_t count = 0;
  for (char *at = strtok(text, " "); at; at = strtok(NULL, " ")) names[count++] = at;
  return count;
}

/* The session's, with a device that computes nothing: the plan holds there too. */
static void check_null_device(const model_case *c, const om_named_tensor *inputs) {
  om_text_rig rig;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_named_tensor results[MOST_OUTPUTS];
  gpu.backend = "null";
  options.provider = om_gpu_provider();
  options.provider_options = &gpu;
  om_text_rig_open(&rig, c->graph, 13, &options);
  run(&rig, inputs, c->inputs, results, strstr(c->graph, "y1") ? 2 : 1);
  assert_int_equal(count_transposes(&rig, inputs, c->inputs), c->left);
  om_text_rig_close(&rig);
}

static void saves_transposes(void **state) {
  const model_case *c = *state;
  const char *names[MOST_VALUES];
  char values[64];
  om_text_rig saved, as_it_is;
  om_named_tensor inputs[MOST_INPUTS], results[MOST_OUTPUTS], expected[MOST_OUTPUTS];
  const size_t outputs = strstr(c->graph, "y1") ? 2 : 1;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  for (size_t i = 0; i < c->inputs; ++i) inputs[i] = make_input(c, i);
  snprintf(values, sizeof values, "%s", c->values);
  options.mode = OM_MODE_EXACT;
  options.extra_output_count = split_names(values, names);
  options.extra_outputs = names;
  om_text_rig_open(&saved, c->graph, 13, NULL);
  om_text_rig_open(&as_it_is, c->graph, 13, &options);
  run(&saved, inputs, c->inputs, results, outputs);
  run(&as_it_is, inputs, c->inputs, expected, outputs);
  assert_int_equal(count_transposes(&saved, inputs, c->inputs), c->left);
  assert_true(count_transposes(&as_it_is, inputs, c->inputs) >= c->left);
  for (size_t i = 0; i < outputs; ++i) {
    size_t elem = 0;
    assert_true(om_tensor_same(&results[i].tensor, &expected[i].tensor, &elem));
  }
  om_text_rig_close(&saved);
  om_text_rig_close(&as_it_is);
  check_null_device(c, inputs);
  for (size_t i = 0; i < c->inputs; ++i) free(inputs[i].tensor.data);
}

/* Whatever allocation fails, the session is not made and nothing stays behind. */
static void every_allocation_may_fail(void **state) {
  om_text_rig rig;
  om_error error = {0};
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_text_rig_open(&rig, cases[i].graph, 13, NULL);
    for (size_t fail_at = 0;; ++fail_at) {
      om_fault fault = {.fail_at = fail_at};
      om_allocator allocator = om_fault_allocator(&fault);
      om_session_options options = OM_SESSION_OPTIONS_INIT;
      om_session *session = NULL;
      options.allocator = &allocator;
      options.thread_count = 1;
      const om_status st = om_session_create(rig.model, &options, &session, &error);
      om_session_destroy(session);
      assert_int_equal(om_fault_live_blocks(&fault), 0);
      assert_int_equal(st, om_fault_has_failed(&fault) ? OM_E_OUT_OF_MEMORY : OM_OK);
      if (!om_fault_has_failed(&fault)) break;
    }
    om_text_rig_close(&rig);
  }
}

int main(void) {
  struct CMUnitTest tests[OM_COUNT_OF(cases) + 1];
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    tests[i] = (struct CMUnitTest){
        cases[i].name, saves_transposes, NULL, NULL, (model_case *)(uintptr_t)&cases[i]};
  }
  tests[OM_COUNT_OF(cases)] = (struct CMUnitTest)cmocka_unit_test(every_allocation_may_fail);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
