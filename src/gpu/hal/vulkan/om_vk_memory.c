/* Memory types and blocks.
 *
 * A buffer of up to SMALL bytes goes into a shared block of its memory type, at the end of what
 * is used; a larger one gets a block of its own. Nothing is moved or reused within a block:
 * weights live as long as the session, and what grows is replaced as a whole.
 */
#include "gpu/hal/vulkan/om_vk_memory.h"

#include <inttypes.h>

#include "gpu/hal/vulkan/om_vk_device.h"

enum {
  SMALL_BYTES = 256 * 1024,
  SHARED_BLOCK_BYTES = 4 * 1024 * 1024, /* at least 16 small buffers */
  HOST_ALIGNMENT = 64,                  /* of what the host sees, where a mapping begins at least */
};

enum {
  DEVICE_LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
  HOST = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
  CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
};

typedef struct om_vk_wish {
  VkMemoryPropertyFlags wanted, avoided;
} om_vk_wish;

enum { WISH_COUNT = 3 };

/* By om_hal_memory, best first. Every driver has a HOST type; readback wants the cache because
 * the processor reads uncached memory at a hundredth of the speed. */
static const om_vk_wish wishes[][WISH_COUNT] = {
    [OM_HAL_DEVICE] = {{DEVICE_LOCAL, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
                       {DEVICE_LOCAL, 0},
                       {0, 0}},
    [OM_HAL_UPLOAD] = {{HOST, DEVICE_LOCAL}, {HOST, 0}, {HOST, 0}},
    [OM_HAL_READBACK] = {{HOST | CACHED, DEVICE_LOCAL}, {HOST | CACHED, 0}, {HOST, 0}},
    [OM_HAL_LENT] = {{HOST | CACHED, DEVICE_LOCAL}, {HOST | CACHED, 0}, {HOST | CACHED, 0}},
};

/* Where all memory is the host's, the device's part is wanted visible: no staging then. */
static const om_vk_wish unified_wish = {DEVICE_LOCAL | HOST, 0};

enum { NO_TYPE = VK_MAX_MEMORY_TYPES };

static uint32_t find_type(const om_vk_device *device, uint32_t allowed, om_vk_wish wish) {
  const VkPhysicalDeviceMemoryProperties *memory = &device->adapter.memory;
  for (uint32_t i = 0; i < memory->memoryTypeCount; ++i) {
    VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
    if (!(allowed >> i & 1) || (flags & wish.wanted) != wish.wanted) continue;
    if ((flags & wish.avoided) == 0) return i;
  }
  return NO_TYPE;
}

static uint32_t choose_type(const om_vk_device *device, uint32_t allowed, om_hal_memory purpose) {
  uint32_t type = NO_TYPE;
  if (purpose == OM_HAL_DEVICE && device->features.unified_memory) {
    type = find_type(device, allowed, unified_wish);
  }
  for (int i = 0; i < WISH_COUNT && type == NO_TYPE; ++i) {
    type = find_type(device, allowed, wishes[purpose][i]);
  }
  return type;
}

static void destroy_block(om_ctx *ctx, om_vk_device *device, om_vk_block *block) {
  for (om_vk_block **link = &device->blocks; *link; link = &(*link)->next) {
    if (*link != block) continue;
    *link = block->next;
    break;
  }
  /* Freeing unmaps. */
  if (block->memory) device->vk.vkFreeMemory(device->handle, block->memory, NULL);
  om_delete(ctx, block);
}

static om_status create_block(om_ctx *ctx,
                              om_vk_device *device,
                              uint64_t bytes,
                              uint32_t type,
                              bool is_mapped,
                              om_vk_block **out_block) {
  om_status st = OM_OK;
  om_vk_block *block = NULL;
  void *mapped = NULL;
  const VkMemoryAllocateFlagsInfo flags = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
      .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
  };
  const VkMemoryAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
      .pNext = device->has_addresses ? &flags : NULL,
      .allocationSize = bytes,
      .memoryTypeIndex = type,
  };
  OM_GO_NEW(block, 1);
  VkResult result = device->vk.vkAllocateMemory(device->handle, &info, NULL, &block->memory);
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_TOO_MANY_OBJECTS) {
    st = OM_FAIL(ctx,
                 OM_E_OUT_OF_DEVICE_MEMORY,
                 "The device has no memory left for %" PRIu64 " bytes.",
                 bytes);
    goto done;
  }
  OM_GO(OM_VK_CHECK(ctx, device, result, "vkAllocateMemory"));
  if (is_mapped) {
    result = device->vk.vkMapMemory(device->handle, block->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    OM_GO(OM_VK_CHECK(ctx, device, result, "vkMapMemory"));
  }
  block->mapped = mapped;
  block->bytes = bytes;
  block->type = type;
  block->next = device->blocks;
  device->blocks = block;
  *out_block = block;
  block = NULL; /* the device's list holds it now */
done:
  if (block) destroy_block(ctx, device, block);
  return st;
}

static uint64_t next_offset(const om_vk_block *block, const VkMemoryRequirements *needs) {
  uint64_t alignment = needs->alignment;
  if (block->mapped && alignment < HOST_ALIGNMENT) alignment = HOST_ALIGNMENT;
  return om_size_align(block->used_bytes, alignment);
}

static om_vk_block *find_room(const om_vk_device *device,
                              const VkMemoryRequirements *needs,
                              uint32_t type,
                              bool is_mapped) {
  for (om_vk_block *block = device->blocks; block; block = block->next) {
    uint64_t offset = next_offset(block, needs);
    if (block->type != type || (block->mapped != NULL) != is_mapped) continue;
    if (offset <= block->bytes && needs->size <= block->bytes - offset) return block;
  }
  return NULL;
}

om_status om_vk_memory_alloc(om_ctx *ctx,
                             om_vk_device *device,
                             const VkMemoryRequirements *needs,
                             om_hal_memory purpose,
                             om_vk_span *out_span) {
  uint32_t type = choose_type(device, needs->memoryTypeBits, purpose);
  bool is_small = needs->size <= SMALL_BYTES;
  om_vk_block *block = NULL;
  *out_span = (om_vk_span){0};
  if (type == NO_TYPE) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The device has no memory of the kind a buffer needs.");
  }
  VkMemoryPropertyFlags flags = device->adapter.memory.memoryTypes[type].propertyFlags;
  bool is_mapped =
      (flags & HOST) == HOST && (purpose != OM_HAL_DEVICE || device->features.unified_memory);
  if (is_small) block = find_room(device, needs, type, is_mapped);
  if (!block) {
    uint64_t bytes = is_small ? SHARED_BLOCK_BYTES : needs->size;
    OM_TRY(create_block(ctx, device, bytes, type, is_mapped, &block));
  }
  *out_span = (om_vk_span){block, next_offset(block, needs)};
  block->used_bytes = out_span->offset + needs->size;
  block->span_count += 1;
  return OM_OK;
}

void om_vk_memory_free(om_ctx *ctx, om_vk_device *device, om_vk_span span) {
  if (!span.block) return;
  span.block->span_count -= 1;
  if (span.block->span_count == 0) destroy_block(ctx, device, span.block);
}
