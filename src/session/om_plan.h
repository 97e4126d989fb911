/* A plan: the session's graph made ready for one set of input shapes.
 *
 *     infer   concrete shapes for every node; what is known already is computed (om_plan_infer.c)
 *     views   what only moves elements is read through, where it can be       (om_plan_views.c)
 *     rows    Transposes of rows go, where others can do what they did         (om_plan_rows.c)
 *     claim   the provider takes steps or says why not                    (om_plan_partition.c)
 *     order   steps it did not take go as early as they can, regions form (om_plan_schedule.c)
 *     ready   kernels of fast mode, weights packed                           (om_plan_ready.c)
 *     memory  one block for what the CPU keeps between steps              (om_plan_memory.c)
 *     report  where each node runs, and why                               (om_plan_report.c)
 *
 * Values keep the graph's numbers. The pool holds everything but the memory of dynamic steps,
 * whose sizes only a run tells: that memory is kept from run to run and grows only.
 */
#ifndef OM_PLAN_H
#define OM_PLAN_H

#include "onemodel/provider.h"
#include "rewrite/om_rewrite.h"
#include "session/om_call.h"

#define OM_NO_ITEM UINT32_MAX

struct om_scope; /* om_scope.h */

typedef struct om_node_bodies { /* of one node, in the order of its operator's */
  struct om_scope *scopes[OM_OP_MAX_BODIES];
  const om_value_id *inputs; /* the node's, before those were left out that no body reads */
} om_node_bodies;

/* What a plan knows of an If: which of its branches runs. */
typedef enum om_decision { OM_UNDECIDED = 0, OM_DECIDED_THEN = 1, OM_DECIDED_ELSE = 2 } om_decision;

/* What a plan is made from: lent by the scope for as long as the plan lives. */
typedef struct om_plan_source {
  struct om_scope *scope;
  bool takes_decisions; /* a plan ends early where it decides an If */
  om_graph *graph;      /* only constants' places change: om_constants.h */
  om_mode mode;
  struct om_fast *fast;        /* NULL: exact mode */
  const om_provider *provider; /* NULL: the CPU alone */
  om_provider_session *provider_session;
  const char *const *refusals;  /* per node: why check refused it, or NULL */
  const om_node_bodies *bodies; /* per node; NULL: no node has any */
  const om_node_note *notes;    /* nodes that are gone from the graph */
  size_t note_count;
  bool require_gpu;
} om_plan_source;

typedef enum om_fate { /* what becomes of a node in this plan */
                       OM_FATE_STEP,
                       OM_FATE_DYNAMIC, /* a step whose shapes only a run tells */
                       OM_FATE_FOLDED,
                       OM_FATE_DEAD, /* nothing reads its results */
} om_fate;

typedef struct om_ready_key { /* what a dynamic step was made ready for, as if a plan knew it */
  bool is_made;
  om_tensor *operands;      /* the inputs, then the results; data of constants alone */
  const om_tensor **inputs; /* into operands, or NULL */
  om_tensor **outputs;
} om_ready_key;

typedef struct om_step { /* beside view.steps[i] */
  om_op_call call;       /* operands point into plan->tensors */
  om_node_id node;
  bool is_dynamic;
  bool is_accepted; /* by the provider */
  bool is_fused;
  uint32_t phase; /* even: CPU, odd: device; see om_plan_schedule.c */
  uint32_t item;
  uint32_t region;
  const char *reason;
  om_op_ready ready;                    /* its state is owned */
  om_ready_key *ready_key;              /* of a dynamic step that can be made ready */
  size_t scratch_bytes, scratch_offset; /* in the block */
} om_step;

typedef struct om_plan_item { /* one thing a run does: a CPU step or a region */
  bool is_region;
  uint32_t index;
} om_plan_item;

typedef struct om_placed { /* a value's place in the block */
  om_value_id value;
  size_t offset;
} om_placed;

typedef struct om_dynamic_buffer {
  void *data; /* owned by the plan */
  size_t bytes;
} om_dynamic_buffer;

typedef struct om_dynamic_slot { /* memory that results of dynamic steps have one after the other */
  om_dynamic_buffer buffer;
  bool is_kept;  /* for one value alone */
  bool is_held;  /* in this run, */
  uint32_t last; /* up to this item */
} om_dynamic_slot;

typedef struct om_plan_output { /* of the graph, in its order */
  om_value_id value;
  bool is_made;           /* by a step */
  size_t copy_offset;     /* else where a lent copy goes: an input, or known */
  om_dynamic_buffer copy; /* the copy of a value that is no tensor */
} om_plan_output;

