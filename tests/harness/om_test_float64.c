#include "harness/om_test_float64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/om_test_compare.h"
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
  const bool is_widened = from->tensor.dtype == OM_DTYPE_F32 || from->tensor.dtype == OM_DTYPE_F16;
  if (is_widened) {
    to.tensor = om_tensor_of(OM_DTYPE_F64, from->tensor.rank, from->tensor.dims, NULL);
  }
  double *data = to.tensor.data = malloc(to.tensor.data_bytes + 1);
  assert_non_null(data);
  if (!is_widened) {
    memcpy(data, from->tensor.data, to.tensor.data_bytes);
    return to;
  }
  for (size_t i = 0; i < elems; ++i) data[i] = om_tensor_value(&from->tensor, i);
  return to;
}

typedef struct run {
  om_model *wide;          /* owned */
  om_named_tensor *inputs; /* owned, widened */
  size_t input_count;
} run;

static run begin(const om_model *model, const om_named_tensor *inputs, size_t input_count) {
  run r = {.wide = widen(model), .input_count = input_count};
  r.inputs = malloc((input_count + 1) * sizeof *r.inputs);
  assert_non_null(r.inputs);
  for (size_t i = 0; i < input_count; ++i) r.inputs[i] = widen_input(&inputs[i]);
  return r;
}

static void end(run *r) {
  for (size_t i = 0; i < r->input_count; ++i) free(r->inputs[i].tensor.data);
  free(r->inputs);
  om_model_destroy(r->wide);
}

static om_session *open(const om_model *wide, const char *const *names, size_t count) {
  om_error error = {0};
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = OM_MODE_EXACT;
  options.extra_outputs = names;
  options.extra_output_count = count;
  if (om_session_create(wide, &options, &session, &error) != OM_OK) fail_msg("%s", error.message);
  return session;
}

static void run_session(const run *r, om_session *session, om_named_tensor *outputs, size_t count) {
  om_error error = {0};
  const om_run_args args = {sizeof args, r->inputs, r->input_count, outputs, count, NULL};
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
}

static double *run_wide(const run *r, const om_model *wide, const char *output, size_t *out_elems) {
  om_named_tensor result = {.name = output};
  om_session *session = open(wide, NULL, 0);
  run_session(r, session, &result, 1);
  assert_int_equal(result.tensor.dtype, OM_DTYPE_F64);
  *out_elems = om_tensor_elems(&result.tensor);
  double *values = malloc(*out_elems * sizeof *values + 1);
  assert_non_null(values);
  memcpy(values, result.tensor.data, *out_elems * sizeof *values);
  om_session_destroy(session);
  return values;
}

double *om_test_run_float64(const om_model *model,
                            const om_named_tensor *inputs,
                            size_t input_count,
                            const char *output,
                            size_t *out_elems) {
  run r = begin(model, inputs, input_count);
  double *values = run_wide(&r, r.wide, output, out_elems);
  end(&r);
  return values;
}

/* ---- Rounded ---- */

/* By value: whether a node makes it, in float64. Only a run tells all types. */
static bool *find_doubles(const run *r) {
  const om_graph *graph = om_model_get_graph(r->wide);
  om_named_tensor *outputs = calloc(graph->value_count, sizeof *outputs);
  const char **names = calloc(graph->value_count, sizeof *names);
  bool *is_double = calloc(graph->value_count, sizeof *is_double);
  size_t count = 0;
  assert_true(outputs && names && is_double);
  for (size_t i = 0; i < graph->value_count; ++i) {
    if (graph->values[i].producer != OM_NO_NODE) names[count++] = graph->values[i].name;
  }
  for (size_t i = 0; i < count; ++i) outputs[i].name = names[i];
  om_session *session = open(r->wide, names, count);
  run_session(r, session, outputs, count);
  for (size_t i = 0, k = 0; i < graph->value_count; ++i) {
    if (graph->values[i].producer == OM_NO_NODE) continue;
    is_double[i] = outputs[k++].tensor.dtype == OM_DTYPE_F64;
  }
  om_session_destroy(session);
  free(outputs);
  free(names);
  return is_double;
}

