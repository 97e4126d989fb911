/* An Einsum that is one product, as MatMul, so that devices and other rewrites see one: with b the
 * letters that both operands have and that the result keeps, k those of both that it lacks, m and n
 * those of one alone, which it keeps,
 *
 *     Transpose to [b, m, k] and [b, k, n] -> MatMul -> Transpose
 *
 * Several letters of a kind are joined to one axis by a Reshape. An Einsum that only turns its
 * operand becomes a Transpose. Both have the bits of the Einsum, so this is for both modes. Where
 * an extent may repeat, or operands do not fit, the Einsum stays, and says so itself.
 */
#include "ops/op_einsum.h"
#include "rewrite/om_compose.h"

typedef struct term { /* an operand, or what becomes of it: a label for each axis */
  om_value_id value;
  uint32_t rank;
  uint8_t labels[2 * OM_MAX_RANK];
} term;

static bool has_label(const term *t, uint8_t label) {
  return memchr(t->labels, label, t->rank) != NULL;
}

static void append(term *t, uint8_t label) {
  t->labels[t->rank++] = label;
}

/* ---- Does it fit? ---- */

/* The term with `dots` axes in place of its ellipsis; false: a letter occurs twice. */
static bool read_term(const om_einsum_term *source, uint32_t dots, term *out) {
  out->rank = 0;
  for (uint32_t i = 0; i < source->count; ++i) {
    const uint8_t label = source->labels[i];
    if (label != OM_EINSUM_DOTS && has_label(out, label)) return false;
    for (uint32_t k = 0; label == OM_EINSUM_DOTS && k < dots; ++k) {
      append(out, (uint8_t)(OM_EINSUM_ELLIPSIS + k));
    }
    if (label != OM_EINSUM_DOTS) append(out, label);
  }
  return true;
}

/* Reads the operand; the ellipses of all stand for as many axes (UINT32_MAX: not met yet). */
static bool read_operand(const om_composer *c, uint32_t index, uint32_t *inout_dots, term *out) {
  const om_einsum_equation *e = c->node.params;
  const om_einsum_term *source = &e->terms[index];
  const uint32_t rank = om_compose_rank(c, om_compose_input(c, index));
  const bool has_dots = memchr(source->labels, OM_EINSUM_DOTS, source->count) != NULL;
  uint32_t dots = 0;
  out->value = om_compose_input(c, index);
  if (has_dots) {
    if (rank == OM_RANK_UNKNOWN || rank + 1 < source->count) return false;
    dots = rank + 1 - source->count;
    if (*inout_dots != UINT32_MAX && *inout_dots != dots) return false;
    *inout_dots = dots;
  } else if (rank != OM_RANK_UNKNOWN && rank != source->count) {
    return false;
  }
  return read_term(source, dots, out);
}

/* Every label of t is kept, or `other` has it too. */
static bool ends_in_other(const term *t, const term *other, const term *result) {
  for (uint32_t i = 0; i < t->rank; ++i) {
    if (!has_label(result, t->labels[i]) && !has_label(other, t->labels[i])) return false;
  }
  return true;
}

/* True if a label that ends may have an extent of 1 beside another, or has two. */
static bool may_repeat(const om_composer *c, const term *a, const term *b, const term *ends) {
  for (uint32_t i = 0; i < ends->rank; ++i) {
    const uint8_t *in_a = memchr(a->labels, ends->labels[i], a->rank);
    const uint8_t *in_b = memchr(b->labels, ends->labels[i], b->rank);
    const int64_t x = om_compose_extent(c, a->value, (int)(in_a - a->labels));
    const int64_t y = om_compose_extent(c, b->value, (int)(in_b - b->labels));
    if (x == 1 || y == 1 ? x != y : x >= 0 && y >= 0 && x != y) return true;
  }
  return false;
}

static bool is_type_fit(const om_composer *c) {
  const om_dtype_set fit = OM_DT_FLOAT | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_U32) |
                           OM_DT(OM_DTYPE_I64) | OM_DT(OM_DTYPE_U64);
  const om_dtype dtype = om_compose_dtype(c, om_compose_input(c, 0));
  for (uint32_t i = 1; i < c->node.input_count; ++i) {
    if (om_compose_dtype(c, om_compose_input(c, i)) != dtype) return false;
  }
  return dtype != OM_DTYPE_NONE && (fit & OM_DT(dtype)) != 0;
}

/* ---- The product ---- */

typedef struct product {
  term a, b, result;
  term both, ends, rows, cols; /* b, k, m, n */
} product;

/* The labels of t that `other` has (or not) and the result keeps (or not). */
static void select_labels(
    const term *t, const term *other, const term *result, bool is_shared, bool is_kept, term *out) {
  out->rank = 0;
  for (uint32_t i = 0; i < t->rank; ++i) {
    const uint8_t label = t->labels[i];
    if (has_label(other, label) == is_shared && has_label(result, label) == is_kept) {
      append(out, label);
    }
  }
}

static term joined(const term *a, const term *b, const term *d) {
  const term *const parts[] = {a, b, d};
  term all = {.rank = 0};
  for (size_t p = 0; p < OM_COUNT_OF(parts); ++p) {
    for (uint32_t i = 0; i < parts[p]->rank; ++i) append(&all, parts[p]->labels[i]);
  }
  return all;
}

static om_value_id turn(om_composer *c, const term *t, const term *wanted) {
  int64_t perm[2 * OM_MAX_RANK];
  bool is_same = true;
  for (uint32_t i = 0; i < wanted->rank; ++i) {
    const uint8_t *at = memchr(t->labels, wanted->labels[i], t->rank);
    perm[i] = at - t->labels;
    if (perm[i] != (int64_t)i) is_same = false;
  }
  return is_same ? t->value : om_compose_transpose(c, t->value, perm, wanted->rank);
}

