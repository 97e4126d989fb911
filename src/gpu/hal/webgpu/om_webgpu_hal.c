/* The WebGPU backend: devices, buffers, kernels, and whether a submission is done.
 *
 * Nothing here waits, since a page cannot: a wait for what is not done is an error. What fails
 * later, in the page, is kept by the device and fails the next call.
 */
#include <inttypes.h>
#include <stdio.h>

#include "gpu/hal/om_hal_check.h"
#include "gpu/hal/webgpu/om_webgpu_device.h"

om_status om_webgpu_check(om_ctx *ctx, const om_webgpu_device *device) {
  char reason[512];
  switch (om_webgpu_js_error(device->handle, reason, sizeof reason)) {
    case 0:
      return OM_OK;
    case 1:
      return OM_FAIL(ctx, OM_E_DEVICE_LOST, "The device '%s' is lost: %s", device->name, reason);
    case 2:
      return OM_FAIL(ctx, OM_E_OUT_OF_DEVICE_MEMORY, "The device is out of memory: %s", reason);
    default:
      return OM_FAIL(ctx, OM_E_INTERNAL, "WebGPU: %s", reason);
  }
}

/* ---- Devices ---- */

static void fill_description(om_gpu_device *out_device, const char *name) {
  *out_device = (om_gpu_device){.backend = "webgpu", .kind = "WebGPU adapter"};
  (void)snprintf(out_device->name, sizeof out_device->name, "%s", name);
  (void)snprintf(out_device->driver, sizeof out_device->driver, "WebGPU");
}

static om_status list(om_ctx *ctx, om_gpu_device *devices, size_t capacity, size_t *out_count) {
  char name[256];
  (void)ctx;
  *out_count = om_webgpu_js_device_count();
  for (size_t i = 0; i < *out_count && i < capacity; ++i) {
    om_webgpu_js_device_name((uint32_t)i, name, sizeof name);
    fill_description(&devices[i], name);
  }
  return OM_OK;
}

static uint32_t small_limit(om_webgpu_handle device, uint32_t which) {
  double limit = om_webgpu_js_limit(device, which);
  return limit < (double)UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
}

static void read_limits(om_webgpu_device *device) {
  const om_webgpu_handle handle = device->handle;
  const uint32_t groups = small_limit(handle, OM_WEBGPU_MAX_GROUPS);
  device->limits = (om_hal_limits){
      .max_binding_bytes = (uint64_t)om_webgpu_js_limit(handle, OM_WEBGPU_MAX_BINDING_BYTES),
      .max_buffer_bytes = (uint64_t)om_webgpu_js_limit(handle, OM_WEBGPU_MAX_BUFFER_BYTES),
      .binding_alignment = small_limit(handle, OM_WEBGPU_BINDING_ALIGNMENT),
      .max_shared_bytes = small_limit(handle, OM_WEBGPU_MAX_SHARED_BYTES),
      .max_invocations = small_limit(handle, OM_WEBGPU_MAX_INVOCATIONS),
      .max_groups = {groups, groups, groups},
      .subgroup_size = 1,
  };
  device->features = (om_hal_features){
      .storage_16bit = om_webgpu_js_has_float16(handle) != 0,
      .timestamps = om_webgpu_js_has_clock(handle) != 0,
      .separate_slabs = true,
      .never_waits = true,
      .in_turn = om_webgpu_js_is_software(handle) != 0,
  };
}

static om_status open_device(om_ctx *ctx,
                             size_t index,
                             bool takes_ptx,
                             om_hal_device **out_device) {
  (void)takes_ptx; /* there is none in a browser */
  om_webgpu_device *device = NULL;
  *out_device = NULL;
  if (index >= om_webgpu_js_device_count()) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "No WebGPU device is ready: the page prepares one before each session.");
  }
  device = om_new_bytes(ctx, 1, sizeof *device);
  if (!device) return OM_E_OUT_OF_MEMORY;
  om_webgpu_js_device_name((uint32_t)index, device->name, sizeof device->name);
  device->handle = om_webgpu_js_open((uint32_t)index);
  read_limits(device);
  *out_device = (om_hal_device *)device;
  return OM_OK;
}

