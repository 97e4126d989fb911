/* The projections of an attention that read the same tensor, as one product:
 *
 *     Reshape(MatMul(x, Wq) + bq), Reshape(MatMul(x, Wk) + bk), Reshape(MatMul(x, Wv) + bv)
 *     become MatMul(x, [Wq Wk Wv]) + [bq bk bv],
 *
 * which the attention reads in three parts (ops_attention.c), without a copy. The Reshapes must do
 * nothing but split the last axis into heads, which is looked up in their shapes. Each column of a
 * product is summed on its own, so the bits stay. For the device, where fewer and larger dispatches
 * are what counts.
 */
#include "rewrite/om_rewrite_facts.h"

enum { PARTS = 3, MOST_STEPS = 8, MOST_ATTRS = 12 };

typedef struct projection {
  om_value_id x;
  om_value_id result; /* of the MatMul or the Add: what the Reshape reads */
  om_value_id shape;  /* the Reshape's */
  const om_tensor *weights;
  const om_tensor *bias; /* NULL: none */
  int64_t heads;
} projection;

typedef struct match {
  const om_rewriter *rw;
  const om_value_fact *facts;
  om_node_id attention;
  projection parts[PARTS];
} match;

static const om_node *maker(const om_rewriter *rw, om_value_id value, const char *type) {
  om_node_id id = om_rewriter_maker(rw, value, type);
  return id == OM_NO_NODE ? NULL : &rw->graph->nodes[id];
}

static const om_tensor *float_constant(const om_rewriter *rw, om_value_id value, uint32_t rank) {
  const om_tensor *tensor = om_rewriter_constant(rw, value);
  const bool is_float = tensor && (tensor->dtype == OM_DTYPE_F32 || tensor->dtype == OM_DTYPE_F16);
  return is_float && tensor->rank == rank ? tensor : NULL;
}

/* ---- Elements of a Reshape's shape ---- */

typedef struct element {
  om_value_id value; /* a scalar that makes it, or OM_NO_VALUE: */
  int64_t number;
} element;

static int64_t read_int(const om_tensor *tensor, size_t index) {
  int64_t number;
  memcpy(&number, (const char *)tensor->data + index * sizeof number, sizeof number);
  return number;
}

/* Element `index` of a list that om_value_list_count counted. */
static bool get_element(const om_rewriter *rw, om_value_id list, size_t index, element *out) {
  const om_tensor *constant = om_rewriter_constant(rw, list);
  const om_node *concat = maker(rw, list, "Concat");
  for (uint32_t i = 0; concat && i < concat->input_count; ++i) {
    constant = om_rewriter_constant(rw, concat->inputs[i]);
    const size_t count = constant ? om_tensor_elems(constant) : 1;
    if (index >= count) {
      index -= count;
      continue;
    }
    if (constant) break;
    const om_node *scalar = maker(rw, concat->inputs[i], "Unsqueeze");
    if (scalar) *out = (element){.value = scalar->inputs[0]};
    return scalar != NULL;
  }
  if (!constant || constant->dtype != OM_DTYPE_I64 || index >= om_tensor_elems(constant)) {
    return false;
  }
  *out = (element){.value = OM_NO_VALUE, .number = read_int(constant, index)};
  return true;
}

/* True if `value` is an extent of one of the projections or of x: *out_axis, counted from 0. */
static bool is_extent(const match *m, om_value_id value, int64_t *out_axis) {
  const om_rewriter *rw = m->rw;
  const om_node *node = maker(rw, value, "Cast");
  for (uint32_t i = 0; node && i < MOST_STEPS; ++i) {
    value = node->inputs[0];
    node = maker(rw, value, "Cast");
  }
  const om_node *gather = maker(rw, value, "Gather");
  const om_node *shape = gather ? maker(rw, gather->inputs[0], "Shape") : NULL;
  const om_tensor *index = gather ? om_rewriter_constant(rw, gather->inputs[1]) : NULL;
  if (!shape || shape->attr_count != 0 || !index || index->dtype != OM_DTYPE_I64 ||
      om_tensor_elems(index) != 1) {
    return false;
  }
  bool is_ours = shape->inputs[0] == m->parts[0].x;
  for (uint32_t i = 0; i < PARTS; ++i) is_ours |= shape->inputs[0] == m->parts[i].result;
  *out_axis = read_int(index, 0);
  if (*out_axis < 0) *out_axis += (int64_t)m->facts[m->parts[0].x].rank;
  return is_ours;
}

