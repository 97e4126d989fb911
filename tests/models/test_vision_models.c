/* Vision models of published structure with seeded random weights (write_vision.py), float32 and
 * float16, one picture and several: all of a model is one region on the device, exact mode has the
 * CPU's bits, and every executor is within a limit of the same graph in float64, and of ONNX
 * Runtime where that is itself within half of it. A detector's NonMaxSuppression stays on the CPU,
 * with its reason, behind one region.
 *
 * ISNet, which finds the foreground of a picture, is a published model (scripts/models background)
 * made for smaller pictures (write_background.py).
 *
 * Without python3-onnx or ONNX Runtime the models cannot be written, and the cases are skipped; so
 * is ISNet's where it cannot be fetched. An argument is a pattern of the cases to run: 'lraspp*'.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/om_test_case.h"
#include "harness/om_test_float64.h"
#include "harness/om_test_model.h"
#include "harness/om_test_skip.h"

enum { MOST_BATCHES = 2 };

typedef struct model_case {
  const char *name;          /* of the model's file; ends in "_half": float16 */
  int batches[MOST_BATCHES]; /* 0: none */
  double limit;              /* of scaled errors */
} model_case;

/* The names and batches are those of write_vision.py. MobileNets of float16 round some 150 values
 * of a picture one after the other; ONNX Runtime is as far from float64 there. */
static const model_case cases[] = {
    {"resnet50", {1, 8}, 1e-5},
    {"resnet50_half", {1, 8}, 2e-3},
    {"mobilenet_v2", {1, 8}, 1e-5},
    {"mobilenet_v2_half", {1, 8}, 4e-3},
    {"mobilenet_v3", {1, 8}, 1e-5},
    {"mobilenet_v3_half", {1, 8}, 4e-3},
    {"vit", {1, 8}, 1e-5},
    {"vit_half", {1, 8}, 2e-3},
    {"lraspp", {1, 2}, 1e-5}, /* of another height and width each */
    {"lraspp_half", {1, 2}, 2e-3},
    {"isnet", {1}, 2e-3}, /* float32 outside, float16 within */
};
/* The detector's scores are a Softmax of logits up to 10, which turns float16's 5e-4 of one of them
 * into 5e-3. */
static const model_case detectors[] = {{"ssdlite", {1}, 1e-5}, {"ssdlite_half", {1}, 1e-2}};

static const char folder[] = OM_BINARY_DIR "/vision";
static bool are_there;

/* True if a command can and does what it should; one that ends with 77 cannot. */
static bool run(const char *command) {
  const int code = system(command);
  if (code != 0 && !(WIFEXITED(code) && WEXITSTATUS(code) == 77)) fail_msg("failed: %s", command);
  return code == 0;
}

static int prepare(void **state) {
  (void)state;
  are_there = run("python3 " OM_SOURCE_DIR "/tests/models/write_vision.py " OM_BINARY_DIR
                  "/vision >" OM_BINARY_DIR "/vision.log 2>&1");
  if (!are_there) return 0;
  run("rm -f " OM_BINARY_DIR
      "/vision/isnet*; "
      "folder=$(" OM_SOURCE_DIR
      "/scripts/models background) || exit 77; "
      "python3 " OM_SOURCE_DIR "/tests/models/write_background.py \"$folder\" " OM_BINARY_DIR
      "/vision >" OM_BINARY_DIR "/background.log 2>&1");
  return 0;
}

static bool is_half(const model_case *c) {
  return strstr(c->name, "_half") != NULL;
}

/* The model, or NULL where it cannot be had. */
static om_model *load(const model_case *c) {
  char path[1200];
  snprintf(path, sizeof path, "%s/%s.onnx", folder, c->name);
  return are_there && access(path, R_OK) == 0 ? om_test_load_model(path) : NULL;
}

static om_tensor read_array(const model_case *c, int batch, const char *suffix, om_dtype dtype) {
  char path[1200];
  snprintf(path, sizeof path, "%s/%s_%d.%s", folder, c->name, batch, suffix);
  return om_test_read_array(path, dtype);
}

