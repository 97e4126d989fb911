/* The public session functions: life, lock, plans. What they do stands in the files beside. */
#include "session/om_session.h"

#include "base/om_thread_pool.h"
#include "onnx/om_model.h"

om_ctx om_session_enter(om_session *session, om_error *error) {
  om_mutex_lock(session->mutex);
  om_ctx ctx = {.allocator = session->allocator,
                .use = &session->use,
                .error = error ? error : &session->spare_error,
                .log = session->log,
                .thread_count = session->thread_count,
                .workers = session->workers};
  om_error_clear(ctx.error);
  return ctx;
}

void om_session_leave(om_session *session) {
  om_mutex_unlock(session->mutex);
}

om_status om_fail_null(om_error *error, const char *what) {
  om_ctx ctx = {.error = error};
  if (!error) return OM_E_INVALID_ARGUMENT;
  om_error_clear(error);
  return OM_FAIL(&ctx, OM_E_INVALID_ARGUMENT, "%s is NULL.", what);
}

/* ---- Options ---- */

static om_status read_options(om_ctx *ctx,
                              const om_session_options *given,
                              om_session_options *out_options) {
  *out_options = (om_session_options)OM_SESSION_OPTIONS_INIT;
  if (!given) return OM_OK;
  if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "options.struct_bytes is %zu, but this library's options have %zu bytes; use "
                   "OM_SESSION_OPTIONS_INIT.",
                   given->struct_bytes,
                   sizeof *given);
  }
  memcpy(out_options, given, given->struct_bytes);
  if (out_options->mode != OM_MODE_FAST && out_options->mode != OM_MODE_EXACT) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "options.mode is %d, which is no mode.",
                   (int)out_options->mode);
  }
  if (out_options->require_gpu && !out_options->provider) {
    return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "options.require_gpu needs options.provider.");
  }
  if (out_options->extra_output_count > 0 && !out_options->extra_outputs) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "options.extra_output_count is %zu, but options.extra_outputs is NULL.",
                   out_options->extra_output_count);
  }
  return OM_OK;
}

/* ---- Create and destroy ---- */

static void destroy(om_ctx *ctx, om_session *session) {
  if (!session) return;
  om_session_delete_run(ctx, session->spare_run);
  om_scope_deinit(ctx, &session->scope);
  om_fast_destroy(ctx, session->fast);
  om_session_take_back_memory(ctx, session);
  if (session->provider_session) session->provider->close(ctx, session->provider_session);
  om_delete(ctx, session->listed);
  om_delete(ctx, session->strings);
  om_delete(ctx, session->is_bound);
  om_mutex_destroy(ctx, session->mutex);
  om_thread_pool_destroy(ctx, session->workers);
  ctx->use = NULL; /* it goes with the session, whose own memory was not counted */
  om_delete(ctx, session);
}

static bool has_fixed_inputs(const om_graph *graph) {
  for (size_t i = 0; i < graph->input_count; ++i) {
    const om_value *value = &graph->values[graph->inputs[i]];
    if (!value->has_rank || value->dtype == OM_DTYPE_NONE) return false;
    for (uint32_t d = 0; d < value->rank; ++d) {
      if (value->dims[d] < 0) return false;
    }
  }
  return true;
}

static om_status fill(om_ctx *ctx,
                      om_session *session,
                      const om_graph *graph,
                      const om_session_options *options) {
  om_status st = OM_OK;
  om_plan *plan = NULL;
  OM_GO(om_mutex_create(ctx, &session->mutex));
  OM_GO(om_thread_pool_create(ctx, ctx->thread_count, &session->workers));
  ctx->workers = session->workers;
  const om_fast_lender lender = {graph->on_copied, graph->lender};
  if (options->mode == OM_MODE_FAST) OM_GO(om_fast_create(ctx, lender, &session->fast));
  OM_GO(om_session_open(ctx, session, graph, options));
  OM_GO(om_scope_complete(ctx, &session->scope));
  OM_GO_NEW(session->is_bound, session->scope.graph.input_count);
  if (has_fixed_inputs(&session->scope.graph)) {
    OM_GO(om_session_bind_inputs(ctx, session, NULL, 0, false));
    st = om_session_get_plan(ctx, session, &plan);
    if (st != OM_E_NOT_READY) OM_GO(st);
    if (st != OM_OK) om_error_clear(ctx->error); /* prepare and runs go on */
    st = OM_OK;
  }
done:
  return st;
}

static om_status create(om_ctx *ctx,
                        const om_model *model,
                        const om_session_options *given,
                        om_session **out_session) {
  om_status st = OM_OK;
  om_session *session = NULL;
  om_session_options options;

  if (!model) return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "The model is NULL.");
  OM_TRY(read_options(ctx, given, &options));
  OM_TRY(om_ctx_use_allocator(ctx, options.allocator));
  ctx->log = options.log;
  ctx->thread_count = options.thread_count > 0 ? options.thread_count : om_core_count();

  OM_GO_NEW(session, 1);
  session->allocator = ctx->allocator;
  session->log = ctx->log;
  session->thread_count = ctx->thread_count;
  session->use.limit_bytes = options.max_bytes;
  ctx->use = &session->use;
  OM_GO(fill(ctx, session, om_model_get_graph(model), &options));

  *out_session = session;
  session = NULL; /* the caller owns it now */
done:
  destroy(ctx, session);
  return st;
}

