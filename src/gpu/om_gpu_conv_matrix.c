/* Convolutions on matrix hardware (conv_matrix.comp), in fast mode.
 *
 * The weights, a constant, are made ready once a session: put in the order in which the kernels
 * take terms, float32 split into pairs of float16. Which tile, and whether the terms are split
 * among workgroups, is estimated from the number of workgroups and their rounds; the portable
 * kernels keep what is estimated to be no faster here.
 */
#include "base/om_thread.h"
#include "gpu/om_gpu_conv.h"

enum {
  PIECE = 16,        /* terms; as conv_matrix.comp has it */
  INVERSE_BITS = 20, /* so, too */
  WIDEST_TILE = 64,  /* channels: tiles read past the last ones */
  FEW_CHANNELS = 8,  /* below, terms of several taps are mixed */
  EXPONENTS = 0x7f800000,
  MAGNITUDE = 0x7fffffff,
  EXPONENT_BIAS = 127,
  EXPONENT_SHIFT = 23,
  WEIGHT_EXPONENT = 14,                /* of a channel's largest weight */
  LEAST_FACTOR = 32 << EXPONENT_SHIFT, /* 2^-95: the scale of a smaller one is near the end */
};

/* A tile: the pieces of a round of all slices, and what it takes (om_gpu_conv_cost.c); 100 KiB of
 * shared memory hold the workgroups of a core. */
typedef struct conv_tile {
  uint32_t channels, columns;
  uint32_t pieces;
  om_gpu_conv_costs costs;
} conv_tile;

enum { TILE_COUNT = 6, MIXED = TILE_COUNT - 1 };

/* By type: float32, float16. The last one is for mixed terms: they are few, so it is never split.
 */
static const conv_tile all_tiles[2][TILE_COUNT] = {
    {
        {64, 64, 1, {4, 5390, 401, 770, 1600, 190}},
        {64, 32, 4, {2, 3440, 2580, 1040, 1930, 569}},
        {32, 64, 2, {2, 3570, 2130, 633, 1460, 419}},
        {32, 32, 8, {2, 4350, 1190, 1370, 1140, 803}},
        {16, 64, 2, {3, 4350, 806, 590, 654, 291}},
        {64, 64, 1, {4, 5290, 1570, 554, 1100, 351}},
    },
    {
        {64, 64, 2, {4, 5020, 390, 666, 1220, 190}},
        {64, 32, 8, {3, 3640, 1990, 852, 1420, 613}},
        {32, 64, 4, {3, 4580, 867, 568, 834, 369}},
        {32, 32, 8, {4, 4420, 655, 722, 654, 389}},
        {16, 64, 4, {4, 4320, 820, 431, 424, 278}},
        {64, 64, 2, {4, 5160, 1530, 601, 792, 565}},
    },
};

/* Their kernels, by type and whether the terms are split. */
static const om_shader shaders[2][2][TILE_COUNT] = {
    {
        {
            OM_SHADER_CONV_MATRIX_64X64,
            OM_SHADER_CONV_MATRIX_64X32,
            OM_SHADER_CONV_MATRIX_32X64,
            OM_SHADER_CONV_MATRIX_32X32,
            OM_SHADER_CONV_MATRIX_16X64,
            OM_SHADER_CONV_MATRIX_MIXED,
        },
        {
            OM_SHADER_CONV_MATRIX_64X64,
            OM_SHADER_CONV_MATRIX_64X32,
            OM_SHADER_CONV_MATRIX_32X64,
            OM_SHADER_CONV_MATRIX_32X32,
            OM_SHADER_CONV_MATRIX_16X64,
            OM_SHADER_CONV_MATRIX_MIXED,
        },
    },
    {
        {
            OM_SHADER_CONV_MATRIX_64X64_HALF,
            OM_SHADER_CONV_MATRIX_64X32_HALF,
            OM_SHADER_CONV_MATRIX_32X64_HALF,
            OM_SHADER_CONV_MATRIX_32X32_HALF,
            OM_SHADER_CONV_MATRIX_16X64_HALF,
            OM_SHADER_CONV_MATRIX_MIXED_HALF,
        },
        {
            OM_SHADER_CONV_MATRIX_64X64_SPLIT_HALF,
            OM_SHADER_CONV_MATRIX_64X32_SPLIT_HALF,
            OM_SHADER_CONV_MATRIX_32X64_SPLIT_HALF,
            OM_SHADER_CONV_MATRIX_32X32_SPLIT_HALF,
            OM_SHADER_CONV_MATRIX_16X64_SPLIT_HALF,
            OM_SHADER_CONV_MATRIX_MIXED_HALF,
        },
    },
};

