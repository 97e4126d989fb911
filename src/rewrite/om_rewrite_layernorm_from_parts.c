/* Layer normalisation as exporters spell it out, back to one LayerNormalization:
 *
 *     m = ReduceMean(x)    d = Sub(x, m)    v = ReduceMean(d^2)
 *     y = Div(d, Sqrt(Add(v, epsilon)))     [y = Mul(y, gamma)]  [y = Add(y, beta)]
 *
 * where d^2 is Pow(d, 2) or Mul(d, d), and d may be computed twice. The means are over the last
 * axes, written as negative numbers (a rank is not always known here). Without a gamma vector the
 * parts stay: LayerNormalization needs a scale of the axis' length.
 *
 * The sums are the same, but the unfused form rounds differently: fast mode only.
 */
#include "rewrite/om_rewrite.h"

typedef struct match {
  om_value_id x;
  om_node_id div, mul, add; /* add OM_NO_NODE: no beta */
  om_value_id gamma, beta;
  int64_t axis; /* negative */
  float epsilon;
} match;

/* The axes of a ReduceMean: an attribute up to opset 17, then a constant input. */
static om_status get_axes(om_ctx *ctx,
                          const om_rewriter *rw,
                          const om_node *node,
                          const int64_t **out_axes,
                          size_t *out_count) {
  *out_axes = NULL;
  *out_count = 0;
  if (node->input_count < 2) return om_node_attr_ints(ctx, node, "axes", out_axes, out_count);
  const om_tensor *axes = om_rewriter_constant(rw, node->inputs[1]);
  if (!axes || axes->dtype != OM_DTYPE_I64) return OM_OK;
  *out_axes = axes->data;
  *out_count = om_tensor_elems(axes);
  return OM_OK;
}

/* Sets *out_axis to the first of the axes if they are the last `count` ones, else to 0. */
static om_status last_axes(om_ctx *ctx,
                           const om_rewriter *rw,
                           const om_node *mean,
                           int64_t *out_axis) {
  const int64_t *axes;
  size_t count;
  int64_t keep = 1;
  *out_axis = 0;
  OM_TRY(om_node_attr_int(ctx, mean, "keepdims", 1, &keep));
  OM_TRY(get_axes(ctx, rw, mean, &axes, &count));
  if (keep != 1 || count == 0 || count > OM_MAX_RANK) return OM_OK;
  const om_value *x = &rw->graph->values[mean->inputs[0]];
  for (size_t i = 0; i < count; ++i) {
    int64_t axis = axes[i];
    if (axis >= 0 && x->has_rank) axis -= (int64_t)x->rank;
    if (axis != (int64_t)i - (int64_t)count) return OM_OK;
  }
  *out_axis = -(int64_t)count;
  return OM_OK;
}

/* The Sub that makes `value` as x minus a mean of x. */
static const om_node *match_difference(const om_rewriter *rw, om_value_id value) {
  const om_node *sub = om_rewriter_made_by(rw, value, "Sub");
  const om_node *mean = sub ? om_rewriter_made_by(rw, sub->inputs[1], "ReduceMean") : NULL;
  return mean && mean->inputs[0] == sub->inputs[0] ? sub : NULL;
}

/* The value whose square `value` is, or OM_NO_VALUE. */
static om_value_id match_square(const om_rewriter *rw, om_value_id value) {
  float exponent = 0.0f;
  const om_node *mul = om_rewriter_made_by(rw, value, "Mul");
  const om_node *pow = om_rewriter_made_by(rw, value, "Pow");
  if (mul && mul->inputs[0] == mul->inputs[1]) return mul->inputs[0];
  if (pow && om_rewriter_scalar(rw, pow->inputs[1], &exponent) && exponent == 2.0f) {
    return pow->inputs[0];
  }
  return OM_NO_VALUE;
}

/* Add(v, epsilon) in either order: v, or OM_NO_VALUE. */
static om_value_id match_epsilon(const om_rewriter *rw, const om_node *add, float *out_epsilon) {
  for (uint32_t i = 0; i < 2; ++i) {
    if (om_rewriter_scalar(rw, add->inputs[i], out_epsilon)) return add->inputs[1 - i];
  }
  return OM_NO_VALUE;
}