om_status om_session_create(const om_model *model,
                            const om_session_options *options,
                            om_session **out_session,
                            om_error *error) {
  om_error *spare = NULL;
  om_ctx ctx = {.allocator = om_default_allocator(), .error = error, .thread_count = 1};
  if (!out_session) return om_fail_null(error, "out_session");
  *out_session = NULL;
  if (!error) {
    spare = ctx.allocator.alloc(ctx.allocator.user, sizeof *spare);
    if (!spare) return OM_E_OUT_OF_MEMORY;
    ctx.error = spare;
  }
  om_error_clear(ctx.error);
  om_status st = create(&ctx, model, options, out_session);
  if (spare) {
    om_allocator allocator = om_default_allocator();
    allocator.free(allocator.user, spare, sizeof *spare);
  }
  return st;
}

void om_session_destroy(om_session *session) {
  if (!session) return;
  om_ctx ctx = {.allocator = session->allocator,
                .use = &session->use,
                .error = &session->spare_error,
                .log = session->log,
                .thread_count = session->thread_count,
                .workers = session->workers};
  om_error_clear(ctx.error);
  destroy(&ctx, session);
}

/* ---- Plans ---- */

om_status om_session_get_plan(om_ctx *ctx, om_session *session, om_plan **out_plan) {
  OM_TRY(om_scope_get_plan(ctx, &session->scope, out_plan));
  session->intermediate_bytes = (*out_plan)->block_bytes;
  return OM_OK;
}

/* ---- The other entries ---- */

static om_status check_lists(om_ctx *ctx, const void *inputs, size_t count, const char *what) {
  if (count == 0 || inputs) return OM_OK;
  return OM_FAIL(
      ctx, OM_E_INVALID_ARGUMENT, "%zu %s are announced, but their list is NULL.", count, what);
}

om_status om_session_read_args(om_ctx *ctx, const om_run_args *given, om_run_args *out_args) {
  *out_args = (om_run_args){0};
  if (!given) return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "The run's arguments are NULL.");
  if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "args.struct_bytes is %zu, but this library's om_run_args has %zu bytes.",
                   given->struct_bytes,
                   sizeof *given);
  }
  memcpy(out_args, given, given->struct_bytes);
  OM_TRY(check_lists(ctx, out_args->inputs, out_args->input_count, "inputs"));
  return check_lists(ctx, out_args->outputs, out_args->output_count, "outputs");
}

static om_status run(om_ctx *ctx, om_session *session, const om_run_args *given) {
  om_run_args args;
  bool is_done = false;
  OM_TRY(om_session_read_args(ctx, given, &args));
  OM_TRY(om_session_end_runs(ctx, session));
  om_turn turn = {.inputs = args.inputs,
                  .input_count = args.input_count,
                  .outputs = args.outputs,
                  .output_count = args.output_count,
                  .cancel = args.cancel};
  return om_session_go_on(ctx, session, &turn, true, &is_done);
}

om_status om_session_run(om_session *session, const om_run_args *args, om_error *error) {
  if (!session) return om_fail_null(error, "The session");
  om_ctx ctx = om_session_enter(session, error);
  om_status st = run(&ctx, session, args);
  om_session_leave(session);
  return st;
}

static om_status plan_for(om_ctx *ctx,
                          om_session *session,
                          const om_named_tensor *inputs,
                          size_t input_count,
                          om_plan **out_plan) {
  OM_TRY(check_lists(ctx, inputs, input_count, "inputs"));
  OM_TRY(om_session_end_runs(ctx, session));
  OM_TRY(om_session_bind_inputs(ctx, session, inputs, input_count, false));
  return om_session_get_plan(ctx, session, out_plan);
}

om_status om_session_prepare(om_session *session,
                             const om_named_tensor *inputs,
                             size_t input_count,
                             om_error *error) {
  om_plan *plan = NULL;
  if (!session) return om_fail_null(error, "The session");
  om_ctx ctx = om_session_enter(session, error);
  om_status st = plan_for(&ctx, session, inputs, input_count, &plan);
  om_session_leave(session);
  return st;
}

om_status om_session_diagnose(om_session *session,
                              const om_named_tensor *inputs,
                              size_t input_count,
                              const om_diagnostics **out_diagnostics,
                              om_error *error) {
  om_plan *plan = NULL;
  if (!out_diagnostics) return om_fail_null(error, "out_diagnostics");
  *out_diagnostics = NULL;
  if (!session) return om_fail_null(error, "The session");
  om_ctx ctx = om_session_enter(session, error);
  om_status st = plan_for(&ctx, session, inputs, input_count, &plan);
  if (st == OM_OK) st = om_session_list_nodes(&ctx, session, plan, out_diagnostics);
  om_session_leave(session);
  return st;
}

om_session_statistics om_session_get_statistics(const om_session *session) {
  om_session_statistics statistics = {0};
  if (!session) return statistics;
  om_mutex_lock(session->mutex);
  statistics = (om_session_statistics){.run_count = session->run_count,
                                       .plans_built = session->plans_built,
                                       .host_allocations = session->use.allocations,
                                       .host_bytes = session->use.live_bytes,
                                       .host_peak_bytes = session->use.peak_bytes,
                                       .intermediate_bytes = session->intermediate_bytes};
  om_mutex_unlock(session->mutex);
  return statistics;
}

om_provider_session *om_session_get_provider_session(const om_session *session,
                                                     const om_provider **out_provider) {
  if (out_provider) *out_provider = session ? session->provider : NULL;
  return session ? session->provider_session : NULL;
}
