/* What the package tells about itself: devices, and a session's numbers. */
#include "gpu/om_gpu_state.h"

om_status om_gpu_list(om_gpu_device *devices, size_t capacity, size_t *out_count, om_error *error) {
  om_error own;
  om_ctx ctx = {.allocator = om_default_allocator(), .error = error ? error : &own};
  ctx.thread_count = 1;
  om_error_clear(ctx.error);
  if (!out_count || (!devices && capacity > 0)) {
    return OM_FAIL(&ctx, OM_E_INVALID_ARGUMENT, "om_gpu_list needs an array and a count.");
  }
  *out_count = 0;
  const om_hal *hal = NULL;
  for (size_t i = 0; (hal = om_hal_get(i)) != NULL; ++i) {
    size_t found = 0;
    size_t room = *out_count < capacity ? capacity - *out_count : 0;
    if (strcmp(hal->name, "null") == 0) continue; /* nobody means it who does not name it */
    om_gpu_device *target = room > 0 ? devices + *out_count : NULL;
    OM_TRY(hal->list(&ctx, target, room, &found));
    *out_count += found;
  }
  return OM_OK;
}

om_status om_gpu_get_info(const om_session *session, om_gpu_info *out_info, om_error *error) {
  om_error own;
  om_ctx ctx = {.allocator = om_default_allocator(), .error = error ? error : &own};
  const om_provider *provider = NULL;
  ctx.thread_count = 1;
  om_error_clear(ctx.error);
  if (!session || !out_info) {
    return OM_FAIL(&ctx, OM_E_INVALID_ARGUMENT, "om_gpu_get_info needs a session and a place.");
  }
  const om_provider_session *state = om_session_get_provider_session(session, &provider);
  if (!state || provider != om_gpu_provider()) {
    return OM_FAIL(&ctx, OM_E_INVALID_ARGUMENT, "The session was not made with om_gpu_provider.");
  }
  *out_info = state->info;
  return OM_OK;
}
