/* Bodies: graphs that nodes have as attributes, read with what they capture of the graphs around
 * them.
 *
 * A name that a body does not provide itself is looked for in the graph around it, and so on. Each
 * graph on the way gets an input for it, and each node whose body reads it an operand, so that
 * every graph is complete without the others (om_body_place).
 */
#include "onnx/om_loader.h"

/* The type that the graph around knows: for descriptions, and for checks before a run. */
static void copy_type(const om_value *from, om_value *to) {
  to->dtype = from->dtype;
  to->elem = from->elem;
  to->key_dtype = from->key_dtype;
  to->has_rank = from->has_rank;
  to->rank = from->rank;
  memcpy(to->dims, from->dims, sizeof to->dims);
  memcpy(to->dim_names, from->dim_names, sizeof to->dim_names);
}

/* Goes as deep as bodies are nested: at most OM_MAX_BODY_DEPTH. */
om_status om_loader_see_value(om_ctx *ctx, om_loader *loader, om_string name, om_value_id *out_id) {
  om_value_id outer_id = OM_NO_VALUE;
  om_loader *outer = loader->outer;
  OM_TRY(om_loader_find_value(ctx, loader, name, out_id));
  if (*out_id != OM_NO_VALUE || !outer) return OM_OK;
  OM_TRY(om_loader_see_value(ctx, outer, name, &outer_id));
  if (outer_id == OM_NO_VALUE) return OM_OK;

  OM_TRY(om_loader_add_value(ctx, loader, name, out_id));
  om_value *value = &loader->graph->values[*out_id];
  value->is_input = true;
  copy_type(&outer->graph->values[outer_id], value);
  OM_TRY(OM_GROW(ctx, loader->captured, loader->captured_count, loader->captured_capacity));
  loader->captured[loader->captured_count++] = *out_id;
  OM_TRY(
      OM_GROW(ctx, outer->node_captures, outer->node_capture_count, outer->node_capture_capacity));
  outer->node_captures[outer->node_capture_count++] = outer_id;
  return OM_OK;
}

/* The inputs in one array: the formal ones, then the captured ones. */
static om_status set_inputs(om_ctx *ctx, const om_loader *loader) {
  om_graph *graph = loader->graph;
  size_t formal = graph->input_count;
  size_t count = loader->captured_count;
  om_value_id *ids = OM_POOL_NEW(ctx, &graph->pool, om_value_id, formal + count);
  if (!ids) return OM_E_OUT_OF_MEMORY;
  if (formal > 0) memcpy(ids, graph->inputs, formal * sizeof *ids);
  if (count > 0) memcpy(ids + formal, loader->captured, count * sizeof *ids);
  graph->inputs = ids;
  graph->input_count = formal + count;
  graph->body.capture_count = (uint32_t)count;
  return OM_OK;
}

/* Linked before it is read, so that outer bodies come first, and freed with the others. */
static om_graph *add_body(om_ctx *ctx, om_loader *loader, const char *attr) {
  om_loader_file *file = loader->file;
  om_graph *body = OM_POOL_NEW(ctx, &file->graph->pool, om_graph, 1);
  if (!body) return NULL;
  *file->last_body = body;
  file->last_body = &body->body.next;
  body->opsets = loader->opsets;
  body->opset_count = loader->opset_count;
  body->body = (om_body_place){
      .outer = loader->graph,
      .outer_node = loader->graph->node_count,
      .name = loader->node->name,
      .type = loader->node->type,
      .attr = attr,
      .capture_first = (uint32_t)(loader->node->input_count + loader->node_capture_count)};
  return body;
}

om_status om_loader_read_body(
    om_ctx *ctx, om_loader *loader, om_string bytes, const char *name, const om_graph **out_body) {
  om_status st = OM_OK;
  om_graph *body = NULL;
  om_loader *inner = NULL;
  if (loader->depth == OM_MAX_BODY_DEPTH) {
    return OM_FAIL(
        ctx, OM_E_UNSUPPORTED, "Bodies are nested more than %d deep.", OM_MAX_BODY_DEPTH);
  }
  body = add_body(ctx, loader, name);
  if (!body) return OM_E_OUT_OF_MEMORY;
  OM_GO_NEW(inner, 1);
  om_loader_init(ctx, inner, loader->file, body);
  inner->opsets = loader->opsets;
  inner->opset_count = loader->opset_count;
  inner->is_function = loader->is_function;
  inner->outer = loader;
  inner->depth = loader->depth + 1;
  OM_GO(om_loader_read_graph(ctx, inner, bytes));
  OM_GO(set_inputs(ctx, inner));
  *out_body = body;
done:
  if (inner) om_loader_deinit(ctx, inner);
  om_delete(ctx, inner);
  return st;
}
