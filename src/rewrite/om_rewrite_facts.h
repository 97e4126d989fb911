/* What the graph tells about its values before shapes are known: types and ranks, as far as the
 * operators of encoders carry them on. For rewrites whose result takes less than their parts do.
 */
#ifndef OM_REWRITE_FACTS_H
#define OM_REWRITE_FACTS_H

#include "rewrite/om_rewrite.h"

typedef struct om_value_fact {
  om_dtype dtype; /* OM_DTYPE_NONE: not known */
  uint32_t rank;  /* OM_RANK_UNKNOWN: not known */
} om_value_fact;

/* One for each value there is now; the caller deletes them. */
om_status om_value_facts_create(om_ctx *ctx, const om_rewriter *rw, om_value_fact **out_facts);

/* Elements of a list of integers: a constant, or one that Concat makes of constants, of
 * unsqueezed scalars and of parts of shapes; OM_RANK_UNKNOWN where nothing tells. */
uint32_t om_value_list_count(const om_rewriter *rw, const om_value_fact *facts, om_value_id value);

/* True if the value has one element, rank 0 or 1, and follows from constants and shapes alone, so
 * that a plan knows it. */
bool om_value_is_scalar(const om_rewriter *rw, om_value_id value);

#endif
