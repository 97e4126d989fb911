/* The Vulkan backend's table. */
#include "gpu/hal/vulkan/om_vk_buffer.h"
#include "gpu/hal/vulkan/om_vk_cache.h"
#include "gpu/hal/vulkan/om_vk_device.h"
#include "gpu/hal/vulkan/om_vk_kernel.h"
#include "gpu/hal/vulkan/om_vk_queue.h"
#include "gpu/hal/vulkan/om_vk_recording.h"

const om_hal om_hal_vulkan = {
    .name = "vulkan",
    .list = om_vk_list,
    .open = om_vk_open,
    .open_beside = om_vk_open_beside,
    .close = om_vk_close,
    .describe = om_vk_describe,
    .limits = om_vk_limits,
    .features = om_vk_features,
    .buffer_create = om_vk_buffer_create,
    .buffer_destroy = om_vk_buffer_destroy,
    .upload = om_vk_upload,
    .download = om_vk_download,
    .host_view = om_vk_host_view,
    .kernels_create = om_vk_kernels_create,
    .kernel_destroy = om_vk_kernel_destroy,
    .cache_id = om_vk_cache_id,
    .cache_load = om_vk_cache_load,
    .cache_save = om_vk_cache_save,
    .recording_begin = om_vk_recording_begin,
    .record_dispatch = om_vk_record_dispatch,
    .record_copy = om_vk_record_copy,
    .record_barrier = om_vk_record_barrier,
    .record_timestamp = om_vk_record_timestamp,
    .recording_end = om_vk_recording_end,
    .recording_destroy = om_vk_recording_destroy,
    .submit = om_vk_submit,
    .is_done = om_vk_is_done,
    .wait = om_vk_wait,
    .timestamps = om_vk_timestamps,
};
