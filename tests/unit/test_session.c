/* The session's interface: options, inputs and outputs in every wrong and right form, and what is
 * promised about memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/om_fault.h"
#include "harness/om_graph_builder.h"

static const char *const n_by_4[] = {"N", NULL};

/* z = Relu(x + w) + y with x, y float32 [N, 4] and w constant [4]; outputs z, and w itself. */
static om_model *make_model(void) {
  static const float w[4] = {1.0f, -2.0f, 3.0f, -4.0f};
  om_graph_builder b;
  om_build_begin(&b, 17);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 2, (int64_t[]){-1, 4}, n_by_4);
  om_value_id y = om_build_input(&b, "y", OM_DTYPE_F32, 2, (int64_t[]){-1, 4}, n_by_4);
  om_value_id c = om_build_constant(&b, "w", OM_DTYPE_F32, 1, (int64_t[]){4}, w);
  om_value_id sum = om_build_node(&b, "Add", "sum", 2, (om_value_id[]){x, c});
  om_value_id relu = om_build_node(&b, "Relu", "relu", 1, (om_value_id[]){sum});
  om_value_id z = om_build_node(&b, "Add", "z", 2, (om_value_id[]){relu, y});
  om_build_output(&b, z);
  om_build_output(&b, c);
  om_build_output(&b, x);
  return om_build_model(&b);
}

typedef struct fixture {
  om_model *model;
  om_session *session;
  om_error error;
  float x[32], y[32];
} fixture;

static int setup(void **state) {
  static fixture f;
  memset(&f, 0, sizeof f);
  f.model = make_model();
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  if (om_session_create(f.model, &options, &f.session, &f.error) != OM_OK) {
    fail_msg("%s", f.error.message);
  }
  for (int i = 0; i < 32; ++i) {
    f.x[i] = (float)i - 8.0f;
    f.y[i] = 0.5f * (float)i;
  }
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  om_session_destroy(f->session);
  om_model_destroy(f->model);
  return 0;
}

static float expected_z(const fixture *f, size_t i) {
  static const float w[4] = {1.0f, -2.0f, 3.0f, -4.0f};
  float sum = f->x[i] + w[i % 4];
  return (sum > 0.0f ? sum : 0.0f) + f->y[i];
}

static om_tensor rows(int64_t n, float *data) {
  return om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){n, 4}, data);
}

static om_status run(fixture *f, int64_t n, om_named_tensor *outputs, size_t output_count) {
  om_named_tensor inputs[] = {{"y", rows(n, f->y)}, {"x", rows(n, f->x)}};
  om_run_args args = {sizeof args, inputs, 2, outputs, output_count, NULL};
  return om_session_run(f->session, &args, &f->error);
}

/* ---- Results ---- */

static void lends_outputs(void **state) {
  fixture *f = *state;
  om_named_tensor output = {"z", {0}};
  for (int64_t n = 1; n <= 8; n *= 2) {
    output.tensor.data = NULL;
    assert_int_equal(run(f, n, &output, 1), OM_OK);
    assert_int_equal(output.tensor.dtype, OM_DTYPE_F32);
    assert_int_equal(output.tensor.rank, 2);
    assert_int_equal(output.tensor.dims[0], n);
    assert_int_equal(output.tensor.data_bytes, n * 16);
    for (size_t i = 0; i < (size_t)n * 4; ++i) {
      assert_true(((float *)output.tensor.data)[i] == expected_z(f, i));
    }
  }
}

static void runs_without_rows(void **state) {
  fixture *f = *state;
  om_named_tensor inputs[] = {{"x", rows(0, NULL)}, {"y", rows(0, NULL)}};
  om_named_tensor output = {"z", {0}};
  om_run_args args = {sizeof args, inputs, 2, &output, 1, NULL};
  assert_int_equal(om_session_run(f->session, &args, &f->error), OM_OK);
  assert_int_equal(output.tensor.dims[0], 0);
  assert_int_equal(output.tensor.data_bytes, 0);
}

