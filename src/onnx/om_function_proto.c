/* Functions of the model's own: each is read once, when it is first called, as a graph; then its
 * nodes take the place of every node that calls it, so that nothing behind the loader knows them.
 *
 * Attributes that refer to the caller's are replaced on the way: by the caller's, by the function's
 * default, or by nothing. Bodies in functions that have such attributes are copied for each call.
 */
#include <inttypes.h>

#include "onnx/om_loader.h"

/* ---- Reading ---- */

om_status om_loader_list_functions(om_ctx *ctx, om_loader_file *file, const om_wire_list *list) {
  if (list->count > OM_MAX_FUNCTIONS) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The model's %zu functions are too many.", list->count);
  }
  for (size_t i = 0; i < list->count; ++i) {
    om_loader_function function = {.bytes = list->items[i]};
    om_wire_Function wire = {.name = om_wire_keep(&function.name),
                             .domain = om_wire_keep(&function.domain),
                             .overload = om_wire_keep(&function.overload)};
    OM_TRY(om_wire_decode(ctx, list->items[i], om_wire_Function_fields, &wire, "function"));
    if (om_string_is(function.domain, "ai.onnx")) function.domain.bytes = 0;
    OM_TRY(OM_GROW(ctx, file->functions, file->function_count, file->function_capacity));
    file->functions[file->function_count++] = function;
  }
  return OM_OK;
}

uint32_t om_loader_find_function(const om_loader_file *file, const om_loader_node *node) {
  om_string domain = node->domain;
  if (om_string_is(domain, "ai.onnx")) domain.bytes = 0;
  for (size_t i = 0; i < file->function_count; ++i) {
    const om_loader_function *function = &file->functions[i];
    bool is_called = om_string_same(function->name, node->type) &&
                     om_string_same(function->domain, domain) &&
                     om_string_same(function->overload, node->overload);
    if (is_called) return (uint32_t)i + 1;
  }
  return 0;
}

static om_status read_defaults(om_ctx *ctx,
                               om_loader *loader,
                               om_loader_function *function,
                               const om_wire_list *list) {
  om_attr *attrs = OM_POOL_NEW(ctx, &loader->graph->pool, om_attr, list->count);
  if (!attrs) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < list->count; ++i) {
    OM_TRY(om_loader_read_attr(ctx, loader, list->items[i], &attrs[i]));
    if (attrs[i].kind != OM_ATTR_GRAPH && attrs[i].kind != OM_ATTR_REFERENCE) continue;
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The default of '%s' is a graph.", attrs[i].name);
  }
  function->defaults = attrs;
  function->default_count = list->count;
  return OM_OK;
}

static om_status read_parts(om_ctx *ctx, om_loader *loader, om_loader_function *function) {
  om_status st = OM_OK;
  om_loader_parts p = {.nodes = {.ctx = ctx},
                       .inputs = {.ctx = ctx},
                       .outputs = {.ctx = ctx},
                       .values = {.ctx = ctx}};
  om_wire_list opsets = {.ctx = ctx}, defaults = {.ctx = ctx};
  om_wire_Function wire = {.inputs = om_wire_keep_all(&p.inputs),
                           .outputs = om_wire_keep_all(&p.outputs),
                           .nodes = om_wire_keep_all(&p.nodes),
                           .values = om_wire_keep_all(&p.values),
                           .opsets = om_wire_keep_all(&opsets),
                           .defaults = om_wire_keep_all(&defaults)};
  om_node caller = {.name = "", .type = ""}; /* defaults have no node */
  loader->node = &caller;
  OM_GO(om_wire_decode(ctx, function->bytes, om_wire_Function_fields, &wire, "function"));
  OM_GO(om_loader_read_opsets(
      ctx, &loader->graph->pool, &opsets, &loader->opsets, &loader->opset_count));
  OM_GO(read_defaults(ctx, loader, function, &defaults));
  OM_GO(om_loader_read_parts(ctx, loader, &p));
done:
  om_loader_parts_deinit(&p);
  om_wire_list_deinit(&opsets);
  om_wire_list_deinit(&defaults);
  return st;
}

