/* The program of an operator test: options, the loop over cases and backends, TAP output. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/om_test_case.h"

typedef struct runner {
  const char *op; /* options; NULL: all */
  const char *part;
  const char *backends;
  uint64_t seed;
  uint32_t each, counted; /* of the cases that the options name, every `each`th runs */
  bool has_vulkan;
  uint32_t passed, failed, skipped;
} runner;

typedef struct one_case { /* a case on one backend */
  om_ctx ctx;
  om_error error;
  const om_op_suite *suite;
  const om_op_case *test_case;
  om_test_model model;
} one_case;

/* ---- The backends ---- */

static const char *declined_text(const one_case *c, om_mode mode) {
  if (mode == OM_MODE_EXACT && c->test_case->declined_exact) return c->test_case->declined_exact;
  return c->test_case->declined ? c->test_case->declined : c->suite->declined;
}

static om_status run_cpu(one_case *c,
                         om_mode mode,
                         uint32_t thread_count,
                         om_test_results *out_results) {
  const om_test_session_args args = {.mode = mode, .thread_count = thread_count};
  return om_test_run_session(&c->ctx, &c->model, &args, out_results);
}

static om_status run_device(one_case *c,
                            const char *backend,
                            om_mode mode,
                            om_test_results *out_results) {
  const char *declined = declined_text(c, mode);
  /* The null backend computes nothing, so it fails the self-test of exact mode on purpose; an
   * adapter in a browser may fail it; and a device without 16-bit storage declines other cases. */
  const bool is_wide = getenv("ONEMODEL_GPU_NO_16BIT_STORAGE") != NULL;
  const bool is_free = mode == OM_MODE_EXACT && (strcmp(backend, "vulkan") != 0 || is_wide);
  const om_test_session_args args = {.backend = backend,
                                     .mode = mode,
                                     .thread_count = 2,
                                     .require_gpu = !declined && !is_free,
                                     .declined = is_free || is_wide ? NULL : declined};
  return om_test_run_session(&c->ctx, &c->model, &args, out_results);
}

static om_status check_values(one_case *c, om_mode mode, const om_test_results *results) {
  if (mode == OM_MODE_FAST && c->test_case->exact_only) return OM_OK;
  return om_test_check_values(&c->ctx, c->suite, c->test_case, &c->model, mode, results);
}

static om_status test_direct(one_case *c) {
  om_status st = OM_OK;
  om_test_results one = {0}, three = {0};
  OM_GO(om_test_run_direct(&c->ctx, &c->model, &one));
  OM_GO(check_values(c, OM_MODE_EXACT, &one));
  c->ctx.thread_count = 3;
  OM_GO(om_test_run_direct(&c->ctx, &c->model, &three));
  OM_GO(om_test_check_same(&c->ctx, &one, &three, "1 and 3 threads"));
done:
  om_test_results_deinit(&c->ctx, &one);
  om_test_results_deinit(&c->ctx, &three);
  return st;
}

static om_status test_cpu(one_case *c) {
  om_status st = OM_OK;
  om_test_results one = {0}, three = {0}, fast = {0};
  OM_GO(run_cpu(c, OM_MODE_EXACT, 1, &one));
  OM_GO(check_values(c, OM_MODE_EXACT, &one));
  OM_GO(run_cpu(c, OM_MODE_EXACT, 3, &three));
  OM_GO(om_test_check_same(&c->ctx, &one, &three, "1 and 3 threads"));
  OM_GO(run_cpu(c, OM_MODE_FAST, 2, &fast));
  OM_GO(check_values(c, OM_MODE_FAST, &fast));
done:
  om_test_results_deinit(&c->ctx, &one);
  om_test_results_deinit(&c->ctx, &three);
  om_test_results_deinit(&c->ctx, &fast);
  return st;
}

/* A profile names the kernels. */
static om_status test_hopper_kernel(one_case *c) {
  om_test_results results = {0};
  const om_test_session_args args = {.backend = "null",
                                     .mode = OM_MODE_FAST,
                                     .thread_count = 1,
                                     .require_gpu = true,
                                     .hopper_kernel = c->test_case->hopper_kernel};
  setenv("ONEMODEL_GPU_PROFILE", "1", 1);
  om_status st = om_test_run_session(&c->ctx, &c->model, &args, &results);
  unsetenv("ONEMODEL_GPU_PROFILE");
  om_test_results_deinit(&c->ctx, &results);
  return st;
}

static om_status test_null(one_case *c) {
  om_test_results fast = {0}, alone = {0}, exact = {0};
  om_status st = run_device(c, "null", OM_MODE_FAST, &fast);
  if (st == OM_OK) st = run_device(c, "null", OM_MODE_EXACT, &exact);
  setenv("ONEMODEL_GPU_IN_TURN", "1", 1);
  if (st == OM_OK) st = run_device(c, "null", OM_MODE_FAST, &alone);
  setenv("ONEMODEL_GPU_IN_TURN", "0", 1);
  if (st == OM_OK && c->test_case->hopper_kernel) st = test_hopper_kernel(c);
  om_test_results_deinit(&c->ctx, &fast);
  om_test_results_deinit(&c->ctx, &alone);
  om_test_results_deinit(&c->ctx, &exact);
  return st;
}

