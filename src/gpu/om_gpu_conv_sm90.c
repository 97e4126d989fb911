/* Convolutions on Hopper's matrix hardware (sm90/conv_sm90.c), in fast mode.
 *
 * As for cooperative matrices the weights are made ready once a session, and the tile and the
 * number of slices are those with the least estimate; the other kernels keep what is estimated to
 * be no faster here.
 */
#include "base/om_thread.h"
#include "gpu/om_gpu_conv.h"

/* As conv_sm90.c has them. */
enum {
  TILE = 64,
  STEP_OCTETS = 8,
  OCTET = 8,
  STEP = STEP_OCTETS * OCTET,
  WINDOW_TAPS = 9,
  WINDOW_ROWS = 128,
  PART = STEP_OCTETS * TILE * OCTET, /* halves of a step's weights, of highs or lows */
  ROW_TAPS = 7,                      /* of a kernel's row, the most in an octet */
};

typedef enum conv_mode { GATHER, SHORT, WINDOW, ROWS } conv_mode;

/* A kernel and its cost (om_gpu_conv_cost.c). A round is a step of each slice. */
typedef struct conv_kernel {
  om_shader shader;
  conv_mode mode;
  uint32_t groups, slices; /* warpgroups beside each other, and of a part of the terms */
  om_gpu_conv_costs costs;
} conv_kernel;

static const conv_kernel kernels_float[] = {
    {OM_SHADER_CONV_SM90_SHORT, SHORT, 1, 1, {4, 7200, 1800, 614, 1400, 583}},
    {OM_SHADER_CONV_SM90_GATHER_1, GATHER, 1, 1, {4, 5740, 3300, 928, 1730, 599}},
    {OM_SHADER_CONV_SM90_GATHER_2, GATHER, 1, 2, {1, 3860, 2190, 894, 4360, 1350}},
    {OM_SHADER_CONV_SM90_GATHER_128_2, GATHER, 2, 2, {1, 3150, 1630, 594, 5940, 1760}},
    {OM_SHADER_CONV_SM90_GATHER_256_1, GATHER, 4, 1, {1, 5510, 1500, 572, 6100, 1460}},
    {OM_SHADER_CONV_SM90_WINDOW_2, WINDOW, 1, 2, {1, 5000, 1540, 588, 3180, 863}},
    {OM_SHADER_CONV_SM90_ROWS, ROWS, 1, 1, {4, 7990, 1500, 593, 455, 720}},
};

static const conv_kernel kernels_half[] = {
    {OM_SHADER_CONV_SM90_SHORT_HALF, SHORT, 1, 1, {5, 4940, 1740, 618, 845, 473}},
    {OM_SHADER_CONV_SM90_GATHER_1_HALF, GATHER, 1, 1, {4, 2630, 4460, 600, 1800, 293}},
    {OM_SHADER_CONV_SM90_GATHER_2_HALF, GATHER, 1, 2, {2, 3950, 2640, 656, 1930, 609}},
    {OM_SHADER_CONV_SM90_GATHER_4_HALF, GATHER, 1, 4, {1, 3440, 687, 271, 2700, 1340}},
    {OM_SHADER_CONV_SM90_GATHER_128_1_HALF, GATHER, 2, 1, {2, 1440, 5820, 717, 4490, 355}},
    {OM_SHADER_CONV_SM90_GATHER_128_2_HALF, GATHER, 2, 2, {1, 3190, 1590, 545, 4090, 911}},
    {OM_SHADER_CONV_SM90_WINDOW_1_HALF, WINDOW, 1, 1, {4, 4200, 1600, 604, 960, 337}},
    {OM_SHADER_CONV_SM90_WINDOW_4_HALF, WINDOW, 1, 4, {1, 5560, 1570, 678, 1040, 659}},
    {OM_SHADER_CONV_SM90_ROWS_HALF, ROWS, 1, 1, {4, 2420, 1190, 2270, 721, 349}},
};

static bool is_half(const om_gpu_conv *c) {
  return c->dtype == OM_DTYPE_F16;
}

/* ---- The kernel ---- */

static bool has_rows(const om_gpu_conv *c) {
  return c->in_channels < OCTET && c->taps > 1;
}

/* Its taps come in pairs that lie at even places: conv_sm90.c has the reason. */
static bool can_pair(const om_window *w) {
  return w->kernel[2] <= ROW_TAPS && w->kernel[2] % 2 == 1 && w->stride[2] % 2 == 0 &&
         w->pad_begin[2] % 2 == 1 && w->in[2] % 2 == 0 && w->dilation[1] == 1 &&
         w->dilation[2] == 1;
}

