/* Runs that are ended from another thread: a Loop of 2^62 turns, one that has ended by itself, a
 * large product, bins of a million samples each, and one whose weights are just packed or whose
 * plan is just made. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/om_thread.h"
#include "harness/om_model_text.h"

static const char text[] =
    "(trips: i64, x: f32[4]) -> y { "
    "  y = Loop(trips, , x) body={(i: i64, c: bool, s: f32[4]) -> d, t {"
    "    d = Identity(c); o = Neg(s); t = Add(o, x); }}; }";

enum { WAIT_NS = 100000000, LEAST_WAIT_NS = 1000000 };

typedef struct helper {
  om_cancel cancel;
  long wait_ns;
  uint64_t asked_ns;
} helper;

static void *ask_later(void *arg) {
  helper *h = arg;
  (void)nanosleep(&(struct timespec){.tv_nsec = h->wait_ns}, NULL);
  h->asked_ns = om_now_ns();
  om_cancel_ask(&h->cancel);
  return NULL;
}

static om_status run(om_text_rig *rig, int64_t trips, const om_cancel *cancel) {
  float x[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  om_named_tensor inputs[] = {
      {"trips", om_tensor_of(OM_DTYPE_I64, 0, NULL, &trips)},
      {"x", om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){4}, x)},
  };
  om_named_tensor output = {"y", {0}};
  const om_run_args args = {sizeof args, inputs, 2, &output, 1, cancel};
  return om_session_run(rig->session, &args, &rig->error);
}

static void check_mode(om_mode mode) {
  om_text_rig rig;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  helper h = {.wait_ns = WAIT_NS};
  pthread_t thread;
  options.mode = mode;
  om_text_rig_open(&rig, text, 17, &options);
  assert_int_equal(pthread_create(&thread, NULL, ask_later, &h), 0);
  const om_status st = run(&rig, (int64_t)1 << 62, &h.cancel);
  const uint64_t ended_ns = om_now_ns();
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(st, OM_E_CANCELLED);
  assert_non_null(strstr(rig.error.message, "cancelled"));
  printf("# ended %.3f ms after it was asked\n", (double)(ended_ns - h.asked_ns) * 1e-6);
  assert_true(ended_ns - h.asked_ns <
              1000000000u); /* a machine that does much else may stand still */

  assert_int_equal(run(&rig, 3, &h.cancel), OM_E_CANCELLED); /* it is still asked for */
  assert_int_equal(run(&rig, 3, &(om_cancel){0}), OM_OK);
  assert_int_equal(run(&rig, 3, NULL), OM_OK);
  om_text_rig_close(&rig);
}

static void a_loop_without_end_is_cancelled(void **state) {
  (void)state;
  check_mode(OM_MODE_EXACT);
  check_mode(OM_MODE_FAST);
}

static void a_run_begun_is_cancelled(void **state) {
  om_text_rig rig;
  int64_t trips = (int64_t)1 << 62;
  float x[4] = {0};
  om_cancel cancel = {0};
  om_run *begun = NULL;
  bool is_done = false;
  om_named_tensor inputs[] = {
      {"trips", om_tensor_of(OM_DTYPE_I64, 0, NULL, &trips)},
      {"x", om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){4}, x)},
  };
  om_named_tensor output = {"y", {0}};
  const om_run_args args = {sizeof args, inputs, 2, &output, 1, &cancel};
  (void)state;
  om_text_rig_open(&rig, text, 17, NULL);
  om_cancel_ask(&cancel); /* it begins on this thread */
  assert_int_equal(om_session_run_begin(rig.session, &args, &begun, &rig.error), OM_OK);
  assert_int_equal(om_run_poll(begun, &is_done, &rig.error), OM_OK);
  assert_true(is_done);
  assert_int_equal(om_run_finish(begun, &rig.error), OM_E_CANCELLED);
  om_cancel_ask(NULL);
  om_text_rig_close(&rig);
}

/* A piece of work takes several times as long where a sanitizer watches each access. */
#if defined(__SANITIZE_ADDRESS__)
enum { LIMIT_NS = 500000000 };
#else
enum { LIMIT_NS = 50000000 };
#endif
enum { WIDE = 3072, TRIES = 6 };

/* Nanoseconds from the wish to the end of a run. Where many fast processors end it before the wish,
 * the next wish comes in half of the time. */
