/* What rewrites are made with: looking at the graph, and changing it. See om_rewrite.h. */
#include <stdarg.h>
#include <stdio.h>

#include "base/om_float16.h"
#include "rewrite/om_rewrite.h"

void om_rewriter_deinit(om_ctx *ctx, om_rewriter *rw) {
  om_delete(ctx, rw->uses);
  om_delete(ctx, rw->shape_uses);
  om_delete(ctx, rw->readers);
  om_delete(ctx, rw->notes);
  *rw = (om_rewriter){0};
}

static bool is_type(const om_node *node, const char *type) {
  return node->type && node->domain[0] == '\0' && strcmp(node->type, type) == 0;
}

/* Uses by Shape; then those by a Transpose or Reshape of whose result nothing but the shape is
 * asked. */
static void count_shape_uses(om_rewriter *rw) {
  const om_graph *graph = rw->graph;
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    const om_node *node = &graph->nodes[id];
    if (is_type(node, "Shape") && node->inputs[0] != OM_NO_VALUE) ++rw->shape_uses[node->inputs[0]];
  }
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    const om_node *node = &graph->nodes[id];
    if (!is_type(node, "Transpose") && !is_type(node, "Reshape")) continue;
    const om_value_id result = node->outputs[0];
    if (rw->uses[result] != rw->shape_uses[result]) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != OM_NO_VALUE) ++rw->shape_uses[node->inputs[i]];
    }
  }
}

om_status om_rewriter_refresh(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_graph *graph = rw->graph;
  OM_GO(om_graph_finish(ctx, graph));
  om_delete(ctx, rw->uses);
  om_delete(ctx, rw->shape_uses);
  om_delete(ctx, rw->readers);
  rw->uses = NULL;
  rw->shape_uses = NULL;
  rw->readers = NULL;
  OM_GO_NEW(rw->uses, graph->value_count);
  OM_GO_NEW(rw->shape_uses, graph->value_count);
  OM_GO_NEW(rw->readers, graph->value_count);
  om_graph_count_uses(graph, rw->uses);
  count_shape_uses(rw);
  for (size_t i = 0; i < graph->value_count; ++i) rw->readers[i] = OM_NO_NODE;
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    const om_node *node = &graph->nodes[id];
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != OM_NO_VALUE) rw->readers[node->inputs[i]] = id;
    }
  }
done:
  return st;
}

om_status om_rewriter_drop(om_ctx *ctx, om_rewriter *rw, om_node_id id, const char *fmt, ...) {
  om_node *node = &rw->graph->nodes[id];
  char reason[256];
  va_list args;
  va_start(args, fmt);
  vsnprintf(reason, sizeof reason, fmt, args);
  va_end(args);
  const char *kept = om_pool_text(ctx, &rw->graph->pool, reason, strlen(reason));
  if (!kept) return OM_E_OUT_OF_MEMORY;
  OM_TRY(OM_GROW(ctx, rw->notes, rw->note_count, rw->note_capacity));
  rw->notes[rw->note_count++] = (om_node_note){
      .name = node->name, .type = node->type, .domain = node->domain, .reason = kept};
  node->type = NULL; /* om_graph_finish removes it */
  return OM_OK;
}

/* Nodes stand in order, so one walk backwards finds chains of dead nodes too. */
om_status om_rewriter_drop_dead(om_ctx *ctx, om_rewriter *rw) {
  om_graph *graph = rw->graph;
  bool did_drop = false;
  for (om_node_id id = (om_node_id)graph->node_count; id-- > 0;) {
    const om_node *node = &graph->nodes[id];
    bool is_read = false;
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (node->outputs[i] != OM_NO_VALUE && rw->uses[node->outputs[i]] > 0) is_read = true;
    }
    if (is_read) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != OM_NO_VALUE) rw->uses[node->inputs[i]] -= 1;
    }
    OM_TRY(om_rewriter_drop(ctx, rw, id, "left out: nothing reads its result"));
    did_drop = true;
  }
  return did_drop ? om_rewriter_refresh(ctx, rw) : OM_OK;
}

/* ---- Looking ---- */

