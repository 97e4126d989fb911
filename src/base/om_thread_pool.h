/* Threads of a page: where a build has no OpenMP, workers that stay from loop to loop.
 *
 * A page's main thread may not sleep, so whoever begins a loop takes pieces of it too, and looks
 * again and again whether the last one is done; workers sleep between loops. There is one set of
 * them for the process, as OpenMP has: made at the first loop, as many as can be made. None is an
 * answer too: a page that is not isolated has none.
 */
#ifndef OM_THREAD_POOL_H
#define OM_THREAD_POOL_H

#include <stddef.h>
#include <stdint.h>

typedef void (*om_piece_fn)(const void *arg, size_t piece);

/* Calls fn for pieces 0 to piece_count - 1, on up to `thread_count` threads, and returns when all
 * are done. */
void om_thread_pool_run(uint32_t thread_count, size_t piece_count, om_piece_fn fn, const void *arg);

#endif
