/* Small models in the shapes of well-known ones (write_shapes.py), against ONNX Runtime: recurrent
 * ones, a decoder with a key/value cache, a speech encoder and decoder, a vocoder, detectors with
 * NonMaxSuppression and RoiAlign, and quantized ones. On the CPU in both modes within 1e-5 (scaled
 * error), integers and shapes alike; in exact mode the same bits on any number of threads, and on a
 * Vulkan device, which takes some of them as a whole.
 *
 * Without python3-onnx and ONNX Runtime the models cannot be written, and the cases are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "harness/om_folder.h"
#include "harness/om_test_case.h"
#include "harness/om_test_model.h"

#define LIMIT 1e-5

static const char *const names[] = {"crnn",
                                    "gru",
                                    "llama",
                                    "whisper",
                                    "vocoder",
                                    "ssd",
                                    "two_stage",
                                    "dynamic_int8",
                                    "qdq",
                                    "four_bits"};
/* Those that run on a device as a whole. */
static const char *const whole[] = {
    "crnn", "gru", "vocoder", "llama", "whisper", "qdq", "dynamic_int8"};
static const char models[] = OM_BINARY_DIR "/shape-models";
static bool are_there;

static int prepare(void **state) {
  (void)state;
  const int code = system("python3 " OM_SOURCE_DIR "/tests/models/write_shapes.py " OM_BINARY_DIR
                          "/shape-models >" OM_BINARY_DIR "/shape-models.log 2>&1");
  are_there = code == 0;
  return code == 0 || (WIFEXITED(code) && WEXITSTATUS(code) == 77) ? 0 : 1;
}

static bool is_whole(const char *name) {
  for (size_t i = 0; i < OM_COUNT_OF(whole); ++i) {
    if (strcmp(whole[i], name) == 0) return true;
  }
  return false;
}

typedef struct rig {
  const char *name;
  om_ctx ctx;
  om_error error;
  om_folder folder;
} rig;

static om_folder_results run(rig *r, om_mode mode, uint32_t threads, const char *backend) {
  om_folder_places places;
  om_folder_results results = NULL;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = mode;
  options.thread_count = threads;
  gpu.backend = backend;
  gpu.device = getenv("OM_TEST_DEVICE");
  if (backend) options.provider = om_gpu_provider();
  if (backend) options.provider_options = &gpu;
  options.require_gpu = backend && is_whole(r->name);
  if (om_folder_run(&r->ctx, &r->folder, &options, &results, &places) != OM_OK) {
    fail_msg("%s", r->error.message);
  }
  return results;
}

/* The scaled error of one output; integers must be equal. */
static double error_of(const om_tensor *got, const om_tensor *right) {
  size_t elem = 0;
  const size_t count = om_tensor_elems(right);
  assert_int_equal(got->dtype, right->dtype);
  assert_int_equal(got->rank, right->rank);
  for (uint32_t i = 0; i < right->rank; ++i) assert_int_equal(got->dims[i], right->dims[i]);
  if (!om_dtype_is_float(right->dtype)) {
    if (!om_tensor_same(got, right, &elem)) fail_msg("element %zu differs", elem);
    return 0.0;
  }
  double *values = malloc((count + 1) * sizeof *values);
  assert_non_null(values);
  for (size_t i = 0; i < count; ++i) values[i] = om_tensor_value(right, i);
  const double error = om_test_scaled_error(got, values, count);
  free(values);
  return error;
}

static void check(const rig *r, const char *name, const char *how, om_folder_results results) {
  const size_t count = r->folder.info->output_count;
  double worst = 0.0;
  for (size_t i = 0; i < r->folder.set_count * count; ++i) {
    const om_tensor *right = r->folder.sets[i / count].expected[i % count];
    assert_non_null(right);
    const double error = error_of(&results[i], right);
    if (error > worst) worst = error;
    if (!(error <= LIMIT)) fail_msg("output %zu, %s: the scaled error is %.3g", i, how, error);
  }
  print_message("# %s, %s: %.2g from ONNX Runtime\n", name, how, worst);
}

static void check_same(rig *r, om_folder_results a, om_folder_results b) {
  if (om_folder_same(&r->ctx, &r->folder, a, b) != OM_OK) fail_msg("%s", r->error.message);
}

static void test_model(void **state) {
  static rig r;
  const char *name = *state;
  char path[1200];
  if (!are_there) skip();
  r = (rig){.name = name,
            .ctx = {.allocator = om_default_allocator(), .error = &r.error, .thread_count = 1}};
  snprintf(path, sizeof path, "%s/%s", models, name);
  if (om_folder_open(&r.ctx, path, NULL, &r.folder) != OM_OK) fail_msg("%s", r.error.message);
  assert_true(r.folder.set_count > 0);
  const om_folder_results exact = run(&r, OM_MODE_EXACT, 1, NULL);
  check(&r, name, "exact", exact);
  check(&r, name, "fast", run(&r, OM_MODE_FAST, 2, NULL));
  check_same(&r, exact, run(&r, OM_MODE_EXACT, 3, NULL));
  if (om_test_backend_is_there("vulkan")) {
    check_same(&r, exact, run(&r, OM_MODE_EXACT, 2, "vulkan"));
    check(&r, name, "fast on the device", run(&r, OM_MODE_FAST, 2, "vulkan"));
  }
  om_folder_close(&r.ctx, &r.folder);
}

int main(int argc, char **argv) {
  struct CMUnitTest tests[OM_COUNT_OF(names)];
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    tests[i] = (struct CMUnitTest){names[i], test_model, NULL, NULL, (void *)(uintptr_t)names[i]};
  }
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, prepare, NULL);
}
