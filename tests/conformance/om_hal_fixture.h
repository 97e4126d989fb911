/* What the conformance tests share: targets, an open device, and short words for common steps.
 *
 * A target is a backend's device. Each program runs all of its tests on every target there is:
 * Vulkan ($OM_TEST_DEVICE, an index or a part of the name, else the first device), the same with
 * uploads through staging, and the null devices. The validation layer is on, and any message of
 * it, or a log line of level error, fails the group; so does host memory left over.
 *
 * The kernel of these tests is the library's elementwise one with a chain of one item: it adds a
 * scalar, or another tensor, to each of its float32 elements.
 */
#ifndef OM_HAL_FIXTURE_H
#define OM_HAL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "abi/elementwise_params.h"
#include "gpu/hal/om_hal.h"
#include "harness/om_test_skip.h"
#include "om_shaders.h"
#ifdef OM_WITH_VULKAN
#  include "gpu/hal/vulkan/om_vk_device.h"
#endif

typedef struct hf_target {
  const char *name;
  const om_hal *hal;
  size_t index;      /* of the device */
  bool computes;     /* false: results are zeros */
  bool uses_staging; /* Vulkan's other way of uploading */
} hf_target;

typedef struct hf_state {
  om_ctx ctx;
  om_error error;
  om_memory_use use;
  atomic_uint messages; /* log lines of level error, validation messages of any level */
  hf_target target;
  om_hal_device *device;
  int broken_teardowns;
} hf_state;

static hf_state hf;

static inline void hf_log(void *user, om_log_level level, const char *message) {
  (void)user;
  if (level == OM_LOG_INFO || strstr(message, "is not installed")) return;
  fprintf(stderr, "%s\n", message);
  atomic_fetch_add(&hf.messages, 1);
}

static inline om_ctx *hf_ctx(void) {
  hf.ctx = (om_ctx){.allocator = om_default_allocator(),
                    .use = &hf.use,
                    .error = &hf.error,
                    .log = {hf_log, NULL},
                    .thread_count = 2};
  return &hf.ctx;
}

#define HF_OK(call) hf_ok((call), #call, __FILE__, __LINE__)
static inline void hf_ok(om_status status, const char *call, const char *file, int line) {
  if (status == OM_OK) return;
  print_error("%s gave %s: %s\n", call, om_status_name(status), hf.error.message);
  _fail(file, line);
}

/* The call fails with this status and a sentence that has `text` in it. */
#define HF_FAILS(call, status, text) hf_fails((call), (status), (text), #call, __FILE__, __LINE__)
static inline void hf_fails(om_status got,
                            om_status status,
                            const char *text,
                            const char *call,
                            const char *file,
                            int line) {
  const char *message = hf.error.message;
  const size_t length = strlen(message);
  if (got != status || !strstr(message, text) || length == 0 || message[length - 1] != '.') {
    print_error("%s gave %s: %s\n", call, om_status_name(got), message);
    _fail(file, line);
  }
  om_error_clear(&hf.error);
}

/* ---- Devices ---- */

static inline om_status hf_open_target(om_ctx *ctx, const hf_target *target, om_hal_device **out) {
#ifdef OM_WITH_VULKAN
  if (target->uses_staging) {
    const om_vk_open_options options = {.takes_ptx = true, .uses_staging = true};
    return om_vk_device_open(ctx, target->index, &options, out);
  }
#endif
  return target->hal->open(ctx, target->index, true, out);
}

static inline int hf_setup(void **state) {
  (void)state;
  atomic_store(&hf.messages, 0);
  om_error_clear(&hf.error);
  hf.use = (om_memory_use){0};
  if (hf_open_target(hf_ctx(), &hf.target, &hf.device) == OM_OK) return 0;
  print_error("%s\n", hf.error.message);
  return 1;
}

static inline int hf_teardown(void **state) {
  (void)state;
  hf.target.hal->close(&hf.ctx, hf.device);
  hf.device = NULL;
  if (atomic_load(&hf.messages) == 0 && hf.use.live_bytes == 0) return 0;
  print_error("%u messages, %llu bytes left\n",
              atomic_load(&hf.messages),
              (unsigned long long)hf.use.live_bytes);
  hf.broken_teardowns += 1;
  return 1;
}

/* ---- Objects ---- */

static inline const om_hal_limits *hf_limits(void) {
  return hf.target.hal->limits(hf.device);
}

