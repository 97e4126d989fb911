/* Trees of ai.onnx.ml (docs/exact.md, "Machine learning"): TreeEnsemble and the two operators whose
 * place it takes, TreeEnsembleRegressor and TreeEnsembleClassifier. A row of features goes down
 * each tree to a leaf, whose votes join the sums (means, least, largest) of their targets. */
#include <inttypes.h>

#include "ops/op_forest.h"

typedef struct om_tree_params {
  om_forest forest;
  om_ml_transform transform;
  om_forest_numbers bases; /* added at the end; of the older operators */
  om_ml_labels labels;     /* of the classifier */
  bool has_second_score;   /* two labels, but one score */
  bool is_signed;          /* and some of the weights are negative */
} om_tree_params;

/* ---- TreeEnsemble's attributes ---- */

typedef struct om_tree_attrs {
  om_rule_list roots, features, true_ids, false_ids, true_leaves, false_leaves;
  om_rule_list missing; /* may be absent */
  om_rule_list leaf_targets;
  const om_tensor *modes, *splits, *leaf_weights;
  const om_tensor *members; /* may be NULL */
} om_tree_attrs;

static om_status read_tensor(
    om_ctx *ctx, const om_node *node, const char *name, bool is_needed, const om_tensor **out) {
  const om_attr *attr = om_node_attr(node, name);
  *out = NULL;
  if (!attr && !is_needed) return OM_OK;
  if (!attr || attr->kind != OM_ATTR_TENSOR) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute %s is no tensor.", name);
  }
  *out = attr->tensor;
  return OM_OK;
}

static om_status read_attrs(om_ctx *ctx, const om_node *node, om_tree_attrs *a) {
  OM_TRY(om_rule_list_attr(ctx, node, "tree_roots", &a->roots));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_featureids", &a->features));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_truenodeids", &a->true_ids));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_falsenodeids", &a->false_ids));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_trueleafs", &a->true_leaves));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_falseleafs", &a->false_leaves));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_missing_value_tracks_true", &a->missing));
  OM_TRY(om_rule_list_attr(ctx, node, "leaf_targetids", &a->leaf_targets));
  OM_TRY(read_tensor(ctx, node, "nodes_modes", true, &a->modes));
  OM_TRY(read_tensor(ctx, node, "nodes_splits", true, &a->splits));
  OM_TRY(read_tensor(ctx, node, "leaf_weights", true, &a->leaf_weights));
  return read_tensor(ctx, node, "membership_values", false, &a->members);
}

static bool all_below(const om_rule_list *list, int64_t limit) {
  for (size_t i = 0; i < list->count; ++i) {
    if (list->values[i] < 0 || list->values[i] >= limit) return false;
  }
  return true;
}

static bool branches_fit(const om_rule_list *ids,
                         const om_rule_list *leaves,
                         size_t nodes,
                         size_t leaf_count) {
  if (ids->count != nodes || leaves->count != nodes) return false;
  for (size_t i = 0; i < nodes; ++i) {
    const size_t limit = leaves->values[i] ? leaf_count : nodes;
    if (ids->values[i] < 0 || (uint64_t)ids->values[i] >= limit) return false;
  }
  return true;
}

static om_status check_attrs(om_ctx *ctx, const om_tree_attrs *a, int64_t targets) {
  const size_t nodes = a->features.count;
  const size_t leaves = a->leaf_targets.count;
  const bool fits = nodes < OM_FOREST_LEAF && leaves < OM_FOREST_LEAF &&
                    branches_fit(&a->true_ids, &a->true_leaves, nodes, leaves) &&
                    branches_fit(&a->false_ids, &a->false_leaves, nodes, leaves) &&
                    all_below(&a->roots, (int64_t)nodes) && all_below(&a->features, INT32_MAX) &&
                    all_below(&a->leaf_targets, targets) && a->modes->dtype == OM_DTYPE_U8 &&
                    om_tensor_elems(a->modes) == nodes && om_tensor_elems(a->splits) == nodes &&
                    om_tensor_elems(a->leaf_weights) == leaves &&
                    OM_DT(a->splits->dtype) & OM_DT_FLOAT &&
                    OM_DT(a->leaf_weights->dtype) & OM_DT_FLOAT &&
                    (!a->members || OM_DT(a->members->dtype) & OM_DT_FLOAT) &&
                    (a->missing.count == 0 || a->missing.count == nodes);
  if (fits) return OM_OK;
  return OM_FAIL(
      ctx,
      OM_E_INVALID_MODEL,
      "The attributes of %zu nodes and %zu leaves do not go together, or name nodes, leaves "
      "or targets that there are not.",
      nodes,
      leaves);
}