static void writes_into_the_callers_memory(void **state) {
  fixture *f = *state;
  _Alignas(64) float z[16], odd[17];
  /* Aligned memory is written directly, other memory by a copy; both must hold. */
  void *places[] = {z, &odd[1]};
  for (size_t p = 0; p < 2; ++p) {
    om_named_tensor output = {"z", {.data = places[p], .data_bytes = sizeof z}};
    memset(places[p], 0, sizeof z);
    assert_int_equal(run(f, 4, &output, 1), OM_OK);
    assert_ptr_equal(output.tensor.data, places[p]);
    assert_int_equal(output.tensor.data_bytes, sizeof z);
    for (size_t i = 0; i < 16; ++i) assert_true(((float *)places[p])[i] == expected_z(f, i));
  }
}

static void reads_inputs_that_share_memory_with_outputs(void **state) {
  fixture *f = *state;
  _Alignas(64) float both[16];
  memcpy(both, f->x, sizeof both);
  om_named_tensor inputs[] = {{"x", rows(4, both)}, {"y", rows(4, f->y)}};
  om_named_tensor output = {"z", {.data = both, .data_bytes = sizeof both}};
  om_run_args args = {sizeof args, inputs, 2, &output, 1, NULL};
  assert_int_equal(om_session_run(f->session, &args, &f->error), OM_OK);
  for (size_t i = 0; i < 16; ++i) assert_true(both[i] == expected_z(f, i));
}

static void gives_one_value_several_times(void **state) {
  fixture *f = *state;
  _Alignas(64) float a[8], b[8];
  om_named_tensor outputs[] = {{"z", {.data = a, .data_bytes = sizeof a}},
                               {"z", {0}},
                               {"z", {.data = b, .data_bytes = sizeof b}}};
  assert_int_equal(run(f, 2, outputs, 3), OM_OK);
  for (size_t i = 0; i < 8; ++i) {
    assert_true(a[i] == expected_z(f, i));
    assert_true(b[i] == expected_z(f, i));
    assert_true(((float *)outputs[1].tensor.data)[i] == expected_z(f, i));
  }
}

static void gives_constants_and_inputs_as_outputs(void **state) {
  fixture *f = *state;
  _Alignas(64) float w[4], x[8];
  om_named_tensor outputs[] = {{"w", {0}},
                               {"x", {0}},
                               {"w", {.data = w, .data_bytes = sizeof w}},
                               {"x", {.data = x, .data_bytes = sizeof x}}};
  assert_int_equal(run(f, 2, outputs, 4), OM_OK);
  assert_true(((float *)outputs[0].tensor.data)[3] == -4.0f);
  assert_memory_equal(outputs[1].tensor.data, f->x, sizeof x);
  /* Lent results are the session's own: the caller may free its input. */
  assert_ptr_not_equal(outputs[1].tensor.data, f->x);
  assert_true(w[3] == -4.0f);
  assert_memory_equal(x, f->x, sizeof x);
}

static void returns_extra_outputs(void **state) {
  fixture *f = *state;
  const char *const extra[] = {"relu", "z"};
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.extra_outputs = extra;
  options.extra_output_count = 2;
  assert_int_equal(om_session_create(f->model, &options, &session, &f->error), OM_OK);
  om_named_tensor inputs[] = {{"x", rows(1, f->x)}, {"y", rows(1, f->y)}};
  om_named_tensor output = {"relu", {0}};
  om_run_args args = {sizeof args, inputs, 2, &output, 1, NULL};
  assert_int_equal(om_session_run(session, &args, &f->error), OM_OK);
  for (size_t i = 0; i < 4; ++i) {
    assert_true(((float *)output.tensor.data)[i] == expected_z(f, i) - f->y[i]);
  }
  om_session_destroy(session);
}

/* Subnormals count as zero in a run, and the caller's float environment comes back. */
static void flushes_subnormals_and_gives_the_state_back(void **state) {
  fixture *f = *state;
  om_named_tensor output = {"z", {0}};
  const uint32_t subnormal = 0x00012345;
  volatile float small;
  for (int i = 0; i < 4; ++i) {
    f->x[i] = -100.0f;
    memcpy(&f->y[i], &subnormal, sizeof subnormal);
  }
  assert_int_equal(run(f, 1, &output, 1), OM_OK);
  for (int i = 0; i < 4; ++i) {
    uint32_t bits;
    memcpy(&bits, (float *)output.tensor.data + i, sizeof bits);
    assert_int_equal(bits, 0);
  }
  small = f->y[0];
  small = small + small;
  assert_true(small != 0.0f);
}

