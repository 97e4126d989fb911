/* Matrix products on matrix hardware (matmul_matrix.comp), in fast mode.
 *
 * b, a constant, is made ready once a session: float32 is split into pairs of float16
 * (om_gpu_split.h), float16 is filled up to whole tiles. Which tile, and whether the depth is cut
 * into chunks, is estimated from the number of workgroups and their steps; the portable kernels
 * keep what is estimated to be no faster here.
 */
#include "gpu/om_gpu_matmul.h"
#include "gpu/om_gpu_split.h"

enum {
  OM_MATRIX_UNIT_BYTES = 16,
  OM_HALF_TERMS = 128, /* a constant of float16 is filled up to these */
  OM_HALF_COLS = 8,
};

/* A tile and its cost: terms of a step of all its slices, nanoseconds of a step, and those that a
 * workgroup takes beside its steps; of one alone on its core, and of two there that are at work
 * together. All workgroups of a core had 50 KB of shared memory between them, so most tiles take
 * turns. Measured on an NVIDIA H200 (2026-11); only the proportions matter. */
typedef struct om_matrix_tile {
  uint32_t rows, cols, terms;
  uint32_t step_ns, once_ns;
  uint32_t pair_step_ns, pair_once_ns;
} om_matrix_tile;

static const om_matrix_tile float_tiles[] = {
    {128, 128, 32, 1145, 2422, 2290, 4844},
    {96, 128, 32, 995, 1535, 1990, 3070},
    {64, 64, 64, 1084, 1288, 2168, 2576},
    {32, 64, 64, 834, 1817, 1549, 2884},
    {32, 32, 128, 1014, 1083, 2028, 2166},
};

static const om_matrix_tile half_tiles[] = {
    {128, 128, 64, 953, 1971, 1906, 3942},
    {96, 128, 64, 719, 2866, 1438, 5732},
    {96, 64, 64, 859, 518, 984, 1035},
    {64, 64, 128, 839, 1294, 1678, 2588},
    {32, 64, 128, 829, 383, 1658, 766},
    {32, 32, 128, 803, 90, 1304, 180},
};

/* Their kernels: of whole products, and of chunks. */
static const om_shader float_shaders[][2] = {
    {OM_SHADER_MATMUL_MATRIX_128X128, OM_SHADER_MATMUL_MATRIX_128X128},
    {OM_SHADER_MATMUL_MATRIX_96X128, OM_SHADER_MATMUL_MATRIX_96X128},
    {OM_SHADER_MATMUL_MATRIX_64X64, OM_SHADER_MATMUL_MATRIX_64X64},
    {OM_SHADER_MATMUL_MATRIX_32X64, OM_SHADER_MATMUL_MATRIX_32X64},
    {OM_SHADER_MATMUL_MATRIX_32X32, OM_SHADER_MATMUL_MATRIX_32X32},
};

static const om_shader half_shaders[][2] = {
    {OM_SHADER_MATMUL_MATRIX_128X128_HALF, OM_SHADER_MATMUL_MATRIX_128X128_CHUNKS_HALF},
    {OM_SHADER_MATMUL_MATRIX_96X128_HALF, OM_SHADER_MATMUL_MATRIX_96X128_CHUNKS_HALF},
    {OM_SHADER_MATMUL_MATRIX_96X64_HALF, OM_SHADER_MATMUL_MATRIX_96X64_CHUNKS_HALF},
    {OM_SHADER_MATMUL_MATRIX_64X64_HALF, OM_SHADER_MATMUL_MATRIX_64X64_CHUNKS_HALF},
    {OM_SHADER_MATMUL_MATRIX_32X64_HALF, OM_SHADER_MATMUL_MATRIX_32X64_CHUNKS_HALF},
    {OM_SHADER_MATMUL_MATRIX_32X32_HALF, OM_SHADER_MATMUL_MATRIX_32X32_CHUNKS_HALF},
};

/* By type: float32, float16. */
static const struct {
  const om_matrix_tile *tiles;
  const om_shader (*shaders)[2];
  size_t count;
} all_tiles[2] = {
    {float_tiles, float_shaders, OM_COUNT_OF(float_tiles)},
    {half_tiles, half_shaders, OM_COUNT_OF(half_tiles)},
};

/* How a product is cut. */
typedef struct om_matrix_cut {
  const om_matrix_tile *tile;
  om_shader shader;
  uint64_t tile_count;  /* of one chunk */
  uint64_t chunk_count; /* above 1: a second pass adds them */
  uint64_t chunk_depth;
  uint64_t cost_ns;
} om_matrix_cut;

