/* Attention as exporters spell it out, as one operator (ops_attention.c):
 *
 *     MatMul(q, k) -> [Div | Mul by a scalar] -> [Add or Sub of a mask | Where(shown, s, c)]
 *     -> Softmax over the last axis -> [Where(IsNaN(p), 0, p)] -> MatMul(p, v) -> [Transpose]
 *
 * where q and k may be a Mul or Div by a scalar, and q, k and v Transposes, which are read through.
 * A float16 Softmax may stand between Casts to float32 and back, which is what it computes anyway.
 * Reshapes stay: they cost nothing. A value between the nodes that something else reads, or the
 * caller wants, leaves everything as it is. The result has the same bits, so this is for both
 * modes.
 *
 * Where becomes a mask that selects: Where(shown, 0, c), one node for all layers that have the
 * same.
 *
 * The operator is for float32 and float16, and for operands of rank 2 and more: where neither the
 * file nor the nodes around tell so much, nothing is done.
 */
#include <float.h>
#include <math.h>

#include "rewrite/om_rewrite_facts.h"

enum { MOST_LAYERS = 6 }; /* Transposes and scales of one operand */

typedef struct operand {
  om_value_id value;
  om_value_id scale; /* OM_NO_VALUE: none */
  bool divides;
  uint32_t rank; /* of the permutation; 0: none */
  int64_t perm[OM_MAX_RANK];
} operand;

typedef enum mask_kind { NO_MASK, ADDED, SUBTRACTED, CHOSEN_IF_TRUE, CHOSEN_IF_FALSE } mask_kind;

enum { MOST_PARTS = 10 };

typedef struct match {
  operand q, k, v;
  mask_kind mask_kind;
  om_value_id mask;  /* or what Where asks; OM_NO_VALUE: none */
  om_value_id fill;  /* what stands in for scores that Where does not choose */
  om_value_id scale; /* OM_NO_VALUE: none */
  bool divides;
  bool zeroes_nan;
  om_node_id last;              /* the MatMul with V */
  om_node_id softmax;           /* one of: */
  om_node_id parts[MOST_PARTS]; /* what lies before the last, which nothing else reads */
  uint32_t part_count;
  const om_value_fact *facts; /* borrowed */
} match;

typedef struct joining { /* what the attentions of a graph share */
  om_node_id first_new;  /* nodes from here on were added */
  om_value_id zeros[2];  /* of float32 and float16; OM_NO_VALUE: not there yet */
} joining;

static const om_node *any_maker(const om_rewriter *rw, om_value_id value) {
  if (value == OM_NO_VALUE) return NULL;
  om_node_id id = rw->graph->values[value].producer;
  if (id == OM_NO_NODE || rw->graph->nodes[id].outputs[0] != value) return NULL;
  const om_node *node = &rw->graph->nodes[id];
  return node->type && node->domain[0] == '\0' ? node : NULL;
}

/* ---- The pattern ---- */

/* If `value` is something times or by a scalar: *out_scale, *out_divides; returns the something,
 * else OM_NO_VALUE. */
static om_value_id match_scale(const om_rewriter *rw,
                               om_value_id value,
                               om_value_id *out_scale,
                               bool *out_divides) {
  const om_node *mul = om_rewriter_made_by(rw, value, "Mul");
  const om_node *div = om_rewriter_made_by(rw, value, "Div");
  const om_node *node = mul ? mul : div;
  if (!node || node->opset < 7 || !om_rewriter_is_read_once(rw, value)) return OM_NO_VALUE;
  for (uint32_t side = 0; side < (mul ? 2u : 1u); ++side) {
    if (!om_value_is_scalar(rw, node->inputs[1 - side])) continue;
    *out_scale = node->inputs[1 - side];
    *out_divides = div != NULL;
    return node->inputs[side];
  }
  return OM_NO_VALUE;
}

