/* The self-test that earns a device exact mode. */
#ifndef OM_GPU_SELFTEST_H
#define OM_GPU_SELFTEST_H

#include "gpu/om_gpu_state.h"

/* Runs the exact primitives over adversarial values on the session's device and compares bits
 * with the CPU. Sets failed_primitives, their names, and whether the device keeps subnormals. A
 * primitive that fails is no error; a device that does is. */
om_status om_gpu_selftest(om_ctx *ctx, om_provider_session *session);

/* One kernel of the self-test over words in host memory: om_gpu_trial.c. Inputs and results are
 * parts of `count` words each, one behind the other, bound in this order. */
typedef struct om_gpu_trial {
  om_shader shader;
  uint32_t runs;  /* dispatches; each is told its number */
  uint32_t count; /* of invocations: a multiple of 64, a workgroup's */
  const void *inputs;
  uint32_t input_count;
  void *results; /* result_count parts for each run */
  uint32_t result_count;
} om_gpu_trial;

om_status om_gpu_try(om_ctx *ctx, om_provider_session *session, const om_gpu_trial *trial);

/* Why operators that rest on these failed primitives stay on the CPU; NULL for none. Static. */
const char *om_gpu_primitive_reason(uint32_t primitives);

#endif
