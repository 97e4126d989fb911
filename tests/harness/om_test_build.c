/* A case as a graph: one node, or those of the case's graph text. */
#include <ctype.h>
#include <stdio.h>

#include "harness/om_test_case.h"

void om_test_model_deinit(om_ctx *ctx, om_test_model *model) {
  om_pool_deinit(ctx, &model->pool);
}

/* ---- The graph text: "t = Conv(x0, x1) pads=1,1,1,1; y0, y1 = Split(t)" ---- */

/* Cuts "a, b" at its commas into names without spaces. */
static om_status parse_names(om_ctx *ctx,
                             om_pool *pool,
                             om_string text,
                             const char **names,
                             uint32_t capacity,
                             uint32_t *out_count) {
  *out_count = 0;
  size_t begin = 0;
  while (begin <= text.bytes && text.bytes > 0) {
    size_t end = begin;
    while (end < text.bytes && text.data[end] != ',') ++end;
    size_t first = begin, last = end;
    while (first < last && isspace((unsigned char)text.data[first])) ++first;
    while (last > first && isspace((unsigned char)text.data[last - 1])) --last;
    if (last - first == 2 && memcmp(text.data + first, "\"\"", 2) == 0) last = first;
    if (*out_count == capacity) return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "Too many names.");
    names[*out_count] = om_pool_text(ctx, pool, text.data + first, last - first);
    if (!names[(*out_count)++]) return OM_E_OUT_OF_MEMORY;
    begin = end + 1;
  }
  return OM_OK;
}

static om_status parse_node(om_ctx *ctx,
                            om_test_model *model,
                            const char *text,
                            om_test_node *node) {
  const char *equals = strchr(text, '=');
  const char *open = equals ? strchr(equals, '(') : NULL;
  const char *close = open ? strchr(open, ')') : NULL;
  const char *type = NULL;
  uint32_t type_count = 0;
  if (!close) return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "'%s' is not a node.", text);
  OM_TRY(parse_names(ctx,
                     &model->pool,
                     (om_string){text, (size_t)(equals - text)},
                     node->outputs,
                     OM_CASE_OUTPUTS,
                     &node->output_count));
  OM_TRY(parse_names(ctx,
                     &model->pool,
                     (om_string){equals + 1, (size_t)(open - equals - 1)},
                     &type,
                     1,
                     &type_count));
  OM_TRY(parse_names(ctx,
                     &model->pool,
                     (om_string){open + 1, (size_t)(close - open - 1)},
                     node->inputs,
                     (uint32_t)OM_COUNT_OF(node->inputs),
                     &node->input_count));
  node->type = type;
  node->domain = model->domain;
  return om_test_attrs_parse(ctx, &model->pool, close + 1, node->attrs, &node->attr_count);
}

static om_status parse_graph(om_ctx *ctx, om_test_model *model, const char *text) {
  const char *begin = text;
  while (*begin != '\0') {
    const char *end = strchr(begin, ';');
    const size_t bytes = end ? (size_t)(end - begin) : strlen(begin);
    const char *copy = om_pool_text(ctx, &model->pool, begin, bytes);
    if (!copy) return OM_E_OUT_OF_MEMORY;
    if (model->node_count == OM_TEST_NODES)
      return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "Too many nodes.");
    OM_TRY(parse_node(ctx, model, copy, &model->nodes[model->node_count++]));
    begin += bytes + (end ? 1 : 0);
  }
  return OM_OK;
}

static om_status single_node(om_ctx *ctx,
                             om_test_model *model,
                             const om_op_suite *suite,
                             const om_op_case *test_case) {
  om_test_node *node = &model->nodes[0];
  model->node_count = 1;
  node->type = suite->op_type;
  node->domain = model->domain;
  node->input_count = model->input_count;
  node->output_count = model->output_count;
  for (uint32_t i = 0; i < model->input_count; ++i) {
    node->inputs[i] = model->inputs[i].is_absent ? "" : model->inputs[i].name;
  }
  for (uint32_t i = 0; i < model->output_count; ++i) {
    node->outputs[i] = om_pool_format(ctx, &model->pool, "y%u", (unsigned)i);
    if (!node->outputs[i]) return OM_E_OUT_OF_MEMORY;
  }
  return om_test_attrs_parse(ctx, &model->pool, test_case->attrs, node->attrs, &node->attr_count);
}

