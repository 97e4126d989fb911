/* Programs: regions made ready to record.
 *
 * compile turns the steps of each region into launches, fuses them, gives every value and
 * scratch block a slot in the arena, and makes the kernels. Nothing is recorded yet: that happens
 * at the region's first run (om_gpu_record.c), when the arena has its size.
 */
#include "gpu/om_gpu_cache.h"

/* ---- Launches ---- */

static void find_roots(om_provider_plan *plan) {
  const om_plan_view *view = plan->view;
  for (uint32_t i = 0; i < view->value_count; ++i) plan->roots[i] = i;
  for (size_t i = 0; i < view->step_count; ++i) {
    if (!plan->steps[i].is_view) continue;
    const om_plan_step *step = &view->steps[i];
    plan->roots[step->outputs[0]] = plan->roots[step->inputs[0]];
  }
}

static uint32_t *copy_indices(om_ctx *ctx, om_pool *pool, const uint32_t *from, size_t count) {
  uint32_t *to = OM_POOL_NEW(ctx, pool, uint32_t, count);
  if (to && count > 0) memcpy(to, from, count * sizeof *to);
  return to;
}

static om_status list_launches(om_ctx *ctx,
                               om_provider_plan *plan,
                               const om_plan_region *source,
                               om_gpu_region *region) {
  size_t count = 0;
  for (size_t i = 0; i < source->step_count; ++i) {
    count += plan->steps[source->steps[i]].dispatch_count;
  }
  region->launches = OM_POOL_NEW(ctx, &plan->pool, om_gpu_launch, count);
  region->reads = copy_indices(ctx, &plan->pool, source->reads, source->read_count);
  region->writes = copy_indices(ctx, &plan->pool, source->writes, source->write_count);
  if (!region->launches || !region->reads || !region->writes) return OM_E_OUT_OF_MEMORY;
  region->read_count = source->read_count;
  region->write_count = source->write_count;
  OM_TRY(om_gpu_demands_list(ctx, plan, source, region));
  for (size_t i = 0; i < source->step_count; ++i) {
    om_gpu_step *step = &plan->steps[source->steps[i]];
    for (uint32_t k = 0; k < step->dispatch_count; ++k) {
      if (om_gpu_demand_is_for_host(region, source->steps[i], k)) continue;
      region->launches[region->launch_count++] =
          (om_gpu_launch){.dispatch = &step->dispatches[k], .step = source->steps[i]};
    }
  }
  return OM_OK;
}

static void drop_absorbed(om_gpu_region *region) {
  size_t kept = 0;
  for (size_t i = 0; i < region->launch_count; ++i) {
    if (!region->launches[i].is_absorbed) region->launches[kept++] = region->launches[i];
  }
  region->launch_count = kept;
}

/* Catches a binder that disagrees with its shader, before a driver does. */
static om_status check_launch(om_ctx *ctx,
                              const om_provider_plan *plan,
                              const om_gpu_launch *launch) {
  const om_gpu_dispatch *d = launch->dispatch;
  const om_hal_shader *shader = om_shader_get(d->shader);
  uint32_t chain_bindings = d->has_chain ? OM_CHAIN_MAX_OPERANDS : 0;
  uint32_t chain_constants = d->has_chain ? OM_CHAIN_MAX_ITEMS : 0;
  uint32_t chain_bytes = d->has_chain ? OM_GPU_CHAIN_PARAMS_BYTES : 0;
  if (d->operand_count + chain_bindings == shader->binding_count &&
      d->constant_count + chain_constants == shader->constant_count &&
      d->params_bytes + chain_bytes == shader->params_bytes) {
    return OM_OK;
  }
  return OM_FAIL(
      ctx,
      OM_E_INTERNAL,
      "The dispatch of %s '%s' and its kernel %s disagree: %u operands and %u bindings, %u "
      "constants and %u, %u bytes of parameters and %u.",
      plan->view->steps[launch->step].node->type,
      plan->view->steps[launch->step].node->name,
      shader->name,
      d->operand_count + chain_bindings,
      shader->binding_count,
      d->constant_count + chain_constants,
      shader->constant_count,
      d->params_bytes + chain_bytes,
      shader->params_bytes);
}

/* ---- Slots ---- */

static uint64_t value_bytes(const om_provider_plan *plan, uint32_t value) {
  const om_tensor *tensor = &plan->view->values[value].tensor;
  size_t bytes = 0;
  if (!om_shape_bytes(tensor->dtype, tensor->rank, tensor->dims, &bytes)) return 0;
  return om_size_align(bytes, 4);
}

