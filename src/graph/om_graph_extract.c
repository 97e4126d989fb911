/* A part of a graph as a graph of its own.
 *
 * A value that is given becomes two: the input, which keeps the name and which the part's nodes
 * read, and what a node of the part may make beside the value that is asked for.
 */
#include "graph/om_graph.h"

typedef struct extraction {
  om_graph *graph;      /* the copy */
  const bool *is_given; /* by value of the source */
  bool *is_made;        /* owned; by value of the source: a node of the part has to make it */
  om_value_id *input;   /* owned; by value of the source: the input that gives it */
  om_value_id *inputs;  /* in the copy's pool */
  size_t input_count;
} extraction;

static bool is_part(const extraction *e, const om_node *node) {
  for (uint32_t k = 0; k < node->output_count; ++k) {
    if (node->outputs[k] != OM_NO_VALUE && e->is_made[node->outputs[k]]) return true;
  }
  return false;
}

static om_status add_input(om_ctx *ctx, extraction *e, om_value_id id) {
  if (e->input[id] != OM_NO_VALUE) return OM_OK;
  om_value value = e->graph->values[id];
  const char *made = om_pool_format(ctx, &e->graph->pool, "%s.made", value.name);
  if (!made) return OM_E_OUT_OF_MEMORY;
  e->graph->values[id].name = made;
  e->graph->values[id].is_input = false;
  value.is_input = true;
  value.is_output = false;
  OM_TRY(om_graph_add_value(ctx, e->graph, &value, &e->input[id]));
  e->inputs[e->input_count++] = e->input[id];
  return OM_OK;
}

/* Gives the node inputs of its own: those of the part in place of the values that are given. */
static om_status take_node(om_ctx *ctx, extraction *e, om_node *node) {
  om_value_id *inputs = OM_POOL_NEW(ctx, &e->graph->pool, om_value_id, node->input_count);
  if (!inputs) return OM_E_OUT_OF_MEMORY;
  for (uint32_t k = 0; k < node->input_count; ++k) {
    const om_value_id id = inputs[k] = node->inputs[k];
    if (id == OM_NO_VALUE || e->graph->values[id].constant) continue;
    if (e->is_given[id]) {
      OM_TRY(add_input(ctx, e, id));
      inputs[k] = e->input[id];
    } else {
      e->is_made[id] = true;
    }
  }
  node->inputs = inputs;
  return OM_OK;
}

/* From the last node to the first: each knows by then whether the part needs it. */
static om_status take_nodes(om_ctx *ctx, extraction *e) {
  for (size_t i = e->graph->node_count; i-- > 0;) {
    om_node *node = &e->graph->nodes[i];
    if (is_part(e, node)) {
      OM_TRY(take_node(ctx, e, node));
    } else {
      node->type = NULL;
    }
  }
  return OM_OK;
}

static om_status set_ends(om_ctx *ctx, extraction *e, om_value_id output) {
  om_graph *graph = e->graph;
  om_value_id *outputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, 1);
  if (!outputs) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < graph->output_count; ++i) {
    graph->values[graph->outputs[i]].is_output = false;
  }
  outputs[0] = output;
  graph->values[output].is_output = true;
  graph->outputs = outputs;
  graph->output_count = 1;
  graph->inputs = e->inputs;
  graph->input_count = e->input_count;
  return OM_OK;
}

om_status om_graph_extract(om_ctx *ctx,
                           const om_graph *source,
                           const bool *is_given,
                           om_value_id output,
                           om_graph *out_graph) {
  om_status st = OM_OK;
  om_graph copy = {0};
  extraction e = {.graph = &copy, .is_given = is_given};
  const size_t value_count = source->value_count;
  OM_GO(om_graph_copy(ctx, source, &copy));
  OM_GO_NEW(e.is_made, value_count);
  OM_GO_NEW(e.input, value_count);
  memset(e.input, 0xff, value_count * sizeof *e.input); /* OM_NO_VALUE */
  e.inputs = OM_POOL_NEW(ctx, &copy.pool, om_value_id, value_count);
  if (!e.inputs) OM_GO(OM_E_OUT_OF_MEMORY);
  e.is_made[output] = true;
  OM_GO(take_nodes(ctx, &e));
  OM_GO(set_ends(ctx, &e, output));
  *out_graph = copy;
  copy = (om_graph){0}; /* the caller owns it now */
done:
  om_graph_deinit(ctx, &copy);
  om_delete(ctx, e.is_made);
  om_delete(ctx, e.input);
  return st;
}
