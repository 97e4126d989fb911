/* The GPU package's part of the tests in a build without it: there is no provider and no device. */
#include "base/om_base.h"
#include "onemodel/gpu.h"

static om_status fail(om_error *error) {
  om_ctx ctx = {.error = error};
  return OM_FAIL(&ctx, OM_E_UNSUPPORTED, "This build has no GPU package.");
}

const om_provider *om_gpu_provider(void) {
  return NULL;
}

om_status om_gpu_list(om_gpu_device *devices, size_t capacity, size_t *out_count, om_error *error) {
  (void)devices;
  (void)capacity;
  (void)error;
  *out_count = 0;
  return OM_OK;
}

om_status om_gpu_prepare_begin(const om_gpu_options *options,
                               om_mode mode,
                               const om_allocator *allocator,
                               om_gpu_prepared **out_prepared,
                               om_error *error) {
  (void)options;
  (void)mode;
  (void)allocator;
  *out_prepared = NULL;
  return fail(error);
}

om_status om_gpu_prepare_poll(om_gpu_prepared *prepared, bool *out_done, om_error *error) {
  (void)prepared;
  (void)out_done;
  return fail(error);
}

void om_gpu_prepared_destroy(om_gpu_prepared *prepared) {
  (void)prepared;
}

om_status om_gpu_get_info(const om_session *session, om_gpu_info *out_info, om_error *error) {
  (void)session;
  (void)out_info;
  return fail(error);
}
