/* Kernels in PTX.
 *
 * A launch is ordered by barriers as a dispatch is: the stage is the compute shader's, the accesses
 * are its reads and writes (1000 alternations of both kinds gave the right values on an NVIDIA
 * H200, driver 580, 2026-11-30). Where it may, it orders itself instead (om_vk_turns.h). The driver
 * keeps what it compiled by itself: nothing of it is in our cache.
 *
 * On that card, a queue family with graphics lost the device with more than 48 KiB of shared
 * memory, so there are no such kernels there; the other family ran one workgroup a core with more
 * than that, of 48 KiB four. It did not make clusters of workgroups.
 */
#include "gpu/hal/vulkan/om_vk_ptx.h"

#include "gpu/hal/vulkan/om_vk_buffer.h"
#include "gpu/hal/vulkan/om_vk_kernel.h"

static const char probe_name[] = "probe";
static const char probe_text[] =
    ".version 8.3\n"
    ".target sm_90a\n"
    ".address_size 64\n"
    ".visible .entry probe()\n"
    "{\n"
    "wgmma.fence.sync.aligned;\n"
    "ret;\n"
    "}\n";

bool om_vk_ptx_may_work(const om_vk_adapter *adapter) {
  return adapter->has_binary_import && !adapter->has_graphics &&
         adapter->features12.bufferDeviceAddress;
}

static void unmake(const om_vk_device *device, om_vk_module *module) {
  if (module->function) {
    device->vk.vkDestroyCuFunctionNVX(device->handle, module->function, NULL);
  }
  if (module->handle) device->vk.vkDestroyCuModuleNVX(device->handle, module->handle, NULL);
  module->function = VK_NULL_HANDLE;
  module->handle = VK_NULL_HANDLE;
}

static VkResult make(const om_vk_device *device,
                     const om_hal_shader *shader,
                     const char *text,
                     om_vk_module *module) {
  const VkCuModuleCreateInfoNVX module_info = {
      .sType = VK_STRUCTURE_TYPE_CU_MODULE_CREATE_INFO_NVX,
      .dataSize = shader->code_bytes + 1, /* with the 0 */
      .pData = text,
  };
  VkResult result =
      device->vk.vkCreateCuModuleNVX(device->handle, &module_info, NULL, &module->handle);
  if (result != VK_SUCCESS) return result;
  const VkCuFunctionCreateInfoNVX function_info = {
      .sType = VK_STRUCTURE_TYPE_CU_FUNCTION_CREATE_INFO_NVX,
      .module = module->handle,
      .pName = shader->name,
  };
  result =
      device->vk.vkCreateCuFunctionNVX(device->handle, &function_info, NULL, &module->function);
  if (result != VK_SUCCESS) unmake(device, module);
  return result;
}

bool om_vk_ptx_works(const om_vk_device *device) {
  const om_hal_shader shader = {.name = probe_name, .code_bytes = sizeof probe_text - 1};
  om_vk_module module = {0};
  om_vk_loader_lock(); /* the first module of a device makes more of the driver's */
  VkResult result = make(device, &shader, probe_text, &module);
  unmake(device, &module);
  om_vk_loader_unlock();
  return result == VK_SUCCESS;
}

om_status om_vk_module_get(om_ctx *ctx,
                           om_vk_device *device,
                           const om_hal_shader *shader,
                           om_vk_module **out_module) {
  const void *code = shader->code ? shader->code : shader->name;
  for (om_vk_module *module = device->modules; module; module = module->next) {
    *out_module = module;
    if (module->code == code) return OM_OK;
  }
  om_vk_module *module = om_new_bytes(ctx, 1, sizeof *module);
  *out_module = module;
  if (!module) return OM_E_OUT_OF_MEMORY;
  *module = (om_vk_module){.next = device->modules, .code = code};
  device->modules = module;
  return OM_OK;
}

VkResult om_vk_module_make(const om_vk_device *device,
                           const om_hal_shader *shader,
                           const char *text,
                           om_vk_module *module) {
  om_vk_loader_share();
  VkResult result = make(device, shader, text, module);
  om_vk_loader_unlock();
  return result;
}

void om_vk_modules_destroy(om_ctx *ctx, om_vk_device *device) {
  while (device->modules) {
    om_vk_module *module = device->modules;
    device->modules = module->next;
    om_vk_loader_share();
    unmake(device, module);
    om_vk_loader_unlock();
    om_delete(ctx, module);
  }
}

