/* Results that stay in the device's readback memory: right for several regions of one run, beside
 * results in the caller's memory, and again after a run of another shape.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_graph_builder.h"
#include "onemodel/gpu.h"

enum { ELEMS = 1000 };

static float x[ELEMS];
static float own[ELEMS];

/* Relu, Sinh (no GPU kernel), Relu: two regions with the CPU between them. */
static om_model *make_model(om_graph_builder *b) {
  om_build_begin(b, 17);
  om_value_id in = om_build_input(b, "x", OM_DTYPE_F32, 1, (int64_t[]){-1}, NULL);
  om_value_id first = om_build_node(b, "Relu", "first", 1, &in);
  om_value_id middle = om_build_node(b, "Sinh", "middle", 1, &first);
  om_value_id last = om_build_node(b, "Relu", "last", 1, &middle);
  om_build_output(b, first);
  om_build_output(b, last);
  return om_build_model(b);
}

static void run(om_session *session, size_t elems, om_named_tensor *outputs) {
  om_error error = {0};
  const int64_t dims[1] = {(int64_t)elems};
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, 1, dims, x)};
  om_run_args args = {sizeof args, &input, 1, outputs, 2, NULL};
  for (size_t i = 0; i < elems; ++i) x[i] = (float)i * 0.01f - 1.0f;
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  for (size_t i = 0; i < elems; ++i) {
    float a = x[i] > 0.0f ? x[i] : 0.0f;
    assert_true(((const float *)outputs[0].tensor.data)[i] == a);
    assert_true(fabsf(((const float *)outputs[1].tensor.data)[i] - sinhf(a)) <= 1e-5f * sinhf(a));
  }
}

static void test_results_of_two_regions(void **state) {
  om_error error = {0};
  om_graph_builder builder;
  om_session *session = NULL;
  (void)state;
  om_model *model = make_model(&builder);
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.provider = om_gpu_provider();
  if (om_session_create(model, &options, &session, &error) != OM_OK) {
    om_model_destroy(model);
    print_message("skipped: %s\n", error.message);
    skip();
  }
  for (size_t elems = ELEMS; elems > 0; elems /= 3) {
    om_named_tensor lent[2] = {{.name = "first"}, {.name = "last"}};
    om_named_tensor mixed[2] = {{.name = "first"}, {.name = "last"}};
    mixed[0].tensor.data = own;
    mixed[0].tensor.data_bytes = sizeof own;
    run(session, elems, lent);
    run(session, elems, mixed);
    assert_ptr_equal(mixed[0].tensor.data, own);
    lent[0].tensor = lent[1].tensor = (om_tensor){0};
    run(session, elems, lent);
  }
  om_session_destroy(session);
  om_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_results_of_two_regions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
