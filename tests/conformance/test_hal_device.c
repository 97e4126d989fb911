/* Listing, opening and closing devices, on every backend. */
#include <pthread.h>

#include "conformance/om_hal_fixture.h"

static int no_device(void **state) { /* these tests open their own */
  (void)state;
  atomic_store(&hf.messages, 0);
  om_error_clear(&hf.error);
  hf.use = (om_memory_use){0};
  hf_ctx();
  return 0;
}

static int nothing_left(void **state) {
  (void)state;
  return atomic_load(&hf.messages) == 0 && hf.use.live_bytes == 0 ? 0 : 1;
}

static int kind_rank(const char *kind) {
  static const char *const kinds[] = {
      "discrete GPU", "integrated GPU", "virtual GPU", "other device", "CPU", "null device"};
  for (size_t i = 0; i < OM_COUNT_OF(kinds); ++i) {
    if (strcmp(kind, kinds[i]) == 0) return (int)i;
  }
  return -1;
}

static void list_describes_devices(void **state) {
  (void)state;
  static om_gpu_device devices[8];
  size_t count = 0;
  HF_OK(hf.target.hal->list(&hf.ctx, devices, OM_COUNT_OF(devices), &count));
  assert_true(count > hf.target.index);
  for (size_t i = 0; i < count && i < OM_COUNT_OF(devices); ++i) {
    const om_gpu_device *device = &devices[i];
    assert_true(device->name[0] != '\0' && device->driver[0] != '\0');
    assert_string_equal(device->backend, hf.target.hal->name);
    assert_int_equal(strlen(device->uuid), 32);
    assert_int_equal(strspn(device->uuid, "0123456789abcdef"), 32);
    assert_true(kind_rank(device->kind) >= 0);
    if (i > 0) assert_true(kind_rank(devices[i - 1].kind) <= kind_rank(device->kind));
    if (hf.target.computes) assert_true(device->memory_bytes > 0);
  }
}

static void a_device_is_described_as_listed(void **state) {
  (void)state;
  static om_gpu_device devices[8];
  om_gpu_device own;
  om_hal_device *device = NULL;
  size_t count = 0;
  const om_gpu_device *listed = &devices[hf.target.index];
  HF_OK(hf.target.hal->list(&hf.ctx, devices, OM_COUNT_OF(devices), &count));
  HF_OK(hf_open_target(&hf.ctx, &hf.target, &device));
  hf.target.hal->describe(device, &own);
  hf.target.hal->close(&hf.ctx, device);
  assert_string_equal(own.name, listed->name);
  assert_string_equal(own.uuid, listed->uuid);
  assert_string_equal(own.driver, listed->driver);
  assert_ptr_equal(own.backend, listed->backend);
  assert_string_equal(own.kind, listed->kind);
  assert_int_equal(own.memory_bytes, listed->memory_bytes);
}

static void list_keeps_to_its_capacity(void **state) {
  (void)state;
  om_gpu_device device;
  size_t count = 0, again = 0;
  memset(&device, 0x5a, sizeof device);
  HF_OK(hf.target.hal->list(&hf.ctx, &device, 0, &count));
  assert_int_equal(device.name[0], 0x5a);
  HF_OK(hf.target.hal->list(&hf.ctx, &device, 1, &again));
  assert_int_equal(count, again);
  assert_true(device.name[0] != 0x5a);
}

static void limits_are_sane(void **state) {
  (void)state;
  om_hal_device *device = NULL;
  HF_OK(hf_open_target(&hf.ctx, &hf.target, &device));
  const om_hal_limits *limits = hf.target.hal->limits(device);
  const om_hal_features *features = hf.target.hal->features(device);
  /* What WebGPU and Vulkan promise, whichever is less. */
  assert_true(limits->max_binding_bytes >= 128 * 1024 * 1024);
  assert_true(limits->max_buffer_bytes >= limits->max_binding_bytes);
  assert_true(limits->binding_alignment >= 4 && limits->binding_alignment <= 256);
  assert_int_equal(limits->binding_alignment & (limits->binding_alignment - 1), 0);
  assert_true(limits->max_shared_bytes >= 16 * 1024);
  assert_true(limits->max_invocations >= 128);
  for (int i = 0; i < 3; ++i) assert_true(limits->max_groups[i] >= 65535);
  assert_true(limits->subgroup_size >= 1 && limits->subgroup_size <= 128);
  if (features->cooperative_matrix) assert_true(features->storage_16bit);
  hf.target.hal->close(&hf.ctx, device);
}

/* Some with a kernel: a driver may load its compiler then. */
static void opened_and_closed_100_times(void **state) {
  (void)state;
  const om_hal_kernel_desc desc = hf_kernel_desc(HF_ADD_SCALAR);
  for (int i = 0; i < 100; ++i) {
    om_hal_device *device = NULL;
    om_hal_buffer *buffer = NULL;
    om_hal_kernel *kernel = NULL;
    HF_OK(hf_open_target(&hf.ctx, &hf.target, &device));
    HF_OK(hf.target.hal->buffer_create(&hf.ctx, device, OM_HAL_DEVICE, 1024, &buffer));
    if (i < 30) HF_OK(hf.target.hal->kernels_create(&hf.ctx, device, &desc, 1, &kernel));
    hf.target.hal->kernel_destroy(&hf.ctx, device, kernel);
    hf.target.hal->buffer_destroy(&hf.ctx, device, buffer);
    hf.target.hal->close(&hf.ctx, device);
    assert_int_equal(hf.use.live_bytes, 0);
  }
  hf.target.hal->close(&hf.ctx, NULL);
}

