/* Plans: what is folded, in which order steps run, what goes to the device and why not, and what
 * crosses the border. A fake device takes the operators that a test names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_fake_provider.h"
#include "harness/om_graph_builder.h"

static om_session *make_session(
    om_model *model, om_fake_device *device, bool require_gpu, om_status want, om_error *error) {
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = OM_MODE_EXACT;
  options.provider = device ? om_fake_provider() : NULL;
  options.provider_options = device;
  options.require_gpu = require_gpu;
  om_status st = om_session_create(model, &options, &session, error);
  if (st != want) fail_msg("status %s: %s", om_status_name(st), error->message);
  return session;
}

static const om_node_diagnostics *find(const om_diagnostics *d, const char *name) {
  for (size_t i = 0; i < d->node_count; ++i) {
    if (strcmp(d->nodes[i].name, name) == 0) return &d->nodes[i];
  }
  fail_msg("the diagnostics lack %s", name);
  return NULL;
}

static const om_diagnostics *diagnose(om_session *session,
                                      const om_named_tensor *inputs,
                                      size_t count) {
  om_error error;
  const om_diagnostics *d = NULL;
  if (om_session_diagnose(session, inputs, count, &d, &error) != OM_OK)
    fail_msg("%s", error.message);
  return d;
}

/* ---- Folding ---- */

/* y = Reshape(x, [Shape(x)[0], -1]), spelled as exporters do, then Relu. */
static om_model *make_flatten(void) {
  static const int64_t zero = 0, rest = -1, axes = 0;
  static const char *const symbols[] = {"N", "C", "H"};
  om_graph_builder b;
  om_build_begin(&b, 13);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 3, (int64_t[]){-1, -1, -1}, symbols);
  om_value_id index = om_build_constant(&b, "index", OM_DTYPE_I64, 0, NULL, &zero);
  om_value_id minus = om_build_constant(&b, "minus", OM_DTYPE_I64, 1, (int64_t[]){1}, &rest);
  om_value_id axis = om_build_constant(&b, "axis", OM_DTYPE_I64, 1, (int64_t[]){1}, &axes);
  om_value_id shape = om_build_node(&b, "Shape", "shape", 1, (om_value_id[]){x});
  om_value_id n = om_build_node(&b, "Gather", "n", 2, (om_value_id[]){shape, index});
  om_value_id vector = om_build_node(&b, "Unsqueeze", "vector", 2, (om_value_id[]){n, axis});
  om_value_id target = om_build_node(&b, "Concat", "target", 2, (om_value_id[]){vector, minus});
  om_build_int(&b, "axis", 0);
  om_value_id flat = om_build_node(&b, "Reshape", "flat", 2, (om_value_id[]){x, target});
  om_build_output(&b, om_build_node(&b, "Relu", "y", 1, (om_value_id[]){flat}));
  return om_build_model(&b);
}

static void folds_shape_arithmetic(void **state) {
  om_error error;
  om_fake_device device = {.takes = {"Relu", "Reshape"}, .refuses = {"Shape", "Gather"}};
  float x[24];
  (void)state;
  for (int i = 0; i < 24; ++i) x[i] = (float)i - 12.0f;
  om_model *model = make_flatten();
  /* require_gpu holds although the device refuses Shape and Gather: no run needs them. */
  om_session *session = make_session(model, &device, true, OM_OK, &error);
  for (int64_t n = 1; n <= 4; n *= 2) {
    om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 3, (int64_t[]){n, 3, 24 / n / 3}, x)};
    om_named_tensor output = {"y", {0}};
    const om_diagnostics *d = diagnose(session, &input, 1);
    assert_int_equal(d->nodes_folded, 4);
    assert_int_equal(d->nodes_on_device, 2);
    assert_int_equal(d->nodes_on_cpu, 0);
    assert_int_equal(find(d, "target")->place, OM_PLACE_FOLDED);
    om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
    assert_int_equal(om_session_run(session, &args, &error), OM_OK);
    assert_int_equal(output.tensor.rank, 2);
    assert_int_equal(output.tensor.dims[0], n);
    assert_int_equal(output.tensor.dims[1], 24 / n);
    for (int i = 0; i < 24; ++i) {
      assert_true(((float *)output.tensor.data)[i] == (x[i] > 0.0f ? x[i] : 0.0f));
    }
  }
  om_session_destroy(session);
  om_model_destroy(model);
}

