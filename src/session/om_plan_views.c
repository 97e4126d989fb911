/* Operands that are read where they lie. What an operator reads through strides (attention) may
 * have come through Transposes, Slices, Splits and the like, whose only work is to move elements:
 * it reads what they moved instead, as a view, and those that nobody else reads are no steps.
 *
 * This is done for each plan, since shapes tell whether a chain of Reshapes and Transposes is one
 * view. A node that reads otherwise than the graph says is a copy of the plan's.
 */
#include "cpu/exact/om_view.h"
#include "session/om_plan.h"

/* The step whose result `value` is, if all it does is moving elements of its input 0. */
static const om_op_call *mover_of(const om_plan *plan, om_value_id value, om_strided *out_copy) {
  const om_node_id id = plan->source.graph->values[value].producer;
  if (id == OM_NO_NODE || plan->fates[id] != OM_FATE_STEP) return NULL;
  const om_op_call *call = &plan->calls[id];
  const om_node *node = call->node;
  uint32_t output = 0;
  if (!node->op->describe_move) return NULL;
  while (output < node->output_count && node->outputs[output] != value) ++output;
  return node->op->describe_move(call, output, out_copy) ? call : NULL;
}

/* Follows the operand back, as far as copies that move elements go. A small part of something large
 * stays a copy: float16 is widened as a whole by the CPU's attention. */
static om_value_id trace(const om_plan *plan, om_value_id operand, om_view *inout_view) {
  enum { MOST_TIMES = 4 }; /* Q, K and V of one projection are a third each */
  const size_t most_elems = MOST_TIMES * om_tensor_elems(&plan->tensors[operand]);
  om_strided copy;
  om_view view = *inout_view;
  om_value_id value = operand;
  for (;;) {
    const om_op_call *mover = mover_of(plan, value, &copy);
    if (!mover || !om_view_through(&copy, &view)) return operand;
    value = mover->node->inputs[0];
    if (om_tensor_elems(&plan->tensors[value]) > most_elems) return operand;
    om_strided_simplify(&copy);
    if (copy.rank == 1 && copy.source_strides[0] == 1 && copy.source_offset == 0) continue;
    operand = value; /* a mere Reshape alone is no gain */
    *inout_view = view;
  }
}

om_status om_plan_copy_call(om_ctx *ctx, om_plan *plan, const om_op_call *from, om_op_call *out) {
  const size_t bytes = from->node->op->params_bytes;
  om_node *node = OM_POOL_NEW(ctx, &plan->pool, om_node, 1);
  om_value_id *inputs = OM_POOL_NEW(ctx, &plan->pool, om_value_id, from->input_count);
  const om_tensor **tensors = OM_POOL_NEW(ctx, &plan->pool, const om_tensor *, from->input_count);
  void *params = om_pool_new_bytes(ctx, &plan->pool, 1, bytes);
  if (!node || !inputs || !tensors || !params) return OM_E_OUT_OF_MEMORY;
  memcpy(inputs, from->node->inputs, from->input_count * sizeof *inputs);
  memcpy(tensors, from->inputs, from->input_count * sizeof *tensors);
  if (bytes > 0) memcpy(params, from->params, bytes);
  *node = *from->node;
  node->inputs = inputs;
  node->params = params;
  *out = *from;
  out->node = node;
  out->params = params;
  out->inputs = tensors;
  return OM_OK;
}

void om_plan_set_input(om_plan *plan, om_op_call *call, uint32_t input, om_value_id value) {
  ((om_value_id *)(uintptr_t)call->node->inputs)[input] = value;
  ((const om_tensor **)(uintptr_t)call->inputs)[input] = &plan->tensors[value];
}

static om_status read_in_place(om_ctx *ctx, om_plan *plan, om_op_call *call) {
  const om_op_views *views = call->node->op->views;
  const om_op_call before = *call;
  for (uint32_t i = 0; i < call->input_count && i < views->input_count; ++i) {
    const om_value_id value = call->node->inputs[i];
    om_view view;
    if (value == OM_NO_VALUE || !views->get(call, i, &view)) continue;
    const om_value_id source = trace(plan, value, &view);
    if (source == value || !views->accepts(i, &view)) continue;
    if (call->node == before.node) OM_TRY(om_plan_copy_call(ctx, plan, &before, call));
    om_plan_set_input(plan, call, i, source);
    views->set((void *)(uintptr_t)call->params, i, &view);
  }
  return OM_OK;
}

om_status om_plan_read_in_place(om_ctx *ctx, om_plan *plan) {
  for (om_node_id id = 0; id < plan->source.graph->node_count; ++id) {
    if (plan->fates[id] != OM_FATE_STEP || !plan->calls[id].node->op->views) continue;
    OM_TRY(read_in_place(ctx, plan, &plan->calls[id]));
  }
  return OM_OK;
}
