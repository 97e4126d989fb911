/* Small models made in memory: see om_graph_builder.h. */
#include "harness/om_graph_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx/om_model.h"

static om_ctx context(om_graph_builder *b) {
  return (om_ctx){.allocator = b->allocator, .error = &b->error, .thread_count = 1};
}

static void check(om_graph_builder *b, om_status st) {
  if (st != OM_OK) fail_msg("building a graph: %s", b->error.message);
}

void om_build_begin(om_graph_builder *b, int64_t opset) {
  memset(b, 0, sizeof *b);
  b->allocator = om_default_allocator();
  b->opset = (om_opset){.domain = "", .version = opset};
}

static om_value_id add_value(om_graph_builder *b, const om_value *value) {
  om_ctx ctx = context(b);
  om_value_id id = OM_NO_VALUE;
  check(b, om_graph_add_value(&ctx, &b->graph, value, &id));
  return id;
}

om_value_id om_build_input(om_graph_builder *b,
                           const char *name,
                           om_dtype dtype,
                           uint32_t rank,
                           const int64_t *dims,
                           const char *const *symbols) {
  om_value value = {.name = name,
                    .dtype = dtype,
                    .has_rank = true,
                    .rank = rank,
                    .producer = OM_NO_NODE,
                    .is_input = true};
  for (uint32_t i = 0; i < rank; ++i) {
    value.dims[i] = dims[i];
    value.dim_names[i] = symbols ? symbols[i] : NULL;
  }
  assert_true(b->input_count < OM_BUILD_MAX_VALUES);
  b->inputs[b->input_count] = add_value(b, &value);
  return b->inputs[b->input_count++];
}

om_value_id om_build_constant(om_graph_builder *b,
                              const char *name,
                              om_dtype dtype,
                              uint32_t rank,
                              const int64_t *dims,
                              const void *data) {
  om_ctx ctx = context(b);
  om_value value = {
      .name = name, .dtype = dtype, .has_rank = true, .rank = rank, .producer = OM_NO_NODE};
  om_tensor *tensor = OM_POOL_NEW(&ctx, &b->graph.pool, om_tensor, 1);
  assert_non_null(tensor);
  void *place = NULL;
  memcpy(&place, &data, sizeof place); /* borrowed, never written */
  *tensor = om_tensor_of(dtype, rank, dims, place);
  for (uint32_t i = 0; i < rank; ++i) value.dims[i] = dims[i];
  value.constant = tensor;
  return add_value(b, &value);
}

om_value_id om_build_node(om_graph_builder *b,
                          const char *type,
                          const char *name,
                          uint32_t input_count,
                          const om_value_id *inputs) {
  om_ctx ctx = context(b);
  om_value result = {.name = name, .producer = OM_NO_NODE};
  om_value_id *kept = OM_POOL_NEW(&ctx, &b->graph.pool, om_value_id, input_count);
  om_value_id *outputs = OM_POOL_NEW(&ctx, &b->graph.pool, om_value_id, 1);
  assert_non_null(kept);
  assert_non_null(outputs);
  for (uint32_t i = 0; i < input_count; ++i) kept[i] = inputs[i];
  outputs[0] = add_value(b, &result);
  om_node node = {.name = name,
                  .type = type,
                  .domain = "",
                  .opset = (int32_t)b->opset.version,
                  .inputs = kept,
                  .input_count = input_count,
                  .outputs = outputs,
                  .output_count = 1};
  check(b, om_graph_add_node(&ctx, &b->graph, &node, &b->last_node));
  return outputs[0];
}

static void add_attr(om_graph_builder *b, om_attr attr) {
  om_ctx ctx = context(b);
  om_node *node = &b->graph.nodes[b->last_node];
  om_attr *attrs = OM_POOL_NEW(&ctx, &b->graph.pool, om_attr, node->attr_count + 1);
  assert_non_null(attrs);
  for (uint32_t i = 0; i < node->attr_count; ++i) attrs[i] = node->attrs[i];
  attrs[node->attr_count++] = attr;
  node->attrs = attrs;
}

void om_build_int(om_graph_builder *b, const char *name, int64_t value) {
  add_attr(b, (om_attr){.name = name, .kind = OM_ATTR_INT, .count = 1, .i = value});
}

void om_build_float(om_graph_builder *b, const char *name, float value) {
  add_attr(b, (om_attr){.name = name, .kind = OM_ATTR_FLOAT, .count = 1, .f = value});
}

void om_build_ints(om_graph_builder *b, const char *name, size_t count, const int64_t *values) {
  om_ctx ctx = context(b);
  int64_t *kept = OM_POOL_NEW(&ctx, &b->graph.pool, int64_t, count);
  assert_non_null(kept);
  memcpy(kept, values, count * sizeof *kept);
  add_attr(b, (om_attr){.name = name, .kind = OM_ATTR_INTS, .count = count, .ints = kept});
}

void om_build_output(om_graph_builder *b, om_value_id value) {
  assert_true(b->output_count < OM_BUILD_MAX_VALUES);
  b->graph.values[value].is_output = true;
  b->outputs[b->output_count++] = value;
}

om_graph om_build_graph(om_graph_builder *b) {
  om_ctx ctx = context(b);
  om_graph *graph = &b->graph;
  om_value_id *inputs = OM_POOL_NEW(&ctx, &graph->pool, om_value_id, b->input_count);
  om_value_id *outputs = OM_POOL_NEW(&ctx, &graph->pool, om_value_id, b->output_count);
  om_opset *opset = OM_POOL_NEW(&ctx, &graph->pool, om_opset, 1);
  assert_non_null(inputs);
  assert_non_null(outputs);
  assert_non_null(opset);
  memcpy(inputs, b->inputs, b->input_count * sizeof *inputs);
  memcpy(outputs, b->outputs, b->output_count * sizeof *outputs);
  *opset = b->opset;
  graph->inputs = inputs;
  graph->input_count = b->input_count;
  graph->outputs = outputs;
  graph->output_count = b->output_count;
  graph->opsets = opset;
  graph->opset_count = 1;
  om_graph taken = *graph;
  memset(graph, 0, sizeof *graph);
  return taken;
}

om_model *om_build_model(om_graph_builder *b) {
  om_ctx ctx = context(b);
  om_graph graph = om_build_graph(b);
  om_model *model = NULL;
  check(b, om_model_create_from_graph(&ctx, &graph, &model));
  return model;
}
