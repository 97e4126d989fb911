/* Demands on the values of inputs: indices inside their axis, divisors other than 0.
 *
 *     known while planning   looked at by bind: a reason, and the CPU gives the error
 *     from the host          looked at before the upload
 *     made on the device     looked at by a kernel; its finding (four words) lives to the end of
 *                            the region, is read back with the results, and fails the run
 *
 * The error is the CPU's in each case. A kernel that uses such values clamps them besides, so that
 * no access leaves its buffer before the finding is read.
 */
#include "abi/demand_params.h"
#include "gpu/om_gpu_state.h"
#include "ops/om_rule.h"

enum { FINDING_BYTES = 16 };

/* True if the value at `place` breaks the demand. */
static bool is_broken(const om_gpu_demand *demand, size_t place, int64_t value) {
  if (demand->kind == OM_GPU_DEMAND_DIVISOR) return value == 0;
  const int64_t extent = demand->extents[place % demand->extent_count];
  return value < -extent || value >= extent;
}

static om_status fail(
    om_ctx *ctx, const om_gpu_demand *demand, const om_node *node, size_t place, int64_t value) {
  size_t ignored = 0;
  om_status st = OM_OK;
  if (demand->kind == OM_GPU_DEMAND_DIVISOR) {
    st = OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Integer division by zero: element %zu of the divisor is 0.",
                 place);
  } else {
    const int64_t extent = demand->extents[place % demand->extent_count];
    st = om_rule_index(ctx, node->type, value, extent, &ignored);
  }
  om_error_prefix(ctx, "Node '%s' (%s)", node->name, node->type);
  return st;
}

/* ---- Binding ---- */

/* The reason why known values do not do, or NULL. */
static const char *check_known(om_gpu_binder *b, const om_gpu_demand *demand, const om_tensor *t) {
  const size_t count = om_tensor_elems(t);
  for (size_t i = 0; i < count; ++i) {
    const int64_t value = om_rule_int(t, i);
    if (!is_broken(demand, i, value)) continue;
    if (demand->kind == OM_GPU_DEMAND_DIVISOR) return "its divisor is 0";
    return om_gpu_reason(b,
                         "its index %lld is out of range for an extent of %lld",
                         (long long)value,
                         (long long)demand->extents[i % demand->extent_count]);
  }
  return NULL;
}

static const char *add_demand(om_gpu_binder *b, om_gpu_demand *demand, uint32_t input) {
  om_gpu_step *step = b->step;
  const om_tensor *t = om_gpu_input(b, input);
  if (t->data) return check_known(b, demand, t);
  om_demand_kernel_params params = {.count = (uint32_t)om_tensor_elems(t),
                                    .axes = demand->extent_count};
  uint32_t extents[OM_MAX_RANK] = {0};
  for (uint32_t i = 0; i < demand->extent_count; ++i) extents[i] = (uint32_t)demand->extents[i];
  memcpy(&params.extent_0, extents, sizeof extents);
  const om_gpu_operand values = om_gpu_read(b, input);
  const om_gpu_operand finding = om_gpu_scratch(b, FINDING_BYTES);
  om_gpu_dispatch *d = om_gpu_add_dispatch(b, OM_SHADER_DEMAND);
  if (!d || OM_GROW(b->ctx, step->demands, step->demand_count, step->demand_capacity) != OM_OK) {
    if (b->status == OM_OK) b->status = OM_E_OUT_OF_MEMORY;
    return om_gpu_no_memory;
  }
  memcpy(d->params, &params, sizeof params);
  d->params_bytes = sizeof params;
  d->constants[0] = (uint32_t)demand->kind;
  d->constants[1] = (uint32_t)(om_dtype_bits(t->dtype) / 32);
  d->constant_count = 2;
  d->operands[0] = values;
  d->operands[1] = finding;
  d->operand_count = 2;
  demand->value = values.index;
  demand->dispatch = (uint32_t)step->dispatch_count - 1;
  demand->scratch = finding.index;
  step->demands[step->demand_count++] = *demand;
  return NULL;
}

