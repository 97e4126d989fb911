/* Scopes: how they are made, and their plans. See om_scope.h. */
#include "session/om_session.h"

/* ---- Bodies ---- */

/* What the node has not got, its body has not: an absent input of a function, captured. */
static om_status forget_value(om_ctx *ctx, om_graph *graph, om_value_id id) {
  graph->values[id].is_input = false;
  for (size_t i = 0; i < graph->node_count; ++i) {
    om_node *node = &graph->nodes[i];
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] != id) continue;
      om_value_id *inputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, node->input_count);
      if (!inputs) return OM_E_OUT_OF_MEMORY;
      memcpy(inputs, node->inputs, node->input_count * sizeof *inputs);
      inputs[k] = OM_NO_VALUE;
      node->inputs = inputs;
    }
  }
  return OM_OK;
}

/* Makes the constants that the body captures its own, and lists what remains to be handed in. */
static om_status bind_captures(om_ctx *ctx,
                               om_scope *scope,
                               const om_graph *outer,
                               const om_node *node) {
  om_status st = OM_OK;
  om_graph *graph = &scope->graph;
  const om_body_place *place = &scope->body->body;
  scope->formal_count = graph->input_count - place->capture_count;
  om_value_id *inputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, graph->input_count);
  if (!inputs) return OM_E_OUT_OF_MEMORY;
  OM_GO_NEW(scope->capture_inputs, place->capture_count);
  memcpy(inputs, graph->inputs, scope->formal_count * sizeof *inputs);
  size_t count = scope->formal_count;
  for (uint32_t i = 0; i < place->capture_count; ++i) {
    om_value *value = &graph->values[graph->inputs[scope->formal_count + i]];
    om_value_id from = node->inputs[place->capture_first + i];
    const om_tensor *constant = from == OM_NO_VALUE ? NULL : outer->values[from].constant;
    if (constant) {
      value->constant = constant;
      value->dtype = constant->dtype;
      value->is_input = false;
      continue;
    }
    if (from == OM_NO_VALUE) {
      OM_GO(forget_value(ctx, graph, graph->inputs[scope->formal_count + i]));
      continue;
    }
    value->dtype = outer->values[from].dtype;
    scope->capture_inputs[count - scope->formal_count] = place->capture_first + i;
    inputs[count++] = graph->inputs[scope->formal_count + i];
  }
  graph->inputs = inputs;
  graph->input_count = count;
done:
  return st;
}

/* Takes captured inputs out that nothing in the body reads any more. */
static void drop_unread_captures(om_scope *scope) {
  om_graph *graph = &scope->graph;
  om_value_id *inputs = (om_value_id *)(uintptr_t)graph->inputs; /* of bind_captures */
  size_t kept = scope->formal_count;
  for (size_t i = scope->formal_count; i < graph->input_count; ++i) {
    if (scope->rewriter.uses[inputs[i]] == 0) continue;
    scope->capture_inputs[kept - scope->formal_count] =
        scope->capture_inputs[i - scope->formal_count];
    inputs[kept++] = inputs[i];
  }
  graph->input_count = kept;
}

static om_status make_body(om_ctx *ctx,
                           const om_scope *outer,
                           const om_node *node,
                           const om_graph *body,
                           om_scope **out_scope) {
  om_status st = OM_OK;
  om_scope *scope = NULL;
  OM_GO_NEW(scope, 1);
  scope->session = outer->session;
  scope->body = body;
  OM_GO(om_graph_copy(ctx, body, &scope->graph));
  OM_GO(bind_captures(ctx, scope, &outer->graph, node));
  OM_GO(om_scope_prepare(ctx, scope));
  drop_unread_captures(scope);
  OM_GO(om_scope_complete(ctx, scope));
  *out_scope = scope;
  scope = NULL; /* the caller owns it now */
done:
  if (scope) om_scope_deinit(ctx, scope);
  om_delete(ctx, scope);
  return st;
}

/* The node reads only what its bodies are handed: the rest may not be computed at all. */
static om_status narrow_captures(om_ctx *ctx,
                                 om_graph *graph,
                                 om_node *node,
                                 om_node_bodies *bodies) {
  uint32_t formal = om_node_formal_count(node);
  om_value_id *inputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, node->input_count);
  if (!inputs) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    inputs[i] = i < formal ? node->inputs[i] : OM_NO_VALUE;
  }
  for (size_t b = 0; b < OM_OP_MAX_BODIES; ++b) {
    const om_scope *scope = bodies->scopes[b];
    if (!scope) continue;
    for (size_t i = 0; i < scope->graph.input_count - scope->formal_count; ++i) {
      inputs[scope->capture_inputs[i]] = node->inputs[scope->capture_inputs[i]];
    }
  }
  bodies->inputs = node->inputs;
  node->inputs = inputs;
  return OM_OK;
}

static om_status make_bodies(om_ctx *ctx, om_scope *scope, om_node *node, om_node_bodies *out) {
  for (size_t b = 0; b < OM_OP_MAX_BODIES && node->op->bodies[b]; ++b) {
    const om_attr *attr = om_node_attr(node, node->op->bodies[b]);
    om_status st = make_body(ctx, scope, node, attr->graph, &out->scopes[b]);
    if (st == OM_OK) continue;
    om_error_prefix(
        ctx, "Node '%s' (%s): Attribute '%s'", node->name, node->type, node->op->bodies[b]);
    return st;
  }
  return narrow_captures(ctx, &scope->graph, node, out);
}

