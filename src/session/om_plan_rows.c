/* Transposes that only put rows in another order, as exporters of attention over [length, batch,
 * width] leave them: one in front of the projections, and one behind the last of them.
 *
 *     Transpose -> MatMul -> Add -> Reshape ... -> Attention -> Reshape -> Gemm -> Reshape ->
 * Transpose
 *
 * What lies between computes each row by itself, so it may as well have them in the order they had
 * before. An attention reads its operands through strides: it finds the rows there, and writes its
 * own in the order that is wanted in the end. Then nothing needs the Transposes. Each element is
 * computed of the same ones in the same order: the bits stay.
 *
 * This is done for each plan, since shapes tell which parts of a Reshape's result are rows.
 */
#include "cpu/exact/om_view.h"
#include "ops/op_layout.h"
#include "session/om_plan.h"

enum { MOST_STEPS = 8, MOST_VIEWS = 4 };

typedef struct row_order { /* of a Transpose that leaves the last axis where it is */
  uint32_t rank;           /* of the other axes */
  int64_t from[OM_MAX_RANK], to[OM_MAX_RANK]; /* their extents in front of it and behind it */
  uint32_t axes[OM_MAX_RANK];                 /* axis i behind it is this one in front of it */
  size_t rows;
} row_order;

typedef struct chain { /* steps that compute rows, from the last to the first */
  om_node_id ids[MOST_STEPS];
  uint32_t inputs[MOST_STEPS]; /* which one is the rows */
  uint32_t count;
  om_value_id top; /* what the first of them reads */
} chain;

typedef struct leaving { /* large for the stack */
  om_ctx *ctx;
  om_plan *plan;
  uint32_t *reads; /* owned; per value: by steps that are needed, and by the caller */
  /* Of the Transpose that is looked at: */
  row_order order;
  chain steps;               /* between it and the attention */
  om_view views[MOST_VIEWS]; /* of the attention's operands */
} leaving;

/* ---- What there is ---- */

static om_node_id maker_of(const om_plan *plan, om_value_id value) {
  const om_node_id id = plan->source.graph->values[value].producer;
  return id == OM_NO_NODE || plan->fates[id] != OM_FATE_STEP ? OM_NO_NODE : id;
}

static bool order_of(const om_op_call *call, row_order *out) {
  const om_node *node = call->node;
  if (strcmp(node->type, "Transpose") != 0 || node->domain[0] != '\0') return false;
  const om_transpose_params *params = call->params;
  const om_tensor *x = call->inputs[0];
  if (!params->perm.is_given || x->rank < 3) return false;
  *out = (row_order){.rank = x->rank - 1, .rows = om_rule_product(x->dims, 0, x->rank - 1)};
  if (params->perm.values[out->rank] != (int64_t)out->rank || om_tensor_elems(x) == 0) return false;
  for (uint32_t i = 0; i < out->rank; ++i) {
    out->axes[i] = (uint32_t)params->perm.values[i];
    out->from[i] = x->dims[i];
    out->to[i] = x->dims[out->axes[i]];
  }
  return true;
}

/* True if the step computes rows, in a result with the rows' own axes, or only gives all elements
 * another shape. */
static bool is_by_rows(const om_op_call *call, uint32_t input, size_t rows) {
  const om_op *op = call->node->op;
  om_strided copy;
  if (!call->inputs[input]) return false;
  if (op->is_by_rows) {
    return call->inputs[input]->rank == call->outputs[0]->rank && op->is_by_rows(call, input, rows);
  }
  if (input != 0 || !op->describe_move || call->node->output_count != 1) return false;
  if (!op->describe_move(call, 0, &copy) || copy.rank != 1) return false;
  return copy.source_strides[0] == 1 && copy.source_offset == 0 &&
         (size_t)copy.extents[0] == om_tensor_elems(call->inputs[0]);
}

/* Goes back from a value as long as nobody else reads what lies between. */
static void follow(const leaving *l, om_value_id value, size_t rows, chain *out) {
  *out = (chain){.top = value};
  while (out->count < MOST_STEPS && (out->count == 0 || l->reads[value] == 1)) {
    const om_node_id id = maker_of(l->plan, value);
    if (id == OM_NO_NODE) return;
    const om_op_call *call = &l->plan->calls[id];
    uint32_t input = 0;
    while (input < call->input_count && !is_by_rows(call, input, rows)) ++input;
    if (input == call->input_count) return;
    out->ids[out->count] = id;
    out->inputs[out->count++] = input;
    value = out->top = call->node->inputs[input];
  }
}

