/* Making kernels, on every backend. */
#include "conformance/om_hal_fixture.h"

static void many_kernels_at_once(void **state) {
  (void)state;
  enum { COUNT = 12, ELEMS = 1000 };
  om_hal_kernel_desc descs[COUNT];
  om_hal_kernel *kernels[COUNT];
  /* Add, Sub, Mul in turn, so that a mix-up of kernels shows. */
  for (uint32_t i = 0; i < COUNT; ++i) descs[i] = hf_kernel_desc(HF_ADD_SCALAR + i % 3);
  HF_OK(hf.target.hal->kernels_create(&hf.ctx, hf.device, descs, COUNT, kernels));
  om_hal_buffer *in = hf_ramp(ELEMS, 1.0F, 1.0F);
  om_hal_buffer *out = hf_buffer(OM_HAL_DEVICE, ELEMS * sizeof(float));
  for (int i = 0; i < COUNT; ++i) {
    om_hal_recording *recording = hf_begin(1, 0);
    hf_record_add(recording,
                  kernels[i],
                  hf_bind(in, 0, ELEMS * sizeof(float)),
                  hf_bind(out, 0, ELEMS * sizeof(float)),
                  2.0F);
    hf_end(recording);
    hf_run(recording);
    static const float starts[3] = {3.0F, -1.0F, 2.0F};
    static const float steps[3] = {1.0F, 1.0F, 2.0F};
    hf_expect(out, ELEMS, starts[i % 3], steps[i % 3]);
    hf_free_recording(recording);
  }
  for (int i = 0; i < COUNT; ++i) hf_free_kernel(kernels[i]);
  hf_free_kernel(NULL);
  hf_free(in);
  hf_free(out);
}

static void no_kernels(void **state) {
  (void)state;
  HF_OK(hf.target.hal->kernels_create(&hf.ctx, hf.device, NULL, 0, NULL));
}

/* One bad kernel among good ones: none is made. */
static void refuse(const om_hal_shader *bad, om_status status, const char *text) {
  om_hal_kernel_desc descs[3];
  om_hal_kernel *kernels[3];
  for (int i = 0; i < 3; ++i) descs[i] = hf_kernel_desc(HF_ADD_SCALAR);
  descs[2].shader = bad;
  HF_FAILS(hf.target.hal->kernels_create(&hf.ctx, hf.device, descs, 3, kernels), status, text);
  for (int i = 0; i < 3; ++i) assert_null(kernels[i]);
}

/* A driver may accept it and lose the device when it runs. */
static void too_much_shared_memory_is_refused(void **state) {
  (void)state;
  om_hal_shader shader = *om_shader_get(OM_SHADER_ELEMENTWISE);
  shader.shared_bytes = hf_limits()->max_shared_bytes + 4;
  refuse(&shader, OM_E_UNSUPPORTED, "shared memory");
}

static void too_many_invocations_are_refused(void **state) {
  (void)state;
  om_hal_shader shader = *om_shader_get(OM_SHADER_ELEMENTWISE);
  shader.workgroup_size[0] = hf_limits()->max_invocations;
  shader.workgroup_size[1] = 2;
  refuse(&shader, OM_E_UNSUPPORTED, "invocations");
  shader.workgroup_size[0] = UINT32_MAX;
  shader.workgroup_size[1] = UINT32_MAX;
  shader.workgroup_size[2] = UINT32_MAX;
  refuse(&shader, OM_E_UNSUPPORTED, "invocations");
  shader.workgroup_size[2] = 0;
  refuse(&shader, OM_E_UNSUPPORTED, "invocations");
}

static void malformed_kernels_are_refused(void **state) {
  (void)state;
  om_hal_shader shader = *om_shader_get(OM_SHADER_ELEMENTWISE);
  shader.binding_count = OM_HAL_MAX_BINDINGS + 1;
  refuse(&shader, OM_E_INTERNAL, "bindings");
  shader = *om_shader_get(OM_SHADER_ELEMENTWISE);
  shader.params_bytes = OM_HAL_MAX_PARAMS_BYTES + 4;
  refuse(&shader, OM_E_INTERNAL, "parameters");
  shader = *om_shader_get(OM_SHADER_ELEMENTWISE);
  shader.constant_count = OM_HAL_MAX_CONSTANTS + 1;
  refuse(&shader, OM_E_INTERNAL, "constants");
}

