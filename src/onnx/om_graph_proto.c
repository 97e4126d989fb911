/* A GraphProto into an om_graph.
 *
 * First everything that provides a value is named: inputs, initializers, the outputs of nodes.
 * Their number is known before, so the arrays are made once, in the right size. Then the nodes
 * are read; a name that nothing provides is an error there and then. Declared types of values come
 * last and only for values that exist.
 */
#include "onnx/om_loader.h"

#define SHOWN(string) (int)((string).bytes < 200 ? (string).bytes : 200), (string).data

static om_status split_graph(om_ctx *ctx, om_string bytes, om_loader_parts *p) {
  p->nodes.ctx = ctx;
  p->initializers.ctx = ctx;
  p->inputs.ctx = ctx;
  p->outputs.ctx = ctx;
  p->values.ctx = ctx;
  p->sparse.ctx = ctx;
  om_wire_Graph wire = {.nodes = om_wire_keep_all(&p->nodes),
                        .initializers = om_wire_keep_all(&p->initializers),
                        .inputs = om_wire_keep_all(&p->inputs),
                        .outputs = om_wire_keep_all(&p->outputs),
                        .values = om_wire_keep_all(&p->values),
                        .sparse_initializers = om_wire_keep_all(&p->sparse)};
  OM_TRY(om_wire_decode(ctx, bytes, om_wire_Graph_fields, &wire, "graph"));
  return OM_OK;
}

om_status om_loader_find_value(om_ctx *ctx,
                               om_loader *loader,
                               om_string name,
                               om_value_id *out_id) {
  return om_name_table_find(ctx, &loader->names, loader->graph, name, out_id);
}

om_status om_loader_add_value(om_ctx *ctx, om_loader *loader, om_string name, om_value_id *out_id) {
  if (name.bytes == 0) return OM_FAIL(ctx, OM_E_INVALID_MODEL, "A value's name is empty.");
  if (memchr(name.data, '\0', name.bytes)) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The name '%.*s' holds a zero byte.", SHOWN(name));
  }
  OM_TRY(om_loader_find_value(ctx, loader, name, out_id));
  if (*out_id != OM_NO_VALUE) return OM_OK;
  om_value value = {.producer = OM_NO_NODE};
  value.name = om_pool_text(ctx, &loader->graph->pool, name.data, name.bytes);
  if (!value.name) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_graph_add_value(ctx, loader->graph, &value, out_id));
  return om_name_table_add(ctx, &loader->names, loader->graph, *out_id);
}

om_status om_loader_set_constant(om_ctx *ctx,
                                 om_loader *loader,
                                 om_value_id id,
                                 const om_tensor *tensor) {
  om_value *value = &loader->graph->values[id];
  if (value->constant || value->is_input) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "'%s' is %s already.",
                   value->name,
                   value->is_input ? "an input of the graph" : "a constant");
  }
  value->constant = tensor;
  value->dtype = tensor->dtype;
  value->has_rank = true;
  value->rank = tensor->rank;
  memcpy(value->dims, tensor->dims, sizeof value->dims);
  ++loader->file->weight_count;
  loader->file->weight_bytes += tensor->data_bytes;
  return OM_OK;
}

/* Makes room for every value that the graph can have, once. */
static om_status reserve(om_ctx *ctx, om_loader *loader, const om_loader_parts *p) {
  om_graph *graph = loader->graph;
  om_loader_node node;
  if (p->nodes.count > OM_MAX_NODES - loader->file->node_count) {
    return OM_FAIL(
        ctx, OM_E_UNSUPPORTED, "The model's nodes are too many (over %d).", OM_MAX_NODES);
  }
  loader->file->node_count += p->nodes.count;
  size_t count = p->inputs.count + p->initializers.count + p->sparse.count;
  for (size_t i = 0; i < p->nodes.count && count <= OM_MAX_VALUES; ++i) {
    om_status st = om_loader_split_node(ctx, loader, p->nodes.items[i], &node);
    if (st != OM_OK) {
      om_error_prefix(ctx, "Node %zu", i);
      return st;
    }
    count += loader->node_outputs.count;
  }
  if (count > OM_MAX_VALUES) {
    return OM_FAIL(
        ctx, OM_E_UNSUPPORTED, "The graph's values are too many (over %d).", OM_MAX_VALUES);
  }
  graph->values = OM_POOL_NEW(ctx, &graph->pool, om_value, count);
  graph->nodes = OM_POOL_NEW(ctx, &graph->pool, om_node, p->nodes.count);
  if (!graph->values || !graph->nodes) return OM_E_OUT_OF_MEMORY;
  graph->value_capacity = count;
  graph->node_capacity = p->nodes.count;
  return om_name_table_init(ctx, count, &loader->names);
}

/* Reads one into a tensor of the graph's pool. */
typedef om_status (*read_tensor_fn)(om_ctx *ctx,
                                    om_loader *loader,
                                    om_string bytes,
                                    const om_tensor **out_tensor,
                                    om_string *out_name);

