/* The first half of planning: shapes, folding, and which nodes become steps.
 *
 * Nodes are visited in the graph's order, so that every operand is settled before it is read. A
 * node whose operands are all known is computed at once: that is how the shape arithmetic of
 * exporters vanishes. Nodes are then walked backwards to find what nobody reads any more.
 */
#include "session/om_constants.h"
#include "session/om_plan.h"

/* The operands of each node as pointers into plan->tensors. Output 0 is always given: kernels may
 * rely on it; others only where the graph reads them. */
static om_status make_call(om_ctx *ctx, om_plan *plan, om_node_id id, const uint32_t *uses) {
  const om_node *node = &plan->source.graph->nodes[id];
  const om_tensor **inputs = OM_POOL_NEW(ctx, &plan->pool, const om_tensor *, node->input_count);
  om_tensor **outputs = OM_POOL_NEW(ctx, &plan->pool, om_tensor *, node->output_count);
  if (!inputs || !outputs) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] != OM_NO_VALUE) inputs[i] = &plan->tensors[node->inputs[i]];
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    om_value_id value = node->outputs[i];
    if (value != OM_NO_VALUE && (i == 0 || uses[value] > 0)) outputs[i] = &plan->tensors[value];
  }
  plan->calls[id] = (om_op_call){.node = node,
                                 .params = node->params,
                                 .inputs = inputs,
                                 .input_count = node->input_count,
                                 .outputs = outputs,
                                 .output_count = node->output_count,
                                 .mode = plan->source.mode};
  return OM_OK;
}

static bool has_open_input(const om_plan *plan, const om_node *node) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    om_value_id value = node->inputs[i];
    if (value != OM_NO_VALUE && !plan->values[value].is_static) return true;
  }
  return false;
}

static void mark_outputs_open(om_plan *plan, const om_node *node) {
  for (uint32_t i = 0; i < node->output_count; ++i) {
    om_value_id value = node->outputs[i];
    if (value == OM_NO_VALUE) continue;
    plan->values[value].is_static = false;
    plan->tensors[value].rank = 0;
  }
}

om_status om_plan_align_value(om_ctx *ctx, om_plan *plan, uint32_t value) {
  OM_TRY(om_constant_align(ctx, plan->source.graph, value));
  plan->tensors[value].data = plan->source.graph->values[value].constant->data;
  return OM_OK;
}

om_status om_plan_align_constants(om_ctx *ctx,
                                  om_plan *plan,
                                  const om_node *node,
                                  uint32_t without) {
  om_status late = OM_OK;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    om_value_id value = node->inputs[i];
    const om_tensor *constant =
        value == OM_NO_VALUE ? NULL : plan->source.graph->values[value].constant;
    const bool is_copied = i < 32 && (node->op->copied_inputs >> i & 1u) != 0;
    if (!constant || (i < 32 && (without >> i & 1u) != 0)) continue;
    if (is_copied && !om_stored_of(constant)) continue;
    OM_TRY(om_put_off(om_plan_align_value(ctx, plan, value), &late));
  }
  return late;
}

/* Notes it if the node is an If whose condition is known for these shapes. */
static om_status decide(om_ctx *ctx, om_plan *plan, om_node_id id) {
  const om_op_call *call = &plan->calls[id];
  const om_tensor *condition = call->inputs[0];
  if (!plan->source.takes_decisions || strcmp(call->node->type, "If") != 0) return OM_OK;
  if (!condition->data || condition->dtype != OM_DTYPE_BOOL || om_tensor_elems(condition) != 1) {
    return OM_OK;
  }
  if (!plan->decisions) {
    plan->decisions = OM_POOL_NEW(ctx, &plan->pool, uint8_t, plan->source.graph->node_count);
    if (!plan->decisions) return OM_E_OUT_OF_MEMORY;
  }
  bool is_true = *(const uint8_t *)condition->data != 0;
  plan->decisions[id] = is_true ? OM_DECIDED_THEN : OM_DECIDED_ELSE;
  return OM_OK;
}

static om_status settle(om_ctx *ctx, om_plan *plan, om_node_id id, om_fold_budget *budget) {
  const om_node *node = &plan->source.graph->nodes[id];
  om_op_call *call = &plan->calls[id];
  bool is_folded = false;
  plan->fates[id] = OM_FATE_STEP;
  if (node->op->bodies[0]) OM_TRY(decide(ctx, plan, id));
  if (node->op->bodies[0] || has_open_input(plan, node)) {
    plan->fates[id] = OM_FATE_DYNAMIC;
    mark_outputs_open(plan, node);
    return OM_OK;
  }
  OM_TRY(om_call_infer(ctx, call));
  OM_TRY(om_call_check_declared(ctx, call, plan->source.graph));
  if (om_call_is_open(call)) {
    plan->fates[id] = OM_FATE_DYNAMIC;
    mark_outputs_open(plan, node);
    return OM_OK;
  }
  if (om_call_is_foldable(call)) {
    OM_TRY(om_plan_align_constants(ctx, plan, node, node->op->shaped_inputs));
    OM_TRY(om_call_fold(ctx, call, &plan->pool, budget, &is_folded));
    if (is_folded) plan->fates[id] = OM_FATE_FOLDED;
  }
  return OM_OK;
}

