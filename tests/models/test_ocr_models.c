/* The three text-recognition models, unmodified, against ONNX Runtime: the same decisions, and a
 * small scaled error, in both modes on the CPU and on a Vulkan device; in exact mode the same bits
 * on any number of threads and on the device; all of a model on the device in one region.
 *
 * The limit is 1e-5 where the results' own uncertainty allows it. The models magnify float32's
 * rounding where they are less sure. Measured against an evaluation of the same graph in float64,
 * on the cases with wider limits: ONNX Runtime 1.21 is 7e-6 to 1.3e-5 off, this library 7e-6 to
 * 2e-5; on the detector's map of the whole sample picture 7.6e-5 and 2.8e-5.
 *
 * scripts/models fetches the models; write_references.py makes the expected results when the test
 * starts. Where either cannot be had the cases are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "harness/om_test_case.h"
#include "harness/om_test_compare.h"
#include "onemodel/gpu.h"

#define DETECTOR   "ch_PP-OCRv4_det_infer.onnx"
#define RECOGNISER "ch_PP-OCRv4_rec_infer.onnx"
#define CLASSIFIER "ch_ppocr_mobile_v2.0_cls_infer.onnx"

typedef struct model_case {
  const char *name; /* of the reference files */
  const char *file;
  double limit;     /* of the scaled error */
  bool has_classes; /* the last axis is one of classes: the largest must be the same */
} model_case;

/* The names are those of write_references.py. */
static const model_case cases[] = {
    {"detector_64x192", DETECTOR, 4e-5, false},
    {"detector_160x224", DETECTOR, 4e-5, false},
    {"recogniser_48x320", RECOGNISER, 1e-5, true},
    {"recogniser_48x500", RECOGNISER, 4e-5, true},
    {"recogniser_batch_3", RECOGNISER, 1e-5, true},
    {"classifier_48x192", CLASSIFIER, 1e-5, true},
    {"classifier_batch_2", CLASSIFIER, 1e-5, true},
};

static char models_folder[1024]; /* empty: the cases are skipped */
static const char references_folder[] = OM_BINARY_DIR "/model-references";

/* ---- References ---- */

static void read_array(const char *name, const char *suffix, om_tensor *out_tensor) {
  char path[1200];
  int64_t head[1 + OM_MAX_RANK];
  snprintf(path, sizeof path, "%s/%s.%s", references_folder, name, suffix);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(head, sizeof head[0], 1, file), 1);
  assert_in_range(head[0], 1, OM_MAX_RANK);
  assert_int_equal(fread(head + 1, sizeof head[0], (size_t)head[0], file), head[0]);
  *out_tensor = om_tensor_of(OM_DTYPE_F32, (uint32_t)head[0], head + 1, NULL);
  out_tensor->data = malloc(out_tensor->data_bytes);
  assert_non_null(out_tensor->data);
  assert_int_equal(fread(out_tensor->data, 1, out_tensor->data_bytes, file),
                   out_tensor->data_bytes);
  fclose(file);
}

/* Finds the models and writes the references; leaves models_folder empty where that cannot be. */
static int prepare(void **state) {
  char command[4096];
  (void)state;
  FILE *pipe = popen(OM_SOURCE_DIR "/scripts/models", "r");
  if (!pipe) return 0;
  const bool has_line = fgets(models_folder, sizeof models_folder, pipe) != NULL;
  const bool is_found = pclose(pipe) == 0 && has_line;
  models_folder[strcspn(models_folder, "\n")] = '\0';
  if (is_found) {
    snprintf(command,
             sizeof command,
             "python3 " OM_SOURCE_DIR
             "/tests/models/write_references.py '%s' '%s' "
             "2>" OM_BINARY_DIR "/model-references.log", /* Debian's build is noisy there */
             models_folder,
             references_folder);
    const int code = system(command);
    if (code == 0) return 0;
    if (!WIFEXITED(code) || WEXITSTATUS(code) != 77) return 1;
  }
  models_folder[0] = '\0';
  return 0;
}

/* ---- One run ---- */

typedef struct setup {
  const char *backend; /* NULL: the CPU alone */
  om_mode mode;
  uint32_t thread_count;
} setup;

static void check_placement(om_session *session, const om_named_tensor *input) {
  const om_diagnostics *diagnostics = NULL;
  om_error error = {0};
  assert_int_equal(om_session_diagnose(session, input, 1, &diagnostics, &error), OM_OK);
  for (size_t i = 0; i < diagnostics->node_count; ++i) {
    const om_node_diagnostics *node = &diagnostics->nodes[i];
    if (node->place == OM_PLACE_CPU) fail_msg("%s is on the CPU: %s", node->name, node->reason);
  }
  assert_int_equal(diagnostics->region_count, 1);
}

