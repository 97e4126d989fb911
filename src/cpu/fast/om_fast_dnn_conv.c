/* Convolutions by oneDNN, inside always with the channels last: its code for that order is the
 * fastest on processors with and without AVX-512, and elementwise kernels may follow in any order.
 * Operands with the channels first are turned before and after.
 *
 * Two spatial axes, or three where the first is needed.
 */
#include "cpu/fast/om_fast_dnn.h"

enum { MAX_RANK = 2 + OM_FAST_AXES, MAX_WEIGHT_RANK = 3 + OM_FAST_AXES };

typedef struct place { /* how the spatial axes of om_fast_conv map to oneDNN's */
  int first;           /* 0: three axes, 1: two */
  int count;
} place;

/* The first axis is left out where its one result reads its one element: with a pad it may not. */
static place place_of(const om_fast_conv *c) {
  const bool is_flat = c->in[0] == 1 && c->out[0] == 1 && c->kernel[0] == 1 && c->pad_begin[0] == 0;
  return is_flat ? (place){1, 2} : (place){0, 3};
}

/* Dims [N, C, spatial...] with the strides of channels last, or first. */
static om_status describe_data(om_ctx *ctx,
                               const om_dnn_library *lib,
                               place at,
                               int64_t batch,
                               int64_t channels,
                               const int64_t *extents,
                               bool is_channels_last,
                               dnnl_memory_desc_t *out_desc) {
  int64_t dims[MAX_RANK] = {batch, channels};
  int64_t strides[MAX_RANK];
  int64_t stride = is_channels_last ? channels : 1;
  for (int i = at.count; i-- > 0;) {
    dims[2 + i] = extents[at.first + i];
    strides[2 + i] = stride;
    stride *= dims[2 + i];
  }
  strides[1] = is_channels_last ? 1 : stride;
  strides[0] = is_channels_last ? stride : stride * channels;
  return om_dnn_desc(ctx, lib, 2 + at.count, dims, strides, out_desc);
}

/* oneDNN's weights are [groups, out, in, kernel...], the first only where there are several; those
 * of a ConvTranspose lie as [groups, in, out, kernel...]. */
static om_status describe_weights(om_ctx *ctx,
                                  const om_dnn_library *lib,
                                  const om_fast_conv *c,
                                  place at,
                                  dnnl_memory_desc_t *out_given,
                                  dnnl_memory_desc_t *out_wanted) {
  const int64_t in = c->in_channels / c->groups;
  const int64_t out = c->out_channels / c->groups;
  int64_t dims[MAX_WEIGHT_RANK] = {c->groups, out, in};
  int64_t strides[MAX_WEIGHT_RANK];
  int64_t stride = 1;
  for (int i = at.count; i-- > 0;) {
    dims[3 + i] = c->kernel[at.first + i];
    strides[3 + i] = stride;
    stride *= dims[3 + i];
  }
  strides[2] = c->is_transposed ? stride * out : stride;
  strides[1] = c->is_transposed ? stride : stride * in;
  strides[0] = stride * in * out;
  const int skip = c->groups > 1 ? 0 : 1;
  const int rank = 3 + at.count - skip;
  OM_TRY(om_dnn_desc(ctx, lib, rank, dims + skip, strides + skip, out_given));
  return om_dnn_desc(ctx, lib, rank, dims + skip, NULL, out_wanted);
}

static om_status describe(om_ctx *ctx,
                          const om_fast_conv *c,
                          om_dnn_parts *parts,
                          dnnl_memory_desc_t *out_given) {
  const om_dnn_library *lib = parts->lib;
  const place at = place_of(c);
  const int64_t one = 1;
  int64_t strides[MAX_RANK];
  int64_t stride = c->out_channels;
  OM_TRY(describe_data(ctx, lib, at, c->batch, c->in_channels, c->in, true, &parts->x));
  OM_TRY(describe_data(ctx, lib, at, c->batch, c->out_channels, c->out, true, &parts->y));
  OM_TRY(describe_weights(ctx, lib, c, at, out_given, &parts->w));
  if (c->epilogue.has_bias) OM_TRY(om_dnn_desc(ctx, lib, 1, &c->out_channels, &one, &parts->bias));
  for (int i = at.count; i-- > 0;) {
    strides[2 + i] = stride;
    stride *= c->out[at.first + i];
  }
  strides[1] = 1;
  strides[0] = stride;
  om_fast_epilogue epilogue = c->epilogue;
  epilogue.residual_dims[0] = c->batch;
  epilogue.residual_dims[1] = c->out_channels;
  for (int i = 0; i < at.count; ++i) epilogue.residual_dims[2 + i] = c->out[at.first + i];
  return om_dnn_epilogue(ctx, &epilogue, 2 + at.count, strides, parts);
}

typedef struct window { /* in oneDNN's terms */
  dnnl_dims_t strides, dilates, begins, ends;
} window;

