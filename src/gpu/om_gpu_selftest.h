/* The self-test that earns a device exact mode. */
#ifndef OM_GPU_SELFTEST_H
#define OM_GPU_SELFTEST_H

#include "gpu/om_gpu_state.h"

/* Runs the exact primitives over adversarial values on the session's device and compares bits
 * with the CPU. Sets failed_primitives, their names, and whether the device keeps subnormals. A
 * primitive that fails is no error; a device that does is. */
om_status om_gpu_selftest(om_ctx *ctx, om_provider_session *session);

/* Why operators that rest on these failed primitives stay on the CPU; NULL for none. Static. */
const char *om_gpu_primitive_reason(uint32_t primitives);

#endif
