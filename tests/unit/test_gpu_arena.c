/* Places in the arena: nothing alive overlaps, slabs keep their limit, colors keep apart. */
#include "unit/gpu_rig.h"

enum { COUNT = 200, LIMIT = 64 * 1024 };

static om_provider_session limited(uint64_t limit) {
  om_provider_session session = {0};
  session.limits.max_binding_bytes = limit;
  session.limits.max_buffer_bytes = limit * 2;
  return session;
}

static om_provider_session session;
static om_gpu_slot slots[COUNT];
static uint64_t slab_bytes[OM_GPU_MAX_SLABS];
static om_error error;
static om_ctx ctx;

static int setup(void **state) {
  (void)state;
  memset(slots, 0, sizeof slots);
  error = (om_error){0};
  ctx = (om_ctx){.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  return 0;
}

static void check_places(uint32_t count, uint64_t limit) {
  for (uint32_t i = 0; i < count; ++i) {
    assert_true(slots[i].slab < OM_GPU_MAX_SLABS);
    assert_int_equal(slots[i].offset % OM_GPU_ALIGNMENT, 0);
    assert_true(slots[i].offset + slots[i].bytes <= slab_bytes[slots[i].slab]);
    assert_true(slab_bytes[slots[i].slab] <= limit);
    for (uint32_t j = 0; j < i; ++j) {
      if (slots[i].slab != slots[j].slab) continue;
      assert_int_equal(slots[i].color, slots[j].color);
      if (slots[i].last < slots[j].first || slots[j].last < slots[i].first) continue;
      assert_true(slots[i].offset + slots[i].bytes <= slots[j].offset ||
                  slots[j].offset + slots[j].bytes <= slots[i].offset);
    }
  }
}

static void fill_slots(uint32_t count, uint32_t colors) {
  uint32_t seed = 1;
  for (uint32_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    slots[i] = (om_gpu_slot){.bytes = (seed >> 16) % 6000 * 4,
                             .first = i / 2,
                             .last = i / 2 + (seed >> 8) % 9,
                             .color = colors > 1 ? seed >> 28 & (colors - 1) : 0};
  }
}

static void test_one_slab_where_it_fits(void **state) {
  (void)state;
  session = limited(1 << 24);
  fill_slots(COUNT, 1);
  assert_int_equal(om_gpu_arena_place(&ctx, &session, slots, COUNT, slab_bytes), OM_OK);
  check_places(COUNT, 1 << 24);
  assert_true(slab_bytes[0] > 0);
  assert_int_equal(slab_bytes[1], 0);
}

static void test_slabs_keep_the_binding_limit(void **state) {
  (void)state;
  session = limited(LIMIT);
  fill_slots(COUNT, 1);
  assert_int_equal(om_gpu_arena_place(&ctx, &session, slots, COUNT, slab_bytes), OM_OK);
  check_places(COUNT, LIMIT);
  assert_true(slab_bytes[1] > 0);
}

static void test_colors_never_share(void **state) {
  (void)state;
  session = limited(LIMIT);
  fill_slots(COUNT, 4);
  assert_int_equal(om_gpu_arena_place(&ctx, &session, slots, COUNT, slab_bytes), OM_OK);
  check_places(COUNT, LIMIT);
}

static void test_too_many_slabs_is_said(void **state) {
  (void)state;
  session = limited(OM_GPU_ALIGNMENT);
  for (uint32_t i = 0; i < COUNT; ++i) slots[i] = (om_gpu_slot){.bytes = 256, .last = COUNT};
  assert_int_equal(om_gpu_arena_place(&ctx, &session, slots, COUNT, slab_bytes), OM_E_UNSUPPORTED);
  assert_non_null(strstr(error.message, "slabs of 256 bytes"));
}

static void test_nothing_needs_nothing(void **state) {
  (void)state;
  session = limited(LIMIT);
  assert_int_equal(om_gpu_arena_place(&ctx, &session, slots, 0, slab_bytes), OM_OK);
  assert_int_equal(slab_bytes[0], 0);
}

static void test_grids_stay_within_limits(void **state) {
  const om_hal_limits limits = {.max_groups = {65535, 65535, 65535}};
  const uint64_t counts[] = {0, 1, 65535, 65536, 65537, 100000000, 281462092005375};
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(counts); ++i) {
    uint32_t groups[3];
    om_gpu_split_groups(&limits, counts[i], groups);
    uint64_t total = (uint64_t)groups[0] * groups[1] * groups[2];
    assert_true(total >= counts[i] && total > 0);
    for (int k = 0; k < 3; ++k) assert_true(groups[k] >= 1 && groups[k] <= 65535);
    assert_true(counts[i] > 65535 || total <= counts[i] + 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_one_slab_where_it_fits, setup),
      cmocka_unit_test_setup(test_slabs_keep_the_binding_limit, setup),
      cmocka_unit_test_setup(test_colors_never_share, setup),
      cmocka_unit_test_setup(test_too_many_slabs_is_said, setup),
      cmocka_unit_test_setup(test_nothing_needs_nothing, setup),
      cmocka_unit_test(test_grids_stay_within_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
