/* Attributes of the operators that select, order and mark elements. */
#ifndef OP_SELECT_H
#define OP_SELECT_H

#include "ops/om_rule.h"

typedef struct om_one_hot_params {
  int64_t axis; /* of the result */
} om_one_hot_params;

typedef struct om_cumsum_params {
  bool is_exclusive; /* element i is the sum of those before it */
  bool is_reversed;  /* from the axis' end */
} om_cumsum_params;

typedef struct om_topk_params {
  int64_t axis;
  int64_t k; /* opsets below 10; later it is input 1 */
  bool is_smallest;
} om_topk_params;

typedef struct om_trilu_params {
  bool is_upper;
} om_trilu_params;

#endif
