/* A convolution as its binders see it, and the one for matrix hardware. */
#ifndef OM_GPU_CONV_H
#define OM_GPU_CONV_H

#include "gpu/om_gpu_op.h"
#include "ops/op_conv.h"

/* One application, in the terms of the kernels: axes 1 and 2 of the window, and 0 of a volume. */
typedef struct om_gpu_conv {
  om_conv_shape shape;
  const om_window *w;                 /* &shape.window */
  uint32_t in_channels, out_channels; /* of one group */
  uint32_t taps;
  uint32_t terms;  /* of a sum; of a ConvTranspose: the most of any phase */
  uint32_t phases; /* 1 for a Conv */
  uint32_t slices; /* images * groups */
  uint32_t pixels; /* results of a channel; of a ConvTranspose: of its largest phase */
  uint32_t kernel_step[OM_WINDOW_AXES];
  bool is_volume; /* axis 0 takes part */
  om_dtype dtype;
  size_t elem_bytes;
  uint32_t columns; /* vec4 columns of packed weights */
  uint64_t out_elems;
} om_gpu_conv;

/* Whether it runs on matrix hardware: fast mode, a device that has it, constant weights of one
 * group, at most two axes, and an estimate below the portable kernels'. */
bool om_gpu_takes_conv_matrix(const om_gpu_binder *b, const om_gpu_conv *c);

/* Binds such a convolution; a reason or NULL. */
const char *om_gpu_bind_conv_matrix(om_gpu_binder *b, const om_gpu_conv *c);

/* Bind a convolution of packed weights, and a ConvTranspose that is a shuffle, with kernels whose
 * invocations share nothing; a reason or NULL. */
const char *om_gpu_bind_conv_alone(om_gpu_binder *b, const om_gpu_conv *c, om_gpu_operand weights);
const char *om_gpu_bind_shuffle_alone(om_gpu_binder *b, const om_gpu_conv *c);

/* Sets the chain of the dispatch that makes the result, with the bias as its first item. */
void om_gpu_start_conv_chain(om_gpu_binder *b, om_gpu_dispatch *d, const om_gpu_conv *c);

/* Starts the dispatch that writes the result, with the bias as the chain's first item. NULL on no
 * memory. */
om_gpu_dispatch *om_gpu_add_conv_result(om_gpu_binder *b,
                                        om_shader shader,
                                        const om_gpu_conv *c,
                                        const om_gpu_operand *operands,
                                        uint32_t operand_count);

/* Appends the pass that adds the sums of a convolution's splits, which lie one behind the other in
 * float32. A reason or NULL. */
const char *om_gpu_add_conv_sum(om_gpu_binder *b,
                                const om_gpu_conv *c,
                                om_gpu_operand sums,
                                uint32_t split_count);

#endif