/* The place of the set behind the one that begins at `first`. */
static size_t next_set(const om_tensor *members, size_t first) {
  const size_t count = members ? om_tensor_elems(members) : 0;
  for (size_t i = first; i < count; ++i) {
    const double member = om_real_load(members, i);
    if (member != member) return i + 1;
  }
  return count;
}

static void fill_nodes(const om_tree_attrs *a, om_forest *f) {
  size_t set = 0;
  for (size_t i = 0; i < f->node_count; ++i) {
    om_forest_node *node = &f->nodes[i];
    node->next[0] = (uint32_t)a->false_ids.values[i];
    node->next[1] = (uint32_t)a->true_ids.values[i];
    if (a->false_leaves.values[i]) node->next[0] += OM_FOREST_LEAF;
    if (a->true_leaves.values[i]) node->next[1] += OM_FOREST_LEAF;
    node->feature = (uint64_t)a->features.values[i];
    node->split = om_real_load(a->splits, i);
    node->mode = ((const uint8_t *)a->modes->data)[i];
    node->missing_is_true = a->missing.count > 0 && a->missing.values[i] != 0;
    if (node->feature >= f->feature_count) f->feature_count = node->feature + 1;
    if (node->mode != OM_FOREST_MEMBER) continue;
    node->first_member = (uint32_t)set; /* nodes that ask for members have sets in their order */
    set = next_set(a->members, set);
  }
}

static om_status make_forest(om_ctx *ctx, om_pool *pool, const om_tree_attrs *a, om_forest *f) {
  f->node_count = a->features.count;
  f->leaf_count = a->leaf_targets.count;
  f->root_count = a->roots.count;
  f->members = a->members;
  f->nodes = OM_POOL_NEW(ctx, pool, om_forest_node, f->node_count);
  f->roots = OM_POOL_NEW(ctx, pool, uint32_t, f->root_count);
  f->votes = OM_POOL_NEW(ctx, pool, om_forest_vote, f->leaf_count);
  f->first_vote = OM_POOL_NEW(ctx, pool, uint32_t, f->leaf_count + 1);
  if (!f->nodes || !f->roots || !f->votes || !f->first_vote) return OM_E_OUT_OF_MEMORY;
  fill_nodes(a, f);
  for (size_t i = 0; i < f->root_count; ++i) f->roots[i] = (uint32_t)a->roots.values[i];
  for (size_t i = 0; i < f->leaf_count; ++i) {
    f->votes[i] = (om_forest_vote){.weight = om_real_load(a->leaf_weights, i),
                                   .target = (uint32_t)a->leaf_targets.values[i]};
    f->first_vote[i + 1] = (uint32_t)i + 1;
  }
  return OM_OK;
}

static om_status bad_number(om_ctx *ctx, const char *name, int64_t value) {
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute %s is %" PRId64 ".", name, value);
}

static om_status prepare_ensemble(om_ctx *ctx, om_pool *pool, const om_node *node, void *params) {
  om_tree_params *p = params;
  om_tree_attrs attrs;
  int64_t aggregate = 0, transform = 0, targets = 0;
  OM_TRY(om_node_attr_int(ctx, node, "aggregate_function", OM_FOREST_SUM, &aggregate));
  OM_TRY(om_node_attr_int(ctx, node, "post_transform", OM_ML_NONE, &transform));
  OM_TRY(om_node_attr_int(ctx, node, "n_targets", 1, &targets));
  if (aggregate < 0 || aggregate > OM_FOREST_MAX) {
    return bad_number(ctx, "aggregate_function", aggregate);
  }
  if (transform < 0 || transform > OM_ML_PROBIT) {
    return bad_number(ctx, "post_transform", transform);
  }
  if (targets < 1 || targets > INT32_MAX) return bad_number(ctx, "n_targets", targets);
  p->transform = (om_ml_transform)transform; /* numbered alike */
  p->forest.aggregate = (uint32_t)aggregate;
  p->forest.target_count = (uint32_t)targets;
  OM_TRY(read_attrs(ctx, node, &attrs));
  OM_TRY(check_attrs(ctx, &attrs, targets));
  return make_forest(ctx, pool, &attrs, &p->forest);
}

