/* One long kernel of each kind is ended from another thread: what it still computes then takes less
 * than 50 ms of its thread's time, whatever else the machine does. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "harness/om_model_text.h"

enum { MOST_INPUTS = 3, TEXT_BYTES = 1 << 16, TRIES = 3 };
enum { WAIT_NS = 60000000, LEAST_WAIT_NS = 1000000 };

/* A piece of work takes several times as long where a sanitizer watches each access. */
#if defined(__SANITIZE_ADDRESS__)
enum { LIMIT_NS = 500000000 };
#else
enum { LIMIT_NS = 50000000 };
#endif

/* What an input's elements are. */
typedef enum contents {
  MIXED, /* of 0 .. 1, as if drawn */
  SMALL, /* integers below 7, as if drawn */
  TEXTS, /* one long text each time */
} contents;

typedef struct input {
  const char *name;
  om_dtype dtype;
  uint32_t rank;
  int64_t dims[4];
  contents fill;
} input;

typedef struct kernel {
  const char *name;
  int64_t opset;
  const char *text;
  input inputs[MOST_INPUTS];
} kernel;

#define F32 OM_DTYPE_F32
#define I64 OM_DTYPE_I64
#define STR OM_DTYPE_STRING

/* Each takes 150 ms or more on an AMD EPYC of 2.6 GHz (2026-12-01). */
static const kernel kernels[] = {
    {"a deep product of integers",
     17,
     "(a: i64[512, 20000], b: i64[20000, 64]) -> y { y = MatMul(a, b); }",
     {{"a", I64, 2, {512, 20000}, SMALL}, {"b", I64, 2, {20000, 64}, SMALL}}},
    {"a kernel as large as its image",
     17,
     "(x: f32[1, 1, 1500, 1500], w: f32[1, 1, 1400, 1400]) -> y { y = Conv(x, w); }",
     {{"x", F32, 4, {1, 1, 1500, 1500}, MIXED}, {"w", F32, 4, {1, 1, 1400, 1400}, MIXED}}},
    {"millions of passes",
     17,
     "(x: f32[1, 1, 2, 2], w: f32[1, 1, 1500, 1500]) -> y {"
     "  y = ConvTranspose(x, w) strides=[1500, 1500]; }",
     {{"x", F32, 4, {1, 1, 2, 2}, MIXED}, {"w", F32, 4, {1, 1, 1500, 1500}, MIXED}}},
    {"moved taps",
     19,
     "(x: f32[1, 64, 128, 128], w: f32[64, 64, 3, 3], o: f32[1, 18, 128, 128]) -> y {"
     "  y = DeformConv(x, w, o) pads=[1, 1, 1, 1]; }",
     {{"x", F32, 4, {1, 64, 128, 128}, MIXED},
      {"w", F32, 4, {64, 64, 3, 3}, MIXED},
      {"o", F32, 4, {1, 18, 128, 128}, MIXED}}},
    {"large windows",
     17,
     "(x: f32[1, 1, 2000, 2000]) -> y { y = MaxPool(x) kernel_shape=[101, 101]; }",
     {{"x", F32, 4, {1, 1, 2000, 2000}, MIXED}}},
    {"large windows with places",
     17,
     "(x: f32[1, 1, 1000, 1000]) -> y { z, y = MaxPool(x) kernel_shape=[101, 101]; }",
     {{"x", F32, 4, {1, 1, 1000, 1000}, MIXED}}},
    {"large windows of powers",
     18,
     "(x: f32[1, 1, 1000, 1000]) -> y { y = LpPool(x) kernel_shape=[101, 101] p=3; }",
     {{"x", F32, 4, {1, 1, 1000, 1000}, MIXED}}},
    {"one mean of powers",
     18,
     "(x: f32[1, 1, 4000, 4000]) -> y { y = GlobalLpPool(x) p=3; }",
     {{"x", F32, 4, {1, 1, 4000, 4000}, MIXED}}},
    {"regions",
     17,
     "(x: f32[1, 64, 256, 256], r: f32[256, 5]) -> y {"
     "  y = MaxRoiPool(x, r) pooled_shape=[2, 2] spatial_scale=1000.0; }",
     {{"x", F32, 4, {1, 64, 256, 256}, MIXED}, {"r", F32, 2, {256, 5}, MIXED}}},
    {"a grid",
     20,
     "(t: f32[1, 2, 3]) -> y {"
     "  s = Constant() value_ints=[1, 1, 2000, 2000]; y = AffineGrid(t, s); }",
     {{"t", F32, 3, {1, 2, 3}, MIXED}}},
    {"half of a long line",
     17,
     "(x: f32[6000000]) -> y { k = Constant() value_ints=[3000000]; y, i = TopK(x, k); }",
     {{"x", F32, 1, {6000000}, MIXED}}},
    {"a long list without its doubles",
     17,
     "(x: f32[1000000]) -> y { y = Unique(x); }",
     {{"x", F32, 1, {1000000}, MIXED}}},
    {"boxes that all stay",
     17,
     "(b: f32[1, 60000, 4], s: f32[1, 1, 60000]) -> y {"
     "  n = Constant() value_ints=[60000]; t = Constant() value_float=0.999;"
     "  y = NonMaxSuppression(b, s, n, t); }",
     {{"b", F32, 3, {1, 60000, 4}, MIXED}, {"s", F32, 3, {1, 1, 60000}, MIXED}}},
    {"the places of what is not zero",
     17,
     "(x: f32[100, 100, 100, 3]) -> y { a = NonZero(x); y = NonZero(a); }",
     {{"x", F32, 4, {100, 100, 100, 3}, MIXED}}},
    {"a transform of a prime length",
     17,
     "(x: f32[1, 40009, 1]) -> y { y = DFT(x); }",
     {{"x", F32, 3, {1, 40009, 1}, MIXED}}},
    {"a determinant",
     17,
     "(x: f32[1200, 1200]) -> y { y = Det(x); }",
     {{"x", F32, 2, {1200, 1200}, MIXED}}},
    {"texts in parts",
     20,
     "(x: str[4000]) -> y { y, n = StringSplit(x) delimiter=\"ab\"; }",
     {{"x", STR, 1, {4000}, TEXTS}}},
    {"numbers as texts",
     17,
     "(x: f32[2000000]) -> y { y = Cast(x) to=8; }",
     {{"x", F32, 1, {2000000}, MIXED}}},
    {"the largest of a line",
     17,
     "(x: f32[20000000]) -> y { y = ArgMax(x); }",
     {{"x", F32, 1, {20000000}, MIXED}}},
    {"samples",
     17,
     "(x: f32[1, 1000]) -> y { y = Multinomial(x) sample_size=10000000; }",
     {{"x", F32, 2, {1, 1000}, MIXED}}},
    {"what is dropped",
     17,
     "(x: f32[10000000]) -> y { r = Constant() value_float=0.5; t = Constant() value_int=1;"
     "  b = Cast(t) to=9; y = Dropout(x, r, b); }",
     {{"x", F32, 1, {10000000}, MIXED}}},
    {"scaled features",
     17,
     "(x: f32[10000000, 1]) -> y {"
     "  y = ai.onnx.ml:Scaler(x) offset=[1.0] scale=[2.0]; }",
     {{"x", F32, 2, {10000000, 1}, MIXED}}},
    {"features side by side",
     17,
     "(x: f32[5000000, 1]) -> y {"
     "  y = ai.onnx.ml:FeatureVectorizer(x, x, x) inputdimensions=[1, 1, 1]; }",
     {{"x", F32, 2, {5000000, 1}, MIXED}}},
    {"scores",
     17,
     "(x: f32[6000000, 2]) -> y {"
     "  y = ai.onnx.ml:LinearRegressor(x) coefficients=[1.0, 2.0] targets=1; }",
     {{"x", F32, 2, {6000000, 2}, MIXED}}},
};