static void use_slot(om_gpu_slot *slot, uint32_t at) {
  if (slot->first > at) slot->first = at;
  if (slot->last < at) slot->last = at;
}

uint32_t om_gpu_memory_of(const om_provider_plan *plan, const om_gpu_operand *operand) {
  if (operand->kind == OM_GPU_VALUE) return plan->roots[operand->index];
  if (operand->kind != OM_GPU_WIDE) return OM_GPU_NO_MEMORY;
  return (uint32_t)plan->view->value_count + plan->roots[operand->index];
}

/* The slot of an operand with memory, made at its first use. */
static om_gpu_slot *memory_slot(const om_provider_plan *plan,
                                om_gpu_region *region,
                                const om_gpu_operand *operand) {
  const uint32_t memory = om_gpu_memory_of(plan, operand);
  uint64_t bytes = value_bytes(plan, operand->index);
  if (operand->kind == OM_GPU_WIDE) {
    bytes = om_tensor_elems(&plan->view->values[operand->index].tensor) * sizeof(float);
  }
  if (region->slot_of_memory[memory] == OM_GPU_NO_SLOT) {
    region->slot_of_memory[memory] = (uint32_t)region->slot_count;
    region->slots[region->slot_count++] = (om_gpu_slot){.first = UINT32_MAX};
  }
  om_gpu_slot *slot = &region->slots[region->slot_of_memory[memory]];
  if (slot->bytes < bytes) slot->bytes = bytes;
  return slot;
}

static void use_value(const om_provider_plan *plan,
                      om_gpu_region *region,
                      uint32_t value,
                      uint32_t at) {
  const om_gpu_operand operand = {.kind = OM_GPU_VALUE, .index = value};
  use_slot(memory_slot(plan, region, &operand), at);
}

om_gpu_slot *om_gpu_operand_slot(const om_provider_plan *plan,
                                 const om_gpu_region *region,
                                 uint32_t step,
                                 const om_gpu_operand *operand) {
  if (operand->kind == OM_GPU_SCRATCH) {
    return &region->slots[region->first_slot_of_step[step] + operand->index];
  }
  const uint32_t memory = om_gpu_memory_of(plan, operand);
  return memory == OM_GPU_NO_MEMORY ? NULL : &region->slots[region->slot_of_memory[memory]];
}

static void use_operands(const om_provider_plan *plan,
                         om_gpu_region *region,
                         const om_gpu_launch *launch,
                         const om_gpu_operand *operands,
                         uint32_t count) {
  for (uint32_t k = 0; k < count; ++k) {
    if (om_gpu_memory_of(plan, &operands[k]) != OM_GPU_NO_MEMORY) {
      use_slot(memory_slot(plan, region, &operands[k]), launch->level);
    } else if (operands[k].kind == OM_GPU_SCRATCH) {
      use_slot(om_gpu_operand_slot(plan, region, launch->step, &operands[k]), launch->level);
    }
  }
}

static void list_scratch(const om_provider_plan *plan, om_gpu_region *region) {
  for (size_t i = 0; i < region->launch_count; ++i) {
    uint32_t index = region->launches[i].step;
    const om_gpu_step *step = &plan->steps[index];
    if (region->first_slot_of_step[index] != OM_GPU_NO_SLOT) continue;
    region->first_slot_of_step[index] = (uint32_t)region->slot_count;
    for (size_t k = 0; k < step->scratch_count; ++k) {
      region->slots[region->slot_count++] =
          (om_gpu_slot){.bytes = step->scratch_bytes[k], .first = UINT32_MAX};
    }
  }
}