/* Strings stay readable after the caller has changed what it gave. */
static void keeps_the_bytes_of_strings(void **state) {
  fixture *f = *state;
  om_graph_builder b;
  om_session *session = NULL;
  char words[] = "onetwo";
  om_string x[] = {{words, 3}, {words + 3, 3}, {words, 0}};
  om_build_begin(&b, 13);
  om_value_id in = om_build_input(&b, "x", OM_DTYPE_STRING, 1, (int64_t[]){3}, NULL);
  om_build_output(&b, om_build_node(&b, "Identity", "y", 1, &in));
  om_model *model = om_build_model(&b);
  assert_int_equal(om_session_create(model, NULL, &session, &f->error), OM_OK);
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_STRING, 1, (int64_t[]){3}, x)};
  om_named_tensor output = {"y", {0}};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  for (int i = 0; i < 2; ++i) {
    output.tensor.data = NULL;
    memcpy(words, "onetwo", 6);
    assert_int_equal(om_session_run(session, &args, &f->error), OM_OK);
    memset(words, '-', 6);
    const om_string *y = output.tensor.data;
    assert_int_equal(y[0].bytes, 3);
    assert_memory_equal(y[0].data, "one", 3);
    assert_memory_equal(y[1].data, "two", 3);
    assert_int_equal(y[2].bytes, 0);
  }
  om_session_destroy(session);
  om_model_destroy(model);
}

/* ---- Refusals ---- */

typedef struct refusal {
  const char *name;
  om_named_tensor inputs[3];
  size_t input_count;
  const char *message; /* a part of it */
} refusal;

static void refuses_wrong_inputs(void **state) {
  fixture *f = *state;
  om_tensor good = rows(2, f->x);
  om_tensor small = good, null = good, wide = good, wrong = good, deep = good, negative = good;
  om_tensor odd = rows(2, (float *)(void *)((char *)f->x + 2));
  small.data_bytes = 31;
  null.data = NULL;
  wide.dims[1] = 5;
  wrong.dtype = OM_DTYPE_I32;
  deep.rank = 3;
  negative.dims[0] = -2;
  const refusal refusals[] = {
      {"missing",
       {{"x", good}},
       1,
       "The run lacks input 'y'; the model's inputs are: 'x' (float32, [N, 4])"},
      {"misnamed",
       {{"x", good}, {"why", good}},
       2,
       "There is no input 'why'; the model's inputs are: 'x'"},
      {"no name", {{"x", good}, {NULL, good}}, 2, "The name of input 1 is NULL."},
      {"twice", {{"x", good}, {"x", good}}, 2, "Input 'x' is given twice."},
      {"type", {{"x", wrong}, {"y", good}}, 2, "Input 'x' is int32, but the model wants float32."},
      {"rank", {{"x", deep}, {"y", good}}, 2, "but the model wants [N, 4]."},
      {"shape",
       {{"x", wide}, {"y", good}},
       2,
       "Input 'x' has the shape [2, 5], but the model wants [N, 4]."},
      {"negative", {{"x", negative}, {"y", good}}, 2, "whose size is negative or overflows"},
      {"symbols",
       {{"x", good}, {"y", rows(3, f->y)}},
       2,
       "which the model calls 'N', but input 'x' has 2"},
      {"bytes",
       {{"x", small}, {"y", good}},
       2,
       "Input 'x' has 31 bytes, but float32 of shape [2, 4] takes 32."},
      {"no data", {{"x", null}, {"y", good}}, 2, "Input 'x' has no data: it is NULL."},
      {"alignment", {{"x", odd}, {"y", good}}, 2, "not aligned to 4 bytes"},
  };
  for (size_t i = 0; i < OM_COUNT_OF(refusals); ++i) {
    const refusal *r = &refusals[i];
    om_named_tensor output = {"z", {0}};
    om_run_args args = {sizeof args, r->inputs, r->input_count, &output, 1, NULL};
    assert_int_equal(om_session_run(f->session, &args, &f->error), OM_E_INVALID_INPUT);
    if (!strstr(f->error.message, r->message)) fail_msg("%s: %s", r->name, f->error.message);
    assert_int_equal(f->error.status, OM_E_INVALID_INPUT);
    assert_int_equal(om_session_run(f->session, &args, NULL), OM_E_INVALID_INPUT);
  }
  om_named_tensor output = {"z", {0}};
  assert_int_equal(run(f, 2, &output, 1), OM_OK);
}

