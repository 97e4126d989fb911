/* The graph's arrays, its order and its checks. */
#include "graph/om_graph.h"

void om_graph_deinit(om_ctx *ctx, om_graph *graph) {
  /* The graphs themselves lie in the outermost one's pool. */
  for (om_graph *at = graph->bodies; at; at = at->body.next) om_pool_deinit(ctx, &at->pool);
  for (om_graph *at = graph->functions; at; at = at->body.next) om_pool_deinit(ctx, &at->pool);
  om_pool_deinit(ctx, &graph->pool);
  memset(graph, 0, sizeof *graph);
}

/* Doubles an array in the pool. The old one stays there until the graph ends: a geometric series,
 * so at most as much again. */
static om_status grow_in_pool(
    om_ctx *ctx, om_pool *pool, void **array, size_t count, size_t *capacity, size_t elem_bytes) {
  if (count < *capacity) return OM_OK;
  size_t wanted = 16;
  if (*capacity > 0 && !om_size_mul(*capacity, 2, &wanted)) {
    return OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "A graph of %zu elements cannot grow.", count);
  }
  void *grown = om_pool_new_bytes(ctx, pool, wanted, elem_bytes);
  if (!grown) return OM_E_OUT_OF_MEMORY;
  if (count > 0) memcpy(grown, *array, count * elem_bytes);
  *array = grown;
  *capacity = wanted;
  return OM_OK;
}

om_status om_graph_add_value(om_ctx *ctx,
                             om_graph *graph,
                             const om_value *value,
                             om_value_id *out_id) {
  if (graph->value_count >= OM_NO_VALUE - 1) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "%zu values are too many.", graph->value_count);
  }
  void *values = graph->values;
  OM_TRY(grow_in_pool(
      ctx, &graph->pool, &values, graph->value_count, &graph->value_capacity, sizeof *value));
  graph->values = values;
  graph->values[graph->value_count] = *value;
  *out_id = (om_value_id)graph->value_count++;
  return OM_OK;
}

om_status om_graph_add_node(om_ctx *ctx, om_graph *graph, const om_node *node, om_node_id *out_id) {
  if (graph->node_count >= OM_NO_NODE - 1) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "%zu nodes are too many.", graph->node_count);
  }
  void *nodes = graph->nodes;
  OM_TRY(grow_in_pool(
      ctx, &graph->pool, &nodes, graph->node_count, &graph->node_capacity, sizeof *node));
  graph->nodes = nodes;
  graph->nodes[graph->node_count] = *node;
  *out_id = (om_node_id)graph->node_count++;
  return OM_OK;
}

om_status om_graph_copy(om_ctx *ctx, const om_graph *source, om_graph *out_graph) {
  om_status st = OM_OK;
  om_graph copy = *source;
  copy.pool = (om_pool){0};
  copy.bodies = NULL; /* the source owns them */
  copy.functions = NULL;
  copy.value_capacity = copy.value_count;
  copy.node_capacity = copy.node_count;
  copy.values = OM_POOL_NEW(ctx, &copy.pool, om_value, copy.value_count);
  if (!copy.values) OM_GO(OM_E_OUT_OF_MEMORY);
  copy.nodes = OM_POOL_NEW(ctx, &copy.pool, om_node, copy.node_count);
  if (!copy.nodes) OM_GO(OM_E_OUT_OF_MEMORY);
  if (copy.value_count) memcpy(copy.values, source->values, copy.value_count * sizeof(om_value));
  if (copy.node_count) memcpy(copy.nodes, source->nodes, copy.node_count * sizeof(om_node));
  *out_graph = copy;
  copy = (om_graph){0}; /* the caller owns its pool now */
done:
  om_pool_deinit(ctx, &copy.pool);
  return st;
}

void om_graph_constant_copied(const om_graph *graph, const om_tensor *constant) {
  if (graph->on_copied) graph->on_copied(graph->lender, constant->data, constant->data_bytes);
}

void om_graph_count_uses(const om_graph *graph, uint32_t *counts) {
  memset(counts, 0, graph->value_count * sizeof *counts);
  for (size_t i = 0; i < graph->node_count; ++i) {
    const om_node *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] != OM_NO_VALUE) ++counts[node->inputs[k]];
    }
  }
  for (size_t i = 0; i < graph->output_count; ++i) ++counts[graph->outputs[i]];
}

static void drop_deleted_nodes(om_graph *graph) {
  size_t kept = 0;
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (graph->nodes[i].type) graph->nodes[kept++] = graph->nodes[i];
  }
  graph->node_count = kept;
}

