/* Placing blocks with lifetimes: each in turn goes into the first gap that is large enough.
 *
 * The largest go first, which leaves fewer gaps than the order of use. Where the result is more
 * than what lives at once, the block that ends highest goes first in the next attempt: most often
 * it is one of two large ones that a small one between them kept apart, and one or two attempts
 * suffice. Where they do not, all blocks like that one go first, of its size and for as many steps:
 * a model has many layers, and what helps one of them helps them all. The list of placed blocks is
 * kept sorted by offset, so the first gap is found in one walk.
 */
#include "base/om_interval.h"

/* An attempt takes count * count / 2 looks at most: 0.1 s for all of them on one core. */
enum { ATTEMPTS = 16 /* one by one, then again alike */, LOOKS = 1 << 25 };

typedef struct placing {
  om_interval *blocks;
  size_t count;
  size_t alignment;
  uint32_t *turns;  /* scratch: count; the blocks in the order in which they are placed */
  uint32_t *placed; /* scratch: count; sorted by offset */
  size_t placed_count;
  size_t *offsets; /* scratch: count; of the best attempt */
  size_t total;    /* of this attempt */
  size_t highest;  /* the turn of the block that ends there */
} placing;

/* ---- Order ---- */

static bool is_later(const om_interval *blocks, uint32_t a, uint32_t b) {
  if (blocks[a].bytes != blocks[b].bytes) return blocks[a].bytes < blocks[b].bytes;
  return a > b;
}

static void swap(uint32_t *a, uint32_t *b) {
  const uint32_t kept = *a;
  *a = *b;
  *b = kept;
}

/* Heap sort: nothing is allocated, nothing recurses. */
static void sift_down(const placing *p, size_t root, size_t count) {
  uint32_t *turns = p->turns;
  for (;;) {
    size_t child = 2 * root + 1;
    if (child >= count) return;
    if (child + 1 < count && is_later(p->blocks, turns[child + 1], turns[child])) ++child;
    if (!is_later(p->blocks, turns[child], turns[root])) return;
    swap(&turns[root], &turns[child]);
    root = child;
  }
}

static void sort_turns(const placing *p) {
  for (uint32_t i = 0; i < p->count; ++i) p->turns[i] = i;
  for (size_t i = p->count / 2; i-- > 0;) sift_down(p, i, p->count);
  for (size_t end = p->count; end-- > 1;) {
    swap(&p->turns[0], &p->turns[end]);
    sift_down(p, 0, end);
  }
}

static void move_to_front(const placing *p, size_t turn) {
  const uint32_t index = p->turns[turn];
  memmove(p->turns + 1, p->turns, turn * sizeof *p->turns);
  p->turns[0] = index;
}

static bool are_alike(const om_interval *a, const om_interval *b) {
  return a->bytes == b->bytes && a->last - a->first == b->last - b->first;
}

/* Moves the block of this turn, and all that are like it, to the front. */
static void move_alike_to_front(const placing *p, size_t turn) {
  const om_interval *like = &p->blocks[p->turns[turn]];
  size_t to = 0;
  for (size_t i = 0; i < p->count; ++i) {
    const uint32_t index = p->turns[i];
    if (!are_alike(&p->blocks[index], like)) continue;
    memmove(p->turns + to + 1, p->turns + to, (i - to) * sizeof *p->turns);
    p->turns[to++] = index;
  }
}

/* ---- One attempt ---- */

