/* For a device, Microsoft's operators on 8-bit tensors as what they are defined by (docs/exact.md):
 * the operator between DequantizeLinear and QuantizeLinear, or integers that are scaled and rounded
 * at the end. The bits stay, so this is for both modes. The CPU has kernels of its own, which look
 * the 256 values of a byte up.
 *
 * Scales and zero points must be constants, of one element but for the columns of QGemm, as
 * quantizers write them; else the operator stays.
 */
#include "rewrite/om_compose.h"

enum { MOST_PARTS = 80 };

static const om_tensor *constant(const om_composer *c, uint32_t input) {
  const om_value_id id = om_compose_input(c, input);
  return id == OM_NO_VALUE ? NULL : om_rewriter_constant(c->rw, id);
}

static bool is_absent(const om_composer *c, uint32_t input) {
  return om_compose_input(c, input) == OM_NO_VALUE;
}

/* A float32 constant, and a zero point behind it with as many elements, of type `dtype`, or none;
 * of one element if `is_single`. */
static bool is_scale(const om_composer *c, uint32_t input, om_dtype dtype, bool is_single) {
  const om_tensor *scale = constant(c, input), *zero = constant(c, input + 1);
  if (!scale || scale->dtype != OM_DTYPE_F32 || scale->rank > 1) return false;
  if (is_single && om_tensor_elems(scale) != 1) return false;
  if (is_absent(c, input + 1)) return true;
  return zero && zero->dtype == dtype && zero->rank <= 1 &&
         om_tensor_elems(zero) == om_tensor_elems(scale);
}

/* The type of a byte tensor, OM_DTYPE_NONE where it is not known: its zero point tells, too. */
static om_dtype byte_type(const om_composer *c, uint32_t input, uint32_t zero) {
  const om_tensor *t = constant(c, zero);
  const om_dtype own = om_compose_dtype(c, om_compose_input(c, input));
  const om_dtype dtype = t ? t->dtype : own;
  if (own != OM_DTYPE_NONE && own != dtype) return OM_DTYPE_NONE;
  return dtype == OM_DTYPE_U8 || dtype == OM_DTYPE_I8 ? dtype : OM_DTYPE_NONE;
}

static om_value_id with_scale(om_composer *c, const char *type, om_value_id x, uint32_t scale) {
  const om_value_id inputs[] = {x, om_compose_input(c, scale), om_compose_input(c, scale + 1)};
  return om_compose_node(c, type, inputs, is_absent(c, scale + 1) ? 2 : 3, NULL, 0);
}

static om_value_id dequantized(om_composer *c, uint32_t input) {
  return with_scale(c, "DequantizeLinear", om_compose_input(c, input), input + 1);
}

static void quantize_result(om_composer *c, om_value_id x, uint32_t scale, om_dtype dtype) {
  const om_attr attr = {
      .name = "output_dtype", .kind = OM_ATTR_INT, .count = 1, .i = (int64_t)dtype};
  const om_value_id inputs[] = {x, om_compose_input(c, scale)};
  om_compose_result(c,
                    0,
                    is_absent(c, scale + 1)
                        ? om_compose_node(c, "QuantizeLinear", inputs, 2, &attr, 1)
                        : with_scale(c, "QuantizeLinear", x, scale));
}

/* A zero point as another type; OM_NO_VALUE: it is absent. */
static om_value_id zero_as(om_composer *c, uint32_t input, om_dtype dtype) {
  return is_absent(c, input) ? OM_NO_VALUE : om_compose_cast(c, om_compose_input(c, input), dtype);
}

/* The nearest whole number of x, plus the zero point, as a byte. */
static void round_result(om_composer *c, om_value_id x, uint32_t zero, om_dtype dtype) {
  const om_value_id shift = zero_as(c, zero, OM_DTYPE_F32);
  x = om_compose_1(c, "Round", x);
  if (shift != OM_NO_VALUE) x = om_compose_2(c, "Add", x, shift);
  om_compose_result(c, 0, om_compose_cast(c, x, dtype));
}

/* ---- The operators ---- */

