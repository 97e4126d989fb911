/* Making kernels, several at a time: a driver takes milliseconds to a second for each.
 *
 * The threads take the next description until none is left. They touch no context: what they may
 * do there (allocate, record an error) is not theirs. Each kernel keeps the driver's answer, and
 * the caller's thread reports the first bad one in the order of the descriptions.
 */
#include "gpu/hal/vulkan/om_vk_kernel.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/om_thread.h"
#include "gpu/hal/om_hal_check.h"
#include "gpu/hal/om_hal_code.h"

enum { MAX_THREADS = 32 };

typedef struct om_vk_kernel_job { /* shared by the threads of one call */
  const om_vk_device *device;
  const om_hal_kernel_desc *descs;
  om_vk_kernel **kernels;
  VkResult *results;
  size_t count;
  atomic_size_t next;
  om_vk_module **modules; /* by kernel: one to make; NULL: none, or another kernel's */
  void **unpacked;        /* by kernel: words or text; NULL: the shader has its code as it is */
  om_hal_unpacker unpacker;
} om_vk_kernel_job;

static VkResult create_pipeline(const om_vk_device *device,
                                const om_hal_kernel_desc *desc,
                                VkShaderModule module,
                                VkPipeline *out_pipeline) {
  const om_hal_shader *shader = desc->shader;
  VkSpecializationMapEntry entries[OM_HAL_MAX_CONSTANTS];
  for (uint32_t i = 0; i < shader->constant_count; ++i) {
    entries[i] = (VkSpecializationMapEntry){i, i * (uint32_t)sizeof(uint32_t), sizeof(uint32_t)};
  }
  const VkSpecializationInfo constants = {
      .mapEntryCount = shader->constant_count,
      .pMapEntries = entries,
      .dataSize = shader->constant_count * sizeof(uint32_t),
      .pData = desc->constants,
  };
  const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
      .requiredSubgroupSize = device->limits.subgroup_size,
  };
  const VkComputePipelineCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .stage =
          {
              .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
              .pNext = device->pins_subgroups ? &size : NULL,
              .stage = VK_SHADER_STAGE_COMPUTE_BIT,
              .module = module,
              .pName = "main",
              .pSpecializationInfo = &constants,
          },
      .layout = device->layouts[shader->binding_count].pipeline,
  };
  om_vk_common *common = device->common;
  pthread_rwlock_rdlock(&common->cache_lock);
  VkResult result = device->vk.vkCreateComputePipelines(
      device->handle, common->cache, 1, &info, NULL, out_pipeline);
  pthread_rwlock_unlock(&common->cache_lock);
  return result;
}

static VkResult create_kernel(const om_vk_device *device,
                              const om_hal_kernel_desc *desc,
                              const uint32_t *unpacked,
                              om_vk_kernel *kernel) {
  VkShaderModule module = VK_NULL_HANDLE;
  const VkShaderModuleCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
      .codeSize = desc->shader->code_bytes,
      .pCode = unpacked ? unpacked : desc->shader->code,
  };
  VkResult result = device->vk.vkCreateShaderModule(device->handle, &info, NULL, &module);
  if (result < 0) return result;
  result = create_pipeline(device, desc, module, &kernel->pipeline);
  device->vk.vkDestroyShaderModule(device->handle, module, NULL);
  return result;
}

static void *work(void *arg) {
  om_vk_kernel_job *job = arg;
  for (size_t i = atomic_fetch_add(&job->next, 1); i < job->count;
       i = atomic_fetch_add(&job->next, 1)) {
    const om_hal_shader *shader = job->descs[i].shader;
    const void *unpacked = job->unpacked[i];
    if (job->modules[i]) {
      const char *text = unpacked ? unpacked : shader->code;
      job->results[i] = om_vk_module_make(job->device, shader, text, job->modules[i]);
    } else if (shader->code_kind == OM_HAL_SPIRV) {
      job->results[i] = create_kernel(job->device, &job->descs[i], unpacked, job->kernels[i]);
    }
  }
  return NULL;
}