static void close_device(om_ctx *ctx, om_hal_device *hal_device) {
  om_webgpu_js_close(om_webgpu_device_of(hal_device)->handle);
  om_delete(ctx, hal_device);
}

static void describe(const om_hal_device *device, om_gpu_device *out_device) {
  fill_description(out_device, ((const om_webgpu_device *)device)->name);
}

static const om_hal_limits *limits(const om_hal_device *device) {
  return &((const om_webgpu_device *)device)->limits;
}

static const om_hal_features *features(const om_hal_device *device) {
  return &((const om_webgpu_device *)device)->features;
}

/* ---- Buffers ---- */

static om_status buffer_create(om_ctx *ctx,
                               om_hal_device *hal_device,
                               om_hal_memory memory,
                               uint64_t bytes,
                               om_hal_buffer **out_buffer) {
  static const uint32_t kinds[] = {
      [OM_HAL_DEVICE] = OM_WEBGPU_STORAGE,
      [OM_HAL_UPLOAD] = OM_WEBGPU_STAGING,
      [OM_HAL_READBACK] = OM_WEBGPU_MAPPED,
  };
  om_status st = OM_OK;
  const om_webgpu_device *device = om_webgpu_device_of(hal_device);
  om_webgpu_buffer *buffer = NULL;
  *out_buffer = NULL;
  OM_TRY(om_webgpu_check(ctx, device));
  OM_TRY(om_hal_check_buffer(ctx, &device->limits, bytes));
  OM_GO_NEW(buffer, 1);
  buffer->bytes = bytes;
  buffer->handle = om_webgpu_js_buffer_create(device->handle, kinds[memory], (double)bytes);
  if (buffer->handle == 0) {
    st = OM_FAIL(ctx,
                 OM_E_OUT_OF_DEVICE_MEMORY,
                 "The device has no room for a buffer of %" PRIu64 " bytes.",
                 bytes);
    goto done;
  }
  *out_buffer = (om_hal_buffer *)buffer;
  buffer = NULL; /* the caller owns it now */
done:
  om_delete(ctx, buffer);
  return st;
}

static void buffer_destroy(om_ctx *ctx, om_hal_device *device, om_hal_buffer *buffer) {
  om_webgpu_js_buffer_destroy(om_webgpu_device_of(device)->handle,
                              ((om_webgpu_buffer *)buffer)->handle);
  om_delete(ctx, buffer);
}

static om_status upload(om_ctx *ctx,
                        om_hal_device *hal_device,
                        om_hal_buffer *hal_buffer,
                        uint64_t offset,
                        const void *data,
                        uint64_t bytes) {
  const om_webgpu_device *device = om_webgpu_device_of(hal_device);
  const om_webgpu_buffer *buffer = (const om_webgpu_buffer *)hal_buffer;
  OM_TRY(om_webgpu_check(ctx, device));
  OM_TRY(om_hal_check_range(ctx, "The upload", offset, bytes, buffer->bytes));
  om_webgpu_js_write(device->handle, buffer->handle, (double)offset, data, (size_t)bytes);
  return OM_OK;
}

static om_status download(om_ctx *ctx,
                          om_hal_device *hal_device,
                          om_hal_buffer *hal_buffer,
                          uint64_t offset,
                          void *data,
                          uint64_t bytes) {
  const om_webgpu_device *device = om_webgpu_device_of(hal_device);
  const om_webgpu_buffer *buffer = (const om_webgpu_buffer *)hal_buffer;
  OM_TRY(om_webgpu_check(ctx, device));
  OM_TRY(om_hal_check_range(ctx, "The readback", offset, bytes, buffer->bytes));
  if (om_webgpu_js_read(device->handle, buffer->handle, (double)offset, data, (size_t)bytes) == 0) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "A buffer was read before the submission that writes it.");
  }
  return OM_OK;
}

