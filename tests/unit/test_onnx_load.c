/* The loader: what it makes of models. test_onnx_refused.c has what it says about bad ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "harness/om_message.h"
#include "onnx/om_model.h"
#include "onnx/om_tensor_proto.h"

static om_model *load(const om_message *bytes) {
  om_error error;
  om_model *model = NULL;
  om_status st = om_model_load_memory(bytes->bytes, bytes->count, NULL, &model, &error);
  if (st != OM_OK) fail_msg("%s: %s", om_status_name(st), error.message);
  return model;
}

static const om_value *find_value(const om_model *model, const char *name) {
  const om_graph *graph = om_model_get_graph(model);
  for (size_t i = 0; i < graph->value_count; ++i) {
    if (strcmp(graph->values[i].name, name) == 0) return &graph->values[i];
  }
  fail_msg("no value '%s'", name);
  return NULL;
}

/* ---- Models ---- */

static void models_are_described(void **state) {
  om_message graph = om_message_small_graph();
  om_message bytes = om_message_model(&graph);
  (void)state;
  om_message_text(&bytes, 2, "a producer");
  om_model *model = load(&bytes);
  const om_model_info *info = om_model_get_info(model);
  assert_int_equal(info->ir_version, 8);
  assert_string_equal(info->producer, "a producer");
  assert_int_equal(info->opset_count, 1);
  assert_string_equal(info->opsets[0].domain, "");
  assert_int_equal(info->opsets[0].version, 13);
  assert_int_equal(info->node_count, 1);
  assert_int_equal(info->weight_count, 1);
  assert_int_equal(info->weight_bytes, 16);
  assert_int_equal(info->file_bytes, bytes.count);
  assert_int_equal(info->input_count, 1);
  assert_string_equal(info->inputs[0].name, "x");
  assert_int_equal(info->inputs[0].dtype, OM_DTYPE_F32);
  assert_true(info->inputs[0].has_rank);
  assert_int_equal(info->inputs[0].dims[0], 4);
  assert_int_equal(info->output_count, 1);
  om_node_info node = om_model_get_node(model, 0);
  assert_string_equal(node.name, "my_add");
  assert_string_equal(node.op_type, "Add");
  assert_string_equal(node.input_names[1], "w");
  assert_string_equal(node.output_names[0], "y");
  om_model_destroy(model);
  om_model_destroy(NULL);
}

static void initializers_are_no_inputs(void **state) {
  om_message graph = om_message_small_graph();
  om_message w = om_message_value("w", 4); /* as files before IR version 4 have it */
  (void)state;
  om_message_nest(&graph, 11, &w);
  om_message bytes = om_message_model(&graph);
  om_model *model = load(&bytes);
  assert_int_equal(om_model_get_info(model)->input_count, 1);
  assert_false(find_value(model, "w")->is_input);
  assert_non_null(find_value(model, "w")->constant);
  om_model_destroy(model);
}

static void symbols_and_unknown_extents_are_kept(void **state) {
  om_message dims[3] = {{.count = 0}, {.count = 0}, {.count = 0}};
  om_message shape = {.count = 0}, tensor = {.count = 0}, type = {.count = 0}, x = {.count = 0};
  om_message graph = {.count = 0};
  om_message node = om_message_node("Relu", NULL, "x", "y");
  (void)state;
  om_message_text(&dims[0], 2, "batch");
  om_message_number(&dims[1], 1, -1);
  for (size_t i = 0; i < 3; ++i) om_message_nest(&shape, 1, &dims[i]);
  om_message_number(&tensor, 1, OM_DTYPE_F16);
  om_message_nest(&tensor, 2, &shape);
  om_message_nest(&type, 1, &tensor);
  om_message_text(&x, 1, "x");
  om_message_nest(&x, 2, &type);
  om_message_nest(&graph, 1, &node);
  om_message_nest(&graph, 11, &x);
  om_message bytes = om_message_model(&graph);
  om_model *model = load(&bytes);
  const om_value_info *info = om_model_get_info(model)->inputs;
  assert_int_equal(info->dtype, OM_DTYPE_F16);
  assert_int_equal(info->rank, 3);
  for (size_t i = 0; i < 3; ++i) assert_int_equal(info->dims[i], -1);
  assert_string_equal(info->dim_names[0], "batch");
  assert_null(info->dim_names[1]);
  assert_string_equal(om_model_get_node(model, 0).name, "Relu_0");
  om_model_destroy(model);
}

