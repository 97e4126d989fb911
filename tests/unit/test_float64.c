/* Graphs in float64, and parts of graphs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/om_op.h"
#include "harness/om_fault.h"
#include "harness/om_graph_builder.h"
#include "harness/om_test_float64.h"
#include "onnx/om_model.h"
#include "rewrite/om_float64.h"

static const int64_t four[] = {4}, one[] = {1};

typedef struct fixture {
  om_graph_builder b;
  om_error error;
  om_ctx ctx;
  om_model *model;
  om_graph wide;
} fixture;

static void init(fixture *f, int64_t opset) {
  memset(f, 0, sizeof *f);
  f->ctx = (om_ctx){.allocator = om_default_allocator(), .error = &f->error, .thread_count = 1};
  om_build_begin(&f->b, opset);
}

static void widen(fixture *f) {
  f->model = om_build_model(&f->b);
  assert_int_equal(om_graph_to_float64(&f->ctx, om_model_get_graph(f->model), &f->wide), OM_OK);
}

static void deinit(fixture *f) {
  om_graph_deinit(&f->ctx, &f->wide);
  om_model_destroy(f->model);
}

static const om_tensor *constant_of(const fixture *f, const char *node, uint32_t input) {
  for (size_t i = 0; i < f->wide.node_count; ++i) {
    const om_node *it = &f->wide.nodes[i];
    if (strcmp(it->name, node) == 0) return f->wide.values[it->inputs[input]].constant;
  }
  fail_msg("there is no node %s", node);
  return NULL;
}

/* x * 0.1f, by way of float16, + 0.1f: only the constants' own rounding is left. */
static void floats_become_doubles(void **state) {
  static const float tenth = 0.1f;
  static const uint16_t half_third = 0x3555; /* 0.333251953125 */
  float x[4] = {1.0f, 1.0f / 3.0f, -7.7f, 1e-30f};
  fixture f;
  size_t elems = 0;
  (void)state;
  init(&f, 17);
  om_value_id in = om_build_input(&f.b, "x", OM_DTYPE_F32, 1, four, NULL);
  om_value_id c = om_build_constant(&f.b, "c", OM_DTYPE_F32, 0, NULL, &tenth);
  om_value_id h = om_build_constant(&f.b, "h", OM_DTYPE_F16, 0, NULL, &half_third);
  om_value_id m = om_build_node(&f.b, "Mul", "m", 2, (om_value_id[]){in, c});
  om_value_id n = om_build_node(&f.b, "Cast", "n", 1, (om_value_id[]){m});
  om_build_int(&f.b, "to", OM_DTYPE_F16);
  om_value_id s = om_build_node(&f.b, "Add", "s", 2, (om_value_id[]){n, h});
  om_value_id t = om_build_node(&f.b, "Cast", "t", 1, (om_value_id[]){s});
  om_build_int(&f.b, "to", OM_DTYPE_F32);
  om_build_output(&f.b, om_build_node(&f.b, "Add", "y", 2, (om_value_id[]){t, c}));
  widen(&f);
  assert_int_equal(f.wide.values[f.wide.inputs[0]].dtype, OM_DTYPE_F64);
  assert_int_equal(constant_of(&f, "y", 1)->dtype, OM_DTYPE_F64);

  const om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, four, x)};
  double *y = om_test_run_float64(f.model, &input, 1, "y", &elems);
  assert_int_equal(elems, 4);
  for (size_t i = 0; i < 4; ++i) {
    const double expected = (double)x[i] * (double)tenth + 0.333251953125 + (double)tenth;
    assert_true(fabs(y[i] - expected) < 1e-15);
  }
  free(y);
  deinit(&f);
}

/* The shape's arithmetic keeps float32, what is computed with the same constant does not. */
static void decisions_stay(void **state) {
  static const float third = 1.0f / 3.0f;
  float x[4] = {1, 2, 3, 4};
  fixture f;
  size_t elems = 0;
  (void)state;
  init(&f, 17);
  om_value_id in = om_build_input(&f.b, "x", OM_DTYPE_F32, 1, four, NULL);
  om_value_id c = om_build_constant(&f.b, "c", OM_DTYPE_F32, 1, one, &third);
  om_value_id shape = om_build_node(&f.b, "Shape", "shape", 1, (om_value_id[]){in});
  om_value_id real = om_build_node(&f.b, "Cast", "real", 1, (om_value_id[]){shape});
  om_build_int(&f.b, "to", OM_DTYPE_F32);
  om_value_id less = om_build_node(&f.b, "Div", "less", 2, (om_value_id[]){real, c});
  om_value_id size = om_build_node(&f.b, "Cast", "size", 1, (om_value_id[]){less});
  om_build_int(&f.b, "to", OM_DTYPE_I64);
  om_value_id zeros = om_build_node(&f.b, "ConstantOfShape", "zeros", 1, (om_value_id[]){size});
  om_value_id mean = om_build_node(&f.b, "ReduceMean", "mean", 1, (om_value_id[]){in});
  om_value_id part = om_build_node(&f.b, "Mul", "part", 2, (om_value_id[]){mean, c});
  om_build_output(&f.b, om_build_node(&f.b, "Add", "y", 2, (om_value_id[]){zeros, part}));
  widen(&f);
  assert_int_equal(constant_of(&f, "less", 1)->dtype, OM_DTYPE_F32);
  assert_int_equal(constant_of(&f, "part", 1)->dtype, OM_DTYPE_F64);

  const om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, four, x)};
  double *y = om_test_run_float64(f.model, &input, 1, "y", &elems);
  assert_int_equal(elems, 12); /* 4 / third in float32; in float64 it is below 12 */
  assert_true(fabs(y[0] - 2.5 * (double)third) < 1e-15);
  free(y);
  deinit(&f);
}