static void leaves_large_constants_unfolded(void **state) {
  static const int64_t huge[2] = {1 << 20, 1 << 12};
  om_error error;
  om_graph_builder b;
  (void)state;
  om_build_begin(&b, 13);
  om_value_id shape = om_build_constant(&b, "shape", OM_DTYPE_I64, 1, (int64_t[]){2}, huge);
  om_value_id zeros = om_build_node(&b, "ConstantOfShape", "zeros", 1, (om_value_id[]){shape});
  om_build_output(&b, om_build_node(&b, "Shape", "y", 1, (om_value_id[]){zeros}));
  om_model *model = om_build_model(&b);
  om_session *session = make_session(model, NULL, false, OM_OK, &error);
  om_named_tensor output = {"y", {0}};
  om_run_args args = {sizeof args, NULL, 0, &output, 1, NULL};
  assert_int_equal(om_session_run(session, &args, &error), OM_OK);
  assert_int_equal(((int64_t *)output.tensor.data)[0], huge[0]);
  assert_int_equal(((int64_t *)output.tensor.data)[1], huge[1]);
  /* 16 GiB of zeros were never made: only their shape is read. */
  assert_true(om_session_get_statistics(session).host_peak_bytes < 1 << 20);
  assert_int_equal(diagnose(session, NULL, 0)->nodes_folded, 2);
  om_session_destroy(session);
  om_model_destroy(model);
}

static void reports_a_failed_fold_when_it_runs(void **state) {
  static const float table[3] = {1, 2, 3};
  static const int64_t index = 40;
  om_error error;
  om_graph_builder b;
  (void)state;
  om_build_begin(&b, 13);
  om_value_id data = om_build_constant(&b, "table", OM_DTYPE_F32, 1, (int64_t[]){3}, table);
  om_value_id at = om_build_constant(&b, "at", OM_DTYPE_I64, 0, NULL, &index);
  om_build_output(&b, om_build_node(&b, "Gather", "y", 2, (om_value_id[]){data, at}));
  om_model *model = om_build_model(&b);
  om_session *session = make_session(model, NULL, false, OM_OK, &error);
  om_named_tensor output = {"y", {0}};
  om_run_args args = {sizeof args, NULL, 0, &output, 1, NULL};
  assert_int_equal(om_session_run(session, &args, &error), OM_E_INVALID_INPUT);
  assert_string_equal(error.message,
                      "Node 'y' (Gather): Gather index 40 is out of range for an extent of 3.");
  om_session_destroy(session);
  om_model_destroy(model);
}

static void refuses_a_type_that_the_model_declares_wrong(void **state) {
  om_error error;
  om_graph_builder b;
  static const float x[2] = {1, 2};
  (void)state;
  for (int is_constant = 0; is_constant < 2; ++is_constant) {
    om_build_begin(&b, 13);
    om_value_id in = is_constant ? om_build_constant(&b, "x", OM_DTYPE_F32, 1, (int64_t[]){2}, x)
                                 : om_build_input(&b, "x", OM_DTYPE_F32, 1, (int64_t[]){2}, NULL);
    om_value_id y = om_build_node(&b, "Relu", "y", 1, &in);
    b.graph.values[y].dtype = OM_DTYPE_I64;
    om_build_output(&b, y);
    om_model *model = om_build_model(&b);
    assert_null(make_session(model, NULL, false, OM_E_INVALID_MODEL, &error));
    assert_string_equal(
        error.message, "Node 'y' (Relu): Its result 'y' is float32, but the model declares int64.");
    om_model_destroy(model);
  }
}

/* ---- Shapes that only a run tells ---- */

