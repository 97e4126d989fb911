/* Conv and ConvTranspose: attributes, and the concrete shape of one application. */
#ifndef OP_CONV_H
#define OP_CONV_H

#include "cpu/exact/om_conv.h"
#include "ops/op_window.h"

typedef struct om_conv_params {
  om_window_params window;
  int64_t group;
  bool is_transposed;
  bool has_output_shape;                  /* of a ConvTranspose */
  int64_t output_padding[OM_WINDOW_AXES]; /* of a ConvTranspose; in the attribute's order */
  int64_t output_shape[OM_WINDOW_AXES];
} om_conv_params;

typedef struct om_conv_shape {
  om_window window; /* of a ConvTranspose: in and out as they are; pads as ONNX computes them */
  int64_t group;
  int64_t in_channels;  /* of all groups */
  int64_t out_channels; /* of all groups */
  bool is_transposed;
} om_conv_shape;

/* The shape for these operands, which om_conv_infer has accepted (or is about to check: false
 * says that the window does not fit, see window.bad_axis). For the CPU and devices alike. */
bool om_conv_fit(const om_conv_params *params,
                 const om_tensor *x,
                 const om_tensor *w,
                 om_conv_shape *out_shape);

/* For operators that are a Conv with other types: its attributes into om_conv_params; the check of
 * its operands' shapes (types must be equal); and the pass that computes it. */
om_status om_conv_resolve(om_ctx *ctx, const om_node *node, void *out_params);
om_status om_conv_resolve_transposed(om_ctx *ctx, const om_node *node, void *out_params);
om_status om_conv_check(om_ctx *ctx,
                        const om_conv_params *params,
                        const om_tensor *x,
                        const om_tensor *w);
om_conv_pass om_conv_forward_pass(const om_conv_shape *shape);

#endif