/* The number that an element is, where the projections' width tells: also width / heads. */
static bool is_number(const match *m, const projection *p, const element *e, int64_t *out_number) {
  const om_rewriter *rw = m->rw;
  om_value_id value = e->value;
  int64_t axis = 0;
  *out_number = e->number;
  if (value == OM_NO_VALUE) return true;
  const om_node *node = maker(rw, value, "Cast");
  for (uint32_t i = 0; node && i < MOST_STEPS; ++i) {
    value = node->inputs[0];
    node = maker(rw, value, "Cast");
  }
  const om_node *div = maker(rw, value, "Div");
  const om_tensor *by = div ? om_rewriter_constant(rw, div->inputs[1]) : NULL;
  if (!by || by->dtype != OM_DTYPE_I64 || om_tensor_elems(by) != 1 || read_int(by, 0) <= 0) {
    return false;
  }
  if (!is_extent(m, div->inputs[0], &axis)) return false;
  *out_number = p->weights->dims[1] / read_int(by, 0);
  return axis + 1 == (int64_t)m->facts[p->x].rank;
}

/* The Reshape keeps all axes but the last, which becomes [heads, size]. One element need not be
 * known: the others leave it no choice. */
static bool is_split(const match *m, projection *p) {
  const uint32_t rank = m->facts[p->x].rank;
  const om_value *result = &m->rw->graph->values[p->result];
  uint32_t open = 0;
  element e;
  int64_t number = 0, axis = 0;
  if (rank == OM_RANK_UNKNOWN || rank < 2 || rank >= OM_MAX_RANK) return false;
  if (om_value_list_count(m->rw, m->facts, p->shape) != rank + 1) return false;
  for (uint32_t i = 0; i + 1 < rank; ++i) {
    if (!get_element(m->rw, p->shape, i, &e)) return false;
    const bool is_kept = e.value == OM_NO_VALUE
                             ? e.number == 0 || (result->has_rank && result->dims[i] == e.number)
                             : is_extent(m, e.value, &axis) && axis == (int64_t)i;
    if (!is_kept) ++open;
  }
  if (!get_element(m->rw, p->shape, rank - 1, &e) || !is_number(m, p, &e, &p->heads)) return false;
  if (p->heads <= 0 || p->weights->dims[1] % p->heads != 0) return false;
  if (!get_element(m->rw, p->shape, rank, &e)) return false;
  if (!is_number(m, p, &e, &number) || number * p->heads != p->weights->dims[1]) {
    if (e.value == OM_NO_VALUE && e.number != -1) return false;
    ++open;
  }
  return open <= 1;
}

/* ---- The pattern ---- */

static bool is_read_once(const om_rewriter *rw, om_value_id value) {
  return rw->uses[value] == 1 && !rw->graph->values[value].is_output;
}

/* Everything but one reader asks for the shape alone. */
static bool is_read_as_data_once(const om_rewriter *rw, om_value_id value) {
  uint32_t count = 0;
  if (rw->graph->values[value].is_output) return false;
  if (rw->uses[value] == 1) return true;
  for (size_t i = 0; i < rw->graph->node_count; ++i) {
    const om_node *node = &rw->graph->nodes[i];
    if (!node->type || strcmp(node->type, "Shape") == 0) continue;
    for (uint32_t k = 0; k < node->input_count; ++k) count += node->inputs[k] == value;
  }
  return count == 1;
}

