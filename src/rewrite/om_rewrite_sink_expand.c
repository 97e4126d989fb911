/* The Expand in front of what exporters make a mask of goes behind it:
 *
 *     m -> Expand(list) -> Cast -> Sub(1, .) -> Where(Cast(.), low, .) -> Attention
 *     m -> Cast -> Sub(1, .) -> Where(Cast(.), low, .) -> Expand(list) -> Attention
 *
 * So the mask is made of few elements; and attention reads through an Expand (om_plan_views.c),
 * which is no step then. Each element is computed of the same elements: the bits stay, for both
 * modes.
 *
 * Nodes sink that see one element of each operand at a time and read nothing but constants of one
 * element and values expanded to the same list; and only where all that comes of them ends in
 * attentions' masks: elsewhere an Expand may part what would be one chain.
 */
#include <string.h>

#include "rewrite/om_rewrite_facts.h"

typedef struct sinking {
  om_rewriter *rw;
  om_value_id *lists; /* by value: what it is expanded to; OM_NO_VALUE: it is not */
  bool *sinks;        /* by node: it is to be computed before the Expand */
  om_node_id count;   /* of nodes that were there */
} sinking;

static bool sees_elements(const om_node *node) {
  static const char *const types[] = {
      "Add", "And", "Cast", "Div", "Equal", "Mul", "Neg", "Not", "Or", "Sub", "Where"};
  if (!node->type || node->domain[0] != '\0' || node->opset < 9) return false;
  for (size_t i = 0; i < OM_COUNT_OF(types); ++i) {
    if (strcmp(node->type, types[i]) == 0) return true;
  }
  return false;
}

static bool is_single(const om_rewriter *rw, om_value_id value) {
  const om_tensor *constant = om_rewriter_constant(rw, value);
  return constant && om_tensor_elems(constant) == 1 && constant->rank <= 1;
}

/* The list that all operands of more than one element are expanded to; OM_NO_VALUE: there is none.
 */
static om_value_id common_list(const sinking *s, const om_node *node) {
  om_value_id list = OM_NO_VALUE;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const om_value_id value = node->inputs[i];
    if (value == OM_NO_VALUE) return OM_NO_VALUE;
    if (is_single(s->rw, value)) continue;
    if (s->lists[value] == OM_NO_VALUE) return OM_NO_VALUE;
    if (list != OM_NO_VALUE && s->lists[value] != list) return OM_NO_VALUE;
    list = s->lists[value];
  }
  return list;
}

/* What sinks as far as its operands go; nodes stand in order. */
static void mark(const sinking *s) {
  const om_graph *graph = s->rw->graph;
  for (om_node_id id = 0; id < s->count; ++id) {
    const om_node *node = &graph->nodes[id];
    if (!node->type || node->output_count != 1 || node->outputs[0] == OM_NO_VALUE) continue;
    const om_value_id result = node->outputs[0];
    s->sinks[id] = false;
    s->lists[result] = OM_NO_VALUE;
    if (node->domain[0] == '\0' && strcmp(node->type, "Expand") == 0) {
      s->lists[result] = node->inputs[1];
    } else if (sees_elements(node) && !graph->values[result].is_output) {
      s->lists[result] = common_list(s, node);
      s->sinks[id] = s->lists[result] != OM_NO_VALUE;
    }
  }
}

static bool is_mask_of(const om_node *node, uint32_t input) {
  enum { MASK = 3 };
  return input == MASK && strcmp(node->domain, "onemodel") == 0 &&
         strcmp(node->type, "Attention") == 0;
}