/* Reads through a Transpose: the operand's axis d is the source's axis perm[d]. */
static om_status add_perm(om_ctx *ctx, const om_node *transpose, operand *x, bool *out_fits) {
  const int64_t *axes = NULL;
  size_t count = 0;
  int64_t own[OM_MAX_RANK];
  *out_fits = false;
  OM_TRY(om_node_attr_ints(ctx, transpose, "perm", &axes, &count));
  if (count < 2 || count > OM_MAX_RANK || (x->rank != 0 && x->rank != count)) return OM_OK;
  for (size_t d = 0; d < count; ++d) {
    if (axes[d] < 0 || axes[d] >= (int64_t)count) return OM_OK;
    own[d] = axes[x->rank != 0 ? x->perm[d] : (int64_t)d];
  }
  memcpy(x->perm, own, count * sizeof *own);
  x->rank = (uint32_t)count;
  x->value = transpose->inputs[0];
  *out_fits = true;
  return OM_OK;
}

static om_status match_operand(
    om_ctx *ctx, const om_rewriter *rw, om_value_id value, bool may_scale, operand *out) {
  *out = (operand){.value = value, .scale = OM_NO_VALUE};
  for (uint32_t i = 0; i < MOST_LAYERS; ++i) {
    const om_node *transpose = om_rewriter_made_by(rw, out->value, "Transpose");
    bool goes_on = false;
    if (transpose) OM_TRY(add_perm(ctx, transpose, out, &goes_on));
    if (!goes_on && may_scale && out->scale == OM_NO_VALUE) {
      om_value_id source = match_scale(rw, out->value, &out->scale, &out->divides);
      goes_on = source != OM_NO_VALUE;
      if (goes_on) out->value = source;
    }
    if (!goes_on) break;
  }
  return OM_OK;
}

static void note_part(const om_rewriter *rw, om_value_id value, match *m) {
  m->parts[m->part_count++] = rw->graph->values[value].producer;
}

/* A Cast of `value` to this type that nothing else reads: its input; else OM_NO_VALUE. */
static om_value_id cast_source(const om_rewriter *rw, om_value_id value, om_dtype to) {
  const om_node *cast = om_rewriter_made_by(rw, value, "Cast");
  const om_attr *attr = cast ? om_node_attr(cast, "to") : NULL;
  const bool fits = attr && attr->kind == OM_ATTR_INT && attr->i == to;
  return fits && om_rewriter_is_read_once(rw, value) ? cast->inputs[0] : OM_NO_VALUE;
}

/* The Softmax behind `value`, and what it reads. */
static bool match_softmax(const om_rewriter *rw,
                          om_value_id value,
                          match *m,
                          om_value_id *out_scores) {
  const om_value_id wide = cast_source(rw, value, OM_DTYPE_F16);
  const om_node *softmax = om_rewriter_made_by(rw, wide != OM_NO_VALUE ? wide : value, "Softmax");
  if (!softmax) return false;
  *out_scores = softmax->inputs[0];
  if (wide != OM_NO_VALUE) {
    const om_value_id narrow = cast_source(rw, softmax->inputs[0], OM_DTYPE_F32);
    if (narrow == OM_NO_VALUE || m->facts[narrow].dtype != OM_DTYPE_F16) return false;
    if (!om_rewriter_is_read_once(rw, wide)) return false;
    note_part(rw, value, m);
    note_part(rw, softmax->inputs[0], m);
    *out_scores = narrow;
    value = wide;
  }
  note_part(rw, value, m);
  m->softmax = rw->graph->values[value].producer;
  return true;
}

