/* The null backend's devices and the life of their objects. */
#include "gpu/hal/null/om_null_device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "gpu/hal/null/om_null_recording.h"

/* What every WebGPU implementation promises. */
static const om_hal_limits webgpu_limits = {
    .max_binding_bytes = 128 * 1024 * 1024,
    .max_buffer_bytes = 256 * 1024 * 1024,
    .binding_alignment = 256,
    .max_shared_bytes = 16 * 1024,
    .max_invocations = 256,
    .max_groups = {65535, 65535, 65535},
    .subgroup_size = 1,
};

/* What desktop GPUs with matrix hardware have. */
static const om_hal_limits desktop_limits = {
    .max_binding_bytes = 1024 * 1024 * 1024,
    .max_buffer_bytes = 1024 * 1024 * 1024,
    .binding_alignment = 256,
    .max_shared_bytes = 48 * 1024,
    .max_invocations = 1024,
    .max_groups = {65535, 65535, 65535},
    .subgroup_size = 32,
};

typedef struct om_null_model {
  const char *name;
  const om_hal_limits *limits;
  om_hal_features features;
} om_null_model;

/* The second lacks what a browser may lack: 16-bit storage, and one buffer for what a dispatch
 * reads and for what it writes. The third gets the kernels that are not portable, the
 * fourth those in PTX too. */
static const om_null_model models[] = {
    {"null device (WebGPU's default limits)",
     &webgpu_limits,
     {.timestamps = true, .storage_16bit = true}},
    {"null device (separate buffers)",
     &webgpu_limits,
     {.timestamps = true, .separate_slabs = true}},
    {"null device (matrix hardware)",
     &desktop_limits,
     {.timestamps = true, .subgroups = true, .storage_16bit = true, .cooperative_matrix = true}},
    {"null device (Hopper)",
     &desktop_limits,
     {.timestamps = true,
      .subgroups = true,
      .storage_16bit = true,
      .cooperative_matrix = true,
      .cuts_matrix_sums = true,
      .sm90 = true}},
};

static void describe_model(size_t index, om_gpu_device *out_device) {
  *out_device = (om_gpu_device){.driver = "checks calls, computes nothing",
                                .backend = om_hal_null.name,
                                .kind = "null device"};
  snprintf(out_device->name, sizeof out_device->name, "%s", models[index].name);
  snprintf(out_device->uuid, sizeof out_device->uuid, "%032zx", index);
}

om_status om_null_list(om_ctx *ctx, om_gpu_device *devices, size_t capacity, size_t *out_count) {
  (void)ctx;
  for (size_t i = 0; i < OM_COUNT_OF(models) && i < capacity; ++i) describe_model(i, &devices[i]);
  *out_count = OM_COUNT_OF(models);
  return OM_OK;
}

void om_null_describe(const om_hal_device *device, om_gpu_device *out_device) {
  describe_model(((const om_null_device *)device)->index, out_device);
}

om_status om_null_device_open(om_ctx *ctx,
                              const om_hal_limits *limits,
                              const om_hal_features *features,
                              om_hal_device **out_device) {
  om_null_device *device = om_new_bytes(ctx, 1, sizeof *device);
  *out_device = (om_hal_device *)device;
  if (!device) return OM_E_OUT_OF_MEMORY;
  device->limits = *limits;
  device->features = *features;
  return OM_OK;
}

om_status om_null_open(om_ctx *ctx, size_t index, bool takes_ptx, om_hal_device **out_device) {
  *out_device = NULL;
  if (index >= OM_COUNT_OF(models)) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "There is no null device with index %zu; there are %zu.",
                   index,
                   OM_COUNT_OF(models));
  }
  OM_TRY(om_null_device_open(ctx, models[index].limits, &models[index].features, out_device));
  om_null_device_of(*out_device)->index = index;
  om_null_device_of(*out_device)->features.sm90 &= takes_ptx;
  return OM_OK;
}

om_status om_null_open_beside(om_ctx *ctx, om_hal_device *opened, om_hal_device **out_device) {
  const om_null_device *device = om_null_device_of(opened);
  return om_null_open(ctx, device->index, device->features.sm90, out_device);
}

const om_hal_limits *om_null_limits(const om_hal_device *device) {
  return &((const om_null_device *)device)->limits;
}

const om_hal_features *om_null_features(const om_hal_device *device) {
  return &((const om_null_device *)device)->features;
}

/* Keeps a violation for the next call that can fail. */
static void OM_PRINTF(3, 4) violate(om_ctx *ctx, om_null_device *device, const char *fmt, ...) {
  char text[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  om_log_write(ctx, OM_LOG_ERROR, "%s", text);
  if (device->violation[0]) return;
  snprintf(device->violation, sizeof device->violation, "%s", text);
}

om_status om_null_device_check(om_ctx *ctx, om_null_device *device) {
  if (!device->violation[0]) return OM_OK;
  om_status st = OM_FAIL(ctx, OM_E_INTERNAL, "%s", device->violation);
  device->violation[0] = '\0';
  return st;
}

static const char *kind_name(om_null_kind kind) {
  static const char *const names[] = {"object",
                                      [OM_NULL_BUFFER] = "buffer",
                                      [OM_NULL_KERNEL] = "kernel",
                                      [OM_NULL_RECORDING] = "recording"};
  return (size_t)kind < OM_COUNT_OF(names) ? names[kind] : names[0];
}

void om_null_object_add(om_null_device *device, om_null_kind kind, om_null_object *object) {
  object->kind = kind;
  object->device = device;
  object->next = device->objects;
  device->objects = object;
}

om_status om_null_object_check(om_ctx *ctx,
                               const om_null_object *object,
                               om_null_kind kind,
                               const char *what) {
  const char *fault = NULL;
  if (!object) {
    fault = "is missing";
  } else if (object->kind != kind) {
    fault = "is an object of another kind";
  } else if (object->is_destroyed) {
    fault = "was destroyed";
  }
  if (!fault) return OM_OK;
  return OM_FAIL(ctx, OM_E_INTERNAL, "%s: the %s %s.", what, kind_name(kind), fault);
}

void om_null_object_destroy(om_ctx *ctx, om_null_object *object, om_null_kind kind) {
  if (!object) return;
  if (object->kind != kind || object->is_destroyed) {
    violate(ctx, object->device, "A %s was destroyed twice.", kind_name(kind));
  } else if (object->used_until > object->device->waited) {
    violate(ctx,
            object->device,
            "A %s was destroyed while submission %" PRIu64 " may still use it.",
            kind_name(kind),
            object->used_until);
  }
  object->is_destroyed = true;
}

void om_null_close(om_ctx *ctx, om_hal_device *hal_device) {
  om_null_device *device = om_null_device_of(hal_device);
  size_t leaks[OM_NULL_RECORDING + 1] = {0};
  if (!device) return;
  while (device->objects) {
    om_null_object *object = device->objects;
    device->objects = object->next;
    if (!object->is_destroyed) leaks[object->kind] += 1;
    if (object->kind == OM_NULL_RECORDING) om_null_recording_free_parts(ctx, object);
    om_delete(ctx, object);
  }
  for (om_null_kind kind = OM_NULL_BUFFER; kind <= OM_NULL_RECORDING; ++kind) {
    if (leaks[kind] == 0) continue;
    violate(ctx, device, "The device was closed with %zu %ss left.", leaks[kind], kind_name(kind));
  }
  OM_IGNORE(om_null_device_check(ctx, device)); /* recorded; a close returns nothing */
  om_delete(ctx, device->kept);
  om_delete(ctx, device);
}
