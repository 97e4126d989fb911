/* Conv and ConvTranspose on the device: float32 and float16, one to three spatial axes, NCHW.
 *
 * Which kernel:
 *
 *     one input channel a group            conv_depthwise (om_gpu_conv_depthwise.c)
 *       of many results                    conv_depthwise_wide
 *     few pixels, 1x1                      conv_point, or matmul_few
 *     fast mode, NVIDIA Hopper             conv_sm90 (om_gpu_conv_sm90.c)
 *     fast mode, cooperative matrices      conv_matrix (om_gpu_conv_matrix.c)
 *     everything else                      conv_gemm (1x1 with planes of whole vec4: conv_1x1)
 *       few workgroups and a long sum      its split form, and conv_sum
 *     ConvTranspose                        conv_transpose
 *       its kernel as large as its stride  conv_shuffle
 *     three axes                           conv_volume, conv_volume_transpose
 *     fast mode, shared memory is dear     conv_alone (om_gpu_conv_alone.c): of one or two axes, no
 *                                          transpose but a shuffle
 *
 * The bias is the first item of the chain, so whatever follows elementwise joins the same pass.
 * Tile sizes and splits do not change the bits (docs/exact.md). om_gpu_conv_pack.c has the weights
 * of the portable kernels.
 */
#include "abi/conv_gemm_params.h"
#include "abi/conv_point_params.h"
#include "abi/conv_sum_params.h"
#include "gpu/om_gpu_conv.h"
#include "gpu/om_gpu_matmul.h"

enum {
  POINT_CHANNELS = 32, /* of one workgroup; as conv_point.comp has it */
  POINT_PIXELS = 8,    /* the most for conv_point: above, tiles of pixels are fuller */
  ENOUGH_GROUPS = 128, /* workgroups that keep a large device busy */
};