/* Runs the model as `how` says; the caller frees out_result->data. */
static void run_model(const model_case *test_case, const setup *how, om_tensor *out_result) {
  char path[1200];
  om_error error = {0};
  om_model *model = NULL;
  om_session *session = NULL;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  snprintf(path, sizeof path, "%s/%s", models_folder, test_case->file);
  if (om_model_load_file(path, NULL, &model, &error) != OM_OK) fail_msg("%s", error.message);
  const om_model_info *info = om_model_get_info(model);
  om_named_tensor input = {.name = info->inputs[0].name};
  om_named_tensor output = {.name = info->outputs[0].name};
  read_array(test_case->name, "x", &input.tensor);
  options.mode = how->mode;
  options.thread_count = how->thread_count;
  if (how->backend) {
    gpu.backend = how->backend;
    gpu.device = getenv("OM_TEST_DEVICE");
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
    options.require_gpu = true;
  }
  const om_run_args args = {sizeof args, &input, 1, &output, 1};
  if (om_session_create(model, &options, &session, &error) != OM_OK) fail_msg("%s", error.message);
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  *out_result = output.tensor;
  out_result->data = malloc(output.tensor.data_bytes);
  assert_non_null(out_result->data);
  memcpy(out_result->data, output.tensor.data, output.tensor.data_bytes);
  if (how->backend) check_placement(session, &input);
  om_session_destroy(session);
  om_model_destroy(model);
  free(input.tensor.data);
}

static size_t largest(const double *values, size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; ++i) {
    if (values[i] > values[best]) best = i;
  }
  return best;
}

static void check_classes(const om_tensor *tensor, const double *a, const double *b) {
  const size_t classes = (size_t)tensor->dims[tensor->rank - 1];
  const size_t count = om_tensor_elems(tensor);
  for (size_t row = 0; row < count; row += classes) {
    assert_int_equal(largest(a + row, classes), largest(b + row, classes));
  }
}

static void check_error(const model_case *test_case, const om_tensor *result) {
  om_tensor expected;
  read_array(test_case->name, "y", &expected);
  const size_t count = om_tensor_elems(&expected);
  assert_int_equal(om_tensor_elems(result), count);
  double *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b);
  assert_non_null(a);
  assert_non_null(b);
  for (size_t i = 0; i < count; ++i) {
    a[i] = om_tensor_value(result, i);
    b[i] = om_tensor_value(&expected, i);
  }
  const om_test_comparison found = om_test_compare(a, b, count);
  if (test_case->has_classes) check_classes(&expected, a, b);
  free(a);
  free(b);
  free(expected.data);
  print_message("# %s: scaled error %.3g\n", test_case->name, found.scaled_error);
  assert_true(found.specials_match);
  if (!(found.scaled_error <= test_case->limit))
    fail_msg("the scaled error is %.3g", found.scaled_error);
}

static void check_same(const om_tensor *a, const om_tensor *b) {
  size_t elem = 0;
  if (!om_tensor_same(a, b, &elem)) fail_msg("the bits differ from element %zu on", elem);
}

/* ---- The tests; *state is the case ---- */

static void cpu(void **state) {
  const model_case *test_case = *state;
  om_tensor one, two;
  if (models_folder[0] == '\0') skip();
  run_model(test_case, &(setup){NULL, OM_MODE_EXACT, 1}, &one);
  check_error(test_case, &one);
  run_model(test_case, &(setup){NULL, OM_MODE_EXACT, 2}, &two);
  check_same(&one, &two);
  free(one.data);
  free(two.data);
}

static void device_exact(void **state) {
  const model_case *test_case = *state;
  om_tensor host, device;
  if (models_folder[0] == '\0' || !om_test_backend_is_there("vulkan")) skip();
  run_model(test_case, &(setup){NULL, OM_MODE_EXACT, 0}, &host);
  run_model(test_case, &(setup){"vulkan", OM_MODE_EXACT, 0}, &device);
  check_same(&host, &device);
  check_error(test_case, &device);
  free(host.data);
  free(device.data);
}

static void device_fast(void **state) {
  const model_case *test_case = *state;
  om_tensor device;
  if (models_folder[0] == '\0' || !om_test_backend_is_there("vulkan")) skip();
  run_model(test_case, &(setup){"vulkan", OM_MODE_FAST, 0}, &device);
  check_error(test_case, &device);
  free(device.data);
}

int main(void) {
  static const struct {
    const char *name;
    CMUnitTestFunction test;
  } kinds[] = {{"cpu", cpu}, {"device_exact", device_exact}, {"device_fast", device_fast}};
  enum { TEST_COUNT = OM_COUNT_OF(cases) * OM_COUNT_OF(kinds) };
  struct CMUnitTest tests[TEST_COUNT];
  char names[TEST_COUNT][64];
  for (size_t i = 0; i < TEST_COUNT; ++i) {
    model_case *test_case = (model_case *)(uintptr_t)&cases[i / OM_COUNT_OF(kinds)];
    snprintf(
        names[i], sizeof names[i], "%s_%s", test_case->name, kinds[i % OM_COUNT_OF(kinds)].name);
    tests[i] =
        (struct CMUnitTest){names[i], kinds[i % OM_COUNT_OF(kinds)].test, NULL, NULL, test_case};
  }
  return cmocka_run_group_tests(tests, prepare, NULL);
}
