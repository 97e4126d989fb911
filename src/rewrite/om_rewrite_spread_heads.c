/* Attention whose heads are part of the batch, as exporters of CLIP, BART, wav2vec and their kin
 * write it, becomes attention of four axes:
 *
 *     q: [b, t, h, d] -> Transpose -> Reshape [b*h, t, d]           (k and v likewise)
 *     MatMul(q, Transpose(k)) -> [Reshape [b, h, t, s] -> Add of a mask -> Reshape [b*h, t, s]] ...
 *     -> Softmax -> MatMul(.., v) -> Reshape [b, h, t, d] -> Transpose
 *
 * All of it reads the Transposes then, and the Reshapes go. So masks of [b, 1, t, s] meet scores of
 * four axes, as om_rewrite_attention.c and om_rewrite_join_masks.c want them. Each element is
 * computed of the same elements in the same order: the bits stay, for both modes.
 *
 * Whether a Reshape does no more than that follows from the elements of its list: b, h and t are
 * numbers, or extents that a plan knows, and the same ones everywhere; the last one is what is
 * left.
 */
#include "rewrite/om_list_element.h"

enum { MOST_MASKS = 4 };

typedef struct side {
  om_value_id heads;       /* [b, h, t, d] */
  om_list_element b, t, h; /* h is a number */
  int64_t depth;
} side;

typedef struct spread {
  const om_rewriter *rw;
  const om_value_fact *facts;
  side q, k, v;
  om_node_id product, softmax, last, behind; /* behind: the Transpose of the result */
  om_value_id k_merged;                      /* what the Transpose of k reads */
  om_node_id masks[MOST_MASKS];              /* from the last to the first */
  uint32_t scores[MOST_MASKS];               /* their inputs that are the scores */
  uint32_t mask_count;
} spread;

static om_node_id maker_of(const spread *s, om_value_id value) {
  return s->rw->graph->values[value].producer;
}

static bool has_axes(const om_node *transpose, const int64_t *axes, size_t rank) {
  const om_attr *perm = om_node_attr(transpose, "perm");
  return perm && perm->kind == OM_ATTR_INTS && perm->count == rank &&
         memcmp(perm->ints, axes, rank * sizeof *axes) == 0;
}

/* The Reshape that makes `value`, with the elements of its list, of which there are so many. */
static const om_node *find_reshape(const spread *s,
                                   om_value_id value,
                                   uint32_t count,
                                   om_list_element *elements) {
  const om_node *reshape = om_rewriter_made_by(s->rw, value, "Reshape");
  if (!reshape || reshape->input_count != 2) return NULL;
  if (om_value_list_count(s->rw, s->facts, reshape->inputs[1]) != count) return NULL;
  for (uint32_t i = 0; i < count; ++i) {
    if (!om_list_element_at(s->rw, s->facts, reshape->inputs[1], i, &elements[i])) return NULL;
  }
  return reshape;
}

/* A number that means itself, or an extent. */
static bool is_certain(const spread *s, const om_list_element *e) {
  om_value_id tensor;
  int64_t axis;
  if (e->value == OM_NO_VALUE) return e->number > 0;
  return om_extent_of(s->rw, e->value, &tensor, &axis);
}

static bool is_same(const spread *s, const om_list_element *a, const om_list_element *b) {
  return is_certain(s, a) && om_list_elements_are_same(s->rw, a, b);
}

/* True if `e` is b * h. */
static bool is_product(const spread *s, const om_list_element *e, const side *x) {
  if (e->value == OM_NO_VALUE) {
    return x->b.value == OM_NO_VALUE && e->number % x->h.number == 0 &&
           e->number / x->h.number == x->b.number;
  }
  const om_node *mul = om_rewriter_made_by(s->rw, e->value, "Mul");
  for (uint32_t i = 0; mul && i < 2; ++i) {
    const om_list_element factor = {.value = mul->inputs[i]};
    const om_tensor *heads = om_rewriter_constant(s->rw, mul->inputs[1 - i]);
    if (!heads || heads->dtype != OM_DTYPE_I64 || om_tensor_elems(heads) != 1) continue;
    if (om_list_int(heads, 0) == x->h.number && is_same(s, &x->b, &factor)) return true;
  }
  return false;
}

