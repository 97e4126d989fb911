/* Which operands of an attention are projections that can be packed: their patterns, and what the
 * shapes of their Reshapes tell. */
#include "rewrite/om_packed_match.h"

#include "rewrite/om_list_element.h"

enum { MOST_STEPS = 8 };

static const om_tensor *float_constant(const om_rewriter *rw, om_value_id value, uint32_t rank) {
  const om_tensor *tensor = om_rewriter_constant(rw, value);
  const bool is_float = tensor && (tensor->dtype == OM_DTYPE_F32 || tensor->dtype == OM_DTYPE_F16);
  return is_float && tensor->rank == rank ? tensor : NULL;
}

/* ---- Elements of a Reshape's shape ---- */

/* True if `value` is an extent of x or of one of its projections: *out_axis, counted from 0. */
static bool is_extent(const om_packed_match *m,
                      const om_projection *p,
                      om_value_id value,
                      int64_t *out_axis) {
  om_value_id tensor;
  if (!om_extent_of(m->rw, value, &tensor, out_axis)) return false;
  if (*out_axis < 0) *out_axis += (int64_t)m->facts[p->x].rank;
  bool is_ours = tensor == p->x;
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) {
    const om_projection *side = &m->sides[i];
    is_ours |= side->x == p->x && tensor == side->result;
  }
  return is_ours;
}

/* True if a Reshape gave x's axis this extent. */
static bool was_made(const om_packed_match *m,
                     const om_projection *p,
                     uint32_t axis,
                     const om_list_element *e) {
  const om_node *reshape = om_rewriter_made_by(m->rw, p->x, "Reshape");
  om_list_element own;
  if (!reshape || om_value_list_count(m->rw, m->facts, reshape->inputs[1]) != m->facts[p->x].rank) {
    return false;
  }
  return om_list_element_at(m->rw, m->facts, reshape->inputs[1], axis, &own) &&
         own.value != OM_NO_VALUE && om_list_elements_are_same(m->rw, &own, e);
}

/* The number that an element is, where the projections' width tells: also width / heads. */
static bool is_number(const om_packed_match *m,
                      const om_projection *p,
                      const om_list_element *e,
                      int64_t *out_number) {
  const om_rewriter *rw = m->rw;
  om_value_id value = e->value;
  int64_t axis = 0;
  *out_number = e->number;
  if (value == OM_NO_VALUE) return true;
  const om_node *node = om_rewriter_made_by(rw, value, "Cast");
  for (uint32_t i = 0; node && i < MOST_STEPS; ++i) {
    value = node->inputs[0];
    node = om_rewriter_made_by(rw, value, "Cast");
  }
  const om_node *div = om_rewriter_made_by(rw, value, "Div");
  const om_tensor *by = div ? om_rewriter_constant(rw, div->inputs[1]) : NULL;
  if (!by || by->dtype != OM_DTYPE_I64 || om_tensor_elems(by) != 1 || om_list_int(by, 0) <= 0) {
    return false;
  }
  if (!is_extent(m, p, div->inputs[0], &axis)) return false;
  *out_number = p->width / om_list_int(by, 0);
  return axis + 1 == (int64_t)m->facts[p->x].rank;
}

/* The Reshape keeps all axes but the last, which becomes [heads, size]. One element need not be
 * known: the others leave it no choice. */
static bool is_split(const om_packed_match *m, om_projection *p) {
  const uint32_t rank = m->facts[p->x].rank;
  const om_value *result = &m->rw->graph->values[p->result];
  uint32_t open = 0;
  om_list_element e;
  int64_t number = 0, axis = 0;
  if (rank == OM_RANK_UNKNOWN || rank < 2 || rank >= OM_MAX_RANK) return false;
  if (om_value_list_count(m->rw, m->facts, p->shape) != rank + 1) return false;
  for (uint32_t i = 0; i + 1 < rank; ++i) {
    if (!om_list_element_at(m->rw, m->facts, p->shape, i, &e)) return false;
    const bool is_kept = e.value == OM_NO_VALUE
                             ? e.number == 0 || (result->has_rank && result->dims[i] == e.number)
                             : is_extent(m, p, e.value, &axis) && axis == (int64_t)i;
    if (!is_kept && !was_made(m, p, i, &e)) ++open;
  }
  if (!om_list_element_at(m->rw, m->facts, p->shape, rank - 1, &e) ||
      !is_number(m, p, &e, &p->heads))
    return false;
  if (p->heads <= 0 || p->width % p->heads != 0) return false;
  if (!om_list_element_at(m->rw, m->facts, p->shape, rank, &e)) return false;
  if (!is_number(m, p, &e, &number) || number * p->heads != p->width) {
    if (e.value == OM_NO_VALUE && e.number != -1) return false;
    ++open;
  }
  return open <= 1;
}

