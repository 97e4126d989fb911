#include "harness/om_test_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/om_test_compare.h"
#include "harness/om_test_log.h"
#include "harness/om_test_shared.h"

om_model *om_test_load_model(const char *path) {
  om_error error = {0};
  om_model *model = NULL;
  if (om_model_load_file(path, NULL, &model, &error) != OM_OK) fail_msg("%s", error.message);
  return model;
}

static om_session *open_beside(const om_model *model,
                               const om_test_executor *executor,
                               om_gpu_prepared *shared) {
  om_error error = {0};
  om_session *session = NULL;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = executor->mode;
  options.thread_count = executor->thread_count;
  options.log = om_test_log();
  if (executor->backend) {
    gpu.backend = executor->backend;
    gpu.device = getenv("OM_TEST_DEVICE");
    gpu.shared = shared;
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
    options.require_gpu = true;
  }
  if (om_session_create(model, &options, &session, &error) != OM_OK) fail_msg("%s", error.message);
  return session;
}

om_session *om_test_open(const om_model *model, const om_test_executor *executor) {
  const bool is_vulkan = executor->backend && strcmp(executor->backend, "vulkan") == 0;
  return open_beside(model, executor, is_vulkan ? om_test_shared_device() : NULL);
}

om_session *om_test_open_alone(const om_model *model, const om_test_executor *executor) {
  return open_beside(model, executor, NULL);
}

void om_test_no_complaints(void) {
  const char *complaint = om_test_complaint();
  if (complaint) fail_msg("%s", complaint);
}

void om_test_check_placement(om_session *session, const om_named_tensor *inputs, size_t count) {
  const om_diagnostics *diagnostics = NULL;
  om_error error = {0};
  if (om_session_diagnose(session, inputs, count, &diagnostics, &error) != OM_OK) {
    fail_msg("%s", error.message);
  }
  for (size_t i = 0; i < diagnostics->node_count; ++i) {
    const om_node_diagnostics *node = &diagnostics->nodes[i];
    if (node->place == OM_PLACE_CPU) fail_msg("%s is on the CPU: %s", node->name, node->reason);
  }
  assert_int_equal(diagnostics->region_count, 1);
}

om_tensor om_test_run_model(const om_model *model,
                            const om_test_executor *executor,
                            const om_named_tensor *inputs,
                            size_t input_count) {
  om_error error = {0};
  om_session *session = om_test_open(model, executor);
  om_named_tensor output = {.name = om_model_get_info(model)->outputs[0].name};
  const om_run_args args = {sizeof args, inputs, input_count, &output, 1, NULL};
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  om_tensor result = output.tensor;
  result.data = malloc(result.data_bytes + 1);
  assert_non_null(result.data);
  memcpy(result.data, output.tensor.data, result.data_bytes);
  if (executor->backend) om_test_check_placement(session, inputs, input_count);
  om_session_destroy(session);
  om_test_no_complaints();
  return result;
}

om_tensor om_test_read_array(const char *path, om_dtype dtype) {
  int64_t head[1 + OM_MAX_RANK];
  float value = 0;
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is not there", path);
  assert_int_equal(fread(head, sizeof head[0], 1, file), 1);
  assert_in_range(head[0], 1, OM_MAX_RANK);
  assert_int_equal(fread(head + 1, sizeof head[0], (size_t)head[0], file), head[0]);
  om_tensor tensor = om_tensor_of(dtype, (uint32_t)head[0], head + 1, NULL);
  tensor.data = malloc(tensor.data_bytes + 1);
  assert_non_null(tensor.data);
  for (size_t i = 0; i < om_tensor_elems(&tensor); ++i) {
    assert_int_equal(fread(&value, sizeof value, 1, file), 1);
    om_tensor_set_value(&tensor, i, (double)value);
  }
  fclose(file);
  return tensor;
}

void om_test_same_bits(const om_tensor *a, const om_tensor *b) {
  size_t elem = 0;
  if (!om_tensor_same(a, b, &elem)) fail_msg("the bits differ from element %zu on", elem);
}

double om_test_scaled_error(const om_tensor *tensor, const double *expected, size_t count) {
  assert_int_equal(om_tensor_elems(tensor), count);
  double *values = malloc(count * sizeof *values + 1);
  assert_non_null(values);
  for (size_t i = 0; i < count; ++i) values[i] = om_tensor_value(tensor, i);
  const om_test_comparison found = om_test_compare(values, expected, count);
  free(values);
  assert_true(found.specials_match);
  return found.scaled_error;
}
