/* LRN: attributes, and what one application computes. */
#ifndef OP_LRN_H
#define OP_LRN_H

#include "cpu/exact/om_lrn.h"
#include "graph/om_op.h"

typedef struct om_lrn_params {
  float alpha;
  float beta;
  float bias;
  int64_t size;
} om_lrn_params;

/* For a tensor that the shape rule has accepted; for the CPU and devices alike. */
om_lrn om_lrn_fit(const om_lrn_params *params, const om_tensor *x);

#endif