om_status om_test_model_init(om_ctx *ctx,
                             const om_op_suite *suite,
                             const om_op_case *test_case,
                             uint64_t seed,
                             om_test_model *out_model) {
  om_status st = OM_OK;
  om_test_model *model = out_model;
  memset(model, 0, sizeof *model);
  model->opset = test_case->opset ? test_case->opset : 21;
  model->domain = suite->domain ? suite->domain : "";
  model->output_count = test_case->output_count ? test_case->output_count : 1;
  for (uint32_t i = 0; i < OM_CASE_INPUTS && test_case->inputs[i]; ++i) {
    om_test_input *input = &model->inputs[i];
    snprintf(input->name, sizeof input->name, "x%u", (unsigned)i);
    OM_GO(om_test_input_parse(ctx, &model->pool, test_case->inputs[i], seed + i, input));
    model->input_count = i + 1;
  }
  if (test_case->graph)
    OM_GO(parse_graph(ctx, model, test_case->graph));
  else
    OM_GO(single_node(ctx, model, suite, test_case));
done:
  if (st != OM_OK) om_error_prefix(ctx, "The case's text");
  return st;
}

/* ---- The graph ---- */

static om_status find_or_add(om_ctx *ctx, om_graph *graph, const char *name, om_value_id *out_id) {
  *out_id = OM_NO_VALUE;
  if (name[0] == '\0') return OM_OK;
  for (size_t i = 0; i < graph->value_count; ++i) {
    if (strcmp(graph->values[i].name, name) == 0) {
      *out_id = (om_value_id)i;
      return OM_OK;
    }
  }
  const om_value value = {.name = name, .producer = OM_NO_NODE};
  return om_graph_add_value(ctx, graph, &value, out_id);
}

static om_status add_inputs(om_ctx *ctx, const om_test_model *model, om_graph *graph) {
  om_value_id *inputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, OM_CASE_INPUTS);
  if (!inputs) return OM_E_OUT_OF_MEMORY;
  graph->inputs = inputs;
  for (uint32_t i = 0; i < model->input_count; ++i) {
    const om_test_input *input = &model->inputs[i];
    om_value value = {.name = input->name, .producer = OM_NO_NODE, .dtype = input->tensor.dtype};
    om_value_id id = 0;
    if (input->is_absent) continue;
    value.has_rank = true;
    value.rank = input->tensor.rank;
    for (uint32_t d = 0; d < value.rank; ++d)
      value.dims[d] = input->is_constant ? input->tensor.dims[d] : -1;
    value.constant = input->is_constant ? &input->tensor : NULL;
    value.is_input = !input->is_constant;
    OM_TRY(om_graph_add_value(ctx, graph, &value, &id));
    if (value.is_input) inputs[graph->input_count++] = id;
  }
  return OM_OK;
}

static om_status add_node(om_ctx *ctx,
                          const om_test_model *model,
                          const om_test_node *source,
                          uint32_t index,
                          om_graph *graph) {
  om_value_id *inputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, source->input_count + 1);
  om_value_id *outputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, source->output_count + 1);
  const char *name = om_pool_format(ctx, &graph->pool, "n%u", (unsigned)index);
  om_node_id id = 0;
  if (!inputs || !outputs || !name) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < source->input_count; ++i) {
    OM_TRY(find_or_add(ctx, graph, source->inputs[i], &inputs[i]));
  }
  for (uint32_t i = 0; i < source->output_count; ++i) {
    OM_TRY(find_or_add(ctx, graph, source->outputs[i], &outputs[i]));
  }
  const om_node node = {.name = name,
                        .type = source->type,
                        .domain = source->domain,
                        .opset = model->opset,
                        .inputs = inputs,
                        .input_count = source->input_count,
                        .outputs = outputs,
                        .output_count = source->output_count,
                        .attrs = source->attrs,
                        .attr_count = source->attr_count};
  return om_graph_add_node(ctx, graph, &node, &id);
}

om_status om_test_model_graph(om_ctx *ctx, const om_test_model *model, om_graph *out_graph) {
  om_graph *graph = out_graph;
  memset(graph, 0, sizeof *graph);
  OM_TRY(add_inputs(ctx, model, graph));
  for (uint32_t i = 0; i < model->node_count; ++i) {
    OM_TRY(add_node(ctx, model, &model->nodes[i], i, graph));
  }
  om_value_id *outputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, model->output_count);
  om_opset *opset = OM_POOL_NEW(ctx, &graph->pool, om_opset, 1);
  if (!outputs || !opset) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < model->output_count; ++i) {
    const char *name = om_pool_format(ctx, &graph->pool, "y%u", (unsigned)i);
    if (!name) return OM_E_OUT_OF_MEMORY;
    OM_TRY(find_or_add(ctx, graph, name, &outputs[i]));
    graph->values[outputs[i]].is_output = true;
  }
  *opset = (om_opset){.domain = model->domain, .version = model->opset};
  graph->outputs = outputs;
  graph->output_count = model->output_count;
  graph->opsets = opset;
  graph->opset_count = 1;
  return om_graph_finish(ctx, graph);
}
