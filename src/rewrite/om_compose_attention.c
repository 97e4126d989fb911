/* Attention as MatMul, Softmax, MatMul, with what stands around them:
 *
 *     q and k, scaled -> MatMul -> scale -> cap -> + bias -> Softmax -> MatMul with v
 *
 * in the form that the rewrite of fused attention looks for. Where several heads of q share one of
 * k and v, the heads become two axes, of which k and v have one of extent 1, so nothing is copied;
 * where a mask that differs by heads or batches, or the caller's wish for the scores stands against
 * that, k and v are repeated.
 */
#include "rewrite/om_compose_attention.h"

#include <math.h>

typedef struct attention {
  om_composer *c;
  om_attention_form *f;
  int64_t groups;      /* heads of q that share one of k; 0: not known */
  bool has_groups;     /* the heads are two axes */
  om_value_id q, k, v; /* heads in front */
  om_value_id keys;    /* their number, a scalar */
  om_value_id mask;    /* what is added to the scores; OM_NO_VALUE: nothing */
  uint32_t mask_rank;
  bool may_hide_rows;
} attention;

/* ---- Heads ---- */

om_value_id om_compose_split_heads(om_composer *c, om_value_id x, int64_t heads) {
  const int64_t dims[] = {0, 0, heads, -1};
  const int64_t perm[] = {0, 2, 1, 3};
  return om_compose_transpose(c, om_compose_reshape(c, x, dims, 4), perm, 4);
}

/* The first axes as given, the others as those of x from `from` on. */
static om_value_id reshape_front(
    om_composer *c, om_value_id x, const int64_t *dims, uint32_t count, int64_t from, int64_t to) {
  const om_value_id front = om_compose_ints(c, dims, count);
  return om_compose_2(
      c, "Reshape", x, om_compose_concat(c, front, om_compose_shape(c, x, from, to), 0));
}

/* Each head of x as often as heads of q share it. */
static om_value_id repeat_heads(attention *a, om_value_id x) {
  om_composer *c = a->c;
  const int64_t ones[] = {1, 1}, dims[] = {0, -1};
  om_value_id times = OM_NO_VALUE;
  if (a->groups == 1) return x;
  if (a->groups > 0) {
    times = om_compose_ints(c, &a->groups, 1);
  } else {
    times = om_compose_2(c, "Div", om_compose_shape(c, a->q, 1, 2), om_compose_shape(c, x, 1, 2));
  }
  const om_value_id end = om_compose_ints(c, ones, 2);
  const om_value_id shape = om_compose_concat(c, om_compose_concat(c, end, times, 0), end, 0);
  const om_value_id wide = om_compose_2(c, "Expand", om_compose_unsqueeze(c, x, 2), shape);
  const om_value_id target =
      om_compose_concat(c, om_compose_ints(c, dims, 2), om_compose_shape(c, x, 2, 4), 0);
  return om_compose_2(c, "Reshape", wide, target);
}

/* How heads of q share those of k. */
static void count_groups(attention *a, bool wants_scores) {
  om_attention_form *f = a->f;
  if (f->q_heads == 0) f->q_heads = om_compose_extent(a->c, f->q, 1);
  if (f->kv_heads == 0) f->kv_heads = om_compose_extent(a->c, f->k, 1);
  if (f->q_heads <= 0 || f->kv_heads <= 0) return;
  if (f->q_heads % f->kv_heads != 0) {
    om_compose_fail(a->c,
                    "%lld heads of Q do not share %lld heads of K and V evenly.",
                    (long long)f->q_heads,
                    (long long)f->kv_heads);
    return;
  }
  const bool is_one_batch = om_compose_extent(a->c, f->q, 0) == 1;
  const bool has_batches = !is_one_batch && (f->mask_rank > 2 || f->lengths != OM_NO_VALUE);
  a->groups = f->q_heads / f->kv_heads;
  a->has_groups = a->groups > 1 && !wants_scores && !f->mask_has_heads && !has_batches;
}