/* Takes back what has a reader that neither sinks nor is an attention, and what reads that. */
static bool take_back(const sinking *s) {
  const om_graph *graph = s->rw->graph;
  bool did_change = false;
  for (om_node_id id = s->count; id-- > 0;) {
    const om_node *node = &graph->nodes[id];
    if (!node->type || s->sinks[id]) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      const om_value_id value = node->inputs[i];
      if (value == OM_NO_VALUE || is_mask_of(node, i)) continue;
      const om_node_id maker = graph->values[value].producer;
      if (maker == OM_NO_NODE || !s->sinks[maker]) continue;
      s->sinks[maker] = false;
      s->lists[value] = OM_NO_VALUE;
      did_change = true;
    }
  }
  for (om_node_id id = 0; id < s->count; ++id) {
    const om_node *node = &graph->nodes[id];
    if (!s->sinks[id] || common_list(s, node) != OM_NO_VALUE) continue;
    s->sinks[id] = false;
    s->lists[node->outputs[0]] = OM_NO_VALUE;
    did_change = true;
  }
  return did_change;
}

/* Lets a node that sinks read what its operands were before they were expanded. */
static om_status sink(om_ctx *ctx, const sinking *s, om_node_id id) {
  om_rewriter *rw = s->rw;
  const om_node *node = &rw->graph->nodes[id];
  om_value_id inputs[3];
  const uint32_t count = node->input_count;
  if (count > OM_COUNT_OF(inputs)) return OM_OK; /* of those types none has more */
  for (uint32_t i = 0; i < count; ++i) {
    const om_node *expand = om_rewriter_made_by(rw, node->inputs[i], "Expand");
    inputs[i] = expand && !is_single(rw, node->inputs[i]) ? expand->inputs[0] : node->inputs[i];
  }
  rw->graph->values[node->outputs[0]].has_rank = false;
  return om_rewriter_set_inputs(ctx, rw, id, inputs, count);
}

/* An Expand behind the mask, one for all attentions that read it. */
static om_status expand(om_ctx *ctx, const sinking *s, om_node_id id) {
  enum { MASK = 3, MOST_INPUTS = 7 };
  om_rewriter *rw = s->rw;
  const om_node *node = &rw->graph->nodes[id];
  om_value_id inputs[MOST_INPUTS];
  const uint32_t count = node->input_count;
  const om_value_id mask = count > MASK ? node->inputs[MASK] : OM_NO_VALUE;
  if (mask == OM_NO_VALUE || count > MOST_INPUTS || !is_mask_of(node, MASK)) return OM_OK;
  const om_node_id maker = rw->graph->values[mask].producer;
  if (maker == OM_NO_NODE || !s->sinks[maker]) return OM_OK;
  const om_value_id both[] = {mask, s->lists[mask]};
  const om_rewritten_node what = {.type = "Expand", .opset = 13, .inputs = both, .input_count = 2};
  const char *name =
      om_pool_format(ctx, &rw->graph->pool, "%s.expanded", rw->graph->nodes[maker].name);
  if (!name) return OM_E_OUT_OF_MEMORY;
  memcpy(inputs, node->inputs, count * sizeof *inputs);
  const om_dtype dtype = rw->graph->values[mask].dtype;
  OM_TRY(om_rewriter_share_node(ctx, rw, s->count, name, dtype, &what, &inputs[MASK]));
  return om_rewriter_set_inputs(ctx, rw, id, inputs, count);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  enum { MOST_ROUNDS = 16 }; /* of a mask's makers, one after the other */
  om_status st = OM_OK;
  sinking s = {.rw = rw, .count = (om_node_id)rw->graph->node_count};
  uint32_t rounds = 0;
  OM_GO_NEW(s.lists, rw->graph->value_count);
  OM_GO_NEW(s.sinks, s.count);
  for (om_value_id v = 0; v < rw->graph->value_count; ++v) s.lists[v] = OM_NO_VALUE;
  mark(&s);
  while (take_back(&s)) {
    if (++rounds == MOST_ROUNDS) goto done;
  }
  for (om_node_id id = 0; id < s.count; ++id) {
    if (s.sinks[id]) OM_GO(sink(ctx, &s, id));
  }
  for (om_node_id id = 0; id < s.count; ++id) {
    if (rw->graph->nodes[id].type) OM_GO(expand(ctx, &s, id));
  }
done:
  om_delete(ctx, s.lists);
  om_delete(ctx, s.sinks);
  return st;
}

const om_rewrite om_rewrite_sink_expand = {
    .name = "sink_expand",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