static void runs_steps_whose_shape_is_data(void **state) {
  om_error error;
  om_graph_builder b;
  om_fake_device device = {.takes = {"Relu", "Reshape"}};
  float x[6] = {-1, 2, -3, 4, -5, 6};
  (void)state;
  om_build_begin(&b, 13);
  om_value_id data = om_build_input(&b, "x", OM_DTYPE_F32, 1, (int64_t[]){6}, NULL);
  om_value_id shape = om_build_input(&b, "shape", OM_DTYPE_I64, 1, (int64_t[]){2}, NULL);
  om_value_id before = om_build_node(&b, "Relu", "before", 1, (om_value_id[]){data});
  om_value_id view = om_build_node(&b, "Reshape", "view", 2, (om_value_id[]){before, shape});
  om_build_output(&b, om_build_node(&b, "Relu", "y", 1, (om_value_id[]){view}));
  om_model *model = om_build_model(&b);
  om_session *session = make_session(model, &device, false, OM_OK, &error);
  const int64_t shapes[][2] = {{2, 3}, {3, 2}, {2, 3}, {6, 1}};
  uint64_t allocations = 0;
  for (size_t i = 0; i < OM_COUNT_OF(shapes); ++i) {
    int64_t dims[2] = {shapes[i][0], shapes[i][1]};
    om_named_tensor inputs[] = {{"x", om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){6}, x)},
                                {"shape", om_tensor_of(OM_DTYPE_I64, 1, (int64_t[]){2}, dims)}};
    om_named_tensor output = {"y", {0}};
    om_run_args args = {sizeof args, inputs, 2, &output, 1, NULL};
    assert_int_equal(om_session_run(session, &args, &error), OM_OK);
    assert_int_equal(output.tensor.dims[0], dims[0]);
    assert_int_equal(output.tensor.dims[1], dims[1]);
    assert_true(((float *)output.tensor.data)[0] == 0.0f);
    assert_true(((float *)output.tensor.data)[5] == 6.0f);
    float small[2];
    om_named_tensor tight = {"y", {.data = small, .data_bytes = sizeof small}};
    args.outputs = &tight;
    assert_int_equal(om_session_run(session, &args, &error), OM_E_INVALID_INPUT);
    assert_non_null(strstr(error.message, "takes 24 bytes, but the memory given for it has 8"));
  }
  allocations = om_session_get_statistics(session).host_allocations;
  const om_diagnostics *d = diagnose(session, NULL, 0);
  assert_int_equal(find(d, "before")->place, OM_PLACE_DEVICE);
  assert_int_equal(find(d, "y")->place, OM_PLACE_CPU);
  assert_string_equal(find(d, "y")->reason, "its shape is only known at run time");
  assert_int_equal(om_session_get_statistics(session).host_allocations, allocations);
  int64_t wrong[2] = {4, 4};
  om_named_tensor inputs[] = {{"x", om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){6}, x)},
                              {"shape", om_tensor_of(OM_DTYPE_I64, 1, (int64_t[]){2}, wrong)}};
  om_run_args args = {sizeof args, inputs, 2, NULL, 0, NULL};
  assert_int_not_equal(om_session_run(session, &args, &error), OM_OK);
  assert_memory_equal(error.message, "Node 'view' (Reshape): ", 23);
  om_session_destroy(session);
  om_model_destroy(model);
}

/* ---- Partition ---- */

/* The picture in om_plan_schedule.c: D is Relu, C is Neg. */
static om_model *make_mixed(void) {
  om_graph_builder b;
  om_build_begin(&b, 13);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 1, (int64_t[]){8}, NULL);
  om_value_id d1 = om_build_node(&b, "Relu", "D1", 1, (om_value_id[]){x});
  om_value_id c1 = om_build_node(&b, "Neg", "C1", 1, (om_value_id[]){x});
  om_value_id d2 = om_build_node(&b, "Relu", "D2", 1, (om_value_id[]){d1});
  om_value_id c2 = om_build_node(&b, "Neg", "C2", 1, (om_value_id[]){d2});
  om_value_id d3 = om_build_node(&b, "Add", "D3", 2, (om_value_id[]){x, c1});
  om_value_id d4 = om_build_node(&b, "Add", "D4", 2, (om_value_id[]){c2, d3});
  om_build_output(&b, d4);
  return om_build_model(&b);
}