/* ---- Kernels ---- */

static om_webgpu_handle make_kernel(const om_webgpu_device *device,
                                    const om_hal_kernel_desc *desc) {
  const om_hal_shader *shader = desc->shader;
  return om_webgpu_js_kernel_create(device->handle,
                                    shader->name,
                                    shader->code,
                                    shader->code_bytes,
                                    desc->constants,
                                    shader->constant_count,
                                    shader->binding_count,
                                    shader->write_mask,
                                    shader->params_bytes);
}

static void kernel_destroy(om_ctx *ctx, om_hal_device *device, om_hal_kernel *kernel) {
  om_webgpu_js_kernel_destroy(om_webgpu_device_of(device)->handle,
                              ((om_webgpu_kernel *)kernel)->handle);
  om_delete(ctx, kernel);
}

static om_status kernels_create(om_ctx *ctx,
                                om_hal_device *hal_device,
                                const om_hal_kernel_desc *descs,
                                size_t count,
                                om_hal_kernel **out_kernels) {
  om_status st = OM_OK;
  const om_webgpu_device *device = om_webgpu_device_of(hal_device);
  size_t made = 0;
  for (size_t i = 0; i < count; ++i) out_kernels[i] = NULL;
  OM_TRY(om_webgpu_check(ctx, device));
  for (; made < count; ++made) {
    om_webgpu_kernel *kernel = NULL;
    OM_GO(om_hal_check_shader(
        ctx, &device->limits, &device->features, OM_HAL_WGSL, descs[made].shader));
    OM_GO_NEW(kernel, 1);
    kernel->shader = descs[made].shader;
    kernel->handle = make_kernel(device, &descs[made]);
    out_kernels[made] = (om_hal_kernel *)kernel;
  }
done:
  for (size_t i = 0; st != OM_OK && i < made; ++i) {
    kernel_destroy(ctx, hal_device, out_kernels[i]);
    out_kernels[i] = NULL;
  }
  return st;
}

/* ---- The end of a submission ---- */

static om_status is_done(om_ctx *ctx,
                         om_hal_device *hal_device,
                         uint64_t number,
                         bool *out_is_done) {
  const om_webgpu_device *device = om_webgpu_device_of(hal_device);
  *out_is_done = false;
  OM_TRY(om_webgpu_check(ctx, device));
  if (number > device->submitted) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "Submission %" PRIu64 " was never made.", number);
  }
  *out_is_done = (double)number <= om_webgpu_js_finished(device->handle);
  return OM_OK;
}

static om_status wait(om_ctx *ctx, om_hal_device *device, uint64_t number) {
  bool has_ended = false;
  OM_TRY(is_done(ctx, device, number, &has_ended));
  if (has_ended) return OM_OK;
  return OM_FAIL(ctx, OM_E_UNSUPPORTED, "A browser cannot wait for the GPU.");
}

const om_hal om_hal_webgpu = {
    .name = "webgpu",
    .list = list,
    .open = open_device,
    .close = close_device,
    .describe = describe,
    .limits = limits,
    .features = features,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .upload = upload,
    .download = download,
    .kernels_create = kernels_create,
    .kernel_destroy = kernel_destroy,
    .recording_begin = om_webgpu_recording_begin,
    .record_dispatch = om_webgpu_record_dispatch,
    .record_copy = om_webgpu_record_copy,
    .record_barrier = om_webgpu_record_barrier,
    .record_timestamp = om_webgpu_record_timestamp,
    .recording_end = om_webgpu_recording_end,
    .recording_destroy = om_webgpu_recording_destroy,
    .submit = om_webgpu_submit,
    .is_done = is_done,
    .wait = wait,
    .timestamps = om_webgpu_timestamps,
};