static void compose_binary(om_composer *c) {
  const om_dtype dtype = byte_type(c, 0, 2);
  if (dtype == OM_DTYPE_NONE || byte_type(c, 3, 5) != dtype) return;
  if (!is_scale(c, 1, dtype, true) || !is_scale(c, 4, dtype, true) || !is_scale(c, 6, dtype, true))
    return;
  const char *type = strcmp(c->node.type, "QLinearAdd") == 0 ? "Add" : "Mul";
  const om_value_id a = dequantized(c, 0), b = dequantized(c, 3);
  quantize_result(c, om_compose_2(c, type, a, b), 6, dtype);
}

static void compose_unary(om_composer *c) {
  const om_dtype dtype = byte_type(c, 0, 2);
  if (dtype == OM_DTYPE_NONE || !is_scale(c, 1, dtype, true) || !is_scale(c, 3, dtype, true))
    return;
  const om_attr alpha = {.name = "alpha",
                         .kind = OM_ATTR_FLOAT,
                         .count = 1,
                         .f = om_compose_attr_float(c, "alpha", 0.01f)};
  const bool is_leaky = strcmp(c->node.type, "QLinearLeakyRelu") == 0;
  const om_value_id x = dequantized(c, 0);
  const om_value_id y = om_compose_node(
      c, is_leaky ? "LeakyRelu" : "Sigmoid", &x, 1, is_leaky ? &alpha : NULL, is_leaky ? 1 : 0);
  quantize_result(c, y, 3, dtype);
}

static void compose_concat(om_composer *c) {
  const uint32_t count = c->node.input_count / 3;
  const om_dtype dtype = byte_type(c, 2, 4);
  om_value_id parts[MOST_PARTS];
  if (dtype == OM_DTYPE_NONE || count > MOST_PARTS || !is_scale(c, 0, dtype, true)) return;
  for (uint32_t i = 0; i < count; ++i) {
    if (byte_type(c, 3 * i + 2, 3 * i + 4) != dtype) return;
    if (!is_scale(c, 3 * i + 3, dtype, true)) return;
  }
  const om_attr axis = {
      .name = "axis", .kind = OM_ATTR_INT, .count = 1, .i = om_compose_attr_int(c, "axis", 0)};
  for (uint32_t i = 0; i < count; ++i) parts[i] = dequantized(c, 3 * i + 2);
  quantize_result(c, om_compose_node(c, "Concat", parts, count, &axis, 1), 0, dtype);
}

/* The sum of the integers times x_scale / (y_scale * count). */
static void compose_global_pool(om_composer *c) {
  const om_value_id x = om_compose_input(c, 0);
  const om_dtype dtype = byte_type(c, 0, 2);
  const uint32_t rank = om_compose_rank(c, x);
  const int64_t first = om_compose_attr_int(c, "channels_last", 0) != 0 ? 1 : 2;
  int64_t axes[OM_MAX_RANK];
  if (dtype == OM_DTYPE_NONE || rank == OM_RANK_UNKNOWN || rank < 3 || rank > OM_MAX_RANK) return;
  if (!is_scale(c, 1, dtype, true) || !is_scale(c, 3, dtype, true)) return;
  const uint32_t axis_count = rank - 2;
  for (uint32_t i = 0; i < axis_count; ++i) axes[i] = first + i;
  const om_value_id count =
      om_compose_1(c, "ReduceProd", om_compose_shape(c, x, first, first + axis_count));
  const om_value_id zero = zero_as(c, 2, OM_DTYPE_I64);
  om_value_id sum = om_compose_2(
      c, "ReduceSum", om_compose_cast(c, x, OM_DTYPE_I64), om_compose_ints(c, axes, axis_count));
  if (zero != OM_NO_VALUE) sum = om_compose_2(c, "Sub", sum, om_compose_2(c, "Mul", count, zero));
  const om_value_id places = om_compose_cast(c, count, OM_DTYPE_F32);
  const om_value_id scale = om_compose_2(c, "Mul", om_compose_input(c, 3), places);
  const om_value_id factor = om_compose_2(c, "Div", om_compose_input(c, 1), scale);
  sum = om_compose_2(c, "Mul", om_compose_cast(c, sum, OM_DTYPE_F32), factor);
  round_result(c, sum, 4, dtype);
}

/* An operand of QGemm, turned if its attribute says so. */
static om_value_id side(om_composer *c, uint32_t input, const char *attr) {
  const int64_t perm[] = {1, 0};
  const om_value_id x = om_compose_input(c, input);
  return om_compose_attr_int(c, attr, 0) != 0 ? om_compose_transpose(c, x, perm, 2) : x;
}