static om_value_id place_kv(attention *a,
                            om_value_id x,
                            om_value_id past,
                            om_value_id *out_present) {
  om_composer *c = a->c;
  const om_attention_form *f = a->f;
  om_value_id present = f->is_k_flat ? om_compose_split_heads(c, x, f->kv_heads) : x;
  if (past != OM_NO_VALUE) present = om_compose_concat(c, past, present, 2);
  *out_present = present;
  return a->has_groups ? om_compose_unsqueeze(c, present, 2) : repeat_heads(a, present);
}

static void place_operands(attention *a) {
  om_composer *c = a->c;
  om_attention_form *f = a->f;
  const int64_t dims[] = {0, f->kv_heads, a->groups};
  a->q = f->is_q_flat ? om_compose_split_heads(c, f->q, f->q_heads) : f->q;
  if (a->has_groups) a->q = reshape_front(c, a->q, dims, 3, 2, 4);
  a->k = place_kv(a, f->k, f->past_k, &f->present_k);
  a->v = place_kv(a, f->v, f->past_v, &f->present_v);
  a->keys = om_compose_scalar_extent(c, f->present_k, 2);
}

/* ---- Masks ---- */

static void join_allowed(attention *a, om_value_id allowed, uint32_t rank) {
  om_attention_form *f = a->f;
  f->allowed = f->allowed == OM_NO_VALUE ? allowed : om_compose_2(a->c, "And", f->allowed, allowed);
  if (a->mask_rank != OM_RANK_UNKNOWN && rank > a->mask_rank) a->mask_rank = rank;
}

static om_value_id count_up(om_composer *c, om_value_id end) {
  return om_compose_3(c, "Range", om_compose_int(c, 0), end, om_compose_int(c, 1));
}

/* One for each entry of the batch, against [batch, heads, rows, keys]. */
static om_value_id by_batch(om_composer *c, om_value_id list) {
  const int64_t dims[] = {-1, 1, 1, 1};
  return om_compose_reshape(c, list, dims, 4);
}

static void hide_later(attention *a) {
  om_composer *c = a->c;
  const om_attention_form *f = a->f;
  const om_value_id row_count = om_compose_scalar_extent(c, f->q, f->is_q_flat ? 1 : 2);
  om_value_id rows = om_compose_unsqueeze(c, count_up(c, row_count), 1);
  uint32_t rank = 2;
  if (f->past_k != OM_NO_VALUE) {
    rows = om_compose_2(c, "Add", rows, om_compose_scalar_extent(c, f->past_k, 2));
  } else if (f->lengths != OM_NO_VALUE) {
    const om_value_id before = om_compose_2(c, "Sub", f->lengths, row_count);
    rows = om_compose_2(c, "Add", rows, by_batch(c, before));
    rank = 4;
  }
  join_allowed(a, om_compose_2(c, "LessOrEqual", count_up(c, a->keys), rows), rank);
}

static void hide_padding(attention *a) {
  om_composer *c = a->c;
  const om_value_id lengths = by_batch(c, a->f->lengths);
  join_allowed(a, om_compose_2(c, "Less", count_up(c, a->keys), lengths), 4);
}

/* Everything that hides keys, as one value that is added. */
static void make_mask(attention *a) {
  om_composer *c = a->c;
  om_attention_form *f = a->f;
  a->mask_rank = f->mask_rank;
  a->may_hide_rows =
      f->allowed != OM_NO_VALUE || f->bias != OM_NO_VALUE || f->lengths != OM_NO_VALUE;
  if (f->is_causal) hide_later(a);
  if (f->lengths != OM_NO_VALUE) hide_padding(a);
  a->mask = f->bias;
  if (f->allowed != OM_NO_VALUE) {
    const om_value_id seen = om_compose_number(c, 0.0f, f->q);
    const om_value_id hidden = om_compose_number(c, f->hidden, f->q);
    const om_value_id mask = om_compose_3(c, "Where", f->allowed, seen, hidden);
    a->mask = a->mask == OM_NO_VALUE ? mask : om_compose_2(c, "Add", a->mask, mask);
  }
  if (a->mask != OM_NO_VALUE && a->has_groups && a->mask_rank == 4) {
    a->mask = om_compose_unsqueeze(c, a->mask, 1);
  }
}

