/* Small models in the shapes of well-known ones (write_shapes.py), against ONNX Runtime: recurrent
 * ones, a decoder with a key/value cache, a speech encoder and decoder, a vocoder, detectors with
 * NonMaxSuppression and RoiAlign, and quantized ones; and an encoder and a classifier that ONNX
 * Runtime's own tools quantized in each of their ways (write_quantized.py). On the CPU in both
 * modes within 1e-5 (scaled error), integers and shapes alike; in exact mode the same bits on any
 * number of threads, and on a Vulkan device, which takes some of them as a whole.
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
#include "harness/om_test_skip.h"

#define LIMIT 1e-5

enum { SHAPES, QUANTIZED, WRITERS };

typedef struct model_case {
  const char *name;
  int writer;
  bool is_whole; /* runs on a device as a whole */
} model_case;

static const model_case cases[] = {
    {"crnn", SHAPES, true},
    {"gru", SHAPES, true},
    {"llama", SHAPES, true},
    {"whisper", SHAPES, true},
    {"vocoder", SHAPES, true},
    {"ssd", SHAPES, false},
    {"two_stage", SHAPES, false},
    {"dynamic_int8", SHAPES, true},
    {"qdq", SHAPES, true},
    {"four_bits", SHAPES, false},
    {"encoder_dynamic_int8", QUANTIZED, true},
    {"encoder_dynamic_uint8", QUANTIZED, true},
    {"encoder_qdq", QUANTIZED, true},
    {"encoder_four_bits", QUANTIZED, false},
    {"encoder_four_bits_zeros", QUANTIZED, false},
    {"classifier_qdq_int8", QUANTIZED, true},
    {"classifier_qdq_uint8", QUANTIZED, true},
    {"classifier_qoperator", QUANTIZED, true},
};
static const char models[] = OM_BINARY_DIR "/shape-models";
static bool is_written[WRITERS];

/* False if the writer failed; it may not be able to write (77). */
static bool write_models(int writer, const char *script) {
  char command[4096];
  snprintf(command,
           sizeof command,
           "python3 " OM_SOURCE_DIR "/tests/models/%s %s >%s.%d.log 2>&1",
           script,
           models,
           models,
           writer);
  const int code = system(command);
  is_written[writer] = code == 0;
  return code == 0 || (WIFEXITED(code) && WEXITSTATUS(code) == 77);
}

static int prepare(void **state) {
  (void)state;
  return write_models(SHAPES, "write_shapes.py") && write_models(QUANTIZED, "write_quantized.py")
             ? 0
             : 1;
}

typedef struct rig {
  const model_case *c;
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
  options.require_gpu = backend && r->c->is_whole;
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

static void check(const rig *r, const char *how, om_folder_results results) {
  const size_t count = r->folder.info->output_count;
  double worst = 0.0;
  for (size_t i = 0; i < r->folder.set_count * count; ++i) {
    const om_tensor *right = r->folder.sets[i / count].expected[i % count];
    assert_non_null(right);
    const double error = error_of(&results[i], right);
    if (error > worst) worst = error;
    if (!(error <= LIMIT)) fail_msg("output %zu, %s: the scaled error is %.3g", i, how, error);
  }
  print_message("# %s, %s: %.2g from ONNX Runtime\n", r->c->name, how, worst);
}

static void check_same(rig *r, om_folder_results a, om_folder_results b) {
  if (om_folder_same(&r->ctx, &r->folder, a, b) != OM_OK) fail_msg("%s", r->error.message);
}

static void test_model(void **state) {
  static rig r;
  const model_case *c = *state;
  char path[1200];
  if (!is_written[c->writer]) OM_TEST_SKIP("the models could not be made");
  r = (rig){.c = c,
            .ctx = {.allocator = om_default_allocator(), .error = &r.error, .thread_count = 1}};
  snprintf(path, sizeof path, "%s/%s", models, c->name);
  if (om_folder_open(&r.ctx, path, NULL, &r.folder) != OM_OK) fail_msg("%s", r.error.message);
  assert_true(r.folder.set_count > 0);
  const om_folder_results exact = run(&r, OM_MODE_EXACT, 1, NULL);
  check(&r, "exact", exact);
  check(&r, "fast", run(&r, OM_MODE_FAST, 2, NULL));
  check_same(&r, exact, run(&r, OM_MODE_EXACT, 3, NULL));
  if (om_test_backend_is_there("vulkan")) {
    check_same(&r, exact, run(&r, OM_MODE_EXACT, 2, "vulkan"));
    check(&r, "fast on the device", run(&r, OM_MODE_FAST, 2, "vulkan"));
  }
  om_folder_close(&r.ctx, &r.folder);
}

int main(int argc, char **argv) {
  struct CMUnitTest tests[OM_COUNT_OF(cases)];
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    tests[i] =
        (struct CMUnitTest){cases[i].name, test_model, NULL, NULL, (void *)(uintptr_t)&cases[i]};
  }
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, prepare, NULL);
}
