/* A session: a model's graph made ready, and what its runs share.
 *
 * A tree: the session owns the scope of the model's graph and the provider session, a scope those
 * of its bodies and its plans; a plan owns its provider plan.
 */
#ifndef OM_SESSION_H
#define OM_SESSION_H

#include "base/om_thread.h"
#include "cpu/fast/om_fast.h"
#include "session/om_scope.h"

typedef struct om_turn { /* a run, from what its caller gave to its results */
  const om_named_tensor *inputs;
  size_t input_count;
  om_named_tensor *outputs; /* the caller's */
  size_t output_count;
  const om_cancel *cancel; /* the caller's; NULL: none */
  om_plan *plan;           /* NULL: not begun */
  size_t item;             /* of the plan: the next */
  bool is_region_begun;
} om_turn;

typedef struct om_lent { /* memory of om_session_lend_memory */
  void *data;
  bool is_providers; /* else plain memory */
} om_lent;

struct om_run { /* of om_session_run_begin; its session's lock guards it */
  om_session *session;
  om_turn turn;
  om_named_tensor *inputs; /* owned: the turn's */
  size_t input_capacity;
  bool is_done;
  om_status status; /* once done */
  om_error error;
  om_run *next; /* begun after it */
};

struct om_session { /* shared: every entry takes the lock */
  om_allocator allocator;
  om_log log;
  om_memory_use use;
  uint32_t thread_count;
  om_thread_pool *workers; /* owned */
  om_mutex *mutex;         /* owned */
  om_error spare_error;    /* filled where the caller gave none */

  om_mode mode;
  om_fast *fast; /* owned; NULL: exact mode */
  bool require_gpu;
  uint64_t left_out;                     /* rewrites: see om_rewriter */
  const om_provider *provider;           /* NULL: the CPU alone */
  om_provider_session *provider_session; /* owned, by way of the provider */
  om_scope scope;                        /* of the model's graph */

  size_t variant_count;        /* of all scopes */
  uint64_t clock;              /* counts uses of plans, for the least recent */
  om_diagnostics diagnostics;  /* of the last question, where bodies are */
  om_node_diagnostics *listed; /* owned: its nodes */
  char *strings;               /* owned: the bytes of the last results that are strings */
  bool *is_bound;              /* owned; per graph input */

  om_lent *lents; /* owned, with their memory */
  size_t lent_count, lent_capacity;

  om_run *first_run; /* not done yet, in the order of their turns; their callers own them */
  om_run *spare_run; /* owned; may be NULL: one that was finished, for the next */

  uint64_t run_count, plans_built, intermediate_bytes;
};

/* Begins an entry: takes the lock, makes a context whose error is the caller's or the spare one. */
om_ctx om_session_enter(om_session *session, om_error *error);
void om_session_leave(om_session *session);

/* For entries whose object is missing: there is no session to lend an error. */
om_status om_fail_null(om_error *error, const char *what);

/* The scope's graph: a copy of the model's with extra outputs, prepared. */
om_status om_session_prepare_graph(om_ctx *ctx,
                                   om_session *session,
                                   const om_graph *source,
                                   const om_session_options *options);

/* Opens the provider, if there is one, and prepares the graph beside it: a driver takes a large
 * part of a second, and making a large model's graph ready may too. */
om_status om_session_open(om_ctx *ctx,
                          om_session *session,
                          const om_graph *source,
                          const om_session_options *options);

/* Checks the caller's tensors against the model and fills session->scope.bound. Without need_data,
 * data may be NULL and an input whose shape the model fixes may be left out. */
om_status om_session_bind_inputs(om_ctx *ctx,
                                 om_session *session,
                                 const om_named_tensor *inputs,
                                 size_t input_count,
                                 bool need_data);

/* The plan for the inputs that are bound. */
om_status om_session_get_plan(om_ctx *ctx, om_session *session, om_plan **out_plan);

/* om_diagnose.c: the plan's diagnostics, with the nodes of bodies. */
om_status om_session_list_nodes(om_ctx *ctx,
                                om_session *session,
                                const om_plan *plan,
                                const om_diagnostics **out_diagnostics);

/* What a run's caller gave, copied as far as its build knew it and checked. */
om_status om_session_read_args(om_ctx *ctx, const om_run_args *given, om_run_args *out_args);

/* Begins the turn, or goes on with it: to its end, or with `waits` false only as far as nothing
 * has to wait for the device. After a failure it is at its end. */
om_status om_session_go_on(
    om_ctx *ctx, om_session *session, om_turn *turn, bool waits, bool *out_is_done);

/* True where nothing may wait for the device. */
bool om_session_never_waits(const om_session *session);

/* Ends the runs under way, for a call that uses what they use. Fails where that would be a wait
 * that nothing may do. */
om_status om_session_end_runs(om_ctx *ctx, om_session *session);

void om_session_delete_run(om_ctx *ctx, om_run *run);

/* om_session_memory.c: takes back what is lent still. */
void om_session_take_back_memory(om_ctx *ctx, om_session *session);

/* Moves the bytes of results that are strings into the session's memory. */
om_status om_session_keep_strings(om_ctx *ctx,
                                  om_session *session,
                                  om_named_tensor *outputs,
                                  size_t output_count);

#endif