static void refuses_wrong_outputs(void **state) {
  fixture *f = *state;
  float z[8];
  om_named_tensor small = {"z", {.data = z, .data_bytes = 31}};
  assert_int_equal(run(f, 2, &small, 1), OM_E_INVALID_INPUT);
  assert_string_equal(f->error.message,
                      "Output 'z' is float32 of shape [2, 4] and takes 32 bytes, but the memory "
                      "given for it has 31.");
  om_named_tensor unknown = {"zed", {0}};
  assert_int_equal(run(f, 2, &unknown, 1), OM_E_INVALID_INPUT);
  assert_string_equal(f->error.message,
                      "There is no output 'zed'; the model's outputs are: 'z', 'w', 'x'.");
  om_named_tensor nameless = {NULL, {0}};
  assert_int_equal(run(f, 2, &nameless, 1), OM_E_INVALID_INPUT);
}

static om_status create(fixture *f, const om_session_options *options) {
  om_session *session = f->session;
  om_status st = om_session_create(f->model, options, &session, &f->error);
  if (st != OM_OK) assert_null(session);
  om_session_destroy(session);
  return st;
}

static void refuses_wrong_options(void **state) {
  fixture *f = *state;
  const char *const extra[] = {"nothing"};
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.struct_bytes = sizeof options + 8;
  assert_int_equal(create(f, &options), OM_E_INVALID_ARGUMENT);
  options.struct_bytes = 0;
  assert_int_equal(create(f, &options), OM_E_INVALID_ARGUMENT);
  options.struct_bytes = sizeof options;
  options.mode = (om_mode)7;
  assert_int_equal(create(f, &options), OM_E_INVALID_ARGUMENT);
  options.mode = OM_MODE_EXACT;
  options.require_gpu = true;
  assert_int_equal(create(f, &options), OM_E_INVALID_ARGUMENT);
  assert_string_equal(f->error.message, "options.require_gpu needs options.provider.");
  /* An older, shorter struct: what lies past its end is not read. */
  options.struct_bytes = offsetof(om_session_options, require_gpu);
  assert_int_equal(create(f, &options), OM_OK);
  options = (om_session_options)OM_SESSION_OPTIONS_INIT;
  options.extra_outputs = extra;
  options.extra_output_count = 1;
  assert_int_equal(create(f, &options), OM_E_INVALID_ARGUMENT);
  assert_non_null(strstr(f->error.message, "'nothing', but the model has no value of that name"));
  assert_int_equal(create(f, NULL), OM_OK);
}

