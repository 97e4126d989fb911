/* A loaded model as the library sees it: the graph, and what keeps its data alive. */
#ifndef OM_MODEL_H
#define OM_MODEL_H

#include "graph/om_graph.h"

/* The newest version of ai.onnx whose operators are known. A newer one may give an operator a new
 * meaning, so it is refused. */
enum { OM_NEWEST_OPSET = 25 };

/* Makes a model of a graph built in memory: finishes it and finds its operators. The graph is taken
 * over, also when that fails: *graph is empty afterwards. The context's allocator and counts
 * outlive the model. */
om_status om_model_create_from_graph(om_ctx *ctx, om_graph *graph, om_model **out_model);

/* The finished graph; immutable, lent. Data of large constants may lie unaligned for their type
 * (om_tensor_is_aligned in om_tensor_proto.h): they are read where the file has them. */
const om_graph *om_model_get_graph(const om_model *model);

#endif
