/* One walk over the nodes, which stand in order: what a node's operands are known to be decides
 * what its first result is. */
#include "rewrite/om_rewrite_facts.h"

static const om_value_fact unknown = {OM_DTYPE_NONE, OM_RANK_UNKNOWN};

static bool is_one_of(const om_node *node, const char *const *types, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(node->type, types[i]) == 0) return true;
  }
  return false;
}

static om_value_fact input_fact(const om_value_fact *facts, const om_node *node, uint32_t input) {
  if (input >= node->input_count || node->inputs[input] == OM_NO_VALUE) return unknown;
  return facts[node->inputs[input]];
}

/* The largest rank of the inputs; the type of any of them, since all have the same. */
static om_value_fact broadcast(const om_value_fact *facts, const om_node *node) {
  om_value_fact fact = {OM_DTYPE_NONE, 0};
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const om_value_fact input = input_fact(facts, node, i);
    if (fact.dtype == OM_DTYPE_NONE) fact.dtype = input.dtype;
    if (input.rank == OM_RANK_UNKNOWN || input.rank > fact.rank) fact.rank = input.rank;
  }
  return fact;
}

static om_value_fact transposed(const om_value_fact *facts, const om_node *node) {
  const om_attr *perm = om_node_attr(node, "perm");
  om_value_fact fact = input_fact(facts, node, 0);
  if (perm && perm->kind == OM_ATTR_INTS && perm->count > 0) fact.rank = (uint32_t)perm->count;
  return fact;
}

/* The axes that an Unsqueeze, a Squeeze or a reduction names; 0: not known. */
static uint32_t axis_count(const om_rewriter *rw, const om_node *node) {
  const om_attr *attr = om_node_attr(node, "axes");
  size_t count = attr && attr->kind == OM_ATTR_INTS ? attr->count : 0;
  if (node->input_count > 1) {
    const om_tensor *list = om_rewriter_constant(rw, node->inputs[1]);
    count = list ? om_tensor_elems(list) : 0;
  }
  return count <= OM_MAX_RANK ? (uint32_t)count : 0;
}

static om_value_fact unsqueezed(const om_rewriter *rw,
                                const om_value_fact *facts,
                                const om_node *node) {
  const uint32_t count = axis_count(rw, node);
  om_value_fact fact = input_fact(facts, node, 0);
  if (count == 0) fact.rank = OM_RANK_UNKNOWN;
  if (fact.rank != OM_RANK_UNKNOWN) fact.rank += count;
  return fact;
}

/* One that names no axes drops those of one element, which shapes alone tell. */
static om_value_fact squeezed(const om_rewriter *rw,
                              const om_value_fact *facts,
                              const om_node *node) {
  const uint32_t count = axis_count(rw, node);
  om_value_fact fact = input_fact(facts, node, 0);
  if (count == 0 || fact.rank < count) fact.rank = OM_RANK_UNKNOWN;
  if (fact.rank != OM_RANK_UNKNOWN) fact.rank -= count;
  return fact;
}

/* The reduced axes stay, unless keepdims is 0. */
static om_value_fact reduced(const om_rewriter *rw,
                             const om_value_fact *facts,
                             const om_node *node) {
  const om_attr *keeps = om_node_attr(node, "keepdims");
  return keeps && keeps->i != 1 ? squeezed(rw, facts, node) : input_fact(facts, node, 0);
}

/* To the shape of a list, or to what is larger of both. */
static om_value_fact expanded(const om_rewriter *rw,
                              const om_value_fact *facts,
                              const om_node *node) {
  om_value_fact fact = input_fact(facts, node, 0);
  const om_node_id shape = om_rewriter_maker(rw, node->inputs[1], "Shape");
  uint32_t rank = om_value_list_count(rw, facts, node->inputs[1]);
  if (shape != OM_NO_NODE && rw->graph->nodes[shape].attr_count == 0) {
    rank = input_fact(facts, &rw->graph->nodes[shape], 0).rank;
  }
  if (rank == OM_RANK_UNKNOWN || rank > fact.rank) fact.rank = rank;
  return fact;
}

/* A power has the type of its base; the exponent's may be another. */
static om_value_fact raised(const om_value_fact *facts, const om_node *node) {
  return (om_value_fact){input_fact(facts, node, 0).dtype, broadcast(facts, node).rank};
}

/* The attention's own permutation tells, where it has one. */
static om_value_fact attended(const om_value_fact *facts, const om_node *node) {
  const om_attr *perm = om_node_attr(node, "y_perm");
  const bool has_perm = perm && perm->kind == OM_ATTR_INTS && perm->count > 0;
  return (om_value_fact){input_fact(facts, node, 0).dtype,
                         has_perm ? (uint32_t)perm->count : OM_RANK_UNKNOWN};
}

