/* Composed operators give way to what they stand for (om_compose.h). */
#include "rewrite/om_compose.h"

static const om_composition *const tables[] = {
    om_compositions_attention,
    om_compositions_decoder,
    om_compositions_encoder,
    om_compositions_quantized,
};

static const om_composition *find(const om_node *node) {
  for (size_t i = 0; i < OM_COUNT_OF(tables); ++i) {
    for (const om_composition *entry = tables[i]; entry->type; ++entry) {
      if (strcmp(entry->type, node->type) == 0 && strcmp(entry->domain, node->domain) == 0) {
        return entry;
      }
    }
  }
  return NULL;
}

static om_node_id next_composed(const om_graph *graph) {
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    const om_node *node = &graph->nodes[id];
    if (node->type && node->op && node->op->is_composed) return id;
  }
  return OM_NO_NODE;
}

static om_status replace(om_ctx *ctx, om_rewriter *rw, om_node_id id) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch */
  om_composer c = {.ctx = ctx, .rw = rw, .node = rw->graph->nodes[id]};
  const om_composition *composition = find(&c.node);
  if (!composition) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "Nothing says what %s is composed of.", c.node.type);
  }
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  c.facts = facts;
  c.fact_count = rw->graph->value_count;
  composition->compose(&c);
  if (c.status != OM_OK) om_error_prefix(ctx, "Node '%s' (%s)", c.node.name, c.node.type);
  OM_GO(c.status);
  OM_GO(om_rewriter_drop(ctx, rw, id, "composed of %u others", (unsigned)c.node_count));
done:
  om_delete(ctx, facts);
  return st;
}

/* One after the other: what a node is made of is known to those behind it. */
static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  for (;;) {
    const om_node_id id = next_composed(rw->graph);
    if (id == OM_NO_NODE) return OM_OK;
    OM_TRY(replace(ctx, rw, id));
    OM_TRY(om_rewriter_refresh(ctx, rw));
  }
}

const om_rewrite om_rewrite_compose = {
    .name = "compose",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
