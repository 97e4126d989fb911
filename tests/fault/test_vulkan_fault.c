/* Vulkan when it fails: every call in turn, a lost device, no driver, no loader, an old device.
 *
 * The backend asks vkGetInstanceProcAddr and vkGetDeviceProcAddr for each function it uses. These
 * tests open devices with a vkGetInstanceProcAddr of their own, which hands out wrappers that
 * count, and fail when told to. Objects that are made and not destroyed are counted too, and the
 * validation layer watches.
 */
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/om_hal_fixture.h"
#include "gpu/hal/vulkan/om_vk_device.h"
#include "harness/om_fault.h"

extern char **environ;

/* ---- The wrappers ---- */

static struct {
  size_t fail_at;  /* number of the call that fails, from 0 */
  VkResult result; /* with this */
  atomic_size_t calls;
  atomic_size_t polls; /* of vkGetSemaphoreCounterValue: only the first few count as calls */
  const char *failed;  /* name of the call that failed */
  const char *only;    /* fail each call of this function instead; NULL: by number */
  const char *missing; /* a function that get_proc does not know */
  bool is_old, has_no_compute, has_no_device;
  atomic_int live; /* objects */
  atomic_uint kept_pipelines;
} fault;

static bool fails(const char *name) {
  bool is_poll = strcmp(name, "vkGetSemaphoreCounterValue") == 0;
  if (fault.only) return strcmp(fault.only, name) == 0;
  if (is_poll && atomic_fetch_add(&fault.polls, 1) >= 3) return false;
  if (atomic_fetch_add(&fault.calls, 1) != fault.fail_at) return false;
  fault.failed = name;
  return true;
}

