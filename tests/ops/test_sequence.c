/* Sequences and optionals: "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase",
 * "SequenceAt", "SequenceLength", "SplitToSequence", "ConcatFromSequence", "SequenceMap",
 * "Optional", "OptionalHasElement" and "OptionalGetElement"; and such values in the interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_model_text.h"
#include "harness/om_test_case.h"

static om_named_tensor floats(const char *name, int64_t count, float *data) {
  return (om_named_tensor){name, om_tensor_of(OM_DTYPE_F32, 1, &count, data)};
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

static void check_elem(const om_tensor *list, size_t index, size_t count, const float *right) {
  assert_true(index < om_tensor_elems(list));
  const om_tensor *elem = (const om_tensor *)list->data + index;
  assert_int_equal(elem->dtype, OM_DTYPE_F32);
  assert_int_equal(om_tensor_elems(elem), count);
  for (size_t i = 0; i < count; ++i) {
    assert_true(((const float *)elem->data)[i] == right[i]);
  }
}

/* [x, y] with w inserted at p and the last erased; its length; what stands at 1. */
static void lists_are_changed(void **state) {
  static const char text[] =
      "(x: f32[a], y: f32[b], w: f32[c], p: i64) -> s: seq f32[?], n, e {"
      "  one = Constant() value_int=1;"
      "  q = SequenceConstruct(x, y); r = SequenceInsert(q, w, p); s = SequenceErase(r);"
      "  n = SequenceLength(r); e = SequenceAt(r, one);"
      "}";
  static om_text_rig rig;
  float x[1] = {1}, y[2] = {2, 3}, w[3] = {4, 5, 6};
  int64_t p = 1;
  om_named_tensor outputs[] = {{.name = "s"}, {.name = "n"}, {.name = "e"}};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  om_named_tensor inputs[] = {
      floats("x", 1, x), floats("y", 2, y), floats("w", 3, w), integer("p", &p)};
  run(&rig, inputs, 4, outputs, 3);
  assert_int_equal(outputs[0].tensor.dtype, OM_DTYPE_SEQUENCE);
  assert_int_equal(om_tensor_elems(&outputs[0].tensor), 2);
  check_elem(&outputs[0].tensor, 0, 1, x);
  check_elem(&outputs[0].tensor, 1, 3, w);
  assert_int_equal(*(const int64_t *)outputs[1].tensor.data, 3);
  assert_int_equal(om_tensor_elems(&outputs[2].tensor), 3);

  p = -2; /* before the first */
  run(&rig, inputs, 4, outputs, 3);
  check_elem(&outputs[0].tensor, 0, 3, w);
  check_elem(&outputs[0].tensor, 1, 1, x);
  uint64_t before = om_session_get_statistics(rig.session).host_allocations;
  run(&rig, inputs, 4, outputs, 3);
  assert_int_equal(om_session_get_statistics(rig.session).host_allocations, before);

  p = 3;
  assert_int_equal(om_text_rig_run(&rig, inputs, 4, outputs, 3), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "The position 3 is outside a sequence of 2."));
  om_text_rig_close(&rig);
}

