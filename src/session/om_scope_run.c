/* The pieces of a scope's run: places, steps, regions, outputs; and the run of a body. */
#include "graph/om_value_copy.h"
#include "session/om_session.h"

void om_scope_set_places(om_plan *plan) {
  const om_scope *scope = plan->source.scope;
  uint8_t *block = scope->block;
  const om_graph *graph = &scope->graph;
  for (size_t i = 0; i < graph->input_count; ++i) {
    om_tensor *tensor = &plan->tensors[graph->inputs[i]];
    *tensor = scope->bound[i];
    if (!tensor->data) tensor->data = block; /* no elements: NULL is "not known" */
  }
  for (size_t i = 0; i < plan->slot_count; ++i) plan->slots[i].is_held = false;
  for (size_t i = 0; i < plan->placed_count; ++i) {
    plan->tensors[plan->placed[i].value].data = block + plan->placed[i].offset;
  }
}

/* ---- Steps ---- */

/* Shapes and memory of a step that had to wait for data. */
static om_status settle_dynamic(om_ctx *ctx, om_plan *plan, om_step *step) {
  const om_op_call *call = &step->call;
  OM_TRY(om_call_infer(ctx, call));
  OM_TRY(om_call_check_declared(ctx, call, plan->source.graph));
  if (om_call_is_open(call)) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "Node '%s' (%s): its shape stays unknown with all data there.",
                   call->node->name,
                   call->node->type);
  }
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (!call->outputs[i]) continue;
    const size_t bytes = om_result_bytes(call->outputs[i]);
    OM_TRY(om_plan_take_slot(
        ctx, plan, call->node->outputs[i], step->item, bytes, &call->outputs[i]->data));
  }
  if (step->ready_key) { /* weights that are packed need no aligned copy */
    OM_TRY(om_plan_make_step_ready(ctx, plan, step));
    OM_TRY(om_plan_align_constants(ctx, plan, call->node, step->ready.packed_inputs));
  }
  size_t scratch_bytes = step->ready.run ? step->ready.scratch_bytes : om_call_scratch_bytes(call);
  OM_TRY(om_dynamic_buffer_ensure(ctx, &plan->dynamic_scratch, scratch_bytes));
  step->call.scratch = plan->dynamic_scratch.data;
  return OM_OK;
}

/* The operator finds out types, shapes and places itself. */
static om_status run_bodies(om_ctx *ctx, const om_scope *scope, om_plan *plan, om_step *step) {
  om_op_call *call = &step->call;
  if (!call->bodies) {
    OM_TRY(om_bodies_create(ctx, call, &scope->bodies[step->node], &call->bodies));
  }
  OM_TRY(om_call_run(ctx, call));
  return om_call_check_declared(ctx, call, plan->source.graph);
}

om_status om_scope_run_step(om_ctx *ctx, om_plan *plan, om_step *step) {
  const om_scope *scope = plan->source.scope;
  if (step->call.node->op->bodies[0]) return run_bodies(ctx, scope, plan, step);
  if (step->is_dynamic) {
    OM_TRY(settle_dynamic(ctx, plan, step));
  } else {
    step->call.scratch = (uint8_t *)scope->block + step->scratch_offset;
  }
  return step->ready.run ? om_call_run_ready(ctx, &step->call, &step->ready)
                         : om_call_run(ctx, &step->call);
}

/* ---- Regions ---- */

static bool is_inside(const void *ptr, const void *block, size_t block_bytes) {
  uintptr_t at = (uintptr_t)ptr, begin = (uintptr_t)block;
  return at >= begin && at - begin < block_bytes;
}

/* What goes to the scope's own block can stay where the provider has it, if it lends that. Where
 * bodies run, their regions would write over it. */
static bool can_be_lent(const om_scope *scope, const om_plan *plan, size_t index, size_t write) {
  const om_provider *provider = plan->source.provider;
  const om_tensor *tensor = &plan->tensors[plan->regions[index].writes[write]];
  return provider->lend && !scope->body && !scope->bodies &&
         is_inside(tensor->data, scope->block, scope->block_bytes) &&
         provider->lend(plan->provider_plan, index, write) != NULL;
}

om_status om_scope_begin_region(om_ctx *ctx, om_plan *plan, size_t index) {
  const om_provider *provider = plan->source.provider;
  const om_plan_region *region = &plan->regions[index];
  const void **reads = plan->region_reads[index];
  for (size_t i = 0; i < region->read_count; ++i) reads[i] = plan->tensors[region->reads[i]].data;
  return provider->begin(ctx, plan->provider_plan, index, reads);
}

om_status om_scope_finish_region(om_ctx *ctx, om_plan *plan, size_t index) {
  const om_scope *scope = plan->source.scope;
  const om_provider *provider = plan->source.provider;
  const om_plan_region *region = &plan->regions[index];
  void **writes = plan->region_writes[index];
  for (size_t i = 0; i < region->write_count; ++i) {
    writes[i] = plan->tensors[region->writes[i]].data;
    if (can_be_lent(scope, plan, index, i)) writes[i] = NULL;
  }
  OM_TRY(provider->finish(ctx, plan->provider_plan, index, writes));
  for (size_t i = 0; i < region->write_count; ++i) {
    if (writes[i]) continue;
    const void *data = provider->lend(plan->provider_plan, index, i);
    memcpy(&plan->tensors[region->writes[i]].data, &data, sizeof data);
  }
  return OM_OK;
}

/* ---- Outputs ---- */

om_status om_scope_take_output(om_ctx *ctx,
                               om_plan *plan,
                               om_plan_output *output,
                               om_tensor *out_result) {
  const om_tensor *result = &plan->tensors[output->value];
  size_t bytes = om_tensor_need(result);
  *out_result = *result;
  if (output->is_made) return OM_OK;
  if (om_dtype_is_nested(result->dtype)) { /* an input handed on: its size is the run's */
    if (!om_value_bytes(result, &bytes)) bytes = SIZE_MAX;
    OM_TRY(om_dynamic_buffer_ensure(ctx, &output->copy, bytes));
    om_value_copy(result, output->copy.data, out_result);
    return OM_OK;
  }
  out_result->data = (uint8_t *)plan->source.scope->block + output->copy_offset;
  if (bytes > 0) memmove(out_result->data, result->data, bytes);
  return OM_OK;
}

/* ---- Bodies ---- */

om_status om_scope_run(om_ctx *ctx, om_scope *scope, om_tensor *outputs) {
  om_plan *plan = NULL;
  OM_TRY(om_check_cancelled(ctx));
  OM_TRY(om_scope_get_plan(ctx, scope, &plan));
  om_scope_set_places(plan);
  for (size_t i = 0; i < plan->item_count; ++i) {
    const om_plan_item *item = &plan->items[i];
    OM_TRY(om_check_cancelled(ctx));
    if (item->is_region) {
      OM_TRY(om_scope_begin_region(ctx, plan, item->index));
      OM_TRY(om_scope_finish_region(ctx, plan, item->index));
    } else {
      OM_TRY(om_scope_run_step(ctx, plan, &plan->steps[item->index]));
    }
  }
  for (size_t i = 0; i < scope->graph.output_count; ++i) {
    OM_TRY(om_scope_take_output(ctx, plan, &plan->outputs[i], &outputs[i]));
  }
  return OM_OK;
}
