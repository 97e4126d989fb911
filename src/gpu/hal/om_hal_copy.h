/* Copies between the caller's memory and a mapped buffer. */
#ifndef OM_HAL_COPY_H
#define OM_HAL_COPY_H

#include "base/om_base.h"

/* memcpy, on several threads where it is long enough: one core moves about 10 GB/s, a picture of
 * 640x640 then takes as long as a third of the detector's device time. */
void om_hal_copy(om_ctx *ctx, void *target, const void *source, size_t bytes);

#endif
