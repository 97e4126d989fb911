/* From the model's graph to the session's: extra outputs, operators, folding, rewrites. */
#include "session/om_constants.h"
#include "session/om_report.h"
#include "session/om_session.h"

/* ---- Extra outputs ---- */

static om_value_id find_value(const om_graph *graph, const char *name) {
  for (om_value_id id = 0; id < graph->value_count; ++id) {
    if (strcmp(graph->values[id].name, name) == 0) return id;
  }
  return OM_NO_VALUE;
}

static om_status add_extra_outputs(om_ctx *ctx,
                                   om_graph *graph,
                                   const om_session_options *options) {
  size_t count = graph->output_count;
  size_t most;
  if (options->extra_output_count == 0) return OM_OK;
  if (!om_size_add(count, options->extra_output_count, &most)) most = SIZE_MAX;
  om_value_id *outputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, most);
  if (!outputs) return OM_E_OUT_OF_MEMORY;
  if (count > 0) memcpy(outputs, graph->outputs, count * sizeof *outputs);
  for (size_t i = 0; i < options->extra_output_count; ++i) {
    const char *name = options->extra_outputs[i];
    om_value_id id = name ? find_value(graph, name) : OM_NO_VALUE;
    if (id == OM_NO_VALUE) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_ARGUMENT,
                     "options.extra_outputs[%zu] is '%s', but the model has no value of that name.",
                     i,
                     name ? name : "NULL");
    }
    if (graph->values[id].is_output) continue;
    graph->values[id].is_output = true;
    outputs[count++] = id;
  }
  graph->outputs = outputs;
  graph->output_count = count;
  return OM_OK;
}

/* ---- Unknown operators ---- */

static om_status check_operators(om_ctx *ctx, const om_graph *graph) {
  om_status st = OM_OK;
  om_report *report = NULL;
  OM_GO_NEW(report, 1);
  for (size_t i = 0; i < graph->node_count; ++i) {
    const om_node *node = &graph->nodes[i];
    const char *reason = NULL;
    if (node->op) continue;
    om_op_find(node->domain, node->type, node->opset, &reason);
    om_report_add(report, node, reason ? reason : "no such operator");
  }
  if (report->node_count > 0) {
    st = om_report_fail(ctx, report, OM_E_UNSUPPORTED, "The model uses unknown operators");
  }
done:
  om_delete(ctx, report);
  return st;
}

/* ---- Folding ---- */

typedef struct folder {
  const om_tensor **inputs; /* scratch: as many as any node has */
  om_tensor **outputs;
  om_tensor *results;
  om_tensor *held; /* inputs that were brought to memory for one node; their data are owned */
  om_fold_budget budget;
} folder;

static bool has_known_inputs(const om_graph *graph, const om_node *node) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    om_value_id id = node->inputs[i];
    if (id != OM_NO_VALUE && !graph->values[id].constant) return false;
  }
  return true;
}

static om_op_call make_call(folder *f, const om_scope *scope, const om_node *node) {
  const om_graph *graph = &scope->graph;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    om_value_id id = node->inputs[i];
    f->inputs[i] = id != OM_NO_VALUE ? graph->values[id].constant : NULL;
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    om_value_id id = node->outputs[i];
    bool is_read = id != OM_NO_VALUE && (i == 0 || scope->rewriter.uses[id] > 0);
    f->results[i] = (om_tensor){0};
    f->outputs[i] = is_read ? &f->results[i] : NULL;
  }
  return (om_op_call){.node = node,
                      .params = node->params,
                      .inputs = f->inputs,
                      .input_count = node->input_count,
                      .outputs = f->outputs,
                      .output_count = node->output_count,
                      .mode = scope->rewriter.mode};
}

/* The results become constants in the graph's pool. */
static om_status keep_results(om_ctx *ctx, om_graph *graph, const om_op_call *call) {
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (!call->outputs[i]) continue;
    om_tensor *kept = OM_POOL_NEW(ctx, &graph->pool, om_tensor, 1);
    if (!kept) return OM_E_OUT_OF_MEMORY;
    *kept = *call->outputs[i];
    om_value *value = &graph->values[call->node->outputs[i]];
    value->constant = kept;
    value->producer = OM_NO_NODE;
  }
  return OM_OK;
}

static void drop_held(om_ctx *ctx, folder *f, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    om_delete(ctx, f->held[i].data);
    f->held[i] = (om_tensor){0};
  }
}

/* Brings what the call reads to memory, for as long as the node is folded. */
static om_status hold_inputs(om_ctx *ctx, folder *f, const om_op_call *call) {
  om_status late = OM_OK;
  for (uint32_t i = 0; i < call->input_count; ++i) {
    const om_tensor *constant = f->inputs[i];
    const bool is_shaped = i < 32 && (call->node->op->shaped_inputs >> i & 1u) != 0;
    if (is_shaped || !om_stored_of(constant)) continue;
    OM_TRY(om_put_off(om_constant_ask(ctx, constant, 0, constant->data_bytes), &late));
    if (late != OM_OK) continue;
    f->held[i] = *constant;
    f->held[i].data = om_new_bytes(ctx, constant->data_bytes, 1);
    if (!f->held[i].data) return OM_E_OUT_OF_MEMORY;
    OM_TRY(om_constant_read(ctx, constant, 0, constant->data_bytes, f->held[i].data));
    f->inputs[i] = &f->held[i];
  }
  return late;
}