#define CREATE(type, handle)                                                              \
  (VkDevice a, const Vk##type##CreateInfo *b, const VkAllocationCallbacks *c, handle *d), \
      (a, b, c, d)
#define DESTROY(handle) (VkDevice a, handle b, const VkAllocationCallbacks *c), (a, b, c)

/* X(name, parameters, arguments, objects made by a success) */
#define FALLIBLE(X, ...) X(__VA_ARGS__)
#define FALLIBLE_CALLS(X)                                                                         \
  FALLIBLE(X,                                                                                     \
           vkCreateInstance,                                                                      \
           (const VkInstanceCreateInfo *a, const VkAllocationCallbacks *b, VkInstance *c),        \
           (a, b, c),                                                                             \
           1)                                                                                     \
  FALLIBLE(X, vkEnumerateInstanceLayerProperties, (uint32_t *a, VkLayerProperties *b), (a, b), 0) \
  FALLIBLE(X,                                                                                     \
           vkEnumeratePhysicalDevices,                                                            \
           (VkInstance a, uint32_t *b, VkPhysicalDevice *c),                                      \
           (a, b, c),                                                                             \
           0)                                                                                     \
  FALLIBLE(X,                                                                                     \
           vkEnumerateDeviceExtensionProperties,                                                  \
           (VkPhysicalDevice a, const char *b, uint32_t *c, VkExtensionProperties *d),            \
           (a, b, c, d),                                                                          \
           0)                                                                                     \
  FALLIBLE(X,                                                                                     \
           vkCreateDevice,                                                                        \
           (VkPhysicalDevice a,                                                                   \
            const VkDeviceCreateInfo *b,                                                          \
            const VkAllocationCallbacks *c,                                                       \
            VkDevice *d),                                                                         \
           (a, b, c, d),                                                                          \
           1)                                                                                     \
  FALLIBLE(X,                                                                                     \
           vkAllocateMemory,                                                                      \
           (VkDevice a,                                                                           \
            const VkMemoryAllocateInfo *b,                                                        \
            const VkAllocationCallbacks *c,                                                       \
            VkDeviceMemory *d),                                                                   \
           (a, b, c, d),                                                                          \
           1)                                                                                     \
  FALLIBLE(X,                                                                                     \
           vkMapMemory,                                                                           \
           (VkDevice a,                                                                           \
            VkDeviceMemory b,                                                                     \
            VkDeviceSize c,                                                                       \
            VkDeviceSize d,                                                                       \
            VkMemoryMapFlags e,                                                                   \
            void **f),                                                                            \
           (a, b, c, d, e, f),                                                                    \
           0)                                                                                     \
  FALLIBLE(X, vkCreateBuffer, CREATE(Buffer, VkBuffer), 1)                                        \
  FALLIBLE(X,                                                                                     \
           vkBindBufferMemory,                                                                    \
           (VkDevice a, VkBuffer b, VkDeviceMemory c, VkDeviceSize d),                            \
           (a, b, c, d),                                                                          \
           0)                                                                                     \
  FALLIBLE(X, vkCreateDescriptorSetLayout, CREATE(DescriptorSetLayout, VkDescriptorSetLayout), 1) \
  FALLIBLE(X, vkCreatePipelineLayout, CREATE(PipelineLayout, VkPipelineLayout), 1)                \
  FALLIBLE(X, vkCreateCommandPool, CREATE(CommandPool, VkCommandPool), 1)                         \
  FALLIBLE(X, vkCreateSemaphore, CREATE(Semaphore, VkSemaphore), 1)                               \
  FALLIBLE(X, vkCreateDescriptorPool, CREATE(DescriptorPool, VkDescriptorPool), 1)                \
  FALLIBLE(X, vkCreateQueryPool, CREATE(QueryPool, VkQueryPool), 1)                               \
  FALLIBLE(X, vkCreatePipelineCache, CREATE(PipelineCache, VkPipelineCache), 1)                   \
  FALLIBLE(X,                                                                                     \
           vkMergePipelineCaches,                                                                 \
           (VkDevice a, VkPipelineCache b, uint32_t c, const VkPipelineCache *d),                 \
           (a, b, c, d),                                                                          \
           0)                                                                                     \
  FALLIBLE(X,                                                                                     \
           vkGetPipelineCacheData,                                                                \
           (VkDevice a, VkPipelineCache b, size_t *c, void *d),                                   \
           (a, b, c, d),                                                                          \
           0)                                                                                     \
  FALLIBLE(X, vkCreateShaderModule, CREATE(ShaderModule, VkShaderModule), 1)                      \
  FALLIBLE(X,                                                                                     \
           vkCreateComputePipelines,                                                              \
           (VkDevice a,                                                                           \
            VkPipelineCache b,                                                                    \
            uint32_t c,                                                                           \
            const VkComputePipelineCreateInfo *d,                                                 \
            const VkAllocationCallbacks *e,                                                       \
            VkPipeline *f),                                                                       \
           (a, b, c, d, e, f),                                                                    \
           1)                                                                                     \
  FALLIBLE(X,                                                                                     \
           vkAllocateCommandBuffers,                                                              \
           (VkDevice a, const VkCommandBufferAllocateInfo *b, VkCommandBuffer *c),                \
           (a, b, c),                                                                             \
           0)                                                                                     \
  FALLIBLE(X, vkResetCommandBuffer, (VkCommandBuffer a, VkCommandBufferResetFlags b), (a, b), 0)  \
  FALLIBLE(                                                                                       \
      X, vkBeginCommandBuffer, (VkCommandBuffer a, const VkCommandBufferBeginInfo *b), (a, b), 0) \
  FALLIBLE(X, vkEndCommandBuffer, (VkCommandBuffer a), (a), 0)                                    \
  FALLIBLE(X,                                                                                     \
           vkAllocateDescriptorSets,                                                              \
           (VkDevice a, const VkDescriptorSetAllocateInfo *b, VkDescriptorSet *c),                \
           (a, b, c),                                                                             \
           0)                                                                                     \
  FALLIBLE(X,                                                                                     \
           vkQueueSubmit,                                                                         \
           (VkQueue a, uint32_t b, const VkSubmitInfo *c, VkFence d),                             \
           (a, b, c, d),                                                                          \
           0)                                                                                     \
  FALLIBLE(X, vkGetSemaphoreCounterValue, (VkDevice a, VkSemaphore b, uint64_t *c), (a, b, c), 0) \
  FALLIBLE(                                                                                       \
      X, vkWaitSemaphores, (VkDevice a, const VkSemaphoreWaitInfo *b, uint64_t c), (a, b, c), 0)  \
  FALLIBLE(X,                                                                                     \
           vkGetQueryPoolResults,                                                                 \
           (VkDevice a,                                                                           \
            VkQueryPool b,                                                                        \
            uint32_t c,                                                                           \
            uint32_t d,                                                                           \
            size_t e,                                                                             \
            void *f,                                                                              \
            VkDeviceSize g,                                                                       \
            VkQueryResultFlags h),                                                                \
           (a, b, c, d, e, f, g, h),                                                              \
           0)                                                                                     \
  FALLIBLE(X, vkDeviceWaitIdle, (VkDevice a), (a), 0)

/* X(name, parameters, arguments, the handle) */
#define DESTROY_CALLS(X)                                                                 \
  FALLIBLE(X, vkDestroyInstance, (VkInstance b, const VkAllocationCallbacks *c), (b, c)) \
  FALLIBLE(X, vkDestroyDevice, (VkDevice b, const VkAllocationCallbacks *c), (b, c))     \
  FALLIBLE(X, vkFreeMemory, DESTROY(VkDeviceMemory))                                     \
  FALLIBLE(X, vkDestroyBuffer, DESTROY(VkBuffer))                                        \
  FALLIBLE(X, vkDestroyDescriptorSetLayout, DESTROY(VkDescriptorSetLayout))              \
  FALLIBLE(X, vkDestroyPipelineLayout, DESTROY(VkPipelineLayout))                        \
  FALLIBLE(X, vkDestroyCommandPool, DESTROY(VkCommandPool))                              \
  FALLIBLE(X, vkDestroySemaphore, DESTROY(VkSemaphore))                                  \
  FALLIBLE(X, vkDestroyDescriptorPool, DESTROY(VkDescriptorPool))                        \
  FALLIBLE(X, vkDestroyQueryPool, DESTROY(VkQueryPool))                                  \
  FALLIBLE(X, vkDestroyPipelineCache, DESTROY(VkPipelineCache))                          \
  FALLIBLE(X, vkDestroyShaderModule, DESTROY(VkShaderModule))                            \
  FALLIBLE(X, vkDestroyPipeline, DESTROY(VkPipeline))

#define WRAP_FALLIBLE(name, parameters, arguments, made) \
  static PFN_##name real_##name;                         \
  static VkResult VKAPI_PTR wrap_##name parameters {     \
    if (fails(#name)) return fault.result;               \
    VkResult result = real_##name arguments;             \
    if (result == VK_SUCCESS) fault.live += (made);      \
    return result;                                       \
  }
#define WRAP_DESTROY(name, parameters, arguments) \
  static PFN_##name real_##name;                  \
  static void VKAPI_PTR wrap_##name parameters {  \
    if (b) fault.live -= 1;                       \
    real_##name arguments;                        \
  }
FALLIBLE_CALLS(WRAP_FALLIBLE)
DESTROY_CALLS(WRAP_DESTROY)

static PFN_vkGetInstanceProcAddr real_get_instance_proc;
static PFN_vkGetDeviceProcAddr real_get_device_proc;
static PFN_vkGetPhysicalDeviceProperties real_properties;
static PFN_vkGetPhysicalDeviceQueueFamilyProperties real_families;

static void VKAPI_PTR old_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *out) {
  real_properties(device, out);
  out->apiVersion = VK_API_VERSION_1_1;
}

