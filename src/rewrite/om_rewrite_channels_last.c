/* Convolutions with the channels last, and what stands between them:
 *
 *     Conv, Relu, MaxPool, Conv, ..., GlobalAveragePool
 *     Transpose, onemodel.Conv, Relu, onemodel.MaxPool, onemodel.Conv, ..., Transpose
 *
 * The CPU's fast kernels want that order, and elementwise operators do not mind. Nodes are walked
 * in order. A value that is there with the channels last has a twin; a node is turned where its
 * operands have twins or can get one, and then makes the twin of its result. Who is not turned
 * reads the value itself, which one Transpose at the end makes from the twin. Transposes of the
 * model's own that do the same cancel out. Four axes only: the graph does not know extents, but
 * ranks it does.
 */
#include "rewrite/om_turn.h"

enum { RANK = 4 };

static const int64_t to_last[RANK] = {0, 2, 3, 1};
static const int64_t to_first[RANK] = {0, 3, 1, 2};
/* Where an axis of [N, C, H, W] is in [N, H, W, C]. */
static const int64_t place_in_last[RANK] = {0, 3, 1, 2};

typedef struct turner {
  om_rewriter *rw;
  om_value_fact *facts;  /* owned */
  om_value_id *last;     /* owned; by value: its twin, or OM_NO_VALUE */
  om_value_id *moved;    /* owned; by value: what its readers are to read */
  bool *is_made_by_twin; /* owned; by value: its node makes the twin now */
  size_t value_count;    /* before there were twins */
} turner;

static om_value_id twin_of(const turner *t, om_value_id value) {
  return value < t->value_count ? t->last[value] : OM_NO_VALUE;
}

static om_status add_twin(om_ctx *ctx, turner *t, om_value_id of, om_value_id *out_id) {
  om_graph *graph = t->rw->graph;
  om_value value = {.dtype = OM_DTYPE_F32, .producer = OM_NO_NODE};
  value.name = om_pool_format(ctx, &graph->pool, "%s.last", graph->values[of].name);
  if (!value.name) return OM_E_OUT_OF_MEMORY;
  return om_graph_add_value(ctx, graph, &value, out_id);
}

/* A new node that makes `output`. */
static om_status add_node(om_ctx *ctx,
                          turner *t,
                          const om_rewritten_node *what,
                          om_value_id output) {
  om_graph *graph = t->rw->graph;
  om_value_id *outputs = OM_POOL_NEW(ctx, &graph->pool, om_value_id, 1);
  const char *name =
      om_pool_format(ctx, &graph->pool, "%s.%s", graph->values[output].name, what->type);
  om_node_id id;
  if (!outputs || !name) return OM_E_OUT_OF_MEMORY;
  outputs[0] = output;
  const om_node node = {
      .name = name, .type = what->type, .domain = "", .outputs = outputs, .output_count = 1};
  OM_TRY(om_graph_add_node(ctx, graph, &node, &id));
  return om_rewriter_become(ctx, t->rw, id, what);
}

static om_status add_transpose(
    om_ctx *ctx, turner *t, om_value_id from, om_value_id to, const int64_t *perm) {
  const om_attr attr = {.name = "perm", .kind = OM_ATTR_INTS, .count = RANK, .ints = perm};
  return add_node(ctx,
                  t,
                  &(om_rewritten_node){.type = "Transpose",
                                       .opset = 13,
                                       .inputs = &from,
                                       .input_count = 1,
                                       .attrs = &attr,
                                       .attr_count = 1},
                  to);
}

static bool has_perm(const om_node *node, const int64_t *perm) {
  const om_attr *attr = om_node_attr(node, "perm");
  return attr && attr->kind == OM_ATTR_INTS && attr->count == RANK &&
         memcmp(attr->ints, perm, RANK * sizeof *perm) == 0;
}

