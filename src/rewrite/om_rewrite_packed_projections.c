/* Projections of an attention that read the same tensor, as one product:
 *
 *     Reshape(MatMul(x, Wq) + bq), Reshape(MatMul(x, Wk) + bk), Reshape(MatMul(x, Wv) + bv)
 *     become MatMul(x, [Wq Wk Wv]) + [bq bk bv],
 *
 * of which the attention reads the columns of each (ops_attention.c), without a copy. Two of the
 * three are taken where the other one reads another tensor: keys and values of a cross attention.
 * Widths may differ, a bias may be missing (its columns are 0), and a scalar may scale the sum (the
 * other columns are times 1). What a model packed itself, and splits, is read in place:
 *
 *     Reshape(Split(y)[0]), Reshape(Split(y)[1]), Reshape(Split(y)[2])   become   y.
 *
 * The Reshapes must do nothing but split the last axis into heads, which is looked up in their
 * shapes. Where the product has rank 2 (Gemm, or a MatMul of rows), they also undo what made the
 * rows of it; then one Reshape to these axes stands behind the packed product.
 *
 * Each column of a product is summed on its own, so the bits stay. For the device, where fewer and
 * larger dispatches are what counts.
 */
#include "rewrite/om_joined.h"
#include "rewrite/om_packed_match.h"

static size_t dtype_bytes(const om_tensor *tensor) {
  return om_dtype_bits(tensor->dtype) / 8;
}

/* Copies the projection's weights to its columns of `total`. */
static om_status place_weights(
    om_ctx *ctx, const om_projection *p, int64_t first, int64_t total, char *out) {
  const size_t bytes = dtype_bytes(p->weights);
  const size_t width = (size_t)p->width;
  const size_t depth = (size_t)p->weights->dims[p->are_turned ? 1 : 0];
  const char *from = p->weights->data;
  for (size_t term = 0; term < depth; ++term) {
    char *to = out + (term * (size_t)total + (size_t)first) * bytes;
    if (!p->are_turned) {
      memcpy(to, from + term * width * bytes, width * bytes);
      continue;
    }
    for (size_t col = 0; col < width; ++col) {
      memcpy(to + col * bytes, from + (col * depth + term) * bytes, bytes);
    }
  }
  (void)ctx;
  return OM_OK;
}

static om_status place_bias(
    om_ctx *ctx, const om_projection *p, int64_t first, int64_t total, char *out) {
  const size_t bytes = dtype_bytes(p->weights);
  const size_t count = (size_t)p->width * bytes;
  (void)total;
  if (!p->bias) return OM_OK;
  OM_TRY(om_constant_ask(ctx, p->bias, 0, count));
  return om_constant_read(ctx, p->bias, 0, count, out + (size_t)first * bytes);
}

static om_status place_scale(
    om_ctx *ctx, const om_projection *p, int64_t first, int64_t total, char *out) {
  static const float one = 1.0f;
  static const uint16_t half_one = 0x3c00;
  const size_t bytes = dtype_bytes(p->weights);
  const void *plain = p->weights->dtype == OM_DTYPE_F16 ? (const void *)&half_one : &one;
  (void)total;
  for (int64_t col = first; col < first + p->width; ++col) {
    memcpy(out + (size_t)col * bytes, p->scale ? p->scale->data : plain, bytes);
  }
  (void)ctx;
  return OM_OK;
}

typedef om_status (*placer)(
    om_ctx *ctx, const om_projection *p, int64_t first, int64_t total, char *out);

/* A constant of the shape of `like`, of which each packed side has the columns firsts[side] on. */
static om_status join(om_ctx *ctx,
                      om_rewriter *rw,
                      const om_packed_match *m,
                      const om_tensor *like,
                      const int64_t firsts[OM_PACKED_SIDES],
                      placer place,
                      om_value_id *out_id) {
  const int64_t total = like->dims[like->rank - 1];
  void *data;
  OM_TRY(
      om_rewriter_add_constant(ctx, rw, rw->graph->nodes[m->attention].name, like, &data, out_id));
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) {
    if (m->fits[i]) OM_TRY(place(ctx, &m->sides[i], firsts[i], total, data));
  }
  return OM_OK;
}

static bool has_stored_weights(const om_packed_match *m) {
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) {
    if (m->fits[i] && om_stored_of(m->sides[i].weights)) return true;
  }
  return false;
}

