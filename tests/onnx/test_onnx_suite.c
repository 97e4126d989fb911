/* The ONNX project's own backend tests, run from their own files (Debian: libonnx-testdata).
 *
 * Every model runs on the CPU in exact mode and is compared with the outputs beside it. Where a
 * Vulkan device is there, models whose every node it takes run on it too: in exact mode with the
 * CPU's bits, in fast mode within the limits of ONNX's own runner; where it does not take them as
 * they are, with shapes, axes and the like as constants (om_folder_fix_inputs). Where each session
 * has to open a device, with the validation layer, that takes seconds: only the first model of each
 * set of operators does it then, and none of those that spell an operator out (_expanded).
 *
 * skips.txt names what does not pass yet, with reasons. Output is TAP.
 *
 *     test_onnx_suite [PART OF A NAME]
 *
 *                                             $OM_ONNX_DATA: another folder with the data
 *                                             $OM_TEST_BACKENDS: "cpu" or "cpu,vulkan"
 *                                             $OM_TEST_DEVICE: the Vulkan device
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/om_folder.h"
#include "harness/om_skips.h"
#include "harness/om_test_case.h"
#include "harness/om_test_log.h"
#include "harness/om_test_shared.h"
#include "onemodel/gpu.h"

/* Exact mode keeps far closer limits than ONNX's own runner, whose limits serve fast mode. */
static const double exact_relative = 1e-5, exact_absolute = 1e-6;
static const double fast_relative = 1e-3, fast_absolute = 1e-7;

