/* Kernels kept between processes, in a file. */
#ifndef OM_GPU_CACHE_H
#define OM_GPU_CACHE_H

#include "gpu/om_gpu_state.h"

/* Chooses the file and gives the device what is in it. `folder` as om_gpu_options has it. */
om_status om_gpu_cache_begin(om_ctx *ctx, om_provider_session *session, const char *folder);

/* The same file as another session, which has given its content to the device that both use. */
om_status om_gpu_cache_join(om_ctx *ctx,
                            om_provider_session *session,
                            const om_provider_session *other);

/* Kernels were made: writes the file if one of them was not in it. */
om_status om_gpu_cache_keep(om_ctx *ctx, om_provider_session *session);

void om_gpu_cache_deinit(om_ctx *ctx, om_provider_session *session);

#endif
