/* Dispatches whose operands broadcast to the result: integers, tests, selection. */
#ifndef OM_GPU_BROADCAST_H
#define OM_GPU_BROADCAST_H

#include "gpu/om_gpu_op.h"

/* Appends a dispatch of a kernel with broadcast_params from the first `count` inputs (at most 3) to
 * output 0, `per_thread` elements an invocation; its constants are the caller's. Its bindings are
 * the inputs, unused ones up to the last, and the result. NULL: no memory. */
om_gpu_dispatch *om_gpu_add_broadcast(om_gpu_binder *b,
                                      om_shader shader,
                                      uint32_t count,
                                      uint32_t per_thread);

/* Binds arithmetic of int32 or int64: `operation` as integer.comp has it. A reason or NULL. */
const char *om_gpu_bind_integer(om_gpu_binder *b, uint32_t operation);

/* Binds Clip of int32 or int64. A reason or NULL. */
const char *om_gpu_bind_integer_clip(om_gpu_binder *b);

/* Operations of elementwise.def that these take. */
#define OM_GPU_HAS_INTEGERS(number)                                                        \
  ((number) == 1 || (number) == 2 || (number) == 12 || (number) == 13 || (number) == 17 || \
   ((number) >= 64 && (number) <= 67) || (number) == 69 || (number) == 70)

#endif