static om_status list_slots(om_ctx *ctx, om_provider_plan *plan, om_gpu_region *region) {
  const om_plan_view *view = plan->view;
  const size_t memory_count = 2 * view->value_count;
  size_t most = memory_count;
  for (size_t i = 0; i < view->step_count; ++i) most += plan->steps[i].scratch_count;
  region->slots = OM_POOL_NEW(ctx, &plan->pool, om_gpu_slot, most);
  region->slot_of_memory = OM_POOL_NEW(ctx, &plan->pool, uint32_t, memory_count);
  region->first_slot_of_step = OM_POOL_NEW(ctx, &plan->pool, uint32_t, view->step_count);
  if (!region->slots || !region->slot_of_memory || !region->first_slot_of_step) {
    return OM_E_OUT_OF_MEMORY;
  }
  for (size_t i = 0; i < memory_count; ++i) region->slot_of_memory[i] = OM_GPU_NO_SLOT;
  for (size_t i = 0; i < view->step_count; ++i) region->first_slot_of_step[i] = OM_GPU_NO_SLOT;

  list_scratch(plan, region);
  for (size_t i = 0; i < region->read_count; ++i) use_value(plan, region, region->reads[i], 0);
  for (uint32_t i = 0; i < region->launch_count; ++i) {
    const om_gpu_launch *launch = &region->launches[i];
    const om_gpu_dispatch *d = launch->dispatch;
    use_operands(plan, region, launch, d->operands, d->operand_count);
    use_operands(plan, region, launch, d->chain.operands, d->chain.operand_count);
  }
  for (size_t i = 0; i < region->write_count; ++i) {
    use_value(plan, region, region->writes[i], region->level_count);
  }
  for (size_t i = 0; i < region->finding_count; ++i) {
    const om_gpu_finding *finding = &region->findings[i];
    if (finding->read != OM_GPU_NO_READ) continue;
    const om_gpu_operand block = {.kind = OM_GPU_SCRATCH, .index = finding->demand->scratch};
    use_slot(om_gpu_operand_slot(plan, region, finding->step, &block), region->level_count);
  }
  for (size_t i = 0; i < region->slot_count; ++i) {
    if (region->slots[i].first == UINT32_MAX) region->slots[i].first = 0; /* unused scratch */
  }
  return OM_OK;
}

/* ---- Slabs apart: what a dispatch reads and what it writes get different colors ---- */

typedef struct slot_pair { /* slots that one dispatch reads and writes */
  uint32_t read, written;
} slot_pair;

/* The number of the operand's slot; OM_GPU_NO_SLOT where it has none. */
static uint32_t slot_number(const om_provider_plan *plan,
                            const om_gpu_region *region,
                            const om_gpu_launch *launch,
                            uint32_t index) {
  const om_gpu_dispatch *d = launch->dispatch;
  const om_gpu_operand *operand =
      index < d->operand_count ? &d->operands[index] : &d->chain.operands[index - d->operand_count];
  const om_gpu_slot *slot = om_gpu_operand_slot(plan, region, launch->step, operand);
  return slot ? (uint32_t)(slot - region->slots) : OM_GPU_NO_SLOT;
}

/* Appends the launch's pairs; at most OM_HAL_MAX_BINDINGS squared. */
static size_t list_pairs(const om_provider_plan *plan,
                         const om_gpu_region *region,
                         const om_gpu_launch *launch,
                         slot_pair *pairs) {
  const om_gpu_dispatch *d = launch->dispatch;
  uint32_t write_mask = om_shader_get(d->shader)->write_mask;
  uint32_t count = d->operand_count + d->chain.operand_count;
  size_t pair_count = 0;
  for (uint32_t w = 0; w < d->operand_count; ++w) {
    uint32_t written = slot_number(plan, region, launch, w);
    if ((write_mask >> w & 1) == 0 || written == OM_GPU_NO_SLOT) continue;
    for (uint32_t r = 0; r < count; ++r) {
      uint32_t read = slot_number(plan, region, launch, r);
      bool is_read = r >= d->operand_count || (write_mask >> r & 1) == 0;
      if (!is_read || read == OM_GPU_NO_SLOT || read == written) continue;
      pairs[pair_count++] = (slot_pair){read, written};
    }
  }
  return pair_count;
}

/* Each slot in turn takes the least color that no slot before it, in a pair with it, has. */
static om_status color_slots(om_ctx *ctx, const om_provider_plan *plan, om_gpu_region *region) {
  enum { MOST_PAIRS = OM_HAL_MAX_BINDINGS * OM_HAL_MAX_BINDINGS };
  om_status st = OM_OK;
  slot_pair *pairs = NULL; /* scratch */
  size_t count = 0;
  OM_GO_NEW(pairs, region->launch_count * MOST_PAIRS);
  for (size_t i = 0; i < region->launch_count; ++i) {
    count += list_pairs(plan, region, &region->launches[i], pairs + count);
  }
  for (uint32_t i = 0; i < region->slot_count; ++i) {
    uint64_t taken = 0; /* a handful of colors: a dispatch has 8 bindings */
    for (size_t k = 0; k < count; ++k) {
      uint32_t other = pairs[k].read == i ? pairs[k].written : pairs[k].read;
      bool is_in = pairs[k].read == i || pairs[k].written == i;
      if (is_in && other < i) taken |= (uint64_t)1 << region->slots[other].color;
    }
    while ((taken >> region->slots[i].color & 1) != 0) ++region->slots[i].color;
  }
done:
  om_delete(ctx, pairs);
  return st;
}

/* ---- Staging and kernels ---- */

