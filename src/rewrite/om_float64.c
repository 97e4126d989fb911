/* First it is decided which nodes stay in float32, then the others are widened one by one. */
#include "rewrite/om_float64.h"

#include "base/om_float16.h"
#include "rewrite/om_rewrite_facts.h"

typedef struct widening {
  om_graph *graph;      /* the copy */
  om_value_fact *facts; /* owned; of the source's values */
  bool *stays;          /* owned; by value of the source: a float that only decides integers */
  om_value_id *widened; /* owned; by value of the source: its constant in float64, if made */
} widening;

static bool is_narrow(int64_t dtype) {
  return dtype == OM_DTYPE_F32 || dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16;
}

/* ---- What stays ---- */

static bool may_be_float(const widening *w, om_value_id id) {
  return w->facts[id].dtype == OM_DTYPE_NONE || is_narrow(w->facts[id].dtype);
}

static bool is_fixed_input(const om_node *node, uint32_t input) {
  return node->op && input < 32 && (node->op->float32_inputs >> input & 1) != 0;
}

/* Calls for each float that the node and its neighbours must agree on; constants follow their
 * reader. */
typedef bool visit_float(widening *w, om_value_id id);

static bool any_float(widening *w, const om_node *node, visit_float *visit) {
  bool is_any = false;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const om_value_id id = node->inputs[i];
    if (id == OM_NO_VALUE || is_fixed_input(node, i) || w->graph->values[id].constant) continue;
    if (may_be_float(w, id) && visit(w, id)) is_any = true;
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    const om_value_id id = node->outputs[i];
    if (id != OM_NO_VALUE && may_be_float(w, id) && visit(w, id)) is_any = true;
  }
  return is_any;
}

static bool is_wide(widening *w, om_value_id id) {
  return !w->stays[id];
}

static bool make_wide(widening *w, om_value_id id) {
  const bool did_change = w->stays[id];
  w->stays[id] = false;
  return did_change;
}

/* From "all stay but inputs and outputs", widens what meets a wide one until nothing changes. */
static void find_what_stays(widening *w) {
  const om_graph *graph = w->graph;
  bool did_change = true;
  for (size_t i = 0; i < graph->value_count; ++i) {
    w->stays[i] = !graph->values[i].is_input && !graph->values[i].is_output;
  }
  while (did_change) {
    did_change = false;
    for (size_t i = 0; i < graph->node_count; ++i) {
      const om_node *node = &graph->nodes[i];
      if (any_float(w, node, is_wide) && any_float(w, node, make_wide)) did_change = true;
    }
  }
}

/* ---- Tensors ---- */

/* Data in a mapped file may lie unaligned. */
static double read_elem(const om_tensor *tensor, size_t elem) {
  uint16_t half;
  float single;
  if (tensor->dtype == OM_DTYPE_F32) {
    memcpy(&single, (const char *)tensor->data + elem * sizeof single, sizeof single);
    return (double)single;
  }
  memcpy(&half, (const char *)tensor->data + elem * sizeof half, sizeof half);
  return (double)(tensor->dtype == OM_DTYPE_F16 ? om_f16_to_f32(half) : om_bf16_to_f32(half));
}

static om_status widen_tensor(om_ctx *ctx,
                              om_graph *graph,
                              const om_tensor *source,
                              const om_tensor **out_tensor) {
  const size_t elems = om_tensor_elems(source);
  double *data = OM_POOL_NEW(ctx, &graph->pool, double, elems);
  om_tensor *tensor = OM_POOL_NEW(ctx, &graph->pool, om_tensor, 1);
  if (!data || !tensor) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < elems; ++i) data[i] = read_elem(source, i);
  om_graph_constant_copied(graph, source);
  *tensor = om_tensor_of(OM_DTYPE_F64, source->rank, source->dims, data);
  *out_tensor = tensor;
  return OM_OK;
}