/* The extents begin..end-1 of x as a list of one. */
static om_value_id joined_extent(om_composer *c, om_value_id x, uint32_t begin, uint32_t end) {
  const int64_t one = 1;
  if (begin == end) return om_compose_ints(c, &one, 1);
  const om_value_id extents = om_compose_shape(c, x, begin, end);
  return end - begin == 1 ? extents : om_compose_1(c, "ReduceProd", extents);
}

/* x, [b..., p..., q...], as [b..., p, q]. */
static om_value_id as_matrices(om_composer *c, om_value_id x, uint32_t b, uint32_t p, uint32_t q) {
  if (p == 1 && q == 1) return x;
  om_value_id shape =
      om_compose_concat(c, joined_extent(c, x, b, b + p), joined_extent(c, x, b + p, b + p + q), 0);
  if (b > 0) shape = om_compose_concat(c, om_compose_shape(c, x, 0, b), shape, 0);
  return om_compose_2(c, "Reshape", x, shape);
}

/* The product, [b..., m, n], with the axes that a, [b..., m..., k...], and b, [b..., k..., n...],
 * have for m and n. */
static om_value_id as_axes(
    om_composer *c, const product *p, om_value_id y, om_value_id a, om_value_id b) {
  const uint32_t batch = p->both.rank, m = p->rows.rank, n = p->cols.rank;
  const uint32_t from = batch + p->ends.rank;
  if (m == 1 && n == 1) return y;
  om_value_id shape = om_compose_shape(c, y, 0, batch);
  shape = om_compose_concat(c, shape, om_compose_shape(c, a, batch, batch + m), 0);
  shape = om_compose_concat(c, shape, om_compose_shape(c, b, from, from + n), 0);
  return om_compose_2(c, "Reshape", y, shape);
}

static bool read_product(const om_composer *c, product *p) {
  const om_einsum_equation *e = c->node.params;
  uint32_t dots = UINT32_MAX;
  if (!read_operand(c, 0, &dots, &p->a) || !read_operand(c, 1, &dots, &p->b)) return false;
  if (!read_term(&e->result, dots == UINT32_MAX ? 0 : dots, &p->result)) return false;
  select_labels(&p->a, &p->b, &p->result, true, true, &p->both);
  select_labels(&p->a, &p->b, &p->result, true, false, &p->ends);
  select_labels(&p->a, &p->b, &p->result, false, true, &p->rows);
  select_labels(&p->b, &p->a, &p->result, false, true, &p->cols);
  return p->ends.rank > 0 && p->result.rank <= OM_MAX_RANK &&
         p->both.rank + p->rows.rank + p->cols.rank == p->result.rank &&
         ends_in_other(&p->a, &p->b, &p->result) && ends_in_other(&p->b, &p->a, &p->result) &&
         !may_repeat(c, &p->a, &p->b, &p->ends);
}

static bool compose_product(om_composer *c) {
  product p;
  if (!read_product(c, &p)) return false;
  const term left = joined(&p.both, &p.rows, &p.ends), right = joined(&p.both, &p.ends, &p.cols);
  const om_value_id a = turn(c, &p.a, &left), b = turn(c, &p.b, &right);
  const uint32_t batch = p.both.rank, depth = p.ends.rank;
  term y = joined(&p.both, &p.rows, &p.cols);
  y.value = om_compose_2(c,
                         "MatMul",
                         as_matrices(c, a, batch, p.rows.rank, depth),
                         as_matrices(c, b, batch, depth, p.cols.rank));
  y.value = as_axes(c, &p, y.value, a, b);
  om_compose_result(c, 0, turn(c, &y, &p.result));
  return true;
}

static bool compose_turn(om_composer *c) {
  const om_einsum_equation *e = c->node.params;
  uint32_t dots = UINT32_MAX;
  term x, result;
  if (!read_operand(c, 0, &dots, &x)) return false;
  if (!read_term(&e->result, dots == UINT32_MAX ? 0 : dots, &result)) return false;
  if (result.rank != x.rank) return false;
  om_compose_result(c, 0, turn(c, &x, &result));
  return true;
}

/* ---- The rewrite ---- */

static om_status replace(om_ctx *ctx, om_rewriter *rw, om_node_id id, const om_value_fact *facts) {
  om_composer c = {.ctx = ctx,
                   .rw = rw,
                   .facts = facts,
                   .fact_count = rw->graph->value_count,
                   .node = rw->graph->nodes[id]};
  bool fits = is_type_fit(&c);
  if (fits && c.node.input_count == 1) {
    fits = compose_turn(&c);
  } else if (fits) {
    fits = c.node.input_count == 2 && compose_product(&c);
  }
  OM_TRY(c.status);
  return fits ? om_rewriter_drop(ctx, rw, id, "composed of %u others", (unsigned)c.node_count)
              : OM_OK;
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch */
  const size_t node_count = rw->graph->node_count;
  for (om_node_id id = 0; id < node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    if (!node->type || node->domain[0] != '\0' || strcmp(node->type, "Einsum") != 0) continue;
    om_delete(ctx, facts); /* those of what was added are asked for, too */
    facts = NULL;
    OM_GO(om_value_facts_create(ctx, rw, &facts));
    OM_GO(replace(ctx, rw, id, facts));
  }
done:
  om_delete(ctx, facts);
  return st;
}

const om_rewrite om_rewrite_einsum = {
    .name = "einsum_as_product",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