static void gathers_steps_into_regions(void **state) {
  static const char *const order[] = {"C1", "D1", "D2", "D3", "C2", "D4"};
  om_error error;
  om_fake_device device = {.takes = {"Relu", "Add"}, .marks_fused = true};
  float x[8] = {-4, -3, -2, -1, 1, 2, 3, 4};
  (void)state;
  om_model *model = make_mixed();
  om_session *session = make_session(model, &device, false, OM_OK, &error);
  const om_diagnostics *d = diagnose(session, NULL, 0);
  assert_int_equal(d->node_count, 6);
  for (size_t i = 0; i < 6; ++i) assert_string_equal(d->nodes[i].name, order[i]);
  assert_int_equal(d->region_count, 2);
  assert_int_equal(d->nodes_on_device, 4);
  assert_int_equal(d->nodes_on_cpu, 2);
  /* Up: x and C1's result. Down: D2's (for C2) and D3's (for the other region). */
  assert_int_equal(d->regions[0].node_count, 3);
  assert_int_equal(d->regions[0].bytes_up, 64);
  assert_int_equal(d->regions[0].bytes_down, 64);
  assert_string_equal(d->regions[0].split_by, "C2");
  assert_string_equal(d->regions[0].split_reason, "the fake device does not take it");
  assert_int_equal(d->regions[1].bytes_up, 64);
  assert_int_equal(d->regions[1].bytes_down, 32);
  assert_string_equal(d->regions[1].split_by, "");
  assert_string_equal(d->regions[1].split_reason, "");
  assert_int_equal(find(d, "D4")->region, 1);
  assert_int_equal(find(d, "C1")->region, OM_NO_REGION);
  assert_true(find(d, "D2")->is_fused);
  assert_false(find(d, "D1")->is_fused);
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){8}, x)};
  om_named_tensor output = {"D4", {0}};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(om_session_run(session, &args, &error), OM_OK);
    for (size_t k = 0; k < 8; ++k) {
      float relu = x[k] > 0.0f ? x[k] : 0.0f;
      assert_true(((float *)output.tensor.data)[k] == -relu + (x[k] - x[k]));
    }
    output.tensor.data = NULL;
  }
  assert_int_equal(device.run_count, 4);
  assert_int_equal(device.compile_count, 1);
  om_session_destroy(session);
  assert_int_equal(device.open_count, 1);
  assert_int_equal(device.close_count, 1);
  assert_int_equal(device.plan_end_count, device.plan_count);
  om_model_destroy(model);
}

static void runs_a_model_without_nodes(void **state) {
  om_error error;
  om_graph_builder b;
  om_fake_device device = {.takes = {"Relu"}};
  float x[3] = {1, 2, 3};
  (void)state;
  om_build_begin(&b, 13);
  om_build_output(&b, om_build_input(&b, "x", OM_DTYPE_F32, 1, (int64_t[]){3}, NULL));
  om_model *model = om_build_model(&b);
  om_session *session = make_session(model, &device, true, OM_OK, &error);
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){3}, x)};
  om_named_tensor output = {"x", {0}};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  assert_int_equal(om_session_run(session, &args, &error), OM_OK);
  assert_memory_equal(output.tensor.data, x, sizeof x);
  assert_int_equal(diagnose(session, NULL, 0)->node_count, 0);
  om_session_destroy(session);
  om_model_destroy(model);
}

static void gives_a_reason_on_the_cpu_alone(void **state) {
  om_error error;
  (void)state;
  om_model *model = make_mixed();
  om_session *session = make_session(model, NULL, false, OM_OK, &error);
  const om_diagnostics *d = diagnose(session, NULL, 0);
  assert_int_equal(d->nodes_on_cpu, 6);
  assert_int_equal(d->region_count, 0);
  assert_string_equal(find(d, "D1")->reason, "the session has no device");
  om_session_destroy(session);
  om_model_destroy(model);
}

static void survives_a_failed_region(void **state) {
  om_error error;
  om_fake_device device = {.takes = {"Relu", "Add"}};
  float x[8] = {0};
  (void)state;
  om_model *model = make_mixed();
  om_session *session = make_session(model, &device, false, OM_OK, &error);
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){8}, x)};
  om_named_tensor output = {"D4", {0}};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  device.run_status = OM_E_OUT_OF_DEVICE_MEMORY;
  assert_int_equal(om_session_run(session, &args, &error), OM_E_OUT_OF_DEVICE_MEMORY);
  assert_string_equal(error.message, "The fake device fails as it was told to.");
  device.run_status = OM_OK;
  assert_int_equal(om_session_run(session, &args, &error), OM_OK);
  om_session_destroy(session);
  om_model_destroy(model);
}