static void describe_window(const om_fast_conv *c, window *out) {
  const place at = place_of(c);
  *out = (window){{0}, {0}, {0}, {0}};
  for (int i = 0; i < at.count; ++i) {
    const int axis = at.first + i;
    const int64_t reach = (c->kernel[axis] - 1) * c->dilation[axis] + 1;
    const int64_t from = c->is_transposed ? c->in[axis] : c->out[axis];
    const int64_t to = c->is_transposed ? c->out[axis] : c->in[axis];
    out->strides[i] = c->stride[axis];
    out->dilates[i] = c->dilation[axis] - 1;
    out->begins[i] = c->pad_begin[axis];
    /* What the extents say, whatever rounding did. */
    out->ends[i] = c->stride[axis] * (from - 1) + reach - to - c->pad_begin[axis];
  }
  /* A result one element wide has no stride there. oneDNN 3.7.2 takes it all the same for that of
   * the rows, and gives wrong results, where there is one channel and the two differ. */
  const int last = at.count - 1;
  if (!c->is_transposed && c->out[at.first + last] == 1)
    out->strides[last] = out->strides[last - 1];
}

/* Every window touches the input. oneDNN 3.7.2 takes some others and reads outside of memory then:
 * 3 axes, a pad as long as the kernel. */
static bool windows_touch(const om_fast_conv *c) {
  const place at = place_of(c);
  window w;
  describe_window(c, &w);
  for (int i = 0; i < at.count; ++i) {
    const int64_t reach = (c->kernel[at.first + i] - 1) * c->dilation[at.first + i] + 1;
    if (w.begins[i] >= reach || w.ends[i] >= reach) return false;
  }
  return true;
}

static dnnl_status_t create_desc(const om_fast *fast, const om_fast_conv *c, om_dnn_parts *parts) {
  const om_dnn_library *lib = &fast->lib;
  window w;
  describe_window(c, &w);
  if (c->is_transposed) {
    return lib->deconvolution_forward_primitive_desc_create(&parts->primitive,
                                                            fast->engine,
                                                            dnnl_forward_inference,
                                                            dnnl_deconvolution_direct,
                                                            parts->x,
                                                            parts->w,
                                                            parts->bias,
                                                            parts->y,
                                                            w.strides,
                                                            w.dilates,
                                                            w.begins,
                                                            w.ends,
                                                            parts->attr);
  }
  return lib->convolution_forward_primitive_desc_create(&parts->primitive,
                                                        fast->engine,
                                                        dnnl_forward_inference,
                                                        dnnl_convolution_direct,
                                                        parts->x,
                                                        parts->w,
                                                        parts->bias,
                                                        parts->y,
                                                        w.strides,
                                                        w.dilates,
                                                        w.begins,
                                                        w.ends,
                                                        parts->attr);
}

/* Turns where the channels come first, and that is another order. */
static om_status add_turns(om_ctx *ctx,
                           const om_fast_conv *c,
                           const om_dnn_parts *parts,
                           om_fast_kernel *kernel) {
  om_status st = OM_OK;
  const om_dnn_library *lib = parts->lib;
  const place at = place_of(c);
  dnnl_memory_desc_t x = NULL;
  dnnl_memory_desc_t y = NULL;
  const int64_t in_places = c->in[0] * c->in[1] * c->in[2];
  const int64_t out_places = c->out[0] * c->out[1] * c->out[2];
  OM_GO(describe_data(ctx, lib, at, c->batch, c->in_channels, c->in, false, &x));
  OM_GO(describe_data(ctx, lib, at, c->batch, c->out_channels, c->out, false, &y));
  if (c->in_channels > 1 && in_places > 1) {
    OM_GO(om_dnn_turn_add(ctx, kernel, OM_DNN_X, x, parts->x));
  }
  if (c->out_channels > 1 && out_places > 1) {
    OM_GO(om_dnn_turn_add(ctx, kernel, OM_DNN_Y, y, parts->y));
  }
done:
  if (x) lib->memory_desc_destroy(x);
  if (y) lib->memory_desc_destroy(y);
  return st;
}

om_status om_fast_conv_create(om_ctx *ctx,
                              om_fast *fast,
                              const om_fast_conv *conv,
                              om_fast_kernel **out_kernel) {
  om_status st = OM_OK;
  const om_dnn_library *lib = &fast->lib;
  om_dnn_parts parts = {.lib = lib};
  bool is_there = false;
  dnnl_memory_desc_t given = NULL;
  om_fast_kernel *kernel = NULL;
  *out_kernel = NULL;
  OM_TRY(om_dnn_open(ctx, fast, &is_there));
  const int before = om_dnn_threads_begin(ctx, fast);
  if (!is_there || !windows_touch(conv)) goto done;
  OM_GO(describe(ctx, conv, &parts, &given));
  dnnl_status_t status = create_desc(fast, conv, &parts);
  /* The exact kernel has no limits. */
  if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) goto done;
  OM_GO(om_dnn_status(ctx, status, "a convolution"));
  OM_GO(om_dnn_kernel_create(ctx, fast, &parts, &conv->w, given, &kernel));
  if (!conv->is_channels_last) OM_GO(add_turns(ctx, conv, &parts, kernel));
  *out_kernel = kernel;
  kernel = NULL; /* the caller owns it now */
done:
  om_fast_kernel_destroy(ctx, kernel);
  if (given) lib->memory_desc_destroy(given);
  om_dnn_parts_deinit(&parts);
  om_dnn_threads_end(fast, before);
  return st;
}
