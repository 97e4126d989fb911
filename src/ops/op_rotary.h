/* The parameters of RotaryEmbedding, and how its operands lie. */
#ifndef OP_ROTARY_H
#define OP_ROTARY_H

#include "cpu/exact/om_rotary.h"
#include "ops/om_rule.h"

enum { /* inputs */
       OM_ROTARY_X = 0,
       OM_ROTARY_COS = 1,
       OM_ROTARY_SIN = 2,
       OM_ROTARY_POSITIONS = 3, /* optional */
};

typedef struct om_rotary_params {
  int64_t heads; /* of a rank 3 input; 0: as many as the tables' rows are long */
  int64_t size;  /* elements of a head that are turned; 0: all */
  bool is_interleaved;
} om_rotary_params;

/* What infer has accepted. */
void om_rotary_describe(const om_rotary_params *params,
                        const om_tensor *x,
                        const om_tensor *cos,
                        om_rotary *out);

#endif
