/* Profiles: with om_gpu_options.profile_steps every launch runs on its own between two timestamps,
 * and the times are added up by step. With ONEMODEL_GPU_PROFILE=1 each run also writes a line a
 * launch to the log:
 *
 *     12.30 us  conv_1x1_32x64  20x2x1 groups  chain Add Clip Mul Div  Conv 'p2o.Conv.12'
 *
 * A barrier before each launch keeps neighbours from overlapping, so the sum is more than the
 * run's own time.
 */
#include <stdio.h>

#include "gpu/om_gpu_state.h"

static const char *operation_name(uint8_t op) {
  switch (op) {
#define OM_UNARY(number, type, name, opset, scalar_count, expression) \
  case number:                                                        \
    return #type;
#define OM_BINARY(number, type, name, opset, expression) \
  case number:                                           \
    return #type;
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY
    case OM_CHAIN_SAVE:
      return "SAVE";
    case OM_CHAIN_ADD_SCALED:
      return "ADD_SCALED";
    case OM_CHAIN_ROUND_HALF:
      return "ROUND_HALF";
    default:
      return "?";
  }
}

static void write_chain(const om_gpu_chain *chain, char *text, size_t bytes) {
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < chain->item_count && used < bytes; ++i) {
    const char *name = operation_name(chain->items[i].op);
    int written = snprintf(text + used, bytes - used, "%s%s", i == 0 ? "  chain " : " ", name);
    if (written > 0) used += (size_t)written;
  }
}

static void log_launch(const om_ctx *ctx,
                       const om_provider_plan *plan,
                       const om_gpu_launch *launch,
                       uint64_t ns) {
  const om_gpu_dispatch *d = launch->dispatch;
  const om_node *node = plan->view->steps[launch->step].node;
  char chain[160];
  write_chain(&d->chain, chain, sizeof chain);
  om_log_write(ctx,
               OM_LOG_INFO,
               "%9.2f us  %s  %ux%ux%u groups%s  %s '%s'",
               (double)ns / 1e3,
               om_shader_get(d->shader)->name,
               d->groups[0],
               d->groups[1],
               d->groups[2],
               chain,
               node->type,
               node->name);
}

static void log_region(const om_ctx *ctx,
                       const om_provider_plan *plan,
                       const om_gpu_region *region) {
  const uint64_t *times = region->times;
  const size_t end = region->launch_count + 2;
  om_log_write(ctx, OM_LOG_INFO, "%9.2f us  uploads", (double)(times[1] - times[0]) / 1e3);
  for (size_t i = 0; i < region->launch_count; ++i) {
    log_launch(ctx, plan, &region->launches[i], times[i + 2] - times[i + 1]);
  }
  om_log_write(
      ctx, OM_LOG_INFO, "%9.2f us  readbacks", (double)(times[end] - times[end - 1]) / 1e3);
}

/* A place for each step that dispatches, in the plan's order. */
static om_status list_steps(om_ctx *ctx, om_provider_plan *plan) {
  const om_plan_view *view = plan->view;
  plan->time_of_step = OM_POOL_NEW(ctx, &plan->pool, uint32_t, view->step_count);
  if (!plan->time_of_step) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < plan->region_count; ++i) {
    const om_gpu_region *region = &plan->regions[i];
    for (size_t k = 0; k < region->launch_count; ++k) {
      plan->time_of_step[region->launches[k].step] = 1; /* marked; the place follows */
    }
  }
  for (size_t i = 0; i < view->step_count; ++i) plan->step_time_count += plan->time_of_step[i];
  plan->step_times = OM_POOL_NEW(ctx, &plan->pool, om_gpu_step_time, plan->step_time_count);
  if (!plan->step_times) return OM_E_OUT_OF_MEMORY;
  uint32_t place = 0;
  for (size_t i = 0; i < view->step_count; ++i) {
    if (plan->time_of_step[i] == 0) continue;
    const om_node *node = view->steps[i].node;
    plan->step_times[place] = (om_gpu_step_time){.node = node->name, .type = node->type};
    plan->time_of_step[i] = place++;
  }
  return OM_OK;
}

om_status om_gpu_profile_prepare(om_ctx *ctx, om_provider_plan *plan) {
  if (!plan->session->profiles) return OM_OK;
  for (size_t i = 0; i < plan->region_count; ++i) {
    om_gpu_region *region = &plan->regions[i];
    region->times = OM_POOL_NEW(ctx, &plan->pool, uint64_t, region->launch_count + 3);
    if (!region->times) return OM_E_OUT_OF_MEMORY;
  }
  return list_steps(ctx, plan);
}

/* The times are a run's: its first region starts them. */
static void clear_times(om_provider_plan *plan) {
  for (size_t i = 0; i < plan->step_time_count; ++i) {
    plan->step_times[i].dispatches = 0;
    plan->step_times[i].ms = 0.0;
  }
}

om_status om_gpu_profile_read(om_ctx *ctx, om_provider_plan *plan, size_t region_index) {
  om_provider_session *session = plan->session;
  const om_gpu_region *region = &plan->regions[region_index];
  const size_t count = region->launch_count + 3;
  if (!session->profiles) return OM_OK;
  session->profiled = plan;
  if (region_index == 0) clear_times(plan);
  OM_TRY(session->hal->timestamps(ctx, region->recordings[0], (uint32_t)count, region->times));
  for (size_t i = 0; i < region->launch_count; ++i) {
    const uint64_t ns = region->times[i + 2] - region->times[i + 1];
    om_gpu_step_time *time = &plan->step_times[plan->time_of_step[region->launches[i].step]];
    time->dispatches += 1;
    time->ms += (double)ns / 1e6;
  }
  session->info.device_ms += (double)(region->times[count - 1] - region->times[0]) / 1e6;
  if (session->logs_profiles) log_region(ctx, plan, region);
  return OM_OK;
}