static void refuses_null(void **state) {
  fixture *f = *state;
  om_session *session = NULL;
  const om_diagnostics *diagnostics = NULL;
  assert_int_equal(om_session_create(NULL, NULL, &session, &f->error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_create(NULL, NULL, &session, NULL), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_create(f->model, NULL, NULL, &f->error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_run(NULL, NULL, &f->error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_run(f->session, NULL, &f->error), OM_E_INVALID_ARGUMENT);
  om_run_args args = {sizeof args, NULL, 1, NULL, 0, NULL};
  assert_int_equal(om_session_run(f->session, &args, &f->error), OM_E_INVALID_ARGUMENT);
  args.struct_bytes = sizeof args + 1;
  assert_int_equal(om_session_run(f->session, &args, &f->error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_prepare(NULL, NULL, 0, &f->error), OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_diagnose(NULL, NULL, 0, &diagnostics, &f->error),
                   OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_diagnose(f->session, NULL, 0, NULL, &f->error),
                   OM_E_INVALID_ARGUMENT);
  assert_int_equal(om_session_get_statistics(NULL).run_count, 0);
  om_session_destroy(NULL);
}

static void names_unknown_operators(void **state) {
  om_graph_builder b;
  om_error error;
  om_session *session = NULL;
  (void)state;
  om_build_begin(&b, 17);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 1, (int64_t[]){4}, NULL);
  om_value_id a = om_build_node(&b, "Frobnicate", "first", 1, (om_value_id[]){x});
  om_value_id c = om_build_node(&b, "Frobnicate", "second", 1, (om_value_id[]){a});
  om_build_output(&b, om_build_node(&b, "Twiddle", "third", 1, (om_value_id[]){c}));
  om_model *model = om_build_model(&b);
  assert_int_equal(om_session_create(model, NULL, &session, &error), OM_E_UNSUPPORTED);
  assert_string_equal(error.message,
                      "The model uses unknown operators: Frobnicate: the operator is not "
                      "implemented (2 nodes, first 'first'); Twiddle: the operator is not "
                      "implemented ('third').");
  om_model_destroy(model);
}

/* ---- Memory ---- */

static void allocates_nothing_on_the_second_run(void **state) {
  fixture *f = *state;
  om_named_tensor output = {"z", {0}};
  for (int64_t n = 1; n <= 8; ++n) {
    output.tensor.data = NULL;
    assert_int_equal(run(f, n, &output, 1), OM_OK);
  }
  om_session_statistics before = om_session_get_statistics(f->session);
  for (int64_t n = 1; n <= 8; ++n) {
    output.tensor.data = NULL;
    assert_int_equal(run(f, n, &output, 1), OM_OK);
  }
  om_session_statistics after = om_session_get_statistics(f->session);
  assert_int_equal(before.host_allocations, after.host_allocations);
  assert_int_equal(before.host_bytes, after.host_bytes);
  assert_int_equal(after.run_count, 16);
  assert_int_equal(after.plans_built, 8);
  assert_true(after.intermediate_bytes > 0);
  assert_true(after.host_peak_bytes >= after.host_bytes);
}

enum { ROWS = 8, DEPTH = 300, COLS = 40 };

/* y = x[rows where mask is not 0] w, or, without a mask, x w; fast mode's session of it. */
static om_session *make_product(bool has_mask, const float *w, om_model **out_model) {
  om_graph_builder b;
  om_session *session = NULL;
  om_error error;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_build_begin(&b, 17);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 2, (int64_t[]){-1, DEPTH}, n_by_4);
  om_value_id c = om_build_constant(&b, "w", OM_DTYPE_F32, 2, (int64_t[]){DEPTH, COLS}, w);
  if (has_mask) {
    om_value_id mask = om_build_input(&b, "mask", OM_DTYPE_F32, 1, (int64_t[]){ROWS}, NULL);
    om_value_id found = om_build_node(&b, "NonZero", "found", 1, (om_value_id[]){mask});
    x = om_build_node(&b, "Gather", "rows", 2, (om_value_id[]){x, found});
  }
  om_build_output(&b, om_build_node(&b, "MatMul", "y", 2, (om_value_id[]){x, c}));
  *out_model = om_build_model(&b);
  if (om_session_create(*out_model, &options, &session, &error) != OM_OK) {
    fail_msg("%s", error.message);
  }
  return session;
}

/* The number of rows is known during the run alone: fast mode's kernel all the same. */
static void makes_dynamic_steps_ready(void **state) {
  static const int64_t kept[] = {3, 8, 0, 5, 5};
  static float x[ROWS * DEPTH], w[DEPTH * COLS];
  om_model *models[2];
  om_error error;
  (void)state;
  for (int i = 0; i < ROWS * DEPTH; ++i) x[i] = (float)(i * 37 % 101) / 101.0f - 0.5f;
  for (int i = 0; i < DEPTH * COLS; ++i) w[i] = (float)(i * 29 % 103) / 103.0f - 0.5f;
  om_session *dynamic = make_product(true, w, &models[0]);
  om_session *known = make_product(false, w, &models[1]);
  uint64_t allocations = 0;
  for (size_t i = 0; i < OM_COUNT_OF(kept); ++i) {
    float mask[ROWS] = {0};
    om_named_tensor y[2] = {{"y", {0}}, {"y", {0}}};
    om_named_tensor inputs[] = {
        {"x", om_tensor_of(OM_DTYPE_F32, 2, (int64_t[]){ROWS, DEPTH}, x)},
        {"mask", om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){ROWS}, mask)},
    };
    for (int64_t row = 0; row < kept[i]; ++row) mask[row] = 1.0f;
    om_run_args args = {sizeof args, inputs, 2, &y[0], 1, NULL};
    assert_int_equal(om_session_run(dynamic, &args, &error), OM_OK);
    inputs[0].tensor.dims[0] = kept[i];
    args = (om_run_args){sizeof args, inputs, 1, &y[1], 1, NULL};
    assert_int_equal(om_session_run(known, &args, &error), OM_OK);
    assert_int_equal(y[0].tensor.dims[1], kept[i]);
    assert_int_equal(y[0].tensor.data_bytes, y[1].tensor.data_bytes);
    if (kept[i] > 0) {
      assert_memory_equal(y[0].tensor.data, y[1].tensor.data, y[0].tensor.data_bytes);
    }
    const uint64_t now = om_session_get_statistics(dynamic).host_allocations;
    if (i == OM_COUNT_OF(kept) - 1) assert_int_equal(now, allocations);
    allocations = now;
  }
  for (size_t i = 0; i < 2; ++i) om_session_destroy(i == 0 ? dynamic : known);
  for (size_t i = 0; i < 2; ++i) om_model_destroy(models[i]);
}

