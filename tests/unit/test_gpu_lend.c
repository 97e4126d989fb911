/* Memory that is lent. Results stay in the device's readback memory: right for several regions of
 * one run, beside results in the caller's memory, and again after a run of another shape. Inputs
 * lie in memory that the device reads: from any place in it, by turns with other memory, where the
 * CPU reads them too, after some of it went back, and by several threads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "harness/om_graph_builder.h"
#include "harness/om_test_skip.h"
#include "onemodel/gpu.h"

enum { ELEMS = 1000 };

static float x[ELEMS];
static float own[ELEMS];

/* Relu, Sinh (no GPU kernel), Relu: two regions with the CPU between them. */
static om_model *make_model(om_graph_builder *b) {
  om_build_begin(b, 17);
  om_value_id in = om_build_input(b, "x", OM_DTYPE_F32, 1, (int64_t[]){-1}, NULL);
  om_value_id first = om_build_node(b, "Relu", "first", 1, &in);
  om_value_id middle = om_build_node(b, "Sinh", "middle", 1, &first);
  om_value_id last = om_build_node(b, "Relu", "last", 1, &middle);
  om_build_output(b, first);
  om_build_output(b, last);
  return om_build_model(b);
}

static void run(om_session *session, size_t elems, om_named_tensor *outputs) {
  om_error error = {0};
  const int64_t dims[1] = {(int64_t)elems};
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, dims, x)};
  om_run_args args = {sizeof args, &input, 1, outputs, 2, NULL};
  for (size_t i = 0; i < elems; ++i) x[i] = (float)i * 0.01f - 1.0f;
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  for (size_t i = 0; i < elems; ++i) {
    float a = x[i] > 0.0f ? x[i] : 0.0f;
    assert_true(((const float *)outputs[0].tensor.data)[i] == a);
    assert_true(fabsf(((const float *)outputs[1].tensor.data)[i] - sinhf(a)) <= 1e-5f * sinhf(a));
  }
}

static void test_results_of_two_regions(void **state) {
  om_error error = {0};
  om_graph_builder builder;
  om_session *session = NULL;
  (void)state;
  om_model *model = make_model(&builder);
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.provider = om_gpu_provider();
  if (om_session_create(model, &options, &session, &error) != OM_OK) {
    om_model_destroy(model);
    OM_TEST_SKIP("%s", error.message);
  }
  for (size_t elems = ELEMS; elems > 0; elems /= 3) {
    om_named_tensor lent[2] = {{.name = "first"}, {.name = "last"}};
    om_named_tensor mixed[2] = {{.name = "first"}, {.name = "last"}};
    mixed[0].tensor.data = own;
    mixed[0].tensor.data_bytes = sizeof own;
    run(session, elems, lent);
    run(session, elems, mixed);
    assert_ptr_equal(mixed[0].tensor.data, own);
    lent[0].tensor = lent[1].tensor = (om_tensor){0};
    run(session, elems, lent);
  }
  om_session_destroy(session);
  om_model_destroy(model);
}

/* ---- Inputs ---- */

enum {
  MANY = 20000, /* floats: above what is copied all the same */
  MANY_BYTES = MANY * sizeof(float),
  BLOCKS = 10, /* more than a region keeps uploads of */
  THREADS = 4,
  RUNS = 30,
};

/* Relu of x, Sinh (no GPU kernel) of that and of x, and the sum of both and x: so two regions read
 * x, and the CPU between them. */
static om_model *make_reader(void) {
  om_graph_builder b;
  om_build_begin(&b, 17);
  om_value_id in = om_build_input(&b, "x", OM_DTYPE_F32, 1, (int64_t[]){-1}, NULL);
  om_value_id first = om_build_node(&b, "Relu", "first", 1, &in);
  om_value_id middle = om_build_node(&b, "Sinh", "middle", 1, &first);
  om_value_id direct = om_build_node(&b, "Sinh", "direct", 1, &in);
  om_value_id both = om_build_node(&b, "Add", "both", 2, (om_value_id[]){middle, direct});
  om_build_output(&b, om_build_node(&b, "Add", "last", 2, (om_value_id[]){both, in}));
  return om_build_model(&b);
}

/* A byte lies where it likes. */
static om_model *make_byte_reader(void) {
  om_graph_builder b;
  om_build_begin(&b, 17);
  om_value_id in = om_build_input(&b, "x", OM_DTYPE_U8, 1, (int64_t[]){-1}, NULL);
  om_value_id last = om_build_node(&b, "Cast", "last", 1, &in);
  om_build_int(&b, "to", OM_DTYPE_F32);
  om_build_output(&b, last);
  return om_build_model(&b);
}

typedef struct lending {
  om_model *model;
  om_session *session;
  bool computes;
} lending;

