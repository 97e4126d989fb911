/* Attention and Softmax in fast mode: two products of om_fast.h with a softmax between them. */
#ifndef OM_FAST_ATTENTION_H
#define OM_FAST_ATTENTION_H

#include "cpu/exact/om_attention.h"
#include "cpu/fast/om_fast.h"

typedef struct om_fast_attention om_fast_attention;

/* *out NULL: there is none for this, the exact kernel runs. */
om_status om_fast_attention_create(om_ctx *ctx,
                                   om_fast *fast,
                                   const om_attention *a,
                                   om_fast_attention **out);
void om_fast_attention_destroy(om_ctx *ctx, om_fast_attention *attention);
size_t om_fast_attention_scratch(const om_fast_attention *attention);

/* a: as at its creation, with the values of the scales. */
om_status om_fast_attention_run(om_ctx *ctx,
                                om_fast_attention *attention,
                                const om_attention *a,
                                const float *const operands[4], /* q, k, v, mask */
                                float *y,
                                void *scratch);

/* The softmax of dense rows. y may be x. */
void om_fast_softmax(om_ctx *ctx, size_t rows, size_t cols, const float *x, float *y);

#endif