static uint32_t greatest_divisor(uint32_t a, uint32_t b) {
  while (b != 0) {
    const uint32_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Everything the kernels index must stay below 2^31, with room for a tile. */
static bool fits_indices(const om_window *w) {
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    const int64_t most = 1 << 24;
    if (w->in[i] > most || w->out[i] > most || w->pad_begin[i] > most || w->stride[i] > 1 << 12 ||
        w->dilation[i] > 1 << 12 || w->kernel[i] > 1 << 12) {
      return false;
    }
  }
  return true;
}

/* An untouched first axis becomes a part of the second where that is untouched, too. */
static void fold_depth(om_window *w) {
  if (!om_gpu_conv_is_untouched(w, 0) || !om_gpu_conv_is_untouched(w, 1)) return;
  w->in[1] *= w->in[0];
  w->out[1] *= w->out[0];
  w->in[0] = w->out[0] = 1;
}

static const char *describe(om_gpu_binder *b, om_gpu_conv *c) {
  const om_tensor *x = om_gpu_input(b, 0);
  const om_tensor *weights = om_gpu_input(b, 1);
  const om_conv_params *params = om_gpu_binder_node(b)->params;
  if (!om_gpu_output(b, 0)) return "nothing reads its result";
  if (!om_conv_fit(params, x, weights, &c->shape)) return "its window does not fit";
  fold_depth(&c->shape.window);
  c->dtype = x->dtype;
  c->elem_bytes = om_dtype_bits(x->dtype) / 8;
  c->w = &c->shape.window;
  if (!fits_indices(c->w)) return "an extent, kernel, stride or pad is too large for the kernel";
  c->in_channels = (uint32_t)(c->shape.in_channels / c->shape.group);
  c->out_channels = (uint32_t)(c->shape.out_channels / c->shape.group);
  c->taps = 1;
  c->phases = 1;
  c->pixels = 1;
  c->is_volume = c->w->in[0] != 1 || !om_gpu_conv_is_untouched(c->w, 0);
  for (int i = 0; i < OM_WINDOW_AXES; ++i) {
    const uint32_t stride = (uint32_t)c->w->stride[i];
    c->kernel_step[i] =
        c->shape.is_transposed ? stride / greatest_divisor(stride, (uint32_t)c->w->dilation[i]) : 1;
    c->taps *= (uint32_t)om_gpu_pieces((uint64_t)c->w->kernel[i], c->kernel_step[i]);
    c->phases *= c->shape.is_transposed ? stride : 1;
    c->pixels *= c->shape.is_transposed ? (uint32_t)om_gpu_pieces((uint64_t)c->w->out[i], stride)
                                        : (uint32_t)c->w->out[i];
  }
  c->terms = c->in_channels * c->taps;
  c->slices = (uint32_t)(c->w->batch * c->shape.group);
  c->columns = (uint32_t)om_gpu_pieces(c->out_channels, 4);
  c->out_elems = om_tensor_elems(om_gpu_output(b, 0));
  c->cuts_sums = om_gpu_binder_features(b)->cuts_matrix_sums;
  return NULL;
}

/* ---- Dispatches ---- */

void om_gpu_start_conv_chain(om_gpu_binder *b, om_gpu_dispatch *d, const om_gpu_conv *c) {
  d->has_chain = true;
  d->chain_value = om_gpu_write(b, 0).index;
  d->chain.inner = (uint32_t)om_window_elems(c->w->out);
  d->chain.channels = (uint32_t)c->shape.out_channels;
  d->chain.is_pair_fixed = true;
  d->flops = 2 * c->out_elems * c->terms;
  if (!om_gpu_input(b, 2)) return;
  d->chain.items[0] = (om_chain_item){.op = OM_CHAIN_Add, .source = OM_CHAIN_VECTOR};
  d->chain.item_count = 1;
  d->chain.operands[0] = om_gpu_read(b, 2);
  d->chain.operand_count = 1;
}

om_gpu_dispatch *om_gpu_add_conv_result(om_gpu_binder *b,
                                        om_shader shader,
                                        const om_gpu_conv *c,
                                        const om_gpu_operand *operands,
                                        uint32_t operand_count) {
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, shader);
  if (!d) return NULL;
  memcpy(d->operands, operands, operand_count * sizeof *operands);
  d->operands[operand_count] = om_gpu_write(b, 0);
  d->operand_count = operand_count + 1;
  om_gpu_start_conv_chain(b, d, c);
  return d;
}

static om_gpu_dispatch *add_result(om_gpu_binder *b,
                                   const om_gpu_forms *forms,
                                   const om_gpu_conv *c,
                                   const om_gpu_operand *operands,
                                   uint32_t operand_count) {
  return om_gpu_add_conv_result(b, om_gpu_form(b, forms, c->dtype), c, operands, operand_count);
}

static void set_params(om_gpu_dispatch *d, const void *params, size_t bytes) {
  memcpy(d->params, params, bytes);
  d->params_bytes = (uint32_t)bytes;
}

/* The first product of a squeeze-and-excite block that is too large to be made anew by what ends
 * the block (om_gpu_fuse_gate.c). */
static bool is_large_squeeze(const om_gpu_conv *c) {
  enum { MOST_TERMS = 16384 };
  return c->pixels == 1 && c->out_channels < c->in_channels &&
         c->in_channels * c->out_channels > MOST_TERMS;
}

