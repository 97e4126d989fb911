/* The workers' pool: every piece runs once, whoever takes it; loops inside loops, loops of several
 * threads with one pool, and workers that slept. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/om_thread.h"
#include "base/om_thread_pool.h"

enum { COUNT = 1000, LOOPS = 300, OUTSIDERS = 3 };

typedef struct rig {
  om_error error;
  om_ctx ctx;
} rig;

static void open_rig(rig *r, uint32_t thread_count) {
  *r = (rig){.ctx = {.allocator = om_default_allocator(), .thread_count = thread_count}};
  r->ctx.error = &r->error;
  assert_int_equal(om_thread_pool_create(&r->ctx, thread_count, &r->ctx.workers), OM_OK);
}

static void close_rig(rig *r) {
  om_thread_pool_destroy(&r->ctx, r->ctx.workers);
}

static void add_one(void *arg, size_t begin, size_t end) {
  uint32_t *counts = arg; /* no atomics: a piece belongs to one thread, and the loop orders them */
  for (size_t i = begin; i < end; ++i) counts[i] += 1;
}

static void check_loops(rig *r, size_t count, size_t grain) {
  uint32_t counts[COUNT] = {0};
  for (int loop = 0; loop < LOOPS; ++loop) om_parallel_for(&r->ctx, count, grain, add_one, counts);
  for (size_t i = 0; i < count; ++i) assert_int_equal(counts[i], LOOPS);
}

static void every_piece_runs_once(void **state) {
  (void)state;
  for (uint32_t threads = 1; threads <= 9; threads += 4) {
    rig r;
    open_rig(&r, threads);
    check_loops(&r, COUNT, 1);
    check_loops(&r, COUNT, 7);
    check_loops(&r, 2, 1);
    check_loops(&r, 1, 1);
    check_loops(&r, 0, 1);
    close_rig(&r);
  }
}

static void workers_that_sleep_wake_up(void **state) {
  rig r;
  (void)state;
  open_rig(&r, 3);
  for (int i = 0; i < 20; ++i) {
    check_loops(&r, 10, 1);
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* longer than they look */
  }
  close_rig(&r);
}

typedef struct pair { /* the first two pieces wait for each other: two threads are at work */
  atomic_int arrived;
  atomic_int alone;
} pair;

static void meet(void *arg, size_t begin, size_t end) {
  pair *p = arg;
  const uint64_t start = om_now_ns();
  (void)begin;
  (void)end;
  atomic_fetch_add(&p->arrived, 1);
  while (atomic_load(&p->arrived) < 2) {
    if (om_now_ns() - start > 10000000000u) {
      atomic_store(&p->alone, 1);
      return;
    }
  }
}

static void two_threads_work_at_once(void **state) {
  rig r;
  (void)state;
  open_rig(&r, 2);
  for (int i = 0; i < 10; ++i) {
    pair p = {0};
    om_parallel_for(&r.ctx, 2, 1, meet, &p);
    assert_int_equal(atomic_load(&p.arrived), 2);
    assert_int_equal(atomic_load(&p.alone), 0);
  }
  close_rig(&r);
}

static void three_pieces_for_two_threads(void **state) {
  /* One of the first two pieces waits for the other; the third is for whoever is done first. */
  rig r;
  pair p = {0};
  (void)state;
  open_rig(&r, 2);
  om_parallel_for(&r.ctx, 3, 1, meet, &p);
  assert_int_equal(atomic_load(&p.arrived), 3);
  assert_int_equal(atomic_load(&p.alone), 0);
  close_rig(&r);
}

enum { SPLIT_PIECES = 12 };

typedef struct split {
  pair pair;
  pthread_t caller;
  bool is_callers[SPLIT_PIECES];
} split;

static void note_thread(void *arg, size_t begin, size_t end) {
  split *s = arg;
  for (size_t i = begin; i < end; ++i) {
    s->is_callers[i] = pthread_equal(pthread_self(), s->caller) != 0;
    meet(&s->pair, i, i + 1);
  }
}

