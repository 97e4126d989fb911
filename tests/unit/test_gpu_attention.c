/* Which kernels an attention takes on devices with matrix hardware, and that what they record is
 * right. What they compute is compared by tests/ops/test_attention.c. */
#include "unit/gpu_rig.h"

enum { MOST_ELEMS = 4 * 1500 * 768 };
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static float values[MOST_ELEMS], results[MOST_ELEMS];

typedef struct shape {
  int64_t batch, rows, keys, heads, size;
} shape;

/* Q, K and V as projections leave them: the heads behind the positions. */
static void expect_launch_on(const char *device,
                             om_dtype dtype,
                             om_mode mode,
                             const shape *s,
                             size_t launch,
                             const char *name) {
  static const int64_t in_front[] = {0, 2, 1, 3}, turned[] = {0, 2, 3, 1};
  const om_attr attrs[] = {
      {.name = "q_perm", .kind = OM_ATTR_INTS, .count = 4, .ints = in_front},
      {.name = "k_perm", .kind = OM_ATTR_INTS, .count = 4, .ints = turned},
      {.name = "v_perm", .kind = OM_ATTR_INTS, .count = 4, .ints = in_front},
      {.name = "y_perm", .kind = OM_ATTR_INTS, .count = 4, .ints = in_front},
  };
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = "null";
  options.device = device;
  rig_open_with(rig, &options, mode);
  rig->attrs = attrs;
  rig->attr_count = OM_COUNT_OF(attrs);
  const uint32_t inputs[] = {
      rig_input(rig, 4, (int64_t[]){s->batch, s->rows, s->heads, s->size}),
      rig_input(rig, 4, (int64_t[]){s->batch, s->keys, s->heads, s->size}),
      rig_input(rig, 4, (int64_t[]){s->batch, s->keys, s->heads, s->size}),
  };
  for (size_t i = 0; i < OM_COUNT_OF(inputs); ++i) rig->values[inputs[i]].tensor.dtype = dtype;
  const uint32_t out = rig_step_of(rig, "onemodel", "Attention", inputs, 3);
  rig_compile(rig, &out, 1);
  const om_gpu_launch *l = rig->plan->regions[0].launches;
  assert_string_equal(om_shader_get(l[launch].dispatch->shader)->name, name);
  rig_run(rig, (const void *const[]){values, values, values}, (void *const[]){results});
  rig_close(rig);
}

static void expect_kernel_on(
    const char *device, om_dtype dtype, om_mode mode, const shape *s, const char *name) {
  expect_launch_on(device, dtype, mode, s, 0, name);
}

static void expect_kernel_of(om_dtype dtype, om_mode mode, const shape *s, const char *name) {
  expect_kernel_on("matrix hardware", dtype, mode, s, name);
}

static void expect_kernel(om_mode mode, const shape *s, const char *name) {
  expect_kernel_of(OM_DTYPE_F32, mode, s, name);
}

static void test_kernels_by_shape(void **state) {
  (void)state;
  expect_kernel(OM_MODE_FAST, &(shape){1, 128, 128, 12, 32}, "attention_matrix_16x64_32");
  expect_kernel(OM_MODE_FAST, &(shape){8, 128, 128, 12, 32}, "attention_matrix_64x32_32");
  expect_kernel(OM_MODE_FAST, &(shape){1, 128, 128, 12, 64}, "attention_matrix_16x64_64");
  expect_kernel(OM_MODE_FAST, &(shape){8, 128, 128, 12, 64}, "attention_matrix_64x32_64");
  expect_kernel(OM_MODE_FAST, &(shape){1, 1500, 1500, 12, 64}, "attention_matrix_48x32_64");
  expect_kernel(OM_MODE_FAST, &(shape){2, 77, 203, 3, 40}, "attention_matrix_16x64_64");
  expect_kernel(OM_MODE_FAST, &(shape){1, 512, 512, 8, 128}, "attention_matrix_32x32_128");
}

static void test_kernels_of_float16(void **state) {
  const om_mode fast = OM_MODE_FAST;
  const om_dtype half = OM_DTYPE_F16;
  (void)state;
  expect_kernel_of(half, fast, &(shape){1, 128, 128, 12, 32}, "attention_matrix_16x64_32_half");
  expect_kernel_of(half, fast, &(shape){4, 1500, 1500, 12, 64}, "attention_matrix_64x32_64_half");
  expect_kernel_of(half, fast, &(shape){1, 64, 64, 12, 44}, "attention_rows16_64_half");
}