/* backend NULL: the first device; "cpu": none. Skips where there is no device. */
static lending open_lending(om_model *model, const char *backend) {
  om_error error = {0};
  lending l = {.model = model, .computes = !backend || strcmp(backend, "null") != 0};
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  gpu.backend = backend;
  options.max_bytes = (uint64_t)1 << 30; /* a sanitizer ends who asks the system for far more */
  if (!backend || strcmp(backend, "cpu") != 0) {
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
  }
  if (om_session_create(l.model, &options, &l.session, &error) != OM_OK) {
    om_model_destroy(l.model);
    OM_TEST_SKIP("%s", error.message);
  }
  return l;
}

static void close_lending(const lending *l) {
  om_session_destroy(l->session);
  om_model_destroy(l->model);
}

static void *lend(const lending *l, size_t bytes) {
  om_error error = {0};
  void *data = NULL;
  if (om_session_lend_memory(l->session, bytes, &data, &error) != OM_OK)
    fail_msg("%s", error.message);
  assert_non_null(data);
  assert_int_equal((uintptr_t)data % 64, 0);
  for (size_t i = 0; i < bytes; ++i) assert_int_equal(((const uint8_t *)data)[i], 0);
  return data;
}

static bool is_right(const float *in, const float *out, size_t elems) {
  for (size_t i = 0; i < elems; ++i) {
    const float sum = sinhf(in[i] > 0.0f ? in[i] : 0.0f) + sinhf(in[i]) + in[i];
    if (!(fabsf(out[i] - sum) <= 1e-5f * (fabsf(sum) + 1.0f))) return false;
  }
  return true;
}

/* Fills the input by `seed` and runs; the result goes to `out`. */
static bool run_on(const lending *l, float *in, size_t elems, float *out, unsigned seed) {
  om_error error = {0};
  const int64_t dims[1] = {(int64_t)elems};
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, dims, in)};
  om_named_tensor output = {"last", {.data = out, .data_bytes = MANY_BYTES}};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  for (size_t i = 0; i < elems; ++i) in[i] = (float)((i * 7 + seed * 13) % 64) * 0.05f - 1.5f;
  if (om_session_run(l->session, &args, &error) != OM_OK) {
    print_error("%s\n", error.message);
    return false;
  }
  return !l->computes || is_right(in, out, elems);
}

static uint64_t staged_bytes(const lending *l) {
  om_error error = {0};
  om_gpu_info info = {0};
  if (om_gpu_get_info(l->session, &info, &error) != OM_OK) fail_msg("%s", error.message);
  return info.staged_bytes;
}

/* What one run copied of x; what the CPU made of it is copied to the second region anyway. */
static uint64_t copied(const lending *l, float *in, size_t elems, unsigned seed) {
  static float out[MANY];
  assert_true(run_on(l, in, elems, out, seed));
  return staged_bytes(l) - 2 * elems * sizeof(float);
}

static void read_from_anywhere(const char *backend) {
  static float mine[MANY];
  const lending l = open_lending(make_reader(), backend);
  uint64_t generations = 0;
  assert_int_equal(copied(&l, mine, MANY, 1), 2 * MANY_BYTES); /* two regions read it */
  float *a = lend(&l, MANY_BYTES + 256);
  float *b = lend(&l, MANY_BYTES + 256);
  for (unsigned i = 0; i < 6; ++i) {
    om_session_statistics before = om_session_get_statistics(l.session);
    assert_int_equal(copied(&l, a, MANY, i), 0);
    assert_int_equal(copied(&l, b + 1, MANY, i + 1), 0);
    assert_int_equal(copied(&l, mine, MANY, i + 2), 2 * MANY_BYTES);
    assert_int_equal(copied(&l, a + 64, MANY, i + 3), 0);
    om_session_statistics after = om_session_get_statistics(l.session);
    if (i > 0) generations += after.host_allocations - before.host_allocations;
  }
  assert_int_equal(generations, 0); /* whoever changes between places allocates nothing */
  assert_int_equal(copied(&l, a, MANY - 500, 1), 0);                /* another shape */
  assert_int_equal(copied(&l, a, 100, 2), 2 * 100 * sizeof(float)); /* little: copied */
  om_session_return_memory(l.session, a);
  for (unsigned i = 0; i < 3; ++i) { /* may well lie where the other one lay */
    float *c = lend(&l, MANY_BYTES);
    assert_int_equal(copied(&l, c, MANY, i), 0);
    assert_int_equal(copied(&l, b, MANY, i + 1), 0);
    om_session_return_memory(l.session, c);
  }
  close_lending(&l);
}

static void test_inputs(void **state) {
  (void)state;
  read_from_anywhere(NULL);
}

static void test_inputs_on_null_device(void **state) {
  (void)state;
  read_from_anywhere("null");
}

