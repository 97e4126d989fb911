/* Recording a region, and running it.
 *
 *     staging -> slots | dispatches, with barriers where byte ranges meet | slots -> staging
 *
 * A region is recorded at its first run and submitted again afterwards; only an arena that grew
 * in between makes its recordings stale. Long regions are cut into recordings of a bounded
 * amount of work; at the first run each is handed over as soon as it stands. Where inputs lie in
 * lent memory, what moves them is a recording of its own (om_gpu_lent.c).
 *
 * Barriers. `ranges` holds what was read and written since the last barrier. A barrier comes
 * before a launch that reads what was written or writes what was read or written; what touches
 * none of it runs beside what is in flight. A recording begins with no ranges: what is submitted
 * before it is done first.
 */
#include "abi/om_params.h"
#include "gpu/om_gpu_state.h"

typedef struct range {
  const om_hal_buffer *buffer;
  uint64_t begin, end;
  bool is_written;
} range;

typedef struct recorder {
  om_provider_plan *plan;
  om_gpu_region *region;
  om_hal_recording *current; /* the last of the region's; NULL: none is open */
  uint32_t timestamp_count;  /* in it */
  uint64_t flops;            /* in it */
  bool hands_over;           /* submit each piece as it stands */
  bool has_handed_over;
  uint64_t submit_ns; /* time in submit calls */
  range *ranges;      /* owned */
  size_t range_count, range_capacity;
} recorder;

/* ---- Kernels and places ---- */

/* The chain's item as the shader reads it (common/chain.glsl). */
static uint32_t encode_item(const om_chain_item *item, uint32_t first_scalar) {
  return (uint32_t)item->op | (uint32_t)item->source << 8 | (uint32_t)item->operand << 12 |
         (uint32_t)item->is_swapped << 14 | first_scalar << 16 | (uint32_t)item->is_rounded << 20 |
         (uint32_t)item->runs << 21;
}

void om_gpu_describe_kernel(const om_gpu_dispatch *dispatch, om_gpu_kernel_key *out_key) {
  *out_key = (om_gpu_kernel_key){.shader = dispatch->shader};
  memcpy(out_key->constants, dispatch->constants, dispatch->constant_count * sizeof(uint32_t));
  if (!dispatch->has_chain) return;
  uint32_t scalar = 0;
  for (uint32_t i = 0; i < dispatch->chain.item_count; ++i) {
    const om_chain_item *item = &dispatch->chain.items[i];
    out_key->constants[dispatch->constant_count + i] = encode_item(item, scalar);
    scalar += om_chain_item_scalars(item);
  }
}

static om_hal_binding resolve(const recorder *r, uint32_t step, const om_gpu_operand *operand) {
  const om_provider_session *session = r->plan->session;
  om_gpu_block block = session->zeros;
  if (operand->kind == OM_GPU_CONSTANT) block = r->plan->constants[operand->index];
  const om_gpu_slot *slot = om_gpu_operand_slot(r->plan, r->region, step, operand);
  if (slot) {
    block = (om_gpu_block){
        .buffer = session->arena.slabs[slot->slab], .offset = slot->offset, .bytes = slot->bytes};
  }
  if (operand->kind == OM_GPU_NOTHING)
    return (om_hal_binding){block.buffer, block.offset, block.bytes};
  uint64_t bytes =
      operand->bytes != 0 ? om_size_align(operand->bytes, 4) : block.bytes - operand->offset_bytes;
  return (om_hal_binding){block.buffer, block.offset + operand->offset_bytes, bytes};
}

/* ---- Barriers ---- */

static bool meets(const recorder *r, const om_hal_binding *binding, bool is_written) {
  for (size_t i = 0; i < r->range_count; ++i) {
    const range *other = &r->ranges[i];
    if (other->buffer != binding->buffer || !(is_written || other->is_written)) continue;
    if (other->begin < binding->offset + binding->bytes && binding->offset < other->end)
      return true;
  }
  return false;
}

static om_status add_range(om_ctx *ctx,
                           recorder *r,
                           const om_hal_binding *binding,
                           bool is_written) {
  OM_TRY(OM_GROW(ctx, r->ranges, r->range_count, r->range_capacity));
  r->ranges[r->range_count++] = (range){.buffer = binding->buffer,
                                        .begin = binding->offset,
                                        .end = binding->offset + binding->bytes,
                                        .is_written = is_written};
  return OM_OK;
}

