/* A logical device with its queue, and what all objects of the backend share. */
#ifndef OM_VK_DEVICE_H
#define OM_VK_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/hal/om_hal.h"
#include "gpu/hal/vulkan/om_vk_adapter.h"
#include "gpu/hal/vulkan/om_vk_loader.h"
#include "gpu/hal/vulkan/om_vk_memory.h"
#include "gpu/hal/vulkan/om_vk_staging.h"
#include "gpu/hal/vulkan/om_vk_status.h"

typedef struct om_vk_recording om_vk_recording;
typedef struct om_vk_module om_vk_module; /* om_vk_ptx.h */

/* For kernels of one number of bindings: that many storage buffers and the parameters. */
typedef struct om_vk_layout {
  VkDescriptorSetLayout set;
  VkPipelineLayout pipeline;
} om_vk_layout;

typedef struct om_vk_common {  /* of devices beside each other; shared */
  pthread_mutex_t queue_lock;  /* held while the queue is used */
  pthread_rwlock_t cache_lock; /* held to write while the cache is made or added to, else to read */
  VkPipelineCache cache;       /* om_vk_cache.c; may be NULL */
  atomic_bool is_lost;         /* sticks: only closing helps. Set under queue_lock */
} om_vk_common;

/* A device beside another has copies of what the driver gave that one; it owns its command pool,
 * its semaphore, its memory and its modules. */
struct om_vk_device {      /* single; what HAL callers know as om_hal_device */
  om_vk_instance instance; /* owned; zeros beside another */
  om_vk_adapter adapter;
  om_hal_limits limits;
  om_hal_features features;
  om_hal_cache_id cache_id;
  VkDevice handle;
  struct VolkDeviceTable vk;
  VkQueue queue;
  VkCommandPool commands;
  VkSemaphore timeline;            /* counts submissions that are done */
  uint64_t submitted;              /* number of the last submission */
  uint64_t finished;               /* the highest that was seen done */
  om_vk_recording *timed;          /* the last one handed over; borrowed; NULL: gone, or timed */
  uint64_t timed_number, timed_ns; /* its submission, and when that was */
  om_vk_common *common;            /* owned; borrowed where is_beside */
  bool is_beside;
  bool pins_subgroups; /* sizes vary: kernels ask for limits.subgroup_size */
  bool has_addresses;  /* buffers have one, for kernels in PTX */
  om_vk_layout layouts[OM_HAL_MAX_BINDINGS + 1]; /* by binding count; 0 is not used */
  om_vk_block *blocks;                           /* owned; all device memory */
  om_vk_module *modules;                         /* owned; of all kernels in PTX so far */
  om_vk_staging staging;
};

typedef struct om_vk_open_options {
  bool takes_ptx;
  /* How tests open a device differently; zeros: as everyone does. */
  PFN_vkGetInstanceProcAddr get_proc; /* wraps the loader's to make calls fail */
  bool uses_staging;                  /* uploads by copies even where the memory is the host's */
} om_vk_open_options;

om_status om_vk_device_open(om_ctx *ctx,
                            size_t index,
                            const om_vk_open_options *options,
                            om_hal_device **out_device);

/* As OM_VK_STATUS; a lost device is remembered. */
#define OM_VK_CHECK(ctx, device, result, call) \
  om_vk_check((ctx), (device), (result), (call), __FILE__, __LINE__)
om_status om_vk_check(om_ctx *ctx,
                      om_vk_device *device,
                      VkResult result,
                      const char *call,
                      const char *file,
                      int line);

/* Waits for all that the queue has, also that of devices beside this one. */
void om_vk_device_settle(om_vk_device *device);
/* The same, and remembers that the device is lost: from now on no wait is made, and what it used
 * may be destroyed. */
void om_vk_device_lose(om_vk_device *device);

static inline bool om_vk_is_lost(const om_vk_device *device) {
  return atomic_load(&device->common->is_lost);
}

/* OM_E_DEVICE_LOST if it is. */
om_status om_vk_device_check(om_ctx *ctx, const om_vk_device *device);

static inline om_vk_device *om_vk_device_of(om_hal_device *device) {
  return (om_vk_device *)device;
}

/* The backend's part of om_hal. */
om_status om_vk_list(om_ctx *ctx, om_gpu_device *devices, size_t capacity, size_t *out_count);
om_status om_vk_open(om_ctx *ctx, size_t index, bool takes_ptx, om_hal_device **out_device);
om_status om_vk_open_beside(om_ctx *ctx, om_hal_device *opened, om_hal_device **out_device);
void om_vk_close(om_ctx *ctx, om_hal_device *device);
void om_vk_describe(const om_hal_device *device, om_gpu_device *out_device);
const om_hal_limits *om_vk_limits(const om_hal_device *device);
const om_hal_features *om_vk_features(const om_hal_device *device);

#endif