static void passes_on_that_the_device_does_not_open(void **state) {
  om_error error;
  om_fake_device device = {.fails_to_open = true};
  (void)state;
  om_model *model = make_mixed();
  assert_null(make_session(model, &device, false, OM_E_UNSUPPORTED, &error));
  assert_string_equal(error.message, "There is no such device.");
  assert_int_equal(device.close_count, 0);
  om_model_destroy(model);
}

/* The graph is made ready while the device opens, and what is wrong with the model comes first. */
static void names_the_models_fault_before_the_devices(void **state) {
  om_error error;
  om_graph_builder b;
  om_fake_device device = {.fails_to_open = true};
  (void)state;
  for (int k = 0; k < 2; ++k) {
    om_build_begin(&b, 14);
    om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 1, (int64_t[]){3}, NULL);
    om_build_output(&b, om_build_node(&b, "NoSuchOperator", "odd", 1, &x));
    om_model *model = om_build_model(&b);
    device.fails_to_open = k == 0;
    assert_null(make_session(model, &device, false, OM_E_UNSUPPORTED, &error));
    assert_non_null(strstr(error.message, "NoSuchOperator"));
    assert_int_equal(device.close_count, k); /* one that had opened is closed */
    om_model_destroy(model);
  }
}

/* ---- require_gpu ---- */

static void count_lines(void *user, om_log_level level, const char *message) {
  assert_int_equal(level, OM_LOG_ERROR);
  assert_non_null(strstr(message, "(Neg) cannot run on the device: "));
  *(size_t *)user += 1;
}

static void require_gpu_names_what_check_refuses(void **state) {
  om_error error;
  om_fake_device device = {.takes = {"Relu", "Add"}, .refuses = {"Neg"}};
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  size_t lines = 0;
  (void)state;
  om_model *model = make_mixed();
  options.provider = om_fake_provider();
  options.provider_options = &device;
  options.require_gpu = true;
  options.log = (om_log){.write = count_lines, .user = &lines};
  assert_int_equal(om_session_create(model, &options, &session, &error), OM_E_UNSUPPORTED);
  assert_string_equal(error.message,
                      "require_gpu cannot be kept: Neg: no kernel for this operator (2 nodes, "
                      "first 'C1').");
  assert_int_equal(lines, 2);
  assert_int_equal(device.open_count, device.close_count);
  om_model_destroy(model);
}

static void require_gpu_names_what_claim_refuses(void **state) {
  om_error error;
  om_fake_device device = {.takes = {"Relu"}};
  (void)state;
  om_model *model = make_mixed();
  /* The shapes are fixed, so the creation fails already. */
  assert_null(make_session(model, &device, true, OM_E_UNSUPPORTED, &error));
  assert_non_null(
      strstr(error.message, "Neg: the fake device does not take it (2 nodes, first 'C1')"));
  assert_non_null(
      strstr(error.message, "Add: the fake device does not take it (2 nodes, first 'D3')"));
  assert_int_equal(device.plan_end_count, device.plan_count);
  om_model_destroy(model);

  /* With open shapes the first run of a shape fails. */
  om_fake_device less = {.takes = {"Relu"}};
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 3, (int64_t[]){1, 2, 3}, NULL)};
  model = make_flatten();
  om_session *session = make_session(model, &less, true, OM_OK, &error);
  assert_int_equal(om_session_prepare(session, &input, 1, &error), OM_E_UNSUPPORTED);
  assert_string_equal(error.message,
                      "require_gpu cannot be kept for these input shapes: Reshape: the fake device "
                      "does not take it ('flat').");
  om_session_destroy(session);
  om_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(folds_shape_arithmetic),
      cmocka_unit_test(leaves_large_constants_unfolded),
      cmocka_unit_test(reports_a_failed_fold_when_it_runs),
      cmocka_unit_test(refuses_a_type_that_the_model_declares_wrong),
      cmocka_unit_test(runs_steps_whose_shape_is_data),
      cmocka_unit_test(gathers_steps_into_regions),
      cmocka_unit_test(runs_a_model_without_nodes),
      cmocka_unit_test(gives_a_reason_on_the_cpu_alone),
      cmocka_unit_test(survives_a_failed_region),
      cmocka_unit_test(passes_on_that_the_device_does_not_open),
      cmocka_unit_test(names_the_models_fault_before_the_devices),
      cmocka_unit_test(require_gpu_names_what_check_refuses),
      cmocka_unit_test(require_gpu_names_what_claim_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