static void VKAPI_PTR no_compute(VkPhysicalDevice device,
                                 uint32_t *count,
                                 VkQueueFamilyProperties *out) {
  real_families(device, count, out);
  for (uint32_t i = 0; out && i < *count; ++i) out[i].queueFlags = VK_QUEUE_TRANSFER_BIT;
}

static VkResult VKAPI_PTR no_devices(VkInstance instance, uint32_t *count, VkPhysicalDevice *out) {
  (void)instance;
  (void)out;
  *count = 0;
  return VK_SUCCESS;
}

/* The wrapper for `real`, which it keeps; else `real` itself. */
static PFN_vkVoidFunction wrapped(const char *name, PFN_vkVoidFunction real) {
#define FIND(function, ...)                     \
  if (strcmp(name, #function) == 0) {           \
    real_##function = (PFN_##function)real;     \
    return (PFN_vkVoidFunction)wrap_##function; \
  }
  FALLIBLE_CALLS(FIND)
  DESTROY_CALLS(FIND)
#undef FIND
  return real;
}

/* A pipeline, and whether the driver may keep it. */
static VkResult VKAPI_PTR watch_pipelines(VkDevice device,
                                          VkPipelineCache cache,
                                          uint32_t count,
                                          const VkComputePipelineCreateInfo *infos,
                                          const VkAllocationCallbacks *callbacks,
                                          VkPipeline *out) {
  if (cache) fault.kept_pipelines += count;
  return wrap_vkCreateComputePipelines(device, cache, count, infos, callbacks, out);
}

static PFN_vkVoidFunction VKAPI_PTR get_device_proc(VkDevice device, const char *name) {
  PFN_vkVoidFunction real = real_get_device_proc(device, name);
  PFN_vkVoidFunction wrap = real ? wrapped(name, real) : NULL;
  if (real && strcmp(name, "vkCreateComputePipelines") == 0) {
    return (PFN_vkVoidFunction)watch_pipelines;
  }
  return wrap;
}

static PFN_vkVoidFunction VKAPI_PTR get_instance_proc(VkInstance instance, const char *name) {
  PFN_vkVoidFunction real = real_get_instance_proc(instance, name);
  if (!real || (fault.missing && strcmp(fault.missing, name) == 0)) return NULL;
  if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
    real_get_device_proc = (PFN_vkGetDeviceProcAddr)real;
    return (PFN_vkVoidFunction)get_device_proc;
  }
  if (fault.is_old && strcmp(name, "vkGetPhysicalDeviceProperties") == 0) {
    real_properties = (PFN_vkGetPhysicalDeviceProperties)real;
    return (PFN_vkVoidFunction)old_properties;
  }
  if (fault.has_no_compute && strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties") == 0) {
    real_families = (PFN_vkGetPhysicalDeviceQueueFamilyProperties)real;
    return (PFN_vkVoidFunction)no_compute;
  }
  if (fault.has_no_device && strcmp(name, "vkEnumeratePhysicalDevices") == 0) {
    return (PFN_vkVoidFunction)no_devices;
  }
  return wrapped(name, real);
}

