/* Uploads into device memory that the host does not see.
 *
 * Data is gathered in two halves of a bounded size. A half collects copies until it is full or
 * something is submitted; while the device copies from one, the host fills the other. So a
 * hundred weights make a few submissions, and an upload costs no wait of its own.
 */
#ifndef OM_VK_STAGING_H
#define OM_VK_STAGING_H

#include <volk.h>

#include "base/om_base.h"

typedef struct om_vk_device om_vk_device;
typedef struct om_vk_buffer om_vk_buffer;

typedef struct om_vk_staging_half {
  om_vk_buffer *buffer;     /* owned; made at the first use */
  VkCommandBuffer commands; /* owned by the device's pool */
  uint64_t used_bytes;
  uint64_t number; /* the submission that last read it; 0: none */
  bool is_open;    /* copies are being recorded */
} om_vk_staging_half;

typedef struct om_vk_staging {
  om_vk_staging_half halves[2];
  uint32_t current; /* the half that is open or is to be opened next */
  bool is_always;   /* also where the device's memory is the host's */
} om_vk_staging;

/* Copies the data and records its way into the buffer; it is there before whatever is submitted
 * after the call. */
om_status om_vk_staging_write(om_ctx *ctx,
                              om_vk_device *device,
                              om_vk_buffer *buffer,
                              uint64_t offset,
                              const void *data,
                              uint64_t bytes);

/* Ends what is recorded. *out_commands must be first in the next submission; NULL: there is
 * nothing. */
om_status om_vk_staging_take(om_ctx *ctx, om_vk_device *device, VkCommandBuffer *out_commands);

/* Sees to it that no copy into the buffer is outstanding: it is about to be destroyed. */
void om_vk_staging_forget(om_ctx *ctx, om_vk_device *device, om_vk_buffer *buffer);

void om_vk_staging_deinit(om_ctx *ctx, om_vk_device *device);

#endif