static om_status test_device_exact(one_case *c, const char *backend) {
  om_status st = OM_OK;
  om_test_results cpu = {0}, device = {0};
  OM_GO(run_device(c, backend, OM_MODE_EXACT, &device));
  OM_GO(run_cpu(c, OM_MODE_EXACT, 2, &cpu));
  OM_GO(om_test_check_same(&c->ctx, &cpu, &device, "CPU and device"));
done:
  om_test_results_deinit(&c->ctx, &cpu);
  om_test_results_deinit(&c->ctx, &device);
  return st;
}

static om_status test_device_fast(one_case *c, const char *backend) {
  om_test_results fast = {0};
  om_status st = run_device(c, backend, OM_MODE_FAST, &fast);
  if (st == OM_OK) st = check_values(c, OM_MODE_FAST, &fast);
  om_test_results_deinit(&c->ctx, &fast);
  return st;
}

static om_status test_vulkan(one_case *c) {
  OM_TRY(test_device_exact(c, "vulkan"));
  return test_device_fast(c, "vulkan");
}

static om_status test_webgpu(one_case *c) {
  return test_device_fast(c, "webgpu");
}

/* With the kernels of a real device, on a software one too. */
static om_status test_webgpu_shared(one_case *c) {
  setenv("ONEMODEL_GPU_IN_TURN", "0", 1);
  om_status st = test_device_fast(c, "webgpu");
  unsetenv("ONEMODEL_GPU_IN_TURN");
  return st;
}

static om_status test_webgpu_exact(one_case *c) {
  return test_device_exact(c, "webgpu");
}

/* Vulkan as if it could not store 16 bits. */
static om_status test_wide(one_case *c) {
  setenv("ONEMODEL_GPU_NO_16BIT_STORAGE", "1", 1);
  om_status st = test_vulkan(c);
  unsetenv("ONEMODEL_GPU_NO_16BIT_STORAGE");
  return st;
}

/* Vulkan in fast mode, with the kernels for devices whose invocations run in turn. */
static om_status test_alone(one_case *c) {
  setenv("ONEMODEL_GPU_IN_TURN", "1", 1);
  om_status st = test_device_fast(c, "vulkan");
  setenv("ONEMODEL_GPU_IN_TURN", "0", 1);
  return st;
}

/* Types with kernels of their own for such devices. */
static bool works_alone(const char *op_type) {
  static const char *const parts[] = {
      "Attention", "Conv", "Gemm", "Global", "MatMul", "Norm", "Reduce", "Softmax", "Transpose"};
  for (size_t i = 0; i < OM_COUNT_OF(parts); ++i) {
    if (strstr(op_type, parts[i])) return true;
  }
  return false;
}

static bool has_halves(const om_op_case *test_case) {
  for (size_t i = 0; i < OM_CASE_INPUTS && test_case->inputs[i]; ++i) {
    if (strncmp(test_case->inputs[i], "f16", 3) == 0) return true;
  }
  return false;
}

static const struct {
  const char *name;
  om_status (*test)(one_case *c);
  bool is_for_halves; /* cases with float16 alone */
} backends[] = {{"direct", test_direct, false},
                {"cpu", test_cpu, false},
                {"null", test_null, false},
                {"vulkan", test_vulkan, false},
                {"alone", test_alone, false},
                {"wide", test_wide, true},
                {"webgpu", test_webgpu, false},
                {"webgpu_shared", test_webgpu_shared, false},
                {"webgpu_exact", test_webgpu_exact, false}};

/* ---- The loop ---- */

/* True if `word` is one of the comma-separated words of `list`. */
static bool list_has(const char *list, const char *word) {
  const size_t bytes = strlen(word);
  for (const char *p = list; p; p = strchr(p, ',')) {
    if (*p == ',') ++p;
    if (strncmp(p, word, bytes) == 0 && (p[bytes] == ',' || p[bytes] == '\0')) return true;
  }
  return false;
}

/* The same seed for a case whatever else runs. */
static uint64_t case_seed(uint64_t seed, const char *name) {
  uint64_t hash = 0xcbf29ce484222325u ^ seed; /* FNV-1a */
  for (; *name != '\0'; ++name) hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
  return hash;
}

/* Turns the outcome round for a case that expects a failure. */
static bool has_passed(one_case *c, const char *backend, om_status st) {
  const char *want = c->test_case->error;
  if (!want) return st == OM_OK;
  /* The null backend computes nothing: it finds no fault in what a node before made. */
  if (st == OM_OK && c->test_case->graph && strcmp(backend, "null") == 0) return true;
  if (st == OM_OK) {
    OM_IGNORE(OM_FAIL(
        &c->ctx, OM_E_INTERNAL, "It should have failed with \"%s\".", want)); /* reported below */
    return false;
  }
  return st != OM_E_INTERNAL && strstr(c->error.message, want) != NULL;
}

