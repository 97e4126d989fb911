/* Finding devices: which there are, which can be used, what they can do. */
#include "gpu/hal/vulkan/om_vk_adapter.h"

#include <inttypes.h>
#include <stdio.h>

#include "gpu/hal/vulkan/om_vk_status.h"

/* VkPhysicalDeviceType indexes this. */
typedef struct om_vk_kind {
  const char *name;
  int rank; /* lower is listed first */
} om_vk_kind;

static const om_vk_kind kinds[] = {
    [VK_PHYSICAL_DEVICE_TYPE_OTHER] = {"other device", 3},
    [VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU] = {"integrated GPU", 1},
    [VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU] = {"discrete GPU", 0},
    [VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU] = {"virtual GPU", 2},
    [VK_PHYSICAL_DEVICE_TYPE_CPU] = {"CPU", 4},
};

static const om_vk_kind *kind_of(const om_vk_adapter *adapter) {
  size_t type = (size_t)adapter->properties.properties.deviceType;
  return &kinds[type < OM_COUNT_OF(kinds) ? type : VK_PHYSICAL_DEVICE_TYPE_OTHER];
}

static om_status has_extension(om_ctx *ctx,
                               const om_vk_instance *instance,
                               VkPhysicalDevice device,
                               const char *name,
                               bool *out_found) {
  om_status st = OM_OK;
  VkExtensionProperties *extensions = NULL; /* scratch */
  uint32_t count = 0;
  static const char call[] = "vkEnumerateDeviceExtensionProperties";
  *out_found = false;
  OM_GO(OM_VK_STATUS(
      ctx, instance->vk.vkEnumerateDeviceExtensionProperties(device, NULL, &count, NULL), call));
  OM_GO_NEW(extensions, count);
  OM_GO(OM_VK_STATUS(
      ctx,
      instance->vk.vkEnumerateDeviceExtensionProperties(device, NULL, &count, extensions),
      call));
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(extensions[i].extensionName, name) == 0) *out_found = true;
  }
done:
  om_delete(ctx, extensions);
  return st;
}

static bool is_our_configuration(const VkCooperativeMatrixPropertiesKHR *matrix) {
  return matrix->MSize == 16 && matrix->NSize == 16 && matrix->KSize == 16 &&
         matrix->AType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
         matrix->BType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
         matrix->CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
         matrix->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
         matrix->scope == VK_SCOPE_SUBGROUP_KHR;
}

