/* Operators are of few kinds: those that see one element of each operand at a time, and those that
 * name axes, in an attribute or in a constant input. */
#include "rewrite/om_turn.h"

#include <stddef.h>

#include "cpu/exact/om_strided.h"
#include "ops/op_layout.h"

/* ---- Permutations ---- */

bool om_axes_of(const om_value_fact *facts, const om_node *node, om_axes *out_axes) {
  if (!node->type || strcmp(node->type, "Transpose") != 0 || node->domain[0] != '\0') return false;
  if (!node->params || node->input_count != 1) return false;
  const om_transpose_params *params = node->params;
  const uint32_t known = facts[node->inputs[0]].rank;
  const uint32_t rank = params->perm.is_given ? (uint32_t)params->perm.count : known;
  uint32_t seen = 0;
  if (rank == 0 || rank > OM_MAX_RANK) return false;
  if (known != OM_RANK_UNKNOWN && known != rank) return false; /* the plan says what is wrong */
  *out_axes = (om_axes){.rank = rank};
  for (uint32_t a = 0; a < rank; ++a) {
    const int64_t from = params->perm.is_given ? params->perm.values[a] : (int64_t)(rank - 1 - a);
    if (from < 0 || from >= (int64_t)rank || (seen >> from & 1) != 0) return false;
    seen |= 1u << from;
    out_axes->perm[a] = (uint32_t)from;
  }
  return true;
}

om_axes om_axes_inverse(const om_axes *axes) {
  om_axes inverse = {.rank = axes->rank};
  for (uint32_t a = 0; a < axes->rank; ++a) inverse.perm[axes->perm[a]] = a;
  return inverse;
}

/* ---- Kinds ---- */

typedef enum turn_kind {
  KIND_NONE,
  KIND_EACH,      /* elements of all inputs, broadcast */
  KIND_FIRST,     /* elements of input 0 */
  KIND_AXIS_EACH, /* an axis of all inputs */
  KIND_AXIS,      /* an axis of input 0 */
  KIND_PAD,
  KIND_REDUCE,
  KIND_SLICE,
} turn_kind;