static om_status match_projection(
    om_ctx *ctx, const om_rewriter *rw, om_value_id value, projection *p, bool *out_fits) {
  const om_node *reshape = value == OM_NO_VALUE ? NULL : maker(rw, value, "Reshape");
  int64_t allows_zero = 0;
  *out_fits = false;
  if (!reshape || reshape->input_count != 2 || !is_read_once(rw, value)) return OM_OK;
  OM_TRY(om_node_attr_int(ctx, reshape, "allowzero", 0, &allows_zero));
  *p = (projection){.result = reshape->inputs[0], .shape = reshape->inputs[1]};
  if (allows_zero != 0 || !is_read_as_data_once(rw, p->result)) return OM_OK;
  const om_node *add = maker(rw, p->result, "Add");
  om_value_id product = p->result;
  for (uint32_t i = 0; add && i < 2 && !p->bias; ++i) {
    p->bias = float_constant(rw, add->inputs[i], 1);
    product = add->inputs[1 - i];
  }
  if (add && (!p->bias || !is_read_once(rw, product))) return OM_OK;
  const om_node *matmul = maker(rw, product, "MatMul");
  p->weights = matmul ? float_constant(rw, matmul->inputs[1], 2) : NULL;
  if (!p->weights || p->weights->dims[1] == 0) return OM_OK;
  p->x = matmul->inputs[0];
  *out_fits = !p->bias || p->bias->dims[0] == p->weights->dims[1];
  return OM_OK;
}

static om_status find(om_ctx *ctx, match *m, bool *out_fits) {
  const om_node *node = &m->rw->graph->nodes[m->attention];
  const projection *first = &m->parts[0];
  *out_fits = false;
  if (node->attr_count + 2 > MOST_ATTRS || om_node_attr(node, "heads")) return OM_OK;
  for (uint32_t i = 0; i < PARTS; ++i) {
    projection *p = &m->parts[i];
    bool fits = false;
    OM_TRY(match_projection(ctx, m->rw, node->inputs[i], p, &fits));
    if (!fits || p->x != first->x || !p->bias != !first->bias) return OM_OK;
    if (p->weights->dtype != first->weights->dtype) return OM_OK;
    for (uint32_t d = 0; d < 2; ++d) {
      if (p->weights->dims[d] != first->weights->dims[d]) return OM_OK;
    }
  }
  for (uint32_t i = 0; i < PARTS; ++i) {
    if (!is_split(m, &m->parts[i]) || m->parts[i].heads != first->heads) return OM_OK;
  }
  *out_fits = true;
  return OM_OK;
}

/* ---- The replacement ---- */

/* Rows of the parts side by side, as a new constant. */
static om_status join(om_ctx *ctx,
                      om_rewriter *rw,
                      const char *name,
                      const om_tensor *const parts[PARTS],
                      om_value_id *out_id) {
  om_tensor like = *parts[0];
  const size_t rows = om_tensor_elems(&like) / (size_t)like.dims[like.rank - 1];
  const size_t row_bytes = (size_t)like.dims[like.rank - 1] * (om_dtype_bits(like.dtype) / 8);
  void *data;
  like.dims[like.rank - 1] *= PARTS;
  OM_TRY(om_rewriter_add_constant(ctx, rw, name, &like, &data, out_id));
  for (size_t row = 0; row < rows; ++row) {
    for (size_t part = 0; part < PARTS; ++part) {
      memcpy((char *)data + (row * PARTS + part) * row_bytes,
             (const char *)parts[part]->data + row * row_bytes,
             row_bytes);
    }
  }
  return OM_OK;
}