static void absent_operands_are_kept_apart(void **state) {
  om_message graph = {.count = 0};
  om_message node = om_message_node("Clip", "clip", "x,,m", "y");
  om_message m = om_message_tensor("m", 1);
  om_message x = om_message_value("x", 4);
  (void)state;
  om_message_nest(&graph, 1, &node);
  om_message_nest(&graph, 5, &m);
  om_message_nest(&graph, 11, &x);
  om_message bytes = om_message_model(&graph);
  om_model *model = load(&bytes);
  const om_graph *loaded = om_model_get_graph(model);
  assert_int_equal(loaded->nodes[0].input_count, 3);
  assert_int_equal(loaded->nodes[0].inputs[1], OM_NO_VALUE);
  assert_string_equal(om_model_get_node(model, 0).input_names[1], "");
  om_model_destroy(model);
}

static om_model *load_constant(const char *name, int kind, const om_message *value) {
  om_message graph = {.count = 0};
  om_message node = om_message_node("Constant", "my_constant", "", "c");
  node.count = 0; /* no inputs at all */
  om_message_text(&node, 2, "c");
  om_message_text(&node, 4, "Constant");
  om_message_attr(&node, name, kind, value);
  om_message c = om_message_value("c", 1);
  om_message_nest(&graph, 1, &node);
  om_message_nest(&graph, 12, &c);
  om_message bytes = om_message_model(&graph);
  /* The model reads from these bytes as long as it lives. */
  static om_message kept;
  kept = bytes;
  return load(&kept);
}

static void constant_nodes_become_constants(void **state) {
  om_message value = {.count = 0};
  (void)state;
  om_message_float(&value, 2, 2.5f);
  om_model *model = load_constant("value_float", OM_ATTR_FLOAT, &value);
  const om_tensor *constant = find_value(model, "c")->constant;
  assert_int_equal(constant->dtype, OM_DTYPE_F32);
  assert_int_equal(constant->rank, 0);
  assert_true(*(const float *)constant->data == 2.5f);
  assert_int_equal(om_model_get_info(model)->node_count, 0);
  assert_int_equal(om_model_get_info(model)->weight_count, 1);
  om_model_destroy(model);

  value.count = 0;
  om_message_number(&value, 8, 5);                /* not packed */
  om_message_bytes(&value, 8, "\x06\x07", 2);     /* packed */
  model = load_constant("value_ints", 0, &value); /* old files do not say the kind */
  constant = find_value(model, "c")->constant;
  assert_int_equal(constant->dtype, OM_DTYPE_I64);
  assert_int_equal(constant->dims[0], 3);
  for (size_t i = 0; i < 3; ++i) assert_int_equal(((const int64_t *)constant->data)[i], 5 + (int)i);
  om_model_destroy(model);

  value.count = 0;
  om_message_text(&value, 9, "ab");
  om_message_text(&value, 9, "");
  model = load_constant("value_strings", OM_ATTR_STRINGS, &value);
  constant = find_value(model, "c")->constant;
  assert_int_equal(constant->dtype, OM_DTYPE_STRING);
  assert_true(om_string_is(((const om_string *)constant->data)[0], "ab"));
  assert_true(om_string_is(((const om_string *)constant->data)[1], ""));
  om_model_destroy(model);

  value.count = 0;
  om_message tensor = om_message_tensor("t", 3);
  om_message_nest(&value, 5, &tensor);
  model = load_constant("value", OM_ATTR_TENSOR, &value);
  assert_true(((const float *)find_value(model, "c")->constant->data)[2] == 3.0f);
  om_model_destroy(model);
}