/* The value's twin, which is made where it is not there. The value has four axes. */
static om_status get_twin(om_ctx *ctx, turner *t, om_value_id value, om_value_id *out_twin) {
  *out_twin = twin_of(t, value);
  if (*out_twin != OM_NO_VALUE) return OM_OK;
  const om_node_id maker = om_rewriter_maker(t->rw, value, "Transpose");
  if (maker != OM_NO_NODE && has_perm(&t->rw->graph->nodes[maker], to_first)) {
    *out_twin = t->rw->graph->nodes[maker].inputs[0];
  } else {
    OM_TRY(add_twin(ctx, t, value, out_twin));
    OM_TRY(add_transpose(ctx, t, value, *out_twin, to_last));
  }
  t->last[value] = *out_twin;
  return OM_OK;
}

/* Lets the node make the twin of its first result. */
static om_status make_twin(om_ctx *ctx, turner *t, om_node_id id) {
  const om_value_id value = t->rw->graph->nodes[id].outputs[0];
  om_value_id twin;
  OM_TRY(add_twin(ctx, t, value, &twin));
  OM_TRY(om_rewriter_set_output(ctx, t->rw, id, value, twin));
  t->rw->graph->values[value].producer = OM_NO_NODE; /* until the end */
  t->last[value] = twin;
  t->is_made_by_twin[value] = true;
  return OM_OK;
}

/* The node becomes `type` of `domain` with its own attributes and these inputs. */
static om_status become(om_ctx *ctx,
                        turner *t,
                        om_node_id id,
                        const char *domain,
                        const char *type,
                        const om_value_id *inputs,
                        uint32_t input_count) {
  const om_node *node = &t->rw->graph->nodes[id];
  return om_rewriter_become(ctx,
                            t->rw,
                            id,
                            &(om_rewritten_node){.domain = domain,
                                                 .type = type,
                                                 .opset = domain[0] ? 1 : node->opset,
                                                 .inputs = inputs,
                                                 .input_count = input_count,
                                                 .attrs = node->attrs,
                                                 .attr_count = node->attr_count});
}

/* ---- Convolutions and pools ---- */

static bool is_float_constant(const turner *t, om_value_id value, uint32_t rank) {
  const om_tensor *constant = om_rewriter_constant(t->rw, value);
  return constant && constant->dtype == OM_DTYPE_F32 && constant->rank == rank;
}

static om_status turn_conv(om_ctx *ctx, turner *t, om_node_id id, const char *type) {
  const om_node *node = &t->rw->graph->nodes[id];
  om_value_id inputs[3] = {node->inputs[0], node->inputs[1], OM_NO_VALUE};
  const uint32_t count = node->input_count < 3 ? node->input_count : 3;
  if (!is_float_constant(t, inputs[1], RANK)) return OM_OK;
  if (count == 3) inputs[2] = node->inputs[2];
  OM_TRY(get_twin(ctx, t, inputs[0], &inputs[0]));
  OM_TRY(become(ctx, t, id, "onemodel", type, inputs, count));
  return make_twin(ctx, t, id);
}

static om_status turn_pool(om_ctx *ctx, turner *t, om_node_id id, const char *type) {
  const om_node *node = &t->rw->graph->nodes[id];
  const om_value_id twin = twin_of(t, node->inputs[0]);
  if (twin == OM_NO_VALUE) return OM_OK;
  if (node->output_count > 1 && node->outputs[1] != OM_NO_VALUE) return OM_OK;
  OM_TRY(become(ctx, t, id, "onemodel", type, &twin, 1));
  return make_twin(ctx, t, id);
}

/* ---- Elementwise ---- */

static om_status turn_unary(om_ctx *ctx, turner *t, om_node_id id, const char *type) {
  const om_node *node = &t->rw->graph->nodes[id];
  om_value_id inputs[3] = {OM_NO_VALUE, OM_NO_VALUE, OM_NO_VALUE};
  (void)type;
  if (twin_of(t, node->inputs[0]) == OM_NO_VALUE || node->input_count > 3) return OM_OK;
  for (uint32_t i = 0; i < node->input_count; ++i) inputs[i] = node->inputs[i];
  inputs[0] = twin_of(t, inputs[0]);
  OM_TRY(om_rewriter_set_inputs(ctx, t->rw, id, inputs, node->input_count));
  return make_twin(ctx, t, id);
}

