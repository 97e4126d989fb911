/* Matrix products by Hopper's own instructions (sm90/matmul_sm90.c), in fast mode.
 *
 * b, a constant, is made ready once a session: in blocks, of float32 split into pairs of float16
 * (om_gpu_split.h). Which tile, and whether the depth is cut into chunks that a second pass adds,
 * is estimated from what the workgroup with the most tiles has to do.
 */
#include "gpu/om_gpu_matmul.h"
#include "gpu/om_gpu_split.h"

/* A tile and its cost in nanoseconds: of a step of 64 terms, of a tile beside its steps, and of a
 * workgroup beside its tiles. Fitted to the products of bench/RESULTS.md on an NVIDIA H200
 * (2026-11-30), in every tile. */
typedef struct om_sm90_tile {
  uint32_t rows, cols;
  uint32_t step_ns, tile_ns, start_ns;
  bool has_chunks;
} om_sm90_tile;

static const om_sm90_tile float_tiles[] = {
    {64, 32, 316, 1400, 1100, true},
    {64, 64, 432, 1400, 1100, true},
    {64, 96, 505, 2160, 600, true},
    {128, 96, 900, 3600, 300, false},
    {128, 128, 1090, 4400, 300, false},
    {128, 160, 1290, 5400, 300, false},
};

static const om_sm90_tile half_tiles[] = {
    {64, 32, 162, 500, 1150, true},
    {64, 64, 182, 750, 1200, true},
    {64, 128, 205, 1350, 1400, true},
    {64, 192, 316, 1200, 1300, false},
    {128, 128, 345, 2800, 1200, false},
    {128, 160, 410, 2600, 1200, false},
    {128, 192, 485, 3300, 1700, false},
};

/* Their kernels: of whole products, and of chunks where a tile has them. */
static const om_shader float_shaders[][2] = {
    {OM_SHADER_MATMUL_SM90_64X32, OM_SHADER_MATMUL_SM90_64X32_CHUNKS},
    {OM_SHADER_MATMUL_SM90_64X64, OM_SHADER_MATMUL_SM90_64X64_CHUNKS},
    {OM_SHADER_MATMUL_SM90_64X96, OM_SHADER_MATMUL_SM90_64X96_CHUNKS},
    {OM_SHADER_MATMUL_SM90_128X96, OM_SHADER_MATMUL_SM90_128X96},
    {OM_SHADER_MATMUL_SM90_128X128, OM_SHADER_MATMUL_SM90_128X128},
    {OM_SHADER_MATMUL_SM90_128X160, OM_SHADER_MATMUL_SM90_128X160},
};

static const om_shader half_shaders[][2] = {
    {OM_SHADER_MATMUL_SM90_64X32_HALF, OM_SHADER_MATMUL_SM90_64X32_CHUNKS_HALF},
    {OM_SHADER_MATMUL_SM90_64X64_HALF, OM_SHADER_MATMUL_SM90_64X64_CHUNKS_HALF},
    {OM_SHADER_MATMUL_SM90_64X128_HALF, OM_SHADER_MATMUL_SM90_64X128_CHUNKS_HALF},
    {OM_SHADER_MATMUL_SM90_64X192_HALF, OM_SHADER_MATMUL_SM90_64X192_HALF},
    {OM_SHADER_MATMUL_SM90_128X128_HALF, OM_SHADER_MATMUL_SM90_128X128_HALF},
    {OM_SHADER_MATMUL_SM90_128X160_HALF, OM_SHADER_MATMUL_SM90_128X160_HALF},
    {OM_SHADER_MATMUL_SM90_128X192_HALF, OM_SHADER_MATMUL_SM90_128X192_HALF},
};

/* By type: float32, float16. */
static const struct {
  const om_sm90_tile *tiles;
  const om_shader (*shaders)[2];
  size_t count;
} all_tiles[2] = {
    {float_tiles, float_shaders, OM_COUNT_OF(float_tiles)},
    {half_tiles, half_shaders, OM_COUNT_OF(half_tiles)},
};

/* How a product is cut. */
typedef struct om_sm90_cut {
  const om_sm90_tile *tile;
  om_shader shader;
  uint64_t tile_count;  /* of one chunk */
  uint64_t chunk_count; /* above 1: a second pass adds them */
  uint64_t chunk_depth;
  uint64_t cost_ns;
} om_sm90_cut;

