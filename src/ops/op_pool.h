/* MaxPool, AveragePool, LpPool and their global forms: attributes and concrete shape. */
#ifndef OP_POOL_H
#define OP_POOL_H

#include "ops/op_window.h"

typedef enum om_pool_kind { OM_POOL_MAX, OM_POOL_AVERAGE, OM_POOL_LP } om_pool_kind;

typedef struct om_pool_params {
  om_window_params window;
  om_pool_kind kind;
  bool is_global;       /* one window over everything */
  bool counts_padding;  /* count_include_pad of an AveragePool */
  bool is_column_major; /* storage_order of a MaxPool's indices */
  float exponent;       /* p of an LpPool */
} om_pool_params;

/* The window over x; false: it does not fit (window.bad_axis). Global pools: a kernel as large as
 * the input. For the CPU and devices alike. */
bool om_pool_fit(const om_pool_params *params, const om_tensor *x, om_window *out_window);

#endif