static inline om_hal_buffer *hf_buffer(om_hal_memory memory, uint64_t bytes) {
  om_hal_buffer *buffer = NULL;
  HF_OK(hf.target.hal->buffer_create(&hf.ctx, hf.device, memory, bytes, &buffer));
  return buffer;
}

static inline void hf_free(om_hal_buffer *buffer) {
  hf.target.hal->buffer_destroy(&hf.ctx, hf.device, buffer);
}

static inline void hf_upload(om_hal_buffer *buffer,
                             uint64_t offset,
                             const void *data,
                             uint64_t bytes) {
  HF_OK(hf.target.hal->upload(&hf.ctx, hf.device, buffer, offset, data, bytes));
}

/* x + scalar, and x + other, as items of a chain: Add is 64, a scalar source 1, a tensor 3. */
enum { HF_ADD_SCALAR = 64 | 1 << 8, HF_ADD_TENSOR = 64 | 3 << 8 };

static inline om_hal_kernel_desc hf_kernel_desc(uint32_t item) {
  /* Constant 0 is the kernel's own, the chain's items follow. */
  return (om_hal_kernel_desc){om_shader_get(OM_SHADER_ELEMENTWISE), {0, item}};
}

static inline om_hal_kernel *hf_kernel(uint32_t item) {
  om_hal_kernel *kernel = NULL;
  const om_hal_kernel_desc desc = hf_kernel_desc(item);
  HF_OK(hf.target.hal->kernels_create(&hf.ctx, hf.device, &desc, 1, &kernel));
  return kernel;
}

static inline void hf_free_kernel(om_hal_kernel *kernel) {
  hf.target.hal->kernel_destroy(&hf.ctx, hf.device, kernel);
}

static inline om_hal_recording *hf_begin(size_t dispatch_count, uint32_t timestamp_count) {
  om_hal_recording *recording = NULL;
  HF_OK(hf.target.hal->recording_begin(
      &hf.ctx, hf.device, dispatch_count, timestamp_count, &recording));
  return recording;
}

static inline void hf_free_recording(om_hal_recording *recording) {
  hf.target.hal->recording_destroy(&hf.ctx, hf.device, recording);
}

static inline om_hal_binding hf_bind(om_hal_buffer *buffer, uint64_t offset, uint64_t bytes) {
  return (om_hal_binding){buffer, offset, bytes};
}

typedef struct hf_params { /* as the elementwise kernel has them, the chain's behind its own */
  om_elementwise_kernel_params own;
  om_chain_params chain;
} hf_params;

static inline hf_params hf_params_of(uint64_t elems, float scalar) {
  return (hf_params){.own = {.elems = (uint32_t)elems},
                     .chain = {.chain_scalar_0 = scalar, .chain_inner = 1, .chain_channels = 1}};
}

/* out = in + scalar, or in + other; a dispatch for the recording. */
static inline om_hal_dispatch hf_dispatch(om_hal_kernel *kernel,
                                          om_hal_binding in,
                                          om_hal_binding out,
                                          om_hal_binding other,
                                          const hf_params *params) {
  const uint32_t groups = (params->own.elems + 255) / 256;
  return (om_hal_dispatch){.kernel = kernel,
                           .bindings = {in, out, other, other},
                           .params = params,
                           .groups = {groups, 1, 1}};
}

static inline void hf_record_add(om_hal_recording *recording,
                                 om_hal_kernel *kernel,
                                 om_hal_binding in,
                                 om_hal_binding out,
                                 float scalar) {
  const hf_params params = hf_params_of(in.bytes / 4, scalar);
  const om_hal_dispatch dispatch = hf_dispatch(kernel, in, out, in, &params);
  HF_OK(hf.target.hal->record_dispatch(&hf.ctx, recording, &dispatch));
}

static inline void hf_barrier(om_hal_recording *recording) {
  HF_OK(hf.target.hal->record_barrier(&hf.ctx, recording));
}

static inline void hf_copy(om_hal_recording *recording,
                           om_hal_binding source,
                           om_hal_binding target) {
  HF_OK(hf.target.hal->record_copy(&hf.ctx, recording, &source, &target));
}

static inline void hf_end(om_hal_recording *recording) {
  HF_OK(hf.target.hal->recording_end(&hf.ctx, recording));
}