static om_sm90_cut choose_cut(const om_matmul *m, bool is_half) {
  enum { SECOND_PASS_NS = 2800, MOST_CHUNKS = 8 }; /* as for the other kernels */
  const uint64_t result_bytes = (uint64_t)m->rows * m->cols * sizeof(float);
  om_sm90_cut best = {.cost_ns = UINT64_MAX};
  for (size_t i = 0; i < all_tiles[is_half].count; ++i) {
    const om_sm90_tile *tile = &all_tiles[is_half].tiles[i];
    for (uint64_t chunks = 1; chunks <= MOST_CHUNKS; ++chunks) {
      om_sm90_cut cut = {
          .tile = tile, .shader = all_tiles[is_half].shaders[i][chunks > 1], .chunk_count = chunks};
      if (chunks > 1 && !tile->has_chunks) break;
      cut.chunk_depth = om_size_align(om_gpu_pieces(m->depth, chunks), OM_BLOCK_TERMS);
      if (om_gpu_pieces(m->depth, cut.chunk_depth) != chunks) continue;
      cut.tile_count = om_gpu_pieces(m->rows, tile->rows) * om_gpu_pieces(m->cols, tile->cols);
      const uint64_t steps = cut.chunk_depth / OM_BLOCK_TERMS;
      const uint64_t most = om_gpu_pieces(cut.tile_count * chunks, OM_SM90_CORES);
      cut.cost_ns = most * (steps * tile->step_ns + tile->tile_ns) + tile->start_ns;
      if (chunks > 1) cut.cost_ns += SECOND_PASS_NS + chunks * result_bytes / 1024; /* 1 TB/s */
      if (cut.cost_ns < best.cost_ns) best = cut;
    }
  }
  return best;
}

static bool is_half_product(const om_gpu_binder *b) {
  return om_gpu_input(b, 0)->dtype == OM_DTYPE_F16;
}

uint64_t om_gpu_sm90_cost(const om_gpu_binder *b, const om_matmul *m) {
  const bool is_half = is_half_product(b);
  const bool is_taken =
      om_gpu_takes_sm90(b, OM_MODE_FAST) && om_gpu_has_matrix_form(b, m) &&
      om_blocks_bytes(m->depth, m->cols, is_half) <= om_gpu_binder_limits(b)->max_binding_bytes;
  return is_taken ? choose_cut(m, is_half).cost_ns : UINT64_MAX;
}

static om_gpu_operand bind_b(om_gpu_binder *b, const om_matmul *m, bool is_turned, bool is_half) {
  const om_split_layout layout = {
      .depth = m->depth, .cols = m->cols, .is_turned = is_turned, .is_blocks = true};
  const uint64_t bytes = om_blocks_bytes(m->depth, m->cols, is_half);
  const char *recipe = is_turned ? "turned, in blocks" : "in blocks";
  const om_gpu_fill fill = is_half ? om_blocks_fill_half : om_split_fill;
  return om_gpu_made_constant(b, 1, recipe, bytes, fill, &layout);
}

static om_matmul_matrix_params make_params(const om_matmul *m,
                                           const om_sm90_cut *cut,
                                           bool is_half) {
  enum { UNIT_BYTES = 16 };
  const size_t unit = UNIT_BYTES / (is_half ? sizeof(uint16_t) : sizeof(float));
  const uint64_t tiles = cut->tile_count * cut->chunk_count;
  return (om_matmul_matrix_params){
      .group_count = (uint32_t)(tiles < OM_SM90_CORES ? tiles : OM_SM90_CORES),
      .tile_count = (uint32_t)cut->tile_count,
      .col_tiles = (uint32_t)om_gpu_pieces(m->cols, cut->tile->cols),
      .rows = (uint32_t)m->rows,
      .cols = (uint32_t)m->cols,
      .depth = (uint32_t)m->depth,
      .a_row_units = (uint32_t)(m->a_row_stride / unit),
      .b_row_units = (uint32_t)om_gpu_pieces(m->cols, OM_SPLIT_COLS),
      .chunk_depth = (uint32_t)cut->chunk_depth,
  };
}

const char *om_gpu_bind_sm90(om_gpu_binder *b,
                             const om_matmul *m,
                             bool is_turned,
                             om_gpu_dispatch **out_dispatch) {
  const bool is_half = is_half_product(b);
  const om_sm90_cut cut = choose_cut(m, is_half);
  const om_matrix_product product = {
      .shader = cut.shader,
      .params = make_params(m, &cut, is_half),
      .b = bind_b(b, m, is_turned, is_half),
      .chunk_count = cut.chunk_count,
  };
  *out_dispatch = om_gpu_add_matrix_product(b, &product);
  return *out_dispatch ? NULL : om_gpu_no_memory;
}
