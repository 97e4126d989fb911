/* Loader and instance.
 *
 * Writable globals. volk's own: the entry points it loads, which its interface cannot do without.
 * They are written once per process (vkGetInstanceProcAddr) or per device
 * (vkGetDeviceProcAddr, which volkLoadDeviceTable reads), always under `loader_lock`. The library
 * is never unloaded: another session may be using it.
 *
 * The same lock is held while instances and devices are made, enumerated and destroyed. The
 * Vulkan loader (1.4.309) walks its lists of them in vkGetDeviceProcAddr without a lock of its
 * own, and crashed when another thread changed one; devices_in_threads of test_hal_device.c shows
 * whether that is gone.
 *
 * It also keeps apart the making of a device and of a module in PTX: NVIDIA's driver (580.159.04)
 * hung when two threads did that, one in its CUDA part waiting for a lock of its Vulkan part, the
 * other the other way round; sessions_on_vulkan of test_threads.c shows whether that is gone.
 * Modules may be made beside each other.
 */
#define VOLK_IMPLEMENTATION
#include "gpu/hal/vulkan/om_vk_loader.h"

#include <pthread.h>
#include <stdlib.h>

#include "gpu/hal/vulkan/om_vk_status.h"

static pthread_rwlock_t loader_lock = PTHREAD_RWLOCK_INITIALIZER;

static const char validation_layer[] = "VK_LAYER_KHRONOS_validation";

void om_vk_loader_lock(void) {
  pthread_rwlock_wrlock(&loader_lock);
}

void om_vk_loader_share(void) {
  pthread_rwlock_rdlock(&loader_lock);
}

void om_vk_loader_unlock(void) {
  pthread_rwlock_unlock(&loader_lock);
}

/* Keeps the drivers in the process, by an instance that is never destroyed. The loader unloads a
 * driver with its last instance, and NVIDIA's (580.159) and its shader compiler cannot be loaded
 * more than about ten times: instances then fail with "no Vulkan driver was found". Marking the
 * driver's library as undeletable crashed, because it is several libraries.
 * opened_and_closed_100_times of test_hal_device.c shows whether that is gone. */
static void keep_drivers(void) {
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  VkInstance kept = VK_NULL_HANDLE; /* owned by the process */
  uint32_t count = 0;
  /* Where it fails there is nothing to keep: whoever makes the next instance reports why. */
  if (!vkCreateInstance || vkCreateInstance(&info, NULL, &kept) != VK_SUCCESS) return;
  PFN_vkEnumeratePhysicalDevices enumerate =
      (PFN_vkEnumeratePhysicalDevices)vkGetInstanceProcAddr(kept, "vkEnumeratePhysicalDevices");
  /* Counting devices makes the loader drop drivers that have none; the count is not needed. */
  if (enumerate) (void)enumerate(kept, &count, NULL);
}

om_status om_vk_loader_get(om_ctx *ctx, PFN_vkGetInstanceProcAddr *out_get_proc) {
  om_vk_loader_lock();
  VkResult result = VK_SUCCESS;
  if (!vkGetInstanceProcAddr) {
    result = volkInitialize();
    if (result == VK_SUCCESS && vkGetInstanceProcAddr) keep_drivers();
  }
  *out_get_proc = vkGetInstanceProcAddr;
  om_vk_loader_unlock();
  if (result == VK_SUCCESS && *out_get_proc) return OM_OK;
  return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The Vulkan loader (libvulkan.so.1) was not found.");
}

void om_vk_loader_load_device(const om_vk_instance *instance,
                              VkDevice device,
                              struct VolkDeviceTable *out_table) {
  vkGetDeviceProcAddr = instance->vk.vkGetDeviceProcAddr;
  volkLoadDeviceTable(out_table, device);
}

static VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                     VkDebugUtilsMessageTypeFlagsEXT types,
                                     const VkDebugUtilsMessengerCallbackDataEXT *data,
                                     void *user) {
  om_ctx ctx = {.log = *(const om_log *)user};
  bool is_error = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  (void)types;
  om_log_write(
      &ctx, is_error ? OM_LOG_ERROR : OM_LOG_WARNING, "Vulkan validation: %s", data->pMessage);
  return VK_FALSE;
}

/* The loader's own remarks about other drivers are of type GENERAL: they are not asked for. */
static VkDebugUtilsMessengerCreateInfoEXT messenger_info(om_log *log) {
  return (VkDebugUtilsMessengerCreateInfoEXT){
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
      .pfnUserCallback = on_message,
      .pUserData = log,
  };
}

static om_status find_validation(om_ctx *ctx, PFN_vkGetInstanceProcAddr get_proc, bool *out_found) {
  om_status st = OM_OK;
  VkLayerProperties *layers = NULL; /* scratch */
  uint32_t count = 0;
  PFN_vkEnumerateInstanceLayerProperties enumerate =
      (PFN_vkEnumerateInstanceLayerProperties)get_proc(NULL, "vkEnumerateInstanceLayerProperties");
  *out_found = false;
  if (!enumerate) return OM_OK;
  OM_GO(OM_VK_STATUS(ctx, enumerate(&count, NULL), "vkEnumerateInstanceLayerProperties"));
  OM_GO_NEW(layers, count);
  OM_GO(OM_VK_STATUS(ctx, enumerate(&count, layers), "vkEnumerateInstanceLayerProperties"));
  for (uint32_t i = 0; i < count; ++i) {
    if (strcmp(layers[i].layerName, validation_layer) == 0) *out_found = true;
  }
done:
  om_delete(ctx, layers);
  return st;
}