static const char *const groups[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

typedef struct suite {
  om_ctx ctx;
  om_error error;
  om_skips skips;
  const char *part; /* of the names to run; NULL: all */
  bool has_vulkan;
  om_pool pool;      /* of the list below */
  const char **seen; /* the sets of operators that ran on the device */
  size_t seen_count, seen_capacity;
  size_t passed, failed, skipped, on_device;
} suite;

static void report(suite *s, const char *name, const char *where, const char *failure) {
  size_t number = s->passed + s->failed + s->skipped + 1;
  if (failure) {
    ++s->failed;
    printf("not ok %zu - %s on %s\n#   %s\n", number, name, where, failure);
  } else {
    ++s->passed;
    printf("ok %zu - %s on %s\n", number, name, where);
  }
}

static void report_skip(suite *s, const char *name, const char *where, const char *reason) {
  ++s->skipped;
  printf("ok %zu - %s on %s # SKIP%s\n", s->passed + s->failed + s->skipped, name, where, reason);
}

static om_status run_cpu(suite *s, om_folder *folder, om_folder_results *out_results) {
  om_folder_places places;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = OM_MODE_EXACT;
  options.thread_count = 2;
  OM_TRY(om_folder_run(&s->ctx, folder, &options, out_results, &places));
  return om_folder_check(&s->ctx, folder, *out_results, exact_relative, exact_absolute);
}

static om_status run_device(
    suite *s, om_folder *folder, om_mode mode, om_folder_results right, bool *out_is_taken) {
  om_folder_places places;
  om_folder_results results = NULL;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  gpu.backend = "vulkan";
  gpu.device = getenv("OM_TEST_DEVICE");
  gpu.shared = om_test_shared_device();
  options.mode = mode;
  options.log = om_test_log();
  options.provider = om_gpu_provider();
  options.provider_options = &gpu;
  *out_is_taken = true;
  const om_status st = om_folder_run(&s->ctx, folder, &options, &results, &places);
  const char *complaint = om_test_complaint();
  OM_TRY(st);
  if (complaint) return OM_FAIL(&s->ctx, OM_E_INTERNAL, "%s", complaint);
  *out_is_taken = places.on_cpu == 0 && places.on_device > 0;
  if (!*out_is_taken) return OM_OK;
  if (mode == OM_MODE_EXACT) return om_folder_same(&s->ctx, folder, results, right);
  return om_folder_check(&s->ctx, folder, results, fast_relative, fast_absolute);
}

/* The model's operators, each once, as a text, and whether they are for float16. */
static char *operators_of(suite *s, const om_model *model) {
  const om_model_info *info = om_model_get_info(model);
  const bool is_half = info->input_count > 0 && info->inputs[0].dtype == OM_DTYPE_F16;
  char *text = om_pool_format(&s->ctx, &s->pool, "%s", is_half ? "float16" : "");
  for (size_t i = 0; i < info->node_count && text; ++i) {
    const char *type =
        om_pool_format(&s->ctx, &s->pool, " %s", om_model_get_node(model, i).op_type);
    if (type && !strstr(text, type)) text = om_pool_format(&s->ctx, &s->pool, "%s%s", text, type);
  }
  return text;
}

static bool wants_device(suite *s, const om_model *model, const char *name) {
  if (!s->has_vulkan) return false;
  if (om_test_shared_device()) return true;
  const char *operators = operators_of(s, model);
  if (!operators || strstr(name, "_expanded")) return false;
  for (size_t i = 0; i < s->seen_count; ++i) {
    if (strcmp(s->seen[i], operators) == 0) return false;
  }
  if (OM_GROW(&s->ctx, s->seen, s->seen_count, s->seen_capacity) != OM_OK) return false;
  s->seen[s->seen_count++] = operators;
  return true;
}

static void test_device(suite *s, om_folder *folder, const char *name, om_folder_results right) {
  static const struct {
    om_mode mode;
    const char *where;
  } runs[] = {{OM_MODE_FAST, "vulkan, fast"}, {OM_MODE_EXACT, "vulkan, exact"}};
  for (size_t i = 0; i < OM_COUNT_OF(runs); ++i) {
    bool is_taken = false;
    om_error_clear(&s->error);
    om_status st = run_device(s, folder, runs[i].mode, right, &is_taken);
    if (st == OM_OK && !is_taken) {
      bool did_change = false;
      st = om_folder_fix_inputs(&s->ctx, folder, &did_change);
      if (did_change) st = run_device(s, folder, runs[i].mode, right, &is_taken);
    }
    om_test_shared_check(st);
    if (!is_taken) return;
    ++s->on_device;
    report(s, name, runs[i].where, st == OM_OK ? NULL : s->error.message);
  }
}

static void test_folder(suite *s, const char *path, const char *name) {
  om_folder folder = {0};
  om_folder_results results = NULL;
  om_error_clear(&s->error);
  om_status st = om_folder_open(&s->ctx, path, NULL, &folder);
  if (st == OM_OK) st = run_cpu(s, &folder, &results);
  const om_skip *skip = om_skips_find(&s->skips, name, folder.model);
  if (skip && st != OM_OK) {
    report_skip(s, name, "cpu", skip->reason);
  } else if (skip) {
    report(s, name, "cpu", "It is in skips.txt, but passes: take it out.");
  } else {
    report(s, name, "cpu", st == OM_OK ? NULL : s->error.message);
  }
  if (st == OM_OK && wants_device(s, folder.model, name)) test_device(s, &folder, name, results);
  om_folder_close(&s->ctx, &folder);
  (void)fflush(stdout);
}

static void test_group(suite *s, const char *data, const char *group) {
  char path[512];
  struct dirent **entries = NULL;
  (void)snprintf(path, sizeof path, "%s/%s", data, group);
  int count = scandir(path, &entries, NULL, alphasort);
  for (int i = 0; i < count; ++i) {
    const char *name = entries[i]->d_name;
    if (name[0] != '.' && (!s->part || strstr(name, s->part))) {
      (void)snprintf(path, sizeof path, "%s/%s/%s", data, group, name);
      test_folder(s, path, name);
    }
    free(entries[i]);
  }
  free(entries);
}

/* Lines of the list that nothing matches are out of date. */
static void test_list(suite *s) {
  for (size_t i = 0; i < s->skips.count; ++i) {
    const om_skip *skip = &s->skips.entries[i];
    char name[64];
    (void)snprintf(name, sizeof name, "skips.txt line %zu", skip->line);
    if (skip->matches == 0) report(s, name, "all", "No folder matches it: take it out.");
  }
}

int main(int argc, char **argv) {
  static suite s;
  const char *data = getenv("OM_ONNX_DATA");
  const char *backends = getenv("OM_TEST_BACKENDS");
  if (!data) data = "/usr/share/libonnx-testdata/data";
  if (!om_path_exists(data)) {
    printf("%s is not there (Debian: libonnx-testdata)\n", data);
    return 77;
  }
  s.ctx = (om_ctx){.allocator = om_default_allocator(), .error = &s.error, .thread_count = 1};
  s.part = argc > 1 ? argv[1] : NULL;
  s.has_vulkan = (!backends || strstr(backends, "vulkan")) && om_test_backend_is_there("vulkan");
  if (om_skips_read(&s.ctx, OM_SOURCE_DIR "/tests/onnx/skips.txt", &s.skips) != OM_OK) {
    printf("Bail out! %s\n", s.error.message);
    return 1;
  }
  for (size_t i = 0; i < OM_COUNT_OF(groups); ++i) test_group(&s, data, groups[i]);
  if (!s.part) test_list(&s);
  om_skips_deinit(&s.ctx, &s.skips);
  om_delete(&s.ctx, s.seen);
  om_pool_deinit(&s.ctx, &s.pool);
  printf("1..%zu\n", s.passed + s.failed + s.skipped);
  printf("# %zu of them on the device\n", s.on_device);
  printf("# %zu passed, %zu failed, %zu skipped\n", s.passed, s.failed, s.skipped);
  return s.failed > 0 ? 1 : 0;
}