static om_named_tensor read_input(const model_case *c, const om_model *model, int batch) {
  const om_dtype dtype = is_half(c) ? OM_DTYPE_F16 : OM_DTYPE_F32;
  return (om_named_tensor){om_model_get_info(model)->inputs[0].name,
                           read_array(c, batch, "x", dtype)};
}

/* ---- What results are compared with ---- */

typedef struct references { /* of one output */
  size_t count;
  double *float64;    /* the same graph in float64 */
  double *other;      /* ONNX Runtime's result */
  double other_error; /* of it, against float64 */
} references;

static references make_references(const model_case *c,
                                  const om_model *model,
                                  int batch,
                                  const om_named_tensor *x,
                                  size_t output) {
  char suffix[8];
  references r = {0};
  const char *name = om_model_get_info(model)->outputs[output].name;
  snprintf(suffix, sizeof suffix, "y%zu", output);
  r.float64 = om_test_run_float64(model, x, 1, name, &r.count);
  om_tensor other = read_array(c, batch, suffix, OM_DTYPE_F32);
  r.other_error = om_test_scaled_error(&other, r.float64, r.count);
  r.other = malloc(r.count * sizeof *r.other);
  assert_non_null(r.other);
  for (size_t i = 0; i < r.count; ++i) r.other[i] = (double)((const float *)other.data)[i];
  free(other.data);
  return r;
}

static void free_references(references *r) {
  free(r->float64);
  free(r->other);
}

static void check_error(const model_case *c,
                        int batch,
                        const char *executor,
                        const om_tensor *result,
                        const references *r) {
  const double error = om_test_scaled_error(result, r->float64, r->count);
  const double apart = om_test_scaled_error(result, r->other, r->count);
  print_message("# %s, %d, %s: %.2g from float64, %.2g from ONNX Runtime, which is %.2g from it\n",
                c->name,
                batch,
                executor,
                error,
                apart,
                r->other_error);
  if (!(error <= c->limit)) fail_msg("%.3g from float64", error);
  if (r->other_error <= c->limit / 2 && !(apart <= c->limit)) {
    fail_msg("%.3g from ONNX Runtime", apart);
  }
}

/* ---- Models that are one region ---- */

static void check_batch(const model_case *c, const om_model *model, int batch) {
  static const om_test_executor host = {NULL, OM_MODE_EXACT, 0};
  static const om_test_executor host_fast = {NULL, OM_MODE_FAST, 2};
  static const om_test_executor exact = {"vulkan", OM_MODE_EXACT, 0};
  static const om_test_executor fast = {"vulkan", OM_MODE_FAST, 0};
  om_named_tensor x = read_input(c, model, batch);
  references r = make_references(c, model, batch, &x, 0);
  om_tensor expected = om_test_run_model(model, &host, &x, 1);
  check_error(c, batch, "exact", &expected, &r);
  om_tensor result = om_test_run_model(model, &host_fast, &x, 1);
  check_error(c, batch, "fast on the CPU", &result, &r);
  free(result.data);
  if (om_test_backend_is_there("vulkan")) {
    result = om_test_run_model(model, &exact, &x, 1);
    om_test_same_bits(&result, &expected);
    free(result.data);
    result = om_test_run_model(model, &fast, &x, 1);
    check_error(c, batch, "fast on the device", &result, &r);
    free(result.data);
  }
  free(expected.data);
  free_references(&r);
  free(x.tensor.data);
}

static void one_region(void **state) {
  const model_case *c = *state;
  om_model *model = load(c);
  if (!model) OM_TEST_SKIP("the model cannot be had here");
  for (size_t i = 0; i < MOST_BATCHES; ++i) {
    if (c->batches[i] > 0) check_batch(c, model, c->batches[i]);
  }
  om_model_destroy(model);
}

/* ---- Detectors ---- */

