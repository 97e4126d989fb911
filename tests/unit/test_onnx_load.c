/* The loader: what it makes of good models, what it says about bad ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/om_fault.h"
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

/* y = Add(x, w), w an initializer. */
static om_message small_graph(void) {
  om_message graph = {.count = 0};
  om_message node = om_message_node("Add", "my_add", "x,w", "y");
  om_message w = om_message_tensor("w", 4);
  om_message x = om_message_value("x", 4);
  om_message y = om_message_value("y", 4);
  om_message_nest(&graph, 1, &node);
  om_message_nest(&graph, 5, &w);
  om_message_nest(&graph, 11, &x);
  om_message_nest(&graph, 12, &y);
  return graph;
}

/* ---- Good models ---- */

static void models_are_described(void **state) {
  om_message graph = small_graph();
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
  om_message graph = small_graph();
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

/* Adds attribute `name` with the field that holds its value written by the caller. */
static void add_attr(om_message *node, const char *name, int kind, const om_message *value) {
  om_message attr = {.count = 0};
  om_message_text(&attr, 1, name);
  memcpy(attr.bytes + attr.count, value->bytes, value->count);
  attr.count += value->count;
  if (kind) om_message_number(&attr, 20, kind);
  om_message_nest(node, 5, &attr);
}

static om_model *load_constant(const char *name, int kind, const om_message *value) {
  om_message graph = {.count = 0};
  om_message node = om_message_node("Constant", "my_constant", "", "c");
  node.count = 0; /* no inputs at all */
  om_message_text(&node, 2, "c");
  om_message_text(&node, 4, "Constant");
  add_attr(&node, name, kind, value);
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

/* ---- Bad models ---- */

typedef struct bad_case {
  const char *name;
  om_status status;
  const char *words[2];
  void (*build)(om_message *graph); /* starts with small_graph */
} bad_case;

static void add_node(om_message *graph, const om_message *node) {
  om_message_nest(graph, 1, node);
}

static void bad_duplicate_initializer(om_message *graph) {
  om_message w = om_message_tensor("w", 2);
  om_message_nest(graph, 5, &w);
}

static void bad_duplicate_input(om_message *graph) {
  om_message x = om_message_value("x", 4);
  om_message_nest(graph, 11, &x);
}

static void bad_duplicate_output(om_message *graph) {
  om_message y = om_message_value("y", 4);
  om_message_nest(graph, 12, &y);
}

static void bad_input_without_type(om_message *graph) {
  om_message value = {.count = 0};
  om_message_text(&value, 1, "bare");
  om_message_nest(graph, 11, &value);
}

static void bad_node_without_type(om_message *graph) {
  om_message node = {.count = 0};
  om_message_text(&node, 2, "z");
  add_node(graph, &node);
}

static void bad_node_without_output(om_message *graph) {
  om_message node = {.count = 0};
  om_message_text(&node, 1, "x");
  om_message_text(&node, 3, "silent");
  om_message_text(&node, 4, "Relu");
  add_node(graph, &node);
}

static void bad_missing_name(om_message *graph) {
  om_message node = om_message_node("Relu", "reader", "nowhere", "z");
  add_node(graph, &node);
}

static void bad_two_producers(om_message *graph) {
  om_message node = om_message_node("Relu", "second", "x", "y");
  add_node(graph, &node);
}

static void bad_write_to_initializer(om_message *graph) {
  om_message node = om_message_node("Relu", "writer", "x", "w");
  add_node(graph, &node);
}

static void bad_cycle(om_message *graph) {
  om_message one = om_message_node("Add", "ring_1", "x,b", "a");
  om_message two = om_message_node("Add", "ring_2", "x,a", "b");
  add_node(graph, &one);
  add_node(graph, &two);
}

static void bad_domain(om_message *graph) {
  om_message node = om_message_node("Relu", "stranger", "x", "z");
  om_message_text(&node, 7, "no.such.domain");
  add_node(graph, &node);
}

static void bad_name_with_zero(om_message *graph) {
  om_message node = {.count = 0};
  om_message_text(&node, 1, "x");
  om_message_bytes(&node, 2, "a\0b", 3);
  om_message_text(&node, 4, "Relu");
  add_node(graph, &node);
}

static void bad_rank(om_message *graph) {
  om_message tensor = {.count = 0};
  for (int i = 0; i < 9; ++i) om_message_number(&tensor, 1, 1);
  om_message_number(&tensor, 2, OM_DTYPE_F32);
  om_message_text(&tensor, 8, "deep");
  om_message_bytes(&tensor, 9, "\0\0\0\0", 4);
  om_message_nest(graph, 5, &tensor);
}

static void bad_negative_extent(om_message *graph) {
  om_message x = om_message_value("minus", -7);
  om_message_nest(graph, 11, &x);
}

static void bad_overflow(om_message *graph) {
  om_message tensor = {.count = 0};
  om_message_number(&tensor, 1, (int64_t)1 << 33);
  om_message_number(&tensor, 1, (int64_t)1 << 33);
  om_message_number(&tensor, 2, OM_DTYPE_F32);
  om_message_text(&tensor, 8, "wide");
  om_message_nest(graph, 5, &tensor);
}

static void bad_short_data(om_message *graph) {
  om_message tensor = {.count = 0};
  om_message_number(&tensor, 1, 4);
  om_message_number(&tensor, 2, OM_DTYPE_F32);
  om_message_text(&tensor, 8, "short");
  om_message_bytes(&tensor, 9, "123456789012", 12);
  om_message_nest(graph, 5, &tensor);
}

static void bad_two_kinds_of_data(om_message *graph) {
  om_message tensor = om_message_tensor("both", 1);
  om_message_float(&tensor, 4, 1.0f);
  om_message_nest(graph, 5, &tensor);
}

static void bad_bool(om_message *graph) {
  om_message tensor = {.count = 0};
  om_message_number(&tensor, 1, 2);
  om_message_number(&tensor, 2, OM_DTYPE_BOOL);
  om_message_text(&tensor, 8, "truth");
  om_message_bytes(&tensor, 9, "\x01\x02", 2);
  om_message_nest(graph, 5, &tensor);
}

static void bad_external_from_memory(om_message *graph) {
  om_message entry = {.count = 0}, tensor = {.count = 0};
  om_message_text(&entry, 1, "location");
  om_message_text(&entry, 2, "weights.bin");
  om_message_number(&tensor, 1, 1);
  om_message_number(&tensor, 2, OM_DTYPE_F32);
  om_message_text(&tensor, 8, "far");
  om_message_nest(&tensor, 13, &entry);
  om_message_number(&tensor, 14, 1);
  om_message_nest(graph, 5, &tensor);
}

static void add_bad_attr(om_message *graph, int kind, uint32_t field, bool is_twice) {
  om_message node = om_message_node("Softmax", "soft", "x", "z");
  om_message value = {.count = 0};
  if (field) om_message_number(&value, field, 1);
  add_attr(&node, "axis", kind, &value);
  if (is_twice) add_attr(&node, "axis", kind, &value);
  add_node(graph, &node);
}

static void bad_attr_kind(om_message *graph) {
  add_bad_attr(graph, OM_ATTR_FLOAT, 3, false);
}

static void bad_attr_graph(om_message *graph) {
  add_bad_attr(graph, OM_ATTR_GRAPH, 0, false);
}

static void bad_attr_unknown(om_message *graph) {
  add_bad_attr(graph, 77, 3, false);
}

static void bad_attr_without_value(om_message *graph) {
  add_bad_attr(graph, 0, 0, false);
}

static void bad_attr_twice(om_message *graph) {
  add_bad_attr(graph, OM_ATTR_INT, 3, true);
}

static void bad_output_without_producer(om_message *graph) {
  om_message value = om_message_value("orphan", 1);
  om_message_nest(graph, 12, &value);
}

static void bad_sparse_index(om_message *graph) {
  const int64_t position = 9;
  om_message values = om_message_tensor("thin", 1);
  om_message indices = {.count = 0}, sparse = {.count = 0};
  om_message_number(&indices, 1, 1);
  om_message_number(&indices, 2, OM_DTYPE_I64);
  om_message_bytes(&indices, 9, &position, sizeof position);
  om_message_nest(&sparse, 1, &values);
  om_message_nest(&sparse, 2, &indices);
  om_message_number(&sparse, 3, 9);
  om_message_nest(graph, 15, &sparse);
}

static void bad_sparse_size(om_message *graph) {
  const int64_t position = 0;
  om_message values = om_message_tensor("thin", 1);
  om_message indices = {.count = 0}, sparse = {.count = 0};
  om_message_number(&indices, 1, 1);
  om_message_number(&indices, 2, OM_DTYPE_I64);
  om_message_bytes(&indices, 9, &position, sizeof position);
  om_message_nest(&sparse, 1, &values);
  om_message_nest(&sparse, 2, &indices);
  om_message_number(&sparse, 3, (int64_t)1 << 40);
  om_message_nest(graph, 15, &sparse);
}

static const bad_case bad_cases[] = {
    {"duplicate initializer",
     OM_E_INVALID_MODEL,
     {"'w'", "constant already"},
     bad_duplicate_initializer},
    {"duplicate input", OM_E_INVALID_MODEL, {"'x'", "two inputs"}, bad_duplicate_input},
    {"duplicate output", OM_E_INVALID_MODEL, {"'y'", "two outputs"}, bad_duplicate_output},
    {"input without type", OM_E_INVALID_MODEL, {"'bare'", "type"}, bad_input_without_type},
    {"node without type", OM_E_INVALID_MODEL, {"Node 1", "operator"}, bad_node_without_type},
    {"node without output", OM_E_INVALID_MODEL, {"silent", "output"}, bad_node_without_output},
    {"missing name", OM_E_INVALID_MODEL, {"reader", "nowhere"}, bad_missing_name},
    {"two producers", OM_E_INVALID_MODEL, {"second", "my_add"}, bad_two_producers},
    {"write to initializer", OM_E_INVALID_MODEL, {"writer", "constant"}, bad_write_to_initializer},
    {"cycle", OM_E_INVALID_MODEL, {"ring_", "cycle"}, bad_cycle},
    {"domain", OM_E_INVALID_MODEL, {"stranger", "no.such.domain"}, bad_domain},
    {"name with zero", OM_E_INVALID_MODEL, {"zero byte", "'a'"}, bad_name_with_zero},
    {"rank 9", OM_E_UNSUPPORTED, {"'deep'", "rank is 9"}, bad_rank},
    {"negative extent", OM_E_INVALID_MODEL, {"'minus'", "-7"}, bad_negative_extent},
    {"overflow", OM_E_INVALID_MODEL, {"'wide'", "8589934592"}, bad_overflow},
    {"short data", OM_E_INVALID_MODEL, {"'short'", "12 bytes"}, bad_short_data},
    {"two kinds of data", OM_E_INVALID_MODEL, {"'both'", "2 fields"}, bad_two_kinds_of_data},
    {"bool of 2", OM_E_INVALID_MODEL, {"'truth'", "2"}, bad_bool},
    {"external from memory",
     OM_E_INVALID_MODEL,
     {"'far'", "weights.bin"},
     bad_external_from_memory},
    {"attribute kind", OM_E_INVALID_MODEL, {"soft", "'axis'"}, bad_attr_kind},
    {"attribute says graph", OM_E_INVALID_MODEL, {"soft", "graph"}, bad_attr_graph},
    {"attribute kind 77", OM_E_INVALID_MODEL, {"soft", "77"}, bad_attr_unknown},
    {"attribute without value", OM_E_INVALID_MODEL, {"soft", "kind"}, bad_attr_without_value},
    {"attribute twice", OM_E_INVALID_MODEL, {"soft", "twice"}, bad_attr_twice},
    {"orphan output", OM_E_INVALID_MODEL, {"orphan", "output"}, bad_output_without_producer},
    {"sparse index", OM_E_INVALID_MODEL, {"'thin'", "9"}, bad_sparse_index},
    {"sparse size", OM_E_UNSUPPORTED, {"'thin'", "1099511627776"}, bad_sparse_size},
};

static void expect_bad(const om_message *bytes, const bad_case *c) {
  om_error error;
  om_model *model = NULL;
  om_fault fault = {.fail_at = OM_FAULT_NEVER};
  om_allocator allocator = om_fault_allocator(&fault);
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  options.allocator = &allocator;
  om_status st = om_model_load_memory(bytes->bytes, bytes->count, &options, &model, &error);
  assert_null(model);
  assert_int_equal(om_fault_live_blocks(&fault), 0);
  bool is_right = st == c->status && error.status == st;
  for (size_t i = 0; i < 2; ++i) {
    if (c->words[i] && !strstr(error.message, c->words[i])) is_right = false;
  }
  if (!is_right) fail_msg("%s: %s: %s", c->name, om_status_name(st), error.message);
}

static void bad_models_are_told_in_words(void **state) {
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(bad_cases); ++i) {
    om_message graph = small_graph();
    bad_cases[i].build(&graph);
    om_message bytes = om_message_model(&graph);
    expect_bad(&bytes, &bad_cases[i]);
  }
}

static void bad_versions_are_told(void **state) {
  static const struct {
    const char *domain;
    int64_t version;
    bad_case expected;
  } cases[] = {
      {"", 9999, {"9999", OM_E_UNSUPPORTED, {"9999", "ai.onnx"}, NULL}},
      {"ai.onnx", -1, {"-1", OM_E_INVALID_MODEL, {"-1", "ai.onnx"}, NULL}},
      {"other", 0, {"0", OM_E_INVALID_MODEL, {"0", "other"}, NULL}},
  };
  om_message graph = small_graph();
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_message opset = {.count = 0}, bytes = {.count = 0};
    om_message_text(&opset, 1, cases[i].domain);
    om_message_number(&opset, 2, cases[i].version);
    om_message_number(&bytes, 1, 8);
    om_message_nest(&bytes, 7, &graph);
    om_message_nest(&bytes, 8, &opset);
    expect_bad(&bytes, &cases[i].expected);
  }
  om_message bytes = {.count = 0};
  om_message_number(&bytes, 1, 8);
  om_message_nest(&bytes, 7, &graph);
  expect_bad(&bytes, &(bad_case){"none", OM_E_INVALID_MODEL, {"opset", NULL}, NULL});
  bytes.count = 0;
  om_message_number(&bytes, 1, 8);
  expect_bad(&bytes, &(bad_case){"no graph", OM_E_INVALID_MODEL, {"no graph", NULL}, NULL});
  bytes.count = 0;
  expect_bad(&bytes, &(bad_case){"empty", OM_E_INVALID_MODEL, {"not an ONNX model", NULL}, NULL});
}