/* Whether one of the device's configurations is f16 times f16 into f32 at 16x16x16. */
static om_status find_matrix(om_ctx *ctx,
                             const om_vk_instance *instance,
                             VkPhysicalDevice device,
                             bool *out_found) {
  om_status st = OM_OK;
  VkCooperativeMatrixPropertiesKHR *matrices = NULL; /* scratch */
  uint32_t count = 0;
  static const char call[] = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
  PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR get =
      instance->vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  *out_found = false;
  if (!get) return OM_OK;
  OM_GO(OM_VK_STATUS(ctx, get(device, &count, NULL), call));
  OM_GO_NEW(matrices, count);
  for (uint32_t i = 0; i < count; ++i) {
    matrices[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
  }
  OM_GO(OM_VK_STATUS(ctx, get(device, &count, matrices), call));
  for (uint32_t i = 0; i < count; ++i) {
    if (is_our_configuration(&matrices[i])) *out_found = true;
  }
done:
  om_delete(ctx, matrices);
  return st;
}

static void query_features(const om_vk_instance *instance, om_vk_adapter *a) {
  a->features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  a->features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  a->size_control_features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  a->matrix_features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  a->features = (VkPhysicalDeviceFeatures2){
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &a->features11, {0}};
  a->features11.pNext = &a->features12;
  if (a->has_size_control) a->features12.pNext = &a->size_control_features;
  if (a->has_cooperative_matrix) {
    a->matrix_features.pNext = a->features12.pNext;
    a->features12.pNext = &a->matrix_features;
  }
  instance->vk.vkGetPhysicalDeviceFeatures2(a->handle, &a->features);
}

static void query_properties(const om_vk_instance *instance, om_vk_adapter *a) {
  a->properties11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  a->properties12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  a->size_control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
  a->properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  a->properties.pNext = &a->properties11;
  a->properties11.pNext = &a->properties12;
  a->cores.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
  if (a->has_size_control) a->properties12.pNext = &a->size_control;
  if (a->has_core_count) {
    a->cores.pNext = a->properties12.pNext;
    a->properties12.pNext = &a->cores;
  }
  instance->vk.vkGetPhysicalDeviceProperties2(a->handle, &a->properties);
  instance->vk.vkGetPhysicalDeviceMemoryProperties(a->handle, &a->memory);
}

/* A family that computes; one without graphics is served first. False: there is none. */
static om_status find_queue_family(om_ctx *ctx,
                                   const om_vk_instance *instance,
                                   om_vk_adapter *adapter,
                                   bool *out_found) {
  om_status st = OM_OK;
  VkQueueFamilyProperties *families = NULL; /* scratch */
  uint32_t count = 0;
  *out_found = false;
  instance->vk.vkGetPhysicalDeviceQueueFamilyProperties(adapter->handle, &count, NULL);
  OM_GO_NEW(families, count);
  instance->vk.vkGetPhysicalDeviceQueueFamilyProperties(adapter->handle, &count, families);
  for (uint32_t i = count; i-- > 0;) {
    bool has_graphics = families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT;
    if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
    if (*out_found && has_graphics) continue;
    *out_found = true;
    adapter->queue_family = i;
    adapter->timestamp_bits = families[i].timestampValidBits;
    adapter->has_graphics = has_graphics;
  }
done:
  om_delete(ctx, families);
  return st;
}

/* Fills the adapter; *out_usable false: the log says why. */
static om_status query(om_ctx *ctx,
                       const om_vk_instance *instance,
                       VkPhysicalDevice device,
                       om_vk_adapter *a,
                       const char **out_refusal) {
  const VkPhysicalDeviceProperties *basic = &a->properties.properties;
  bool has_queue = false;
  a->handle = device;
  *out_refusal = NULL;
  instance->vk.vkGetPhysicalDeviceProperties(device, &a->properties.properties);
  if (basic->apiVersion < VK_API_VERSION_1_2) {
    *out_refusal = "its driver is older than Vulkan 1.2";
    return OM_OK;
  }
  OM_TRY(find_queue_family(ctx, instance, a, &has_queue));
  if (!has_queue) {
    *out_refusal = "it has no compute queue";
    return OM_OK;
  }
  a->has_size_control = basic->apiVersion >= VK_API_VERSION_1_3;
  if (!a->has_size_control) {
    OM_TRY(has_extension(
        ctx, instance, device, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, &a->has_size_control));
  }
  OM_TRY(has_extension(
      ctx, instance, device, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, &a->has_cooperative_matrix));
  if (a->has_cooperative_matrix) {
    OM_TRY(find_matrix(ctx, instance, device, &a->has_cooperative_matrix));
  }
  OM_TRY(has_extension(
      ctx, instance, device, VK_NVX_BINARY_IMPORT_EXTENSION_NAME, &a->has_binary_import));
  OM_TRY(has_extension(
      ctx, instance, device, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, &a->has_core_count));
  query_properties(instance, a);
  query_features(instance, a);
  if (!a->features12.timelineSemaphore) *out_refusal = "it has no timeline semaphores";
  return OM_OK;
}

/* Moves the last adapter to its place: hardware first, else in the loader's order. The chains
 * inside point into the struct, so they are cut; nothing follows them after the queries. */
static void sort_in(om_vk_adapter *adapters, size_t last) {
  for (size_t i = last; i > 0; --i) {
    if (kind_of(&adapters[i])->rank >= kind_of(&adapters[i - 1])->rank) return;
    for (size_t byte = 0; byte < sizeof *adapters; ++byte) {
      char *a = (char *)&adapters[i] + byte;
      char *b = (char *)&adapters[i - 1] + byte;
      char kept = *a;
      *a = *b;
      *b = kept;
    }
  }
}

/* Enumerating makes the loader drop drivers without devices: hence its lock. */
static VkResult enumerate_locked(const om_vk_instance *instance,
                                 uint32_t *count,
                                 VkPhysicalDevice *devices) {
  om_vk_loader_lock();
  VkResult result = instance->vk.vkEnumeratePhysicalDevices(instance->handle, count, devices);
  om_vk_loader_unlock();
  return result;
}

static om_status enumerate(om_ctx *ctx,
                           const om_vk_instance *instance,
                           VkPhysicalDevice **out_devices,
                           uint32_t *out_count) {
  om_status st = OM_OK;
  static const char call[] = "vkEnumeratePhysicalDevices";
  *out_devices = NULL;
  OM_GO(OM_VK_STATUS(ctx, enumerate_locked(instance, out_count, NULL), call));
  OM_GO_NEW(*out_devices, *out_count);
  OM_GO(OM_VK_STATUS(ctx, enumerate_locked(instance, out_count, *out_devices), call));
done:
  return st;
}

om_status om_vk_adapters_create(om_ctx *ctx,
                                const om_vk_instance *instance,
                                om_vk_adapter **out_adapters,
                                size_t *out_count) {
  om_status st = OM_OK;
  VkPhysicalDevice *devices = NULL; /* scratch */
  om_vk_adapter *adapters = NULL;
  const char *refusal = NULL;
  uint32_t device_count = 0;
  size_t count = 0;
  *out_adapters = NULL;
  *out_count = 0;

  OM_GO(enumerate(ctx, instance, &devices, &device_count));
  OM_GO_NEW(adapters, device_count);
  for (uint32_t i = 0; i < device_count; ++i) {
    om_vk_adapter *adapter = &adapters[count];
    memset(adapter, 0, sizeof *adapter); /* too large to assign by way of the stack */
    OM_GO(query(ctx, instance, devices[i], adapter, &refusal));
    if (!refusal) {
      sort_in(adapters, count++);
      continue;
    }
    const char *name = adapter->properties.properties.deviceName;
    om_log_write(ctx, OM_LOG_INFO, "The Vulkan device '%s' cannot be used: %s.", name, refusal);
  }
  if (count == 0 && device_count > 0) {
    OM_IGNORE(OM_FAIL(ctx, /* the caller's "none" is no failure */
                      OM_E_UNSUPPORTED,
                      "None of the %" PRIu32 " Vulkan devices can be used; the last: %s.",
                      device_count,
                      refusal));
  }
  if (device_count == 0) {
    OM_IGNORE(OM_FAIL(ctx, OM_E_UNSUPPORTED, "Vulkan is there, but it has no device."));
  }

  *out_adapters = adapters;
  *out_count = count;
  adapters = NULL; /* the caller owns it now */
done:
  om_delete(ctx, devices);
  om_delete(ctx, adapters);
  return st;
}

static uint64_t device_memory(const om_vk_adapter *adapter) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < adapter->memory.memoryHeapCount; ++i) {
    const VkMemoryHeap *heap = &adapter->memory.memoryHeaps[i];
    if (!(heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
    if (heap->size > largest) largest = heap->size;
  }
  return largest;
}

void om_vk_adapter_describe(const om_vk_adapter *adapter, om_gpu_device *out_device) {
  const VkPhysicalDeviceProperties *basic = &adapter->properties.properties;
  *out_device = (om_gpu_device){.backend = om_hal_vulkan.name,
                                .kind = kind_of(adapter)->name,
                                .memory_bytes = device_memory(adapter)};
  snprintf(out_device->name, sizeof out_device->name, "%s", basic->deviceName);
  snprintf(out_device->driver,
           sizeof out_device->driver,
           "%.120s %.130s",
           adapter->properties12.driverName,
           adapter->properties12.driverInfo);
  for (size_t i = 0; i < VK_UUID_SIZE; ++i) {
    snprintf(out_device->uuid + 2 * i, 3, "%02x", adapter->properties11.deviceUUID[i]);
  }
}