om_status om_scope_complete(om_ctx *ctx, om_scope *scope) {
  om_status st = OM_OK;
  om_graph *graph = &scope->graph;
  OM_GO(om_scope_ask_provider(ctx, scope));
  if (scope->base) scope->bound = scope->base->bound;
  if (!scope->base) OM_GO_NEW(scope->bound, graph->input_count);
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (!graph->nodes[i].op->bodies[0]) continue;
    if (!scope->bodies) OM_GO_NEW(scope->bodies, graph->node_count);
    OM_GO(make_bodies(ctx, scope, &graph->nodes[i], &scope->bodies[i]));
  }
  scope->source.bodies = scope->bodies;
done:
  return st;
}

void om_scope_deinit(om_ctx *ctx, om_scope *scope) {
  for (size_t i = 0; i < scope->plan_count; ++i) om_plan_destroy(ctx, scope->plans[i]);
  while (scope->variants) { /* as deep as the loader lets bodies nest */
    om_scope *variant = scope->variants;
    scope->variants = variant->next;
    om_scope_deinit(ctx, variant);
    om_delete(ctx, variant);
  }
  for (size_t i = 0; scope->bodies && i < scope->graph.node_count; ++i) {
    for (size_t b = 0; b < OM_OP_MAX_BODIES; ++b) {
      om_scope *body = scope->bodies[i].scopes[b];
      if (body) om_scope_deinit(ctx, body); /* as deep as the loader lets bodies nest */
      om_delete(ctx, body);
    }
  }
  om_delete(ctx, scope->bodies);
  om_delete(ctx, scope->capture_inputs);
  om_delete(ctx, scope->block);
  om_delete(ctx, scope->decisions);
  if (!scope->base) om_delete(ctx, scope->bound);
  om_delete(ctx, scope->refusals);
  om_rewriter_deinit(ctx, &scope->rewriter);
  om_graph_deinit(ctx, &scope->graph);
}

/* ---- Plans ---- */

static om_status ensure_block(om_ctx *ctx, om_scope *scope, size_t bytes) {
  /* At least one aligned piece: values without elements point there. */
  size_t need = bytes > 64 ? bytes : 64;
  if (scope->block && scope->block_bytes >= need) return OM_OK;
  om_delete(ctx, scope->block);
  scope->block_bytes = 0;
  scope->block = om_new_bytes(ctx, need, 1);
  if (!scope->block) return OM_E_OUT_OF_MEMORY;
  scope->block_bytes = need;
  return OM_OK;
}

static om_plan *find_plan(om_scope *scope) {
  for (size_t i = 0; i < scope->plan_count; ++i) {
    if (om_plan_fits(scope->plans[i], scope->bound)) return scope->plans[i];
  }
  return NULL;
}

/* The place for one more plan: a free one, or the least recently used one's. */
static size_t free_place(om_ctx *ctx, om_scope *scope) {
  uint64_t least = UINT64_MAX;
  size_t place = 0;
  if (scope->plan_count < OM_MAX_PLANS) return scope->plan_count++;
  for (size_t i = 0; i < OM_MAX_PLANS; ++i) {
    const om_plan *plan = scope->plans[i];
    if (!plan || plan->last_use >= least) continue;
    least = plan->last_use;
    place = i;
  }
  om_plan_destroy(ctx, scope->plans[place]);
  return place;
}

/* A plan of the scope, or of the variant that the inputs' shapes lead to. */
static om_status build_plan(om_ctx *ctx, om_scope *scope, om_plan **out_plan) {
  om_status st = OM_OK;
  om_plan *plan = NULL;
  om_scope *at = scope;
  for (;;) {
    OM_GO(om_plan_create(ctx, &at->source, scope->bound, &plan));
    if (!plan->decisions) break;
    OM_GO(om_scope_get_variant(ctx, at, plan->decisions, &at));
    om_plan_destroy(ctx, plan);
    plan = NULL;
  }
  *out_plan = plan;
  plan = NULL; /* the caller owns it now */
done:
  om_plan_destroy(ctx, plan);
  return st;
}

om_status om_scope_get_plan(om_ctx *ctx, om_scope *scope, om_plan **out_plan) {
  om_session *session = scope->session;
  om_plan *plan = find_plan(scope);
  if (!plan) {
    uint64_t state = om_flush_subnormals_begin(); /* folding computes too */
    om_ctx whole = *ctx;
    whole.cancel = NULL; /* a plan is kept, with what it computes ahead */
    whole.give_up = ctx->cancel;
    om_status st = build_plan(&whole, scope, &plan);
    om_flush_subnormals_end(state);
    if (st != OM_OK) return st;
    scope->plans[free_place(ctx, scope)] = plan;
    session->plans_built += 1;
  }
  plan->last_use = ++session->clock;
  OM_TRY(ensure_block(ctx, plan->source.scope, plan->block_bytes));
  *out_plan = plan;
  return OM_OK;
}
