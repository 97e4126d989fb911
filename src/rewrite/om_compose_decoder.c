/* What Microsoft's operators for attention stand for: MultiHeadAttention, Attention,
 * GroupQueryAttention with its cache, RotaryEmbedding. */
#include <math.h>

#include "rewrite/om_compose_attention.h"

static void refuse_input(om_composer *c, uint32_t index, const char *what) {
  if (om_compose_input(c, index) == OM_NO_VALUE) return;
  om_compose_refuse(c, "Its %s (input %u) is not implemented.", what, (unsigned)index);
}

static int64_t read_heads(om_composer *c, const char *name) {
  const int64_t heads = om_compose_attr_int(c, name, 0);
  if (heads <= 0 || heads > INT32_MAX) {
    om_compose_fail(c, "The attribute '%s' is %lld.", name, (long long)heads);
  }
  return heads;
}

/* The attribute 'scale', or 1 / sqrt(size of a head of q, which is flat) in double precision. */
static om_value_id make_scale(om_composer *c, const om_attention_form *f) {
  const float given = om_compose_attr_float(c, "scale", 0.0f);
  if (given != 0.0f) return om_compose_number(c, given, f->q);
  const om_value_id width = om_compose_scalar_extent(c, f->q, 2);
  const om_value_id size = om_compose_2(c, "Div", width, om_compose_int(c, f->q_heads));
  const om_value_id root = om_compose_1(c, "Sqrt", om_compose_cast(c, size, OM_DTYPE_F64));
  return om_compose_2(c, "CastLike", om_compose_1(c, "Reciprocal", root), f->q);
}

static om_attention_form plain_form(om_composer *c) {
  return (om_attention_form){.is_q_flat = true,
                             .is_k_flat = true,
                             .past_k = OM_NO_VALUE,
                             .past_v = OM_NO_VALUE,
                             .allowed = OM_NO_VALUE,
                             .bias = OM_NO_VALUE,
                             .lengths = OM_NO_VALUE,
                             .scale = OM_NO_VALUE,
                             .hidden = om_compose_attr_float(c, "mask_filter_value", -10000.0f),
                             .is_causal = om_compose_attr_int(c, "unidirectional", 0) != 0};
}

/* ---- Masks ---- */

/* Integers: how many keys each entry of the batch has, or for each key whether it is seen. */
static void read_mask(om_composer *c, uint32_t input, om_attention_form *f) {
  om_value_id mask = om_compose_input(c, input);
  const uint32_t rank = om_compose_rank(c, mask);
  if (mask == OM_NO_VALUE) return;
  if (rank == 1) {
    f->lengths = om_compose_cast(c, mask, OM_DTYPE_I64);
    return;
  }
  if (rank < 2 || rank > 4) {
    om_compose_refuse(c, "The rank of its mask is not known, or not 1 to 4.");
    return;
  }
  mask = om_compose_cast(c, mask, OM_DTYPE_BOOL);
  if (rank < 4) mask = om_compose_unsqueeze(c, mask, 1);
  if (rank < 3) mask = om_compose_unsqueeze(c, mask, 1);
  f->allowed = mask;
  f->mask_rank = 4;
}

static void read_bias(om_composer *c, uint32_t input, om_attention_form *f) {
  f->bias = om_compose_input(c, input);
  if (f->bias == OM_NO_VALUE) return;
  f->mask_rank = 4;
  f->mask_has_heads = true;
}

/* ---- MultiHeadAttention ---- */

/* x plus a third of a bias; it is for q, k and v, one after the other. */
static om_value_id add_third(om_composer *c, om_value_id x, om_value_id bias, int64_t part) {
  const int64_t extent = om_compose_extent(c, bias, 0);
  if (bias == OM_NO_VALUE) return x;
  if (extent <= 0 || extent % 3 != 0) {
    om_compose_fail(c, "Its bias does not have a third for each of Q, K and V.");
    return OM_NO_VALUE;
  }
  const int64_t third = extent / 3;
  return om_compose_2(c, "Add", x, om_compose_slice(c, bias, 0, part * third, (part + 1) * third));
}

