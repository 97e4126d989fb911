/* Trials: a kernel run once over host memory, for the self-test. All dispatches go in one
 * submission. */
#include "abi/selftest_params.h"
#include "gpu/om_gpu_selftest.h"

enum { GROUP_THREADS = 64 }; /* as the shaders have it */

static uint64_t part_bytes(const om_gpu_trial *trial) {
  return (uint64_t)trial->count * sizeof(uint32_t);
}

static uint64_t result_bytes(const om_gpu_trial *trial) {
  return part_bytes(trial) * trial->result_count * trial->runs;
}

static om_status record(om_ctx *ctx, const om_provider_session *session, om_gpu_trial *trial) {
  const om_hal *hal = session->hal;
  const uint64_t bytes = part_bytes(trial);
  om_hal_binding all = {trial->rig.results, 0, result_bytes(trial)};
  om_hal_binding host = {trial->rig.readback, 0, all.bytes};
  OM_TRY(hal->recording_begin(ctx, session->device, trial->runs, 0, &trial->rig.recording));
  for (uint32_t run = 0; run < trial->runs; ++run) {
    const om_selftest_params params = {.count = trial->count, .number = run};
    om_hal_dispatch dispatch = {.kernel = trial->rig.kernel,
                                .params = &params,
                                .groups = {trial->count / GROUP_THREADS, 1, 1}};
    for (uint32_t k = 0; k < trial->input_count; ++k) {
      dispatch.bindings[k] = (om_hal_binding){trial->rig.inputs, k * bytes, bytes};
    }
    for (uint32_t k = 0; k < trial->result_count; ++k) {
      const uint64_t part = (uint64_t)run * trial->result_count + k;
      dispatch.bindings[trial->input_count + k] =
          (om_hal_binding){trial->rig.results, part * bytes, bytes};
    }
    OM_TRY(hal->record_dispatch(ctx, trial->rig.recording, &dispatch));
  }
  OM_TRY(hal->record_barrier(ctx, trial->rig.recording));
  OM_TRY(hal->record_copy(ctx, trial->rig.recording, &all, &host));
  return hal->recording_end(ctx, trial->rig.recording);
}

static om_status make_kernel(om_ctx *ctx, om_provider_session *session, om_gpu_trial *trial) {
  om_gpu_kernel_entry entry = {.key = {.shader = trial->shader}};
  om_status st = om_gpu_trim(ctx, &entry, 1);
  trial->rig.trimmed = entry.trimmed; /* freed with the rig */
  if (st != OM_OK) return st;
  const om_hal_kernel_desc desc = {.shader = trial->rig.trimmed ? trial->rig.trimmed
                                                                : om_shader_get(trial->shader)};
  return session->hal->kernels_create(ctx, session->device, &desc, 1, &trial->rig.kernel);
}

om_status om_gpu_trial_begin(om_ctx *ctx, om_provider_session *session, om_gpu_trial *trial) {
  const om_hal *hal = session->hal;
  om_hal_device *device = session->device;
  const uint64_t input_bytes = part_bytes(trial) * trial->input_count;
  const uint64_t bytes = result_bytes(trial);
  OM_TRY(hal->buffer_create(ctx, device, OM_HAL_DEVICE, input_bytes, &trial->rig.inputs));
  OM_TRY(hal->buffer_create(ctx, device, OM_HAL_DEVICE, bytes, &trial->rig.results));
  OM_TRY(hal->buffer_create(ctx, device, OM_HAL_READBACK, bytes, &trial->rig.readback));
  OM_TRY(hal->upload(ctx, device, trial->rig.inputs, 0, trial->inputs, input_bytes));
  OM_TRY(make_kernel(ctx, session, trial));
  OM_TRY(record(ctx, session, trial));
  return hal->submit(ctx, device, &trial->rig.recording, 1, &session->submitted);
}

om_status om_gpu_trial_read(om_ctx *ctx, om_provider_session *session, const om_gpu_trial *trial) {
  return session->hal->download(
      ctx, session->device, trial->rig.readback, 0, trial->results, result_bytes(trial));
}

void om_gpu_trial_end(om_ctx *ctx, om_provider_session *session, om_gpu_trial *trial) {
  const om_hal *hal = session->hal;
  om_hal_device *device = session->device;
  if (trial->rig.recording) hal->recording_destroy(ctx, device, trial->rig.recording);
  if (trial->rig.kernel) hal->kernel_destroy(ctx, device, trial->rig.kernel);
  if (trial->rig.inputs) hal->buffer_destroy(ctx, device, trial->rig.inputs);
  if (trial->rig.results) hal->buffer_destroy(ctx, device, trial->rig.results);
  if (trial->rig.readback) hal->buffer_destroy(ctx, device, trial->rig.readback);
  om_gpu_free_trimmed(ctx, trial->rig.trimmed);
}
