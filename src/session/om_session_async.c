/* Runs that do not wait: a queue of turns, of which the first goes on when it is polled. */
#include "session/om_session.h"

void om_session_delete_run(om_ctx *ctx, om_run *run) {
  if (!run) return;
  om_delete(ctx, run->inputs);
  om_delete(ctx, run);
}

/* ---- The queue ---- */

static void append(om_session *session, om_run *run) {
  om_run **last = &session->first_run;
  while (*last) last = &(*last)->next;
  *last = run;
}

/* Lets the first run go on. What becomes of it is its own, not the caller's. */
static void advance(const om_ctx *ctx, om_session *session, bool waits) {
  om_run *run = session->first_run;
  om_ctx own = *ctx;
  own.error = &run->error;
  om_error_clear(own.error);
  run->status = om_session_go_on(&own, session, &run->turn, waits, &run->is_done);
  if (run->status != OM_OK) run->is_done = true;
  if (run->is_done) session->first_run = run->next;
}

om_status om_session_end_runs(om_ctx *ctx, om_session *session) {
  const bool waits = !om_session_never_waits(session);
  while (session->first_run) {
    const om_run *run = session->first_run;
    advance(ctx, session, waits);
    if (session->first_run != run) continue;
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "A run of this session is under way, and a browser cannot wait for the GPU: "
                   "finish it first.");
  }
  return OM_OK;
}

/* ---- The entries ---- */

static om_status get_run(om_ctx *ctx, om_session *session, size_t input_count, om_run **out_run) {
  om_status st = OM_OK;
  om_run *run = session->spare_run;
  session->spare_run = NULL;
  if (!run) OM_GO_NEW(run, 1);
  if (run->input_capacity < input_count) {
    om_delete(ctx, run->inputs);
    run->inputs = NULL;
    run->input_capacity = 0;
    OM_GO_NEW(run->inputs, input_count);
    run->input_capacity = input_count;
  }
  *out_run = run;
  run = NULL; /* the caller owns it now */
done:
  om_session_delete_run(ctx, run);
  return st;
}

static om_status begin(om_ctx *ctx,
                       om_session *session,
                       const om_run_args *given,
                       om_run **out_run) {
  om_run *run = NULL;
  om_run_args args;
  OM_TRY(om_session_read_args(ctx, given, &args));
  OM_TRY(get_run(ctx, session, args.input_count, &run));
  for (size_t i = 0; i < args.input_count; ++i) run->inputs[i] = args.inputs[i];
  run->session = session;
  run->turn = (om_turn){.inputs = run->inputs,
                        .input_count = args.input_count,
                        .outputs = args.outputs,
                        .output_count = args.output_count,
                        .cancel = args.cancel};
  run->is_done = false;
  run->next = NULL;
  append(session, run);
  *out_run = run;
  return OM_OK;
}

om_status om_session_run_begin(om_session *session,
                               const om_run_args *args,
                               om_run **out_run,
                               om_error *error) {
  if (!out_run) return om_fail_null(error, "out_run");
  *out_run = NULL;
  if (!session) return om_fail_null(error, "The session");
  om_ctx ctx = om_session_enter(session, error);
  om_status st = begin(&ctx, session, args, out_run);
  if (st == OM_OK && session->first_run == *out_run) advance(&ctx, session, false);
  om_session_leave(session);
  return st;
}

om_status om_run_poll(om_run *run, bool *out_is_done, om_error *error) {
  if (!out_is_done) return om_fail_null(error, "out_is_done");
  *out_is_done = false;
  if (!run) return om_fail_null(error, "The run");
  om_session *session = run->session;
  om_ctx ctx = om_session_enter(session, error);
  if (session->first_run == run) advance(&ctx, session, false);
  *out_is_done = run->is_done;
  om_session_leave(session);
  return OM_OK;
}

static om_status finish(om_ctx *ctx, om_session *session, om_run *run) {
  if (!run->is_done && om_session_never_waits(session)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_ARGUMENT,
                   "The run is not done, and a browser cannot wait for the GPU: poll it.");
  }
  while (!run->is_done) advance(ctx, session, true);
  const om_status st = run->status;
  if (st != OM_OK) *ctx->error = run->error;
  om_session_delete_run(ctx, session->spare_run);
  session->spare_run = run;
  return st;
}

om_status om_run_finish(om_run *run, om_error *error) {
  if (!run) return om_fail_null(error, "The run");
  om_session *session = run->session;
  om_ctx ctx = om_session_enter(session, error);
  om_status st = finish(&ctx, session, run);
  om_session_leave(session);
  return st;
}
