/* Models: the public functions, the file's top level, and the descriptions that models lend. */
#include "onnx/om_model.h"

#include <inttypes.h>

#include "graph/om_op.h"
#include "onnx/om_loader.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#  error "ONNX files are little-endian, and tensor data are used where they lie in them"
#endif

enum { NEWEST_IR_VERSION = 13, TEXT_BYTES = 200 };

struct om_model {
  om_allocator allocator;
  om_memory_use *use;    /* borrowed, or own_use */
  om_memory_use own_use; /* of models that were loaded; the model's own struct is not counted */
  om_log log;
  om_graph graph; /* owned, with all that info and nodes point to */
  om_model_info info;
  om_node_info *nodes;  /* in the file's order */
  om_file_map file;     /* owned; empty for a model from memory */
  om_external external; /* owned */
};

static void destroy(om_ctx *ctx, om_model *model) {
  if (!model) return;
  om_graph_deinit(ctx, &model->graph);
  om_external_deinit(ctx, &model->external);
  om_file_map_close(ctx, &model->file);
  if (ctx->use == &model->own_use) ctx->use = NULL; /* it goes with the model */
  om_delete(ctx, model);
}

/* ---- Descriptions ---- */

static void describe_type(const om_value *value, om_value_info *out) {
  *out = (om_value_info){.name = value->name,
                         .dtype = value->dtype,
                         .key_dtype = value->key_dtype,
                         .has_rank = value->has_rank,
                         .rank = value->has_rank ? value->rank : 0};
  memcpy(out->dims, value->dims, sizeof out->dims);
  memcpy(out->dim_names, value->dim_names, sizeof out->dim_names);
}

/* A nested value's type is a chain, as long as OM_VALUE_DEPTH. */
static om_status describe_value(om_ctx *ctx, om_graph *graph, om_value_id id, om_value_info *out) {
  const om_value *value = &graph->values[id];
  describe_type(value, out);
  while ((value = value->elem) != NULL) {
    om_value_info *elem = OM_POOL_NEW(ctx, &graph->pool, om_value_info, 1);
    if (!elem) return OM_E_OUT_OF_MEMORY;
    describe_type(value, elem);
    out->elem = elem;
    out = elem;
  }
  return OM_OK;
}

static om_status describe_values(
    om_ctx *ctx, om_graph *graph, const om_value_id *ids, size_t count, const om_value_info **out) {
  om_value_info *infos = OM_POOL_NEW(ctx, &graph->pool, om_value_info, count);
  if (!infos) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < count; ++i) OM_TRY(describe_value(ctx, graph, ids[i], &infos[i]));
  *out = infos;
  return OM_OK;
}

static om_status name_values(
    om_ctx *ctx, om_graph *graph, const om_value_id *ids, size_t count, const char *const **out) {
  const char **names = OM_POOL_NEW(ctx, &graph->pool, const char *, count);
  if (!names) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < count; ++i) {
    names[i] = ids[i] == OM_NO_VALUE ? "" : graph->values[ids[i]].name;
  }
  *out = names;
  return OM_OK;
}

/* The nodes of one graph; `outer` is the index of the node that has it as a body. */
static om_status describe_nodes(om_ctx *ctx, om_graph *graph, om_node_info *infos, size_t outer) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    const om_node *node = &graph->nodes[i];
    om_node_info *info = &infos[i];
    *info = (om_node_info){.name = node->name,
                           .op_type = node->type,
                           .domain = node->domain,
                           .input_count = om_node_formal_count(node),
                           .output_count = node->output_count,
                           .outer = outer,
                           .body = graph->body.attr ? graph->body.attr : ""};
    OM_TRY(name_values(ctx, graph, node->inputs, info->input_count, &info->input_names));
    OM_TRY(name_values(ctx, graph, node->outputs, node->output_count, &info->output_names));
  }
  return OM_OK;
}

/* The model's nodes in the file's order, then those of each body. Outer bodies come first, so that
 * the node that has a body is described before it. */
