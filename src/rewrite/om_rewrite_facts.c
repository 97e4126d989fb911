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

static om_value_fact unsqueezed(const om_rewriter *rw,
                                const om_value_fact *facts,
                                const om_node *node) {
  const om_attr *attr = om_node_attr(node, "axes");
  om_value_fact fact = input_fact(facts, node, 0);
  size_t count = attr && attr->kind == OM_ATTR_INTS ? attr->count : 0;
  if (node->input_count > 1) {
    const om_tensor *list = om_rewriter_constant(rw, node->inputs[1]);
    count = list ? om_tensor_elems(list) : 0;
  }
  if (count == 0 || count > OM_MAX_RANK) fact.rank = OM_RANK_UNKNOWN;
  if (fact.rank != OM_RANK_UNKNOWN) fact.rank += (uint32_t)count;
  return fact;
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

/* The reduced axes stay, unless keepdims is 0. */
static om_value_fact reduced(const om_value_fact *facts, const om_node *node) {
  const om_attr *keeps = om_node_attr(node, "keepdims");
  om_value_fact fact = input_fact(facts, node, 0);
  if (keeps && keeps->i != 1) fact.rank = OM_RANK_UNKNOWN;
  return fact;
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

/* Quantized tensors: the type is the zero point's, the rank that of what is quantized. */
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
      "Add", "Sub", "Mul", "Div", "Max", "Mean", "Min", "Pow", "PRelu", "Sum"};
  static const char *const same[] = {"Abs",
                                     "AveragePool",
                                     "BatchNormalization",
                                     "Clip",
                                     "Conv",
                                     "ConvTranspose",
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
                                     "RMSNormalization",
                                     "Reciprocal",
                                     "Relu",
                                     "Resize",
                                     "Sigmoid",
                                     "Slice",
                                     "Softmax",
                                     "Sqrt",
                                     "Tanh",
                                     "Trilu"};
  static const char *const comparing[] = {
      "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not"};
  om_value_fact fact;
  if (strcmp(node->domain, "onemodel") == 0) {
    return (om_value_fact){input_fact(facts, node, 0).dtype, OM_RANK_UNKNOWN};
  }
  if (quantized(facts, node, &fact)) return fact;
  if (node->domain[0] != '\0') return unknown; /* other operators of the same names */
  if (is_one_of(node, alike, OM_COUNT_OF(alike))) {
    return node->opset >= 7 ? broadcast(facts, node) : unknown;
  }
  if (is_one_of(node, same, OM_COUNT_OF(same))) return input_fact(facts, node, 0);
  if (is_one_of(node, comparing, OM_COUNT_OF(comparing))) return compared(facts, node);
  if (strncmp(node->type, "Reduce", 6) == 0) return reduced(facts, node);
  if (strcmp(node->type, "Gemm") == 0) {
    return (om_value_fact){input_fact(facts, node, 0).dtype, 2};
  }
  if (strcmp(node->type, "Where") == 0) return chosen(facts, node);
  if (strcmp(node->type, "Concat") == 0) return concatenated(facts, node);
  if (strcmp(node->type, "CastLike") == 0) {
    return (om_value_fact){input_fact(facts, node, 1).dtype, input_fact(facts, node, 0).rank};
  }
  if (strcmp(node->type, "MatMul") == 0) return multiplied(facts, node);
  if (strcmp(node->type, "Transpose") == 0) return transposed(facts, node);
  if (strcmp(node->type, "Unsqueeze") == 0) return unsqueezed(rw, facts, node);
  if (strcmp(node->type, "Gather") == 0) return gathered(facts, node);
  if (strcmp(node->type, "Cast") == 0) return cast(facts, node);
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

/* Elements of Shape with both ends given from the front; 0: not known. */
static uint32_t shape_part(const om_rewriter *rw, om_value_id value) {
  const om_node_id id = om_rewriter_maker(rw, value, "Shape");
  const om_node *node = id == OM_NO_NODE ? NULL : &rw->graph->nodes[id];
  const om_attr *start = node ? om_node_attr(node, "start") : NULL;
  const om_attr *end = node ? om_node_attr(node, "end") : NULL;
  if (!start || !end || start->kind != OM_ATTR_INT || end->kind != OM_ATTR_INT) return 0;
  if (start->i < 0 || end->i < start->i || end->i > OM_MAX_RANK) return 0;
  return (uint32_t)(end->i - start->i);
}

/* Elements that an input of a Concat adds; OM_RANK_UNKNOWN where nothing tells. */
static uint32_t part_count(const om_rewriter *rw, const om_value_fact *facts, om_value_id value) {
  const om_tensor *part = om_rewriter_constant(rw, value);
  const om_node_id unsqueeze = om_rewriter_maker(rw, value, "Unsqueeze");
  const uint32_t extents = shape_part(rw, value);
  if (part) return (uint32_t)om_tensor_elems(part);
  if (extents > 0) return extents;
  if (unsqueeze == OM_NO_NODE) return OM_RANK_UNKNOWN;
  return input_fact(facts, &rw->graph->nodes[unsqueeze], 0).rank == 0 ? 1 : OM_RANK_UNKNOWN;
}

uint32_t om_value_list_count(const om_rewriter *rw, const om_value_fact *facts, om_value_id value) {
  const om_tensor *constant = om_rewriter_constant(rw, value);
  const om_node_id concat = om_rewriter_maker(rw, value, "Concat");
  size_t count = 0;
  if (constant) return constant->rank == 1 ? (uint32_t)om_tensor_elems(constant) : OM_RANK_UNKNOWN;
  if (concat == OM_NO_NODE) return OM_RANK_UNKNOWN;
  const om_node *node = &rw->graph->nodes[concat];
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const uint32_t part = part_count(rw, facts, node->inputs[i]);
    if (part == OM_RANK_UNKNOWN) return OM_RANK_UNKNOWN;
    count += part;
  }
  return count <= OM_MAX_RANK ? (uint32_t)count : OM_RANK_UNKNOWN;
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
    const om_value_fact fact = result_fact(rw, facts, node);
    om_value_fact *known = &facts[node->outputs[0]];
    if (known->dtype == OM_DTYPE_NONE) known->dtype = fact.dtype;
    if (known->rank == OM_RANK_UNKNOWN) known->rank = fact.rank;
  }
  *out_facts = facts;
done:
  return st;
}