/* ---- The tile ---- */

static bool is_mixed(const om_gpu_conv *c) {
  return c->in_channels < FEW_CHANNELS && c->taps > 1;
}

static uint64_t tap_pieces(const om_gpu_conv *c) {
  return om_gpu_pieces(c->in_channels, PIECE);
}

static uint64_t piece_count(const om_gpu_conv *c) {
  return is_mixed(c) ? om_gpu_pieces(c->terms, PIECE) : tap_pieces(c) * c->taps;
}

static uint64_t column_count(const om_gpu_conv *c) {
  return (uint64_t)c->w->batch * c->pixels;
}

/* How a convolution is cut. */
typedef struct conv_cut {
  const conv_tile *tile;
  uint64_t channel_tiles, tile_count; /* of one split */
  uint64_t split_count;               /* above 1: a second pass adds them */
  uint64_t round_count;               /* of a split */
  uint64_t cost_ns;
} conv_cut;

static void try_tile(const om_gpu_conv *c, const conv_tile *tile, conv_cut *best) {
  enum { MOST_SPLITS = 16 };
  const uint64_t all_rounds = om_gpu_pieces(piece_count(c), tile->pieces);
  conv_cut cut = {.tile = tile, .channel_tiles = om_gpu_pieces(c->out_channels, tile->channels)};
  cut.tile_count = cut.channel_tiles * om_gpu_pieces(column_count(c), tile->columns);
  for (uint64_t splits = 1; splits <= (is_mixed(c) ? 1 : MOST_SPLITS); ++splits) {
    cut.round_count = om_gpu_pieces(all_rounds, splits);
    cut.split_count = splits;
    if (om_gpu_pieces(all_rounds, cut.round_count) != splits) continue;
    cut.cost_ns = om_gpu_conv_cut_cost(&tile->costs, cut.tile_count * splits, cut.round_count);
    cut.cost_ns += om_gpu_conv_split_cost(c, splits);
    if (cut.cost_ns < best->cost_ns) *best = cut;
  }
}

static conv_cut choose_cut(const om_gpu_conv *c) {
  const bool is_half = c->dtype == OM_DTYPE_F16;
  conv_cut best = {.cost_ns = UINT64_MAX};
  if (is_mixed(c)) {
    try_tile(c, &all_tiles[is_half][MIXED], &best);
    return best;
  }
  for (size_t i = 0; i < MIXED; ++i) try_tile(c, &all_tiles[is_half][i], &best);
  return best;
}

static bool has_matrix_hardware(const om_gpu_binder *b, bool is_half) {
  enum { SUBGROUP = 32 };
  const om_hal_limits *limits = om_gpu_binder_limits(b);
  for (size_t i = 0; i < TILE_COUNT; ++i) {
    const om_hal_shader *shader = om_shader_get(shaders[is_half][0][i]);
    if (shader->shared_bytes > limits->max_shared_bytes) return false;
    if (shader->workgroup_size[0] > limits->max_invocations) return false;
  }
  return om_gpu_binder_features(b)->cooperative_matrix && limits->subgroup_size == SUBGROUP;
}

/* ---- Weights ---- */

static uint64_t weight_rows(const om_gpu_conv *c) {
  return om_size_align(c->out_channels, PIECE);
}

/* Factors, the pieces, a piece of zeros, and what the widest tile reads past it. */
static uint64_t weight_bytes(const om_gpu_conv *c) {
  const bool is_half = c->dtype == OM_DTYPE_F16;
  const uint64_t rows = weight_rows(c);
  const uint64_t channel_bytes = (is_half ? 2u : 4u) * PIECE;
  return (is_half ? 0 : rows * sizeof(float)) +
         ((piece_count(c) + 1) * rows + WIDEST_TILE) * channel_bytes;
}