/* ---- Kernels kept ---- */

static size_t kept_bytes(om_hal_device *device) {
  size_t bytes = 0;
  HF_OK(hf.target.hal->cache_save(&hf.ctx, device, NULL, &bytes));
  return bytes;
}

/* What one device saved serves another: the same kernel is nothing new there. */
static void kept_kernels_are_found(void **state) {
  const om_hal *hal = hf.target.hal;
  om_hal_device *other = NULL;
  om_hal_kernel *kernel = NULL;
  const om_hal_kernel_desc desc = hf_kernel_desc(HF_ADD_SCALAR);
  (void)state;
  HF_OK(hal->cache_load(&hf.ctx, hf.device, NULL, 0));
  const size_t empty = kept_bytes(hf.device);
  kernel = hf_kernel(HF_ADD_SCALAR);
  size_t bytes = kept_bytes(hf.device);
  assert_true(hf.target.computes ? bytes >= empty : bytes > empty); /* a driver may keep none */
  void *data = malloc(bytes);
  assert_non_null(data);
  HF_OK(hal->cache_save(&hf.ctx, hf.device, data, &bytes));
  hf_free_kernel(kernel);

  HF_OK(hf_open_target(&hf.ctx, &hf.target, &other));
  assert_memory_equal(hal->cache_id(hf.device), hal->cache_id(other), sizeof *hal->cache_id(other));
  for (int i = 0; i < 2; ++i) {
    HF_OK(hal->cache_load(&hf.ctx, other, data, bytes));
    assert_int_equal(kept_bytes(other), bytes);
  }
  HF_OK(hal->kernels_create(&hf.ctx, other, &desc, 1, &kernel));
  assert_int_equal(kept_bytes(other), bytes);
  hal->kernel_destroy(&hf.ctx, other, kernel);
  hal->close(&hf.ctx, other);
  free(data);
}

static void saving_needs_a_load_and_room(void **state) {
  const om_hal *hal = hf.target.hal;
  const om_hal_kernel_desc desc = hf_kernel_desc(HF_ADD_SCALAR);
  om_hal_device *device = NULL;
  om_hal_kernel *kernel = NULL;
  char room[4];
  size_t bytes = 0;
  (void)state;
  HF_OK(hf_open_target(&hf.ctx, &hf.target, &device));
  HF_FAILS(hal->cache_save(&hf.ctx, device, NULL, &bytes), OM_E_INTERNAL, "keeps no kernels");
  HF_OK(hal->cache_load(&hf.ctx, device, NULL, 0));
  HF_OK(hal->kernels_create(&hf.ctx, device, &desc, 1, &kernel));
  bytes = sizeof room;
  HF_FAILS(hal->cache_save(&hf.ctx, device, room, &bytes), OM_E_INTERNAL, "too few");
  hal->kernel_destroy(&hf.ctx, device, kernel);
  hal->close(&hf.ctx, device);
}

/* Whatever is in what is loaded, kernels can be made afterwards. */
static void junk_is_left_out(void **state) {
  const om_hal *hal = hf.target.hal;
  static const char junk[1000] = "not what a save gave";
  (void)state;
  HF_OK(hal->cache_load(&hf.ctx, hf.device, junk, sizeof junk));
  HF_OK(hal->cache_load(&hf.ctx, hf.device, junk, 8));
  hf_free_kernel(hf_kernel(HF_ADD_SCALAR));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(many_kernels_at_once),
    cmocka_unit_test(no_kernels),
    cmocka_unit_test(too_much_shared_memory_is_refused),
    cmocka_unit_test(too_many_invocations_are_refused),
    cmocka_unit_test(malformed_kernels_are_refused),
    cmocka_unit_test(kept_kernels_are_found),
    cmocka_unit_test(saving_needs_a_load_and_room),
    cmocka_unit_test(junk_is_left_out),
};

HF_MAIN(tests, hf_setup, hf_teardown)
