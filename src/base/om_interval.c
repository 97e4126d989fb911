/* First fit of blocks with lifetimes.
 *
 * The blocks are taken in the order of their first use (ties: as given). At any moment the list
 * of placed blocks that are still alive is kept sorted by offset, so the first gap that is large
 * enough is found in one walk.
 */
#include "base/om_interval.h"

/* Heap sort: nothing is allocated, nothing recurses. */
static void sift_down(uint64_t *keys, size_t root, size_t count) {
  for (;;) {
    size_t child = 2 * root + 1;
    if (child >= count) return;
    if (child + 1 < count && keys[child + 1] > keys[child]) ++child;
    if (keys[root] >= keys[child]) return;
    uint64_t swap = keys[root];
    keys[root] = keys[child];
    keys[child] = swap;
    root = child;
  }
}

static void sort_keys(uint64_t *keys, size_t count) {
  for (size_t i = count / 2; i-- > 0;) sift_down(keys, i, count);
  for (size_t end = count; end-- > 1;) {
    uint64_t swap = keys[0];
    keys[0] = keys[end];
    keys[end] = swap;
    sift_down(keys, 0, end);
  }
}

/* Drops from `alive` the blocks whose last use is before `step`; returns the new count. */
static size_t drop_dead(const om_interval *blocks, uint32_t *alive, size_t count, uint32_t step) {
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (blocks[alive[i]].last >= step) alive[kept++] = alive[i];
  }
  return kept;
}

/* Places one block among those alive and inserts it there; returns false on overflow. */
static bool place_one(om_interval *blocks,
                      uint32_t *alive,
                      size_t alive_count,
                      uint32_t index,
                      size_t alignment,
                      size_t *inout_total) {
  om_interval *block = &blocks[index];
  size_t offset = 0;
  size_t at = 0;
  for (; at < alive_count; ++at) {
    const om_interval *other = &blocks[alive[at]];
    if (other->offset >= offset && other->offset - offset >= block->bytes) break;
    size_t end = other->offset + other->bytes; /* cannot overflow: it is within the total */
    if (end > SIZE_MAX - alignment) return false;
    end = om_size_align(end, alignment);
    if (end > offset) offset = end;
  }
  size_t end = 0;
  if (!om_size_add(offset, block->bytes, &end)) return false;
  block->offset = offset;
  if (end > *inout_total) *inout_total = end;
  memmove(alive + at + 1, alive + at, (alive_count - at) * sizeof *alive);
  alive[at] = index;
  return true;
}

om_status om_interval_place(
    om_ctx *ctx, om_interval *blocks, size_t count, size_t alignment, size_t *out_total_bytes) {
  om_status st = OM_OK;
  uint64_t *keys = NULL;
  uint32_t *alive = NULL;
  size_t alive_count = 0;
  size_t total = 0;
  *out_total_bytes = 0;

  if (count > UINT32_MAX) {
    OM_GO(OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "%zu blocks are too many to place.", count));
  }
  OM_GO_NEW(keys, count);
  OM_GO_NEW(alive, count);
  for (size_t i = 0; i < count; ++i) keys[i] = (uint64_t)blocks[i].first << 32 | i;
  sort_keys(keys, count);
  for (size_t i = 0; i < count; ++i) {
    uint32_t index = (uint32_t)keys[i];
    blocks[index].offset = 0;
    if (blocks[index].bytes == 0) continue;
    alive_count = drop_dead(blocks, alive, alive_count, blocks[index].first);
    if (!place_one(blocks, alive, alive_count, index, alignment, &total)) {
      OM_GO(OM_FAIL(ctx,
                    OM_E_OUT_OF_MEMORY,
                    "A block of %zu bytes does not fit the address space.",
                    blocks[index].bytes));
    }
    ++alive_count;
  }
  *out_total_bytes = total;
done:
  om_delete(ctx, keys);
  om_delete(ctx, alive);
  return st;
}

om_status om_interval_live(
    om_ctx *ctx, const om_interval *blocks, size_t count, size_t alignment, uint64_t *out_bytes) {
  om_status st = OM_OK;
  uint64_t *begun = NULL, *ended = NULL; /* bytes, by step */
  uint32_t last = 0;
  uint64_t live = 0;
  *out_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    if (blocks[i].last > last) last = blocks[i].last;
  }
  OM_GO_NEW(begun, (size_t)last + 1);
  OM_GO_NEW(ended, (size_t)last + 1);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bytes = om_size_align(blocks[i].bytes, alignment);
    begun[blocks[i].first] += bytes;
    ended[blocks[i].last] += bytes;
  }
  for (size_t step = 0; step <= last; ++step) {
    live += begun[step];
    if (live > *out_bytes) *out_bytes = live;
    live -= ended[step];
  }
done:
  om_delete(ctx, begun);
  om_delete(ctx, ended);
  return st;
}