static om_graph *add_graph(om_ctx *ctx, om_loader_file *file) {
  om_graph *graph = OM_POOL_NEW(ctx, &file->graph->pool, om_graph, 1);
  if (!graph) return NULL;
  *file->last_function = graph;
  file->last_function = &graph->body.next;
  return graph;
}

static om_status read_function(om_ctx *ctx, om_loader_file *file, om_loader_function *function) {
  om_status st = OM_OK;
  om_loader *loader = NULL;
  om_graph **last_body = file->last_body;
  om_graph *graph = add_graph(ctx, file);
  if (!graph) return OM_E_OUT_OF_MEMORY;
  file->last_body = file->last_function; /* bodies of functions stand among these */
  OM_GO_NEW(loader, 1);
  om_loader_init(ctx, loader, file, graph);
  loader->is_function = true;
  loader->has_plain_names = true;
  OM_GO(read_parts(ctx, loader, function));
  function->graph = graph;
done:
  file->last_function = file->last_body;
  file->last_body = last_body;
  if (loader) om_loader_deinit(ctx, loader);
  om_delete(ctx, loader);
  if (st != OM_OK) {
    om_string name = function->name;
    int shown = (int)(name.bytes < 200 ? name.bytes : 200);
    om_error_prefix(ctx, "Function '%.*s'", shown, name.data);
  }
  return st;
}

/* ---- Calls ---- */

typedef struct call {
  om_loader_file *file;
  om_graph *graph; /* of the node that calls */
  om_node node;
  const om_loader_function *function;
} call;

static const om_attr *find_attr(const om_attr *attrs, size_t count, om_string name) {
  for (size_t i = 0; i < count; ++i) {
    if (om_string_is(name, attrs[i].name)) return &attrs[i];
  }
  return NULL;
}

/* The attribute that a reference stands for, or NULL. */
static const om_attr *find_referred(const call *c, om_string name) {
  const om_attr *found = find_attr(c->node.attrs, c->node.attr_count, name);
  return found ? found : find_attr(c->function->defaults, c->function->default_count, name);
}

static bool node_refers(const om_node *node);

/* As deep as bodies nest. */
static bool graph_refers(const om_graph *graph) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (node_refers(&graph->nodes[i])) return true;
  }
  return false;
}

static bool node_refers(const om_node *node) {
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (node->attrs[i].kind == OM_ATTR_REFERENCE) return true;
    if (node->attrs[i].kind == OM_ATTR_GRAPH && graph_refers(node->attrs[i].graph)) return true;
  }
  return false;
}

static om_status replace_references(om_ctx *ctx, call *c, om_graph *graph, om_node *node);

/* A Constant whose value was the caller's. */
static om_status make_constant(om_ctx *ctx, om_graph *graph, const om_node *node, bool *is_made) {
  *is_made = strcmp(node->type, "Constant") == 0 && !node->domain[0] && node->output_count == 1;
  if (!*is_made) return OM_OK;
  om_tensor *tensor = OM_POOL_NEW(ctx, &graph->pool, om_tensor, 1);
  if (!tensor) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_loader_constant_of(ctx, node, tensor));
  om_value *value = &graph->values[node->outputs[0]];
  value->constant = tensor;
  value->dtype = tensor->dtype;
  return OM_OK;
}

/* A copy of a body for this call alone. */
static om_status copy_body(om_ctx *ctx, call *c, const om_graph *body, const om_graph **out_body) {
  om_graph *copy = add_graph(ctx, c->file);
  if (!copy) return OM_E_OUT_OF_MEMORY;
  om_graph *next = copy->body.next;
  OM_TRY(om_graph_copy(ctx, body, copy));
  copy->body.next = next;
  for (size_t i = 0; i < copy->node_count; ++i) {
    bool is_made = false;
    om_node *node = &copy->nodes[i];
    if (!node_refers(node)) continue;
    OM_TRY(replace_references(ctx, c, copy, node));
    OM_TRY(make_constant(ctx, copy, node, &is_made));
    if (is_made) node->type = NULL;
  }
  *out_body = copy;
  return OM_OK;
}