/* ---- The older operators' attributes ---- */

static om_status prepare_regressor(om_ctx *ctx, om_pool *pool, const om_node *node, void *params) {
  static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  om_tree_params *p = params;
  int64_t targets = 0;
  uint32_t aggregate = OM_FOREST_SUM;
  OM_TRY(om_node_attr_int(ctx, node, "n_targets", 1, &targets));
  if (targets < 1 || targets > INT32_MAX) return bad_number(ctx, "n_targets", targets);
  OM_TRY(om_ml_choice_attr(
      ctx, node, "aggregate_function", names, OM_COUNT_OF(names), OM_FOREST_SUM, &aggregate));
  OM_TRY(om_ml_transform_attr(ctx, node, &p->transform));
  OM_TRY(om_forest_numbers_attr(ctx, node, "base_values", &p->bases));
  OM_TRY(om_forest_of_named_nodes(ctx, pool, node, "target", (size_t)targets, &p->forest));
  p->forest.aggregate = aggregate;
  if (p->bases.count == 0 || p->bases.count == (size_t)targets) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "There are %zu base values for %" PRId64 " targets.",
                 p->bases.count,
                 targets);
}

/* Two labels, but all votes are for the first: they are one score, which speaks for the second. */
static void find_second_score(om_tree_params *p, const om_rule_list *class_ids) {
  om_forest *f = &p->forest;
  for (size_t i = 0; i < class_ids->count; ++i) {
    if (class_ids->values[i] != 0) return;
  }
  if (f->target_count != 2 || class_ids->count == 0) return;
  p->has_second_score = true;
  f->target_count = 1;
  for (size_t i = 0; i < class_ids->count; ++i) {
    if (f->votes[i].weight < 0.0) p->is_signed = true;
  }
}

static om_status prepare_classifier(om_ctx *ctx, om_pool *pool, const om_node *node, void *params) {
  om_tree_params *p = params;
  om_rule_list class_ids;
  OM_TRY(om_ml_labels_attr(ctx, node, "classlabels_int64s", &p->labels));
  OM_TRY(om_ml_transform_attr(ctx, node, &p->transform));
  OM_TRY(om_forest_numbers_attr(ctx, node, "base_values", &p->bases));
  OM_TRY(om_rule_list_attr(ctx, node, "class_ids", &class_ids));
  const size_t labels = om_ml_label_count(&p->labels);
  OM_TRY(om_forest_of_named_nodes(ctx, pool, node, "class", labels, &p->forest));
  find_second_score(p, &class_ids);
  if (p->bases.count == 0 || p->bases.count == labels || p->bases.count == p->forest.target_count) {
    return OM_OK;
  }
  return OM_FAIL(
      ctx, OM_E_INVALID_MODEL, "There are %zu base values for %zu labels.", p->bases.count, labels);
}

/* ---- Shapes ---- */

static om_status infer_scores(om_ctx *ctx, const om_op_call *call) {
  const om_tree_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  size_t rows;
  OM_TRY(om_forest_check_rows(ctx, &p->forest, x, &rows));
  const int64_t dims[2] = {(int64_t)rows, p->forest.target_count};
  return om_rule_set(ctx, call, 0, x->dtype, 2, dims);
}

static om_status infer_regressor(om_ctx *ctx, const om_op_call *call) {
  OM_TRY(infer_scores(ctx, call));
  if (call->outputs[0]) call->outputs[0]->dtype = OM_DTYPE_F32;
  return OM_OK;
}

static om_status infer_classifier(om_ctx *ctx, const om_op_call *call) {
  const om_tree_params *p = call->params;
  size_t rows;
  OM_TRY(om_forest_check_rows(ctx, &p->forest, call->inputs[0], &rows));
  const int64_t dims[2] = {(int64_t)rows, (int64_t)om_ml_label_count(&p->labels)};
  OM_TRY(om_rule_set(ctx, call, 0, om_ml_label_dtype(&p->labels), 1, dims));
  return om_rule_set(ctx, call, 1, OM_DTYPE_F32, 2, dims);
}