static om_value_fact multiplied(const om_value_fact *facts, const om_node *node) {
  om_value_fact fact = broadcast(facts, node);
  for (uint32_t i = 0; i < 2; ++i) {
    if (input_fact(facts, node, i).rank < 2) fact.rank = OM_RANK_UNKNOWN;
  }
  return fact;
}

static om_value_fact gathered(const om_value_fact *facts, const om_node *node) {
  const om_value_fact data = input_fact(facts, node, 0);
  const uint32_t rank = input_fact(facts, node, 1).rank;
  om_value_fact fact = {data.dtype, OM_RANK_UNKNOWN};
  if (data.rank != OM_RANK_UNKNOWN && data.rank > 0 && rank != OM_RANK_UNKNOWN) {
    fact.rank = data.rank - 1 + rank;
  }
  return fact;
}

static om_value_fact cast(const om_value_fact *facts, const om_node *node) {
  const om_attr *to = om_node_attr(node, "to");
  om_value_fact fact = {OM_DTYPE_NONE, input_fact(facts, node, 0).rank};
  if (to && to->kind == OM_ATTR_INT && to->i > 0 && to->i < OM_DTYPE_COUNT) {
    fact.dtype = (om_dtype)to->i;
  }
  return fact;
}

/* Where: the types of its values, the largest rank. */
static om_value_fact chosen(const om_value_fact *facts, const om_node *node) {
  om_value_fact fact = broadcast(facts, node);
  fact.dtype = input_fact(facts, node, 1).dtype;
  if (fact.dtype == OM_DTYPE_NONE) fact.dtype = input_fact(facts, node, 2).dtype;
  return fact;
}

static om_value_fact compared(const om_value_fact *facts, const om_node *node) {
  return (om_value_fact){OM_DTYPE_BOOL, broadcast(facts, node).rank};
}

/* As many axes as its list has elements; floats where it names no other value. */
static om_value_fact filled(const om_rewriter *rw,
                            const om_value_fact *facts,
                            const om_node *node) {
  const om_attr *value = om_node_attr(node, "value");
  const bool has_value = value && value->kind == OM_ATTR_TENSOR;
  return (om_value_fact){has_value ? value->tensor->dtype : OM_DTYPE_F32,
                         om_value_list_count(rw, facts, node->inputs[0])};
}

static om_value_fact concatenated(const om_value_fact *facts, const om_node *node) {
  om_value_fact fact = unknown;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const om_value_fact input = input_fact(facts, node, i);
    if (fact.dtype == OM_DTYPE_NONE) fact.dtype = input.dtype;
    if (fact.rank == OM_RANK_UNKNOWN) fact.rank = input.rank;
  }
  return fact;
}

/* Quantized tensors: the type is the zero point's, or an attribute's; the rank that of what is
 * quantized. */
static bool quantized(const om_value_fact *facts, const om_node *node, om_value_fact *out) {
  static const struct {
    const char *type;
    uint32_t typed_by, ranked_by; /* inputs */
  } forms[] = {
      {"DequantizeLinear", 1, 0},
      {"QLinearAdd", 0, 0},
      {"QLinearConcat", 2, 2},
      {"QLinearConv", 7, 0},
      {"QLinearGlobalAveragePool", 0, 0},
      {"QLinearLeakyRelu", 0, 0},
      {"QLinearMul", 0, 0},
      {"QLinearSigmoid", 0, 0},
      {"QuantizeLinear", 2, 0},
  };
  for (size_t i = 0; i < OM_COUNT_OF(forms); ++i) {
    if (strcmp(forms[i].type, node->type) != 0) continue;
    *out = (om_value_fact){input_fact(facts, node, forms[i].typed_by).dtype,
                           input_fact(facts, node, forms[i].ranked_by).rank};
    const om_attr *dtype = om_node_attr(node, "output_dtype");
    if (dtype && dtype->kind == OM_ATTR_INT && dtype->i > 0 && dtype->i < OM_DTYPE_COUNT) {
      out->dtype = (om_dtype)dtype->i;
    }
    const bool is_of_two =
        strcmp(node->type, "QLinearAdd") == 0 || strcmp(node->type, "QLinearMul") == 0;
    const uint32_t other = is_of_two ? input_fact(facts, node, 3).rank : 0;
    if (other == OM_RANK_UNKNOWN || other > out->rank) out->rank = other;
    return true;
  }
  return false;
}

