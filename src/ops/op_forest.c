/* Running decision trees: see op_forest.h. */
#include "ops/op_forest.h"

#include <inttypes.h>

size_t om_forest_scratch(const om_forest *forest) {
  return ((size_t)forest->target_count + 1) * (sizeof(double) + sizeof(bool));
}

om_status om_forest_check_rows(om_ctx *ctx,
                               const om_forest *forest,
                               const om_tensor *x,
                               size_t *out_rows) {
  size_t features;
  OM_TRY(om_ml_rows(ctx, x, out_rows, &features));
  if (features >= forest->feature_count) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "A row has %zu features; rows with all features of the trees, %" PRIu64
                 ", are expected.",
                 features,
                 forest->feature_count);
}

static bool is_member(const om_tensor *members, size_t first, double value) {
  for (size_t i = first; members && i < om_tensor_elems(members); ++i) {
    const double member = om_real_load(members, i);
    if (member != member) return false;
    if (member == value) return true;
  }
  return false;
}

static bool holds(const om_forest *forest, const om_forest_node *node, double value) {
  if (value != value && node->missing_is_true) return true;
  switch (node->mode) {
    case OM_FOREST_LEQ:
      return value <= node->split;
    case OM_FOREST_LT:
      return value < node->split;
    case OM_FOREST_GTE:
      return value >= node->split;
    case OM_FOREST_GT:
      return value > node->split;
    case OM_FOREST_EQ:
      return value == node->split;
    case OM_FOREST_NEQ:
      return value != node->split;
    default:
      return is_member(forest->members, node->first_member, value);
  }
}

/* The leaf that a row reaches from a root; UINT32_MAX where the way goes in a circle. */
static uint32_t find_leaf(const om_forest *forest, uint32_t at, const om_tensor *x, size_t first) {
  for (size_t steps = 0; at < OM_FOREST_LEAF; ++steps) {
    if (steps == forest->node_count) return UINT32_MAX;
    const om_forest_node *node = &forest->nodes[at];
    at = node->next[holds(forest, node, om_ml_load(x, first + (size_t)node->feature))];
  }
  return at - OM_FOREST_LEAF;
}

static double joined(uint32_t aggregate, om_real real, double sum, double weight, bool is_first) {
  if (aggregate == OM_FOREST_MIN) return is_first || weight < sum ? weight : sum;
  if (aggregate == OM_FOREST_MAX) return is_first || weight > sum ? weight : sum;
  return om_real_round(real, sum + weight);
}

om_status om_forest_score(om_ctx *ctx,
                          const om_forest *forest,
                          const om_tensor *x,
                          size_t row,
                          double *sums,
                          bool *has_vote) {
  const om_real real = om_ml_real(x);
  const size_t first = row * (size_t)x->dims[x->rank - 1];
  for (size_t t = 0; t < forest->target_count; ++t) {
    sums[t] = 0.0;
    has_vote[t] = false;
  }
  for (size_t root = 0; root < forest->root_count; ++root) {
    const uint32_t leaf = find_leaf(forest, forest->roots[root], x, first);
    if (leaf == UINT32_MAX) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Tree %zu goes in a circle.", root);
    }
    for (uint32_t i = forest->first_vote[leaf]; i < forest->first_vote[leaf + 1]; ++i) {
      const uint32_t target = forest->votes[i].target;
      const double weight = om_real_round(real, forest->votes[i].weight);
      sums[target] = joined(forest->aggregate, real, sums[target], weight, !has_vote[target]);
      has_vote[target] = true;
    }
  }
  for (size_t t = 0; t < forest->target_count && forest->aggregate == OM_FOREST_AVERAGE; ++t) {
    sums[t] = om_real_round(real, sums[t] / (double)forest->root_count);
  }
  return OM_OK;
}
