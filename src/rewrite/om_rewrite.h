/* Rewrites: graph to graph, before any plan.
 *
 * A rewrite is an entry of the table in om_rewrite.c and a file of its own. It looks for its
 * pattern in the whole graph and replaces what it finds; what it removes leaves a note, so that
 * the diagnostics can say where each node of the model went.
 *
 * In exact mode a rewrite keeps the bits, or it is applied for every executor alike.
 */
#ifndef OM_REWRITE_H
#define OM_REWRITE_H

#include "graph/om_op.h"
#include "graph/om_stored.h"
#include "onemodel/provider.h"

typedef struct om_node_note { /* a node that is not in the graph any more */
  const char *name;
  const char *type;
  const char *domain;
  const char *reason;
} om_node_note;

/* The graph while it is rewritten, with what patterns ask for most. single. */
typedef struct om_rewriter {
  om_graph *graph; /* borrowed; new data goes to its pool */
  om_mode mode;
  bool has_device;
  bool has_fast_kernels; /* cpu/fast/om_fast.h */
  uint64_t left_out;     /* bit n: without the table's entry n */
  uint32_t *uses;        /* owned; how often each value is read, outputs counted too */
  uint32_t *shape_uses;  /* owned; by how many of them only a value's shape is asked for */
  om_node_id *readers;   /* owned; the last node that reads the value, or OM_NO_NODE */
  om_node_note *notes;   /* owned */
  size_t note_count, note_capacity;
} om_rewriter;

typedef enum om_rewrite_asker { /* on whose wish a rewrite is applied */
                                OM_REWRITE_ALWAYS,
                                OM_REWRITE_FOR_CPU, /* only where no device is */
                                OM_REWRITE_FOR_DEVICE,
} om_rewrite_asker;

typedef struct om_rewrite {
  const char *name;
  bool in_fast, in_exact; /* modes it is allowed in */
  bool is_early; /* applied before operators of om_op.is_folded_late are folded, else behind that */
  om_rewrite_asker asker;
  om_status (*apply)(om_ctx *ctx, om_rewriter *rw);
} om_rewrite;

/* om_rewriter.left_out as the provider wishes; both may be NULL. */
uint64_t om_rewrites_left_out(const om_provider *provider, const void *options);

/* Applies the table's entries that fit rw, the early ones or the others, in order. */
om_status om_rewrite_graph(om_ctx *ctx, om_rewriter *rw, bool is_early);

/* The entry with this index, NULL past the last. */
const om_rewrite *om_rewrite_get(size_t index);

/* Sorts the graph, removes dropped nodes and recounts the uses. */
om_status om_rewriter_refresh(om_ctx *ctx, om_rewriter *rw);

void om_rewriter_deinit(om_ctx *ctx, om_rewriter *rw);

/* ---- For the rewrites ---- */

/* Marks a node for removal and notes why; the reason is formatted into the graph's pool. */
om_status om_rewriter_drop(om_ctx *ctx, om_rewriter *rw, om_node_id id, const char *fmt, ...)
    OM_PRINTF(4, 5);

/* Drops every node of which nothing is read. */
om_status om_rewriter_drop_dead(om_ctx *ctx, om_rewriter *rw);

/* The node of this type (domain ai.onnx) that alone reads `value`; OM_NO_NODE if there is none,
 * the value is a graph output, or the node is dropped. */
om_node_id om_rewriter_sole_reader(const om_rewriter *rw, om_value_id value, const char *type);

/* The node of this type that makes `value`, or OM_NO_NODE. */
om_node_id om_rewriter_maker(const om_rewriter *rw, om_value_id value, const char *type);
/* That node itself, or NULL. */
const om_node *om_rewriter_made_by(const om_rewriter *rw, om_value_id value, const char *type);

/* True if one input reads the value and it is no output of the graph. */
bool om_rewriter_is_read_once(const om_rewriter *rw, om_value_id value);

/* The value's constant, or NULL. Its shape is there; its data are NULL where they were not brought
 * to memory (om_stored.h): large ones of floats and 8-bit integers. om_constant_hold brings them.
 */