/* One scale for all elements: no axis matters. */
static om_status turn_quantize(om_ctx *ctx, turner *t, om_node_id id, const char *type) {
  const om_node *node = &t->rw->graph->nodes[id];
  const bool is_to_bytes = type[0] == 'Q';
  const om_tensor *scale = om_rewriter_constant(t->rw, node->inputs[1]);
  const om_tensor *zero =
      node->input_count == 3 ? om_rewriter_constant(t->rw, node->inputs[2]) : NULL;
  const om_value_id result = node->outputs[0];
  if (!scale || scale->rank != 0 || (is_to_bytes && (!zero || zero->rank != 0))) return OM_OK;
  const om_dtype dtype = is_to_bytes ? zero->dtype : scale->dtype;
  OM_TRY(turn_unary(ctx, t, id, type));
  if (twin_of(t, result) != OM_NO_VALUE) {
    t->rw->graph->values[twin_of(t, result)].dtype = dtype;
  }
  return OM_OK;
}

/* True if the constant is one element, or has one for each channel: then *out_channels is their
 * number. */
static bool is_by_channel(const om_tensor *constant, int64_t *out_channels) {
  *out_channels = 0;
  if (constant->rank > RANK) return false;
  if (om_tensor_elems(constant) == 1) return true;
  for (uint32_t i = 0; i < constant->rank; ++i) {
    const uint32_t axis = RANK - constant->rank + i;
    if (axis == 1) *out_channels = constant->dims[i];
    if (axis != 1 && constant->dims[i] != 1) return false;
  }
  return *out_channels > 0;
}

/* An operand of an elementwise node with the channels last; OM_NO_VALUE: it cannot be had. */
static om_status turn_operand(om_ctx *ctx, turner *t, om_value_id value, om_value_id *out) {
  const om_tensor *constant = om_rewriter_constant(t->rw, value);
  int64_t channels = 0;
  void *data = NULL;
  *out = twin_of(t, value);
  if (*out != OM_NO_VALUE) return OM_OK;
  if (!constant) {
    if (value < t->value_count && t->facts[value].rank == RANK) return get_twin(ctx, t, value, out);
    return OM_OK;
  }
  if (constant->dtype != OM_DTYPE_F32 || !is_by_channel(constant, &channels)) return OM_OK;
  *out = value;
  if (channels == 0) return OM_OK;
  OM_TRY(om_constant_hold(ctx, t->rw->graph, value));
  constant = om_rewriter_constant(t->rw, value);
  const om_tensor like = {.dtype = OM_DTYPE_F32, .rank = 1, .dims = {channels}};
  OM_TRY(om_rewriter_add_constant(ctx, t->rw, "last", &like, &data, out));
  memcpy(data, constant->data, (size_t)channels * sizeof(float));
  return OM_OK;
}

static bool can_turn(const turner *t, om_value_id value) {
  const om_tensor *constant = om_rewriter_constant(t->rw, value);
  int64_t channels;
  if (twin_of(t, value) != OM_NO_VALUE) return true;
  if (constant) return constant->dtype == OM_DTYPE_F32 && is_by_channel(constant, &channels);
  return value < t->value_count && t->facts[value].rank == RANK;
}

static om_status turn_binary(om_ctx *ctx, turner *t, om_node_id id, const char *type) {
  const om_node *node = &t->rw->graph->nodes[id];
  om_value_id inputs[2];
  (void)type;
  if (node->input_count != 2 || node->opset < 7) return OM_OK;
  inputs[0] = node->inputs[0];
  inputs[1] = node->inputs[1];
  if (twin_of(t, inputs[0]) == OM_NO_VALUE && twin_of(t, inputs[1]) == OM_NO_VALUE) return OM_OK;
  if (!can_turn(t, inputs[0]) || !can_turn(t, inputs[1])) return OM_OK;
  for (uint32_t i = 0; i < 2; ++i) OM_TRY(turn_operand(ctx, t, inputs[i], &inputs[i]));
  OM_TRY(om_rewriter_set_inputs(ctx, t->rw, id, inputs, 2));
  return make_twin(ctx, t, id);
}

