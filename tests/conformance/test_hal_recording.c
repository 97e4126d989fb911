/* Recordings, submissions and waits, on every backend. */
#include "conformance/om_hal_fixture.h"

enum { ELEMS = 3000, BYTES = ELEMS * (int)sizeof(float) };

static void resubmitted(void **state) {
  (void)state;
  om_hal_kernel *kernel = hf_kernel(HF_ADD_SCALAR);
  om_hal_buffer *a = hf_ramp(ELEMS, 0.0F, 1.0F);
  om_hal_buffer *b = hf_buffer(OM_HAL_DEVICE, BYTES);
  om_hal_recording *recording = hf_begin(2, 0);
  hf_record_add(recording, kernel, hf_bind(a, 0, BYTES), hf_bind(b, 0, BYTES), 1.0F);
  hf_barrier(recording);
  hf_record_add(recording, kernel, hf_bind(b, 0, BYTES), hf_bind(a, 0, BYTES), 2.0F);
  hf_end(recording);
  for (int run = 1; run <= 20; ++run) hf_run(recording);
  hf_expect(a, ELEMS, 60.0F, 1.0F);
  hf_free_recording(recording);
  hf_free_kernel(kernel);
  hf_free(a);
  hf_free(b);
}

/* A long chain, each dispatch on the result of the one before. */
static void dependent_dispatches(void **state) {
  (void)state;
  enum { LENGTH = 64 };
  om_hal_kernel *kernel = hf_kernel(HF_ADD_SCALAR);
  om_hal_buffer *buffers[2] = {hf_ramp(ELEMS, 0.0F, 1.0F), hf_buffer(OM_HAL_DEVICE, BYTES)};
  om_hal_recording *recording = hf_begin(LENGTH, 0);
  for (int i = 0; i < LENGTH; ++i) {
    hf_record_add(recording,
                  kernel,
                  hf_bind(buffers[i % 2], 0, BYTES),
                  hf_bind(buffers[(i + 1) % 2], 0, BYTES),
                  (float)i);
    hf_barrier(recording);
    hf_barrier(recording); /* one too many costs nothing */
  }
  hf_end(recording);
  hf_run(recording);
  hf_expect(buffers[0], ELEMS, LENGTH * (LENGTH - 1) / 2, 1.0F);
  hf_free_recording(recording);
  hf_free_kernel(kernel);
  hf_free(buffers[0]);
  hf_free(buffers[1]);
}

/* Several ranges of one buffer, side by side without a barrier, and a second operand. */
static void independent_dispatches(void **state) {
  (void)state;
  enum { PART = 1024, PARTS = 8, PART_BYTES = PART * (int)sizeof(float) };
  om_hal_kernel *add = hf_kernel(HF_ADD_SCALAR);
  om_hal_kernel *sum = hf_kernel(HF_ADD_TENSOR);
  om_hal_buffer *in = hf_ramp(PART, 5.0F, 1.0F);
  om_hal_buffer *middle = hf_buffer(OM_HAL_DEVICE, PARTS * PART_BYTES);
  om_hal_buffer *out = hf_buffer(OM_HAL_DEVICE, PART_BYTES);
  om_hal_recording *recording = hf_begin(PARTS + 1, 0);
  for (uint64_t i = 0; i < PARTS; ++i) {
    const om_hal_binding part = hf_bind(middle, i * PART_BYTES, PART_BYTES);
    hf_record_add(recording, add, hf_bind(in, 0, PART_BYTES), part, (float)i);
  }
  hf_barrier(recording);
  const hf_params params = hf_params_of(PART, 0.0F);
  const om_hal_dispatch dispatch = hf_dispatch(sum,
                                               hf_bind(middle, 2 * PART_BYTES, PART_BYTES),
                                               hf_bind(out, 0, PART_BYTES),
                                               hf_bind(middle, 7 * PART_BYTES, PART_BYTES),
                                               &params);
  HF_OK(hf.target.hal->record_dispatch(&hf.ctx, recording, &dispatch));
  hf_end(recording);
  hf_run(recording);
  hf_expect(out, PART, 19.0F, 2.0F); /* (5 + i + 2) + (5 + i + 7) */
  hf_free_recording(recording);
  hf_free_kernel(add);
  hf_free_kernel(sum);
  hf_free(in);
  hf_free(middle);
  hf_free(out);
}