static void sparse_constants_are_dense(void **state) {
  const int64_t positions[] = {1, 4};
  om_message values = om_message_tensor("v", 2);
  om_message indices = {.count = 0}, sparse = {.count = 0}, value = {.count = 0};
  (void)state;
  om_message_number(&indices, 1, 2);
  om_message_number(&indices, 2, OM_DTYPE_I64);
  om_message_bytes(&indices, 9, positions, sizeof positions);
  om_message_nest(&sparse, 1, &values);
  om_message_nest(&sparse, 2, &indices);
  om_message_number(&sparse, 3, 2);
  om_message_number(&sparse, 3, 3);
  om_message_nest(&value, 22, &sparse);
  om_model *model = load_constant("sparse_value", 11, &value);
  const om_tensor *constant = find_value(model, "c")->constant;
  const float expected[] = {0, 1, 0, 0, 2, 0};
  assert_int_equal(constant->rank, 2);
  assert_memory_equal(constant->data, expected, sizeof expected);
  om_model_destroy(model);
}

/* ---- Tensors ---- */

static om_status read_tensor(om_ctx *ctx, om_pool *pool, const om_message *bytes, om_tensor *out) {
  om_string name;
  om_tensor_reading how = {.pool = pool, .align_below_bytes = SIZE_MAX};
  om_string range = {(const char *)bytes->bytes, bytes->count};
  return om_tensor_proto_read(ctx, &how, range, out, &name);
}

typedef struct typed_case {
  om_dtype dtype;
  uint32_t field;
  int64_t values[3];
  size_t elems;
  const char *bytes; /* what must come out */
  size_t byte_count;
} typed_case;

static void numbers_in_lists_are_decoded(void **state) {
  static const typed_case cases[] = {
      {OM_DTYPE_U8, 5, {1, 255, 7}, 3, "\x01\xff\x07", 3},
      {OM_DTYPE_I8, 5, {-128, 127, -1}, 3, "\x80\x7f\xff", 3},
      {OM_DTYPE_U16, 5, {1, 65535}, 2, "\x01\x00\xff\xff", 4},
      {OM_DTYPE_I16, 5, {-2, 256}, 2, "\xfe\xff\x00\x01", 4},
      {OM_DTYPE_I32, 5, {-2}, 1, "\xfe\xff\xff\xff", 4},
      {OM_DTYPE_BOOL, 5, {1, 0}, 2, "\x01\x00", 2},
      {OM_DTYPE_F16, 5, {0x3c00}, 1, "\x00\x3c", 2},
      {OM_DTYPE_BF16, 5, {0xbf80}, 1, "\x80\xbf", 2},
      {OM_DTYPE_U4, 5, {0x21, 0x03}, 3, "\x21\x03", 2},
      {OM_DTYPE_I64, 7, {-2}, 1, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8},
      {OM_DTYPE_U32, 11, {4294967295}, 1, "\xff\xff\xff\xff", 4},
      {OM_DTYPE_U64, 11, {-1}, 1, "\xff\xff\xff\xff\xff\xff\xff\xff", 8},
  };
  om_error error;
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    const typed_case *c = &cases[i];
    om_message bytes = {.count = 0};
    om_tensor tensor;
    om_pool pool = {0};
    size_t count = c->dtype == OM_DTYPE_U4 ? 2 : c->elems;
    om_error_clear(&error);
    om_message_number(&bytes, 1, (int64_t)c->elems);
    om_message_number(&bytes, 2, c->dtype);
    for (size_t k = 0; k < count; ++k) om_message_number(&bytes, c->field, c->values[k]);
    if (read_tensor(&ctx, &pool, &bytes, &tensor) != OM_OK) fail_msg("%s", error.message);
    assert_int_equal(tensor.data_bytes, c->byte_count);
    assert_memory_equal(tensor.data, c->bytes, c->byte_count);
    om_pool_deinit(&ctx, &pool);
  }
}

static void numbers_out_of_range_are_told(void **state) {
  static const typed_case cases[] = {
      {OM_DTYPE_U8, 5, {256}, 1, NULL, 0},
      {OM_DTYPE_U8, 5, {-1}, 1, NULL, 0},
      {OM_DTYPE_I8, 5, {-129}, 1, NULL, 0},
      {OM_DTYPE_BOOL, 5, {2}, 1, NULL, 0},
      {OM_DTYPE_F16, 5, {65536}, 1, NULL, 0},
      {OM_DTYPE_U32, 11, {4294967296}, 1, NULL, 0},
      {OM_DTYPE_U32, 11, {-1}, 1, NULL, 0},
      {OM_DTYPE_I32, 5, {2147483648}, 1, NULL, 0},
  };
  om_error error;
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_message bytes = {.count = 0};
    om_tensor tensor;
    om_pool pool = {0};
    char number[32];
    (void)snprintf(number, sizeof number, "%lld", (long long)cases[i].values[0]);
    om_error_clear(&error);
    om_message_number(&bytes, 1, 1);
    om_message_number(&bytes, 2, cases[i].dtype);
    om_message_number(&bytes, cases[i].field, cases[i].values[0]);
    assert_int_equal(read_tensor(&ctx, &pool, &bytes, &tensor), OM_E_INVALID_MODEL);
    assert_non_null(strstr(error.message, number));
    om_pool_deinit(&ctx, &pool);
  }
}