static void report(runner *r, const one_case *c, const char *backend, bool is_pass) {
  const uint32_t number = r->passed + r->failed + r->skipped + 1;
  printf("%s %u - %s/%s on %s\n",
         is_pass ? "ok" : "not ok",
         number,
         c->suite->op_type,
         c->test_case->name,
         backend);
  if (is_pass) {
    ++r->passed;
    return;
  }
  ++r->failed;
  printf("#   %s: %s\n", om_status_name(c->error.status), c->error.message);
  if (c->test_case->error) printf("#   expected: %s\n", c->test_case->error);
  printf("#   at %s:%d, --seed %llu\n",
         c->error.file ? c->error.file : "?",
         c->error.line,
         (unsigned long long)r->seed);
}

static void run_on_backend(runner *r,
                           const om_op_suite *suite,
                           const om_op_case *test_case,
                           size_t backend) {
  one_case c = {.suite = suite, .test_case = test_case};
  const char *name = backends[backend].name;
  c.ctx = (om_ctx){.allocator = om_default_allocator(), .error = &c.error, .thread_count = 1};
  const bool needs_vulkan =
      strcmp(name, "vulkan") == 0 || strcmp(name, "wide") == 0 || strcmp(name, "alone") == 0;
  const bool is_missing = strcmp(name, "null") == 0 && !om_test_backend_is_there(name);
  if (is_missing || (needs_vulkan && !r->has_vulkan)) {
    ++r->skipped;
    printf("ok %u - %s/%s on %s # SKIP no device\n",
           r->passed + r->failed + r->skipped,
           suite->op_type,
           test_case->name,
           name);
    return;
  }
  om_status st =
      om_test_model_init(&c.ctx, suite, test_case, case_seed(r->seed, test_case->name), &c.model);
  if (st == OM_OK)
    report(r, &c, name, has_passed(&c, name, backends[backend].test(&c)));
  else
    report(r, &c, name, false);
  om_test_model_deinit(&c.ctx, &c.model);
  fflush(stdout);
}

static void run_suite(runner *r, const om_op_suite *suite) {
  if (r->op && strcmp(r->op, suite->op_type) != 0) return;
  for (size_t i = 0; i < suite->case_count; ++i) {
    const om_op_case *test_case = &suite->cases[i];
    if (r->part && !strstr(test_case->name, r->part)) continue;
    if (r->counted++ % r->each != 0) continue;
    for (size_t b = 0; b < OM_COUNT_OF(backends); ++b) {
      const bool is_direct = strcmp(backends[b].name, "direct") == 0;
      if ((test_case->graph || suite->is_composed) && is_direct) continue;
      if (backends[b].is_for_halves && !has_halves(test_case)) continue;
      if (backends[b].test == test_alone && !works_alone(suite->op_type)) continue;
      if (list_has(r->backends, backends[b].name)) run_on_backend(r, suite, test_case, b);
    }
  }
}

static bool read_options(int argc, char **argv, runner *r) {
  const char *seed = getenv("OM_TEST_SEED");
  r->backends = getenv("OM_TEST_BACKENDS");
  r->each = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--op") == 0)
      r->op = argv[i + 1];
    else if (strcmp(argv[i], "--case") == 0)
      r->part = argv[i + 1];
    else if (strcmp(argv[i], "--backend") == 0)
      r->backends = argv[i + 1];
    else if (strcmp(argv[i], "--seed") == 0)
      seed = argv[i + 1];
    else if (strcmp(argv[i], "--each") == 0)
      r->each = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    else
      return false;
  }
  if (!r->backends) r->backends = "direct,cpu,null,vulkan,alone,wide";
  r->seed = seed ? strtoull(seed, NULL, 10) : 1;
  return argc % 2 == 1 && r->each > 0;
}

int om_op_test_main(int argc, char **argv, const om_op_suite *suites, size_t suite_count) {
  runner r = {0};
  if (!read_options(argc, argv, &r)) {
    fprintf(stderr,
            "usage: %s [--op NAME] [--case PART] [--backend LIST] [--seed N] [--each N]\n",
            argv[0]);
    return 2;
  }
  const bool wants_vulkan = list_has(r.backends, "vulkan") || list_has(r.backends, "wide") ||
                            list_has(r.backends, "alone");
  r.has_vulkan = wants_vulkan && om_test_backend_is_there("vulkan");
  /* A software device is tried with the kernels of a real one; "alone" has its own. */
  if (wants_vulkan || list_has(r.backends, "null")) setenv("ONEMODEL_GPU_IN_TURN", "0", 0);
  for (size_t i = 0; i < suite_count; ++i) run_suite(&r, &suites[i]);
  printf("1..%u\n", r.passed + r.failed + r.skipped);
  printf("# %u passed, %u failed, %u skipped\n", r.passed, r.failed, r.skipped);
  if (r.failed > 0) return 1;
  return r.passed > 0 ? 0 : 77;
}