static inline uint64_t hf_submit(om_hal_recording *recording) {
  uint64_t number = 0;
  HF_OK(hf.target.hal->submit(&hf.ctx, hf.device, &recording, 1, &number));
  return number;
}

static inline void hf_run(om_hal_recording *recording) {
  HF_OK(hf.target.hal->wait(&hf.ctx, hf.device, hf_submit(recording)));
}

/* The contents of a device buffer. */
static inline void hf_read(om_hal_buffer *buffer, uint64_t offset, void *data, uint64_t bytes) {
  om_hal_buffer *readback = hf_buffer(OM_HAL_READBACK, bytes);
  om_hal_recording *recording = hf_begin(0, 0);
  hf_copy(recording, hf_bind(buffer, offset, bytes), hf_bind(readback, 0, bytes));
  hf_end(recording);
  hf_run(recording);
  HF_OK(hf.target.hal->download(&hf.ctx, hf.device, readback, 0, data, bytes));
  hf_free_recording(recording);
  hf_free(readback);
}

/* Elements start, start + step, ... of a buffer; zeros on a target that does not compute. */
static inline void hf_expect(om_hal_buffer *buffer, size_t count, float start, float step) {
  float *values = malloc(count * sizeof *values);
  assert_non_null(values);
  hf_read(buffer, 0, values, count * sizeof *values);
  for (size_t i = 0; i < count; ++i) {
    const float expected = hf.target.computes ? start + step * (float)i : 0.0F;
    if (values[i] == expected) continue;
    print_error("element %zu is %g, not %g\n", i, (double)values[i], (double)expected);
    fail();
  }
  free(values);
}

/* A device buffer with elements start, start + step, ... */
static inline om_hal_buffer *hf_ramp(size_t count, float start, float step) {
  om_hal_buffer *buffer = hf_buffer(OM_HAL_DEVICE, count * sizeof(float));
  float *values = malloc(count * sizeof *values);
  assert_non_null(values);
  for (size_t i = 0; i < count; ++i) values[i] = start + step * (float)i;
  hf_upload(buffer, 0, values, count * sizeof *values);
  free(values);
  return buffer;
}

/* ---- The program ---- */

/* The index of the device that $OM_TEST_DEVICE names; `count` if none does. */
static inline size_t hf_wanted_device(const om_gpu_device *devices, size_t count) {
  const char *wish = getenv("OM_TEST_DEVICE");
  if (!wish || count == 0) return 0;
  for (size_t i = 0; i < count; ++i) {
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    if (strcmp(wish, number) == 0 || strstr(devices[i].name, wish)) return i;
  }
  return count;
}

static inline size_t hf_targets(hf_target *targets) {
  static om_gpu_device devices[8];
  size_t target_count = 0, count = 0;
#ifdef OM_WITH_VULKAN
  om_status st = om_hal_vulkan.list(hf_ctx(), devices, OM_COUNT_OF(devices), &count);
  if (count > OM_COUNT_OF(devices)) count = OM_COUNT_OF(devices);
  const size_t index = hf_wanted_device(devices, count);
  if (st == OM_OK && index < count) {
    targets[target_count++] = (hf_target){"vulkan", &om_hal_vulkan, index, true, false};
    targets[target_count++] = (hf_target){"vulkan, staging", &om_hal_vulkan, index, true, true};
  } else {
    print_message("Vulkan is skipped: %s\n", hf.error.message);
  }
#endif
  om_error_clear(&hf.error);
  if (om_hal_null.list(hf_ctx(), devices, OM_COUNT_OF(devices), &count) != OM_OK) abort();
  for (size_t i = 0; i < count; ++i) {
    targets[target_count++] = (hf_target){devices[i].name, &om_hal_null, i, false, false};
  }
  return target_count;
}

/* Runs all the tests on every target. cmocka does not count a failed group teardown. */
#define HF_MAIN(tests, setup, teardown)                           \
  int main(void) {                                                \
    static hf_target targets[8];                                  \
    int failures = 0;                                             \
    setenv("ONEMODEL_VULKAN_VALIDATION", "1", 0);                 \
    const size_t count = hf_targets(targets);                     \
    for (size_t i = 0; i < count; ++i) {                          \
      hf.target = targets[i];                                     \
      print_message("# %s\n", hf.target.name);                    \
      failures += cmocka_run_group_tests(tests, setup, teardown); \
    }                                                             \
    return failures == 0 && hf.broken_teardowns == 0 ? 0 : 1;     \
  }

#endif
