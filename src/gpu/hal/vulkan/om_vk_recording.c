/* Recording.
 *
 * A recording begins with a barrier against everything submitted before it and ends with one that
 * makes its copies visible to the host, so recordings need no order beyond that of submission.
 * Descriptor sets are written once, while the dispatch is recorded, and never again.
 *
 * A barrier is recorded when what comes behind it is known: between kernels in PTX it may be left
 * to them (om_vk_turns.h). Their counters are cleared by the recording itself, beside what it
 * uploads.
 */
#include "gpu/hal/vulkan/om_vk_recording.h"

#include <inttypes.h>

#include "gpu/hal/om_hal_check.h"
#include "gpu/hal/vulkan/om_vk_buffer.h"
#include "gpu/hal/vulkan/om_vk_kernel.h"

enum {
  WORK_STAGES = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
  WORK_WRITES = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
  WORK_READS = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT,
};

void om_vk_commands_barrier(const om_vk_device *device, VkCommandBuffer commands) {
  const VkMemoryBarrier memory = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = WORK_WRITES,
      .dstAccessMask = WORK_READS | WORK_WRITES,
  };
  device->vk.vkCmdPipelineBarrier(
      commands, WORK_STAGES, WORK_STAGES, 0, 1, &memory, 0, NULL, 0, NULL);
}

om_status om_vk_commands_create(om_ctx *ctx, om_vk_device *device, VkCommandBuffer *out_commands) {
  const VkCommandBufferAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = device->commands,
      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
      .commandBufferCount = 1,
  };
  VkResult result = device->vk.vkAllocateCommandBuffers(device->handle, &info, out_commands);
  if (result < 0) *out_commands = NULL;
  return OM_VK_CHECK(ctx, device, result, "vkAllocateCommandBuffers");
}

om_status om_vk_commands_begin(om_ctx *ctx, om_vk_device *device, VkCommandBuffer commands) {
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  /* A failed end may have left it half recorded, which begin alone does not allow. */
  VkResult result = device->vk.vkResetCommandBuffer(commands, 0);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkResetCommandBuffer"));
  result = device->vk.vkBeginCommandBuffer(commands, &info);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkBeginCommandBuffer"));
  om_vk_commands_barrier(device, commands);
  return OM_OK;
}

static om_status create_descriptors(om_ctx *ctx,
                                    om_vk_recording *recording,
                                    size_t dispatch_count) {
  om_vk_device *device = recording->device;
  if (dispatch_count > UINT32_MAX / OM_HAL_MAX_BINDINGS) {
    return OM_FAIL(
        ctx, OM_E_INTERNAL, "A recording of %zu dispatches is too long.", dispatch_count);
  }
  const VkDescriptorPoolSize size = {
      .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
      .descriptorCount = (uint32_t)dispatch_count * OM_HAL_MAX_BINDINGS,
  };
  const VkDescriptorPoolCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
      .maxSets = (uint32_t)dispatch_count,
      .poolSizeCount = 1,
      .pPoolSizes = &size,
  };
  if (dispatch_count == 0) return OM_OK;
  VkResult result =
      device->vk.vkCreateDescriptorPool(device->handle, &info, NULL, &recording->descriptors);
  return OM_VK_CHECK(ctx, device, result, "vkCreateDescriptorPool");
}

static om_status create_queries(om_ctx *ctx, om_vk_recording *recording, uint32_t timestamp_count) {
  om_vk_device *device = recording->device;
  const VkQueryPoolCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
      .queryType = VK_QUERY_TYPE_TIMESTAMP,
      .queryCount = timestamp_count,
  };
  if (timestamp_count == 0) return OM_OK;
  if (!device->features.timestamps) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "The device's queue has no timestamps.");
  }
  VkResult result = device->vk.vkCreateQueryPool(device->handle, &info, NULL, &recording->queries);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkCreateQueryPool"));
  recording->timestamp_count = timestamp_count;
  device->vk.vkCmdResetQueryPool(recording->commands, recording->queries, 0, timestamp_count);
  return OM_OK;
}

static om_status create_counters(om_ctx *ctx, om_vk_recording *recording, size_t dispatch_count) {
  om_vk_device *device = recording->device;
  if (dispatch_count == 0 || !device->features.sm90) return OM_OK;
  OM_TRY(om_vk_buffer_create(ctx,
                             (om_hal_device *)device,
                             OM_HAL_DEVICE,
                             dispatch_count * OM_VK_TURN_BYTES,
                             &recording->counters));
  const om_vk_buffer *counters = om_vk_buffer_of(recording->counters);
  device->vk.vkCmdFillBuffer(recording->commands, counters->handle, 0, counters->bytes, 0);
  recording->is_clean = false;
  recording->turns = om_vk_turns_begin(counters->address);
  return OM_OK;
}