static uint64_t cancel_a_run(om_text_rig *rig, const om_named_tensor *inputs, size_t input_count) {
  for (long wait_ns = WAIT_NS; wait_ns >= LEAST_WAIT_NS; wait_ns /= 2) {
    helper h = {.wait_ns = wait_ns};
    pthread_t thread;
    om_named_tensor output = {"y", {0}};
    const om_run_args args = {sizeof args, inputs, input_count, &output, 1, &h.cancel};
    assert_int_equal(pthread_create(&thread, NULL, ask_later, &h), 0);
    const om_status st = om_session_run(rig->session, &args, &rig->error);
    const uint64_t ended_ns = om_now_ns();
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (st == OM_OK) continue;
    assert_int_equal(st, OM_E_CANCELLED);
    return ended_ns - h.asked_ns;
  }
  fail_msg("the run always ends before the wish");
  return UINT64_MAX;
}

/* One product of 58 thousand million operations, cancelled in the middle. */
static uint64_t cancel_a_product(om_text_rig *rig, float *values) {
  om_named_tensor inputs[] = {
      {"a", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){WIDE, WIDE}, values)},
      {"b", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){WIDE, WIDE}, values)},
  };
  return cancel_a_run(rig, inputs, OM_COUNT_OF(inputs));
}

/* The best of some tries: a machine that does much else may stand still. */
static void one_kernel_is_cancelled(void **state) {
  static const char product[] =
      "(a: f32[3072, 3072], b: f32[3072, 3072]) -> y { y = MatMul(a, b); }";
  om_ctx ctx = {.allocator = om_default_allocator()};
  om_error error = {0};
  ctx.error = &error;
  float *values = om_new_bytes(&ctx, (size_t)WIDE * WIDE, sizeof *values);
  (void)state;
  assert_non_null(values);
  for (om_mode mode = OM_MODE_FAST; mode <= OM_MODE_EXACT; ++mode) {
    om_session_options options = OM_SESSION_OPTIONS_INIT;
    om_text_rig rig;
    uint64_t least = UINT64_MAX;
    options.mode = mode;
    om_text_rig_open(&rig, product, 17, &options);
    for (int i = 0; i < TRIES && least > LIMIT_NS; ++i) {
      const uint64_t took = cancel_a_product(&rig, values);
      if (took < least) least = took;
    }
    printf("# a product ended %.3f ms after it was asked\n", (double)least * 1e-6);
    assert_true(least <= LIMIT_NS);
    om_text_rig_close(&rig);
  }
  om_delete(&ctx, values);
}

static void bins_of_many_samples_are_cancelled(void **state) {
  static const char regions[] =
      "(x: f32[1, 32, 8, 8], rois: f32[8, 4], images: i64[8]) -> y {"
      "  y = RoiAlign(x, rois, images) output_height=4 output_width=4 sampling_ratio=1024; }";
  static float x[32 * 8 * 8], rois[8 * 4];
  static int64_t images[8];
  const om_named_tensor inputs[] = {
      {"x", om_tensor_of(OM_DTYPE_F32, 4, (int64_t[]){1, 32, 8, 8}, x)},
      {"rois", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){8, 4}, rois)},
      {"images", om_tensor_of(OM_DTYPE_I64, 1, (int64_t[]){8}, images)},
  };
  om_text_rig rig;
  uint64_t least = UINT64_MAX;
  (void)state;
  for (size_t i = 0; i < 8; ++i) rois[i * 4 + 2] = rois[i * 4 + 3] = 7.0f;
  om_text_rig_open(&rig, regions, 16, NULL);
  for (int i = 0; i < TRIES && least > LIMIT_NS; ++i) {
    const uint64_t took = cancel_a_run(&rig, inputs, OM_COUNT_OF(inputs));
    if (took < least) least = took;
  }
  assert_true(least <= LIMIT_NS);
  om_text_rig_close(&rig);
}

/* Asks when memory of so many bytes is allocated, which it counts. */
typedef struct asking {
  om_allocator inner;
  size_t bytes;
  om_cancel cancel;
  int count;
} asking;

