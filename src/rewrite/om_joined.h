/* Matrices side by side as one stored constant: its bytes are put together as they are read, so
 * that neither it nor its parts are in memory as a whole.
 *
 *     joined row t   [ part 0's row t | part 1's row t | ... ]
 */
#ifndef OM_JOINED_H
#define OM_JOINED_H

#include "graph/om_stored.h"

enum { OM_JOINED_PARTS = 3 };

typedef struct om_joined_part {
  const om_tensor *source; /* in memory or stored; outlives the joined constant */
  size_t first, width;     /* the columns it has */
  bool is_turned;          /* source is [width, rows] */
} om_joined_part;

/* like: type and shape, of rank 2. Elements are whole bytes. The constant is the pool's. */
om_status om_joined_create(om_ctx *ctx,
                           om_pool *pool,
                           const om_tensor *like,
                           const om_joined_part *parts,
                           size_t part_count,
                           const om_tensor **out_tensor);

#endif