static const char *bind_point(om_gpu_binder *b, const om_gpu_conv *c, om_gpu_operand weights) {
  const om_few few = {.rows = c->slices,
                      .depth = c->in_channels,
                      .cols = c->out_channels,
                      .a_row_stride = c->in_channels,
                      .b_pitch = (size_t)c->columns * 4,
                      .b = weights};
  if (is_large_squeeze(c) && om_gpu_takes_few(b, &few)) {
    om_gpu_dispatch *d = om_gpu_add_few(b, &few);
    if (!d) return om_gpu_no_memory;
    om_gpu_start_conv_chain(b, d, c);
    return NULL;
  }
  const om_gpu_operand operands[2] = {om_gpu_read(b, 0), weights};
  const om_conv_point_params params = {
      .in_channels = c->in_channels,
      .out_channels = c->out_channels,
      .pixels = c->pixels,
      .w_columns = c->columns * 4,
  };
  static const om_gpu_forms forms = OM_GPU_FORMS(CONV_POINT);
  om_gpu_dispatch *d = add_result(b, &forms, c, operands, 2);
  if (!d) return om_gpu_no_memory;
  set_params(d, &params, sizeof params);
  d->groups[0] = (uint32_t)om_gpu_pieces(c->out_channels, POINT_CHANNELS);
  d->groups[1] = c->pixels;
  d->groups[2] = c->slices;
  return NULL;
}

static om_conv_gemm_params gemm_params(const om_gpu_conv *c) {
  const om_window *w = c->w;
  return (om_conv_gemm_params){
      .in_d = (uint32_t)w->in[0],
      .out_d = (uint32_t)w->out[0],
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
      .w_columns = c->columns,
      .w_rows = c->terms,
      .kernel_step_h = c->kernel_step[1],
      .kernel_step_w = c->kernel_step[2],
      .tap_step_h = (uint32_t)(w->dilation[1] * c->kernel_step[1] / w->stride[1]),
      .tap_step_w = (uint32_t)(w->dilation[2] * c->kernel_step[2] / w->stride[2]),
      .splits = (uint32_t)om_gpu_pieces(c->terms, OM_CONV_GROUP_TERMS),
  };
}

/* A tile of conv_gemm.comp. */
typedef struct tile {
  uint32_t channels;
  uint32_t pixels;
  om_gpu_forms gemm;
  om_gpu_forms pointwise;
} tile;

static const tile tiles[OM_CONV_TILE_COUNT] = {
    {64, 64, OM_GPU_FORMS(CONV_GEMM_64X64), OM_GPU_FORMS(CONV_1X1_64X64)},
    {32, 64, OM_GPU_FORMS(CONV_GEMM_32X64), OM_GPU_FORMS(CONV_1X1_32X64)},
    {32, 32, OM_GPU_FORMS(CONV_GEMM_32X32), OM_GPU_FORMS(CONV_1X1_32X32)},
    {16, 64, OM_GPU_FORMS(CONV_GEMM_16X64), OM_GPU_FORMS(CONV_1X1_16X64)},
};

static uint64_t group_count(const om_gpu_conv *c, const tile *t) {
  return om_gpu_pieces(c->pixels, t->pixels) * om_gpu_pieces(c->out_channels, t->channels) *
         c->slices;
}

/* Of exact mode the largest tile that still makes work for the whole device. */
static const tile *choose_tile(const om_gpu_binder *b, const om_gpu_conv *c) {
  om_gpu_conv_tile i = OM_CONV_TILE_64X64;
  if (om_gpu_binder_mode(b) != OM_MODE_EXACT) return &tiles[om_gpu_choose_conv_plain(c).tile];
  if (c->out_channels <= 16) return &tiles[OM_CONV_TILE_16X64];
  if (c->out_channels <= 32) i = OM_CONV_TILE_32X64;
  while (i < OM_CONV_TILE_32X32 && group_count(c, &tiles[i]) < 2 * ENOUGH_GROUPS) ++i;
  return &tiles[i];
}

static const char *set_grid(
    om_gpu_binder *b, om_gpu_dispatch *d, const om_gpu_conv *c, const tile *t, uint64_t slices) {
  const uint64_t groups[3] = {(uint32_t)om_gpu_pieces(c->pixels, t->pixels),
                              (uint32_t)om_gpu_pieces(c->out_channels, t->channels),
                              slices};
  for (int i = 0; i < 3; ++i) {
    if (groups[i] > om_gpu_binder_limits(b)->max_groups[i]) {
      return om_gpu_reason(b,
                           "it needs %llu workgroups in one dimension of the grid",
                           (unsigned long long)groups[i]);
    }
    d->groups[i] = (uint32_t)groups[i];
  }
  return NULL;
}

