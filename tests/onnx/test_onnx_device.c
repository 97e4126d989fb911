/* What the device takes of the ONNX project's own backend tests, by plans on the null device, which
 * claims what a real one does: in both modes each node must be on the device, or known before the
 * run, or stand in device.txt with the reason that the diagnostics give. So that list is what the
 * device does not take, and why. test_onnx_suite has the values. Output is TAP.
 *
 *     test_onnx_device [PART OF A NAME]
 *
 * A line of device.txt is "op TYPE: a part of the reason". A line that nothing matches fails.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/om_folder.h"
#include "harness/om_skips.h"
#include "onemodel/gpu.h"

static const char *const groups[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

typedef struct suite {
  om_ctx ctx;
  om_error error;
  om_skips listed;
  const char *part; /* of the names to look at; NULL: all */
  size_t passed, failed, on_device;
} suite;

static void report(suite *s, const char *name, const char *failure) {
  const size_t number = s->passed + s->failed + 1;
  if (failure) {
    ++s->failed;
    printf("not ok %zu - %s\n#   %s\n", number, name, failure);
  } else {
    ++s->passed;
    printf("ok %zu - %s\n", number, name);
  }
}

static bool is_listed(suite *s, const om_node_diagnostics *node) {
  for (size_t i = 0; i < s->listed.count; ++i) {
    om_skip *line = &s->listed.entries[i];
    const char *reason = line->reason + strspn(line->reason, " ");
    const size_t bytes = strlen(line->name) + (line->is_beginning ? 0 : 1);
    if (strncmp(line->name, node->op_type, bytes) != 0 || !strstr(node->reason, reason)) continue;
    ++line->matches;
    return true;
  }
  return false;
}

/* The plan for the folder's first data. */
static om_status look(suite *s, om_folder *folder, om_mode mode, char *out_failure, size_t room) {
  om_status st = OM_OK;
  om_session *session = NULL;
  const om_diagnostics *d = NULL;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  const om_folder_set *set = &folder->sets[0]; /* empty where there is no data */
  gpu.backend = "null";
  options.mode = mode;
  options.provider = om_gpu_provider();
  options.provider_options = &gpu;
  OM_GO(om_session_create(folder->model, &options, &session, &s->error));
  OM_GO(om_session_diagnose(session, set->inputs, set->input_count, &d, &s->error));
  for (size_t i = 0; i < d->node_count && !*out_failure; ++i) {
    const om_node_diagnostics *node = &d->nodes[i];
    s->on_device += node->place == OM_PLACE_DEVICE;
    if (node->place != OM_PLACE_CPU || is_listed(s, node)) continue;
    snprintf(out_failure, room, "%s stays on the CPU: %s", node->op_type, node->reason);
  }
done:
  om_session_destroy(session);
  return st;
}

static void look_at_folder(suite *s, const char *path, const char *name) {
  om_folder folder = {0};
  char failure[512] = "";
  om_error_clear(&s->error);
  /* What does not load or plan is test_onnx_suite's to report. */
  if (om_folder_open(&s->ctx, path, NULL, &folder) != OM_OK) return;
  bool did_change = false;
  om_status st = om_folder_fix_inputs(&s->ctx, &folder, &did_change);
  if (st == OM_OK) st = look(s, &folder, OM_MODE_FAST, failure, sizeof failure);
  if (st == OM_OK && !*failure) st = look(s, &folder, OM_MODE_EXACT, failure, sizeof failure);
  if (st == OM_OK) report(s, name, *failure ? failure : NULL);
  om_folder_close(&s->ctx, &folder);
}

static void look_at_group(suite *s, const char *data, const char *group) {
  char path[512];
  struct dirent **entries = NULL;
  snprintf(path, sizeof path, "%s/%s", data, group);
  const int count = scandir(path, &entries, NULL, alphasort);
  for (int i = 0; i < count; ++i) {
    const char *name = entries[i]->d_name;
    if (name[0] != '.' && (!s->part || strstr(name, s->part))) {
      snprintf(path, sizeof path, "%s/%s/%s", data, group, name);
      look_at_folder(s, path, name);
    }
    free(entries[i]);
  }
  free(entries);
}

static void check_list(suite *s) {
  for (size_t i = 0; i < s->listed.count; ++i) {
    char name[64];
    snprintf(name, sizeof name, "device.txt line %zu", s->listed.entries[i].line);
    if (s->listed.entries[i].matches == 0) report(s, name, "Nothing matches it: take it out.");
  }
}

int main(int argc, char **argv) {
  static suite s;
  const char *data = getenv("OM_ONNX_DATA");
  if (!data) data = "/usr/share/libonnx-testdata/data";
  if (!om_path_exists(data)) {
    printf("%s is not there (Debian: libonnx-testdata)\n", data);
    return 77;
  }
  s.ctx = (om_ctx){.allocator = om_default_allocator(), .error = &s.error, .thread_count = 1};
  s.part = argc > 1 ? argv[1] : NULL;
  if (om_skips_read(&s.ctx, OM_SOURCE_DIR "/tests/onnx/device.txt", &s.listed) != OM_OK) {
    printf("Bail out! %s\n", s.error.message);
    return 1;
  }
  for (size_t i = 0; i < OM_COUNT_OF(groups); ++i) look_at_group(&s, data, groups[i]);
  if (!s.part) check_list(&s);
  om_skips_deinit(&s.ctx, &s.listed);
  printf("1..%zu\n", s.passed + s.failed);
  printf("# %zu nodes on the device\n", s.on_device);
  printf("# %zu passed, %zu failed, 0 skipped\n", s.passed, s.failed);
  return s.failed > 0 ? 1 : 0;
}
