/* Graphs: order, checks, uses, copies, attributes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/om_graph.h"
#include "graph/om_op.h"
#include "harness/om_fault.h"

enum { MAX_NODES = 64 };

typedef struct fixture {
  om_error error;
  om_ctx ctx;
  om_graph graph;
  om_value_id operands[MAX_NODES][4];
} fixture;

static void init(fixture *f) {
  memset(f, 0, sizeof *f);
  om_error_clear(&f->error);
  f->ctx = (om_ctx){.allocator = om_default_allocator(), .error = &f->error, .thread_count = 1};
}

static om_value_id add_value(fixture *f, const char *name) {
  om_value value = {.name = name, .producer = OM_NO_NODE};
  om_value_id id = OM_NO_VALUE;
  assert_int_equal(om_graph_add_value(&f->ctx, &f->graph, &value, &id), OM_OK);
  return id;
}

static om_node_id add_node(
    fixture *f, const char *name, om_value_id a, om_value_id b, om_value_id result) {
  om_value_id *operands = f->operands[f->graph.node_count];
  om_node node = {.name = name,
                  .type = "Add",
                  .domain = "",
                  .opset = 13,
                  .inputs = operands,
                  .input_count = 2,
                  .outputs = operands + 2,
                  .output_count = 1};
  om_node_id id = OM_NO_NODE;
  operands[0] = a;
  operands[1] = b;
  operands[2] = result;
  assert_int_equal(om_graph_add_node(&f->ctx, &f->graph, &node, &id), OM_OK);
  return id;
}

static void deinit(fixture *f) {
  om_graph_deinit(&f->ctx, &f->graph);
}

static void expect_failure(fixture *f, const char *word, const char *other) {
  assert_int_equal(om_graph_finish(&f->ctx, &f->graph), OM_E_INVALID_MODEL);
  assert_non_null(strstr(f->error.message, word));
  assert_non_null(strstr(f->error.message, other));
}

/* ---- Order ---- */

static void nodes_are_sorted(void **state) {
  fixture f;
  (void)state;
  init(&f);
  om_value_id x = add_value(&f, "x"), a = add_value(&f, "a"), b = add_value(&f, "b"),
              c = add_value(&f, "c");
  f.graph.values[x].is_input = true;
  add_node(&f, "third", a, b, c);
  add_node(&f, "second", a, x, b);
  add_node(&f, "first", x, OM_NO_VALUE, a);
  assert_int_equal(om_graph_finish(&f.ctx, &f.graph), OM_OK);
  assert_string_equal(f.graph.nodes[0].name, "first");
  assert_string_equal(f.graph.nodes[1].name, "second");
  assert_string_equal(f.graph.nodes[2].name, "third");
  assert_int_equal(f.graph.values[x].producer, OM_NO_NODE);
  assert_int_equal(f.graph.values[a].producer, 0);
  assert_int_equal(f.graph.values[b].producer, 1);
  assert_int_equal(f.graph.values[c].producer, 2);
  deinit(&f);
}

static void sorted_nodes_stay_where_they_are(void **state) {
  static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
  fixture f;
  om_value_id values[6];
  (void)state;
  init(&f);
  om_value_id x = add_value(&f, "x");
  f.graph.values[x].is_input = true;
  for (size_t i = 0; i < 6; ++i) values[i] = add_value(&f, names[i]);
  for (size_t i = 0; i < 6; ++i) {
    add_node(&f, names[i], i < 3 ? x : values[i - 3], x, values[i]); /* three chains in turn */
  }
  assert_int_equal(om_graph_finish(&f.ctx, &f.graph), OM_OK);
  for (size_t i = 0; i < 6; ++i) assert_string_equal(f.graph.nodes[i].name, names[i]);
  deinit(&f);
}