static om_status widen_constant(om_ctx *ctx, widening *w, om_value_id *id) {
  om_value value = w->graph->values[*id];
  om_value_id *known = &w->widened[*id];
  if (*known == OM_NO_VALUE) {
    OM_TRY(om_constant_hold(ctx, w->graph, *id));
    OM_TRY(widen_tensor(ctx, w->graph, w->graph->values[*id].constant, &value.constant));
    value.name = om_pool_format(ctx, &w->graph->pool, "%s.float64", value.name);
    if (!value.name) return OM_E_OUT_OF_MEMORY;
    value.dtype = OM_DTYPE_F64;
    OM_TRY(om_graph_add_value(ctx, w->graph, &value, known));
  }
  *id = *known;
  return OM_OK;
}

/* ---- Attributes ---- */

/* Operators that make floats of a type that an attribute names, float32 where it is absent. */
typedef struct type_attr {
  const char *type;
  const char *attr; /* holds the type's number, or is a tensor of it */
} type_attr;

static const type_attr defaults[] = {
    {"ConstantOfShape", "value"},
    {"RandomNormal", "dtype"},
    {"RandomUniform", "dtype"},
    {"HannWindow", "output_datatype"},
    {"HammingWindow", "output_datatype"},
    {"BlackmanWindow", "output_datatype"},
    {"MelWeightMatrix", "output_datatype"},
};

static bool names_type(const om_attr *attr) {
  static const char *const names[] = {"to", "dtype", "output_datatype"};
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    if (attr->kind == OM_ATTR_INT && strcmp(attr->name, names[i]) == 0) return is_narrow(attr->i);
  }
  return false;
}

static om_status widen_attr(om_ctx *ctx, om_graph *graph, om_attr *attr) {
  if (names_type(attr)) attr->i = OM_DTYPE_F64;
  if (attr->kind != OM_ATTR_TENSOR || !is_narrow(attr->tensor->dtype)) return OM_OK;
  return widen_tensor(ctx, graph, attr->tensor, &attr->tensor);
}

static void add_default(const om_node *node, om_attr *attrs, uint32_t *count) {
  static const double zero = 0.0;
  static const om_tensor zero_tensor = {.dtype = OM_DTYPE_F64,
                                        .rank = 1,
                                        .dims = {1},
                                        .data = (void *)(uintptr_t)&zero,
                                        .data_bytes = sizeof zero};
  for (size_t i = 0; i < OM_COUNT_OF(defaults); ++i) {
    const type_attr *it = &defaults[i];
    if (strcmp(node->type, it->type) != 0 || om_node_attr(node, it->attr)) continue;
    om_attr *attr = &attrs[(*count)++];
    *attr = (om_attr){.name = it->attr, .kind = OM_ATTR_INT, .i = OM_DTYPE_F64};
    if (strcmp(it->attr, "value") != 0) continue;
    attr->kind = OM_ATTR_TENSOR;
    attr->tensor = &zero_tensor;
  }
}

static om_status widen_attrs(om_ctx *ctx, om_graph *graph, om_node *node) {
  uint32_t count = node->attr_count;
  om_attr *attrs = OM_POOL_NEW(ctx, &graph->pool, om_attr, (size_t)count + 1);
  if (!attrs) return OM_E_OUT_OF_MEMORY;
  if (count > 0) memcpy(attrs, node->attrs, count * sizeof *attrs);
  for (uint32_t i = 0; i < count; ++i) OM_TRY(widen_attr(ctx, graph, &attrs[i]));
  add_default(node, attrs, &count);
  node->attrs = attrs;
  node->attr_count = count;
  return OM_OK;
}

/* ---- Nodes ---- */

static om_status check_flat(om_ctx *ctx, const om_node *node) {
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (node->attrs[i].kind != OM_ATTR_GRAPH) continue;
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "Node '%s' (%s) holds a graph; such models have no form in float64.",
                   node->name,
                   node->type);
  }
  return OM_OK;
}

static om_status widen_node(om_ctx *ctx, widening *w, om_node *node) {
  OM_TRY(check_flat(ctx, node));
  if (!any_float(w, node, is_wide)) return OM_OK;
  om_value_id *inputs = OM_POOL_NEW(ctx, &w->graph->pool, om_value_id, node->input_count);
  if (!inputs) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    inputs[i] = node->inputs[i];
    if (inputs[i] == OM_NO_VALUE || is_fixed_input(node, i)) continue;
    const om_tensor *constant = w->graph->values[inputs[i]].constant;
    if (constant && is_narrow(constant->dtype)) OM_TRY(widen_constant(ctx, w, &inputs[i]));
  }
  node->inputs = inputs;
  return widen_attrs(ctx, w->graph, node);
}