static om_status prepare_validation(om_ctx *ctx,
                                    PFN_vkGetInstanceProcAddr get_proc,
                                    om_vk_instance *instance) {
  const char *wish = getenv("ONEMODEL_VULKAN_VALIDATION");
  bool is_there = false;
  if (!wish || strcmp(wish, "1") != 0) return OM_OK;
  OM_TRY(find_validation(ctx, get_proc, &is_there));
  if (!is_there) {
    om_log_write(ctx, OM_LOG_WARNING, "The layer %s is not installed.", validation_layer);
    return OM_OK;
  }
  instance->validation_log = om_new_bytes(ctx, 1, sizeof *instance->validation_log);
  if (!instance->validation_log) return OM_E_OUT_OF_MEMORY;
  *instance->validation_log = ctx->log;
  return OM_OK;
}

/* The driver's memory comes from the driver's own allocator: allocation callbacks slow it down. */
static om_status create_handle(om_ctx *ctx,
                               PFN_vkGetInstanceProcAddr get_proc,
                               om_vk_instance *instance) {
  static const char *const layers[] = {validation_layer};
  static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  static const VkValidationFeatureEnableEXT enables[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(instance->validation_log);
  const VkValidationFeaturesEXT validation = {
      .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
      .pNext = &messenger,
      .enabledValidationFeatureCount = 1,
      .pEnabledValidationFeatures = enables,
  };
  const VkApplicationInfo application = {
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
      .pEngineName = "onemodel",
      .apiVersion = VK_API_VERSION_1_3, /* the newest used where there; 1.2 is enough */
  };
  const uint32_t is_validated = instance->validation_log ? 1 : 0;
  const VkInstanceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
      .pNext = is_validated ? &validation : NULL,
      .pApplicationInfo = &application,
      .enabledLayerCount = is_validated,
      .ppEnabledLayerNames = layers,
      .enabledExtensionCount = is_validated,
      .ppEnabledExtensionNames = extensions,
  };
  PFN_vkCreateInstance create = (PFN_vkCreateInstance)get_proc(NULL, "vkCreateInstance");
  if (!create) return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The Vulkan loader has no vkCreateInstance.");
  om_vk_loader_lock();
  VkResult result = create(&info, NULL, &instance->handle);
  om_vk_loader_unlock();
  return OM_VK_STATUS(ctx, result, "vkCreateInstance");
}

static om_status load_table(om_ctx *ctx,
                            PFN_vkGetInstanceProcAddr get_proc,
                            om_vk_instance *instance) {
  static const char *const names[] = {
#define OM_VK_NAME(name) #name,
      OM_VK_INSTANCE_FUNCTIONS(OM_VK_NAME)
#undef OM_VK_NAME
  };
  bool is_there[OM_COUNT_OF(names)];
  size_t i = 0;
#define OM_VK_LOAD(name)                                             \
  instance->vk.name = (PFN_##name)get_proc(instance->handle, #name); \
  is_there[i++] = instance->vk.name != NULL;
  OM_VK_INSTANCE_FUNCTIONS(OM_VK_LOAD)
#undef OM_VK_LOAD
  for (i = 0; i < OM_COUNT_OF(names) - OM_VK_OPTIONAL_INSTANCE_FUNCTIONS; ++i) {
    if (is_there[i]) continue;
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "The Vulkan loader is too old: it has no %s.", names[i]);
  }
  return OM_OK;
}

om_status om_vk_instance_init(om_ctx *ctx,
                              PFN_vkGetInstanceProcAddr get_proc,
                              om_vk_instance *out_instance) {
  om_status st = OM_OK;
  om_vk_instance instance = {0};
  *out_instance = (om_vk_instance){0};

  if (!get_proc) OM_GO(om_vk_loader_get(ctx, &get_proc));
  OM_GO(prepare_validation(ctx, get_proc, &instance));
  OM_GO(create_handle(ctx, get_proc, &instance));
  OM_GO(load_table(ctx, get_proc, &instance));
  if (instance.validation_log && instance.vk.vkCreateDebugUtilsMessengerEXT) {
    const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(instance.validation_log);
    OM_GO(OM_VK_STATUS(ctx,
                       instance.vk.vkCreateDebugUtilsMessengerEXT(
                           instance.handle, &info, NULL, &instance.messenger),
                       "vkCreateDebugUtilsMessengerEXT"));
  }

  *out_instance = instance;
  instance = (om_vk_instance){0}; /* the caller owns it now */
done:
  om_vk_instance_deinit(ctx, &instance);
  return st;
}

void om_vk_instance_deinit(om_ctx *ctx, om_vk_instance *instance) {
  if (instance->messenger && instance->vk.vkDestroyDebugUtilsMessengerEXT) {
    instance->vk.vkDestroyDebugUtilsMessengerEXT(instance->handle, instance->messenger, NULL);
  }
  if (instance->handle && instance->vk.vkDestroyInstance) {
    om_vk_loader_lock();
    instance->vk.vkDestroyInstance(instance->handle, NULL);
    om_vk_loader_unlock();
  }
  om_delete(ctx, instance->validation_log);
  *instance = (om_vk_instance){0};
}
