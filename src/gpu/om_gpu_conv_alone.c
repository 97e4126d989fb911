/* Convolutions in fast mode whose invocations share nothing (conv_alone.comp): at most two axes; a
 * ConvTranspose where it is a shuffle. */
#include "abi/conv_alone_params.h"
#include "abi/matmul_params.h"
#include "gpu/om_gpu_conv.h"
#include "gpu/om_gpu_matmul.h"

enum { GROUP = 32, PIXELS = 4 /* of one invocation; as conv_alone.comp has it */ };

/* By kind, the quads of channels of an invocation (1, 2, 4), and type. */
static const om_shader shaders[2][3][2] = {
    {{OM_SHADER_CONV_ALONE_4, OM_SHADER_CONV_ALONE_4_HALF},
     {OM_SHADER_CONV_ALONE_8, OM_SHADER_CONV_ALONE_8_HALF},
     {OM_SHADER_CONV_ALONE_16, OM_SHADER_CONV_ALONE_16_HALF}},
    {{OM_SHADER_CONV_ALONE_1X1_4, OM_SHADER_CONV_ALONE_1X1_4_HALF},
     {OM_SHADER_CONV_ALONE_1X1_8, OM_SHADER_CONV_ALONE_1X1_8_HALF},
     {OM_SHADER_CONV_ALONE_1X1_16, OM_SHADER_CONV_ALONE_1X1_16_HALF}},
};
static const om_shader shuffle_shaders[2] = {OM_SHADER_CONV_ALONE_SHUFFLE,
                                             OM_SHADER_CONV_ALONE_SHUFFLE_HALF};

static om_conv_alone_params describe(const om_gpu_conv *c) {
  const om_window *w = c->w;
  return (om_conv_alone_params){
      .row_quads = (uint32_t)om_gpu_pieces((uint64_t)w->out[2], PIXELS),
      .in_h = (uint32_t)w->in[1],
      .in_w = (uint32_t)w->in[2],
      .out_h = (uint32_t)w->out[1],
      .out_w = (uint32_t)w->out[2],
      .in_channels = c->in_channels,
      .out_channels = c->out_channels,
      .groups = (uint32_t)c->shape.group,
      .pad_h = (uint32_t)w->pad_begin[1],
      .pad_w = (uint32_t)w->pad_begin[2],
      .dilation_h = (uint32_t)w->dilation[1],
      .dilation_w = (uint32_t)w->dilation[2],
      .kernel_h = (uint32_t)w->kernel[1],
      .kernel_w = (uint32_t)w->kernel[2],
      .stride_h = (uint32_t)w->stride[1],
      .stride_w = (uint32_t)w->stride[2],
      .w_columns = c->columns,
  };
}

/* Appends the dispatch; `quads` are those of an invocation, `lines` runs of pixels that are cut
 * into quads. */
static const char *add(om_gpu_binder *b,
                       om_shader shader,
                       const om_gpu_conv *c,
                       om_gpu_operand weights,
                       om_conv_alone_params *params,
                       uint32_t quads,
                       uint64_t lines) {
  const om_gpu_operand operands[2] = {om_gpu_read(b, 0), weights};
  params->column_tiles = (uint32_t)om_gpu_pieces(params->w_columns, quads);
  params->count = (uint32_t)(c->slices * params->column_tiles * lines * params->row_quads);
  om_gpu_dispatch *d = om_gpu_add_conv_result(b, shader, c, operands, 2);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  om_gpu_spread_groups(b, om_gpu_pieces(params->count, GROUP), d->groups);
  return NULL;
}

/* One pixel: a product of images by channels. */
static const char *bind_vector(om_gpu_binder *b, const om_gpu_conv *c, om_gpu_operand weights) {
  om_matmul_params params = {
      .rows = c->slices,
      .cols = c->out_channels,
      .depth = c->in_channels,
      .a_row_stride = c->in_channels,
      .a_depth_stride = 1,
      .b_depth_stride = c->columns * 4,
      .b_col_stride = 1,
      .batch_1 = 1,
      .batch_2 = 1,
  };
  const om_gpu_operand operands[3] = {om_gpu_read(b, 0), weights, om_gpu_write(b, 0)};
  om_gpu_dispatch *d = om_gpu_add_matmul_alone(b, &params, 1, c->in_channels % 4 == 0, operands);
  if (!d) return om_gpu_no_memory;
  om_gpu_start_conv_chain(b, d, c);
  return NULL;
}

const char *om_gpu_bind_conv_alone(om_gpu_binder *b, const om_gpu_conv *c, om_gpu_operand weights) {
  const om_window *w = c->w;
  const bool is_half = c->dtype == OM_DTYPE_F16;
  const bool is_1x1 = c->taps == 1 && w->stride[1] == 1 && w->stride[2] == 1 &&
                      w->in[1] == w->out[1] && w->in[2] == w->out[2];
  const bool is_pointwise = is_1x1 && c->pixels % PIXELS == 0;
  const uint32_t size = c->columns == 1 ? 0 : c->columns == 2 ? 1 : 2;
  om_conv_alone_params params = describe(c);
  if (is_1x1 && c->pixels == 1 && c->shape.group == 1) return bind_vector(b, c, weights);
  if (is_pointwise) params.row_quads = c->pixels / PIXELS;
  return add(b,
             shaders[is_pointwise][size][is_half],
             c,
             weights,
             &params,
             1u << size,
             is_pointwise ? 1 : (uint64_t)params.out_h);
}

const char *om_gpu_bind_shuffle_alone(om_gpu_binder *b, const om_gpu_conv *c) {
  enum { QUADS = 2 };
  om_conv_alone_params params = describe(c);
  params.out_channels = c->out_channels * c->phases;
  params.w_columns = params.out_channels / 4;
  params.row_quads = (uint32_t)(c->w->in[1] * c->w->in[2]) / PIXELS;
  return add(b, shuffle_shaders[c->dtype == OM_DTYPE_F16], c, om_gpu_read(b, 1), &params, QUADS, 1);
}