om_status om_vk_recording_begin(om_ctx *ctx,
                                om_hal_device *hal_device,
                                size_t dispatch_count,
                                uint32_t timestamp_count,
                                om_hal_recording **out_recording) {
  om_status st = OM_OK;
  om_vk_device *device = om_vk_device_of(hal_device);
  om_vk_recording *recording = NULL;
  *out_recording = NULL;

  OM_GO(om_vk_device_check(ctx, device));
  OM_GO_NEW(recording, 1);
  recording->device = device;
  recording->is_clean = true;
  OM_GO(om_vk_commands_create(ctx, device, &recording->commands));
  OM_GO(om_vk_commands_begin(ctx, device, recording->commands));
  OM_GO(create_descriptors(ctx, recording, dispatch_count));
  OM_GO(create_queries(ctx, recording, timestamp_count));
  OM_GO(create_counters(ctx, recording, dispatch_count));

  *out_recording = (om_hal_recording *)recording;
  recording = NULL; /* the caller owns it now */
done:
  om_vk_recording_destroy(ctx, hal_device, (om_hal_recording *)recording);
  return st;
}

static om_status write_descriptors(om_ctx *ctx,
                                   om_vk_recording *recording,
                                   const om_hal_dispatch *dispatch,
                                   VkDescriptorSet *out_set) {
  om_vk_device *device = recording->device;
  const uint32_t count = om_vk_kernel_of(dispatch->kernel)->shader->binding_count;
  VkDescriptorBufferInfo buffers[OM_HAL_MAX_BINDINGS];
  const VkDescriptorSetAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
      .descriptorPool = recording->descriptors,
      .descriptorSetCount = 1,
      .pSetLayouts = &device->layouts[count].set,
  };
  VkResult result = device->vk.vkAllocateDescriptorSets(device->handle, &info, out_set);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkAllocateDescriptorSets"));
  for (uint32_t i = 0; i < count; ++i) {
    const om_hal_binding *binding = &dispatch->bindings[i];
    buffers[i] = (VkDescriptorBufferInfo){
        om_vk_buffer_of(binding->buffer)->handle, binding->offset, binding->bytes};
  }
  const VkWriteDescriptorSet write = {
      /* consecutive bindings of one kind: one write */
      .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
      .dstSet = *out_set,
      .descriptorCount = count,
      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
      .pBufferInfo = buffers,
  };
  device->vk.vkUpdateDescriptorSets(device->handle, 1, &write, 0, NULL);
  return OM_OK;
}

static om_status check_dispatch(om_ctx *ctx,
                                const om_vk_recording *recording,
                                const om_hal_dispatch *dispatch) {
  const om_hal_shader *shader = om_vk_kernel_of(dispatch->kernel)->shader;
  OM_TRY(om_hal_check_dispatch(ctx, &recording->device->limits, shader, dispatch));
  for (uint32_t i = 0; i < shader->binding_count; ++i) {
    const om_hal_binding *binding = &dispatch->bindings[i];
    const uint64_t bytes = om_vk_buffer_of(binding->buffer)->bytes;
    OM_TRY(om_hal_check_range(ctx, "A binding", binding->offset, binding->bytes, bytes));
  }
  if (recording->descriptors) return OM_OK;
  return OM_FAIL(ctx, OM_E_INTERNAL, "A recording for no dispatches was given one.");
}

/* The order that was asked for, if any, before a command; turn_groups: om_vk_turns_next. */
static om_hal_turn order_next(om_vk_recording *recording, uint32_t turn_groups) {
  om_hal_turn turn;
  if (om_vk_turns_next(&recording->turns, turn_groups, &turn)) {
    om_vk_commands_barrier(recording->device, recording->commands);
  }
  recording->is_clean = false;
  return turn;
}