static void copies_and_dispatches_mix(void **state) {
  (void)state;
  om_hal_kernel *kernel = hf_kernel(HF_ADD_SCALAR);
  om_hal_buffer *a = hf_ramp(ELEMS, 0.0F, 1.0F);
  om_hal_buffer *b = hf_buffer(OM_HAL_DEVICE, BYTES);
  om_hal_buffer *c = hf_buffer(OM_HAL_DEVICE, BYTES);
  om_hal_recording *recording = hf_begin(1, 0);
  hf_copy(recording, hf_bind(a, 0, BYTES), hf_bind(b, 0, BYTES));
  hf_barrier(recording);
  hf_record_add(recording, kernel, hf_bind(b, 0, BYTES), hf_bind(c, 0, BYTES), 10.0F);
  hf_barrier(recording);
  hf_copy(recording, hf_bind(c, 400, BYTES - 400), hf_bind(a, 0, BYTES - 400));
  hf_end(recording);
  hf_run(recording);
  hf_expect(a, ELEMS - 100, 110.0F, 1.0F);
  hf_free_recording(recording);
  hf_free_kernel(kernel);
  hf_free(a);
  hf_free(b);
  hf_free(c);
}

/* 100 recordings in one call, each on the result of the one before. */
static void many_recordings_in_one_submission(void **state) {
  (void)state;
  enum { COUNT = 100 };
  om_hal_recording *recordings[COUNT];
  om_hal_kernel *kernel = hf_kernel(HF_ADD_SCALAR);
  om_hal_buffer *buffers[2] = {hf_ramp(ELEMS, 0.0F, 1.0F), hf_buffer(OM_HAL_DEVICE, BYTES)};
  uint64_t number = 0;
  for (int i = 0; i < COUNT; ++i) {
    recordings[i] = hf_begin(1, 0);
    hf_record_add(recordings[i],
                  kernel,
                  hf_bind(buffers[i % 2], 0, BYTES),
                  hf_bind(buffers[(i + 1) % 2], 0, BYTES),
                  1.0F);
    hf_end(recordings[i]);
  }
  HF_OK(hf.target.hal->submit(&hf.ctx, hf.device, recordings, COUNT, &number));
  HF_OK(hf.target.hal->wait(&hf.ctx, hf.device, number));
  hf_expect(buffers[0], ELEMS, COUNT, 1.0F);
  for (int i = 0; i < COUNT; ++i) hf_free_recording(recordings[i]);
  hf_free_kernel(kernel);
  hf_free(buffers[0]);
  hf_free(buffers[1]);
}

/* Pieces handed over while the next is recorded, waited for once. */
static void submissions_in_order(void **state) {
  (void)state;
  enum { COUNT = 8 };
  om_hal_recording *recordings[COUNT];
  om_hal_kernel *kernel = hf_kernel(HF_ADD_SCALAR);
  om_hal_buffer *buffers[2] = {hf_ramp(ELEMS, 0.0F, 1.0F), hf_buffer(OM_HAL_DEVICE, BYTES)};
  uint64_t last = 0;
  for (int i = 0; i < COUNT; ++i) {
    recordings[i] = hf_begin(1, 0);
    hf_record_add(recordings[i],
                  kernel,
                  hf_bind(buffers[i % 2], 0, BYTES),
                  hf_bind(buffers[(i + 1) % 2], 0, BYTES),
                  1.0F);
    hf_end(recordings[i]);
    const uint64_t number = hf_submit(recordings[i]);
    assert_true(number > last);
    last = number;
  }
  bool is_done = false;
  while (!is_done) HF_OK(hf.target.hal->is_done(&hf.ctx, hf.device, last, &is_done));
  HF_OK(hf.target.hal->wait(&hf.ctx, hf.device, last));
  HF_OK(hf.target.hal->wait(&hf.ctx, hf.device, last - 1)); /* done long ago */
  hf_expect(buffers[0], ELEMS, COUNT, 1.0F);
  for (int i = 0; i < COUNT; ++i) hf_free_recording(recordings[i]);
  hf_free_kernel(kernel);
  hf_free(buffers[0]);
  hf_free(buffers[1]);
}

