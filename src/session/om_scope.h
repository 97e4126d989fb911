/* Scopes: graphs that are ready to run, the model's own and the bodies of nodes, each with the
 * plans for the shapes it has met and the memory that its runs use.
 *
 *     session ── scope of the model's graph ── plans
 *                  └─ scope of Loop_3's body ── plans
 *                       └─ scopes of If_1's branches ── plans
 *
 * A body's run goes through the same plans, regions and memory as the model's. It gets its formal
 * inputs from the operator and what it captures from the node's other operands; a captured constant
 * is a constant of the body too, and what no node of the body reads is not handed in at all.
 */
#ifndef OM_SCOPE_H
#define OM_SCOPE_H

#include "session/om_plan.h"

enum { OM_MAX_PLANS = 16 };

typedef struct om_scope {
  struct om_session *session; /* borrowed: outlives it */
  const om_graph *body;       /* as it was loaded; NULL: the model's graph */
  om_graph graph;             /* owned; borrows from the model, which outlives it */
  om_rewriter rewriter;       /* owned: the notes */
  const char **refusals;      /* owned; per node: why the provider's check refused */
  om_node_bodies *bodies;     /* owned, with the scopes in it; per node; NULL: no node has any */
  om_plan_source source;
  size_t formal_count;      /* of the graph's inputs; captured ones follow */
  uint32_t *capture_inputs; /* owned; by captured input: which operand of the node it is */

  om_plan *plans[OM_MAX_PLANS]; /* owned */
  size_t plan_count;
  void *block; /* owned; grows only */
  size_t block_bytes;
  om_tensor *bound; /* owned, but by a variant; per graph input: this run's tensor */

  struct om_scope *base;     /* of a variant: borrowed; plans are the base's */
  uint8_t *decisions;        /* of a variant, owned: om_decision per node of its base */
  struct om_scope *variants; /* owned; a list */
  struct om_scope *next;     /* variant of the same base */
} om_scope;

/* ---- om_variant.c ----
 *
 * Where the shapes of a run's inputs decide an If, its branch takes its place: the plan is made of
 * a variant of the scope, whose graph has the branch's nodes, folded, rewritten, and offered to the
 * device like others. A variant lives as long as its scope, as what it folded is a weight to the
 * device, and may have variants itself: of Ifs in the branch. */

/* The variant with these decisions, found or made. */
om_status om_scope_get_variant(om_ctx *ctx,
                               om_scope *scope,
                               const uint8_t *decisions,
                               om_scope **out_variant);

/* Puts the branches of Ifs whose conditions are constant in their place. */
om_status om_scope_decide_constants(om_ctx *ctx, om_scope *scope, bool *out_is_changed);

/* Completes a scope whose graph is prepared: the provider's answers, the scopes of bodies. */
om_status om_scope_complete(om_ctx *ctx, om_scope *scope);

void om_scope_deinit(om_ctx *ctx, om_scope *scope);

/* om_session_graph.c: finds the operators of scope->graph, folds and rewrites. */
om_status om_scope_prepare(om_ctx *ctx, om_scope *scope);

/* om_session_provider.c: asks the provider's check about every node. */
om_status om_scope_ask_provider(om_ctx *ctx, om_scope *scope);

/* The plan for scope->bound: found, or built in place of the least recently used. It may be of a
 * variant, plan->source.scope, whose block is large enough for it. */
om_status om_scope_get_plan(om_ctx *ctx, om_scope *scope, om_plan **out_plan);

/* ---- om_scope_run.c ---- */

/* Places of all values but those that only a run tells: the inputs', and those in the block. */
void om_scope_set_places(om_plan *plan);

om_status om_scope_run_step(om_ctx *ctx, om_plan *plan, om_step *step);
om_status om_scope_begin_region(om_ctx *ctx, om_plan *plan, size_t index);
om_status om_scope_finish_region(om_ctx *ctx, om_plan *plan, size_t index);

/* The result of an output, copied into the scope's memory where no step made it. */
om_status om_scope_take_output(om_ctx *ctx,
                               om_plan *plan,
                               om_plan_output *output,
                               om_tensor *out_result);

/* Runs a body on scope->bound; the outputs are lent until its next run. */
om_status om_scope_run(om_ctx *ctx, om_scope *scope, om_tensor *outputs);

/* ---- om_bodies.c ---- */

/* What a step with bodies gets for its runs; `call` and `bodies` stay where they are. */
om_status om_bodies_create(om_ctx *ctx,
                           const om_op_call *call,
                           const om_node_bodies *bodies,
                           om_op_bodies **out_bodies);

#endif
