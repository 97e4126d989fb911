/* If and Loop. Their bodies run through om_op_bodies; a body's results are lent until its next run,
 * so what a Loop carries from turn to turn is copied. */
#include <inttypes.h>

#include "ops/om_rule.h"
#include "ops/op_body.h"

/* ---- If ---- */

static om_status if_resolve(om_ctx *ctx, const om_node *node, void *params) {
  (void)params;
  OM_TRY(om_op_check_body(ctx, node, "then_branch", 0, node->output_count));
  return om_op_check_body(ctx, node, "else_branch", 0, node->output_count);
}

static om_status if_run(om_ctx *ctx, const om_op_call *call) {
  int64_t condition = 0;
  void *memory = NULL;
  const size_t count = call->output_count;
  OM_TRY(om_body_scalar(ctx, call->inputs[0], "condition", &condition));
  OM_TRY(call->bodies->reserve(ctx, call->bodies, 0, count * sizeof(om_tensor), &memory));
  om_tensor *results = memory;
  OM_TRY(call->bodies->run(ctx, call->bodies, condition != 0 ? 0 : 1, NULL, results));
  /* Lent until the branch runs again, which it does not before whoever reads them has. */
  for (uint32_t i = 0; i < count; ++i) om_body_set_output(call, i, &results[i]);
  return OM_OK;
}

/* ---- Loop ----
 *
 *     operands    trip count, condition, states ...
 *     body        turn, condition, states ...  ->  condition, states ..., parts ...
 *     results     states ..., stacks of the parts ...
 */

typedef struct om_loop_params {
  uint32_t state_count, stack_count;
} om_loop_params;

static om_status loop_resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_loop_params *p = params;
  uint32_t formal = om_node_formal_count(node);
  p->state_count = formal > 2 ? formal - 2 : 0;
  if (node->output_count < p->state_count) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "It has %" PRIu32 " outputs, but carries %" PRIu32 " values.",
                   node->output_count,
                   p->state_count);
  }
  p->stack_count = node->output_count - p->state_count;
  return om_op_check_body(
      ctx, node, "body", 2 + (size_t)p->state_count, 1 + (size_t)node->output_count);
}

typedef struct loop { /* one run */
  const om_op_call *call;
  const om_loop_params *params;
  int64_t trip_count, condition, turn;
  om_tensor *inputs, *outputs; /* of the body */
  om_stack *stacks;
} loop;

/* Slot 0 has the lists; a state has two, written in turns; a stack has two. */
static uint32_t state_slot(uint32_t state, bool is_odd) {
  return 1 + 2 * state + (is_odd ? 1 : 0);
}

static om_status loop_begin(om_ctx *ctx, loop *l) {
  const om_op_call *call = l->call;
  const om_loop_params *p = l->params;
  void *memory = NULL;
  size_t inputs = 2 + (size_t)p->state_count, outputs = 1 + (size_t)call->output_count;
  size_t bytes = (inputs + outputs) * sizeof(om_tensor) + p->stack_count * sizeof(om_stack);
  OM_TRY(call->bodies->reserve(ctx, call->bodies, 0, bytes, &memory));
  l->inputs = memory;
  l->outputs = l->inputs + inputs;
  l->stacks = (om_stack *)(void *)(l->outputs + outputs);
  for (uint32_t i = 0; i < p->stack_count; ++i) {
    l->stacks[i] = (om_stack){.slot = state_slot(p->state_count + i, false), .turn_count = -1};
  }
  for (uint32_t i = 0; i < p->state_count; ++i) {
    OM_TRY(om_body_keep(ctx, call, state_slot(i, true), call->inputs[2 + i], &l->inputs[2 + i]));
  }
  l->trip_count = INT64_MAX;
  l->condition = 1;
  const om_tensor *trip = om_rule_input(call, 0), *condition = om_rule_input(call, 1);
  if (trip) OM_TRY(om_body_scalar(ctx, trip, "trip count", &l->trip_count));
  if (condition) OM_TRY(om_body_scalar(ctx, condition, "condition", &l->condition));
  return OM_OK;
}

/* A scalar, or a list of one where the body declares that. */
static om_tensor one_element(const om_graph *body, size_t index, om_dtype dtype, void *data) {
  const om_value *value = &body->values[body->inputs[index]];
  uint32_t rank = value->has_rank && value->rank == 1 ? 1 : 0;
  return om_tensor_of(dtype, rank, (int64_t[]){1}, data);
}

static om_status loop_turn(om_ctx *ctx, loop *l) {
  const om_op_call *call = l->call;
  const om_loop_params *p = l->params;
  const om_graph *body = om_op_body(call->node, "body");
  uint8_t condition = l->condition != 0;
  l->inputs[0] = one_element(body, 0, OM_DTYPE_I64, &l->turn);
  l->inputs[1] = one_element(body, 1, OM_DTYPE_BOOL, &condition);
  OM_TRY(call->bodies->run(ctx, call->bodies, 0, l->inputs, l->outputs));
  OM_TRY(om_body_scalar(ctx, &l->outputs[0], "body's condition", &l->condition));
  for (uint32_t i = 0; i < p->state_count; ++i) {
    uint32_t slot = state_slot(i, (l->turn & 1) != 0); /* not the one that the body has read */
    OM_TRY(om_body_keep(ctx, call, slot, &l->outputs[1 + i], &l->inputs[2 + i]));
  }
  for (uint32_t i = 0; i < p->stack_count; ++i) {
    OM_TRY(om_stack_add(ctx, call, &l->stacks[i], &l->outputs[1 + p->state_count + i]));
  }
  return OM_OK;
}

static om_status loop_run(om_ctx *ctx, const om_op_call *call) {
  loop l = {.call = call, .params = call->params};
  const om_loop_params *p = call->params;
  const om_graph *body = om_op_body(call->node, "body");
  OM_TRY(loop_begin(ctx, &l));
  for (; l.turn < l.trip_count && l.condition != 0; ++l.turn) {
    om_status st = loop_turn(ctx, &l);
    if (st == OM_OK) continue;
    om_error_prefix(ctx, "Turn %" PRId64, l.turn);
    return st;
  }
  for (uint32_t i = 0; i < p->state_count; ++i) om_body_set_output(call, i, &l.inputs[2 + i]);
  for (uint32_t i = 0; i < p->stack_count; ++i) {
    const om_value *declared = &body->values[body->outputs[1 + p->state_count + i]];
    OM_TRY(om_stack_finish(ctx, call, &l.stacks[i], declared, p->state_count + i));
  }
  return OM_OK;
}

const om_op om_ops_control[] = {
    {.domain = "",
     .type = "If",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, UINT8_MAX),
     .dtypes = OM_DT(OM_DTYPE_BOOL),
     .params_bytes = 1,
     .bodies = {"then_branch", "else_branch"},
     .resolve = if_resolve,
     .run = if_run},
    {.domain = "",
     .type = "Loop",
     .first_opset = 1,
     OM_RULE_COUNTS(0, UINT8_MAX, 1, UINT8_MAX),
     .params_bytes = sizeof(om_loop_params),
     .bodies = {"body"},
     .resolve = loop_resolve,
     .run = loop_run},
    {.type = NULL},
};
