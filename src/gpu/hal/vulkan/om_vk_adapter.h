/* A physical device that this backend can use, and everything the driver says about it. */
#ifndef OM_VK_ADAPTER_H
#define OM_VK_ADAPTER_H

#include "gpu/hal/om_hal.h"
#include "gpu/hal/vulkan/om_vk_loader.h"

typedef struct om_vk_adapter { /* about 3 KiB: lives on the heap */
  VkPhysicalDevice handle;
  uint32_t queue_family;       /* computes; preferably does nothing else but copy */
  uint32_t timestamp_bits;     /* of that family; 0: it cannot */
  bool has_graphics;           /* that family */
  bool has_size_control;       /* Vulkan 1.3 or VK_EXT_subgroup_size_control */
  bool has_cooperative_matrix; /* VK_KHR_cooperative_matrix with the configuration we use */
  bool has_binary_import;      /* VK_NVX_binary_import: kernels in PTX */
  bool has_core_count;         /* VK_NV_shader_sm_builtins */
  VkPhysicalDeviceProperties2 properties;
  VkPhysicalDeviceVulkan11Properties properties11;
  VkPhysicalDeviceVulkan12Properties properties12;
  VkPhysicalDeviceSubgroupSizeControlProperties size_control;
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV cores; /* zeros where nobody counts them */
  VkPhysicalDeviceFeatures2 features;
  VkPhysicalDeviceVulkan11Features features11;
  VkPhysicalDeviceVulkan12Features features12;
  VkPhysicalDeviceSubgroupSizeControlFeatures size_control_features;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix_features;
  VkPhysicalDeviceMemoryProperties memory;
} om_vk_adapter;

/* All usable devices, hardware first. When there is none, the context's error says why and the
 * result is OM_OK with a count of 0.
 * Owner: the caller deletes *out_adapters. */
om_status om_vk_adapters_create(om_ctx *ctx,
                                const om_vk_instance *instance,
                                om_vk_adapter **out_adapters,
                                size_t *out_count);

void om_vk_adapter_describe(const om_vk_adapter *adapter, om_gpu_device *out_device);

#endif