/* From the Div upwards to x. */
static om_status match_core(om_ctx *ctx, const om_rewriter *rw, match *m, bool *out_fits) {
  const om_node *div = &rw->graph->nodes[m->div];
  const om_node *sub = match_difference(rw, div->inputs[0]);
  const om_node *root = om_rewriter_made_by(rw, div->inputs[1], "Sqrt");
  const om_node *add = root ? om_rewriter_made_by(rw, root->inputs[0], "Add") : NULL;
  int64_t other_axis;
  *out_fits = false;
  if (!sub || !add) return OM_OK;
  const om_node *variance =
      om_rewriter_made_by(rw, match_epsilon(rw, add, &m->epsilon), "ReduceMean");
  om_value_id squared = variance ? match_square(rw, variance->inputs[0]) : OM_NO_VALUE;
  const om_node *other = squared == OM_NO_VALUE ? NULL : match_difference(rw, squared);
  if (!other || other->inputs[0] != sub->inputs[0]) return OM_OK;
  OM_TRY(last_axes(ctx, rw, om_rewriter_made_by(rw, sub->inputs[1], "ReduceMean"), &m->axis));
  OM_TRY(last_axes(ctx, rw, om_rewriter_made_by(rw, other->inputs[1], "ReduceMean"), &other_axis));
  if (m->axis == 0 || other_axis != m->axis) return OM_OK;
  OM_TRY(last_axes(ctx, rw, variance, &other_axis));
  m->x = sub->inputs[0];
  *out_fits = other_axis == m->axis;
  return OM_OK;
}

/* The other operand of a Mul or Add, if it is a constant of the normalised shape. */
static om_value_id match_vector(
    const om_rewriter *rw, om_node_id id, om_value_id from, const match *m, const om_tensor *like) {
  const om_node *node = &rw->graph->nodes[id];
  om_value_id other = node->inputs[0] == from ? node->inputs[1] : node->inputs[0];
  const om_tensor *tensor = om_rewriter_constant(rw, other);
  if (!tensor || (tensor->dtype != OM_DTYPE_F32 && tensor->dtype != OM_DTYPE_F16) ||
      (int64_t)tensor->rank != -m->axis) {
    return OM_NO_VALUE;
  }
  for (uint32_t d = 0; like && d < tensor->rank; ++d) {
    if (tensor->dims[d] != like->dims[d]) return OM_NO_VALUE;
  }
  return other;
}

static bool match_tail(const om_rewriter *rw, match *m) {
  om_value_id y = rw->graph->nodes[m->div].outputs[0];
  m->mul = om_rewriter_sole_reader(rw, y, "Mul");
  if (m->mul == OM_NO_NODE) return false;
  m->gamma = match_vector(rw, m->mul, y, m, NULL);
  if (m->gamma == OM_NO_VALUE) return false;
  y = rw->graph->nodes[m->mul].outputs[0];
  m->add = om_rewriter_sole_reader(rw, y, "Add");
  if (m->add == OM_NO_NODE) return true;
  m->beta = match_vector(rw, m->add, y, m, om_rewriter_constant(rw, m->gamma));
  if (m->beta == OM_NO_VALUE) m->add = OM_NO_NODE;
  return true;
}

/* ---- The replacement ---- */

/* Turns the last node of the pattern into the LayerNormalization: it keeps name and place. The
 * parts above the Div go with it unless something else reads them. */
static om_status replace(om_ctx *ctx, om_rewriter *rw, const match *m) {
  om_node_id last = m->add != OM_NO_NODE ? m->add : m->mul;
  const char *name = rw->graph->nodes[last].name;
  const om_value_id inputs[3] = {m->x, m->gamma, m->beta};
  const om_attr attrs[2] = {
      {.name = "axis", .kind = OM_ATTR_INT, .count = 1, .i = m->axis},
      {.name = "epsilon", .kind = OM_ATTR_FLOAT, .count = 1, .f = m->epsilon},
  };
  const om_rewritten_node node = {.type = "LayerNormalization",
                                  .opset = 17,
                                  .inputs = inputs,
                                  .input_count = m->add != OM_NO_NODE ? 3 : 2,
                                  .attrs = attrs,
                                  .attr_count = 2};
  if (m->add != OM_NO_NODE) {
    OM_TRY(om_rewriter_drop(ctx, rw, m->mul, "merged into '%.150s'", name));
  }
  OM_TRY(om_rewriter_drop(ctx, rw, m->div, "merged into '%.150s'", name));
  return om_rewriter_become(ctx, rw, last, &node);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  if (!om_op_find("", "LayerNormalization", 17, NULL)) return OM_OK;
  for (om_node_id id = 0; id < rw->graph->node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    match m = {.div = id, .gamma = OM_NO_VALUE, .beta = OM_NO_VALUE};
    bool does_fit = false;
    if (!node->type || node->domain[0] != '\0' || strcmp(node->type, "Div") != 0) continue;
    OM_TRY(match_core(ctx, rw, &m, &does_fit));
    if (!does_fit || !match_tail(rw, &m)) continue;
    OM_TRY(replace(ctx, rw, &m));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_layernorm_from_parts = {
    .name = "layernorm_from_parts",
    .in_fast = true,
    .in_exact = false,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
