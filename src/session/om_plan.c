/* A plan's life: its arrays, the order of its stages, and its end. See om_plan.h. */
#include "session/om_plan.h"
#include "graph/om_stored.h"

static om_status init_values(om_ctx *ctx, om_plan *plan, const om_tensor *inputs) {
  const om_graph *graph = plan->source.graph;
  size_t count = graph->value_count;
  plan->tensors = OM_POOL_NEW(ctx, &plan->pool, om_tensor, count);
  plan->values = OM_POOL_NEW(ctx, &plan->pool, om_plan_value, count);
  plan->is_needed = OM_POOL_NEW(ctx, &plan->pool, bool, count);
  plan->maker = OM_POOL_NEW(ctx, &plan->pool, uint32_t, count);
  plan->inputs = OM_POOL_NEW(ctx, &plan->pool, om_tensor, graph->input_count);
  if (!plan->tensors || !plan->values || !plan->is_needed || !plan->maker || !plan->inputs) {
    return OM_E_OUT_OF_MEMORY;
  }
  for (size_t i = 0; i < count; ++i) {
    const om_value *value = &graph->values[i];
    plan->maker[i] = OM_NO_ITEM;
    plan->values[i] = (om_plan_value){.name = value->name,
                                      .is_static = true,
                                      .is_weight = value->constant != NULL,
                                      .is_input = value->is_input,
                                      .is_output = value->is_output};
    plan->tensors[i].dtype = value->dtype;
    if (value->constant) plan->tensors[i] = *value->constant;
  }
  for (size_t i = 0; i < graph->input_count; ++i) {
    plan->inputs[i] = inputs[i];
    plan->inputs[i].data = NULL;
    om_tensor *tensor = &plan->tensors[graph->inputs[i]];
    *tensor = plan->inputs[i];
    const bool is_nested = om_dtype_is_nested(inputs[i].dtype);
    plan->values[graph->inputs[i]].is_static = !is_nested;
    if (is_nested) continue;
    if (om_tensor_elems(tensor) == 0) tensor->data = plan->inputs; /* nothing to wait for */
  }
  return OM_OK;
}

/* The provider sees types, shapes and constants as they are now; a run changes plan->tensors. */
static void publish_values(om_plan *plan) {
  for (size_t i = 0; i < plan->source.graph->value_count; ++i) {
    const om_stored *stored = om_stored_of(plan->source.graph->values[i].constant);
    plan->values[i].tensor = plan->tensors[i];
    plan->values[i].stored = stored;
    if (stored) plan->values[i].tensor.data = (void *)(uintptr_t)stored;
  }
  plan->view = (om_plan_view){.values = plan->values,
                              .value_count = plan->source.graph->value_count,
                              .steps = plan->view_steps,
                              .step_count = plan->step_count};
}

static om_status build(om_ctx *ctx, om_plan *plan, const om_tensor *inputs) {
  OM_TRY(init_values(ctx, plan, inputs));
  OM_TRY(om_plan_infer(ctx, plan));
  if (plan->decisions) return OM_OK;
  OM_TRY(om_plan_read_in_place(ctx, plan));
  OM_TRY(om_plan_leave_rows(ctx, plan));
  OM_TRY(om_plan_collect_steps(ctx, plan));
  publish_values(plan);
  OM_TRY(om_plan_claim(ctx, plan));
  OM_TRY(om_plan_check_required(ctx, plan));
  OM_TRY(om_plan_schedule(ctx, plan));
  OM_TRY(om_plan_form_regions(ctx, plan));
  OM_TRY(om_plan_compile(ctx, plan));
  OM_TRY(om_plan_make_ready(ctx, plan));
  OM_TRY(om_plan_place(ctx, plan));
  return om_plan_report(ctx, plan);
}

om_status om_plan_create(om_ctx *ctx,
                         const om_plan_source *source,
                         const om_tensor *inputs,
                         om_plan **out_plan) {
  om_status st = OM_OK;
  om_plan *plan = NULL;
  *out_plan = NULL;

  OM_GO_NEW(plan, 1);
  plan->source = *source;
  OM_GO(build(ctx, plan, inputs));

  *out_plan = plan;
  plan = NULL; /* the caller owns it now */
done:
  om_plan_destroy(ctx, plan);
  return st;
}

void om_plan_destroy(om_ctx *ctx, om_plan *plan) {
  if (!plan) return;
  if (plan->provider_plan) plan->source.provider->plan_end(ctx, plan->provider_plan);
  for (size_t i = 0; plan->steps && i < plan->step_count; ++i) {
    om_bodies_destroy(ctx, plan->steps[i].call.bodies);
    om_plan_drop_ready(ctx, &plan->steps[i]);
  }
  for (size_t i = 0; plan->outputs && i < plan->source.graph->output_count; ++i) {
    om_delete(ctx, plan->outputs[i].copy.data);
  }
  for (size_t i = 0; i < plan->slot_count; ++i) om_delete(ctx, plan->slots[i].buffer.data);
  om_delete(ctx, plan->dynamic_scratch.data);
  om_pool_deinit(ctx, &plan->pool);
  om_delete(ctx, plan);
}

bool om_plan_is_alike(const om_tensor *a, const om_tensor *b) {
  if (a->dtype != b->dtype) return false;
  if (om_dtype_is_nested(a->dtype)) return true; /* what it holds counts during the run alone */
  return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

bool om_plan_fits(const om_plan *plan, const om_tensor *inputs) {
  for (size_t i = 0; i < plan->source.graph->input_count; ++i) {
    if (!om_plan_is_alike(&plan->inputs[i], &inputs[i])) return false;
  }
  return true;
}
