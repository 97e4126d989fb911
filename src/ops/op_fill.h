/* Attributes of the operators that make tensors from little data. */
#ifndef OP_FILL_H
#define OP_FILL_H

#include "ops/om_rule.h"

typedef struct om_fill_params { /* ConstantOfShape */
  const om_tensor *value;       /* borrowed from the node; NULL: float32 zero */
} om_fill_params;

#endif