/* Of a product of rank 2 the Reshape makes all axes: heads and their size must be known. */
static bool is_split_of_rows(const om_packed_match *m, om_projection *p) {
  const uint32_t count = om_value_list_count(m->rw, m->facts, p->shape);
  om_list_element heads, size;
  if (count == OM_RANK_UNKNOWN || count < 3 || count > OM_MAX_RANK) return false;
  if (!om_list_element_at(m->rw, m->facts, p->shape, count - 2, &heads) ||
      heads.value != OM_NO_VALUE)
    return false;
  if (!om_list_element_at(m->rw, m->facts, p->shape, count - 1, &size) || size.value != OM_NO_VALUE)
    return false;
  p->heads = heads.number;
  return heads.number > 0 && size.number > 0 && heads.number * size.number == p->width;
}

/* True if both Reshapes make the same axes in front of the heads. */
static bool have_same_axes(const om_packed_match *m,
                           const om_projection *a,
                           const om_projection *b) {
  const uint32_t count = om_value_list_count(m->rw, m->facts, a->shape);
  if (a->shape == b->shape) return true;
  if (count != om_value_list_count(m->rw, m->facts, b->shape)) return false;
  for (uint32_t i = 0; i + 2 < count; ++i) {
    om_list_element x, y;
    if (!om_list_element_at(m->rw, m->facts, a->shape, i, &x) ||
        !om_list_element_at(m->rw, m->facts, b->shape, i, &y))
      return false;
    if (!om_list_elements_are_same(m->rw, &x, &y)) return false;
  }
  return true;
}

/* ---- The pattern ---- */

/* Everything but one reader asks for the shape alone. */
static bool is_read_as_data_once(const om_rewriter *rw, om_value_id value) {
  return !rw->graph->values[value].is_output && rw->uses[value] - rw->shape_uses[value] == 1;
}

/* [Add of a bias] over MatMul by constant weights. */
static bool match_matmul(const om_rewriter *rw, om_value_id value, om_projection *p) {
  const om_node *add = om_rewriter_made_by(rw, value, "Add");
  om_value_id product = value;
  for (uint32_t i = 0; add && i < 2 && !p->bias; ++i) {
    p->bias = float_constant(rw, add->inputs[i], 1);
    product = add->inputs[1 - i];
  }
  if (add && (!p->bias || !om_rewriter_is_read_once(rw, product))) return false;
  const om_node *matmul = om_rewriter_made_by(rw, product, "MatMul");
  p->weights = matmul ? float_constant(rw, matmul->inputs[1], 2) : NULL;
  if (!p->weights) return false;
  p->x = matmul->inputs[0];
  p->width = p->weights->dims[1];
  return true;
}

/* x W + b, of plain factors. */
static om_status match_gemm(
    om_ctx *ctx, const om_rewriter *rw, const om_node *gemm, om_projection *p, bool *out_fits) {
  int64_t turns_x = 0, turns_w = 0;
  float alpha = 1.0f, beta = 1.0f;
  OM_TRY(om_node_attr_int(ctx, gemm, "transA", 0, &turns_x));
  OM_TRY(om_node_attr_int(ctx, gemm, "transB", 0, &turns_w));
  OM_TRY(om_node_attr_float(ctx, gemm, "alpha", 1.0f, &alpha));
  OM_TRY(om_node_attr_float(ctx, gemm, "beta", 1.0f, &beta));
  const bool has_bias = gemm->input_count > 2 && gemm->inputs[2] != OM_NO_VALUE;
  p->weights = float_constant(rw, gemm->inputs[1], 2);
  p->bias = has_bias ? float_constant(rw, gemm->inputs[2], 1) : NULL;
  *out_fits = p->weights && gemm->opset >= 7 && turns_x == 0 && alpha == 1.0f && beta == 1.0f &&
              (!has_bias || p->bias);
  if (!*out_fits) return OM_OK;
  p->are_turned = turns_w != 0;
  p->x = gemm->inputs[0];
  p->width = p->weights->dims[p->are_turned ? 0 : 1];
  return OM_OK;
}

/* A part of constant size that a Split of the last axis gives. */
static om_status match_split(
    om_ctx *ctx, const om_packed_match *m, om_value_id value, om_projection *p, bool *out_fits) {
  const om_graph *graph = m->rw->graph;
  const om_node *split = &graph->nodes[graph->values[value].producer];
  const int64_t *sizes = NULL;
  size_t count = 0;
  int64_t axis = 0;
  *out_fits = false;
  OM_TRY(om_node_attr_int(ctx, split, "axis", 0, &axis));
  OM_TRY(om_node_attr_ints(ctx, split, "split", &sizes, &count));
  const om_tensor *list =
      split->input_count > 1 ? om_rewriter_constant(m->rw, split->inputs[1]) : NULL;
  if (list && list->dtype != OM_DTYPE_I64) return OM_OK;
  if (list) count = om_tensor_elems(list);
  const uint32_t rank = m->facts[split->inputs[0]].rank;
  if (count != split->output_count || rank == OM_RANK_UNKNOWN) return OM_OK;
  if (axis != -1 && axis + 1 != (int64_t)rank) return OM_OK;
  p->x = split->inputs[0];
  for (uint32_t i = 0; i < count && split->outputs[i] != value; ++i) {
    p->first += list ? om_list_int(list, i) : sizes[i];
    p->width = list ? om_list_int(list, i + 1) : sizes[i + 1];
  }
  if (split->outputs[0] == value) p->width = list ? om_list_int(list, 0) : sizes[0];
  *out_fits = true;
  return OM_OK;
}

