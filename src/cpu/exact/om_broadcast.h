/* Walks several operands that broadcast to one shape, in rows: pieces in which each operand
 * either advances element by element or stays where it is.
 */
#ifndef OM_BROADCAST_H
#define OM_BROADCAST_H

#include "base/om_base.h"

enum { OM_BROADCAST_OPERANDS = 3 };

typedef struct om_broadcast {
  uint32_t rank; /* after merging dimensions; at least 1 */
  uint32_t operand_count;
  size_t extents[OM_MAX_RANK];                        /* outermost first */
  size_t strides[OM_BROADCAST_OPERANDS][OM_MAX_RANK]; /* elements; 0: the operand repeats */
  size_t count;                                       /* elements of the result */
} om_broadcast;

/* A piece: `count` elements from element `first` of the result on. */
typedef struct om_broadcast_row {
  size_t first;
  size_t count;
  size_t offsets[OM_BROADCAST_OPERANDS]; /* elements */
  bool advances[OM_BROADCAST_OPERANDS];
} om_broadcast_row;

/* The numpy shape of the operands together; OM_E_INVALID_INPUT names the shapes that do not fit.
 * NULL operands are skipped. */
om_status om_broadcast_shape(om_ctx *ctx,
                             const om_tensor *const *operands,
                             uint32_t operand_count,
                             uint32_t *out_rank,
                             int64_t out_dims[OM_MAX_RANK]);

/* Prepares the walk of operands that broadcast to `result`. */
void om_broadcast_init(om_broadcast *b,
                       const om_tensor *const *operands,
                       uint32_t operand_count,
                       const om_tensor *result);

/* The row that begins at element `first` of the result and ends at `end` or before. */
om_broadcast_row om_broadcast_row_at(const om_broadcast *b, size_t first, size_t end);

#endif
