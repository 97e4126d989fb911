/* Kernels in PTX: taken where the device is one for them (NVIDIA Hopper), beside kernels in SPIR-V
 * and ordered with them by the same barriers; refused elsewhere. */
#include "om_hal_fixture.h"

enum { THREADS = 128, COUNT = 1000, GROUPS = (COUNT + THREADS - 1) / THREADS };

typedef struct add_params {
  uint32_t count;
  float scalar;
} add_params;

/* y[i] = x[i] + scalar + constant, where the constant goes to another thread by way of 200 KiB of
 * shared memory. */
static const char add_text[] =
    ".version 8.3\n"
    ".target sm_90a\n"
    ".address_size 64\n"
    ".extern .shared .align 16 .b8 smem[];\n"
    ".visible .entry add(.param .align 8 .b8 args[32])\n"
    ".reqntid 128, 1, 1\n"
    "{\n"
    ".reg .pred %p<2>;\n"
    ".reg .b32 %r<9>;\n"
    ".reg .f32 %f<7>;\n"
    ".reg .b64 %d<8>;\n"
    "mov.u32 %r1, %tid.x;\n"
    "mov.u32 %r2, %ctaid.x;\n"
    "mad.lo.u32 %r3, %r2, 128, %r1;\n"
    "mov.u32 %r4, smem;\n"
    "mad.lo.u32 %r5, %r1, 1600, %r4;\n"
    "ld.param.f32 %f1, [args+24];\n"
    "st.shared.f32 [%r5], %f1;\n"
    "bar.sync 0;\n"
    "sub.u32 %r6, 127, %r1;\n"
    "mad.lo.u32 %r7, %r6, 1600, %r4;\n"
    "ld.shared.f32 %f2, [%r7];\n"
    "ld.param.u32 %r8, [args+16];\n"
    "setp.ge.u32 %p1, %r3, %r8;\n"
    "@%p1 bra DONE;\n"
    "ld.param.u64 %d1, [args];\n"
    "ld.param.u64 %d2, [args+8];\n"
    "ld.param.f32 %f3, [args+20];\n"
    "mul.wide.u32 %d3, %r3, 4;\n"
    "add.u64 %d4, %d1, %d3;\n"
    "add.u64 %d5, %d2, %d3;\n"
    "ld.global.f32 %f4, [%d4];\n"
    "add.f32 %f5, %f4, %f3;\n"
    "add.f32 %f6, %f5, %f2;\n"
    "st.global.f32 [%d5], %f6;\n"
    "DONE:\n"
    "ret;\n"
    "}\n";

static const om_hal_shader add_shader = {.name = "add",
                                         .code_kind = OM_HAL_PTX,
                                         .code = add_text,
                                         .code_bytes = sizeof add_text - 1,
                                         .binding_count = 2,
                                         .write_mask = 2,
                                         .params_bytes = sizeof(add_params),
                                         .workgroup_size = {THREADS, 1, 1},
                                         .shared_bytes = 1600 * THREADS,
                                         .constant_count = 1};

static bool has_sm90(void) {
  return hf.target.hal->features(hf.device)->sm90;
}

static om_status create(const om_hal_shader *shader, float constant, om_hal_kernel **out_kernel) {
  om_hal_kernel_desc desc = {.shader = shader};
  memcpy(desc.constants, &constant, sizeof constant);
  return hf.target.hal->kernels_create(&hf.ctx, hf.device, &desc, 1, out_kernel);
}

static void record_add(om_hal_recording *recording,
                       om_hal_kernel *kernel,
                       om_hal_buffer *x,
                       om_hal_buffer *y,
                       float scalar) {
  const add_params params = {COUNT, scalar};
  const om_hal_dispatch dispatch = {
      .kernel = kernel,
      .bindings = {hf_bind(x, 0, COUNT * 4), hf_bind(y, 0, COUNT * 4)},
      .params = &params,
      .groups = {GROUPS, 1, 1}};
  HF_OK(hf.target.hal->record_dispatch(&hf.ctx, recording, &dispatch));
}

static void refused_elsewhere(void **state) {
  om_hal_kernel *kernel = NULL;
  (void)state;
  if (has_sm90()) OM_TEST_SKIP("the device has kernels for Hopper");
  HF_FAILS(create(&add_shader, 0, &kernel), OM_E_UNSUPPORTED, "is for Hopper");
  assert_null(kernel);
}