static om_value_fact result_fact(const om_rewriter *rw,
                                 const om_value_fact *facts,
                                 const om_node *node) {
  static const char *const alike[] = {
      "Add", "Sub", "Mul", "Div", "Max", "Mean", "Min", "PRelu", "Sum"};
  static const char *const same[] = {"Abs",
                                     "AveragePool",
                                     "BatchNormalization",
                                     "Clip",
                                     "Conv",
                                     "ConvTranspose",
                                     "CumSum",
                                     "Dropout",
                                     "Erf",
                                     "Exp",
                                     "Gelu",
                                     "GlobalAveragePool",
                                     "HardSigmoid",
                                     "HardSwish",
                                     "Identity",
                                     "LayerNormalization",
                                     "LeakyRelu",
                                     "MaxPool",
                                     "Neg",
                                     "Pad",
                                     "Reciprocal",
                                     "Relu",
                                     "Resize",
                                     "Sigmoid",
                                     "Slice",
                                     "Softmax",
                                     "Split",
                                     "Sqrt",
                                     "Tanh",
                                     "Tile",
                                     "Trilu"};
  static const char *const comparing[] = {
      "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not"};
  om_value_fact fact;
  if (strcmp(node->domain, "onemodel") == 0) {
    return attended(facts, node);
  }
  if (quantized(facts, node, &fact)) return fact;
  if (node->domain[0] != '\0') return unknown; /* other operators of the same names */
  if (is_one_of(node, alike, OM_COUNT_OF(alike))) {
    return node->opset >= 7 ? broadcast(facts, node) : unknown;
  }
  if (strcmp(node->type, "Pow") == 0) return node->opset >= 7 ? raised(facts, node) : unknown;
  if (is_one_of(node, same, OM_COUNT_OF(same))) return input_fact(facts, node, 0);
  if (is_one_of(node, comparing, OM_COUNT_OF(comparing))) return compared(facts, node);
  if (strncmp(node->type, "Reduce", 6) == 0) return reduced(rw, facts, node);
  if (strcmp(node->type, "Gemm") == 0) {
    return (om_value_fact){input_fact(facts, node, 0).dtype, 2};
  }
  if (strcmp(node->type, "Where") == 0) return chosen(facts, node);
  if (strcmp(node->type, "Concat") == 0) return concatenated(facts, node);
  if (strcmp(node->type, "CastLike") == 0 || strcmp(node->type, "RMSNormalization") == 0) {
    return (om_value_fact){input_fact(facts, node, 1).dtype, input_fact(facts, node, 0).rank};
  }
  if (strcmp(node->type, "MatMul") == 0) return multiplied(facts, node);
  if (strcmp(node->type, "Transpose") == 0) return transposed(facts, node);
  if (strcmp(node->type, "Unsqueeze") == 0) return unsqueezed(rw, facts, node);
  if (strcmp(node->type, "Squeeze") == 0) return squeezed(rw, facts, node);
  if (strcmp(node->type, "Expand") == 0) return expanded(rw, facts, node);
  if (strcmp(node->type, "Gather") == 0) return gathered(facts, node);
  if (strcmp(node->type, "Cast") == 0) return cast(facts, node);
  if (strcmp(node->type, "ConstantOfShape") == 0) return filled(rw, facts, node);
  if (strcmp(node->type, "Range") == 0) {
    return (om_value_fact){input_fact(facts, node, 0).dtype, 1};
  }
  if (strcmp(node->type, "Shape") == 0) return (om_value_fact){OM_DTYPE_I64, 1};
  if (strcmp(node->type, "Reshape") == 0 && node->input_count == 2) {
    return (om_value_fact){input_fact(facts, node, 0).dtype,
                           om_value_list_count(rw, facts, node->inputs[1])};
  }
  return unknown;
}

/* ---- How long lists of extents are ---- */

enum { MOST_LIST_NODES = 64 }; /* that the question goes back to, counted in `left` */

static uint32_t list_count(const om_rewriter *rw,
                           const om_value_fact *facts,
                           om_value_id value,
                           uint32_t *left);

/* A bound of a part of `count` elements, counted from 0. */
static int64_t clamp_bound(int64_t bound, uint32_t count) {
  if (bound < 0) bound += count;
  if (bound < 0) return 0;
  return bound > (int64_t)count ? (int64_t)count : bound;
}

static uint32_t part_count(uint32_t count, int64_t start, int64_t end) {
  if (count == OM_RANK_UNKNOWN) return count;
  start = clamp_bound(start, count);
  end = clamp_bound(end, count);
  return end > start ? (uint32_t)(end - start) : 0;
}