static om_status describe_all_nodes(om_ctx *ctx, om_model *model) {
  om_graph *graph = &model->graph;
  size_t count = graph->node_count;
  for (om_graph *body = graph->bodies; body; body = body->body.next) {
    body->body.first_node = count;
    count += body->node_count;
  }
  model->info.node_count = count;
  model->nodes = OM_POOL_NEW(ctx, &graph->pool, om_node_info, count);
  if (!model->nodes) return OM_E_OUT_OF_MEMORY;
  OM_TRY(describe_nodes(ctx, graph, model->nodes, OM_NO_OUTER));
  for (om_graph *body = graph->bodies; body; body = body->body.next) {
    size_t outer = body->body.outer->body.first_node + body->body.outer_node;
    OM_TRY(describe_nodes(ctx, body, model->nodes + body->body.first_node, outer));
  }
  return OM_OK;
}

/* Everything in model->info that the graph tells. */
static om_status describe(om_ctx *ctx, om_model *model) {
  om_graph *graph = &model->graph;
  om_model_info *info = &model->info;
  OM_TRY(describe_values(ctx, graph, graph->inputs, graph->input_count, &info->inputs));
  OM_TRY(describe_values(ctx, graph, graph->outputs, graph->output_count, &info->outputs));
  info->input_count = graph->input_count;
  info->output_count = graph->output_count;
  info->opsets = graph->opsets;
  info->opset_count = graph->opset_count;
  if (!info->producer) info->producer = "";
  return OM_OK;
}

/* Sorts a graph's nodes and finds their operators. What fails in a body is told with the node that
 * has it. */
static om_status finish(om_ctx *ctx, om_graph *graph) {
  om_status st = om_graph_finish(ctx, graph);
  if (st == OM_OK) st = om_graph_resolve_ops(ctx, graph);
  for (const om_graph *at = graph; st != OM_OK && at->body.outer; at = at->body.outer) {
    om_error_prefix(
        ctx, "Node '%s' (%s): Attribute '%s'", at->body.name, at->body.type, at->body.attr);
  }
  return st;
}

/* Finishes the graphs, whose nodes are described in the order they have in the file. */
static om_status complete(om_ctx *ctx, om_model *model) {
  om_graph *graph = &model->graph;
  for (om_graph *body = graph->bodies; body; body = body->body.next) OM_TRY(finish(ctx, body));
  for (om_graph *at = graph->functions; at; at = at->body.next) {
    if (at->body.outer) OM_TRY(finish(ctx, at)); /* a body; functions themselves are in place */
  }
  OM_TRY(finish(ctx, graph));
  return describe(ctx, model);
}

/* ---- The file's top level ---- */

typedef struct parts {
  om_string producer, graph;
  om_wire_list opsets, functions;
  bool has_ir_version;
  int64_t ir_version;
} parts;

static om_status read_parts(om_ctx *ctx, om_string bytes, parts *p) {
  p->opsets.ctx = ctx;
  p->functions.ctx = ctx;
  om_wire_Model wire = {.producer = om_wire_keep(&p->producer),
                        .graph = om_wire_keep(&p->graph),
                        .opsets = om_wire_keep_all(&p->opsets),
                        .functions = om_wire_keep_all(&p->functions)};
  OM_TRY(om_wire_decode(ctx, bytes, om_wire_Model_fields, &wire, "model"));
  if (!wire.has_ir_version || wire.ir_version < 1) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "This is not an ONNX model: it has no IR version.");
  }
  if (!p->graph.data) return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The model has no graph.");
  if (wire.ir_version > NEWEST_IR_VERSION) {
    om_log_write(ctx,
                 OM_LOG_WARNING,
                 "The model's IR version %" PRId64 " is newer than %d.",
                 wire.ir_version,
                 NEWEST_IR_VERSION);
  }
  p->ir_version = wire.ir_version;
  return OM_OK;
}

static om_status read_opsets(om_ctx *ctx, om_loader_file *file, const om_wire_list *list) {
  if (list->count == 0) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The model imports no operator set (opset_import).");
  }
  OM_TRY(om_loader_read_opsets(ctx, &file->graph->pool, list, &file->opsets, &file->opset_count));
  file->graph->opsets = file->opsets;
  file->graph->opset_count = file->opset_count;
  return OM_OK;
}

