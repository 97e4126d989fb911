/* Two masks of float32 become one: Softmax((s + a) + b), s a product of matrices that may be
 * scaled, becomes Softmax(s + (a + b)). The sum of the masks is one node for all layers that have
 * the same. It rounds elsewhere, so every executor does it, in both modes. float16 is left as it
 * is: the sum of a mask near its lowest number and another one would be -infinity.
 */
#include <string.h>

#include "rewrite/om_rewrite_facts.h"

static const om_node *maker(const om_rewriter *rw, om_value_id value, const char *type) {
  om_node_id id = om_rewriter_maker(rw, value, type);
  return id == OM_NO_NODE ? NULL : &rw->graph->nodes[id];
}

static bool is_read_once(const om_rewriter *rw, om_value_id value) {
  return rw->uses[value] == 1 && !rw->graph->values[value].is_output;
}

/* A MatMul, or one times or by something of one element. */
static bool is_product(const om_rewriter *rw, om_value_id value) {
  const om_node *mul = maker(rw, value, "Mul");
  const om_node *node = mul ? mul : maker(rw, value, "Div");
  if (!node) return maker(rw, value, "MatMul") != NULL;
  for (uint32_t i = 0; i < (mul ? 2u : 1u); ++i) {
    const om_tensor *by = om_rewriter_constant(rw, node->inputs[1 - i]);
    if (by && om_tensor_elems(by) == 1) return maker(rw, node->inputs[i], "MatMul") != NULL;
  }
  return false;
}

/* The Add that makes `value`, which is read once. */
static const om_node *sum_of(const om_rewriter *rw, om_value_id value) {
  const om_node *add = maker(rw, value, "Add");
  return add && add->opset >= 7 && is_read_once(rw, value) ? add : NULL;
}

/* Sets *out_values to s, a, b. */
static bool match(const om_rewriter *rw,
                  const om_value_fact *facts,
                  om_value_id value,
                  om_value_id out_values[3]) {
  const om_node *outer = sum_of(rw, value);
  for (uint32_t i = 0; outer && i < 2; ++i) {
    const om_node *inner = sum_of(rw, outer->inputs[i]);
    for (uint32_t k = 0; inner && k < 2; ++k) {
      out_values[0] = inner->inputs[k];
      out_values[1] = inner->inputs[1 - k];
      out_values[2] = outer->inputs[1 - i];
      if (facts[out_values[1]].dtype != OM_DTYPE_F32 && facts[out_values[2]].dtype != OM_DTYPE_F32)
        continue;
      if (is_read_once(rw, out_values[0]) && is_product(rw, out_values[0])) return true;
    }
  }
  return false;
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch */
  const om_node_id first_new = (om_node_id)rw->graph->node_count;
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  for (om_node_id id = 0; id < first_new; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    om_value_id values[3];
    if (!node->type || node->domain[0] != '\0' || strcmp(node->type, "Softmax") != 0) continue;
    if (!match(rw, facts, node->inputs[0], values)) continue;
    const om_node_id outer = rw->graph->values[node->inputs[0]].producer;
    const om_rewritten_node sum = {
        .type = "Add", .opset = 14, .inputs = &values[1], .input_count = 2};
    om_value_id inputs[2] = {values[0]};
    const char *name = om_pool_format(ctx, &rw->graph->pool, "%s.masks", node->name);
    OM_GO(name ? OM_OK : OM_E_OUT_OF_MEMORY);
    OM_GO(om_rewriter_share_node(ctx, rw, first_new, name, OM_DTYPE_F32, &sum, &inputs[1]));
    OM_GO(om_rewriter_set_inputs(ctx, rw, outer, inputs, 2));
  }
done:
  om_delete(ctx, facts);
  return st;
}

const om_rewrite om_rewrite_join_masks = {
    .name = "join_masks",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