/* The Softmax that makes what Where(IsNaN(p), 0, p) or nothing follows. */
static bool match_probabilities(const om_rewriter *rw,
                                om_value_id value,
                                match *m,
                                om_value_id *out_scores) {
  const om_node *where = om_rewriter_made_by(rw, value, "Where");
  float zero = 1.0f;
  if (!om_rewriter_is_read_once(rw, value)) return false;
  if (where) {
    const om_node *is_nan = om_rewriter_made_by(rw, where->inputs[0], "IsNaN");
    const om_value_id p = where->inputs[2];
    if (!is_nan || is_nan->inputs[0] != p || !om_rewriter_is_read_once(rw, where->inputs[0]))
      return false;
    if (!om_rewriter_scalar(rw, where->inputs[1], &zero) || zero != 0.0f) return false;
    if (om_rewriter_constant(rw, where->inputs[1])->rank > 1) return false;
    if (rw->uses[p] != 2 || rw->graph->values[p].is_output) return false;
    note_part(rw, where->inputs[0], m);
    note_part(rw, value, m);
    value = p;
    m->zeroes_nan = true;
  }
  return match_softmax(rw, value, m, out_scores);
}

/* [Div | Mul] over a MatMul. */
static const om_node *match_product(const om_rewriter *rw, om_value_id value, match *m) {
  om_value_id source = match_scale(rw, value, &m->scale, &m->divides);
  const bool is_scaled = source != OM_NO_VALUE;
  if (!is_scaled) {
    m->scale = OM_NO_VALUE;
    source = value;
  }
  const om_node *product = om_rewriter_made_by(rw, source, "MatMul");
  if (!product || !om_rewriter_is_read_once(rw, source)) return NULL;
  if (is_scaled) note_part(rw, value, m);
  note_part(rw, source, m);
  return product;
}

/* A constant that a mask can hold beside 0, which stands for "shown". */
static bool can_fill(const om_rewriter *rw, om_value_id value) {
  float fill = 0.0f;
  if (!om_rewriter_scalar(rw, value, &fill) || om_rewriter_constant(rw, value)->rank > 1)
    return false;
  return fabsf(fill) >= FLT_MIN;
}

/* [Add or Sub of a mask, or Where] over that. */
static const om_node *match_scores(const om_rewriter *rw, om_value_id value, match *m) {
  static const struct {
    const char *type;
    uint32_t scores, mask;
    mask_kind kind;
  } forms[] = {
      {"Add", 0, 1, ADDED},
      {"Add", 1, 0, ADDED},
      {"Sub", 0, 1, SUBTRACTED},
      {"Where", 1, 0, CHOSEN_IF_TRUE},
      {"Where", 2, 0, CHOSEN_IF_FALSE},
  };
  const om_node *node = any_maker(rw, value);
  m->mask = OM_NO_VALUE;
  if (!node || !om_rewriter_is_read_once(rw, value)) return NULL;
  for (size_t i = 0; i < OM_COUNT_OF(forms); ++i) {
    if (strcmp(node->type, forms[i].type) != 0 || node->opset < 7) continue;
    const bool is_choice = forms[i].kind >= CHOSEN_IF_TRUE;
    if (is_choice && !can_fill(rw, node->inputs[3 - forms[i].scores])) continue;
    const om_node *product = match_product(rw, node->inputs[forms[i].scores], m);
    if (!product) continue;
    m->mask_kind = forms[i].kind;
    m->mask = node->inputs[forms[i].mask];
    if (is_choice) m->fill = node->inputs[3 - forms[i].scores];
    note_part(rw, value, m);
    return product;
  }
  return match_product(rw, value, m);
}

static uint32_t operand_rank(const match *m, const operand *x) {
  return x->rank != 0 ? x->rank : m->facts[x->value].rank;
}

/* The Softmax goes along the last axis of the scores. */
static om_status is_last_axis(om_ctx *ctx, const om_rewriter *rw, const match *m, bool *out_is) {
  const om_node *softmax = &rw->graph->nodes[m->softmax];
  int64_t axis = -1;
  uint32_t rank = operand_rank(m, &m->q);
  uint32_t other = operand_rank(m, &m->k);
  OM_TRY(om_node_attr_int(ctx, softmax, "axis", softmax->opset < 13 ? 1 : -1, &axis));
  if (other > rank) rank = other;
  *out_is = axis == -1;
  if (m->mask != OM_NO_VALUE) {
    other = m->facts[m->mask].rank;
    if (other > rank) rank = other; /* an unknown one is larger than any axis */
  }
  if (axis >= 0 && axis + 1 == (int64_t)rank) *out_is = true;
  return OM_OK;
}