/* A barrier, if one of the bindings meets what is in flight; then they are in flight too. */
static om_status guard(
    om_ctx *ctx, recorder *r, const om_hal_binding *bindings, uint32_t count, uint32_t write_mask) {
  for (uint32_t k = 0; k < count; ++k) {
    if (!meets(r, &bindings[k], (write_mask >> k & 1) != 0)) continue;
    OM_TRY(r->plan->session->hal->record_barrier(ctx, r->current));
    r->range_count = 0;
    break;
  }
  for (uint32_t k = 0; k < count; ++k) {
    OM_TRY(add_range(ctx, r, &bindings[k], (write_mask >> k & 1) != 0));
  }
  return OM_OK;
}

/* ---- Pieces ---- */

static bool has_timings(const om_provider_session *session) {
  return session->features.timestamps && session->collect_timings && !session->profiles;
}

static om_status mark_time(om_ctx *ctx, recorder *r) {
  const om_hal *hal = r->plan->session->hal;
  return hal->record_timestamp(ctx, r->current, r->timestamp_count++);
}

/* Profiling: what was recorded ends here, and its time is taken. */
static om_status mark_profile(om_ctx *ctx, recorder *r) {
  if (!r->plan->session->profiles) return OM_OK;
  OM_TRY(r->plan->session->hal->record_barrier(ctx, r->current));
  r->range_count = 0;
  return mark_time(ctx, r);
}

/* Slots for timestamps in one recording. */
static uint32_t count_timestamps(const recorder *r) {
  if (r->plan->session->profiles) return (uint32_t)r->region->launch_count + 3;
  return has_timings(r->plan->session) ? 2 : 0;
}

static om_status begin_piece(om_ctx *ctx, recorder *r) {
  om_gpu_region *region = r->region;
  const om_hal *hal = r->plan->session->hal;
  if (r->current) return OM_OK;
  OM_TRY(OM_GROW(ctx, region->recordings, region->recording_count, region->recording_capacity));
  OM_TRY(hal->recording_begin(
      ctx,
      r->plan->session->device,
      region->launch_count + region->read_count + region->write_count + region->finding_count,
      count_timestamps(r),
      &r->current));
  region->recordings[region->recording_count++] = r->current;
  r->flops = 0;
  r->timestamp_count = 0;
  r->range_count = 0; /* a recording begins after all that was submitted before it */
  if (region->recording_count > 1) return OM_OK;
  return has_timings(r->plan->session) ? mark_time(ctx, r) : mark_profile(ctx, r);
}

static om_status hand_over(om_ctx *ctx, recorder *r, om_hal_recording *recording) {
  om_provider_session *session = r->plan->session;
  if (!r->hands_over) return OM_OK;
  uint64_t begin = om_now_ns();
  OM_TRY(session->hal->submit(ctx, session->device, &recording, 1, &session->submitted));
  r->has_handed_over = true;
  ++session->info.submissions;
  r->submit_ns += om_now_ns() - begin;
  return OM_OK;
}

static om_status end_piece(om_ctx *ctx, recorder *r) {
  om_hal_recording *recording = r->current;
  r->current = NULL;
  OM_TRY(r->plan->session->hal->recording_end(ctx, recording));
  return hand_over(ctx, r, recording);
}

/* The uploads, where they are not a part of the first piece. */
static om_status add_head(om_ctx *ctx, recorder *r) {
  om_gpu_region *region = r->region;
  om_hal_recording *head = NULL;
  if (!region->heads) return OM_OK;
  OM_TRY(om_gpu_get_head(ctx, r->plan, region, has_timings(r->plan->session), &head));
  OM_TRY(OM_GROW(ctx, region->recordings, region->recording_count, region->recording_capacity));
  region->recordings[region->recording_count++] = head;
  return hand_over(ctx, r, head);
}

/* ---- What is recorded ---- */

static om_status record_launch(om_ctx *ctx, recorder *r, const om_gpu_launch *launch) {
  const om_gpu_dispatch *d = launch->dispatch;
  const om_provider_session *session = r->plan->session;
  const om_hal_shader *shader = om_shader_get(d->shader);
  const om_gpu_operand nothing = {.kind = OM_GPU_NOTHING};
  uint8_t params[OM_HAL_MAX_PARAMS_BYTES];
  om_gpu_kernel_key key;
  om_hal_dispatch dispatch = {.params = params};
  om_gpu_describe_kernel(d, &key);
  dispatch.kernel = om_gpu_kernels_find(session, &key);
  memcpy(dispatch.groups, d->groups, sizeof d->groups);
  for (uint32_t k = 0; k < shader->binding_count; ++k) {
    const om_gpu_operand *operand = &nothing;
    if (k < d->operand_count) operand = &d->operands[k];
    if (k >= d->operand_count && k - d->operand_count < d->chain.operand_count) {
      operand = &d->chain.operands[k - d->operand_count];
    }
    dispatch.bindings[k] = resolve(r, launch->step, operand);
  }
  memcpy(params, d->params, d->params_bytes);
  if (d->has_chain) {
    om_chain_params chain;
    memcpy(&chain, d->chain.scalars, sizeof d->chain.scalars);
    chain.chain_inner = d->chain.inner;
    chain.chain_channels = d->chain.channels;
    memcpy(params + d->params_bytes, &chain, sizeof chain);
  }
  OM_TRY(guard(ctx, r, dispatch.bindings, shader->binding_count, shader->write_mask));
  OM_TRY(session->hal->record_dispatch(ctx, r->current, &dispatch));
  ++r->region->dispatches;
  r->flops += d->flops;
  return OM_OK;
}