const char *om_gpu_demand_indices(om_gpu_binder *b,
                                  uint32_t input,
                                  const int64_t *extents,
                                  uint32_t extent_count) {
  om_gpu_demand demand = {.kind = OM_GPU_DEMAND_INDEX, .extent_count = extent_count};
  memcpy(demand.extents, extents, extent_count * sizeof *extents);
  return add_demand(b, &demand, input);
}

const char *om_gpu_demand_divisor(om_gpu_binder *b, uint32_t input) {
  om_gpu_demand demand = {.kind = OM_GPU_DEMAND_DIVISOR, .extent_count = 1};
  return add_demand(b, &demand, input);
}

/* ---- Regions ---- */

static uint32_t find_read(const om_provider_plan *plan,
                          const om_gpu_region *region,
                          uint32_t value) {
  for (uint32_t i = 0; i < region->read_count; ++i) {
    if (plan->roots[region->reads[i]] == plan->roots[value]) return i;
  }
  return OM_GPU_NO_READ;
}

om_status om_gpu_demands_list(om_ctx *ctx,
                              om_provider_plan *plan,
                              const om_plan_region *source,
                              om_gpu_region *region) {
  size_t count = 0;
  for (size_t i = 0; i < source->step_count; ++i) {
    count += plan->steps[source->steps[i]].demand_count;
  }
  region->findings = OM_POOL_NEW(ctx, &plan->pool, om_gpu_finding, count);
  if (!region->findings) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < source->step_count; ++i) {
    const om_gpu_step *step = &plan->steps[source->steps[i]];
    for (size_t k = 0; k < step->demand_count; ++k) {
      const om_gpu_demand *demand = &step->demands[k];
      region->findings[region->finding_count++] =
          (om_gpu_finding){.demand = demand,
                           .step = source->steps[i],
                           .read = find_read(plan, region, demand->value)};
    }
  }
  return OM_OK;
}

bool om_gpu_demand_is_for_host(const om_gpu_region *region, uint32_t step, uint32_t dispatch) {
  for (size_t i = 0; i < region->finding_count; ++i) {
    const om_gpu_finding *finding = &region->findings[i];
    if (finding->step == step && finding->demand->dispatch == dispatch) {
      return finding->read != OM_GPU_NO_READ;
    }
  }
  return false;
}

/* ---- A run ---- */

om_status om_gpu_demands_check_reads(om_ctx *ctx,
                                     const om_provider_plan *plan,
                                     const om_gpu_region *region,
                                     const void *const *reads) {
  for (size_t i = 0; i < region->finding_count; ++i) {
    const om_gpu_finding *finding = &region->findings[i];
    const om_gpu_demand *demand = finding->demand;
    if (finding->read == OM_GPU_NO_READ) continue;
    const om_tensor *values = &plan->view->values[demand->value].tensor;
    const void *data = reads[finding->read];
    const bool is_long = values->dtype == OM_DTYPE_I64;
    const size_t count = om_tensor_elems(values);
    for (size_t k = 0; k < count; ++k) {
      const int64_t value = is_long ? ((const int64_t *)data)[k] : ((const int32_t *)data)[k];
      if (is_broken(demand, k, value)) {
        return fail(ctx, demand, plan->view->steps[finding->step].node, k, value);
      }
    }
  }
  return OM_OK;
}

om_status om_gpu_demands_check_findings(om_ctx *ctx,
                                        const om_provider_plan *plan,
                                        const om_gpu_region *region) {
  om_provider_session *session = plan->session;
  for (size_t i = 0; i < region->finding_count; ++i) {
    const om_gpu_finding *finding = &region->findings[i];
    uint32_t words[FINDING_BYTES / 4] = {0};
    if (finding->read != OM_GPU_NO_READ) continue;
    OM_TRY(session->hal->download(
        ctx, session->device, session->arena.readback, finding->offset, words, sizeof words));
    if (words[0] == 0) continue;
    const int64_t value = (int64_t)((uint64_t)words[2] << 32 | words[1]);
    return fail(
        ctx, finding->demand, plan->view->steps[finding->step].node, (size_t)words[0] - 1, value);
  }
  return OM_OK;
}
