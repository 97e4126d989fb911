/* Aligned copies of constants: see om_constants.h. */
#include "session/om_constants.h"

#include "onnx/om_tensor_proto.h"

om_status om_constant_align(om_ctx *ctx, om_graph *graph, om_value_id value) {
  OM_TRY(om_constant_hold(ctx, graph, value)); /* a pool's memory is aligned for all types */
  const om_tensor *constant = value == OM_NO_VALUE ? NULL : graph->values[value].constant;
  size_t bytes;
  if (!constant || om_tensor_is_aligned(constant)) return OM_OK;
  if (!om_shape_bytes(constant->dtype, constant->rank, constant->dims, &bytes)) bytes = 0;
  om_tensor *copy = OM_POOL_NEW(ctx, &graph->pool, om_tensor, 1);
  void *data = om_pool_new_bytes(ctx, &graph->pool, bytes > 0 ? bytes : 1, 1);
  if (!copy || !data) return OM_E_OUT_OF_MEMORY;
  *copy = *constant;
  if (bytes > 0) memcpy(data, constant->data, bytes);
  copy->data = data;
  copy->data_bytes = bytes;
  om_graph_constant_copied(graph, constant);
  graph->values[value].constant = copy;
  return OM_OK;
}

om_status om_constants_align(om_ctx *ctx, om_graph *graph, const om_node *node) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const om_value_id id = node->inputs[i];
    if (id == OM_NO_VALUE || om_stored_of(graph->values[id].constant)) continue;
    OM_TRY(om_constant_align(ctx, graph, id));
  }
  return OM_OK;
}
