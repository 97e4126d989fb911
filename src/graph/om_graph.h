/* A graph: values, nodes, attributes.
 *
 * Values are named edges, nodes are operator applications; both live in arrays and are named by
 * index. Everything is allocated from the graph's pool and freed as a whole. Constant data is
 * borrowed: it lies in the mapped model file, in external data, or in a pool.
 *
 *     values  [x] [w] [y] ...            nodes  [Conv: x w -> y] ...
 *
 * Invariants once om_graph_finish has passed:
 *   - every value is an input, a constant, or written by exactly one node;
 *   - nodes stand in an order in which each reads only what is before it;
 *   - a node's op and params are set where the operator is known.
 */
#ifndef OM_GRAPH_H
#define OM_GRAPH_H

#include "base/om_base.h"

typedef uint32_t om_value_id;
typedef uint32_t om_node_id;
#define OM_NO_VALUE UINT32_MAX
#define OM_NO_NODE  UINT32_MAX

typedef enum om_attr_kind { /* ONNX's AttributeProto.AttributeType */
                            OM_ATTR_NONE = 0,
                            OM_ATTR_FLOAT = 1,
                            OM_ATTR_INT = 2,
                            OM_ATTR_STRING = 3,
                            OM_ATTR_TENSOR = 4,
                            OM_ATTR_GRAPH = 5,
                            OM_ATTR_FLOATS = 6,
                            OM_ATTR_INTS = 7,
                            OM_ATTR_STRINGS = 8,
                            OM_ATTR_OTHER =
                                9, /* lists of tensors or graphs, sparse tensors, types */
                            OM_ATTR_REFERENCE = 10, /* in a function: s is the caller's attribute */
} om_attr_kind;

typedef struct om_attr {
  const char *name;
  om_attr_kind kind;
  size_t count; /* of floats, ints or strings */
  union {
    float f;
    int64_t i;
    om_string s;
    const om_tensor *tensor;
    const float *floats;
    const int64_t *ints;
    const om_string *strings;
    const struct om_graph *graph; /* a body; the model's graph owns it */
  };
} om_attr;

struct om_op; /* om_op.h */

typedef struct om_node {
  const char *name; /* never NULL or empty */
  const char *type;
  const char *domain;        /* "" is ai.onnx */
  int32_t opset;             /* the version of the domain that the model imports */
  const om_value_id *inputs; /* OM_NO_VALUE where an optional one is absent */
  uint32_t input_count;
  uint32_t capture_count; /* of the inputs, at the end: what its bodies read of this graph */
  const om_value_id *outputs;
  uint32_t output_count;
  const om_attr *attrs;
  uint32_t attr_count;
  uint32_t function;      /* the model's own function that it calls, counted from 1; 0: none */
  const struct om_op *op; /* static; NULL: unknown operator */
  const void *params;     /* op->params_bytes bytes: attributes as op->resolve left them */
} om_node;

typedef struct om_value {
  const char *name; /* never NULL; unique */
  om_dtype dtype;   /* OM_DTYPE_NONE: not known before the plan */
  bool has_rank;
  uint32_t rank;
  int64_t dims[OM_MAX_RANK]; /* -1: not known before the plan */
  const char *dim_names[OM_MAX_RANK];
  const struct om_value *elem; /* of a sequence or an optional: the type of what it holds; of a map:
                                  of one value */
  om_dtype key_dtype;          /* of a map */
  const om_tensor *constant;   /* its value where it is known; data borrowed */
  om_node_id producer;         /* OM_NO_NODE: an input or a constant */
  bool is_input;
  bool is_output;
} om_value;

/* A body is a graph of its own that a node has as an attribute: a branch of an If, the body of a
 * Loop. What it reads of the graph around it are inputs too: they stand behind its formal inputs,
 * and the node has the values behind its own inputs, in the same order:
 *
 *     node   Loop: trip cond state | k w ->       body  i cond s | k w ->
 *                                    ^ inputs[capture_first]
 *
 * So a node reads all that its bodies read, and whoever walks over graphs need not look inside. */
typedef struct om_body_place {
  const struct om_graph *outer; /* NULL: the graph is no body */
  size_t outer_node;            /* the node's index there, before nodes are sorted */
  const char *name, *type;      /* the node's */
  const char *attr;             /* the attribute's name */
  uint32_t capture_first;       /* the node's input that the first captured value is */
  uint32_t capture_count;       /* of the body's inputs, at the end */
  size_t first_node;            /* its first node's index among all of the model's */
  struct om_graph *next;        /* in the list of all bodies */
} om_body_place;

