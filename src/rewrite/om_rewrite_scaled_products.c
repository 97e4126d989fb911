/* A product of integers and what makes floats of it, for the CPU:
 *
 *     Add(Mul(Cast(MatMulInteger(a, w)), Mul(a_scale, w_scale)), bias)
 *     MatMulIntegerToFloat(a, w, a_scale, w_scale, bias)
 *
 * as quantizers write it, with a from DynamicQuantizeLinear, and constant weights with one scale or
 * one for each column.
 * Each step rounds as it did, so the bits stay; three passes over the result do not.
 */
#include "rewrite/om_rewrite.h"

typedef struct scaled_product {
  om_node_id product, cast, last; /* last: the Mul, or the Add */
  om_value_id a_scale, w_scale, bias;
} scaled_product;

static const om_node *node_at(const om_rewriter *rw, om_node_id id) {
  return &rw->graph->nodes[id];
}

/* The scale of a DynamicQuantizeLinear: one float. */
static bool is_dynamic_scale(const om_rewriter *rw, om_value_id value) {
  if (value == OM_NO_VALUE) return false;
  const om_node_id id = rw->graph->values[value].producer;
  if (id == OM_NO_NODE || !node_at(rw, id)->type || node_at(rw, id)->domain[0]) return false;
  return strcmp(node_at(rw, id)->type, "DynamicQuantizeLinear") == 0 &&
         node_at(rw, id)->output_count > 1 && node_at(rw, id)->outputs[1] == value;
}

static bool is_number(const om_rewriter *rw, om_value_id value) {
  const om_tensor *t = om_rewriter_constant(rw, value);
  return t && t->dtype == OM_DTYPE_F32 && t->rank <= 1 && om_tensor_elems(t) == 1;
}

/* A float32 constant with an element for each column. */
static bool is_of_columns(const om_rewriter *rw, om_value_id value, int64_t cols) {
  const om_tensor *t = om_rewriter_constant(rw, value);
  return t && t->dtype == OM_DTYPE_F32 && t->rank == 1 && t->dims[0] == cols;
}

static bool is_cast_to_float(const om_node *cast) {
  const om_attr *to = om_node_attr(cast, "to");
  return to && to->kind == OM_ATTR_INT && to->i == OM_DTYPE_F32;
}

/* Which of a Mul's operands is made by `type`, with the other in *out_other. */
static om_node_id operand_made_by(const om_rewriter *rw,
                                  const om_node *mul,
                                  const char *type,
                                  om_value_id *out_other) {
  for (uint32_t i = 0; i < 2; ++i) {
    const om_node_id id = om_rewriter_maker(rw, mul->inputs[i], type);
    *out_other = mul->inputs[1 - i];
    if (id != OM_NO_NODE) return id;
  }
  return OM_NO_NODE;
}

static bool match_scale(const om_rewriter *rw, om_value_id scale, int64_t cols, scaled_product *m) {
  const om_node_id id = om_rewriter_maker(rw, scale, "Mul");
  if (id == OM_NO_NODE) return false;
  const om_node *mul = node_at(rw, id);
  for (uint32_t i = 0; i < 2; ++i) {
    m->a_scale = mul->inputs[i];
    m->w_scale = mul->inputs[1 - i];
    if (!is_dynamic_scale(rw, m->a_scale)) continue;
    if (is_number(rw, m->w_scale) || is_of_columns(rw, m->w_scale, cols)) return true;
  }
  return false;
}

static void take_bias(const om_rewriter *rw, int64_t cols, scaled_product *m) {
  const om_value_id product = node_at(rw, m->last)->outputs[0];
  const om_node_id add = om_rewriter_sole_reader(rw, product, "Add");
  m->bias = OM_NO_VALUE;
  if (add == OM_NO_NODE || node_at(rw, add)->opset < 7) return;
  const om_node *node = node_at(rw, add);
  const om_value_id other = node->inputs[node->inputs[0] == product ? 1 : 0];
  if (!is_of_columns(rw, other, cols)) return;
  m->bias = other;
  m->last = add;
}

/* Whether the Mul makes floats of a product. */
static bool match(const om_rewriter *rw, om_node_id id, scaled_product *m) {
  om_value_id scale;
  const om_node *mul = node_at(rw, id);
  *m = (scaled_product){.last = id};
  if (mul->opset < 7 || mul->input_count != 2) return false;
  m->cast = operand_made_by(rw, mul, "Cast", &scale);
  if (m->cast == OM_NO_NODE || !is_cast_to_float(node_at(rw, m->cast))) return false;
  m->product = om_rewriter_maker(rw, node_at(rw, m->cast)->inputs[0], "MatMulInteger");
  if (m->product == OM_NO_NODE) return false;
  const om_node *product = node_at(rw, m->product);
  const om_tensor *w = om_rewriter_constant(rw, product->inputs[1]);
  if (!w || w->rank != 2) return false;
  if (om_rewriter_sole_reader(rw, product->outputs[0], "Cast") != m->cast) return false;
  if (om_rewriter_sole_reader(rw, node_at(rw, m->cast)->outputs[0], "Mul") != id) return false;
  if (!match_scale(rw, scale, w->dims[1], m)) return false;
  take_bias(rw, w->dims[1], m);
  return true;
}

static om_status replace(om_ctx *ctx, om_rewriter *rw, om_node_id mul, const scaled_product *m) {
  const om_node *product = node_at(rw, m->product);
  const om_value_id before = product->outputs[0];
  const om_value_id result = node_at(rw, m->last)->outputs[0];
  const om_value_id inputs[] = {product->inputs[0],
                                product->inputs[1],
                                m->a_scale,
                                m->w_scale,
                                product->input_count > 2 ? product->inputs[2] : OM_NO_VALUE,
                                product->input_count > 3 ? product->inputs[3] : OM_NO_VALUE,
                                m->bias};
  const om_node_id parts[] = {m->cast, mul, m->last};
  for (size_t i = 0; i < (m->last == mul ? 2 : 3); ++i) {
    OM_TRY(
        om_rewriter_drop(ctx, rw, parts[i], "part of '%.100s': done by its kernel", product->name));
  }
  OM_TRY(om_rewriter_become(
      ctx,
      rw,
      m->product,
      &(om_rewritten_node){.domain = "com.microsoft",
                           .type = "MatMulIntegerToFloat",
                           .opset = 1,
                           .inputs = inputs,
                           .input_count = OM_COUNT_OF(inputs) - (m->bias == OM_NO_VALUE ? 1 : 0)}));
  return om_rewriter_set_output(ctx, rw, m->product, before, result);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  scaled_product m;
  for (om_node_id id = 0; id < rw->graph->node_count; ++id) {
    const om_node *node = node_at(rw, id);
    if (!node->type || node->domain[0] || strcmp(node->type, "Mul") != 0) continue;
    if (match(rw, id, &m)) OM_TRY(replace(ctx, rw, id, &m));
  }
  return OM_OK;
}

const om_rewrite om_rewrite_scaled_products = {
    .name = "scaled_products",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_FOR_CPU,
    .apply = apply,
};