const om_tensor *om_rewriter_constant(const om_rewriter *rw, om_value_id value);

/* True and *out_value if the value is a float32 or float16 constant of one element. */
bool om_rewriter_scalar(const om_rewriter *rw, om_value_id value, float *out_value);

/* A new constant with the type and shape of `like` and room for its data, in the graph's pool. It
 * is named "<stem>.<number>"; nothing looks such a value up by name. */
om_status om_rewriter_add_constant(om_ctx *ctx,
                                   om_rewriter *rw,
                                   const char *stem,
                                   const om_tensor *like,
                                   void **out_data,
                                   om_value_id *out_id);
/* A new constant that is there already, in memory or stored; it lives as long as the graph. */
om_status om_rewriter_add_stored(
    om_ctx *ctx, om_rewriter *rw, const char *stem, const om_tensor *tensor, om_value_id *out_id);

/* Gives a node new inputs (copied). */
om_status om_rewriter_set_inputs(
    om_ctx *ctx, om_rewriter *rw, om_node_id node, const om_value_id *inputs, uint32_t count);

/* Lets the node write the value `to` in place of its output `from`. */
om_status om_rewriter_set_output(
    om_ctx *ctx, om_rewriter *rw, om_node_id id, om_value_id from, om_value_id to);

/* What a node becomes; everything is copied. */
typedef struct om_rewritten_node {
  const char *domain; /* static; NULL: ai.onnx */
  const char *type;   /* static */
  int32_t opset;
  const om_value_id *inputs;
  uint32_t input_count;
  const om_attr *attrs;
  uint32_t attr_count;
} om_rewritten_node;

/* Makes a node another operator, which must be known. Its name and outputs stay. */
om_status om_rewriter_become(om_ctx *ctx,
                             om_rewriter *rw,
                             om_node_id id,
                             const om_rewritten_node *what);

/* A node that is not there yet, of one new value of this type and (copied) name; *out_value. What
 * the rewriter counts does not know them before the next refresh. */
om_status om_rewriter_add_node(om_ctx *ctx,
                               om_rewriter *rw,
                               const char *name,
                               om_dtype dtype,
                               const om_rewritten_node *what,
                               om_value_id *out_value);

/* The same, unless one of the nodes from `first` on has this type and these inputs. For operators
 * without attributes. */
om_status om_rewriter_share_node(om_ctx *ctx,
                                 om_rewriter *rw,
                                 om_node_id first,
                                 const char *name,
                                 om_dtype dtype,
                                 const om_rewritten_node *what,
                                 om_value_id *out_value);

/* Lets every reader of a value v read to[v] instead, and so on until to[v] is v. */
om_status om_rewriter_move_reads(om_ctx *ctx, om_rewriter *rw, const om_value_id *to);

/* ---- The table's entries ---- */

extern const om_rewrite om_rewrite_attention;
extern const om_rewrite om_rewrite_channels_last;
extern const om_rewrite om_rewrite_common;
extern const om_rewrite om_rewrite_compose;
extern const om_rewrite om_rewrite_drop_expand;
extern const om_rewrite om_rewrite_drop_identity;
extern const om_rewrite om_rewrite_einsum;
extern const om_rewrite om_rewrite_epilogue;
extern const om_rewrite om_rewrite_fold_affine;
extern const om_rewrite om_rewrite_gelu_from_parts;
extern const om_rewrite om_rewrite_hardswish_from_parts;
extern const om_rewrite om_rewrite_join_masks;
extern const om_rewrite om_rewrite_layernorm_from_parts;
extern const om_rewrite om_rewrite_mask_choices;
extern const om_rewrite om_rewrite_packed_projections;
extern const om_rewrite om_rewrite_pad;
extern const om_rewrite om_rewrite_qlinear;
extern const om_rewrite om_rewrite_quantized;
extern const om_rewrite om_rewrite_scaled_products;
extern const om_rewrite om_rewrite_sink_expand;
extern const om_rewrite om_rewrite_spread_heads;
extern const om_rewrite om_rewrite_transposes;
extern const om_rewrite om_rewrite_variadic;

#endif
