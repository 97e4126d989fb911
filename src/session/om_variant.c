/* Variants of scopes, and Ifs that a constant decides: see om_scope.h. */
#include "session/om_session.h"

/* Each has a graph of its own: a model with many Ifs that any shape may decide must not take all
 * memory. Beyond this an If runs as the data decide, as one does whose condition is not known. */
enum { MAX_VARIANTS = 64 };

static om_status inline_branch(om_ctx *ctx, om_scope *scope, om_node_id id, bool is_true) {
  om_status st = OM_OK;
  om_graph *graph = &scope->graph;
  const om_node node = graph->nodes[id];
  const char *name = node.op->bodies[is_true ? 0 : 1];
  const om_graph *branch = om_node_attr(&node, name)->graph;
  om_value_id *inputs = NULL; /* scratch: all of them captured */
  OM_GO_NEW(inputs, branch->input_count);
  for (size_t i = 0; i < branch->input_count; ++i) {
    inputs[i] = node.inputs[branch->body.capture_first + i];
  }
  OM_GO(om_rewriter_drop(
      ctx, &scope->rewriter, id, "its condition is known: its %s stands in its place", name));
  OM_GO(om_graph_inline(ctx, graph, id, branch, inputs, NULL, NULL));
done:
  om_delete(ctx, inputs);
  return st;
}

static bool is_if(const om_node *node) {
  return node->type && strcmp(node->type, "If") == 0 && node->op->bodies[0];
}

om_status om_scope_decide_constants(om_ctx *ctx, om_scope *scope, bool *out_is_changed) {
  om_graph *graph = &scope->graph;
  *out_is_changed = false;
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    const om_node *node = &graph->nodes[id];
    if (!is_if(node)) continue;
    const om_tensor *condition = graph->values[node->inputs[0]].constant;
    if (!condition || condition->dtype != OM_DTYPE_BOOL || om_tensor_elems(condition) != 1)
      continue;
    OM_TRY(inline_branch(ctx, scope, id, *(const uint8_t *)condition->data != 0));
    *out_is_changed = true;
  }
  return *out_is_changed ? om_rewriter_refresh(ctx, &scope->rewriter) : OM_OK;
}

/* ---- Variants ---- */

static om_status copy_notes(om_ctx *ctx, const om_rewriter *from, om_rewriter *to) {
  for (size_t i = 0; i < from->note_count; ++i) {
    OM_TRY(OM_GROW(ctx, to->notes, to->note_count, to->note_capacity));
    to->notes[to->note_count++] = from->notes[i];
  }
  return OM_OK;
}

/* The base's graph with the nodes' operands as they were, so that branches find what they read. */
static om_status copy_base(om_ctx *ctx, const om_scope *base, om_scope *variant) {
  OM_TRY(om_graph_copy(ctx, &base->graph, &variant->graph));
  for (size_t i = 0; i < base->graph.node_count; ++i) {
    if (base->bodies[i].inputs) variant->graph.nodes[i].inputs = base->bodies[i].inputs;
  }
  return copy_notes(ctx, &base->rewriter, &variant->rewriter);
}

static om_status copy_captures(om_ctx *ctx, const om_scope *base, om_scope *variant) {
  size_t count = base->graph.input_count - base->formal_count;
  variant->formal_count = base->formal_count;
  variant->capture_inputs = om_new_bytes(ctx, count, sizeof *variant->capture_inputs);
  if (!variant->capture_inputs) return OM_E_OUT_OF_MEMORY;
  if (count > 0) memcpy(variant->capture_inputs, base->capture_inputs, count * sizeof(uint32_t));
  return OM_OK;
}

static om_status make_variant(om_ctx *ctx,
                              om_scope *base,
                              const uint8_t *decisions,
                              om_scope **out_variant) {
  om_status st = OM_OK;
  om_scope *variant = NULL;
  const size_t node_count = base->graph.node_count;
  OM_GO_NEW(variant, 1);
  variant->session = base->session;
  variant->body = base->body;
  variant->base = base;
  variant->rewriter.graph = &variant->graph;
  OM_GO_NEW(variant->decisions, node_count);
  memcpy(variant->decisions, decisions, node_count);
  OM_GO(copy_base(ctx, base, variant));
  OM_GO(copy_captures(ctx, base, variant));
  for (om_node_id id = 0; id < node_count; ++id) {
    if (decisions[id] == OM_UNDECIDED) continue;
    OM_GO(inline_branch(ctx, variant, id, decisions[id] == OM_DECIDED_THEN));
  }
  OM_GO(om_scope_prepare(ctx, variant));
  OM_GO(om_scope_complete(ctx, variant));
  variant->source.takes_decisions = ++base->session->variant_count < MAX_VARIANTS;
  variant->next = base->variants;
  base->variants = variant;
  *out_variant = variant;
  variant = NULL; /* the base owns it now */
done:
  if (variant) om_scope_deinit(ctx, variant);
  om_delete(ctx, variant);
  return st;
}

om_status om_scope_get_variant(om_ctx *ctx,
                               om_scope *scope,
                               const uint8_t *decisions,
                               om_scope **out_variant) {
  for (om_scope *at = scope->variants; at; at = at->next) {
    if (memcmp(at->decisions, decisions, scope->graph.node_count) != 0) continue;
    *out_variant = at;
    return OM_OK;
  }
  return make_variant(ctx, scope, decisions, out_variant);
}
