/* Opening and closing devices.
 *
 * Devices beside each other share a queue, which is locked for each call. Each counts its own
 * submissions, and a recording begins behind a barrier against all that came before it, whose ever
 * it was. A lost one is lost for all: whoever finds that waits for the queue before the others can
 * see it, so that they may destroy what they own.
 */
#include "gpu/hal/vulkan/om_vk_device.h"

#include "gpu/hal/vulkan/om_vk_cache.h"
#include "gpu/hal/vulkan/om_vk_ptx.h"

enum { VENDOR_NVIDIA = 0x10de }; /* PCI's number */

void om_vk_device_lose(om_vk_device *device) {
  pthread_mutex_lock(&device->common->queue_lock);
  (void)device->vk.vkDeviceWaitIdle(device->handle); /* fails at once where it is really gone */
  atomic_store(&device->common->is_lost, true);
  pthread_mutex_unlock(&device->common->queue_lock);
}

om_status om_vk_check(om_ctx *ctx,
                      om_vk_device *device,
                      VkResult result,
                      const char *call,
                      const char *file,
                      int line) {
  if (result == VK_ERROR_DEVICE_LOST && !om_vk_is_lost(device)) om_vk_device_lose(device);
  return om_vk_status(ctx, result, call, file, line);
}

void om_vk_device_settle(om_vk_device *device) {
  pthread_mutex_lock(&device->common->queue_lock);
  (void)device->vk.vkDeviceWaitIdle(device->handle); /* whatever it says: nothing more is to do */
  pthread_mutex_unlock(&device->common->queue_lock);
}

om_status om_vk_device_check(om_ctx *ctx, const om_vk_device *device) {
  if (!om_vk_is_lost(device)) return OM_OK;
  return OM_FAIL(ctx, OM_E_DEVICE_LOST, "The device was lost; a new session may open it again.");
}

void om_vk_describe(const om_hal_device *device, om_gpu_device *out_device) {
  om_vk_adapter_describe(&((const om_vk_device *)device)->adapter, out_device);
}

const om_hal_limits *om_vk_limits(const om_hal_device *device) {
  return &((const om_vk_device *)device)->limits;
}

const om_hal_features *om_vk_features(const om_hal_device *device) {
  return &((const om_vk_device *)device)->features;
}

om_status om_vk_list(om_ctx *ctx, om_gpu_device *devices, size_t capacity, size_t *out_count) {
  om_status st = OM_OK;
  om_vk_instance instance = {0};
  om_vk_adapter *adapters = NULL; /* scratch */
  size_t count = 0;
  *out_count = 0;

  OM_GO(om_vk_instance_init(ctx, NULL, &instance));
  OM_GO(om_vk_adapters_create(ctx, &instance, &adapters, &count));
  for (size_t i = 0; i < count && i < capacity; ++i) {
    om_vk_adapter_describe(&adapters[i], &devices[i]);
  }
  *out_count = count;
done:
  om_delete(ctx, adapters);
  om_vk_instance_deinit(ctx, &instance);
  /* No loader and no driver mean no devices; the recorded error says why. */
  return st == OM_E_UNSUPPORTED ? OM_OK : st;
}

static void set_limits(om_vk_device *device) {
  const VkPhysicalDeviceLimits *limits = &device->adapter.properties.properties.limits;
  uint64_t allocation = device->adapter.properties11.maxMemoryAllocationSize;
  device->limits = (om_hal_limits){
      .max_binding_bytes = limits->maxStorageBufferRange / 4 * 4,
      .max_buffer_bytes = allocation / 4 * 4,
      .binding_alignment = limits->minStorageBufferOffsetAlignment,
      .max_shared_bytes = limits->maxComputeSharedMemorySize,
      .max_invocations = limits->maxComputeWorkGroupInvocations,
      .max_groups = {limits->maxComputeWorkGroupCount[0],
                     limits->maxComputeWorkGroupCount[1],
                     limits->maxComputeWorkGroupCount[2]},
      .subgroup_size = device->adapter.properties11.subgroupSize,
  };
  if (device->limits.binding_alignment < 4) device->limits.binding_alignment = 4;
  if (device->limits.max_binding_bytes > device->limits.max_buffer_bytes) {
    device->limits.max_binding_bytes = device->limits.max_buffer_bytes;
  }
}

