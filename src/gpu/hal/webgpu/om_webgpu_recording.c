/* Recordings: operations as words, which cross into the page once, when the recording ends. */
#include <inttypes.h>

#include "gpu/hal/om_hal_check.h"
#include "gpu/hal/webgpu/om_webgpu_device.h"

enum { PARAMS_ALIGNMENT = 256 }; /* the most that WebGPU asks of a uniform block's offset */

static om_webgpu_recording *recording_of(om_hal_recording *recording) {
  return (om_webgpu_recording *)recording;
}

/* ---- Words ---- */

static om_status add_word(om_ctx *ctx, om_webgpu_recording *r, uint64_t word) {
  if (word > UINT32_MAX) return OM_FAIL(ctx, OM_E_UNSUPPORTED, "A buffer is above 16 GiB.");
  OM_TRY(OM_GROW(ctx, r->words, r->word_count, r->word_capacity));
  r->words[r->word_count++] = (uint32_t)word;
  return OM_OK;
}

/* Offsets and sizes are words of 4 bytes, so that 32 bits reach far. */
static om_status add_place(om_ctx *ctx, om_webgpu_recording *r, const om_hal_binding *binding) {
  const om_webgpu_buffer *buffer = (const om_webgpu_buffer *)binding->buffer;
  OM_TRY(add_word(ctx, r, buffer->handle));
  return add_word(ctx, r, binding->offset / 4);
}

static om_status check_inside(om_ctx *ctx, const char *what, const om_hal_binding *binding) {
  const om_webgpu_buffer *buffer = (const om_webgpu_buffer *)binding->buffer;
  return om_hal_check_range(ctx, what, binding->offset, binding->bytes, buffer->bytes);
}

/* Makes room for one more block of parameters, and copies it there. */
static om_status add_params(
    om_ctx *ctx, om_webgpu_recording *r, const void *params, uint32_t bytes, size_t *out_offset) {
  *out_offset = r->params_bytes;
  if (bytes == 0) return OM_OK;
  for (size_t i = 0; i < PARAMS_ALIGNMENT; ++i) {
    OM_TRY(OM_GROW(ctx, r->params, r->params_bytes, r->params_capacity));
    r->params[r->params_bytes++] = 0;
  }
  memcpy(r->params + *out_offset, params, bytes);
  return OM_OK;
}

/* ---- The backend's part ---- */

om_status om_webgpu_recording_begin(om_ctx *ctx,
                                    om_hal_device *hal_device,
                                    size_t dispatch_count,
                                    uint32_t timestamp_count,
                                    om_hal_recording **out_recording) {
  om_webgpu_device *device = om_webgpu_device_of(hal_device);
  om_webgpu_recording *recording = NULL;
  (void)dispatch_count;
  *out_recording = NULL;
  OM_TRY(om_webgpu_check(ctx, device));
  if (timestamp_count > 0 && !device->features.timestamps) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The device has no timestamps.");
  }
  recording = om_new_bytes(ctx, 1, sizeof *recording);
  if (!recording) return OM_E_OUT_OF_MEMORY;
  recording->device = device;
  recording->timestamp_count = timestamp_count;
  *out_recording = (om_hal_recording *)recording;
  return OM_OK;
}

om_status om_webgpu_record_dispatch(om_ctx *ctx,
                                    om_hal_recording *hal_recording,
                                    const om_hal_dispatch *dispatch) {
  om_webgpu_recording *r = recording_of(hal_recording);
  const om_webgpu_kernel *kernel = (const om_webgpu_kernel *)dispatch->kernel;
  const om_hal_shader *shader = kernel->shader;
  size_t offset = 0;
  OM_TRY(om_hal_check_dispatch(ctx, &r->device->limits, shader, dispatch));
  OM_TRY(add_params(ctx, r, dispatch->params, shader->params_bytes, &offset));
  OM_TRY(add_word(ctx, r, OM_WEBGPU_DISPATCH));
  OM_TRY(add_word(ctx, r, kernel->handle));
  for (int i = 0; i < 3; ++i) OM_TRY(add_word(ctx, r, dispatch->groups[i]));
  OM_TRY(add_word(ctx, r, offset));
  for (uint32_t i = 0; i < shader->binding_count; ++i) {
    OM_TRY(check_inside(ctx, "A binding", &dispatch->bindings[i]));
    OM_TRY(add_place(ctx, r, &dispatch->bindings[i]));
    OM_TRY(add_word(ctx, r, dispatch->bindings[i].bytes / 4));
  }
  return OM_OK;
}