static om_status read_dense(om_ctx *ctx,
                            om_loader *loader,
                            om_string bytes,
                            const om_tensor **out_tensor,
                            om_string *out_name) {
  om_tensor_reading how = loader->file->reading;
  how.keep = OM_POOL_NEW(ctx, &loader->graph->pool, om_external_constant, 1);
  if (!how.keep) return OM_E_OUT_OF_MEMORY;
  *out_tensor = &how.keep->stored.tensor;
  return om_tensor_proto_read(ctx, &how, bytes, &how.keep->stored.tensor, out_name);
}

static om_status read_sparse(om_ctx *ctx,
                             om_loader *loader,
                             om_string bytes,
                             const om_tensor **out_tensor,
                             om_string *out_name) {
  om_tensor *tensor = OM_POOL_NEW(ctx, &loader->graph->pool, om_tensor, 1);
  if (!tensor) return OM_E_OUT_OF_MEMORY;
  *out_tensor = tensor;
  return om_loader_read_sparse(ctx, loader, bytes, tensor, out_name);
}

static om_status read_initializers(om_ctx *ctx,
                                   om_loader *loader,
                                   const om_wire_list *list,
                                   read_tensor_fn read) {
  om_status late = OM_OK;
  for (size_t i = 0; i < list->count; ++i) {
    om_string name;
    om_value_id id = OM_NO_VALUE;
    const om_tensor *tensor = NULL;
    om_status st = read(ctx, loader, list->items[i], &tensor, &name);
    if (st == OM_OK) st = om_loader_add_value(ctx, loader, name, &id);
    if (st == OM_OK) st = om_loader_set_constant(ctx, loader, id, tensor);
    if (om_put_off(st, &late) == OM_OK) continue;
    om_error_prefix(ctx, "Initializer %zu", i);
    return st;
  }
  return late;
}

/* Moves a declared type onto a value; its name and its part in the graph stay. */
static void set_type(om_value *value, const om_value *declared) {
  value->dtype = declared->dtype;
  value->elem = declared->elem;
  value->key_dtype = declared->key_dtype;
  value->has_rank = declared->has_rank;
  value->rank = declared->rank;
  memcpy(value->dims, declared->dims, sizeof value->dims);
  memcpy(value->dim_names, declared->dim_names, sizeof value->dim_names);
}

static om_status check_graph_type(
    om_ctx *ctx, const char *what, om_string name, const om_value *type, bool has_type) {
  const om_value *innermost = type;
  while (innermost->elem) innermost = innermost->elem;
  if (om_dtype_bits(innermost->dtype) > 0 && !om_dtype_is_nested(innermost->dtype)) return OM_OK;
  if (has_type) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "The graph's %s '%.*s' is of a type that is not known: neither a tensor, nor a "
                   "sequence, an optional or a map of tensors.",
                   what,
                   SHOWN(name));
  }
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The graph's %s '%.*s' has no type.", what, SHOWN(name));
}

/* An input's or an output's name and type. */
static om_status read_interface(om_ctx *ctx,
                                om_loader *loader,
                                om_string bytes,
                                om_string *out_name,
                                om_value *out_type,
                                bool *out_has_type) {
  if (!loader->has_plain_names) {
    return om_loader_read_value_info(ctx, loader, bytes, out_name, out_type, out_has_type);
  }
  *out_name = bytes;
  *out_type = (om_value){.producer = OM_NO_NODE};
  *out_has_type = false;
  return OM_OK;
}

/* Inputs that initializers provide are left out: they are constants. */
static om_status read_inputs(om_ctx *ctx, om_loader *loader, const om_wire_list *list) {
  om_graph *graph = loader->graph;
  const bool is_models = !loader->outer && !loader->is_function;
  om_value_id *ids = OM_POOL_NEW(ctx, &graph->pool, om_value_id, list->count);
  if (!ids) return OM_E_OUT_OF_MEMORY;
  graph->inputs = ids;
  for (size_t i = 0; i < list->count; ++i) {
    om_string name;
    om_value type;
    bool has_type = false;
    om_value_id id = OM_NO_VALUE;
    OM_TRY(read_interface(ctx, loader, list->items[i], &name, &type, &has_type));
    OM_TRY(om_loader_add_value(ctx, loader, name, &id));
    om_value *value = &graph->values[id];
    if (value->is_input) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The graph has two inputs named '%s'.", value->name);
    }
    value->is_input = true;
    if (value->constant && loader->outer) { /* the node feeds it: its place counts */
      return OM_FAIL(
          ctx, OM_E_INVALID_MODEL, "The body's input '%s' has an initializer.", value->name);
    }
    if (value->constant) continue;
    if (is_models) OM_TRY(check_graph_type(ctx, "input", name, &type, has_type));
    set_type(value, &type);
    ids[graph->input_count++] = id;
  }
  for (size_t i = 0; i < graph->value_count; ++i) {
    if (graph->values[i].constant) graph->values[i].is_input = false;
  }
  return OM_OK;
}