om_node_id om_rewriter_sole_reader(const om_rewriter *rw, om_value_id value, const char *type) {
  if (value == OM_NO_VALUE || rw->uses[value] != 1 || rw->graph->values[value].is_output) {
    return OM_NO_NODE;
  }
  om_node_id reader = rw->readers[value];
  if (reader == OM_NO_NODE || !is_type(&rw->graph->nodes[reader], type)) return OM_NO_NODE;
  return reader;
}

om_node_id om_rewriter_maker(const om_rewriter *rw, om_value_id value, const char *type) {
  if (value == OM_NO_VALUE) return OM_NO_NODE;
  om_node_id maker = rw->graph->values[value].producer;
  if (maker == OM_NO_NODE || !is_type(&rw->graph->nodes[maker], type)) return OM_NO_NODE;
  return rw->graph->nodes[maker].outputs[0] == value ? maker : OM_NO_NODE;
}

const om_node *om_rewriter_made_by(const om_rewriter *rw, om_value_id value, const char *type) {
  const om_node_id id = om_rewriter_maker(rw, value, type);
  return id == OM_NO_NODE ? NULL : &rw->graph->nodes[id];
}

bool om_rewriter_is_read_once(const om_rewriter *rw, om_value_id value) {
  return rw->uses[value] == 1 && !rw->graph->values[value].is_output;
}

const om_tensor *om_rewriter_constant(const om_rewriter *rw, om_value_id value) {
  return value == OM_NO_VALUE ? NULL : rw->graph->values[value].constant;
}

bool om_rewriter_scalar(const om_rewriter *rw, om_value_id value, float *out_value) {
  const om_tensor *tensor = om_rewriter_constant(rw, value);
  uint16_t half;
  if (!tensor || om_tensor_elems(tensor) != 1) return false;
  if (tensor->dtype != OM_DTYPE_F32 && tensor->dtype != OM_DTYPE_F16) return false;
  if (tensor->dtype == OM_DTYPE_F32) {
    memcpy(out_value, tensor->data, sizeof *out_value);
  } else {
    memcpy(&half, tensor->data, sizeof half);
    *out_value = om_f16_to_f32(half);
  }
  return true;
}

/* ---- Changing ---- */

om_status om_rewriter_add_constant(om_ctx *ctx,
                                   om_rewriter *rw,
                                   const char *stem,
                                   const om_tensor *like,
                                   void **out_data,
                                   om_value_id *out_id) {
  om_graph *graph = rw->graph;
  const size_t elem_bytes = om_dtype_bits(like->dtype) / 8;
  om_tensor *tensor = OM_POOL_NEW(ctx, &graph->pool, om_tensor, 1);
  void *data = om_pool_new_bytes(ctx, &graph->pool, om_tensor_elems(like), elem_bytes);
  if (!tensor || !data) return OM_E_OUT_OF_MEMORY;
  *tensor = *like;
  tensor->data = data;
  tensor->data_bytes = om_tensor_elems(like) * elem_bytes;
  *out_data = data;
  return om_rewriter_add_stored(ctx, rw, stem, tensor, out_id);
}

om_status om_rewriter_add_stored(
    om_ctx *ctx, om_rewriter *rw, const char *stem, const om_tensor *tensor, om_value_id *out_id) {
  om_graph *graph = rw->graph;
  om_value value = {.dtype = tensor->dtype,
                    .has_rank = true,
                    .rank = tensor->rank,
                    .constant = tensor,
                    .producer = OM_NO_NODE};
  value.name = om_pool_format(ctx, &graph->pool, "%s.%zu", stem, graph->value_count);
  if (!value.name) return OM_E_OUT_OF_MEMORY;
  memcpy(value.dims, tensor->dims, sizeof value.dims);
  return om_graph_add_value(ctx, graph, &value, out_id);
}

om_status om_rewriter_set_inputs(
    om_ctx *ctx, om_rewriter *rw, om_node_id node, const om_value_id *inputs, uint32_t count) {
  om_value_id *copy = OM_POOL_NEW(ctx, &rw->graph->pool, om_value_id, count);
  if (!copy) return OM_E_OUT_OF_MEMORY;
  memcpy(copy, inputs, count * sizeof *copy);
  rw->graph->nodes[node].inputs = copy;
  rw->graph->nodes[node].input_count = count;
  return OM_OK;
}