static om_status read_producer(om_ctx *ctx, om_model *model, om_string producer) {
  size_t bytes = producer.bytes < TEXT_BYTES ? producer.bytes : TEXT_BYTES;
  model->info.producer = om_pool_text(ctx, &model->graph.pool, producer.data, bytes);
  return model->info.producer ? OM_OK : OM_E_OUT_OF_MEMORY;
}

static om_status read_model(om_ctx *ctx, om_model *model, om_string bytes) {
  om_status st = OM_OK;
  parts p = {0};
  om_loader loader;
  om_loader_file file = {.graph = &model->graph,
                         .last_body = &model->graph.bodies,
                         .last_function = &model->graph.functions};
  file.reading = (om_tensor_reading){.pool = &model->graph.pool,
                                     .external = &model->external,
                                     .align_below_bytes = OM_COPIED_BELOW_BYTES};
  om_loader_init(ctx, &loader, &file, &model->graph);

  OM_GO(read_parts(ctx, bytes, &p));
  OM_GO(read_producer(ctx, model, p.producer));
  OM_GO(read_opsets(ctx, &file, &p.opsets));
  loader.opsets = file.opsets;
  loader.opset_count = file.opset_count;
  OM_GO(om_loader_list_functions(ctx, &file, &p.functions));
  OM_GO(om_loader_read_graph(ctx, &loader, p.graph));
  model->info.ir_version = p.ir_version;
  model->info.weight_count = file.weight_count;
  model->info.weight_bytes = file.weight_bytes;
  model->info.file_bytes = bytes.bytes;
  OM_GO(describe_all_nodes(ctx, model));
  OM_GO(om_loader_inline_functions(ctx, &file));
  OM_GO(complete(ctx, model));
done:
  om_loader_deinit(ctx, &loader);
  om_loader_file_deinit(ctx, &file);
  om_wire_list_deinit(&p.opsets);
  om_wire_list_deinit(&p.functions);
  return st;
}

/* ---- Loading ---- */

static om_status create(om_ctx *ctx, om_model **out_model) {
  om_model *model = om_new_bytes(ctx, 1, sizeof *model);
  if (!model) return OM_E_OUT_OF_MEMORY;
  model->allocator = ctx->allocator;
  model->use = ctx->use;
  model->log = ctx->log;
  *out_model = model;
  return OM_OK;
}

/* Where a model comes from: a path, or bytes. */
typedef struct source {
  const char *path;
  om_string bytes;
} source;

/* om_graph.on_copied of a model that lies in files. */
static void release_pages(const void *lender, const void *data, size_t bytes) {
  const om_model *model = lender;
  om_file_map_release(&model->file, data, bytes);
  for (size_t i = 0; i < model->external.file_count; ++i) {
    om_file_map_release(&model->external.files[i].map, data, bytes);
  }
}

static om_status read_source(om_ctx *ctx, om_model *model, const source *from) {
  if (!from->path) return read_model(ctx, model, from->bytes);
  OM_TRY(om_file_map_open(ctx, from->path, &model->file));
  if (!model->external.reader.find) {
    OM_TRY(om_external_init(ctx, from->path, &model->external));
  }
  om_string bytes = {.data = (const char *)model->file.bytes, .bytes = model->file.byte_count};
  om_status st = read_model(ctx, model, bytes);
  if (st != OM_OK) om_error_prefix(ctx, "Model '%s'", from->path);
  model->graph.on_copied = release_pages;
  model->graph.lender = model;
  return st;
}

static om_status use_options(om_ctx *ctx, om_model *model, const om_model_options *options) {
  const om_reader *reader = options->reader;
  if (reader && (!reader->find || !reader->read)) {
    return OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "options.reader lacks find or read.");
  }
  if (reader) model->external.reader = *reader;
  model->own_use.limit_bytes = options->max_bytes;
  model->external.given = options->files;
  model->external.given_count = options->files ? options->file_count : 0;
  return OM_OK;
}

