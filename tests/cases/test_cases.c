/* Cases collected from public bug reports: right values, failures that must be told in words, and
 * files that must not crash.
 *
 * The folder with the cases is not part of the source: $OM_CASES_DIR, or shared/cases/suite beside
 * the checkout; without it the test is skipped. Its index.json has a line for each case:
 *
 *     value    the outputs are right within the tolerance
 *     error    loading or running fails, with a message that holds each of the words
 *     nocrash  any answer, but no crash, no hang and no error of the kind "internal"
 *     cancel   runs until it is cancelled
 *
 * Each case runs on the CPU in exact mode. All memory comes from an allocator with a limit. Where a
 * Vulkan device is there, the first right value of each title and the indices out of range run on
 * it too (a session on a software device takes seconds to make); --all: every case. skips.txt names
 * what does not pass yet. Output is TAP.
 *
 *     test_cases [--all] [PART OF A NAME]     $OM_TEST_BACKENDS: "cpu" or "cpu,vulkan"
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "harness/om_folder.h"
#include "harness/om_skips.h"
#include "harness/om_test_case.h"
#include "onemodel/gpu.h"

enum { CASE_WORDS = 8, PATH_BYTES = 512, COMMAND_BYTES = 2048 };

/* Far above what any case needs, far below what a hostile one asks for. */
#define MEMORY_LIMIT ((size_t)512 << 20)

typedef struct one_case {
  const char *folder, *kind;
  long number;
  double tolerance;
  const char *words[CASE_WORDS];
  size_t word_count;
  const char *setup[CASE_WORDS];
  size_t setup_count;
} one_case;

typedef struct memory { /* an allocator that says no */
  om_allocator heap;
  size_t live_bytes; /* atomic */
} memory;

typedef struct runner {
  om_ctx ctx; /* the test's own memory */
  om_error error;
  memory limited;
  om_allocator allocator; /* over `limited`: the library's memory */
  om_pool pool;           /* of the index */
  om_skips skips;
  const char *root; /* the folder with the cases */
  char copies[64];  /* a folder for cases that need something to be set up */
  const char *part;
  bool has_vulkan;
  bool wants_all; /* on the device */
  long last_case; /* the number of the last one whose value was tried on the device */
  size_t passed, failed, skipped;
} runner;

static void *limited_alloc(void *user, size_t bytes) {
  memory *m = user;
  size_t live = __atomic_add_fetch(&m->live_bytes, bytes, __ATOMIC_RELAXED);
  void *ptr = live <= MEMORY_LIMIT ? m->heap.alloc(m->heap.user, bytes) : NULL;
  if (!ptr) __atomic_sub_fetch(&m->live_bytes, bytes, __ATOMIC_RELAXED);
  return ptr;
}

static void limited_free(void *user, void *ptr, size_t bytes) {
  memory *m = user;
  __atomic_sub_fetch(&m->live_bytes, bytes, __ATOMIC_RELAXED);
  m->heap.free(m->heap.user, ptr, bytes);
}

/* ---- The index ---- */

/* Reads a JSON string at `at`, which stands on its first quote; returns the place behind it. */
static const char *read_text(runner *r, const char *at, const char **out) {
  char *text = om_pool_text(&r->ctx, &r->pool, at, strlen(at)); /* longer than needed */
  size_t bytes = 0;
  *out = text;
  for (++at; text && *at && *at != '"'; ++at) {
    if (*at == '\\') ++at;
    text[bytes++] = *at;
  }
  if (text) text[bytes] = '\0';
  return *at ? at + 1 : at;
}

/* The place behind a line's key, or NULL. */
static const char *find_key(const char *line, const char *key) {
  char pattern[32];
  (void)snprintf(pattern, sizeof pattern, "\"%s\": ", key);
  const char *at = strstr(line, pattern);
  return at ? at + strlen(pattern) : NULL;
}

static size_t read_list(runner *r, const char *at, const char *texts[CASE_WORDS]) {
  size_t count = 0;
  while (at && *at && *at != ']' && count < CASE_WORDS) {
    if (*at == '"') {
      at = read_text(r, at, &texts[count++]);
    } else {
      ++at;
    }
  }
  return count;
}

static bool read_case(runner *r, const char *line, one_case *c) {
  const char *folder = find_key(line, "folder");
  const char *kind = find_key(line, "kind");
  const char *tolerance = find_key(line, "tolerance");
  *c = (one_case){0};
  if (!folder || !kind) return false;
  (void)read_text(r, folder, &c->folder);
  (void)read_text(r, kind, &c->kind);
  c->tolerance = tolerance ? strtod(tolerance, NULL) : 0;
  c->number = strtol(c->folder ? c->folder : "", NULL, 10);
  c->word_count = read_list(r, find_key(line, "words"), c->words);
  c->setup_count = read_list(r, find_key(line, "setup"), c->setup);
  return c->folder && c->kind;
}

/* ---- One case ---- */

