/* Gelu as exporters spell it out, back to one Gelu:
 *
 *     0.5 x (1 + erf(x / sqrt(2)))
 *     0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
 *
 * with the factors in any order and grouping, Div by a constant or Mul by its inverse, and Pow or
 * Mul for the cube. One operation in place of five to nine, with another rounding: fast mode only.
 * A constant of float16 is as near as its eleven bits are.
 */
#include "rewrite/om_rewrite.h"

enum { MOST_DEPTH = 4 };

static const double float_error = 1e-6, half_error = 4.9e-4; /* of a constant, relative */

/* A product: constant, x and one other value, as often as they occur. */
typedef struct factors {
  om_value_id x, other; /* what is looked for; nothing is taken apart there */
  uint32_t x_count, other_count;
  double constant;
  double error;  /* of it, relative */
  bool has_more; /* something else takes part */
} factors;

static const om_node *maker(const om_rewriter *rw, om_value_id value, const char *type) {
  om_node_id id = om_rewriter_maker(rw, value, type);
  return id == OM_NO_NODE || rw->graph->nodes[id].opset < 7 ? NULL : &rw->graph->nodes[id];
}

/* A scalar of rank 0: it cannot give a result another shape. */
static bool get_scalar(const om_rewriter *rw, om_value_id value, float *out) {
  return om_rewriter_scalar(rw, value, out) && om_rewriter_constant(rw, value)->rank == 0;
}

static bool is_near(const factors *f, double want) {
  const double difference = f->constant > want ? f->constant - want : want - f->constant;
  return difference <= (f->error + float_error) * want;
}

static double error_of(const om_rewriter *rw, om_value_id value) {
  return om_rewriter_constant(rw, value)->dtype == OM_DTYPE_F16 ? half_error : float_error;
}

/* Multiplies `value` to the product. */
static void take_apart(const om_rewriter *rw, om_value_id value, uint32_t depth, factors *f) {
  float number = 0.0f;
  const om_node *mul = maker(rw, value, "Mul");
  const om_node *div = maker(rw, value, "Div");
  const om_node *pow = maker(rw, value, "Pow");
  if (value == f->x) {
    f->x_count += 1;
  } else if (value == f->other) {
    f->other_count += 1;
  } else if (get_scalar(rw, value, &number)) {
    f->constant *= (double)number;
    f->error += error_of(rw, value);
  } else if (mul && depth > 0) {
    take_apart(rw, mul->inputs[0], depth - 1, f);
    take_apart(rw, mul->inputs[1], depth - 1, f);
  } else if (div && depth > 0 && get_scalar(rw, div->inputs[1], &number) && number != 0.0f) {
    f->constant /= (double)number;
    f->error += error_of(rw, div->inputs[1]);
    take_apart(rw, div->inputs[0], depth - 1, f);
  } else if (pow && pow->inputs[0] == f->x && get_scalar(rw, pow->inputs[1], &number) &&
             (number == 2.0f || number == 3.0f)) {
    f->x_count += number == 2.0f ? 2 : 3;
  } else {
    f->has_more = true;
  }
}

static bool is_product(const om_rewriter *rw,
                       om_value_id value,
                       double constant,
                       om_value_id x,
                       uint32_t x_count,
                       om_value_id other) {
  factors f = {.x = x, .other = other, .constant = 1.0};
  take_apart(rw, value, MOST_DEPTH, &f);
  return !f.has_more && f.x_count == x_count && f.other_count == (other != OM_NO_VALUE) &&
         is_near(&f, constant);
}

/* The Erf or Tanh of Add(1, Erf | Tanh), or NULL. */
static const om_node *match_gate(const om_rewriter *rw, om_value_id value) {
  const om_node *add = maker(rw, value, "Add");
  float one = 0.0f;
  for (uint32_t i = 0; add && i < 2; ++i) {
    if (!get_scalar(rw, add->inputs[i], &one) || one != 1.0f) continue;
    const om_node *erf = maker(rw, add->inputs[1 - i], "Erf");
    return erf ? erf : maker(rw, add->inputs[1 - i], "Tanh");
  }
  return NULL;
}

/* The value 1 + erf or 1 + tanh among the factors of `value`, or OM_NO_VALUE. */
static om_value_id find_gate(const om_rewriter *rw, om_value_id value, uint32_t depth) {
  const om_node *mul = maker(rw, value, "Mul");
  om_value_id found = OM_NO_VALUE;
  if (match_gate(rw, value)) return value;
  for (uint32_t i = 0; mul && depth > 0 && i < 2 && found == OM_NO_VALUE; ++i) {
    found = find_gate(rw, mul->inputs[i], depth - 1);
  }
  return found;
}

/* x of erf(x / sqrt(2)), or OM_NO_VALUE. */
static om_value_id match_erf(const om_rewriter *rw, om_value_id argument) {
  const om_node *div = maker(rw, argument, "Div");
  const om_node *node = div ? div : maker(rw, argument, "Mul");
  for (uint32_t i = 0; node && i < 2; ++i) {
    const om_value_id x = node->inputs[i];
    if (is_product(rw, argument, 0.70710678118654752, x, 1, OM_NO_VALUE)) return x;
  }
  return OM_NO_VALUE;
}

/* x of tanh(sqrt(2/pi) (x + 0.044715 x^3)), or OM_NO_VALUE. */
static om_value_id match_tanh(const om_rewriter *rw, om_value_id argument) {
  const om_node *mul = maker(rw, argument, "Mul");
  for (uint32_t i = 0; mul && i < 2; ++i) {
    const om_value_id sum = mul->inputs[i];
    const om_node *add = maker(rw, sum, "Add");
    if (!is_product(rw, argument, 0.79788456080286536, OM_NO_VALUE, 0, sum)) continue;
    for (uint32_t k = 0; add && k < 2; ++k) {
      const om_value_id x = add->inputs[k];
      if (is_product(rw, add->inputs[1 - k], 0.044715, x, 3, OM_NO_VALUE)) return x;
    }
  }
  return OM_NO_VALUE;
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  static const om_attr approximate = {
      .name = "approximate", .kind = OM_ATTR_STRING, .count = 1, .s = {"tanh", 4}};
  for (om_node_id id = 0; id < rw->graph->node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    if (!node->type || node->domain[0] != '\0' || strcmp(node->type, "Mul") != 0) continue;
    const om_value_id result = node->outputs[0];
    const om_value_id gate = find_gate(rw, result, 2);
    const om_node *function = gate == OM_NO_VALUE ? NULL : match_gate(rw, gate);
    if (!function) continue;
    const bool is_erf = strcmp(function->type, "Erf") == 0;
    om_value_id x =
        is_erf ? match_erf(rw, function->inputs[0]) : match_tanh(rw, function->inputs[0]);
    if (x == OM_NO_VALUE || !is_product(rw, result, 0.5, x, 1, gate)) continue;
    /* What is left of the parts goes as dead nodes do. */
    const om_rewritten_node gelu = {.type = "Gelu",
                                    .opset = 20,
                                    .inputs = &x,
                                    .input_count = 1,
                                    .attrs = &approximate,
                                    .attr_count = is_erf ? 0 : 1};
    OM_TRY(om_rewriter_become(ctx, rw, id, &gelu));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_gelu_from_parts = {
    .name = "gelu_from_parts",
    .in_fast = true,
    .in_exact = false,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
