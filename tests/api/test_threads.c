/* Threads: sessions of one model side by side, with devices of their own or on a shared one; one
 * session called from many threads; on the CPU, the null device and Vulkan. The thread sanitizer's
 * build runs this too, without Vulkan: drivers are not built for it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <onemodel/gpu.h>

#include "harness/om_test_skip.h"

#if defined(__SANITIZE_THREAD__)
#  define HAS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#  if __has_feature(thread_sanitizer)
#    define HAS_THREAD_SANITIZER 1
#  endif
#endif

enum { THREAD_COUNT = 4, MOST_THREADS = 8, RUN_COUNT = 10, ROWS = 3, COLUMNS = 4 };

static const char model_path[] = OM_SOURCE_DIR "/tests/api/example.onnx"; /* y = Relu(x) * 2 */

typedef struct worker {
  const char *backend; /* NULL: the CPU alone */
  const om_model *model;
  om_session *session;     /* NULL: each worker makes its own */
  om_gpu_prepared *shared; /* not NULL: one for each run, on this device */
  int number;
  bool checks_values;
  char problem[OM_MAX_MESSAGE]; /* "": none. Asserts belong to the main thread. */
} worker;

static om_status create_session(const om_model *model,
                                const char *backend,
                                om_gpu_prepared *shared,
                                om_session **out_session,
                                om_error *error) {
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.thread_count = 2;
  if (backend) {
    gpu.backend = backend;
    gpu.device = strcmp(backend, "vulkan") == 0 ? getenv("OM_TEST_DEVICE") : NULL;
    gpu.shared = shared;
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
    options.require_gpu = true;
  }
  return om_session_create(model, &options, out_session, error);
}

/* One run with values of the thread's own, into memory of its own. */
static om_status run_once(worker *w, om_session *session, int run, om_error *error) {
  float numbers[ROWS * COLUMNS], results[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; ++i) numbers[i] = (float)(i - 5 + 100 * w->number + run);
  const int64_t dims[] = {1 + run % ROWS, COLUMNS}; /* several plans */
  om_named_tensor x = {"x", om_tensor_of(OM_DTYPE_F32, 2, dims, numbers)};
  om_named_tensor y = {"y", {.data = results, .data_bytes = sizeof results}};
  const om_run_args args = {sizeof args, &x, 1, &y, 1, NULL};
  const om_status status = om_session_run(session, &args, error);
  for (int64_t i = 0; status == OM_OK && w->checks_values && i < dims[0] * COLUMNS; ++i) {
    const float wanted = numbers[i] > 0 ? 2 * numbers[i] : 0;
    if (results[i] != wanted) snprintf(w->problem, sizeof w->problem, "another thread's result");
  }
  return status;
}

static void *work(void *argument) {
  worker *w = argument;
  om_error error = {0};
  om_session *own = NULL;
  om_status status = OM_OK;
  for (int run = 0; status == OM_OK && run < RUN_COUNT; ++run) {
    if (!w->session && !own) {
      status = create_session(w->model, w->backend, w->shared, &own, &error);
    }
    if (status == OM_OK) status = run_once(w, w->session ? w->session : own, run, &error);
    if (w->shared) om_session_destroy(own);
    if (w->shared) own = NULL;
  }
  if (status != OM_OK) snprintf(w->problem, sizeof w->problem, "%s", error.message);
  om_session_destroy(own);
  return NULL;
}

static om_gpu_prepared *prepare(const char *backend) {
  om_error error = {0};
  om_gpu_prepared *prepared = NULL;
  bool is_done = false;
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = backend;
  options.device = strcmp(backend, "vulkan") == 0 ? getenv("OM_TEST_DEVICE") : NULL;
  om_status st = om_gpu_prepare_begin(&options, OM_MODE_EXACT, NULL, &prepared, &error);
  while (st == OM_OK && !is_done) st = om_gpu_prepare_poll(prepared, &is_done, &error);
  if (st != OM_OK) fail_msg("%s", error.message);
  return prepared;
}

typedef enum sharing { NOTHING, SESSION, DEVICE } sharing;

static void run_workers(const char *backend, sharing shares) {
  pthread_t threads[MOST_THREADS];
  worker workers[MOST_THREADS] = {0};
  const int count = shares == DEVICE ? MOST_THREADS : THREAD_COUNT;
  om_model *model = NULL;
  om_session *session = NULL;
  om_gpu_prepared *shared = shares == DEVICE ? prepare(backend) : NULL;
  om_error error = {0};
  if (om_model_load_file(model_path, NULL, &model, &error) != OM_OK) fail_msg("%s", error.message);
  if (shares == SESSION && create_session(model, backend, NULL, &session, &error) != OM_OK) {
    fail_msg("%s", error.message);
  }
  for (int i = 0; i < count; ++i) {
    workers[i].backend = backend;
    workers[i].model = model;
    workers[i].session = session;
    workers[i].shared = shared;
    workers[i].number = i;
    workers[i].checks_values = !backend || strcmp(backend, "null") != 0;
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  om_session_destroy(session);
  om_gpu_prepared_destroy(shared);
  om_model_destroy(model);
  for (int i = 0; i < count; ++i) {
    if (workers[i].problem[0] != '\0') fail_msg("thread %d: %s", i, workers[i].problem);
  }
}

static void skip_without_vulkan(void) {
#ifdef HAS_THREAD_SANITIZER
  OM_TEST_SKIP("drivers are not made for the thread sanitizer");
#else
  size_t count = 0;
  if (om_gpu_list(NULL, 0, &count, NULL) != OM_OK || count == 0)
    OM_TEST_SKIP("there is no Vulkan device");
#endif
}

static void sessions_on_the_cpu(void **state) {
  (void)state;
  run_workers(NULL, NOTHING);
}

static void one_session_on_the_cpu(void **state) {
  (void)state;
  run_workers(NULL, SESSION);
}

static void sessions_on_the_null_device(void **state) {
  (void)state;
  if (!om_gpu_provider()) OM_TEST_SKIP("this build has no GPU package");
  run_workers("null", NOTHING);
}

static void sessions_that_share_the_null_device(void **state) {
  (void)state;
  if (!om_gpu_provider()) OM_TEST_SKIP("this build has no GPU package");
  run_workers("null", DEVICE);
}

static void one_session_on_the_null_device(void **state) {
  (void)state;
  if (!om_gpu_provider()) OM_TEST_SKIP("this build has no GPU package");
  run_workers("null", SESSION);
}

static void sessions_on_vulkan(void **state) {
  (void)state;
  skip_without_vulkan();
  run_workers("vulkan", NOTHING);
}

static void sessions_that_share_vulkan(void **state) {
  (void)state;
  skip_without_vulkan();
  run_workers("vulkan", DEVICE);
}

static void one_session_on_vulkan(void **state) {
  (void)state;
  skip_without_vulkan();
  run_workers("vulkan", SESSION);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sessions_on_the_cpu),
      cmocka_unit_test(one_session_on_the_cpu),
      cmocka_unit_test(sessions_on_the_null_device),
      cmocka_unit_test(sessions_that_share_the_null_device),
      cmocka_unit_test(one_session_on_the_null_device),
      cmocka_unit_test(sessions_on_vulkan),
      cmocka_unit_test(sessions_that_share_vulkan),
      cmocka_unit_test(one_session_on_vulkan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