om_status om_webgpu_record_copy(om_ctx *ctx,
                                om_hal_recording *hal_recording,
                                const om_hal_binding *source,
                                const om_hal_binding *target) {
  om_webgpu_recording *r = recording_of(hal_recording);
  const om_hal_binding written = {target->buffer, target->offset, source->bytes};
  OM_TRY(check_inside(ctx, "A copy's source", source));
  OM_TRY(check_inside(ctx, "A copy's target", &written));
  OM_TRY(add_word(ctx, r, OM_WEBGPU_COPY));
  OM_TRY(add_place(ctx, r, source));
  OM_TRY(add_place(ctx, r, target));
  return add_word(ctx, r, source->bytes / 4);
}

om_status om_webgpu_record_barrier(om_ctx *ctx, om_hal_recording *recording) {
  (void)ctx;
  (void)recording; /* WebGPU orders dispatches by what they bind */
  return OM_OK;
}

om_status om_webgpu_record_timestamp(om_ctx *ctx, om_hal_recording *recording, uint32_t index) {
  om_webgpu_recording *r = recording_of(recording);
  if (index >= r->timestamp_count) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "Timestamp %u is not one of %u.", index, r->timestamp_count);
  }
  OM_TRY(add_word(ctx, r, OM_WEBGPU_TIMESTAMP));
  return add_word(ctx, r, index);
}

om_status om_webgpu_timestamps(om_ctx *ctx,
                               om_hal_recording *recording,
                               uint32_t count,
                               uint64_t *out_ns) {
  const om_webgpu_recording *r = recording_of(recording);
  if (om_webgpu_js_timestamps(r->device->handle, r->handle, count, out_ns) != 0) return OM_OK;
  return OM_FAIL(ctx, OM_E_INTERNAL, "Timestamps were read before the end of their submission.");
}

om_status om_webgpu_recording_end(om_ctx *ctx, om_hal_recording *hal_recording) {
  om_webgpu_recording *r = recording_of(hal_recording);
  r->handle = om_webgpu_js_recording_create(
      r->device->handle, r->words, r->word_count, r->params, r->params_bytes, r->timestamp_count);
  om_delete(ctx, r->words);
  om_delete(ctx, r->params);
  r->words = NULL;
  r->params = NULL;
  return om_webgpu_check(ctx, r->device);
}

void om_webgpu_recording_destroy(om_ctx *ctx,
                                 om_hal_device *device,
                                 om_hal_recording *hal_recording) {
  om_webgpu_recording *r = recording_of(hal_recording);
  if (r->handle != 0) {
    om_webgpu_js_recording_destroy(om_webgpu_device_of(device)->handle, r->handle);
  }
  om_delete(ctx, r->words);
  om_delete(ctx, r->params);
  om_delete(ctx, r);
}

om_status om_webgpu_submit(om_ctx *ctx,
                           om_hal_device *hal_device,
                           om_hal_recording *const *recordings,
                           size_t count,
                           uint64_t *out_number) {
  om_webgpu_device *device = om_webgpu_device_of(hal_device);
  *out_number = 0;
  OM_TRY(om_webgpu_check(ctx, device));
  for (size_t i = 0; i < count; ++i) { /* one by one: few are ever more than one */
    om_webgpu_handle handle = recording_of(recordings[i])->handle;
    device->submitted += 1;
    om_webgpu_js_submit(device->handle, &handle, 1, (double)device->submitted);
  }
  *out_number = device->submitted;
  return OM_OK;
}
