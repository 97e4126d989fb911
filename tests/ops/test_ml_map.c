/* Maps: "CastMap", "DictVectorizer" and "ZipMap" of ai.onnx.ml; and maps in the interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_model_text.h"
#include "harness/om_test_case.h"

static om_tensor list(om_dtype dtype, int64_t count, const void *data) {
  om_tensor tensor = om_tensor_of(dtype, 1, &count, NULL);
  memcpy(&tensor.data, &data, sizeof data);
  return tensor;
}

static void run(om_text_rig *rig, om_tensor *map, om_named_tensor *output) {
  om_named_tensor input = {"m", om_map_of(map)};
  output->tensor = (om_tensor){0};
  if (om_text_rig_run(rig, &input, 1, output, 1) != OM_OK) fail_msg("%s", rig->error.message);
}

static void check_strings(const om_tensor *tensor, const char *const *right, size_t count) {
  assert_int_equal(tensor->dtype, OM_DTYPE_STRING);
  assert_int_equal(om_tensor_elems(tensor), count);
  for (size_t i = 0; i < count; ++i) {
    assert_true(om_string_is(((const om_string *)tensor->data)[i], right[i]));
  }
}

static const int64_t keys[] = {3, 1, 2, 0};
static const float values[] = {1.5f, -2.7f, 1e20f, 4.0f};

static void maps_become_floats_by_their_keys(void **state) {
  static om_text_rig rig;
  om_tensor map[2] = {list(OM_DTYPE_I64, 4, keys), list(OM_DTYPE_F32, 4, values)};
  om_named_tensor y = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig, "(m: map i64 f32) -> y { y = ai.onnx.ml:CastMap(m); }", 17, NULL);
  const om_value_info *info = &om_model_get_info(rig.model)->inputs[0];
  assert_int_equal(info->dtype, OM_DTYPE_MAP);
  assert_int_equal(info->key_dtype, OM_DTYPE_I64);
  assert_int_equal(info->elem->dtype, OM_DTYPE_F32);
  run(&rig, map, &y);
  assert_int_equal(y.tensor.rank, 2);
  assert_int_equal(y.tensor.dims[0], 1);
  assert_int_equal(y.tensor.dims[1], 4);
  assert_memory_equal(y.tensor.data, ((float[]){4.0f, -2.7f, 1e20f, 1.5f}), 4 * sizeof(float));
  uint64_t before = om_session_get_statistics(rig.session).host_allocations;
  run(&rig, map, &y);
  assert_int_equal(om_session_get_statistics(rig.session).host_allocations, before);
  map[0].dims[0] = map[1].dims[0] = 0;
  run(&rig, map, &y);
  assert_int_equal(om_tensor_elems(&y.tensor), 0);
  om_text_rig_close(&rig);
}

static void maps_become_integers_and_text(void **state) {
  static om_text_rig rig;
  om_tensor map[2] = {list(OM_DTYPE_I64, 4, keys), list(OM_DTYPE_F32, 4, values)};
  om_named_tensor y = {.name = "y"};
  (void)state;
  om_text_rig_open(
      &rig, "(m: map i64 f32) -> y { y = ai.onnx.ml:CastMap(m) cast_to=\"TO_INT64\"; }", 17, NULL);
  run(&rig, map, &y);
  assert_memory_equal(y.tensor.data, ((int64_t[]){4, -2, INT64_MAX, 1}), 4 * sizeof(int64_t));
  om_text_rig_close(&rig);
  om_text_rig_open(
      &rig, "(m: map i64 f32) -> y { y = ai.onnx.ml:CastMap(m) cast_to=\"TO_STRING\"; }", 17, NULL);
  run(&rig, map, &y);
  check_strings(&y.tensor, (const char *[]){"4.0", "-2.7", "1e+20", "1.5"}, 4);
  om_text_rig_close(&rig);
}

static void sparse_maps_have_gaps(void **state) {
  static const char text[] =
      "(m: map i64 str) -> y {"
      "  y = ai.onnx.ml:CastMap(m) map_form=\"SPARSE\" max_map=4 cast_to=\"TO_STRING\";"
      "}";
  static const char number[] =
      "(m: map i64 str) -> y { y = ai.onnx.ml:CastMap(m) map_form=\"SPARSE\" max_map=4; }";
  static om_text_rig rig;
  om_string words[] = {{"7", 1}, {"x", 1}};
  om_tensor map[2] = {list(OM_DTYPE_I64, 2, (int64_t[]){3, 1}), list(OM_DTYPE_STRING, 2, words)};
  om_named_tensor input = {"m", om_map_of(map)}, y = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  run(&rig, map, &y);
  check_strings(&y.tensor, (const char *[]){"0", "x", "0", "7"}, 4);
  map[0] = list(OM_DTYPE_I64, 2, (int64_t[]){4, 1});
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &y, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "The key 4 is outside"));
  om_text_rig_close(&rig);
  om_text_rig_open(&rig, number, 17, NULL);
  map[0] = list(OM_DTYPE_I64, 2, (int64_t[]){3, 1});
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &y, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "\"x\", is not a number"));
  words[1].data = "-1";
  words[1].bytes = 2;
  run(&rig, map, &y);
  assert_memory_equal(y.tensor.data, ((float[]){0, -1, 0, 7}), 4 * sizeof(float));
  om_text_rig_close(&rig);
}

static void words_have_places(void **state) {
  static const char text[] =
      "(m: map str i64) -> y {"
      "  y = ai.onnx.ml:DictVectorizer(m) string_vocabulary=[\"a\", \"c\", \"b\"];"
      "}";
  static const char numbers[] =
      "(m: map i64 f32) -> y { y = ai.onnx.ml:DictVectorizer(m) int64_vocabulary=[2, 3]; }";
  static om_text_rig rig;
  const om_string words[] = {{"b", 1}, {"a", 1}, {"z", 1}};
  om_tensor map[2] = {list(OM_DTYPE_STRING, 3, words), list(OM_DTYPE_I64, 3, (int64_t[]){5, 6, 7})};
  om_named_tensor input = {"m", om_map_of(map)}, y = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  run(&rig, map, &y);
  assert_int_equal(y.tensor.rank, 1);
  assert_memory_equal(y.tensor.data, ((int64_t[]){6, 0, 5}), 3 * sizeof(int64_t));
  map[0] = list(OM_DTYPE_I64, 3, keys);
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &y, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "'m[0]' is int64, but the model wants string"));
  om_text_rig_close(&rig);
  om_text_rig_open(&rig, numbers, 17, NULL);
  om_tensor other[2] = {list(OM_DTYPE_I64, 4, keys), list(OM_DTYPE_F32, 4, values)};
  run(&rig, other, &y);
  assert_memory_equal(y.tensor.data, ((float[]){1e20f, 1.5f}), 2 * sizeof(float));
  om_text_rig_close(&rig);
  om_text_rig_expect(
      "(m: map i64 f32) -> y { y = ai.onnx.ml:DictVectorizer(m); }", 17, "two vocabularies");
}

/* Rows become maps, which lie in one piece; one of them is taken out, and its values again. */
static void rows_become_maps(void **state) {
  static const char text[] =
      "(x: f32[2,3], i: i64) -> z: seq map str f32, y {"
      "  z = ai.onnx.ml:ZipMap(x) classlabels_strings=[\"a\", \"bc\", \"d\"];"
      "  m = SequenceAt(z, i); c = Identity(m);"
      "  y = ai.onnx.ml:DictVectorizer(c) string_vocabulary=[\"d\", \"a\"];"
      "}";
  static om_text_rig rig;
  static const int64_t dims[] = {2, 3};
  float x[] = {1, 2, 3, 4, 5, 6};
  int64_t i = 1;
  om_named_tensor inputs[] = {{"x", om_tensor_of(OM_DTYPE_F32, 2, dims, x)},
                              {"i", om_tensor_of(OM_DTYPE_I64, 0, NULL, &i)}};
  om_named_tensor outputs[] = {{.name = "z"}, {.name = "y"}};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  if (om_text_rig_run(&rig, inputs, 2, outputs, 2) != OM_OK) fail_msg("%s", rig.error.message);
  assert_int_equal(outputs[0].tensor.dtype, OM_DTYPE_SEQUENCE);
  assert_int_equal(om_tensor_elems(&outputs[0].tensor), 2);
  const om_tensor *map = (const om_tensor *)outputs[0].tensor.data + 1;
  assert_int_equal(map->dtype, OM_DTYPE_MAP);
  const om_tensor *parts = map->data;
  check_strings(&parts[0], (const char *[]){"a", "bc", "d"}, 3);
  assert_memory_equal(parts[1].data, x + 3, 3 * sizeof *x);
  assert_memory_equal(outputs[1].tensor.data, ((float[]){6, 4}), 2 * sizeof *x);
  om_text_rig_close(&rig);
  om_text_rig_expect(
      "(x: f32[2,3]) -> z: seq map i64 f32 {"
      "  z = ai.onnx.ml:ZipMap(x) classlabels_int64s=[1, 2]; }",
      17,
      "3 columns for 2 labels");
}