/* Deep enough to overflow a stack, were the walk recursive. */
static void long_chains_backwards_are_sorted(void **state) {
  enum { COUNT = 200000 };
  fixture f;
  (void)state;
  init(&f);
  om_value_id *ids = om_pool_new_bytes(&f.ctx, &f.graph.pool, COUNT + 1, sizeof *ids);
  assert_non_null(ids);
  for (size_t i = 0; i <= COUNT; ++i) ids[i] = add_value(&f, "v");
  f.graph.values[ids[0]].is_input = true;
  for (size_t i = COUNT; i-- > 0;) {
    om_node node = {.name = "n",
                    .type = "Relu",
                    .domain = "",
                    .inputs = &ids[i],
                    .input_count = 1,
                    .outputs = &ids[i + 1],
                    .output_count = 1};
    om_node_id id = OM_NO_NODE;
    assert_int_equal(om_graph_add_node(&f.ctx, &f.graph, &node, &id), OM_OK);
  }
  assert_int_equal(om_graph_finish(&f.ctx, &f.graph), OM_OK);
  for (om_node_id i = 0; i < COUNT; ++i) assert_ptr_equal(f.graph.nodes[i].inputs, &ids[i]);
  deinit(&f);
}

static void deleted_nodes_go(void **state) {
  fixture f;
  (void)state;
  init(&f);
  om_value_id x = add_value(&f, "x"), a = add_value(&f, "a"), b = add_value(&f, "b");
  f.graph.values[x].is_input = true;
  om_node_id gone = add_node(&f, "gone", x, x, b);
  add_node(&f, "kept", x, x, a);
  f.graph.nodes[gone].type = NULL;
  assert_int_equal(om_graph_finish(&f.ctx, &f.graph), OM_OK);
  assert_int_equal(f.graph.node_count, 1);
  assert_string_equal(f.graph.nodes[0].name, "kept");
  assert_int_equal(f.graph.values[b].producer, OM_NO_NODE);
  deinit(&f);
}

/* ---- Checks ---- */

static void cycles_are_named(void **state) {
  fixture f;
  (void)state;
  init(&f);
  om_value_id x = add_value(&f, "x"), a = add_value(&f, "a"), b = add_value(&f, "b");
  f.graph.values[x].is_input = true;
  add_node(&f, "ring_1", x, b, a);
  add_node(&f, "ring_2", a, x, b);
  expect_failure(&f, "ring_1", "cycle");
  deinit(&f);
}

static void missing_values_are_named(void **state) {
  fixture f;
  (void)state;
  init(&f);
  om_value_id x = add_value(&f, "nowhere"), a = add_value(&f, "a");
  add_node(&f, "reader", x, x, a);
  expect_failure(&f, "reader", "nowhere");
  deinit(&f);
}

static void missing_outputs_are_named(void **state) {
  fixture f;
  (void)state;
  init(&f);
  om_value_id y = add_value(&f, "orphan");
  f.graph.outputs = &y;
  f.graph.output_count = 1;
  expect_failure(&f, "orphan", "output");
  deinit(&f);
}

static void second_producers_are_named(void **state) {
  fixture f;
  (void)state;
  init(&f);
  om_value_id x = add_value(&f, "x"), a = add_value(&f, "a");
  f.graph.values[x].is_input = true;
  add_node(&f, "one", x, x, a);
  add_node(&f, "two", x, x, a);
  expect_failure(&f, "'two'", "'one'");
  deinit(&f);
}

static void inputs_and_constants_have_no_producer(void **state) {
  om_tensor tensor = {.dtype = OM_DTYPE_F32};
  (void)state;
  for (int is_constant = 0; is_constant < 2; ++is_constant) {
    fixture f;
    init(&f);
    om_value_id x = add_value(&f, "x");
    f.graph.values[x].is_input = !is_constant;
    f.graph.values[x].constant = is_constant ? &tensor : NULL;
    add_node(&f, "writer", OM_NO_VALUE, OM_NO_VALUE, x);
    expect_failure(&f, "writer", is_constant ? "a constant" : "an input");
    deinit(&f);
  }
}

