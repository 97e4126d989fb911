/* What operators with bodies have in common: the bodies as attributes, copies of values that a turn
 * leaves behind, and results that are stacked up turn by turn. */
#ifndef OP_BODY_H
#define OP_BODY_H

#include "graph/om_op.h"

/* The body, which om_op_check_body has seen. */
const om_graph *om_op_body(const om_node *node, const char *name);

/* Inputs that the operator hands in: without the captured ones. */
static inline size_t om_body_formal_count(const om_graph *body) {
  return body->input_count - body->body.capture_count;
}

/* OM_E_INVALID_MODEL unless the attribute is a graph with so many inputs and outputs. */
om_status om_op_check_body(
    om_ctx *ctx, const om_node *node, const char *name, size_t input_count, size_t output_count);

/* A copy of the value in the slot, which must not hold anything of it. */
om_status om_body_keep(om_ctx *ctx,
                       const om_op_call *call,
                       uint32_t slot,
                       const om_tensor *value,
                       om_tensor *out_copy);

/* Sets an output that something reads to the value as it is. */
void om_body_set_output(const om_op_call *call, uint32_t output, const om_tensor *value);

/* One element of a tensor whose dtype is bool, int32 or int64, as an integer. OM_E_INVALID_INPUT
 * where there is more than one, with `what` it is. */
om_status om_body_scalar(om_ctx *ctx, const om_tensor *tensor, const char *what, int64_t *out);

/* ---- Stacks: tensors of one shape, one a turn, joined along an axis ---- */

typedef struct om_stack {
  uint32_t slot;      /* the elements; slot + 1 has the bytes of strings */
  int64_t axis;       /* of the result; negative: from its end */
  bool is_reversed;   /* the last one first */
  int64_t turn_count; /* of all turns; -1: not known, as for a Loop, whose axis is 0 */
  int64_t count;      /* so far */
  om_tensor elem;     /* of the first turn; no data */
  size_t bytes;       /* room in the slot */
  size_t text_bytes, text_capacity;
} om_stack;

/* Adds what a turn made. */
om_status om_stack_add(om_ctx *ctx,
                       const om_op_call *call,
                       om_stack *stack,
                       const om_tensor *value);

/* The whole as an output; of no turns: what the body declares its output to be. */
om_status om_stack_finish(om_ctx *ctx,
                          const om_op_call *call,
                          om_stack *stack,
                          const om_value *declared,
                          uint32_t output);

#endif