om_status om_rewriter_set_output(
    om_ctx *ctx, om_rewriter *rw, om_node_id id, om_value_id from, om_value_id to) {
  om_node *node = &rw->graph->nodes[id];
  om_value_id *copy = OM_POOL_NEW(ctx, &rw->graph->pool, om_value_id, node->output_count);
  if (!copy) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    copy[i] = node->outputs[i] == from ? to : node->outputs[i];
  }
  node->outputs = copy;
  rw->graph->values[to].producer = id;
  return OM_OK;
}

om_status om_rewriter_become(om_ctx *ctx,
                             om_rewriter *rw,
                             om_node_id id,
                             const om_rewritten_node *what) {
  om_pool *pool = &rw->graph->pool;
  om_node *node = &rw->graph->nodes[id];
  const char *domain = what->domain ? what->domain : "";
  om_attr *attrs = OM_POOL_NEW(ctx, pool, om_attr, what->attr_count);
  const om_op *op = om_op_find(domain, what->type, what->opset, NULL);
  if (!op) return OM_FAIL(ctx, OM_E_INTERNAL, "A rewrite wants %s, which is unknown.", what->type);
  void *params = om_pool_new_bytes(ctx, pool, op->params_bytes, 1);
  if (!attrs || !params) return OM_E_OUT_OF_MEMORY;
  if (what->attr_count > 0) memcpy(attrs, what->attrs, what->attr_count * sizeof *attrs);
  OM_TRY(om_rewriter_set_inputs(ctx, rw, id, what->inputs, what->input_count));
  node->type = what->type;
  node->domain = domain;
  node->opset = what->opset;
  node->attrs = attrs;
  node->attr_count = what->attr_count;
  node->op = op;
  node->params = params;
  return om_op_read_params(ctx, pool, node, params);
}

om_status om_rewriter_add_node(om_ctx *ctx,
                               om_rewriter *rw,
                               const char *name,
                               om_dtype dtype,
                               const om_rewritten_node *what,
                               om_value_id *out_value) {
  om_graph *graph = rw->graph;
  const char *own = om_pool_text(ctx, &graph->pool, name, strlen(name));
  om_value_id *outputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, 1);
  om_value value = {.name = own, .dtype = dtype, .producer = OM_NO_NODE};
  om_node_id id;
  if (!own || !outputs) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_graph_add_value(ctx, graph, &value, &outputs[0]));
  const om_node node = {
      .name = own, .type = what->type, .domain = "", .outputs = outputs, .output_count = 1};
  OM_TRY(om_graph_add_node(ctx, graph, &node, &id));
  *out_value = outputs[0];
  return om_rewriter_become(ctx, rw, id, what);
}

om_status om_rewriter_share_node(om_ctx *ctx,
                                 om_rewriter *rw,
                                 om_node_id first,
                                 const char *name,
                                 om_dtype dtype,
                                 const om_rewritten_node *what,
                                 om_value_id *out_value) {
  const size_t bytes = what->input_count * sizeof *what->inputs;
  for (om_node_id id = first; id < rw->graph->node_count; ++id) {
    const om_node *node = &rw->graph->nodes[id];
    if (!is_type(node, what->type) || node->input_count != what->input_count) continue;
    if (memcmp(node->inputs, what->inputs, bytes) != 0) continue;
    *out_value = node->outputs[0];
    return OM_OK;
  }
  return om_rewriter_add_node(ctx, rw, name, dtype, what, out_value);
}

static om_value_id follow(const om_value_id *to, om_value_id value) {
  while (value != OM_NO_VALUE && to[value] != value) value = to[value];
  return value;
}

static bool is_moved(const om_node *node, const om_value_id *to) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (follow(to, node->inputs[i]) != node->inputs[i]) return true;
  }
  return false;
}

om_status om_rewriter_move_reads(om_ctx *ctx, om_rewriter *rw, const om_value_id *to) {
  om_graph *graph = rw->graph;
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    om_node *node = &graph->nodes[id];
    if (!node->type || !is_moved(node, to)) continue;
    om_value_id *copy = OM_POOL_NEW(ctx, &graph->pool, om_value_id, node->input_count);
    if (!copy) return OM_E_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < node->input_count; ++i) copy[i] = follow(to, node->inputs[i]);
    node->inputs = copy;
  }
  return OM_OK;
}