/* Weights that are not in memory are packed as they are read. */
static om_status join_stored(om_ctx *ctx,
                             om_rewriter *rw,
                             const om_packed_match *m,
                             const om_tensor *like,
                             const int64_t firsts[OM_PACKED_SIDES],
                             om_value_id *out_id) {
  om_joined_part parts[OM_PACKED_SIDES];
  size_t count = 0;
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) {
    const om_projection *p = &m->sides[i];
    if (!m->fits[i]) continue;
    parts[count++] = (om_joined_part){.source = p->weights,
                                      .first = (size_t)firsts[i],
                                      .width = (size_t)p->width,
                                      .is_turned = p->are_turned};
  }
  const om_tensor *joined = NULL;
  OM_TRY(om_joined_create(ctx, &rw->graph->pool, like, parts, count, &joined));
  return om_rewriter_add_stored(ctx, rw, rw->graph->nodes[m->attention].name, joined, out_id);
}

/* A new node "<attention>.<suffix>" of these inputs. */
static om_status add_node(om_ctx *ctx,
                          om_rewriter *rw,
                          const om_packed_match *m,
                          const char *suffix,
                          om_dtype dtype,
                          const om_rewritten_node *what,
                          om_value_id *out_value) {
  const char *stem = rw->graph->nodes[m->attention].name;
  const char *name = om_pool_format(ctx, &rw->graph->pool, "%s.%s", stem, suffix);
  if (!name) return OM_E_OUT_OF_MEMORY;
  return om_rewriter_add_node(ctx, rw, name, dtype, what, out_value);
}

static om_status add_ints(
    om_ctx *ctx, om_rewriter *rw, int64_t count, const int64_t *values, om_value_id *out_id) {
  const om_tensor like = {.dtype = OM_DTYPE_I64, .rank = 1, .dims = {count}};
  void *data;
  OM_TRY(om_rewriter_add_constant(ctx, rw, "axes", &like, &data, out_id));
  memcpy(data, values, (size_t)count * sizeof *values);
  return OM_OK;
}

/* Reshape to the axes of `shape` without its last two, and the packed columns. */
static om_status add_axes(om_ctx *ctx,
                          om_rewriter *rw,
                          const om_packed_match *m,
                          const om_projection *p,
                          int64_t total,
                          om_value_id *inout_value) {
  const int64_t zero = 0, minus_two = -2;
  const om_attr axis = {.name = "axis", .kind = OM_ATTR_INT, .count = 1, .i = 0};
  om_value_id slice[4] = {p->shape}, parts[2], reshape[2] = {*inout_value};
  const om_rewritten_node slicing = {
      .type = "Slice", .opset = 13, .inputs = slice, .input_count = 4};
  const om_rewritten_node joining = {.type = "Concat",
                                     .opset = 13,
                                     .inputs = parts,
                                     .input_count = 2,
                                     .attrs = &axis,
                                     .attr_count = 1};
  const om_rewritten_node reshaping = {
      .type = "Reshape", .opset = 13, .inputs = reshape, .input_count = 2};
  OM_TRY(add_ints(ctx, rw, 1, &zero, &slice[1]));
  OM_TRY(add_ints(ctx, rw, 1, &minus_two, &slice[2]));
  slice[3] = slice[1];
  OM_TRY(add_node(ctx, rw, m, "outer_axes", OM_DTYPE_I64, &slicing, &parts[0]));
  OM_TRY(add_ints(ctx, rw, 1, &total, &parts[1]));
  OM_TRY(add_node(ctx, rw, m, "axes", OM_DTYPE_I64, &joining, &reshape[1]));
  return add_node(ctx, rw, m, "reshaped", p->weights->dtype, &reshaping, inout_value);
}

