/* TreeEnsemble of ai.onnx.ml (docs/exact.md, "Machine learning"). A row of features goes down each
 * tree to a leaf, whose weight joins the sum (mean, least, largest) of its target.
 *
 * What the attributes say is checked when they are read: every index, and that no way down is
 * longer than there are nodes, which a run only has to count.
 */
#include <inttypes.h>

#include "base/om_thread.h"
#include "cpu/exact/om_real.h"
#include "ops/om_rule.h"

typedef enum om_tree_mode {
  OM_TREE_LEQ,
  OM_TREE_LT,
  OM_TREE_GTE,
  OM_TREE_GT,
  OM_TREE_EQ,
  OM_TREE_NEQ,
  OM_TREE_MEMBER,
} om_tree_mode;

enum { OM_TREE_AVERAGE, OM_TREE_SUM, OM_TREE_MIN, OM_TREE_MAX };
enum { OM_TREE_NONE, OM_TREE_SOFTMAX, OM_TREE_LOGISTIC, OM_TREE_SOFTMAX_ZERO, OM_TREE_PROBIT };

typedef struct om_tree_params {
  int64_t aggregate, transform, targets;
  om_rule_list roots, features, true_ids, false_ids, true_leaves, false_leaves;
  om_rule_list missing; /* may be absent */
  om_rule_list leaf_targets;
  const om_tensor *modes, *splits, *leaf_weights;
  const om_tensor *members; /* may be NULL */
} om_tree_params;

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

static om_status check(om_ctx *ctx, const om_tree_params *p) {
  const size_t nodes = p->features.count;
  const size_t leaves = p->leaf_targets.count;
  const bool fits =
      branches_fit(&p->true_ids, &p->true_leaves, nodes, leaves) &&
      branches_fit(&p->false_ids, &p->false_leaves, nodes, leaves) &&
      all_below(&p->roots, (int64_t)nodes) && all_below(&p->features, INT32_MAX) &&
      p->targets >= 1 && p->targets <= INT32_MAX && all_below(&p->leaf_targets, p->targets) &&
      p->modes->dtype == OM_DTYPE_U8 && om_tensor_elems(p->modes) == nodes &&
      om_tensor_elems(p->splits) == nodes && om_tensor_elems(p->leaf_weights) == leaves &&
      OM_DT(p->splits->dtype) & OM_DT_FLOAT && OM_DT(p->leaf_weights->dtype) & OM_DT_FLOAT &&
      (!p->members || OM_DT(p->members->dtype) & OM_DT_FLOAT) &&
      (p->missing.count == 0 || p->missing.count == nodes);
  if (fits) return OM_OK;
  return OM_FAIL(
      ctx,
      OM_E_INVALID_MODEL,
      "The attributes of %zu nodes and %zu leaves do not go together, or name nodes, leaves "
      "or targets that there are not.",
      nodes,
      leaves);
}

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_tree_params *p = params;
  OM_TRY(om_node_attr_int(ctx, node, "aggregate_function", OM_TREE_SUM, &p->aggregate));
  OM_TRY(om_node_attr_int(ctx, node, "post_transform", OM_TREE_NONE, &p->transform));
  OM_TRY(om_node_attr_int(ctx, node, "n_targets", 1, &p->targets));
  OM_TRY(om_rule_list_attr(ctx, node, "tree_roots", &p->roots));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_featureids", &p->features));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_truenodeids", &p->true_ids));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_falsenodeids", &p->false_ids));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_trueleafs", &p->true_leaves));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_falseleafs", &p->false_leaves));
  OM_TRY(om_rule_list_attr(ctx, node, "nodes_missing_value_tracks_true", &p->missing));
  OM_TRY(om_rule_list_attr(ctx, node, "leaf_targetids", &p->leaf_targets));
  OM_TRY(read_tensor(ctx, node, "nodes_modes", true, &p->modes));
  OM_TRY(read_tensor(ctx, node, "nodes_splits", true, &p->splits));
  OM_TRY(read_tensor(ctx, node, "leaf_weights", true, &p->leaf_weights));
  OM_TRY(read_tensor(ctx, node, "membership_values", false, &p->members));
  if (p->aggregate < 0 || p->aggregate > OM_TREE_MAX || p->transform < 0 ||
      p->transform >= OM_TREE_PROBIT) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "aggregate_function %" PRId64 " with post_transform %" PRId64
                   " is not implemented.",
                   p->aggregate,
                   p->transform);
  }
  return check(ctx, p);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_tree_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  if (x->rank != 2 || !all_below(&p->features, x->dims[1])) {
    char text[OM_SHAPE_TEXT];
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The input has shape %s; rows with all features of the trees are expected.",
                   om_shape_text(text, sizeof text, x->rank, x->dims));
  }
  const int64_t dims[2] = {x->dims[0], p->targets};
  return om_rule_set(ctx, call, 0, x->dtype, 2, dims);
}

/* ---- Running ---- */

