/* What oneDNN's kernels share; for om_fast_dnn*.c alone. */
#ifndef OM_FAST_DNN_H
#define OM_FAST_DNN_H

#include <oneapi/dnnl/dnnl.h>

#include "cpu/fast/om_fast.h"

#define OM_DNN_FUNCTIONS(X)                      \
  X(convolution_forward_primitive_desc_create)   \
  X(deconvolution_forward_primitive_desc_create) \
  X(engine_create)                               \
  X(engine_destroy)                              \
  X(matmul_primitive_desc_create)                \
  X(memory_create)                               \
  X(memory_desc_clone)                           \
  X(memory_desc_create_with_strides)             \
  X(memory_desc_create_with_tag)                 \
  X(memory_desc_destroy)                         \
  X(memory_desc_equal)                           \
  X(memory_desc_get_size)                        \
  X(memory_destroy)                              \
  X(memory_set_data_handle)                      \
  X(post_ops_append_binary)                      \
  X(post_ops_append_eltwise)                     \
  X(post_ops_create)                             \
  X(post_ops_destroy)                            \
  X(post_ops_len)                                \
  X(primitive_attr_create)                       \
  X(primitive_attr_destroy)                      \
  X(primitive_attr_set_post_ops)                 \
  X(primitive_attr_set_scratchpad_mode)          \
  X(primitive_create)                            \
  X(primitive_desc_destroy)                      \
  X(primitive_desc_query_md)                     \
  X(primitive_destroy)                           \
  X(primitive_execute)                           \
  X(reorder_primitive_desc_create)               \
  X(stream_create)                               \
  X(stream_destroy)

/* oneDNN is opened when a session first wants a kernel, and then stays: a program that does without
 * the CPU's fast mode neither needs it nor loads it. */
typedef struct om_dnn_library {
#define X(name) __typeof__(dnnl_##name) *name;
  OM_DNN_FUNCTIONS(X)
#undef X
  int (*get_max_threads)(void); /* NULL: oneDNN does without OpenMP */
  void (*set_num_threads)(int count);
} om_dnn_library;

typedef struct om_dnn_pack { /* constant weights in a kernel's order */
  struct om_dnn_pack *next;
  const float *source;             /* borrowed; only compared */
  dnnl_memory_desc_t given, order; /* owned: the source's order, and data's */
  void *data;                      /* owned */
} om_dnn_pack;

struct om_fast {
  bool is_tried; /* to open the library; engine is NULL where that failed */
  om_dnn_library lib;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  om_dnn_pack *packs; /* owned */
};

/* Operands in the order of a kernel's memories. */
typedef enum om_dnn_operand {
  OM_DNN_X,
  OM_DNN_W,
  OM_DNN_BIAS,
  OM_DNN_RESIDUAL,
  OM_DNN_Y,
  OM_DNN_SCRATCH,
  OM_DNN_OPERANDS,
} om_dnn_operand;

typedef struct om_dnn_turn {  /* of an operand's order, before or after the kernel */
  dnnl_primitive_t primitive; /* NULL: none */
  dnnl_memory_t from, to;
  size_t offset; /* in scratch: of the form that the kernel uses */
} om_dnn_turn;

struct om_fast_kernel {
  om_fast *fast; /* borrowed */
  dnnl_primitive_t primitive;
  dnnl_memory_t memories[OM_DNN_OPERANDS]; /* NULL: it has none */
  dnnl_exec_arg_t args[OM_DNN_OPERANDS];
  int arg_count;
  om_dnn_turn x_turn, y_turn;
  bool is_packed;
  om_dnn_pack *own_pack; /* owned: of weights that are not kept */
  size_t scratch_bytes;
};

/* What a kernel is made of; all owned by the caller. */
typedef struct om_dnn_parts {
  const om_dnn_library *lib; /* borrowed */
  dnnl_primitive_desc_t primitive;
  dnnl_memory_desc_t x, w, bias, residual, y;
  dnnl_primitive_attr_t attr;
  int residual_at; /* its place among the operations of attr */
} om_dnn_parts;

/* Errors: `what` was being done. */
om_status om_dnn_status(om_ctx *ctx, dnnl_status_t status, const char *what);

/* Opens the library, at the first call. *out_is_there false: it is not on this machine. */
om_status om_dnn_open(om_ctx *ctx, om_fast *fast, bool *out_is_there);

/* A dense or strided order of float32. */
om_status om_dnn_desc(om_ctx *ctx,
                      const om_dnn_library *lib,
                      int rank,
                      const int64_t *dims,
                      const int64_t *strides, /* NULL: the kernel chooses */
                      dnnl_memory_desc_t *out_desc);

/* Attributes for the epilogue: parts->attr, and parts->residual of rank `rank`. */
om_status om_dnn_epilogue(om_ctx *ctx,
                          const om_fast_epilogue *epilogue,
                          int rank,
                          const int64_t *residual_strides,
                          om_dnn_parts *parts);

/* The kernel for parts->primitive. Weights that are constant are packed from the order `given`. */
om_status om_dnn_kernel_create(om_ctx *ctx,
                               om_fast *fast,
                               const om_dnn_parts *parts,
                               const om_fast_weights *weights,
                               dnnl_memory_desc_t given,
                               om_fast_kernel **out_kernel);

/* Lets the kernel take x from, or give y in, another order than its own. */
om_status om_dnn_turn_add(om_ctx *ctx,
                          om_fast_kernel *kernel,
                          om_dnn_operand operand,
                          dnnl_memory_desc_t outside,
                          dnnl_memory_desc_t inside);

void om_dnn_parts_deinit(om_dnn_parts *parts);

/* oneDNN works on as many threads as OpenMP would take on this thread. Returns what to give back.
 */
int om_dnn_threads_begin(const om_ctx *ctx, const om_fast *fast);
void om_dnn_threads_end(const om_fast *fast, int before);

#endif
