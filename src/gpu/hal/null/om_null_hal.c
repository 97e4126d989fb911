/* The null backend's table, its buffers and its kernels. */
#include <inttypes.h>

#include "gpu/hal/null/om_null_device.h"
#include "gpu/hal/null/om_null_recording.h"
#include "gpu/hal/om_hal_check.h"

static om_status buffer_create(om_ctx *ctx,
                               om_hal_device *hal_device,
                               om_hal_memory memory,
                               uint64_t bytes,
                               om_hal_buffer **out_buffer) {
  om_null_device *device = om_null_device_of(hal_device);
  *out_buffer = NULL;
  OM_TRY(om_null_device_check(ctx, device));
  OM_TRY(om_hal_check_buffer(ctx, &device->limits, bytes));
  om_null_buffer *buffer = om_new_bytes(ctx, 1, sizeof *buffer);
  if (!buffer) return OM_E_OUT_OF_MEMORY;
  buffer->memory = memory;
  buffer->bytes = bytes;
  if (memory == OM_HAL_LENT) {
    buffer->lent = om_new_bytes(ctx, bytes, 1);
    if (!buffer->lent) {
      om_delete(ctx, buffer);
      return OM_E_OUT_OF_MEMORY;
    }
  }
  om_null_object_add(device, OM_NULL_BUFFER, &buffer->object);
  *out_buffer = (om_hal_buffer *)buffer;
  return OM_OK;
}

static void buffer_destroy(om_ctx *ctx, om_hal_device *device, om_hal_buffer *buffer) {
  (void)device;
  om_null_object_destroy(ctx, (om_null_object *)buffer, OM_NULL_BUFFER);
  if (!buffer) return;
  om_delete(ctx, om_null_buffer_of(buffer)->lent);
  om_null_buffer_of(buffer)->lent = NULL;
}

static void *host_view(const om_hal_device *device, const om_hal_buffer *buffer) {
  (void)device;
  return ((const om_null_buffer *)buffer)->lent;
}

static om_status upload(om_ctx *ctx,
                        om_hal_device *hal_device,
                        om_hal_buffer *hal_buffer,
                        uint64_t offset,
                        const void *data,
                        uint64_t bytes) {
  om_null_device *device = om_null_device_of(hal_device);
  const om_null_buffer *buffer = om_null_buffer_of(hal_buffer);
  OM_TRY(om_null_device_check(ctx, device));
  OM_TRY(om_null_object_check(ctx, &buffer->object, OM_NULL_BUFFER, "Upload"));
  OM_TRY(om_hal_check_range(ctx, "The upload", offset, bytes, buffer->bytes));
  if (!data || buffer->memory == OM_HAL_READBACK || buffer->memory == OM_HAL_LENT) {
    return OM_FAIL(
        ctx, OM_E_INTERNAL, "An upload has no data, or goes to a readback buffer or lent memory.");
  }
  if (buffer->memory == OM_HAL_UPLOAD && buffer->object.used_until > device->waited) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "An upload buffer was written while submission %" PRIu64 " may still read it.",
                   buffer->object.used_until);
  }
  return OM_OK;
}

static om_status download(om_ctx *ctx,
                          om_hal_device *hal_device,
                          om_hal_buffer *hal_buffer,
                          uint64_t offset,
                          void *data,
                          uint64_t bytes) {
  om_null_device *device = om_null_device_of(hal_device);
  const om_null_buffer *buffer = om_null_buffer_of(hal_buffer);
  OM_TRY(om_null_device_check(ctx, device));
  OM_TRY(om_null_object_check(ctx, &buffer->object, OM_NULL_BUFFER, "Download"));
  OM_TRY(om_hal_check_range(ctx, "The download", offset, bytes, buffer->bytes));
  if (buffer->memory != OM_HAL_READBACK || buffer->written_by == 0) {
    return OM_FAIL(
        ctx, OM_E_INTERNAL, "A download is from no readback buffer, or from one never written.");
  }
  if (buffer->written_by > device->waited) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "A buffer was read before the wait for submission %" PRIu64 ".",
                   buffer->written_by);
  }
  memset(data, 0, bytes);
  return OM_OK;
}

/* ---- Kernels: what is kept of one is a number ---- */

/* FNV-1a over its name and its constants. */
static uint64_t kernel_number(const om_hal_kernel_desc *desc) {
  uint64_t hash = 14695981039346656037u;
  for (const char *c = desc->shader->name; *c; ++c) hash = (hash ^ (uint8_t)*c) * 1099511628211u;
  for (uint32_t i = 0; i < desc->shader->constant_count; ++i) {
    hash = (hash ^ desc->constants[i]) * 1099511628211u;
  }
  return hash;
}

