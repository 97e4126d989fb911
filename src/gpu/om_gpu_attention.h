/* What the binders of attention share: gpu_ops_attention.c chooses among them. */
#ifndef OM_GPU_ATTENTION_H
#define OM_GPU_ATTENTION_H

#include "abi/attention_shape.h"
#include "gpu/om_gpu_op.h"
#include "ops/op_attention.h"

/* Binds an attention of at most two batch axes, with the arithmetic of docs/exact.md. Its scores
 * wait in scratch memory, in as many turns as that takes. mask: nothing where there is none. A
 * reason in words, or NULL. */
const char *om_gpu_bind_exact_attention(om_gpu_binder *b,
                                        const om_attention *a,
                                        om_gpu_operand mask);

/* The bits of the kernels' constant FLAGS that the attention itself decides. */
uint32_t om_gpu_attention_flags(const om_attention *a);

/* The fields that all parameter blocks of attention end with. */
om_attention_shape_params om_gpu_attention_shape(const om_attention *a);

/* Whether the rows of Q, of K by keys and of V lie in pieces of so many elements, side by side; and
 * those of Y. */
bool om_gpu_attention_lies_in_pieces(const om_attention *a, uint32_t elems);
bool om_gpu_attention_y_lies_in_pieces(const om_attention *a, uint32_t elems);

/* A kernel on matrix hardware. */
typedef struct om_attention_matrix_kernel {
  om_shader shader;
  om_dtype dtype;
  uint32_t head; /* the most columns and depth */
  uint32_t rows; /* of a workgroup */
  uint32_t step; /* keys of one */
  bool takes_mask;
  uint32_t per_core; /* workgroups that a core holds */
  uint32_t start_cost, step_cost;
} om_attention_matrix_kernel;

/* The kernel on matrix hardware that is estimated to be the fastest of those that the device has
 * and that take the operands as they lie; NULL: none. */
const om_attention_matrix_kernel *om_gpu_attention_matrix(const om_gpu_binder *b,
                                                          const om_attention *a);

#endif
