/* Which operands of an attention are projections that can be packed, for
 * om_rewrite_packed_projections.c. */
#ifndef OM_PACKED_MATCH_H
#define OM_PACKED_MATCH_H

#include "rewrite/om_rewrite_facts.h"

enum { OM_PACKED_SIDES = 3 }; /* Q, K and V */

typedef struct om_projection {
  om_value_id x;            /* what is multiplied, or split */
  om_value_id result;       /* what the Reshape reads */
  om_value_id shape;        /* the Reshape's */
  const om_tensor *weights; /* NULL: columns of x that a Split gives */
  bool are_turned;          /* weights are [width, depth] */
  const om_tensor *bias;    /* NULL: none */
  const om_tensor *scale;   /* NULL: none */
  int64_t first, width;     /* first: of x's columns */
  int64_t heads;
  bool is_flat; /* of rank 2, the Reshape makes all axes */
} om_projection;

typedef struct om_packed_match {
  const om_rewriter *rw;
  const om_value_fact *facts;
  om_node_id attention;
  om_projection sides[OM_PACKED_SIDES];
  bool fits[OM_PACKED_SIDES]; /* is one of those that are packed */
} om_packed_match;

/* Finds the sides that can be packed; *out_fits: there are some. The match holds rw, facts and
 * attention before. */
om_status om_packed_find(om_ctx *ctx, om_packed_match *match, bool *out_fits);

#endif
