/* Every call of the backend fails once, in turn, while a plan is made and run: the status comes
 * through, nothing leaks, and the session works afterwards. */
#include "unit/gpu_rig.h"

enum { MOST_CALLS = 500, ELEMS = 20000 }; /* enough for an upload out of lent memory */
static const int64_t dims[] = {ELEMS};
static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;

/* A backend whose call with this number fails. */
static const om_hal *sound;
static om_hal broken;
static int calls, fail_at;

static om_status count_call(om_ctx *ctx, const char *name) {
  if (calls++ != fail_at) return OM_OK;
  return OM_FAIL(ctx, OM_E_OUT_OF_DEVICE_MEMORY, "%s was made to fail.", name);
}

#define BROKEN(function, parameters, arguments)   \
  static om_status broken_##function parameters { \
    OM_TRY(count_call(ctx, #function));           \
    return sound->function arguments;             \
  }

BROKEN(buffer_create,
       (om_ctx * ctx, om_hal_device *d, om_hal_memory m, uint64_t bytes, om_hal_buffer **out),
       (ctx, d, m, bytes, out))
BROKEN(upload,
       (om_ctx * ctx, om_hal_device *d, om_hal_buffer *b, uint64_t at, const void *p, uint64_t n),
       (ctx, d, b, at, p, n))
BROKEN(download,
       (om_ctx * ctx, om_hal_device *d, om_hal_buffer *b, uint64_t at, void *p, uint64_t n),
       (ctx, d, b, at, p, n))
BROKEN(kernels_create,
       (om_ctx * ctx, om_hal_device *d, const om_hal_kernel_desc *k, size_t n, om_hal_kernel **out),
       (ctx, d, k, n, out))
BROKEN(recording_begin,
       (om_ctx * ctx, om_hal_device *d, size_t n, uint32_t times, om_hal_recording **out),
       (ctx, d, n, times, out))
BROKEN(record_dispatch, (om_ctx * ctx, om_hal_recording *r, const om_hal_dispatch *x), (ctx, r, x))
BROKEN(record_copy,
       (om_ctx * ctx, om_hal_recording *r, const om_hal_binding *a, const om_hal_binding *b),
       (ctx, r, a, b))
BROKEN(record_barrier, (om_ctx * ctx, om_hal_recording *r), (ctx, r))
BROKEN(record_timestamp, (om_ctx * ctx, om_hal_recording *r, uint32_t i), (ctx, r, i))
BROKEN(recording_end, (om_ctx * ctx, om_hal_recording *r), (ctx, r))
BROKEN(submit,
       (om_ctx * ctx, om_hal_device *d, om_hal_recording *const *r, size_t n, uint64_t *out),
       (ctx, d, r, n, out))
BROKEN(is_done, (om_ctx * ctx, om_hal_device *d, uint64_t number, bool *out), (ctx, d, number, out))
BROKEN(wait, (om_ctx * ctx, om_hal_device *d, uint64_t number), (ctx, d, number))
BROKEN(timestamps, (om_ctx * ctx, om_hal_recording *r, uint32_t n, uint64_t *out), (ctx, r, n, out))

static void wrap_backend(void) {
  sound = rig->session->hal;
  broken = *sound;
  broken.buffer_create = broken_buffer_create;
  broken.upload = broken_upload;
  broken.download = broken_download;
  broken.kernels_create = broken_kernels_create;
  broken.recording_begin = broken_recording_begin;
  broken.record_dispatch = broken_record_dispatch;
  broken.record_copy = broken_record_copy;
  broken.record_barrier = broken_record_barrier;
  broken.record_timestamp = broken_record_timestamp;
  broken.recording_end = broken_recording_end;
  broken.submit = broken_submit;
  broken.is_done = broken_is_done;
  broken.wait = broken_wait;
  broken.timestamps = broken_timestamps;
  rig->session->hal = &broken;
  calls = 0;
}

static om_status claim_all(void) {
  for (uint32_t i = 0; i < rig->view.step_count; ++i) {
    const char *reason = NULL;
    OM_TRY(om_gpu_provider()->claim(&rig->ctx, rig->plan, i, &reason));
    assert_null(reason);
  }
  return OM_OK;
}

static om_status run(const void *const *reads, void *const *writes) {
  const om_provider *provider = om_gpu_provider();
  bool is_done = false;
  OM_TRY(provider->begin(&rig->ctx, rig->plan, 0, reads));
  OM_TRY(provider->is_done(&rig->ctx, rig->plan, 0, &is_done));
  return provider->finish(&rig->ctx, rig->plan, 0, writes);
}

/* Runs from memory that the session lends, and once more when that went back. */
static om_status run_lent(void *const *writes) {
  const om_provider *provider = om_gpu_provider();
  om_status st = OM_OK;
  void *lent[2] = {NULL};
  for (int i = 0; i < 2 && st == OM_OK; ++i) {
    st = provider->memory_lend(&rig->ctx, rig->session, ELEMS * sizeof(float), &lent[i]);
  }
  for (int i = 0; i < 4 && st == OM_OK; ++i) st = run((const void *[]){lent[i % 2]}, writes);
  for (int i = 0; i < 2; ++i) {
    if (lent[i]) provider->memory_return(&rig->ctx, rig->session, lent[i]);
  }
  return st;
}

/* From plan_begin to the last run. */
static om_status plan_and_run(const void *const *reads, void *const *writes) {
  const om_provider *provider = om_gpu_provider();
  om_error_clear(&rig->error);
  OM_TRY(provider->plan_begin(&rig->ctx, rig->session, &rig->view, &rig->plan));
  OM_TRY(claim_all());
  OM_TRY(provider->compile(&rig->ctx, rig->plan, &rig->region, 1, rig->is_fused));
  OM_TRY(run(reads, writes));
  OM_TRY(run_lent(writes));
  return run(reads, writes);
}

/* x + w in three steps, in pieces of one step; w is a weight. */
static void build(uint32_t *out) {
  static float weight[ELEMS];
  uint32_t x = rig_input(rig, 1, dims);
  uint32_t w = rig_weight(rig, 1, dims, weight);
  *out = rig_binary(rig, "Add", rig_binary(rig, "Mul", rig_binary(rig, "Add", x, w), w), x);
  rig->region.steps = rig->region_steps;
  rig->region.step_count = rig->view.step_count;
  rig->region.reads = rig->reads;
  rig->region.writes = out;
  rig->region.write_count = 1;
}

static bool fails_once(const om_gpu_options *options, bool hands_over) {
  static float input[ELEMS], output[ELEMS];
  uint32_t out;
  const void *const reads[] = {input};
  void *const writes[] = {output};
  rig_open_with(rig, options, OM_MODE_FAST);
  rig->session->features.hands_over_early = hands_over;
  build(&out);
  wrap_backend();
  om_status st = plan_and_run(reads, writes);
  bool has_failed = st != OM_OK;
  if (has_failed) {
    assert_int_equal(st, OM_E_OUT_OF_DEVICE_MEMORY);
    assert_non_null(strstr(rig->error.message, "was made to fail."));
    rig_end_plan(rig);
    rig_check(rig, plan_and_run(reads, writes));
  }
  rig_end_plan(rig);
  rig->session->hal = sound;
  rig_close(rig);
  return has_failed;
}

static void fail_every_call(const char *backend) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = backend;
  options.no_fusion = true;
  options.collect_timings = true;
  options.submission_flops = 1;
  for (int hands_over = 0; hands_over < 2; ++hands_over) {
    fail_at = 0;
    while (fails_once(&options, hands_over != 0)) assert_true(++fail_at < MOST_CALLS);
    assert_true(fail_at > 20);
  }
}

static void test_null_backend(void **state) {
  (void)state;
  fail_every_call("null");
}

static void test_device(void **state) {
  (void)state;
  fail_every_call(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_null_backend),
      cmocka_unit_test(test_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