static bool single_int(const om_rewriter *rw, om_value_id value, int64_t *out) {
  const om_tensor *tensor = value == OM_NO_VALUE ? NULL : om_rewriter_constant(rw, value);
  if (!tensor || tensor->dtype != OM_DTYPE_I64 || om_tensor_elems(tensor) != 1) return false;
  memcpy(out, tensor->data, sizeof *out);
  return true;
}

/* Shape, from `start` to `end` where it says so. */
static uint32_t shape_count(const om_value_fact *facts, const om_node *node) {
  const om_attr *start = om_node_attr(node, "start");
  const om_attr *end = om_node_attr(node, "end");
  const uint32_t rank = input_fact(facts, node, 0).rank;
  const int64_t first = start && start->kind == OM_ATTR_INT ? start->i : 0;
  const int64_t last = end && end->kind == OM_ATTR_INT ? end->i : OM_MAX_RANK;
  if (rank == OM_RANK_UNKNOWN && end && first >= 0 && last >= first && last <= OM_MAX_RANK) {
    return (uint32_t)(last - first); /* exporters ask for axes that are there */
  }
  return part_count(rank, first, last);
}

static uint32_t slice_count(const om_rewriter *rw,
                            const om_value_fact *facts,
                            const om_node *node,
                            uint32_t *left) {
  int64_t start, end, step = 1;
  if (node->input_count < 3 || !single_int(rw, node->inputs[1], &start) ||
      !single_int(rw, node->inputs[2], &end)) {
    return OM_RANK_UNKNOWN;
  }
  if (node->input_count > 4 && !single_int(rw, node->inputs[4], &step)) return OM_RANK_UNKNOWN;
  if (step != 1) return OM_RANK_UNKNOWN;
  return part_count(list_count(rw, facts, node->inputs[0], left), start, end);
}

/* A Reshape to one axis: of so many elements, or of all that there are. */
static uint32_t flat_count(const om_rewriter *rw,
                           const om_value_fact *facts,
                           const om_node *node,
                           uint32_t *left) {
  int64_t extent;
  if (node->input_count != 2 || !single_int(rw, node->inputs[1], &extent)) return OM_RANK_UNKNOWN;
  if (extent > 0 && extent <= OM_MAX_RANK) return (uint32_t)extent;
  if (extent != -1) return OM_RANK_UNKNOWN;
  if (input_fact(facts, node, 0).rank == 0) return 1;
  return list_count(rw, facts, node->inputs[0], left);
}

static uint32_t joined_count(const om_rewriter *rw,
                             const om_value_fact *facts,
                             const om_node *node,
                             uint32_t *left) {
  size_t count = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const uint32_t part = list_count(rw, facts, node->inputs[i], left);
    if (part == OM_RANK_UNKNOWN) return OM_RANK_UNKNOWN;
    count += part;
  }
  return count <= OM_MAX_RANK ? (uint32_t)count : OM_RANK_UNKNOWN;
}

static uint32_t list_count(const om_rewriter *rw,
                           const om_value_fact *facts,
                           om_value_id value,
                           uint32_t *left) {
  if (value == OM_NO_VALUE) return OM_RANK_UNKNOWN; /* a Concat's: only its shape rule refuses it */
  const om_tensor *constant = om_rewriter_constant(rw, value);
  const om_value *known = &rw->graph->values[value];
  if (constant) return constant->rank == 1 ? (uint32_t)om_tensor_elems(constant) : OM_RANK_UNKNOWN;
  if (known->has_rank && known->rank == 1 && known->dims[0] > 0 && known->dims[0] <= OM_MAX_RANK) {
    return (uint32_t)known->dims[0];
  }
  if (*left == 0 || known->producer == OM_NO_NODE) return OM_RANK_UNKNOWN;
  const om_node *node = &rw->graph->nodes[known->producer];
  if (!node->type || node->domain[0] != '\0' || node->outputs[0] != value) return OM_RANK_UNKNOWN;
  --*left;
  if (strcmp(node->type, "Shape") == 0) return shape_count(facts, node);
  if (strcmp(node->type, "Concat") == 0) return joined_count(rw, facts, node, left);
  if (strcmp(node->type, "Slice") == 0) return slice_count(rw, facts, node, left);
  if (strcmp(node->type, "Reshape") == 0) return flat_count(rw, facts, node, left);
  if (strcmp(node->type, "Unsqueeze") == 0) {
    return input_fact(facts, node, 0).rank == 0 ? 1 : OM_RANK_UNKNOWN;
  }
  if (strcmp(node->type, "Where") == 0) {
    const uint32_t count = list_count(rw, facts, node->inputs[2], left);
    return count == 1 ? OM_RANK_UNKNOWN : count; /* one element would be repeated */
  }
  if (strcmp(node->type, "Cast") == 0 || strcmp(node->type, "Abs") == 0) {
    return list_count(rw, facts, node->inputs[0], left);
  }
  return OM_RANK_UNKNOWN;
}

