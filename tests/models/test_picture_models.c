/* Models of others for pictures, unmodified: faces (BlazeFace) and straight lines (M-LSD), both
 * with channels last. In exact mode the device's bits are the CPU's, with all of a model in one
 * region; each result is within 1e-5 (scaled error) of the same graph in float64, or within 4 times
 * of what float32 itself loses there (test_ocr_models.c says why): the lines' offsets are the small
 * part of a tensor.
 *
 * M-LSD on a real picture (write_lines.py) is compared with ONNX Runtime, too, in both modes. That
 * is itself 5e-5 (scaled error) from its own result without rewrites there, 3e-4 for the model of
 * 512x512: the network magnifies what float32 rounds a thousand times, whoever computes it. So a
 * result may be twice as far from ONNX Runtime's as that is from itself, and in exact mode twice
 * as far from float64 as ONNX Runtime is, in fast mode 5 times.
 *
 * scripts/models fetches the models; where they cannot be had the cases are skipped. An argument is
 * a pattern of the cases to run: 'faces*'.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_test_case.h"
#include "harness/om_test_float64.h"
#include "harness/om_test_model.h"
#include "harness/om_test_skip.h"

#define LIMIT      1e-5 /* of scaled errors */
#define SUMS       4.0
#define LINES_SUMS 2.0 /* of a notice, whose own figures were at most 1.2 (2026-11-30) */
#define LINES_FAST 5.0 /* 3.9: sums of 256 terms at once are longer than ONNX Runtime's */
enum { DRAWS = 4, PATH_BYTES = 1200 };

typedef struct model_case {
  const char *name;
  const char *package; /* for scripts/models */
  const char *file;
  int64_t extent; /* of the picture */
  int64_t channels;
  float low, high; /* of its values */
} model_case;

static const model_case cases[] = {
    {"faces_near", "faces", "face_detection_front_128x128_barracuda.onnx", 128, 3, -1, 1},
    {"faces_far", "faces", "face_detection_back_256x256_barracuda.onnx", 256, 3, -1, 1},
    {"lines", "lines", "mlsd_320x320_tiny.onnx", 320, 4, 0, 255},
};

/* The model and where it is, or NULL where it cannot be had. */
static om_model *find_model(const model_case *c, char path[PATH_BYTES]) {
  char line[1024] = "";
  snprintf(path, PATH_BYTES, OM_SOURCE_DIR "/scripts/models %s", c->package);
  FILE *pipe = popen(path, "r");
  assert_non_null(pipe);
  const bool has_line = fgets(line, sizeof line, pipe) != NULL;
  if (pclose(pipe) != 0 || !has_line) return NULL;
  line[strcspn(line, "\n")] = '\0';
  snprintf(path, PATH_BYTES, "%s/%s", line, c->file);
  return om_test_load_model(path);
}

/* Squares, light and dark, on a slope, with some noise: edges for the lines' model. */
static om_named_tensor make_picture(const model_case *c, const om_model *model) {
  const int64_t dims[4] = {1, c->extent, c->extent, c->channels};
  om_named_tensor input = {.name = om_model_get_info(model)->inputs[0].name,
                           .tensor = om_tensor_of(OM_DTYPE_F32, 4, dims, NULL)};
  float *values = malloc(input.tensor.data_bytes);
  uint32_t seed = 1;
  assert_non_null(values);
  for (int64_t i = 0; i < c->extent * c->extent * c->channels; ++i) {
    const int64_t x = i / c->channels % c->extent, y = i / c->channels / c->extent;
    const bool is_light = (x / 37 + y / 23 + (x + y) / 90) % 2 == 0;
    seed = seed * 1664525u + 1013904223u;
    const float noise = (float)(seed >> 8) / 16777216.0f;
    const float share = (is_light ? 0.7f : 0.2f) + 0.2f * noise * (float)x / (float)c->extent;
    values[i] = c->low + (c->high - c->low) * share;
  }
  input.tensor.data = values;
  return input;
}

static void check_error(const model_case *c,
                        const om_model *model,
                        const om_named_tensor *input,
                        const om_tensor *result) {
  const char *output = om_model_get_info(model)->outputs[0].name;
  size_t count = 0;
  double *expected = om_test_run_float64(model, input, 1, output, &count);
  const double error = om_test_scaled_error(result, expected, count);
  free(expected);
  print_message("# %s: %.2g from float64\n", c->name, error);
  if (error <= LIMIT) return;
  const double noise = om_test_float32_noise(model, input, output, DRAWS);
  print_message("# %s: float32 itself is %.2g from float64\n", c->name, noise);
  if (!(error <= SUMS * noise)) fail_msg("%.3g from float64", error);
}

/* ---- The tests; *state is the case ---- */

static void exact(void **state) {
  const model_case *c = *state;
  char path[PATH_BYTES];
  om_model *model = find_model(c, path);
  if (!model) OM_TEST_SKIP("the model cannot be had here");
  om_named_tensor input = make_picture(c, model);
  om_tensor host = om_test_run_model(model, &(om_test_executor){NULL, OM_MODE_EXACT, 0}, &input, 1);
  check_error(c, model, &input, &host);
  if (om_test_backend_is_there("vulkan")) {
    const om_test_executor executor = {"vulkan", OM_MODE_EXACT, 0};
    om_tensor device = om_test_run_model(model, &executor, &input, 1);
    om_test_same_bits(&host, &device);
    free(device.data);
  }
  free(host.data);
  free(input.tensor.data);
  om_model_destroy(model);
}

