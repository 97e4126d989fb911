/* The order of launches: levels, and that dependent launches never share one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/om_gpu_state.h"

enum { VALUES = 8, LAUNCHES = 8, WRITTEN = 1 /* the elementwise kernel's output binding */ };

typedef struct rig {
  om_error error;
  om_memory_use use;
  om_provider_plan plan;
  om_plan_view view;
  uint32_t roots[VALUES];
  om_gpu_dispatch dispatches[LAUNCHES];
  om_gpu_launch launches[LAUNCHES];
  om_gpu_region region;
} rig;

static om_gpu_operand value(uint32_t index) {
  return (om_gpu_operand){.kind = OM_GPU_VALUE, .index = index};
}

static void init(rig *r) {
  memset(r, 0, sizeof *r);
  assert_int_equal(om_shader_get(OM_SHADER_ELEMENTWISE)->write_mask, 1 << WRITTEN);
  for (uint32_t i = 0; i < VALUES; ++i) r->roots[i] = i;
  r->view = (om_plan_view){.value_count = VALUES, .step_count = LAUNCHES};
  r->plan.view = &r->view;
  r->plan.roots = r->roots;
  r->region.launches = r->launches;
}

/* A launch of its own step that reads one value and writes another. */
static om_gpu_dispatch *add(rig *r, uint32_t reads, uint32_t writes) {
  size_t index = r->region.launch_count++;
  om_gpu_dispatch *d = &r->dispatches[index];
  d->shader = OM_SHADER_ELEMENTWISE;
  d->operands[0] = value(reads);
  d->operands[WRITTEN] = value(writes);
  d->operand_count = WRITTEN + 1;
  r->launches[index] = (om_gpu_launch){.dispatch = d, .step = (uint32_t)index};
  return d;
}

static void order(rig *r) {
  om_ctx ctx = {
      .allocator = om_default_allocator(), .use = &r->use, .error = &r->error, .thread_count = 1};
  assert_int_equal(om_gpu_order(&ctx, &r->plan, &r->region), OM_OK);
  assert_int_equal(r->use.live_bytes, 0);
}

static void check_steps(const rig *r, const uint32_t *steps, const uint32_t *levels) {
  for (size_t i = 0; i < r->region.launch_count; ++i) {
    assert_int_equal(r->launches[i].step, steps[i]);
    assert_int_equal(r->launches[i].level, levels[i]);
  }
}

static void puts_branches_side_by_side(void **state) {
  static rig r;
  (void)state;
  init(&r);
  add(&r, 0, 1);
  add(&r, 1, 2);
  add(&r, 0, 3);
  add(&r, 3, 4);
  om_gpu_dispatch *join = add(&r, 2, 5);
  join->chain.operands[0] = value(4); /* a chain's operand is waited for like any other */
  join->chain.operand_count = 1;
  order(&r);
  check_steps(&r, (uint32_t[]){0, 2, 1, 3, 4}, (uint32_t[]){0, 0, 1, 1, 2});
  assert_int_equal(r.region.level_count, 3);
}

static void waits_for_readers_and_writers_of_what_it_writes(void **state) {
  static rig r;
  (void)state;
  init(&r);
  add(&r, 0, 1);
  add(&r, 1, 2); /* reads 1 */
  add(&r, 0, 1); /* writes 1 again: after its reader */
  add(&r, 0, 1); /* and once more: after its writer */
  order(&r);
  check_steps(&r, (uint32_t[]){0, 1, 2, 3}, (uint32_t[]){0, 1, 2, 3});
}

static void sees_through_views(void **state) {
  static rig r;
  (void)state;
  init(&r);
  r.roots[2] = 1; /* value 2 is a view of value 1 */
  add(&r, 0, 1);
  add(&r, 2, 3);
  order(&r);
  check_steps(&r, (uint32_t[]){0, 1}, (uint32_t[]){0, 1});
}

static void keeps_a_steps_launches_in_order(void **state) {
  static rig r;
  (void)state;
  init(&r);
  add(&r, 0, 1);
  add(&r, 0, 2);
  r.launches[1].step = 0; /* both of step 0: the second may read the first one's scratch */
  order(&r);
  assert_int_equal(r.launches[1].level, 1);
}

static void takes_an_empty_region(void **state) {
  static rig r;
  (void)state;
  init(&r);
  order(&r);
  assert_int_equal(r.region.level_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(puts_branches_side_by_side),
      cmocka_unit_test(waits_for_readers_and_writers_of_what_it_writes),
      cmocka_unit_test(sees_through_views),
      cmocka_unit_test(keeps_a_steps_launches_in_order),
      cmocka_unit_test(takes_an_empty_region),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
