/* What the null backend finds wrong: each broken rule of om_hal.h is a sentence. */
#include "conformance/om_hal_fixture.h"

#include "gpu/hal/null/om_null_device.h"

enum { ELEMS = 1024, BYTES = ELEMS * (int)sizeof(float) };

typedef struct scene { /* what most of the tests start from */
  om_hal_kernel *add, *sum;
  om_hal_buffer *a, *b;     /* on the device, 3 * BYTES */
  om_hal_buffer *up, *down; /* on the host, BYTES */
  om_hal_recording *recording;
} scene;

static scene s;

static int set_up(void **state) {
  if (hf_setup(state) != 0) return 1;
  s.add = hf_kernel(HF_ADD_SCALAR);
  s.sum = hf_kernel(HF_ADD_TENSOR);
  s.a = hf_buffer(OM_HAL_DEVICE, 3 * BYTES);
  s.b = hf_buffer(OM_HAL_DEVICE, 3 * BYTES);
  s.up = hf_buffer(OM_HAL_UPLOAD, BYTES);
  s.down = hf_buffer(OM_HAL_READBACK, BYTES);
  s.recording = hf_begin(8, 1);
  return 0;
}

static void free_scene(void) {
  hf_free_recording(s.recording);
  hf_free_kernel(s.add);
  hf_free_kernel(s.sum);
  hf_free(s.a);
  hf_free(s.b);
  hf_free(s.up);
  hf_free(s.down);
  s = (scene){0};
}

/* After a test that leaves nothing wrong behind. */
static int tear_down(void **state) {
  free_scene();
  return hf_teardown(state);
}

/* After a test that broke what close reports: the log has lines of it. */
static int tear_down_broken(void **state) {
  (void)state;
  return hf.use.live_bytes == 0 ? 0 : 1;
}

static om_status add(om_hal_binding in, om_hal_binding out) {
  const hf_params params = hf_params_of(in.bytes / 4, 1.0F);
  const om_hal_dispatch dispatch = hf_dispatch(s.add, in, out, in, &params);
  return om_hal_null.record_dispatch(&hf.ctx, s.recording, &dispatch);
}

static om_status copy(om_hal_binding from, om_hal_binding to) {
  return om_hal_null.record_copy(&hf.ctx, s.recording, &from, &to);
}

static om_hal_binding part(om_hal_buffer *buffer, uint64_t index) {
  return hf_bind(buffer, index * BYTES, BYTES);
}

static void read_after_write_needs_a_barrier(void **state) {
  (void)state;
  HF_OK(add(part(s.a, 0), part(s.b, 0)));
  HF_FAILS(add(part(s.b, 0), part(s.a, 1)), OM_E_INTERNAL, "barrier is missing");
  HF_OK(add(part(s.b, 1), part(s.a, 1))); /* another range */
  hf_barrier(s.recording);
  HF_OK(add(part(s.b, 0), part(s.a, 2)));
}

static void write_after_read_needs_a_barrier(void **state) {
  (void)state;
  HF_OK(add(part(s.a, 0), part(s.b, 0)));
  HF_FAILS(add(part(s.b, 1), part(s.a, 0)), OM_E_INTERNAL, "barrier is missing");
}

static void write_after_write_needs_a_barrier(void **state) {
  (void)state;
  HF_OK(add(part(s.a, 0), part(s.b, 0)));
  HF_FAILS(add(part(s.a, 0), hf_bind(s.b, BYTES - 256, BYTES)), OM_E_INTERNAL, "writes bytes");
  HF_OK(add(part(s.a, 0), part(s.b, 1))); /* two readers do not mind each other */
}

static void copies_take_part(void **state) {
  (void)state;
  HF_OK(add(part(s.a, 0), part(s.b, 0)));
  HF_FAILS(copy(part(s.b, 0), part(s.down, 0)), OM_E_INTERNAL, "barrier is missing");
  hf_barrier(s.recording);
  HF_OK(copy(part(s.b, 0), part(s.down, 0)));
  HF_FAILS(copy(part(s.a, 0), part(s.down, 0)), OM_E_INTERNAL, "a copy writes");
  HF_FAILS(add(part(s.a, 0), part(s.b, 0)), OM_E_INTERNAL, "a copy reads");
  HF_FAILS(copy(hf_bind(s.a, 0, 512), hf_bind(s.a, 256, 512)), OM_E_INTERNAL, "overlap");
}

static void written_bindings_stand_apart(void **state) {
  (void)state;
  HF_FAILS(add(part(s.a, 0), part(s.a, 0)), OM_E_INTERNAL, "overlap");
  HF_FAILS(add(part(s.a, 0), hf_bind(s.a, BYTES - 256, BYTES)), OM_E_INTERNAL, "overlap");
}

