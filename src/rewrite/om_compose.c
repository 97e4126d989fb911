/* What compositions are made with. See om_compose.h. */
#include "rewrite/om_compose.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- The node that goes ---- */

om_value_id om_compose_input(const om_composer *c, uint32_t index) {
  return index < c->node.input_count ? c->node.inputs[index] : OM_NO_VALUE;
}

bool om_compose_wants(const om_composer *c, uint32_t output) {
  if (output >= c->node.output_count || c->node.outputs[output] == OM_NO_VALUE) return false;
  return c->rw->uses[c->node.outputs[output]] > 0;
}

int64_t om_compose_attr_int(om_composer *c, const char *name, int64_t fallback) {
  int64_t value = fallback;
  if (c->status == OM_OK) c->status = om_node_attr_int(c->ctx, &c->node, name, fallback, &value);
  return value;
}

float om_compose_attr_float(om_composer *c, const char *name, float fallback) {
  float value = fallback;
  if (c->status == OM_OK) c->status = om_node_attr_float(c->ctx, &c->node, name, fallback, &value);
  return value;
}

om_dtype om_compose_dtype(const om_composer *c, om_value_id value) {
  return value < c->fact_count ? c->facts[value].dtype : OM_DTYPE_NONE;
}

uint32_t om_compose_rank(const om_composer *c, om_value_id value) {
  return value < c->fact_count ? c->facts[value].rank : OM_RANK_UNKNOWN;
}

int64_t om_compose_extent(const om_composer *c, om_value_id value, int axis) {
  if (value == OM_NO_VALUE) return -1;
  const om_value *v = &c->rw->graph->values[value];
  const bool is_known = v->constant || v->has_rank;
  const uint32_t rank = v->constant ? v->constant->rank : v->rank;
  if (axis < 0) axis += (int)rank;
  if (!is_known || axis < 0 || (uint32_t)axis >= rank) return -1;
  return v->constant ? v->constant->dims[axis] : v->dims[axis];
}

OM_PRINTF(3, 0)
static void fail(om_composer *c, om_status status, const char *fmt, va_list args) {
  char text[256];
  if (c->status != OM_OK) return;
  vsnprintf(text, sizeof text, fmt, args);
  c->status = OM_FAIL(c->ctx, status, "%s", text);
}

void om_compose_fail(om_composer *c, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fail(c, OM_E_INVALID_MODEL, fmt, args);
  va_end(args);
}

void om_compose_refuse(om_composer *c, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fail(c, OM_E_UNSUPPORTED, fmt, args);
  va_end(args);
}

/* ---- Nodes ---- */

/* A new node of this type that writes `output`. */
static om_status add_node(om_composer *c,
                          const char *type,
                          const om_rewritten_node *what,
                          const om_value_id *output) {
  om_graph *graph = c->rw->graph;
  om_node node = {.type = type, .domain = "", .outputs = output, .output_count = 1};
  om_node_id id;
  node.name = om_pool_format(
      c->ctx, &graph->pool, "%s/%s.%u", c->node.name, type, (unsigned)c->node_count++);
  if (!node.name) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_graph_add_node(c->ctx, graph, &node, &id));
  return om_rewriter_become(c->ctx, c->rw, id, what);
}

static om_status add_value(om_composer *c, om_value_id *out_value) {
  om_graph *graph = c->rw->graph;
  om_value value = {.producer = OM_NO_NODE};
  value.name = om_pool_format(c->ctx, &graph->pool, "%s/%zu", c->node.name, graph->value_count);
  if (!value.name) return OM_E_OUT_OF_MEMORY;
  return om_graph_add_value(c->ctx, graph, &value, out_value);
}

om_value_id om_compose_node(om_composer *c,
                            const char *type,
                            const om_value_id *inputs,
                            uint32_t input_count,
                            const om_attr *attrs,
                            uint32_t attr_count) {
  const om_rewritten_node what = {.type = type,
                                  .opset = OM_COMPOSE_OPSET,
                                  .inputs = inputs,
                                  .input_count = input_count,
                                  .attrs = attrs,
                                  .attr_count = attr_count};
  if (c->status != OM_OK) return OM_NO_VALUE;
  om_value_id *output = OM_POOL_NEW(c->ctx, &c->rw->graph->pool, om_value_id, 1);
  if (!output) c->status = OM_E_OUT_OF_MEMORY;
  if (c->status == OM_OK) c->status = add_value(c, output);
  if (c->status == OM_OK) c->status = add_node(c, type, &what, output);
  return c->status == OM_OK ? *output : OM_NO_VALUE;
}

void om_compose_result(om_composer *c, uint32_t index, om_value_id value) {
  const om_rewritten_node what = {
      .type = "Identity", .opset = OM_COMPOSE_OPSET, .inputs = &value, .input_count = 1};
  if (c->status != OM_OK || index >= c->node.output_count) return;
  if (c->node.outputs[index] == OM_NO_VALUE) return;
  c->status = add_node(c, "Identity", &what, &c->node.outputs[index]);
}

om_value_id om_compose_1(om_composer *c, const char *type, om_value_id a) {
  return om_compose_node(c, type, &a, 1, NULL, 0);
}

