/* The loader: what it says about bad models, each a small good one with one fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_fault.h"
#include "harness/om_message.h"
#include "onnx/om_model.h"
typedef struct bad_case {
  const char *name;
  om_status status;
  const char *words[2];
  void (*build)(om_message *graph); /* starts with om_message_small_graph */
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
  om_message_attr(&node, "axis", kind, &value);
  if (is_twice) om_message_attr(&node, "axis", kind, &value);
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
    om_message graph = om_message_small_graph();
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
  om_message graph = om_message_small_graph();
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
  om_message graph = om_message_small_graph();
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
  om_message graph = om_message_small_graph();
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_models_are_told_in_words),
      cmocka_unit_test(bad_versions_are_told),
      cmocka_unit_test(functions_of_the_model_are_told),
      cmocka_unit_test(every_prefix_and_flip_is_survived),
      cmocka_unit_test(wrong_calls_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