static void separate_slabs_are_demanded(void **state) {
  (void)state;
  if (hf.target.index == 0) {
    HF_OK(add(part(s.a, 0), part(s.a, 1)));
  } else {
    HF_FAILS(add(part(s.a, 0), part(s.a, 1)), OM_E_INTERNAL, "one buffer");
  }
}

static void kinds_of_buffers(void **state) {
  (void)state;
  HF_FAILS(add(part(s.up, 0), part(s.a, 0)), OM_E_INTERNAL, "buffer of the host");
  HF_FAILS(add(part(s.a, 0), part(s.down, 0)), OM_E_INTERNAL, "buffer of the host");
  HF_FAILS(copy(part(s.down, 0), part(s.a, 0)), OM_E_INTERNAL, "readback");
  HF_FAILS(copy(part(s.a, 0), part(s.up, 0)), OM_E_INTERNAL, "upload");
}

static void destroyed_objects_are_seen(void **state) {
  (void)state;
  om_hal_buffer *gone = hf_buffer(OM_HAL_DEVICE, BYTES);
  om_hal_kernel *gone_kernel = hf_kernel(HF_ADD_SCALAR);
  hf_free(gone);
  hf_free_kernel(gone_kernel);
  HF_FAILS(add(part(gone, 0), part(s.a, 0)), OM_E_INTERNAL, "buffer was destroyed");
  HF_FAILS(copy(part(s.a, 0), part(gone, 0)), OM_E_INTERNAL, "buffer was destroyed");
  HF_FAILS(om_hal_null.upload(&hf.ctx, hf.device, gone, 0, "abc", 4), OM_E_INTERNAL, "destroyed");
  const hf_params params = hf_params_of(ELEMS, 1.0F);
  const om_hal_dispatch dispatch =
      hf_dispatch(gone_kernel, part(s.a, 0), part(s.b, 0), part(s.a, 0), &params);
  HF_FAILS(om_hal_null.record_dispatch(&hf.ctx, s.recording, &dispatch),
           OM_E_INTERNAL,
           "kernel was destroyed");
  HF_FAILS(add(part((om_hal_buffer *)s.add, 0), part(s.a, 0)), OM_E_INTERNAL, "another kind");
}

/* A recording remembers what it uses: replaced buffers make it useless. */
static void dangling_buffers_of_a_recording(void **state) {
  (void)state;
  om_hal_buffer *gone = hf_buffer(OM_HAL_DEVICE, BYTES);
  uint64_t number = 0;
  HF_OK(add(part(gone, 0), part(s.a, 0)));
  hf_end(s.recording);
  hf_run(s.recording);
  hf_free(gone);
  HF_FAILS(om_hal_null.submit(&hf.ctx, hf.device, &s.recording, 1, &number),
           OM_E_INTERNAL,
           "buffer was destroyed");
}

static void a_recording_has_an_order(void **state) {
  (void)state;
  uint64_t number = 0;
  om_hal_recording *twice[2] = {s.recording, s.recording};
  HF_FAILS(om_hal_null.submit(&hf.ctx, hf.device, &s.recording, 1, &number),
           OM_E_INTERNAL,
           "before its end");
  HF_OK(om_hal_null.record_timestamp(&hf.ctx, s.recording, 0));
  HF_FAILS(om_hal_null.record_timestamp(&hf.ctx, s.recording, 0), OM_E_INTERNAL, "twice");
  hf_end(s.recording);
  HF_FAILS(add(part(s.a, 0), part(s.b, 0)), OM_E_INTERNAL, "after its end");
  HF_FAILS(om_hal_null.recording_end(&hf.ctx, s.recording), OM_E_INTERNAL, "after its end");
  HF_FAILS(om_hal_null.submit(&hf.ctx, hf.device, twice, 2, &number), OM_E_INTERNAL, "again");
  hf_run(s.recording); /* the refused submission left no trace */
}

static void one_submission_at_a_time(void **state) {
  (void)state;
  uint64_t number = 0, ns = 0;
  HF_OK(om_hal_null.record_timestamp(&hf.ctx, s.recording, 0));
  hf_end(s.recording);
  number = hf_submit(s.recording);
  HF_FAILS(om_hal_null.submit(&hf.ctx, hf.device, &s.recording, 1, &(uint64_t){0}),
           OM_E_INTERNAL,
           "submitted again");
  HF_FAILS(om_hal_null.timestamps(&hf.ctx, s.recording, 1, &ns), OM_E_INTERNAL, "before the wait");
  HF_OK(om_hal_null.wait(&hf.ctx, hf.device, number));
  HF_OK(om_hal_null.timestamps(&hf.ctx, s.recording, 1, &ns));
}