static void floats_and_strings_are_decoded(void **state) {
  const double doubles[] = {1.5, -2.25};
  om_error error;
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  om_message bytes = {.count = 0};
  om_tensor tensor;
  om_pool pool = {0};
  (void)state;
  om_error_clear(&error);
  om_message_number(&bytes, 1, 2);
  om_message_number(&bytes, 2, OM_DTYPE_F64);
  om_message_bytes(&bytes, 10, doubles, sizeof doubles);
  assert_int_equal(read_tensor(&ctx, &pool, &bytes, &tensor), OM_OK);
  assert_memory_equal(tensor.data, doubles, sizeof doubles);

  bytes.count = 0;
  om_message_number(&bytes, 1, 3);
  om_message_number(&bytes, 2, OM_DTYPE_F32);
  for (int i = 0; i < 3; ++i) om_message_float(&bytes, 4, (float)i + 0.5f); /* not packed */
  assert_int_equal(read_tensor(&ctx, &pool, &bytes, &tensor), OM_OK);
  assert_true(((const float *)tensor.data)[2] == 2.5f);

  bytes.count = 0;
  om_message_number(&bytes, 1, 2);
  om_message_number(&bytes, 2, OM_DTYPE_STRING);
  om_message_text(&bytes, 6, "one");
  om_message_bytes(&bytes, 6, "t\0o", 3);
  assert_int_equal(read_tensor(&ctx, &pool, &bytes, &tensor), OM_OK);
  assert_true(om_string_is(((const om_string *)tensor.data)[0], "one"));
  assert_int_equal(((const om_string *)tensor.data)[1].bytes, 3);

  bytes.count = 0; /* no elements need no data */
  om_message_number(&bytes, 1, 0);
  om_message_number(&bytes, 2, OM_DTYPE_F32);
  assert_int_equal(read_tensor(&ctx, &pool, &bytes, &tensor), OM_OK);
  assert_non_null(tensor.data);
  assert_int_equal(tensor.data_bytes, 0);
  om_pool_deinit(&ctx, &pool);
}

static void raw_data_stay_in_the_file(void **state) {
  static om_message bytes;
  om_message graph = {.count = 0};
  om_message large = {.count = 0};
  om_message small = om_message_tensor("small", 4);
  static float data[1500];
  (void)state;
  om_message_number(&large, 1, 1500);
  om_message_number(&large, 2, OM_DTYPE_F32);
  om_message_text(&large, 8, "large");
  om_message_bytes(&large, 9, data, sizeof data);
  om_message_nest(&graph, 5, &large);
  om_message_nest(&graph, 5, &small);
  bytes = om_message_model(&graph);
  om_model *model = load(&bytes);
  const unsigned char *at = find_value(model, "large")->constant->data;
  assert_true(at > bytes.bytes && at + sizeof data < bytes.bytes + bytes.count);
  assert_true(om_tensor_is_aligned(find_value(model, "small")->constant));
  om_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(models_are_described),
      cmocka_unit_test(initializers_are_no_inputs),
      cmocka_unit_test(symbols_and_unknown_extents_are_kept),
      cmocka_unit_test(absent_operands_are_kept_apart),
      cmocka_unit_test(constant_nodes_become_constants),
      cmocka_unit_test(sparse_constants_are_dense),
      cmocka_unit_test(numbers_in_lists_are_decoded),
      cmocka_unit_test(numbers_out_of_range_are_told),
      cmocka_unit_test(floats_and_strings_are_decoded),
      cmocka_unit_test(raw_data_stay_in_the_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