/* ---- Layout ---- */

static om_status turn_concat(om_ctx *ctx, turner *t, om_node_id id, const char *type) {
  static const om_axes axes = {.rank = RANK, .perm = {0, 3, 1, 2}}; /* place_in_last */
  om_rewriter *rw = t->rw;
  const uint32_t count = rw->graph->nodes[id].input_count;
  int64_t axis = 0;
  bool has_twin = false;
  for (uint32_t i = 0; i < count; ++i) {
    const om_value_id value = rw->graph->nodes[id].inputs[i];
    const bool is_constant = om_rewriter_constant(rw, value) != NULL;
    has_twin = has_twin || twin_of(t, value) != OM_NO_VALUE;
    if (is_constant ? !is_float_constant(t, value, RANK) : !can_turn(t, value)) return OM_OK;
  }
  OM_TRY(om_node_attr_int(ctx, &rw->graph->nodes[id], "axis", 1, &axis));
  if (!has_twin || axis < -RANK || axis >= RANK) return OM_OK;
  om_value_id *inputs = OM_POOL_NEW(ctx, &rw->graph->pool, om_value_id, count);
  if (!inputs) return OM_E_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < count; ++i) {
    const om_value_id value = rw->graph->nodes[id].inputs[i];
    if (om_rewriter_constant(rw, value)) {
      OM_TRY(om_turn_constant(ctx, rw, &axes, value, &inputs[i]));
    } else {
      OM_TRY(get_twin(ctx, t, value, &inputs[i]));
    }
  }
  const om_attr attr = {
      .name = "axis", .kind = OM_ATTR_INT, .i = place_in_last[axis < 0 ? axis + RANK : axis]};
  OM_TRY(om_rewriter_become(ctx,
                            rw,
                            id,
                            &(om_rewritten_node){.type = type,
                                                 .opset = 13,
                                                 .inputs = inputs,
                                                 .input_count = count,
                                                 .attrs = &attr,
                                                 .attr_count = 1}));
  return make_twin(ctx, t, id);
}

/* A list with a number for each axis, or two, in the new order. */
static om_status turn_list(om_ctx *ctx,
                           turner *t,
                           om_value_id list,
                           const int64_t *order,
                           int64_t count,
                           om_value_id *out_list) {
  const om_tensor like = {.dtype = OM_DTYPE_I64, .rank = 1, .dims = {count}};
  om_value_id inputs[2] = {list, OM_NO_VALUE};
  void *data = NULL;
  OM_TRY(om_rewriter_add_constant(ctx, t->rw, "order", &like, &data, &inputs[1]));
  memcpy(data, order, (size_t)count * sizeof *order);
  om_value value = {.producer = OM_NO_NODE};
  value.name = om_pool_format(ctx, &t->rw->graph->pool, "list.%zu", t->rw->graph->value_count);
  if (!value.name) return OM_E_OUT_OF_MEMORY;
  OM_TRY(om_graph_add_value(ctx, t->rw->graph, &value, out_list));
  return add_node(
      ctx,
      t,
      &(om_rewritten_node){.type = "Gather", .opset = 13, .inputs = inputs, .input_count = 2},
      *out_list);
}