static void two_threads_begin_at_both_ends(void **state) {
  rig r;
  (void)state;
  open_rig(&r, 2);
  for (int loop = 0; loop < 20; ++loop) {
    split s = {.caller = pthread_self()};
    om_parallel_for(&r.ctx, SPLIT_PIECES, 1, note_thread, &s);
    assert_true(s.is_callers[0]);
    assert_false(s.is_callers[SPLIT_PIECES - 1]);
    for (size_t i = 1; i < SPLIT_PIECES; ++i) assert_true(s.is_callers[i - 1] || !s.is_callers[i]);
  }
  close_rig(&r);
}

typedef struct outer {
  om_ctx *ctx;
  uint32_t counts[8][COUNT / 8];
} outer;

static void run_inner(void *arg, size_t begin, size_t end) {
  outer *o = arg;
  for (size_t i = begin; i < end; ++i) {
    om_parallel_for(o->ctx, COUNT / 8, 3, add_one, o->counts[i]);
  }
}

static void loops_stand_in_loops(void **state) {
  static outer o;
  rig r;
  (void)state;
  open_rig(&r, 4);
  o = (outer){.ctx = &r.ctx};
  for (int loop = 0; loop < LOOPS; ++loop) om_parallel_for(&r.ctx, 8, 1, run_inner, &o);
  for (size_t i = 0; i < COUNT; ++i) assert_int_equal(o.counts[i % 8][i / 8], LOOPS);
  close_rig(&r);
}

typedef struct outsider {
  om_ctx ctx;
  uint32_t counts[COUNT];
} outsider;

static void *run_outside(void *arg) {
  outsider *o = arg;
  for (int loop = 0; loop < LOOPS; ++loop) om_parallel_for(&o->ctx, COUNT, 10, add_one, o->counts);
  return NULL;
}

static void threads_share_a_pool(void **state) {
  static outsider outsiders[OUTSIDERS];
  pthread_t threads[OUTSIDERS];
  rig r;
  (void)state;
  open_rig(&r, 3);
  for (int i = 0; i < OUTSIDERS; ++i) {
    outsiders[i] = (outsider){.ctx = r.ctx};
    assert_int_equal(pthread_create(&threads[i], NULL, run_outside, &outsiders[i]), 0);
  }
  for (int i = 0; i < OUTSIDERS; ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < OUTSIDERS; ++i) {
    for (size_t k = 0; k < COUNT; ++k) assert_int_equal(outsiders[i].counts[k], LOOPS);
  }
  close_rig(&r);
}

typedef struct halves {
  volatile float tiny; /* the least normal number */
  float results[COUNT];
} halves;

static void halve(void *arg, size_t begin, size_t end) {
  halves *h = arg;
  for (size_t i = begin; i < end; ++i) h->results[i] = h->tiny * 0.5f;
}

static void subnormals_are_as_the_caller_has_them(void **state) {
  static halves h = {.tiny = 1.17549435e-38f};
  rig r;
  (void)state;
  open_rig(&r, 3);
  for (int loop = 0; loop < LOOPS; ++loop) {
    const bool is_flushed = loop % 2 == 0;
    const uint64_t before = is_flushed ? om_flush_subnormals_begin() : 0;
    om_parallel_for(&r.ctx, COUNT, 1, halve, &h);
    if (is_flushed) om_flush_subnormals_end(before);
    for (size_t i = 1; i < COUNT; ++i) assert_true((h.results[i] > 0) == (h.results[0] > 0));
    if (!is_flushed) assert_true(h.results[0] > 0);
  }
  close_rig(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_piece_runs_once),
      cmocka_unit_test(workers_that_sleep_wake_up),
      cmocka_unit_test(two_threads_work_at_once),
      cmocka_unit_test(three_pieces_for_two_threads),
      cmocka_unit_test(two_threads_begin_at_both_ends),
      cmocka_unit_test(loops_stand_in_loops),
      cmocka_unit_test(threads_share_a_pool),
      cmocka_unit_test(subnormals_are_as_the_caller_has_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