/* Nanoseconds that all workgroups take on a device of many cores: the one with the most. */
static uint64_t cut_cost(const om_matrix_cut *cut) {
  enum { CORES = 132 };
  const om_matrix_tile *tile = cut->tile;
  const uint64_t most = om_gpu_pieces(cut->tile_count * cut->chunk_count, CORES);
  const uint64_t steps = om_gpu_pieces(cut->chunk_depth, tile->terms);
  return most / 2 * (steps * tile->pair_step_ns + tile->pair_once_ns) +
         most % 2 * (steps * tile->step_ns + tile->once_ns);
}

static om_matrix_cut choose_cut(const om_matmul *m, bool is_half) {
  enum { SECOND_PASS_NS = 2800, MOST_CHUNKS = 8, LEAST_DEPTH = 128 };
  const uint64_t result_bytes = (uint64_t)m->rows * m->cols * sizeof(float);
  om_matrix_cut best = {.cost_ns = UINT64_MAX};
  for (size_t i = 0; i < all_tiles[is_half].count; ++i) {
    const om_matrix_tile *tile = &all_tiles[is_half].tiles[i];
    for (uint64_t chunks = 1; chunks <= MOST_CHUNKS; ++chunks) {
      om_matrix_cut cut = {.tile = tile,
                           .shader = all_tiles[is_half].shaders[i][chunks > 1],
                           .chunk_count = chunks,
                           .chunk_depth = m->depth};
      if (chunks > 1) {
        cut.chunk_depth = om_size_align(om_gpu_pieces(m->depth, chunks), tile->terms);
        if (cut.chunk_depth < LEAST_DEPTH) break;
        if (om_gpu_pieces(m->depth, cut.chunk_depth) != chunks) continue;
        cut.cost_ns = SECOND_PASS_NS + chunks * result_bytes / 1024; /* 1 TB/s */
      }
      cut.tile_count = om_gpu_pieces(m->rows, tile->rows) * om_gpu_pieces(m->cols, tile->cols);
      cut.cost_ns += cut_cost(&cut);
      if (cut.cost_ns < best.cost_ns) best = cut;
    }
  }
  return best;
}

static bool has_matrix_hardware(const om_gpu_binder *b) {
  enum { SUBGROUP = 32 };
  const om_hal_limits *limits = om_gpu_binder_limits(b);
  for (size_t is_half = 0; is_half < 2; ++is_half) {
    for (size_t i = 0; i < all_tiles[is_half].count; ++i) {
      const om_hal_shader *shader = om_shader_get(all_tiles[is_half].shaders[i][0]);
      if (shader->shared_bytes > limits->max_shared_bytes) return false;
      if (shader->workgroup_size[0] > limits->max_invocations) return false;
    }
  }
  return om_gpu_binder_features(b)->cooperative_matrix && limits->subgroup_size == SUBGROUP;
}

/* ---- b ---- */

static uint64_t half_bytes(size_t depth, size_t cols) {
  return (uint64_t)om_size_align(depth, OM_HALF_TERMS) * om_size_align(cols, OM_HALF_COLS) *
         sizeof(uint16_t);
}

static uint64_t b_bytes(const om_matmul *m, bool is_half) {
  return is_half ? half_bytes(m->depth, m->cols) : om_split_bytes(m->depth, m->cols);
}

/* An om_gpu_fill; the layout is that of split constants. */
static void fill_halves(om_ctx *ctx, const void *arg, const void *source, void *target) {
  (void)ctx;
  const om_split_layout *layout = arg;
  const size_t pitch = om_size_align(layout->cols, OM_HALF_COLS);
  memset(target, 0, half_bytes(layout->depth, layout->cols));
  for (size_t i = 0; i < layout->depth * layout->cols; ++i) {
    const size_t col = layout->is_turned ? i / layout->depth : i % layout->cols;
    const size_t term = layout->is_turned ? i % layout->depth : i / layout->cols;
    memcpy((uint16_t *)target + term * pitch + col,
           (const char *)source + i * sizeof(uint16_t),
           sizeof(uint16_t));
  }
}

static om_gpu_operand bind_b(om_gpu_binder *b, const om_matmul *m, bool is_turned, bool is_half) {
  const om_split_layout layout = {.depth = m->depth, .cols = m->cols, .is_turned = is_turned};
  const uint64_t bytes = b_bytes(m, is_half);
  if (!is_half) {
    const char *recipe = is_turned ? "turned, split in halves" : "split in halves";
    return om_gpu_made_constant(b, 1, recipe, bytes, om_split_fill, &layout);
  }
  if (!is_turned && m->depth % OM_HALF_TERMS == 0 && m->cols % OM_HALF_COLS == 0) {
    return om_gpu_read(b, 1);
  }
  const char *recipe = is_turned ? "turned, whole tiles" : "whole tiles";
  return om_gpu_made_constant(b, 1, recipe, bytes, fill_halves, &layout);
}