static om_status turn_resize(om_ctx *ctx, turner *t, om_node_id id, const char *type) {
  const om_node *node = &t->rw->graph->nodes[id];
  om_value_id inputs[4] = {OM_NO_VALUE, OM_NO_VALUE, OM_NO_VALUE, OM_NO_VALUE};
  const uint32_t count = node->input_count;
  const uint32_t first_list = node->opset < 11 ? 1 : 2;
  om_string mode;
  OM_TRY(om_node_attr_text(ctx, node, "coordinate_transformation_mode", "half_pixel", &mode));
  if (twin_of(t, node->inputs[0]) == OM_NO_VALUE || om_node_attr(node, "axes") || count > 4 ||
      node->opset < 10 || om_string_is(mode, "tf_crop_and_resize")) {
    return OM_OK;
  }
  inputs[0] = twin_of(t, node->inputs[0]);
  for (uint32_t i = first_list; i < count; ++i) {
    const om_value_id list = t->rw->graph->nodes[id].inputs[i];
    const om_tensor *constant = om_rewriter_constant(t->rw, list);
    if (list == OM_NO_VALUE || (constant && om_tensor_elems(constant) == 0)) continue;
    OM_TRY(turn_list(ctx, t, list, to_last, RANK, &inputs[i]));
  }
  OM_TRY(become(ctx, t, id, "", type, inputs, count));
  return make_twin(ctx, t, id);
}

static om_status turn_pad(om_ctx *ctx, turner *t, om_node_id id, const char *type) {
  static const int64_t order[2 * RANK] = {0, 2, 3, 1, 4, 6, 7, 5};
  const om_node *node = &t->rw->graph->nodes[id];
  om_value_id inputs[3] = {OM_NO_VALUE, OM_NO_VALUE, OM_NO_VALUE};
  const uint32_t count = node->input_count;
  if (twin_of(t, node->inputs[0]) == OM_NO_VALUE || node->opset < 11 || count > 3) return OM_OK;
  for (uint32_t i = 0; i < count; ++i) inputs[i] = node->inputs[i];
  inputs[0] = twin_of(t, inputs[0]);
  OM_TRY(turn_list(ctx, t, inputs[1], order, 2 * RANK, &inputs[1]));
  OM_TRY(become(ctx, t, id, "", type, inputs, count));
  return make_twin(ctx, t, id);
}

static om_status turn_transpose(om_ctx *ctx, turner *t, om_node_id id, const char *type) {
  om_rewriter *rw = t->rw;
  const om_node *node = &rw->graph->nodes[id];
  const om_value_id twin = twin_of(t, node->inputs[0]);
  const om_value_id result = node->outputs[0];
  const om_attr *perm = om_node_attr(node, "perm");
  int64_t axes[RANK];
  if (twin == OM_NO_VALUE || !perm || perm->kind != OM_ATTR_INTS || perm->count != RANK) {
    return OM_OK;
  }
  if (has_perm(node, to_last) && !rw->graph->values[result].is_output) {
    t->moved[result] = twin;
    return om_rewriter_drop(ctx, rw, id, "left out: its operand is there in this order");
  }
  for (uint32_t i = 0; i < RANK; ++i) {
    if (perm->ints[i] < 0 || perm->ints[i] >= RANK) return OM_OK;
    axes[i] = place_in_last[perm->ints[i]];
  }
  const om_attr attr = {.name = "perm", .kind = OM_ATTR_INTS, .count = RANK, .ints = axes};
  int64_t *kept = OM_POOL_NEW(ctx, &rw->graph->pool, int64_t, RANK);
  if (!kept) return OM_E_OUT_OF_MEMORY;
  memcpy(kept, axes, sizeof axes);
  om_attr own = attr;
  own.ints = kept;
  return om_rewriter_become(ctx,
                            rw,
                            id,
                            &(om_rewritten_node){.type = type,
                                                 .opset = 13,
                                                 .inputs = &twin,
                                                 .input_count = 1,
                                                 .attrs = &own,
                                                 .attr_count = 1});
}

/* ---- The walk ---- */

