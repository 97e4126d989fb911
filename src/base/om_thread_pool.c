/* Workers: see om_thread_pool.h.
 *
 * A loop under way lies in the pool. Its state is one word: seats that workers may still take, and
 * how many are inside. To join is to trade a seat for a place inside, and what belongs to the loop
 * is read after that alone; the caller takes the seats away and waits until nobody is inside. So no
 * lock is held but to fall asleep and to wake.
 *
 * Pieces are taken from both ends: by odd seats, the last among them, from the last piece on, by
 * the others and the caller from the first on. So two threads find that part of a tensor in their
 * own caches which they wrote in the loop before.
 */
#include "base/om_thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/om_thread.h"

enum {
  SEAT = 1u << 16, /* of state; below: who is inside */
  INSIDE_MASK = SEAT - 1,
  MAX_HELPERS = 1023,
  SPIN_NS = 200000, /* to look for work before falling asleep: what a step runs on one thread */
  SPIN_LOOKS = 32,  /* between two looks at the clock */
  PAGE_HELPERS = 15 /* a page's workers (bindings/web/web.cmake) */
};

struct om_thread_pool {
  atomic_bool is_busy;     /* a loop is under way */
  atomic_bool is_ending;   /* workers return */
  atomic_uint state;       /* SEAT * seats + workers inside */
  atomic_uint sleepers;    /* workers that sleep, or are about to */
  atomic_bool has_waiting; /* the caller sleeps, or is about to */
  atomic_size_t taken;     /* pieces, or more when none is left */
  atomic_size_t ends[2];   /* how many of them from the first on, and from the last on */
  om_piece_fn fn;
  const void *arg;
  size_t piece_count;
  uint64_t spin_ns;
  pthread_mutex_t lock; /* for the two conditions alone */
  pthread_cond_t wake;  /* seats, or the end */
  pthread_cond_t done;  /* nobody is inside */
  bool is_short;        /* no more workers can be made */
  uint32_t helper_count;
  uint32_t helper_room;
  pthread_t *helpers; /* owned */
};

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static bool has_work(om_thread_pool *pool) {
  return atomic_load(&pool->state) >= SEAT || atomic_load(&pool->is_ending);
}

static bool is_empty(om_thread_pool *pool) {
  return (atomic_load(&pool->state) & INSIDE_MASK) == 0;
}

/* Looks until it is so, or for spin_ns. */
static bool look_for(om_thread_pool *pool, bool (*is_so)(om_thread_pool *pool)) {
  const uint64_t begin = om_now_ns();
  do {
    for (int i = 0; i < SPIN_LOOKS; ++i) {
      if (is_so(pool)) return true;
      relax();
    }
  } while (om_now_ns() - begin < pool->spin_ns);
  return false;
}

/* ---- Workers ---- */

static void take_pieces(om_thread_pool *pool, bool is_from_last) {
  while (atomic_fetch_add(&pool->taken, 1) < pool->piece_count) {
    const size_t i = atomic_fetch_add(&pool->ends[is_from_last], 1);
    pool->fn(pool->arg, is_from_last ? pool->piece_count - 1 - i : i);
  }
}

static void await_work(om_thread_pool *pool) {
  if (look_for(pool, has_work)) return;
  (void)pthread_mutex_lock(&pool->lock);
  atomic_fetch_add(&pool->sleepers, 1);
  while (!has_work(pool)) (void)pthread_cond_wait(&pool->wake, &pool->lock);
  atomic_fetch_sub(&pool->sleepers, 1);
  (void)pthread_mutex_unlock(&pool->lock);
}

/* The number of the seat; 0: there is none. */
static unsigned join(om_thread_pool *pool) {
  unsigned state = atomic_load(&pool->state);
  while (state >= SEAT) {
    if (atomic_compare_exchange_weak(&pool->state, &state, state - SEAT + 1)) return state / SEAT;
  }
  return 0;
}

static void leave(om_thread_pool *pool) {
  atomic_fetch_and(&pool->state, INSIDE_MASK); /* no piece is left: nobody need join */
  if ((atomic_fetch_sub(&pool->state, 1) & INSIDE_MASK) != 1) return;
  if (!atomic_load(&pool->has_waiting)) return;
  (void)pthread_mutex_lock(&pool->lock);
  (void)pthread_cond_signal(&pool->done);
  (void)pthread_mutex_unlock(&pool->lock);
}

static void *work(void *arg) {
  om_thread_pool *pool = arg;
  for (;;) {
    await_work(pool);
    if (atomic_load(&pool->is_ending)) return NULL;
    const unsigned seat = join(pool);
    if (seat == 0) continue;
    take_pieces(pool, seat % 2 == 1);
    leave(pool);
  }
}

