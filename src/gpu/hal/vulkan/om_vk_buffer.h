/* Buffers, and getting data into and out of them. */
#ifndef OM_VK_BUFFER_H
#define OM_VK_BUFFER_H

#include "gpu/hal/vulkan/om_vk_device.h"

typedef struct om_vk_buffer { /* what HAL callers know as om_hal_buffer */
  VkBuffer handle;
  om_hal_memory memory;
  uint64_t bytes;
  om_vk_span span;  /* owned */
  uint8_t *mapped;  /* of its first byte; NULL: not for the host */
  uint64_t address; /* on the device; 0: it has none */
  uint64_t staged;  /* the submission that carries its last upload; 0: none */
} om_vk_buffer;

static inline om_vk_buffer *om_vk_buffer_of(om_hal_buffer *buffer) {
  return (om_vk_buffer *)buffer;
}

/* The backend's part of om_hal. */
om_status om_vk_buffer_create(om_ctx *ctx,
                              om_hal_device *device,
                              om_hal_memory memory,
                              uint64_t bytes,
                              om_hal_buffer **out_buffer);
void om_vk_buffer_destroy(om_ctx *ctx, om_hal_device *device, om_hal_buffer *buffer);
om_status om_vk_upload(om_ctx *ctx,
                       om_hal_device *device,
                       om_hal_buffer *buffer,
                       uint64_t offset,
                       const void *data,
                       uint64_t bytes);
om_status om_vk_download(om_ctx *ctx,
                         om_hal_device *device,
                         om_hal_buffer *buffer,
                         uint64_t offset,
                         void *data,
                         uint64_t bytes);

void *om_vk_host_view(const om_hal_device *device, const om_hal_buffer *buffer);

#endif
