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

/* True if there is a cache. Kernels that others are making need not end for that. */
static bool has_cache(om_vk_common *common) {
  pthread_rwlock_rdlock(&common->cache_lock);
  const bool has_one = common->cache != VK_NULL_HANDLE;
  pthread_rwlock_unlock(&common->cache_lock);
  return has_one;
}

/* Makes the cache of what there is, or adds it. */
static om_status add(om_ctx *ctx, om_vk_device *device, const void *data, size_t bytes) {
  om_status st = OM_OK;
  VkPipelineCache more = VK_NULL_HANDLE;
  om_vk_common *common = device->common;
  if (bytes == 0 && has_cache(common)) return OM_OK;
  pthread_rwlock_wrlock(&common->cache_lock);
  if (!common->cache) {
    st = create(ctx, device, data, bytes, &common->cache);
  } else if (bytes > 0) {
    st = create(ctx, device, data, bytes, &more);
    VkResult result = VK_SUCCESS;
    if (st == OM_OK) {
      result = device->vk.vkMergePipelineCaches(device->handle, common->cache, 1, &more);
      device->vk.vkDestroyPipelineCache(device->handle, more, NULL);
      st = OM_VK_CHECK(ctx, device, result, "vkMergePipelineCaches");
    }
  }
  pthread_rwlock_unlock(&common->cache_lock);
  return st;
}

om_status om_vk_cache_load(om_ctx *ctx, om_hal_device *hal_device, const void *data, size_t bytes) {
  om_vk_device *device = om_vk_device_of(hal_device);
  OM_TRY(om_vk_device_check(ctx, device));
  if (bytes > 0 && !is_ours(device, data, bytes)) {
    om_log_write(ctx, OM_LOG_INFO, "Kept kernels of another device or driver were left out.");
    bytes = 0;
  }
  return add(ctx, device, data, bytes);
}

om_status om_vk_cache_save(om_ctx *ctx, om_hal_device *hal_device, void *data, size_t *bytes) {
  om_vk_device *device = om_vk_device_of(hal_device);
  OM_TRY(om_vk_device_check(ctx, device));
  om_vk_common *common = device->common;
  if (!common->cache) return OM_FAIL(ctx, OM_E_INTERNAL, "The device keeps no kernels.");
  pthread_rwlock_rdlock(&common->cache_lock);
  VkResult result = device->vk.vkGetPipelineCacheData(device->handle, common->cache, bytes, data);
  pthread_rwlock_unlock(&common->cache_lock);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkGetPipelineCacheData"));
  if (result != VK_INCOMPLETE) return OM_OK;
  return OM_FAIL(ctx, OM_E_INTERNAL, "%zu bytes are too few for the kept kernels.", *bytes);
}