static void opened_twice_at_once(void **state) {
  (void)state;
  om_hal_device *devices[2] = {NULL, NULL};
  for (int i = 0; i < 2; ++i) HF_OK(hf_open_target(&hf.ctx, &hf.target, &devices[i]));
  assert_ptr_not_equal(devices[0], devices[1]);
  for (int i = 0; i < 2; ++i) hf.target.hal->close(&hf.ctx, devices[i]);
}

static void an_index_past_the_end_is_named(void **state) {
  (void)state;
  om_hal_device *device = NULL;
  HF_FAILS(hf.target.hal->open(&hf.ctx, 4711, true, &device), OM_E_UNSUPPORTED, "4711");
  assert_null(device);
}

typedef struct opener { /* of a thread */
  const hf_target *target;
  om_hal_device *opened; /* the thread's devices are beside this one; NULL: beside none */
} opener;

/* A device, a context and an error of its own for each thread, as sessions have them. */
static void *open_and_copy(void *arg) {
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  const opener *own = arg;
  const om_hal *hal = own->target->hal;
  om_status st = OM_OK;
  for (int round = 0; round < 5 && st == OM_OK; ++round) {
    om_hal_device *device = NULL;
    om_hal_buffer *buffer = NULL;
    om_hal_recording *recording = NULL;
    uint64_t number = 0;
    const float values[4] = {1.0F, 2.0F, 3.0F, 4.0F};
    st = own->opened ? hal->open_beside(&ctx, own->opened, &device)
                     : hf_open_target(&ctx, own->target, &device);
    if (st == OM_OK) st = hal->buffer_create(&ctx, device, OM_HAL_DEVICE, 16, &buffer);
    if (st == OM_OK) st = hal->upload(&ctx, device, buffer, 0, values, sizeof values);
    if (st == OM_OK) st = hal->recording_begin(&ctx, device, 0, 0, &recording);
    if (st == OM_OK) st = hal->recording_end(&ctx, recording);
    if (st == OM_OK) st = hal->submit(&ctx, device, &recording, 1, &number);
    if (st == OM_OK) st = hal->wait(&ctx, device, number);
    if (device) hal->recording_destroy(&ctx, device, recording);
    if (device) hal->buffer_destroy(&ctx, device, buffer);
    hal->close(&ctx, device);
  }
  if (st != OM_OK) print_error("%s\n", error.message);
  return st == OM_OK ? NULL : arg;
}

static void open_in_threads(om_hal_device *opened) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  opener own = {&hf.target, opened};
  for (int i = 0; i < THREADS; ++i) {
    assert_int_equal(pthread_create(&threads[i], NULL, open_and_copy, &own), 0);
  }
  for (int i = 0; i < THREADS; ++i) {
    void *result = NULL;
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_null(result);
  }
}

static void devices_in_threads(void **state) {
  (void)state;
  open_in_threads(NULL);
}

static void devices_beside_one_in_threads(void **state) {
  (void)state;
  om_hal_device *device = NULL;
  HF_OK(hf_open_target(&hf.ctx, &hf.target, &device));
  open_in_threads(device);
  hf.target.hal->close(&hf.ctx, device);
}

static void a_device_beside_is_alike(void **state) {
  (void)state;
  om_hal_device *devices[2] = {NULL, NULL};
  const om_hal *hal = hf.target.hal;
  om_gpu_device words[2];
  HF_OK(hf_open_target(&hf.ctx, &hf.target, &devices[0]));
  HF_OK(hal->open_beside(&hf.ctx, devices[0], &devices[1]));
  assert_ptr_not_equal(devices[0], devices[1]);
  for (int i = 0; i < 2; ++i) hal->describe(devices[i], &words[i]);
  assert_string_equal(words[0].uuid, words[1].uuid);
  assert_memory_equal(hal->limits(devices[0]), hal->limits(devices[1]), sizeof(om_hal_limits));
  assert_memory_equal(
      hal->features(devices[0]), hal->features(devices[1]), sizeof(om_hal_features));
  for (int i = 2; i-- > 0;) hal->close(&hf.ctx, devices[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(list_describes_devices, no_device, nothing_left),
    cmocka_unit_test_setup_teardown(a_device_is_described_as_listed, no_device, nothing_left),
    cmocka_unit_test_setup_teardown(list_keeps_to_its_capacity, no_device, nothing_left),
    cmocka_unit_test_setup_teardown(limits_are_sane, no_device, nothing_left),
    cmocka_unit_test_setup_teardown(opened_and_closed_100_times, no_device, nothing_left),
    cmocka_unit_test_setup_teardown(opened_twice_at_once, no_device, nothing_left),
    cmocka_unit_test_setup_teardown(an_index_past_the_end_is_named, no_device, nothing_left),
    cmocka_unit_test_setup_teardown(devices_in_threads, no_device, nothing_left),
    cmocka_unit_test_setup_teardown(a_device_beside_is_alike, no_device, nothing_left),
    cmocka_unit_test_setup_teardown(devices_beside_one_in_threads, no_device, nothing_left),
};

HF_MAIN(tests, NULL, NULL)
