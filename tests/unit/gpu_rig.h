/* A small plan by hand, for tests of the GPU package below the session.
 *
 *     gpu_rig rig;
 *     rig_open(&rig, "null", OM_MODE_EXACT, false);
 *     uint32_t x = rig_input(&rig, 2, (int64_t[]){4, 7});
 *     uint32_t y = rig_step(&rig, "Relu", (uint32_t[]){x}, 1);
 *     rig_compile(&rig, (uint32_t[]){y}, 1);
 *     ... rig.plan->regions[0] ...
 *     rig_close(&rig);
 *
 * All steps form one region. A step has the attributes that rig->attrs holds when it is added;
 * shapes come from the operators' rules.
 * Any failure fails the test.
 */
#ifndef GPU_RIG_H
#define GPU_RIG_H

#include <stdlib.h>

#include "gpu/om_gpu_state.h"
#include "harness/om_test_skip.h"

enum { RIG_VALUES = 64, RIG_STEPS = 32, RIG_OPERANDS = 4, RIG_PARAMS = 1024 };

typedef struct gpu_rig {
  om_error error;
  om_memory_use use;
  om_ctx ctx;
  om_provider_session *session;
  om_provider_plan *plan;
  om_plan_value values[RIG_VALUES];
  om_plan_step steps[RIG_STEPS];
  om_node nodes[RIG_STEPS];
  const om_attr *attrs; /* of steps to come; borrowed */
  uint32_t attr_count;
  uint32_t inputs[RIG_STEPS][RIG_OPERANDS];
  uint32_t outputs[RIG_STEPS][1];
  uint64_t params[RIG_STEPS][RIG_PARAMS / 8];
  om_plan_view view;
  uint32_t reads[RIG_VALUES];
  uint32_t region_steps[RIG_STEPS];
  om_plan_region region;
  bool is_fused[RIG_STEPS];
} gpu_rig;

static inline void rig_check(const gpu_rig *rig, om_status status) {
  if (status != OM_OK) fail_msg("%s: %s", om_status_name(status), rig->error.message);
}

static inline void rig_init(gpu_rig *rig) {
  memset(rig, 0, sizeof *rig);
  rig->ctx = (om_ctx){.allocator = om_default_allocator(),
                      .use = &rig->use,
                      .error = &rig->error,
                      .thread_count = 1};
  rig->view.values = rig->values;
  rig->view.steps = rig->steps;
}

/* Skips the test where there is no device. */
static inline void rig_open_with(gpu_rig *rig, const om_gpu_options *options, om_mode mode) {
  rig_init(rig);
  om_status st =
      om_gpu_provider()->open(&rig->ctx, om_gpu_provider(), options, mode, &rig->session);
  if (st == OM_E_UNSUPPORTED) {
    OM_TEST_SKIP("%s", rig->error.message);
  }
  rig_check(rig, st);
}

static inline void rig_open(gpu_rig *rig, const char *backend, om_mode mode, bool no_fusion) {
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  options.backend = backend;
  if (!backend || strcmp(backend, "null") != 0) options.device = getenv("OM_TEST_DEVICE");
  options.no_fusion = no_fusion;
  rig_open_with(rig, &options, mode);
}

static inline uint32_t rig_value(gpu_rig *rig, const om_tensor *tensor) {
  assert_true(rig->view.value_count < RIG_VALUES);
  rig->values[rig->view.value_count] =
      (om_plan_value){.name = "value", .tensor = *tensor, .is_static = true};
  return (uint32_t)rig->view.value_count++;
}

static inline uint32_t rig_input(gpu_rig *rig, uint32_t rank, const int64_t *dims) {
  om_tensor tensor = om_tensor_of(OM_DTYPE_F32, rank, dims, NULL);
  uint32_t value = rig_value(rig, &tensor);
  rig->reads[rig->region.read_count++] = value;
  return value;
}

static inline uint32_t rig_weight(gpu_rig *rig, uint32_t rank, const int64_t *dims, float *data) {
  om_tensor tensor = om_tensor_of(OM_DTYPE_F32, rank, dims, data);
  uint32_t value = rig_value(rig, &tensor);
  rig->values[value].is_weight = true;
  return value;
}