static void compose_multi_head(om_composer *c) {
  enum {
    QUERY = 0,
    KEY = 1,
    VALUE = 2,
    BIAS = 3,
    MASK = 4,
    SCORES_BIAS = 5,
    PAST_K = 6,
    PAST_V = 7
  };
  const om_value_id bias = om_compose_input(c, BIAS);
  om_attention_form f = plain_form(c);
  const om_value_id k = om_compose_input(c, KEY), v = om_compose_input(c, VALUE);
  refuse_input(c, 8, "past_sequence_length");
  refuse_input(c, 9, "cache_indirection");
  if (k == OM_NO_VALUE || v == OM_NO_VALUE || om_compose_rank(c, k) == 5) {
    om_compose_refuse(c, "Packed forms of Q, K and V are not implemented.");
    return;
  }
  f.is_k_flat = om_compose_rank(c, k) != 4;
  f.q_heads = f.kv_heads = read_heads(c, "num_heads");
  f.q = add_third(c, om_compose_input(c, QUERY), bias, 0);
  f.k = f.is_k_flat ? add_third(c, k, bias, 1) : k;
  f.v = f.is_k_flat ? add_third(c, v, bias, 2) : v;
  f.past_k = om_compose_input(c, PAST_K);
  f.past_v = om_compose_input(c, PAST_V);
  f.scale = make_scale(c, &f);
  read_bias(c, SCORES_BIAS, &f);
  read_mask(c, MASK, &f);
  om_compose_attention(c, &f, om_compose_wants(c, 3));
  om_compose_result(c, 0, f.y);
  om_compose_result(c, 1, f.present_k);
  om_compose_result(c, 2, f.present_v);
  om_compose_result(c, 3, f.scores[0]);
}

/* ---- Attention ---- */

/* Where q, k and v begin in the projection, and where v ends; false: not known. */
static bool read_widths(om_composer *c, om_value_id weights, int64_t out_ends[4]) {
  const om_attr *sizes = om_node_attr(&c->node, "qkv_hidden_sizes");
  const int64_t width = om_compose_extent(c, weights, 1);
  out_ends[0] = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    const bool is_given = sizes && sizes->kind == OM_ATTR_INTS && sizes->count == 3;
    out_ends[i + 1] = out_ends[i] + (is_given ? sizes->ints[i] : width / 3);
  }
  return width > 0 && out_ends[3] == width;
}

static void compose_self(om_composer *c) {
  enum { INPUT = 0, WEIGHTS = 1, BIAS = 2, MASK = 3, PAST = 4, SCORES_BIAS = 5 };
  const om_value_id past = om_compose_input(c, PAST), bias = om_compose_input(c, BIAS);
  om_attention_form f = plain_form(c);
  om_value_id parts[3];
  int64_t ends[4];
  refuse_input(c, 6, "past_sequence_length");
  if (om_compose_attr_int(c, "do_rotary", 0) != 0) {
    om_compose_refuse(c, "'do_rotary' is not implemented.");
  }
  if (!read_widths(c, om_compose_input(c, WEIGHTS), ends)) {
    om_compose_refuse(c, "The widths of Q, K and V are not known.");
  }
  if (c->status != OM_OK) return;
  om_value_id all =
      om_compose_2(c, "MatMul", om_compose_input(c, INPUT), om_compose_input(c, WEIGHTS));
  if (bias != OM_NO_VALUE) all = om_compose_2(c, "Add", all, bias);
  for (uint32_t i = 0; i < 3; ++i) parts[i] = om_compose_slice(c, all, 2, ends[i], ends[i + 1]);
  f.q = parts[0];
  f.k = parts[1];
  f.v = parts[2];
  f.q_heads = f.kv_heads = read_heads(c, "num_heads");
  if (past != OM_NO_VALUE) {
    f.past_k = om_compose_2(c, "Gather", past, om_compose_int(c, 0));
    f.past_v = om_compose_2(c, "Gather", past, om_compose_int(c, 1));
  }
  f.scale = make_scale(c, &f);
  read_bias(c, SCORES_BIAS, &f);
  read_mask(c, MASK, &f);
  om_compose_attention(c, &f, false);
  om_compose_result(c, 0, f.y);
  if (!om_compose_wants(c, 1)) return;
  om_compose_result(
      c,
      1,
      om_compose_concat(
          c, om_compose_unsqueeze(c, f.present_k, 0), om_compose_unsqueeze(c, f.present_v, 0), 0));
}

/* ---- Positions ---- */

static om_value_id count_up(om_composer *c, om_value_id end) {
  return om_compose_3(c, "Range", om_compose_int(c, 0), end, om_compose_int(c, 1));
}

