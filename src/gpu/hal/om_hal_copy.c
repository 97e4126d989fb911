/* Long copies in pieces, on the context's threads.
 *
 * The number of pieces is fixed: more than a machine has ways to its memory gain nothing.
 */
#include "gpu/hal/om_hal_copy.h"

#include "base/om_thread.h"

enum {
  PIECE_COUNT = 8,
  PARALLEL_BYTES = 1024 * 1024, /* below, waking threads costs more than it saves */
};

typedef struct copy_job {
  char *target;
  const char *source;
} copy_job;

static void copy_range(void *arg, size_t begin, size_t end) {
  const copy_job *job = arg;
  memcpy(job->target + begin, job->source + begin, end - begin);
}

void om_hal_copy(om_ctx *ctx, void *target, const void *source, size_t bytes) {
  copy_job job = {target, source};
  if (bytes < PARALLEL_BYTES) {
    memcpy(target, source, bytes);
    return;
  }
  om_parallel_for(ctx, bytes, (bytes + PIECE_COUNT - 1) / PIECE_COUNT, copy_range, &job);
}
