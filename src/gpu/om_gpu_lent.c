/* Memory lent to callers, and how a region reads inputs that lie in it.
 *
 * A region's first recording has its uploads, from the staging buffer. Once a run gives it lent
 * memory they move to recordings of their own, one for each set of places they were found in:
 *
 *     head: uploads from places A   \
 *     head: uploads from places B    >  the region's recordings, without uploads
 *     head: from the staging buffer /
 *
 * A run submits its head and the rest together. So callers that change between blocks, as several
 * threads do, have nothing recorded again. A block that is given back makes all heads stale. What
 * is small goes through the staging buffer all the same: the device takes longer for a recording
 * more than the host for the copy.
 */
#include "gpu/om_gpu_state.h"

enum {
  LENT_ALIGNMENT = 64,
  /* A head costs an NVIDIA H200 5 us (driver 580, 2026-11-30), in which its host copies 50 KB. */
  LEAST_LENT_BYTES = 64 * 1024,
};

/* ---- Lending ---- */

static om_status make_lent(om_ctx *ctx,
                           om_provider_session *session,
                           uint64_t bytes,
                           om_gpu_lent *out_lent) {
  om_hal_buffer *buffer = NULL;
  *out_lent = (om_gpu_lent){0};
  om_status st = om_gpu_buffer_create(ctx, session, OM_HAL_LENT, bytes, &buffer);
  if (st == OM_E_UNSUPPORTED) { /* no memory is both the host's own and the device's */
    om_error_clear(ctx->error);
    return OM_OK;
  }
  if (st != OM_OK) return st;
  char *data = session->hal->host_view(session->device, buffer);
  memset(data, 0, bytes);
  *out_lent = (om_gpu_lent){.buffer = buffer, .data = data, .bytes = bytes};
  return OM_OK;
}

om_status om_gpu_memory_lend(om_ctx *ctx,
                             om_provider_session *session,
                             size_t byte_count,
                             void **out_data) {
  om_gpu_lent lent;
  *out_data = NULL;
  if (!session->hal->host_view || byte_count > SIZE_MAX - LENT_ALIGNMENT) return OM_OK;
  const uint64_t bytes = om_size_align(byte_count > 0 ? byte_count : 1, LENT_ALIGNMENT);
  if (bytes > session->limits.max_buffer_bytes) return OM_OK;
  OM_TRY(OM_GROW(ctx, session->lents, session->lent_count, session->lent_capacity));
  OM_TRY(make_lent(ctx, session, bytes, &lent));
  if (!lent.data) return OM_OK;
  session->lents[session->lent_count++] = lent;
  *out_data = lent.data;
  return OM_OK;
}

void om_gpu_memory_return(om_ctx *ctx, om_provider_session *session, void *data) {
  size_t at = 0;
  while (at < session->lent_count && session->lents[at].data != data) ++at;
  if (at == session->lent_count) return;
  om_gpu_settle(ctx, session);
  session->hal->buffer_destroy(ctx, session->device, session->lents[at].buffer);
  session->lents[at] = session->lents[--session->lent_count];
  ++session->lent_generation;
}

void om_gpu_memory_deinit(om_ctx *ctx, om_provider_session *session) {
  while (session->lent_count > 0) om_gpu_memory_return(ctx, session, session->lents[0].data);
  om_delete(ctx, session->lents);
  session->lents = NULL;
  session->lent_capacity = 0;
}

/* ---- Where a run's inputs lie ---- */

static om_hal_binding slot_of(const om_provider_plan *plan,
                              const om_gpu_region *region,
                              size_t read) {
  const om_gpu_operand operand = {.kind = OM_GPU_VALUE, .index = region->reads[read]};
  const om_gpu_slot *slot = om_gpu_operand_slot(plan, region, 0, &operand);
  return (om_hal_binding){plan->session->arena.slabs[slot->slab], slot->offset, slot->bytes};
}

/* The place of a read in lent memory, if it can be copied from there word by word as it is. */
static bool find_lent(const om_provider_plan *plan,
                      const om_gpu_region *region,
                      size_t read,
                      const void *data,
                      om_hal_binding *out_source) {
  const om_provider_session *session = plan->session;
  const uint64_t bytes = slot_of(plan, region, read).bytes;
  if (bytes < LEAST_LENT_BYTES) return false;
  if (om_gpu_host_bytes(plan, region->reads[read]) != bytes) return false; /* widened, or padded */
  for (size_t i = 0; i < session->lent_count; ++i) {
    const om_gpu_lent *lent = &session->lents[i];
    const uintptr_t begin = (uintptr_t)lent->data, at = (uintptr_t)data;
    if (at < begin || at - begin >= lent->bytes) continue;
    const uint64_t offset = at - begin;
    *out_source = (om_hal_binding){lent->buffer, offset, bytes};
    return offset % 4 == 0 && bytes <= lent->bytes - offset;
  }
  return false;
}

