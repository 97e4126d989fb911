/* An Einsum as products, so that devices and other rewrites see them. Operands are joined from left
 * to right, as the Einsum does it (docs/exact.md). With b the letters that both sides of a join
 * have and that are needed later, m and n those of one side, k those that are not needed any more:
 *
 *     Transpose to [b, m, k] and [b, k, n] -> MatMul -> ... -> Transpose
 *
 * Several letters of a kind are joined to one axis by a Reshape. A letter of k that one side lacks
 * is repeated there. Without a k the join is a Mul, to which 0 is added, as to any sum. A letter
 * that a term names twice is taken from the diagonal first, by a Slice of both axes as one. An
 * Einsum of one operand that sums nothing becomes a Transpose, one that sums is joined with ones.
 * All have the bits of the Einsum, so this is for both modes. Where an extent may repeat that a sum
 * takes, or operands do not fit, the Einsum stays, and says so itself.
 */
#include "ops/op_einsum.h"
#include "rewrite/om_compose.h"

enum { MOST_LABELS = 2 * OM_MAX_RANK };

typedef struct term { /* an operand, or what becomes of it: a label for each axis */
  om_value_id value;
  uint32_t rank;
  uint8_t labels[MOST_LABELS];
} term;

typedef struct equation {
  term terms[OM_EINSUM_TERMS];
  uint32_t count;
  term result;
  int64_t extents[OM_EINSUM_LABELS]; /* -1: not known */
  om_dtype dtype;
  bool is_wide; /* float16 that is computed in float32 and rounded at the end */
} equation;

static bool has_label(const term *t, uint8_t label) {
  return memchr(t->labels, label, t->rank) != NULL;
}

static uint32_t place_of(const term *t, uint8_t label) {
  return (uint32_t)((const uint8_t *)memchr(t->labels, label, t->rank) - t->labels);
}

static void append(term *t, uint8_t label) {
  t->labels[t->rank++] = label;
}

static om_einsum_set set_of(const term *t) {
  om_einsum_set set = 0;
  for (uint32_t i = 0; i < t->rank; ++i) set |= OM_EINSUM_BIT(t->labels[i]);
  return set;
}

/* The labels of a set in their order, which is that of the equation. */
static term term_of(om_einsum_set set) {
  term t = {.rank = 0};
  for (uint8_t label = 0; label < OM_EINSUM_LABELS && t.rank < MOST_LABELS; ++label) {
    if (set & OM_EINSUM_BIT(label)) append(&t, label);
  }
  return t;
}

static uint32_t count_of(om_einsum_set set) {
  return (uint32_t)__builtin_popcountll(set);
}

/* ---- Does it fit? ---- */

/* The term with `dots` axes in place of its ellipsis. */
static void read_term(const om_einsum_term *source, uint32_t dots, term *out) {
  out->rank = 0;
  for (uint32_t i = 0; i < source->count; ++i) {
    const uint8_t label = source->labels[i];
    for (uint32_t k = 0; label == OM_EINSUM_DOTS && k < dots; ++k) {
      append(out, (uint8_t)(OM_EINSUM_ELLIPSIS + k));
    }
    if (label != OM_EINSUM_DOTS) append(out, label);
  }
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
  read_term(source, dots, out);
  return true;
}

/* Notes the operand's extents. False: a diagonal of axes that differ (what a Reshape finds later
 * where they are not known), or a letter of a sum that may have an extent of 1 beside another, or
 * has two. */
static bool note_extents(const om_composer *c, equation *e, uint32_t index, om_einsum_set noted) {
  const term *t = &e->terms[index];
  const om_einsum_set kept = set_of(&e->result);
  om_einsum_set own = 0;
  for (uint32_t i = 0; i < t->rank; ++i) {
    const uint8_t label = t->labels[i];
    const om_einsum_set bit = OM_EINSUM_BIT(label);
    const int64_t extent = om_compose_extent(c, t->value, (int)i);
    const int64_t before = e->extents[label];
    if ((own & bit) && extent >= 0 && before >= 0 && extent != before) return false;
    if ((noted & bit) && !(kept & bit) && extent != before) {
      if (extent == 1 || before == 1 || (extent >= 0 && before >= 0)) return false;
    }
    if (!((noted | own) & bit) || before < 0 || before == 1) e->extents[label] = extent;
    own |= bit;
  }
  return true;
}