om_status om_vk_record_dispatch(om_ctx *ctx,
                                om_hal_recording *hal_recording,
                                const om_hal_dispatch *dispatch) {
  om_vk_recording *recording = om_vk_recording_of(hal_recording);
  om_vk_device *device = recording->device;
  const om_vk_kernel *kernel = om_vk_kernel_of(dispatch->kernel);
  const VkPipelineLayout layout = device->layouts[kernel->shader->binding_count].pipeline;
  VkDescriptorSet set = VK_NULL_HANDLE;
  OM_TRY(check_dispatch(ctx, recording, dispatch));
  if (kernel->module) {
    const om_hal_turn turn =
        order_next(recording, om_vk_ptx_turn_groups(recording->device, dispatch));
    recording->bound = VK_NULL_HANDLE; /* what was bound may be gone */
    om_vk_ptx_launch(device, recording->commands, dispatch, &turn);
    return OM_OK;
  }
  (void)order_next(recording, 0);
  OM_TRY(write_descriptors(ctx, recording, dispatch, &set));
  if (recording->bound != kernel->pipeline) {
    device->vk.vkCmdBindPipeline(
        recording->commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
    recording->bound = kernel->pipeline;
  }
  device->vk.vkCmdBindDescriptorSets(
      recording->commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
  if (kernel->shader->params_bytes > 0) {
    device->vk.vkCmdPushConstants(recording->commands,
                                  layout,
                                  VK_SHADER_STAGE_COMPUTE_BIT,
                                  0,
                                  kernel->shader->params_bytes,
                                  dispatch->params);
  }
  device->vk.vkCmdDispatch(
      recording->commands, dispatch->groups[0], dispatch->groups[1], dispatch->groups[2]);
  return OM_OK;
}

om_status om_vk_record_copy(om_ctx *ctx,
                            om_hal_recording *hal_recording,
                            const om_hal_binding *source,
                            const om_hal_binding *target) {
  om_vk_recording *recording = om_vk_recording_of(hal_recording);
  const om_vk_buffer *from = om_vk_buffer_of(source->buffer);
  const om_vk_buffer *to = om_vk_buffer_of(target->buffer);
  const VkBufferCopy copy = {source->offset, target->offset, source->bytes};
  OM_TRY(
      om_hal_check_range(ctx, "The source of a copy", source->offset, source->bytes, from->bytes));
  OM_TRY(om_hal_check_range(ctx, "The target of a copy", target->offset, source->bytes, to->bytes));
  (void)order_next(recording, 0);
  recording->device->vk.vkCmdCopyBuffer(recording->commands, from->handle, to->handle, 1, &copy);
  return OM_OK;
}

om_status om_vk_record_barrier(om_ctx *ctx, om_hal_recording *hal_recording) {
  om_vk_recording *recording = om_vk_recording_of(hal_recording);
  (void)ctx;
  if (!recording->is_clean) om_vk_turns_order(&recording->turns);
  recording->is_clean = true;
  return OM_OK;
}

om_status om_vk_record_timestamp(om_ctx *ctx, om_hal_recording *hal_recording, uint32_t index) {
  om_vk_recording *recording = om_vk_recording_of(hal_recording);
  if (index >= recording->timestamp_count) {
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "Timestamp %" PRIu32 " is outside a recording of %" PRIu32 ".",
                   index,
                   recording->timestamp_count);
  }
  if (recording->turns.is_wanted) (void)order_next(recording, 0);
  recording->device->vk.vkCmdWriteTimestamp(
      recording->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, recording->queries, index);
  return OM_OK;
}

om_status om_vk_recording_end(om_ctx *ctx, om_hal_recording *hal_recording) {
  om_vk_recording *recording = om_vk_recording_of(hal_recording);
  om_vk_device *device = recording->device;
  const VkMemoryBarrier memory = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
      .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
  };
  device->vk.vkCmdPipelineBarrier(recording->commands,
                                  VK_PIPELINE_STAGE_TRANSFER_BIT,
                                  VK_PIPELINE_STAGE_HOST_BIT,
                                  0,
                                  1,
                                  &memory,
                                  0,
                                  NULL,
                                  0,
                                  NULL);
  VkResult result = device->vk.vkEndCommandBuffer(recording->commands);
  return OM_VK_CHECK(ctx, device, result, "vkEndCommandBuffer");
}

void om_vk_recording_destroy(om_ctx *ctx,
                             om_hal_device *hal_device,
                             om_hal_recording *hal_recording) {
  om_vk_device *device = om_vk_device_of(hal_device);
  om_vk_recording *recording = om_vk_recording_of(hal_recording);
  if (!recording) return;
  if (device->timed == recording) device->timed = NULL;
  if (recording->commands) {
    device->vk.vkFreeCommandBuffers(device->handle, device->commands, 1, &recording->commands);
  }
  om_vk_buffer_destroy(ctx, hal_device, recording->counters);
  device->vk.vkDestroyQueryPool(device->handle, recording->queries, NULL);
  device->vk.vkDestroyDescriptorPool(device->handle, recording->descriptors, NULL);
  om_delete(ctx, recording);
}

om_status om_vk_timestamps(om_ctx *ctx,
                           om_hal_recording *hal_recording,
                           uint32_t count,
                           uint64_t *out_ns) {
  om_vk_recording *recording = om_vk_recording_of(hal_recording);
  om_vk_device *device = recording->device;
  const double period = (double)device->adapter.properties.properties.limits.timestampPeriod;
  const uint32_t bits = device->adapter.timestamp_bits;
  const uint64_t mask = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
  if (count == 0 || count > recording->timestamp_count) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "The recording has no %" PRIu32 " timestamps.", count);
  }
  VkResult result = device->vk.vkGetQueryPoolResults(device->handle,
                                                     recording->queries,
                                                     0,
                                                     count,
                                                     count * sizeof *out_ns,
                                                     out_ns,
                                                     sizeof *out_ns,
                                                     VK_QUERY_RESULT_64_BIT);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkGetQueryPoolResults"));
  if (result == VK_NOT_READY) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "A timestamp was read before it was written.");
  }
  for (uint32_t i = 0; i < count; ++i) {
    out_ns[i] = (uint64_t)((double)(out_ns[i] & mask) * period);
  }
  return OM_OK;
}
