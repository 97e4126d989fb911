/* Nodes: names to values, domain to opset, attributes. */
#include "onnx/om_loader.h"

#define SHOWN(string) (int)((string).bytes < 200 ? (string).bytes : 200), (string).data

om_status om_loader_split_node(om_ctx *ctx,
                               om_loader *loader,
                               om_string bytes,
                               om_loader_node *out_node) {
  *out_node = (om_loader_node){0};
  loader->node_inputs.count = 0;
  loader->node_outputs.count = 0;
  loader->node_attrs.count = 0;
  om_wire_Node wire = {.inputs = om_wire_keep_all(&loader->node_inputs),
                       .outputs = om_wire_keep_all(&loader->node_outputs),
                       .name = om_wire_keep(&out_node->name),
                       .type = om_wire_keep(&out_node->type),
                       .attributes = om_wire_keep_all(&loader->node_attrs),
                       .domain = om_wire_keep(&out_node->domain),
                       .overload = om_wire_keep(&out_node->overload)};
  return om_wire_decode(ctx, bytes, om_wire_Node_fields, &wire, "node");
}

static om_status read_text(om_ctx *ctx, om_loader *loader, om_string text, const char **out) {
  if (text.bytes > 0 && memchr(text.data, '\0', text.bytes)) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The name '%.*s' holds a zero byte.", SHOWN(text));
  }
  *out = om_pool_text(ctx, &loader->graph->pool, text.data, text.bytes);
  return *out ? OM_OK : OM_E_OUT_OF_MEMORY;
}

static om_status set_opset(om_ctx *ctx, const om_loader *loader, om_node *node) {
  for (size_t i = 0; i < loader->opset_count; ++i) {
    if (strcmp(loader->opsets[i].domain, node->domain) != 0) continue;
    node->opset = (int32_t)loader->opsets[i].version;
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The model imports no operator set of the domain '%s'.",
                 node->domain[0] ? node->domain : "ai.onnx");
}

static om_status read_inputs(om_ctx *ctx, om_loader *loader, om_node *node) {
  const om_wire_list *names = &loader->node_inputs;
  om_value_id *ids = OM_POOL_NEW(ctx, &loader->graph->pool, om_value_id, names->count);
  if (!ids) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < names->count; ++i) {
    ids[i] = OM_NO_VALUE;
    if (names->items[i].bytes == 0) continue; /* an optional operand that is absent */
    OM_TRY(om_loader_see_value(ctx, loader, names->items[i], &ids[i]));
    if (ids[i] != OM_NO_VALUE) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "It reads '%.*s', which no node, input or initializer provides.",
                   SHOWN(names->items[i]));
  }
  node->inputs = ids;
  node->input_count = (uint32_t)names->count;
  return OM_OK;
}

static om_status read_outputs(om_ctx *ctx, om_loader *loader, om_node *node) {
  const om_wire_list *names = &loader->node_outputs;
  bool is_read = false;
  om_value_id *ids = OM_POOL_NEW(ctx, &loader->graph->pool, om_value_id, names->count);
  if (!ids) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < names->count; ++i) {
    ids[i] = OM_NO_VALUE;
    if (names->items[i].bytes == 0) continue;
    OM_TRY(om_loader_add_value(ctx, loader, names->items[i], &ids[i]));
    is_read = true;
  }
  if (!is_read) return OM_FAIL(ctx, OM_E_INVALID_MODEL, "It has no output.");
  node->outputs = ids;
  node->output_count = (uint32_t)names->count;
  return OM_OK;
}

static om_status read_attrs(om_ctx *ctx, om_loader *loader, om_node *node) {
  const om_wire_list *list = &loader->node_attrs;
  if (list->count > OM_MAX_NODE_ATTRS) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "Its %zu attributes are too many.", list->count);
  }
  om_attr *attrs = OM_POOL_NEW(ctx, &loader->graph->pool, om_attr, list->count);
  if (!attrs) return OM_E_OUT_OF_MEMORY;
  node->attrs = attrs;
  for (size_t i = 0; i < list->count; ++i) {
    OM_TRY(om_loader_read_attr(ctx, loader, list->items[i], &attrs[i]));
    if (om_node_attr(node, attrs[i].name)) {
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "It has the attribute '%s' twice.", attrs[i].name);
    }
    ++node->attr_count;
  }
  return OM_OK;
}

