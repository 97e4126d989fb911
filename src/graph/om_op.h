/* What an operator is: its schema, the rule for its results' types and shapes, its CPU kernel.
 *
 * One om_op is one table entry; the entries stand in src/ops/, a file a family. A node's
 * attributes are resolved once into the entry's params struct, whatever the opset's spelling,
 * and from then on the shape rule, the CPU kernel and the device's binder read the same struct.
 */
#ifndef OM_OP_H
#define OM_OP_H

#include "graph/om_graph.h"

struct om_fast;    /* cpu/fast/om_fast.h */
struct om_strided; /* cpu/exact/om_strided.h */
struct om_view;    /* cpu/exact/om_view.h */

/* In om_tensor.rank after infer: the shape depends on data that is not there yet. */
#define OM_RANK_UNKNOWN UINT32_MAX

typedef uint32_t om_dtype_set; /* bit n: om_dtype n */
#define OM_DT(dtype) ((om_dtype_set)1 << (dtype))
#define OM_DT_FLOAT \
  (OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F16) | OM_DT(OM_DTYPE_F64) | OM_DT(OM_DTYPE_BF16))
#define OM_DT_SIGNED \
  (OM_DT(OM_DTYPE_I8) | OM_DT(OM_DTYPE_I16) | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64))
#define OM_DT_UNSIGNED \
  (OM_DT(OM_DTYPE_U8) | OM_DT(OM_DTYPE_U16) | OM_DT(OM_DTYPE_U32) | OM_DT(OM_DTYPE_U64))
#define OM_DT_INT    (OM_DT_SIGNED | OM_DT_UNSIGNED)
#define OM_DT_NUMBER (OM_DT_FLOAT | OM_DT_INT)
#define OM_DT_FLOAT8                                                                \
  (OM_DT(OM_DTYPE_F8E4M3FN) | OM_DT(OM_DTYPE_F8E4M3FNUZ) | OM_DT(OM_DTYPE_F8E5M2) | \
   OM_DT(OM_DTYPE_F8E5M2FNUZ))
#define OM_DT_ALL    (((om_dtype_set)1 << OM_DTYPE_COUNT) - 2) /* tensors */
#define OM_DT_NESTED (OM_DT(OM_DTYPE_SEQUENCE) | OM_DT(OM_DTYPE_OPTIONAL) | OM_DT(OM_DTYPE_MAP))

/* The bodies of a node while it runs, lent by whoever runs it. */
typedef struct om_op_bodies {
  /* Runs body `index` (of om_op.bodies) on its formal inputs. Fills its outputs, which are lent
   * until the body's next run. */
  om_status (*run)(om_ctx *ctx,
                   struct om_op_bodies *self,
                   uint32_t index,
                   const om_tensor *inputs,
                   om_tensor *outputs);
  /* Memory of the node's own, aligned to 64. It stays until the slot is asked for again, when it
   * keeps what is in it and may move. From run to run it only grows. */
  om_status (*reserve)(
      om_ctx *ctx, struct om_op_bodies *self, uint32_t slot, size_t bytes, void **out_data);
} om_op_bodies;

enum { OM_OP_MAX_BODIES = 2 };

/* One application of an operator, as infer and run see it. */
typedef struct om_op_call {
  const om_node *node;
  const void *params;             /* node->params */
  const om_tensor *const *inputs; /* NULL where absent; data NULL: not known yet (infer only) */
  uint32_t input_count;
  om_tensor *const *outputs; /* NULL where nothing reads it; infer fills dtype, rank, dims;
                                run finds data set and fills it */
  uint32_t output_count;
  void *scratch;        /* scratch_bytes() bytes, aligned to 64, a place where it is 0; run only */
  om_mode mode;         /* run only */
  om_op_bodies *bodies; /* run of operators with bodies only */
} om_op_call;

/* A step made ready ahead of its runs: fast mode's kernel, chosen for its shapes and constants. */
typedef struct om_op_ready {
  /* In the place of om_op.run; NULL: that one runs. */
  om_status (*run)(om_ctx *ctx, const om_op_call *call, void *state);
  void (*destroy)(om_ctx *ctx, void *state);
  void *state;            /* owned by the step */
  size_t scratch_bytes;   /* in the place of om_op.scratch_bytes */
  uint32_t packed_inputs; /* bit i: run does not read input i, a constant that state holds */
} om_op_ready;

/* Of an operator that reads its first inputs through strides. */
typedef struct om_op_views {
  uint32_t input_count;
  /* How the call reads the input's elements; false: not to be changed. */
  bool (*get)(const om_op_call *call, uint32_t input, struct om_view *out_view);
  bool (*accepts)(uint32_t input, const struct om_view *view);
  /* From now on params say that the input is read so, whatever its own shape. */
  void (*set)(void *params, uint32_t input, const struct om_view *view);
  /* From now on axis i of the result, of `rank` axes, is what axis axes[i] was, for the first
   * `count` of them; the others stay. */
  void (*turn_result)(void *params, uint32_t rank, uint32_t count, const uint32_t *axes);
} om_op_views;