static bool are_by_rows(const om_plan *plan, const chain *c, size_t rows) {
  for (uint32_t i = 0; i < c->count; ++i) {
    if (!is_by_rows(&plan->calls[c->ids[i]], c->inputs[i], rows)) return false;
  }
  return true;
}

/* False: nothing reads the node's results, or only their shapes, so the plan will be without it. */
static bool is_read(const leaving *l, const om_node *node) {
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] != OM_NO_VALUE && l->reads[node->outputs[i]] > 0) return true;
  }
  return false;
}

static void count_reads(leaving *l) {
  const om_graph *graph = l->plan->source.graph;
  for (size_t i = 0; i < graph->output_count; ++i) l->reads[graph->outputs[i]] += 1;
  for (om_node_id id = (om_node_id)graph->node_count; id-- > 0;) {
    const om_node *node = l->plan->calls[id].node;
    const om_fate fate = l->plan->fates[id];
    if ((fate != OM_FATE_STEP && fate != OM_FATE_DYNAMIC) || !is_read(l, node)) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != OM_NO_VALUE) l->reads[node->inputs[i]] += 1;
    }
  }
}

/* ---- What changes ---- */

/* The plan's own call of the node, to change. */
static om_status own(om_ctx *ctx, om_plan *plan, om_node_id id) {
  const om_op_call before = plan->calls[id];
  if (before.node != &plan->source.graph->nodes[id]) return OM_OK;
  return om_plan_copy_call(ctx, plan, &before, &plan->calls[id]);
}

static bool begins_with(const om_tensor *x, uint32_t rank, const int64_t *extents) {
  return x->rank > rank && memcmp(x->dims, extents, rank * sizeof *extents) == 0;
}

/* The result of each step from `first` on has its rows in another order now; where its shape tells
 * one axis of them from the other, these are others. */
static void reshape(leaving *l, uint32_t first, const int64_t *before, const int64_t *now) {
  const uint32_t rank = l->order.rank;
  for (uint32_t i = first; i < l->steps.count; ++i) {
    const om_value_id value = l->plan->calls[l->steps.ids[i]].node->outputs[0];
    om_tensor *y = &l->plan->tensors[value];
    if (begins_with(y, rank, before)) memcpy(y->dims, now, rank * sizeof *now);
  }
}

/* ---- In front of an attention ---- */

/* Rows of the value's own width, as the Transpose would put them. */
static om_strided copy_of(const om_plan *plan, om_value_id value, const row_order *order) {
  const size_t width = om_tensor_elems(&plan->tensors[value]) / order->rows;
  om_strided copy = {.rank = order->rank + 1};
  int64_t dims[OM_MAX_RANK], strides[OM_MAX_RANK];
  memcpy(dims, order->from, sizeof dims);
  memcpy(copy.extents, order->to, order->rank * sizeof *copy.extents);
  dims[order->rank] = copy.extents[order->rank] = (int64_t)width;
  om_dense_strides(copy.rank, dims, strides);
  om_dense_strides(copy.rank, copy.extents, copy.target_strides);
  for (uint32_t i = 0; i < order->rank; ++i) copy.source_strides[i] = strides[order->axes[i]];
  copy.source_strides[order->rank] = 1;
  return copy;
}

/* The views of all inputs that are the value, on what it will be; false: one cannot be. */
static bool find_views(leaving *l, const om_op_call *call, om_value_id value) {
  const om_op_views *views = call->node->op->views;
  const om_strided copy = copy_of(l->plan, value, &l->order);
  for (uint32_t i = 0; i < call->input_count && i < views->input_count; ++i) {
    om_view *view = &l->views[i];
    if (call->node->inputs[i] != value) continue;
    if (!views->get(call, i, view) || !om_view_through(&copy, view)) return false;
    if (!views->accepts(i, view)) return false;
  }
  return true;
}

static om_status read_untransposed(leaving *l, om_node_id id, om_value_id value) {
  om_plan *plan = l->plan;
  const chain *c = &l->steps;
  const om_node_id first = c->ids[c->count - 1];
  const om_value_id source = plan->calls[maker_of(plan, c->top)].node->inputs[0];
  OM_TRY(own(l->ctx, plan, first));
  om_plan_set_input(plan, &plan->calls[first], c->inputs[c->count - 1], source);
  l->reads[source] += 1;
  l->reads[c->top] -= 1;
  if (l->reads[c->top] == 0) l->reads[source] -= 1;
  reshape(l, 0, l->order.to, l->order.from);
  OM_TRY(own(l->ctx, plan, id));
  const om_op_call *call = &plan->calls[id];
  const om_op_views *views = call->node->op->views;
  for (uint32_t i = 0; i < call->input_count && i < views->input_count; ++i) {
    if (call->node->inputs[i] != value) continue;
    views->set((void *)(uintptr_t)call->params, i, &l->views[i]);
  }
  return OM_OK;
}

