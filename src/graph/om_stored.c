/* Reading constants that are not in memory: see om_stored.h. */
#include "graph/om_stored.h"

om_status om_constant_ask(om_ctx *ctx,
                          const om_tensor *constant,
                          uint64_t offset,
                          uint64_t byte_count) {
  const om_stored *stored = om_stored_of(constant);
  return stored ? stored->ask(ctx, stored, offset, byte_count) : OM_OK;
}

om_status om_constant_read(
    om_ctx *ctx, const om_tensor *constant, uint64_t offset, size_t byte_count, void *to) {
  const om_stored *stored = om_stored_of(constant);
  if (stored) return stored->read(ctx, stored, offset, byte_count, to);
  if (byte_count > 0) memcpy(to, (const char *)constant->data + offset, byte_count);
  return OM_OK;
}

om_status om_constant_hold(om_ctx *ctx, om_graph *graph, om_value_id value) {
  const om_tensor *constant = value == OM_NO_VALUE ? NULL : graph->values[value].constant;
  if (!om_stored_of(constant)) return OM_OK;
  OM_TRY(om_constant_ask(ctx, constant, 0, constant->data_bytes));
  om_tensor *held = OM_POOL_NEW(ctx, &graph->pool, om_tensor, 1);
  void *data = om_pool_new_bytes(ctx, &graph->pool, constant->data_bytes, 1);
  if (!held || !data) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_constant_read(ctx, constant, 0, constant->data_bytes, data));
  *held = *constant;
  held->data = data;
  graph->values[value].constant = held;
  return OM_OK;
}