static om_status read_head(
    om_ctx *ctx, om_loader *loader, size_t index, const om_loader_node *parts, om_node *node) {
  node->name = "";
  node->domain = "";
  if (parts->type.bytes == 0) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "It names no operator.");
  }
  OM_TRY(read_text(ctx, loader, parts->type, &node->type));
  if (parts->name.bytes > 0) {
    OM_TRY(read_text(ctx, loader, parts->name, &node->name));
  } else {
    node->name = om_pool_format(ctx, &loader->graph->pool, "%s_%zu", node->type, index);
    if (!node->name) return OM_E_OUT_OF_MEMORY;
  }
  if (parts->domain.bytes > 0 && !om_string_is(parts->domain, "ai.onnx")) {
    OM_TRY(read_text(ctx, loader, parts->domain, &node->domain));
  }
  node->function = om_loader_find_function(loader->file, parts);
  return OM_OK;
}

/* Behind its own inputs a node has what its bodies capture. */
static om_status add_captures(om_ctx *ctx, om_loader *loader, om_node *node) {
  size_t count = loader->node_capture_count;
  size_t formal = node->input_count;
  if (count == 0) return OM_OK;
  om_value_id *ids = OM_POOL_NEW(ctx, &loader->graph->pool, om_value_id, formal + count);
  if (!ids) return OM_E_OUT_OF_MEMORY;
  if (formal > 0) memcpy(ids, node->inputs, formal * sizeof *ids);
  memcpy(ids + formal, loader->node_captures, count * sizeof *ids);
  node->inputs = ids;
  node->input_count = (uint32_t)(formal + count);
  node->capture_count = (uint32_t)count;
  return OM_OK;
}

/* A Constant whose value the caller of a function gives. */
static bool has_reference(const om_node *node) {
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (node->attrs[i].kind == OM_ATTR_REFERENCE) return true;
  }
  return false;
}

static om_status read_rest(om_ctx *ctx, om_loader *loader, om_node *node) {
  om_graph **last_body = loader->file->last_body;
  OM_TRY(set_opset(ctx, loader, node));
  OM_TRY(read_inputs(ctx, loader, node));
  OM_TRY(read_outputs(ctx, loader, node));
  loader->node = node;
  loader->node_capture_count = 0;
  OM_TRY(read_attrs(ctx, loader, node));
  OM_TRY(add_captures(ctx, loader, node));
  if (strcmp(node->type, "Constant") != 0 || node->domain[0] || has_reference(node)) {
    om_node_id id = OM_NO_NODE;
    return om_graph_add_node(ctx, loader->graph, node, &id);
  }
  if (loader->file->last_body != last_body) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "It has a graph as an attribute.");
  }
  if (node->output_count != 1) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "It has %u outputs, not one.", node->output_count);
  }
  om_tensor *tensor = OM_POOL_NEW(ctx, &loader->graph->pool, om_tensor, 1);
  if (!tensor) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_loader_constant_of(ctx, node, tensor));
  return om_loader_set_constant(ctx, loader, node->outputs[0], tensor);
}

om_status om_loader_read_node(om_ctx *ctx, om_loader *loader, size_t index, om_string bytes) {
  om_loader_node parts;
  om_node node = {0};
  om_status st = om_loader_split_node(ctx, loader, bytes, &parts);
  if (st == OM_OK) st = read_head(ctx, loader, index, &parts, &node);
  if (st != OM_OK) {
    om_error_prefix(ctx, "Node %zu", index);
    return st;
  }
  st = read_rest(ctx, loader, &node);
  if (st != OM_OK && om_loader_may_name(ctx, loader)) {
    om_error_prefix(ctx, "Node '%s' (%s)", node.name, node.type);
  }
  return st;
}