bool om_gpu_reads_lent(const om_provider_plan *plan,
                       const om_gpu_region *region,
                       const void *const *reads) {
  const om_provider_session *session = plan->session;
  om_hal_binding source;
  /* Profiles want all of a region in one recording. */
  if (session->lent_count == 0 || session->profiles) return false;
  for (size_t i = 0; i < region->read_count; ++i) {
    if (find_lent(plan, region, i, reads[i], &source)) return true;
  }
  return false;
}

om_status om_gpu_add_heads(om_ctx *ctx, om_provider_plan *plan, om_gpu_region *region) {
  const size_t count = region->read_count;
  om_gpu_head *heads = OM_POOL_NEW(ctx, &plan->pool, om_gpu_head, OM_GPU_MAX_HEADS);
  om_hal_binding *sources =
      OM_POOL_NEW(ctx, &plan->pool, om_hal_binding, (OM_GPU_MAX_HEADS + 1) * count);
  if (!heads || !sources) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < OM_GPU_MAX_HEADS; ++i) heads[i].sources = sources + (i + 1) * count;
  region->sources = sources;
  region->heads = heads;
  return OM_OK;
}

void om_gpu_find_sources(const om_provider_plan *plan,
                         const om_gpu_region *region,
                         const void *const *reads) {
  for (size_t i = 0; i < region->read_count; ++i) {
    if (find_lent(plan, region, i, reads[i], &region->sources[i])) continue;
    region->sources[i] = (om_hal_binding){
        plan->session->arena.upload, region->read_offsets[i], slot_of(plan, region, i).bytes};
  }
}

/* ---- Heads ---- */

static om_status record_head(om_ctx *ctx,
                             om_provider_plan *plan,
                             const om_gpu_region *region,
                             bool is_timed,
                             om_hal_recording *recording) {
  const om_hal *hal = plan->session->hal;
  if (is_timed) OM_TRY(hal->record_timestamp(ctx, recording, 0));
  for (size_t i = 0; i < region->read_count; ++i) {
    const om_hal_binding slot = slot_of(plan, region, i);
    OM_TRY(hal->record_copy(ctx, recording, &region->sources[i], &slot));
  }
  return hal->recording_end(ctx, recording);
}

static bool is_same_place(const om_hal_binding *a, const om_hal_binding *b) {
  return a->buffer == b->buffer && a->offset == b->offset;
}

static bool is_for(const om_gpu_head *head, const om_gpu_region *region) {
  for (size_t i = 0; i < region->read_count; ++i) {
    if (!is_same_place(&head->sources[i], &region->sources[i])) return false;
  }
  return head->recording != NULL;
}

static void drop_head(om_ctx *ctx, om_provider_session *session, om_gpu_head *head) {
  if (head->recording) session->hal->recording_destroy(ctx, session->device, head->recording);
  head->recording = NULL;
}

void om_gpu_drop_heads(om_ctx *ctx, om_provider_session *session, om_gpu_region *region) {
  if (!region->heads) return;
  for (size_t i = 0; i < OM_GPU_MAX_HEADS; ++i) drop_head(ctx, session, &region->heads[i]);
}

om_status om_gpu_get_head(om_ctx *ctx,
                          om_provider_plan *plan,
                          om_gpu_region *region,
                          bool is_timed,
                          om_hal_recording **out_head) {
  om_provider_session *session = plan->session;
  om_hal_recording *recording = NULL;
  *out_head = NULL;
  if (region->lent_generation != session->lent_generation) {
    om_gpu_settle(ctx, session);
    om_gpu_drop_heads(ctx, session, region);
    region->lent_generation = session->lent_generation;
  }
  for (size_t i = 0; i < OM_GPU_MAX_HEADS && !*out_head; ++i) {
    if (is_for(&region->heads[i], region)) *out_head = region->heads[i].recording;
  }
  if (*out_head) return OM_OK;

  om_gpu_head *head = &region->heads[region->next_head];
  om_gpu_settle(ctx, session);
  drop_head(ctx, session, head);
  OM_TRY(session->hal->recording_begin(ctx, session->device, 0, is_timed ? 1 : 0, &recording));
  om_status st = record_head(ctx, plan, region, is_timed, recording);
  if (st != OM_OK) {
    session->hal->recording_destroy(ctx, session->device, recording);
    return st;
  }
  region->next_head = (region->next_head + 1) % OM_GPU_MAX_HEADS;
  head->recording = recording;
  memcpy(head->sources, region->sources, region->read_count * sizeof *head->sources);
  *out_head = recording;
  return OM_OK;
}
