/* Programs: runs that allocate nothing, recordings that follow the arena, pieces, separate slabs,
 * and the forms in which an operand is read. */
#include "abi/elementwise_params.h"
#include "unit/gpu_rig.h"

enum { ELEMS = 1000 };
static const int64_t thousand[] = {ELEMS};
static gpu_rig the_rig, the_other; /* large for a stack */
static gpu_rig *const rig = &the_rig;
static gpu_rig *const other = &the_other;
static float input[4 * ELEMS], output[4 * ELEMS], second[4 * ELEMS];

static void fill(void) {
  for (int i = 0; i < 4 * ELEMS; ++i) input[i] = (float)(i - 500) * 0.25f;
}

/* x + x + ... by steps that fusion leaves apart. */
static void build_ladder(gpu_rig *r, const int64_t *dims, int steps, uint32_t *out) {
  uint32_t x = rig_input(r, 1, dims);
  *out = x;
  for (int i = 0; i < steps; ++i) *out = rig_binary(r, "Add", *out, x);
}

static void run(gpu_rig *r, float *result) {
  rig_run(r, (const void *const[]){input}, (void *const[]){result});
}

static void open_plain(const char *backend, om_gpu_options options) {
  options.struct_bytes = sizeof options;
  options.backend = backend;
  options.no_fusion = true;
  rig_open_with(rig, &options, OM_MODE_FAST);
}

static void run_allocates_nothing(const char *backend) {
  uint32_t out;
  fill();
  open_plain(backend, (om_gpu_options){0});
  build_ladder(rig, thousand, 5, &out);
  rig_compile(rig, &out, 1);
  run(rig, output);
  uint64_t host = rig->use.allocations;
  uint64_t device = rig->session->info.allocations;
  for (int i = 0; i < 3; ++i) run(rig, second);
  assert_int_equal(rig->use.allocations, host);
  assert_int_equal(rig->session->info.allocations, device);
  assert_int_equal(rig->session->info.dispatches, 5);
  assert_int_equal(rig->session->info.submissions, 1);
  rig_close(rig);
}

static void test_second_run_allocates_nothing(void **state) {
  (void)state;
  run_allocates_nothing("null");
  run_allocates_nothing(NULL);
  for (int i = 0; i < ELEMS; ++i) assert_true(output[i] == input[i] * 6.0f);
  assert_memory_equal(output, second, ELEMS * sizeof(float));
}

static void test_growing_arena_records_again(void **state) {
  const int64_t large[] = {4 * ELEMS};
  uint32_t out, large_out;
  (void)state;
  fill();
  open_plain(NULL, (om_gpu_options){0});
  build_ladder(rig, thousand, 3, &out);
  rig_compile(rig, &out, 1);
  run(rig, output);
  uint64_t small_bytes = rig->session->info.arena_bytes;

  rig_init(other);
  other->session = rig->session;
  build_ladder(other, large, 2, &large_out);
  rig_compile(other, &large_out, 1);
  run(other, second);
  for (int i = 0; i < 4 * ELEMS; ++i) assert_true(second[i] == input[i] * 3.0f);
  assert_true(rig->session->info.arena_bytes > small_bytes);

  memset(output, 0, sizeof output);
  run(rig, output);
  for (int i = 0; i < ELEMS; ++i) assert_true(output[i] == input[i] * 4.0f);
  rig_end_plan(other);
  rig_close(rig);
}

static void run_in_pieces(bool hands_over) {
  uint32_t out;
  fill();
  open_plain(NULL, (om_gpu_options){.submission_flops = 2 * ELEMS});
  rig->session->features.hands_over_early = hands_over;
  build_ladder(rig, thousand, 7, &out);
  rig_compile(rig, &out, 1);
  run(rig, output);
  assert_int_equal(rig->plan->regions[0].recording_count, 4);
  assert_int_equal(rig->session->info.submissions, hands_over ? 4 : 1);
  run(rig, second);
  assert_int_equal(rig->session->info.submissions, 1);
  assert_int_equal(rig->session->info.dispatches, 7);
  for (int i = 0; i < ELEMS; ++i) assert_true(output[i] == input[i] * 8.0f);
  assert_memory_equal(output, second, ELEMS * sizeof(float));
  rig_close(rig);
}

static void test_pieces_change_no_bit(void **state) {
  (void)state;
  run_in_pieces(false);
  run_in_pieces(true);
}

static void test_separate_slabs(void **state) {
  uint32_t out;
  (void)state;
  open_plain("null", (om_gpu_options){.device = "separate"});
  assert_true(rig->session->features.separate_slabs);
  build_ladder(rig, thousand, 5, &out);
  rig_compile(rig, &out, 1);
  run(rig, output); /* the null backend refuses a dispatch that reads and writes one buffer */
  assert_true(rig->plan->regions[0].slab_bytes[1] > 0);
  rig_close(rig);
}