static const struct {
  const char *type;
  int32_t first_opset;
  turn_kind kind;
} kinds[] = {
#define OM_UNARY(number, type, name, opset, scalar_count, expression) {#type, opset, KIND_FIRST},
#define OM_BINARY(number, type, name, opset, expression) \
  {#type, (opset) > 7 ? (opset) : 7, KIND_EACH},
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY
    {"Cast", 1, KIND_FIRST},
    {"Dropout", 7, KIND_FIRST},
    {"Identity", 1, KIND_FIRST},
    {"Not", 1, KIND_FIRST},
    {"And", 7, KIND_EACH},
    {"Equal", 7, KIND_EACH},
    {"Greater", 7, KIND_EACH},
    {"GreaterOrEqual", 12, KIND_EACH},
    {"Less", 7, KIND_EACH},
    {"LessOrEqual", 12, KIND_EACH},
    {"Mean", 8, KIND_EACH},
    {"Or", 7, KIND_EACH},
    {"Sum", 8, KIND_EACH},
    {"Where", 9, KIND_EACH},
    {"Xor", 7, KIND_EACH},
    {"Concat", 4, KIND_AXIS_EACH},
    {"DequantizeLinear", 10, KIND_AXIS},
    {"LogSoftmax", 13, KIND_AXIS},
    {"QuantizeLinear", 10, KIND_AXIS},
    {"Softmax", 13, KIND_AXIS},
    {"Split", 2, KIND_AXIS},
    {"Pad", 2, KIND_PAD},
    {"ReduceL1", 1, KIND_REDUCE},
    {"ReduceL2", 1, KIND_REDUCE},
    {"ReduceLogSum", 1, KIND_REDUCE},
    {"ReduceLogSumExp", 1, KIND_REDUCE},
    {"ReduceMax", 1, KIND_REDUCE},
    {"ReduceMean", 1, KIND_REDUCE},
    {"ReduceMin", 1, KIND_REDUCE},
    {"ReduceProd", 1, KIND_REDUCE},
    {"ReduceSum", 1, KIND_REDUCE},
    {"ReduceSumSquare", 1, KIND_REDUCE},
    {"Slice", 10, KIND_SLICE},
};

static turn_kind kind_of(const om_node *node) {
  if (!node->type || node->domain[0] != '\0') return KIND_NONE;
  for (size_t i = 0; i < OM_COUNT_OF(kinds); ++i) {
    if (strcmp(node->type, kinds[i].type) != 0) continue;
    return node->opset >= kinds[i].first_opset ? kinds[i].kind : KIND_NONE;
  }
  return KIND_NONE;
}

bool om_turn_reads(const om_node *node, uint32_t input) {
  const turn_kind kind = kind_of(node);
  return input == 0 || kind == KIND_EACH || kind == KIND_AXIS_EACH;
}

/* ---- Axes that a node names ---- */

typedef struct axis_list {
  const char *attr;      /* where they stand; NULL: in an input */
  uint32_t input;        /* else */
  size_t count;          /* of values */
  const int64_t *values; /* lent */
} axis_list;

static bool list_of_attr(const om_node *node, const char *name, axis_list *out) {
  const om_attr *attr = om_node_attr(node, name);
  if (!attr || attr->kind != OM_ATTR_INTS) return false;
  *out = (axis_list){.attr = name, .count = attr->count, .values = attr->ints};
  return true;
}

static bool has_input(const om_node *node, uint32_t input) {
  return input < node->input_count && node->inputs[input] != OM_NO_VALUE;
}

static bool list_of_input(const om_rewriter *rw,
                          const om_node *node,
                          uint32_t input,
                          axis_list *out) {
  if (!has_input(node, input)) return false;
  const om_tensor *tensor = om_rewriter_constant(rw, node->inputs[input]);
  if (!tensor || tensor->dtype != OM_DTYPE_I64 || tensor->rank != 1) return false;
  if ((uintptr_t)tensor->data % _Alignof(int64_t) != 0) return false;
  *out = (axis_list){.input = input, .count = om_tensor_elems(tensor), .values = tensor->data};
  return true;
}

/* The axes of a reduction, a Slice, or a Pad that has them; all within the rank. */
static bool find_axes(const om_rewriter *rw, const om_node *node, uint32_t rank, axis_list *out) {
  const turn_kind kind = kind_of(node);
  const uint32_t input = kind == KIND_REDUCE ? 1 : 3;
  const bool is_found = kind == KIND_REDUCE && list_of_attr(node, "axes", out);
  if (!is_found && !list_of_input(rw, node, input, out)) return false;
  for (size_t i = 0; i < out->count; ++i) {
    if (out->values[i] < -(int64_t)rank || out->values[i] >= (int64_t)rank) return false;
  }
  return out->count > 0 && out->count <= rank;
}

/* A Pad's begins and ends; without `axes` there are two for each axis. */
static bool find_pads(const om_rewriter *rw, const om_node *node, axis_list *out) {
  return node->opset < 11 ? list_of_attr(node, "pads", out) : list_of_input(rw, node, 1, out);
}

static uint32_t axis_at(const axis_list *list, size_t i, uint32_t rank) {
  const int64_t axis = list->values[i];
  return (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
}

static bool is_quantization(const om_node *node) {
  return strcmp(node->type, "QuantizeLinear") == 0 || strcmp(node->type, "DequantizeLinear") == 0;
}

static bool find_axis(const om_node *node, uint32_t rank, uint32_t *out_axis) {
  const om_attr *attr = om_node_attr(node, "axis");
  int64_t axis = strcmp(node->type, "Split") == 0 ? 0 : is_quantization(node) ? 1 : -1;
  if (attr && attr->kind == OM_ATTR_INT) axis = attr->i;
  if (axis < -(int64_t)rank || axis >= (int64_t)rank) return false;
  *out_axis = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
  return true;
}

/* ---- Which ---- */

/* All that it reads turned has the axes, or is a constant that broadcasts to them. */
static bool fits(const om_rewriter *rw,
                 const om_value_fact *facts,
                 const om_node *node,
                 const om_axes *axes) {
  bool has_all = false;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (!om_turn_reads(node, i)) continue;
    if (node->inputs[i] == OM_NO_VALUE) return false;
    const om_tensor *constant = om_rewriter_constant(rw, node->inputs[i]);
    const bool may_be_short = constant && kind_of(node) == KIND_EACH;
    const uint32_t rank = constant ? constant->rank : facts[node->inputs[i]].rank;
    if (rank != axes->rank && !(may_be_short && rank < axes->rank)) return false;
    if (constant && (om_dtype_bits(constant->dtype) == 0 || om_dtype_bits(constant->dtype) % 8)) {
      return false;
    }
    if (!constant) has_all = true;
  }
  return has_all;
}

static bool keep_order(const om_axes *axes, uint32_t mask) {
  uint32_t last = 0;
  bool is_first = true;
  for (uint32_t a = 0; a < axes->rank; ++a) {
    if ((mask >> a & 1) == 0) continue;
    if (!is_first && axes->perm[a] < last) return false;
    last = axes->perm[a];
    is_first = false;
  }
  return true;
}

/* A reduction adds in the order of its axes. */
static om_turn turn_of_reduction(const om_rewriter *rw, const om_node *node, const om_axes *axes) {
  const om_attr *keeps = om_node_attr(node, "keepdims");
  const uint32_t all = (1u << axes->rank) - 1;
  uint32_t mask = 0;
  axis_list list;
  if (!find_axes(rw, node, axes->rank, &list)) return OM_TURN_NEVER;
  for (size_t i = 0; i < list.count; ++i) mask |= 1u << axis_at(&list, i, axes->rank);
  if (!keep_order(axes, mask)) return OM_TURN_NEVER;
  if (!keeps || (keeps->kind == OM_ATTR_INT && keeps->i != 0)) return OM_TURN_THROUGH;
  return keep_order(axes, all & ~mask) ? OM_TURN_ENDS : OM_TURN_NEVER;
}

/* A scale for all, or one for each place of an axis; not for blocks. */
static bool has_list(const om_value_fact *facts, const om_node *node) {
  return facts[node->inputs[1]].rank <= 1; /* OM_RANK_UNKNOWN is large */
}

static bool can_pad(const om_rewriter *rw, const om_node *node, uint32_t rank) {
  axis_list pads, axes;
  if (!find_pads(rw, node, &pads)) return false;
  if (has_input(node, 3)) return find_axes(rw, node, rank, &axes);
  return pads.count == 2 * (size_t)rank;
}

om_turn om_turn_of(const om_rewriter *rw,
                   const om_value_fact *facts,
                   const om_node *node,
                   const om_axes *axes) {
  const turn_kind kind = kind_of(node);
  uint32_t axis;
  axis_list list;
  bool can = false;
  if (kind == KIND_NONE || node->op == NULL || !fits(rw, facts, node, axes)) return OM_TURN_NEVER;
  if (node->output_count != 1 && strcmp(node->type, "Split") != 0) return OM_TURN_NEVER;
  switch (kind) {
    case KIND_NONE:
      break;
    case KIND_EACH:
    case KIND_FIRST:
      can = true;
      break;
    case KIND_AXIS_EACH:
    case KIND_AXIS:
      can = find_axis(node, axes->rank, &axis) && (!is_quantization(node) || has_list(facts, node));
      break;
    case KIND_PAD:
      can = can_pad(rw, node, axes->rank);
      break;
    case KIND_REDUCE:
      return turn_of_reduction(rw, node, axes);
    case KIND_SLICE:
      can = find_axes(rw, node, axes->rank, &list);
      break;
  }
  return can ? OM_TURN_THROUGH : OM_TURN_NEVER;
}

/* ---- Turning ---- */

/* Puts the numbers where the list stands: attrs and inputs are copies. */
static om_status replace_list(om_ctx *ctx,
                              om_rewriter *rw,
                              const om_node *node,
                              const axis_list *list,
                              const int64_t *values,
                              om_attr *attrs,
                              om_value_id *inputs) {
  const int64_t dims[] = {(int64_t)list->count};
  const om_tensor like = om_tensor_of(OM_DTYPE_I64, 1, dims, NULL);
  int64_t *kept = NULL;
  if (!list->attr) {
    void *data = NULL;
    OM_TRY(om_rewriter_add_constant(ctx, rw, node->name, &like, &data, &inputs[list->input]));
    memcpy(data, values, list->count * sizeof *values);
    return OM_OK;
  }
  kept = OM_POOL_NEW(ctx, &rw->graph->pool, int64_t, list->count);
  if (!kept) return OM_E_OUT_OF_MEMORY;
  memcpy(kept, values, list->count * sizeof *values);
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (strcmp(attrs[i].name, list->attr) == 0) attrs[i].ints = kept;
  }
  return OM_OK;
}