static bool can_window(const om_gpu_conv *c) {
  const om_window *w = c->w;
  for (int i = 1; i < OM_WINDOW_AXES; ++i) {
    if (w->kernel[i] != 3 || w->stride[i] != 1 || w->dilation[i] != 1 || w->pad_begin[i] != 1 ||
        w->in[i] != w->out[i]) {
      return false;
    }
  }
  return TILE + 2 * (w->in[2] + 1) + 2 <= WINDOW_ROWS;
}

static uint32_t step_count(const om_gpu_conv *c) {
  if (has_rows(c)) {
    return (uint32_t)om_gpu_pieces(c->in_channels * (uint64_t)c->w->kernel[1], STEP_OCTETS);
  }
  return (uint32_t)om_gpu_pieces(c->in_channels, STEP) * c->taps;
}

static bool can_take(const om_gpu_conv *c, const conv_kernel *k) {
  switch (k->mode) {
    case ROWS:
      return has_rows(c);
    case SHORT:
      return !has_rows(c) && step_count(c) == 1;
    case WINDOW:
      return !has_rows(c) && can_window(c);
    case GATHER:
    default:
      return !has_rows(c) && step_count(c) > 1;
  }
}

/* Of a window's kernel: pixels with a column and a row of zeros behind an image's. */
static uint64_t column_count(const om_gpu_conv *c, const conv_kernel *k) {
  const om_window *w = c->w;
  if (k->mode != WINDOW) return (uint64_t)w->batch * c->pixels;
  return (uint64_t)(w->batch * (w->in[1] + 1) * (w->in[2] + 1));
}

typedef struct conv_choice {
  const conv_kernel *kernel;
  uint64_t channel_tiles, tile_count;
  uint64_t slice_steps;
  uint64_t cost_ns;
} conv_choice;

static void try_kernel(const om_gpu_conv *c, const conv_kernel *k, conv_choice *best) {
  const uint32_t unit = k->mode == WINDOW ? WINDOW_TAPS : 1;
  conv_choice own = {.kernel = k,
                     .channel_tiles = om_gpu_pieces(c->out_channels, (uint64_t)TILE * k->groups),
                     .slice_steps = om_gpu_pieces(step_count(c) / unit, k->slices) * unit};
  own.tile_count = own.channel_tiles * om_gpu_pieces(column_count(c, k), TILE);
  own.cost_ns = om_gpu_conv_cut_cost(&k->costs, own.tile_count, own.slice_steps);
  if (can_take(c, k) && own.cost_ns < best->cost_ns) *best = own;
}

static conv_choice choose(const om_gpu_conv *c) {
  const conv_kernel *kernels = is_half(c) ? kernels_half : kernels_float;
  const size_t count = is_half(c) ? OM_COUNT_OF(kernels_half) : OM_COUNT_OF(kernels_float);
  conv_choice best = {.cost_ns = UINT64_MAX};
  for (size_t i = 0; i < count; ++i) try_kernel(c, &kernels[i], &best);
  return best;
}

/* ---- Weights ---- */

/* As many as the widest tile reads. */
static uint32_t weight_rows(const om_gpu_conv *c) {
  const uint32_t tiles = (uint32_t)om_gpu_pieces(c->out_channels, TILE);
  return TILE * (tiles > 2 ? (uint32_t)om_size_align(tiles, 4) : tiles);
}

/* The channels' factors, then the steps of each tile. */
static uint64_t weight_bytes(const om_gpu_conv *c) {
  const uint64_t rows = weight_rows(c);
  const uint64_t parts = is_half(c) ? 1 : 2;
  const uint64_t halves = rows / TILE * step_count(c) * parts * PART;
  return (is_half(c) ? 0 : rows * sizeof(float)) + halves * sizeof(uint16_t);
}

typedef struct filling {
  const om_gpu_conv *c;
  const char *source; /* may lie unaligned in the model's file */
  float *factors;     /* of float32 */
  uint16_t *steps;
} filling;

/* Where a term stands. */
typedef struct term_place {
  size_t step, octet, at;
  size_t octets; /* of the step, with terms */
} term_place;

static size_t at_most(size_t count, size_t most) {
  return count < most ? count : most;
}

static term_place find_term(const om_gpu_conv *c, size_t term) {
  if (has_rows(c)) {
    const size_t row = term / (size_t)c->w->kernel[2];
    const size_t tap = term % (size_t)c->w->kernel[2];
    const size_t left = c->in_channels * (size_t)c->w->kernel[1] - row / STEP_OCTETS * STEP_OCTETS;
    return (term_place){.step = row / STEP_OCTETS,
                        .octet = row % STEP_OCTETS,
                        .at = tap == 0 ? ROW_TAPS - 1 : tap - 1, /* the pairs first */
                        .octets = at_most(left, STEP_OCTETS)};
  }
  const size_t input = term / c->taps;
  const size_t left = c->in_channels - input / STEP * STEP;
  return (term_place){.step = input / STEP * c->taps + term % c->taps,
                      .octet = input % STEP / OCTET,
                      .at = input % OCTET,
                      .octets = (size_t)om_gpu_pieces(at_most(left, STEP), OCTET)};
}

