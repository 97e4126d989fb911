/* The queue. Each submission has a number; the device's timeline semaphore reaches it when the
 * submission is done.
 */
#include "gpu/hal/vulkan/om_vk_queue.h"

#include <inttypes.h>

#include "base/om_thread.h"
#include "gpu/hal/vulkan/om_vk_recording.h"

/* How long a wait asks before it sleeps. Waking up costs 50 to 200 us on an NVIDIA H200 (driver
 * 580, 2026-11-30), a tenth of a small model's run. Where a recording took longer the last time,
 * the wait sleeps first, until a part of that time is left, and asks then. A device that shares the
 * processor or its power gets a short one. */
enum { SPIN_NS = 3000 * 1000, SHARED_SPIN_NS = 20 * 1000 };
enum { EARLY_NS = 500 * 1000, EARLY_PART = 16, MOST_EARLY_NS = 2000 * 1000 };

enum { BATCH = 32 }; /* command buffers of one call */

static om_status submit_batch(om_ctx *ctx,
                              om_vk_device *device,
                              const VkCommandBuffer *commands,
                              uint32_t count) {
  const uint64_t number = device->submitted + 1;
  const VkTimelineSemaphoreSubmitInfo timeline = {
      .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
      .signalSemaphoreValueCount = 1,
      .pSignalSemaphoreValues = &number,
  };
  const VkSubmitInfo info = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
      .pNext = &timeline,
      .commandBufferCount = count,
      .pCommandBuffers = commands,
      .signalSemaphoreCount = 1,
      .pSignalSemaphores = &device->timeline,
  };
  VkResult result = VK_SUCCESS;
  pthread_mutex_lock(&device->common->queue_lock);
  const bool is_lost = om_vk_is_lost(device); /* nobody waits for what comes behind the loss */
  if (!is_lost) result = device->vk.vkQueueSubmit(device->queue, 1, &info, VK_NULL_HANDLE);
  pthread_mutex_unlock(&device->common->queue_lock);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkQueueSubmit"));
  if (is_lost) return om_vk_device_check(ctx, device);
  device->submitted = number;
  return OM_OK;
}

/* After a failure the caller has nothing to wait for, and destroys what it made: so nothing of
 * it may be running. */
static om_status settle(om_vk_device *device, om_status st) {
  if (st != OM_OK) om_vk_device_settle(device); /* the failure stands */
  return st;
}

static om_status submit_all(om_ctx *ctx,
                            om_vk_device *device,
                            om_hal_recording *const *recordings,
                            size_t count) {
  VkCommandBuffer batch[BATCH];
  uint32_t batch_count = 0;
  OM_TRY(om_vk_staging_take(ctx, device, &batch[0]));
  if (batch[0]) batch_count = 1;
  for (size_t i = 0; i < count; ++i) {
    if (batch_count == BATCH) {
      OM_TRY(submit_batch(ctx, device, batch, batch_count));
      batch_count = 0;
    }
    batch[batch_count++] = om_vk_recording_of(recordings[i])->commands;
  }
  if (batch_count == 0) return OM_OK;
  return submit_batch(ctx, device, batch, batch_count);
}

om_status om_vk_submit(om_ctx *ctx,
                       om_hal_device *hal_device,
                       om_hal_recording *const *recordings,
                       size_t count,
                       uint64_t *out_number) {
  om_vk_device *device = om_vk_device_of(hal_device);
  *out_number = 0;
  OM_TRY(om_vk_device_check(ctx, device));
  OM_TRY(settle(device, submit_all(ctx, device, recordings, count)));
  *out_number = device->submitted;
  device->timed = count > 0 ? om_vk_recording_of(recordings[count - 1]) : NULL;
  device->timed_number = device->submitted;
  device->timed_ns = om_now_ns();
  return OM_OK;
}

