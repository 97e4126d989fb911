/* Identity, Dropout as it is in inference, Cast to the type that is there, and multiplication by 1:
 * readers get the source.
 *
 *     a -> Identity -> b -> f     becomes     a -> f
 *
 * Where b is an output of the graph, a's maker writes b instead; a node stays where that cannot be
 * (a is an input, a constant, or an output itself).
 */
#include "rewrite/om_rewrite_facts.h"

static bool is_false(const om_rewriter *rw, om_value_id value) {
  const om_tensor *tensor = om_rewriter_constant(rw, value);
  if (!tensor || tensor->dtype != OM_DTYPE_BOOL || om_tensor_elems(tensor) != 1) return false;
  return *(const uint8_t *)tensor->data == 0;
}

static bool is_unread(const om_rewriter *rw, const om_node *node, uint32_t output) {
  if (node->output_count <= output || node->outputs[output] == OM_NO_VALUE) return true;
  return rw->uses[node->outputs[output]] == 0;
}

/* Before opset 7 an attribute could turn training on; such nodes are left alone. */
static bool is_idle_dropout(const om_rewriter *rw, const om_node *node) {
  if (strcmp(node->type, "Dropout") != 0 || node->opset < 7) return false;
  if (!is_unread(rw, node, 1)) return false;
  if (node->input_count < 3 || node->inputs[2] == OM_NO_VALUE) return true;
  return is_false(rw, node->inputs[2]);
}

/* The one must be a scalar of rank 0: it cannot give the result another shape. */
static bool is_one(const om_rewriter *rw, om_value_id value) {
  float factor = 0.0f;
  return om_rewriter_scalar(rw, value, &factor) && factor == 1.0f &&
         om_rewriter_constant(rw, value)->rank == 0;
}

static bool is_idle_cast(const om_value_fact *facts, const om_node *node) {
  const om_attr *to = strcmp(node->type, "Cast") == 0 ? om_node_attr(node, "to") : NULL;
  return to && to->kind == OM_ATTR_INT && to->i != OM_DTYPE_NONE &&
         node->inputs[0] != OM_NO_VALUE && (int64_t)facts[node->inputs[0]].dtype == to->i;
}

/* The input that the node passes on, or OM_NO_VALUE. */
static om_value_id passed_on(const om_rewriter *rw,
                             const om_value_fact *facts,
                             const om_node *node) {
  if (!node->type || node->domain[0] != '\0' || node->input_count == 0) return OM_NO_VALUE;
  if (node->output_count == 0 || node->outputs[0] == OM_NO_VALUE) return OM_NO_VALUE;
  if (strcmp(node->type, "Identity") == 0 || is_idle_dropout(rw, node) ||
      is_idle_cast(facts, node)) {
    return node->inputs[0];
  }
  if (strcmp(node->type, "Mul") != 0 || node->input_count != 2 || node->opset < 7) {
    return OM_NO_VALUE;
  }
  if (is_one(rw, node->inputs[1])) return node->inputs[0];
  return is_one(rw, node->inputs[0]) ? node->inputs[1] : OM_NO_VALUE;
}

static om_status drop(
    om_ctx *ctx, om_rewriter *rw, om_node_id id, om_value_id source, om_value_id *to) {
  om_graph *graph = rw->graph;
  om_value_id result = graph->nodes[id].outputs[0];
  while (to[source] != source) source = to[source];
  if (!graph->values[result].is_output) {
    to[result] = source;
  } else {
    om_node_id maker = graph->values[source].producer;
    if (maker == OM_NO_NODE || graph->values[source].is_output) return OM_OK;
    OM_TRY(om_rewriter_set_output(ctx, rw, maker, source, result));
    to[source] = result;
  }
  return om_rewriter_drop(ctx, rw, id, "left out: it only passes its input on");
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_graph *graph = rw->graph;
  om_value_fact *facts = NULL; /* scratch */
  om_value_id *to = NULL;      /* scratch: where a value's readers look now */
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  OM_GO_NEW(to, graph->value_count);
  for (om_value_id value = 0; value < graph->value_count; ++value) to[value] = value;
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    om_value_id source = passed_on(rw, facts, &graph->nodes[id]);
    if (source != OM_NO_VALUE) OM_GO(drop(ctx, rw, id, source, to));
  }
  OM_GO(om_rewriter_move_reads(ctx, rw, to));
done:
  om_delete(ctx, facts);
  om_delete(ctx, to);
  return st;
}

const om_rewrite om_rewrite_drop_identity = {
    .name = "drop_identity",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
