/* Attributes of the operators that read or write elements at indices. */
#ifndef OP_GATHER_H
#define OP_GATHER_H

#include "ops/om_rule.h"

typedef struct om_gather_params { /* Gather, GatherElements */
  int64_t axis;
} om_gather_params;

typedef struct om_gather_nd_params {
  int64_t batch_axes; /* leading axes that data and indices share */
} om_gather_nd_params;

typedef struct om_compress_params {
  int64_t axis;
  bool has_axis; /* false: the data is taken as one list */
} om_compress_params;

typedef enum om_scatter_reduction {
  OM_SCATTER_NONE,
  OM_SCATTER_ADD,
  OM_SCATTER_MUL,
  OM_SCATTER_MAX,
  OM_SCATTER_MIN,
} om_scatter_reduction;

typedef struct om_scatter_params {
  int64_t axis; /* not for ScatterND */
  om_scatter_reduction reduction;
} om_scatter_params;

#endif