/* ---- The product ---- */

bool om_gpu_has_matrix_form(const om_gpu_binder *b, const om_matmul *m) {
  enum { FEW_ROWS = 8 };
  const bool is_half = om_gpu_input(b, 0)->dtype == OM_DTYPE_F16;
  const size_t unit = OM_MATRIX_UNIT_BYTES / (is_half ? sizeof(uint16_t) : sizeof(float));
  return om_gpu_binder_mode(b) != OM_MODE_EXACT && om_gpu_input(b, 1)->data &&
         om_strided_elems(&m->batch) == 1 && m->rows > FEW_ROWS && m->a_depth_stride == 1 &&
         m->depth % unit == 0 && m->a_row_stride % unit == 0 && m->rows * m->cols <= INT32_MAX / 4;
}

uint64_t om_gpu_matrix_cost(const om_gpu_binder *b, const om_matmul *m) {
  const bool is_half = om_gpu_input(b, 0)->dtype == OM_DTYPE_F16;
  const bool is_taken = has_matrix_hardware(b) && om_gpu_has_matrix_form(b, m) &&
                        b_bytes(m, is_half) <= om_gpu_binder_limits(b)->max_binding_bytes;
  return is_taken ? choose_cut(m, is_half).cost_ns : UINT64_MAX;
}

static om_matmul_matrix_params make_params(const om_matmul *m,
                                           const om_matrix_cut *cut,
                                           bool is_half) {
  const size_t unit = OM_MATRIX_UNIT_BYTES / (is_half ? sizeof(uint16_t) : sizeof(float));
  return (om_matmul_matrix_params){
      .group_count = (uint32_t)(cut->tile_count * cut->chunk_count),
      .tile_count = (uint32_t)cut->tile_count,
      .col_tiles = (uint32_t)om_gpu_pieces(m->cols, cut->tile->cols),
      .rows = (uint32_t)m->rows,
      .cols = (uint32_t)m->cols,
      .depth = (uint32_t)m->depth,
      .a_row_units = (uint32_t)(m->a_row_stride / unit),
      .b_row_units = (uint32_t)(om_size_align(m->cols, OM_SPLIT_COLS) / unit),
      .b_terms = (uint32_t)om_size_align(m->depth, is_half ? OM_HALF_TERMS : OM_SPLIT_TERMS),
      .chunk_depth = (uint32_t)cut->chunk_depth,
  };
}

om_gpu_dispatch *om_gpu_add_matrix_product(om_gpu_binder *b, const om_matrix_product *product) {
  const om_matmul_matrix_params *params = &product->params;
  const uint64_t elems = (uint64_t)params->rows * params->cols;
  const bool is_cut = product->chunk_count > 1;
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, product->shader);
  if (!d) return NULL;
  memcpy(d->params, params, sizeof *params);
  d->params_bytes = sizeof *params;
  memcpy(d->constants, product->constants, sizeof product->constants);
  d->constant_count = product->constant_count;
  d->operands[0] = om_gpu_read(b, 0);
  d->operands[1] = product->b;
  d->operands[2] =
      is_cut ? om_gpu_scratch(b, product->chunk_count * elems * sizeof(float)) : om_gpu_write(b, 0);
  d->operand_count = 3;
  om_gpu_spread_groups(b, params->group_count, d->groups);
  d->has_chain = om_shader_has_chain(d->shader);
  d->chain_value = om_gpu_write(b, 0).index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * elems * params->depth;
  return is_cut ? om_gpu_add_chunk_sum(b, d->operands[2], product->chunk_count) : d;
}

const char *om_gpu_bind_matrix(om_gpu_binder *b,
                               const om_matmul *m,
                               bool is_turned,
                               om_gpu_dispatch **out_dispatch) {
  enum { QUAD = 4 };
  const bool is_half = om_gpu_input(b, 0)->dtype == OM_DTYPE_F16;
  const om_matrix_cut cut = choose_cut(m, is_half);
  const om_matrix_product product = {
      .shader = cut.shader,
      .params = make_params(m, &cut, is_half),
      .constants = {m->depth % cut.tile->terms != 0, m->cols % QUAD == 0},
      .constant_count = 2,
      .b = bind_b(b, m, is_turned, is_half),
      .chunk_count = cut.chunk_count,
  };
  *out_dispatch = om_gpu_add_matrix_product(b, &product);
  return *out_dispatch ? NULL : om_gpu_no_memory;
}