static om_status read_outputs(om_ctx *ctx, om_loader *loader, const om_wire_list *list) {
  om_graph *graph = loader->graph;
  const bool is_models = !loader->outer && !loader->is_function;
  om_value_id *ids = OM_POOL_NEW(ctx, &graph->pool, om_value_id, list->count);
  if (!ids) return OM_E_OUT_OF_MEMORY;
  graph->outputs = ids;
  for (size_t i = 0; i < list->count; ++i) {
    om_string name;
    om_value type;
    bool has_type = false;
    om_value_id id = OM_NO_VALUE;
    OM_TRY(read_interface(ctx, loader, list->items[i], &name, &type, &has_type));
    OM_TRY(om_loader_see_value(ctx, loader, name, &id));
    if (id == OM_NO_VALUE) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_MODEL,
                     "No node, input or initializer provides the graph's output '%.*s'.",
                     SHOWN(name));
    }
    om_value *value = &graph->values[id];
    if (value->is_output && is_models) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The graph has two outputs named '%s'.", value->name);
    }
    if (has_type && is_models) OM_TRY(check_graph_type(ctx, "output", name, &type, has_type));
    if (!value->constant && !value->is_input) set_type(value, &type);
    value->is_output = true;
    ids[graph->output_count++] = id;
  }
  return OM_OK;
}

static om_status read_declared_types(om_ctx *ctx, om_loader *loader, const om_wire_list *list) {
  for (size_t i = 0; i < list->count; ++i) {
    om_string name;
    om_value type;
    bool has_type = false;
    om_value_id id = OM_NO_VALUE;
    OM_TRY(om_loader_read_value_info(ctx, loader, list->items[i], &name, &type, &has_type));
    OM_TRY(om_loader_find_value(ctx, loader, name, &id));
    if (id == OM_NO_VALUE || !has_type) continue;
    om_value *value = &loader->graph->values[id];
    if (!value->constant && !value->is_input) set_type(value, &type);
  }
  return OM_OK;
}

static om_status name_node_outputs(om_ctx *ctx, om_loader *loader, const om_wire_list *nodes) {
  om_loader_node node;
  for (size_t i = 0; i < nodes->count; ++i) {
    OM_TRY(om_loader_split_node(ctx, loader, nodes->items[i], &node));
    for (size_t k = 0; k < loader->node_outputs.count; ++k) {
      om_value_id id = OM_NO_VALUE;
      if (loader->node_outputs.items[k].bytes == 0) continue;
      OM_TRY(om_loader_add_value(ctx, loader, loader->node_outputs.items[k], &id));
    }
  }
  return OM_OK;
}

om_status om_loader_read_parts(om_ctx *ctx, om_loader *loader, const om_loader_parts *p) {
  OM_TRY(reserve(ctx, loader, p));
  OM_TRY(read_initializers(ctx, loader, &p->initializers, read_dense));
  OM_TRY(read_initializers(ctx, loader, &p->sparse, read_sparse));
  OM_TRY(read_inputs(ctx, loader, &p->inputs));
  OM_TRY(name_node_outputs(ctx, loader, &p->nodes));
  OM_TRY(read_declared_types(ctx, loader, &p->values));
  OM_TRY(read_outputs(ctx, loader, &p->outputs));
  for (size_t i = 0; i < p->nodes.count; ++i) {
    OM_TRY(om_loader_read_node(ctx, loader, i, p->nodes.items[i]));
  }
  return OM_OK;
}

om_status om_loader_read_graph(om_ctx *ctx, om_loader *loader, om_string bytes) {
  om_loader_parts p = {0};
  om_status st = split_graph(ctx, bytes, &p);
  if (st == OM_OK) st = om_loader_read_parts(ctx, loader, &p);
  om_loader_parts_deinit(&p);
  return st;
}

void om_loader_parts_deinit(om_loader_parts *parts) {
  om_wire_list_deinit(&parts->nodes);
  om_wire_list_deinit(&parts->initializers);
  om_wire_list_deinit(&parts->inputs);
  om_wire_list_deinit(&parts->outputs);
  om_wire_list_deinit(&parts->values);
  om_wire_list_deinit(&parts->sparse);
}

void om_loader_init(om_ctx *ctx, om_loader *loader, om_loader_file *file, om_graph *graph) {
  *loader = (om_loader){
      .graph = graph, .file = file, .opsets = file->opsets, .opset_count = file->opset_count};
  loader->node_inputs.ctx = ctx;
  loader->node_outputs.ctx = ctx;
  loader->node_attrs.ctx = ctx;
}

void om_loader_deinit(om_ctx *ctx, om_loader *loader) {
  om_name_table_deinit(ctx, &loader->names);
  om_delete(ctx, loader->node_captures);
  om_delete(ctx, loader->captured);
  om_wire_list_deinit(&loader->node_inputs);
  om_wire_list_deinit(&loader->node_outputs);
  om_wire_list_deinit(&loader->node_attrs);
}

void om_loader_file_deinit(om_ctx *ctx, om_loader_file *file) {
  om_delete(ctx, file->functions);
}
