/* Steps of the CPU made ready in fast mode: kernels chosen, weights packed. A dynamic step is made
 * ready by its first run, and again where a run finds other shapes. */
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

static om_status make_ready(om_ctx *ctx, om_plan *plan, const om_op_call *call, om_step *step) {
  const om_node *node = call->node;
  const uint32_t kept = kept_inputs(plan, node);
  om_status st = node->op->make_ready(ctx, call, kept, plan->source.fast, &step->ready);
  if (st != OM_OK) {
    om_error_prefix(ctx, "Node '%s' (%s)", node->name, node->type);
    return st;
  }
  tell_packed(plan, step, kept);
  return OM_OK;
}

static om_status add_key(om_ctx *ctx, om_plan *plan, om_step *step) {
  const om_op_call *call = &step->call;
  om_ready_key *key = OM_POOL_NEW(ctx, &plan->pool, om_ready_key, 1);
  if (!key) return OM_E_OUT_OF_MEMORY;
  const size_t count = (size_t)call->input_count + call->output_count;
  key->operands = OM_POOL_NEW(ctx, &plan->pool, om_tensor, count);
  key->inputs = OM_POOL_NEW(ctx, &plan->pool, const om_tensor *, call->input_count);
  key->outputs = OM_POOL_NEW(ctx, &plan->pool, om_tensor *, call->output_count);
  if (!key->operands || !key->inputs || !key->outputs) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < call->input_count; ++i) {
    if (call->inputs[i]) key->inputs[i] = &key->operands[i];
  }
  for (uint32_t i = 0; i < call->output_count; ++i) {
    if (call->outputs[i]) key->outputs[i] = &key->operands[call->input_count + i];
  }
  step->ready_key = key;
  return OM_OK;
}

om_status om_plan_make_ready(om_ctx *ctx, om_plan *plan) {
  om_status late = OM_OK;
  if (!plan->source.fast) return OM_OK;
  for (size_t s = 0; s < plan->step_count; ++s) {
    om_step *step = &plan->steps[s];
    const om_node *node = step->call.node;
    if (step->is_accepted || !node->op->make_ready) continue;
    OM_TRY(om_check_given_up(ctx)); /* packed weights are the session's, and stay */
    if (step->is_dynamic) {
      OM_TRY(add_key(ctx, plan, step));
      continue;
    }
    OM_TRY(om_put_off(hold_constants(ctx, plan, node), &late));
    if (late == OM_OK) OM_TRY(make_ready(ctx, plan, &step->call, step));
  }
  return late;
}

void om_plan_drop_ready(om_ctx *ctx, om_step *step) {
  if (step->ready.destroy) step->ready.destroy(ctx, step->ready.state);
  step->ready = (om_op_ready){.run = NULL};
}

static const om_tensor *operand_of(const om_op_call *call, size_t index) {
  return index < call->input_count ? call->inputs[index] : call->outputs[index - call->input_count];
}

om_status om_plan_make_step_ready(om_ctx *ctx, om_plan *plan, om_step *step) {
  om_ready_key *key = step->ready_key;
  om_op_call call = step->call;
  const size_t count = (size_t)call.input_count + call.output_count;
  const uint32_t kept = kept_inputs(plan, call.node);
  om_ctx whole = *ctx;
  bool is_new = !key->is_made;
  for (size_t i = 0; i < count && !is_new; ++i) {
    const om_tensor *operand = operand_of(&call, i);
    is_new = operand && !om_plan_is_alike(operand, &key->operands[i]);
  }
  if (!is_new) return OM_OK;
  om_plan_drop_ready(ctx, step);
  key->is_made = false;
  for (size_t i = 0; i < count; ++i) {
    if (!operand_of(&call, i)) continue;
    key->operands[i] = *operand_of(&call, i);
    if (i >= 32 || !(kept >> i & 1u)) key->operands[i].data = NULL;
  }
  call.inputs = key->inputs;
  call.outputs = key->outputs;
  whole.cancel = NULL; /* what is packed is kept, also by the session */
  OM_TRY(make_ready(&whole, plan, &call, step));
  key->is_made = true;
  return OM_OK;
}