static void scales_stay(void **state) {
  static const float two[] = {2.0f};
  float x[4] = {1, 2, 3, 4};
  fixture f;
  size_t elems = 0;
  (void)state;
  init(&f, 13);
  om_value_id in = om_build_input(&f.b, "x", OM_DTYPE_F32, 1, four, NULL);
  om_value_id c = om_build_constant(&f.b, "c", OM_DTYPE_F32, 1, one, two);
  om_build_output(&f.b, om_build_node(&f.b, "Resize", "y", 3, (om_value_id[]){in, OM_NO_VALUE, c}));
  widen(&f);
  assert_int_equal(constant_of(&f, "y", 2)->dtype, OM_DTYPE_F32);
  const om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, four, x)};
  double *y = om_test_run_float64(f.model, &input, 1, "y", &elems);
  assert_int_equal(elems, 8);
  free(y);
  deinit(&f);
}

static void choices_read_float32(void **state) {
  static const float two[] = {2.0f};
  static const int64_t box_dims[] = {1, 3, 4}, score_dims[] = {1, 1, 3}, most[] = {3};
  float boxes[12] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3}, scores[3] = {0.5f, 0.75f, 0.25f};
  fixture f;
  size_t elems = 0;
  (void)state;
  init(&f, 13);
  om_value_id in = om_build_input(&f.b, "x", OM_DTYPE_F32, 3, box_dims, NULL);
  om_value_id c = om_build_constant(&f.b, "c", OM_DTYPE_F32, 1, one, two);
  om_value_id doubled = om_build_node(&f.b, "Mul", "doubled", 2, (om_value_id[]){in, c});
  om_value_id at = om_build_constant(&f.b, "at", OM_DTYPE_F32, 3, score_dims, scores);
  om_value_id count = om_build_constant(&f.b, "count", OM_DTYPE_I64, 1, one, most);
  om_value_id chosen =
      om_build_node(&f.b, "NonMaxSuppression", "chosen", 3, (om_value_id[]){doubled, at, count});
  om_build_output(&f.b, doubled);
  om_value_id wide = om_build_node(&f.b, "Cast", "y", 1, &chosen);
  om_build_int(&f.b, "to", OM_DTYPE_F32);
  om_build_output(&f.b, wide);
  widen(&f);
  const om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 3, box_dims, boxes)};
  double *y = om_test_run_float64(f.model, &input, 1, "y", &elems);
  assert_int_equal(elems, 6); /* two boxes: the second, then the third */
  assert_true(y[2] == 1.0 && y[5] == 2.0);
  free(y);
  deinit(&f);
}

static void graphs_inside_are_refused(void **state) {
  static const om_attr branch = {.name = "then_branch", .kind = OM_ATTR_GRAPH};
  fixture f;
  (void)state;
  init(&f, 17);
  om_value_id in = om_build_input(&f.b, "x", OM_DTYPE_F32, 1, four, NULL);
  om_build_output(&f.b, om_build_node(&f.b, "Relu", "y", 1, (om_value_id[]){in}));
  f.b.graph.nodes[f.b.last_node].attrs = &branch;
  f.b.graph.nodes[f.b.last_node].attr_count = 1;
  f.model = om_build_model(&f.b);
  assert_int_equal(om_graph_to_float64(&f.ctx, om_model_get_graph(f.model), &f.wide),
                   OM_E_UNSUPPORTED);
  assert_non_null(strstr(f.error.message, "'y' (Relu) holds a graph"));
  deinit(&f);
}

/* ---- Parts ---- */

static om_value_id find(const om_graph *graph, const char *name) {
  for (om_value_id id = 0; id < graph->value_count; ++id) {
    if (strcmp(graph->values[id].name, name) == 0) return id;
  }
  fail_msg("there is no value %s", name);
  return OM_NO_VALUE;
}

