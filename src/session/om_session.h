/* A session: a model's graph made ready, the plans for the shapes it has met, and what runs use.
 *
 * A tree: the session owns the graph's copy, the provider session and the plans; a plan owns its
 * provider plan. The block holds the CPU's intermediate values of whichever plan runs.
 */
#ifndef OM_SESSION_H
#define OM_SESSION_H

#include "base/om_thread.h"
#include "session/om_plan.h"

enum { OM_MAX_PLANS = 16 };

struct om_session { /* shared: every entry takes the lock */
  om_allocator allocator;
  om_log log;
  om_memory_use use;
  uint32_t thread_count;
  om_mutex *mutex;      /* owned */
  om_error spare_error; /* filled where the caller gave none */

  om_graph graph;                        /* owned; borrows from the model, which outlives it */
  om_rewriter rewriter;                  /* owned: the notes */
  const char **refusals;                 /* owned; per node: why the provider's check refused */
  om_provider_session *provider_session; /* owned, by way of the provider */
  om_plan_source source;

  om_plan *plans[OM_MAX_PLANS]; /* owned */
  size_t plan_count;
  uint64_t clock; /* counts uses of plans, for the least recent */

  void *block; /* owned; grows only */
  size_t block_bytes;
  char *strings;    /* owned: the bytes of the last results that are strings */
  om_tensor *bound; /* owned; per graph input: this call's tensor */
  bool *is_bound;   /* owned */

  uint64_t run_count, plans_built, intermediate_bytes;
};

/* Begins an entry: takes the lock, makes a context whose error is the caller's or the spare one. */
om_ctx om_session_enter(om_session *session, om_error *error);
void om_session_leave(om_session *session);

/* The graph's copy: extra outputs, operators known, folded and rewritten. */
om_status om_session_prepare_graph(om_ctx *ctx,
                                   om_session *session,
                                   const om_graph *source,
                                   const om_session_options *options);

/* Opens the provider and asks its check about every node. */
om_status om_session_open_provider(om_ctx *ctx,
                                   om_session *session,
                                   const om_session_options *options);

/* Checks the caller's tensors against the model and fills session->bound. Without need_data, data
 * may be NULL and an input whose shape the model fixes may be left out. */
om_status om_session_bind_inputs(om_ctx *ctx,
                                 om_session *session,
                                 const om_named_tensor *inputs,
                                 size_t input_count,
                                 bool need_data);

/* The plan for session->bound: found, or built in place of the least recently used. The block is
 * large enough for it. */
om_status om_session_get_plan(om_ctx *ctx, om_session *session, om_plan **out_plan);

/* Runs the plan on session->bound and hands out what args asks for. */
om_status om_session_run_plan(
    om_ctx *ctx, om_session *session, om_plan *plan, om_named_tensor *outputs, size_t output_count);

/* Moves the bytes of results that are strings into the session's memory. */
om_status om_session_keep_strings(om_ctx *ctx,
                                  om_session *session,
                                  om_named_tensor *outputs,
                                  size_t output_count);

#endif
