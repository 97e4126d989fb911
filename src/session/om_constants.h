/* Constants whose data the CPU computes with. Large ones lie in the model file where they lie,
 * maybe not aligned for their type, or with a reader; a device gets them as they are, the CPU an
 * aligned copy, made once per session.
 */
#ifndef OM_CONSTANTS_H
#define OM_CONSTANTS_H

#include "graph/om_stored.h"

/* Makes the value's constant, if it has one, readable through a pointer to its element type. A copy
 * goes to the graph's pool. */
om_status om_constant_align(om_ctx *ctx, om_graph *graph, om_value_id value);

/* The same for every constant in memory that the node reads. */
om_status om_constants_align(om_ctx *ctx, om_graph *graph, const om_node *node);

#endif
