/* Fast products and convolutions of float32, made ready once and run often.
 *
 * A kernel is made for shapes that are known, and holds what can be done ahead of a run: the choice
 * of the code, and weights that are constant, brought into the order in which the code reads them.
 * Such weights are packed once for all kernels that want the same order (om_fast), so that
 * the plans of one session share them.
 *
 * Work is cut into pieces (om_thread.h) and those into tiles (om_tile.h), so threads, cancelling
 * and memory are the library's own. Results are within 1e-5 (scaled) of the exact ones, and the
 * same on any number of threads.
 */
#ifndef OM_FAST_H
#define OM_FAST_H

#include "base/om_base.h"

/* What the kernels of one session share. single. */
typedef struct om_fast om_fast;

/* Hears of weights that were packed: what lends them may let their pages go. Called by any thread.
 */
typedef struct om_fast_lender {
  void (*on_packed)(const void *lender, const void *data, size_t bytes); /* NULL: nobody asks */
  const void *lender;                                                    /* outlives om_fast */
} om_fast_lender;

om_status om_fast_create(om_ctx *ctx, om_fast_lender lender, om_fast **out_fast);
void om_fast_destroy(om_ctx *ctx, om_fast *fast); /* after its kernels */

typedef struct om_fast_form { /* what weights are made into: others may lie at the same place */
  uint32_t kind;
  size_t depth, cols;
} om_fast_form;

/* `bytes` of memory for what a kernel of bytes makes of constant weights that stay as they are as
 * long as om_fast: one block for all that name the same source and form. Where it is new, the
 * caller fills it at once. It lives as long as om_fast. */
om_status om_fast_block_get(om_ctx *ctx,
                            om_fast *fast,
                            const void *source,
                            om_fast_form form,
                            size_t bytes,
                            bool *out_is_new,
                            uint8_t **out_data);

typedef struct om_fast_kernel om_fast_kernel; /* immutable, but runs one at a time */

typedef enum om_fast_activation {
  OM_FAST_NONE,
  OM_FAST_RELU,
  OM_FAST_LEAKY_RELU, /* alpha: the slope below 0 */
  OM_FAST_CLIP,       /* to alpha .. beta */
  OM_FAST_SIGMOID,
  OM_FAST_TANH,
  OM_FAST_GELU,         /* by erf */
  OM_FAST_HARD_SWISH,   /* x * clip(alpha * x + beta, 0, 1) */
  OM_FAST_HARD_SIGMOID, /* clip(alpha * x + beta, 0, 1) */
} om_fast_activation;

/* What happens to each element of the result: y = activation(scale * y + bias + residual). */
typedef struct om_fast_epilogue {
  float scale;       /* 1 where there is a bias */
  bool has_bias;     /* one for each column or channel */
  bool has_residual; /* dims of the result, or with some of them 1 */
  int64_t residual_dims[OM_MAX_RANK];
  om_fast_activation activation;
  float alpha, beta;
} om_fast_epilogue;

/* Weights. Where they are constant the kernel packs them and does not read them again. */
typedef struct om_fast_weights {
  const float *data; /* NULL: those of each run. Any alignment */
  bool is_kept;      /* data stays as it is as long as om_fast: kernels may share the packed form */
} om_fast_weights;

/* y[batch..., rows, cols] = a[batch..., rows, depth] b[batch..., depth, cols]. Strides are in
 * elements; an operand's extent is 1 where it repeats. y's columns are dense. */
typedef struct om_fast_product {
  uint32_t rank; /* at least 2, at most OM_MAX_RANK */
  int64_t a_dims[OM_MAX_RANK], a_strides[OM_MAX_RANK];
  int64_t b_dims[OM_MAX_RANK], b_strides[OM_MAX_RANK];
  int64_t y_dims[OM_MAX_RANK], y_strides[OM_MAX_RANK]; /* strides: all 0 where y is dense */
  om_fast_weights b;
  om_fast_epilogue epilogue;
} om_fast_product;

enum { OM_FAST_AXES = 3 };

/* A Conv or a ConvTranspose; channels counted over all groups. */
typedef struct om_fast_conv {
  bool is_transposed;
  bool is_channels_last; /* x, y and the residual are [N, spatial..., C], else [N, C, spatial...] */
  int64_t batch, groups, in_channels, out_channels;
  int64_t in[OM_FAST_AXES], out[OM_FAST_AXES], kernel[OM_FAST_AXES];
  int64_t stride[OM_FAST_AXES], dilation[OM_FAST_AXES];
  int64_t pad_begin[OM_FAST_AXES]; /* at the end: what the extents say */
  om_fast_weights w;               /* constant ones only */
  om_fast_epilogue epilogue;
} om_fast_conv;

om_status om_fast_product_create(om_ctx *ctx,
                                 om_fast *fast,
                                 const om_fast_product *product,
                                 om_fast_kernel **out_kernel);
om_status om_fast_conv_create(om_ctx *ctx,
                              om_fast *fast,
                              const om_fast_conv *conv,
                              om_fast_kernel **out_kernel);
void om_fast_kernel_destroy(om_ctx *ctx, om_fast_kernel *kernel);

/* Bytes of scratch, aligned to 64, that a run needs. */
size_t om_fast_scratch_bytes(const om_fast_kernel *kernel);

typedef struct om_fast_operands {
  const void *x; /* a product's a */
  const void *w; /* a product's b; not read where it is packed */
  const void *bias;
  const void *residual;
  void *y;
  void *scratch;
} om_fast_operands;

om_status om_fast_run(om_ctx *ctx, om_fast_kernel *kernel, const om_fast_operands *operands);

#endif
