/* Nodes of the same operator, attributes and operands compute the same: the first one serves the
 * readers of all. It is the table's last entry, so that patterns meet the graph as its author has
 * written it.
 *
 * Left alone are random operators, those with bodies, and nodes that make an output of the graph.
 */
#include "rewrite/om_rewrite.h"

typedef struct seen {
  om_node_id *slots; /* owned; open addressing */
  size_t mask;       /* slots - 1 */
  om_value_id *to;   /* owned; where a value's readers look now */
} seen;

static size_t mix(size_t hash, const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ at[i]) * (size_t)0x100000001b3u;
  return hash;
}

static size_t hash_of(const seen *s, const om_node *node) {
  size_t hash = mix(0, node->type, strlen(node->type));
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const om_value_id value = node->inputs[i] == OM_NO_VALUE ? OM_NO_VALUE : s->to[node->inputs[i]];
    hash = mix(hash, &value, sizeof value);
  }
  return hash;
}

static bool is_same_tensor(const om_tensor *a, const om_tensor *b) {
  if (a == b) return true;
  if (a->dtype != b->dtype || a->rank != b->rank || a->dtype == OM_DTYPE_STRING ||
      om_dtype_is_nested(a->dtype) || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0) {
    return false;
  }
  size_t bytes = 0;
  return om_shape_bytes(a->dtype, a->rank, a->dims, &bytes) && memcmp(a->data, b->data, bytes) == 0;
}

static bool is_same_attr(const om_attr *a, const om_attr *b) {
  if (a->kind != b->kind || a->count != b->count || strcmp(a->name, b->name) != 0) return false;
  switch (a->kind) {
    case OM_ATTR_FLOAT:
      return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case OM_ATTR_INT:
      return a->i == b->i;
    case OM_ATTR_STRING:
      return om_string_same(a->s, b->s);
    case OM_ATTR_TENSOR:
      return is_same_tensor(a->tensor, b->tensor);
    case OM_ATTR_FLOATS:
      return memcmp(a->floats, b->floats, a->count * sizeof *a->floats) == 0;
    case OM_ATTR_INTS:
      return memcmp(a->ints, b->ints, a->count * sizeof *a->ints) == 0;
    case OM_ATTR_STRINGS:
      for (size_t i = 0; i < a->count; ++i) {
        if (!om_string_same(a->strings[i], b->strings[i])) return false;
      }
      return true;
    default:
      return false;
  }
}

static bool is_same(const seen *s, const om_node *a, const om_node *b) {
  if (a->op != b->op || a->opset != b->opset || a->input_count != b->input_count ||
      a->output_count != b->output_count || a->attr_count != b->attr_count) {
    return false;
  }
  for (uint32_t i = 0; i < a->input_count; ++i) {
    const bool is_absent = a->inputs[i] == OM_NO_VALUE || b->inputs[i] == OM_NO_VALUE;
    if (is_absent ? a->inputs[i] != b->inputs[i] : s->to[a->inputs[i]] != s->to[b->inputs[i]]) {
      return false;
    }
  }
  for (uint32_t i = 0; i < a->output_count; ++i) {
    if (a->outputs[i] == OM_NO_VALUE && b->outputs[i] != OM_NO_VALUE) return false;
  }
  for (uint32_t i = 0; i < a->attr_count; ++i) {
    if (!is_same_attr(&a->attrs[i], &b->attrs[i])) return false;
  }
  return true;
}

static bool can_share(const om_node *node) {
  return node->type && node->op && !node->op->is_random && !node->op->bodies[0] &&
         node->function == 0 && node->output_count > 0;
}

static bool makes_output(const om_graph *graph, const om_node *node) {
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] != OM_NO_VALUE && graph->values[node->outputs[i]].is_output) return true;
  }
  return false;
}

/* The node that computes the same, or OM_NO_NODE: then this one is noted. */
static om_node_id find(const om_graph *graph, seen *s, om_node_id id) {
  const om_node *node = &graph->nodes[id];
  size_t slot = hash_of(s, node) & s->mask;
  for (; s->slots[slot] != OM_NO_NODE; slot = (slot + 1) & s->mask) {
    if (is_same(s, &graph->nodes[s->slots[slot]], node)) return s->slots[slot];
  }
  s->slots[slot] = id;
  return OM_NO_NODE;
}

static om_status share(om_ctx *ctx, om_rewriter *rw, seen *s, om_node_id first, om_node_id id) {
  const om_node *node = &rw->graph->nodes[id];
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] != OM_NO_VALUE) {
      s->to[node->outputs[i]] = rw->graph->nodes[first].outputs[i];
    }
  }
  return om_rewriter_drop(
      ctx, rw, id, "left out: '%.100s' computes the same", rw->graph->nodes[first].name);
}

static om_status apply(om_ctx *ctx, om_rewriter *rw) {
  om_status st = OM_OK;
  om_graph *graph = rw->graph;
  seen s = {.mask = 15};
  while (s.mask < 2 * graph->node_count) s.mask = 2 * s.mask + 1;
  OM_GO_NEW(s.slots, s.mask + 1);
  OM_GO_NEW(s.to, graph->value_count);
  for (size_t i = 0; i <= s.mask; ++i) s.slots[i] = OM_NO_NODE;
  for (om_value_id value = 0; value < graph->value_count; ++value) s.to[value] = value;
  for (om_node_id id = 0; id < graph->node_count; ++id) {
    if (!can_share(&graph->nodes[id])) continue;
    const om_node_id first = find(graph, &s, id);
    if (first != OM_NO_NODE && !makes_output(graph, &graph->nodes[id])) {
      OM_GO(share(ctx, rw, &s, first, id));
    }
  }
  OM_GO(om_rewriter_move_reads(ctx, rw, s.to));
done:
  om_delete(ctx, s.slots);
  om_delete(ctx, s.to);
  return st;
}

const om_rewrite om_rewrite_common = {
    .name = "common",
    .in_fast = true,
    .in_exact = true,
    .asker = OM_REWRITE_ALWAYS,
    .apply = apply,
};
