/* Kernels kept between processes: the device's pipeline cache. */
#ifndef OM_VK_CACHE_H
#define OM_VK_CACHE_H

#include "gpu/hal/vulkan/om_vk_device.h"

/* The backend's part of om_hal. */
const om_hal_cache_id *om_vk_cache_id(const om_hal_device *device);
om_status om_vk_cache_load(om_ctx *ctx, om_hal_device *device, const void *data, size_t bytes);
om_status om_vk_cache_save(om_ctx *ctx, om_hal_device *device, void *data, size_t *bytes);

#endif