enum {
  CORES = 132,                    /* of an H200, where the driver does not count them */
  ALONE_BYTES = 48 * 1024 + 1024, /* of shared memory, with which a workgroup is alone on a core */
};

static uint32_t core_count(const om_vk_device *device) {
  const uint32_t count = device->adapter.cores.shaderSMCount;
  return count > 0 ? count : CORES;
}

/* Workgroups that come in waves would each pay for the turn: 400 of 64 KiB took 4.3 us that way and
 * 3.7 with a barrier, 132 took 1.4 and 2.5 (NVIDIA H200, 2026-11-30). And those that wait take the
 * places that are free first: one a core they are made to be, else a core must be meant to be full.
 */
uint32_t om_vk_ptx_turn_groups(const om_vk_device *device, const om_hal_dispatch *dispatch) {
  const om_hal_shader *shader = om_vk_kernel_of(dispatch->kernel)->shader;
  const uint32_t *groups = dispatch->groups;
  const uint32_t on_a_core = (groups[0] - 1) / core_count(device) + 1;
  if (!shader->takes_turns || groups[1] != 1 || groups[2] != 1) return 0;
  return on_a_core == 1 || on_a_core == shader->per_core ? groups[0] : 0;
}

/* Workgroups that wait for others to leave the cores would crowd on those that are free first; 132
 * of them without shared memory took 2.8 us a launch, and 1.4 each alone on its core. */
static uint32_t shared_bytes_of(const om_vk_device *device,
                                const om_hal_dispatch *dispatch,
                                const om_hal_turn *turn) {
  const uint32_t bytes = om_vk_kernel_of(dispatch->kernel)->shader->shared_bytes;
  const bool is_spread = turn->awaited != 0 && dispatch->groups[0] <= core_count(device);
  return is_spread && bytes < ALONE_BYTES ? ALONE_BYTES : bytes;
}

enum {
  WORD = sizeof(uint64_t),
  BLOCK_WORDS = OM_HAL_MAX_BINDINGS + OM_HAL_MAX_PARAMS_BYTES / WORD + OM_HAL_MAX_CONSTANTS / 2 +
                sizeof(om_hal_turn) / WORD,
};

/* The kernel's parameter. */
static void fill_block(const om_hal_dispatch *dispatch,
                       const om_hal_turn *turn,
                       uint64_t block[BLOCK_WORDS]) {
  const om_vk_kernel *kernel = om_vk_kernel_of(dispatch->kernel);
  const om_hal_shader *shader = kernel->shader;
  const size_t constant_bytes = shader->constant_count * sizeof *kernel->constants;
  uint8_t *behind = (uint8_t *)(block + shader->binding_count);
  for (uint32_t i = 0; i < shader->binding_count; ++i) {
    const om_hal_binding *binding = &dispatch->bindings[i];
    block[i] = om_vk_buffer_of(binding->buffer)->address + binding->offset;
  }
  if (shader->params_bytes > 0) memcpy(behind, dispatch->params, shader->params_bytes);
  memcpy(behind + shader->params_bytes, kernel->constants, constant_bytes);
  const size_t words =
      shader->binding_count + (shader->params_bytes + constant_bytes + WORD - 1) / WORD;
  if (shader->takes_turns) memcpy(block + words, turn, sizeof *turn);
}

void om_vk_ptx_launch(const om_vk_device *device,
                      VkCommandBuffer commands,
                      const om_hal_dispatch *dispatch,
                      const om_hal_turn *turn) {
  const om_vk_kernel *kernel = om_vk_kernel_of(dispatch->kernel);
  const om_hal_shader *shader = kernel->shader;
  uint64_t block[BLOCK_WORDS];
  const void *params = block;
  fill_block(dispatch, turn, block);
  const VkCuLaunchInfoNVX launch = {
      .sType = VK_STRUCTURE_TYPE_CU_LAUNCH_INFO_NVX,
      .function = kernel->module->function,
      .gridDimX = dispatch->groups[0],
      .gridDimY = dispatch->groups[1],
      .gridDimZ = dispatch->groups[2],
      .blockDimX = shader->workgroup_size[0],
      .blockDimY = shader->workgroup_size[1],
      .blockDimZ = shader->workgroup_size[2],
      .sharedMemBytes = shared_bytes_of(device, dispatch, turn),
      .paramCount = 1,
      .pParams = &params,
  };
  device->vk.vkCmdCuLaunchKernelNVX(commands, &launch);
}
