/* Between the files of the loader: what they share while one model is read. */
#ifndef OM_LOADER_H
#define OM_LOADER_H

#include "onnx/om_name_table.h"
#include "onnx/om_tensor_proto.h"
#include "onnx/om_wire.h"

typedef struct om_loader_function { /* of the model's own */
  om_string name, domain, overload;
  om_string bytes;
  om_graph *graph; /* once it was called: its inputs, nodes and outputs */
  const om_attr *defaults;
  size_t default_count;
} om_loader_function;

typedef struct om_loader_file { /* what the graphs of one file share */
  om_graph *graph;              /* borrowed: the model's, which owns the bodies */
  om_graph **last_body;         /* where the list of bodies ends, or that of functions */
  om_graph **last_function;
  om_tensor_reading reading;
  const om_opset *opsets; /* in the graph's pool; domains as nodes have them */
  size_t opset_count;
  om_loader_function *functions; /* owned */
  size_t function_count, function_capacity;
  size_t node_count;     /* of all graphs so far */
  size_t dense_bytes;    /* made of sparse tensors so far */
  size_t weight_count;   /* out */
  uint64_t weight_bytes; /* out */
} om_loader_file;

typedef struct om_loader { /* one graph while it is read */
  om_graph *graph;         /* borrowed: out */
  om_loader_file *file;
  const om_opset *opsets; /* that its nodes mean */
  size_t opset_count;
  bool is_function;        /* or inside of one: attributes may refer to the caller's */
  bool has_plain_names;    /* a function itself: inputs and outputs have no types */
  struct om_loader *outer; /* of the graph around this body; NULL: it is the model's */
  uint32_t depth;
  om_name_table names;      /* owned */
  om_wire_list node_inputs; /* of the node at hand; kept to be used again */
  om_wire_list node_outputs;
  om_wire_list node_attrs;
  om_value_id *node_captures; /* owned: what bodies of the node at hand read of this graph */
  size_t node_capture_count, node_capture_capacity;
  const om_node *node;   /* at hand; its inputs are the formal ones */
  om_value_id *captured; /* owned: this body's inputs behind the formal ones */
  size_t captured_count, captured_capacity;
} om_loader;

enum {
  OM_MAX_VALUES = 1 << 20, /* of a graph. Bounds what a hostile file makes us allocate; the */
  OM_MAX_NODES = 1 << 20,  /* of a model. Largest graphs seen have about a tenth of that */
  OM_MAX_NODE_ATTRS = 1024,
  OM_MAX_OPSETS = 256,
  OM_MAX_FUNCTIONS = 1024,
  OM_MAX_INLINED = 1 << 16,     /* nodes that functions may become, beside 16 a node of the file */
  OM_MAX_BODY_DEPTH = 32,       /* of bodies in bodies; exporters nest a handful */
  OM_COPIED_BELOW_BYTES = 4096, /* unaligned tensors below are copied: shapes, scalars, biases */
};

void om_loader_init(om_ctx *ctx, om_loader *loader, om_loader_file *file, om_graph *graph);
void om_loader_deinit(om_ctx *ctx, om_loader *loader);

void om_loader_file_deinit(om_ctx *ctx, om_loader_file *file);

/* True if a message has room for one more name in front: those of many bodies around a place would
 * push out what was found there. The outermost ones are always named. */
static inline bool om_loader_may_name(const om_ctx *ctx, const om_loader *loader) {
  return loader->depth == 0 || strlen(ctx->error->message) < OM_MAX_MESSAGE / 2;
}

typedef struct om_loader_parts { /* of a graph or a function, as ranges of the file */
  om_wire_list nodes, initializers, inputs, outputs, values, sparse;
} om_loader_parts;

void om_loader_parts_deinit(om_loader_parts *parts);

/* om_graph_proto.c: makes loader->graph of its parts. */
om_status om_loader_read_parts(om_ctx *ctx, om_loader *loader, const om_loader_parts *parts);

/* Reads a GraphProto into loader->graph. */
om_status om_loader_read_graph(om_ctx *ctx, om_loader *loader, om_string bytes);

/* The value of that name, made where there is none; an empty or impossible name is an error. */
om_status om_loader_add_value(om_ctx *ctx, om_loader *loader, om_string name, om_value_id *out_id);

/* The value of that name, or OM_NO_VALUE. */
om_status om_loader_find_value(om_ctx *ctx, om_loader *loader, om_string name, om_value_id *out_id);

/* om_body_proto.c: the value of that name, here or in a graph around this one, from where it is
 * captured; OM_NO_VALUE if there is none. */
om_status om_loader_see_value(om_ctx *ctx, om_loader *loader, om_string name, om_value_id *out_id);

/* Reads a GraphProto that the node at hand has as the attribute `name`. */
om_status om_loader_read_body(
    om_ctx *ctx, om_loader *loader, om_string bytes, const char *name, const om_graph **out_body);

/* Makes a value a constant; it must not be written or fed already. */
om_status om_loader_set_constant(om_ctx *ctx,
                                 om_loader *loader,
                                 om_value_id id,
                                 const om_tensor *tensor);

/* om_value_proto.c: reads a ValueInfoProto. *out_value has dtype OM_DTYPE_NONE where the message
 * has no tensor type; *out_has_type says whether it has a type at all. Its name is not set. */
om_status om_loader_read_value_info(om_ctx *ctx,
                                    om_loader *loader,
                                    om_string bytes,
                                    om_string *out_name,
                                    om_value *out_value,
                                    bool *out_has_type);

/* om_node_proto.c: decodes a node's parts into the loader's lists. */
typedef struct om_loader_node {
  om_string name, type, domain, overload;
} om_loader_node;
om_status om_loader_split_node(om_ctx *ctx,
                               om_loader *loader,
                               om_string bytes,
                               om_loader_node *out_node);

/* om_function_proto.c: the function that the node calls, as om_node.function. */
uint32_t om_loader_find_function(const om_loader_file *file, const om_loader_node *node);

/* Reads the node with this index: adds it to the graph, or makes its value a constant. */
om_status om_loader_read_node(om_ctx *ctx, om_loader *loader, size_t index, om_string bytes);

/* om_opset_proto.c: reads a list of operator set imports into the graph's pool. */
om_status om_loader_read_opsets(om_ctx *ctx,
                                om_pool *pool,
                                const om_wire_list *list,
                                const om_opset **out_opsets,
                                size_t *out_count);

/* om_function_proto.c: lists the model's functions, each with its name. */
om_status om_loader_list_functions(om_ctx *ctx, om_loader_file *file, const om_wire_list *list);

/* Puts functions in the place of the nodes that call them, in the model's graph, in bodies, and in
 * what functions call. */
om_status om_loader_inline_functions(om_ctx *ctx, om_loader_file *file);

/* om_sparse.c: reads a SparseTensorProto as a dense tensor. */
om_status om_loader_read_sparse(
    om_ctx *ctx, om_loader *loader, om_string bytes, om_tensor *out_tensor, om_string *out_name);

/* om_attr_proto.c: reads an AttributeProto. */
om_status om_loader_read_attr(om_ctx *ctx, om_loader *loader, om_string bytes, om_attr *out_attr);

/* om_constant.c: the tensor that a Constant node stands for; its data are the attribute's. */
om_status om_loader_constant_of(om_ctx *ctx, const om_node *node, om_tensor *out_tensor);

#endif
