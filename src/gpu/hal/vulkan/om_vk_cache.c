/* The device's pipeline cache. There is none before the first load: a device whose caller keeps
 * nothing does not make the driver keep anything.
 *
 * A driver is told to check what it is given, and not all of them do it well. So the header that
 * Vulkan defines is compared here too, and data that does not fit is left out.
 */
#include "gpu/hal/vulkan/om_vk_cache.h"

const om_hal_cache_id *om_vk_cache_id(const om_hal_device *device) {
  return &((const om_vk_device *)device)->cache_id;
}

/* True if the data begins as this device's caches do. */
static bool is_ours(const om_vk_device *device, const void *data, size_t bytes) {
  const om_hal_cache_id *id = &device->cache_id;
  VkPipelineCacheHeaderVersionOne header;
  if (bytes < sizeof header) return false;
  memcpy(&header, data, sizeof header);
  return header.headerSize >= sizeof header && header.headerSize <= bytes &&
         header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         header.vendorID == id->vendor && header.deviceID == id->device &&
         memcmp(header.pipelineCacheUUID, id->cache_uuid, sizeof id->cache_uuid) == 0;
}

static om_status create(
    om_ctx *ctx, om_vk_device *device, const void *data, size_t bytes, VkPipelineCache *out_cache) {
  const VkPipelineCacheCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
      .initialDataSize = bytes,
      .pInitialData = bytes > 0 ? data : NULL,
  };
  VkResult result = device->vk.vkCreatePipelineCache(device->handle, &info, NULL, out_cache);
  return OM_VK_CHECK(ctx, device, result, "vkCreatePipelineCache");
}

om_status om_vk_cache_load(om_ctx *ctx, om_hal_device *hal_device, const void *data, size_t bytes) {
  om_vk_device *device = om_vk_device_of(hal_device);
  VkPipelineCache more = VK_NULL_HANDLE;
  OM_TRY(om_vk_device_check(ctx, device));
  if (bytes > 0 && !is_ours(device, data, bytes)) {
    om_log_write(ctx, OM_LOG_INFO, "Kept kernels of another device or driver were left out.");
    bytes = 0;
  }
  if (!device->cache) return create(ctx, device, data, bytes, &device->cache);
  if (bytes == 0) return OM_OK;
  OM_TRY(create(ctx, device, data, bytes, &more));
  VkResult result = device->vk.vkMergePipelineCaches(device->handle, device->cache, 1, &more);
  device->vk.vkDestroyPipelineCache(device->handle, more, NULL);
  return OM_VK_CHECK(ctx, device, result, "vkMergePipelineCaches");
}

om_status om_vk_cache_save(om_ctx *ctx, om_hal_device *hal_device, void *data, size_t *bytes) {
  om_vk_device *device = om_vk_device_of(hal_device);
  OM_TRY(om_vk_device_check(ctx, device));
  if (!device->cache) return OM_FAIL(ctx, OM_E_INTERNAL, "The device keeps no kernels.");
  VkResult result = device->vk.vkGetPipelineCacheData(device->handle, device->cache, bytes, data);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkGetPipelineCacheData"));
  if (result != VK_INCOMPLETE) return OM_OK;
  return OM_FAIL(ctx, OM_E_INTERNAL, "%zu bytes are too few for the kept kernels.", *bytes);
}
