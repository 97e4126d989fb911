/* A constant matrix of float16 in blocks, for Hopper's own instructions (om_gpu_split.h). */
#include "base/om_thread.h"
#include "gpu/om_gpu_split.h"

uint64_t om_blocks_bytes(size_t depth, size_t cols, bool is_half) {
  const uint64_t octets = om_size_align(cols, OM_SPLIT_COLS) / OM_SPLIT_COLS;
  const uint64_t blocks = om_size_align(depth, OM_BLOCK_TERMS) / OM_BLOCK_TERMS * octets;
  const uint64_t factors = is_half ? 0 : octets * OM_SPLIT_COLS * sizeof(float);
  return factors + blocks * (is_half ? 1 : 2) * OM_BLOCK_ELEMS * sizeof(uint16_t);
}

/* One matrix on its way, for pieces of a few octets of columns. */
typedef struct work {
  const om_split_layout *layout;
  const char *source; /* of float16; may lie unaligned in the model's file */
  uint16_t *blocks;
  size_t octets;
} work;

static void fill_block(const work *w, size_t step, size_t octet) {
  const om_split_layout *layout = w->layout;
  uint16_t *block = w->blocks + (step * w->octets + octet) * OM_BLOCK_ELEMS;
  for (size_t i = 0; i < OM_BLOCK_ELEMS; ++i) {
    const size_t term = step * OM_BLOCK_TERMS + i / OM_SPLIT_COLS;
    const size_t col = octet * OM_SPLIT_COLS + i % OM_SPLIT_COLS;
    const size_t at = layout->is_turned ? col * layout->depth + term : term * layout->cols + col;
    uint16_t value = 0;
    if (term < layout->depth && col < layout->cols) {
      memcpy(&value, w->source + at * sizeof value, sizeof value);
    }
    block[om_block_place(i / OM_SPLIT_COLS, i % OM_SPLIT_COLS, true)] = value;
  }
}

static void fill_octets(void *arg, size_t begin, size_t end) {
  const work *w = arg;
  for (size_t step = 0; step * OM_BLOCK_TERMS < w->layout->depth; ++step) {
    for (size_t octet = begin; octet < end; ++octet) fill_block(w, step, octet);
  }
}

void om_blocks_fill_half(om_ctx *ctx, const void *arg, const void *source, void *target) {
  enum { OCTETS = 4 }; /* of a piece: a line of the cache */
  const om_split_layout *layout = arg;
  work w = {.layout = layout,
            .source = source,
            .blocks = target,
            .octets = om_size_align(layout->cols, OM_SPLIT_COLS) / OM_SPLIT_COLS};
  om_parallel_for(ctx, w.octets, OCTETS, fill_octets, &w);
}