static void set_features(om_vk_device *device) {
  const om_vk_adapter *a = &device->adapter;
  const VkPhysicalDeviceProperties *basic = &a->properties.properties;
  const VkSubgroupFeatureFlags operations =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
      VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
      VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  bool varies =
      a->has_size_control && a->size_control.minSubgroupSize < a->size_control.maxSubgroupSize;
  bool can_pin = a->size_control_features.subgroupSizeControl &&
                 (a->size_control.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
  bool has_16bit = a->features11.storageBuffer16BitAccess;
  device->pins_subgroups = varies && can_pin;
  device->features = (om_hal_features){
      .timestamps = a->timestamp_bits > 0 && basic->limits.timestampPeriod > 0,
      .subgroups = (a->properties11.subgroupSupportedOperations & operations) == operations &&
                   (a->properties11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                   (!varies || can_pin),
      .storage_16bit = has_16bit,
      .cooperative_matrix = a->has_cooperative_matrix && a->matrix_features.cooperativeMatrix &&
                            has_16bit && a->features12.shaderFloat16 &&
                            a->features12.vulkanMemoryModel &&
                            basic->apiVersion >= VK_API_VERSION_1_3, /* SPIR-V 1.6 */
      .cuts_matrix_sums = basic->vendorID == VENDOR_NVIDIA,
      .unified_memory = basic->deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                        basic->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU,
      .hands_over_early = basic->deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
      .in_turn = basic->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU,
  };
}

static void set_cache_id(om_vk_device *device) {
  const VkPhysicalDeviceProperties *basic = &device->adapter.properties.properties;
  const VkPhysicalDeviceVulkan11Properties *properties11 = &device->adapter.properties11;
  om_hal_cache_id *id = &device->cache_id;
  id->vendor = basic->vendorID;
  id->device = basic->deviceID;
  id->driver_version = basic->driverVersion;
  memcpy(id->device_uuid, properties11->deviceUUID, sizeof id->device_uuid);
  memcpy(id->driver_uuid, properties11->driverUUID, sizeof id->driver_uuid);
  memcpy(id->cache_uuid, basic->pipelineCacheUUID, sizeof id->cache_uuid);
}

/* The features that kernel variants may use. Bounds checks by the driver are left off: kernels
 * check the indices they read from data. */
static om_status create_handle(om_ctx *ctx, om_vk_device *device) {
  const om_vk_adapter *a = &device->adapter;
  const float priority = 1.0F;
  const char *extensions[3];
  uint32_t extension_count = 0;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
      .cooperativeMatrix = VK_TRUE,
  };
  VkPhysicalDeviceSubgroupSizeControlFeatures size_control = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
      .subgroupSizeControl = VK_TRUE,
  };
  VkPhysicalDeviceVulkan12Features features12 = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
      .timelineSemaphore = VK_TRUE,
      .shaderFloat16 = a->features12.shaderFloat16,
      .shaderInt8 = a->features12.shaderInt8,
      .storageBuffer8BitAccess = a->features12.storageBuffer8BitAccess,
      .scalarBlockLayout = a->features12.scalarBlockLayout,
      .vulkanMemoryModel = a->features12.vulkanMemoryModel,
      .vulkanMemoryModelDeviceScope = a->features12.vulkanMemoryModelDeviceScope,
      .bufferDeviceAddress = device->has_addresses,
  };
  VkPhysicalDeviceVulkan11Features features11 = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
      .pNext = &features12,
      .storageBuffer16BitAccess = a->features11.storageBuffer16BitAccess,
  };
  if (device->features.cooperative_matrix) {
    extensions[extension_count++] = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
    matrix.pNext = features12.pNext;
    features12.pNext = &matrix;
  }
  if (device->has_addresses) {
    extensions[extension_count++] = VK_NVX_BINARY_IMPORT_EXTENSION_NAME;
  }
  if (device->pins_subgroups) {
    if (a->properties.properties.apiVersion < VK_API_VERSION_1_3) {
      extensions[extension_count++] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
    }
    size_control.pNext = features12.pNext;
    features12.pNext = &size_control;
  }
  const VkPhysicalDeviceFeatures2 features = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
      .pNext = &features11,
      .features = {.shaderInt16 = a->features.features.shaderInt16},
  };
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
      .queueFamilyIndex = a->queue_family,
      .queueCount = 1,
      .pQueuePriorities = &priority,
  };
  const VkDeviceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = &features,
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue,
      .enabledExtensionCount = extension_count,
      .ppEnabledExtensionNames = extensions,
  };
  om_vk_loader_lock();
  VkResult result = device->instance.vk.vkCreateDevice(a->handle, &info, NULL, &device->handle);
  if (result == VK_SUCCESS) {
    om_vk_loader_load_device(&device->instance, device->handle, &device->vk);
  }
  om_vk_loader_unlock();
  OM_TRY(OM_VK_STATUS(ctx, result, "vkCreateDevice"));
  device->vk.vkGetDeviceQueue(device->handle, a->queue_family, 0, &device->queue);
  return OM_OK;
}

