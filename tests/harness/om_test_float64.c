#include "harness/om_test_float64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "onnx/om_model.h"
#include "rewrite/om_float64.h"

/* Counts nothing and lives as long as the process. */
static om_model *widen(const om_model *model) {
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  om_graph graph;
  om_model *wide = NULL;
  om_status status = om_graph_to_float64(&ctx, om_model_get_graph(model), &graph);
  if (status == OM_OK) status = om_model_create_from_graph(&ctx, &graph, &wide);
  if (status != OM_OK) fail_msg("%s", error.message);
  return wide;
}

static om_named_tensor widen_input(const om_named_tensor *from) {
  om_named_tensor to = *from;
  const size_t elems = om_tensor_elems(&from->tensor);
  if (from->tensor.dtype == OM_DTYPE_F32) {
    to.tensor = om_tensor_of(OM_DTYPE_F64, from->tensor.rank, from->tensor.dims, NULL);
  }
  double *data = to.tensor.data = malloc(to.tensor.data_bytes + 1);
  assert_non_null(data);
  if (from->tensor.dtype != OM_DTYPE_F32) {
    memcpy(data, from->tensor.data, to.tensor.data_bytes);
    return to;
  }
  for (size_t i = 0; i < elems; ++i) data[i] = (double)((const float *)from->tensor.data)[i];
  return to;
}

double *om_test_run_float64(const om_model *model,
                            const om_named_tensor *inputs,
                            size_t input_count,
                            const char *output,
                            size_t *out_elems) {
  om_error error = {0};
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_named_tensor result = {.name = output};
  om_model *wide = widen(model);
  om_named_tensor *wide_inputs = malloc((input_count + 1) * sizeof *wide_inputs);
  assert_non_null(wide_inputs);
  for (size_t i = 0; i < input_count; ++i) wide_inputs[i] = widen_input(&inputs[i]);
  const om_run_args args = {sizeof args, wide_inputs, input_count, &result, 1};
  options.mode = OM_MODE_EXACT;
  if (om_session_create(wide, &options, &session, &error) != OM_OK) fail_msg("%s", error.message);
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  assert_int_equal(result.tensor.dtype, OM_DTYPE_F64);
  *out_elems = om_tensor_elems(&result.tensor);
  double *values = malloc(*out_elems * sizeof *values + 1);
  assert_non_null(values);
  memcpy(values, result.tensor.data, *out_elems * sizeof *values);
  om_session_destroy(session);
  om_model_destroy(wide);
  for (size_t i = 0; i < input_count; ++i) free(wide_inputs[i].tensor.data);
  free(wide_inputs);
  return values;
}
