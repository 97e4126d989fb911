/* The one place where Vulkan's result codes are mapped. */
#include "gpu/hal/vulkan/om_vk_status.h"

typedef struct om_vk_result_text {
  VkResult result;
  om_status status;
  const char *text; /* completes "<call> failed: the ..." */
} om_vk_result_text;

static const om_vk_result_text texts[] = {
    {VK_ERROR_OUT_OF_HOST_MEMORY, OM_E_OUT_OF_MEMORY, "the driver found no host memory"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, OM_E_OUT_OF_DEVICE_MEMORY, "the device is out of memory"},
    {VK_ERROR_OUT_OF_POOL_MEMORY, OM_E_OUT_OF_DEVICE_MEMORY, "the descriptor pool is used up"},
    {VK_ERROR_FRAGMENTED_POOL, OM_E_OUT_OF_DEVICE_MEMORY, "the descriptor pool is fragmented"},
    {VK_ERROR_TOO_MANY_OBJECTS, OM_E_OUT_OF_DEVICE_MEMORY, "the device has too many objects"},
    {VK_ERROR_MEMORY_MAP_FAILED, OM_E_OUT_OF_MEMORY, "the device's memory could not be mapped"},
    {VK_ERROR_DEVICE_LOST, OM_E_DEVICE_LOST, "the device was lost"},
    {VK_ERROR_INITIALIZATION_FAILED, OM_E_UNSUPPORTED, "the driver could not be initialized"},
    {VK_ERROR_INCOMPATIBLE_DRIVER, OM_E_UNSUPPORTED, "no Vulkan driver was found"},
    {VK_ERROR_LAYER_NOT_PRESENT, OM_E_UNSUPPORTED, "a layer is missing"},
    {VK_ERROR_EXTENSION_NOT_PRESENT, OM_E_UNSUPPORTED, "an extension is missing"},
    {VK_ERROR_FEATURE_NOT_PRESENT, OM_E_UNSUPPORTED, "a feature is missing"},
};

om_status om_vk_status(om_ctx *ctx, VkResult result, const char *call, const char *file, int line) {
  if (result >= 0) return OM_OK; /* VK_INCOMPLETE and its like are the caller's to see */
  for (size_t i = 0; i < OM_COUNT_OF(texts); ++i) {
    if (texts[i].result != result) continue;
    return om_fail(ctx, texts[i].status, file, line, "%s failed: %s.", call, texts[i].text);
  }
  return om_fail(ctx, OM_E_INTERNAL, file, line, "%s failed with code %d.", call, (int)result);
}