/* `x` with rows of 0 where all keys are hidden. */
static om_value_id zero_hidden_rows(attention *a, om_value_id x) {
  om_composer *c = a->c;
  const int64_t last = -1;
  if (!a->f->zeroes_hidden_rows || !a->may_hide_rows) return x;
  const om_value_id largest = om_compose_2(c, "ReduceMax", a->mask, om_compose_ints(c, &last, 1));
  const om_value_id lowest = om_compose_number(c, -INFINITY, a->f->q);
  return om_compose_3(c,
                      "Where",
                      om_compose_2(c, "Equal", largest, lowest),
                      om_compose_number(c, 0.0f, a->f->q),
                      x);
}

/* ---- The whole ---- */

static om_value_id scaled(const attention *a, om_value_id x) {
  return a->f->scale == OM_NO_VALUE ? x : om_compose_2(a->c, "Mul", x, a->f->scale);
}

static om_value_id make_product(attention *a) {
  static const int64_t turned[] = {0, 1, 3, 2}, turned_groups[] = {0, 1, 2, 4, 3};
  om_composer *c = a->c;
  const bool is_early = a->f->scales_operands;
  const om_value_id k = is_early ? scaled(a, a->k) : a->k;
  const om_value_id k_turned =
      om_compose_transpose(c, k, a->has_groups ? turned_groups : turned, a->has_groups ? 5 : 4);
  const om_value_id q = is_early ? scaled(a, a->q) : a->q;
  const om_value_id product = om_compose_2(c, "MatMul", q, k_turned);
  return is_early ? product : scaled(a, product);
}

static om_value_id capped(const attention *a, om_value_id x) {
  om_composer *c = a->c;
  if (a->f->softcap == 0.0f) return x;
  const om_value_id cap = om_compose_number(c, a->f->softcap, a->f->q);
  return om_compose_2(c, "Mul", om_compose_1(c, "Tanh", om_compose_2(c, "Div", x, cap)), cap);
}

static om_value_id make_probabilities(const attention *a, om_value_id x) {
  om_composer *c = a->c;
  const om_dtype precision = a->f->precision;
  const om_attr axis = {.name = "axis", .kind = OM_ATTR_INT, .count = 1, .i = -1};
  const bool casts = precision != OM_DTYPE_NONE && precision != om_compose_dtype(c, a->f->q);
  if (casts) x = om_compose_cast(c, x, precision);
  x = om_compose_node(c, "Softmax", &x, 1, &axis, 1);
  return casts ? om_compose_2(c, "CastLike", x, a->f->q) : x;
}

/* Back to q's form. */
static om_value_id place_result(const attention *a, om_value_id y) {
  static const int64_t flat[] = {0, 0, -1}, back[] = {0, 2, 1, 3};
  om_composer *c = a->c;
  const int64_t dims[] = {0, a->f->q_heads};
  if (a->has_groups) y = reshape_front(c, y, dims, 2, 3, 5);
  if (!a->f->is_q_flat) return y;
  return om_compose_reshape(c, om_compose_transpose(c, y, back, 4), flat, 3);
}

void om_compose_attention(om_composer *c, om_attention_form *f, bool wants_scores) {
  attention a = {.c = c, .f = f};
  count_groups(&a, wants_scores);
  place_operands(&a);
  make_mask(&a);
  f->scores[0] = make_product(&a);
  f->scores[1] = capped(&a, f->scores[0]);
  f->scores[2] = f->scores[1];
  if (a.mask != OM_NO_VALUE) f->scores[2] = om_compose_2(c, "Add", f->scores[1], a.mask);
  f->scores[3] = make_probabilities(&a, f->scores[2]);
  if (wants_scores) f->scores[3] = zero_hidden_rows(&a, f->scores[3]);
  om_value_id y = om_compose_2(c, "MatMul", f->scores[3], a.v);
  if (!wants_scores) y = zero_hidden_rows(&a, y);
  f->y = place_result(&a, y);
}