static om_status load(om_ctx *ctx,
                      const source *from,
                      const om_model_options *options,
                      om_model **out_model) {
  om_status st = OM_OK;
  om_model *model = NULL;
  if (!from->path && !from->bytes.data) {
    OM_GO(OM_FAIL(ctx, OM_E_INVALID_ARGUMENT, "The path or the bytes of the model are NULL."));
  }
  if (options && options->struct_bytes != sizeof *options) {
    OM_GO(OM_FAIL(ctx,
                  OM_E_INVALID_ARGUMENT,
                  "options.struct_bytes is %zu, not %zu; use OM_MODEL_OPTIONS_INIT.",
                  options->struct_bytes,
                  sizeof *options));
  }
  if (options) OM_GO(om_ctx_use_allocator(ctx, options->allocator));
  if (options) ctx->log = options->log;
  OM_GO(create(ctx, &model));
  if (options) OM_GO(use_options(ctx, model, options));
  ctx->use = model->use = &model->own_use;
  OM_GO(read_source(ctx, model, from));
  model->external.given = NULL; /* borrowed until here */
  model->external.given_count = 0;
  *out_model = model;
  model = NULL;
done:
  destroy(ctx, model);
  return st;
}

/* Callers without an error get one from the heap: it is too large for a stack frame. */
static om_status load_with_error(const source *from,
                                 const om_model_options *options,
                                 om_model **out_model,
                                 om_error *error) {
  om_allocator heap = om_default_allocator();
  om_ctx ctx = {.allocator = heap, .error = error, .thread_count = 1};
  if (!error) ctx.error = heap.alloc(heap.user, sizeof *error);
  if (!ctx.error) return OM_E_OUT_OF_MEMORY;
  om_error_clear(ctx.error);
  om_status st = OM_OK;
  if (out_model) {
    *out_model = NULL;
    st = load(&ctx, from, options, out_model);
  } else {
    st = OM_FAIL(&ctx, OM_E_INVALID_ARGUMENT, "out_model is NULL.");
  }
  if (!error) heap.free(heap.user, ctx.error, sizeof *error);
  return st;
}

om_status om_model_load_file(const char *path,
                             const om_model_options *options,
                             om_model **out_model,
                             om_error *error) {
  return load_with_error(&(source){.path = path}, options, out_model, error);
}

om_status om_model_load_memory(const void *bytes,
                               size_t byte_count,
                               const om_model_options *options,
                               om_model **out_model,
                               om_error *error) {
  source from = {.bytes = {.data = bytes, .bytes = byte_count}};
  return load_with_error(&from, options, out_model, error);
}

om_status om_model_create_from_graph(om_ctx *ctx, om_graph *graph, om_model **out_model) {
  om_status st = OM_OK;
  om_model *model = NULL;
  *out_model = NULL;
  OM_GO(create(ctx, &model));
  model->graph = *graph;
  *graph = (om_graph){0};
  OM_GO(describe_all_nodes(ctx, model));
  OM_GO(complete(ctx, model));
  for (size_t i = 0; i < model->graph.value_count; ++i) {
    const om_tensor *constant = model->graph.values[i].constant;
    if (!constant) continue;
    ++model->info.weight_count;
    model->info.weight_bytes += constant->data_bytes;
  }
  *out_model = model;
  model = NULL;
done:
  om_graph_deinit(ctx, graph);
  destroy(ctx, model);
  return st;
}

void om_model_destroy(om_model *model) {
  if (!model) return;
  /* No error: nothing here can fail. */
  om_ctx ctx = {.allocator = model->allocator, .use = model->use, .log = model->log};
  destroy(&ctx, model);
}

const om_model_info *om_model_get_info(const om_model *model) {
  return &model->info;
}

om_node_info om_model_get_node(const om_model *model, size_t index) {
  return index < model->info.node_count ? model->nodes[index] : (om_node_info){0};
}

const om_graph *om_model_get_graph(const om_model *model) {
  return &model->graph;
}