static void functions_of_the_model_are_told(void **state) {
  om_message graph = small_graph();
  om_message node = om_message_node("Again", "caller", "x", "z");
  om_message function = {.count = 0};
  (void)state;
  om_message_nest(&graph, 1, &node);
  om_message bytes = om_message_model(&graph);
  om_message_text(&function, 1, "Again");
  om_message_nest(&bytes, 25, &function);
  expect_bad(&bytes,
             &(bad_case){"function", OM_E_INVALID_MODEL, {"caller", "its function has 0"}, NULL});
}

static void every_prefix_and_flip_is_survived(void **state) {
  om_message graph = small_graph();
  om_message bytes = om_message_model(&graph);
  om_fault fault = {.fail_at = OM_FAULT_NEVER};
  om_allocator allocator = om_fault_allocator(&fault);
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  om_model *model = NULL;
  (void)state;
  options.allocator = &allocator;
  for (size_t count = 0; count < bytes.count; ++count) {
    unsigned char *exact = malloc(count ? count : 1); /* so that a sanitizer sees the end */
    assert_non_null(exact);
    memcpy(exact, bytes.bytes, count);
    if (om_model_load_memory(exact, count, &options, &model, NULL) == OM_OK) {
      om_model_destroy(model);
    }
    free(exact);
  }
  for (size_t i = 0; i < bytes.count * 8; ++i) {
    om_message bent = bytes;
    bent.bytes[i / 8] = (unsigned char)(bent.bytes[i / 8] ^ 1u << i % 8);
    if (om_model_load_memory(bent.bytes, bent.count, &options, &model, NULL) == OM_OK) {
      om_model_destroy(model);
    }
  }
  assert_int_equal(om_fault_live_blocks(&fault), 0);
  assert_int_equal(atomic_load(&fault.damaged_blocks), 0);
}