/* r = Relu(x); n = Neg(r); s = Split(n); y = s[0] * s[1] + r */
static void build_split(fixture *f) {
  init(f, 17);
  om_value_id in = om_build_input(&f->b, "x", OM_DTYPE_F32, 1, four, NULL);
  om_value_id r = om_build_node(&f->b, "Relu", "r", 1, (om_value_id[]){in});
  om_value_id n = om_build_node(&f->b, "Neg", "n", 1, (om_value_id[]){r});
  om_value_id first = om_build_node(&f->b, "Split", "first", 1, (om_value_id[]){n});
  const om_value second_value = {.name = "second", .producer = OM_NO_NODE};
  om_value_id second = OM_NO_VALUE;
  assert_int_equal(om_graph_add_value(&f->ctx, &f->b.graph, &second_value, &second), OM_OK);
  om_node *split = &f->b.graph.nodes[f->b.last_node];
  om_value_id *outputs = OM_POOL_NEW(&f->ctx, &f->b.graph.pool, om_value_id, 2);
  assert_non_null(outputs);
  outputs[0] = first;
  outputs[1] = second;
  split->outputs = outputs;
  split->output_count = 2;
  om_value_id p = om_build_node(&f->b, "Mul", "p", 2, (om_value_id[]){first, second});
  om_value_id t = om_build_node(&f->b, "Tile", "t", 2, (om_value_id[]){p, p});
  (void)t;
  om_build_output(&f->b, om_build_node(&f->b, "Add", "y", 2, (om_value_id[]){p, r}));
  f->model = om_build_model(&f->b);
}

static om_status extract(fixture *f, const char *const *given, size_t count, const char *output) {
  const om_graph *graph = om_model_get_graph(f->model);
  bool is_given[16] = {0};
  for (size_t i = 0; i < count; ++i) is_given[find(graph, given[i])] = true;
  om_graph_deinit(&f->ctx, &f->wide);
  om_status st = om_graph_extract(&f->ctx, graph, is_given, find(graph, output), &f->wide);
  return st == OM_OK ? om_graph_finish(&f->ctx, &f->wide) : st;
}

static void parts_end_at_what_is_given(void **state) {
  fixture f;
  (void)state;
  build_split(&f);
  assert_int_equal(extract(&f, (const char *const[]){"x", "r", "p"}, 3, "y"), OM_OK);
  assert_int_equal(f.wide.node_count, 1);
  assert_int_equal(f.wide.input_count, 2);
  assert_int_equal(f.wide.output_count, 1);
  assert_string_equal(f.wide.values[f.wide.outputs[0]].name, "y");
  assert_int_equal(extract(&f, (const char *const[]){"x"}, 1, "p"), OM_OK);
  assert_int_equal(f.wide.node_count, 4); /* without the Tile, which p does not need */
  assert_int_equal(f.wide.input_count, 1);
  deinit(&f);
}

/* A node makes both what is given and what is not. */
static void given_values_may_be_made_too(void **state) {
  fixture f;
  (void)state;
  build_split(&f);
  assert_int_equal(extract(&f, (const char *const[]){"x", "n", "first"}, 3, "p"), OM_OK);
  assert_int_equal(f.wide.node_count, 2);
  assert_int_equal(f.wide.input_count, 2);
  assert_false(f.wide.values[find(&f.wide, "first.made")].is_input);
  assert_true(f.wide.values[find(&f.wide, "first")].is_input);
  deinit(&f);
}

static void every_allocation_may_fail(void **state) {
  fixture f;
  (void)state;
  build_split(&f);
  for (size_t fail_at = 0;; ++fail_at) {
    om_fault fault = {.fail_at = fail_at};
    om_allocator allocator = om_fault_allocator(&fault);
    om_ctx ctx = {.allocator = allocator, .error = &f.error, .thread_count = 1};
    om_graph wide = {0}, part = {0};
    bool is_given[16] = {true};
    om_error_clear(&f.error);
    om_status st = om_graph_to_float64(&ctx, om_model_get_graph(f.model), &wide);
    if (st == OM_OK) st = om_graph_finish(&ctx, &wide);
    if (st == OM_OK) st = om_graph_extract(&ctx, &wide, is_given, find(&wide, "y"), &part);
    om_graph_deinit(&ctx, &part);
    om_graph_deinit(&ctx, &wide);
    assert_int_equal(om_fault_live_blocks(&fault), 0);
    if (st == OM_OK) break;
    assert_int_equal(st, OM_E_OUT_OF_MEMORY);
  }
  deinit(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(floats_become_doubles),
      cmocka_unit_test(decisions_stay),
      cmocka_unit_test(scales_stay),
      cmocka_unit_test(choices_read_float32),
      cmocka_unit_test(graphs_inside_are_refused),
      cmocka_unit_test(parts_end_at_what_is_given),
      cmocka_unit_test(given_values_may_be_made_too),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