/* Reshape(Transpose(Reshape(x, [b, t, h, d])), [b*h, t, d]). */
static bool find_side(const spread *s, om_value_id value, side *out) {
  static const int64_t axes[] = {0, 2, 1, 3};
  om_list_element merged[3], apart[4];
  const om_node *merge = find_reshape(s, value, 3, merged);
  const om_node *turn = merge ? om_rewriter_made_by(s->rw, merge->inputs[0], "Transpose") : NULL;
  if (!turn || !has_axes(turn, axes, OM_COUNT_OF(axes))) return false;
  if (!find_reshape(s, turn->inputs[0], 4, apart)) return false;
  *out = (side){.heads = merge->inputs[0],
                .b = apart[0],
                .t = apart[1],
                .h = apart[2],
                .depth = apart[3].value == OM_NO_VALUE ? apart[3].number : 0};
  if (out->h.value != OM_NO_VALUE || out->h.number <= 0 || out->depth <= 0) return false;
  return merged[2].value == OM_NO_VALUE && merged[2].number == out->depth &&
         is_certain(s, &out->b) && is_product(s, &merged[0], out);
}

/* A list that begins with b, h and q's rows. */
static bool keeps_heads(const spread *s, const om_list_element e[4]) {
  return is_same(s, &e[0], &s->q.b) && is_same(s, &e[1], &s->q.h) && is_same(s, &e[2], &s->q.t);
}

/* The next mask on the way from the Softmax to the product: *inout_value, of three axes, becomes
 * what was there before it. */
static bool find_mask(spread *s, om_value_id *inout_value) {
  om_list_element merged[3], apart[4];
  const om_node *merge = find_reshape(s, *inout_value, 3, merged);
  if (!merge || !om_rewriter_is_read_once(s->rw, *inout_value)) return false;
  const om_node *add = om_rewriter_made_by(s->rw, merge->inputs[0], "Add");
  if (!add || !om_rewriter_is_read_once(s->rw, merge->inputs[0])) return false;
  if (!is_product(s, &merged[0], &s->q) || !is_same(s, &merged[1], &s->q.t)) return false;
  for (uint32_t i = 0; i < 2; ++i) {
    const om_value_id scores = add->inputs[i];
    const om_node *spread_out = find_reshape(s, scores, 4, apart);
    const uint32_t mask_rank = s->facts[add->inputs[1 - i]].rank; /* unknown: large */
    if (!spread_out || !keeps_heads(s, apart) || !om_rewriter_is_read_once(s->rw, scores)) continue;
    if (mask_rank > 4 || s->mask_count == MOST_MASKS) return false;
    if (!is_same(s, &merged[2], &apart[3])) return false; /* the mask makes them no more */
    s->masks[s->mask_count] = maker_of(s, merge->inputs[0]);
    s->scores[s->mask_count++] = i;
    *inout_value = spread_out->inputs[0];
    return true;
  }
  return false;
}

static bool is_over_last(const om_node *softmax) {
  const om_attr *axis = om_node_attr(softmax, "axis");
  return axis ? axis->kind == OM_ATTR_INT && axis->i == -1 : softmax->opset >= 13;
}

/* The product of q and k, and the masks behind it; q is known only when it is found. */
static bool find_scores(spread *s, om_value_id value) {
  static const int64_t last_two[] = {0, 2, 1};
  om_value_id at = value;
  for (uint32_t i = 0; i <= 2 * MOST_MASKS; ++i) { /* looks ahead for q */
    const om_node *node = om_rewriter_made_by(s->rw, at, "Reshape");
    const om_node *add = node ? om_rewriter_made_by(s->rw, node->inputs[0], "Add") : NULL;
    if (!node) break;
    at = node->inputs[0];
    if (!add) continue;
    at = om_rewriter_made_by(s->rw, add->inputs[0], "Reshape") ? add->inputs[0] : add->inputs[1];
  }
  const om_node *product = om_rewriter_made_by(s->rw, at, "MatMul");
  if (!product || !find_side(s, product->inputs[0], &s->q)) return false;
  if (!is_certain(s, &s->q.t)) return false;
  while (value != at && find_mask(s, &value)) {
  }
  if (value != at || !om_rewriter_is_read_once(s->rw, value)) return false;
  s->product = maker_of(s, value);
  const om_node *turn = om_rewriter_made_by(s->rw, product->inputs[1], "Transpose");
  if (!turn || !has_axes(turn, last_two, OM_COUNT_OF(last_two))) return false;
  s->k_merged = turn->inputs[0];
  return find_side(s, s->k_merged, &s->k);
}