static om_status record_copies(om_ctx *ctx, recorder *r, bool is_upload) {
  const om_provider_session *session = r->plan->session;
  const om_gpu_region *region = r->region;
  size_t count = is_upload ? region->read_count : region->write_count;
  if (is_upload && region->heads) return OM_OK; /* in the head */
  for (size_t i = 0; i < count; ++i) {
    om_gpu_operand operand = {.kind = OM_GPU_VALUE,
                              .index = is_upload ? region->reads[i] : region->writes[i]};
    om_hal_binding slot = resolve(r, 0, &operand);
    om_hal_binding staging = {
        .buffer = is_upload ? session->arena.upload : session->arena.readback,
        .offset = is_upload ? region->read_offsets[i] : region->write_offsets[i],
        .bytes = slot.bytes};
    OM_TRY(guard(ctx, r, &slot, 1, is_upload ? 1 : 0));
    OM_TRY(session->hal->record_copy(
        ctx, r->current, is_upload ? &staging : &slot, is_upload ? &slot : &staging));
  }
  return OM_OK;
}

static om_status record_findings(om_ctx *ctx, recorder *r) {
  const om_provider_session *session = r->plan->session;
  for (size_t i = 0; i < r->region->finding_count; ++i) {
    const om_gpu_finding *finding = &r->region->findings[i];
    if (finding->read != OM_GPU_NO_READ) continue;
    const om_gpu_operand operand = {.kind = OM_GPU_SCRATCH, .index = finding->demand->scratch};
    const om_hal_binding slot = resolve(r, finding->step, &operand);
    const om_hal_binding staging = {
        .buffer = session->arena.readback, .offset = finding->offset, .bytes = slot.bytes};
    OM_TRY(guard(ctx, r, &slot, 1, 0));
    OM_TRY(session->hal->record_copy(ctx, r->current, &slot, &staging));
  }
  return OM_OK;
}

static om_status record_all(om_ctx *ctx, recorder *r) {
  const om_provider_session *session = r->plan->session;
  OM_TRY(add_head(ctx, r));
  OM_TRY(begin_piece(ctx, r));
  OM_TRY(record_copies(ctx, r, true));
  OM_TRY(mark_profile(ctx, r));
  for (size_t i = 0; i < r->region->launch_count; ++i) {
    const om_gpu_launch *launch = &r->region->launches[i];
    if (r->flops > 0 && r->flops + launch->dispatch->flops > session->submission_flops &&
        !session->profiles) {
      OM_TRY(end_piece(ctx, r));
      OM_TRY(begin_piece(ctx, r));
    }
    om_status st = record_launch(ctx, r, launch);
    if (st != OM_OK) {
      const om_node *node = r->plan->view->steps[launch->step].node;
      om_error_prefix(ctx, "Recording %s '%s': ", node->type, node->name);
      return st;
    }
    OM_TRY(mark_profile(ctx, r));
  }
  OM_TRY(record_copies(ctx, r, false));
  OM_TRY(record_findings(ctx, r));
  OM_TRY(has_timings(session) ? mark_time(ctx, r) : mark_profile(ctx, r));
  return end_piece(ctx, r);
}

void om_gpu_settle(om_ctx *ctx, om_provider_session *session) {
  if (session->submitted == session->waited) return;
  bool had_error = ctx->error->status != OM_OK;
  /* Where even this fails the device is lost, and nothing runs on it any more. */
  OM_IGNORE(session->hal->wait(ctx, session->device, session->submitted));
  if (!had_error) om_error_clear(ctx->error);
  session->waited = session->submitted;
}

static void drop_recordings(om_ctx *ctx, om_provider_session *session, om_gpu_region *region) {
  om_gpu_settle(ctx, session);
  for (size_t i = region->heads ? 1 : 0; i < region->recording_count; ++i) {
    session->hal->recording_destroy(ctx, session->device, region->recordings[i]);
  }
  om_gpu_drop_heads(ctx, session, region);
  region->recording_count = 0;
  region->generation = 0;
  region->dispatches = 0;
}