static void what_is_no_map_is_refused(void **state) {
  static om_text_rig rig;
  om_tensor map[2] = {list(OM_DTYPE_I64, 4, keys), list(OM_DTYPE_F32, 3, values)};
  om_named_tensor input = {"m", om_map_of(map)}, y = {.name = "y"};
  (void)state;
  om_text_rig_open(&rig, "(m: map i64 f32) -> y { y = ai.onnx.ml:CastMap(m); }", 17, NULL);
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &y, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "'m' is no map"));
  map[1] = list(OM_DTYPE_I64, 4, keys);
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &y, 1), OM_E_INVALID_INPUT);
  assert_non_null(strstr(rig.error.message, "'m[1]' is int64, but the model wants float32"));
  map[1] = list(OM_DTYPE_F32, 4, NULL);
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &y, 1), OM_E_INVALID_INPUT);
  input.tensor.dims[0] = 1;
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &y, 1), OM_E_INVALID_INPUT);
  om_text_rig_close(&rig);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(maps_become_floats_by_their_keys),
      cmocka_unit_test(maps_become_integers_and_text),
      cmocka_unit_test(sparse_maps_have_gaps),
      cmocka_unit_test(words_have_places),
      cmocka_unit_test(rows_become_maps),
      cmocka_unit_test(what_is_no_map_is_refused),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