typedef struct om_graph {
  om_pool pool; /* owned: all below, and names */
  om_value *values;
  size_t value_count, value_capacity;
  om_node *nodes;
  size_t node_count, node_capacity;
  const om_value_id *inputs;
  size_t input_count;
  const om_value_id *outputs;
  size_t output_count;
  const om_opset *opsets;
  size_t opset_count;
  om_body_place body;         /* of a body: where it stands */
  struct om_graph *bodies;    /* owned: those of its nodes, at any depth, outer ones first */
  struct om_graph *functions; /* owned: what calls of functions were replaced by, and its bodies */
  /* Hears that constant data was copied, so that its pages in a mapped file need not stay in
   * memory. NULL: nobody cares. Any thread. */
  void (*on_copied)(const void *lender, const void *data, size_t bytes);
  const void *lender; /* borrowed; outlives the graph */
} om_graph;

void om_graph_deinit(om_ctx *ctx, om_graph *graph);

/* A copy whose nodes and values can be changed; names, attributes, bodies and constants are shared
 * with the source, which must live longer. */
om_status om_graph_copy(om_ctx *ctx, const om_graph *source, om_graph *out_graph);

/* A copy of the part of a finished graph that makes `output` from the values that are given
 * (is_given: by value; the graph's own inputs must be among them). Its inputs are those of them
 * that it reads, under their names. It borrows as a copy does, and is not finished yet. */
om_status om_graph_extract(om_ctx *ctx,
                           const om_graph *source,
                           const bool *is_given,
                           om_value_id output,
                           om_graph *out_graph);

/* Appends; the pointers inside *value and *node must live in the graph's pool or longer. */
om_status om_graph_add_value(om_ctx *ctx,
                             om_graph *graph,
                             const om_value *value,
                             om_value_id *out_id);
om_status om_graph_add_node(om_ctx *ctx, om_graph *graph, const om_node *node, om_node_id *out_id);

/* Sorts the nodes, sets producers, and checks the first two invariants. OM_E_INVALID_MODEL names
 * the node that reads a missing value, closes a cycle, or writes a value twice. Removes nodes with
 * type NULL (a rewrite's way to delete one). */
om_status om_graph_finish(om_ctx *ctx, om_graph *graph);

/* Sees a node before it is added, its operands mapped. *keep false: it is not added. */
typedef om_status (*om_inline_hook)(om_ctx *ctx, void *user, om_node *node, bool *keep);

/* Puts the nodes of `body` in the place of a node; inputs[i] is the value of body->inputs[i], or
 * OM_NO_VALUE. The node's outputs become the body's, its name a prefix of those of the body's
 * nodes. What the body's nodes and values point to is shared. The graph is to be finished
 * afterwards. */
om_status om_graph_inline(om_ctx *ctx,
                          om_graph *graph,
                          om_node_id id,
                          const om_graph *body,
                          const om_value_id *inputs,
                          om_inline_hook hook,
                          void *user);

/* Tells the graph's lender that the constant's data was copied. */
void om_graph_constant_copied(const om_graph *graph, const om_tensor *constant);

/* The inputs that a node has beside what its bodies capture. */
static inline uint32_t om_node_formal_count(const om_node *node) {
  return node->input_count - node->capture_count;
}

/* How often each value is read: by nodes, plus 1 if it is a graph output. `counts` has
 * value_count elements. */
void om_graph_count_uses(const om_graph *graph, uint32_t *counts);

/* The attribute with this name, or NULL. */
const om_attr *om_node_attr(const om_node *node, const char *name);

/* Typed attributes with a default; an attribute of another kind is OM_E_INVALID_MODEL and the
 * message names it. om_node_attr_ints gives count 0 where it is absent. */
om_status om_node_attr_int(
    om_ctx *ctx, const om_node *node, const char *name, int64_t fallback, int64_t *out);
om_status om_node_attr_float(
    om_ctx *ctx, const om_node *node, const char *name, float fallback, float *out);
om_status om_node_attr_text(
    om_ctx *ctx, const om_node *node, const char *name, const char *fallback, om_string *out);
om_status om_node_attr_ints(
    om_ctx *ctx, const om_node *node, const char *name, const int64_t **out, size_t *out_count);

/* True if the string equals the terminated text. */
bool om_string_is(om_string string, const char *text);
bool om_string_same(om_string a, om_string b);

#endif
