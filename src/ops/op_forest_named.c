/* The trees of the older operators, whose nodes have names of two numbers: see op_forest.h.
 *
 * Nodes and votes come in any order. Names are sorted once and then looked up by bisection, so that
 * no choice of names makes that slow.
 */
#include <inttypes.h>
#include <stdio.h>

#include "ops/op_forest.h"

typedef struct named_trees { /* attributes of the node, each with node_count elements */
  size_t node_count, vote_count;
  om_rule_list trees, ids, features, true_ids, false_ids, missing;
  om_ml_strings modes;
  om_forest_numbers values;
  om_rule_list vote_trees, vote_ids, vote_targets; /* with vote_count elements */
  om_forest_numbers weights;
  uint32_t *order; /* nodes sorted by tree and id, as they stand where both are equal */
  uint32_t *place; /* of each node in the forest: a node, or OM_FOREST_LEAF + a leaf */
} named_trees;

om_status om_forest_numbers_attr(om_ctx *ctx,
                                 const om_node *node,
                                 const char *name,
                                 om_forest_numbers *out) {
  char wide[64];
  snprintf(wide, sizeof wide, "%s_as_tensor", name);
  const om_attr *attr = om_node_attr(node, wide);
  *out = (om_forest_numbers){.tensor = attr && attr->kind == OM_ATTR_TENSOR ? attr->tensor : NULL};
  OM_TRY(om_ml_floats_attr(ctx, node, name, &out->floats));
  if (out->tensor && om_tensor_elems(out->tensor) == 0) out->tensor = NULL;
  out->count = out->tensor ? om_tensor_elems(out->tensor) : out->floats.count;
  if (!out->tensor || OM_DT(out->tensor->dtype) & OM_DT_FLOAT) return OM_OK;
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute %s has no floats.", wide);
}

double om_forest_number(const om_forest_numbers *numbers, size_t index) {
  if (numbers->tensor) return om_real_load(numbers->tensor, index);
  return (double)numbers->floats.values[index];
}

static om_status read_lists(om_ctx *ctx, const om_node *node, const char *votes, named_trees *t) {
  char name[40];
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_treeids", &t->trees));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_nodeids", &t->ids));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_featureids", &t->features));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_truenodeids", &t->true_ids));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_falsenodeids", &t->false_ids));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_missing_value_tracks_true", &t->missing));
  OM_TRY(om_ml_strings_attr(ctx, node, "nodes_modes", &t->modes));
  OM_TRY(om_forest_numbers_attr(ctx, node, "nodes_values", &t->values));
  snprintf(name, sizeof name, "%s_treeids", votes);
  OM_TRY(om_rule_list_attr(ctx, node, name, &t->vote_trees));
  snprintf(name, sizeof name, "%s_nodeids", votes);
  OM_TRY(om_rule_list_attr(ctx, node, name, &t->vote_ids));
  snprintf(name, sizeof name, "%s_ids", votes);
  OM_TRY(om_rule_list_attr(ctx, node, name, &t->vote_targets));
  snprintf(name, sizeof name, "%s_weights", votes);
  return om_forest_numbers_attr(ctx, node, name, &t->weights);
}

static om_status check_counts(om_ctx *ctx, named_trees *t) {
  const size_t n = t->trees.count, v = t->vote_trees.count;
  t->node_count = n;
  t->vote_count = v;
  if (n < OM_FOREST_LEAF && v < UINT32_MAX && t->ids.count == n && t->features.count == n &&
      t->true_ids.count == n && t->false_ids.count == n && t->modes.count == n &&
      t->values.count == n && (t->missing.count == 0 || t->missing.count == n) &&
      t->vote_ids.count == v && t->vote_targets.count == v && t->weights.count == v) {
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The attributes of %zu nodes and %zu votes do not go together.",
                 n,
                 v);
}

/* ---- Names ---- */

static int compare(const named_trees *t, uint32_t index, int64_t tree, int64_t id) {
  if (t->trees.values[index] != tree) return t->trees.values[index] < tree ? -1 : 1;
  if (t->ids.values[index] != id) return t->ids.values[index] < id ? -1 : 1;
  return 0;
}

/* Merges sorted halves [begin, middle) and [middle, end) of `from`. */
static void merge(const named_trees *t,
                  const uint32_t *from,
                  uint32_t *to,
                  size_t begin,
                  size_t middle,
                  size_t end) {
  size_t a = begin, b = middle;
  for (size_t i = begin; i < end; ++i) {
    const bool takes_a =
        a < middle &&
        (b >= end || compare(t, from[a], t->trees.values[from[b]], t->ids.values[from[b]]) <= 0);
    to[i] = from[takes_a ? a++ : b++];
  }
}

static om_status sort_names(om_ctx *ctx, om_pool *pool, named_trees *t) {
  const size_t n = t->node_count;
  uint32_t *from = OM_POOL_NEW(ctx, pool, uint32_t, n);
  uint32_t *to = OM_POOL_NEW(ctx, pool, uint32_t, n);
  if (!from || !to) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < n; ++i) from[i] = (uint32_t)i;
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * width) {
      const size_t middle = begin + width < n ? begin + width : n;
      const size_t end = middle + width < n ? middle + width : n;
      merge(t, from, to, begin, middle, end);
    }
    uint32_t *sorted = to;
    to = from;
    from = sorted;
  }
  t->order = from;
  return OM_OK;
}

