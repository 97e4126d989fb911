/* Buffers. Memory that the host sees stays mapped and is coherent, so that an upload or download
 * is a copy; everything else goes through staging.
 */
#include "gpu/hal/vulkan/om_vk_buffer.h"

#include "gpu/hal/om_hal_check.h"
#include "gpu/hal/om_hal_copy.h"
#include "gpu/hal/vulkan/om_vk_queue.h"

static VkBufferUsageFlags usage_of(const om_vk_device *device, om_hal_memory memory) {
  switch (memory) {
    case OM_HAL_UPLOAD:
    case OM_HAL_LENT:
      return VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
    case OM_HAL_READBACK:
      return VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    case OM_HAL_DEVICE:
      break;
  }
  return VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
         VK_BUFFER_USAGE_TRANSFER_DST_BIT |
         (device->has_addresses ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0U);
}

static uint64_t address_of(const om_vk_device *device, const om_vk_buffer *buffer) {
  const VkBufferDeviceAddressInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
      .buffer = buffer->handle,
  };
  if (!device->has_addresses || buffer->memory != OM_HAL_DEVICE) return 0;
  return device->vk.vkGetBufferDeviceAddress(device->handle, &info);
}

om_status om_vk_buffer_create(om_ctx *ctx,
                              om_hal_device *hal_device,
                              om_hal_memory memory,
                              uint64_t bytes,
                              om_hal_buffer **out_buffer) {
  om_status st = OM_OK;
  om_vk_device *device = om_vk_device_of(hal_device);
  om_vk_buffer *buffer = NULL;
  VkMemoryRequirements needs;
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = bytes,
      .usage = usage_of(device, memory),
      .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
  };
  *out_buffer = NULL;

  OM_GO(om_hal_check_buffer(ctx, &device->limits, bytes));
  OM_GO_NEW(buffer, 1);
  buffer->memory = memory;
  buffer->bytes = bytes;
  VkResult result = device->vk.vkCreateBuffer(device->handle, &info, NULL, &buffer->handle);
  OM_GO(OM_VK_CHECK(ctx, device, result, "vkCreateBuffer"));
  device->vk.vkGetBufferMemoryRequirements(device->handle, buffer->handle, &needs);
  OM_GO(om_vk_memory_alloc(ctx, device, &needs, memory, &buffer->span));
  const om_vk_span span = buffer->span;
  result = device->vk.vkBindBufferMemory(
      device->handle, buffer->handle, span.block->memory, span.offset);
  OM_GO(OM_VK_CHECK(ctx, device, result, "vkBindBufferMemory"));
  if (span.block->mapped) buffer->mapped = span.block->mapped + span.offset;
  buffer->address = address_of(device, buffer);

  *out_buffer = (om_hal_buffer *)buffer;
  buffer = NULL; /* the caller owns it now */
done:
  om_vk_buffer_destroy(ctx, hal_device, (om_hal_buffer *)buffer);
  return st;
}

void om_vk_buffer_destroy(om_ctx *ctx, om_hal_device *hal_device, om_hal_buffer *hal_buffer) {
  om_vk_device *device = om_vk_device_of(hal_device);
  om_vk_buffer *buffer = om_vk_buffer_of(hal_buffer);
  if (!buffer) return;
  om_vk_staging_forget(ctx, device, buffer);
  device->vk.vkDestroyBuffer(device->handle, buffer->handle, NULL);
  om_vk_memory_free(ctx, device, buffer->span);
  om_delete(ctx, buffer);
}

om_status om_vk_upload(om_ctx *ctx,
                       om_hal_device *hal_device,
                       om_hal_buffer *hal_buffer,
                       uint64_t offset,
                       const void *data,
                       uint64_t bytes) {
  om_vk_device *device = om_vk_device_of(hal_device);
  om_vk_buffer *buffer = om_vk_buffer_of(hal_buffer);
  OM_TRY(om_vk_device_check(ctx, device));
  OM_TRY(om_hal_check_range(ctx, "The upload", offset, bytes, buffer->bytes));
  if (buffer->memory == OM_HAL_DEVICE) {
    if (!buffer->mapped || device->staging.is_always) {
      return om_vk_staging_write(ctx, device, buffer, offset, data, bytes);
    }
    /* What was submitted may still read the old contents. */
    OM_TRY(om_vk_wait(ctx, hal_device, device->submitted));
  }
  if (buffer->memory == OM_HAL_READBACK || buffer->memory == OM_HAL_LENT) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "Neither a readback buffer nor lent memory is uploaded to.");
  }
  om_hal_copy(ctx, buffer->mapped + offset, data, bytes);
  return OM_OK;
}

om_status om_vk_download(om_ctx *ctx,
                         om_hal_device *hal_device,
                         om_hal_buffer *hal_buffer,
                         uint64_t offset,
                         void *data,
                         uint64_t bytes) {
  om_vk_device *device = om_vk_device_of(hal_device);
  om_vk_buffer *buffer = om_vk_buffer_of(hal_buffer);
  OM_TRY(om_vk_device_check(ctx, device));
  OM_TRY(om_hal_check_range(ctx, "The download", offset, bytes, buffer->bytes));
  if (buffer->memory != OM_HAL_READBACK) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "Only a readback buffer can be downloaded from.");
  }
  om_hal_copy(ctx, data, buffer->mapped + offset, bytes);
  return OM_OK;
}

void *om_vk_host_view(const om_hal_device *hal_device, const om_hal_buffer *hal_buffer) {
  const om_vk_device *device = (const om_vk_device *)hal_device;
  const om_vk_buffer *buffer = (const om_vk_buffer *)hal_buffer;
  const VkPhysicalDeviceMemoryProperties *memory = &device->adapter.memory;
  if (buffer->memory != OM_HAL_READBACK && buffer->memory != OM_HAL_LENT) return NULL;
  VkMemoryPropertyFlags flags = memory->memoryTypes[buffer->span.block->type].propertyFlags;
  return (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0 ? buffer->mapped : NULL;
}
