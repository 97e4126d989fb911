/* A case as a session: on the CPU alone, or with the device package on one of its backends. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/om_fault.h"
#include "harness/om_test_case.h"
#include "harness/om_test_log.h"
#include "harness/om_test_shared.h"
#include "harness/om_test_wait.h"
#include "onemodel/gpu.h"
#include "onnx/om_model.h"

typedef struct session_log {
  uint32_t error_count;
  char first[OM_MAX_MESSAGE];
  const char *kernel;       /* NULL: none is looked for */
  bool has_kernel;          /* a line of a profile names it */
  char ran[OM_MAX_MESSAGE]; /* the first such line */
} session_log;

typedef struct session_run {
  om_model *model;
  om_session *session;
  om_gpu_prepared *prepared; /* owned */
  session_log log;
  om_named_tensor inputs[OM_CASE_INPUTS];
  size_t input_count;
  om_named_tensor outputs[OM_CASE_OUTPUTS];
  char output_names[OM_CASE_OUTPUTS][16];
  size_t output_count;
  void *blocks[OM_CASE_OUTPUTS]; /* owned: the caller's memory and its guards */
} session_run;

/* Reads a line of a profile, "12.30 us  NAME  20x2x1 groups ..." (om_gpu_profile.c). */
static void read_profile(session_log *log, const char *line) {
  const char *name = strstr(line, " us  ");
  if (!name || !strstr(name, " groups")) return;
  name += sizeof " us  " - 1;
  const size_t bytes = strcspn(name, " ");
  if (strlen(log->kernel) == bytes && memcmp(name, log->kernel, bytes) == 0) log->has_kernel = true;
  if (!log->ran[0]) snprintf(log->ran, sizeof log->ran, "%s", line);
}

static void write_log(void *user, om_log_level level, const char *message) {
  session_log *log = user;
  if (log->kernel && level == OM_LOG_INFO) read_profile(log, message);
  if (!om_test_is_complaint(level, message)) return;
  if (log->error_count++ == 0) snprintf(log->first, sizeof log->first, "%s", message);
}

bool om_test_backend_is_there(const char *backend) {
  om_gpu_device devices[16];
  size_t count = 0;
  om_error error;
  if (strcmp(backend, "null") == 0) return om_gpu_provider() != NULL;
  if (om_gpu_list(devices, OM_COUNT_OF(devices), &count, &error) != OM_OK) return false;
  for (size_t i = 0; i < count && i < OM_COUNT_OF(devices); ++i) {
    if (strcmp(devices[i].backend, backend) == 0) return true;
  }
  return false;
}

static om_status create_session(om_ctx *ctx,
                                session_run *r,
                                const om_test_model *model,
                                const om_test_session_args *args) {
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_graph graph;
  om_status st = om_test_model_graph(ctx, model, &graph);
  if (st == OM_OK) st = om_model_create_from_graph(ctx, &graph, &r->model);
  if (st != OM_OK) om_graph_deinit(ctx, &graph); /* else the model has taken it over */
  if (st != OM_OK) return st;
  options.mode = args->mode;
  options.thread_count = args->thread_count;
  options.log = (om_log){.write = write_log, .user = &r->log};
  if (args->backend) {
    gpu.backend = args->backend;
    gpu.device = strcmp(args->backend, "vulkan") == 0 ? getenv("OM_TEST_DEVICE")
                 : args->hopper_kernel                ? "Hopper"
                                                      : NULL;
    r->log.kernel = args->hopper_kernel;
    options.provider = om_gpu_provider();
    options.provider_options = &gpu;
    options.require_gpu = args->require_gpu;
  }
  if (args->backend && strcmp(args->backend, "vulkan") == 0) gpu.shared = om_test_shared_device();
  if (args->backend && strcmp(args->backend, "webgpu") == 0) {
    if (!om_test_prepare_page()) return OM_FAIL(ctx, OM_E_INTERNAL, "There is no device.");
    OM_TRY(om_test_prepare(&gpu, args->mode, &r->prepared, ctx->error));
    gpu.prepared = r->prepared;
  }
  return om_session_create(r->model, &options, &r->session, ctx->error);
}

static void name_tensors(session_run *r, const om_test_model *model) {
  for (uint32_t i = 0; i < model->input_count; ++i) {
    const om_test_input *input = &model->inputs[i];
    if (input->is_absent || input->is_constant) continue;
    r->inputs[r->input_count++] = (om_named_tensor){input->name, input->tensor};
  }
  r->output_count = model->output_count;
  for (uint32_t i = 0; i < model->output_count; ++i) {
    snprintf(r->output_names[i], sizeof r->output_names[i], "y%u", (unsigned)i);
    r->outputs[i] = (om_named_tensor){.name = r->output_names[i]};
  }
}