/* ---- The scenario: every function of the backend at least once ---- */

enum { BYTES = 4096, BIG_BYTES = 9 * 1024 * 1024 }; /* more than one half of the staging memory */

typedef struct scenario {
  om_hal_device *device, *beside;
  om_hal_kernel *kernel;
  om_hal_buffer *a, *b, *big, *down;
  om_hal_buffer *other; /* of the one beside */
  om_hal_recording *recording;
  uint64_t ns[2];
  float values[BYTES / sizeof(float)];
} scenario;

static scenario s;
static const om_hal *const hal = &om_hal_vulkan;

static om_status record(om_ctx *ctx) {
  const hf_params params = hf_params_of(BYTES / sizeof(float), 1.0F);
  const om_hal_binding in = hf_bind(s.a, 0, BYTES), out = hf_bind(s.b, 0, BYTES);
  const om_hal_binding down = hf_bind(s.down, 0, BYTES);
  const om_hal_dispatch dispatch = hf_dispatch(s.kernel, in, out, in, &params);
  OM_TRY(hal->recording_begin(ctx, s.device, 1, 2, &s.recording));
  OM_TRY(hal->record_timestamp(ctx, s.recording, 0));
  OM_TRY(hal->record_dispatch(ctx, s.recording, &dispatch));
  OM_TRY(hal->record_barrier(ctx, s.recording));
  OM_TRY(hal->record_copy(ctx, s.recording, &out, &down));
  OM_TRY(hal->record_timestamp(ctx, s.recording, 1));
  return hal->recording_end(ctx, s.recording);
}

static om_status open_device(om_ctx *ctx) {
  const om_vk_open_options options = {.get_proc = get_instance_proc, .uses_staging = true};
  return om_vk_device_open(ctx, hf.target.index, &options, &s.device);
}

static om_status upload_all(om_ctx *ctx) {
  static uint8_t big[BIG_BYTES];
  for (size_t i = 0; i < OM_COUNT_OF(s.values); ++i) s.values[i] = (float)i;
  OM_TRY(hal->upload(ctx, s.device, s.a, 0, s.values, BYTES));
  return hal->upload(ctx, s.device, s.big, 0, big, BIG_BYTES);
}

static om_status submit_and_wait(om_ctx *ctx) {
  uint64_t number = 0;
  OM_TRY(hal->submit(ctx, s.device, &s.recording, 1, &number));
  return hal->wait(ctx, s.device, number);
}