/* Bytes at odd places, or that fill no last word, are copied, and right. */
static void test_bytes(void **state) {
  (void)state;
  const lending l = open_lending(make_byte_reader(), NULL);
  uint8_t *block = lend(&l, 2 * MANY_BYTES);
  for (int at = 0; at < 5; ++at) {
    for (int64_t elems = MANY_BYTES; elems < MANY_BYTES + 5; ++elems) {
      om_error error = {0};
      om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_U8, 1, &elems, block + at)};
      om_named_tensor output = {.name = "last"};
      om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
      for (int64_t i = 0; i < elems; ++i) block[at + i] = (uint8_t)(i * 5 + at);
      block[at + elems] = 77; /* not the tensor's */
      if (om_session_run(l.session, &args, &error) != OM_OK) fail_msg("%s", error.message);
      const float *out = output.tensor.data;
      for (int64_t i = 0; i < elems; ++i) assert_true(out[i] == (float)(uint8_t)(i * 5 + at));
      assert_int_equal(staged_bytes(&l), at % 4 == 0 && elems % 4 == 0 ? 0 : elems);
    }
  }
  close_lending(&l);
}

static void lend_much(const char *backend) {
  static float out[MANY];
  const lending l = open_lending(make_reader(), backend);
  float *blocks[BLOCKS];
  for (unsigned i = 0; i < BLOCKS; ++i) blocks[i] = lend(&l, MANY_BYTES);
  for (unsigned i = 0; i < 3 * BLOCKS; ++i) {
    assert_true(run_on(&l, blocks[i * 3 % BLOCKS], MANY, out, i));
  }
  for (unsigned i = 0; i < BLOCKS; i += 2) om_session_return_memory(l.session, blocks[i]);
  for (unsigned i = 1; i < BLOCKS; i += 2) assert_true(run_on(&l, blocks[i], MANY, out, i));
  om_session_return_memory(l.session, NULL);
  om_session_return_memory(l.session, out); /* not the session's: left alone */
  (void)lend(&l, 0);
  close_lending(&l);
}

static void test_many_blocks(void **state) {
  (void)state;
  lend_much("cpu");
  lend_much("null");
  lend_much(NULL);
}

/* A run that is under way leaves other memory alone, and lending leaves the run alone. */
static void test_beside_a_run(void **state) {
  (void)state;
  static float out[MANY];
  const lending l = open_lending(make_reader(), NULL);
  const int64_t dims[1] = {MANY};
  float *in = lend(&l, MANY_BYTES);
  for (unsigned k = 0; k < 4; ++k) {
    om_error error = {0};
    om_run *under_way = NULL;
    om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, dims, in)};
    om_named_tensor output = {"last", {.data = out, .data_bytes = MANY_BYTES}};
    om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
    for (size_t i = 0; i < MANY; ++i) in[i] = (float)((i + k) % 50) * 0.02f;
    assert_int_equal(om_session_run_begin(l.session, &args, &under_way, &error), OM_OK);
    void *other = lend(&l, MANY_BYTES);
    memset(other, 0xff, MANY_BYTES);
    om_session_return_memory(l.session, other);
    assert_int_equal(om_run_finish(under_way, &error), OM_OK);
    assert_true(is_right(in, out, MANY));
  }
  close_lending(&l);
}

typedef struct worker {
  const lending *lending;
  float *in;
  unsigned number;
  bool is_wrong; /* read after the thread's end */
} worker;

static void *work(void *arg) {
  worker *w = arg;
  float *out = malloc(MANY_BYTES);
  for (unsigned i = 0; i < RUNS && out; ++i) {
    w->is_wrong |= !run_on(w->lending, w->in, MANY - 4 * (i % 3), out, i + 100 * w->number);
  }
  w->is_wrong |= !out;
  free(out);
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  const lending l = open_lending(make_reader(), NULL);
  pthread_t threads[THREADS];
  worker workers[THREADS];
  for (unsigned i = 0; i < THREADS; ++i) {
    workers[i] = (worker){.lending = &l, .in = lend(&l, MANY_BYTES), .number = i};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; ++i) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(workers[i].is_wrong);
  }
  close_lending(&l);
}

static void check_arguments(const char *backend) {
  om_error error = {0};
  void *data = &error;
  const lending l = open_lending(make_reader(), backend);
  assert_int_equal(om_session_lend_memory(NULL, 64, &data, &error), OM_E_INVALID_ARGUMENT);
  assert_null(data);
  assert_int_equal(om_session_lend_memory(l.session, 64, NULL, &error), OM_E_INVALID_ARGUMENT);
  for (size_t below = 0; below < 130; ++below) { /* no size wraps around */
    om_status st = om_session_lend_memory(l.session, SIZE_MAX - below, &data, &error);
    assert_int_equal(st, OM_E_OUT_OF_MEMORY);
    assert_null(data);
  }
  om_session_return_memory(NULL, NULL);
  close_lending(&l);
}

static void test_arguments(void **state) {
  (void)state;
  check_arguments("cpu");
  check_arguments("null");
  check_arguments(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_results_of_two_regions),
      cmocka_unit_test(test_inputs),
      cmocka_unit_test(test_inputs_on_null_device),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_many_blocks),
      cmocka_unit_test(test_beside_a_run),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
