/* Convolutions of one input channel a group, of one or two axes. */
#include "abi/conv_depthwise_params.h"
#include "gpu/om_gpu_conv.h"

enum {
  DEPTHWISE_QUADS = 128, /* of one workgroup; as conv_depthwise.comp has it */
  WIDE_QUADS = 4,        /* of an invocation of conv_depthwise_wide.comp */
  /* Its invocations, at least: on an NVIDIA H200 (2026-11-30) 14112 were slower than four times as
   * many of conv_depthwise (4.6 and 5.1 us), 47040 faster (8.2 and 6.7). */
  WIDE_LEAST = 32768,
  /* Of float16 and 3x3 it may make rows of eight results: there 56448 invocations were no faster
   * than twice as many (6.6 and 6.4 us), 301056 were (18.2 and 19.7). */
  EIGHT_LEAST = 65536,
};

/* A lone axis as the first of the two: an invocation makes neighbours along that one. */
static om_window turned_window(const om_window *w) {
  om_window turned = *w;
  int64_t *const extents[] = {turned.in,
                              turned.out,
                              turned.kernel,
                              turned.stride,
                              turned.dilation,
                              turned.pad_begin,
                              turned.pad_end};
  if (!om_gpu_conv_is_untouched(w, 1) || w->in[1] != 1) return turned;
  for (size_t i = 0; i < OM_COUNT_OF(extents); ++i) {
    const int64_t first = extents[i][1];
    extents[i][1] = extents[i][2];
    extents[i][2] = first;
  }
  return turned;
}

/* Whether four quads are made at once: of whole ones in a row, and enough to keep a device busy. */
static bool is_wide_depthwise(const om_window *w, const om_conv_depthwise_params *p) {
  return p->in_w % 4 == 0 && p->out_w % 4 == 0 && p->pad_w == (uint32_t)w->kernel[2] / 2 &&
         w->stride[1] == w->stride[2] && p->quads / WIDE_QUADS >= WIDE_LEAST;
}

/* The kernel for rows of eight results of float16, or `wide`. */
static om_shader choose_eight(const om_conv_depthwise_params *p, om_shader wide) {
  const bool has_eights = p->in_w % 8 == 0 && p->out_w % 8 == 0;
  if (!has_eights || p->quads / (2 * WIDE_QUADS) < EIGHT_LEAST) return wide;
  return wide == OM_SHADER_CONV_DEPTHWISE_WIDE_K3S1_HALF ? OM_SHADER_CONV_DEPTHWISE_WIDE_K3S1_HALF_8
                                                         : wide;
}

const char *om_gpu_bind_conv_depthwise(om_gpu_binder *b, const om_gpu_conv *c) {
  static const om_gpu_forms any_window = OM_GPU_FORMS(CONV_DEPTHWISE);
  static const om_gpu_forms by_window[2][2] = {
      {OM_GPU_FORMS(CONV_DEPTHWISE_K3S1), OM_GPU_FORMS(CONV_DEPTHWISE_K3S2)},
      {OM_GPU_FORMS(CONV_DEPTHWISE_K5S1), OM_GPU_FORMS(CONV_DEPTHWISE_K5S2)},
  };
  static const om_gpu_forms wide[2][2] = {
      {OM_GPU_FORMS(CONV_DEPTHWISE_WIDE_K3S1), OM_GPU_FORMS(CONV_DEPTHWISE_WIDE_K3S2)},
      {OM_GPU_FORMS(CONV_DEPTHWISE_WIDE_K5S1), OM_GPU_FORMS(CONV_DEPTHWISE_WIDE_K5S2)},
  };
  const om_window turned = turned_window(c->w);
  const om_window *w = &turned;
  const om_gpu_operand operands[2] = {om_gpu_read(b, 0), om_gpu_read(b, 1)};
  const uint64_t column_quads = om_gpu_pieces((uint64_t)w->out[1], 4);
  const uint64_t columns = (uint64_t)(w->batch * c->shape.out_channels * w->out[2]);
  const om_conv_depthwise_params params = {
      .in_h = (uint32_t)w->in[1],
      .in_w = (uint32_t)w->in[2],
      .out_h = (uint32_t)w->out[1],
      .out_w = (uint32_t)w->out[2],
      .out_channels = (uint32_t)c->shape.out_channels,
      .multiplier = c->out_channels,
      .pad_h = (uint32_t)w->pad_begin[1],
      .pad_w = (uint32_t)w->pad_begin[2],
      .dilation_h = (uint32_t)w->dilation[1],
      .dilation_w = (uint32_t)w->dilation[2],
      .column_quads = (uint32_t)column_quads,
      .quads = (uint32_t)(column_quads * columns),
  };
  const bool is_plain = w->kernel[1] == w->kernel[2] && w->dilation[1] == 1 &&
                        w->dilation[2] == 1 && (w->kernel[1] == 3 || w->kernel[1] == 5) &&
                        w->stride[1] <= 2;
  const bool is_wide = is_plain && is_wide_depthwise(w, &params);
  const om_gpu_forms(*plain)[2] = is_wide ? wide : by_window;
  const om_gpu_forms *forms = is_plain ? &plain[w->kernel[1] == 5][w->stride[1] - 1] : &any_window;
  const om_shader form = om_gpu_form(b, forms, c->dtype);
  const om_shader shader = is_wide ? choose_eight(&params, form) : form;
  om_gpu_dispatch *d = om_gpu_add_conv_result(b, shader, c, operands, 2);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  om_gpu_set_conv_window(d, w);
  const uint32_t own_quads = is_wide ? WIDE_QUADS : 1;
  const uint32_t unit = DEPTHWISE_QUADS * (shader != form ? 2 * own_quads : own_quads);
  om_gpu_spread_groups(b, om_gpu_pieces(params.quads, unit), d->groups);
  return NULL;
}
