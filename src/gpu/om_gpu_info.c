/* What the package tells about itself: devices, and a session's numbers. */
#include "gpu/om_gpu_state.h"

/* The devices of every backend, one after the other. */
static om_status list_all(om_ctx *ctx, om_gpu_device *devices, size_t capacity, size_t *out_count) {
  const om_hal *hal = NULL;
  *out_count = 0;
  for (size_t i = 0; (hal = om_hal_get(i)) != NULL; ++i) {
    size_t found = 0;
    size_t room = *out_count < capacity ? capacity - *out_count : 0;
    om_gpu_device *target = room > 0 ? devices + *out_count : NULL;
    if (hal == &om_hal_null) continue; /* nobody means it who does not name it */
    OM_TRY(hal->list(ctx, target, room, &found));
    *out_count += found;
  }
  return OM_OK;
}

om_status om_gpu_list(om_gpu_device *devices, size_t capacity, size_t *out_count, om_error *error) {
  om_ctx ctx = {.allocator = om_default_allocator(), .error = error, .thread_count = 1};
  om_error *spare = NULL; /* where the caller wants no words */
  if (!error) {
    spare = ctx.allocator.alloc(ctx.allocator.user, sizeof *spare);
    if (!spare) return OM_E_OUT_OF_MEMORY;
    ctx.error = spare;
  }
  om_error_clear(ctx.error);
  om_status st = OM_OK;
  if (!out_count || (!devices && capacity > 0)) {
    st = OM_FAIL(&ctx, OM_E_INVALID_ARGUMENT, "om_gpu_list needs an array and a count.");
  } else {
    st = list_all(&ctx, devices, capacity, out_count);
  }
  if (spare) ctx.allocator.free(ctx.allocator.user, spare, sizeof *spare);
  return st;
}

static om_status refuse(om_error *error, const char *message) {
  om_ctx ctx = {.error = error};
  if (!error) return OM_E_INVALID_ARGUMENT;
  return OM_FAIL(&ctx, OM_E_INVALID_ARGUMENT, "%s", message);
}

static const char not_ours[] = "The session was not made with om_gpu_provider.";

/* The session's state here; NULL where another provider made it, or none. */
static const om_provider_session *find_state(const om_session *session) {
  const om_provider *provider = NULL;
  const om_provider_session *state = om_session_get_provider_session(session, &provider);
  return provider == om_gpu_provider() ? state : NULL;
}

om_status om_gpu_get_info(const om_session *session, om_gpu_info *out_info, om_error *error) {
  if (error) om_error_clear(error);
  if (!session || !out_info) return refuse(error, "om_gpu_get_info needs a session and a place.");
  const om_provider_session *state = find_state(session);
  if (!state) return refuse(error, not_ours);
  *out_info = state->info;
  out_info->cache_file = state->cache.path ? state->cache.path : "";
  return OM_OK;
}

om_status om_gpu_get_step_times(const om_session *session,
                                const om_gpu_step_time **out_times,
                                size_t *out_count,
                                om_error *error) {
  if (error) om_error_clear(error);
  if (!session || !out_times || !out_count) {
    return refuse(error, "om_gpu_get_step_times needs a session and two places.");
  }
  const om_provider_session *state = find_state(session);
  if (!state) return refuse(error, not_ours);
  *out_times = state->profiled ? state->profiled->step_times : NULL;
  *out_count = state->profiled ? state->profiled->step_time_count : 0;
  return OM_OK;
}