/* ---- The rest ---- */

static void uses_count_nodes_and_outputs(void **state) {
  fixture f;
  uint32_t counts[3];
  (void)state;
  init(&f);
  om_value_id x = add_value(&f, "x"), a = add_value(&f, "a"), b = add_value(&f, "b");
  f.graph.values[x].is_input = true;
  add_node(&f, "n", x, x, a);
  add_node(&f, "m", a, OM_NO_VALUE, b);
  f.graph.outputs = &a;
  f.graph.output_count = 1;
  om_graph_count_uses(&f.graph, counts);
  assert_int_equal(counts[x], 2);
  assert_int_equal(counts[a], 2);
  assert_int_equal(counts[b], 0);
  deinit(&f);
}

static void copies_change_alone(void **state) {
  fixture f;
  om_graph copy = {0};
  om_value_id id = OM_NO_VALUE;
  (void)state;
  init(&f);
  om_value_id x = add_value(&f, "x"), a = add_value(&f, "a");
  f.graph.values[x].is_input = true;
  add_node(&f, "n", x, x, a);
  assert_int_equal(om_graph_copy(&f.ctx, &f.graph, &copy), OM_OK);
  copy.nodes[0].type = NULL;
  copy.values[a].is_input = true;
  om_value more = {.name = "more", .producer = OM_NO_NODE};
  assert_int_equal(om_graph_add_value(&f.ctx, &copy, &more, &id), OM_OK);
  assert_int_equal(id, 2);
  assert_int_equal(om_graph_finish(&f.ctx, &copy), OM_OK);
  assert_int_equal(copy.node_count, 0);
  assert_int_equal(f.graph.node_count, 1);
  assert_int_equal(f.graph.value_count, 2);
  assert_false(f.graph.values[a].is_input);
  assert_string_equal(f.graph.nodes[0].type, "Add");
  om_graph_deinit(&f.ctx, &copy);
  deinit(&f);
}

static void attributes_have_kinds_and_defaults(void **state) {
  static const int64_t list[] = {3, 4};
  const om_attr attrs[] = {
      {.name = "axis", .kind = OM_ATTR_INT, .i = -1},
      {.name = "alpha", .kind = OM_ATTR_FLOAT, .f = 0.5f},
      {.name = "mode", .kind = OM_ATTR_STRING, .s = {"linear", 6}},
      {.name = "pads", .kind = OM_ATTR_INTS, .ints = list, .count = 2},
  };
  const om_node node = {.name = "n", .type = "Resize", .attrs = attrs, .attr_count = 4};
  fixture f;
  int64_t i = 0;
  float x = 0;
  om_string s;
  const int64_t *ints = NULL;
  size_t count = 9;
  (void)state;
  init(&f);
  assert_int_equal(om_node_attr_int(&f.ctx, &node, "axis", 7, &i), OM_OK);
  assert_int_equal(i, -1);
  assert_int_equal(om_node_attr_int(&f.ctx, &node, "group", 7, &i), OM_OK);
  assert_int_equal(i, 7);
  assert_int_equal(om_node_attr_float(&f.ctx, &node, "alpha", 1, &x), OM_OK);
  assert_true(x == 0.5f);
  assert_int_equal(om_node_attr_text(&f.ctx, &node, "mode", "nearest", &s), OM_OK);
  assert_true(om_string_is(s, "linear"));
  assert_false(om_string_is(s, "linea"));
  assert_false(om_string_is(s, "linear "));
  assert_int_equal(om_node_attr_text(&f.ctx, &node, "other", "nearest", &s), OM_OK);
  assert_true(om_string_is(s, "nearest"));
  assert_int_equal(om_node_attr_ints(&f.ctx, &node, "pads", &ints, &count), OM_OK);
  assert_int_equal(count, 2);
  assert_ptr_equal(ints, list);
  assert_int_equal(om_node_attr_ints(&f.ctx, &node, "absent", &ints, &count), OM_OK);
  assert_int_equal(count, 0);
  assert_null(om_node_attr(&node, "ax"));
  assert_int_equal(om_node_attr_int(&f.ctx, &node, "mode", 7, &i), OM_E_INVALID_MODEL);
  assert_string_equal(f.error.message, "Attribute 'mode' is a string, but must be an integer.");
}