void om_gpu_region_deinit(om_ctx *ctx, om_provider_session *session, om_gpu_region *region) {
  drop_recordings(ctx, session, region);
  om_delete(ctx, region->recordings);
  region->recordings = NULL;
}

static bool is_recorded(const om_provider_session *session, const om_gpu_region *region) {
  return region->generation == session->arena.generation && region->recording_count > 0;
}

/* Records the region anew, handing pieces over where that pays. */
static om_status record_region(om_ctx *ctx,
                               om_provider_plan *plan,
                               om_gpu_region *region,
                               bool *out_handed_over,
                               uint64_t *out_submit_ns) {
  om_provider_session *session = plan->session;
  recorder r = {.plan = plan, .region = region, .hands_over = session->features.hands_over_early};
  drop_recordings(ctx, session, region);
  om_status st = record_all(ctx, &r);
  if (st == OM_OK) region->generation = session->arena.generation;
  if (st != OM_OK) drop_recordings(ctx, session, region);
  om_delete(ctx, r.ranges);
  *out_handed_over = r.has_handed_over;
  *out_submit_ns = r.submit_ns;
  return st;
}

/* ---- A run ---- */

static om_status read_times(om_ctx *ctx,
                            om_provider_session *session,
                            const om_gpu_region *region) {
  uint64_t times[2] = {0, 0};
  if (!has_timings(session)) return OM_OK;
  bool is_one = region->recording_count == 1;
  om_hal_recording *last = region->recordings[region->recording_count - 1];
  OM_TRY(session->hal->timestamps(ctx, region->recordings[0], is_one ? 2 : 1, times));
  if (!is_one) OM_TRY(session->hal->timestamps(ctx, last, 1, &times[1]));
  session->info.device_ms += (double)(times[1] - times[0]) / 1e6;
  return OM_OK;
}

/* Transfers are whole words: the rest of a tensor of bytes goes through one. */
static om_status upload_bytes(
    om_ctx *ctx, om_provider_session *session, uint64_t offset, const void *data, size_t bytes) {
  const size_t whole = bytes / 4 * 4;
  uint32_t rest = 0;
  if (whole > 0) {
    OM_TRY(session->hal->upload(ctx, session->device, session->arena.upload, offset, data, whole));
  }
  if (whole == bytes) return OM_OK;
  memcpy(&rest, (const uint8_t *)data + whole, bytes - whole);
  return session->hal->upload(
      ctx, session->device, session->arena.upload, offset + whole, &rest, sizeof rest);
}

static om_status download_bytes(
    om_ctx *ctx, om_provider_session *session, uint64_t offset, void *data, size_t bytes) {
  const size_t whole = bytes / 4 * 4;
  uint32_t rest = 0;
  if (whole > 0) {
    OM_TRY(
        session->hal->download(ctx, session->device, session->arena.readback, offset, data, whole));
  }
  if (whole == bytes) return OM_OK;
  OM_TRY(session->hal->download(
      ctx, session->device, session->arena.readback, offset + whole, &rest, sizeof rest));
  memcpy((uint8_t *)data + whole, &rest, bytes - whole);
  return OM_OK;
}

static om_status stage_reads(om_ctx *ctx,
                             const om_provider_plan *plan,
                             const om_gpu_region *region,
                             const void *const *reads) {
  om_provider_session *session = plan->session;
  for (size_t i = 0; i < region->read_count; ++i) {
    const void *data = reads[i];
    size_t bytes = om_gpu_host_bytes(plan, region->reads[i]);
    if (region->heads && region->sources[i].buffer != session->arena.upload) continue;
    if (om_gpu_value_is_widened(plan, region->reads[i])) {
      OM_TRY(om_gpu_widen_read(ctx, session, reads[i], bytes / 2, &data));
      bytes *= 2;
    }
    OM_TRY(upload_bytes(ctx, session, region->read_offsets[i], data, bytes));
    session->info.staged_bytes += bytes;
  }
  return OM_OK;
}

