/* What Microsoft's operators for encoders stand for: Gelus with a bias, normalisations with the
 * additions before them, embeddings, products of turned operands. */
#include "rewrite/om_compose.h"

static om_value_id gelu(om_composer *c, om_value_id x, bool uses_tanh) {
  static const om_attr approximate = {
      .name = "approximate", .kind = OM_ATTR_STRING, .count = 1, .s = {"tanh", 4}};
  return om_compose_node(c, "Gelu", &x, 1, &approximate, uses_tanh ? 1 : 0);
}

/* Input 0, plus input 1 where it is there. */
static om_value_id biased(om_composer *c) {
  const om_value_id x = om_compose_input(c, 0);
  const om_value_id bias = om_compose_input(c, 1);
  return bias == OM_NO_VALUE ? x : om_compose_2(c, "Add", x, bias);
}

static void compose_gelu(om_composer *c) {
  om_compose_result(c, 0, gelu(c, biased(c), false));
}

static void compose_fast_gelu(om_composer *c) {
  om_compose_result(c, 0, gelu(c, biased(c), true));
}

static void compose_quick_gelu(om_composer *c) {
  const om_value_id x = om_compose_input(c, 0);
  const om_value_id alpha = om_compose_number(c, om_compose_attr_float(c, "alpha", 1.702f), x);
  const om_value_id gate = om_compose_1(c, "Sigmoid", om_compose_2(c, "Mul", x, alpha));
  om_compose_result(c, 0, om_compose_2(c, "Mul", x, gate));
}

/* ---- Normalisations ---- */

static void no_statistics(om_composer *c, uint32_t first, uint32_t last) {
  for (uint32_t i = first; i <= last; ++i) {
    if (om_compose_wants(c, i)) om_compose_fail(c, "Its output %u is for training.", (unsigned)i);
  }
}

static om_value_id normalise(om_composer *c,
                             const char *type,
                             om_value_id x,
                             om_value_id scale,
                             om_value_id bias,
                             float epsilon) {
  const om_value_id inputs[] = {x, scale, bias};
  const om_attr attrs[] = {
      {.name = "epsilon", .kind = OM_ATTR_FLOAT, .count = 1, .f = epsilon},
      {.name = "axis", .kind = OM_ATTR_INT, .count = 1, .i = om_compose_attr_int(c, "axis", -1)}};
  return om_compose_node(c, type, inputs, bias == OM_NO_VALUE ? 2 : 3, attrs, 2);
}

static void compose_simplified(om_composer *c) {
  no_statistics(c, 1, 1);
  om_compose_result(c,
                    0,
                    normalise(c,
                              "RMSNormalization",
                              om_compose_input(c, 0),
                              om_compose_input(c, 1),
                              OM_NO_VALUE,
                              om_compose_attr_float(c, "epsilon", 1e-5f)));
}

/* input + skip (+ bias), which output 3 gives, then the normalisation. */
static void compose_skip(om_composer *c, const char *type, uint32_t bias_input) {
  const om_value_id bias = om_compose_input(c, bias_input);
  const om_value_id beta = bias_input > 3 ? om_compose_input(c, 3) : OM_NO_VALUE;
  om_value_id sum = om_compose_input(c, 0);
  no_statistics(c, 1, 2);
  if (bias != OM_NO_VALUE) sum = om_compose_2(c, "Add", sum, bias);
  sum = om_compose_2(c, "Add", sum, om_compose_input(c, 1));
  om_compose_result(c, 3, sum);
  om_compose_result(
      c,
      0,
      normalise(
          c, type, sum, om_compose_input(c, 2), beta, om_compose_attr_float(c, "epsilon", 1e-12f)));
}

static void compose_skip_layer(om_composer *c) {
  compose_skip(c, "LayerNormalization", 4);
}

static void compose_skip_simplified(om_composer *c) {
  compose_skip(c, "RMSNormalization", 3);
}

/* ---- Embeddings ---- */

enum { /* inputs of EmbedLayerNormalization */
       IDS = 0,
       SEGMENT_IDS = 1,
       WORDS = 2,
       POSITIONS = 3,
       SEGMENTS = 4,
       GAMMA = 5,
       BETA = 6,
       MASK = 7,
       POSITION_IDS = 8
};

static om_value_id position_ids(om_composer *c) {
  const om_value_id given = om_compose_input(c, POSITION_IDS);
  if (given != OM_NO_VALUE) return given;
  const om_value_id length = om_compose_scalar_extent(c, om_compose_input(c, IDS), 1);
  return om_compose_3(c, "Range", om_compose_int(c, 0), length, om_compose_int(c, 1));
}

