/* Handing work to the device and waiting for it. */
#ifndef OM_VK_QUEUE_H
#define OM_VK_QUEUE_H

#include "gpu/hal/vulkan/om_vk_device.h"

/* The backend's part of om_hal. With no recordings, submits what is staged, if anything is. */
om_status om_vk_submit(om_ctx *ctx,
                       om_hal_device *device,
                       om_hal_recording *const *recordings,
                       size_t count,
                       uint64_t *out_number);
om_status om_vk_is_done(om_ctx *ctx, om_hal_device *device, uint64_t number, bool *out_is_done);
om_status om_vk_wait(om_ctx *ctx, om_hal_device *device, uint64_t number);

#endif
