/* The provider for tests: see om_fake_provider.h. */
#include "harness/om_fake_provider.h"

#include <stdlib.h>

#include "graph/om_op.h"

struct om_provider_session {
  om_fake_device *device; /* borrowed from the test */
  om_mode mode;
  int polls_left; /* of the region under way */
};

struct om_provider_plan {
  om_provider_session *session;
  const om_plan_view *view;
  const om_plan_region *regions;
  om_tensor *tensors; /* owned: per value, data owned where is_owned */
  bool *is_owned;
};

static bool is_listed(const char *const *types, const char *type) {
  for (size_t i = 0; i < OM_FAKE_MAX_TYPES && types[i]; ++i) {
    if (strcmp(types[i], type) == 0) return true;
  }
  return false;
}

static om_status open_fake(om_ctx *ctx,
                           const om_provider *self,
                           const void *options,
                           om_mode mode,
                           om_provider_session **out_session) {
  om_fake_device *device;
  (void)self;
  *out_session = NULL;
  memcpy(&device, &options, sizeof device); /* the test's own, which it lets the fake change */
  if (device->fails_to_open) return OM_FAIL(ctx, OM_E_UNSUPPORTED, "There is no such device.");
  om_provider_session *session = om_new_bytes(ctx, 1, sizeof *session);
  if (!session) return OM_E_OUT_OF_MEMORY;
  session->device = device;
  session->mode = mode;
  device->open_count += 1;
  *out_session = session;
  return OM_OK;
}

static void close_fake(om_ctx *ctx, om_provider_session *session) {
  session->device->close_count += 1;
  om_delete(ctx, session);
}

static const char *check(om_provider_session *session, const om_node *node) {
  return is_listed(session->device->refuses, node->type) ? "no kernel for this operator" : NULL;
}

static om_status plan_begin(om_ctx *ctx,
                            om_provider_session *session,
                            const om_plan_view *view,
                            om_provider_plan **out_plan) {
  *out_plan = NULL;
  om_provider_plan *plan = om_new_bytes(ctx, 1, sizeof *plan);
  if (!plan) return OM_E_OUT_OF_MEMORY;
  plan->session = session;
  plan->view = view;
  plan->tensors = om_new_bytes(ctx, view->value_count, sizeof *plan->tensors);
  plan->is_owned = om_new_bytes(ctx, view->value_count, sizeof *plan->is_owned);
  if (!plan->tensors || !plan->is_owned) {
    om_delete(ctx, plan->tensors);
    om_delete(ctx, plan->is_owned);
    om_delete(ctx, plan);
    return OM_E_OUT_OF_MEMORY;
  }
  session->device->plan_count += 1;
  *out_plan = plan;
  return OM_OK;
}

static om_status claim(om_ctx *ctx,
                       om_provider_plan *plan,
                       uint32_t step,
                       const char **out_reason) {
  om_fake_device *device = plan->session->device;
  (void)ctx;
  device->claim_count += 1;
  *out_reason = is_listed(device->takes, plan->view->steps[step].node->type)
                    ? NULL
                    : "the fake device does not take it";
  return OM_OK;
}

static om_status compile(om_ctx *ctx,
                         om_provider_plan *plan,
                         const om_plan_region *regions,
                         size_t region_count,
                         bool *step_is_fused) {
  om_fake_device *device = plan->session->device;
  (void)ctx;
  plan->regions = regions;
  device->compile_count += 1;
  for (size_t r = 0; device->marks_fused && r < region_count; ++r) {
    for (size_t s = 1; s < regions[r].step_count; ++s) step_is_fused[regions[r].steps[s]] = true;
  }
  return OM_OK;
}

static void release_values(om_ctx *ctx, om_provider_plan *plan) {
  for (size_t i = 0; i < plan->view->value_count; ++i) {
    if (plan->is_owned[i]) om_delete(ctx, plan->tensors[i].data);
    plan->is_owned[i] = false;
  }
}

