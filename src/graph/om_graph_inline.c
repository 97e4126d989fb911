/* A graph in the place of a node. */
#include "graph/om_op.h"

typedef struct inlining {
  om_graph *graph;
  const om_graph *body;
  const char *name;    /* of the node that goes */
  om_value_id *to;     /* scratch; by the body's values: those of the graph */
  om_inline_hook hook; /* may be NULL */
  void *user;
} inlining;

/* What the body makes as an output is the node's output; other values are new. */
static void map_outputs(inlining *in, const om_node *node) {
  for (uint32_t i = 0; i < node->output_count && i < in->body->output_count; ++i) {
    om_value_id from = in->body->outputs[i];
    const om_value *value = &in->body->values[from];
    bool is_made = !value->is_input && !value->constant;
    if (is_made && in->to[from] == OM_NO_VALUE) in->to[from] = node->outputs[i];
  }
}

static om_status add_values(om_ctx *ctx, inlining *in) {
  for (om_value_id id = 0; id < in->body->value_count; ++id) {
    om_value value = in->body->values[id];
    if (in->to[id] != OM_NO_VALUE || value.is_input) continue; /* an input may be absent */
    value.name = om_pool_format(ctx, &in->graph->pool, "%.200s/%.200s", in->name, value.name);
    if (!value.name) return OM_E_OUT_OF_MEMORY;
    value.producer = OM_NO_NODE;
    value.is_output = false;
    OM_TRY(om_graph_add_value(ctx, in->graph, &value, &in->to[id]));
  }
  return OM_OK;
}

static om_status map_ids(om_ctx *ctx,
                         const inlining *in,
                         const om_value_id *ids,
                         uint32_t count,
                         const om_value_id **out_ids) {
  om_value_id *mapped = OM_POOL_NEW(ctx, &in->graph->pool, om_value_id, count);
  if (!mapped) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < count; ++i) {
    mapped[i] = ids[i] == OM_NO_VALUE ? OM_NO_VALUE : in->to[ids[i]];
  }
  *out_ids = mapped;
  return OM_OK;
}

static om_status add_node(om_ctx *ctx, inlining *in, const om_node *source) {
  om_node node = *source;
  om_node_id id = OM_NO_NODE;
  bool is_kept = true;
  node.name = om_pool_format(ctx, &in->graph->pool, "%.200s/%.200s", in->name, source->name);
  if (!node.name) return OM_E_OUT_OF_MEMORY;
  OM_TRY(map_ids(ctx, in, source->inputs, source->input_count, &node.inputs));
  OM_TRY(map_ids(ctx, in, source->outputs, source->output_count, &node.outputs));
  if (in->hook) OM_TRY(in->hook(ctx, in->user, &node, &is_kept));
  return is_kept ? om_graph_add_node(ctx, in->graph, &node, &id) : OM_OK;
}

/* For an output that the body does not make, but hands on, or that it has twice. */
static om_status add_identity(om_ctx *ctx, const inlining *in, om_value_id from, om_value_id to) {
  enum { IDENTITY_OPSET = 16 }; /* the first that takes any value */
  om_node_id id = OM_NO_NODE;
  om_value_id *ids = OM_POOL_NEW(ctx, &in->graph->pool, om_value_id, 2);
  if (!ids) return OM_E_OUT_OF_MEMORY;
  ids[0] = from;
  ids[1] = to;
  om_node node = {.name = in->graph->values[to].name,
                  .type = "Identity",
                  .domain = "",
                  .opset = IDENTITY_OPSET,
                  .inputs = &ids[0],
                  .input_count = 1,
                  .outputs = &ids[1],
                  .output_count = 1,
                  .op = om_op_find("", "Identity", IDENTITY_OPSET, NULL)};
  return om_graph_add_node(ctx, in->graph, &node, &id);
}

static om_status pass_outputs(om_ctx *ctx, const inlining *in, const om_node *node) {
  for (uint32_t i = 0; i < node->output_count && i < in->body->output_count; ++i) {
    om_value_id from = in->to[in->body->outputs[i]];
    if (node->outputs[i] == OM_NO_VALUE || node->outputs[i] == from) continue;
    if (from == OM_NO_VALUE) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Its output %u is an input that is absent.", i);
    }
    OM_TRY(add_identity(ctx, in, from, node->outputs[i]));
  }
  return OM_OK;
}

om_status om_graph_inline(om_ctx *ctx,
                          om_graph *graph,
                          om_node_id id,
                          const om_graph *body,
                          const om_value_id *inputs,
                          om_inline_hook hook,
                          void *user) {
  om_status st = OM_OK;
  om_node node = graph->nodes[id]; /* the array may move */
  inlining in = {.graph = graph, .body = body, .name = node.name, .hook = hook, .user = user};
  OM_GO_NEW(in.to, body->value_count);
  for (size_t i = 0; i < body->value_count; ++i) in.to[i] = OM_NO_VALUE;
  for (size_t i = 0; i < body->input_count; ++i) in.to[body->inputs[i]] = inputs[i];
  map_outputs(&in, &node);
  OM_GO(add_values(ctx, &in));
  for (size_t i = 0; i < body->node_count; ++i) OM_GO(add_node(ctx, &in, &body->nodes[i]));
  OM_GO(pass_outputs(ctx, &in, &node));
  graph->nodes[id].type = NULL;
done:
  om_delete(ctx, in.to);
  return st;
}