static om_value_id rotate(om_composer *c,
                          om_value_id x,
                          om_value_id cos,
                          om_value_id sin,
                          om_value_id positions,
                          int64_t heads,
                          int64_t size,
                          int64_t interleaved) {
  const om_value_id inputs[] = {x, cos, sin, positions};
  const om_attr attrs[] = {
      {.name = "num_heads", .kind = OM_ATTR_INT, .count = 1, .i = heads},
      {.name = "rotary_embedding_dim", .kind = OM_ATTR_INT, .count = 1, .i = size},
      {.name = "interleaved", .kind = OM_ATTR_INT, .count = 1, .i = interleaved}};
  return om_compose_node(c, "RotaryEmbedding", inputs, 4, attrs, 3);
}

static void compose_rotary(om_composer *c) {
  const om_value_id x = om_compose_input(c, 0);
  const uint32_t rank = om_compose_rank(c, x);
  om_value_id positions = om_compose_input(c, 1);
  if (om_compose_attr_float(c, "scale", 1.0f) != 1.0f ||
      om_compose_attr_int(c, "is_packed_batching", 0) != 0) {
    om_compose_refuse(c, "'scale' and 'is_packed_batching' are not implemented.");
  }
  if (om_compose_rank(c, positions) == 1) { /* the first one, of every entry of the batch */
    const int64_t axis = rank == 4 ? 2 : 1;
    const om_value_id counted = count_up(c, om_compose_scalar_extent(c, x, axis));
    const om_value_id shape = om_compose_concat(
        c, om_compose_shape(c, x, 0, 1), om_compose_shape(c, x, axis, axis + 1), 0);
    positions = om_compose_2(c, "Expand", om_compose_2(c, "Add", counted, positions), shape);
  }
  om_compose_result(c,
                    0,
                    rotate(c,
                           x,
                           om_compose_input(c, 2),
                           om_compose_input(c, 3),
                           positions,
                           om_compose_attr_int(c, "num_heads", 0),
                           om_compose_attr_int(c, "rotary_embedding_dim", 0),
                           om_compose_attr_int(c, "interleaved", 0)));
}

/* ---- GroupQueryAttention ---- */

enum { /* inputs */
       QUERY = 0,
       KEY = 1,
       VALUE = 2,
       PAST_K = 3,
       PAST_V = 4,
       LAST_KEYS = 5,
       COS = 7,
       SIN = 8,
       POSITIONS = 9,
       SCORES_BIAS = 10
};

/* Heads begin..end-1 of a packed query, flat. */
static om_value_id take_heads(
    om_composer *c, om_value_id packed, int64_t all, int64_t begin, int64_t end) {
  const int64_t split[] = {0, 0, all, -1}, flat[] = {0, 0, -1};
  const om_value_id heads = om_compose_reshape(c, packed, split, 4);
  return om_compose_reshape(c, om_compose_slice(c, heads, 2, begin, end), flat, 3);
}

static void read_operands(om_composer *c, om_attention_form *f) {
  const om_value_id query = om_compose_input(c, QUERY);
  const int64_t q = f->q_heads, kv = f->kv_heads, all = q + 2 * kv;
  f->q = query;
  f->k = om_compose_input(c, KEY);
  f->v = om_compose_input(c, VALUE);
  if (f->k != OM_NO_VALUE && f->v != OM_NO_VALUE) return;
  f->q = take_heads(c, query, all, 0, q);
  f->k = take_heads(c, query, all, q, q + kv);
  f->v = take_heads(c, query, all, q + kv, all);
}

/* The cache with the new rows, flat, behind what each entry of the batch has: [batch, 1, rows, 1]
 * are their places. */
static om_value_id extend_cache(
    om_composer *c, om_value_id past, om_value_id rows, om_value_id places, int64_t heads) {
  const om_attr axis = {.name = "axis", .kind = OM_ATTR_INT, .count = 1, .i = 2};
  const int64_t front[] = {0, 0, 0, 0, 0, 0}, back[] = {0};
  const om_value_id added = om_compose_split_heads(c, rows, heads);
  if (past == OM_NO_VALUE) return added;
  if (om_compose_extent(c, rows, 0) == 1 || om_compose_extent(c, past, 0) == 1) {
    return om_compose_concat(c, past, added, 2);
  }
  om_value_id pads =
      om_compose_concat(c, om_compose_ints(c, front, 6), om_compose_shape(c, rows, 1, 2), 0);
  pads = om_compose_concat(c, pads, om_compose_ints(c, back, 1), 0);
  const om_value_id inputs[] = {om_compose_2(c, "Pad", past, pads),
                                om_compose_2(c, "Expand", places, om_compose_1(c, "Shape", added)),
                                added};
  return om_compose_node(c, "ScatterElements", inputs, 3, &axis, 1);
}