static bool is_split_part(const om_rewriter *rw, om_value_id value) {
  const om_node_id id = rw->graph->values[value].producer;
  const om_node *node = id == OM_NO_NODE ? NULL : &rw->graph->nodes[id];
  return node && node->type && node->domain[0] == '\0' && strcmp(node->type, "Split") == 0;
}

/* [Mul by a scalar] over a product with its bias. */
static om_status match_product(
    om_ctx *ctx, const om_rewriter *rw, om_value_id value, om_projection *p, bool *out_fits) {
  const om_node *mul = om_rewriter_made_by(rw, value, "Mul");
  for (uint32_t i = 0; mul && i < 2 && !p->scale; ++i) {
    const om_tensor *by = om_rewriter_constant(rw, mul->inputs[i]);
    if (!by || om_tensor_elems(by) != 1 || by->rank > 1) continue;
    p->scale = by;
    value = mul->inputs[1 - i];
  }
  *out_fits = false;
  if (mul && (!p->scale || !om_rewriter_is_read_once(rw, value))) return OM_OK;
  const om_node *gemm = om_rewriter_made_by(rw, value, "Gemm");
  if (gemm) {
    OM_TRY(match_gemm(ctx, rw, gemm, p, out_fits));
  } else {
    *out_fits = match_matmul(rw, value, p);
  }
  if (*out_fits && p->bias) *out_fits = p->bias->dims[0] == p->width;
  if (*out_fits && p->scale) *out_fits = p->scale->dtype == p->weights->dtype;
  return OM_OK;
}

/* Sets *out_fits if the operand is a projection whose heads are known. */
static om_status match_side(om_ctx *ctx, om_packed_match *m, uint32_t side, bool *out_fits) {
  const om_rewriter *rw = m->rw;
  const om_value_id value = rw->graph->nodes[m->attention].inputs[side];
  const om_node *reshape = value == OM_NO_VALUE ? NULL : om_rewriter_made_by(rw, value, "Reshape");
  om_projection *p = &m->sides[side];
  int64_t allows_zero = 0;
  *out_fits = false;
  *p = (om_projection){.x = OM_NO_VALUE, .result = OM_NO_VALUE};
  if (!reshape || reshape->input_count != 2 || !is_read_as_data_once(rw, value)) return OM_OK;
  OM_TRY(om_node_attr_int(ctx, reshape, "allowzero", 0, &allows_zero));
  if (allows_zero != 0 || !is_read_as_data_once(rw, reshape->inputs[0])) return OM_OK;
  p->result = reshape->inputs[0];
  p->shape = reshape->inputs[1];
  if (is_split_part(rw, p->result)) return match_split(ctx, m, p->result, p, out_fits);
  return match_product(ctx, rw, p->result, p, out_fits);
}

/* True if the two can be packed: from the same tensor, by matrices of one depth and type. */
static bool go_together(const om_packed_match *m, uint32_t first, uint32_t second) {
  const om_projection *a = &m->sides[first], *b = &m->sides[second];
  if (!m->fits[first] || !m->fits[second] || a->x != b->x || a->is_flat != b->is_flat) return false;
  if (!a->weights != !b->weights) return false;
  if (a->is_flat && !have_same_axes(m, a, b)) return false;
  if (!a->weights) return true;
  return a->weights->dtype == b->weights->dtype &&
         a->weights->dims[a->are_turned ? 1 : 0] == b->weights->dims[b->are_turned ? 1 : 0];
}

/* Leaves in m->fits what is packed: all three, or two. */
static bool choose_sides(om_packed_match *m) {
  static const uint32_t pairs[OM_PACKED_SIDES][2] = {{1, 2}, {0, 1}, {0, 2}};
  if (go_together(m, 0, 1) && go_together(m, 0, 2)) return true;
  for (size_t i = 0; i < OM_COUNT_OF(pairs); ++i) {
    if (!go_together(m, pairs[i][0], pairs[i][1])) continue;
    for (uint32_t k = 0; k < OM_PACKED_SIDES; ++k)
      m->fits[k] = k == pairs[i][0] || k == pairs[i][1];
    return true;
  }
  return false;
}

om_status om_packed_find(om_ctx *ctx, om_packed_match *m, bool *out_fits) {
  const om_node *node = &m->rw->graph->nodes[m->attention];
  *out_fits = false;
  if (om_node_attr(node, "heads")) return OM_OK;
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) OM_TRY(match_side(ctx, m, i, &m->fits[i]));
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) {
    om_projection *p = &m->sides[i];
    if (!m->fits[i] || p->width <= 0) {
      m->fits[i] = false;
    } else if (!is_split(m, p)) {
      p->is_flat = p->weights && m->facts[p->x].rank == 2;
      m->fits[i] = p->is_flat && is_split_of_rows(m, p);
    }
  }
  *out_fits = choose_sides(m);
  return OM_OK;
}