typedef struct filling {
  const om_gpu_conv *c;
  const char *source; /* may lie unaligned in the model's file */
  float *factors;     /* of float32 */
  uint16_t *pieces;
} filling;

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Where a channel's term stands among the pieces, in halves: of its highs. */
static size_t place_of(const om_gpu_conv *c, size_t channel, size_t term) {
  const size_t parts = c->dtype == OM_DTYPE_F16 ? 1 : 2;
  size_t at = term;
  if (!is_mixed(c)) at = term % c->taps * tap_pieces(c) * PIECE + term / c->taps;
  return ((at / PIECE) * weight_rows(c) + channel) * PIECE * parts + at % PIECE;
}

static void fill_half_channels(void *arg, size_t begin, size_t end) {
  const filling *f = arg;
  const om_gpu_conv *c = f->c;
  for (size_t m = begin; m < end; ++m) {
    for (size_t k = 0; k < c->terms; ++k) {
      const char *from = f->source + (m * c->terms + k) * sizeof(uint16_t);
      memcpy(&f->pieces[place_of(c, m, k)], from, sizeof(uint16_t));
    }
  }
}

float om_gpu_conv_weight_scale(const om_gpu_conv *c,
                               const char *source,
                               size_t channel,
                               float *out_factor) {
  const uint32_t exponents = 2 * EXPONENT_BIAS + WEIGHT_EXPONENT;
  uint32_t factor = LEAST_FACTOR;
  for (size_t k = 0; k < c->terms; ++k) {
    const uint32_t magnitude = bits_of(om_gpu_float_at(source, channel * c->terms + k)) & MAGNITUDE;
    if (magnitude > factor && magnitude < EXPONENTS) factor = magnitude;
  }
  factor &= EXPONENTS;
  *out_factor = float_of(factor);
  return float_of((exponents << EXPONENT_SHIFT) - factor);
}

om_gpu_conv_halves om_gpu_conv_split(float value, uint32_t cut_count) {
  const float cut_part = 0.36067376f * 0x1p-23f; /* 1 / (4 ln 2) */
  const bool is_number = (bits_of(value) & EXPONENTS) != EXPONENTS;
  const uint16_t high = is_number ? om_f16_from_f32(value) : 0;
  float left = value - om_f16_to_f32(high);
  if (is_number && left != 0.0f) left += value * ((float)cut_count * cut_part);
  return (om_gpu_conv_halves){.high = high, .low = om_f16_from_f32(left)};
}

static void split_channel(const filling *f, size_t m) {
  const om_gpu_conv *c = f->c;
  const float scale = om_gpu_conv_weight_scale(c, f->source, m, &f->factors[m]);
  for (size_t k = 0; k < c->terms; ++k) {
    const float weight = om_gpu_float_at(f->source, m * c->terms + k);
    const om_gpu_conv_halves halves = om_gpu_conv_split(weight * scale, c->cuts_sums); /* of 16 */
    uint16_t *to = &f->pieces[place_of(c, m, k)];
    to[0] = halves.high;
    to[PIECE] = halves.low;
  }
}

static void split_channels(void *arg, size_t begin, size_t end) {
  for (size_t m = begin; m < end; ++m) split_channel(arg, m);
}

/* An om_gpu_fill. target is zeroed. */
static void fill_weights(om_ctx *ctx, const void *arg, const void *source, void *target) {
  const om_gpu_conv *c = arg;
  const bool is_half = c->dtype == OM_DTYPE_F16;
  filling f = {.c = c, .source = source, .factors = target, .pieces = target};
  if (!is_half) f.pieces = (uint16_t *)(f.factors + weight_rows(c));
  om_parallel_for(ctx, c->out_channels, 8, is_half ? fill_half_channels : split_channels, &f);
}

/* ---- The dispatches ---- */

bool om_gpu_conv_has_matrix_form(const om_gpu_binder *b, const om_gpu_conv *c) {
  return !c->is_volume && !c->shape.is_transposed && c->shape.group == 1 &&
         c->out_elems <= INT32_MAX / 16 && om_gpu_input(b, 1)->data;
}

static bool can_take(const om_gpu_binder *b, const om_gpu_conv *c) {
  if (om_gpu_binder_mode(b) == OM_MODE_EXACT || !om_gpu_conv_has_matrix_form(b, c)) return false;
  /* What one of the shader's divisions by multiplication takes. */
  const uint64_t most = (uint64_t)1 << INVERSE_BITS;
  if (piece_count(c) * tap_pieces(c) >= most || c->taps > 1024) return false;
  return has_matrix_hardware(b, c->dtype == OM_DTYPE_F16) &&
         weight_bytes(c) <= om_gpu_binder_limits(b)->max_binding_bytes;
}

