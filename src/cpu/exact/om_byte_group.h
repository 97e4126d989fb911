/* The innermost loop of products of 8-bit integers. Sums are integers that wrap, so their order
 * does not matter: each processor adds in the order of its own instructions, with the same bits.
 *
 * The columns of b stand in a panel, four terms of each side by side, as processors multiply them:
 *
 *     terms 0..3 of lane 0 | terms 0..3 of lane 1 | ... | terms 4..7 of lane 0 | ...
 */
#ifndef OM_BYTE_GROUP_H
#define OM_BYTE_GROUP_H

#include "base/om_base.h"

enum { OM_BYTE_LANES = 32 };

/* sums[r][lane] = the sum of a[r * a_stride + k] * panel[k][lane] over the terms k, or that added
 * to what stands there. One side is signed and the other is not. */
typedef struct om_byte_group {
  const uint8_t *a;
  size_t a_stride, rows;
  bool is_a_signed;
  const uint8_t *panel; /* zeros behind the last term, to a multiple of four */
  size_t terms;
  bool is_first;
  uint32_t *sums; /* rows * OM_BYTE_LANES */
} om_byte_group;

void om_byte_group_run(const om_byte_group *g);

#endif