static om_status run_once(om_ctx *ctx, session_run *r) {
  const om_run_args args = {.struct_bytes = sizeof args,
                            .inputs = r->inputs,
                            .input_count = r->input_count,
                            .outputs = r->outputs,
                            .output_count = r->output_count};
  return om_test_run(r->session, &args, ctx->error);
}

/* The second run: into the caller's memory. Strings stay the session's. */
static om_status run_again(om_ctx *ctx, session_run *r, const om_test_results *first) {
  for (size_t i = 0; i < r->output_count; ++i) {
    om_tensor *tensor = &r->outputs[i].tensor;
    *tensor = (om_tensor){0};
    if (first->outputs[i].dtype == OM_DTYPE_STRING) continue;
    const size_t bytes = first->outputs[i].data_bytes;
    r->blocks[i] = om_new_bytes(ctx, bytes + 2 * OM_GUARD_BYTES, 1);
    if (!r->blocks[i]) return OM_E_OUT_OF_MEMORY;
    tensor->data = om_guard_init(r->blocks[i], bytes);
    tensor->data_bytes = bytes;
  }
  OM_TRY(run_once(ctx, r));
  for (size_t i = 0; i < r->output_count; ++i) {
    if (r->blocks[i] && !om_guard_is_intact(r->blocks[i], first->outputs[i].data_bytes)) {
      return OM_FAIL(ctx, OM_E_INTERNAL, "The run wrote outside y%zu in the caller's memory.", i);
    }
  }
  return OM_OK;
}

static om_status compare_runs(om_ctx *ctx, session_run *r, const om_test_results *first) {
  for (size_t i = 0; i < r->output_count; ++i) {
    size_t elem = 0;
    if (om_tensor_same(&r->outputs[i].tensor, &first->outputs[i], &elem)) continue;
    return OM_FAIL(
        ctx, OM_E_INTERNAL, "The second run of y%zu differs from element %zu on.", i, elem);
  }
  return OM_OK;
}

static om_status check_placement(om_ctx *ctx, session_run *r, const char *declined) {
  const om_diagnostics *diagnostics = NULL;
  OM_TRY(om_session_diagnose(r->session, r->inputs, r->input_count, &diagnostics, ctx->error));
  const char *reason = "";
  for (size_t i = 0; i < diagnostics->node_count; ++i) {
    const om_node_diagnostics *node = &diagnostics->nodes[i];
    if (node->place != OM_PLACE_CPU) continue;
    reason = node->reason;
    if (strstr(reason, declined)) return OM_OK;
  }
  if (diagnostics->nodes_folded == diagnostics->node_count) return OM_OK;
  return OM_FAIL(
      ctx, OM_E_INTERNAL, "The device declines with \"%s\" instead of \"%s\".", reason, declined);
}

/* A build may have no kernels for Hopper. */
static om_status check_kernel(om_ctx *ctx, const session_run *r) {
  om_gpu_info info;
  OM_TRY(om_gpu_get_info(r->session, &info, ctx->error));
  if (!info.has_sm90 || r->log.has_kernel) return OM_OK;
  return OM_FAIL(ctx, OM_E_INTERNAL, "'%s' did not run, but:%s", r->log.kernel, r->log.ran);
}

static om_status run_and_check(om_ctx *ctx,
                               session_run *r,
                               const om_test_session_args *args,
                               om_test_results *results) {
  OM_TRY(run_once(ctx, r));
  results->count = (uint32_t)r->output_count;
  for (uint32_t i = 0; i < results->count; ++i) {
    OM_TRY(om_test_results_copy(ctx, &r->outputs[i].tensor, results, i));
  }
  OM_TRY(run_again(ctx, r, results));
  OM_TRY(compare_runs(ctx, r, results));
  if (args->declined) OM_TRY(check_placement(ctx, r, args->declined));
  return args->hopper_kernel ? check_kernel(ctx, r) : OM_OK;
}

om_status om_test_run_session(om_ctx *ctx,
                              const om_test_model *model,
                              const om_test_session_args *args,
                              om_test_results *out_results) {
  om_status st = OM_OK;
  session_run *r = NULL;
  memset(out_results, 0, sizeof *out_results);
  OM_GO_NEW(r, 1);
  name_tensors(r, model);
  OM_GO(create_session(ctx, r, model, args));
  OM_GO(run_and_check(ctx, r, args, out_results));
done:
  if (r) {
    om_session_destroy(r->session);
    om_model_destroy(r->model);
    om_gpu_prepared_destroy(r->prepared);
    om_test_shared_check(st);
    if (st == OM_OK && r->log.error_count > 0) {
      st = OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "%u error lines in the log, the first: %s",
                   r->log.error_count,
                   r->log.first);
    }
    for (uint32_t i = 0; i < OM_CASE_OUTPUTS; ++i) om_delete(ctx, r->blocks[i]);
  }
  om_delete(ctx, r);
  return st;
}
