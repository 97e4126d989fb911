/* Device memory: small buffers share blocks, because a driver may allow only 4096 allocations. */
#ifndef OM_VK_MEMORY_H
#define OM_VK_MEMORY_H

#include <volk.h>

#include "gpu/hal/om_hal.h"

typedef struct om_vk_device om_vk_device;

/* One allocation. Space is handed out upwards and comes back when all of the block is free. */
typedef struct om_vk_block {
  struct om_vk_block *next; /* of the device's list */
  VkDeviceMemory memory;
  uint64_t bytes;
  uint64_t used_bytes; /* from the start */
  uint32_t span_count; /* buffers that live in it */
  uint32_t type;       /* index of the memory type */
  uint8_t *mapped;     /* all of it; NULL: not for the host */
} om_vk_block;

typedef struct om_vk_span {
  om_vk_block *block; /* owned together with its other spans */
  uint64_t offset;
} om_vk_span;

/* Finds memory for a buffer; out of memory names the size. Memory for the host is mapped and
 * coherent. Free takes an empty span. */
om_status om_vk_memory_alloc(om_ctx *ctx,
                             om_vk_device *device,
                             const VkMemoryRequirements *needs,
                             om_hal_memory purpose,
                             om_vk_span *out_span);
void om_vk_memory_free(om_ctx *ctx, om_vk_device *device, om_vk_span span);

#endif