/* Begins to keep kernels, and adds what is kept to itself. */
static om_status load_kept(om_ctx *ctx) {
  static char data[1 << 16];
  size_t bytes = sizeof data;
  OM_TRY(hal->cache_load(ctx, s.device, NULL, 0));
  OM_TRY(hal->cache_save(ctx, s.device, data, &bytes));
  return hal->cache_load(ctx, s.device, data, bytes);
}

/* A device beside it, with an upload of its own. */
static om_status play_beside(om_ctx *ctx) {
  uint64_t number = 0;
  OM_TRY(hal->open_beside(ctx, s.device, &s.beside));
  OM_TRY(hal->buffer_create(ctx, s.beside, OM_HAL_DEVICE, BYTES, &s.other));
  OM_TRY(hal->upload(ctx, s.beside, s.other, 0, s.values, BYTES));
  OM_TRY(hal->submit(ctx, s.beside, NULL, 0, &number));
  return hal->wait(ctx, s.beside, number);
}

static om_status play(om_ctx *ctx) {
  const om_hal_kernel_desc desc = hf_kernel_desc(HF_ADD_SCALAR);
  OM_TRY(open_device(ctx));
  OM_TRY(load_kept(ctx));
  OM_TRY(hal->kernels_create(ctx, s.device, &desc, 1, &s.kernel));
  OM_TRY(hal->buffer_create(ctx, s.device, OM_HAL_DEVICE, BYTES, &s.a));
  OM_TRY(hal->buffer_create(ctx, s.device, OM_HAL_DEVICE, BYTES, &s.b));
  OM_TRY(hal->buffer_create(ctx, s.device, OM_HAL_DEVICE, BIG_BYTES, &s.big));
  OM_TRY(hal->buffer_create(ctx, s.device, OM_HAL_READBACK, BYTES, &s.down));
  OM_TRY(upload_all(ctx));
  OM_TRY(record(ctx));
  for (int run = 0; run < 2; ++run) OM_TRY(submit_and_wait(ctx));
  OM_TRY(hal->download(ctx, s.device, s.down, 0, s.values, BYTES));
  OM_TRY(play_beside(ctx));
  return hal->timestamps(ctx, s.recording, 2, s.ns);
}

/* Whatever was made; what was not is NULL. */
static void clean_up(om_ctx *ctx) {
  if (s.beside) hal->buffer_destroy(ctx, s.beside, s.other);
  hal->close(ctx, s.beside);
  if (s.device) {
    hal->recording_destroy(ctx, s.device, s.recording);
    hal->kernel_destroy(ctx, s.device, s.kernel);
    hal->buffer_destroy(ctx, s.device, s.a);
    hal->buffer_destroy(ctx, s.device, s.b);
    hal->buffer_destroy(ctx, s.device, s.big);
    hal->buffer_destroy(ctx, s.device, s.down);
  }
  hal->close(ctx, s.device);
  memset(&s, 0, sizeof s);
}

static int reset(void **state) {
  (void)state;
  memset(&fault, 0, sizeof fault);
  fault.fail_at = SIZE_MAX;
  hf.use = (om_memory_use){0};
  atomic_store(&hf.messages, 0);
  hf_ctx();
  om_error_clear(&hf.error);
  return 0;
}

static void expect_nothing_left(void) {
  assert_int_equal(fault.live, 0);
  assert_int_equal(hf.use.live_bytes, 0);
  assert_int_equal(atomic_load(&hf.messages), 0);
}

/* ---- The tests ---- */

static void it_works_when_nothing_fails(void **state) {
  (void)state;
  HF_OK(play(&hf.ctx));
  for (size_t i = 0; i < OM_COUNT_OF(s.values); ++i) assert_true(s.values[i] == (float)i + 1.0F);
  assert_true(fault.live > 0);
  assert_true(fault.kept_pipelines > 0);
  clean_up(&hf.ctx);
  expect_nothing_left();
}

typedef struct outcome {
  VkResult result;
  om_status status;
} outcome;

static const outcome outcomes[] = {
    {VK_ERROR_DEVICE_LOST, OM_E_DEVICE_LOST},
    {VK_ERROR_OUT_OF_HOST_MEMORY, OM_E_OUT_OF_MEMORY},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, OM_E_OUT_OF_DEVICE_MEMORY},
    {(VkResult)-12345, OM_E_INTERNAL},
};

