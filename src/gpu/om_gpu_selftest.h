/* The self-test that earns a device exact mode. */
#ifndef OM_GPU_SELFTEST_H
#define OM_GPU_SELFTEST_H

#include "gpu/om_gpu_state.h"

typedef struct om_gpu_selftest om_gpu_selftest;

/* Runs the exact primitives over adversarial values on the session's device: begin hands them over,
 * finish waits for them and compares bits with the CPU. It sets failed_primitives, their names, and
 * whether the device keeps subnormals. A primitive that fails is no error; a device that does is.
 * Finish takes a NULL, and frees the test whatever becomes of it; where nothing may wait it is
 * called once the session's last submission is done. */
om_status om_gpu_selftest_begin(om_ctx *ctx,
                                om_provider_session *session,
                                om_gpu_selftest **out_test);
om_status om_gpu_selftest_finish(om_ctx *ctx, om_provider_session *session, om_gpu_selftest *test);
/* The two, one after the other. */
om_status om_gpu_selftest_run(om_ctx *ctx, om_provider_session *session);

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
  struct { /* owned, from begin to end; zeros before */
    om_hal_shader *trimmed;
    om_hal_buffer *inputs, *results, *readback;
    om_hal_kernel *kernel;
    om_hal_recording *recording;
  } rig;
} om_gpu_trial;

/* Submits the trial. Whatever begin answers, end frees what it made, once nothing of it runs. */
om_status om_gpu_trial_begin(om_ctx *ctx, om_provider_session *session, om_gpu_trial *trial);
/* Fills the results, after the wait. */
om_status om_gpu_trial_read(om_ctx *ctx, om_provider_session *session, const om_gpu_trial *trial);
void om_gpu_trial_end(om_ctx *ctx, om_provider_session *session, om_gpu_trial *trial);

/* Why operators that rest on these failed primitives stay on the CPU; NULL for none. Static. */
const char *om_gpu_primitive_reason(uint32_t primitives);

#endif