static bool read_equation(const om_composer *c, equation *e) {
  const om_einsum_equation *source = c->node.params;
  uint32_t dots = UINT32_MAX;
  e->count = c->node.input_count;
  e->dtype = om_compose_dtype(c, om_compose_input(c, 0));
  for (uint32_t i = 0; i < e->count; ++i) {
    if (om_compose_dtype(c, om_compose_input(c, i)) != e->dtype) return false;
    if (!read_operand(c, i, &dots, &e->terms[i])) return false;
  }
  read_term(&source->result, dots == UINT32_MAX ? 0 : dots, &e->result);
  om_einsum_set noted = 0;
  for (uint32_t i = 0; i < OM_EINSUM_LABELS; ++i) e->extents[i] = -1;
  for (uint32_t i = 0; i < e->count; ++i) {
    if (!note_extents(c, e, i, noted)) return false;
    noted |= set_of(&e->terms[i]);
  }
  return e->result.rank <= OM_MAX_RANK;
}

/* What the result and the operands from `first` on have. */
static om_einsum_set needed_later(const equation *e, uint32_t first) {
  om_einsum_set set = set_of(&e->result);
  for (uint32_t i = first; i < e->count; ++i) set |= set_of(&e->terms[i]);
  return set;
}

/* No tensor on the way has more axes than a tensor may. */
static bool are_ranks_fit(const equation *e) {
  om_einsum_set a = set_of(&e->terms[0]);
  for (uint32_t i = 1; i < e->count; ++i) {
    const om_einsum_set b = set_of(&e->terms[i]), later = needed_later(e, i + 1);
    const om_einsum_set ends = (a | b) & ~later;
    if (count_of(a | ends) > OM_MAX_RANK || count_of(b | ends) > OM_MAX_RANK) return false;
    a = (a | b) & later;
    if (count_of(a) > OM_MAX_RANK) return false;
  }
  return true;
}

static bool is_type_fit(om_dtype dtype) {
  const om_dtype_set fit = OM_DT_FLOAT | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_U32) |
                           OM_DT(OM_DTYPE_I64) | OM_DT(OM_DTYPE_U64);
  return dtype != OM_DTYPE_NONE && (fit & OM_DT(dtype)) != 0;
}

/* ---- Terms ---- */

static om_value_id turn(om_composer *c, const term *t, const term *wanted) {
  int64_t perm[MOST_LABELS];
  bool is_same = true;
  for (uint32_t i = 0; i < wanted->rank; ++i) {
    perm[i] = place_of(t, wanted->labels[i]);
    if (perm[i] != (int64_t)i) is_same = false;
  }
  return is_same ? t->value : om_compose_transpose(c, t->value, perm, wanted->rank);
}

static term joined(om_einsum_set first, om_einsum_set second, om_einsum_set third) {
  const om_einsum_set parts[] = {first, second, third};
  term all = {.rank = 0};
  for (size_t p = 0; p < OM_COUNT_OF(parts); ++p) {
    const term part = term_of(parts[p]);
    for (uint32_t i = 0; i < part.rank; ++i) append(&all, part.labels[i]);
  }
  return all;
}

/* A place of the term whose label stands in front of it, too; its rank: there is none. */
static uint32_t repeated_place(const term *t) {
  uint32_t i = 0;
  for (; i < t->rank; ++i) {
    if (place_of(t, t->labels[i]) != i) break;
  }
  return i;
}

/* Takes the diagonal of two axes with the same label, n elements each: of both as one axis every
 * (n + 1)-th. It is the last axis then. */