static void operators_are_found_by_opset(void **state) {
  const char *reason = NULL;
  (void)state;
  const om_op *op = om_op_find("", "Relu", 13, &reason);
  assert_non_null(op);
  assert_string_equal(op->type, "Relu");
  assert_null(om_op_find("", "Frobnicate", 13, &reason));
  assert_non_null(strstr(reason, "not implemented"));
  assert_null(om_op_find("no.such.domain", "Relu", 13, NULL));
}

static void the_list_of_operators_is_sorted(void **state) {
  const om_operator_info *previous = om_operator_get(0);
  size_t count = 1;
  (void)state;
  assert_non_null(previous);
  for (;; ++count) {
    const om_operator_info *info = om_operator_get(count);
    if (!info) break;
    int order = strcmp(previous->domain, info->domain);
    if (order == 0) order = strcmp(previous->type, info->type);
    if (order == 0) { /* versions do not overlap */
      assert_true(previous->last_opset > 0 && previous->last_opset < info->first_opset);
    } else if (info->first_opset > 1) {
      assert_null(om_op_find(info->domain, info->type, info->first_opset - 1, NULL));
    }
    assert_true(order <= 0);
    assert_ptr_equal(&om_op_find(info->domain, info->type, info->first_opset, NULL)->info, info);
    previous = info;
  }
  assert_true(count > 10);
  assert_null(om_operator_get(count + 5));
}

static void operand_counts_are_checked(void **state) {
  fixture f;
  (void)state;
  init(&f);
  om_value_id x = add_value(&f, "x"), a = add_value(&f, "a");
  f.graph.values[x].is_input = true;
  om_node_id id = add_node(&f, "my_relu", x, x, a);
  f.graph.nodes[id].type = "Relu";
  assert_int_equal(om_graph_resolve_ops(&f.ctx, &f.graph), OM_E_INVALID_MODEL);
  assert_string_equal(f.error.message,
                      "Node 'my_relu' (Relu): There are 2 inputs, but there must be 1.");
  om_error_clear(&f.error);
  f.operands[id][1] = OM_NO_VALUE; /* absent at the end is as good as left out */
  assert_int_equal(om_graph_resolve_ops(&f.ctx, &f.graph), OM_OK);
  f.operands[id][0] = OM_NO_VALUE;
  assert_int_equal(om_graph_resolve_ops(&f.ctx, &f.graph), OM_E_INVALID_MODEL);
  om_error_clear(&f.error);
  f.graph.nodes[id].type = "Frobnicate"; /* the session says so, not the loader */
  assert_int_equal(om_graph_resolve_ops(&f.ctx, &f.graph), OM_OK);
  assert_null(f.graph.nodes[id].op);
  deinit(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nodes_are_sorted),
      cmocka_unit_test(sorted_nodes_stay_where_they_are),
      cmocka_unit_test(long_chains_backwards_are_sorted),
      cmocka_unit_test(deleted_nodes_go),
      cmocka_unit_test(cycles_are_named),
      cmocka_unit_test(missing_values_are_named),
      cmocka_unit_test(missing_outputs_are_named),
      cmocka_unit_test(second_producers_are_named),
      cmocka_unit_test(inputs_and_constants_have_no_producer),
      cmocka_unit_test(uses_count_nodes_and_outputs),
      cmocka_unit_test(copies_change_alone),
      cmocka_unit_test(attributes_have_kinds_and_defaults),
      cmocka_unit_test(operators_are_found_by_opset),
      cmocka_unit_test(the_list_of_operators_is_sorted),
      cmocka_unit_test(operand_counts_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
