/* Exact products by kernels for NVIDIA Hopper (sm90/matmul_exact_sm90.c), which have the parameters
 * and the bits of the others: which tile, and whether the depth is cut into groups of terms whose
 * sums a second pass adds, is estimated from what the workgroup with the most tiles has to do.
 */
#include "gpu/om_gpu_matmul.h"

/* A tile: how many teams share its terms, how many blocks of 32 a team takes in turn, and its cost
 * in nanoseconds: of a step, which is a block for each team, and beside its steps. Measured on an
 * NVIDIA H200 (2026-12-01). */
typedef struct om_exact_tile {
  om_shader shader;
  uint32_t rows, cols;
  uint32_t teams, run;
  uint32_t step_ns, tile_ns;
} om_exact_tile;

static const om_exact_tile tiles[] = {
    {OM_SHADER_MATMUL_SM90_EXACT_128X96, 128, 96, 1, 4, 3880, 5200},
    {OM_SHADER_MATMUL_SM90_EXACT_96X96, 96, 96, 1, 4, 3070, 2900},
    {OM_SHADER_MATMUL_SM90_EXACT_64X96, 64, 96, 2, 4, 4040, 2000},
    {OM_SHADER_MATMUL_SM90_EXACT_64X48, 64, 48, 4, 1, 4460, 2200},
    {OM_SHADER_MATMUL_SM90_EXACT_64X48_DEEP, 64, 48, 4, 4, 4040, 3800},
};

enum { BLOCK_TERMS = 32, START_NS = 2500, SECOND_PASS_NS = 3000, MOST_SCRATCH_BYTES = 64 << 20 };

/* Of the steps of a tile. In the last turn some teams may have nothing to do; then a step takes a
 * fifth of its time, and each team's share of the rest. */
static uint64_t steps_ns(const om_exact_tile *tile, uint64_t depth) {
  const uint64_t blocks = om_gpu_pieces(depth, BLOCK_TERMS);
  const uint64_t turn = (uint64_t)tile->teams * tile->run; /* blocks */
  const uint64_t rest = blocks % turn;
  const uint64_t rest_steps = rest < tile->run ? rest : tile->run;
  const uint64_t rest_teams = om_gpu_pieces(rest, tile->run);
  const uint64_t rest_ns = tile->step_ns * (tile->teams + 4 * rest_teams) / (5 * tile->teams);
  return blocks / turn * tile->run * tile->step_ns + rest_steps * rest_ns;
}

static uint64_t cost_of(const om_exact_tile *tile, uint64_t tile_count, uint64_t depth) {
  const uint64_t most = om_gpu_pieces(tile_count, OM_SM90_CORES);
  return most * (steps_ns(tile, depth) + tile->tile_ns) + START_NS;
}

bool om_gpu_choose_exact_sm90(uint64_t batch,
                              uint64_t other_ns,
                              om_matmul_params *params,
                              om_shader *out_shader) {
  const uint64_t result_bytes = batch * params->rows * params->cols * sizeof(float);
  const uint64_t groups = om_gpu_pieces(params->depth, OM_PRODUCT_GROUP);
  uint64_t best_ns = other_ns;
  for (size_t i = 0; i < OM_COUNT_OF(tiles); ++i) {
    const uint64_t row_tiles = om_gpu_pieces(params->rows, tiles[i].rows);
    const uint64_t col_tiles = om_gpu_pieces(params->cols, tiles[i].cols);
    for (uint64_t chunks = 1; chunks <= groups; chunks += groups > 1 ? groups - 1 : 1) {
      const uint64_t depth = chunks == 1 ? params->depth : OM_PRODUCT_GROUP;
      const uint64_t tile_count = batch * row_tiles * col_tiles * chunks;
      uint64_t cost_ns = cost_of(&tiles[i], tile_count, depth);
      if (chunks > 1) cost_ns += SECOND_PASS_NS + chunks * result_bytes / 1024; /* 1 TB/s */
      if (chunks > 1 && chunks * result_bytes > MOST_SCRATCH_BYTES) continue;
      if (cost_ns >= best_ns || tile_count > INT32_MAX) continue;
      best_ns = cost_ns;
      *out_shader = tiles[i].shader;
      params->row_tiles = (uint32_t)row_tiles;
      params->col_tiles = (uint32_t)col_tiles;
      params->chunk_count = (uint32_t)chunks;
      params->chunk_depth = (uint32_t)depth;
      params->group_count = (uint32_t)tile_count;
    }
  }
  return best_ns < other_ns;
}