/* True if the value comes from a Transpose, by steps that it may as well go without. */
static bool find_transpose(leaving *l, om_value_id value) {
  const chain *c = &l->steps;
  follow(l, value, 1, &l->steps);
  const om_node_id id = c->count > 0 ? maker_of(l->plan, c->top) : OM_NO_NODE;
  return id != OM_NO_NODE && order_of(&l->plan->calls[id], &l->order) &&
         are_by_rows(l->plan, c, l->order.rows);
}

static om_status leave_in_front(leaving *l, om_node_id id) {
  const om_op_call *call = &l->plan->calls[id];
  const om_op_views *views = call->node->op->views;
  for (uint32_t i = 0; i < call->input_count && i < views->input_count; ++i) {
    const om_value_id value = call->node->inputs[i];
    uint32_t count = 0;
    if (value == OM_NO_VALUE) continue;
    for (uint32_t k = 0; k < call->input_count && k < views->input_count; ++k) {
      count += call->node->inputs[k] == value;
    }
    if (l->reads[value] != count || !find_transpose(l, value)) continue;
    if (find_views(l, call, value)) OM_TRY(read_untransposed(l, id, value));
  }
  return OM_OK;
}

/* ---- Behind an attention ---- */

/* The step in front of the Transpose writes what it wrote, in its place. */
static om_status take_place(leaving *l, om_node_id id, om_node_id before) {
  om_plan *plan = l->plan;
  const om_op_call transpose = plan->calls[id];
  const om_op_call call = plan->calls[before];
  OM_TRY(om_plan_copy_call(l->ctx, plan, &call, &plan->calls[id]));
  om_node *node = (om_node *)(uintptr_t)plan->calls[id].node; /* the plan's */
  node->name = transpose.node->name;
  node->outputs = transpose.node->outputs;
  plan->calls[id].outputs = transpose.outputs;
  l->reads[call.node->outputs[0]] = 0;
  plan->fates[before] = OM_FATE_DEAD;
  return OM_OK;
}

static om_status leave_behind(leaving *l, om_node_id id) {
  om_plan *plan = l->plan;
  const char *const *refusals = plan->source.refusals;
  const chain *c = &l->steps;
  const row_order *order = &l->order;
  if (!order_of(&plan->calls[id], &l->order)) return OM_OK;
  const om_value_id turned = plan->calls[id].node->inputs[0];
  if (l->reads[turned] != 1) return OM_OK;
  follow(l, turned, order->rows, &l->steps);
  const om_node_id top =
      c->count > 0 && l->reads[c->top] == 1 ? maker_of(plan, c->top) : OM_NO_NODE;
  const om_op_views *views = top == OM_NO_NODE ? NULL : plan->calls[top].node->op->views;
  if (!views || !begins_with(&plan->tensors[c->top], order->rank, order->from)) return OM_OK;
  if (refusals && (refusals[id] || refusals[c->ids[0]])) return OM_OK;
  OM_TRY(own(l->ctx, plan, top));
  om_tensor *y = &plan->tensors[c->top];
  views->turn_result((void *)(uintptr_t)plan->calls[top].params, y->rank, order->rank, order->axes);
  memcpy(y->dims, order->to, order->rank * sizeof *y->dims);
  reshape(l, 1, order->from, order->to);
  return take_place(l, id, c->ids[0]);
}

om_status om_plan_leave_rows(om_ctx *ctx, om_plan *plan) {
  om_status st = OM_OK;
  const om_graph *graph = plan->source.graph;
  leaving *l = NULL; /* scratch */
  OM_GO_NEW(l, 1);
  *l = (leaving){.ctx = ctx, .plan = plan};
  OM_GO_NEW(l->reads, graph->value_count + 1);
  count_reads(l);
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    if (plan->fates[id] != OM_FATE_STEP || !is_read(l, plan->calls[id].node)) continue;
    if (plan->calls[id].node->op->views) OM_GO(leave_in_front(l, id));
    OM_GO(leave_behind(l, id));
  }
done:
  if (l) om_delete(ctx, l->reads);
  om_delete(ctx, l);
  return st;
}