static void host_buffers_wait_for_the_device(void **state) {
  (void)state;
  const uint32_t word = 1;
  uint32_t seen = 1;
  HF_FAILS(om_hal_null.download(&hf.ctx, hf.device, s.down, 0, &seen, 4),
           OM_E_INTERNAL,
           "never written");
  HF_OK(copy(part(s.up, 0), part(s.a, 0)));
  HF_OK(copy(part(s.b, 0), part(s.down, 0)));
  hf_end(s.recording);
  const uint64_t number = hf_submit(s.recording);
  HF_FAILS(om_hal_null.upload(&hf.ctx, hf.device, s.up, 0, &word, 4), OM_E_INTERNAL, "still read");
  HF_FAILS(om_hal_null.download(&hf.ctx, hf.device, s.down, 0, &seen, 4),
           OM_E_INTERNAL,
           "before the wait");
  HF_OK(om_hal_null.wait(&hf.ctx, hf.device, number));
  HF_OK(om_hal_null.upload(&hf.ctx, hf.device, s.up, 0, &word, 4));
  HF_OK(om_hal_null.download(&hf.ctx, hf.device, s.down, 0, &seen, 4));
  assert_int_equal(seen, 0);
}

/* A destroy returns nothing, so the next call reports it. */
static void destroyed_in_flight(void **state) {
  (void)state;
  HF_OK(copy(part(s.up, 0), part(s.a, 0)));
  hf_end(s.recording);
  const uint64_t number = hf_submit(s.recording);
  hf_free(s.a);
  HF_FAILS(om_hal_null.wait(&hf.ctx, hf.device, number), OM_E_INTERNAL, "may still use it");
  HF_OK(om_hal_null.wait(&hf.ctx, hf.device, number)); /* reported once */
  hf_free(s.a);
  HF_FAILS(om_hal_null.wait(&hf.ctx, hf.device, number), OM_E_INTERNAL, "destroyed twice");
  s.a = NULL;
  free_scene();
  om_hal_null.close(&hf.ctx, hf.device);
  assert_int_equal(hf.error.status, OM_OK);
}

static void close_reports_leaks(void **state) {
  (void)state;
  hf_free(s.a);
  hf_free(s.b);
  hf_free(s.up);
  hf_free_recording(s.recording);
  hf_free_kernel(s.sum);
  om_hal_null.close(&hf.ctx, hf.device); /* s.add and s.down are left */
  HF_FAILS(hf.error.status, OM_E_INTERNAL, "closed with 1 buffers left");
  assert_int_equal(atomic_load(&hf.messages), 2);
}

static void any_device_can_be_stood_for(void **state) {
  (void)state;
  om_hal_limits limits = *hf_limits();
  const om_hal_features features = {.subgroups = true, .storage_16bit = true};
  om_hal_device *device = NULL;
  om_hal_kernel *kernel = NULL;
  const om_hal_kernel_desc desc = hf_kernel_desc(HF_ADD_SCALAR);
  limits.max_invocations = 128;
  HF_OK(om_null_device_open(&hf.ctx, &limits, &features, &device));
  assert_true(om_hal_null.features(device)->subgroups);
  HF_FAILS(om_hal_null.kernels_create(&hf.ctx, device, &desc, 1, &kernel),
           OM_E_UNSUPPORTED,
           "takes 128 invocations");
  om_hal_null.close(&hf.ctx, device);
}

#define CHECK(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    CHECK(read_after_write_needs_a_barrier),
    CHECK(write_after_read_needs_a_barrier),
    CHECK(write_after_write_needs_a_barrier),
    CHECK(copies_take_part),
    CHECK(written_bindings_stand_apart),
    CHECK(separate_slabs_are_demanded),
    CHECK(kinds_of_buffers),
    CHECK(destroyed_objects_are_seen),
    CHECK(dangling_buffers_of_a_recording),
    CHECK(a_recording_has_an_order),
    CHECK(one_submission_at_a_time),
    CHECK(host_buffers_wait_for_the_device),
    cmocka_unit_test_setup_teardown(destroyed_in_flight, set_up, tear_down_broken),
    cmocka_unit_test_setup_teardown(close_reports_leaks, set_up, tear_down_broken),
    CHECK(any_device_can_be_stood_for),
};

int main(void) {
  int failures = 0;
  for (size_t i = 0; i < 2; ++i) {
    hf.target = (hf_target){"null", &om_hal_null, i, false, false};
    failures += cmocka_run_group_tests(tests, NULL, NULL);
  }
  return failures == 0 ? 0 : 1;
}