/* A sequence given, and one that is handed out: lent, and into the caller's memory. */
static void sequences_pass_the_interface(void **state) {
  static const char text[] =
      "(q: seq f32[?]) -> q, s: seq f32[?] {"
      "  s = SequenceMap(q) body={(e: f32[?]) -> f { f = Add(e, e); }};"
      "}";
  static om_text_rig rig;
  static uint64_t memory[128];
  float x[1] = {1}, y[2] = {2, 3};
  om_tensor parts[2] = {floats("", 1, x).tensor, floats("", 2, y).tensor};
  om_named_tensor input = {"q", om_sequence_of(2, parts)};
  om_named_tensor outputs[] = {{.name = "q"}, {.name = "s"}};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  const om_value_info *info = &om_model_get_info(rig.model)->inputs[0];
  assert_int_equal(info->dtype, OM_DTYPE_SEQUENCE);
  assert_non_null(info->elem);
  assert_int_equal(info->elem->dtype, OM_DTYPE_F32);
  run(&rig, &input, 1, outputs, 2);
  check_elem(&outputs[0].tensor, 1, 2, y);
  assert_ptr_not_equal(outputs[0].tensor.data, parts);
  check_elem(&outputs[1].tensor, 1, 2, (float[]){4, 6});

  size_t need = outputs[1].tensor.data_bytes;
  assert_true(need > 2 * sizeof(om_tensor) && need <= sizeof memory);
  outputs[1].tensor = (om_tensor){.data = memory, .data_bytes = need};
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &outputs[1], 1), OM_OK);
  assert_ptr_equal(outputs[1].tensor.data, memory);
  check_elem(&outputs[1].tensor, 0, 1, (float[]){2});
  outputs[1].tensor = (om_tensor){.data = memory, .data_bytes = need - 1};
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &outputs[1], 1), OM_E_INVALID_INPUT);

  input.tensor = om_sequence_of(0, NULL);
  run(&rig, &input, 1, outputs, 2);
  assert_int_equal(om_tensor_elems(&outputs[1].tensor), 0);
  om_text_rig_close(&rig);
}

static void wrong_sequences_are_refused(void **state) {
  static om_text_rig rig;
  float x[1] = {1};
  int64_t i = 0;
  om_tensor parts[2] = {floats("", 1, x).tensor, integer("", &i).tensor};
  om_named_tensor input = {"q", om_sequence_of(2, parts)};
  om_named_tensor output = {.name = "n"};
  (void)state;
  om_text_rig_open(&rig, "(q: seq f32[?]) -> n { n = SequenceLength(q); }", 17, NULL);
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &output, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "'q[1]' is int64, but the model wants float32"));
  parts[1] = om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){3}, NULL);
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &output, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "'q[1]' has no data"));
  input.tensor.rank = 0;
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &output, 1), OM_E_INVALID_INPUT);
  input.tensor = parts[0];
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &output, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "is float32, but the model wants sequence"));
  om_text_rig_close(&rig);
}

static void optionals_hold_something_or_nothing(void **state) {
  static const char text[] =
      "(o: opt f32[?]) -> h, y, e: opt f32[?] {"
      "  h = OptionalHasElement(o); d = Constant() value_float=7.0;"
      "  y = If(h) then_branch={() -> a { a = OptionalGetElement(o); }} else_branch={() -> d {}};"
      "  e = Optional();"
      "}";
  static om_text_rig rig;
  float x[2] = {1, 2};
  om_tensor elem = floats("", 2, x).tensor;
  om_named_tensor input = {"o", om_optional_of(&elem)};
  om_named_tensor outputs[] = {{.name = "h"}, {.name = "y"}, {.name = "e"}};
  (void)state;
  om_text_rig_open(&rig, text, 18, NULL);
  run(&rig, &input, 1, outputs, 3);
  assert_int_equal(*(const uint8_t *)outputs[0].tensor.data, 1);
  assert_int_equal(om_tensor_elems(&outputs[1].tensor), 2);
  assert_int_equal(outputs[2].tensor.dtype, OM_DTYPE_OPTIONAL);
  assert_int_equal(om_tensor_elems(&outputs[2].tensor), 0);
  input.tensor = om_optional_of(NULL);
  run(&rig, &input, 1, outputs, 3);
  assert_int_equal(*(const uint8_t *)outputs[0].tensor.data, 0);
  assert_int_equal(om_tensor_elems(&outputs[1].tensor), 1);
  om_text_rig_close(&rig);
}