/* Exact mode leaves operators of float16 apart: each of them rounds. */
static bool is_float(const om_rewriter *rw, const match *m) {
  const om_value_id mask = m->mask_kind < CHOSEN_IF_TRUE ? m->mask : m->fill;
  const om_value_id values[] = {m->q.value, m->k.value, m->v.value, mask};
  for (size_t i = 0; i < OM_COUNT_OF(values); ++i) {
    if (values[i] == OM_NO_VALUE || m->facts[values[i]].dtype == OM_DTYPE_NONE) continue;
    const om_dtype dtype = m->facts[values[i]].dtype;
    return dtype == OM_DTYPE_F32 || (dtype == OM_DTYPE_F16 && rw->mode == OM_MODE_FAST);
  }
  return false;
}

static om_status find(om_ctx *ctx, const om_rewriter *rw, match *m, bool *out_fits) {
  const om_node *last = &rw->graph->nodes[m->last];
  const om_node *product = NULL;
  om_value_id scores;
  *out_fits = false;
  if (match_probabilities(rw, last->inputs[0], m, &scores)) product = match_scores(rw, scores, m);
  if (!product) return OM_OK;
  OM_TRY(match_operand(ctx, rw, product->inputs[0], true, &m->q));
  OM_TRY(match_operand(ctx, rw, product->inputs[1], true, &m->k));
  OM_TRY(match_operand(ctx, rw, last->inputs[1], false, &m->v));
  const operand *const operands[] = {&m->q, &m->k, &m->v};
  for (size_t i = 0; i < OM_COUNT_OF(operands); ++i) {
    const uint32_t rank = operand_rank(m, operands[i]);
    if (rank == OM_RANK_UNKNOWN || rank < 2) return OM_OK;
  }
  if (!is_float(rw, m)) return OM_OK;
  return is_last_axis(ctx, rw, m, out_fits);
}

/* ---- The replacement ---- */

static void add_ints(om_attr *attrs, uint32_t *count, const char *name, const operand *x) {
  if (x->rank == 0) return;
  attrs[(*count)++] =
      (om_attr){.name = name, .kind = OM_ATTR_INTS, .count = x->rank, .ints = x->perm};
}

static void add_flag(om_attr *attrs, uint32_t *count, const char *name, bool is_set) {
  if (is_set) attrs[(*count)++] = (om_attr){.name = name, .kind = OM_ATTR_INT, .count = 1, .i = 1};
}

/* The Transpose of the result, if nothing else reads it, becomes the Attention: *out_y has its
 * permutation; else the MatMul does. */
static om_status choose_node(
    om_ctx *ctx, om_rewriter *rw, const match *m, operand *out_y, om_node_id *out_id) {
  om_value_id result = rw->graph->nodes[m->last].outputs[0];
  om_node_id transpose = om_rewriter_sole_reader(rw, result, "Transpose");
  bool fits = false;
  *out_y = (operand){.rank = 0};
  *out_id = m->last;
  if (transpose == OM_NO_NODE) return OM_OK;
  OM_TRY(add_perm(ctx, &rw->graph->nodes[transpose], out_y, &fits));
  if (!fits) return OM_OK;
  *out_id = transpose;
  return om_rewriter_drop(
      ctx, rw, m->last, "merged into '%.150s'", rw->graph->nodes[transpose].name);
}

