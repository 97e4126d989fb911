/* What a convolution's kernels are estimated to take, and which tile of the portable ones takes
 * least. Fitted to the convolutions of a ResNet-50 and a MobileNetV3-large at batch 1 and 8, each
 * in every kernel that takes it, between their neighbours in the model, on an NVIDIA H200
 * (2026-11-30): within 10 %, kernels that are met for the first time in a run aside. Only the
 * proportions matter.
 */
#include "gpu/om_gpu_conv.h"

enum { CORES = 132, PERCENT = 100 };

uint64_t om_gpu_conv_cut_cost(const om_gpu_conv_costs *costs,
                              uint64_t group_count,
                              uint64_t round_count) {
  const uint64_t at_once = (uint64_t)CORES * costs->resident;
  const uint64_t of_core = om_gpu_pieces(group_count, CORES);
  const uint64_t alone = costs->once_ns + round_count * costs->round_ns;
  const uint64_t waiting = group_count > at_once ? alone * group_count / at_once : alone;
  const uint64_t busy = of_core * (costs->busy_once_ns + round_count * costs->busy_round_ns);
  return costs->launch_ns + (waiting > busy ? waiting : busy);
}

uint64_t om_gpu_conv_split_cost(const om_gpu_conv *c, uint64_t split_count) {
  enum { SECOND_PASS_NS = 3500, BYTES_NS = 1000 /* a nanosecond */ };
  if (split_count <= 1) return 0;
  return SECOND_PASS_NS + split_count * c->out_elems * sizeof(float) / BYTES_NS;
}

/* Of a portable kernel; a round is a term. Windows that are gathered make a round dearer. */
typedef struct tile_cost {
  uint32_t channels, pixels;
  uint32_t gather_percent;
  om_gpu_conv_costs costs;
} tile_cost;

/* By type: float32, float16. */
static const tile_cost all_tiles[2][OM_CONV_TILE_COUNT] = {
    {
        {64, 64, 111, {3, 5150, 667, 19, 1090, 37}},
        {32, 64, 114, {3, 4540, 677, 41, 664, 18}},
        {32, 32, 123, {3, 4620, 307, 16, 197, 14}},
        {16, 64, 171, {3, 4250, 929, 19, 388, 15}},
    },
    {
        {64, 64, 110, {3, 4850, 1120, 30, 1010, 38}},
        {32, 64, 113, {3, 4820, 1610, 44, 498, 19}},
        {32, 32, 110, {3, 3930, 957, 23, 185, 17}},
        {16, 64, 153, {3, 4700, 905, 19, 379, 14}},
    },
};

static uint64_t group_count(const om_gpu_conv *c, const tile_cost *t) {
  return om_gpu_pieces(c->pixels, t->pixels) * om_gpu_pieces(c->out_channels, t->channels) *
         c->slices;
}

static uint64_t tile_ns(const om_gpu_conv *c, const tile_cost *t, uint64_t groups, uint64_t terms) {
  om_gpu_conv_costs costs = t->costs;
  if (!om_gpu_conv_is_pointwise(c)) {
    costs.round_ns = costs.round_ns * t->gather_percent / PERCENT;
    costs.busy_round_ns = costs.busy_round_ns * t->gather_percent / PERCENT;
  }
  return om_gpu_conv_cut_cost(&costs, groups, terms);
}

om_gpu_conv_plain om_gpu_choose_conv_plain(const om_gpu_conv *c) {
  const tile_cost *tiles = all_tiles[c->dtype == OM_DTYPE_F16];
  const tile_cost *smallest = &tiles[OM_CONV_TILE_32X32];
  const uint64_t splits = om_gpu_pieces(c->terms, OM_CONV_GROUP_TERMS);
  om_gpu_conv_plain best = {.cost_ns = UINT64_MAX};
  for (uint32_t i = 0; i < OM_CONV_TILE_COUNT; ++i) {
    const uint64_t ns = tile_ns(c, &tiles[i], group_count(c, &tiles[i]), c->terms);
    if (ns < best.cost_ns) best = (om_gpu_conv_plain){.tile = i, .cost_ns = ns};
  }
  const uint64_t groups = group_count(c, smallest) * splits;
  const uint64_t split_ns =
      tile_ns(c, smallest, groups, OM_CONV_GROUP_TERMS) + om_gpu_conv_split_cost(c, splits);
  if (splits > 1 && split_ns < best.cost_ns) {
    best = (om_gpu_conv_plain){.tile = OM_CONV_TILE_32X32, .is_split = true, .cost_ns = split_ns};
  }
  return best;
}
