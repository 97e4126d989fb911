/* Sum, Mean, Max and Min of several tensors as what they are defined by (docs/exact.md): a chain of
 * Add, Max or Min of two from left to right, for Mean a division by the number of tensors behind
 * it. One tensor alone is a copy. The bits stay, so this is for both modes.
 *
 * Devices and other rewrites know operators of two tensors: a Sum behind a convolution is a
 * residual. The CPU keeps more than two together, in the one tensor that the result is.
 */
#include "rewrite/om_compose.h"

static const struct {
  const char *type;
  const char *of_two;
  bool divides;
} variadics[] = {
    {"Sum", "Add", false},
    {"Mean", "Add", true},
    {"Max", "Max", false},
    {"Min", "Min", false},
};

/* True if it is not an operator of two already. */
static bool is_wanted(const om_rewriter *rw, const om_node *node, const char *of_two) {
  if (node->input_count == 2) return strcmp(node->type, of_two) != 0;
  return rw->has_device;
}

static om_status replace(
    om_ctx *ctx, om_rewriter *rw, om_node_id id, size_t which, const om_value_fact *facts) {
  om_composer c = {.ctx = ctx,
                   .rw = rw,
                   .facts = facts,
                   .fact_count = rw->graph->value_count,
                   .node = rw->graph->nodes[id]};
  const uint32_t count = c.node.input_count;
  om_value_id result = c.node.inputs[0];
  for (uint32_t i = 0; i < count; ++i) {
    if (c.node.inputs[i] != OM_NO_VALUE) continue;
    om_compose_fail(&c, "Input %u is absent, but it is not optional.", (unsigned)i);
    om_error_prefix(ctx, "Node '%s' (%s)", c.node.name, c.node.type);
  }
  for (uint32_t i = 1; i < count; ++i) {
    result = om_compose_2(&c, variadics[which].of_two, result, c.node.inputs[i]);
  }
  if (variadics[which].divides && count > 1) {
    const om_value_id divisor = om_compose_number(&c, (float)count, c.node.inputs[0]);
    result = om_compose_2(&c, "Div", result, divisor);
  }
  om_compose_result(&c, 0, result);
  OM_TRY(c.status);
  return om_rewriter_drop(ctx, rw, id, "composed of %u others", (unsigned)c.node_count);
}

/* The entry of `variadics` to replace the node by, or their number. */
static size_t find(const om_rewriter *rw, const om_node *node) {
  size_t i = 0;
  if (!node->type || node->domain[0] != '\0') return OM_COUNT_OF(variadics);
  while (i < OM_COUNT_OF(variadics) && strcmp(node->type, variadics[i].type) != 0) ++i;
  if (i == OM_COUNT_OF(variadics)) return i;
  return is_wanted(rw, node, variadics[i].of_two) ? i : OM_COUNT_OF(variadics);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch */
  const size_t node_count = rw->graph->node_count;
  for (om_node_id id = 0; id < node_count; ++id) {
    const size_t which = find(rw, &rw->graph->nodes[id]);
    if (which == OM_COUNT_OF(variadics)) continue;
    om_delete(ctx, facts); /* those of what was added are asked for, too */
    facts = NULL;
    OM_GO(om_value_facts_create(ctx, rw, &facts));
    OM_GO(replace(ctx, rw, id, which, facts));
  }
done:
  om_delete(ctx, facts);
  return st;
}

const om_rewrite om_rewrite_variadic = {
    .name = "variadic_as_chain",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