/* Copies the case's folder and its neighbours, and does what the case asks for. */
static bool set_up(runner *r, const one_case *c, char path[PATH_BYTES]) {
  char command[COMMAND_BYTES];
  if (c->setup_count == 0) {
    (void)snprintf(path, PATH_BYTES, "%s/%s", r->root, c->folder);
    return true;
  }
  (void)snprintf(path, PATH_BYTES, "%s/%s", r->copies, c->folder);
  (void)snprintf(command,
                 sizeof command,
                 "cd '%s' && cp -rL '%s' secret 29_outside '%s' && chmod -R u+w '%s'",
                 r->root,
                 c->folder,
                 r->copies,
                 r->copies);
  if (system(command) != 0) return false;
  for (size_t i = 0; i < c->setup_count; ++i) {
    (void)snprintf(command, sizeof command, "cd '%s' && %s", path, c->setup[i]);
    if (system(command) != 0) return false;
  }
  return true;
}

static om_status run_session(runner *r,
                             om_folder *folder,
                             bool is_device,
                             om_folder_results *out_results) {
  om_folder_places places;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = OM_MODE_EXACT;
  options.thread_count = 2;
  options.allocator = &r->allocator;
  if (is_device) {
    gpu.backend = "vulkan";
    gpu.device = getenv("OM_TEST_DEVICE");
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
  }
  return om_folder_run(&r->ctx, folder, &options, out_results, &places);
}

static om_status run_case(
    runner *r, const one_case *c, const char *path, bool is_device, om_folder *folder) {
  om_folder_results results = NULL;
  om_folder_results right = NULL;
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  options.allocator = &r->allocator;
  om_error_clear(&r->error);
  OM_TRY(om_folder_open(&r->ctx, path, &options, folder));
  OM_TRY(run_session(r, folder, is_device, &results));
  if (strcmp(c->kind, "value") != 0) return OM_OK;
  OM_TRY(om_folder_check(&r->ctx, folder, results, c->tolerance, c->tolerance));
  if (!is_device) return OM_OK;
  OM_TRY(run_session(r, folder, false, &right));
  return om_folder_same(&r->ctx, folder, results, right);
}

/* Words are looked for in the message without the model's path, which holds the case's name. */
static const char *missing_word(const one_case *c, char *message, const char *path) {
  for (char *at = strstr(message, path); at; at = strstr(at, path)) {
    memset(at, ' ', strlen(path));
  }
  for (size_t i = 0; i < c->word_count; ++i) {
    if (!strstr(message, c->words[i])) return c->words[i];
  }
  return NULL;
}

/* NULL if the case's outcome is right, else why not. */
static const char *judge(const one_case *c, om_status st, om_error *error, const char *path) {
  static const char *const no_error = "It should have failed.";
  bool is_value = strcmp(c->kind, "value") == 0;
  if (is_value) return st == OM_OK ? NULL : error->message;
  if (st == OM_E_INTERNAL) return error->message;
  if (strcmp(c->kind, "nocrash") == 0) return NULL;
  if (st == OM_OK) return no_error;
  return missing_word(c, error->message, path) ? error->message : NULL;
}

/* Models with external data have no folder to look in when they come from memory. */
static const char *judge_memory(runner *r, const one_case *c, const char *path) {
  char file[PATH_BYTES + 16];
  om_file_map map = {0};
  om_model *model = NULL;
  bool has_external = strncmp(c->folder, "29", 2) == 0 && strncmp(c->folder, "29bg", 4) != 0;
  if (!has_external) return NULL;
  (void)snprintf(file, sizeof file, "%s/model.onnx", path);
  om_error_clear(&r->error);
  if (om_file_map_open(&r->ctx, file, &map) != OM_OK) return "The model cannot be read.";
  om_status st = om_model_load_memory(map.bytes, map.byte_count, NULL, &model, &r->error);
  om_model_destroy(model);
  om_file_map_close(&r->ctx, &map);
  return st == OM_OK ? "From memory its external data were not refused." : NULL;
}

static void report(runner *r, const one_case *c, const char *where, const char *failure) {
  size_t number = r->passed + r->failed + r->skipped + 1;
  if (!failure) {
    ++r->passed;
    printf("ok %zu - %s on %s\n", number, c->folder, where);
    return;
  }
  ++r->failed;
  printf("not ok %zu - %s on %s\n#   %s\n", number, c->folder, where, failure);
  for (size_t i = 0; i < c->word_count; ++i) printf("#   expected: %s\n", c->words[i]);
}

static void test_case_on(runner *r, const one_case *c, const char *path, bool is_device) {
  const char *where = is_device ? "vulkan" : "cpu";
  om_folder folder = {0};
  om_status st = run_case(r, c, path, is_device, &folder);
  const char *failure = judge(c, st, &r->error, path);
  const om_skip *skip = om_skips_find(&r->skips, c->folder, folder.model);
  om_folder_close(&r->ctx, &folder);
  if (!failure && r->limited.live_bytes != 0) failure = "Memory was not given back.";
  r->limited.live_bytes = 0;
  if (!failure && !is_device) failure = judge_memory(r, c, path);
  if (skip && !failure) {
    failure = "It is in skips.txt, but passes: take it out.";
  } else if (skip) {
    ++r->skipped;
    printf("ok %zu - %s on %s # SKIP%s\n",
           r->passed + r->failed + r->skipped,
           c->folder,
           where,
           skip->reason);
    return;
  }
  report(r, c, where, failure);
  (void)fflush(stdout);
}