typedef struct om_plan {
  om_plan_source source;
  om_pool pool;
  om_tensor *inputs; /* the key: types and shapes of the graph's inputs */
  uint64_t last_use;

  om_tensor *tensors;    /* per value; data set while a run goes */
  om_plan_value *values; /* what the provider sees: data of constants only */
  om_op_call *calls;     /* per node; call.node is the graph's, or one that reads in place */
  om_fate *fates;        /* per node */
  uint8_t *decisions;    /* om_decision per node; NULL: none was made. The plan goes no further */
  bool *is_needed;       /* per value: some step or the caller reads it */
  om_plan_step *view_steps;
  om_step *steps;
  size_t step_count;
  om_plan_view view;

  om_provider_plan *provider_plan; /* owned, by way of the provider */
  om_plan_region *regions;
  size_t region_count;
  const void ***region_reads; /* filled during a run */
  void ***region_writes;
  uint32_t *order; /* steps by phase */
  om_plan_item *items;
  size_t item_count;
  uint32_t *maker; /* per value: the step that makes it, or OM_NO_ITEM */

  om_placed *placed;
  size_t placed_count;
  om_plan_output *outputs;
  size_t block_bytes;
  /* Of dynamic steps; NULL where there are none. */
  om_dynamic_slot *slots; /* as many as there are values, */
  size_t slot_count;      /* the first ones in use */
  uint32_t *slot_of;      /* per value: the slot it had last, and 1; 0: none */
  uint32_t *last_read;    /* per value: the last item that reads it */
  om_dynamic_buffer dynamic_scratch;

  om_diagnostics diagnostics;
} om_plan;

/* Builds the plan for these inputs (types and shapes, one per graph input, data ignored). */
om_status om_plan_create(om_ctx *ctx,
                         const om_plan_source *source,
                         const om_tensor *inputs,
                         om_plan **out_plan);

void om_plan_destroy(om_ctx *ctx, om_plan *plan);

/* om_bodies.c: frees what om_bodies_create made; NULL is fine. */
void om_bodies_destroy(om_ctx *ctx, om_op_bodies *bodies);

/* Memory for what a dynamic step at `item` makes, until the last item that reads it. A run whose
 * sizes are those of the run before gets the same places, and allocates nothing. */
om_status om_plan_take_slot(
    om_ctx *ctx, om_plan *plan, uint32_t value, uint32_t item, size_t bytes, void **out_data);

/* The buffer with at least so many bytes. */
om_status om_dynamic_buffer_ensure(om_ctx *ctx, om_dynamic_buffer *buffer, size_t bytes);

/* Lets the CPU read a value's constant: plan->tensors has its aligned place. */
om_status om_plan_align_value(om_ctx *ctx, om_plan *plan, uint32_t value);

/* The same for the constants of a node, but for those that its operator copies wherever they lie.
 * Bit i of `without`: not input i. */
om_status om_plan_align_constants(om_ctx *ctx,
                                  om_plan *plan,
                                  const om_node *node,
                                  uint32_t without);

/* Whether type and shape are the same. */
bool om_plan_is_alike(const om_tensor *a, const om_tensor *b);

bool om_plan_fits(const om_plan *plan, const om_tensor *inputs);

/* A call with a node, operands and params of the plan's own, to change. */
om_status om_plan_copy_call(om_ctx *ctx, om_plan *plan, const om_op_call *from, om_op_call *out);

/* Makes the call, a copy of the plan's, read the value. */
void om_plan_set_input(om_plan *plan, om_op_call *call, uint32_t input, om_value_id value);

/* The stages, in this order. */
om_status om_plan_infer(om_ctx *ctx, om_plan *plan);
om_status om_plan_read_in_place(om_ctx *ctx, om_plan *plan);
om_status om_plan_leave_rows(om_ctx *ctx, om_plan *plan);
om_status om_plan_collect_steps(om_ctx *ctx, om_plan *plan);
om_status om_plan_claim(om_ctx *ctx, om_plan *plan);
om_status om_plan_check_required(om_ctx *ctx, const om_plan *plan);
om_status om_plan_schedule(om_ctx *ctx, om_plan *plan);
om_status om_plan_form_regions(om_ctx *ctx, om_plan *plan);
om_status om_plan_compile(om_ctx *ctx, om_plan *plan);
om_status om_plan_make_ready(om_ctx *ctx, om_plan *plan);
/* The same for a dynamic step, during a run that knows its shapes. */
om_status om_plan_make_step_ready(om_ctx *ctx, om_plan *plan, om_step *step);
void om_plan_drop_ready(om_ctx *ctx, om_step *step);
om_status om_plan_place(om_ctx *ctx, om_plan *plan);
om_status om_plan_report(om_ctx *ctx, om_plan *plan);

#endif