static om_status run_step(om_ctx *ctx, om_provider_plan *plan, uint32_t index) {
  const om_plan_step *step = &plan->view->steps[index];
  const om_tensor *inputs[OM_FAKE_MAX_TYPES] = {NULL};
  om_tensor *outputs[OM_FAKE_MAX_TYPES] = {NULL};
  om_op_call call = {.node = step->node,
                     .params = step->node->params,
                     .inputs = inputs,
                     .input_count = step->input_count,
                     .outputs = outputs,
                     .output_count = step->output_count,
                     .mode = plan->session->mode};
  if (step->input_count > OM_FAKE_MAX_TYPES || step->output_count > OM_FAKE_MAX_TYPES) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "Too many operands for the fake device.");
  }
  for (uint32_t i = 0; i < step->input_count; ++i) {
    if (step->inputs[i] != (uint32_t)OM_PLAN_NO_VALUE) inputs[i] = &plan->tensors[step->inputs[i]];
  }
  for (uint32_t i = 0; i < step->output_count; ++i) {
    uint32_t value = step->outputs[i];
    if (value == (uint32_t)OM_PLAN_NO_VALUE) continue;
    om_tensor *tensor = &plan->tensors[value];
    outputs[i] = tensor;
    if (tensor->data) continue;
    size_t bytes = 0;
    if (!om_shape_bytes(tensor->dtype, tensor->rank, tensor->dims, &bytes)) bytes = 0;
    tensor->data = om_new_bytes(ctx, bytes, 1);
    if (!tensor->data) return OM_E_OUT_OF_MEMORY;
    plan->is_owned[value] = true;
  }
  size_t scratch_bytes = step->node->op->scratch_bytes ? step->node->op->scratch_bytes(&call) : 0;
  call.scratch = om_new_bytes(ctx, scratch_bytes, 1);
  if (!call.scratch) return OM_E_OUT_OF_MEMORY;
  om_status st = step->node->op->run(ctx, &call);
  om_delete(ctx, call.scratch);
  return st;
}

static om_status begin(om_ctx *ctx,
                       om_provider_plan *plan,
                       size_t region,
                       const void *const *reads) {
  const om_plan_region *r = &plan->regions[region];
  om_fake_device *device = plan->session->device;
  device->run_count += 1;
  plan->session->polls_left = device->polls;
  if (device->run_status != OM_OK) {
    return OM_FAIL(ctx, device->run_status, "The fake device fails as it was told to.");
  }
  for (size_t i = 0; i < plan->view->value_count; ++i) {
    plan->tensors[i] = plan->view->values[i].tensor;
  }
  for (size_t i = 0; i < r->read_count; ++i) {
    memcpy(&plan->tensors[r->reads[i]].data, &reads[i], sizeof reads[i]);
  }
  return OM_OK;
}

static om_status is_done(om_ctx *ctx, om_provider_plan *plan, size_t region, bool *out_is_done) {
  (void)ctx;
  (void)region;
  if (plan->session->polls_left > 0) plan->session->polls_left -= 1;
  *out_is_done = plan->session->polls_left == 0;
  return OM_OK;
}

static bool never_waits(const om_provider_session *session) {
  return session->device->never_waits;
}

static om_status finish(om_ctx *ctx, om_provider_plan *plan, size_t region, void *const *writes) {
  om_status st = OM_OK;
  const om_plan_region *r = &plan->regions[region];
  if (plan->session->device->never_waits && plan->session->polls_left > 0) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "The fake device was made to wait.");
  }
  for (size_t i = 0; i < r->write_count; ++i) plan->tensors[r->writes[i]].data = writes[i];
  for (size_t i = 0; st == OM_OK && i < r->step_count; ++i) st = run_step(ctx, plan, r->steps[i]);
  release_values(ctx, plan);
  return st;
}

static void plan_end(om_ctx *ctx, om_provider_plan *plan) {
  if (!plan) return;
  plan->session->device->plan_end_count += 1;
  om_delete(ctx, plan->tensors);
  om_delete(ctx, plan->is_owned);
  om_delete(ctx, plan);
}

const om_provider *om_fake_provider(void) {
  static const om_provider provider = {.struct_bytes = sizeof provider,
                                       .name = "fake",
                                       .open = open_fake,
                                       .close = close_fake,
                                       .check = check,
                                       .plan_begin = plan_begin,
                                       .claim = claim,
                                       .compile = compile,
                                       .begin = begin,
                                       .is_done = is_done,
                                       .finish = finish,
                                       .never_waits = never_waits,
                                       .plan_end = plan_end};
  return &provider;
}