/* The first node of that name. */
static om_status find(
    om_ctx *ctx, const named_trees *t, int64_t tree, int64_t id, uint32_t *out_index) {
  size_t low = 0, high = t->node_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (compare(t, t->order[middle], tree, id) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low < t->node_count && compare(t, t->order[low], tree, id) == 0) {
    *out_index = t->order[low];
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "Tree %" PRId64 " has no node %" PRId64 ", but it is named.",
                 tree,
                 id);
}

/* ---- The forest ---- */

static bool is_leaf(const named_trees *t, size_t index) {
  return om_string_is(t->modes.values[index], "LEAF");
}

static om_status read_mode(om_ctx *ctx, om_string text, uint8_t *out_mode) {
  static const char *const names[] = {
      "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"};
  for (uint8_t i = 0; i < OM_COUNT_OF(names); ++i) {
    if (!om_string_is(text, names[i])) continue;
    *out_mode = i;
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "A node's mode is '%.*s', which is none.",
                 (int)(text.bytes < 60 ? text.bytes : 60),
                 text.data);
}

/* Numbers branches and leaves, and finds the roots: the first node of each tree. */
static om_status place_nodes(om_ctx *ctx, om_pool *pool, named_trees *t, om_forest *f) {
  const size_t n = t->node_count;
  f->nodes = OM_POOL_NEW(ctx, pool, om_forest_node, n);
  f->roots = OM_POOL_NEW(ctx, pool, uint32_t, n);
  t->place = OM_POOL_NEW(ctx, pool, uint32_t, n);
  if (!f->nodes || !f->roots || !t->place) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < n; ++i) {
    t->place[i] =
        is_leaf(t, i) ? OM_FOREST_LEAF + (uint32_t)f->leaf_count++ : (uint32_t)f->node_count++;
  }
  for (size_t k = 0; k < n;) {
    const int64_t tree = t->trees.values[t->order[k]];
    uint32_t first = UINT32_MAX;
    for (; k < n && t->trees.values[t->order[k]] == tree; ++k) {
      if (t->order[k] < first) first = t->order[k];
    }
    f->roots[f->root_count++] = t->place[first];
  }
  return OM_OK;
}

static om_status fill_node(om_ctx *ctx, const named_trees *t, size_t index, om_forest *f) {
  om_forest_node *node = &f->nodes[t->place[index]];
  const int64_t tree = t->trees.values[index], feature = t->features.values[index];
  uint32_t next = 0;
  if (feature < 0 || feature > INT32_MAX) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "A node looks at feature %" PRId64 ".", feature);
  }
  OM_TRY(read_mode(ctx, t->modes.values[index], &node->mode));
  OM_TRY(find(ctx, t, tree, t->false_ids.values[index], &next));
  node->next[0] = t->place[next];
  OM_TRY(find(ctx, t, tree, t->true_ids.values[index], &next));
  node->next[1] = t->place[next];
  node->feature = (uint64_t)feature;
  node->split = om_forest_number(&t->values, index);
  node->missing_is_true = t->missing.count > 0 && t->missing.values[index] != 0;
  if (node->feature >= f->feature_count) f->feature_count = node->feature + 1;
  return OM_OK;
}

/* Votes by leaf, those of one leaf in the attributes' order. */
static om_status place_votes(om_ctx *ctx, om_pool *pool, const named_trees *t, om_forest *f) {
  uint32_t *leaves = OM_POOL_NEW(ctx, pool, uint32_t, t->vote_count);
  f->votes = OM_POOL_NEW(ctx, pool, om_forest_vote, t->vote_count);
  f->first_vote = OM_POOL_NEW(ctx, pool, uint32_t, f->leaf_count + 2);
  if (!leaves || !f->votes || !f->first_vote) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < t->vote_count; ++i) {
    const int64_t target = t->vote_targets.values[i];
    uint32_t index = 0;
    OM_TRY(find(ctx, t, t->vote_trees.values[i], t->vote_ids.values[i], &index));
    if (target < 0 || target >= (int64_t)f->target_count || !is_leaf(t, index)) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "Vote %zu is for target %" PRId64 " of %" PRIu32 ", or at no leaf.",
                     i,
                     target,
                     f->target_count);
    }
    leaves[i] = t->place[index] - OM_FOREST_LEAF;
    ++f->first_vote[leaves[i] + 2];
  }
  /* first_vote[leaf + 1] is where the next vote of a leaf goes, and in the end where it ends. */
  for (size_t i = 1; i < f->leaf_count + 2; ++i) f->first_vote[i] += f->first_vote[i - 1];
  for (size_t i = 0; i < t->vote_count; ++i) {
    om_forest_vote *vote = &f->votes[f->first_vote[leaves[i] + 1]++];
    vote->target = (uint32_t)t->vote_targets.values[i];
    vote->weight = om_forest_number(&t->weights, i);
  }
  return OM_OK;
}

om_status om_forest_of_named_nodes(om_ctx *ctx,
                                   om_pool *pool,
                                   const om_node *node,
                                   const char *votes,
                                   size_t target_count,
                                   om_forest *out_forest) {
  named_trees t = {0};
  om_forest *f = out_forest;
  OM_TRY(read_lists(ctx, node, votes, &t));
  OM_TRY(check_counts(ctx, &t));
  f->target_count = (uint32_t)target_count;
  f->aggregate = OM_FOREST_SUM;
  OM_TRY(sort_names(ctx, pool, &t));
  OM_TRY(place_nodes(ctx, pool, &t, f));
  for (size_t i = 0; i < t.node_count; ++i) {
    if (!is_leaf(&t, i)) OM_TRY(fill_node(ctx, &t, i, f));
  }
  return place_votes(ctx, pool, &t, f);
}