const char *om_gpu_add_conv_sum(om_gpu_binder *b,
                                const om_gpu_conv *c,
                                om_gpu_operand sums,
                                uint32_t split_count) {
  static const om_gpu_forms forms = OM_GPU_FORMS(CONV_SUM);
  const om_conv_sum_params params = {.elems = (uint32_t)c->out_elems,
                                     .splits = split_count,
                                     .pixels = (uint32_t)om_window_elems(c->w->out),
                                     .channels = (uint32_t)c->shape.out_channels};
  om_gpu_dispatch *d = add_result(b, &forms, c, &sums, 1);
  if (!d) return om_gpu_no_memory;
  set_params(d, &params, sizeof params);
  om_gpu_spread_groups(b, om_gpu_pieces(c->out_elems, OM_CONV_FLAT_THREADS), d->groups);
  return NULL;
}

static const char *bind_split(om_gpu_binder *b,
                              const om_gpu_conv *c,
                              om_gpu_operand weights,
                              bool is_pointwise) {
  const tile *t = &tiles[OM_CONV_TILE_32X32];
  const om_conv_gemm_params params = gemm_params(c);
  const om_gpu_operand sums = om_gpu_scratch(b, c->out_elems * params.splits * sizeof(float));
  const om_gpu_operand x = om_gpu_read(b, 0);
  static const om_gpu_forms forms[2] = {OM_GPU_FORMS(CONV_GEMM_SPLIT),
                                        OM_GPU_FORMS(CONV_1X1_SPLIT)};
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, om_gpu_form(b, &forms[is_pointwise], c->dtype));
  if (!d) return om_gpu_no_memory;
  d->operands[0] = x;
  d->operands[1] = weights;
  d->operands[2] = sums;
  d->operand_count = 3;
  set_params(d, &params, sizeof params);
  om_gpu_set_conv_window(d, c->w);
  const char *reason = set_grid(b, d, c, t, (uint64_t)c->slices * params.splits);
  return reason ? reason : om_gpu_add_conv_sum(b, c, sums, params.splits);
}

/* A split costs one more dispatch: it pays where the device is nearly empty and sums are long. */
static bool wants_split(const om_gpu_binder *b, const om_gpu_conv *c) {
  const uint32_t splits = (uint32_t)om_gpu_pieces(c->terms, OM_CONV_GROUP_TERMS);
  const bool pays = om_gpu_binder_mode(b) != OM_MODE_EXACT
                        ? om_gpu_choose_conv_plain(c).is_split
                        : splits >= 3 && group_count(c, &tiles[OM_CONV_TILE_32X32]) < ENOUGH_GROUPS;
  return pays &&
         c->out_elems * splits * sizeof(float) <= om_gpu_binder_limits(b)->max_binding_bytes &&
         c->out_elems * splits <= UINT32_MAX;
}

static const char *bind_volume(om_gpu_binder *b, const om_gpu_conv *c, om_gpu_operand weights) {
  const om_window *w = c->w;
  static const tile forward = {32, 64, OM_GPU_FORMS(CONV_VOLUME), OM_GPU_FORMS(CONV_VOLUME)};
  static const tile transposed = {
      32, 64, OM_GPU_FORMS(CONV_VOLUME_TRANSPOSE), OM_GPU_FORMS(CONV_VOLUME_TRANSPOSE)};
  const tile *t = c->shape.is_transposed ? &transposed : &forward;
  const om_conv_gemm_params params = gemm_params(c);
  const om_gpu_operand operands[2] = {om_gpu_read(b, 0), weights};
  om_gpu_dispatch *d = add_result(b, &t->gemm, c, operands, 2);
  if (!d) return om_gpu_no_memory;
  set_params(d, &params, sizeof params);
  om_gpu_set_conv_window(d, w);
  d->constants[4] = (uint32_t)w->kernel[0];
  d->constants[5] = (uint32_t)w->stride[0];
  d->constants[6] = (uint32_t)w->pad_begin[0];
  d->constants[7] = (uint32_t)w->dilation[0];
  d->constants[8] = c->kernel_step[0];
  d->constants[9] = (uint32_t)(w->dilation[0] * c->kernel_step[0] / w->stride[0]);
  d->constant_count = 10;
  return set_grid(b, d, c, t, (uint64_t)c->slices * c->phases);
}