/* The pads of all axes in the turned order, or the named axes' numbers. */
static om_status turn_lists(om_ctx *ctx,
                            om_rewriter *rw,
                            const om_node *node,
                            const om_axes *axes,
                            om_attr *attrs,
                            om_value_id *inputs) {
  int64_t values[2 * OM_MAX_RANK] = {0};
  axis_list list = {0};
  if (kind_of(node) == KIND_PAD && !has_input(node, 3)) {
    if (!find_pads(rw, node, &list)) return OM_OK;
    for (uint32_t a = 0; a < axes->rank; ++a) {
      values[axes->perm[a]] = list.values[a];
      values[axes->rank + axes->perm[a]] = list.values[axes->rank + a];
    }
  } else {
    if (!find_axes(rw, node, axes->rank, &list)) return OM_OK;
    for (size_t i = 0; i < list.count; ++i) {
      values[i] = axes->perm[axis_at(&list, i, axes->rank)];
    }
  }
  return replace_list(ctx, rw, node, &list, values, attrs, inputs);
}

static void turn_axis(const om_node *node, const om_axes *axes, om_attr *attrs, uint32_t *count) {
  uint32_t axis = 0;
  if (!find_axis(node, axes->rank, &axis)) return;
  uint32_t at = 0;
  while (at < *count && strcmp(attrs[at].name, "axis") != 0) ++at;
  if (at == *count) ++*count;
  attrs[at] = (om_attr){.name = "axis", .kind = OM_ATTR_INT, .i = axes->perm[axis]};
}