static void test_exact_on_hopper(void **state) {
  const om_mode exact = OM_MODE_EXACT;
  (void)state;
  if (!om_has_sm90_kernels) OM_TEST_SKIP("kernels for Hopper are not in this build");
  expect_kernel_on("Hopper",
                   OM_DTYPE_F32,
                   exact,
                   &(shape){8, 128, 128, 12, 64},
                   "attention_sm90_whole_exact_64");
  expect_kernel_on(
      "Hopper", OM_DTYPE_F32, exact, &(shape){1, 77, 77, 12, 32}, "attention_sm90_whole_exact_32");
  expect_kernel_on("Hopper",
                   OM_DTYPE_F32,
                   exact,
                   &(shape){4, 129, 129, 12, 64},
                   "attention_sm90_scores_exact_64x64");
  expect_kernel_on("Hopper",
                   OM_DTYPE_F32,
                   exact,
                   &(shape){1, 1500, 1500, 12, 64},
                   "attention_sm90_scores_exact_96x96");
  expect_kernel_on(
      "Hopper", OM_DTYPE_F32, exact, &(shape){1, 64, 64, 12, 42}, "attention_scores_exact");
  expect_kernel_on(
      "Hopper", OM_DTYPE_F16, exact, &(shape){1, 64, 64, 12, 64}, "attention_scores_half_exact");
}

static void test_exact_rows_on_hopper(void **state) {
  static const struct {
    int64_t keys;
    const char *name;
  } cases[] = {
      {200, "attention_sm90_softmax_exact_256"},
      {300, "attention_sm90_softmax_exact_1536"},
      {1500, "attention_sm90_softmax_exact_1536"},
      {1600, "attention_softmax_exact"},
  };
  (void)state;
  if (!om_has_sm90_kernels) OM_TEST_SKIP("kernels for Hopper are not in this build");
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    const shape s = {1, 64, cases[i].keys, 2, 64};
    expect_launch_on("Hopper", OM_DTYPE_F32, OM_MODE_EXACT, &s, 1, cases[i].name);
  }
}

static void expect_hopper(om_dtype dtype, const shape *s, const char *name) {
  expect_kernel_on("Hopper", dtype, OM_MODE_FAST, s, name);
}

static void test_kernels_of_hopper(void **state) {
  (void)state;
  if (!om_has_sm90_kernels) OM_TEST_SKIP("kernels for Hopper are not in this build");
  expect_hopper(OM_DTYPE_F32, &(shape){1, 128, 128, 12, 32}, "attention_sm90_64x64_32");
  expect_hopper(OM_DTYPE_F32, &(shape){8, 128, 128, 12, 32}, "attention_sm90_128x64_32");
  expect_hopper(OM_DTYPE_F32, &(shape){1, 128, 128, 12, 64}, "attention_sm90_64x64_64");
  expect_hopper(OM_DTYPE_F32, &(shape){8, 128, 128, 12, 64}, "attention_sm90_128x64_64");
  expect_hopper(OM_DTYPE_F32, &(shape){1, 1500, 1500, 12, 64}, "attention_sm90_192x64_64");
  expect_hopper(OM_DTYPE_F32, &(shape){1, 512, 512, 8, 128}, "attention_sm90_128x32_128");
  expect_hopper(OM_DTYPE_F16, &(shape){1, 128, 128, 12, 32}, "attention_sm90_64x128_32_half");
  expect_hopper(OM_DTYPE_F16, &(shape){8, 128, 128, 12, 32}, "attention_sm90_64x64_32_half");
  expect_hopper(OM_DTYPE_F16, &(shape){1, 128, 128, 12, 64}, "attention_sm90_64x128_64_half");
  expect_hopper(OM_DTYPE_F16, &(shape){8, 128, 128, 12, 64}, "attention_sm90_64x64_64_half");
  expect_hopper(OM_DTYPE_F16, &(shape){4, 1500, 1500, 12, 64}, "attention_sm90_192x128_64_half");
  expect_hopper(OM_DTYPE_F16, &(shape){1, 512, 512, 8, 128}, "attention_sm90_128x64_128_half");
  expect_hopper(OM_DTYPE_F16, &(shape){1, 64, 64, 12, 44}, "attention_rows16_64_half");
  expect_hopper(OM_DTYPE_F32, &(shape){1, 1, 128, 12, 64}, "attention_rows16_64");
  expect_kernel_on("Hopper",
                   OM_DTYPE_F32,
                   OM_MODE_EXACT,
                   &(shape){1, 128, 128, 12, 32},
                   "attention_sm90_whole_exact_32");
}

static void test_others_stay_portable(void **state) {
  (void)state;
  expect_kernel(OM_MODE_EXACT, &(shape){1, 128, 128, 12, 32}, "attention_scores_exact");
  expect_kernel(OM_MODE_FAST, &(shape){1, 128, 128, 12, 33}, "attention_rows16_64"); /* no quads */
  expect_kernel(OM_MODE_FAST, &(shape){1, 64, 64, 12, 256}, "attention_rows16_256");
  expect_kernel(OM_MODE_FAST, &(shape){1, 1, 128, 12, 64}, "attention_rows16_64");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kernels_by_shape),
      cmocka_unit_test(test_exact_on_hopper),
      cmocka_unit_test(test_exact_rows_on_hopper),
      cmocka_unit_test(test_kernels_of_float16),
      cmocka_unit_test(test_kernels_of_hopper),
      cmocka_unit_test(test_others_stay_portable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