/* A new node of one new value of this type, *out_value. */
static om_status add_node(om_ctx *ctx,
                          om_rewriter *rw,
                          om_dtype dtype,
                          const char *name,
                          const om_rewritten_node *what,
                          om_value_id *out_value) {
  om_graph *graph = rw->graph;
  om_value value = {.name = name, .dtype = dtype, .producer = OM_NO_NODE};
  om_value_id *outputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, 1);
  om_node_id id;
  if (!outputs) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_graph_add_value(ctx, graph, &value, &outputs[0]));
  const om_node node = {
      .name = name, .type = what->type, .domain = "", .outputs = outputs, .output_count = 1};
  OM_TRY(om_graph_add_node(ctx, graph, &node, &id));
  *out_value = outputs[0];
  return om_rewriter_become(ctx, rw, id, what);
}

static om_status pack(om_ctx *ctx, om_rewriter *rw, const match *m, om_value_id *out_value) {
  const om_node *node = &rw->graph->nodes[m->attention];
  const char *name = om_pool_format(ctx, &rw->graph->pool, "%s.projections", node->name);
  const char *sum_name = om_pool_format(ctx, &rw->graph->pool, "%s.biased", node->name);
  const om_dtype dtype = m->parts[0].weights->dtype;
  const om_tensor *parts[PARTS];
  om_value_id inputs[2] = {m->parts[0].x};
  om_rewritten_node what = {.type = "MatMul", .opset = 13, .inputs = inputs, .input_count = 2};
  if (!name || !sum_name) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < PARTS; ++i) parts[i] = m->parts[i].weights;
  OM_TRY(join(ctx, rw, name, parts, &inputs[1]));
  OM_TRY(add_node(ctx, rw, dtype, name, &what, out_value));
  if (!m->parts[0].bias) return OM_OK;
  for (uint32_t i = 0; i < PARTS; ++i) parts[i] = m->parts[i].bias;
  inputs[0] = *out_value;
  what.type = "Add";
  OM_TRY(join(ctx, rw, sum_name, parts, &inputs[1]));
  return add_node(ctx, rw, dtype, sum_name, &what, out_value);
}

/* What is left of the parts goes as dead nodes do. */
static om_status replace(om_ctx *ctx, om_rewriter *rw, const match *m) {
  om_value_id packed;
  om_value_id inputs[8];
  om_attr attrs[MOST_ATTRS];
  OM_TRY(pack(ctx, rw, m, &packed));
  const om_node *node = &rw->graph->nodes[m->attention];
  uint32_t count = node->attr_count;
  memcpy(inputs, node->inputs, node->input_count * sizeof *inputs);
  if (count > 0) memcpy(attrs, node->attrs, count * sizeof *attrs);
  for (uint32_t i = 0; i < PARTS; ++i) inputs[i] = packed;
  attrs[count++] =
      (om_attr){.name = "heads", .kind = OM_ATTR_INT, .count = 1, .i = m->parts[0].heads};
  attrs[count++] = (om_attr){.name = "parts", .kind = OM_ATTR_INT, .count = 1, .i = PARTS};
  const om_rewritten_node what = {.domain = "onemodel",
                                  .type = "Attention",
                                  .opset = 1,
                                  .inputs = inputs,
                                  .input_count = node->input_count,
                                  .attrs = attrs,
                                  .attr_count = count};
  return om_rewriter_become(ctx, rw, m->attention, &what);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch; of the values there were */
  const size_t node_count = rw->graph->node_count;
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  for (om_node_id id = 0; id < node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    match m = {.rw = rw, .facts = facts, .attention = id};
    bool does_fit = false;
    if (!node->type || strcmp(node->domain, "onemodel") != 0) continue;
    if (strcmp(node->type, "Attention") != 0 || node->input_count > 7) continue;
    OM_GO(find(ctx, &m, &does_fit));
    if (does_fit) OM_GO(replace(ctx, rw, &m));
  }
done:
  om_delete(ctx, facts);
  return st;
}

const om_rewrite om_rewrite_packed_projections = {
    .name = "packed_projections",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_FOR_DEVICE,
    .apply = apply,
};
