/* The mean of each plane in the pass that makes the planes, in fast mode.
 *
 *     x -> conv_depthwise -> y -> pool_global_average -> p       becomes       x -> (y, p)
 *
 * That spares squeeze-and-excite blocks a dispatch, which for planes this small costs more than its
 * work. A workgroup makes whole planes: larger ones would leave most of a device idle.
 */
#include "abi/conv_depthwise_params.h"
#include "abi/pool_global_params.h"
#include "gpu/om_gpu_state.h"

enum { GROUP = 256 }; /* invocations of a workgroup; as conv_depthwise.comp has it */

/* A kernel and the one that makes the means too, which takes the same parameters and constants. */
typedef struct pooling {
  om_shader plain, pooled;
} pooling;

static const pooling convolutions[] = {
    {OM_SHADER_CONV_DEPTHWISE_K3S1, OM_SHADER_CONV_DEPTHWISE_K3S1_POOL},
    {OM_SHADER_CONV_DEPTHWISE_K3S2, OM_SHADER_CONV_DEPTHWISE_K3S2_POOL},
    {OM_SHADER_CONV_DEPTHWISE_K5S1, OM_SHADER_CONV_DEPTHWISE_K5S1_POOL},
    {OM_SHADER_CONV_DEPTHWISE_K5S2, OM_SHADER_CONV_DEPTHWISE_K5S2_POOL},
    {OM_SHADER_CONV_DEPTHWISE_K3S1_HALF, OM_SHADER_CONV_DEPTHWISE_K3S1_POOL_HALF},
    {OM_SHADER_CONV_DEPTHWISE_K3S2_HALF, OM_SHADER_CONV_DEPTHWISE_K3S2_POOL_HALF},
    {OM_SHADER_CONV_DEPTHWISE_K5S1_HALF, OM_SHADER_CONV_DEPTHWISE_K5S1_POOL_HALF},
    {OM_SHADER_CONV_DEPTHWISE_K5S2_HALF, OM_SHADER_CONV_DEPTHWISE_K5S2_POOL_HALF},
    {OM_SHADER_CONV_DEPTHWISE_WIDE_K3S1, OM_SHADER_CONV_DEPTHWISE_K3S1_POOL},
    {OM_SHADER_CONV_DEPTHWISE_WIDE_K3S2, OM_SHADER_CONV_DEPTHWISE_K3S2_POOL},
    {OM_SHADER_CONV_DEPTHWISE_WIDE_K5S1, OM_SHADER_CONV_DEPTHWISE_K5S1_POOL},
    {OM_SHADER_CONV_DEPTHWISE_WIDE_K5S2, OM_SHADER_CONV_DEPTHWISE_K5S2_POOL},
    {OM_SHADER_CONV_DEPTHWISE_WIDE_K3S1_HALF, OM_SHADER_CONV_DEPTHWISE_K3S1_POOL_HALF},
    {OM_SHADER_CONV_DEPTHWISE_WIDE_K3S2_HALF, OM_SHADER_CONV_DEPTHWISE_K3S2_POOL_HALF},
    {OM_SHADER_CONV_DEPTHWISE_WIDE_K5S1_HALF, OM_SHADER_CONV_DEPTHWISE_K5S1_POOL_HALF},
    {OM_SHADER_CONV_DEPTHWISE_WIDE_K5S2_HALF, OM_SHADER_CONV_DEPTHWISE_K5S2_POOL_HALF},
    {OM_SHADER_CONV_DEPTHWISE_WIDE_K3S1_HALF_8, OM_SHADER_CONV_DEPTHWISE_K3S1_POOL_HALF},
};

/* The means alone: of planes so small, or of larger ones. */
static const om_shader means[] = {
    OM_SHADER_POOL_GLOBAL_AVERAGE_SMALL,
    OM_SHADER_POOL_GLOBAL_AVERAGE_SMALL_HALF,
    OM_SHADER_POOL_GLOBAL_AVERAGE,
    OM_SHADER_POOL_GLOBAL_AVERAGE_HALF,
};

static bool is_mean(const om_gpu_launch *launch) {
  const om_gpu_dispatch *d = launch->dispatch;
  if (launch->is_absorbed || d->chain.item_count != 0) return false;
  for (size_t i = 0; i < OM_COUNT_OF(means); ++i) {
    if (d->shader == means[i]) return d->operands[0].kind == OM_GPU_VALUE;
  }
  return false;
}

static const pooling *find_pooling(om_shader shader) {
  for (size_t i = 0; i < OM_COUNT_OF(convolutions); ++i) {
    if (convolutions[i].plain == shader) return &convolutions[i];
  }
  return NULL;
}

om_gpu_launch *om_gpu_find_writer(const om_provider_plan *plan,
                                  om_gpu_region *region,
                                  size_t end,
                                  uint32_t root) {
  while (end-- > 0) {
    om_gpu_launch *launch = &region->launches[end];
    const om_gpu_dispatch *d = launch->dispatch;
    const uint32_t write_mask = om_shader_get(d->shader)->write_mask;
    if (launch->is_absorbed) continue;
    for (uint32_t k = 0; k < d->operand_count; ++k) {
      if ((write_mask >> k & 1) == 0 || d->operands[k].kind != OM_GPU_VALUE) continue;
      if (plan->roots[d->operands[k].index] == root) return launch;
    }
  }
  return NULL;
}

static void fuse_pool(const om_provider_plan *plan, om_gpu_region *region, size_t at) {
  om_gpu_launch *own = &region->launches[at];
  om_conv_depthwise_params planes;
  om_pool_global_params pool;
  if (!is_mean(own)) return;
  const uint32_t root = plan->roots[own->dispatch->operands[0].index];
  om_gpu_launch *writer = om_gpu_find_writer(plan, region, at, root);
  const pooling *fused = writer ? find_pooling(writer->dispatch->shader) : NULL;
  if (!fused) return;
  om_gpu_dispatch *d = writer->dispatch;
  memcpy(&planes, d->params, sizeof planes);
  memcpy(&pool, own->dispatch->params, sizeof pool);
  const uint32_t plane_quads = planes.column_quads * planes.out_w;
  if (pool.plane_elems != planes.out_h * planes.out_w || plane_quads > GROUP) return;
  for (planes.lanes = 1; planes.lanes < plane_quads;) planes.lanes *= 2;
  memcpy(d->params, &planes, sizeof planes);
  d->shader = fused->pooled;
  d->operands[d->operand_count++] = own->dispatch->operands[1];
  d->flops += own->dispatch->flops;
  const uint64_t group_planes = GROUP / planes.lanes;
  om_gpu_split_groups(&plan->session->limits, om_gpu_pieces(pool.planes, group_planes), d->groups);
  own->is_absorbed = true;
}

void om_gpu_fuse_pools(const om_provider_plan *plan, om_gpu_region *region) {
  if (plan->session->mode == OM_MODE_EXACT) return;
  for (size_t i = 0; i < region->launch_count; ++i) fuse_pool(plan, region, i);
}
