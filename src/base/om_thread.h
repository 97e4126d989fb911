/* Threads: a parallel loop for CPU kernels, and a lock.
 *
 * The loop's threads are the context's workers (om_thread_pool.h). The range is cut into pieces
 * whose bounds depend on `count` and `grain` alone, never on the number of threads, so that a
 * kernel that keeps its sums inside a piece gives the same bits on any number of threads.
 */
#ifndef OM_THREAD_H
#define OM_THREAD_H

#include <pthread.h>

#include "base/om_base.h"

/* Works on elements [begin, end). Must not fail: what can fail is checked before the loop. */
typedef void (*om_range_fn)(void *arg, size_t begin, size_t end);

/* Calls fn for pieces of at most `grain` elements (>= 1), on up to ctx->thread_count threads,
 * each with the float environment of the caller (subnormals flushed or not). */
void om_parallel_for(om_ctx *ctx, size_t count, size_t grain, om_range_fn fn, void *arg);

/* The number of cores this process may use; at least 1. */
uint32_t om_core_count(void);

/* Subnormals count as zero between begin and end, on this thread: exact mode's rule.
 * Returns the state to give back. */
uint64_t om_flush_subnormals_begin(void);
void om_flush_subnormals_end(uint64_t state);

typedef struct om_mutex om_mutex;
om_status om_mutex_create(om_ctx *ctx, om_mutex **out_mutex);
void om_mutex_destroy(om_ctx *ctx, om_mutex *mutex);
void om_mutex_lock(om_mutex *mutex);
void om_mutex_unlock(om_mutex *mutex);

/* Work of its own beside the caller's; the caller ends it. */
typedef void (*om_task_fn)(void *arg);
typedef struct om_task om_task;

/* Calls fn(arg) on a thread of its own; where none can be had, and in a browser, before it returns.
 * fn has a context of its own: an error is for one thread. */
om_status om_task_begin(om_ctx *ctx, om_task_fn fn, void *arg, om_task **out_task);
/* Returns when fn has. NULL is fine. */
void om_task_end(om_ctx *ctx, om_task *task);

/* Starts a thread that gets none of the program's signals. The result is pthread_create's. */
int om_thread_start(pthread_t *out_thread, void *(*fn)(void *arg), void *arg);

/* Nanoseconds of a clock that never goes back. */
uint64_t om_now_ns(void);

#endif