/* Whether the value is in the set of the node; sets follow one another, each ended by NaN. */
static bool is_member(const om_tree_params *p, size_t node, double value) {
  size_t set = 0;
  if (!p->members) return false;
  for (size_t i = 0; i < node; ++i) {
    set += ((const uint8_t *)p->modes->data)[i] == OM_TREE_MEMBER;
  }
  for (size_t i = 0; i < om_tensor_elems(p->members); ++i) {
    const double member = om_real_load(p->members, i);
    if (member != member) {
      if (set == 0) return false;
      --set;
    } else if (set == 0 && member == value) {
      return true;
    }
  }
  return false;
}

static bool holds(const om_tree_params *p, size_t node, double value) {
  const uint8_t mode = ((const uint8_t *)p->modes->data)[node];
  const double split = om_real_load(p->splits, node);
  if (value != value && p->missing.count > 0 && p->missing.values[node]) return true;
  switch (mode) {
    case OM_TREE_LEQ:
      return value <= split;
    case OM_TREE_LT:
      return value < split;
    case OM_TREE_GTE:
      return value >= split;
    case OM_TREE_GT:
      return value > split;
    case OM_TREE_EQ:
      return value == split;
    case OM_TREE_NEQ:
      return value != split;
    default:
      return is_member(p, node, value);
  }
}

/* The leaf that a row reaches from a root; SIZE_MAX where the way goes in a circle. */
static size_t find_leaf(const om_op_call *call, size_t root, size_t row) {
  const om_tree_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  size_t node = root;
  for (size_t steps = 0; steps < p->features.count; ++steps) {
    const size_t at = row * (size_t)x->dims[1] + (size_t)p->features.values[node];
    const bool is_true = holds(p, node, om_real_load(x, at));
    const om_rule_list *ids = is_true ? &p->true_ids : &p->false_ids;
    const om_rule_list *leaves = is_true ? &p->true_leaves : &p->false_leaves;
    if (leaves->values[node]) return (size_t)ids->values[node];
    node = (size_t)ids->values[node];
  }
  return SIZE_MAX;
}

static double joined(
    const om_tree_params *p, om_real real, double sum, double weight, bool is_first) {
  if (p->aggregate == OM_TREE_MIN) return is_first || weight < sum ? weight : sum;
  if (p->aggregate == OM_TREE_MAX) return is_first || weight > sum ? weight : sum;
  return om_real_round(real, sum + weight);
}

/* Softmax of a row of scores; with SOFTMAX_ZERO those that are 0 stay so. */
static void softmax(const om_tree_params *p, om_real real, const om_tensor *y, size_t first) {
  const size_t count = (size_t)p->targets;
  const bool keeps_zero = p->transform == OM_TREE_SOFTMAX_ZERO;
  double largest = om_real_load(y, first);
  double total = 0.0;
  for (size_t i = 1; i < count; ++i) {
    const double value = om_real_load(y, first + i);
    if (value > largest) largest = value;
  }
  for (size_t i = 0; i < count; ++i) {
    double value = om_real_load(y, first + i);
    if (!keeps_zero || value != 0.0)
      value = om_real_exp(real, om_real_round(real, value - largest));
    om_real_store(y, first + i, value);
    total = om_real_round(real, total + value);
  }
  for (size_t i = 0; i < count; ++i) {
    om_real_store(y, first + i, om_real_round(real, om_real_load(y, first + i) / total));
  }
}

static void transform(const om_tree_params *p, om_real real, const om_tensor *y, size_t first) {
  if (p->transform == OM_TREE_SOFTMAX || p->transform == OM_TREE_SOFTMAX_ZERO) {
    softmax(p, real, y, first);
  }
  for (size_t i = 0; p->transform == OM_TREE_LOGISTIC && i < (size_t)p->targets; ++i) {
    const double e = om_real_exp(real, -om_real_load(y, first + i));
    om_real_store(y, first + i, om_real_round(real, 1.0 / om_real_round(real, 1.0 + e)));
  }
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_tree_params *p = call->params;
  const om_tensor *y = call->outputs[0];
  const om_real real = om_real_of(y->dtype);
  for (size_t row = 0; row < (size_t)y->dims[0]; ++row) {
    const size_t first = row * (size_t)p->targets;
    for (size_t t = 0; t < (size_t)p->targets; ++t) {
      double sum = 0.0;
      bool is_first = true;
      for (size_t root = 0; root < p->roots.count; ++root) {
        const size_t leaf = find_leaf(call, (size_t)p->roots.values[root], row);
        if (leaf == SIZE_MAX) {
          return OM_FAIL(ctx, OM_E_INVALID_MODEL, "Tree %zu goes in a circle.", root);
        }
        if ((size_t)p->leaf_targets.values[leaf] != t) continue;
        sum = joined(p, real, sum, om_real_load(p->leaf_weights, leaf), is_first);
        is_first = false;
      }
      if (p->aggregate == OM_TREE_AVERAGE) {
        sum = om_real_round(real, sum / (double)p->roots.count);
      }
      om_real_store(y, first + t, sum);
    }
    transform(p, real, y, first);
  }
  return OM_OK;
}

const om_op om_ops_ml_tree[] = {
    {.domain = "ai.onnx.ml",
     .type = "TreeEnsemble",
     .first_opset = 5,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F64) | OM_DT(OM_DTYPE_F16),
     .params_bytes = sizeof(om_tree_params),
     .resolve = resolve,
     .infer = infer,
     .run = run},
    {.type = NULL},
};
