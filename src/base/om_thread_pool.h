/* Workers: threads that stay from loop to loop and help with the pieces of one.
 *
 * Whoever begins a loop takes pieces of it too and waits for those workers alone that joined it:
 * one that is not scheduled holds up nobody. A pool that is at work already, for another thread or
 * for the loop around this one, helps nobody else: such a loop runs on its caller's thread.
 *
 * Workers are made at the first loop that wants them; where none can be made, loops run alone.
 * Between loops they look for the next one for a moment and sleep then. In a browser, where a page
 * has few workers, one set of them serves the process; its main thread never sleeps.
 */
#ifndef OM_THREAD_POOL_H
#define OM_THREAD_POOL_H

#include "base/om_base.h"

typedef void (*om_piece_fn)(const void *arg, size_t piece);

/* shared. For loops on up to `thread_count` threads. */
om_status om_thread_pool_create(om_ctx *ctx, uint32_t thread_count, om_thread_pool **out_pool);

/* Ends its workers; no loop is under way. */
void om_thread_pool_destroy(om_ctx *ctx, om_thread_pool *pool);

/* Calls fn for pieces 0 to piece_count - 1, on up to `thread_count` threads, and returns when all
 * are done. pool may be NULL. */
void om_thread_pool_run(om_thread_pool *pool,
                        uint32_t thread_count,
                        size_t piece_count,
                        om_piece_fn fn,
                        const void *arg);

#endif
