/* The order of the steps.
 *
 * Steps run in phases that alternate: even phases on the CPU, odd ones on the device. A step's
 * phase is the least that its operands allow, so CPU steps go as early as they can and each odd
 * phase, one region, is as large as it can be:
 *
 *     graph    D1  C1(x)  D2(D1)  C2(D2)  D3(x)  D4(C2)
 *     phases   0: C1   1: D1 D2 D3   2: C2   3: D4
 *
 * This takes the fewest changes between CPU and device that the data flow admits. Inside a phase
 * the graph's order is kept.
 */
#include "session/om_plan.h"

static uint32_t set_phases(om_plan *plan) {
  uint32_t phase_count = 0;
  for (size_t s = 0; s < plan->step_count; ++s) {
    om_step *step = &plan->steps[s];
    const om_plan_step *view = &plan->view_steps[s];
    uint32_t color = step->is_accepted ? 1 : 0;
    step->phase = color;
    for (uint32_t i = 0; i < view->input_count; ++i) {
      uint32_t value = view->inputs[i];
      if (value == (uint32_t)OM_PLAN_NO_VALUE || plan->maker[value] == OM_NO_ITEM) continue;
      uint32_t earliest = plan->steps[plan->maker[value]].phase;
      if ((earliest & 1) != color) earliest += 1;
      if (earliest > step->phase) step->phase = earliest;
    }
    if (step->phase + 1 > phase_count) phase_count = step->phase + 1;
  }
  return phase_count;
}

/* plan->order: the steps by phase, in the graph's order inside one. starts[p] is where phase p
 * begins; starts[phase_count] is the end. */
static void sort_by_phase(om_plan *plan, uint32_t *starts, uint32_t phase_count) {
  for (size_t s = 0; s < plan->step_count; ++s) starts[plan->steps[s].phase + 1] += 1;
  for (uint32_t p = 0; p < phase_count; ++p) starts[p + 1] += starts[p];
  for (uint32_t s = 0; s < plan->step_count; ++s) plan->order[starts[plan->steps[s].phase]++] = s;
  for (uint32_t p = phase_count; p > 0; --p) starts[p] = starts[p - 1];
  starts[0] = 0;
}

static void add_region(om_plan *plan, uint32_t begin, uint32_t end) {
  uint32_t region = (uint32_t)plan->region_count++;
  uint32_t item = (uint32_t)plan->item_count++;
  plan->regions[region] = (om_plan_region){.steps = plan->order + begin, .step_count = end - begin};
  plan->items[item] = (om_plan_item){.is_region = true, .index = region};
  for (uint32_t i = begin; i < end; ++i) {
    plan->steps[plan->order[i]].item = item;
    plan->steps[plan->order[i]].region = region;
  }
}

static void add_cpu_steps(om_plan *plan, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    uint32_t item = (uint32_t)plan->item_count++;
    plan->items[item] = (om_plan_item){.index = plan->order[i]};
    plan->steps[plan->order[i]].item = item;
  }
}

om_status om_plan_schedule(om_ctx *ctx, om_plan *plan) {
  uint32_t phase_count = set_phases(plan);
  uint32_t *starts = OM_POOL_NEW(ctx, &plan->pool, uint32_t, (size_t)phase_count + 1);
  plan->order = OM_POOL_NEW(ctx, &plan->pool, uint32_t, plan->step_count);
  plan->items = OM_POOL_NEW(ctx, &plan->pool, om_plan_item, plan->step_count);
  plan->regions = OM_POOL_NEW(ctx, &plan->pool, om_plan_region, phase_count / 2);
  if (!starts || !plan->order || !plan->items || !plan->regions) return OM_E_OUT_OF_MEMORY;
  sort_by_phase(plan, starts, phase_count);
  for (uint32_t p = 0; p < phase_count; ++p) {
    if (starts[p] == starts[p + 1]) continue;
    if ((p & 1) != 0) {
      add_region(plan, starts[p], starts[p + 1]);
    } else {
      add_cpu_steps(plan, starts[p], starts[p + 1]);
    }
  }
  return OM_OK;
}
