/* Staging; om_vk_staging.h has the idea. */
#include "gpu/hal/om_hal_copy.h"
#include "gpu/hal/vulkan/om_vk_buffer.h"
#include "gpu/hal/vulkan/om_vk_queue.h"
#include "gpu/hal/vulkan/om_vk_recording.h"

enum { HALF_BYTES = 8 * 1024 * 1024 }; /* two of them bound the host memory of an upload */

static om_status create_half(om_ctx *ctx, om_vk_device *device, om_vk_staging_half *half) {
  om_hal_buffer *buffer = NULL;
  uint64_t bytes = HALF_BYTES;
  if (bytes > device->limits.max_buffer_bytes) bytes = device->limits.max_buffer_bytes;
  if (!half->commands) OM_TRY(om_vk_commands_create(ctx, device, &half->commands));
  OM_TRY(om_vk_buffer_create(ctx, (om_hal_device *)device, OM_HAL_UPLOAD, bytes, &buffer));
  half->buffer = om_vk_buffer_of(buffer);
  return OM_OK;
}

static om_status open_half(om_ctx *ctx, om_vk_device *device, om_vk_staging_half *half) {
  if (!half->buffer) OM_TRY(create_half(ctx, device, half));
  /* A submission that failed left its number unused. */
  const uint64_t number = half->number < device->submitted ? half->number : device->submitted;
  OM_TRY(om_vk_wait(ctx, (om_hal_device *)device, number));
  OM_TRY(om_vk_commands_begin(ctx, device, half->commands));
  half->used_bytes = 0;
  half->is_open = true;
  return OM_OK;
}

om_status om_vk_staging_take(om_ctx *ctx, om_vk_device *device, VkCommandBuffer *out_commands) {
  om_vk_staging *staging = &device->staging;
  om_vk_staging_half *half = &staging->halves[staging->current];
  *out_commands = NULL;
  if (!half->is_open) return OM_OK;
  half->is_open = false; /* also after a failure: its copies are lost, and the caller is told */
  half->number = device->submitted + 1;
  staging->current ^= 1;
  VkResult result = device->vk.vkEndCommandBuffer(half->commands);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkEndCommandBuffer"));
  *out_commands = half->commands;
  return OM_OK;
}

/* Hands the open half over on its own. */
static om_status flush(om_ctx *ctx, om_vk_device *device) {
  uint64_t number = 0;
  return om_vk_submit(ctx, (om_hal_device *)device, NULL, 0, &number);
}

om_status om_vk_staging_write(om_ctx *ctx,
                              om_vk_device *device,
                              om_vk_buffer *buffer,
                              uint64_t offset,
                              const void *data,
                              uint64_t bytes) {
  const uint8_t *source = data;
  while (bytes > 0) {
    om_vk_staging_half *half = &device->staging.halves[device->staging.current];
    if (!half->is_open) OM_TRY(open_half(ctx, device, half));
    uint64_t room = half->buffer->bytes - half->used_bytes;
    uint64_t piece = bytes < room ? bytes : room;
    if (piece == 0) {
      OM_TRY(flush(ctx, device));
      continue;
    }
    const VkBufferCopy copy = {half->used_bytes, offset, piece};
    /* An earlier copy of this batch may write the same bytes: the later one wins. */
    if (buffer->staged > device->submitted) om_vk_commands_barrier(device, half->commands);
    om_hal_copy(ctx, half->buffer->mapped + half->used_bytes, source, piece);
    device->vk.vkCmdCopyBuffer(half->commands, half->buffer->handle, buffer->handle, 1, &copy);
    buffer->staged = device->submitted + 1;
    half->used_bytes += piece;
    source += piece;
    offset += piece;
    bytes -= piece;
  }
  return OM_OK;
}

void om_vk_staging_forget(om_ctx *ctx, om_vk_device *device, om_vk_buffer *buffer) {
  if (buffer->staged <= device->finished || om_vk_is_lost(device)) return;
  /* After a failure nothing is left running: submit and wait see to it. */
  if (buffer->staged > device->submitted) OM_IGNORE(flush(ctx, device));
  OM_IGNORE(om_vk_wait(ctx, (om_hal_device *)device, device->submitted));
}

void om_vk_staging_deinit(om_ctx *ctx, om_vk_device *device) {
  for (int i = 0; i < 2; ++i) {
    om_vk_staging_half *half = &device->staging.halves[i];
    om_vk_buffer_destroy(ctx, (om_hal_device *)device, (om_hal_buffer *)half->buffer);
    half->buffer = NULL; /* the pool takes the command buffer with it */
  }
}
