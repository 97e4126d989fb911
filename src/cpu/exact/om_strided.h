/* Copies between two strided views: what every operator that only moves data is made of.
 *
 *     for each index i in extents: target[target_offset + sum(i * target_strides)]
 *                                = source[source_offset + sum(i * source_strides)]
 *
 * A source stride of 0 repeats elements, a negative one walks backwards. Targets of one copy never
 * overlap. All counts are elements. The same descriptions drive the device's copy kernel.
 */
#ifndef OM_STRIDED_H
#define OM_STRIDED_H

#include "base/om_base.h"

enum { OM_STRIDED_MAX_RANK = 2 * OM_MAX_RANK }; /* Tile splits each axis in two */

typedef struct om_strided {
  uint32_t rank;
  int64_t extents[OM_STRIDED_MAX_RANK];
  int64_t source_strides[OM_STRIDED_MAX_RANK];
  int64_t target_strides[OM_STRIDED_MAX_RANK];
  int64_t source_offset;
  int64_t target_offset;
} om_strided;

/* Writes the strides of a dense tensor. */
void om_dense_strides(uint32_t rank, const int64_t *dims, int64_t *out_strides);

/* Drops axes of one element and merges neighbours that walk as one. An empty copy gets rank 1 and
 * extent 0, a single element rank 1 and extent 1. */
void om_strided_simplify(om_strided *copy);

/* Elements copied. */
size_t om_strided_elems(const om_strided *copy);

/* Copies elements of elem_bytes (1, 2, 4, 8 or 16) bytes. */
void om_strided_copy(
    om_ctx *ctx, const om_strided *copy, size_t elem_bytes, const void *source, void *target);

/* Writes `count` copies of one element. */
void om_fill(om_ctx *ctx, void *target, size_t count, const void *elem, size_t elem_bytes);

#endif
