/* Exact attention, for the binder of attention. */
#ifndef OM_GPU_ATTENTION_H
#define OM_GPU_ATTENTION_H

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

#endif
