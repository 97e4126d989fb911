/* HardSwish as exporters spell it out, back to one HardSwish:
 *
 *     Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)     or     Mul(x, Div(Clip(Add(x, 3), 0, 6), 6))
 *
 * One operation in place of four, with another rounding: fast mode only.
 */
#include "rewrite/om_rewrite.h"

static bool is_scalar(const om_rewriter *rw, om_value_id value, float want) {
  float have;
  return om_rewriter_scalar(rw, value, &have) && have == want &&
         om_rewriter_constant(rw, value)->rank == 0;
}

/* Bounds are attributes up to opset 10, then inputs. */
static om_status has_bounds(om_ctx *ctx,
                            const om_rewriter *rw,
                            const om_node *clip,
                            bool *out_has) {
  float low = 1.0f, high = 0.0f;
  *out_has = false;
  if (clip->opset >= 11) {
    *out_has = clip->input_count == 3 && is_scalar(rw, clip->inputs[1], 0.0f) &&
               is_scalar(rw, clip->inputs[2], 6.0f);
    return OM_OK;
  }
  OM_TRY(om_node_attr_float(ctx, clip, "min", 1.0f, &low));
  OM_TRY(om_node_attr_float(ctx, clip, "max", 0.0f, &high));
  *out_has = low == 0.0f && high == 6.0f;
  return OM_OK;
}

/* x of Clip(Add(x, 3), 0, 6), or OM_NO_VALUE. */
static om_status match_clip(om_ctx *ctx,
                            const om_rewriter *rw,
                            om_value_id value,
                            om_value_id *out_x) {
  bool has = false;
  const om_node *clip = om_rewriter_made_by(rw, value, "Clip");
  const om_node *add = clip ? om_rewriter_made_by(rw, clip->inputs[0], "Add") : NULL;
  *out_x = OM_NO_VALUE;
  if (!add) return OM_OK;
  OM_TRY(has_bounds(ctx, rw, clip, &has));
  for (uint32_t i = 0; has && i < 2; ++i) {
    if (is_scalar(rw, add->inputs[i], 3.0f)) *out_x = add->inputs[1 - i];
  }
  return OM_OK;
}

/* x, if `last` is the end of the pattern. */
static om_status match(om_ctx *ctx,
                       const om_rewriter *rw,
                       const om_node *last,
                       om_value_id *out_x) {
  bool is_div = strcmp(last->type, "Div") == 0;
  const om_node *mul = is_div ? om_rewriter_made_by(rw, last->inputs[0], "Mul") : last;
  *out_x = OM_NO_VALUE;
  if (!mul || (is_div && !is_scalar(rw, last->inputs[1], 6.0f))) return OM_OK;
  for (uint32_t i = 0; i < 2; ++i) {
    om_value_id factor = mul->inputs[i], x = OM_NO_VALUE;
    if (!is_div) {
      const om_node *div = om_rewriter_made_by(rw, factor, "Div");
      if (!div || !is_scalar(rw, div->inputs[1], 6.0f)) continue;
      factor = div->inputs[0];
    }
    OM_TRY(match_clip(ctx, rw, factor, &x));
    if (x != OM_NO_VALUE && x == mul->inputs[1 - i]) *out_x = x;
  }
  return OM_OK;
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  if (!om_op_find("", "HardSwish", 14, NULL)) return OM_OK;
  for (om_node_id id = 0; id < rw->graph->node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    om_value_id x = OM_NO_VALUE;
    if (!node->type || node->domain[0] != '\0' || node->opset < 7) continue;
    if (strcmp(node->type, "Div") != 0 && strcmp(node->type, "Mul") != 0) continue;
    OM_TRY(match(ctx, rw, node, &x));
    if (x == OM_NO_VALUE) continue;
    /* What is left of the parts goes as dead nodes do. */
    const om_rewritten_node hard_swish = {
        .type = "HardSwish", .opset = 14, .inputs = &x, .input_count = 1};
    OM_TRY(om_rewriter_become(ctx, rw, id, &hard_swish));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_hardswish_from_parts = {
    .name = "hardswish_from_parts",
    .in_fast = true,
    .in_exact = false,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