/* The value as a node that takes float32 alone reads it. */
static om_status add_cast(om_ctx *ctx, om_graph *graph, om_value_id from, om_value_id *out_id) {
  om_value value = {.dtype = OM_DTYPE_F32, .producer = OM_NO_NODE};
  om_value_id *ends = OM_POOL_NEW(ctx, &graph->pool, om_value_id, 2);
  om_attr *attr = OM_POOL_NEW(ctx, &graph->pool, om_attr, 1);
  om_node_id id = OM_NO_NODE;
  value.name = om_pool_format(
      ctx, &graph->pool, "%s.float32.%zu", graph->values[from].name, graph->value_count);
  if (!ends || !attr || !value.name) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_graph_add_value(ctx, graph, &value, out_id));
  ends[0] = from;
  ends[1] = *out_id;
  *attr = (om_attr){.name = "to", .kind = OM_ATTR_INT, .i = OM_DTYPE_F32};
  const om_node cast = {.name = value.name,
                        .type = "Cast",
                        .domain = "",
                        .opset = 13,
                        .inputs = ends,
                        .input_count = 1,
                        .outputs = ends + 1,
                        .output_count = 1,
                        .attrs = attr,
                        .attr_count = 1};
  return om_graph_add_node(ctx, graph, &cast, &id);
}

static om_status narrow_inputs(om_ctx *ctx, widening *w, om_node_id node) {
  om_graph *graph = w->graph;
  for (uint32_t i = 0; i < graph->nodes[node].input_count; ++i) {
    om_value_id id = graph->nodes[node].inputs[i];
    if (!is_fixed_input(&graph->nodes[node], i) || id == OM_NO_VALUE) continue;
    if (graph->values[id].constant || !may_be_float(w, id) || w->stays[id]) continue;
    om_value_id *inputs =
        OM_POOL_NEW(ctx, &graph->pool, om_value_id, graph->nodes[node].input_count);
    if (!inputs) return OM_E_OUT_OF_MEMORY;
    memcpy(inputs, graph->nodes[node].inputs, graph->nodes[node].input_count * sizeof *inputs);
    OM_TRY(add_cast(ctx, graph, id, &inputs[i]));
    graph->nodes[node].inputs = inputs;
  }
  return OM_OK;
}

static om_status widen_graph(om_ctx *ctx, widening *w) {
  om_graph *graph = w->graph;
  const size_t value_count = graph->value_count, node_count = graph->node_count;
  find_what_stays(w);
  for (size_t i = 0; i < value_count; ++i) {
    om_value *value = &graph->values[i];
    if (!value->constant && !w->stays[i] && is_narrow(value->dtype)) value->dtype = OM_DTYPE_F64;
  }
  for (om_node_id i = 0; i < node_count; ++i) {
    OM_TRY(widen_node(ctx, w, &graph->nodes[i]));
    OM_TRY(narrow_inputs(ctx, w, i));
  }
  return graph->node_count > node_count ? om_graph_finish(ctx, graph) : OM_OK;
}

om_status om_graph_to_float64(om_ctx *ctx, const om_graph *source, om_graph *out_graph) {
  om_status st = OM_OK;
  om_graph copy = {0};
  widening w = {.graph = &copy};
  OM_GO(om_graph_copy(ctx, source, &copy));
  OM_GO(om_value_facts_create(ctx, &(om_rewriter){.graph = &copy}, &w.facts));
  OM_GO_NEW(w.stays, copy.value_count);
  OM_GO_NEW(w.widened, copy.value_count);
  memset(w.widened, 0xff, copy.value_count * sizeof *w.widened); /* OM_NO_VALUE */
  OM_GO(widen_graph(ctx, &w));
  copy.on_copied = NULL;
  copy.lender = NULL;
  *out_graph = copy;
  copy = (om_graph){0}; /* the caller owns it now */
done:
  om_graph_deinit(ctx, &copy);
  om_delete(ctx, w.facts);
  om_delete(ctx, w.stays);
  om_delete(ctx, w.widened);
  return st;
}