bool om_gpu_conv_is_pointwise(const om_gpu_conv *c) {
  const om_window *w = c->w;
  return c->taps == 1 && w->stride[1] == 1 && w->stride[2] == 1 && w->in[1] == w->out[1] &&
         w->in[2] == w->out[2] && w->pad_begin[1] == 0 && w->pad_begin[2] == 0 &&
         c->pixels % 4 == 0;
}

static const char *bind_gemm(om_gpu_binder *b, const om_gpu_conv *c, om_gpu_operand weights) {
  const bool is_pointwise = om_gpu_conv_is_pointwise(c);
  if (wants_split(b, c)) return bind_split(b, c, weights, is_pointwise);
  const tile *t = choose_tile(b, c);
  const om_conv_gemm_params params = gemm_params(c);
  const om_gpu_operand operands[2] = {om_gpu_read(b, 0), weights};
  om_gpu_dispatch *d = add_result(b, is_pointwise ? &t->pointwise : &t->gemm, c, operands, 2);
  if (!d) return om_gpu_no_memory;
  set_params(d, &params, sizeof params);
  om_gpu_set_conv_window(d, c->w);
  return set_grid(b, d, c, t, c->slices);
}

static const char *bind_transposed(om_gpu_binder *b, const om_gpu_conv *c, om_gpu_operand weights) {
  static const tile low = {
      16, 64, OM_GPU_FORMS(CONV_TRANSPOSE_16X64), OM_GPU_FORMS(CONV_TRANSPOSE_16X64)};
  static const tile wide = {
      32, 64, OM_GPU_FORMS(CONV_TRANSPOSE_32X64), OM_GPU_FORMS(CONV_TRANSPOSE_32X64)};
  const tile *t = c->out_channels <= 16 ? &low : &wide;
  const om_conv_gemm_params params = gemm_params(c);
  const om_gpu_operand operands[2] = {om_gpu_read(b, 0), weights};
  om_gpu_dispatch *d = add_result(b, &t->gemm, c, operands, 2);
  if (!d) return om_gpu_no_memory;
  set_params(d, &params, sizeof params);
  om_gpu_set_conv_window(d, c->w);
  return set_grid(b, d, c, t, (uint64_t)c->slices * c->phases);
}

/* Kernel and stride are the same and nothing is padded or left over: no two taps meet. */
static bool is_shuffle(const om_gpu_conv *c) {
  const om_window *w = c->w;
  for (int i = 1; i < OM_WINDOW_AXES; ++i) {
    if (w->kernel[i] != w->stride[i] || w->dilation[i] != 1 || w->pad_begin[i] != 0 ||
        w->out[i] != w->in[i] * w->stride[i]) {
      return false;
    }
  }
  /* Rows of the tile are dealt out in runs of the stride; weights and planes are whole vec4. */
  return c->shape.group == 1 && 16 % w->stride[2] == 0 && w->in[1] * w->in[2] % 4 == 0 &&
         (uint64_t)c->out_channels * c->phases % 4 == 0;
}