/* Asks how far the device is. A lost one may answer anything. */
static om_status ask(om_ctx *ctx, om_vk_device *device) {
  uint64_t value = 0;
  VkResult result = device->vk.vkGetSemaphoreCounterValue(device->handle, device->timeline, &value);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkGetSemaphoreCounterValue"));
  if (value > device->submitted) om_vk_device_lose(device);
  OM_TRY(om_vk_device_check(ctx, device));
  device->finished = value;
  return OM_OK;
}

/* How long to sleep before asking: the last time a wait for this was too long to ask all along. */
static uint64_t early_sleep_ns(const om_vk_device *device, uint64_t number) {
  if (!device->timed || number != device->timed_number) return 0;
  const uint64_t took_ns = device->timed->took_ns;
  const uint64_t gone_ns = om_now_ns() - device->timed_ns;
  uint64_t early_ns = EARLY_NS + took_ns / EARLY_PART;
  if (early_ns > MOST_EARLY_NS) early_ns = MOST_EARLY_NS;
  return took_ns > SPIN_NS && took_ns > gone_ns + early_ns ? took_ns - gone_ns - early_ns : 0;
}

/* Remembers how long the last recording took, now that it has ended. */
static void note_end(om_vk_device *device, uint64_t number) {
  if (!device->timed || number != device->timed_number) return;
  device->timed->took_ns = om_now_ns() - device->timed_ns;
  device->timed = NULL;
}

/* Sleeps where it is long to the end, asks for a while, then sleeps. */
static om_status await(om_ctx *ctx, om_vk_device *device, uint64_t number) {
  const uint64_t spin_ns = device->features.unified_memory ? SHARED_SPIN_NS : SPIN_NS;
  const VkSemaphoreWaitInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
      .semaphoreCount = 1,
      .pSemaphores = &device->timeline,
      .pValues = &number,
  };
  const uint64_t sleep_ns = device->features.unified_memory ? 0 : early_sleep_ns(device, number);
  if (sleep_ns > 0) {
    VkResult slept = device->vk.vkWaitSemaphores(device->handle, &info, sleep_ns);
    OM_TRY(OM_VK_CHECK(ctx, device, slept, "vkWaitSemaphores"));
  }
  const uint64_t start = om_now_ns();
  do {
    OM_TRY(ask(ctx, device));
    if (number > device->finished) continue;
    note_end(device, number);
    return OM_OK;
  } while (om_now_ns() - start < spin_ns);
  VkResult result = device->vk.vkWaitSemaphores(device->handle, &info, UINT64_MAX);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkWaitSemaphores"));
  note_end(device, number);
  return ask(ctx, device);
}

/* Whether the submission is done as far as is known; one that never was is an error. */
static om_status is_known_done(om_ctx *ctx,
                               om_vk_device *device,
                               uint64_t number,
                               bool *out_is_done) {
  *out_is_done = number <= device->finished;
  if (*out_is_done) return OM_OK;
  OM_TRY(om_vk_device_check(ctx, device));
  if (number <= device->submitted) return OM_OK;
  return OM_FAIL(ctx, OM_E_INTERNAL, "Submission %" PRIu64 " was never made.", number);
}

om_status om_vk_is_done(om_ctx *ctx,
                        om_hal_device *hal_device,
                        uint64_t number,
                        bool *out_is_done) {
  om_vk_device *device = om_vk_device_of(hal_device);
  OM_TRY(is_known_done(ctx, device, number, out_is_done));
  if (*out_is_done) return OM_OK;
  OM_TRY(settle(device, ask(ctx, device)));
  *out_is_done = number <= device->finished;
  return OM_OK;
}

om_status om_vk_wait(om_ctx *ctx, om_hal_device *hal_device, uint64_t number) {
  om_vk_device *device = om_vk_device_of(hal_device);
  bool is_done = false;
  OM_TRY(is_known_done(ctx, device, number, &is_done));
  return is_done ? OM_OK : settle(device, await(ctx, device, number));
}
