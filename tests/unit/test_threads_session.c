/* Threads: two sessions side by side, and one session that several threads run at once with memory
 * of their own, lent by it or not. Meant for the tsan preset; values are checked everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>

#include <cmocka.h>

#include "harness/om_fake_provider.h"
#include "harness/om_graph_builder.h"

enum { THREADS = 4, RUNS = 40, MOST_ROWS = 20, COLUMNS = 5 };

static om_model *make_model(void) {
  static const char *const symbols[] = {"N", NULL};
  om_graph_builder b;
  om_build_begin(&b, 14);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 2, (int64_t[]){-1, COLUMNS}, symbols);
  om_value_id sum = om_build_node(&b, "Add", "sum", 2, (om_value_id[]){x, x});
  om_value_id relu = om_build_node(&b, "Relu", "relu", 1, &sum);
  om_build_output(&b, om_build_node(&b, "Add", "y", 2, (om_value_id[]){relu, x}));
  return om_build_model(&b);
}

typedef struct worker {
  om_session *session;
  uint32_t number;
  size_t failures; /* read after the thread has ended */
} worker;

static om_status run_once(worker *w, int64_t rows, float *x, float *y) {
  om_error error;
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){rows, COLUMNS}, x)};
  om_named_tensor output = {"y", {.data = y, .data_bytes = sizeof(float) * MOST_ROWS * COLUMNS}};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  return om_session_run(w->session, &args, &error);
}

/* More shapes than plans are kept, so that threads also build and drop plans in turn. */
static void *work(void *arg) {
  worker *w = arg;
  float own[MOST_ROWS * COLUMNS], y[MOST_ROWS * COLUMNS];
  for (uint32_t i = 0; i < RUNS; ++i) {
    void *lent = NULL;
    if (i % 3 > 0 && om_session_lend_memory(w->session, sizeof own, &lent, NULL) != OM_OK) {
      w->failures += 1;
    }
    float *x = lent ? lent : own;
    int64_t rows = 1 + (int64_t)((i * 7 + w->number * 3) % MOST_ROWS);
    size_t count = (size_t)rows * COLUMNS;
    for (size_t k = 0; k < count; ++k) x[k] = (float)k - (float)(w->number * 10 + i);
    if (run_once(w, rows, x, y) != OM_OK) w->failures += 1;
    for (size_t k = 0; k < count; ++k) {
      float doubled = x[k] + x[k];
      if (y[k] != (doubled > 0.0f ? doubled : 0.0f) + x[k]) w->failures += 1;
    }
    om_session_statistics statistics = om_session_get_statistics(w->session);
    if (statistics.run_count == 0) w->failures += 1;
    if (i % 3 == 2) om_session_return_memory(w->session, lent); /* else at the session's end */
  }
  return NULL;
}

static void run_threads(om_session *const sessions[THREADS]) {
  pthread_t threads[THREADS];
  worker workers[THREADS];
  for (uint32_t i = 0; i < THREADS; ++i) {
    workers[i] = (worker){.session = sessions[i], .number = i};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (uint32_t i = 0; i < THREADS; ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (uint32_t i = 0; i < THREADS; ++i) assert_int_equal(workers[i].failures, 0);
}

static om_session *make_session(om_model *model, om_fake_device *device) {
  om_error error;
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.thread_count = 2;
  options.provider = device ? om_fake_provider() : NULL;
  options.provider_options = device;
  if (om_session_create(model, &options, &session, &error) != OM_OK) fail_msg("%s", error.message);
  return session;
}

static void sessions_are_independent(void **state) {
  om_model *model = make_model();
  om_fake_device devices[2] = {{.takes = {"Relu"}}, {.takes = {"Add"}}};
  om_session *a = make_session(model, &devices[0]), *b = make_session(model, &devices[1]);
  om_session *c = make_session(model, NULL), *d = make_session(model, NULL);
  (void)state;
  run_threads((om_session *[THREADS]){a, b, c, d});
  om_session_destroy(a);
  om_session_destroy(b);
  om_session_destroy(c);
  om_session_destroy(d);
  om_model_destroy(model);
}

static void one_session_takes_turns(void **state) {
  om_model *model = make_model();
  om_fake_device device = {.takes = {"Add"}};
  om_session *session = make_session(model, &device);
  (void)state;
  run_threads((om_session *[THREADS]){session, session, session, session});
  assert_int_equal(om_session_get_statistics(session).run_count, THREADS * RUNS);
  om_session_destroy(session);
  om_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sessions_are_independent),
      cmocka_unit_test(one_session_takes_turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