static inline uint32_t rig_step_of(gpu_rig *rig,
                                   const char *domain,
                                   const char *type,
                                   const uint32_t *inputs,
                                   uint32_t input_count) {
  size_t index = rig->view.step_count++;
  om_node *node = &rig->nodes[index];
  const om_tensor *in[RIG_OPERANDS];
  om_tensor out = {0};
  om_tensor *outs[1] = {&out};
  assert_true(index < RIG_STEPS && input_count <= RIG_OPERANDS);
  memcpy(rig->inputs[index], inputs, input_count * sizeof *inputs);
  for (uint32_t i = 0; i < input_count; ++i) in[i] = &rig->values[inputs[i]].tensor;
  *node = (om_node){.name = "node",
                    .type = type,
                    .domain = domain,
                    .opset = 20,
                    .inputs = rig->inputs[index],
                    .input_count = input_count,
                    .outputs = rig->outputs[index],
                    .output_count = 1,
                    .attrs = rig->attrs,
                    .attr_count = rig->attr_count,
                    .op = om_op_find(domain, type, 20, NULL),
                    .params = rig->params[index]};
  assert_non_null(node->op);
  assert_true(node->op->params_bytes <= RIG_PARAMS);
  if (node->op->resolve) rig_check(rig, node->op->resolve(&rig->ctx, node, rig->params[index]));
  om_op_call call = {.node = node,
                     .params = node->params,
                     .inputs = in,
                     .input_count = input_count,
                     .outputs = outs,
                     .output_count = 1};
  rig_check(rig, node->op->infer(&rig->ctx, &call));
  rig->outputs[index][0] = rig_value(rig, &out);
  rig->steps[index] = (om_plan_step){.node = node,
                                     .inputs = rig->inputs[index],
                                     .input_count = input_count,
                                     .outputs = rig->outputs[index],
                                     .output_count = 1};
  rig->region_steps[index] = (uint32_t)index;
  return rig->outputs[index][0];
}

static inline uint32_t rig_step(gpu_rig *rig,
                                const char *type,
                                const uint32_t *inputs,
                                uint32_t input_count) {
  return rig_step_of(rig, "", type, inputs, input_count);
}

static inline uint32_t rig_unary(gpu_rig *rig, const char *type, uint32_t x) {
  return rig_step(rig, type, &x, 1);
}

static inline uint32_t rig_binary(gpu_rig *rig, const char *type, uint32_t x, uint32_t y) {
  const uint32_t inputs[2] = {x, y};
  return rig_step(rig, type, inputs, 2);
}

/* Claims every step; each must be accepted. `writes` must outlive the rig's compile. */
static inline void rig_compile(gpu_rig *rig, const uint32_t *writes, size_t write_count) {
  const om_provider *provider = om_gpu_provider();
  rig_check(rig, provider->plan_begin(&rig->ctx, rig->session, &rig->view, &rig->plan));
  for (uint32_t i = 0; i < rig->view.step_count; ++i) {
    const char *reason = NULL;
    rig_check(rig, provider->claim(&rig->ctx, rig->plan, i, &reason));
    if (reason) fail_msg("%s: %s", rig->nodes[i].type, reason);
  }
  rig->region.steps = rig->region_steps;
  rig->region.step_count = rig->view.step_count;
  rig->region.reads = rig->reads;
  rig->region.writes = writes;
  rig->region.write_count = write_count;
  rig_check(rig, provider->compile(&rig->ctx, rig->plan, &rig->region, 1, rig->is_fused));
}

static inline void rig_run(gpu_rig *rig, const void *const *reads, void *const *writes) {
  rig_check(rig, om_gpu_provider()->begin(&rig->ctx, rig->plan, 0, reads));
  rig_check(rig, om_gpu_provider()->finish(&rig->ctx, rig->plan, 0, writes));
}

static inline void rig_end_plan(gpu_rig *rig) {
  om_gpu_provider()->plan_end(&rig->ctx, rig->plan);
  rig->plan = NULL;
}

static inline void rig_close(gpu_rig *rig) {
  rig_end_plan(rig);
  om_gpu_provider()->close(&rig->ctx, rig->session);
  assert_int_equal(rig->use.live_bytes, 0);
}

#endif
