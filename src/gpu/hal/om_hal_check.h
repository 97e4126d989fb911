/* What every backend checks before its interface sees a call, with one wording for all of them.
 *
 * A limit of the device that is too small is OM_E_UNSUPPORTED: another device may do. A call that
 * breaks om_hal.h's contract is a bug of the caller: OM_E_INTERNAL. Whether a range lies inside
 * its buffer is left to the backend, which knows its buffers.
 */
#ifndef OM_HAL_CHECK_H
#define OM_HAL_CHECK_H

#include "gpu/hal/om_hal.h"

/* A buffer of this size can be made: not empty, whole words, within max_buffer_bytes. */
om_status om_hal_check_buffer(om_ctx *ctx, const om_hal_limits *limits, uint64_t bytes);

/* [offset, offset + bytes) are whole words inside a buffer of buffer_bytes. `what` names the
 * range in the message: "The upload". */
om_status om_hal_check_range(
    om_ctx *ctx, const char *what, uint64_t offset, uint64_t bytes, uint64_t buffer_bytes);

/* The kernel's code is of this kind, or PTX where the device takes it, and keeps the device's
 * limits and features. A driver may accept a kernel with too much shared memory and lose the device
 * when it runs. */
om_status om_hal_check_shader(om_ctx *ctx,
                              const om_hal_limits *limits,
                              const om_hal_features *features,
                              om_hal_code code_kind,
                              const om_hal_shader *shader);

/* The workgroups, parameters, and each binding's alignment and size. */
om_status om_hal_check_dispatch(om_ctx *ctx,
                                const om_hal_limits *limits,
                                const om_hal_shader *shader,
                                const om_hal_dispatch *dispatch);

#endif
