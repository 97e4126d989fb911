/* The set of workers: see om_thread_pool.h. It is the one writable thing of the library that no
 * caller owns, and it is there in a browser's build alone. */
#include "base/om_thread_pool.h"

#ifdef __EMSCRIPTEN__

#  include <pthread.h>
#  include <stdatomic.h>
#  include <stdbool.h>

enum { MAX_WORKERS = 15 };

typedef struct job { /* a loop under way; on the stack of who began it */
  om_piece_fn fn;
  const void *arg;
  size_t piece_count;
  atomic_size_t next; /* the first piece that nobody took */
} job;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  job *current;        /* NULL: none */
  uint32_t wanted;     /* workers that may still join it */
  atomic_uint at_work; /* workers that joined it and are not done */
  uint32_t count;      /* workers there are */
  bool is_made;
  bool is_busy; /* a loop is under way: another runs alone */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void take_pieces(job *j) {
  for (size_t i; (i = atomic_fetch_add(&j->next, 1)) < j->piece_count;) j->fn(j->arg, i);
}

static void *work(void *unused) {
  (void)unused;
  (void)pthread_mutex_lock(&pool.lock);
  for (;;) {
    while (!pool.current || pool.wanted == 0) (void)pthread_cond_wait(&pool.wake, &pool.lock);
    job *j = pool.current;
    --pool.wanted;
    atomic_fetch_add(&pool.at_work, 1);
    (void)pthread_mutex_unlock(&pool.lock);
    take_pieces(j);
    atomic_fetch_sub(&pool.at_work, 1);
    (void)pthread_mutex_lock(&pool.lock);
  }
  return NULL;
}

/* With the lock held. */
static void make_workers(uint32_t most) {
  pthread_t thread;
  pool.is_made = true;
  while (pool.count < most && pool.count < MAX_WORKERS &&
         pthread_create(&thread, NULL, work, NULL) == 0) {
    (void)pthread_detach(thread);
    ++pool.count;
  }
}

/* False: there are no workers, or they are at work for somebody else. */
static bool begin(job *j, uint32_t helpers) {
  (void)pthread_mutex_lock(&pool.lock);
  if (!pool.is_made) make_workers(helpers);
  const bool is_taken = pool.count > 0 && !pool.is_busy;
  if (is_taken) {
    pool.is_busy = true;
    pool.current = j;
    pool.wanted = helpers < pool.count ? helpers : pool.count;
    (void)pthread_cond_broadcast(&pool.wake);
  }
  (void)pthread_mutex_unlock(&pool.lock);
  return is_taken;
}

static void end(void) {
  (void)pthread_mutex_lock(&pool.lock);
  pool.current = NULL; /* nobody joins any more */
  (void)pthread_mutex_unlock(&pool.lock);
  while (atomic_load(&pool.at_work) > 0) {
  }
  (void)pthread_mutex_lock(&pool.lock);
  pool.is_busy = false;
  (void)pthread_mutex_unlock(&pool.lock);
}

void om_thread_pool_run(uint32_t thread_count,
                        size_t piece_count,
                        om_piece_fn fn,
                        const void *arg) {
  job j = {.fn = fn, .arg = arg, .piece_count = piece_count};
  const bool has_help = thread_count > 1 && piece_count > 1 && begin(&j, thread_count - 1);
  take_pieces(&j);
  if (has_help) end();
}

#endif