static const struct {
  const char *type;
  om_status (*turn)(om_ctx *ctx, turner *t, om_node_id id, const char *type);
} turns[] = {
    {"Conv", turn_conv},
    {"ConvTranspose", turn_conv},
    {"MaxPool", turn_pool},
    {"AveragePool", turn_pool},
    {"GlobalAveragePool", turn_pool},
    {"Relu", turn_unary},
    {"Clip", turn_unary},
    {"HardSwish", turn_unary},
    {"HardSigmoid", turn_unary},
    {"Sigmoid", turn_unary},
    {"LeakyRelu", turn_unary},
    {"Tanh", turn_unary},
    {"Elu", turn_unary},
    {"Gelu", turn_unary},
    {"Sqrt", turn_unary},
    {"Exp", turn_unary},
    {"Abs", turn_unary},
    {"Neg", turn_unary},
    {"Softplus", turn_unary},
    {"Mish", turn_unary},
    {"Erf", turn_unary},
    {"QuantizeLinear", turn_quantize},
    {"DequantizeLinear", turn_quantize},
    {"Add", turn_binary},
    {"Sub", turn_binary},
    {"Mul", turn_binary},
    {"Div", turn_binary},
    {"Concat", turn_concat},
    {"Resize", turn_resize},
    {"Pad", turn_pad},
    {"Transpose", turn_transpose},
};

static om_status turn_node(om_ctx *ctx, turner *t, om_node_id id) {
  const om_node *node = &t->rw->graph->nodes[id];
  if (!node->type || node->domain[0] != '\0') return OM_OK;
  for (size_t i = 0; i < OM_COUNT_OF(turns); ++i) {
    if (strcmp(node->type, turns[i].type) != 0) continue;
    return turns[i].turn(ctx, t, id, turns[i].type);
  }
  return OM_OK;
}

static om_status move_reads(om_ctx *ctx, turner *t) {
  om_status st = OM_OK;
  const size_t count = t->rw->graph->value_count;
  om_value_id *to = NULL; /* scratch: twins are values too */
  OM_GO_NEW(to, count);
  for (om_value_id i = 0; i < count; ++i) to[i] = i < t->value_count ? t->moved[i] : i;
  OM_GO(om_rewriter_move_reads(ctx, t->rw, to));
done:
  om_delete(ctx, to);
  return st;
}

/* Makes the values themselves where somebody still reads them. */
static om_status give_back(om_ctx *ctx, turner *t) {
  om_status st = OM_OK;
  om_graph *graph = t->rw->graph;
  uint32_t *uses = NULL; /* scratch */
  OM_GO_NEW(uses, graph->value_count);
  om_graph_count_uses(graph, uses);
  for (om_value_id value = 0; value < t->value_count; ++value) {
    if (!t->is_made_by_twin[value] || uses[value] == 0) continue;
    OM_GO(add_transpose(ctx, t, t->last[value], value, to_first));
  }
done:
  om_delete(ctx, uses);
  return st;
}

/* A build may leave families out. */
static bool has_operators(void) {
  return om_op_find("onemodel", "Conv", 1, NULL) && om_op_find("onemodel", "MaxPool", 1, NULL) &&
         om_op_find("", "Conv", 22, NULL) && om_op_find("", "MaxPool", 22, NULL) &&
         om_op_find("", "Transpose", 13, NULL) && om_op_find("", "Gather", 13, NULL);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  turner t = {.rw = rw, .value_count = rw->graph->value_count};
  const size_t node_count = rw->graph->node_count;
  if (!rw->has_fast_kernels || !has_operators()) return OM_OK;
  OM_GO(om_value_facts_create(ctx, rw, &t.facts));
  OM_GO_NEW(t.last, t.value_count);
  OM_GO_NEW(t.is_made_by_twin, t.value_count);
  for (om_value_id i = 0; i < t.value_count; ++i) t.last[i] = OM_NO_VALUE;
  OM_GO_NEW(t.moved, t.value_count);
  for (om_value_id i = 0; i < t.value_count; ++i) t.moved[i] = i;
  for (om_node_id id = 0; id < node_count; ++id) OM_GO(turn_node(ctx, &t, id));
  OM_GO(move_reads(ctx, &t));
  OM_GO(give_back(ctx, &t));
done:
  om_delete(ctx, t.facts);
  om_delete(ctx, t.last);
  om_delete(ctx, t.moved);
  om_delete(ctx, t.is_made_by_twin);
  return st;
}

const om_rewrite om_rewrite_channels_last = {
    .name = "channels_last",
    .in_fast = true,
    .in_exact = false,
    .asker = OM_REWRITE_FOR_CPU,
    .apply = apply,
};