static void make_workers(om_thread_pool *pool, uint32_t wanted) {
  while (pool->helper_count < wanted && !pool->is_short) {
    pool->is_short = pool->helper_count == pool->helper_room ||
                     om_thread_start(&pool->helpers[pool->helper_count], work, pool) != 0;
    if (!pool->is_short) ++pool->helper_count;
  }
}

/* ---- Loops ---- */

static void begin(om_thread_pool *pool, uint32_t seats) {
  atomic_store(&pool->taken, 0);
  atomic_store(&pool->ends[0], 0);
  atomic_store(&pool->ends[1], 0);
  atomic_store(&pool->state, seats * SEAT);
  if (atomic_load(&pool->sleepers) == 0) return;
  (void)pthread_mutex_lock(&pool->lock);
  const uint32_t sleepers = atomic_load(&pool->sleepers);
  for (uint32_t i = 0; i < seats && i < sleepers; ++i) (void)pthread_cond_signal(&pool->wake);
  (void)pthread_mutex_unlock(&pool->lock);
}

static void end(om_thread_pool *pool) {
  atomic_fetch_and(&pool->state, INSIDE_MASK);
  if (look_for(pool, is_empty)) return;
#ifdef __EMSCRIPTEN__
  while (!is_empty(pool)) relax();
#else
  (void)pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->has_waiting, true);
  while (!is_empty(pool)) (void)pthread_cond_wait(&pool->done, &pool->lock);
  atomic_store(&pool->has_waiting, false);
  (void)pthread_mutex_unlock(&pool->lock);
#endif
}

void om_thread_pool_run(om_thread_pool *pool,
                        uint32_t thread_count,
                        size_t piece_count,
                        om_piece_fn fn,
                        const void *arg) {
  size_t seats = thread_count - 1;
  if (seats > piece_count - 1) seats = piece_count - 1;
  if (!pool || seats == 0 || atomic_exchange(&pool->is_busy, true)) {
    for (size_t i = 0; i < piece_count; ++i) fn(arg, i);
    return;
  }
  make_workers(pool, thread_count - 1);
  if (seats > pool->helper_count) seats = pool->helper_count;
  pool->fn = fn;
  pool->arg = arg;
  pool->piece_count = piece_count;
  begin(pool, (uint32_t)seats);
  take_pieces(pool, false);
  end(pool);
  atomic_store(&pool->is_busy, false);
}

/* ---- Create and destroy ---- */

#ifdef __EMSCRIPTEN__

static struct {
  om_thread_pool pool;
  pthread_t helpers[PAGE_HELPERS];
} page = {.pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
                   .wake = PTHREAD_COND_INITIALIZER,
                   .done = PTHREAD_COND_INITIALIZER,
                   .helper_room = PAGE_HELPERS,
                   .helpers = page.helpers}};

om_status om_thread_pool_create(om_ctx *ctx, uint32_t thread_count, om_thread_pool **out_pool) {
  (void)ctx;
  (void)thread_count;
  *out_pool = &page.pool;
  return OM_OK;
}

void om_thread_pool_destroy(om_ctx *ctx, om_thread_pool *pool) {
  (void)ctx;
  (void)pool;
}

#else

om_status om_thread_pool_create(om_ctx *ctx, uint32_t thread_count, om_thread_pool **out_pool) {
  om_status st = OM_OK;
  om_thread_pool *pool = NULL;
  const uint32_t helpers = thread_count > MAX_HELPERS ? MAX_HELPERS : thread_count - 1;
  *out_pool = NULL;
  OM_GO_NEW(pool, 1);
  OM_GO_NEW(pool->helpers, helpers);
  pool->helper_room = helpers;
  pool->spin_ns = thread_count <= om_core_count() ? SPIN_NS : 0;
  /* Neither asks for memory or can fail, without attributes. */
  (void)pthread_mutex_init(&pool->lock, NULL);
  (void)pthread_cond_init(&pool->wake, NULL);
  (void)pthread_cond_init(&pool->done, NULL);
  *out_pool = pool;
  pool = NULL; /* the caller owns it now */
done:
  om_delete(ctx, pool);
  return st;
}

void om_thread_pool_destroy(om_ctx *ctx, om_thread_pool *pool) {
  if (!pool) return;
  (void)pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->is_ending, true);
  (void)pthread_cond_broadcast(&pool->wake);
  (void)pthread_mutex_unlock(&pool->lock);
  for (uint32_t i = 0; i < pool->helper_count; ++i) (void)pthread_join(pool->helpers[i], NULL);
  (void)pthread_cond_destroy(&pool->done);
  (void)pthread_cond_destroy(&pool->wake);
  (void)pthread_mutex_destroy(&pool->lock);
  om_delete(ctx, pool->helpers);
  om_delete(ctx, pool);
}

#endif
