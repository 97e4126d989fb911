/* Recordings: command buffers made once and submitted again and again. */
#ifndef OM_VK_RECORDING_H
#define OM_VK_RECORDING_H

#include "gpu/hal/vulkan/om_vk_device.h"
#include "gpu/hal/vulkan/om_vk_turns.h"

typedef struct om_vk_recording { /* what HAL callers know as om_hal_recording */
  om_vk_device *device;          /* borrowed; outlives it */
  VkCommandBuffer commands;
  VkDescriptorPool descriptors; /* NULL: no dispatches */
  VkQueryPool queries;          /* NULL: no timestamps */
  uint32_t timestamp_count;
  VkPipeline bound; /* the pipeline of the last dispatch */
  bool is_clean;    /* nothing is recorded since the last order */
  om_vk_turns turns;
  om_hal_buffer *counters; /* owned; of turns; NULL: there are none */
  uint64_t took_ns;        /* from a submission to its end, the last time; 0: unknown */
} om_vk_recording;

static inline om_vk_recording *om_vk_recording_of(om_hal_recording *recording) {
  return (om_vk_recording *)recording;
}

/* A command buffer from the device's pool, which frees it. */
om_status om_vk_commands_create(om_ctx *ctx, om_vk_device *device, VkCommandBuffer *out_commands);

/* Starts it afresh, after everything that was submitted before. */
om_status om_vk_commands_begin(om_ctx *ctx, om_vk_device *device, VkCommandBuffer commands);

/* Kernels and copies before it are done and visible to kernels and copies after it. */
void om_vk_commands_barrier(const om_vk_device *device, VkCommandBuffer commands);

/* The backend's part of om_hal. */
om_status om_vk_recording_begin(om_ctx *ctx,
                                om_hal_device *device,
                                size_t dispatch_count,
                                uint32_t timestamp_count,
                                om_hal_recording **out_recording);
om_status om_vk_record_dispatch(om_ctx *ctx,
                                om_hal_recording *recording,
                                const om_hal_dispatch *dispatch);
om_status om_vk_record_copy(om_ctx *ctx,
                            om_hal_recording *recording,
                            const om_hal_binding *source,
                            const om_hal_binding *target);
om_status om_vk_record_barrier(om_ctx *ctx, om_hal_recording *recording);
om_status om_vk_record_timestamp(om_ctx *ctx, om_hal_recording *recording, uint32_t index);
om_status om_vk_recording_end(om_ctx *ctx, om_hal_recording *recording);
void om_vk_recording_destroy(om_ctx *ctx, om_hal_device *device, om_hal_recording *recording);
om_status om_vk_timestamps(om_ctx *ctx,
                           om_hal_recording *recording,
                           uint32_t count,
                           uint64_t *out_ns);

#endif
