/* Bodies of nodes in the loader: what they capture, where names are found, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_message.h"
#include "onnx/om_model.h"

static om_model *load(const om_message *graph) {
  om_error error;
  om_model *model = NULL;
  om_message bytes = om_message_model(graph);
  om_status st = om_model_load_memory(bytes.bytes, bytes.count, NULL, &model, &error);
  if (st != OM_OK) fail_msg("%s: %s", om_status_name(st), error.message);
  return model;
}

static void expect_error(const om_message *graph, const char *const *words) {
  om_error error;
  om_model *model = NULL;
  om_message bytes = om_message_model(graph);
  om_status st = om_model_load_memory(bytes.bytes, bytes.count, NULL, &model, &error);
  assert_int_not_equal(st, OM_OK);
  assert_null(model);
  for (; *words; ++words) {
    if (!strstr(error.message, *words)) fail_msg("no '%s' in: %s", *words, error.message);
  }
}

/* A value without a type, as bodies may have. */
static om_message untyped(const char *name) {
  om_message value = {.count = 0};
  om_message_text(&value, 1, name);
  return value;
}

static void add_graph_attr(om_message *node, const char *name, const om_message *graph) {
  om_message attr = {.count = 0};
  om_message_text(&attr, 1, name);
  om_message_nest(&attr, 6, graph);
  om_message_number(&attr, 20, OM_ATTR_GRAPH);
  om_message_nest(node, 5, &attr);
}

/* A branch: `output` = Add(`a`, `b`). */
static om_message add_branch(const char *inputs, const char *output) {
  om_message graph = {.count = 0};
  om_message node = om_message_node("Add", NULL, inputs, output);
  om_message result = untyped(output);
  om_message_nest(&graph, 1, &node);
  om_message_nest(&graph, 12, &result);
  return graph;
}

static void add_inputs(om_message *graph, const char *const *names) {
  for (; *names; ++names) {
    om_message value = om_message_value(*names, 4);
    om_message_nest(graph, 11, &value);
  }
}

static const om_graph *body_of(const om_graph *graph, size_t node, const char *attr) {
  const om_attr *found = om_node_attr(&graph->nodes[node], attr);
  assert_non_null(found);
  assert_int_equal(found->kind, OM_ATTR_GRAPH);
  return found->graph;
}

static const char *input_name(const om_graph *graph, size_t index) {
  return graph->values[graph->inputs[index]].name;
}

/* y = If(c): then x + t, else x + w, where t = Relu(x) stands behind the If in the file. */
static void captured_values_are_operands(void **state) {
  om_message graph = {.count = 0};
  om_message then_branch = add_branch("x,t", "a");
  om_message else_branch = add_branch("x,w", "b");
  om_message node = om_message_node("If", "my_if", "c", "y");
  om_message relu = om_message_node("Relu", "my_relu", "x", "t");
  om_message w = om_message_tensor("w", 4);
  om_message y = om_message_value("y", 4);
  (void)state;
  add_graph_attr(&node, "then_branch", &then_branch);
  add_graph_attr(&node, "else_branch", &else_branch);
  om_message_nest(&graph, 1, &node);
  om_message_nest(&graph, 1, &relu);
  om_message_nest(&graph, 5, &w);
  add_inputs(&graph, (const char *const[]){"c", "x", NULL});
  om_message_nest(&graph, 12, &y);
  om_model *model = load(&graph);
  const om_graph *g = om_model_get_graph(model);

  assert_string_equal(g->nodes[0].type, "Relu"); /* sorted: a branch needs it */
  const om_node *my_if = &g->nodes[1];
  assert_int_equal(my_if->input_count, 5);
  assert_int_equal(my_if->capture_count, 4);
  const om_graph *on_true = body_of(g, 1, "then_branch");
  const om_graph *on_false = body_of(g, 1, "else_branch");
  assert_int_equal(on_true->input_count, 2);
  assert_int_equal(on_true->body.capture_count, 2);
  assert_int_equal(on_true->body.capture_first, 1);
  assert_int_equal(on_false->body.capture_first, 3);
  assert_string_equal(input_name(on_true, 1), "t");
  assert_string_equal(g->values[my_if->inputs[2]].name, "t");
  assert_string_equal(input_name(on_false, 1), "w");
  assert_string_equal(g->values[my_if->inputs[4]].name, "w");

  const om_model_info *info = om_model_get_info(model);
  assert_int_equal(info->node_count, 4);
  om_node_info outer = om_model_get_node(model, 0);
  om_node_info inner = om_model_get_node(model, 3);
  assert_string_equal(outer.name, "my_if");
  assert_int_equal(outer.input_count, 1);
  assert_true(outer.outer == OM_NO_OUTER);
  assert_string_equal(inner.op_type, "Add");
  assert_int_equal(inner.outer, 0);
  assert_string_equal(inner.body, "else_branch");
  om_model_destroy(model);
}

