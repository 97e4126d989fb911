/* Which orders become turns: whatever is recorded, a command finds done all that stands before an
 * order before it. The other side of it, on a device: tests/conformance/test_hal_turns.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the above. */
#include <cmocka.h>

#ifdef OM_WITH_VULKAN
#  include "gpu/hal/vulkan/om_vk_kernel.h"
#  include "gpu/hal/vulkan/om_vk_ptx.h"
#  include "gpu/hal/vulkan/om_vk_turns.h"

enum { MOST = 64, COUNTERS = 0x10000 };

/* What was recorded, and what a device that begins commands one behind the other, at once, knows to
 * be done when one begins to read. */
typedef struct command {
  om_hal_turn turn;
  uint32_t groups;  /* 0: takes no turns */
  uint32_t orders;  /* that were asked for before it */
  bool after[MOST]; /* by number: done when it begins */
} command;

typedef struct trace {
  command commands[MOST];
  uint32_t count, orders;
  uint32_t barrier_count;
  uint32_t fence; /* the first command behind the last barrier */
} trace;

/* All that adds to the counter this command waits for, and what those found done: if they come to
 * what it waits for by themselves alone. */
static void add_awaited(trace *t, command *c) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < t->count; ++i) {
    const command *before = &t->commands[i];
    if (before->turn.own != c->turn.awaited) continue;
    sum += before->groups;
    c->after[i] = true;
    for (uint32_t k = 0; k < i; ++k) c->after[k] |= before->after[k];
  }
  assert_int_equal(sum, c->turn.awaited_count);
}

static void record(om_vk_turns *turns, trace *t, uint32_t groups) {
  command *c = &t->commands[t->count];
  *c = (command){.groups = groups, .orders = t->orders};
  if (om_vk_turns_next(turns, groups, &c->turn)) {
    t->fence = t->count;
    ++t->barrier_count;
  }
  for (uint32_t i = 0; i < t->fence; ++i) c->after[i] = true;
  if (c->turn.awaited != 0) add_awaited(t, c);
  ++t->count;
}

static void order(om_vk_turns *turns, trace *t) {
  ++t->orders;
  om_vk_turns_order(turns);
}

/* Everything before an order is done; nothing counts that does not belong to a counter's group. */
static void check(const trace *t) {
  for (uint32_t k = 0; k < t->count; ++k) {
    const command *c = &t->commands[k];
    if (c->groups == 0) assert_true(c->turn.own == 0 && c->turn.awaited == 0);
    for (uint32_t i = 0; i < k; ++i) {
      if (t->commands[i].orders < c->orders) assert_true(c->after[i]);
    }
  }
}

static void all_before_an_order_is_done(void **state) {
  uint32_t seed = 3;
  uint32_t turn_count = 0;
  (void)state;
  for (uint32_t round = 0; round < 20000; ++round) {
    om_vk_turns turns = om_vk_turns_begin(round % 7 == 0 ? 0 : COUNTERS);
    static trace t;
    t.count = t.orders = t.barrier_count = t.fence = 0;
    const uint32_t others = round % 5;
    while (t.count < MOST) {
      seed = seed * 1664525U + 1013904223U;
      if (seed >> 30 != 0) order(&turns, &t);
      record(&turns, &t, (seed >> 20) % 10 < others ? 0 : 1 + (seed >> 10) % 132);
      turn_count += t.commands[t.count - 1].turn.awaited != 0;
    }
    check(&t);
  }
  assert_true(turn_count > 100000);
}

/* The recording clears the counters: nothing adds to one before that is done. */
static void nothing_counts_before_the_first_barrier(void **state) {
  om_vk_turns turns = om_vk_turns_begin(COUNTERS);
  om_hal_turn turn;
  (void)state;
  assert_false(om_vk_turns_next(&turns, 8, &turn));
  assert_true(turn.own == 0 && turn.awaited == 0);
  om_vk_turns_order(&turns);
  assert_true(om_vk_turns_next(&turns, 8, &turn));
  assert_true(turn.own == COUNTERS && turn.awaited == 0);
  om_vk_turns_order(&turns);
  assert_false(om_vk_turns_next(&turns, 5, &turn));
  assert_true(turn.own == COUNTERS + OM_VK_TURN_BYTES && turn.awaited == COUNTERS);
  assert_int_equal(turn.awaited_count, 8);
}

/* Beside a launch that waits by itself, a kernel of another kind has a barrier to wait for it. */
static void others_beside_a_turn_take_a_barrier(void **state) {
  om_vk_turns turns = om_vk_turns_begin(COUNTERS);
  om_hal_turn turn;
  (void)state;
  om_vk_turns_order(&turns);
  assert_true(om_vk_turns_next(&turns, 4, &turn));
  om_vk_turns_order(&turns);
  assert_false(om_vk_turns_next(&turns, 4, &turn));
  assert_true(om_vk_turns_next(&turns, 0, &turn));
  assert_false(om_vk_turns_next(&turns, 0, &turn));
}

/* A chain of launches needs one barrier, and a counter each. */
static void a_chain_takes_one_barrier(void **state) {
  om_vk_turns turns = om_vk_turns_begin(COUNTERS);
  static trace t;
  (void)state;
  memset(&t, 0, sizeof t);
  for (int i = 0; i < MOST; ++i) {
    order(&turns, &t);
    record(&turns, &t, 132);
  }
  check(&t);
  assert_int_equal(t.barrier_count, 1);
  assert_int_equal(turns.line, MOST - 1);
}

/* Workgroups take turns where each has a core, or a place on one, of those that the device has. */
static void turns_are_for_the_cores_there_are(void **state) {
  static const struct {
    uint32_t cores, per_core, groups, want; /* cores 0: the driver does not say */
  } cases[] = {
      {0, 1, 132, 132},
      {0, 1, 133, 0},
      {0, 2, 264, 264},
      {114, 1, 114, 114},
      {114, 1, 115, 0},
      {114, 2, 115, 115},
      {114, 2, 229, 0},
      {144, 1, 144, 144},
  };
  static om_vk_device device; /* large for a frame */
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const om_hal_shader shader = {.takes_turns = true, .per_core = cases[i].per_core};
    om_vk_kernel kernel = {.shader = &shader};
    const om_hal_dispatch dispatch = {.kernel = (om_hal_kernel *)&kernel,
                                      .groups = {cases[i].groups, 1, 1}};
    device.adapter.cores.shaderSMCount = cases[i].cores;
    assert_int_equal(om_vk_ptx_turn_groups(&device, &dispatch), cases[i].want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_before_an_order_is_done),
      cmocka_unit_test(nothing_counts_before_the_first_barrier),
      cmocka_unit_test(others_beside_a_turn_take_a_barrier),
      cmocka_unit_test(a_chain_takes_one_barrier),
      cmocka_unit_test(turns_are_for_the_cores_there_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
  return 0;
}
#endif