static void timestamps_grow(void **state) {
  (void)state;
  if (!hf.target.hal->features(hf.device)->timestamps) OM_TEST_SKIP("the device has no timestamps");
  om_hal_kernel *kernel = hf_kernel(HF_ADD_SCALAR);
  om_hal_buffer *a = hf_ramp(ELEMS, 0.0F, 1.0F);
  om_hal_buffer *b = hf_buffer(OM_HAL_DEVICE, BYTES);
  om_hal_recording *recording = hf_begin(1, 2);
  uint64_t first[2], second[2];
  HF_OK(hf.target.hal->record_timestamp(&hf.ctx, recording, 0));
  hf_record_add(recording, kernel, hf_bind(a, 0, BYTES), hf_bind(b, 0, BYTES), 1.0F);
  HF_OK(hf.target.hal->record_timestamp(&hf.ctx, recording, 1));
  hf_end(recording);
  hf_run(recording);
  HF_OK(hf.target.hal->timestamps(&hf.ctx, recording, 2, first));
  hf_run(recording);
  HF_OK(hf.target.hal->timestamps(&hf.ctx, recording, 2, second));
  assert_true(first[0] <= first[1] && first[1] <= second[0] && second[0] <= second[1]);
  if (hf.target.computes) assert_true(second[1] > first[0]);
  assert_true(second[1] - first[0] < UINT64_C(600000000000)); /* nanoseconds, not ticks */
  hf_free_recording(recording);
  hf_free_kernel(kernel);
  hf_free(a);
  hf_free(b);
}

static void limits_are_checked_before_the_driver(void **state) {
  (void)state;
  const om_hal *hal = hf.target.hal;
  const om_hal_limits *limits = hf_limits();
  om_hal_kernel *kernel = hf_kernel(HF_ADD_SCALAR);
  om_hal_buffer *a = hf_ramp(ELEMS, 0.0F, 1.0F);
  om_hal_buffer *b = hf_buffer(OM_HAL_DEVICE, BYTES);
  om_hal_recording *recording = hf_begin(1, 0);
  const hf_params params = hf_params_of(ELEMS, 1.0F);
  const om_hal_binding in = hf_bind(a, 0, BYTES), out = hf_bind(b, 0, BYTES);
  const om_hal_dispatch good = hf_dispatch(kernel, in, out, in, &params);
  om_hal_dispatch bad = good;
  if (limits->max_groups[1] < UINT32_MAX) {
    bad.groups[1] = limits->max_groups[1] + 1;
    HF_FAILS(hal->record_dispatch(&hf.ctx, recording, &bad), OM_E_UNSUPPORTED, "workgroups");
  }
  bad.groups[1] = 0;
  HF_FAILS(hal->record_dispatch(&hf.ctx, recording, &bad), OM_E_INTERNAL, "workgroups");
  bad = good;
  bad.bindings[1].bytes = limits->max_binding_bytes + 4;
  HF_FAILS(hal->record_dispatch(&hf.ctx, recording, &bad), OM_E_UNSUPPORTED, "binds at most");
  bad = good;
  bad.bindings[0].offset = 4;
  bad.bindings[0].bytes -= 4;
  if (limits->binding_alignment > 4) {
    HF_FAILS(hal->record_dispatch(&hf.ctx, recording, &bad), OM_E_INTERNAL, "aligned");
  }
  bad = good;
  bad.bindings[0].offset = limits->binding_alignment;
  HF_FAILS(hal->record_dispatch(&hf.ctx, recording, &bad), OM_E_INTERNAL, "outside its buffer");
  bad = good;
  bad.bindings[2].buffer = NULL;
  HF_FAILS(hal->record_dispatch(&hf.ctx, recording, &bad), OM_E_INTERNAL, "missing");
  bad = good;
  bad.params = NULL;
  HF_FAILS(hal->record_dispatch(&hf.ctx, recording, &bad), OM_E_INTERNAL, "parameters");
  HF_OK(hal->record_dispatch(&hf.ctx, recording, &good)); /* the recording survived all of it */
  hf_end(recording);
  hf_run(recording);
  hf_expect(b, ELEMS, 1.0F, 1.0F);
  hf_free_recording(recording);
  hf_free_kernel(kernel);
  hf_free(a);
  hf_free(b);
}

