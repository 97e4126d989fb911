/* The table of all operators: the families' arrays, found by file name when the build is made
 * (cmake/families.cmake), searched here. */
#include "graph/om_op.h"

#define OM_FAMILY(name) extern const om_op om_ops_##name[];
#include "om_op_families.def"
#undef OM_FAMILY

#define OM_FAMILY(name) om_ops_##name,
static const om_op *const families[] = {
#include "om_op_families.def"
    NULL,
};
#undef OM_FAMILY

static bool holds_for(const om_op *op, int32_t opset) {
  return opset >= op->first_opset && (op->last_opset == 0 || opset <= op->last_opset);
}

const om_op *om_op_find(const char *domain,
                        const char *type,
                        int32_t opset,
                        const char **out_reason) {
  bool is_known = false;
  for (size_t f = 0; families[f]; ++f) {
    for (const om_op *op = families[f]; op->type; ++op) {
      if (strcmp(op->type, type) != 0 || strcmp(op->domain, domain) != 0) continue;
      if (holds_for(op, opset)) return op;
      is_known = true;
    }
  }
  if (out_reason) {
    *out_reason = is_known ? "this version of the operator is not implemented"
                           : "the operator is not implemented";
  }
  return NULL;
}

static om_status check_count(
    om_ctx *ctx, const char *what, uint32_t count, uint8_t min, uint8_t max) {
  if (count >= min && (count <= max || max == UINT8_MAX)) return OM_OK;
  if (min == max) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "There are %u %s, but there must be %u.", count, what, min);
  }
  if (max == UINT8_MAX) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "There are %u %s, but there must be at least %u.",
                   count,
                   what,
                   min);
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "There are %u %s, but there must be %u to %u.",
                 count,
                 what,
                 min,
                 max);
}

/* Optional operands at the end may be named "" instead of being left out. */
static uint32_t present_count(const om_value_id *ids, uint32_t count) {
  while (count > 0 && ids[count - 1] == OM_NO_VALUE) --count;
  return count;
}

om_status om_op_read_params(om_ctx *ctx, om_pool *pool, const om_node *node, void *params) {
  const om_op *op = node->op;
  if (op->resolve) OM_TRY(op->resolve(ctx, node, params));
  return op->prepare ? op->prepare(ctx, pool, node, params) : OM_OK;
}

static om_status resolve_node(om_ctx *ctx, om_graph *graph, om_node *node) {
  const om_op *op = om_op_find(node->domain, node->type, node->opset, NULL);
  node->op = op;
  node->params = NULL;
  if (!op) return OM_OK;
  uint32_t inputs = present_count(node->inputs, om_node_formal_count(node));
  uint32_t outputs = present_count(node->outputs, node->output_count);
  OM_TRY(check_count(ctx, "inputs", inputs, op->min_inputs, op->max_inputs));
  OM_TRY(check_count(ctx, "outputs", outputs, op->min_outputs, op->max_outputs));
  for (uint32_t i = 0; i < op->min_inputs; ++i) {
    if (node->inputs[i] != OM_NO_VALUE) continue;
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Input %u is absent, but it is not optional.", i);
  }
  for (uint32_t i = 0; i < op->min_outputs; ++i) {
    if (node->outputs[i] != OM_NO_VALUE) continue;
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Output %u is absent, but it is not optional.", i);
  }
  if (op->params_bytes == 0) return OM_OK;
  void *params = om_pool_new_bytes(ctx, &graph->pool, 1, op->params_bytes);
  if (!params) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_op_read_params(ctx, &graph->pool, node, params));
  node->params = params;
  return OM_OK;
}

om_status om_graph_resolve_ops(om_ctx *ctx, om_graph *graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    om_node *node = &graph->nodes[i];
    om_status st = resolve_node(ctx, graph, node);
    if (st == OM_OK) continue;
    om_error_prefix(ctx, "Node '%s' (%s)", node->name, node->type);
    return st;
  }
  return OM_OK;
}

/* Negative, 0 or positive: by domain, by type, by opset. */
static int compare_ops(const om_op *a, const om_op *b) {
  int by_domain = strcmp(a->domain, b->domain);
  if (by_domain != 0) return by_domain;
  int by_type = strcmp(a->type, b->type);
  return by_type != 0 ? by_type : a->first_opset - b->first_opset;
}

/* The entry that follows `previous` (NULL: the first). */
static const om_op *next_op(const om_op *previous) {
  const om_op *best = NULL;
  for (size_t f = 0; families[f]; ++f) {
    for (const om_op *op = families[f]; op->type; ++op) {
      if (previous && compare_ops(op, previous) <= 0) continue;
      if (!best || compare_ops(op, best) < 0) best = op;
    }
  }
  return best;
}

const om_operator_info *om_operator_get(size_t index) {
  const om_op *op = next_op(NULL);
  for (size_t i = 0; i < index && op; ++i) op = next_op(op);
  return op ? &op->info : NULL;
}