static om_status keep_number(om_ctx *ctx, om_null_device *device, uint64_t number) {
  for (size_t i = 0; i < device->kept_count; ++i) {
    if (device->kept[i] == number) return OM_OK;
  }
  OM_TRY(OM_GROW(ctx, device->kept, device->kept_count, device->kept_capacity));
  device->kept[device->kept_count++] = number;
  return OM_OK;
}

static const om_hal_cache_id *cache_id(const om_hal_device *device) {
  static const om_hal_cache_id id = {.driver_version = 1, .cache_uuid = "null"};
  (void)device;
  return &id;
}

static om_status cache_load(om_ctx *ctx,
                            om_hal_device *hal_device,
                            const void *data,
                            size_t bytes) {
  om_null_device *device = om_null_device_of(hal_device);
  uint64_t number = 0;
  OM_TRY(om_null_device_check(ctx, device));
  if (bytes % sizeof number != 0 || (bytes > 0 && !data)) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "%zu bytes are not what a save gave.", bytes);
  }
  device->keeps_kernels = true;
  for (size_t at = 0; at < bytes; at += sizeof number) {
    memcpy(&number, (const char *)data + at, sizeof number);
    OM_TRY(keep_number(ctx, device, number));
  }
  return OM_OK;
}

static om_status cache_save(om_ctx *ctx, om_hal_device *hal_device, void *data, size_t *bytes) {
  om_null_device *device = om_null_device_of(hal_device);
  const size_t needed = device->kept_count * sizeof *device->kept;
  OM_TRY(om_null_device_check(ctx, device));
  if (!device->keeps_kernels) return OM_FAIL(ctx, OM_E_INTERNAL, "The device keeps no kernels.");
  if (data && *bytes < needed) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "%zu bytes are too few for the kept kernels.", *bytes);
  }
  if (data && needed > 0) memcpy(data, device->kept, needed);
  *bytes = needed;
  return OM_OK;
}

static om_status kernels_create(om_ctx *ctx,
                                om_hal_device *hal_device,
                                const om_hal_kernel_desc *descs,
                                size_t count,
                                om_hal_kernel **out_kernels) {
  om_status st = OM_OK;
  om_null_device *device = om_null_device_of(hal_device);
  size_t made = 0;
  for (size_t i = 0; i < count; ++i) out_kernels[i] = NULL;
  OM_GO(om_null_device_check(ctx, device));
  for (; made < count; ++made) {
    const om_hal_shader *shader = descs[made].shader;
    om_null_kernel *kernel = NULL;
    OM_GO(om_hal_check_shader(ctx, &device->limits, &device->features, shader->code_kind, shader));
    if (device->keeps_kernels) OM_GO(keep_number(ctx, device, kernel_number(&descs[made])));
    OM_GO_NEW(kernel, 1);
    kernel->shader = shader;
    om_null_object_add(device, OM_NULL_KERNEL, &kernel->object);
    out_kernels[made] = (om_hal_kernel *)kernel;
  }
done:
  for (size_t i = 0; st != OM_OK && i < made; ++i) {
    om_null_object_destroy(ctx, (om_null_object *)out_kernels[i], OM_NULL_KERNEL);
    out_kernels[i] = NULL;
  }
  return st;
}

static void kernel_destroy(om_ctx *ctx, om_hal_device *device, om_hal_kernel *kernel) {
  (void)device;
  om_null_object_destroy(ctx, (om_null_object *)kernel, OM_NULL_KERNEL);
}

const om_hal om_hal_null = {
    .name = "null",
    .list = om_null_list,
    .open = om_null_open,
    .open_beside = om_null_open_beside,
    .close = om_null_close,
    .describe = om_null_describe,
    .limits = om_null_limits,
    .features = om_null_features,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .upload = upload,
    .download = download,
    .host_view = host_view,
    .kernels_create = kernels_create,
    .kernel_destroy = kernel_destroy,
    .cache_id = cache_id,
    .cache_load = cache_load,
    .cache_save = cache_save,
    .recording_begin = om_null_recording_begin,
    .record_dispatch = om_null_record_dispatch,
    .record_copy = om_null_record_copy,
    .record_barrier = om_null_record_barrier,
    .record_timestamp = om_null_record_timestamp,
    .recording_end = om_null_recording_end,
    .recording_destroy = om_null_recording_destroy,
    .submit = om_null_submit,
    .is_done = om_null_is_done,
    .wait = om_null_wait,
    .timestamps = om_null_timestamps,
};
