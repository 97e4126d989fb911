/* Which kernels a convolution takes on Hopper, and that what they record is right. What they
 * compute is compared by tests/ops/test_conv.c. */
#include "unit/gpu_rig.h"

enum { MOST_ELEMS = 8 * 64 * 112 * 112 };
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static float values[MOST_ELEMS], results[MOST_ELEMS];

typedef struct shape {
  int64_t batch, channels, extent, outputs, kernel, stride;
} shape;

static uint32_t make_conv(const shape *s, om_dtype dtype) {
  static int64_t strides[2], pads[4];
  static const om_attr attrs[] = {
      {.name = "strides", .kind = OM_ATTR_INTS, .count = 2, .ints = strides},
      {.name = "pads", .kind = OM_ATTR_INTS, .count = 4, .ints = pads},
  };
  strides[0] = strides[1] = s->stride;
  for (int i = 0; i < 4; ++i) pads[i] = s->kernel / 2;
  rig->attrs = attrs;
  rig->attr_count = OM_COUNT_OF(attrs);
  const uint32_t inputs[] = {
      rig_input(rig, 4, (int64_t[]){s->batch, s->channels, s->extent, s->extent}),
      rig_weight(rig, 4, (int64_t[]){s->outputs, s->channels, s->kernel, s->kernel}, values),
  };
  for (size_t i = 0; i < OM_COUNT_OF(inputs); ++i) rig->values[inputs[i]].tensor.dtype = dtype;
  return rig_step_of(rig, "", "Conv", inputs, OM_COUNT_OF(inputs));
}

/* One dispatch, whose kernel's name begins so. */
static void expect(om_dtype dtype, om_mode mode, const shape *s, const char *name) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = "null";
  options.device = "Hopper";
  rig_open_with(rig, &options, mode);
  const uint32_t out = make_conv(s, dtype);
  rig_compile(rig, &out, 1);
  const om_gpu_launch *l = rig->plan->regions[0].launches;
  const char *own = om_shader_get(l[0].dispatch->shader)->name;
  if (strncmp(own, name, strlen(name)) != 0) fail_msg("%s instead of %s", own, name);
  rig_run(rig, (const void *const[]){values}, (void *const[]){results});
  rig_close(rig);
}

static void test_kernels_by_shape(void **state) {
  const om_mode fast = OM_MODE_FAST;
  (void)state;
  if (!om_has_sm90_kernels) OM_TEST_SKIP("kernels for Hopper are not in this build");
  expect(OM_DTYPE_F32, fast, &(shape){8, 64, 56, 256, 1, 1}, "conv_sm90_short");
  expect(OM_DTYPE_F32, fast, &(shape){8, 256, 56, 64, 1, 1}, "conv_sm90_gather_1");
  expect(OM_DTYPE_F32, fast, &(shape){8, 2048, 7, 512, 1, 1}, "conv_sm90_gather_2");
  expect(OM_DTYPE_F32, fast, &(shape){8, 512, 7, 2048, 1, 1}, "conv_sm90_gather_128_2");
  expect(OM_DTYPE_F32, fast, &(shape){8, 256, 14, 1024, 1, 1}, "conv_sm90_gather_256_1");
  expect(OM_DTYPE_F32, fast, &(shape){8, 512, 7, 512, 3, 1}, "conv_sm90_window_2");
  expect(OM_DTYPE_F32, fast, &(shape){8, 3, 224, 64, 7, 2}, "conv_sm90_rows");
}

static void test_kernels_of_float16(void **state) {
  const om_mode fast = OM_MODE_FAST;
  const om_dtype half = OM_DTYPE_F16;
  (void)state;
  if (!om_has_sm90_kernels) OM_TEST_SKIP("kernels for Hopper are not in this build");
  expect(half, fast, &(shape){8, 64, 56, 256, 1, 1}, "conv_sm90_short_half");
  expect(half, fast, &(shape){8, 64, 56, 64, 3, 1}, "conv_sm90_gather_1_half");
  expect(half, fast, &(shape){8, 128, 14, 256, 1, 1}, "conv_sm90_gather_2_half");
  expect(half, fast, &(shape){8, 2048, 7, 512, 1, 1}, "conv_sm90_gather_4_half");
  expect(half, fast, &(shape){8, 256, 56, 512, 1, 2}, "conv_sm90_gather_128_1_half");
  expect(half, fast, &(shape){8, 1024, 14, 2048, 1, 2}, "conv_sm90_gather_128_2_half");
  expect(half, fast, &(shape){16, 64, 28, 64, 3, 1}, "conv_sm90_window_1_half");
  expect(half, fast, &(shape){8, 256, 14, 256, 3, 1}, "conv_sm90_window_4_half");
  expect(half, fast, &(shape){8, 3, 224, 64, 7, 2}, "conv_sm90_rows_half");
}

static void test_others_stay(void **state) {
  (void)state;
  expect(OM_DTYPE_F32, OM_MODE_EXACT, &(shape){8, 256, 14, 256, 3, 1}, "conv_gemm");
  expect(OM_DTYPE_F32, OM_MODE_FAST, &(shape){8, 100, 14, 256, 3, 1}, "conv_matrix"); /* octets */
  expect(OM_DTYPE_F32, OM_MODE_FAST, &(shape){8, 3, 112, 64, 3, 1}, "conv_");         /* pairs */
}

/* Whether the sum with a residual of this shape is in the convolution's pass. */
static bool takes_residual(const int64_t dims[4]) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = "null";
  options.device = "Hopper";
  rig_open_with(rig, &options, OM_MODE_FAST);
  const uint32_t terms[] = {make_conv(&(shape){8, 256, 14, 256, 3, 1}, OM_DTYPE_F32),
                            rig_input(rig, 4, dims)};
  rig->attr_count = 0;
  const uint32_t out = rig_step_of(rig, "", "Add", terms, OM_COUNT_OF(terms));
  rig_compile(rig, &out, 1);
  const om_gpu_region *region = &rig->plan->regions[0];
  assert_int_equal(om_shader_get(region->launches[0].dispatch->shader)->code_kind, OM_HAL_PTX);
  const bool takes = region->launches[1].is_absorbed;
  rig_close(rig);
  return takes;
}

static void test_residuals_that_repeat_stay(void **state) {
  (void)state;
  if (!om_has_sm90_kernels) OM_TEST_SKIP("kernels for Hopper are not in this build");
  assert_true(takes_residual((int64_t[]){8, 256, 14, 14}));
  assert_true(takes_residual((int64_t[]){1, 256, 1, 1}));
  assert_false(takes_residual((int64_t[]){1, 256, 14, 14}));
  assert_false(takes_residual((int64_t[]){8, 1, 14, 14}));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kernels_by_shape),
      cmocka_unit_test(test_kernels_of_float16),
      cmocka_unit_test(test_others_stay),
      cmocka_unit_test(test_residuals_that_repeat_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
