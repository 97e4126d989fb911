/* Trials: a kernel run once over host memory, for the self-test. All dispatches go in one
 * submission. */
#include "abi/selftest_params.h"
#include "gpu/om_gpu_selftest.h"

enum { GROUP_THREADS = 64 }; /* as the shaders have it */

typedef struct rig {
  om_hal_buffer *inputs;
  om_hal_buffer *results;
  om_hal_buffer *readback;
  om_hal_kernel *kernel;
  om_hal_recording *recording;
} rig;

static uint64_t part_bytes(const om_gpu_trial *trial) {
  return (uint64_t)trial->count * sizeof(uint32_t);
}

static uint64_t result_bytes(const om_gpu_trial *trial) {
  return part_bytes(trial) * trial->result_count * trial->runs;
}

static om_status record(om_ctx *ctx,
                        const om_provider_session *session,
                        const om_gpu_trial *trial,
                        rig *r) {
  const om_hal *hal = session->hal;
  const uint64_t bytes = part_bytes(trial);
  om_hal_binding all = {r->results, 0, result_bytes(trial)};
  om_hal_binding host = {r->readback, 0, all.bytes};
  OM_TRY(hal->recording_begin(ctx, session->device, trial->runs, 0, &r->recording));
  for (uint32_t run = 0; run < trial->runs; ++run) {
    const om_selftest_params params = {.count = trial->count, .number = run};
    om_hal_dispatch dispatch = {
        .kernel = r->kernel, .params = &params, .groups = {trial->count / GROUP_THREADS, 1, 1}};
    for (uint32_t k = 0; k < trial->input_count; ++k) {
      dispatch.bindings[k] = (om_hal_binding){r->inputs, k * bytes, bytes};
    }
    for (uint32_t k = 0; k < trial->result_count; ++k) {
      const uint64_t part = (uint64_t)run * trial->result_count + k;
      dispatch.bindings[trial->input_count + k] = (om_hal_binding){r->results, part * bytes, bytes};
    }
    OM_TRY(hal->record_dispatch(ctx, r->recording, &dispatch));
  }
  OM_TRY(hal->record_barrier(ctx, r->recording));
  OM_TRY(hal->record_copy(ctx, r->recording, &all, &host));
  return hal->recording_end(ctx, r->recording);
}

static om_status compute(om_ctx *ctx,
                         om_provider_session *session,
                         const om_gpu_trial *trial,
                         rig *r) {
  const om_hal *hal = session->hal;
  om_hal_device *device = session->device;
  const om_hal_kernel_desc desc = {.shader = om_shader_get(trial->shader)};
  const uint64_t input_bytes = part_bytes(trial) * trial->input_count;
  const uint64_t bytes = result_bytes(trial);
  OM_TRY(hal->buffer_create(ctx, device, OM_HAL_DEVICE, input_bytes, &r->inputs));
  OM_TRY(hal->buffer_create(ctx, device, OM_HAL_DEVICE, bytes, &r->results));
  OM_TRY(hal->buffer_create(ctx, device, OM_HAL_READBACK, bytes, &r->readback));
  OM_TRY(hal->upload(ctx, device, r->inputs, 0, trial->inputs, input_bytes));
  OM_TRY(hal->kernels_create(ctx, device, &desc, 1, &r->kernel));
  OM_TRY(record(ctx, session, trial, r));
  OM_TRY(hal->submit(ctx, device, &r->recording, 1, &session->submitted));
  OM_TRY(hal->wait(ctx, device, session->submitted));
  session->waited = session->submitted;
  return hal->download(ctx, device, r->readback, 0, trial->results, bytes);
}

om_status om_gpu_try(om_ctx *ctx, om_provider_session *session, const om_gpu_trial *trial) {
  const om_hal *hal = session->hal;
  rig r = {0};
  om_status st = compute(ctx, session, trial, &r);
  om_gpu_settle(ctx, session);
  if (r.recording) hal->recording_destroy(ctx, session->device, r.recording);
  if (r.kernel) hal->kernel_destroy(ctx, session->device, r.kernel);
  if (r.inputs) hal->buffer_destroy(ctx, session->device, r.inputs);
  if (r.results) hal->buffer_destroy(ctx, session->device, r.results);
  if (r.readback) hal->buffer_destroy(ctx, session->device, r.readback);
  return st;
}