/* One call fails: the status, the sentence, and nothing left. */
static bool fail_one(size_t fail_at, const outcome *expected) {
  reset(NULL);
  fault.fail_at = fail_at;
  fault.result = expected->result;
  om_status st = play(&hf.ctx);
  clean_up(&hf.ctx);
  expect_nothing_left();
  if (!fault.failed) {
    HF_OK(st);
    return false;
  }
  if (strcmp(fault.failed, "vkDeviceWaitIdle") == 0) {
    HF_OK(st); /* closing cannot fail */
    return true;
  }
  const size_t length = strlen(hf.error.message);
  if (st == expected->status && length > 0 && hf.error.message[length - 1] == '.') return true;
  print_error("%s (call %zu) failing with %d gave %s: %s\n",
              fault.failed,
              fail_at,
              (int)expected->result,
              om_status_name(st),
              hf.error.message);
  fail();
  return false;
}

/* Each call fails as a lost device, and in one other way. */
static void every_call_fails_once(void **state) {
  (void)state;
  size_t count = 0;
  while (fail_one(count, &outcomes[0]) && fail_one(count, &outcomes[1 + count % 3])) ++count;
  print_message("%zu calls\n", count);
  assert_true(count > 60);
  reset(NULL);
  it_works_when_nothing_fails(NULL);
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  for (size_t fail_at = 0;; ++fail_at) {
    om_fault host = {.fail_at = fail_at};
    reset(NULL);
    hf.ctx.allocator = om_fault_allocator(&host);
    om_status st = play(&hf.ctx);
    clean_up(&hf.ctx);
    expect_nothing_left();
    assert_int_equal(om_fault_live_blocks(&host), 0);
    if (!om_fault_has_failed(&host)) break;
    assert_int_equal(st, OM_E_OUT_OF_MEMORY);
    assert_true(hf.error.message[0] != '\0');
  }
  reset(NULL);
}

/* Whichever thread meets the failure: none of the kernels is made. */
static void kernels_are_made_all_or_none(void **state) {
  (void)state;
  enum { COUNT = 4 };
  om_hal_kernel_desc descs[COUNT];
  om_hal_kernel *kernels[COUNT];
  HF_OK(open_device(&hf.ctx));
  for (uint32_t i = 0; i < COUNT; ++i) descs[i] = hf_kernel_desc(HF_ADD_SCALAR + i);
  fault.fail_at = fault.calls + 5; /* of two calls for each kernel */
  fault.result = VK_ERROR_OUT_OF_HOST_MEMORY;
  HF_FAILS(hal->kernels_create(&hf.ctx, s.device, descs, COUNT, kernels),
           OM_E_OUT_OF_MEMORY,
           "Kernel 'elementwise'");
  for (int i = 0; i < COUNT; ++i) assert_null(kernels[i]);
  clean_up(&hf.ctx);
  expect_nothing_left();
}

static void a_lost_device_stays_lost(void **state) {
  (void)state;
  om_ctx *ctx = &hf.ctx;
  om_hal_recording *other = NULL;
  uint64_t number = 0;
  HF_OK(play(ctx));
  fault.only = "vkQueueSubmit";
  fault.result = VK_ERROR_DEVICE_LOST;
  HF_FAILS(submit_and_wait(ctx), OM_E_DEVICE_LOST, "vkQueueSubmit");
  fault.only = NULL; /* nothing fails any more, but the device is known to be lost */
  HF_FAILS(submit_and_wait(ctx), OM_E_DEVICE_LOST, "new session");
  HF_FAILS(hal->upload(ctx, s.device, s.a, 0, "abc", 4), OM_E_DEVICE_LOST, "lost");
  HF_FAILS(hal->download(ctx, s.device, s.down, 0, &number, 4), OM_E_DEVICE_LOST, "lost");
  HF_FAILS(hal->recording_begin(ctx, s.device, 1, 0, &other), OM_E_DEVICE_LOST, "lost");
  assert_null(other);
  clean_up(ctx);
  expect_nothing_left();
  it_works_when_nothing_fails(NULL);
}