static bool meet(const om_interval *a, const om_interval *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* The first gap; false on overflow. */
static bool find_gap(const placing *p, om_interval *block) {
  size_t offset = 0;
  for (size_t i = 0; i < p->placed_count; ++i) {
    const om_interval *other = &p->blocks[p->placed[i]];
    if (other->offset >= offset && other->offset - offset >= block->bytes) break;
    if (!meet(block, other)) continue;
    const size_t end = other->offset + other->bytes; /* cannot overflow: it is within the total */
    if (end > SIZE_MAX - p->alignment) return false;
    if (end > offset) offset = om_size_align(end, p->alignment);
  }
  block->offset = offset;
  return block->bytes <= SIZE_MAX - offset;
}

static bool place_one(placing *p, size_t turn) {
  const uint32_t index = p->turns[turn];
  om_interval *block = &p->blocks[index];
  size_t at = p->placed_count;
  if (!find_gap(p, block)) return false;
  const size_t end = block->offset + block->bytes;
  if (end > p->total) {
    p->total = end;
    p->highest = turn;
  }
  for (; at > 0 && p->blocks[p->placed[at - 1]].offset > block->offset; --at) {
    p->placed[at] = p->placed[at - 1];
  }
  p->placed[at] = index;
  p->placed_count += 1;
  return true;
}

static om_status place_all(om_ctx *ctx, placing *p) {
  p->placed_count = 0;
  p->total = 0;
  p->highest = 0;
  for (size_t turn = 0; turn < p->count; ++turn) {
    om_interval *block = &p->blocks[p->turns[turn]];
    block->offset = 0;
    if (block->bytes == 0 || place_one(p, turn)) continue;
    return OM_FAIL(ctx,
                   OM_E_OUT_OF_MEMORY,
                   "A block of %zu bytes does not fit the address space.",
                   block->bytes);
  }
  return OM_OK;
}

/* ---- All of it ---- */

static uint64_t attempts_of(const placing *p) {
  const uint64_t looks = (uint64_t)p->count * p->count / 2 + 1;
  return LOOKS / looks < ATTEMPTS ? LOOKS / looks + 1 : ATTEMPTS;
}

/* Keeps the best of some attempts, in `offsets` and *best. */
static om_status attempt(
    om_ctx *ctx, placing *p, uint64_t least, void (*move)(const placing *, size_t), size_t *best) {
  const uint64_t attempts = attempts_of(p);
  sort_turns(p);
  for (uint64_t i = 0; i < attempts && *best > least; ++i) {
    if (i > 0) move(p, p->highest);
    OM_TRY(place_all(ctx, p));
    if (p->total >= *best) continue;
    *best = p->total;
    for (size_t k = 0; k < p->count; ++k) p->offsets[k] = p->blocks[k].offset;
  }
  return OM_OK;
}

static om_status find_best(om_ctx *ctx, placing *p, uint64_t least, size_t *out_total) {
  size_t best = SIZE_MAX;
  OM_TRY(attempt(ctx, p, least, move_to_front, &best));
  /* The first attempt of both is the same one. */
  if (attempts_of(p) > 1) OM_TRY(attempt(ctx, p, least, move_alike_to_front, &best));
  for (size_t k = 0; k < p->count; ++k) p->blocks[k].offset = p->offsets[k];
  *out_total = best;
  return OM_OK;
}

om_status om_interval_place(
    om_ctx *ctx, om_interval *blocks, size_t count, size_t alignment, size_t *out_total_bytes) {
  om_status st = OM_OK;
  placing p = {.blocks = blocks, .count = count, .alignment = alignment};
  uint64_t live = 0;
  *out_total_bytes = 0;

  if (count > UINT32_MAX) {
    OM_GO(OM_FAIL(ctx, OM_E_OUT_OF_MEMORY, "%zu blocks are too many to place.", count));
  }
  OM_GO_NEW(p.turns, count);
  OM_GO_NEW(p.placed, count);
  OM_GO_NEW(p.offsets, count);
  OM_GO(om_interval_live(ctx, blocks, count, alignment, &live));
  OM_GO(find_best(ctx, &p, live, out_total_bytes));
done:
  om_delete(ctx, p.turns);
  om_delete(ctx, p.placed);
  om_delete(ctx, p.offsets);
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
    const uint64_t bytes = (uint64_t)blocks[i].bytes / alignment * alignment +
                           (blocks[i].bytes % alignment ? alignment : 0);
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