static void adds(void **state) {
  om_hal_kernel *kernel = NULL;
  (void)state;
  if (!has_sm90()) OM_TEST_SKIP("the device has no kernels for Hopper");
  HF_OK(create(&add_shader, 0.5F, &kernel));
  om_hal_buffer *x = hf_ramp(COUNT, 1, 1);
  om_hal_buffer *y = hf_ramp(COUNT, 0, 0);
  om_hal_recording *recording = hf_begin(1, 0);
  record_add(recording, kernel, x, y, 0.25F);
  hf_end(recording);
  hf_run(recording);
  hf_expect(y, COUNT, 1.75F, 1);
  hf_free_recording(recording);
  hf_free(x);
  hf_free(y);
  hf_free_kernel(kernel);
}

/* Kernels of one text, with constants of their own, made at once. */
static void one_text_serves_all_constants(void **state) {
  om_hal_kernel *kernels[2] = {NULL, NULL};
  om_hal_kernel_desc descs[2] = {{.shader = &add_shader}, {.shader = &add_shader}};
  (void)state;
  if (!has_sm90()) OM_TEST_SKIP("the device has no kernels for Hopper");
  for (int i = 0; i < 2; ++i) {
    const float constant = (float)(i + 1);
    memcpy(descs[i].constants, &constant, sizeof constant);
  }
  HF_OK(hf.target.hal->kernels_create(&hf.ctx, hf.device, descs, 2, kernels));
  om_hal_buffer *x = hf_ramp(COUNT, 0, 1);
  om_hal_buffer *y = hf_ramp(COUNT, 0, 0);
  om_hal_recording *recording = hf_begin(2, 0);
  record_add(recording, kernels[0], x, y, 0);
  hf_barrier(recording);
  record_add(recording, kernels[1], y, x, 0);
  hf_end(recording);
  hf_run(recording);
  hf_expect(x, COUNT, 3, 1);
  hf_free_recording(recording);
  hf_free(x);
  hf_free(y);
  hf_free_kernel(kernels[0]);
  hf_free_kernel(kernels[1]);
}

/* Each dispatch sees what the one before it wrote, whatever the kind of either. */
static void alternates_with_spirv(void **state) {
  enum { PAIRS = 500 };
  om_hal_kernel *ptx = NULL;
  (void)state;
  if (!has_sm90()) OM_TEST_SKIP("the device has no kernels for Hopper");
  HF_OK(create(&add_shader, 1, &ptx));
  om_hal_kernel *spirv = hf_kernel(HF_ADD_SCALAR);
  om_hal_buffer *x = hf_ramp(COUNT, 0, 1);
  om_hal_buffer *y = hf_ramp(COUNT, 0, 0);
  om_hal_recording *recording = hf_begin(2 * PAIRS, 0);
  for (int i = 0; i < PAIRS; ++i) {
    record_add(recording, ptx, x, y, 1);
    hf_barrier(recording);
    hf_record_add(recording, spirv, hf_bind(y, 0, COUNT * 4), hf_bind(x, 0, COUNT * 4), -1);
    hf_barrier(recording);
  }
  hf_end(recording);
  for (int run = 1; run <= 3; ++run) {
    hf_run(recording);
    hf_expect(x, COUNT, (float)(run * PAIRS), 1);
  }
  hf_free_recording(recording);
  hf_free(x);
  hf_free(y);
  hf_free_kernel(spirv);
  hf_free_kernel(ptx);
}

static void too_much_shared_memory_is_refused(void **state) {
  om_hal_shader shader = add_shader;
  om_hal_kernel *kernel = NULL;
  (void)state;
  if (!has_sm90()) OM_TEST_SKIP("the device has no kernels for Hopper");
  shader.shared_bytes = OM_HAL_SM90_SHARED_BYTES + 4;
  HF_FAILS(create(&shader, 0, &kernel), OM_E_UNSUPPORTED, "232452 bytes of shared memory");
  assert_null(kernel);
}

/* The driver compiles the text, so it finds what is wrong with it. */
static void broken_text_is_refused(void **state) {
  static const char text[] = ".version 8.3\n.target sm_90a\nnonsense\n";
  om_hal_shader shader = add_shader;
  om_hal_kernel *kernel = NULL;
  (void)state;
  if (!has_sm90() || !hf.target.computes)
    OM_TEST_SKIP("no device that compiles kernels for Hopper");
  shader.code = text;
  shader.code_bytes = sizeof text - 1;
  assert_int_not_equal(create(&shader, 0, &kernel), OM_OK);
  assert_non_null(strstr(hf.error.message, "Kernel 'add': "));
  assert_null(kernel);
  om_error_clear(&hf.error);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(refused_elsewhere),
    cmocka_unit_test(adds),
    cmocka_unit_test(one_text_serves_all_constants),
    cmocka_unit_test(alternates_with_spirv),
    cmocka_unit_test(too_much_shared_memory_is_refused),
    cmocka_unit_test(broken_text_is_refused),
};

HF_MAIN(tests, hf_setup, hf_teardown)