static om_status create_layout(om_ctx *ctx, om_vk_device *device, uint32_t binding_count) {
  om_vk_layout *layout = &device->layouts[binding_count];
  VkDescriptorSetLayoutBinding bindings[OM_HAL_MAX_BINDINGS];
  for (uint32_t i = 0; i < binding_count; ++i) {
    bindings[i] = (VkDescriptorSetLayoutBinding){
        .binding = i,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .descriptorCount = 1,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
    };
  }
  const VkDescriptorSetLayoutCreateInfo set_info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
      .bindingCount = binding_count,
      .pBindings = bindings,
  };
  const VkPushConstantRange params = {VK_SHADER_STAGE_COMPUTE_BIT, 0, OM_HAL_MAX_PARAMS_BYTES};
  VkResult result =
      device->vk.vkCreateDescriptorSetLayout(device->handle, &set_info, NULL, &layout->set);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkCreateDescriptorSetLayout"));
  const VkPipelineLayoutCreateInfo pipeline_info = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
      .setLayoutCount = 1,
      .pSetLayouts = &layout->set,
      .pushConstantRangeCount = 1,
      .pPushConstantRanges = &params,
  };
  result =
      device->vk.vkCreatePipelineLayout(device->handle, &pipeline_info, NULL, &layout->pipeline);
  return OM_VK_CHECK(ctx, device, result, "vkCreatePipelineLayout");
}

/* What each device has, also beside another. */
static om_status create_objects(om_ctx *ctx, om_vk_device *device) {
  const VkCommandPoolCreateInfo pool_info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
      .queueFamilyIndex = device->adapter.queue_family,
  };
  const VkSemaphoreTypeCreateInfo type_info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
  };
  const VkSemaphoreCreateInfo semaphore_info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
      .pNext = &type_info,
  };
  VkResult result =
      device->vk.vkCreateCommandPool(device->handle, &pool_info, NULL, &device->commands);
  OM_TRY(OM_VK_CHECK(ctx, device, result, "vkCreateCommandPool"));
  result = device->vk.vkCreateSemaphore(device->handle, &semaphore_info, NULL, &device->timeline);
  return OM_VK_CHECK(ctx, device, result, "vkCreateSemaphore");
}

static om_status choose_adapter(om_ctx *ctx, om_vk_device *device, size_t index) {
  om_status st = OM_OK;
  om_vk_adapter *adapters = NULL; /* scratch */
  size_t count = 0;
  OM_GO(om_vk_adapters_create(ctx, &device->instance, &adapters, &count));
  if (index >= count) {
    st = OM_FAIL(ctx,
                 OM_E_UNSUPPORTED,
                 "There is no Vulkan device with index %zu; usable devices: %zu.",
                 index,
                 count);
    goto done;
  }
  device->adapter = adapters[index];
done:
  om_delete(ctx, adapters);
  return st;
}

static om_status create_common(om_ctx *ctx, om_vk_device *device) {
  om_vk_common *common = om_new_bytes(ctx, 1, sizeof *common);
  if (!common) return OM_E_OUT_OF_MEMORY;
  *common = (om_vk_common){.queue_lock = PTHREAD_MUTEX_INITIALIZER,
                           .cache_lock = PTHREAD_RWLOCK_INITIALIZER};
  device->common = common;
  return OM_OK;
}

static void destroy_common(om_ctx *ctx, om_vk_device *device) {
  if (!device->common || device->is_beside) return;
  pthread_mutex_destroy(&device->common->queue_lock);
  pthread_rwlock_destroy(&device->common->cache_lock);
  om_delete(ctx, device->common);
}