enum { OUTPUTS = 3 }; /* boxes, scores, what NonMaxSuppression chose */

/* Results are the session's until its end. */
static om_session *detect(const om_model *model,
                          const char *backend,
                          om_mode mode,
                          const om_named_tensor *x,
                          om_named_tensor results[OUTPUTS]) {
  om_error error = {0};
  om_session *session = NULL;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  const om_run_args args = {sizeof args, x, 1, results, OUTPUTS, NULL};
  for (size_t i = 0; i < OUTPUTS; ++i) {
    results[i] = (om_named_tensor){.name = om_model_get_info(model)->outputs[i].name};
  }
  options.mode = mode;
  if (backend) {
    gpu.backend = backend;
    gpu.device = getenv("OM_TEST_DEVICE");
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
  }
  if (om_session_create(model, &options, &session, &error) != OM_OK) fail_msg("%s", error.message);
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  return session;
}

/* One node alone is on the CPU, and says why. */
static void check_split(om_session *session, const om_named_tensor *x) {
  const om_diagnostics *found = NULL;
  om_error error = {0};
  if (om_session_diagnose(session, x, 1, &found, &error) != OM_OK) fail_msg("%s", error.message);
  for (size_t i = 0; i < found->node_count; ++i) {
    const om_node_diagnostics *node = &found->nodes[i];
    if (node->place != OM_PLACE_CPU) continue;
    assert_string_equal(node->op_type, "NonMaxSuppression");
    assert_string_equal(node->reason, "the size of its result is only known at run time");
  }
  assert_int_equal(found->nodes_on_cpu, 1);
  assert_in_range(found->region_count, 1, 2);
}

static void check_detector(const model_case *c,
                           const om_model *model,
                           const om_named_tensor *x,
                           const om_named_tensor expected[OUTPUTS],
                           const references r[2]) {
  om_named_tensor results[OUTPUTS];
  om_session *session = detect(model, "vulkan", OM_MODE_EXACT, x, results);
  check_split(session, x);
  for (size_t i = 0; i < OUTPUTS; ++i) {
    om_test_same_bits(&results[i].tensor, &expected[i].tensor);
  }
  om_session_destroy(session);
  session = detect(model, "vulkan", OM_MODE_FAST, x, results);
  check_split(session, x);
  for (size_t i = 0; i < 2; ++i) check_error(c, 1, "fast on the device", &results[i].tensor, &r[i]);
  om_session_destroy(session);
}

static void detector(void **state) {
  const model_case *c = *state;
  om_named_tensor expected[OUTPUTS];
  references r[2];
  om_model *model = load(c);
  if (!model) OM_TEST_SKIP("the model cannot be had here");
  om_named_tensor x = read_input(c, model, 1);
  om_session *host = detect(model, NULL, OM_MODE_EXACT, &x, expected);
  for (size_t i = 0; i < 2; ++i) {
    r[i] = make_references(c, model, 1, &x, i);
    check_error(c, 1, "exact", &expected[i].tensor, &r[i]);
  }
  assert_true(om_tensor_elems(&expected[2].tensor) > 0);
  if (om_test_backend_is_there("vulkan")) check_detector(c, model, &x, expected, r);
  om_session_destroy(host);
  for (size_t i = 0; i < 2; ++i) free_references(&r[i]);
  free(x.tensor.data);
  om_model_destroy(model);
}

int main(int argc, char **argv) {
  enum { MODELS = OM_COUNT_OF(cases), ALL = MODELS + OM_COUNT_OF(detectors) };
  struct CMUnitTest tests[ALL];
  for (size_t i = 0; i < ALL; ++i) {
    const model_case *c = i < MODELS ? &cases[i] : &detectors[i - MODELS];
    const CMUnitTestFunction test = i < MODELS ? one_region : detector;
    tests[i] = (struct CMUnitTest){c->name, test, NULL, NULL, (model_case *)(uintptr_t)c};
  }
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, prepare, NULL);
}
