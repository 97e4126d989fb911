/* Where nodes run, those of bodies among them: the plan's own report, and for each node with bodies
 * what the last plan of each body says. */
#include "session/om_session.h"

typedef struct listing {
  om_node_diagnostics *nodes; /* owned */
  size_t count, capacity;
} listing;

static om_status add(om_ctx *ctx, listing *list, om_node_diagnostics node) {
  OM_TRY(OM_GROW(ctx, list->nodes, list->count, list->capacity));
  list->nodes[list->count++] = node;
  return OM_OK;
}

static const om_plan *last_plan(const om_scope *scope) {
  const om_plan *last = NULL;
  for (size_t i = 0; i < scope->plan_count; ++i) {
    if (!last || scope->plans[i]->last_use > last->last_use) last = scope->plans[i];
  }
  return last;
}

/* A body that has not run yet. */
static om_status add_unplanned(
    om_ctx *ctx, listing *list, const om_graph *graph, size_t outer, const char *body) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    const om_node *node = &graph->nodes[i];
    OM_TRY(add(ctx,
               list,
               (om_node_diagnostics){.name = node->name,
                                     .op_type = node->type,
                                     .domain = node->domain,
                                     .place = OM_PLACE_CPU,
                                     .region = OM_NO_REGION,
                                     .reason = "its body has not run: planned when it does",
                                     .outer = outer,
                                     .body = body}));
  }
  return OM_OK;
}

static om_status add_planned(
    om_ctx *ctx, listing *list, const om_plan *plan, size_t outer, const char *body) {
  for (size_t i = 0; i < plan->diagnostics.node_count; ++i) {
    om_node_diagnostics node = plan->diagnostics.nodes[i];
    node.outer = outer;
    node.body = body;
    if (outer != OM_NO_OUTER) node.output_count = 0; /* no extra_outputs can be in bodies */
    OM_TRY(add(ctx, list, node));
  }
  return OM_OK;
}

/* The entry of a node that is still a step, or SIZE_MAX: names are the nodes' own texts. */
static size_t find_step(const listing *list, size_t first, const om_node *node) {
  for (size_t i = first; i < list->count; ++i) {
    if (list->nodes[i].name == node->name && list->nodes[i].place != OM_PLACE_FOLDED) return i;
  }
  return SIZE_MAX;
}

/* As deep as bodies nest. */
static om_status add_scope(om_ctx *ctx,
                           listing *list,
                           const om_scope *scope,
                           const om_plan *plan,
                           size_t outer,
                           const char *body) {
  size_t first = list->count;
  const om_scope *at = plan ? plan->source.scope : scope;
  if (plan) OM_TRY(add_planned(ctx, list, plan, outer, body));
  if (!plan) OM_TRY(add_unplanned(ctx, list, &scope->graph, outer, body));
  size_t end = list->count;
  for (size_t i = 0; at->bodies && i < at->graph.node_count; ++i) {
    const om_node *node = &at->graph.nodes[i];
    listing own = {.nodes = list->nodes, .count = end};
    size_t index = node->op->bodies[0] ? find_step(&own, first, node) : SIZE_MAX;
    for (size_t b = 0; b < OM_OP_MAX_BODIES && index != SIZE_MAX; ++b) {
      const om_scope *inner = at->bodies[i].scopes[b];
      if (!inner) continue;
      OM_TRY(add_scope(ctx, list, inner, last_plan(inner), index, node->op->bodies[b]));
    }
  }
  return OM_OK;
}

static void count_places(om_diagnostics *d) {
  d->nodes_on_cpu = d->nodes_on_device = d->nodes_folded = 0;
  for (size_t i = 0; i < d->node_count; ++i) {
    if (d->nodes[i].place == OM_PLACE_CPU) d->nodes_on_cpu += 1;
    if (d->nodes[i].place == OM_PLACE_DEVICE) d->nodes_on_device += 1;
    if (d->nodes[i].place == OM_PLACE_FOLDED) d->nodes_folded += 1;
  }
}

om_status om_session_list_nodes(om_ctx *ctx,
                                om_session *session,
                                const om_plan *plan,
                                const om_diagnostics **out_diagnostics) {
  listing list = {0};
  if (!plan->source.scope->bodies) {
    *out_diagnostics = &plan->diagnostics;
    return OM_OK;
  }
  om_status st = add_scope(ctx, &list, &session->scope, plan, OM_NO_OUTER, "");
  if (st != OM_OK) {
    om_delete(ctx, list.nodes);
    return st;
  }
  om_delete(ctx, session->listed);
  session->listed = list.nodes;
  session->diagnostics = plan->diagnostics;
  session->diagnostics.nodes = list.nodes;
  session->diagnostics.node_count = list.count;
  count_places(&session->diagnostics);
  *out_diagnostics = &session->diagnostics;
  return OM_OK;
}
