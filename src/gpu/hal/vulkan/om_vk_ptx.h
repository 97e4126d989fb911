/* Kernels in PTX, by VK_NVX_binary_import: the driver compiles the text, and a command launches its
 * function with the addresses of buffers. */
#ifndef OM_VK_PTX_H
#define OM_VK_PTX_H

#include "gpu/hal/vulkan/om_vk_device.h"

/* A text and what the driver made of it: once for a device, whatever the constants. */
struct om_vk_module {
  om_vk_module *next; /* of the device's list */
  const void *code;   /* the shader's, or its name where that is in a block: compared alone */
  VkCuModuleNVX handle;
  VkCuFunctionNVX function; /* NULL: not made, or it failed */
};

/* Whether the driver offers what it takes; whether it is there is known once the device is open. */
bool om_vk_ptx_may_work(const om_vk_adapter *adapter);

/* Whether the driver takes a module with an instruction that only sm_90a has. */
bool om_vk_ptx_works(const om_vk_device *device);

/* The device's module for a shader, which may have to be made. Modules live as long as it does. */
om_status om_vk_module_get(om_ctx *ctx,
                           om_vk_device *device,
                           const om_hal_shader *shader,
                           om_vk_module **out_module);
/* Makes it of the text, which ends with a 0. From any thread, each module in one at a time. */
VkResult om_vk_module_make(const om_vk_device *device,
                           const om_hal_shader *shader,
                           const char *text,
                           om_vk_module *module);
void om_vk_modules_destroy(om_ctx *ctx, om_vk_device *device);

/* How many workgroups wait, and add to a counter, if a dispatch of a kernel with a module takes
 * turns; 0: it had better not, or its kernel cannot. */
uint32_t om_vk_ptx_turn_groups(const om_vk_device *device, const om_hal_dispatch *dispatch);

/* Records a dispatch, which was checked, of a kernel with a module. `turn` is copied. */
void om_vk_ptx_launch(const om_vk_device *device,
                      VkCommandBuffer commands,
                      const om_hal_dispatch *dispatch,
                      const om_hal_turn *turn);

#endif