static om_status replace_references(om_ctx *ctx, call *c, om_graph *graph, om_node *node) {
  om_attr *attrs = OM_POOL_NEW(ctx, &graph->pool, om_attr, node->attr_count);
  uint32_t count = 0;
  if (!attrs) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    om_attr attr = node->attrs[i];
    if (attr.kind == OM_ATTR_GRAPH && graph_refers(attr.graph)) {
      OM_TRY(copy_body(ctx, c, attr.graph, &attr.graph));
    }
    if (attr.kind == OM_ATTR_REFERENCE) {
      const om_attr *referred = find_referred(c, attr.s);
      const char *name = attr.name;
      if (!referred) continue;
      attr = *referred;
      attr.name = name;
    }
    attrs[count++] = attr;
  }
  node->attrs = attrs;
  node->attr_count = count;
  return OM_OK;
}

static om_status adapt_node(om_ctx *ctx, void *user, om_node *node, bool *keep) {
  call *c = user;
  bool is_made = false;
  if (!node_refers(node)) return OM_OK;
  OM_TRY(replace_references(ctx, c, c->graph, node));
  OM_TRY(make_constant(ctx, c->graph, node, &is_made));
  *keep = !is_made;
  return OM_OK;
}

static om_status inline_call(om_ctx *ctx, om_loader_file *file, om_graph *graph, om_node_id id) {
  om_status st = OM_OK;
  om_node node = graph->nodes[id];
  om_loader_function *function = &file->functions[node.function - 1];
  om_value_id *inputs = NULL; /* scratch */
  if (!function->graph) OM_GO(read_function(ctx, file, function));
  const om_graph *body = function->graph;
  if (node.input_count > body->input_count || node.output_count > body->output_count) {
    OM_GO(OM_FAIL(ctx,
                  OM_E_INVALID_MODEL,
                  "It has %" PRIu32 " inputs and %" PRIu32
                  " outputs, but its function has %zu and %zu.",
                  node.input_count,
                  node.output_count,
                  body->input_count,
                  body->output_count));
  }
  OM_GO_NEW(inputs, body->input_count);
  for (size_t i = 0; i < body->input_count; ++i) {
    inputs[i] = i < node.input_count ? node.inputs[i] : OM_NO_VALUE;
  }
  call c = {.file = file, .graph = graph, .node = node, .function = function};
  OM_GO(om_graph_inline(ctx, graph, id, body, inputs, adapt_node, &c));
done:
  om_delete(ctx, inputs);
  if (st != OM_OK) om_error_prefix(ctx, "Node '%s' (%s)", node.name, node.type);
  return st;
}

/* Nodes that come in stand at the end, so calls among them are met as well. */
static om_status inline_calls(om_ctx *ctx, om_loader_file *file, om_graph *graph, size_t *budget) {
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    if (!graph->nodes[id].type || graph->nodes[id].function == 0) continue;
    const char *type = graph->nodes[id].type;
    size_t before = graph->node_count;
    OM_TRY(inline_call(ctx, file, graph, id));
    size_t added = graph->node_count - before + 1;
    if (added > *budget) {
      return OM_FAIL(ctx,
                     OM_E_UNSUPPORTED,
                     "The model's functions become too many nodes; does '%s' call itself?",
                     type);
    }
    *budget -= added;
  }
  return OM_OK;
}

om_status om_loader_inline_functions(om_ctx *ctx, om_loader_file *file) {
  size_t budget = OM_MAX_INLINED + 16 * file->node_count;
  om_graph *root = file->graph;
  if (file->function_count == 0) return OM_OK;
  OM_TRY(inline_calls(ctx, file, root, &budget));
  for (om_graph *at = root->bodies; at; at = at->body.next) {
    OM_TRY(inline_calls(ctx, file, at, &budget));
  }
  /* Functions themselves stay as they are, and have no outer graph; only bodies in them run. More
   * may come meanwhile. */
  for (om_graph *at = root->functions; at; at = at->body.next) {
    if (graph_refers(at)) at->body.outer = NULL; /* its copies run */
    if (at->body.outer) OM_TRY(inline_calls(ctx, file, at, &budget));
  }
  return OM_OK;
}