enum { CASE_INDICES = 11 }; /* gathers and scatters: also errors must be the same on a device */

static bool wants_device(runner *r, const one_case *c) {
  if (!r->has_vulkan) return false;
  if (r->wants_all || c->number == CASE_INDICES) return true;
  if (strcmp(c->kind, "value") != 0 || c->number == r->last_case) return false;
  r->last_case = c->number;
  return true;
}

static void test_one(runner *r, const one_case *c) {
  char path[PATH_BYTES];
  if (r->part && !strstr(c->folder, r->part)) return;
  if (strcmp(c->kind, "cancel") == 0) {
    ++r->skipped;
    printf("ok %zu - %s # SKIP tests/unit/test_cancel.c ends such a Loop\n",
           r->passed + r->failed + r->skipped,
           c->folder);
    return;
  }
  if (!set_up(r, c, path)) {
    report(r, c, "cpu", "Its folder could not be set up.");
    return;
  }
  test_case_on(r, c, path, false);
  if (wants_device(r, c)) test_case_on(r, c, path, true);
}

static om_status test_all(runner *r) {
  char path[PATH_BYTES];
  om_file_map index;
  (void)snprintf(path, sizeof path, "%s/index.json", r->root);
  OM_TRY(om_file_map_open(&r->ctx, path, &index));
  const char *at = om_pool_text(&r->ctx, &r->pool, (const char *)index.bytes, index.byte_count);
  om_file_map_close(&r->ctx, &index);
  if (!at) return OM_E_OUT_OF_MEMORY;
  while (*at) {
    one_case c;
    const char *stop = strchr(at, '\n');
    size_t bytes = stop ? (size_t)(stop - at) : strlen(at);
    char *line = om_pool_text(&r->ctx, &r->pool, at, bytes);
    if (!line) return OM_E_OUT_OF_MEMORY;
    if (read_case(r, line, &c)) test_one(r, &c);
    at += bytes + (stop ? 1 : 0);
  }
  return OM_OK;
}

/* Lines of the list that nothing matches are out of date. */
static void test_list(runner *r) {
  for (size_t i = 0; i < r->skips.count; ++i) {
    if (r->skips.entries[i].matches > 0) continue;
    one_case c = {.folder = r->skips.entries[i].name};
    report(r, &c, "all", "No folder matches this entry of skips.txt: take it out.");
  }
}

/* One case names this file outside of every folder; it must exist to be refused. */
static bool prepare(runner *r) {
  char command[COMMAND_BYTES];
  (void)snprintf(
      command, sizeof command, "cp -n '%s/secret' /tmp/public_case_29_secret.bin", r->root);
  (void)snprintf(r->copies, sizeof r->copies, "/tmp/om_cases_XXXXXX");
  return system(command) == 0 && mkdtemp(r->copies);
}

static bool clean_up(const runner *r) {
  char command[COMMAND_BYTES];
  (void)snprintf(command, sizeof command, "rm -rf '%s'", r->copies);
  return system(command) == 0;
}

static void init(runner *r, int argc, char **argv) {
  const char *backends = getenv("OM_TEST_BACKENDS");
  r->ctx = (om_ctx){.allocator = om_default_allocator(), .error = &r->error, .thread_count = 1};
  r->limited.heap = om_default_allocator();
  r->allocator = (om_allocator){.alloc = limited_alloc, .free = limited_free, .user = &r->limited};
  r->wants_all = argc > 1 && strcmp(argv[1], "--all") == 0;
  r->part = argc > 1 + r->wants_all ? argv[1 + r->wants_all] : NULL;
  r->root = getenv("OM_CASES_DIR");
  if (!r->root) r->root = OM_SOURCE_DIR "/../shared/cases/suite";
  r->has_vulkan = (!backends || strstr(backends, "vulkan")) && om_test_backend_is_there("vulkan");
}

int main(int argc, char **argv) {
  static runner r;
  init(&r, argc, argv);
  if (!om_path_exists(r.root)) {
    printf("%s is not there\n", r.root);
    return 77;
  }
  if (om_skips_read(&r.ctx, OM_SOURCE_DIR "/tests/cases/skips.txt", &r.skips) != OM_OK) {
    printf("Bail out! %s\n", r.error.message);
    return 1;
  }
  if (!prepare(&r) || test_all(&r) != OM_OK) ++r.failed;
  if (!r.part) test_list(&r);
  if (!clean_up(&r)) ++r.failed;
  om_skips_deinit(&r.ctx, &r.skips);
  om_pool_deinit(&r.ctx, &r.pool);
  printf("1..%zu\n", r.passed + r.failed + r.skipped);
  printf("# %zu passed, %zu failed, %zu skipped\n", r.passed, r.failed, r.skipped);
  return r.failed > 0 ? 1 : 0;
}