static void check_fast(const model_case *c, const char *backend) {
  char path[PATH_BYTES];
  om_model *model = !backend || om_test_backend_is_there(backend) ? find_model(c, path) : NULL;
  if (!model) OM_TEST_SKIP("the model cannot be had here");
  om_named_tensor input = make_picture(c, model);
  const om_test_executor executor = {backend, OM_MODE_FAST, 0};
  om_tensor result = om_test_run_model(model, &executor, &input, 1);
  check_error(c, model, &input, &result);
  free(result.data);
  free(input.tensor.data);
  om_model_destroy(model);
}

static void fast(void **state) {
  check_fast(*state, "vulkan");
}

static void fast_cpu(void **state) {
  check_fast(*state, NULL);
}

/* ---- M-LSD on a real picture ---- */

typedef struct wide {
  double *values; /* owned */
  size_t count;
} wide;

static wide widened(const char *file) {
  om_tensor array = om_test_read_array(file, OM_DTYPE_F32);
  wide w = {.count = om_tensor_elems(&array)};
  w.values = malloc((w.count + 1) * sizeof *w.values);
  assert_non_null(w.values);
  for (size_t i = 0; i < w.count; ++i) w.values[i] = (double)((const float *)array.data)[i];
  free(array.data);
  return w;
}

static void check_lines(const om_model *model, const om_named_tensor *input, om_mode mode) {
  const om_test_executor executor = {NULL, mode, 2};
  const char *output = om_model_get_info(model)->outputs[0].name;
  size_t count = 0;
  double *float64 = om_test_run_float64(model, input, 1, output, &count);
  om_tensor result = om_test_run_model(model, &executor, input, 1);
  om_tensor theirs = om_test_read_array(OM_BINARY_DIR "/lines/lines.y", OM_DTYPE_F32);
  wide y = widened(OM_BINARY_DIR "/lines/lines.y");
  wide plain = widened(OM_BINARY_DIR "/lines/lines.plain");
  const double apart = om_test_scaled_error(&result, y.values, y.count);
  const double own = om_test_scaled_error(&theirs, plain.values, plain.count);
  const double error = om_test_scaled_error(&result, float64, count);
  const double other_error = om_test_scaled_error(&theirs, float64, count);
  const double sums = mode == OM_MODE_EXACT ? LINES_SUMS : LINES_FAST;
  print_message(
      "# a notice, %s: %.2g from ONNX Runtime, which is %.2g from itself without rewrites; "
      "%.2g from float64, ONNX Runtime %.2g\n",
      mode == OM_MODE_EXACT ? "exact" : "fast",
      apart,
      own,
      error,
      other_error);
  if (!(apart <= LIMIT) && !(apart <= LINES_SUMS * own)) fail_msg("%.3g from ONNX Runtime", apart);
  if (!(error <= LIMIT) && !(error <= sums * other_error)) fail_msg("%.3g from float64", error);
  free(float64);
  free(plain.values);
  free(y.values);
  free(theirs.data);
  free(result.data);
}

static void lines_of_a_notice(void **state) {
  const model_case *c = *state;
  char path[PATH_BYTES];
  char command[4096];
  om_model *model = find_model(c, path);
  if (!model) OM_TEST_SKIP("the model cannot be had here");
  snprintf(command,
           sizeof command,
           "python3 " OM_SOURCE_DIR "/tests/models/write_lines.py '%s' " OM_BINARY_DIR
           "/lines >" OM_BINARY_DIR "/lines.log 2>&1",
           path);
  const int code = system(command);
  if (WIFEXITED(code) && WEXITSTATUS(code) == 77) OM_TEST_SKIP("there is no ONNX Runtime here");
  if (code != 0) fail_msg("failed: %s", command);
  const om_named_tensor x = {om_model_get_info(model)->inputs[0].name,
                             om_test_read_array(OM_BINARY_DIR "/lines/lines.x", OM_DTYPE_F32)};
  check_lines(model, &x, OM_MODE_EXACT);
  check_lines(model, &x, OM_MODE_FAST);
  free(x.tensor.data);
  om_model_destroy(model);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    CMUnitTestFunction test;
  } kinds[] = {{"exact", exact}, {"fast", fast}, {"fast_cpu", fast_cpu}};
  enum { TEST_COUNT = OM_COUNT_OF(cases) * OM_COUNT_OF(kinds), LINES = OM_COUNT_OF(cases) - 1 };
  struct CMUnitTest tests[TEST_COUNT + 1];
  char names[TEST_COUNT][64];
  for (size_t i = 0; i < TEST_COUNT; ++i) {
    model_case *c = (model_case *)(uintptr_t)&cases[i / OM_COUNT_OF(kinds)];
    snprintf(names[i], sizeof names[i], "%s_%s", c->name, kinds[i % OM_COUNT_OF(kinds)].name);
    tests[i] = (struct CMUnitTest){names[i], kinds[i % OM_COUNT_OF(kinds)].test, NULL, NULL, c};
  }
  tests[TEST_COUNT] = (struct CMUnitTest){
      "lines_of_a_notice", lines_of_a_notice, NULL, NULL, (void *)(uintptr_t)&cases[LINES]};
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
