/* The order of a region's launches.
 *
 * A launch's level is the least that its operands allow: one above every launch that wrote what it
 * reads, or read or wrote what it writes. Launches go level by level, so that those of one level
 * stand side by side and the device runs them at once; barriers fall between levels only. Branches
 * of a network that do not depend on each other overlap that way:
 *
 *     plan     a1 a2 a3  b1 b2 b3  join        five barriers
 *     levels   a1 b1 | a2 b2 | a3 b3 | join    three
 *
 * Blocks live by levels too: what a level needs shares no memory with anything else in it.
 */
#include "gpu/om_gpu_state.h"

typedef struct last_use { /* of a value's memory: levels plus 1; 0: not yet */
  uint32_t read, written;
} last_use;

static void wait_for(uint32_t *level, uint32_t other) {
  if (*level < other) *level = other;
}

static uint32_t find_level(const om_provider_plan *plan,
                           const om_gpu_dispatch *d,
                           const last_use *uses) {
  uint32_t level = 0;
  uint32_t write_mask = om_shader_get(d->shader)->write_mask;
  for (uint32_t k = 0; k < d->operand_count; ++k) {
    const uint32_t memory = om_gpu_memory_of(plan, &d->operands[k]);
    if (memory == OM_GPU_NO_MEMORY) continue;
    const last_use *use = &uses[memory];
    wait_for(&level, use->written);
    if ((write_mask >> k & 1) != 0) wait_for(&level, use->read);
  }
  for (uint32_t k = 0; k < d->chain.operand_count; ++k) {
    if (d->chain.operands[k].kind != OM_GPU_VALUE) continue;
    wait_for(&level, uses[plan->roots[d->chain.operands[k].index]].written);
  }
  return level;
}

static void mark_uses(const om_provider_plan *plan,
                      const om_gpu_dispatch *d,
                      uint32_t level,
                      last_use *uses) {
  uint32_t write_mask = om_shader_get(d->shader)->write_mask;
  for (uint32_t k = 0; k < d->operand_count; ++k) {
    const uint32_t memory = om_gpu_memory_of(plan, &d->operands[k]);
    if (memory == OM_GPU_NO_MEMORY) continue;
    last_use *use = &uses[memory];
    wait_for((write_mask >> k & 1) != 0 ? &use->written : &use->read, level + 1);
  }
  for (uint32_t k = 0; k < d->chain.operand_count; ++k) {
    if (d->chain.operands[k].kind != OM_GPU_VALUE) continue;
    wait_for(&uses[plan->roots[d->chain.operands[k].index]].read, level + 1);
  }
}

/* Stable, by level. */
static void sort_launches(om_gpu_region *region, om_gpu_launch *copy, uint32_t *starts) {
  memcpy(copy, region->launches, region->launch_count * sizeof *copy);
  for (size_t i = 0; i < region->launch_count; ++i) ++starts[copy[i].level + 1];
  for (uint32_t level = 0; level < region->level_count; ++level) starts[level + 1] += starts[level];
  for (size_t i = 0; i < region->launch_count; ++i) {
    region->launches[starts[copy[i].level]++] = copy[i];
  }
}

om_status om_gpu_order(om_ctx *ctx, const om_provider_plan *plan, om_gpu_region *region) {
  om_status st = OM_OK;
  last_use *uses = NULL;      /* scratch, by om_gpu_memory_of */
  uint32_t *step_ends = NULL; /* scratch: the level after a step's launches, which share scratch */
  om_gpu_launch *copy = NULL; /* scratch */
  uint32_t *starts = NULL;    /* scratch */
  if (region->launch_count == 0) return OM_OK;
  OM_GO_NEW(uses, 2 * plan->view->value_count);
  OM_GO_NEW(step_ends, plan->view->step_count);
  for (size_t i = 0; i < region->launch_count; ++i) {
    om_gpu_launch *launch = &region->launches[i];
    launch->level = find_level(plan, launch->dispatch, uses);
    wait_for(&launch->level, step_ends[launch->step]);
    step_ends[launch->step] = launch->level + 1;
    wait_for(&region->level_count, launch->level + 1);
    mark_uses(plan, launch->dispatch, launch->level, uses);
  }
  OM_GO_NEW(copy, region->launch_count);
  OM_GO_NEW(starts, (size_t)region->level_count + 2);
  sort_launches(region, copy, starts);
done:
  om_delete(ctx, uses);
  om_delete(ctx, step_ends);
  om_delete(ctx, copy);
  om_delete(ctx, starts);
  return st;
}