static om_status fold_node(om_ctx *ctx, om_scope *scope, folder *f, om_node_id id) {
  om_graph *graph = &scope->graph;
  const om_node *node = &graph->nodes[id];
  bool is_done = false;
  if (node->op->is_random || node->op->is_composed || node->op->bodies[0]) return OM_OK;
  if (!has_known_inputs(graph, node)) return OM_OK;
  OM_TRY(om_constants_align(ctx, graph, node));
  om_op_call call = make_call(f, scope, node);
  om_status st = om_call_infer(ctx, &call);
  if (st == OM_OK) st = om_call_check_declared(ctx, &call, graph);
  if (st == OM_E_OUT_OF_MEMORY) return st;
  if (st != OM_OK) {
    om_error_clear(ctx->error); /* the plan meets it again, and says so to whoever runs it */
    return OM_OK;
  }
  if (om_call_is_open(&call) || !om_call_is_affordable(&call, &f->budget)) return OM_OK;
  st = hold_inputs(ctx, f, &call);
  if (st == OM_OK) st = om_call_fold(ctx, &call, &graph->pool, &f->budget, &is_done);
  drop_held(ctx, f, node->input_count);
  if (st != OM_OK || !is_done) return st;
  OM_TRY(keep_results(ctx, graph, &call));
  return om_rewriter_drop(ctx, &scope->rewriter, id, "computed at load: all it reads is constant");
}

/* with_late: those of om_op.is_folded_late, too. */
static om_status fold_constants(om_ctx *ctx,
                                om_scope *scope,
                                bool with_late,
                                om_fold_budget *budget) {
  om_status st = OM_OK;
  om_status late = OM_OK;
  const om_graph *graph = &scope->graph;
  folder f = {.budget = *budget};
  uint32_t most_inputs = 0, most_outputs = 0;
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (graph->nodes[i].input_count > most_inputs) most_inputs = graph->nodes[i].input_count;
    if (graph->nodes[i].output_count > most_outputs) most_outputs = graph->nodes[i].output_count;
  }
  OM_GO_NEW(f.inputs, most_inputs);
  OM_GO_NEW(f.outputs, most_outputs);
  OM_GO_NEW(f.results, most_outputs);
  OM_GO_NEW(f.held, most_inputs);
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    if (!with_late && graph->nodes[id].op->is_folded_late) continue;
    OM_GO(om_put_off(fold_node(ctx, scope, &f, id), &late));
  }
  OM_GO(late);
  OM_GO(om_rewriter_refresh(ctx, &scope->rewriter));
  *budget = f.budget;
done:
  om_delete(ctx, f.inputs);
  om_delete(ctx, f.outputs);
  om_delete(ctx, f.results);
  om_delete(ctx, f.held);
  return st;
}

/* ---- All of it ---- */

static om_status change_graph(om_ctx *ctx, om_scope *scope) {
  om_rewriter *rw = &scope->rewriter;
  om_fold_budget budget = OM_FOLD_BUDGET_INIT;
  OM_TRY(om_rewriter_refresh(ctx, rw));
  OM_TRY(om_rewriter_drop_dead(ctx, rw));
  bool is_changed = true;
  while (is_changed) { /* at most as often as Ifs nest */
    OM_TRY(check_operators(ctx, &scope->graph));
    OM_TRY(fold_constants(ctx, scope, false, &budget));
    OM_TRY(om_rewrite_graph(ctx, rw, true));
    OM_TRY(fold_constants(ctx, scope, true, &budget));
    OM_TRY(om_scope_decide_constants(ctx, scope, &is_changed));
  }
  OM_TRY(om_rewrite_graph(ctx, rw, false));
  OM_TRY(fold_constants(ctx, scope, true, &budget));
  return om_rewriter_drop_dead(ctx, rw);
}

static bool has_unresolved_nodes(const om_graph *graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (!graph->nodes[i].op) return true;
  }
  return false;
}

om_status om_scope_prepare(om_ctx *ctx, om_scope *scope) {
  const om_session *session = scope->session;
  om_graph *graph = &scope->graph;
  if (has_unresolved_nodes(graph)) OM_TRY(om_graph_resolve_ops(ctx, graph));
  scope->rewriter.graph = graph; /* of a variant: it has the base's notes already */
  scope->rewriter.mode = session->mode;
  scope->rewriter.has_device = session->provider != NULL;
  scope->rewriter.left_out = session->left_out;
  scope->rewriter.has_fast_kernels = !session->provider && session->fast;

  uint64_t state = om_flush_subnormals_begin(); /* folded values are as a run would make them */
  om_status st = change_graph(ctx, scope);
  om_flush_subnormals_end(state);
  scope->source = (om_plan_source){.scope = scope,
                                   .takes_decisions = true,
                                   .graph = graph,
                                   .mode = session->mode,
                                   .fast = session->fast,
                                   .notes = scope->rewriter.notes,
                                   .note_count = scope->rewriter.note_count,
                                   .require_gpu = session->require_gpu};
  return st;
}

om_status om_session_prepare_graph(om_ctx *ctx,
                                   om_session *session,
                                   const om_graph *source,
                                   const om_session_options *options) {
  om_scope *scope = &session->scope;
  scope->session = session;
  session->mode = options->mode;
  session->require_gpu = options->require_gpu;
  session->provider = options->provider;
  session->left_out = om_rewrites_left_out(options->provider, options->provider_options);
  OM_TRY(om_graph_copy(ctx, source, &scope->graph));
  scope->formal_count = scope->graph.input_count;
  OM_TRY(add_extra_outputs(ctx, &scope->graph, options));
  return om_scope_prepare(ctx, scope);
}