typedef struct om_op {
  union {
    struct {
      const char *domain;
      const char *type;
      int32_t first_opset; /* the entry holds for opsets first..last */
      int32_t last_opset;  /* 0: up to the newest */
      om_dtype_set dtypes; /* of input 0 (for the operators without inputs: 0); float64 is among
                              them wherever float32 is, ONNX or not: om_graph_to_float64 */
      bool is_composed;    /* it stands for others (rewrite/om_compose.h): infer and run are NULL */
      bool may_be_composed; /* a rewrite of its own lets others take its place where it can */
    };
    om_operator_info info; /* the same, as the public header lends them */
  };
  uint8_t min_inputs, max_inputs; /* UINT8_MAX: any number */
  uint8_t min_outputs, max_outputs;
  uint32_t float32_inputs; /* bit i: input i is never float64: a Resize's scales, the boxes of
                              NonMaxSuppression */
  size_t params_bytes;
  bool is_random;        /* never folded, never merged */
  bool is_folded_late;   /* only where no rewrite wants what it reads in its place */
  bool is_sized_by_data; /* the elements of its inputs decide about its result's shape */
  /* Names of the attributes that are bodies, in the order of om_op_bodies.run; resolve sees to it
   * that they are there. Such an operator has no infer: run sets its outputs' types, shapes and
   * data, in memory of its bodies or of om_op_bodies.reserve. */
  const char *bodies[OM_OP_MAX_BODIES];
  uint32_t shaped_inputs; /* bit i: run looks at input i's type and shape, never at its data,
                             which may be NULL: Shape, Size, CastLike */
  uint32_t copied_inputs; /* bit i: run copies bytes of input i, wherever its data lies: it need not
                             be aligned for its type */

  /* Reads the attributes into params (zeroed); NULL: the operator has none. OM_E_INVALID_MODEL
   * names the attribute and the value. */
  om_status (*resolve)(om_ctx *ctx, const om_node *node, void *params);

  /* After resolve, for params with tables of their own: what it allocates from the pool lives as
   * long as the graph. NULL: nothing to do. */
  om_status (*prepare)(om_ctx *ctx, om_pool *pool, const om_node *node, void *params);

  /* Sets the outputs' types and shapes from the inputs'; checks everything about them that run
   * relies on, with sentences that hold the values. Every extent it is given is >= 0.
   * Where an input's data decides and is not there, sets rank to OM_RANK_UNKNOWN (dtype is set
   * all the same). Data that is there is checked here (an axis, a Reshape's shape). */
  om_status (*infer)(om_ctx *ctx, const om_op_call *call);

  /* Bytes that run needs beside its results; NULL: none. Shapes are known. */
  size_t (*scratch_bytes)(const om_op_call *call);

  /* Computes the outputs as docs/exact.md defines them. Allocates nothing. An index out of range
   * and the like is OM_E_INVALID_INPUT with the values. */
  om_status (*run)(om_ctx *ctx, const om_op_call *call);

  /* For operators that only move elements of input 0: the output as a copy of them, which writes
   * all of it in order. False: this call is none. NULL: not that kind. */
  bool (*describe_move)(const om_op_call *call, uint32_t output, struct om_strided *out_copy);
  const om_op_views *views; /* NULL: inputs are read as they are */

  /* True if each of so many rows of the result, equal parts one behind the other, is computed of
   * the same row of this input and of nothing that differs between rows. NULL: not that kind. */
  bool (*is_by_rows)(const om_op_call *call, uint32_t input, size_t rows);

  /* For fast mode on the CPU; NULL: run is as fast. Shapes are known, inputs that are constant have
   * their data (of any alignment); bit i of kept_inputs: it stays as it is as long as `fast`. */
  om_status (*make_ready)(om_ctx *ctx,
                          const om_op_call *call,
                          uint32_t kept_inputs,
                          struct om_fast *fast,
                          om_op_ready *out_ready);
} om_op;

/* Finds the entry for the node's domain, type and opset; NULL if there is none, and *out_reason
 * (may be NULL) says whether the operator, or only this opset, is unknown. */
const om_op *om_op_find(const char *domain,
                        const char *type,
                        int32_t opset,
                        const char **out_reason);

/* Fills the zeroed params of a node whose op is known. */
om_status om_op_read_params(om_ctx *ctx, om_pool *pool, const om_node *node, void *params);

/* Sets op and params of every node, and checks input and output counts. An unknown operator
 * leaves op NULL: the session says so when it is made. */
om_status om_graph_resolve_ops(om_ctx *ctx, om_graph *graph);

#endif