static void prepares_ahead_of_the_first_run(void **state) {
  fixture *f = *state;
  om_named_tensor shapes[] = {{"x", rows(5, NULL)}, {"y", rows(5, NULL)}};
  assert_int_equal(om_session_prepare(f->session, shapes, 2, &f->error), OM_OK);
  uint64_t before = om_session_get_statistics(f->session).host_allocations;
  om_named_tensor output = {"z", {0}};
  assert_int_equal(run(f, 5, &output, 1), OM_OK);
  assert_int_equal(om_session_get_statistics(f->session).host_allocations, before);
  assert_int_equal(om_session_prepare(f->session, shapes, 1, &f->error), OM_E_INVALID_INPUT);
  assert_non_null(strstr(f->error.message, "The shape is not fixed by the model for input 'y'"));
}

static void keeps_the_last_16_plans(void **state) {
  fixture *f = *state;
  om_tensor x = rows(1, NULL);
  om_named_tensor shapes[] = {{"x", x}, {"y", x}};
  const int64_t order[] = {1, 2, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 1, 2};
  const uint64_t built[] = {1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 17, 18};
  for (size_t i = 0; i < OM_COUNT_OF(order); ++i) {
    shapes[0].tensor.dims[0] = shapes[1].tensor.dims[0] = order[i];
    assert_int_equal(om_session_prepare(f->session, shapes, 2, &f->error), OM_OK);
    assert_int_equal(om_session_get_statistics(f->session).plans_built, built[i]);
  }
}

static void uses_the_callers_allocator_alone(void **state) {
  fixture *f = *state;
  om_fault fault = {.fail_at = OM_FAULT_NEVER};
  om_allocator allocator = om_fault_allocator(&fault);
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.allocator = &allocator;
  assert_int_equal(om_session_create(f->model, &options, &session, &f->error), OM_OK);
  om_named_tensor inputs[] = {{"x", rows(2, f->x)}, {"y", rows(2, f->y)}};
  om_named_tensor output = {"z", {0}};
  om_run_args args = {sizeof args, inputs, 2, &output, 1, NULL};
  assert_int_equal(om_session_run(session, &args, &f->error), OM_OK);
  assert_true(om_fault_live_blocks(&fault) > 0);
  om_session_destroy(session);
  assert_int_equal(om_fault_live_blocks(&fault), 0);
  assert_int_equal(fault.damaged_blocks, 0);
}

static void refuses_half_an_allocator(void **state) {
  fixture *f = *state;
  om_allocator allocator = om_default_allocator();
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  allocator.free = NULL;
  options.allocator = &allocator;
  assert_int_equal(om_session_create(f->model, &options, &session, &f->error),
                   OM_E_INVALID_ARGUMENT);
  assert_null(session);
}

enum { PLACES = 1 << 16, SUMS = 12 };

/* Results whose sizes a run tells lie in the same memory one after the other: sums[i] = sums[i - 1]
 * + sums[i - 2], from places that are not 0; the fourth and the last are read by the caller. */
