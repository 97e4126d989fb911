/* Threads: the parallel loop, the float environment, the lock, the clock. */
#include "base/om_thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/om_thread_pool.h"

#if defined(__SSE2__)
#  include <emmintrin.h>
#endif

/* The processor's float control word: MXCSR or FPCR. Where it has none that we know, exact mode
 * holds for runs in which no subnormal arises. */
static uint64_t float_control_get(void) {
#if defined(__SSE2__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  uint64_t value;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return value;
#else
  return 0;
#endif
}

static void float_control_set(uint64_t value) {
#if defined(__SSE2__)
  _mm_setcsr((unsigned)value);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(value) : "memory");
#else
  (void)value;
#endif
}

uint64_t om_flush_subnormals_begin(void) {
  uint64_t state = float_control_get();
#if defined(__SSE2__)
  float_control_set(state | 0x8040); /* FTZ: results, DAZ: operands */
#elif defined(__aarch64__)
  float_control_set(state | (uint64_t)1 << 24); /* FZ: both */
#endif
  return state;
}

void om_flush_subnormals_end(uint64_t state) {
  float_control_set(state);
}

typedef struct loop {
  om_range_fn fn;
  void *arg;
  size_t count;
  size_t grain;
  size_t piece_count;
  uint64_t float_control; /* the caller's */
  const om_ctx *ctx;
} loop;

static void run_piece(const loop *l, size_t piece) {
  if (om_is_cancelled(l->ctx)) return; /* whoever runs the kernel looks again behind it */
  size_t begin = piece * l->grain;
  size_t end = l->count - begin > l->grain ? begin + l->grain : l->count;
  l->fn(l->arg, begin, end);
}

static void run_pool_piece(const void *arg, size_t piece) {
  const loop *l = arg;
  const uint64_t own = float_control_get();
  float_control_set(l->float_control);
  run_piece(l, piece);
  float_control_set(own);
}

void om_parallel_for(om_ctx *ctx, size_t count, size_t grain, om_range_fn fn, void *arg) {
  if (count == 0) return;
  loop l = {.fn = fn,
            .arg = arg,
            .count = count,
            .grain = grain,
            .piece_count = (count - 1) / grain + 1,
            .float_control = float_control_get(),
            .ctx = ctx};
  om_thread_pool_run(ctx->workers, ctx->thread_count, l.piece_count, run_pool_piece, &l);
}

uint32_t om_core_count(void) {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
    return (uint32_t)CPU_COUNT(&set);
  }
#endif
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (uint32_t)count : 1;
}

struct om_mutex {
  pthread_mutex_t lock;
};

om_status om_mutex_create(om_ctx *ctx, om_mutex **out_mutex) {
  om_status st = OM_OK;
  om_mutex *mutex = NULL;
  *out_mutex = NULL;
  OM_GO_NEW(mutex, 1);
  int result = pthread_mutex_init(&mutex->lock, NULL);
  if (result != 0) OM_GO(OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "No lock could be made (%d).", result));
  *out_mutex = mutex;
  mutex = NULL;
done:
  om_delete(ctx, mutex);
  return st;
}

void om_mutex_destroy(om_ctx *ctx, om_mutex *mutex) {
  if (!mutex) return;
  (void)pthread_mutex_destroy(&mutex->lock);
  om_delete(ctx, mutex);
}

void om_mutex_lock(om_mutex *mutex) {
  (void)pthread_mutex_lock(&mutex->lock);
}

void om_mutex_unlock(om_mutex *mutex) {
  (void)pthread_mutex_unlock(&mutex->lock);
}

int om_thread_start(pthread_t *out_thread, void *(*fn)(void *arg), void *arg) {
#ifdef __EMSCRIPTEN__
  return pthread_create(out_thread, NULL, fn, arg);
#else
  sigset_t all, before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  const int result = pthread_create(out_thread, NULL, fn, arg);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return result;
#endif
}

struct om_task {
  om_task_fn fn;
  void *arg;
  pthread_t thread;
  bool has_thread;
};

static void *run_task(void *arg) {
  const om_task *task = arg;
  task->fn(task->arg);
  return NULL;
}

om_status om_task_begin(om_ctx *ctx, om_task_fn fn, void *arg, om_task **out_task) {
  om_task *task = om_new_bytes(ctx, 1, sizeof *task);
  *out_task = task;
  if (!task) return OM_E_OUT_OF_MEMORY;
  *task = (om_task){.fn = fn, .arg = arg};
#ifndef __EMSCRIPTEN__ /* a page has few workers, and its loops want them */
  task->has_thread = om_thread_start(&task->thread, run_task, task) == 0;
#endif
  if (!task->has_thread) (void)run_task(task);
  return OM_OK;
}

void om_task_end(om_ctx *ctx, om_task *task) {
  if (!task) return;
  if (task->has_thread) (void)pthread_join(task->thread, NULL);
  om_delete(ctx, task);
}

uint64_t om_now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