/* Not inlined: with the match the frame would be too large. */
__attribute__((noinline)) static om_status pack(om_ctx *ctx,
                                                om_rewriter *rw,
                                                const om_packed_match *m,
                                                const om_projection *p,
                                                const int64_t firsts[OM_PACKED_SIDES],
                                                int64_t total,
                                                om_value_id *out_value) {
  const om_dtype dtype = p->weights->dtype;
  const om_tensor matrix = {
      .dtype = dtype, .rank = 2, .dims = {p->weights->dims[p->are_turned ? 1 : 0], total}};
  const om_tensor row = {.dtype = dtype, .rank = 1, .dims = {total}};
  om_value_id inputs[2] = {p->x};
  om_rewritten_node what = {.type = "MatMul", .opset = 13, .inputs = inputs, .input_count = 2};
  bool has_bias = false, has_scale = false;
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) {
    has_bias |= m->fits[i] && m->sides[i].bias;
    has_scale |= m->fits[i] && m->sides[i].scale;
  }
  if (has_stored_weights(m)) {
    OM_TRY(join_stored(ctx, rw, m, &matrix, firsts, &inputs[1]));
  } else {
    OM_TRY(join(ctx, rw, m, &matrix, firsts, place_weights, &inputs[1]));
  }
  OM_TRY(add_node(ctx, rw, m, "projections", dtype, &what, out_value));
  if (has_bias) {
    inputs[0] = *out_value;
    what.type = "Add";
    OM_TRY(join(ctx, rw, m, &row, firsts, place_bias, &inputs[1]));
    OM_TRY(add_node(ctx, rw, m, "biased", dtype, &what, out_value));
  }
  if (has_scale) {
    inputs[0] = *out_value;
    what.type = "Mul";
    OM_TRY(join(ctx, rw, m, &row, firsts, place_scale, &inputs[1]));
    OM_TRY(add_node(ctx, rw, m, "scaled", dtype, &what, out_value));
  }
  return p->is_flat ? add_axes(ctx, rw, m, p, total, out_value) : OM_OK;
}

/* The attributes that tell the attention which columns are whose. */
static om_status set_columns(om_ctx *ctx,
                             om_rewriter *rw,
                             const om_packed_match *m,
                             const int64_t firsts[OM_PACKED_SIDES],
                             om_attr out_attrs[3]) {
  static const char *const names[] = {"heads", "firsts", "widths"};
  int64_t *values = OM_POOL_NEW(ctx, &rw->graph->pool, int64_t, 3 * OM_PACKED_SIDES); /* zeroed */
  if (!values) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) {
    if (!m->fits[i]) continue;
    values[i] = m->sides[i].heads;
    values[OM_PACKED_SIDES + i] = firsts[i];
    values[2 * OM_PACKED_SIDES + i] = m->sides[i].width;
  }
  for (uint32_t i = 0; i < 3; ++i) {
    const int64_t *ints = values + (size_t)i * OM_PACKED_SIDES;
    out_attrs[i] =
        (om_attr){.name = names[i], .kind = OM_ATTR_INTS, .count = OM_PACKED_SIDES, .ints = ints};
  }
  return OM_OK;
}

/* What is left of the parts goes as dead nodes do. */
static om_status replace(om_ctx *ctx, om_rewriter *rw, const om_packed_match *m) {
  const om_projection *p = NULL;
  int64_t firsts[OM_PACKED_SIDES], total = 0;
  om_value_id packed;
  om_value_id inputs[8];
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) {
    if (!m->fits[i]) continue;
    p = &m->sides[i];
    firsts[i] = p->weights ? total : p->first;
    total += p->width;
  }
  packed = p->x;
  if (p->weights) OM_TRY(pack(ctx, rw, m, p, firsts, total, &packed));
  const om_node *node = &rw->graph->nodes[m->attention];
  const uint32_t count = node->attr_count;
  om_attr *attrs = OM_POOL_NEW(ctx, &rw->graph->pool, om_attr, count + 3);
  if (!attrs) return OM_E_OUT_OF_MEMORY;
  memcpy(inputs, node->inputs, node->input_count * sizeof *inputs);
  if (count > 0) memcpy(attrs, node->attrs, count * sizeof *attrs);
  for (uint32_t i = 0; i < OM_PACKED_SIDES; ++i) {
    if (m->fits[i]) inputs[i] = packed;
  }
  OM_TRY(set_columns(ctx, rw, m, firsts, &attrs[count]));
  const om_rewritten_node what = {.domain = "onemodel",
                                  .type = "Attention",
                                  .opset = 1,
                                  .inputs = inputs,
                                  .input_count = node->input_count,
                                  .attrs = attrs,
                                  .attr_count = count + 3};
  return om_rewriter_become(ctx, rw, m->attention, &what);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_value_fact *facts = NULL; /* scratch; of the values there were */
  const size_t node_count = rw->graph->node_count;
  OM_GO(om_value_facts_create(ctx, rw, &facts));
  for (om_node_id id = 0; id < node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    om_packed_match m = {.rw = rw, .facts = facts, .attention = id};
    bool does_fit = false;
    if (!node->type || strcmp(node->domain, "onemodel") != 0) continue;
    if (strcmp(node->type, "Attention") != 0 || node->input_count > 7) continue;
    OM_GO(om_packed_find(ctx, &m, &does_fit));
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