static om_value_id add_cast(om_ctx *ctx, om_graph *graph, om_value_id from, om_dtype to) {
  om_value value = {.dtype = to, .producer = OM_NO_NODE};
  om_value_id *ends = OM_POOL_NEW(ctx, &graph->pool, om_value_id, 2);
  om_attr *attr = OM_POOL_NEW(ctx, &graph->pool, om_attr, 1);
  om_node_id id;
  value.name =
      om_pool_format(ctx, &graph->pool, "%s.%s", graph->values[from].name, om_dtype_name(to));
  assert_true(ends && attr && value.name);
  ends[0] = from;
  assert_int_equal(om_graph_add_value(ctx, graph, &value, &ends[1]), OM_OK);
  *attr = (om_attr){.name = "to", .kind = OM_ATTR_INT, .i = to};
  const om_node node = {.name = value.name,
                        .type = "Cast",
                        .domain = "",
                        .opset = 13,
                        .inputs = ends,
                        .input_count = 1,
                        .outputs = ends + 1,
                        .output_count = 1,
                        .attrs = attr,
                        .attr_count = 1};
  assert_int_equal(om_graph_add_node(ctx, graph, &node, &id), OM_OK);
  return ends[1];
}

/* Every node reads the rounded values. */
static om_model *round_values(const run *r, const bool *is_double) {
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  om_graph graph;
  om_model *model = NULL;
  assert_int_equal(om_graph_copy(&ctx, om_model_get_graph(r->wide), &graph), OM_OK);
  const size_t node_count = graph.node_count, value_count = graph.value_count;
  om_value_id *rounded = OM_POOL_NEW(&ctx, &graph.pool, om_value_id, value_count);
  assert_non_null(rounded);
  for (om_value_id id = 0; id < value_count; ++id) {
    rounded[id] = id;
    if (!is_double[id]) continue;
    rounded[id] = add_cast(&ctx, &graph, add_cast(&ctx, &graph, id, OM_DTYPE_F32), OM_DTYPE_F64);
  }
  for (size_t i = 0; i < node_count; ++i) {
    om_node *node = &graph.nodes[i];
    om_value_id *inputs = OM_POOL_NEW(&ctx, &graph.pool, om_value_id, node->input_count);
    assert_non_null(inputs);
    for (uint32_t k = 0; k < node->input_count; ++k) {
      inputs[k] = node->inputs[k] == OM_NO_VALUE ? OM_NO_VALUE : rounded[node->inputs[k]];
    }
    node->inputs = inputs;
  }
  if (om_model_create_from_graph(&ctx, &graph, &model) != OM_OK) fail_msg("%s", error.message);
  return model;
}

/* The last three of the 24 bits. */
static void change_input(const om_tensor *from, om_tensor *wide, uint32_t draw) {
  uint32_t state = draw;
  for (size_t i = 0; i < om_tensor_elems(from); ++i) {
    state = state * 1664525u + 1013904223u;
    const float factor = 1.0f + (float)((int)(state >> 29) - 4) * 0x1p-23f;
    const float x = ((const float *)from->data)[i] * factor;
    ((double *)wide->data)[i] = (double)x;
  }
}

static double compare_rounded(const run *r, const om_model *rounded, const char *output) {
  size_t count = 0;
  double *exact = run_wide(r, r->wide, output, &count);
  double *values = run_wide(r, rounded, output, &count);
  for (size_t i = 0; i < count; ++i) values[i] = om_dtype_round(OM_DTYPE_F32, values[i]);
  const om_test_comparison found = om_test_compare(values, exact, count);
  assert_true(found.specials_match);
  free(exact);
  free(values);
  return found.scaled_error;
}

double om_test_float32_noise(const om_model *model,
                             const om_named_tensor *input,
                             const char *output,
                             uint32_t draws) {
  double worst = 0;
  run r = begin(model, input, 1);
  bool *is_double = find_doubles(&r);
  om_model *rounded = round_values(&r, is_double);
  assert_int_equal(input->tensor.dtype, OM_DTYPE_F32);
  for (uint32_t draw = 0; draw < draws; ++draw) {
    change_input(&input->tensor, &r.inputs[0].tensor, draw);
    const double error = compare_rounded(&r, rounded, output);
    if (error > worst) worst = error;
  }
  om_model_destroy(rounded);
  free(is_double);
  end(&r);
  return worst;
}