static void bad_copies_are_refused(void **state) {
  (void)state;
  const om_hal *hal = hf.target.hal;
  om_hal_buffer *a = hf_buffer(OM_HAL_DEVICE, 64);
  om_hal_buffer *b = hf_buffer(OM_HAL_DEVICE, 32);
  om_hal_recording *recording = hf_begin(0, 0);
  om_hal_binding from = hf_bind(a, 0, 64), to = hf_bind(b, 0, 64);
  HF_FAILS(hal->record_copy(&hf.ctx, recording, &from, &to), OM_E_INTERNAL, "target");
  from = hf_bind(a, 48, 32);
  HF_FAILS(hal->record_copy(&hf.ctx, recording, &from, &to), OM_E_INTERNAL, "source");
  from = hf_bind(a, 0, 6);
  HF_FAILS(hal->record_copy(&hf.ctx, recording, &from, &to), OM_E_INTERNAL, "words");
  hf_free_recording(recording); /* never ended */
  hf_free_recording(NULL);
  hf_free(a);
  hf_free(b);
}

static void bounds_of_a_recording(void **state) {
  (void)state;
  const om_hal *hal = hf.target.hal;
  om_hal_kernel *kernel = hf_kernel(HF_ADD_SCALAR);
  om_hal_buffer *a = hf_ramp(ELEMS, 0.0F, 1.0F);
  om_hal_buffer *b = hf_buffer(OM_HAL_DEVICE, BYTES);
  om_hal_recording *recording = hf_begin(0, 0);
  uint64_t ns[1];
  const hf_params params = hf_params_of(ELEMS, 1.0F);
  const om_hal_binding in = hf_bind(a, 0, BYTES), out = hf_bind(b, 0, BYTES);
  const om_hal_dispatch dispatch = hf_dispatch(kernel, in, out, in, &params);
  HF_FAILS(hal->record_dispatch(&hf.ctx, recording, &dispatch), OM_E_INTERNAL, "dispatches");
  HF_FAILS(hal->record_timestamp(&hf.ctx, recording, 0), OM_E_INTERNAL, "Timestamp 0");
  hf_end(recording);
  hf_run(recording);
  HF_FAILS(hal->timestamps(&hf.ctx, recording, 1, ns), OM_E_INTERNAL, "imestamp");
  const uint64_t next = hf_submit(recording) + 1;
  bool is_done = false;
  HF_FAILS(hal->is_done(&hf.ctx, hf.device, next, &is_done), OM_E_INTERNAL, "never made");
  HF_FAILS(hal->wait(&hf.ctx, hf.device, next), OM_E_INTERNAL, "never made");
  HF_OK(hal->wait(&hf.ctx, hf.device, next - 1));
  hf_free_recording(recording);
  hf_free_kernel(kernel);
  hf_free(a);
  hf_free(b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(resubmitted),
    cmocka_unit_test(dependent_dispatches),
    cmocka_unit_test(independent_dispatches),
    cmocka_unit_test(copies_and_dispatches_mix),
    cmocka_unit_test(many_recordings_in_one_submission),
    cmocka_unit_test(submissions_in_order),
    cmocka_unit_test(timestamps_grow),
    cmocka_unit_test(limits_are_checked_before_the_driver),
    cmocka_unit_test(bad_copies_are_refused),
    cmocka_unit_test(bounds_of_a_recording),
};

HF_MAIN(tests, hf_setup, hf_teardown)