om_value_id om_compose_2(om_composer *c, const char *type, om_value_id a, om_value_id b) {
  const om_value_id inputs[] = {a, b};
  return om_compose_node(c, type, inputs, 2, NULL, 0);
}

om_value_id om_compose_3(
    om_composer *c, const char *type, om_value_id a, om_value_id b, om_value_id d) {
  const om_value_id inputs[] = {a, b, d};
  return om_compose_node(c, type, inputs, 3, NULL, 0);
}

om_value_id om_compose_cast(om_composer *c, om_value_id x, om_dtype to) {
  const om_attr attr = {.name = "to", .kind = OM_ATTR_INT, .count = 1, .i = (int64_t)to};
  return om_compose_node(c, "Cast", &x, 1, &attr, 1);
}

/* A copy that lives as long as the graph. */
static const int64_t *keep_ints(om_composer *c, const int64_t *values, uint32_t count) {
  if (c->status != OM_OK) return NULL;
  int64_t *kept = OM_POOL_NEW(c->ctx, &c->rw->graph->pool, int64_t, count);
  if (!kept) {
    c->status = OM_E_OUT_OF_MEMORY;
  } else if (count > 0) {
    memcpy(kept, values, count * sizeof *kept);
  }
  return kept;
}

om_value_id om_compose_transpose(om_composer *c,
                                 om_value_id x,
                                 const int64_t *perm,
                                 uint32_t rank) {
  const om_attr attr = {
      .name = "perm", .kind = OM_ATTR_INTS, .count = rank, .ints = keep_ints(c, perm, rank)};
  return om_compose_node(c, "Transpose", &x, 1, &attr, 1);
}

om_value_id om_compose_reshape(om_composer *c, om_value_id x, const int64_t *dims, uint32_t rank) {
  return om_compose_2(c, "Reshape", x, om_compose_ints(c, dims, rank));
}

om_value_id om_compose_unsqueeze(om_composer *c, om_value_id x, int64_t axis) {
  return om_compose_2(c, "Unsqueeze", x, om_compose_ints(c, &axis, 1));
}

om_value_id om_compose_concat(om_composer *c, om_value_id a, om_value_id b, int64_t axis) {
  const om_attr attr = {.name = "axis", .kind = OM_ATTR_INT, .count = 1, .i = axis};
  const om_value_id inputs[] = {a, b};
  return om_compose_node(c, "Concat", inputs, 2, &attr, 1);
}

om_value_id om_compose_slice(
    om_composer *c, om_value_id x, int64_t axis, int64_t begin, int64_t end) {
  const om_value_id inputs[] = {
      x, om_compose_ints(c, &begin, 1), om_compose_ints(c, &end, 1), om_compose_ints(c, &axis, 1)};
  return om_compose_node(c, "Slice", inputs, 4, NULL, 0);
}

om_value_id om_compose_shape(om_composer *c, om_value_id x, int64_t begin, int64_t end) {
  const om_attr attrs[] = {{.name = "start", .kind = OM_ATTR_INT, .count = 1, .i = begin},
                           {.name = "end", .kind = OM_ATTR_INT, .count = 1, .i = end}};
  return om_compose_node(c, "Shape", &x, 1, attrs, 2);
}

om_value_id om_compose_scalar_extent(om_composer *c, om_value_id x, int64_t axis) {
  return om_compose_2(c, "Gather", om_compose_1(c, "Shape", x), om_compose_int(c, axis));
}

/* ---- Constants ---- */

static om_value_id add_constant(
    om_composer *c, om_dtype dtype, uint32_t rank, int64_t extent, const void *data, size_t bytes) {
  om_graph *graph = c->rw->graph;
  om_value_id id = OM_NO_VALUE;
  if (c->status != OM_OK) return OM_NO_VALUE;
  om_tensor *tensor = OM_POOL_NEW(c->ctx, &graph->pool, om_tensor, 1);
  void *kept = om_pool_new_bytes(c->ctx, &graph->pool, bytes, 1);
  if (!tensor || !kept) {
    c->status = OM_E_OUT_OF_MEMORY;
    return OM_NO_VALUE;
  }
  memcpy(kept, data, bytes);
  *tensor = (om_tensor){
      .dtype = dtype, .rank = rank, .dims = {extent}, .data = kept, .data_bytes = bytes};
  c->status = add_value(c, &id);
  if (c->status != OM_OK) return OM_NO_VALUE;
  om_value *value = &graph->values[id];
  value->dtype = dtype;
  value->has_rank = true;
  value->rank = rank;
  value->dims[0] = extent;
  value->constant = tensor;
  return id;
}

om_value_id om_compose_ints(om_composer *c, const int64_t *values, uint32_t count) {
  return add_constant(c, OM_DTYPE_I64, 1, count, values, count * sizeof *values);
}

om_value_id om_compose_int(om_composer *c, int64_t value) {
  return add_constant(c, OM_DTYPE_I64, 0, 0, &value, sizeof value);
}

om_value_id om_compose_number(om_composer *c, float value, om_value_id like) {
  const om_value_id x = add_constant(c, OM_DTYPE_F32, 0, 0, &value, sizeof value);
  if (like == OM_NO_VALUE || om_compose_dtype(c, like) == OM_DTYPE_F32) return x;
  return om_compose_2(c, "CastLike", x, like);
}