/* The weights [C, M, kernel] are a matrix of terms by (channel, phase) as they are. */
static const char *bind_shuffle(om_gpu_binder *b, const om_gpu_conv *c) {
  static const tile shuffle_tiles[] = {
      {64, 64, OM_GPU_FORMS(CONV_SHUFFLE_64X64), OM_GPU_FORMS(CONV_SHUFFLE_64X64)},
      {32, 64, OM_GPU_FORMS(CONV_SHUFFLE_32X64), OM_GPU_FORMS(CONV_SHUFFLE_32X64)},
      {16, 64, OM_GPU_FORMS(CONV_SHUFFLE_16X64), OM_GPU_FORMS(CONV_SHUFFLE_16X64)},
  };
  if (om_gpu_works_alone(b)) return om_gpu_bind_shuffle_alone(b, c);
  om_gpu_conv as_1x1 = *c;
  as_1x1.out_channels = c->out_channels * c->phases;
  as_1x1.pixels = (uint32_t)(c->w->in[1] * c->w->in[2]);
  size_t i = as_1x1.out_channels <= 16 ? 2 : as_1x1.out_channels <= 32 ? 1 : 0;
  while (i + 1 < OM_COUNT_OF(shuffle_tiles) &&
         group_count(&as_1x1, &shuffle_tiles[i]) < 2 * ENOUGH_GROUPS) {
    ++i;
  }
  om_conv_gemm_params params = gemm_params(c);
  params.w_columns = as_1x1.out_channels / 4;
  params.w_rows = c->in_channels;
  const om_gpu_operand operands[2] = {om_gpu_read(b, 0), om_gpu_read(b, 1)};
  om_gpu_dispatch *d = add_result(b, &shuffle_tiles[i].gemm, c, operands, 2);
  if (!d) return om_gpu_no_memory;
  set_params(d, &params, sizeof params);
  om_gpu_set_conv_window(d, c->w);
  return set_grid(b, d, &as_1x1, &shuffle_tiles[i], c->slices);
}

/* 1x1, of few pixels. */
static bool is_point(const om_gpu_binder *b, const om_gpu_conv *c) {
  const om_window *w = c->w;
  return !c->is_volume && !c->shape.is_transposed && c->shape.group == 1 && c->taps == 1 &&
         w->pad_begin[1] == 0 && w->pad_begin[2] == 0 && w->in[1] == w->out[1] &&
         w->in[2] == w->out[2] && c->pixels <= POINT_PIXELS &&
         c->slices <= om_gpu_binder_limits(b)->max_groups[2];
}

static const char *bind(om_gpu_binder *b) {
  om_gpu_conv c;
  om_gpu_operand weights = {.kind = OM_GPU_NOTHING};
  const char *reason = describe(b, &c);
  if (reason) return reason;
  if (!c.is_volume && !c.shape.is_transposed && c.in_channels == 1)
    return om_gpu_bind_conv_depthwise(b, &c);
  if (!c.is_volume && c.shape.is_transposed && is_shuffle(&c)) return bind_shuffle(b, &c);
  if (!is_point(b, &c) && om_gpu_takes_conv_sm90(b, &c)) return om_gpu_bind_conv_sm90(b, &c);
  if (!is_point(b, &c) && om_gpu_takes_conv_matrix(b, &c)) return om_gpu_bind_conv_matrix(b, &c);
  reason = om_gpu_packed_conv(b, &c, &weights);
  if (reason) return reason;
  if (c.is_volume) return bind_volume(b, &c, weights);
  if (c.shape.is_transposed) return bind_transposed(b, &c, weights);
  if (om_gpu_works_alone(b)) return om_gpu_bind_conv_alone(b, &c, weights);
  return is_point(b, &c) ? bind_point(b, &c, weights) : bind_gemm(b, &c, weights);
}

#define OM_GPU_CONV_ENTRY(name)           \
  {.domain = "",                          \
   .type = name,                          \
   .dtypes = OM_DT_REAL,                  \
   .has_exact = true,                     \
   .primitives = OM_PRIMITIVE_ARITHMETIC, \
   .bind = bind}

extern const om_gpu_op om_gpu_ops_conv[];
const om_gpu_op om_gpu_ops_conv[] = {
    OM_GPU_CONV_ENTRY("Conv"),
    OM_GPU_CONV_ENTRY("ConvTranspose"),
    {.type = NULL},
};