om_status om_vk_device_open(om_ctx *ctx,
                            size_t index,
                            const om_vk_open_options *options,
                            om_hal_device **out_device) {
  om_status st = OM_OK;
  om_vk_device *device = NULL;
  *out_device = NULL;

  OM_GO_NEW(device, 1);
  OM_GO(create_common(ctx, device));
  OM_GO(om_vk_instance_init(ctx, options->get_proc, &device->instance));
  OM_GO(choose_adapter(ctx, device, index));
  set_limits(device);
  set_features(device);
  device->has_addresses = options->takes_ptx && om_vk_ptx_may_work(&device->adapter);
  set_cache_id(device);
  device->staging.is_always = options->uses_staging;
  OM_GO(create_handle(ctx, device));
  OM_GO(create_objects(ctx, device));
  for (uint32_t i = 1; i <= OM_HAL_MAX_BINDINGS; ++i) OM_GO(create_layout(ctx, device, i));
  device->features.sm90 = device->has_addresses && om_vk_ptx_works(device);

  *out_device = (om_hal_device *)device;
  device = NULL; /* the caller owns it now */
done:
  om_vk_close(ctx, (om_hal_device *)device);
  return st;
}

om_status om_vk_open(om_ctx *ctx, size_t index, bool takes_ptx, om_hal_device **out_device) {
  const om_vk_open_options options = {.takes_ptx = takes_ptx};
  return om_vk_device_open(ctx, index, &options, out_device);
}

om_status om_vk_open_beside(om_ctx *ctx, om_hal_device *hal_opened, om_hal_device **out_device) {
  om_status st = OM_OK;
  const om_vk_device *opened = (const om_vk_device *)hal_opened;
  om_vk_device *device = NULL;
  *out_device = NULL;

  OM_GO(om_vk_device_check(ctx, opened));
  OM_GO_NEW(device, 1);
  device->adapter = opened->adapter;
  device->limits = opened->limits;
  device->features = opened->features;
  device->cache_id = opened->cache_id;
  device->handle = opened->handle;
  device->vk = opened->vk;
  device->queue = opened->queue;
  device->common = opened->common;
  device->is_beside = true;
  device->pins_subgroups = opened->pins_subgroups;
  device->has_addresses = opened->has_addresses;
  memcpy(device->layouts, opened->layouts, sizeof device->layouts);
  device->staging.is_always = opened->staging.is_always;
  OM_GO(create_objects(ctx, device));
  /* What one of them makes, the next one finds, whether it is kept for another process or not. */
  OM_GO(om_vk_cache_load(ctx, (om_hal_device *)device, NULL, 0));

  *out_device = (om_hal_device *)device;
  device = NULL; /* the caller owns it now */
done:
  om_vk_close(ctx, (om_hal_device *)device);
  return st;
}

/* Waits for this device's own submissions; a lost one has been waited for. */
static void settle_own(om_vk_device *device) {
  const VkSemaphoreWaitInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
      .semaphoreCount = 1,
      .pSemaphores = &device->timeline,
      .pValues = &device->submitted,
  };
  if (om_vk_is_lost(device) || device->submitted == device->finished) return;
  if (device->vk.vkWaitSemaphores(device->handle, &info, UINT64_MAX) == VK_SUCCESS) return;
  om_vk_device_settle(device);
}

static void destroy_own(om_ctx *ctx, om_vk_device *device) {
  om_vk_staging_deinit(ctx, device);
  om_vk_modules_destroy(ctx, device);
  device->vk.vkDestroySemaphore(device->handle, device->timeline, NULL);
  device->vk.vkDestroyCommandPool(device->handle, device->commands, NULL);
}

static void destroy_objects(om_ctx *ctx, om_vk_device *device) {
  struct VolkDeviceTable *vk = &device->vk;
  if (device->is_beside) {
    settle_own(device);
    destroy_own(ctx, device);
    return;
  }
  om_vk_device_settle(device); /* a lost device is closed all the same */
  destroy_own(ctx, device);
  vk->vkDestroyPipelineCache(device->handle, device->common->cache, NULL);
  for (uint32_t i = 1; i <= OM_HAL_MAX_BINDINGS; ++i) {
    vk->vkDestroyPipelineLayout(device->handle, device->layouts[i].pipeline, NULL);
    vk->vkDestroyDescriptorSetLayout(device->handle, device->layouts[i].set, NULL);
  }
  om_vk_loader_lock();
  vk->vkDestroyDevice(device->handle, NULL);
  om_vk_loader_unlock();
}

void om_vk_close(om_ctx *ctx, om_hal_device *hal_device) {
  om_vk_device *device = om_vk_device_of(hal_device);
  if (!device) return;
  if (device->handle) destroy_objects(ctx, device);
  om_vk_instance_deinit(ctx, &device->instance);
  destroy_common(ctx, device);
  om_delete(ctx, device);
}