/* Parts of every kind of size, along every axis, and strings among them. */
static void tensors_are_split_and_joined(void **state) {
  static const char text[] =
      "(x: f32[4,3], t: str[3], z: i64) -> a, b, c, d, u {"
      "  k = Constant() value_ints=[1, 2]; i0 = Constant() value_int=0; i1 = Constant() "
      "value_int=1;"
      "  p = SplitToSequence(x, z); a = SequenceAt(p, i1);"
      "  q = SplitToSequence(x, k) axis=-1; b = SequenceAt(q, i1);"
      "  r = SplitToSequence(x) keepdims=0; c = ConcatFromSequence(r) axis=1 new_axis=1;"
      "  s = SplitToSequence(t, k); d = SequenceAt(s, i1);"
      "  e = SequenceEmpty(); f = SequenceInsert(e, t); g = SequenceInsert(f, d, i0);"
      "  u = ConcatFromSequence(g) axis=0;"
      "}";
  static om_text_rig rig;
  float x[12];
  int64_t z = 3;
  om_string t[3] = {{"a", 1}, {"bc", 2}, {"", 0}};
  om_named_tensor outputs[] = {
      {.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}, {.name = "u"}};
  (void)state;
  for (int i = 0; i < 12; ++i) x[i] = (float)i;
  om_text_rig_open(&rig, text, 17, NULL);
  om_named_tensor inputs[] = {{"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){4, 3}, x)},
                              {"t", om_tensor_of(OM_DTYPE_STRING, 1, (int64_t[]){3}, t)},
                              integer("z", &z)};
  run(&rig, inputs, 3, outputs, 5);
  assert_int_equal(outputs[0].tensor.dims[0], 1); /* 3 rows, then the rest */
  assert_true(((const float *)outputs[0].tensor.data)[0] == 9);
  assert_int_equal(outputs[1].tensor.dims[1], 2);
  assert_true(((const float *)outputs[1].tensor.data)[2] == 4);
  assert_int_equal(outputs[2].tensor.dims[0], 3); /* transposed */
  assert_true(((const float *)outputs[2].tensor.data)[1] == 3);
  const om_string *d = outputs[3].tensor.data;
  assert_int_equal(om_tensor_elems(&outputs[3].tensor), 2);
  assert_int_equal(d[0].bytes, 2);
  assert_int_equal(memcmp(d[0].data, "bc", 2), 0);
  const om_string *u = outputs[4].tensor.data;
  assert_int_equal(om_tensor_elems(&outputs[4].tensor), 5);
  assert_int_equal(memcmp(u[0].data, "bc", 2), 0);
  assert_int_equal(memcmp(u[2].data, "a", 1), 0);
  z = 0;
  assert_int_equal(om_text_rig_run(&rig, inputs, 3, outputs, 5), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "Parts of 0 elements"));
  om_text_rig_close(&rig);
}

/* A sequence that grows in a loop. */
static void loops_carry_sequences(void **state) {
  static const char text[] =
      "(m: i64, x: f32[n]) -> y {"
      "  e = SequenceEmpty();"
      "  s = Loop(m, , e) body={(i: i64, k: bool, a: seq f32[?]) -> k, b: seq f32[?] {"
      "    f = Cast(i) to=1; g = Add(x, f); b = SequenceInsert(a, g);"
      "  }};"
      "  y = ConcatFromSequence(s) axis=0 new_axis=1;"
      "}";
  static om_text_rig rig;
  float x[2] = {1, 2};
  int64_t m = 40;
  om_named_tensor output = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  om_named_tensor inputs[] = {integer("m", &m), floats("x", 2, x)};
  run(&rig, inputs, 2, &output, 1);
  assert_int_equal(output.tensor.dims[0], 40);
  assert_true(((const float *)output.tensor.data)[79] == 41);
  uint64_t before = om_session_get_statistics(rig.session).host_allocations;
  run(&rig, inputs, 2, &output, 1);
  assert_int_equal(om_session_get_statistics(rig.session).host_allocations, before);
  m = 0;
  assert_int_equal(om_text_rig_run(&rig, inputs, 2, &output, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "The sequence is empty."));
  om_text_rig_close(&rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_are_changed),
      cmocka_unit_test(sequences_pass_the_interface),
      cmocka_unit_test(wrong_sequences_are_refused),
      cmocka_unit_test(optionals_hold_something_or_nothing),
      cmocka_unit_test(tensors_are_split_and_joined),
      cmocka_unit_test(loops_carry_sequences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
