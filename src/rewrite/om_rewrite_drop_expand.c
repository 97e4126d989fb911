/* Where(Expand(mask, Shape(x)), c, x) becomes Where(mask, c, x), and so on: an operator that
 * broadcasts needs no operand that was expanded to the shape of another one. */
#include <string.h>

#include "rewrite/om_rewrite.h"

static bool broadcasts(const om_node *node) {
  static const char *const types[] = {"Where", "Add", "Sub", "Mul", "Div", "And", "Or"};
  if (!node->type || node->domain[0] != '\0' || node->opset < 7) return false;
  for (size_t i = 0; i < OM_COUNT_OF(types); ++i) {
    if (strcmp(node->type, types[i]) == 0) return true;
  }
  return false;
}

/* What `value` was before it was expanded to the shape of another input of the node; else itself.
 */
static om_value_id unexpanded(const om_rewriter *rw, const om_node *node, om_value_id value) {
  const om_node *expand = om_rewriter_made_by(rw, value, "Expand");
  const om_node *shape = expand ? om_rewriter_made_by(rw, expand->inputs[1], "Shape") : NULL;
  if (!shape || shape->attr_count > 0) return value;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == shape->inputs[0] && node->inputs[i] != value) return expand->inputs[0];
  }
  return value;
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  for (om_node_id id = 0; id < rw->graph->node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    om_value_id inputs[3];
    bool did_change = false;
    if (!broadcasts(node) || node->input_count > OM_COUNT_OF(inputs)) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      inputs[i] = unexpanded(rw, node, node->inputs[i]);
      did_change = did_change || inputs[i] != node->inputs[i];
    }
    if (did_change) OM_TRY(om_rewriter_set_inputs(ctx, rw, id, inputs, node->input_count));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_drop_expand = {
    .name = "drop_expand",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
