/* Who runs what: the provider's answers, what require_gpu makes of them, and the regions. */
#include "graph/om_stored.h"
#include "session/om_plan.h"
#include "session/om_report.h"

/* The refusal that is known without asking the provider, or NULL. */
static const char *settled_reason(const om_plan *plan, const om_step *step) {
  if (!plan->source.provider) return "the session has no device";
  if (step->call.node->op->bodies[0]) return "its bodies are begun by the host, as data decides";
  if (plan->source.refusals[step->node]) return plan->source.refusals[step->node];
  if (step->is_dynamic) return "its shape is only known at run time";
  return NULL;
}

om_status om_plan_claim(om_ctx *ctx, om_plan *plan) {
  const om_provider *provider = plan->source.provider;
  om_status late = OM_OK;
  if (provider && plan->step_count > 0) {
    OM_TRY(provider->plan_begin(
        ctx, plan->source.provider_session, &plan->view, &plan->provider_plan));
  }
  for (uint32_t i = 0; i < plan->step_count; ++i) {
    om_step *step = &plan->steps[i];
    step->reason = settled_reason(plan, step);
    if (step->reason) continue;
    OM_TRY(om_put_off(provider->claim(ctx, plan->provider_plan, i, &step->reason), &late));
    step->is_accepted = step->reason == NULL;
    if (step->is_accepted) step->reason = "the device has a kernel for it";
  }
  return late;
}

om_status om_plan_check_required(om_ctx *ctx, const om_plan *plan) {
  om_status st = OM_OK;
  om_report *report = NULL;
  if (!plan->source.require_gpu) return OM_OK;
  OM_GO_NEW(report, 1);
  for (size_t i = 0; i < plan->step_count; ++i) {
    const om_step *step = &plan->steps[i];
    if (step->is_accepted) continue;
    om_report_add(report, step->call.node, step->reason);
    om_log_write(ctx,
                 OM_LOG_ERROR,
                 "Node '%s' (%s) cannot run on the device: %s.",
                 step->call.node->name,
                 step->call.node->type,
                 step->reason);
  }
  if (report->node_count > 0) {
    st = om_report_fail(
        ctx, report, OM_E_UNSUPPORTED, "require_gpu cannot be kept for these input shapes");
  }
done:
  om_delete(ctx, report);
  return st;
}

/* ---- Regions ---- */

/* Counts the values that a region reads and does not make, and lists them where `out` is given.
 * `seen` holds per value the last pass that met it; passes are numbered from 1. */
static size_t gather_reads(
    const om_plan *plan, uint32_t region, uint32_t *seen, uint32_t pass, uint32_t *out) {
  const om_plan_region *r = &plan->regions[region];
  size_t count = 0;
  for (size_t s = 0; s < r->step_count; ++s) {
    const om_plan_step *step = &plan->view_steps[r->steps[s]];
    for (uint32_t i = 0; i < step->input_count; ++i) {
      uint32_t value = step->inputs[i];
      if (value == (uint32_t)OM_PLAN_NO_VALUE || plan->values[value].tensor.data) continue;
      uint32_t maker = plan->maker[value];
      if (maker != OM_NO_ITEM && plan->steps[maker].item == plan->steps[r->steps[0]].item) continue;
      if (seen[value] == pass) continue;
      seen[value] = pass;
      if (out) out[count] = value;
      count += 1;
    }
  }
  return count;
}

static size_t gather_writes(const om_plan *plan,
                            uint32_t region,
                            const bool *is_read_outside,
                            uint32_t *out) {
  const om_plan_region *r = &plan->regions[region];
  size_t count = 0;
  for (size_t s = 0; s < r->step_count; ++s) {
    const om_plan_step *step = &plan->view_steps[r->steps[s]];
    for (uint32_t i = 0; i < step->output_count; ++i) {
      uint32_t value = step->outputs[i];
      if (value == (uint32_t)OM_PLAN_NO_VALUE || !is_read_outside[value]) continue;
      if (out) out[count] = value;
      count += 1;
    }
  }
  return count;
}

/* A value crosses a border if the caller reads it, or a step of another item than its maker's. */
static void find_outside_reads(const om_plan *plan, bool *is_read_outside) {
  for (size_t s = 0; s < plan->step_count; ++s) {
    const om_plan_step *step = &plan->view_steps[s];
    for (uint32_t i = 0; i < step->input_count; ++i) {
      uint32_t value = step->inputs[i];
      if (value == (uint32_t)OM_PLAN_NO_VALUE || plan->maker[value] == OM_NO_ITEM) continue;
      const om_step *maker = &plan->steps[plan->maker[value]];
      if (maker->item != plan->steps[s].item) is_read_outside[value] = true;
    }
  }
  for (size_t i = 0; i < plan->source.graph->output_count; ++i) {
    is_read_outside[plan->source.graph->outputs[i]] = true;
  }
}

static om_status fill_region(
    om_ctx *ctx, om_plan *plan, uint32_t index, uint32_t *seen, const bool *is_read_outside) {
  om_plan_region *r = &plan->regions[index];
  r->read_count = gather_reads(plan, index, seen, 2 * index + 1, NULL);
  r->write_count = gather_writes(plan, index, is_read_outside, NULL);
  uint32_t *reads = OM_POOL_NEW(ctx, &plan->pool, uint32_t, r->read_count);
  uint32_t *writes = OM_POOL_NEW(ctx, &plan->pool, uint32_t, r->write_count);
  plan->region_reads[index] = OM_POOL_NEW(ctx, &plan->pool, const void *, r->read_count);
  plan->region_writes[index] = OM_POOL_NEW(ctx, &plan->pool, void *, r->write_count);
  if (!reads || !writes || !plan->region_reads[index] || !plan->region_writes[index]) {
    return OM_E_OUT_OF_MEMORY;
  }
  gather_reads(plan, index, seen, 2 * index + 2, reads);
  gather_writes(plan, index, is_read_outside, writes);
  r->reads = reads;
  r->writes = writes;
  return OM_OK;
}

om_status om_plan_form_regions(om_ctx *ctx, om_plan *plan) {
  om_status st = OM_OK;
  uint32_t *seen = NULL;        /* scratch */
  bool *is_read_outside = NULL; /* scratch */
  plan->region_reads = OM_POOL_NEW(ctx, &plan->pool, const void **, plan->region_count);
  plan->region_writes = OM_POOL_NEW(ctx, &plan->pool, void **, plan->region_count);
  if (!plan->region_reads || !plan->region_writes) return OM_E_OUT_OF_MEMORY;
  OM_GO_NEW(seen, plan->view.value_count);
  OM_GO_NEW(is_read_outside, plan->view.value_count);
  find_outside_reads(plan, is_read_outside);
  for (uint32_t i = 0; i < plan->region_count; ++i) {
    OM_GO(fill_region(ctx, plan, i, seen, is_read_outside));
  }
done:
  om_delete(ctx, seen);
  om_delete(ctx, is_read_outside);
  return st;
}

om_status om_plan_compile(om_ctx *ctx, om_plan *plan) {
  om_status st = OM_OK;
  bool *is_fused = NULL; /* scratch */
  if (plan->region_count == 0) return OM_OK;
  OM_GO_NEW(is_fused, plan->step_count);
  OM_GO(plan->source.provider->compile(
      ctx, plan->provider_plan, plan->regions, plan->region_count, is_fused));
  for (size_t i = 0; i < plan->step_count; ++i) plan->steps[i].is_fused = is_fused[i];
done:
  om_delete(ctx, is_fused);
  return st;
}
