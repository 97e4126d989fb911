/* Two masks of float32 become one, s being a product of matrices that may be scaled:
 *
 *     Softmax((s + a) + b)                  becomes   Softmax(s + (a + b))
 *     Softmax(Where(shown, s, low) + b)     becomes   Softmax(s + Where(shown, b, low + b))
 *
 * The joined mask is one node for all layers that have the same. It rounds elsewhere, so every
 * executor does it, in both modes. A hidden score vanishes beside `low` only if it is below 2^100,
 * and so far from the limits of its type are scores of any use; one that is not finite would not.
 * float16 is left as it is: there the sum of a mask near the lowest number and another one would be
 * -infinity.
 */
#include <string.h>

#include "rewrite/om_rewrite_facts.h"

/* A MatMul, or one times or by something of one element. */
static bool is_product(const om_rewriter *rw, om_value_id value) {
  const om_node *mul = om_rewriter_made_by(rw, value, "Mul");
  const om_node *node = mul ? mul : om_rewriter_made_by(rw, value, "Div");
  if (!node) return om_rewriter_made_by(rw, value, "MatMul") != NULL;
  for (uint32_t i = 0; i < (mul ? 2u : 1u); ++i) {
    if (!om_value_is_scalar(rw, node->inputs[1 - i])) continue;
    return om_rewriter_made_by(rw, node->inputs[i], "MatMul") != NULL;
  }
  return false;
}

/* The Add that makes `value`, which is read once. */
static const om_node *sum_of(const om_rewriter *rw, om_value_id value) {
  const om_node *add = om_rewriter_made_by(rw, value, "Add");
  return add && add->opset >= 7 && om_rewriter_is_read_once(rw, value) ? add : NULL;
}

typedef struct mask_pair {
  om_value_id scores, inner, outer; /* inner: the first mask, or what stands in for hidden scores */
  om_value_id shown;                /* OM_NO_VALUE: inner is added */
} mask_pair;

/* True if each score below 2^100 is nothing beside it. */
static bool is_low(const om_rewriter *rw, om_value_id value) {
  const float most = -0x1p125f; /* half of its last place is 2^101 */
  float low = 0.0f;
  return om_rewriter_scalar(rw, value, &low) && low <= most &&
         om_rewriter_constant(rw, value)->dtype == OM_DTYPE_F32 &&
         om_rewriter_constant(rw, value)->rank <= 1;
}

static bool match_inner(const om_rewriter *rw,
                        const om_value_fact *facts,
                        om_value_id value,
                        mask_pair *p) {
  const om_node *where = om_rewriter_made_by(rw, value, "Where");
  const om_node *inner = sum_of(rw, value);
  for (uint32_t k = 0; inner && k < 2; ++k) {
    p->scores = inner->inputs[k];
    p->inner = inner->inputs[1 - k];
    p->shown = OM_NO_VALUE;
    if (facts[p->inner].dtype != OM_DTYPE_F32 && facts[p->outer].dtype != OM_DTYPE_F32) continue;
    if (om_rewriter_is_read_once(rw, p->scores) && is_product(rw, p->scores)) return true;
  }
  if (!where || !om_rewriter_is_read_once(rw, value)) return false;
  *p = (mask_pair){where->inputs[1], where->inputs[2], p->outer, where->inputs[0]};
  return is_low(rw, p->inner) && om_rewriter_is_read_once(rw, p->scores) &&
         is_product(rw, p->scores);
}

static bool match(const om_rewriter *rw,
                  const om_value_fact *facts,
                  om_value_id value,
                  mask_pair *p) {
  const om_node *outer = sum_of(rw, value);
  for (uint32_t i = 0; outer && i < 2; ++i) {
    p->outer = outer->inputs[1 - i];
    if (match_inner(rw, facts, outer->inputs[i], p)) return true;
  }
  return false;
}

/* A node that layers share, of the nodes from `first` on. */
static om_status share(om_ctx *ctx,
                       om_rewriter *rw,
                       om_node_id first,
                       const char *name,
                       const om_rewritten_node *what,
                       om_value_id *out_value) {
  return om_rewriter_share_node(ctx, rw, first, name, OM_DTYPE_F32, what, out_value);
}

static om_status join(om_ctx *ctx,
                      om_rewriter *rw,
                      const mask_pair *p,
                      om_node_id first,
                      const char *stem,
                      om_value_id *out_mask) {
  const om_value_id both[] = {p->inner, p->outer};
  const om_rewritten_node sum = {.type = "Add", .opset = 14, .inputs = both, .input_count = 2};
  const char *name = om_pool_format(ctx, &rw->graph->pool, "%s.masks", stem);
  if (!name) return OM_E_OUT_OF_MEMORY;
  OM_TRY(share(ctx, rw, first, name, &sum, out_mask));
  if (p->shown == OM_NO_VALUE) return OM_OK;
  const om_value_id choice[] = {p->shown, p->outer, *out_mask};
  const om_rewritten_node where = {
      .type = "Where", .opset = 16, .inputs = choice, .input_count = 3};
  name = om_pool_format(ctx, &rw->graph->pool, "%s.chosen", stem);
  if (!name) return OM_E_OUT_OF_MEMORY;
  return share(ctx, rw, first, name, &where, out_mask);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch */
  const om_node_id first_new = (om_node_id)rw->graph->node_count;
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  for (om_node_id id = 0; id < first_new; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    mask_pair pair;
    if (!node->type || node->domain[0] != '\0' || strcmp(node->type, "Softmax") != 0) continue;
    if (!match(rw, facts, node->inputs[0], &pair)) continue;
    const om_node_id outer = rw->graph->values[node->inputs[0]].producer;
    om_value_id inputs[2] = {pair.scores};
    OM_GO(join(ctx, rw, &pair, first_new, node->name, &inputs[1]));
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
