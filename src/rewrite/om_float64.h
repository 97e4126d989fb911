/* A graph in double precision: what executors are measured against.
 *
 * The ordinary CPU executor runs it, so there is no second interpreter that could be wrong in its
 * own way. Operators take float64 for this even where ONNX's schema does not list it.
 */
#ifndef OM_FLOAT64_H
#define OM_FLOAT64_H

#include "graph/om_graph.h"

/* A copy of a finished graph with float64 in place of float32, float16 and bfloat16: inputs,
 * constants (widened, so of the same values), targets of Cast, results of all that makes floats.
 * Attributes that are floats stay what the file says.
 *
 * Floats from which only integers and float32_inputs (om_op.h) are made, such as the scale in a
 * shape's arithmetic, stay as they are: decisions must not change. A Cast leads from float64 to
 * such an input.
 *
 * The copy borrows from the source as om_graph_copy says; om_model_create_from_graph makes a
 * model of it. OM_E_UNSUPPORTED: a node holds a graph of its own. */
om_status om_graph_to_float64(om_ctx *ctx, const om_graph *source, om_graph *out_graph);

#endif
