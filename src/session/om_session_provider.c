/* Opening the provider, and what its check says about each node when the session is made. */
#include "base/om_thread.h"
#include "graph/om_stored.h"
#include "session/om_report.h"
#include "session/om_session.h"

/* A node whose operands may all be known before a run may be computed while a plan is made; only
 * the plan can tell, so require_gpu does not name it yet. */
static om_status find_foldable(om_ctx *ctx, const om_graph *graph, bool **out_is_foldable) {
  bool *is_known = om_new_bytes(ctx, graph->value_count, sizeof *is_known);
  bool *is_foldable = om_new_bytes(ctx, graph->node_count, sizeof *is_foldable);
  if (!is_known || !is_foldable) {
    om_delete(ctx, is_known);
    om_delete(ctx, is_foldable);
    return OM_E_OUT_OF_MEMORY;
  }
  for (size_t i = 0; i < graph->value_count; ++i) is_known[i] = graph->values[i].constant != NULL;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const om_node *node = &graph->nodes[i];
    bool is_ok = true;
    for (uint32_t k = 0; k < node->input_count; ++k) {
      const bool is_read = k >= 32 || !(node->op->shaped_inputs >> k & 1u);
      if (!is_read || node->inputs[k] == OM_NO_VALUE) continue;
      if (!is_known[node->inputs[k]]) is_ok = false;
    }
    is_foldable[i] = is_ok && !node->op->is_random;
    for (uint32_t k = 0; is_foldable[i] && k < node->output_count; ++k) {
      if (node->outputs[k] != OM_NO_VALUE) is_known[node->outputs[k]] = true;
    }
  }
  om_delete(ctx, is_known);
  *out_is_foldable = is_foldable;
  return OM_OK;
}

static om_status require_all(om_ctx *ctx, const om_scope *scope) {
  om_status st = OM_OK;
  const om_graph *graph = &scope->graph;
  bool *is_foldable = NULL; /* scratch */
  om_report *report = NULL; /* scratch */
  OM_GO(find_foldable(ctx, graph, &is_foldable));
  OM_GO_NEW(report, 1);
  for (size_t i = 0; i < graph->node_count; ++i) {
    const char *reason = scope->refusals[i];
    if (!reason || is_foldable[i] || graph->nodes[i].op->bodies[0])
      continue; /* a plan may decide */
    om_report_add(report, &graph->nodes[i], reason);
    om_log_write(ctx,
                 OM_LOG_ERROR,
                 "Node '%s' (%s) cannot run on the device: %s.",
                 graph->nodes[i].name,
                 graph->nodes[i].type,
                 reason);
  }
  if (report->node_count > 0) {
    st = om_report_fail(ctx, report, OM_E_UNSUPPORTED, "require_gpu cannot be kept");
  }
done:
  om_delete(ctx, is_foldable);
  om_delete(ctx, report);
  return st;
}

static bool has_stored_values(const om_graph *graph) {
  for (size_t i = 0; i < graph->value_count; ++i) {
    if (om_stored_of(graph->values[i].constant)) return true;
  }
  return false;
}

/* Whether the graph, or one that it was made with, has constants that a reader has. */
static bool has_stored(const om_graph *graph) {
  const om_graph *lists[] = {graph->bodies, graph->functions};
  if (has_stored_values(graph)) return true;
  for (size_t i = 0; i < OM_COUNT_OF(lists); ++i) {
    for (const om_graph *at = lists[i]; at; at = at->body.next) {
      if (has_stored_values(at)) return true;
    }
  }
  return false;
}

typedef struct graph_work { /* beside the opening of the provider */
  om_session *session;
  const om_graph *source;
  const om_session_options *options;
  om_ctx ctx; /* its own, with the error below */
  om_error error;
  om_status status;
} graph_work;

static void prepare_graph(void *arg) {
  graph_work *work = arg;
  work->status = om_session_prepare_graph(&work->ctx, work->session, work->source, work->options);
}

om_status om_session_open(om_ctx *ctx,
                          om_session *session,
                          const om_graph *source,
                          const om_session_options *options) {
  om_status st = OM_OK;
  graph_work *work = NULL;
  om_task *task = NULL;
  const om_provider *provider = options->provider;
  if (!provider) return om_session_prepare_graph(ctx, session, source, options);
  if (provider->struct_bytes != sizeof *provider) {
    return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "The provider was built for another version.");
  }
  if (has_stored(source)) { /* a reader is called on the caller's threads, and may have to wait */
    OM_TRY(om_session_prepare_graph(ctx, session, source, options));
    return provider->open(
        ctx, provider, options->provider_options, options->mode, &session->provider_session);
  }
  OM_GO_NEW(work, 1);
  work->session = session;
  work->source = source;
  work->options = options;
  work->ctx = *ctx;
  work->ctx.error = &work->error;
  OM_GO(om_task_begin(ctx, prepare_graph, work, &task));
  st = provider->open(
      ctx, provider, options->provider_options, options->mode, &session->provider_session);
  om_task_end(ctx, task);
  if (work->status == OM_OK) goto done;
  st = work->status; /* what is wrong with the model comes first */
  *ctx->error = work->error;
done:
  om_delete(ctx, work);
  return st;
}

om_status om_scope_ask_provider(om_ctx *ctx, om_scope *scope) {
  const om_session *session = scope->session;
  const om_provider *provider = session->provider;
  om_status st = OM_OK;
  if (!provider) return OM_OK;
  /* A body's run waits for its regions, which a browser must not. */
  if (scope->body && om_session_never_waits(session)) return OM_OK;
  scope->source.provider = provider;
  scope->source.provider_session = session->provider_session;
  OM_GO_NEW(scope->refusals, scope->graph.node_count);
  scope->source.refusals = scope->refusals;
  for (size_t i = 0; i < scope->graph.node_count; ++i) {
    scope->refusals[i] = provider->check(session->provider_session, &scope->graph.nodes[i]);
  }
  if (session->require_gpu && !scope->body) st = require_all(ctx, scope);
done:
  return st;
}
