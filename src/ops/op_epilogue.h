/* What follows a product or a convolution in one operator: a residual is added, then an activation
 * applied. Operators that rewrites make for the CPU's fast mode have it. */
#ifndef OP_EPILOGUE_H
#define OP_EPILOGUE_H

#include "cpu/fast/om_fast.h"
#include "graph/om_op.h"

typedef struct om_epilogue_params {
  om_fast_activation activation;
  float alpha, beta;
} om_epilogue_params;

/* Attributes `activation` (a number of om_fast_activation), `alpha`, `beta`; all may be absent. */
om_status om_epilogue_resolve(om_ctx *ctx, const om_node *node, om_epilogue_params *out_params);

/* The activation that a node of the default domain is; OM_FAST_NONE: it is none. Attributes and
 * bounds are read; *constant gives inputs that are constant, else NULL. */
om_status om_epilogue_of_node(om_ctx *ctx,
                              const om_node *node,
                              const om_tensor *const *constants,
                              om_epilogue_params *out_params);

/* With the exact kernels: result = activation(y + residual); residual NULL: none. The shapes
 * broadcast to the result's. */
void om_epilogue_run(om_ctx *ctx,
                     const om_epilogue_params *params,
                     const om_tensor *y,
                     const om_tensor *residual,
                     om_tensor *result);

/* The fast kernel's description of it. residual NULL: none. */
void om_epilogue_describe(const om_epilogue_params *params,
                          bool has_bias,
                          const om_tensor *residual,
                          om_fast_epilogue *out_epilogue);

#endif