uint32_t om_value_list_count(const om_rewriter *rw, const om_value_fact *facts, om_value_id value) {
  uint32_t left = MOST_LIST_NODES;
  return list_count(rw, facts, value, &left);
}

static void learn(om_value_fact *known, om_value_fact fact) {
  if (known->dtype == OM_DTYPE_NONE) known->dtype = fact.dtype;
  if (known->rank == OM_RANK_UNKNOWN) known->rank = fact.rank;
}

om_status om_value_facts_create(om_ctx *ctx, const om_rewriter *rw, om_value_fact **out_facts) {
  om_status st = OM_OK;
  const om_graph *graph = rw->graph;
  om_value_fact *facts = NULL;
  *out_facts = NULL;
  OM_GO_NEW(facts, graph->value_count);
  for (size_t i = 0; i < graph->value_count; ++i) {
    const om_value *value = &graph->values[i];
    facts[i] = (om_value_fact){value->dtype, value->has_rank ? value->rank : OM_RANK_UNKNOWN};
    if (value->constant) facts[i] = (om_value_fact){value->constant->dtype, value->constant->rank};
  }
  for (size_t i = 0; i < graph->node_count; ++i) {
    const om_node *node = &graph->nodes[i];
    if (!node->type) continue;
    if (node->output_count == 0 || node->outputs[0] == OM_NO_VALUE) continue;
    learn(&facts[node->outputs[0]], result_fact(rw, facts, node));
    for (uint32_t k = 1; k < node->output_count && strcmp(node->type, "Split") == 0; ++k) {
      if (node->outputs[k] != OM_NO_VALUE) learn(&facts[node->outputs[k]], facts[node->inputs[0]]);
    }
  }
  *out_facts = facts;
done:
  return st;
}

/* ---- Scalars that follow from shapes ---- */

static bool is_single(const om_tensor *tensor) {
  return tensor && om_tensor_elems(tensor) == 1 && tensor->rank <= 1;
}

/* The last element of a shape: Slice(Shape(x), [-1], [large]). */
static bool is_last_extent(const om_rewriter *rw, const om_node *slice) {
  int64_t start = 0, end = 0;
  return slice->input_count >= 3 && om_rewriter_made_by(rw, slice->inputs[0], "Shape") &&
         single_int(rw, slice->inputs[1], &start) && single_int(rw, slice->inputs[2], &end) &&
         start == -1 && end >= OM_MAX_RANK;
}

static bool is_filled_scalar(const om_rewriter *rw, const om_node *filled) {
  const om_tensor *shape = om_rewriter_constant(rw, filled->inputs[0]);
  return shape && shape->rank == 1 && om_tensor_elems(shape) == 0;
}

static bool is_scalar(const om_rewriter *rw, om_value_id value, uint32_t steps) {
  static const char *const made[] = {
      "Add", "Cast", "Div", "Mul", "Pow", "Reciprocal", "Sqrt", "Squeeze"};
  const om_tensor *constant = om_rewriter_constant(rw, value);
  const om_node_id id = rw->graph->values[value].producer;
  if (constant) return is_single(constant);
  if (id == OM_NO_NODE || steps == 0) return false;
  const om_node *node = &rw->graph->nodes[id];
  if (!node->type || node->domain[0] != '\0' || node->outputs[0] != value) return false;
  if (strcmp(node->type, "Slice") == 0) return is_last_extent(rw, node);
  if (strcmp(node->type, "Gather") == 0) {
    return om_rewriter_made_by(rw, node->inputs[0], "Shape") &&
           is_single(om_rewriter_constant(rw, node->inputs[1]));
  }
  if (strcmp(node->type, "ConstantOfShape") == 0) return is_filled_scalar(rw, node);
  if (strcmp(node->type, "CastLike") == 0) return is_scalar(rw, node->inputs[0], steps - 1);
  if (!is_one_of(node, made, OM_COUNT_OF(made))) return false;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == OM_NO_VALUE) continue; /* a Squeeze's axes */
    if (!is_scalar(rw, node->inputs[i], steps - 1)) return false;
  }
  return true;
}

bool om_value_is_scalar(const om_rewriter *rw, om_value_id value) {
  enum { MOST_STEPS = 8 }; /* that the question goes back */
  return is_scalar(rw, value, MOST_STEPS);
}
