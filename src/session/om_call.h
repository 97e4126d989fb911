/* One application of an operator on the CPU: the checks around infer and run that are the same for
 * every operator, and folding.
 *
 * Errors carry the node: "Node 'name' (Type): ...".
 */
#ifndef OM_CALL_H
#define OM_CALL_H

#include "graph/om_op.h"

/* How much memory folding may still take. */
typedef struct om_fold_budget {
  size_t total_bytes; /* left over, for all values together */
  size_t value_bytes; /* the most one value may have */
} om_fold_budget;

/* 64 MiB in all, 16 MiB a value: far above any shape arithmetic and above what exporters leave of
 * constant tables, far below what a hostile ConstantOfShape or Expand asks for. */
#define OM_FOLD_BUDGET_INIT {.total_bytes = 64u << 20, .value_bytes = 16u << 20}

/* Types and shapes of the outputs. The sizes of those that are known do not overflow. */
om_status om_call_infer(om_ctx *ctx, const om_op_call *call);

/* OM_E_INVALID_MODEL if an output has another type than the model declares for the value. */
om_status om_call_check_declared(om_ctx *ctx, const om_op_call *call, const om_graph *graph);

/* True if some output's shape waits for data. */
bool om_call_is_open(const om_op_call *call);

/* True if all that run reads is there, and the operator may be computed ahead of a run. */
bool om_call_is_foldable(const om_op_call *call);

/* True if folding it would not go over the budget. */
bool om_call_is_affordable(const om_op_call *call, const om_fold_budget *budget);

/* Computes the outputs into memory from the pool and sets their data. Shapes are known.
 * *out_is_done false: over the budget, or the operator failed, which its run will report. */
om_status om_call_fold(
    om_ctx *ctx, om_op_call *call, om_pool *pool, om_fold_budget *budget, bool *out_is_done);

om_status om_call_run(om_ctx *ctx, const om_op_call *call);
om_status om_call_run_ready(om_ctx *ctx, const om_op_call *call, const om_op_ready *ready);

/* The scratch that run needs, in bytes. */
size_t om_call_scratch_bytes(const om_op_call *call);

/* Bytes of memory for a result after om_call_infer. For strings, sequences and optionals infer may
 * have asked for more than the elements take, in data_bytes. */
size_t om_result_bytes(const om_tensor *result);

/* Bytes of a tensor whose shape om_call_infer or the input check has passed. */
size_t om_tensor_need(const om_tensor *tensor);

#endif
