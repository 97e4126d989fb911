/* A check of sessions in fast and in exact mode, on the CPU and on a Vulkan device. */
#ifndef OM_EACH_MODE_H
#define OM_EACH_MODE_H

#include <stdlib.h>

#include "harness/om_test_case.h"
#include "harness/om_test_skip.h"
#include "onemodel/gpu.h"

typedef void (*om_mode_check)(const om_session_options *options);

static inline void om_each_mode_on_the_cpu(om_mode_check check) {
  for (int mode = OM_MODE_FAST; mode <= OM_MODE_EXACT; ++mode) {
    om_session_options options = OM_SESSION_OPTIONS_INIT;
    options.mode = (om_mode)mode;
    check(&options);
  }
}

/* Every operator has to run there. Without a device the running cmocka test is skipped. */
static inline void om_each_mode_on_a_device(om_mode_check check) {
  if (!om_test_backend_is_there("vulkan")) OM_TEST_SKIP("there is no Vulkan device");
  for (int mode = OM_MODE_FAST; mode <= OM_MODE_EXACT; ++mode) {
    om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
    om_session_options options = OM_SESSION_OPTIONS_INIT;
    gpu.backend = "vulkan";
    gpu.device = getenv("OM_TEST_DEVICE");
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
    options.require_gpu = true;
    options.mode = (om_mode)mode;
    check(&options);
  }
}

#endif