/* The mask as an operand: of Where and Sub, a node that layers share. */
static om_status make_mask(
    om_ctx *ctx, om_rewriter *rw, const match *m, joining *all, om_value_id *out_mask) {
  const om_tensor *fill = om_rewriter_constant(rw, m->fill);
  om_value_id inputs[3] = {m->mask};
  om_rewritten_node node = {.type = "Neg", .opset = 13, .inputs = inputs, .input_count = 1};
  *out_mask = m->mask;
  if (m->mask_kind == NO_MASK || m->mask_kind == ADDED) return OM_OK;
  om_dtype dtype = m->facts[m->mask].dtype;
  if (m->mask_kind != SUBTRACTED) {
    om_value_id *zero = &all->zeros[fill->dtype == OM_DTYPE_F16];
    const om_tensor like = {.dtype = fill->dtype};
    void *data; /* zeroed */
    if (*zero == OM_NO_VALUE) {
      OM_TRY(om_rewriter_add_constant(ctx, rw, "shown", &like, &data, zero));
    }
    inputs[1] = m->mask_kind == CHOSEN_IF_TRUE ? *zero : m->fill;
    inputs[2] = m->mask_kind == CHOSEN_IF_TRUE ? m->fill : *zero;
    node = (om_rewritten_node){.type = "Where", .opset = 16, .inputs = inputs, .input_count = 3};
    dtype = fill->dtype;
  }
  const char *name =
      om_pool_format(ctx, &rw->graph->pool, "%s.mask", rw->graph->nodes[m->softmax].name);
  if (!name) return OM_E_OUT_OF_MEMORY;
  return om_rewriter_share_node(ctx, rw, all->first_new, name, dtype, &node, out_mask);
}

static om_status replace(om_ctx *ctx, om_rewriter *rw, const match *m, joining *all) {
  om_attr attrs[9];
  uint32_t count = 0;
  om_value_id mask;
  om_node_id id;
  operand *y = OM_POOL_NEW(ctx, &rw->graph->pool, operand, 4); /* attributes live on */
  if (!y) return OM_E_OUT_OF_MEMORY;
  y[1] = m->q;
  y[2] = m->k;
  y[3] = m->v;
  OM_TRY(make_mask(ctx, rw, m, all, &mask));
  OM_TRY(choose_node(ctx, rw, m, &y[0], &id));
  add_ints(attrs, &count, "y_perm", &y[0]);
  add_ints(attrs, &count, "q_perm", &y[1]);
  add_ints(attrs, &count, "k_perm", &y[2]);
  add_ints(attrs, &count, "v_perm", &y[3]);
  add_flag(attrs, &count, "q_divides", m->q.divides);
  add_flag(attrs, &count, "k_divides", m->k.divides);
  add_flag(attrs, &count, "divides", m->divides);
  add_flag(attrs, &count, "selects", m->mask_kind >= CHOSEN_IF_TRUE);
  add_flag(attrs, &count, "zeroes_nan", m->zeroes_nan);
  const om_value_id inputs[] = {
      m->q.value, m->k.value, m->v.value, mask, m->q.scale, m->k.scale, m->scale};
  const om_rewritten_node node = {.domain = "onemodel",
                                  .type = "Attention",
                                  .opset = 1,
                                  .inputs = inputs,
                                  .input_count = OM_COUNT_OF(inputs),
                                  .attrs = attrs,
                                  .attr_count = count};
  for (uint32_t i = 0; i < m->part_count; ++i) {
    OM_TRY(
        om_rewriter_drop(ctx, rw, m->parts[i], "merged into '%.150s'", rw->graph->nodes[id].name));
  }
  return om_rewriter_become(ctx, rw, id, &node);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch */
  joining all = {(om_node_id)rw->graph->node_count, {OM_NO_VALUE, OM_NO_VALUE}};
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  for (om_node_id id = 0; id < all.first_new; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    match m = {.last = id, .facts = facts, .mask = OM_NO_VALUE, .fill = OM_NO_VALUE};
    bool does_fit = false;
    if (!node->type || node->domain[0] != '\0' || strcmp(node->type, "MatMul") != 0) continue;
    OM_GO(find(ctx, rw, &m, &does_fit));
    if (does_fit) OM_GO(replace(ctx, rw, &m, &all));
  }
done:
  om_delete(ctx, facts);
  return st;
}

const om_rewrite om_rewrite_attention = {
    .name = "fused_attention",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