static om_status fetch_writes(om_ctx *ctx,
                              const om_provider_plan *plan,
                              const om_gpu_region *region,
                              void *const *writes) {
  om_provider_session *session = plan->session;
  for (size_t i = 0; i < region->write_count; ++i) {
    const uint64_t offset = region->write_offsets[i];
    const size_t bytes = om_gpu_host_bytes(plan, region->writes[i]);
    float *room = NULL;
    if (!writes[i]) continue; /* lent */
    if (!om_gpu_value_is_widened(plan, region->writes[i])) {
      OM_TRY(download_bytes(ctx, session, offset, writes[i], bytes));
      continue;
    }
    OM_TRY(om_gpu_widen_room(ctx, session, bytes / 2, &room));
    OM_TRY(download_bytes(ctx, session, offset, room, 2 * bytes));
    om_gpu_narrow(room, writes[i], bytes / 2);
  }
  return OM_OK;
}

const void *om_gpu_lend(om_provider_plan *plan, size_t region_index, size_t write) {
  const om_provider_session *session = plan->session;
  const om_gpu_region *region = &plan->regions[region_index];
  const om_hal_buffer *readback = session->arena.readback;
  if (!session->hal->host_view || !readback) return NULL;
  if (om_gpu_value_is_widened(plan, region->writes[write])) return NULL;
  const char *bytes = session->hal->host_view(session->device, readback);
  return bytes ? bytes + region->write_offsets[write] : NULL;
}

/* Where the run's inputs lie, and the recording that uploads them from there, if it is one of its
 * own. */
static om_status place_reads(om_ctx *ctx,
                             om_provider_plan *plan,
                             om_gpu_region *region,
                             const void *const *reads) {
  om_provider_session *session = plan->session;
  if (!region->heads && om_gpu_reads_lent(plan, region, reads)) {
    drop_recordings(ctx, session, region); /* their first has the uploads */
    OM_TRY(om_gpu_add_heads(ctx, plan, region));
  }
  if (region->heads) om_gpu_find_sources(plan, region, reads);
  OM_TRY(stage_reads(ctx, plan, region, reads));
  if (!region->heads || !is_recorded(session, region)) return OM_OK;
  return om_gpu_get_head(ctx, plan, region, has_timings(session), &region->recordings[0]);
}

/* The times and counts in the information are a run's: its first region starts them. */
static void begin_counts(om_gpu_info *info, size_t region_index) {
  if (region_index != 0) return;
  info->dispatches = info->submissions = info->staged_bytes = 0;
  info->device_ms = info->record_ms = info->submit_ms = info->wait_ms = 0.0;
}

om_status om_gpu_region_begin(om_ctx *ctx,
                              om_provider_plan *plan,
                              size_t region_index,
                              const void *const *reads) {
  om_provider_session *session = plan->session;
  om_gpu_region *region = &plan->regions[region_index];
  om_gpu_info *info = &session->info;
  bool is_handed_over = false;
  uint64_t submit_ns = 0;
  begin_counts(info, region_index);
  uint64_t begin = om_now_ns();
  OM_TRY(om_gpu_demands_check_reads(ctx, plan, region, reads));
  OM_TRY(om_gpu_arena_fit(ctx, session, region));
  OM_TRY(place_reads(ctx, plan, region, reads));
  if (!is_recorded(session, region)) {
    OM_TRY(record_region(ctx, plan, region, &is_handed_over, &submit_ns));
  }
  uint64_t recorded = om_now_ns();
  if (!is_handed_over) {
    OM_TRY(session->hal->submit(
        ctx, session->device, region->recordings, region->recording_count, &session->submitted));
    ++info->submissions;
  }
  session->submitted_ns = om_now_ns();
  info->dispatches += region->dispatches;
  info->record_ms += (double)(recorded - begin - submit_ns) / 1e6;
  info->submit_ms += (double)(session->submitted_ns - recorded + submit_ns) / 1e6;
  return OM_OK;
}

om_status om_gpu_region_is_done(om_ctx *ctx,
                                om_provider_plan *plan,
                                size_t region_index,
                                bool *out_is_done) {
  om_provider_session *session = plan->session;
  (void)region_index; /* the last that was submitted */
  return session->hal->is_done(ctx, session->device, session->submitted, out_is_done);
}

om_status om_gpu_region_finish(om_ctx *ctx,
                               om_provider_plan *plan,
                               size_t region_index,
                               void *const *writes) {
  om_provider_session *session = plan->session;
  om_gpu_region *region = &plan->regions[region_index];
  OM_TRY(session->hal->wait(ctx, session->device, session->submitted));
  session->waited = session->submitted;
  OM_TRY(om_gpu_demands_check_findings(ctx, plan, region));
  OM_TRY(fetch_writes(ctx, plan, region, writes));
  OM_TRY(read_times(ctx, session, region));
  OM_TRY(om_gpu_profile_read(ctx, plan, region_index));
  session->info.wait_ms += (double)(om_now_ns() - session->submitted_ns) / 1e6;
  return OM_OK;
}
