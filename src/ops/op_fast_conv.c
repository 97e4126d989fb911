/* Conv and ConvTranspose in fast mode. */
#include "ops/om_rule.h"
#include "ops/op_conv.h"
#include "ops/op_fast.h"

_Static_assert((int)OM_FAST_AXES == (int)OM_WINDOW_AXES, "the same axes");

om_status om_fast_conv_of(om_ctx *ctx,
                          const om_conv_params *params,
                          const om_tensor *x,
                          const om_tensor *weights,
                          om_fast_conv *out) {
  om_conv_shape shape;
  const om_window *w = &shape.window;
  if (!om_conv_fit(params, x, weights, &shape)) return om_window_fail(ctx, w);
  *out = (om_fast_conv){.is_transposed = shape.is_transposed,
                        .batch = w->batch,
                        .groups = shape.group,
                        .in_channels = shape.in_channels,
                        .out_channels = shape.out_channels,
                        .epilogue = {.scale = 1.0f}};
  for (int i = 0; i < OM_FAST_AXES; ++i) {
    out->in[i] = w->in[i];
    out->out[i] = w->out[i];
    out->kernel[i] = w->kernel[i];
    out->stride[i] = w->stride[i];
    out->dilation[i] = w->dilation[i];
    out->pad_begin[i] = w->pad_begin[i];
  }
  return OM_OK;
}

/* A long window over one channel is the transform of a signal: what follows takes the logarithm of
 * sums that cancel, and shows how each was rounded. The exact kernel adds with less error, and a
 * tile has no gain where a tap has one term. */
static bool is_transform(const om_fast_conv *conv) {
  enum { MANY_TAPS = 64 };
  return conv->in_channels == 1 && conv->groups == 1 &&
         conv->kernel[0] * conv->kernel[1] * conv->kernel[2] >= MANY_TAPS;
}

om_status om_conv_ready(om_ctx *ctx,
                        const om_op_call *call,
                        uint32_t kept_inputs,
                        om_fast *fast,
                        om_op_ready *out_ready) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *w = call->inputs[1];
  om_fast_conv conv;
  om_fast_kernel *kernel = NULL;
  if (x->dtype != OM_DTYPE_F32 || !w->data) return OM_OK;
  if (om_tensor_elems(x) == 0 || om_tensor_elems(call->outputs[0]) == 0) return OM_OK;
  OM_TRY(om_fast_conv_of(ctx, call->params, x, w, &conv));
  if (is_transform(&conv)) return OM_OK;
  conv.w = om_fast_weights_of(call, 1, kept_inputs);
  conv.epilogue.has_bias = om_rule_input(call, 2) != NULL;
  OM_TRY(om_fast_conv_create(ctx, fast, &conv, &kernel));
  om_fast_make_ready(kernel, om_fast_run_call, true, out_ready);
  return OM_OK;
}
