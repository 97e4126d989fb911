/* What an operator with bodies gets for its run: its bodies, and memory that grows. */
#include <inttypes.h>

#include "session/om_session.h"

typedef struct bodies_run {
  om_op_bodies base; /* first: all that operators see */
  const om_op_call *call;
  const om_node_bodies *bodies; /* borrowed: the scope owns them */
  om_dynamic_buffer *slots;     /* owned */
  size_t slot_count, slot_capacity;
} bodies_run;

static bodies_run *of_base(om_op_bodies *base) {
  return (bodies_run *)base;
}

static om_status check_formal(om_ctx *ctx, const om_scope *scope, size_t index) {
  const om_value *value = &scope->graph.values[scope->graph.inputs[index]];
  om_dtype have = scope->bound[index].dtype;
  if (value->dtype == OM_DTYPE_NONE || value->dtype == have) return OM_OK;
  if (value->dtype == OM_DTYPE_OPTIONAL) return OM_OK; /* what is there may stand for itself */
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "The body's input '%.100s' is %s, but the model declares %s.",
                 value->name,
                 om_dtype_name(have),
                 om_dtype_name(value->dtype));
}

static om_status run_body(
    om_ctx *ctx, om_op_bodies *base, uint32_t index, const om_tensor *inputs, om_tensor *outputs) {
  const bodies_run *run = of_base(base);
  om_scope *scope = run->bodies->scopes[index];
  for (size_t i = 0; i < scope->formal_count; ++i) {
    scope->bound[i] = inputs[i];
    OM_TRY(check_formal(ctx, scope, i));
  }
  for (size_t i = scope->formal_count; i < scope->graph.input_count; ++i) {
    uint32_t operand = scope->capture_inputs[i - scope->formal_count];
    scope->bound[i] = *run->call->inputs[operand];
  }
  return om_scope_run(ctx, scope, outputs);
}

static om_status reserve(
    om_ctx *ctx, om_op_bodies *base, uint32_t slot, size_t bytes, void **out_data) {
  bodies_run *run = of_base(base);
  while (run->slot_count <= slot) {
    OM_TRY(OM_GROW(ctx, run->slots, run->slot_count, run->slot_capacity));
    run->slots[run->slot_count++] = (om_dynamic_buffer){0};
  }
  om_dynamic_buffer *buffer = &run->slots[slot];
  size_t need = bytes > 0 ? bytes : 1;
  if (!buffer->data || buffer->bytes < need) {
    OM_TRY(om_resize_bytes(ctx, &buffer->data, buffer->bytes, need, 1));
    buffer->bytes = need;
  }
  *out_data = buffer->data;
  return OM_OK;
}

om_status om_bodies_create(om_ctx *ctx,
                           const om_op_call *call,
                           const om_node_bodies *bodies,
                           om_op_bodies **out_bodies) {
  bodies_run *run = om_new_bytes(ctx, 1, sizeof *run);
  if (!run) return OM_E_OUT_OF_MEMORY;
  *run =
      (bodies_run){.base = {.run = run_body, .reserve = reserve}, .call = call, .bodies = bodies};
  *out_bodies = &run->base;
  return OM_OK;
}

void om_bodies_destroy(om_ctx *ctx, om_op_bodies *bodies) {
  bodies_run *run = bodies ? of_base(bodies) : NULL;
  if (!run) return;
  for (size_t i = 0; i < run->slot_count; ++i) om_delete(ctx, run->slots[i].data);
  om_delete(ctx, run->slots);
  om_delete(ctx, run);
}