/* Which keys a row sees: those up to its place, and of a window only the last. */
static om_value_id see_keys(om_composer *c, om_value_id keys, om_value_id places) {
  const int64_t window = om_compose_attr_int(c, "local_window_size", -1);
  const om_value_id numbers = count_up(c, keys);
  const om_value_id seen = om_compose_2(c, "LessOrEqual", numbers, places);
  if (window <= 0) return seen;
  const om_value_id before = om_compose_2(c, "Sub", places, om_compose_int(c, window));
  return om_compose_2(c, "And", seen, om_compose_2(c, "Greater", numbers, before));
}

/* The place of each new row, [batch, 1, rows, 1]: a first run begins at 0, whatever its padding. */
static om_value_id place_rows(om_composer *c, om_value_id q) {
  const int64_t by_batch[] = {-1, 1, 1, 1};
  const om_value_id row_count = om_compose_scalar_extent(c, q, 1);
  const om_value_id last =
      om_compose_cast(c, om_compose_input(c, LAST_KEYS), OM_DTYPE_I64); /* keys less one */
  om_value_id before = om_compose_2(c, "Add", last, om_compose_int(c, 1));
  before = om_compose_2(c, "Sub", before, row_count);
  before = om_compose_2(c, "Max", before, om_compose_int(c, 0));
  const om_value_id rows = om_compose_unsqueeze(c, count_up(c, row_count), 1);
  return om_compose_2(c, "Add", om_compose_reshape(c, before, by_batch, 4), rows);
}

static void turn_operands(om_composer *c, om_attention_form *f, om_value_id places) {
  const int64_t by_row[] = {0, -1};
  const om_value_id cos = om_compose_input(c, COS), sin = om_compose_input(c, SIN);
  const int64_t interleaved = om_compose_attr_int(c, "rotary_interleaved", 0);
  om_value_id positions = om_compose_input(c, POSITIONS);
  if (om_compose_attr_int(c, "do_rotary", 0) == 0) return;
  if (cos == OM_NO_VALUE || sin == OM_NO_VALUE) {
    om_compose_fail(c, "'do_rotary' needs cos_cache and sin_cache.");
    return;
  }
  if (positions == OM_NO_VALUE) positions = om_compose_reshape(c, places, by_row, 2);
  f->q = rotate(c, f->q, cos, sin, positions, f->q_heads, 0, interleaved);
  f->k = rotate(c, f->k, cos, sin, positions, f->kv_heads, 0, interleaved);
}

static void compose_group_query(om_composer *c) {
  om_attention_form f = plain_form(c);
  refuse_input(c, 11, "head_sink");
  if (om_compose_attr_int(c, "smooth_softmax", 0) > 0) {
    om_compose_refuse(c, "'smooth_softmax' is not implemented.");
  }
  f.is_k_flat = false;
  f.q_heads = read_heads(c, "num_heads");
  f.kv_heads = read_heads(c, "kv_num_heads");
  f.softcap = om_compose_attr_float(c, "softcap", 0.0f);
  f.hidden = -INFINITY;
  if (c->status != OM_OK) return;
  read_operands(c, &f);
  f.scale = make_scale(c, &f);
  const om_value_id places = place_rows(c, f.q);
  turn_operands(c, &f, places);
  f.k = extend_cache(c, om_compose_input(c, PAST_K), f.k, places, f.kv_heads);
  f.v = extend_cache(c, om_compose_input(c, PAST_V), f.v, places, f.kv_heads);
  read_bias(c, SCORES_BIAS, &f);
  f.allowed = see_keys(c, om_compose_scalar_extent(c, f.k, 2), places);
  f.mask_rank = 4;
  om_compose_attention(c, &f, false);
  om_compose_result(c, 0, f.y);
  om_compose_result(c, 1, f.present_k);
  om_compose_result(c, 2, f.present_v);
}

const om_composition om_compositions_decoder[] = {
    {"com.microsoft", "Attention", compose_self},
    {"com.microsoft", "GroupQueryAttention", compose_group_query},
    {"com.microsoft", "MultiHeadAttention", compose_multi_head},
    {"com.microsoft", "RotaryEmbedding", compose_rotary},
    {.type = NULL},
};