/* A kernel is made with the cache locked to read, which can take seconds. */
static void a_device_beside_waits_for_no_kernel(void **state) {
  enum { PATIENCE_S = 60 };
  om_ctx *ctx = &hf.ctx;
  (void)state;
  HF_OK(open_device(ctx));
  HF_OK(hal->cache_load(ctx, s.device, NULL, 0));
  pthread_rwlock_t *lock = &om_vk_device_of(s.device)->common->cache_lock;
  assert_int_equal(pthread_rwlock_rdlock(lock), 0);
  alarm(PATIENCE_S); /* it would wait for this thread */
  HF_OK(hal->open_beside(ctx, s.device, &s.beside));
  alarm(0);
  assert_int_equal(pthread_rwlock_unlock(lock), 0);
  clean_up(ctx);
  expect_nothing_left();
}

/* Whichever of the two it is that meets the loss. */
static void a_device_is_lost_with_the_one_beside_it(void **state) {
  (void)state;
  om_ctx *ctx = &hf.ctx;
  for (int i = 0; i < 2; ++i) {
    om_hal_device *more = NULL;
    om_hal_recording *recording = NULL;
    uint64_t number = 0;
    HF_OK(play(ctx));
    HF_OK(hal->upload(ctx, s.beside, s.other, 0, s.values, BYTES));
    fault.only = "vkQueueSubmit";
    fault.result = VK_ERROR_DEVICE_LOST;
    if (i == 0) {
      HF_FAILS(submit_and_wait(ctx), OM_E_DEVICE_LOST, "vkQueueSubmit");
    } else {
      HF_FAILS(hal->submit(ctx, s.beside, NULL, 0, &number), OM_E_DEVICE_LOST, "vkQueueSubmit");
    }
    fault.only = NULL;
    HF_FAILS(submit_and_wait(ctx), OM_E_DEVICE_LOST, "new session");
    HF_FAILS(hal->recording_begin(ctx, s.beside, 1, 0, &recording), OM_E_DEVICE_LOST, "lost");
    HF_FAILS(hal->open_beside(ctx, s.device, &more), OM_E_DEVICE_LOST, "lost");
    assert_null(more);
    clean_up(ctx);
    expect_nothing_left();
  }
}

static void out_of_memory_names_the_size(void **state) {
  (void)state;
  om_ctx *ctx = &hf.ctx;
  om_hal_buffer *buffer = NULL;
  HF_OK(play(ctx));
  fault.only = "vkAllocateMemory";
  fault.result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  HF_FAILS(hal->buffer_create(ctx, s.device, OM_HAL_DEVICE, 123456788, &buffer),
           OM_E_OUT_OF_DEVICE_MEMORY,
           "12345");
  assert_null(buffer);
  fault.only = NULL;
  HF_OK(hal->buffer_create(ctx, s.device, OM_HAL_DEVICE, 4096, &buffer)); /* it goes on */
  hal->buffer_destroy(ctx, s.device, buffer);
  HF_OK(submit_and_wait(ctx));
  clean_up(ctx);
  expect_nothing_left();
}

static void an_old_device_is_refused(void **state) {
  (void)state;
  fault.is_old = true;
  HF_FAILS(open_device(&hf.ctx), OM_E_UNSUPPORTED, "older than Vulkan 1.2");
  expect_nothing_left();
}

static void a_device_without_compute_is_refused(void **state) {
  (void)state;
  fault.has_no_compute = true;
  HF_FAILS(open_device(&hf.ctx), OM_E_UNSUPPORTED, "no compute queue");
  expect_nothing_left();
}

static void no_device_is_said(void **state) {
  (void)state;
  fault.has_no_device = true;
  HF_FAILS(open_device(&hf.ctx), OM_E_UNSUPPORTED, "no device");
  expect_nothing_left();
}

static void an_old_loader_is_refused(void **state) {
  (void)state;
  fault.missing = "vkGetPhysicalDeviceFeatures2";
  HF_FAILS(open_device(&hf.ctx), OM_E_UNSUPPORTED, "vkGetPhysicalDeviceFeatures2");
  fault.missing = "vkCreateInstance";
  HF_FAILS(open_device(&hf.ctx), OM_E_UNSUPPORTED, "vkCreateInstance");
  expect_nothing_left();
}

/* ---- Without a driver, without a loader: in processes of their own ---- */