/* Each graph on the way gets the value; a name of the body's own hides an outer one. */
static void values_are_captured_through_bodies(void **state) {
  om_message graph = {.count = 0}, middle = {.count = 0};
  om_message innermost = add_branch("x,c", "d");
  om_message hiding = om_message_node("Relu", NULL, "x", "c");
  om_message inner_if = om_message_node("If", "inner", "c", "m");
  om_message outer_if = om_message_node("If", "outer", "c", "y");
  om_message m = untyped("m");
  om_message y = om_message_value("y", 4);
  (void)state;
  add_graph_attr(&inner_if, "then_branch", &innermost);
  add_graph_attr(&inner_if, "else_branch", &innermost);
  om_message_nest(&middle, 1, &hiding);
  om_message_nest(&middle, 1, &inner_if);
  om_message_nest(&middle, 12, &m);
  add_graph_attr(&outer_if, "then_branch", &middle);
  add_graph_attr(&outer_if, "else_branch", &middle);
  om_message_nest(&graph, 1, &outer_if);
  add_inputs(&graph, (const char *const[]){"c", "x", NULL});
  om_message_nest(&graph, 12, &y);
  om_model *model = load(&graph);
  const om_graph *g = om_model_get_graph(model);
  const om_graph *mid = body_of(g, 0, "then_branch");
  assert_int_equal(g->nodes[0].capture_count, 2); /* x for each branch; c is the body's own */
  assert_int_equal(mid->input_count, 1);
  assert_string_equal(input_name(mid, 0), "x");
  assert_int_equal(mid->nodes[1].capture_count, 4);
  om_model_destroy(model);
}

static void names_that_nobody_has_are_told(void **state) {
  om_message graph = {.count = 0};
  om_message branch = add_branch("x,nowhere", "a");
  om_message node = om_message_node("If", "my_if", "x", "y");
  om_message y = om_message_value("y", 4);
  (void)state;
  add_graph_attr(&node, "then_branch", &branch);
  om_message_nest(&graph, 1, &node);
  add_inputs(&graph, (const char *const[]){"x", NULL});
  om_message_nest(&graph, 12, &y);
  expect_error(&graph, (const char *const[]){"my_if", "then_branch", "Add_0", "nowhere", NULL});
}

/* A branch that reads what its own If writes. */
static void cycles_through_bodies_are_told(void **state) {
  om_message graph = {.count = 0};
  om_message branch = add_branch("x,y", "a");
  om_message node = om_message_node("If", "my_if", "x", "y");
  om_message y = om_message_value("y", 4);
  (void)state;
  add_graph_attr(&node, "then_branch", &branch);
  add_graph_attr(&node, "else_branch", &branch);
  om_message_nest(&graph, 1, &node);
  add_inputs(&graph, (const char *const[]){"x", NULL});
  om_message_nest(&graph, 12, &y);
  expect_error(&graph, (const char *const[]){"my_if", "cycle", NULL});
}

static void cycles_in_bodies_are_told(void **state) {
  om_message graph = {.count = 0};
  om_message branch = add_branch("x,a", "a");
  om_message node = om_message_node("If", "my_if", "x", "y");
  om_message y = om_message_value("y", 4);
  (void)state;
  add_graph_attr(&node, "then_branch", &branch);
  add_graph_attr(&node, "else_branch", &branch);
  om_message_nest(&graph, 1, &node);
  add_inputs(&graph, (const char *const[]){"x", NULL});
  om_message_nest(&graph, 12, &y);
  expect_error(&graph, (const char *const[]){"my_if", "then_branch", "Add_0", "cycle", NULL});
}

static void depth_has_a_limit(void **state) {
  om_message body = add_branch("x,x", "y");
  (void)state;
  for (int i = 0; i < 40; ++i) {
    om_message graph = {.count = 0};
    om_message node = om_message_node("If", NULL, "x", "y");
    om_message y = untyped("y");
    add_graph_attr(&node, "then_branch", &body);
    om_message_nest(&graph, 1, &node);
    om_message_nest(&graph, 12, &y);
    body = graph;
  }
  add_inputs(&body, (const char *const[]){"x", NULL});
  expect_error(&body, (const char *const[]){"32 deep", NULL});
}

static void inputs_with_initializers_are_told(void **state) {
  om_message graph = {.count = 0};
  om_message body = add_branch("x,x", "a");
  om_message w = om_message_tensor("s", 4);
  om_message s = untyped("s");
  om_message node = om_message_node("Loop", "my_loop", ",,x", "y");
  om_message y = om_message_value("y", 4);
  (void)state;
  om_message_nest(&body, 5, &w);
  om_message_nest(&body, 11, &s);
  add_graph_attr(&node, "body", &body);
  om_message_nest(&graph, 1, &node);
  add_inputs(&graph, (const char *const[]){"x", NULL});
  om_message_nest(&graph, 12, &y);
  expect_error(&graph, (const char *const[]){"my_loop", "body", "'s'", "initializer", NULL});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(captured_values_are_operands),
      cmocka_unit_test(values_are_captured_through_bodies),
      cmocka_unit_test(names_that_nobody_has_are_told),
      cmocka_unit_test(cycles_through_bodies_are_told),
      cmocka_unit_test(cycles_in_bodies_are_told),
      cmocka_unit_test(depth_has_a_limit),
      cmocka_unit_test(inputs_with_initializers_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
