/* Inside the test runner: a case's texts as tensors, attributes and a graph. */
#ifndef OM_TEST_CASE_H
#define OM_TEST_CASE_H

#include "harness/om_test.h"

enum { OM_TEST_NODES = 16, OM_TEST_ATTRS = 24 };

typedef struct om_test_input {
  bool is_absent;
  bool is_constant;
  om_tensor tensor;
  char name[16]; /* "x0" */
} om_test_input;

typedef struct om_test_node {
  const char *type;
  const char *domain;
  const char *inputs[32]; /* "" where absent */
  uint32_t input_count;
  const char *outputs[OM_CASE_OUTPUTS];
  uint32_t output_count;
  om_attr attrs[OM_TEST_ATTRS];
  uint32_t attr_count;
} om_test_node;

typedef struct om_test_model { /* everything it points to lies in the pool */
  om_pool pool;
  int32_t opset;
  const char *domain;
  om_test_input inputs[OM_CASE_INPUTS];
  uint32_t input_count;
  om_test_node nodes[OM_TEST_NODES];
  uint32_t node_count;
  uint32_t output_count; /* named y0, y1, ... */
} om_test_model;

/* Reads the case's texts; a mistake in them is OM_E_INVALID_ARGUMENT with the place. */
om_status om_test_model_init(om_ctx *ctx,
                             const om_op_suite *suite,
                             const om_op_case *test_case,
                             uint64_t seed,
                             om_test_model *out_model);
void om_test_model_deinit(om_ctx *ctx, om_test_model *model);

/* A graph of its own; names, attributes and constants stay the model's. */
om_status om_test_model_graph(om_ctx *ctx, const om_test_model *model, om_graph *out_graph);

/* Reads "f32 2x3 const range 0 1" (om_test.h has the form). */
om_status om_test_input_parse(
    om_ctx *ctx, om_pool *pool, const char *text, uint64_t seed, om_test_input *out_input);

/* Reads "2x3x4" or "scalar". */
om_status om_test_shape_parse(om_ctx *ctx, const char *text, om_tensor *out_tensor);

/* Fills the tensor's elements from "1 2 3", again from the start at the end. */
om_status om_test_values_parse(om_ctx *ctx, om_pool *pool, const char *text, om_tensor *tensor);

/* Reads "axis=-1 pads=1,1" into attrs. */
om_status om_test_attrs_parse(om_ctx *ctx,
                              om_pool *pool,
                              const char *text,
                              om_attr attrs[OM_TEST_ATTRS],
                              uint32_t *out_count);

/* ---- Results of one run ---- */

typedef struct om_test_results {
  om_pool pool;
  om_tensor outputs[OM_CASE_OUTPUTS]; /* data in the pool */
  uint32_t count;
} om_test_results;

/* Keeps a copy of the tensor (and of its strings) as output `index`. */
om_status om_test_results_copy(om_ctx *ctx,
                               const om_tensor *tensor,
                               om_test_results *results,
                               uint32_t index);
void om_test_results_deinit(om_ctx *ctx, om_test_results *results);

/* The operator's entry alone; for models of one node. */
om_status om_test_run_direct(om_ctx *ctx, const om_test_model *model, om_test_results *out_results);

typedef struct om_test_session_args {
  const char *backend; /* NULL: the CPU alone; "null", "vulkan" */
  om_mode mode;
  uint32_t thread_count;
  bool require_gpu;
  const char *declined;      /* NULL: not checked */
  const char *hopper_kernel; /* NULL: not checked; of the null backend, which is Hopper's then */
} om_test_session_args;

om_status om_test_run_session(om_ctx *ctx,
                              const om_test_model *model,
                              const om_test_session_args *args,
                              om_test_results *out_results);

/* True if a device of the backend is there. */
bool om_test_backend_is_there(const char *backend);

/* Compares with the case's shapes and values and with the reference. */
om_status om_test_check_values(om_ctx *ctx,
                               const om_op_suite *suite,
                               const om_op_case *test_case,
                               const om_test_model *model,
                               om_mode mode,
                               const om_test_results *results);

/* OM_E_INTERNAL with the place where the results' bits differ; `what` names the two sides. */
om_status om_test_check_same(om_ctx *ctx,
                             const om_test_results *a,
                             const om_test_results *b,
                             const char *what);

#endif
