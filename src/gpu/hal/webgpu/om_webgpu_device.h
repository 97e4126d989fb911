/* The WebGPU backend's objects. The page's side is om_webgpu.js; handles name its objects. */
#ifndef OM_WEBGPU_DEVICE_H
#define OM_WEBGPU_DEVICE_H

#include "gpu/hal/om_hal.h"
#include "gpu/hal/webgpu/om_webgpu_js.h"

typedef struct om_webgpu_device {
  om_webgpu_handle handle;
  char name[256];
  om_hal_limits limits;
  om_hal_features features;
  uint64_t submitted;
} om_webgpu_device;

typedef struct om_webgpu_buffer {
  om_webgpu_handle handle;
  uint64_t bytes;
} om_webgpu_buffer;

typedef struct om_webgpu_kernel {
  om_webgpu_handle handle;
  const om_hal_shader *shader;
} om_webgpu_kernel;

typedef struct om_webgpu_recording {
  om_webgpu_device *device;
  om_webgpu_handle handle; /* once it is ended */
  uint32_t *words;         /* owned until then: operations as om_webgpu_js.h has them */
  size_t word_count, word_capacity;
  uint8_t *params; /* owned until then */
  size_t params_bytes, params_capacity;
  uint32_t timestamp_count;
} om_webgpu_recording;

static inline om_webgpu_device *om_webgpu_device_of(om_hal_device *device) {
  return (om_webgpu_device *)device;
}

/* OM_OK unless the device has failed: then what became of it. */
om_status om_webgpu_check(om_ctx *ctx, const om_webgpu_device *device);

/* The backend's part of om_hal. */
om_status om_webgpu_recording_begin(om_ctx *ctx,
                                    om_hal_device *device,
                                    size_t dispatch_count,
                                    uint32_t timestamp_count,
                                    om_hal_recording **out_recording);
om_status om_webgpu_record_dispatch(om_ctx *ctx,
                                    om_hal_recording *recording,
                                    const om_hal_dispatch *dispatch);
om_status om_webgpu_record_copy(om_ctx *ctx,
                                om_hal_recording *recording,
                                const om_hal_binding *source,
                                const om_hal_binding *target);
om_status om_webgpu_record_barrier(om_ctx *ctx, om_hal_recording *recording);
om_status om_webgpu_record_timestamp(om_ctx *ctx, om_hal_recording *recording, uint32_t index);
om_status om_webgpu_timestamps(om_ctx *ctx,
                               om_hal_recording *recording,
                               uint32_t count,
                               uint64_t *out_ns);
om_status om_webgpu_recording_end(om_ctx *ctx, om_hal_recording *recording);
void om_webgpu_recording_destroy(om_ctx *ctx, om_hal_device *device, om_hal_recording *recording);
om_status om_webgpu_submit(om_ctx *ctx,
                           om_hal_device *device,
                           om_hal_recording *const *recordings,
                           size_t count,
                           uint64_t *out_number);

#endif