/* The Reshape [b, h, t, d] and the Transpose behind the last product. */
static bool find_result(spread *s) {
  const om_rewriter *rw = s->rw;
  om_list_element apart[4];
  const om_node_id reshape =
      om_rewriter_sole_reader(rw, rw->graph->nodes[s->last].outputs[0], "Reshape");
  if (reshape == OM_NO_NODE) return false;
  const om_value_id spread_out = rw->graph->nodes[reshape].outputs[0];
  s->behind = om_rewriter_sole_reader(rw, spread_out, "Transpose");
  return s->behind != OM_NO_NODE && find_reshape(s, spread_out, 4, apart) && keeps_heads(s, apart);
}

static bool find(spread *s) {
  const om_node *last = &s->rw->graph->nodes[s->last];
  const om_node *softmax = om_rewriter_made_by(s->rw, last->inputs[0], "Softmax");
  if (!softmax || !is_over_last(softmax)) return false;
  if (!om_rewriter_is_read_once(s->rw, last->inputs[0])) return false;
  s->softmax = maker_of(s, last->inputs[0]);
  if (!find_scores(s, softmax->inputs[0]) || !find_side(s, last->inputs[1], &s->v)) return false;
  const side *const others[] = {&s->k, &s->v};
  for (size_t i = 0; i < OM_COUNT_OF(others); ++i) {
    if (!is_same(s, &s->q.b, &others[i]->b) || s->q.h.number != others[i]->h.number) return false;
  }
  return find_result(s);
}

/* Replaces one input; the node's result has four axes. */
static om_status read_instead(
    om_ctx *ctx, om_rewriter *rw, om_node_id id, uint32_t input, om_value_id value) {
  om_value_id inputs[2] = {OM_NO_VALUE, OM_NO_VALUE};
  const om_node *node = &rw->graph->nodes[id];
  const uint32_t count = node->input_count;
  memcpy(inputs, node->inputs, count * sizeof *inputs);
  inputs[input] = value;
  rw->graph->values[node->outputs[0]].has_rank = false;
  return om_rewriter_set_inputs(ctx, rw, id, inputs, count);
}

static om_status replace(om_ctx *ctx, om_rewriter *rw, const spread *s) {
  static const int64_t axes[] = {0, 1, 3, 2};
  const om_node *nodes = rw->graph->nodes;
  const om_attr perm = {
      .name = "perm", .kind = OM_ATTR_INTS, .count = OM_COUNT_OF(axes), .ints = axes};
  const om_rewritten_node turn = {.type = "Transpose",
                                  .opset = 13,
                                  .inputs = &s->k.heads,
                                  .input_count = 1,
                                  .attrs = &perm,
                                  .attr_count = 1};
  const om_value_id result = nodes[s->last].outputs[0];
  const om_value_id weights = nodes[s->softmax].outputs[0];
  om_value_id scores = nodes[s->product].outputs[0];
  om_value_id k;
  const char *name =
      om_pool_format(ctx, &rw->graph->pool, "%s.turned", rw->graph->values[s->k_merged].name);
  if (!name) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_rewriter_add_node(ctx, rw, name, s->facts[s->k_merged].dtype, &turn, &k));
  OM_TRY(read_instead(ctx, rw, s->product, 0, s->q.heads));
  OM_TRY(read_instead(ctx, rw, s->product, 1, k));
  for (uint32_t i = s->mask_count; i-- > 0;) {
    OM_TRY(read_instead(ctx, rw, s->masks[i], s->scores[i], scores));
    scores = rw->graph->nodes[s->masks[i]].outputs[0];
  }
  OM_TRY(read_instead(ctx, rw, s->softmax, 0, scores));
  OM_TRY(read_instead(ctx, rw, s->last, 0, weights));
  OM_TRY(read_instead(ctx, rw, s->last, 1, s->v.heads));
  return read_instead(ctx, rw, s->behind, 0, result);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch */
  const om_node_id count = (om_node_id)rw->graph->node_count;
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  for (om_node_id id = 0; id < count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    spread s = {.rw = rw, .facts = facts, .last = id};
    if (!node->type || node->domain[0] != '\0' || strcmp(node->type, "MatMul") != 0) continue;
    if (find(&s)) OM_GO(replace(ctx, rw, &s));
  }
done:
  om_delete(ctx, facts);
  return st;
}

const om_rewrite om_rewrite_spread_heads = {
    .name = "spread_heads",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
