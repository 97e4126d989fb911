/* Quantizing, as binders of products need it too. */
#ifndef OM_GPU_QUANTIZE_H
#define OM_GPU_QUANTIZE_H

#include "gpu/om_gpu_op.h"

/* Appends the dispatches that find the scale (a float32) and the zero point (a uint8) of input 0,
 * a float32 tensor, by its own range, and its elements with them. A reason or NULL. */
const char *om_gpu_bind_own_range(om_gpu_binder *b,
                                  om_gpu_operand bytes,
                                  om_gpu_operand scale,
                                  om_gpu_operand zero);

#endif