static void *alloc_asking(void *user, size_t bytes) {
  asking *a = user;
  if (a->bytes > 0 && bytes - a->bytes < 256) { /* and their head */
    om_cancel_ask(&a->cancel);
    a->count += 1;
  }
  return a->inner.alloc(a->inner.user, bytes);
}

static void free_asking(void *user, void *ptr, size_t bytes) {
  asking *a = user;
  a->inner.free(a->inner.user, ptr, bytes);
}

/* Rows that a run counts, by weights of ones: they are packed by the run, and kept. */
static void what_a_cancelled_run_packed_is_whole(void **state) {
  enum { ROWS = 40, DEPTH = 300, COLS = 320 };
  static const char rows[] =
      "(x: f32[40, 300], kept: bool[40]) -> y { one = Constant() value_float=1.0; "
      "shape = Constant() value_ints=[300, 320]; w = Expand(one, shape); "
      "a = Compress(x, kept) axis=0; y = MatMul(a, w); }";
  static float x[ROWS * DEPTH];
  uint8_t kept[ROWS];
  const om_named_tensor inputs[] = {
      {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){ROWS, DEPTH}, x)},
      {"kept", om_tensor_of(OM_DTYPE_BOOL, 1, (int64_t[]){ROWS}, kept)},
  };
  asking a = {.inner = om_default_allocator()};
  const om_allocator allocator = {alloc_asking, free_asking, &a};
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_named_tensor output = {"y", {0}};
  om_text_rig rig;
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(x); ++i) x[i] = 1.0f;
  memset(kept, 1, sizeof kept);
  options.mode = OM_MODE_FAST;
  options.allocator = &allocator;
  om_text_rig_open(&rig, rows, 17, &options);
  a.bytes = DEPTH * COLS * sizeof(float);
  const om_run_args args = {sizeof args, inputs, OM_COUNT_OF(inputs), &output, 1, &a.cancel};
  assert_int_equal(om_session_run(rig.session, &args, &rig.error), OM_E_CANCELLED);
  assert_int_equal(om_text_rig_run(&rig, inputs, OM_COUNT_OF(inputs), &output, 1), OM_OK);
  const float *y = output.tensor.data;
  for (size_t i = 0; i < ROWS * COLS; ++i) assert_true(y[i] == (float)DEPTH);
  om_text_rig_close(&rig);
}

/* Eight products by weights of ones, which the first run's plan packs. */
static void a_plan_is_given_up(void **state) {
  enum { WIDTH = 320 };
  static const char products[] =
      "(x: f32[-1, 320]) -> y { one = Constant() value_float=1.0; zero = Constant() "
      "value_float=0.0;"
      " s = Constant() value_ints=[320, 320]; a = Expand(one, s); b = Expand(zero, s);"
      " c = Exp(b); d = Cos(b); e = Neg(a); f = Abs(e); g = Neg(d); h = Neg(c);"
      " p = MatMul(x, a); q = MatMul(p, b); r = MatMul(q, c); t = MatMul(r, d);"
      " u = MatMul(t, e); v = MatMul(u, f); w = MatMul(v, g); y = MatMul(w, h); }";
  static float x[WIDTH];
  const om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){1, WIDTH}, x)};
  asking a = {.inner = om_default_allocator()};
  const om_allocator allocator = {alloc_asking, free_asking, &a};
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_named_tensor output = {"y", {0}};
  om_text_rig rig;
  (void)state;
  options.mode = OM_MODE_FAST;
  options.allocator = &allocator;
  om_text_rig_open(&rig, products, 17, &options);
  a.bytes = WIDTH * WIDTH * sizeof(float);
  const om_run_args args = {sizeof args, &input, 1, &output, 1, &a.cancel};
  assert_int_equal(om_session_run(rig.session, &args, &rig.error), OM_E_CANCELLED);
  assert_int_equal(a.count, 1); /* and no more weights are packed */
  a.bytes = 0;
  assert_int_equal(om_text_rig_run(&rig, &input, 1, &output, 1), OM_OK);
  om_text_rig_close(&rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_loop_without_end_is_cancelled),
      cmocka_unit_test(a_run_begun_is_cancelled),
      cmocka_unit_test(one_kernel_is_cancelled),
      cmocka_unit_test(bins_of_many_samples_are_cancelled),
      cmocka_unit_test(what_a_cancelled_run_packed_is_whole),
      cmocka_unit_test(a_plan_is_given_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