static void dynamic_results_share_memory(void **state) {
  static const int64_t kept[] = {PLACES, 10, 0, PLACES, PLACES};
  static float mask[PLACES];
  om_graph_builder b;
  om_session *session = NULL;
  om_error error;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_value_id sums[SUMS];
  uint64_t allocations = 0;
  (void)state;
  om_build_begin(&b, 17);
  om_value_id x = om_build_input(&b, "mask", OM_DTYPE_F32, 1, (int64_t[]){PLACES}, NULL);
  sums[0] = om_build_node(&b, "NonZero", "sum0", 1, (om_value_id[]){x});
  for (int i = 1; i < SUMS; ++i) {
    static const char *const names[] = {
        NULL, "a", "b", "fourth", "d", "e", "f", "g", "h", "i", "j", "last"};
    om_value_id pair[] = {sums[i - 1], sums[i > 1 ? i - 2 : 0]};
    sums[i] = om_build_node(&b, "Add", names[i], 2, pair);
  }
  om_build_output(&b, sums[3]);
  om_build_output(&b, sums[SUMS - 1]);
  om_model *model = om_build_model(&b);
  assert_int_equal(om_session_create(model, &options, &session, &error), OM_OK);
  for (size_t i = 0; i < OM_COUNT_OF(kept); ++i) {
    om_named_tensor y[2] = {{"fourth", {0}}, {"last", {0}}};
    om_named_tensor input = {"mask", om_tensor_of(OM_DTYPE_F32, 1, (int64_t[]){PLACES}, mask)};
    for (int64_t k = 0; k < PLACES; ++k) mask[k] = k >= PLACES - kept[i] ? 1.0f : 0.0f;
    om_run_args args = {sizeof args, &input, 1, y, 2, NULL};
    assert_int_equal(om_session_run(session, &args, &error), OM_OK);
    assert_int_equal(y[1].tensor.dims[1], kept[i]);
    for (int64_t k = 0; k < kept[i]; ++k) {
      assert_int_equal(((int64_t *)y[0].tensor.data)[k], 5 * (PLACES - kept[i] + k));
      assert_int_equal(((int64_t *)y[1].tensor.data)[k], 233 * (PLACES - kept[i] + k));
    }
    const om_session_statistics now = om_session_get_statistics(session);
    if (i == OM_COUNT_OF(kept) - 1) assert_int_equal(now.host_allocations, allocations);
    allocations = now.host_allocations;
    assert_true(now.host_peak_bytes < 7 * PLACES * sizeof(int64_t));
  }
  om_session_destroy(session);
  om_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(refuses_half_an_allocator, setup, teardown),
      cmocka_unit_test_setup_teardown(lends_outputs, setup, teardown),
      cmocka_unit_test_setup_teardown(runs_without_rows, setup, teardown),
      cmocka_unit_test_setup_teardown(writes_into_the_callers_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(reads_inputs_that_share_memory_with_outputs, setup, teardown),
      cmocka_unit_test_setup_teardown(gives_one_value_several_times, setup, teardown),
      cmocka_unit_test_setup_teardown(gives_constants_and_inputs_as_outputs, setup, teardown),
      cmocka_unit_test_setup_teardown(returns_extra_outputs, setup, teardown),
      cmocka_unit_test_setup_teardown(keeps_the_bytes_of_strings, setup, teardown),
      cmocka_unit_test_setup_teardown(flushes_subnormals_and_gives_the_state_back, setup, teardown),
      cmocka_unit_test_setup_teardown(refuses_wrong_inputs, setup, teardown),
      cmocka_unit_test_setup_teardown(refuses_wrong_outputs, setup, teardown),
      cmocka_unit_test_setup_teardown(refuses_wrong_options, setup, teardown),
      cmocka_unit_test_setup_teardown(refuses_null, setup, teardown),
      cmocka_unit_test(names_unknown_operators),
      cmocka_unit_test_setup_teardown(allocates_nothing_on_the_second_run, setup, teardown),
      cmocka_unit_test(makes_dynamic_steps_ready),
      cmocka_unit_test(dynamic_results_share_memory),
      cmocka_unit_test_setup_teardown(prepares_ahead_of_the_first_run, setup, teardown),
      cmocka_unit_test_setup_teardown(keeps_the_last_16_plans, setup, teardown),
      cmocka_unit_test_setup_teardown(uses_the_callers_allocator_alone, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
