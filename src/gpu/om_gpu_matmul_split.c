/* Matrix products of float32 on matrix hardware (matmul_split.comp), in fast mode.
 *
 * b, a constant, is split into pairs of float16 once a session (om_gpu_split.h). Which tile is
 * estimated from the number of workgroups and their steps; the portable kernels keep what is
 * estimated to be no faster here.
 */
#include "abi/matmul_split_params.h"
#include "gpu/om_gpu_matmul.h"
#include "gpu/om_gpu_split.h"

/* The kernels and their cost: workgroups that run side by side on a core, nanoseconds that one
 * takes for 32 terms where it is alone there and those that each further one adds, and what it
 * takes beside that, in the same steps. Measured on an NVIDIA H200 (2026-11); only the proportions
 * matter. */
static const struct {
  om_shader shader;
  uint32_t rows, cols;
  uint32_t residents;
  uint32_t alone_ns, further_ns;
  uint32_t fill_steps;
} tiles[] = {
    {OM_SHADER_MATMUL_SPLIT_64X64, 64, 64, 2, 1040, 60, 3},
    {OM_SHADER_MATMUL_SPLIT_32X64, 32, 64, 4, 530, 180, 8},
    {OM_SHADER_MATMUL_SPLIT_32X32, 32, 32, 2, 280, 200, 8},
    {OM_SHADER_MATMUL_SPLIT_16X32, 16, 32, 8, 280, 90, 8},
};

static uint64_t pieces(uint64_t count, uint64_t size) {
  return (count + size - 1) / size;
}

/* How a product is cut. */
typedef struct om_split_cut {
  size_t tile; /* index into tiles */
  uint64_t groups;
  uint64_t cost_ns;
} om_split_cut;

/* Nanoseconds for a step of `groups` workgroups on one core, or of all cores alike. */
static uint64_t step_cost(size_t tile, uint64_t groups) {
  return groups == 0 ? 0 : tiles[tile].alone_ns + tiles[tile].further_ns * (groups - 1);
}

/* Nanoseconds that the groups take on a device of many cores: those that fit at a time, then the
 * rest. */
static uint64_t cut_cost(const om_split_cut *cut, uint64_t depth) {
  enum { CORES = 132 };
  const uint64_t residents = tiles[cut->tile].residents;
  const uint64_t steps = pieces(depth, OM_SPLIT_TERMS) + tiles[cut->tile].fill_steps;
  const uint64_t full = cut->groups / (CORES * residents);
  const uint64_t rest = pieces(cut->groups % (CORES * residents), CORES);
  return steps * (full * step_cost(cut->tile, residents) + step_cost(cut->tile, rest));
}

static om_split_cut choose_cut(const om_matmul *m) {
  om_split_cut best = {.cost_ns = UINT64_MAX};
  for (size_t tile = 0; tile < OM_COUNT_OF(tiles); ++tile) {
    om_split_cut cut = {.tile = tile};
    cut.groups = pieces(m->rows, tiles[tile].rows) * pieces(m->cols, tiles[tile].cols);
    cut.cost_ns = cut_cost(&cut, m->depth);
    if (cut.cost_ns < best.cost_ns) best = cut;
  }
  return best;
}

static bool has_matrix_hardware(const om_gpu_binder *b) {
  enum { SUBGROUP = 32 };
  const om_hal_limits *limits = om_gpu_binder_limits(b);
  for (size_t i = 0; i < OM_COUNT_OF(tiles); ++i) {
    const om_hal_shader *shader = om_shader_get(tiles[i].shader);
    if (shader->shared_bytes > limits->max_shared_bytes) return false;
    if (shader->workgroup_size[0] > limits->max_invocations) return false;
  }
  return om_gpu_binder_features(b)->cooperative_matrix && limits->subgroup_size == SUBGROUP;
}

bool om_gpu_takes_split(const om_gpu_binder *b, const om_matmul *m, uint64_t portable_ns) {
  enum { FEW_ROWS = 8 };
  return om_gpu_binder_mode(b) != OM_MODE_EXACT && has_matrix_hardware(b) &&
         om_gpu_input(b, 0)->dtype == OM_DTYPE_F32 && om_gpu_input(b, 1)->data &&
         om_strided_elems(&m->batch) == 1 && m->rows > FEW_ROWS && m->a_depth_stride == 1 &&
         m->depth % 4 == 0 && m->a_row_stride % 4 == 0 && m->rows * m->cols <= INT32_MAX / 4 &&
         om_split_bytes(m->depth, m->cols) <= om_gpu_binder_limits(b)->max_binding_bytes &&
         choose_cut(m).cost_ns < portable_ns;
}

const char *om_gpu_bind_split(om_gpu_binder *b,
                              const om_matmul *m,
                              bool is_turned,
                              om_gpu_dispatch **out_dispatch) {
  const om_split_cut cut = choose_cut(m);
  const om_split_layout layout = {.depth = m->depth, .cols = m->cols, .is_turned = is_turned};
  const om_matmul_split_params params = {
      .group_count = (uint32_t)cut.groups,
      .col_tiles = (uint32_t)pieces(m->cols, tiles[cut.tile].cols),
      .rows = (uint32_t)m->rows,
      .cols = (uint32_t)m->cols,
      .depth = (uint32_t)m->depth,
      .a_row_quads = (uint32_t)m->a_row_stride / 4,
      .b_row_units = (uint32_t)om_size_align(m->cols, OM_SPLIT_COLS) / 4,
      .b_terms = (uint32_t)om_size_align(m->depth, OM_SPLIT_TERMS),
  };
  const char *recipe = is_turned ? "turned, split in halves" : "split in halves";
  const om_gpu_operand packed =
      om_gpu_made_constant(b, 1, recipe, om_split_bytes(m->depth, m->cols), om_split_fill, &layout);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, tiles[cut.tile].shader);
  if (!d) return om_gpu_no_memory;
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->operands[0] = om_gpu_read(b, 0);
  d->operands[1] = packed;
  d->operands[2] = om_gpu_write(b, 0);
  d->operand_count = 3;
  om_gpu_spread_groups(b, cut.groups, d->groups);
  d->has_chain = true;
  d->chain_value = d->operands[2].index;
  d->chain.inner = d->chain.channels = 1;
  d->flops = 2 * (uint64_t)m->rows * m->cols * m->depth;
  *out_dispatch = d;
  return NULL;
}
