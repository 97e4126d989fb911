/* Vulkan's result codes as ours. */
#ifndef OM_VK_STATUS_H
#define OM_VK_STATUS_H

#include <volk.h>

#include "base/om_base.h"

/* OM_OK for a success; else records "vkX failed: ..." and returns the status it maps to. */
#define OM_VK_STATUS(ctx, result, call) om_vk_status((ctx), (result), (call), __FILE__, __LINE__)
om_status om_vk_status(om_ctx *ctx, VkResult result, const char *call, const char *file, int line);

#endif
