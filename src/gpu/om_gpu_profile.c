/* Profiles, for whoever makes kernels faster: with ONEMODEL_GPU_PROFILE=1 every launch runs on its
 * own between two timestamps, and each run writes a line a launch to the log:
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

om_status om_gpu_profile_log(om_ctx *ctx,
                             const om_provider_plan *plan,
                             const om_gpu_region *region) {
  om_status st = OM_OK;
  const om_provider_session *session = plan->session;
  uint64_t *times = NULL; /* scratch: the start, the uploads, each launch, the end */
  size_t count = region->launch_count + 3;
  if (region->recording_count != 1) return OM_OK;
  OM_GO_NEW(times, count);
  OM_GO(session->hal->timestamps(ctx, region->recordings[0], (uint32_t)count, times));
  om_log_write(ctx, OM_LOG_INFO, "%9.2f us  uploads", (double)(times[1] - times[0]) / 1e3);
  for (size_t i = 0; i < region->launch_count; ++i) {
    log_launch(ctx, plan, &region->launches[i], times[i + 2] - times[i + 1]);
  }
  om_log_write(
      ctx, OM_LOG_INFO, "%9.2f us  readbacks", (double)(times[count - 1] - times[count - 2]) / 1e3);
done:
  om_delete(ctx, times);
  return st;
}