static void wrong_calls_are_refused(void **state) {
  om_error error;
  om_model *model = NULL;
  om_model_options options = {.struct_bytes = 1};
  (void)state;
  assert_int_equal(om_model_load_file(NULL, NULL, &model, &error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_model_load_file("x", &options, &model, &error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_model_load_memory("x", 1, NULL, NULL, &error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_model_load_file("/no/such/file", NULL, &model, &error), OM_E_IO);
  assert_non_null(strstr(error.message, "/no/such/file"));
  assert_int_equal(om_model_load_file("/", NULL, &model, NULL), OM_E_IO);
  assert_null(model);
}

/* ---- External data ---- */

static char folder[] = "/tmp/om_test_load_XXXXXX";

static void write_file(const char *name, const void *bytes, size_t count) {
  char path[128];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

/* A model whose weight lies in another file; NULL keys are left out. */
static om_message external_model(const char *location, const char *offset, const char *length) {
  const char *const keys[] = {"location", "offset", "length"};
  const char *const values[] = {location, offset, length};
  om_message graph = {.count = 0}, tensor = {.count = 0};
  om_message_number(&tensor, 1, 2);
  om_message_number(&tensor, 2, OM_DTYPE_F32);
  om_message_text(&tensor, 8, "far");
  om_message_number(&tensor, 14, 1);
  for (size_t i = 0; i < 3; ++i) {
    om_message entry = {.count = 0};
    if (!values[i]) continue;
    om_message_text(&entry, 1, keys[i]);
    om_message_text(&entry, 2, values[i]);
    om_message_nest(&tensor, 13, &entry);
  }
  om_message_nest(&graph, 5, &tensor);
  return om_message_model(&graph);
}

static om_status load_external(const char *location,
                               const char *offset,
                               const char *length,
                               om_model **out_model,
                               om_error *error) {
  char path[128];
  om_message bytes = external_model(location, offset, length);
  write_file("model.onnx", bytes.bytes, bytes.count);
  (void)snprintf(path, sizeof path, "%s/model.onnx", folder);
  return om_model_load_file(path, NULL, out_model, error);
}

static void external_data_are_mapped(void **state) {
  const float data[] = {1, 2, 3, 4};
  om_error error;
  om_model *model = NULL;
  (void)state;
  write_file("weights.bin", data, sizeof data);
  write_file("sub/weights.bin", data, sizeof data);
  assert_int_equal(load_external("weights.bin", "8", "8", &model, &error), OM_OK);
  assert_true(((const float *)find_value(model, "far")->constant->data)[1] == 4.0f);
  om_model_destroy(model);
  assert_int_equal(load_external("sub/weights.bin", NULL, NULL, &model, &error), OM_OK);
  assert_true(((const float *)find_value(model, "far")->constant->data)[1] == 2.0f);
  om_model_destroy(model);
}

/* What is given stands for files: for a model from memory, and before those of a folder. */
static void external_data_are_given(void **state) {
  const float data[] = {5, 6, 7, 8};
  const om_model_file files[] = {{"other.bin", data, 4}, {"weights.bin", data, sizeof data}};
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  om_error error;
  om_model *model = NULL;
  om_message bytes = external_model("weights.bin", "8", "8");
  (void)state;
  options.files = files;
  options.file_count = 2;
  assert_int_equal(om_model_load_memory(bytes.bytes, bytes.count, &options, &model, &error), OM_OK);
  assert_true(((const float *)find_value(model, "far")->constant->data)[1] == 8.0f);
  om_model_destroy(model);
  bytes = external_model("weights.bin", "12", "8");
  assert_int_equal(om_model_load_memory(bytes.bytes, bytes.count, &options, &model, &error),
                   OM_E_INVALID_MODEL);
  assert_non_null(strstr(error.message, "ends at byte 16"));
  options.file_count = 1;
  assert_int_equal(om_model_load_memory(bytes.bytes, bytes.count, &options, &model, &error),
                   OM_E_INVALID_MODEL);
  assert_non_null(strstr(error.message, "it is not given"));
}

static void external_data_stay_in_the_folder(void **state) {
  static const struct {
    const char *location, *offset, *length;
    om_status status;
    const char *word;
  } cases[] = {
      {"../weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "out of the folder"},
      {"sub/../weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "out of the folder"},
      {"./weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "'.'"},
      {"sub//weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "empty"},
      {"/etc/passwd", NULL, NULL, OM_E_INVALID_MODEL, "absolute"},
      {"C:weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "drive"},
      {"sub\\weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "backslash"},
      {"", NULL, NULL, OM_E_INVALID_MODEL, "no file"},
      {NULL, "0", NULL, OM_E_INVALID_MODEL, "no location"},
      {"sub", NULL, NULL, OM_E_INVALID_MODEL, "not a regular file"},
      {"weights.bin/x", NULL, NULL, OM_E_INVALID_MODEL, "not a folder"},
      {"link.bin", NULL, NULL, OM_E_INVALID_MODEL, "symbolic link"},
      {"linked/weights.bin", NULL, NULL, OM_E_INVALID_MODEL, "symbolic link"},
      {"twin.bin", NULL, NULL, OM_E_INVALID_MODEL, "hard links"},
      {"pipe", NULL, NULL, OM_E_INVALID_MODEL, "not a regular file"},
      {"absent.bin", NULL, NULL, OM_E_IO, "does not exist"},
      {"weights.bin", "16", NULL, OM_E_INVALID_MODEL, "16"},
      {"weights.bin", "12", NULL, OM_E_INVALID_MODEL, "12"},
      {"weights.bin", "18446744073709551615", NULL, OM_E_INVALID_MODEL, "18446744073709551615"},
      {"weights.bin", "18446744073709551616", NULL, OM_E_INVALID_MODEL, "not a number"},
      {"weights.bin", "-1", NULL, OM_E_INVALID_MODEL, "'-1'"},
      {"weights.bin", "", NULL, OM_E_INVALID_MODEL, "not a number"},
      {"weights.bin", "0", "4", OM_E_INVALID_MODEL, "4"},
      {"weights.bin", "0", "0", OM_E_INVALID_MODEL, "needs 8"},
  };
  char from[128], to[128];
  om_error error;
  om_model *model = NULL;
  (void)state;
  (void)snprintf(to, sizeof to, "%s/link.bin", folder);
  assert_int_equal(symlink("weights.bin", to), 0);
  (void)snprintf(to, sizeof to, "%s/linked", folder);
  assert_int_equal(symlink("sub", to), 0);
  write_file("once.bin", "12345678", 8);
  (void)snprintf(from, sizeof from, "%s/once.bin", folder);
  (void)snprintf(to, sizeof to, "%s/twin.bin", folder);
  assert_int_equal(link(from, to), 0);
  (void)snprintf(to, sizeof to, "%s/pipe", folder);
  assert_int_equal(mkfifo(to, 0600), 0);
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_status st =
        load_external(cases[i].location, cases[i].offset, cases[i].length, &model, &error);
    assert_null(model);
    if (st != cases[i].status || !strstr(error.message, cases[i].word) ||
        !strstr(error.message, "'far'")) {
      fail_msg("case %zu: %s: %s", i, om_status_name(st), error.message);
    }
  }
}

static int make_folder(void **state) {
  char path[128];
  (void)state;
  if (!mkdtemp(folder)) return -1;
  (void)snprintf(path, sizeof path, "%s/sub", folder);
  return mkdir(path, 0700);
}

static int remove_folder(void **state) {
  static const char *const names[] = {"model.onnx",
                                      "weights.bin",
                                      "sub/weights.bin",
                                      "link.bin",
                                      "linked",
                                      "once.bin",
                                      "twin.bin",
                                      "pipe"};
  char path[128];
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    (void)unlink(path);
  }
  (void)snprintf(path, sizeof path, "%s/sub", folder);
  (void)rmdir(path);
  return rmdir(folder);
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
      cmocka_unit_test(bad_models_are_told_in_words),
      cmocka_unit_test(bad_versions_are_told),
      cmocka_unit_test(functions_of_the_model_are_told),
      cmocka_unit_test(every_prefix_and_flip_is_survived),
      cmocka_unit_test(wrong_calls_are_refused),
      cmocka_unit_test(external_data_are_mapped),
      cmocka_unit_test(external_data_are_given),
      cmocka_unit_test(external_data_stay_in_the_folder),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
