/* The arena: device memory for what a region makes, and staging for what it moves.
 *
 *     slab 0  [slot][slot]....[slot]      each at most one binding long
 *     slab 1  [slot].......
 *     upload, readback                    host-visible, one of each
 *
 * Places are planned for each region; the buffers belong to the session and serve every plan,
 * one run at a time. They only grow, and growing makes all recordings stale.
 *
 * Slots are placed by om_interval_place, color by color. What ends above the slab's limit is
 * taken out and placed again in the next slab; taking slots out never makes others overlap.
 */
#include "gpu/om_gpu_state.h"

static uint64_t slab_limit(const om_provider_session *session) {
  uint64_t limit = session->limits.max_binding_bytes;
  if (limit > session->limits.max_buffer_bytes) limit = session->limits.max_buffer_bytes;
  return limit / OM_GPU_ALIGNMENT * OM_GPU_ALIGNMENT;
}

static om_interval interval_of(const om_gpu_slot *slot) {
  return (om_interval){.bytes = (size_t)slot->bytes, .first = slot->first, .last = slot->last};
}

om_status om_gpu_arena_live(om_ctx *ctx,
                            const om_gpu_slot *slots,
                            size_t count,
                            uint64_t *out_bytes) {
  om_interval *blocks = om_new_bytes(ctx, count, sizeof *blocks);
  if (!blocks) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < count; ++i) blocks[i] = interval_of(&slots[i]);
  const om_status st = om_interval_live(ctx, blocks, count, OM_GPU_ALIGNMENT, out_bytes);
  om_delete(ctx, blocks);
  return st;
}

/* Places the pending slots (indices) in one slab; the rest stays pending. */
static om_status fill_slab(om_ctx *ctx,
                           om_gpu_slot *slots,
                           uint32_t *pending,
                           size_t *inout_count,
                           om_interval *blocks,
                           uint32_t slab,
                           uint64_t limit,
                           uint64_t *out_bytes) {
  size_t count = *inout_count;
  size_t total = 0;
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) blocks[i] = interval_of(&slots[pending[i]]);
  OM_TRY(om_interval_place(ctx, blocks, count, OM_GPU_ALIGNMENT, &total));
  *out_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t end = blocks[i].offset + blocks[i].bytes;
    if (end > limit && blocks[i].offset > 0) {
      pending[kept++] = pending[i];
      continue;
    }
    slots[pending[i]].slab = slab;
    slots[pending[i]].offset = blocks[i].offset;
    if (end > *out_bytes) *out_bytes = end;
  }
  *inout_count = kept;
  return OM_OK;
}

om_status om_gpu_arena_place(om_ctx *ctx,
                             const om_provider_session *session,
                             om_gpu_slot *slots,
                             size_t count,
                             uint64_t slab_bytes[OM_GPU_MAX_SLABS]) {
  om_status st = OM_OK;
  uint32_t *pending = NULL;   /* scratch */
  om_interval *blocks = NULL; /* scratch */
  uint32_t slab = 0;
  size_t placed = 0;

  memset(slab_bytes, 0, OM_GPU_MAX_SLABS * sizeof *slab_bytes);
  OM_GO_NEW(pending, count);
  OM_GO_NEW(blocks, count);
  for (uint32_t color = 0; placed < count; ++color) {
    size_t pending_count = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (slots[i].color == color) pending[pending_count++] = i;
    }
    placed += pending_count;
    while (pending_count > 0) {
      if (slab == OM_GPU_MAX_SLABS) {
        st = OM_FAIL(
            ctx,
            OM_E_UNSUPPORTED,
            "The intermediate tensors need more than %d slabs of %llu bytes on this device.",
            OM_GPU_MAX_SLABS,
            (unsigned long long)slab_limit(session));
        goto done;
      }
      OM_GO(fill_slab(ctx,
                      slots,
                      pending,
                      &pending_count,
                      blocks,
                      slab,
                      slab_limit(session),
                      &slab_bytes[slab]));
      slab_bytes[slab] = om_size_align(slab_bytes[slab], OM_GPU_ALIGNMENT);
      ++slab;
    }
  }
done:
  om_delete(ctx, pending);
  om_delete(ctx, blocks);
  return st;
}

/* Replaces the buffer by a larger one; its contents are lost. */
static om_status grow_buffer(om_ctx *ctx,
                             om_provider_session *session,
                             om_hal_memory memory,
                             uint64_t bytes,
                             om_hal_buffer **buffer,
                             uint64_t *buffer_bytes) {
  if (bytes <= *buffer_bytes) return OM_OK;
  om_gpu_settle(ctx, session);
  if (*buffer) session->hal->buffer_destroy(ctx, session->device, *buffer);
  *buffer = NULL;
  *buffer_bytes = 0;
  ++session->arena.generation;
  OM_TRY(om_gpu_buffer_create(ctx, session, memory, bytes, buffer));
  *buffer_bytes = bytes;
  return OM_OK;
}

om_status om_gpu_arena_fit(om_ctx *ctx, om_provider_session *session, const om_gpu_region *region) {
  om_gpu_arena *arena = &session->arena;
  uint64_t total = 0;
  for (size_t i = 0; i < OM_GPU_MAX_SLABS; ++i) {
    OM_TRY(grow_buffer(ctx,
                       session,
                       OM_HAL_DEVICE,
                       region->slab_bytes[i],
                       &arena->slabs[i],
                       &arena->slab_bytes[i]));
    total += arena->slab_bytes[i];
  }
  OM_TRY(grow_buffer(
      ctx, session, OM_HAL_UPLOAD, region->upload_bytes, &arena->upload, &arena->upload_bytes));
  OM_TRY(grow_buffer(ctx,
                     session,
                     OM_HAL_READBACK,
                     region->readback_bytes,
                     &arena->readback,
                     &arena->readback_bytes));
  session->info.arena_bytes = total + arena->upload_bytes + arena->readback_bytes;
  const uint64_t needed = region->live_bytes + region->upload_bytes + region->readback_bytes;
  if (needed > session->info.live_bytes) session->info.live_bytes = needed;
  return OM_OK;
}

void om_gpu_arena_deinit(om_ctx *ctx, om_provider_session *session) {
  om_gpu_arena *arena = &session->arena;
  for (size_t i = 0; i < OM_GPU_MAX_SLABS; ++i) {
    if (arena->slabs[i]) session->hal->buffer_destroy(ctx, session->device, arena->slabs[i]);
  }
  if (arena->upload) session->hal->buffer_destroy(ctx, session->device, arena->upload);
  if (arena->readback) session->hal->buffer_destroy(ctx, session->device, arena->readback);
  memset(arena, 0, sizeof *arena); /* a literal would stand on the stack */
}