static om_status set_producers(om_ctx *ctx, om_graph *graph) {
  for (size_t i = 0; i < graph->value_count; ++i) graph->values[i].producer = OM_NO_NODE;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const om_node *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->output_count; ++k) {
      if (node->outputs[k] == OM_NO_VALUE) continue;
      om_value *value = &graph->values[node->outputs[k]];
      if (value->producer != OM_NO_NODE) {
        return OM_FAIL(ctx,
                       OM_E_INVALID_MODEL,
                       "Node '%s' (%s) writes '%s', which node '%s' writes already.",
                       node->name,
                       node->type,
                       value->name,
                       graph->nodes[value->producer].name);
      }
      if (value->is_input || value->constant) {
        return OM_FAIL(ctx,
                       OM_E_INVALID_MODEL,
                       "Node '%s' (%s) writes '%s', which is %s.",
                       node->name,
                       node->type,
                       value->name,
                       value->constant ? "a constant" : "an input of the graph");
      }
      value->producer = (om_node_id)i;
    }
  }
  return OM_OK;
}

static bool is_made(const om_value *value) {
  return value->is_input || value->constant || value->producer != OM_NO_NODE;
}

static om_status check_made(om_ctx *ctx, const om_graph *graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    const om_node *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] == OM_NO_VALUE || is_made(&graph->values[node->inputs[k]])) continue;
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "Node '%s' (%s) reads '%s', which no node, input or initializer provides.",
                     node->name,
                     node->type,
                     graph->values[node->inputs[k]].name);
    }
  }
  for (size_t i = 0; i < graph->output_count; ++i) {
    const om_value *value = &graph->values[graph->outputs[i]];
    if (is_made(value)) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "No node, input or initializer provides the graph's output '%s'.",
                   value->name);
  }
  return OM_OK;
}

/* A depth-first walk with a stack of its own: models decide how deep it goes. */
typedef struct walk {
  const om_graph *graph;
  om_node_id *stack;    /* the nodes being visited: each waits for the one above it */
  uint32_t *next_input; /* by node: the input to look at next */
  uint8_t *state;       /* by node */
  om_node_id *order;    /* out */
  size_t order_count;
} walk;

enum { NODE_UNSEEN = 0, NODE_OPEN = 1, NODE_DONE = 2 };

/* The first unfinished node among those that `node` still has to wait for. */
static om_node_id next_needed(walk *w, om_node_id id) {
  const om_node *node = &w->graph->nodes[id];
  while (w->next_input[id] < node->input_count) {
    om_value_id input = node->inputs[w->next_input[id]++];
    if (input == OM_NO_VALUE) continue;
    om_node_id producer = w->graph->values[input].producer;
    if (producer != OM_NO_NODE && w->state[producer] != NODE_DONE) return producer;
  }
  return OM_NO_NODE;
}

static om_status visit(om_ctx *ctx, walk *w, om_node_id root) {
  size_t depth = 0;
  w->stack[depth++] = root;
  w->state[root] = NODE_OPEN;
  while (depth > 0) {
    om_node_id id = w->stack[depth - 1];
    om_node_id needed = next_needed(w, id);
    if (needed == OM_NO_NODE) {
      w->state[id] = NODE_DONE;
      w->order[w->order_count++] = id;
      --depth;
    } else if (w->state[needed] == NODE_OPEN) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "Node '%s' (%s) is part of a cycle: it needs a result of '%s', which needs "
                     "its own.",
                     w->graph->nodes[id].name,
                     w->graph->nodes[id].type,
                     w->graph->nodes[needed].name);
    } else {
      w->state[needed] = NODE_OPEN;
      w->stack[depth++] = needed;
    }
  }
  return OM_OK;
}

static bool is_sorted(const walk *w) {
  for (size_t i = 0; i < w->order_count; ++i) {
    if (w->order[i] != i) return false;
  }
  return true;
}

/* Roots are taken in the nodes' order, so nodes that are in order already stay where they are. */
static om_status sort_nodes(om_ctx *ctx, om_graph *graph) {
  om_status st = OM_OK;
  walk w = {.graph = graph};
  om_node *sorted = NULL;
  size_t count = graph->node_count;

  OM_GO_NEW(w.stack, count);
  OM_GO_NEW(w.next_input, count);
  OM_GO_NEW(w.state, count);
  OM_GO_NEW(w.order, count);
  for (size_t i = 0; i < count; ++i) {
    if (w.state[i] == NODE_UNSEEN) OM_GO(visit(ctx, &w, (om_node_id)i));
  }
  if (is_sorted(&w)) goto done;
  OM_GO_NEW(sorted, count);
  for (size_t i = 0; i < count; ++i) sorted[i] = graph->nodes[w.order[i]];
  memcpy(graph->nodes, sorted, count * sizeof *sorted);
  OM_GO(set_producers(ctx, graph));
done:
  om_delete(ctx, w.stack);
  om_delete(ctx, w.next_input);
  om_delete(ctx, w.state);
  om_delete(ctx, w.order);
  om_delete(ctx, sorted);
  return st;
}

om_status om_graph_finish(om_ctx *ctx, om_graph *graph) {
  drop_deleted_nodes(graph);
  OM_TRY(set_producers(ctx, graph));
  OM_TRY(check_made(ctx, graph));
  return sort_nodes(ctx, graph);
}
