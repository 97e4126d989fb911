/* Rotary position embedding: pairs of a head's elements are turned by the angle of their position.
 *
 *     x: [batch, length, heads, size] or [batch, heads, length, size]
 */
#ifndef OM_ROTARY_H
#define OM_ROTARY_H

#include <string.h>

#include "base/om_base.h"

typedef struct om_rotary {
  size_t elems; /* of x */
  size_t size;  /* of a head */
  size_t half;  /* pairs of a head; elements past 2 * half stay */
  size_t length;
  size_t batch_elems;  /* of x, of one entry of the batch */
  size_t row_elems;    /* of x, from a position to the next */
  bool is_interleaved; /* pairs are neighbours; else `half` apart */
} om_rotary;

/* positions: one for each entry of the batch and row, below the tables' rows or counted from their
 * end (`table_rows`); NULL: the tables have a row for each. All of x's type. */
void om_rotary_run(om_ctx *ctx,
                   const om_rotary *r,
                   const om_tensor *x,
                   const om_tensor *cos,
                   const om_tensor *sin,
                   const int64_t *positions,
                   om_tensor *y);

#endif