/* The regions of a plan share the upload, but keep their results apart: those may be lent until the
 * session's next run. */
static om_status place_staging(om_ctx *ctx, om_provider_plan *plan, om_gpu_region *region) {
  region->read_offsets = OM_POOL_NEW(ctx, &plan->pool, uint64_t, region->read_count);
  region->write_offsets = OM_POOL_NEW(ctx, &plan->pool, uint64_t, region->write_count);
  if (!region->read_offsets || !region->write_offsets) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < region->read_count; ++i) {
    region->read_offsets[i] = region->upload_bytes;
    region->upload_bytes += om_size_align(value_bytes(plan, region->reads[i]), OM_GPU_ALIGNMENT);
  }
  if (region > plan->regions) region->readback_bytes = region[-1].readback_bytes;
  for (size_t i = 0; i < region->write_count; ++i) {
    region->write_offsets[i] = region->readback_bytes;
    region->readback_bytes += om_size_align(value_bytes(plan, region->writes[i]), OM_GPU_ALIGNMENT);
  }
  for (size_t i = 0; i < region->finding_count; ++i) {
    region->findings[i].offset = region->readback_bytes;
    region->readback_bytes += OM_GPU_ALIGNMENT;
  }
  return OM_OK;
}

static om_status make_kernels(om_ctx *ctx, om_provider_plan *plan) {
  om_status st = OM_OK;
  om_gpu_kernel_key *keys = NULL; /* scratch */
  size_t count = 0;
  size_t total = 0;
  for (size_t i = 0; i < plan->region_count; ++i) total += plan->regions[i].launch_count;
  OM_GO_NEW(keys, total);
  for (size_t i = 0; i < plan->region_count; ++i) {
    const om_gpu_region *region = &plan->regions[i];
    for (size_t k = 0; k < region->launch_count; ++k) {
      om_gpu_describe_kernel(region->launches[k].dispatch, &keys[count++]);
    }
  }
  OM_GO(om_gpu_kernels_prepare(ctx, plan->session, keys, count));
done:
  om_delete(ctx, keys);
  return st;
}

static om_status compile_region(om_ctx *ctx,
                                om_provider_plan *plan,
                                const om_plan_region *source,
                                om_gpu_region *region,
                                bool *step_is_fused) {
  OM_TRY(list_launches(ctx, plan, source, region));
  if (!plan->session->no_fusion) OM_TRY(om_gpu_fuse(ctx, plan, region, step_is_fused));
  drop_absorbed(region);
  for (size_t i = 0; i < region->launch_count; ++i) {
    om_gpu_dispatch *d = region->launches[i].dispatch;
    if (om_gpu_is_elementwise(d)) om_gpu_finish_elementwise(plan->session, d);
    OM_TRY(check_launch(ctx, plan, &region->launches[i]));
  }
  OM_TRY(om_gpu_order(ctx, plan, region));
  OM_TRY(list_slots(ctx, plan, region));
  if (plan->session->features.separate_slabs) OM_TRY(color_slots(ctx, plan, region));
  OM_TRY(om_gpu_arena_place(
      ctx, plan->session, region->slots, region->slot_count, region->slab_bytes));
  OM_TRY(om_gpu_arena_live(ctx, region->slots, region->slot_count, &region->live_bytes));
  return place_staging(ctx, plan, region);
}

om_status om_gpu_compile(om_ctx *ctx,
                         om_provider_plan *plan,
                         const om_plan_region *regions,
                         size_t region_count,
                         bool *step_is_fused) {
  plan->regions = OM_POOL_NEW(ctx, &plan->pool, om_gpu_region, region_count);
  if (!plan->regions) return OM_E_OUT_OF_MEMORY;
  om_gpu_room_deinit(ctx, plan->session); /* the constants are made */
  find_roots(plan);
  for (size_t i = 0; i < region_count; ++i) {
    ++plan->region_count;
    OM_TRY(compile_region(ctx, plan, &regions[i], &plan->regions[i], step_is_fused));
  }
  OM_TRY(om_gpu_profile_prepare(ctx, plan));
  const uint64_t kernels = plan->session->info.kernels;
  OM_TRY(make_kernels(ctx, plan));
  if (plan->session->info.kernels != kernels) OM_TRY(om_gpu_cache_keep(ctx, plan->session));
  /* The arena holds the largest region from the start: were it to grow between two regions of a
   * run, the next run would record again what is recorded. */
  for (size_t i = 0; i < region_count; ++i) {
    OM_TRY(om_gpu_arena_fit(ctx, plan->session, &plan->regions[i]));
  }
  return OM_OK;
}
