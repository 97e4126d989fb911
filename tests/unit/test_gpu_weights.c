/* Constants on the device: made once, small ones together. */
#include "unit/gpu_rig.h"

static gpu_rig the_rig; /* large for a stack */
static gpu_rig *const rig = &the_rig;

static int fills; /* calls of count_fill */

static void count_fill(om_ctx *ctx, const void *arg, const void *source, void *target) {
  (void)ctx;
  (void)arg;
  memcpy(target, source, 8);
  ++fills;
}

static om_gpu_block get(const void *source, const char *recipe, uint64_t bytes, om_gpu_fill fill) {
  om_gpu_block block = {0};
  const om_gpu_source from = {.data = source, .bytes = bytes};
  rig_check(rig,
            om_gpu_store_get(&rig->ctx,
                             rig->session,
                             &rig->session->weights,
                             &from,
                             recipe,
                             bytes,
                             fill,
                             NULL,
                             &block));
  return block;
}

static void test_constants_are_found_again(void **state) {
  static const float data[4] = {1, 2, 3, 4};
  (void)state;
  rig_open(rig, "null", OM_MODE_FAST, false);
  fills = 0;
  om_gpu_block a = get(data, "pairs", 8, count_fill);
  om_gpu_block b = get(data, "pairs", 8, count_fill);
  om_gpu_block c = get(data, "others", 8, count_fill);
  om_gpu_block d = get(data, "pairs", 16, NULL);
  assert_int_equal(fills, 2);
  assert_true(a.buffer == b.buffer && a.offset == b.offset);
  assert_true(a.offset != c.offset && a.offset != d.offset);
  rig_close(rig);
}

static void test_small_ones_share_a_buffer(void **state) {
  static const uint8_t data[1000][3];
  static uint8_t large[2 << 20];
  (void)state;
  rig_open(rig, "null", OM_MODE_FAST, false);
  uint64_t before = rig->session->info.allocations;
  for (int i = 0; i < 1000; ++i) {
    om_gpu_block block = get(data[i], "as it is", sizeof data[i], NULL);
    assert_int_equal(block.bytes, 4);
    assert_int_equal(block.offset % OM_GPU_ALIGNMENT, 0);
  }
  assert_int_equal(rig->session->info.allocations, before + 1);
  om_gpu_block block = get(large, "as it is", sizeof large, NULL);
  assert_int_equal(block.offset, 0);
  assert_int_equal(rig->session->info.allocations, before + 2);
  rig_close(rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_constants_are_found_again),
      cmocka_unit_test(test_small_ones_share_a_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
