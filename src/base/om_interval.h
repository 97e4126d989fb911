/* Places blocks with lifetimes in one range of memory: the CPU's intermediate block and the
 * device's arena use the same rule. First fit, the largest first.
 */
#ifndef OM_INTERVAL_H
#define OM_INTERVAL_H

#include "base/om_base.h"

typedef struct om_interval {
  size_t bytes;   /* in */
  uint32_t first; /* in: first and last step that use the block, both inclusive */
  uint32_t last;
  size_t offset; /* out: a multiple of the alignment */
} om_interval;

/* Sets each offset so that no two blocks alive at one step overlap; *out_total_bytes is the end
 * of the highest. Blocks of 0 bytes get offset 0. */
om_status om_interval_place(
    om_ctx *ctx, om_interval *blocks, size_t count, size_t alignment, size_t *out_total_bytes);

/* The largest sum of bytes in use at one step: no placing needs less. Each block counts with a
 * whole multiple of the alignment. */
om_status om_interval_live(
    om_ctx *ctx, const om_interval *blocks, size_t count, size_t alignment, uint64_t *out_bytes);

#endif