static void test_timings(void **state) {
  uint32_t out;
  (void)state;
  open_plain(NULL, (om_gpu_options){.collect_timings = true});
  build_ladder(rig, thousand, 5, &out);
  rig_compile(rig, &out, 1);
  run(rig, output);
  run(rig, output);
  const om_gpu_info *info = &rig->session->info;
  if (rig->session->features.timestamps) assert_true(info->device_ms > 0.0);
  assert_true(info->wait_ms > 0.0 && info->submit_ms > 0.0 && info->record_ms > 0.0);
  rig_close(rig);
}

/* The source of the second operand of a binary operator between these shapes. */
static void expect_source(uint32_t x_rank,
                          const int64_t *x,
                          uint32_t y_rank,
                          const int64_t *y,
                          uint8_t source,
                          uint32_t inner,
                          uint32_t channels) {
  rig_open(rig, "null", OM_MODE_FAST, true);
  uint32_t out = rig_binary(rig, "Sub", rig_input(rig, x_rank, x), rig_input(rig, y_rank, y));
  rig_compile(rig, &out, 1);
  const om_gpu_chain *chain = &rig->plan->regions[0].launches[0].dispatch->chain;
  assert_int_equal(chain->items[0].source, source);
  if (source == OM_CHAIN_VECTOR) {
    assert_int_equal(chain->inner, inner);
    assert_int_equal(chain->channels, channels);
  }
  rig_close(rig);
}

static void test_operands_by_shape(void **state) {
  const int64_t image[] = {2, 3, 5, 7};
  (void)state;
  expect_source(4, image, 4, image, OM_CHAIN_TENSOR, 0, 0);
  expect_source(4, image, 4, (int64_t[]){1, 3, 1, 1}, OM_CHAIN_VECTOR, 35, 3);
  expect_source(4, (int64_t[]){1, 3, 1, 1}, 4, image, OM_CHAIN_VECTOR, 35, 3);
  expect_source(4, image, 4, (int64_t[]){2, 3, 1, 1}, OM_CHAIN_VECTOR, 35, 6);
  expect_source(4, image, 1, (int64_t[]){7}, OM_CHAIN_VECTOR, 1, 7);
  expect_source(4, image, 0, NULL, OM_CHAIN_VECTOR, 210, 1);
  expect_source(4, image, 2, (int64_t[]){5, 7}, OM_CHAIN_VECTOR, 1, 35);
  expect_source(4, image, 4, (int64_t[]){2, 1, 5, 1}, OM_CHAIN_BROADCAST, 0, 0);
  expect_source(2, (int64_t[]){4, 1}, 2, (int64_t[]){1, 6}, OM_CHAIN_BROADCAST, 0, 0);
}

/* Both operands stretched, at rank 8, against the same sum by hand. */
static void test_broadcast_values(void **state) {
  const int64_t x_dims[] = {2, 1, 3, 1, 2, 1, 2, 1};
  const int64_t y_dims[] = {1, 2, 1, 2, 1, 3, 1, 2};
  const int64_t dims[] = {2, 2, 3, 2, 2, 3, 2, 2};
  float x[24], y[24];
  (void)state;
  for (int i = 0; i < 24; ++i) {
    x[i] = (float)i;
    y[i] = (float)i * 100.0f;
  }
  rig_open(rig, NULL, OM_MODE_FAST, false);
  uint32_t a = rig_input(rig, 8, x_dims);
  uint32_t b = rig_input(rig, 8, y_dims);
  uint32_t out = rig_unary(rig, "Relu", rig_binary(rig, "Sub", b, a));
  rig_compile(rig, &out, 1);
  assert_int_equal(rig->plan->regions[0].launch_count, 1);
  rig_run(rig, (const void *const[]){x, y}, (void *const[]){output});
  for (int i = 0; i < 576; ++i) {
    int rest = i, xi = 0, yi = 0, xs = 1, ys = 1;
    for (int d = 7; d >= 0; --d) {
      int c = rest % (int)dims[d];
      rest /= (int)dims[d];
      if (x_dims[d] > 1) xi += c * xs, xs *= (int)dims[d];
      if (y_dims[d] > 1) yi += c * ys, ys *= (int)dims[d];
    }
    float want = y[yi] - x[xi];
    assert_true(output[i] == (want > 0.0f ? want : 0.0f));
  }
  rig_close(rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_second_run_allocates_nothing),
      cmocka_unit_test(test_growing_arena_records_again),
      cmocka_unit_test(test_pieces_change_no_bit),
      cmocka_unit_test(test_separate_slabs),
      cmocka_unit_test(test_timings),
      cmocka_unit_test(test_operands_by_shape),
      cmocka_unit_test(test_broadcast_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