static uint32_t mixed(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

static double value_at(contents fill, size_t i) {
  if (fill == SMALL) return mixed((uint32_t)i) % 7;
  return (double)mixed((uint32_t)i) * 0x1p-32;
}

static char long_text[TEXT_BYTES];

static void make_input(om_ctx *ctx, const input *from, om_named_tensor *out) {
  out->name = from->name;
  out->tensor = om_tensor_of(from->dtype, from->rank, from->dims, NULL);
  const size_t count = om_tensor_elems(&out->tensor);
  void *data = om_new_bytes(ctx, count, from->dtype == STR ? sizeof(om_string) : 8);
  assert_non_null(data);
  for (size_t i = 0; i < count; ++i) {
    if (from->dtype == STR) {
      ((om_string *)data)[i] = (om_string){long_text, sizeof long_text};
    } else if (from->dtype == F32) {
      ((float *)data)[i] = (float)value_at(from->fill, i);
    } else {
      ((int64_t *)data)[i] = (int64_t)value_at(from->fill, i);
    }
  }
  out->tensor.data = data;
}

typedef struct asker {
  clockid_t clock; /* of the thread that runs */
  uint64_t wait_ns;
  uint64_t begun_ns;
  uint64_t asked_ns;
  om_cancel cancel;
  int is_over; /* without having been asked */
} asker;

static uint64_t time_of(clockid_t clock) {
  struct timespec now;
  assert_int_equal(clock_gettime(clock, &now), 0);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *ask(void *arg) {
  asker *a = arg;
  while (!__atomic_load_n(&a->is_over, __ATOMIC_RELAXED)) {
    a->asked_ns = time_of(a->clock);
    if (a->asked_ns - a->begun_ns > a->wait_ns) break;
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  om_cancel_ask(&a->cancel);
  return NULL;
}

/* Nanoseconds that the run's thread works on after it was asked to end. Where it has ended before
 * that, on a faster processor or since the other thread did not get its turn, it is asked sooner.
 */
static uint64_t cancel(om_text_rig *rig, const om_named_tensor *inputs, size_t input_count) {
  for (uint64_t wait_ns = WAIT_NS; wait_ns >= LEAST_WAIT_NS; wait_ns /= 2) {
    asker a = {.wait_ns = wait_ns};
    pthread_t thread;
    om_named_tensor output = {"y", {0}};
    const om_run_args args = {sizeof args, inputs, input_count, &output, 1, &a.cancel};
    assert_int_equal(pthread_getcpuclockid(pthread_self(), &a.clock), 0);
    a.begun_ns = time_of(a.clock);
    assert_int_equal(pthread_create(&thread, NULL, ask, &a), 0);
    const om_status st = om_session_run(rig->session, &args, &rig->error);
    const uint64_t ended_ns = time_of(a.clock);
    __atomic_store_n(&a.is_over, 1, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    if (st == OM_OK) continue;
    assert_int_equal(st, OM_E_CANCELLED);
    return ended_ns - a.asked_ns;
  }
  fail_msg("the run always ends before the wish");
  return UINT64_MAX;
}

static void check(const kernel *k) {
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error};
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_named_tensor inputs[MOST_INPUTS];
  size_t count = 0;
  uint64_t least = UINT64_MAX;
  om_text_rig rig;
  options.thread_count = 1; /* the caller's, whose time is read */
  for (; count < MOST_INPUTS && k->inputs[count].name; ++count) {
    make_input(&ctx, &k->inputs[count], &inputs[count]);
  }
  om_text_rig_open(&rig, k->text, k->opset, &options);
  for (int i = 0; i < TRIES && least > LIMIT_NS; ++i) {
    const uint64_t took = cancel(&rig, inputs, count);
    if (took < least) least = took;
  }
  printf("# %s: ended after %.1f ms\n", k->name, (double)least * 1e-6);
  assert_true(least <= LIMIT_NS);
  om_text_rig_close(&rig);
  for (size_t i = 0; i < count; ++i) {
    void *data = NULL;
    memcpy(&data, &inputs[i].tensor.data, sizeof data);
    om_delete(&ctx, data);
  }
}

static void long_kernels_are_cancelled(void **state) {
  (void)state;
  memset(long_text, 'a', sizeof long_text);
  for (size_t i = 0; i < OM_COUNT_OF(kernels); ++i) check(&kernels[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(long_kernels_are_cancelled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