static void take_diagonal(om_composer *c, term *t, uint32_t second) {
  const uint8_t label = t->labels[second];
  const uint32_t first = place_of(t, label);
  const int64_t zero = 0, one = 1, last = -1;
  int64_t perm[MOST_LABELS];
  term rest = {.rank = 0};
  for (uint32_t i = 0; i < t->rank; ++i) {
    if (i == first || i == second) continue;
    perm[rest.rank] = i;
    append(&rest, t->labels[i]);
  }
  perm[rest.rank] = first;
  perm[rest.rank + 1] = second;
  const om_value_id turned = om_compose_transpose(c, t->value, perm, t->rank);
  const om_value_id extent = om_compose_shape(c, turned, rest.rank, rest.rank + 1);
  const om_value_id elems = om_compose_2(c, "Mul", extent, extent);
  om_value_id shape = elems;
  if (rest.rank > 0) {
    shape = om_compose_concat(c, om_compose_shape(c, turned, 0, rest.rank), shape, 0);
  }
  const om_value_id slice[] = {om_compose_2(c, "Reshape", turned, shape),
                               om_compose_ints(c, &zero, 1),
                               elems,
                               om_compose_ints(c, &last, 1),
                               om_compose_2(c, "Add", extent, om_compose_ints(c, &one, 1))};
  rest.value = om_compose_node(c, "Slice", slice, OM_COUNT_OF(slice), NULL, 0);
  append(&rest, label);
  *t = rest;
}

/* The operand in the type of computing, each label once. */
static term load(om_composer *c, const equation *e, uint32_t index) {
  term t = e->terms[index];
  for (uint32_t i = repeated_place(&t); i < t.rank; i = repeated_place(&t)) {
    take_diagonal(c, &t, i);
  }
  if (e->is_wide) t.value = om_compose_cast(c, t.value, OM_DTYPE_F32);
  return t;
}

/* ---- A join ---- */

typedef struct join {
  om_einsum_set both, rows, cols, ends; /* b, m, n, k */
} join;

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
    om_composer *c, const join *j, om_value_id y, om_value_id a, om_value_id b) {
  const uint32_t batch = count_of(j->both), m = count_of(j->rows), n = count_of(j->cols);
  const uint32_t from = batch + count_of(j->ends);
  if (m == 1 && n == 1) return y;
  om_value_id shape = om_compose_shape(c, y, 0, batch);
  shape = om_compose_concat(c, shape, om_compose_shape(c, a, batch, batch + m), 0);
  shape = om_compose_concat(c, shape, om_compose_shape(c, b, from, from + n), 0);
  return om_compose_2(c, "Reshape", y, shape);
}

/* x with the axes of `wanted`; those that it lacks have extent 1. */
static om_value_id with_axes(om_composer *c, const term *x, const term *wanted) {
  int64_t axes[MOST_LABELS];
  uint32_t count = 0;
  term own = {.rank = 0};
  for (uint32_t i = 0; i < wanted->rank; ++i) {
    if (has_label(x, wanted->labels[i])) {
      append(&own, wanted->labels[i]);
    } else {
      axes[count++] = i;
    }
  }
  const om_value_id turned = turn(c, x, &own);
  return count == 0 ? turned
                    : om_compose_2(c, "Unsqueeze", turned, om_compose_ints(c, axes, count));
}

/* The same; axes that x lacks have the extents of `other`. */
static om_value_id spread(om_composer *c, const term *x, const term *other, const term *wanted) {
  const int64_t one = 1;
  om_value_id shape = OM_NO_VALUE;
  const om_value_id turned = with_axes(c, x, wanted);
  if ((set_of(wanted) & ~set_of(x)) == 0) return turned;
  for (uint32_t i = 0; i < wanted->rank; ++i) {
    const uint8_t label = wanted->labels[i];
    const uint32_t place = has_label(x, label) ? 0 : place_of(other, label);
    const om_value_id extent = has_label(x, label)
                                   ? om_compose_ints(c, &one, 1)
                                   : om_compose_shape(c, other->value, place, place + 1);
    shape = i == 0 ? extent : om_compose_concat(c, shape, extent, 0);
  }
  return om_compose_2(c, "Expand", turned, shape);
}

static om_value_id multiply(om_composer *c, const join *j, const term *a, const term *b) {
  const term left = joined(j->both, j->rows, j->ends), right = joined(j->both, j->ends, j->cols);
  const uint32_t batch = count_of(j->both), depth = count_of(j->ends);
  const om_value_id x = spread(c, a, b, &left), y = spread(c, b, a, &right);
  const om_value_id product = om_compose_2(c,
                                           "MatMul",
                                           as_matrices(c, x, batch, count_of(j->rows), depth),
                                           as_matrices(c, y, batch, depth, count_of(j->cols)));
  return as_axes(c, j, product, x, y);
}