static bool is_gemm_fit(const om_composer *c, om_dtype *out_dtype) {
  const om_dtype a = byte_type(c, 0, 2), b = byte_type(c, 3, 5);
  const om_tensor *y_zero = constant(c, 8), *bias = constant(c, 6);
  if (a == OM_DTYPE_NONE || b == OM_DTYPE_NONE) return false;
  if (!is_scale(c, 1, a, true) || !is_scale(c, 4, b, false)) return false;
  if (!is_absent(c, 6) && !(bias && bias->dtype == OM_DTYPE_I32)) return false;
  *out_dtype = y_zero ? y_zero->dtype : a;
  return is_absent(c, 7) ? is_absent(c, 8) : is_scale(c, 7, *out_dtype, true);
}

static void compose_gemm(om_composer *c) {
  om_dtype dtype = OM_DTYPE_NONE;
  if (!is_gemm_fit(c, &dtype)) return;
  const float alpha = om_compose_attr_float(c, "alpha", 1.0f);
  const om_value_id inputs[] = {
      side(c, 0, "transA"), side(c, 3, "transB"), om_compose_input(c, 2), om_compose_input(c, 5)};
  om_value_id scale = om_compose_input(c, 1);
  om_value_id sums = om_compose_node(c, "MatMulInteger", inputs, OM_COUNT_OF(inputs), NULL, 0);
  if (!is_absent(c, 6)) sums = om_compose_2(c, "Add", sums, om_compose_input(c, 6));
  if (alpha != 1.0f) {
    scale = om_compose_2(c, "Mul", scale, om_compose_number(c, alpha, OM_NO_VALUE));
  }
  scale = om_compose_2(c, "Mul", scale, om_compose_input(c, 4));
  if (!is_absent(c, 7)) scale = om_compose_2(c, "Div", scale, om_compose_input(c, 7));
  sums = om_compose_2(c, "Mul", om_compose_cast(c, sums, OM_DTYPE_F32), scale);
  if (is_absent(c, 7)) {
    om_compose_result(c, 0, sums);
  } else {
    round_result(c, sums, 8, dtype);
  }
}

/* ---- The rewrite ---- */

static const om_composition compositions[] = {
    /* those that add no node do not fit */
    {"com.microsoft", "QGemm", compose_gemm},
    {"com.microsoft", "QLinearAdd", compose_binary},
    {"com.microsoft", "QLinearConcat", compose_concat},
    {"com.microsoft", "QLinearGlobalAveragePool", compose_global_pool},
    {"com.microsoft", "QLinearLeakyRelu", compose_unary},
    {"com.microsoft", "QLinearMul", compose_binary},
    {"com.microsoft", "QLinearSigmoid", compose_unary},
};

static const om_composition *find(const om_node *node) {
  if (!node->type) return NULL;
  for (size_t i = 0; i < OM_COUNT_OF(compositions); ++i) {
    if (strcmp(compositions[i].type, node->type) == 0 &&
        strcmp(compositions[i].domain, node->domain) == 0) {
      return &compositions[i];
    }
  }
  return NULL;
}

static om_status replace(om_composer *c, om_node_id id, const om_composition *composition) {
  c->node = c->rw->graph->nodes[id];
  c->node_count = 0;
  composition->compose(c);
  OM_TRY(c->status);
  if (c->node_count == 0) return OM_OK;
  return om_rewriter_drop(c->ctx, c->rw, id, "composed of %u others", (unsigned)c->node_count);
}

/* Types and ranks of what is replaced are those of what takes its place, so they are found once. */
static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch */
  const size_t node_count = rw->graph->node_count;
  om_composer c = {.ctx = ctx, .rw = rw, .fact_count = rw->graph->value_count};
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  c.facts = facts;
  for (om_node_id id = 0; id < node_count; ++id) {
    const om_composition *composition = find(&rw->graph->nodes[id]);
    if (composition) OM_GO(replace(&c, id, composition));
  }
done:
  om_delete(ctx, facts);
  return st;
}

const om_rewrite om_rewrite_qlinear = {
    .name = "qlinear_as_parts",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_FOR_DEVICE,
    .apply = apply,
};