/* How many keys each row of the mask has; of no mask: 0 each. */
static om_value_id count_mask(om_composer *c) {
  const int64_t axis = 1;
  const om_attr keeps = {.name = "keepdims", .kind = OM_ATTR_INT, .count = 1, .i = 0};
  om_value_id mask = om_compose_input(c, MASK);
  if (mask == OM_NO_VALUE) {
    const om_value_id ids = om_compose_input(c, IDS);
    mask = om_compose_2(c, "Sub", ids, ids);
  }
  const om_value_id inputs[] = {om_compose_cast(c, mask, OM_DTYPE_I32),
                                om_compose_ints(c, &axis, 1)};
  return om_compose_node(c, "ReduceSum", inputs, 2, &keeps, 1);
}

static void check_embed(om_composer *c) {
  static const uint32_t wanted[] = {WORDS, POSITIONS, GAMMA, BETA};
  for (size_t i = 0; i < OM_COUNT_OF(wanted); ++i) {
    if (om_compose_input(c, wanted[i]) != OM_NO_VALUE) continue;
    om_compose_fail(c, "Input %u is absent, but it is not optional.", (unsigned)wanted[i]);
  }
}

static void compose_embed(om_composer *c) {
  check_embed(c);
  const om_value_id words =
      om_compose_2(c, "Gather", om_compose_input(c, WORDS), om_compose_input(c, IDS));
  const om_value_id positions =
      om_compose_2(c, "Gather", om_compose_input(c, POSITIONS), position_ids(c));
  om_value_id sum = om_compose_2(c, "Add", words, positions);
  if (om_compose_input(c, SEGMENTS) != OM_NO_VALUE &&
      om_compose_input(c, SEGMENT_IDS) != OM_NO_VALUE) {
    const om_value_id segments =
        om_compose_2(c, "Gather", om_compose_input(c, SEGMENTS), om_compose_input(c, SEGMENT_IDS));
    sum = om_compose_2(c, "Add", sum, segments);
  }
  om_compose_result(c, 2, sum);
  om_compose_result(c,
                    0,
                    normalise(c,
                              "LayerNormalization",
                              sum,
                              om_compose_input(c, GAMMA),
                              om_compose_input(c, BETA),
                              om_compose_attr_float(c, "epsilon", 1e-12f)));
  if (om_compose_wants(c, 1)) om_compose_result(c, 1, count_mask(c));
}

/* ---- Products ---- */

static om_value_id turned(om_composer *c, uint32_t input, const char *flag) {
  const om_value_id x = om_compose_input(c, input);
  const uint32_t rank = om_compose_rank(c, x);
  int64_t perm[OM_MAX_RANK];
  if (om_compose_attr_int(c, flag, 0) == 0 || rank == 1) return x;
  if (rank == OM_RANK_UNKNOWN || rank < 2 || rank > OM_MAX_RANK) {
    om_compose_refuse(c, "The rank of input %u, which '%s' turns, is not known.", input, flag);
    return OM_NO_VALUE;
  }
  for (uint32_t i = 0; i < rank; ++i) perm[i] = i;
  perm[rank - 2] = rank - 1;
  perm[rank - 1] = rank - 2;
  return om_compose_transpose(c, x, perm, rank);
}

static void compose_fused_matmul(om_composer *c) {
  const float alpha = om_compose_attr_float(c, "alpha", 1.0f);
  if (om_compose_attr_int(c, "transBatchA", 0) != 0 ||
      om_compose_attr_int(c, "transBatchB", 0) != 0) {
    om_compose_refuse(c, "Turned batches (transBatchA, transBatchB) are not implemented.");
  }
  om_value_id y = om_compose_2(c, "MatMul", turned(c, 0, "transA"), turned(c, 1, "transB"));
  if (alpha != 1.0f) {
    y = om_compose_2(c, "Mul", y, om_compose_number(c, alpha, om_compose_input(c, 0)));
  }
  om_compose_result(c, 0, y);
}

const om_composition om_compositions_encoder[] = {
    {"", "SimplifiedLayerNormalization", compose_simplified},
    {"com.microsoft", "BiasGelu", compose_gelu},
    {"com.microsoft", "EmbedLayerNormalization", compose_embed},
    {"com.microsoft", "FastGelu", compose_fast_gelu},
    {"com.microsoft", "FusedMatMul", compose_fused_matmul},
    {"com.microsoft", "Gelu", compose_gelu},
    {"com.microsoft", "QuickGelu", compose_quick_gelu},
    {"com.microsoft", "SimplifiedLayerNormalization", compose_simplified},
    {"com.microsoft", "SkipLayerNormalization", compose_skip_layer},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", compose_skip_simplified},
    {.type = NULL},
};
