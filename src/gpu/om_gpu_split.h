/* A matrix of float32 as pairs of float16, for products on matrix hardware.
 *
 * A column is scaled by a power of two, so that its largest value has the exponent 14, and each
 * value is two float16: the high one is the value rounded, the low one 2^11 times what that left
 * off. An infinity or NaN is a low one beside a high zero. In memory:
 *
 *     a factor for each column, float32: a power of two, at most its largest value
 *     for each term (row), and in it for each 8 columns: 8 high float16, 8 low float16
 *
 * Columns are filled up to 8, terms to 128, with zeros. A value is (high + low / 2^11) *
 * factor / 2^14.
 * Values below 2^-95 lose bits.
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

typedef struct om_split_layout {
  size_t depth, cols;
  bool is_turned; /* the source is [cols, depth], else [depth, cols] */
} om_split_layout;

uint64_t om_split_bytes(size_t depth, size_t cols);

/* An om_gpu_fill: arg is an om_split_layout, target has om_split_bytes bytes. */
void om_split_fill(om_ctx *ctx, const void *arg, const void *source, void *target);

#endif
