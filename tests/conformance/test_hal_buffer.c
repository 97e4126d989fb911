/* Buffers and their data, on every backend. */
#include "conformance/om_hal_fixture.h"

static void round_trip(size_t count) {
  om_hal_buffer *buffer = hf_ramp(count, 1.0F, 0.25F);
  hf_expect(buffer, count, 1.0F, 0.25F);
  hf_free(buffer);
}

static void uploads_come_back(void **state) {
  (void)state;
  round_trip(1);
  round_trip(255);
  round_trip(4096);
}

/* Longer than both halves of the staging memory together. */
static void long_uploads_come_back(void **state) {
  (void)state;
  round_trip(5 * 1024 * 1024 + 1);
}

static void uploads_keep_their_place(void **state) {
  (void)state;
  om_hal_buffer *buffer = hf_ramp(1000, 0.0F, 1.0F);
  const float middle[3] = {-1.0F, -2.0F, -3.0F};
  float seen[5];
  hf_upload(buffer, 500 * sizeof(float), middle, sizeof middle);
  hf_read(buffer, 499 * sizeof(float), seen, sizeof seen);
  if (hf.target.computes) {
    const float expected[5] = {499.0F, -1.0F, -2.0F, -3.0F, 503.0F};
    assert_memory_equal(seen, expected, sizeof seen);
  }
  hf_free(buffer);
}

static void later_uploads_win(void **state) {
  (void)state;
  om_hal_buffer *buffer = hf_buffer(OM_HAL_DEVICE, 4 * sizeof(float));
  for (int i = 0; i < 10; ++i) {
    const float values[4] = {(float)i, (float)i + 1, (float)i + 2, (float)i + 3};
    hf_upload(buffer, 0, values, sizeof values);
  }
  hf_expect(buffer, 4, 9.0F, 1.0F);
  hf_free(buffer);
}

/* The data may be gone when upload returns. */
static void uploads_read_during_the_call(void **state) {
  (void)state;
  om_hal_buffer *buffer = hf_buffer(OM_HAL_DEVICE, 4 * sizeof(float));
  float values[4] = {1.0F, 2.0F, 3.0F, 4.0F};
  hf_upload(buffer, 0, values, sizeof values);
  memset(values, 0xff, sizeof values);
  hf_expect(buffer, 4, 1.0F, 1.0F);
  hf_free(buffer);
}

static void host_buffers_feed_copies(void **state) {
  (void)state;
  om_hal_buffer *upload = hf_buffer(OM_HAL_UPLOAD, 1024);
  om_hal_buffer *device = hf_buffer(OM_HAL_DEVICE, 1024);
  float values[256];
  for (int i = 0; i < 256; ++i) values[i] = (float)i * 3.0F;
  om_hal_recording *recording = hf_begin(0, 0);
  hf_copy(recording, hf_bind(upload, 0, 1024), hf_bind(device, 0, 1024));
  hf_end(recording);
  for (int run = 0; run < 3; ++run) {
    values[0] = 0.0F;
    hf_upload(upload, 0, values, sizeof values);
    hf_run(recording);
    hf_expect(device, 256, 0.0F, 3.0F);
  }
  hf_free_recording(recording);
  hf_free(upload);
  hf_free(device);
}

/* What the host writes into lent memory is there for the next submission, and the host reads it. */
static void lent_memory_feeds_copies(void **state) {
  (void)state;
  enum { BYTES = 256 * sizeof(float) };
  om_hal_buffer *lent[3] = {NULL};
  if (!hf.target.hal->host_view) {
    OM_TEST_SKIP("the backend lends no memory");
  }
  om_hal_buffer *device = hf_buffer(OM_HAL_DEVICE, BYTES);
  for (int k = 0; k < 3; ++k) { /* also where they share a block of the device's */
    lent[k] = hf_buffer(OM_HAL_LENT, BYTES + 4);
    float *values = hf.target.hal->host_view(hf.device, lent[k]);
    assert_non_null(values);
    assert_int_equal((uintptr_t)values % 64, 0);
    for (int i = 0; i < 257; ++i) values[i] = (float)(i + k);
  }
  for (int k = 0; k < 3; ++k) {
    float *values = hf.target.hal->host_view(hf.device, lent[k]);
    om_hal_recording *recording = hf_begin(0, 0);
    hf_copy(recording, hf_bind(lent[k], 4, BYTES), hf_bind(device, 0, BYTES));
    hf_end(recording);
    for (int run = 0; run < 3; ++run) {
      hf_run(recording);
      hf_expect(device, 256, values[1], 1.0F);
      for (int i = 0; i < 257; ++i) values[i] += 5.0F;
    }
    hf_free_recording(recording);
  }
  HF_FAILS(hf.target.hal->upload(&hf.ctx, hf.device, lent[0], 0, "abc", 4), OM_E_INTERNAL, "lent");
  for (int k = 0; k < 3; ++k) hf_free(lent[k]);
  hf_free(device);
}