om_status om_turn_node(
    om_ctx *ctx, om_rewriter *rw, om_node_id id, const om_axes *axes, const om_value_id *inputs) {
  const om_node node = rw->graph->nodes[id];
  const turn_kind kind = kind_of(&node);
  uint32_t count = node.attr_count;
  om_attr *attrs = OM_POOL_NEW(ctx, &rw->graph->pool, om_attr, (size_t)count + 1);
  om_value_id *reads = OM_POOL_NEW(ctx, &rw->graph->pool, om_value_id, node.input_count);
  if (!attrs || !reads) return OM_E_OUT_OF_MEMORY;
  if (count > 0) memcpy(attrs, node.attrs, count * sizeof *attrs);
  memcpy(reads, inputs, node.input_count * sizeof *reads);
  if (kind == KIND_AXIS || kind == KIND_AXIS_EACH) turn_axis(&node, axes, attrs, &count);
  if (kind == KIND_PAD || kind == KIND_REDUCE || kind == KIND_SLICE) {
    OM_TRY(turn_lists(ctx, rw, &node, axes, attrs, reads));
  }
  const om_rewritten_node turned = {.type = node.type,
                                    .opset = node.opset,
                                    .inputs = reads,
                                    .input_count = node.input_count,
                                    .attrs = attrs,
                                    .attr_count = count};
  return om_rewriter_become(ctx, rw, id, &turned);
}

/* The tensor's data; a copy, which the caller frees, where they do not lie aligned in memory. */
static om_status get_aligned(om_ctx *ctx,
                             const om_tensor *tensor,
                             void **out_copy,
                             const void **out_data) {
  const bool is_stored = om_stored_of(tensor) != NULL;
  *out_data = tensor->data;
  if (!is_stored && (uintptr_t)tensor->data % _Alignof(max_align_t) == 0) return OM_OK;
  OM_TRY(om_constant_ask(ctx, tensor, 0, tensor->data_bytes));
  *out_copy = om_new_bytes(ctx, tensor->data_bytes, 1);
  *out_data = *out_copy;
  if (!*out_copy) return OM_E_OUT_OF_MEMORY;
  return om_constant_read(ctx, tensor, 0, tensor->data_bytes, *out_copy);
}

om_status om_turn_constant(
    om_ctx *ctx, om_rewriter *rw, const om_axes *axes, om_value_id plain, om_value_id *out_turned) {
  om_status st = OM_OK;
  void *aligned = NULL; /* scratch */
  const void *elems = NULL;
  const om_tensor *source = rw->graph->values[plain].constant;
  const uint32_t short_by = axes->rank - source->rank;
  const size_t elem_bytes = om_dtype_bits(source->dtype) / 8;
  int64_t extents[OM_MAX_RANK], strides[OM_MAX_RANK], dims[OM_MAX_RANK];
  void *data = NULL;
  *out_turned = plain;
  if (om_tensor_elems(source) == 1) return OM_OK;
  OM_GO(get_aligned(ctx, source, &aligned, &elems));
  for (uint32_t a = 0; a < axes->rank; ++a) {
    extents[a] = a < short_by ? 1 : source->dims[a - short_by];
    dims[axes->perm[a]] = extents[a];
  }
  om_dense_strides(axes->rank, dims, strides);
  om_tensor like = om_tensor_of(source->dtype, axes->rank, dims, NULL);
  OM_GO(om_rewriter_add_constant(ctx, rw, rw->graph->values[plain].name, &like, &data, out_turned));
  om_strided copy = {.rank = axes->rank};
  om_dense_strides(axes->rank, extents, copy.source_strides);
  for (uint32_t a = 0; a < axes->rank; ++a) {
    copy.extents[a] = extents[a];
    copy.target_strides[a] = strides[axes->perm[a]];
  }
  om_strided_copy(ctx, &copy, elem_bytes, elems, data);
  om_graph_constant_copied(rw->graph, source);
done:
  om_delete(ctx, aligned);
  return st;
}