om_status om_plan_infer(om_ctx *ctx, om_plan *plan) {
  om_status st = OM_OK;
  const om_graph *graph = plan->source.graph;
  om_fold_budget budget = OM_FOLD_BUDGET_INIT;
  uint32_t *uses = NULL; /* scratch */

  plan->calls = OM_POOL_NEW(ctx, &plan->pool, om_op_call, graph->node_count);
  plan->fates = OM_POOL_NEW(ctx, &plan->pool, om_fate, graph->node_count);
  if (!plan->calls || !plan->fates) return OM_E_OUT_OF_MEMORY;
  OM_GO_NEW(uses, graph->value_count);
  om_graph_count_uses(graph, uses);
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    OM_GO(om_check_given_up(ctx));
    OM_GO(make_call(ctx, plan, id, uses));
    OM_GO(settle(ctx, plan, id, &budget));
  }
done:
  om_delete(ctx, uses);
  return st;
}

/* ---- Steps ---- */

static bool is_step(const om_plan *plan, om_node_id id) {
  return plan->fates[id] == OM_FATE_STEP || plan->fates[id] == OM_FATE_DYNAMIC;
}

/* Walks backwards from the outputs: sets is_needed, and OM_FATE_DEAD for what nobody reads. */
static void find_needed(om_plan *plan) {
  const om_graph *graph = plan->source.graph;
  for (size_t i = 0; i < graph->output_count; ++i) plan->is_needed[graph->outputs[i]] = true;
  for (om_node_id id = (om_node_id)graph->node_count; id-- > 0;) {
    const om_node *node = plan->calls[id].node;
    bool is_read = false;
    if (!is_step(plan, id)) continue;
    for (uint32_t i = 0; i < node->output_count; ++i) {
      om_value_id value = node->outputs[i];
      if (value != OM_NO_VALUE && plan->is_needed[value]) is_read = true;
    }
    if (!is_read) {
      plan->fates[id] = OM_FATE_DEAD;
      continue;
    }
    plan->step_count += 1;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != OM_NO_VALUE) plan->is_needed[node->inputs[i]] = true;
    }
  }
}

/* Drops the outputs that became unread from the call, and lists operands for the provider. */
static om_status make_step(om_ctx *ctx, om_plan *plan, om_node_id id, uint32_t index) {
  om_op_call call = plan->calls[id];
  const om_node *node = call.node;
  uint32_t *inputs = OM_POOL_NEW(ctx, &plan->pool, uint32_t, node->input_count);
  uint32_t *outputs = OM_POOL_NEW(ctx, &plan->pool, uint32_t, node->output_count);
  om_tensor **results = OM_POOL_NEW(ctx, &plan->pool, om_tensor *, node->output_count);
  if (!inputs || !outputs || !results) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->input_count; ++i) inputs[i] = node->inputs[i];
  for (uint32_t i = 0; i < node->output_count; ++i) {
    om_value_id value = node->outputs[i];
    bool is_read = value != OM_NO_VALUE && plan->is_needed[value];
    outputs[i] = is_read ? value : (uint32_t)OM_PLAN_NO_VALUE;
    if (is_read || i == 0) results[i] = call.outputs[i];
    if (value != OM_NO_VALUE) plan->maker[value] = index;
  }
  call.outputs = results;
  plan->view_steps[index] = (om_plan_step){.node = node,
                                           .inputs = inputs,
                                           .input_count = node->input_count,
                                           .outputs = outputs,
                                           .output_count = node->output_count};
  plan->steps[index] =
      (om_step){.call = call, .node = id, .is_dynamic = plan->fates[id] == OM_FATE_DYNAMIC};
  return OM_OK;
}

om_status om_plan_collect_steps(om_ctx *ctx, om_plan *plan) {
  const om_graph *graph = plan->source.graph;
  uint32_t index = 0;
  find_needed(plan);
  plan->view_steps = OM_POOL_NEW(ctx, &plan->pool, om_plan_step, plan->step_count);
  plan->steps = OM_POOL_NEW(ctx, &plan->pool, om_step, plan->step_count);
  if (!plan->view_steps || !plan->steps) return OM_E_OUT_OF_MEMORY;
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    if (is_step(plan, id)) OM_TRY(make_step(ctx, plan, id, index++));
  }
  return OM_OK;
}