static om_value_id multiply_each(
    om_composer *c, const equation *e, const term *all, const term *a, const term *b) {
  const om_dtype dtype = e->is_wide ? OM_DTYPE_F32 : e->dtype;
  const om_value_id zero = om_compose_number(c, 0.0f, OM_NO_VALUE);
  const om_value_id y = om_compose_2(c, "Mul", with_axes(c, a, all), with_axes(c, b, all));
  if (OM_DT(dtype) & OM_DT_INT) return y;
  return om_compose_2(c, "Add", y, dtype == OM_DTYPE_F32 ? zero : om_compose_cast(c, zero, dtype));
}

/* Joins both; what is not in `later` is summed. */
static term join_terms(
    om_composer *c, const equation *e, const term *a, const term *b, om_einsum_set later) {
  const om_einsum_set in_a = set_of(a), in_b = set_of(b);
  const join j = {.both = in_a & in_b & later,
                  .rows = in_a & ~in_b & later,
                  .cols = in_b & ~in_a & later,
                  .ends = (in_a | in_b) & ~later};
  term y = joined(j.both, j.rows, j.cols);
  y.value = j.ends != 0 ? multiply(c, &j, a, b) : multiply_each(c, e, &y, a, b);
  return y;
}

/* Ones for the letters of t that are summed. */
static term ones_for(om_composer *c, const equation *e, const term *t) {
  const term ends = term_of(set_of(t) & ~set_of(&e->result));
  om_value_id one = om_compose_number(c, 1.0f, OM_NO_VALUE), shape = OM_NO_VALUE;
  term ones = ends;
  if (e->dtype != OM_DTYPE_F32) one = om_compose_cast(c, one, e->dtype);
  for (uint32_t i = 0; i < ends.rank; ++i) {
    const uint32_t place = place_of(t, ends.labels[i]);
    const om_value_id extent = om_compose_shape(c, t->value, place, place + 1);
    shape = i == 0 ? extent : om_compose_concat(c, shape, extent, 0);
  }
  ones.value = om_compose_2(c, "Expand", one, shape);
  return ones;
}

static void compose(om_composer *c, equation *e) {
  const bool sums = (set_of(&e->terms[0]) | set_of(&e->terms[e->count - 1])) & ~set_of(&e->result);
  const bool is_half = e->dtype == OM_DTYPE_F16 || e->dtype == OM_DTYPE_BF16;
  e->is_wide = is_half && e->count > 1 && !(e->count == 2 && sums);
  term y = load(c, e, 0);
  if (e->count == 1 && sums) {
    const term ones = ones_for(c, e, &y);
    y = join_terms(c, e, &y, &ones, set_of(&e->result));
  }
  for (uint32_t i = 1; i < e->count; ++i) {
    const term next = load(c, e, i);
    y = join_terms(c, e, &y, &next, needed_later(e, i + 1));
  }
  om_value_id result = turn(c, &y, &e->result);
  if (e->is_wide) result = om_compose_cast(c, result, e->dtype);
  om_compose_result(c, 0, result);
}

/* ---- The rewrite ---- */

static om_status replace(om_ctx *ctx, om_rewriter *rw, om_node_id id, const om_value_fact *facts) {
  om_status st = OM_OK;
  equation *e = NULL; /* too large for a frame */
  om_composer c = {.ctx = ctx,
                   .rw = rw,
                   .facts = facts,
                   .fact_count = rw->graph->value_count,
                   .node = rw->graph->nodes[id]};
  OM_GO_NEW(e, 1);
  if (!read_equation(&c, e) || !is_type_fit(e->dtype) || !are_ranks_fit(e)) goto done;
  compose(&c, e);
  OM_GO(c.status);
  OM_GO(om_rewriter_drop(ctx, rw, id, "composed of %u others", (unsigned)c.node_count));
done:
  om_delete(ctx, e);
  return st;
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
    .name = "einsum_as_products",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
