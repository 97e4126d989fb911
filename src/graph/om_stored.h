/* Constants whose bytes are not in memory: they are read when they are wanted, in pieces.
 *
 *     om_value.constant -> om_stored { tensor: type and shape, data NULL; how to read }
 *
 * Whoever needs the shape of a constant need not know. Who needs its bytes reads pieces of it, as
 * a device's upload does, or makes the graph hold it.
 */
#ifndef OM_STORED_H
#define OM_STORED_H

#include "graph/om_graph.h"

typedef struct om_stored {
  om_tensor tensor; /* first: what points to it points to the whole */
  /* OM_E_NOT_READY where the range cannot be read yet; it is asked for then. */
  om_status (*ask)(om_ctx *ctx, const struct om_stored *self, uint64_t offset, uint64_t byte_count);
  /* Brings a range that is ready. Offset and count are multiples of the element's size. */
  om_status (*read)(
      om_ctx *ctx, const struct om_stored *self, uint64_t offset, size_t byte_count, void *to);
} om_stored;

/* The constant's record where its bytes are not in memory; else NULL, as for NULL. */
static inline const om_stored *om_stored_of(const om_tensor *constant) {
  const bool is_stored = constant && !constant->data && constant->data_bytes > 0;
  return is_stored ? (const om_stored *)constant : NULL;
}

/* A range of any constant; om_constant_read wants to be asked before. */
om_status om_constant_ask(om_ctx *ctx,
                          const om_tensor *constant,
                          uint64_t offset,
                          uint64_t byte_count);
om_status om_constant_read(
    om_ctx *ctx, const om_tensor *constant, uint64_t offset, size_t byte_count, void *to);

/* Makes the value's constant, if it has one, one in memory: in the graph's pool. */
om_status om_constant_hold(om_ctx *ctx, om_graph *graph, om_value_id value);

/* Keeps OM_E_NOT_READY in *inout_late and goes on: a loop that needs several constants asks for all
 * of them before it fails. */
static inline om_status om_put_off(om_status status, om_status *inout_late) {
  if (status != OM_E_NOT_READY) return status;
  *inout_late = status;
  return OM_OK;
}

#endif
