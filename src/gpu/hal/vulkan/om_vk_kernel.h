/* Kernels: compute pipelines, and functions of PTX. */
#ifndef OM_VK_KERNEL_H
#define OM_VK_KERNEL_H

#include "gpu/hal/vulkan/om_vk_ptx.h"

typedef struct om_vk_kernel {  /* what HAL callers know as om_hal_kernel; immutable */
  VkPipeline pipeline;         /* NULL: the kernel is in PTX */
  const om_vk_module *module;  /* the device's; NULL: the kernel is in SPIR-V */
  const om_hal_shader *shader; /* static */
  uint32_t constants[OM_HAL_MAX_CONSTANTS];
} om_vk_kernel;

static inline om_vk_kernel *om_vk_kernel_of(om_hal_kernel *kernel) {
  return (om_vk_kernel *)kernel;
}

/* The backend's part of om_hal. */
om_status om_vk_kernels_create(om_ctx *ctx,
                               om_hal_device *device,
                               const om_hal_kernel_desc *descs,
                               size_t count,
                               om_hal_kernel **out_kernels);
void om_vk_kernel_destroy(om_ctx *ctx, om_hal_device *device, om_hal_kernel *kernel);

#endif
