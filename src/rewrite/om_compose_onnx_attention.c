/* Attention of ONNX (opset 23 on): its inputs and attributes, told to the general form. */
#include <math.h>

#include "rewrite/om_compose_attention.h"

enum { /* inputs */
       Q = 0,
       K = 1,
       V = 2,
       MASK = 3,
       PAST_K = 4,
       PAST_V = 5,
       LENGTHS = 6
};

static int64_t read_heads(om_composer *c, const char *name, bool is_flat) {
  const int64_t heads = om_compose_attr_int(c, name, 0);
  if (heads < 0 || heads > INT32_MAX || (is_flat && heads == 0)) {
    om_compose_fail(c,
                    "The attribute '%s' is %lld, but operands of rank 3 need it above 0.",
                    name,
                    (long long)heads);
  }
  return heads;
}

/* The sqrt of the scale, which both operands get: 1 / sqrt(size of a head) by default. In double
 * precision, rounded once. */
static om_value_id make_scale(om_composer *c, const om_attention_form *f) {
  const om_attr *given = om_node_attr(&c->node, "scale");
  om_value_id scale = OM_NO_VALUE;
  if (given) {
    scale = om_compose_number(c, om_compose_attr_float(c, "scale", 0.0f), OM_NO_VALUE);
    scale = om_compose_cast(c, scale, OM_DTYPE_F64);
  } else {
    scale = om_compose_scalar_extent(c, f->q, -1);
    if (f->is_q_flat) scale = om_compose_2(c, "Div", scale, om_compose_int(c, f->q_heads));
    scale = om_compose_1(c, "Sqrt", om_compose_cast(c, scale, OM_DTYPE_F64));
    scale = om_compose_1(c, "Reciprocal", scale);
  }
  return om_compose_2(c, "CastLike", om_compose_1(c, "Sqrt", scale), f->q);
}

/* From opset 24 on a mask may end before the keys do: they are hidden then. */
static om_value_id lengthen_mask(om_composer *c, const om_attention_form *f, om_value_id mask) {
  const uint32_t rank = om_compose_rank(c, mask);
  const int64_t extent = om_compose_extent(c, mask, -1);
  const int64_t key_extent = om_compose_extent(c, f->k, f->is_k_flat ? 1 : 2);
  const int64_t zeros[OM_MAX_RANK * 2] = {0};
  const bool is_bool = om_compose_dtype(c, mask) == OM_DTYPE_BOOL;
  if (c->node.opset < 24 || rank == OM_RANK_UNKNOWN || rank == 0) return mask;
  if (f->past_k == OM_NO_VALUE && extent >= 0 && extent == key_extent) return mask;
  om_value_id keys = om_compose_shape(c, f->k, f->is_k_flat ? 1 : 2, f->is_k_flat ? 2 : 3);
  if (f->past_k != OM_NO_VALUE) {
    keys = om_compose_2(c, "Add", keys, om_compose_shape(c, f->past_k, 2, 3));
  }
  const om_value_id missing =
      om_compose_2(c, "Sub", keys, om_compose_shape(c, mask, rank - 1, rank));
  const om_value_id pads =
      om_compose_concat(c, om_compose_ints(c, zeros, 2 * rank - 1), missing, 0);
  const om_value_id hidden = om_compose_number(c, is_bool ? 0.0f : -INFINITY, mask);
  return om_compose_3(c, "Pad", mask, pads, hidden);
}

static void read_mask(om_composer *c, om_attention_form *f) {
  om_value_id mask = om_compose_input(c, MASK);
  if (mask == OM_NO_VALUE) return;
  const bool is_bool = om_compose_dtype(c, mask) == OM_DTYPE_BOOL;
  const uint32_t rank = om_compose_rank(c, mask);
  f->mask_rank = rank;
  f->mask_has_heads = rank > 4 || (rank > 2 && om_compose_extent(c, mask, -3) != 1);
  mask = lengthen_mask(c, f, mask);
  if (is_bool) {
    f->allowed = mask;
  } else {
    f->bias = mask;
  }
}

static void check_inputs(om_composer *c, const om_attention_form *f) {
  if ((f->past_k == OM_NO_VALUE) != (f->past_v == OM_NO_VALUE)) {
    om_compose_fail(c, "It has one of past_key and past_value, but they go together.");
  }
  if (f->past_k != OM_NO_VALUE && f->lengths != OM_NO_VALUE) {
    om_compose_fail(c, "It has past_key and nonpad_kv_seqlen, of which only one can be.");
  }
}

/* Windows of keys, which a later opset than 24 has: -1 is none. */
static void check_windows(om_composer *c) {
  static const char *const names[] = {"left_window_size", "right_window_size"};
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    const int64_t size = om_compose_attr_int(c, names[i], -1);
    if (size == -1) continue;
    om_compose_refuse(
        c, "The attribute '%s' is %lld; windows are not known.", names[i], (long long)size);
  }
}

static void compose(om_composer *c) {
  const int64_t mode = om_compose_attr_int(c, "qk_matmul_output_mode", 0);
  const bool wants_scores = om_compose_wants(c, 3);
  const uint32_t rank = om_compose_rank(c, om_compose_input(c, Q));
  const bool is_flat =
      rank == 3 || (rank == OM_RANK_UNKNOWN && om_node_attr(&c->node, "q_num_heads"));
  om_attention_form f = {.q = om_compose_input(c, Q),
                         .k = om_compose_input(c, K),
                         .v = om_compose_input(c, V),
                         .is_q_flat = is_flat,
                         .is_k_flat = is_flat,
                         .q_heads = read_heads(c, "q_num_heads", is_flat),
                         .kv_heads = read_heads(c, "kv_num_heads", is_flat),
                         .past_k = om_compose_input(c, PAST_K),
                         .past_v = om_compose_input(c, PAST_V),
                         .allowed = OM_NO_VALUE,
                         .bias = OM_NO_VALUE,
                         .lengths = om_compose_input(c, LENGTHS),
                         .is_causal = om_compose_attr_int(c, "is_causal", 0) != 0,
                         .scales_operands = true,
                         .hidden = -INFINITY,
                         .zeroes_hidden_rows = true,
                         .softcap = om_compose_attr_float(c, "softcap", 0.0f)};
  const int64_t precision = om_compose_attr_int(c, "softmax_precision", 0);
  if (precision < 0 || precision >= OM_DTYPE_COUNT ||
      (precision != 0 && !(OM_DT(precision) & OM_DT_FLOAT))) {
    om_compose_fail(c, "The attribute 'softmax_precision' is %lld.", (long long)precision);
  }
  if (mode < 0 || mode > 3) {
    om_compose_fail(c, "The attribute 'qk_matmul_output_mode' is %lld.", (long long)mode);
    return;
  }
  f.precision = (om_dtype)precision;
  check_inputs(c, &f);
  check_windows(c);
  f.scale = make_scale(c, &f);
  read_mask(c, &f);
  om_compose_attention(c, &f, wants_scores);
  om_compose_result(c, 0, f.y);
  om_compose_result(c, 1, f.present_k);
  om_compose_result(c, 2, f.present_v);
  om_compose_result(c, 3, f.scores[mode]);
}

const om_composition om_compositions_attention[] = {
    {"", "Attention", compose},
    {.type = NULL},
};
