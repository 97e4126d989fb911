/* The way into Vulkan: the loader library, an instance, and the table of a device's functions.
 *
 * volk opens the loader at run time. It keeps its entry points in globals; ours read them under
 * one lock and use tables of their own, so that devices in different threads share nothing.
 */
#ifndef OM_VK_LOADER_H
#define OM_VK_LOADER_H

#include <volk.h>

#include "base/om_base.h"

/* Functions of an instance. The last three belong to extensions and may be NULL. */
#define OM_VK_INSTANCE_FUNCTIONS(X)                    \
  X(vkDestroyInstance)                                 \
  X(vkEnumeratePhysicalDevices)                        \
  X(vkGetPhysicalDeviceProperties)                     \
  X(vkGetPhysicalDeviceProperties2)                    \
  X(vkGetPhysicalDeviceFeatures2)                      \
  X(vkGetPhysicalDeviceMemoryProperties)               \
  X(vkGetPhysicalDeviceQueueFamilyProperties)          \
  X(vkEnumerateDeviceExtensionProperties)              \
  X(vkCreateDevice)                                    \
  X(vkGetDeviceProcAddr)                               \
  X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) \
  X(vkCreateDebugUtilsMessengerEXT)                    \
  X(vkDestroyDebugUtilsMessengerEXT)

enum { OM_VK_OPTIONAL_INSTANCE_FUNCTIONS = 3 };

typedef struct om_vk_instance_table {
#define OM_VK_MEMBER(name) PFN_##name name;
  OM_VK_INSTANCE_FUNCTIONS(OM_VK_MEMBER)
#undef OM_VK_MEMBER
} om_vk_instance_table;

typedef struct om_vk_instance {
  VkInstance handle;
  om_vk_instance_table vk;
  om_log *validation_log; /* owned; drivers write from any thread. NULL: validation is off */
  VkDebugUtilsMessengerEXT messenger;
} om_vk_instance;

/* The loader's entry. OM_E_UNSUPPORTED where the machine has none. */
om_status om_vk_loader_get(om_ctx *ctx, PFN_vkGetInstanceProcAddr *out_get_proc);

/* Makes an instance for Vulkan 1.2 or newer, with the validation layer when the environment
 * variable ONEMODEL_VULKAN_VALIDATION is 1 and the layer is there. get_proc NULL: the loader's;
 * tests pass their own to make calls fail. Deinit takes a zeroed instance. */
om_status om_vk_instance_init(om_ctx *ctx,
                              PFN_vkGetInstanceProcAddr get_proc,
                              om_vk_instance *out_instance);
void om_vk_instance_deinit(om_ctx *ctx, om_vk_instance *instance);

/* Held while instances and devices are made, enumerated and destroyed, and by load_device. */
void om_vk_loader_lock(void);
/* Held by any number while they make or destroy modules in PTX, and nobody has the lock itself. */
void om_vk_loader_share(void);
void om_vk_loader_unlock(void);

/* Fills the device's own table. The caller holds the lock. */
void om_vk_loader_load_device(const om_vk_instance *instance,
                              VkDevice device,
                              struct VolkDeviceTable *out_table);

#endif
