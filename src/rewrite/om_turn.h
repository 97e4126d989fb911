/* Operators on transposed operands. Of a Transpose, the *turned* value is what it reads and the
 * *plain* one what it makes: axis a of the plain value is axis perm[a] of the turned one. Here is
 * which operators give the turned result of turned operands, and how they change for it: each
 * element is computed of the same elements in the same order, so the bits stay.
 */
#ifndef OM_TURN_H
#define OM_TURN_H

#include "rewrite/om_rewrite_facts.h"

typedef struct om_axes {
  uint32_t rank;
  uint32_t perm[OM_MAX_RANK];
} om_axes;

/* False if the node is no Transpose of a permutation that the graph tells. */
bool om_axes_of(const om_value_fact *facts, const om_node *node, om_axes *out_axes);
om_axes om_axes_inverse(const om_axes *axes);

typedef enum om_turn {
  OM_TURN_NEVER,
  OM_TURN_THROUGH, /* its results are turned */
  OM_TURN_ENDS,    /* its result is as before: the axes that it leaves keep their order */
} om_turn;

om_turn om_turn_of(const om_rewriter *rw,
                   const om_value_fact *facts,
                   const om_node *node,
                   const om_axes *axes);

/* True if a turned node reads this input turned; the others (bounds, sizes) stay as they are. */
bool om_turn_reads(const om_node *node, uint32_t input);

/* Turns a node for which om_turn_of is not OM_TURN_NEVER; it reads `inputs`, as many as before. */
om_status om_turn_node(
    om_ctx *ctx, om_rewriter *rw, om_node_id id, const om_axes *axes, const om_value_id *inputs);

/* The turned form of a constant of at most axes->rank axes, aligned at the last ones. */
om_status om_turn_constant(
    om_ctx *ctx, om_rewriter *rw, const om_axes *axes, om_value_id plain, om_value_id *out_turned);

#endif