/* A driver may allow 4096 allocations in all. */
static void many_small_buffers(void **state) {
  (void)state;
  enum { COUNT = 5000 };
  static om_hal_buffer *buffers[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    const float value = (float)i;
    buffers[i] = hf_buffer(OM_HAL_DEVICE, 4);
    hf_upload(buffers[i], 0, &value, 4);
  }
  hf_expect(buffers[0], 1, 0.0F, 0.0F);
  hf_expect(buffers[COUNT - 1], 1, (float)(COUNT - 1), 0.0F);
  for (int i = 0; i < COUNT; ++i) hf_free(buffers[i]);
}

/* 300 weights of 32 KiB: the submissions are numbered, so the next number tells how many. */
static void uploads_are_batched(void **state) {
  (void)state;
  enum { COUNT = 300, ELEMS = 8 * 1024 };
  static om_hal_buffer *buffers[COUNT];
  om_hal_recording *recording = hf_begin(0, 0);
  hf_end(recording);
  const uint64_t before = hf_submit(recording);
  HF_OK(hf.target.hal->wait(&hf.ctx, hf.device, before));
  for (int i = 0; i < COUNT; ++i) buffers[i] = hf_ramp(ELEMS, (float)i, 1.0F);
  const uint64_t after = hf_submit(recording);
  HF_OK(hf.target.hal->wait(&hf.ctx, hf.device, after));
  assert_true(after - before <= 3);
  for (int i = 0; i < COUNT; i += 37) hf_expect(buffers[i], ELEMS, (float)i, 1.0F);
  for (int i = 0; i < COUNT; ++i) hf_free(buffers[i]);
  hf_free_recording(recording);
}

/* Nothing of an upload is outstanding when its buffer goes. */
static void buffers_go_right_after_an_upload(void **state) {
  (void)state;
  for (int i = 0; i < 20; ++i) hf_free(hf_ramp(1000, 0.0F, 1.0F));
  hf_free(NULL);
}

static void bad_sizes_are_refused(void **state) {
  (void)state;
  om_hal_buffer *buffer = NULL;
  om_ctx *ctx = &hf.ctx;
  const om_hal *hal = hf.target.hal;
  const uint64_t limit = hf_limits()->max_buffer_bytes;
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)limit + 4);
  HF_FAILS(hal->buffer_create(ctx, hf.device, OM_HAL_DEVICE, 0, &buffer), OM_E_INTERNAL, "words");
  HF_FAILS(hal->buffer_create(ctx, hf.device, OM_HAL_DEVICE, 6, &buffer), OM_E_INTERNAL, "words");
  HF_FAILS(hal->buffer_create(ctx, hf.device, OM_HAL_DEVICE, limit + 4, &buffer),
           OM_E_OUT_OF_DEVICE_MEMORY,
           text);
  assert_null(buffer);
}

static void bad_ranges_are_refused(void **state) {
  (void)state;
  om_ctx *ctx = &hf.ctx;
  const om_hal *hal = hf.target.hal;
  om_hal_buffer *buffer = hf_buffer(OM_HAL_DEVICE, 64);
  om_hal_buffer *readback = hf_buffer(OM_HAL_READBACK, 64);
  char data[128] = {0};
  HF_FAILS(hal->upload(ctx, hf.device, buffer, 0, data, 68), OM_E_INTERNAL, "68");
  HF_FAILS(hal->upload(ctx, hf.device, buffer, 64, data, 4), OM_E_INTERNAL, "64");
  HF_FAILS(hal->upload(ctx, hf.device, buffer, UINT64_MAX - 3, data, 8), OM_E_INTERNAL, "outside");
  HF_FAILS(hal->upload(ctx, hf.device, buffer, 2, data, 4), OM_E_INTERNAL, "words");
  HF_FAILS(hal->upload(ctx, hf.device, readback, 0, data, 4), OM_E_INTERNAL, "readback");
  HF_FAILS(hal->download(ctx, hf.device, readback, 4, data, 64), OM_E_INTERNAL, "outside");
  HF_FAILS(hal->download(ctx, hf.device, buffer, 0, data, 4), OM_E_INTERNAL, "readback");
  hf_free(buffer);
  hf_free(readback);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(uploads_come_back),
    cmocka_unit_test(long_uploads_come_back),
    cmocka_unit_test(uploads_keep_their_place),
    cmocka_unit_test(later_uploads_win),
    cmocka_unit_test(uploads_read_during_the_call),
    cmocka_unit_test(host_buffers_feed_copies),
    cmocka_unit_test(lent_memory_feeds_copies),
    cmocka_unit_test(many_small_buffers),
    cmocka_unit_test(uploads_are_batched),
    cmocka_unit_test(buffers_go_right_after_an_upload),
    cmocka_unit_test(bad_sizes_are_refused),
    cmocka_unit_test(bad_ranges_are_refused),
};

HF_MAIN(tests, hf_setup, hf_teardown)
