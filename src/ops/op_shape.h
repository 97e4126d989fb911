/* Attributes of the operators that only look at a shape or give data another one. */
#ifndef OP_SHAPE_H
#define OP_SHAPE_H

#include "ops/om_rule.h"

typedef struct om_shape_params {
  int64_t start, end; /* Shape: the extents it returns; clamped to the rank */
} om_shape_params;

typedef struct om_reshape_params {
  om_rule_list shape; /* opsets below 5 */
  bool allow_zero;    /* 0 is an extent, not "as in the input" */
} om_reshape_params;

typedef struct om_flatten_params {
  int64_t axis;
} om_flatten_params;

typedef struct om_squeeze_params { /* and Unsqueeze */
  om_rule_list axes;               /* opsets below 13; later they are input 1 */
} om_squeeze_params;

#endif
