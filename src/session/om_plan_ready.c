/* Steps of the CPU made ready in fast mode: kernels chosen, weights packed. */
#include "graph/om_stored.h"
#include "session/om_plan.h"

/* Which inputs are constants of the graph, which outlives the plan. */
static uint32_t kept_inputs(const om_plan *plan, const om_node *node) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < node->input_count && i < 32; ++i) {
    om_value_id value = node->inputs[i];
    if (value != OM_NO_VALUE && plan->source.graph->values[value].constant) kept |= 1u << i;
  }
  return kept;
}

/* The file's pages need not stay for weights that were packed. */
static void tell_packed(const om_plan *plan, const om_step *step, uint32_t kept) {
  const om_node *node = step->call.node;
  for (uint32_t i = 0; i < node->input_count && i < 32; ++i) {
    if (!(step->ready.packed_inputs & kept & 1u << i)) continue;
    om_graph_constant_copied(plan->source.graph,
                             plan->source.graph->values[node->inputs[i]].constant);
  }
}

/* Brings the node's constants to memory, where kernels pack them, or read them. */
static om_status hold_constants(om_ctx *ctx, om_plan *plan, const om_node *node) {
  om_status late = OM_OK;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const om_value_id value = node->inputs[i];
    if (value == OM_NO_VALUE || !om_stored_of(plan->source.graph->values[value].constant)) continue;
    OM_TRY(om_put_off(om_plan_align_value(ctx, plan, value), &late));
  }
  return late;
}

om_status om_plan_make_ready(om_ctx *ctx, om_plan *plan) {
  om_status late = OM_OK;
  if (!plan->source.fast) return OM_OK;
  for (size_t s = 0; s < plan->step_count; ++s) {
    om_step *step = &plan->steps[s];
    const om_node *node = step->call.node;
    if (step->is_accepted || step->is_dynamic || !node->op->make_ready) continue;
    const uint32_t kept = kept_inputs(plan, node);
    OM_TRY(om_put_off(hold_constants(ctx, plan, node), &late));
    if (late != OM_OK) continue;
    om_status st = node->op->make_ready(ctx, &step->call, kept, plan->source.fast, &step->ready);
    if (st != OM_OK) {
      om_error_prefix(ctx, "Node '%s' (%s)", node->name, node->type);
      return st;
    }
    tell_packed(plan, step, kept);
  }
  return late;
}