/* The place of a channel's term, in halves: of its highs. */
static size_t place_of(const om_gpu_conv *c, size_t channel, const term_place *t) {
  const size_t parts = is_half(c) ? 1 : 2;
  return ((channel / TILE * step_count(c) + t->step) * parts * STEP_OCTETS + t->octet) * TILE *
             OCTET +
         channel % TILE * OCTET + t->at;
}

/* How often the step's sums are cut off from this term on: once for each two octets. */
static uint32_t count_cuts(const om_gpu_conv *c, const term_place *t) {
  return c->cuts_sums ? (uint32_t)(om_gpu_pieces(t->octets, 2) - t->octet / 2) : 0;
}

static void fill_half_channels(void *arg, size_t begin, size_t end) {
  const filling *f = arg;
  const om_gpu_conv *c = f->c;
  for (size_t m = begin; m < end; ++m) {
    for (size_t k = 0; k < c->terms; ++k) {
      const term_place t = find_term(c, k);
      const char *from = f->source + (m * c->terms + k) * sizeof(uint16_t);
      memcpy(&f->steps[place_of(c, m, &t)], from, sizeof(uint16_t));
    }
  }
}

static void split_channels(void *arg, size_t begin, size_t end) {
  const filling *f = arg;
  const om_gpu_conv *c = f->c;
  for (size_t m = begin; m < end; ++m) {
    const float scale = om_gpu_conv_weight_scale(c, f->source, m, &f->factors[m]);
    for (size_t k = 0; k < c->terms; ++k) {
      const float weight = om_gpu_float_at(f->source, m * c->terms + k);
      const term_place t = find_term(c, k);
      const om_gpu_conv_halves halves = om_gpu_conv_split(weight * scale, count_cuts(c, &t));
      uint16_t *to = &f->steps[place_of(c, m, &t)];
      to[0] = halves.high;
      to[PART] = halves.low;
    }
  }
}

/* An om_gpu_fill. target is zeroed. */
static void fill_weights(om_ctx *ctx, const void *arg, const void *source, void *target) {
  const om_gpu_conv *c = arg;
  filling f = {.c = c, .source = source, .factors = target, .steps = target};
  if (!is_half(c)) f.steps = (uint16_t *)(f.factors + weight_rows(c));
  om_parallel_for(ctx, c->out_channels, 8, is_half(c) ? fill_half_channels : split_channels, &f);
}

/* ---- The dispatch ---- */

bool om_gpu_takes_conv_sm90(const om_gpu_binder *b, const om_gpu_conv *c) {
  if (!om_gpu_takes_sm90(b, OM_MODE_FAST) || !om_gpu_conv_has_matrix_form(b, c)) return false;
  if (has_rows(c) ? !can_pair(c->w) : c->in_channels % OCTET != 0) return false;
  return weight_bytes(c) <= om_gpu_binder_limits(b)->max_binding_bytes &&
         choose(c).cost_ns < om_gpu_conv_cost_elsewhere(b, c);
}

static om_conv_matrix_params make_params(const om_gpu_conv *c, const conv_choice *choice) {
  om_conv_matrix_params params = om_gpu_conv_matrix_params(c);
  params.group_count = (uint32_t)choice->tile_count;
  params.tile_count = (uint32_t)choice->tile_count;
  params.channel_tiles = (uint32_t)choice->channel_tiles;
  params.columns = (uint32_t)column_count(c, choice->kernel);
  params.weight_rows = weight_rows(c);
  params.piece_count = step_count(c);
  params.round_count = (uint32_t)choice->slice_steps;
  return params;
}

const char *om_gpu_bind_conv_sm90(om_gpu_binder *b, const om_gpu_conv *c) {
  const conv_choice choice = choose(c);
  const om_conv_matrix_params params = make_params(c, &choice);
  const char *recipe = has_rows(c) ? "conv steps, rows" : "conv steps";
  const om_gpu_operand operands[2] = {
      om_gpu_read(b, 0),
      om_gpu_made_constant(b, 1, recipe, weight_bytes(c), fill_weights, c),
  };
  om_gpu_dispatch *d = om_gpu_add_conv_result(b, choice.kernel->shader, c, operands, 2);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->constants[0] = (uint32_t)c->w->kernel[1];
  d->constants[1] = (uint32_t)c->w->kernel[2];
  d->constant_count = 2;
  om_gpu_spread_groups(b, params.group_count, d->groups);
  return NULL;
}
