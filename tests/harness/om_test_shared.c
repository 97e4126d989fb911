#include "harness/om_test_shared.h"

#include <stdlib.h>
#include <string.h>

static om_gpu_prepared *shared;
static bool is_refused; /* it could not be opened: sessions say why */

static void leave(void) {
  om_gpu_prepared_destroy(shared);
  shared = NULL;
}

static om_status prepare(void) {
  bool is_done = false;
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = "vulkan";
  options.device = getenv("OM_TEST_DEVICE");
  om_status st = om_gpu_prepare_begin(&options, OM_MODE_EXACT, NULL, &shared, NULL);
  while (st == OM_OK && !is_done) st = om_gpu_prepare_poll(shared, &is_done, NULL);
  return st;
}

om_gpu_prepared *om_test_shared_device(void) {
  static bool is_registered;
  const char *validation = getenv("ONEMODEL_VULKAN_VALIDATION");
  if (shared || is_refused || (validation && strcmp(validation, "1") == 0)) return shared;
  is_refused = prepare() != OM_OK;
  if (is_refused) leave();
  if (!is_registered) is_registered = atexit(leave) == 0;
  return shared;
}

void om_test_shared_check(om_status status) {
  if (status == OM_E_DEVICE_LOST) leave();
}