uint64_t om_gpu_conv_cost_elsewhere(const om_gpu_binder *b, const om_gpu_conv *c) {
  const uint64_t plain = om_gpu_choose_conv_plain(c).cost_ns;
  const uint64_t matrix = can_take(b, c) ? choose_cut(c).cost_ns : UINT64_MAX;
  return matrix < plain ? matrix : plain;
}

bool om_gpu_takes_conv_matrix(const om_gpu_binder *b, const om_gpu_conv *c) {
  return can_take(b, c) && choose_cut(c).cost_ns < om_gpu_choose_conv_plain(c).cost_ns;
}

om_conv_matrix_params om_gpu_conv_matrix_params(const om_gpu_conv *c) {
  const om_window *w = c->w;
  return (om_conv_matrix_params){
      .pixels = c->pixels,
      .in_h = (uint32_t)w->in[1],
      .in_w = (uint32_t)w->in[2],
      .out_w = (uint32_t)w->out[2],
      .in_channels = c->in_channels,
      .out_channels = c->out_channels,
      .pad_h = (uint32_t)w->pad_begin[1],
      .pad_w = (uint32_t)w->pad_begin[2],
      .dilation_h = (uint32_t)w->dilation[1],
      .dilation_w = (uint32_t)w->dilation[2],
      .stride_h = (uint32_t)w->stride[1],
      .stride_w = (uint32_t)w->stride[2],
  };
}

static om_conv_matrix_params make_params(const om_gpu_conv *c, const conv_cut *cut) {
  om_conv_matrix_params params = om_gpu_conv_matrix_params(c);
  params.group_count = (uint32_t)(cut->tile_count * cut->split_count);
  params.tile_count = (uint32_t)cut->tile_count;
  params.channel_tiles = (uint32_t)cut->channel_tiles;
  params.columns = (uint32_t)column_count(c);
  params.tap_pieces = (uint32_t)tap_pieces(c);
  params.tap_inverse = (uint32_t)om_gpu_pieces(1 << INVERSE_BITS, tap_pieces(c));
  params.weight_rows = (uint32_t)weight_rows(c);
  params.piece_count = (uint32_t)piece_count(c);
  params.round_count = (uint32_t)cut->round_count;
  return params;
}

const char *om_gpu_bind_conv_matrix(om_gpu_binder *b, const om_gpu_conv *c) {
  const conv_cut cut = choose_cut(c);
  const bool is_half = c->dtype == OM_DTYPE_F16;
  const bool is_split = cut.split_count > 1;
  const om_shader shader = shaders[is_half][is_split][cut.tile - all_tiles[is_half]];
  const om_conv_matrix_params params = make_params(c, &cut);
  const char *recipe = is_mixed(c) ? "conv pieces, mixed" : "conv pieces";
  const om_gpu_operand operands[2] = {
      om_gpu_read(b, 0),
      om_gpu_made_constant(b, 1, recipe, weight_bytes(c), fill_weights, c),
  };
  om_gpu_operand sums = {.kind = OM_GPU_NOTHING};
  if (is_split) sums = om_gpu_scratch(b, cut.split_count * c->out_elems * sizeof(float));
  om_gpu_dispatch *d =
      is_split ? om_gpu_add_dispatch(b, shader) : om_gpu_add_conv_result(b, shader, c, operands, 2);
  if (!d) return om_gpu_no_memory;
  if (is_split) {
    memcpy(d->operands, operands, sizeof operands);
    d->operands[2] = sums;
    d->operand_count = 3;
    d->has_chain = om_shader_has_chain(d->shader);
    d->chain_value = om_gpu_write(b, 0).index;
    d->chain.inner = d->chain.channels = 1;
    d->flops = 2 * c->out_elems * c->terms;
  }
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  const uint32_t constants[3] = {
      (uint32_t)c->w->kernel[1], (uint32_t)c->w->kernel[2], c->in_channels % 8 == 0};
  memcpy(d->constants, constants, sizeof constants);
  d->constant_count = OM_COUNT_OF(constants);
  om_gpu_spread_groups(b, params.group_count, d->groups);
  return is_split ? om_gpu_add_conv_sum(b, c, sums, (uint32_t)cut.split_count) : NULL;
}
