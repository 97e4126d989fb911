/* A constant matrix in the order that products on matrix hardware read it.
 *
 * float32 as pairs of float16: a column is scaled by a power of two, so that its largest value has
 * the exponent 14, and each value is two float16: the high one is the value rounded, the low one
 * 2^11 times what that left off. An infinity or NaN is a low one beside a high zero. A value is
 * (high + low / 2^11) * factor / 2^14. Values below 2^-95 lose bits. In memory:
 *
 *     a factor for each column, float32: a power of two, at most its largest value
 *     for each term (row), and in it for each 8 columns: 8 high float16, 8 low float16
 *
 * or, for Hopper's own instructions (gpu/sm90/), behind the factors
 *
 *     for each 64 terms, and in it for each 8 columns: a block of the high ones, one of the low
 * ones
 *
 * A block is 8 rows, a column each, of 8 pieces of 8 float16: piece p of row r lies at place p ^ r.
 * The four terms 4 c to 4 c + 3 of each 16 stand at 2 c, 2 c + 1, 2 c + 8, 2 c + 9 of its two
 * pieces. Blocks of float16 are alike, with no factors, no low ones, and the terms in order.
 *
 * Columns are filled up to 8, terms to 128 or 64, with zeros.
 */
#ifndef OM_GPU_SPLIT_H
#define OM_GPU_SPLIT_H

#include "base/om_base.h"

enum {
  OM_SPLIT_COLS = 8,
  OM_SPLIT_TERMS = 128,
  OM_SPLIT_EXPONENT = 14,
  OM_SPLIT_LOW_SCALE = 1 << 11,
};

enum {
  OM_BLOCK_TERMS = 64,
  OM_BLOCK_ELEMS = OM_BLOCK_TERMS * OM_SPLIT_COLS, /* float16 */
};

typedef struct om_split_layout {
  size_t depth, cols;
  bool is_turned; /* the source is [cols, depth], else [depth, cols] */
  bool is_blocks;
} om_split_layout;

uint64_t om_split_bytes(size_t depth, size_t cols);

/* An om_gpu_fill: arg is an om_split_layout, target has om_split_bytes bytes, which need not be
 * zeroed. */
void om_split_fill(om_ctx *ctx, const void *arg, const void *source, void *target);

/* Blocks of float32 and of float16, the second from float16 as they are (om_gpu_blocks.c). */
uint64_t om_blocks_bytes(size_t depth, size_t cols, bool is_half);
void om_blocks_fill_half(om_ctx *ctx, const void *arg, const void *source, void *target);

/* The place of a term (below 64) of a column (below 8) in a block. */
static inline size_t om_block_place(size_t term, size_t col, bool is_half) {
  const size_t in_16 = term % 16;
  const size_t turned = in_16 / 4 * 2 + in_16 % 2 + in_16 / 2 % 2 * 8;
  const size_t at = is_half ? term : term - in_16 + turned;
  return col * OM_BLOCK_TERMS + ((at / 8) ^ col) * 8 + at % 8;
}

#endif