static size_t scratch_bytes(const om_op_call *call) {
  return om_forest_scratch(&((const om_tree_params *)call->params)->forest);
}

/* ---- Runs ---- */

/* The row's sums and base values, before the transform. */
static om_status score_row(om_ctx *ctx, const om_op_call *call, size_t row, double *sums) {
  const om_tree_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const size_t count = p->forest.target_count;
  OM_TRY(om_forest_score(ctx, &p->forest, x, row, sums, (bool *)(sums + count + 1)));
  for (size_t i = 0; i < count && p->bases.count > 0; ++i) {
    const om_real real = om_ml_real(x);
    const double base = om_real_round(real, om_forest_number(&p->bases, i));
    sums[i] = om_real_round(real, sums[i] + base);
  }
  return OM_OK;
}

static void store_row(const om_tensor *y, size_t row, const double *scores, size_t count) {
  for (size_t i = 0; i < count; ++i) om_real_store(y, row * count + i, scores[i]);
}

static om_status run_scores(om_ctx *ctx, const om_op_call *call) {
  const om_tree_params *p = call->params;
  const size_t count = p->forest.target_count;
  double *sums = call->scratch;
  for (size_t row = 0; row < (size_t)call->outputs[0]->dims[0]; ++row) {
    OM_TRY(om_check_cancelled(ctx));
    OM_TRY(score_row(ctx, call, row, sums));
    om_ml_transform_scores(p->transform, om_ml_real(call->inputs[0]), sums, count);
    store_row(call->outputs[0], row, sums, count);
  }
  return OM_OK;
}

/* One score speaks for the second label: where it is above 0, or, as a probability, above a half.
 */
static size_t find_label(const om_tree_params *p, const double *scores) {
  size_t best = 0;
  if (p->has_second_score) {
    const bool is_probability = !p->is_signed && p->transform == OM_ML_NONE;
    return scores[0] > (is_probability ? 0.5 : 0.0);
  }
  for (size_t i = 1; i < p->forest.target_count; ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

static om_status run_classifier(om_ctx *ctx, const om_op_call *call) {
  const om_tree_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const size_t labels = om_ml_label_count(&p->labels);
  om_tensor *z = om_rule_output(call, 1);
  double *scores = call->scratch;
  size_t rows;
  OM_TRY(om_forest_check_rows(ctx, &p->forest, x, &rows));
  for (size_t row = 0; row < rows; ++row) {
    OM_TRY(om_check_cancelled(ctx));
    OM_TRY(score_row(ctx, call, row, scores));
    if (call->outputs[0]) {
      om_ml_label_store(&p->labels, call->outputs[0], row, find_label(p, scores));
    }
    if (p->has_second_score) {
      om_ml_second_score(p->transform, om_ml_real(x), p->is_signed, scores);
    }
    om_ml_transform_scores(p->transform, om_ml_real(x), scores, labels);
    if (z) store_row(z, row, scores, labels);
  }
  return OM_OK;
}

const om_op om_ops_ml_tree[] = {
    {.domain = OM_ML_DOMAIN,
     .type = "TreeEnsemble",
     .first_opset = 5,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F64) | OM_DT(OM_DTYPE_F16),
     .params_bytes = sizeof(om_tree_params),
     .prepare = prepare_ensemble,
     .infer = infer_scores,
     .scratch_bytes = scratch_bytes,
     .run = run_scores},
    {.domain = OM_ML_DOMAIN,
     .type = "TreeEnsembleRegressor",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ML,
     .params_bytes = sizeof(om_tree_params),
     .prepare = prepare_regressor,
     .infer = infer_regressor,
     .scratch_bytes = scratch_bytes,
     .run = run_scores},
    {.domain = OM_ML_DOMAIN,
     .type = "TreeEnsembleClassifier",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 2),
     .dtypes = OM_DT_ML,
     .params_bytes = sizeof(om_tree_params),
     .prepare = prepare_classifier,
     .infer = infer_classifier,
     .scratch_bytes = scratch_bytes,
     .run = run_classifier},
    {.type = NULL},
};