/* No device is no error of list, with a reason; opening one is. 0 if all is as it should be. */
static int child(const char *expected) {
  om_hal_device *device = NULL;
  om_gpu_device devices[1];
  size_t count = 7;
  om_ctx *ctx = hf_ctx();
  if (hal->list(ctx, devices, 1, &count) != OM_OK || count != 0) return 2;
  if (!strstr(hf.error.message, expected)) {
    fprintf(stderr, "the reason is: %s\n", hf.error.message);
    return 3;
  }
  om_error_clear(&hf.error);
  if (hal->open(ctx, 0, true, &device) != OM_E_UNSUPPORTED || device) return 4;
  if (!strstr(hf.error.message, expected)) return 5;
  return hf.use.live_bytes == 0 ? 0 : 6;
}

static bool has_same_name(const char *a, const char *b) {
  const size_t bytes = (size_t)(strchr(a, '=') - a) + 1;
  return strncmp(a, b, bytes) == 0;
}

/* Runs this program again, with two variables set anew. */
static int run_child(const char *expected, char *first, char *second) {
  char self[] = "/proc/self/exe", option[] = "--child", text[64];
  char *arguments[] = {self, option, text, NULL};
  char *environment[256] = {first, second};
  size_t count = 2;
  pid_t pid = 0;
  int status = 0;
  snprintf(text, sizeof text, "%s", expected);
  for (size_t i = 0; environ[i] && count + 1 < OM_COUNT_OF(environment); ++i) {
    if (has_same_name(first, environ[i]) || has_same_name(second, environ[i])) continue;
    environment[count++] = environ[i];
  }
  if (posix_spawn(&pid, self, NULL, NULL, arguments, environment) != 0) return -1;
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

static void no_driver_is_said(void **state) {
  (void)state;
  char new_name[] = "VK_DRIVER_FILES=/nonexistent", old_name[] = "VK_ICD_FILENAMES=/nonexistent";
  assert_int_equal(run_child("no Vulkan driver was found", new_name, old_name), 0);
}

/* Files that are no libraries stand before the real loader in the search path. */
static void no_loader_is_said(void **state) {
  (void)state;
  static const char *const names[] = {"libvulkan.so.1", "libvulkan.so"};
  const char *search = getenv("LD_LIBRARY_PATH");
  char folder[] = "/tmp/onemodel-no-loader-XXXXXX", path[2][128], variable[1024];
  char unset[] = "VK_DRIVER_FILES=";
  assert_non_null(mkdtemp(folder));
  for (int i = 0; i < 2; ++i) {
    snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]);
    FILE *file = fopen(path[i], "w");
    assert_non_null(file);
    assert_true(fputs("no library\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
  }
  snprintf(variable, sizeof variable, "LD_LIBRARY_PATH=%s:%s", folder, search ? search : "");
  const int result = run_child("libvulkan.so.1", variable, unset);
  for (int i = 0; i < 2; ++i) assert_int_equal(remove(path[i]), 0);
  assert_int_equal(rmdir(folder), 0);
  assert_int_equal(result, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(no_driver_is_said, reset),
    cmocka_unit_test_setup(no_loader_is_said, reset),
    cmocka_unit_test_setup(it_works_when_nothing_fails, reset),
    cmocka_unit_test_setup(every_call_fails_once, reset),
    cmocka_unit_test_setup(every_allocation_fails_once, reset),
    cmocka_unit_test_setup(kernels_are_made_all_or_none, reset),
    cmocka_unit_test_setup(a_lost_device_stays_lost, reset),
    cmocka_unit_test_setup(a_device_beside_waits_for_no_kernel, reset),
    cmocka_unit_test_setup(a_device_is_lost_with_the_one_beside_it, reset),
    cmocka_unit_test_setup(out_of_memory_names_the_size, reset),
    cmocka_unit_test_setup(an_old_device_is_refused, reset),
    cmocka_unit_test_setup(a_device_without_compute_is_refused, reset),
    cmocka_unit_test_setup(no_device_is_said, reset),
    cmocka_unit_test_setup(an_old_loader_is_refused, reset),
};

int main(int argc, char **argv) {
  static hf_target targets[8];
  if (argc == 3 && strcmp(argv[1], "--child") == 0) return child(argv[2]);
  setenv("ONEMODEL_VULKAN_VALIDATION", "1", 0);
  hf_targets(targets);
  if (targets[0].hal != hal) return 77;
  hf.target = targets[0];
  if (om_vk_loader_get(hf_ctx(), &real_get_instance_proc) != OM_OK) return 77;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