/* Works in this thread and as many others as there are cores; fewer where none can be had. */
static void work_in_threads(om_vk_kernel_job *job) {
  pthread_t threads[MAX_THREADS];
  size_t wanted = om_core_count() - 1;
  size_t count = 0;
  if (wanted > MAX_THREADS) wanted = MAX_THREADS;
  if (wanted + 1 > job->count) wanted = job->count - 1;
  while (count < wanted && pthread_create(&threads[count], NULL, work, job) == 0) ++count;
  work(job);
  for (size_t i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

static om_status check_results(om_ctx *ctx, om_vk_device *device, const om_vk_kernel_job *job) {
  for (size_t i = 0; i < job->count; ++i) {
    const bool is_ptx = job->descs[i].shader->code_kind == OM_HAL_PTX;
    om_status st = OM_VK_CHECK(
        ctx, device, job->results[i], is_ptx ? "vkCreateCuModuleNVX" : "vkCreateComputePipelines");
    if (st == OM_OK) continue;
    om_error_prefix(ctx, "Kernel '%s': ", job->descs[i].shader->name);
    return st;
  }
  return OM_OK;
}

static bool is_listed(om_vk_module *const *modules, size_t count, const om_vk_module *module) {
  for (size_t i = 0; i < count; ++i) {
    if (modules[i] == module) return true;
  }
  return false;
}

/* Kernel i of the job, as far as this thread makes it. */
static om_status prepare(om_ctx *ctx, om_vk_device *device, om_vk_kernel_job *job, size_t i) {
  const om_hal_shader *shader = job->descs[i].shader;
  om_vk_module *module = NULL;
  uint32_t *words = NULL;
  char *text = NULL;
  OM_TRY(om_hal_check_shader(ctx, &device->limits, &device->features, OM_HAL_SPIRV, shader));
  om_vk_kernel *kernel = job->kernels[i] = om_new_bytes(ctx, 1, sizeof *kernel);
  if (!kernel) return OM_E_OUT_OF_MEMORY;
  kernel->shader = shader;
  memcpy(kernel->constants, job->descs[i].constants, sizeof kernel->constants);
  if (shader->code_kind == OM_HAL_PTX) {
    OM_TRY(om_vk_module_get(ctx, device, shader, &module));
    kernel->module = module;
    if (module->function || is_listed(job->modules, i, module)) return OM_OK;
    job->modules[i] = module;
    if (!shader->code) OM_TRY(om_hal_code_unpack_text(ctx, &job->unpacker, shader, &text));
    job->unpacked[i] = text;
    return OM_OK;
  }
  if (!shader->code) OM_TRY(om_hal_code_unpack(ctx, &job->unpacker, shader, &words));
  job->unpacked[i] = words;
  return OM_OK;
}

om_status om_vk_kernels_create(om_ctx *ctx,
                               om_hal_device *hal_device,
                               const om_hal_kernel_desc *descs,
                               size_t count,
                               om_hal_kernel **out_kernels) {
  om_status st = OM_OK;
  om_vk_device *device = om_vk_device_of(hal_device);
  om_vk_kernel_job job = {.device = device, .descs = descs, .count = count};
  for (size_t i = 0; i < count; ++i) out_kernels[i] = NULL;
  if (count == 0) return OM_OK;

  OM_GO_NEW(job.results, count);
  OM_GO_NEW(job.kernels, count);
  OM_GO_NEW(job.modules, count);
  OM_GO_NEW(job.unpacked, count);
  for (size_t i = 0; i < count; ++i) OM_GO(prepare(ctx, device, &job, i));
  om_hal_unpacker_deinit(ctx, &job.unpacker);
  work_in_threads(&job);
  OM_GO(check_results(ctx, device, &job));

  for (size_t i = 0; i < count; ++i) {
    out_kernels[i] = (om_hal_kernel *)job.kernels[i];
    job.kernels[i] = NULL; /* the caller owns it now */
  }
done:
  for (size_t i = 0; job.kernels && i < count; ++i) {
    om_vk_kernel_destroy(ctx, hal_device, (om_hal_kernel *)job.kernels[i]);
  }
  om_hal_unpacker_deinit(ctx, &job.unpacker);
  for (size_t i = 0; job.unpacked && i < count; ++i) om_delete(ctx, job.unpacked[i]);
  om_delete(ctx, job.unpacked);
  om_delete(ctx, job.modules);
  om_delete(ctx, job.kernels);
  om_delete(ctx, job.results);
  return st;
}

void om_vk_kernel_destroy(om_ctx *ctx, om_hal_device *hal_device, om_hal_kernel *hal_kernel) {
  om_vk_device *device = om_vk_device_of(hal_device);
  om_vk_kernel *kernel = om_vk_kernel_of(hal_kernel);
  if (!kernel) return;
  device->vk.vkDestroyPipeline(device->handle, kernel->pipeline, NULL);
  om_delete(ctx, kernel);
}
