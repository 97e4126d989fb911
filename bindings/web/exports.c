/* What JavaScript calls: the core API with flat arguments, since a script cannot lay out structs.
 *
 * A pointer is a number there. An om_web_error holds what went wrong; texts are lent until the
 * object they belong to is destroyed or used again.
 */
#include <emscripten.h>
#include <stdlib.h>
#include <unistd.h>

#include "onemodel/gpu.h"
#include "onemodel/onemodel.h"

#define EXPORT EMSCRIPTEN_KEEPALIVE

/* ---- Errors ---- */

EXPORT om_error *om_web_error_new(void) {
  return calloc(1, sizeof(om_error));
}

EXPORT const char *om_web_error_code(const om_error *error) {
  return om_status_name(error->status);
}

EXPORT const char *om_web_error_message(const om_error *error) {
  return error->message;
}

/* ---- Models ---- */

/* The page's side of readers: om_web_reader.js. Sizes are doubles, which hold 2^53. */
extern double om_web_find(int reader, const char *location);
extern bool om_web_is_ready(int reader, const char *location, double offset, double count);
extern size_t om_web_read(int reader, const char *location, double offset, size_t count, void *to);

static bool find(void *user, const char *location, uint64_t *out_byte_count) {
  const double count = om_web_find((int)(uintptr_t)user, location);
  *out_byte_count = count >= 0 ? (uint64_t)count : 0;
  return count >= 0;
}

static size_t read_range(
    void *user, const char *location, uint64_t offset, size_t byte_count, void *to) {
  return om_web_read((int)(uintptr_t)user, location, (double)offset, byte_count, to);
}

static bool is_ready(void *user, const char *location, uint64_t offset, uint64_t byte_count) {
  return om_web_is_ready((int)(uintptr_t)user, location, (double)offset, (double)byte_count);
}

/* The bytes stay the caller's and must outlive the model, as the page's reader must. */
EXPORT om_model *om_web_model_load(const void *bytes,
                                   size_t byte_count,
                                   int reader,
                                   om_error *error) {
  om_model *model = NULL;
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  const om_reader from_page = {
      .find = find, .read = read_range, .is_ready = is_ready, .user = (void *)(uintptr_t)reader};
  options.reader = &from_page;
  return om_model_load_memory(bytes, byte_count, &options, &model, error) == OM_OK ? model : NULL;
}

EXPORT void om_web_model_destroy(om_model *model) {
  om_model_destroy(model);
}

static const om_value_info *value_info(const om_model *model, bool is_output, size_t index) {
  const om_model_info *info = om_model_get_info(model);
  return is_output ? &info->outputs[index] : &info->inputs[index];
}

EXPORT size_t om_web_value_count(const om_model *model, bool is_output) {
  const om_model_info *info = om_model_get_info(model);
  return is_output ? info->output_count : info->input_count;
}

EXPORT const char *om_web_value_name(const om_model *model, bool is_output, size_t index) {
  return value_info(model, is_output, index)->name;
}

EXPORT const char *om_web_value_dtype(const om_model *model, bool is_output, size_t index) {
  return om_dtype_name(value_info(model, is_output, index)->dtype);
}

/* -1: the model does not say. */
EXPORT int om_web_value_rank(const om_model *model, bool is_output, size_t index) {
  const om_value_info *info = value_info(model, is_output, index);
  return info->has_rank ? (int)info->rank : -1;
}

/* -1: known only at run time. */
EXPORT double om_web_value_dim(const om_model *model, bool is_output, size_t index, size_t dim) {
  return (double)value_info(model, is_output, index)->dims[dim];
}

/* ---- Sessions ---- */

/* On the device that the page has made ready. NULL on a failure. */
EXPORT om_gpu_prepared *om_web_prepare(bool is_exact, bool profiles, om_error *error) {
  om_gpu_prepared *prepared = NULL;
  om_gpu_options options = OM_GPU_OPTIONS_INIT;
  const om_mode mode = is_exact ? OM_MODE_EXACT : OM_MODE_FAST;
  options.profile_steps = profiles;
  return om_gpu_prepare_begin(&options, mode, NULL, &prepared, error) == OM_OK ? prepared : NULL;
}

/* 1: done. 0: not yet. -1: it failed. */
EXPORT int om_web_prepare_poll(om_gpu_prepared *prepared, om_error *error) {
  bool is_done = false;
  if (om_gpu_prepare_poll(prepared, &is_done, error) != OM_OK) return -1;
  return is_done ? 1 : 0;
}

EXPORT void om_web_prepared_destroy(om_gpu_prepared *prepared) {
  om_gpu_prepared_destroy(prepared);
}

/* prepared NULL: on the CPU alone. */
EXPORT om_session *om_web_session_create(const om_model *model,
                                         om_gpu_prepared *prepared,
                                         bool requires_gpu,
                                         bool is_exact,
                                         om_error *error) {
  om_session *session = NULL;
  om_gpu_options gpu = OM_GPU_OPTIONS_INIT;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  gpu.prepared = prepared;
  options.mode = is_exact ? OM_MODE_EXACT : OM_MODE_FAST;
  options.provider = prepared ? om_gpu_provider() : NULL;
  options.provider_options = &gpu;
  options.require_gpu = requires_gpu;
  return om_session_create(model, &options, &session, error) == OM_OK ? session : NULL;
}

/* Makes the plan that the model's own shapes allow. */
EXPORT bool om_web_session_prepare(om_session *session, om_error *error) {
  return om_session_prepare(session, NULL, 0, error) == OM_OK;
}

EXPORT void om_web_session_destroy(om_session *session) {
  om_session_destroy(session);
}

/* ---- Runs ---- */

typedef struct om_web_run { /* a run's arguments and its state */
  om_session *session;
  om_run *run; /* under way; NULL: none is */
  om_named_tensor *inputs, *outputs;
  size_t input_count, output_count;
} om_web_run;

EXPORT void om_web_run_destroy(om_web_run *run) {
  if (!run) return;
  free(run->inputs);
  free(run->outputs);
  free(run);
}

EXPORT om_web_run *om_web_run_new(om_session *session, size_t input_count, size_t output_count) {
  om_web_run *run = calloc(1, sizeof *run);
  if (!run) return NULL;
  run->session = session;
  run->input_count = input_count;
  run->output_count = output_count;
  run->inputs = calloc(input_count + 1, sizeof *run->inputs);
  run->outputs = calloc(output_count + 1, sizeof *run->outputs);
  if (run->inputs && run->outputs) return run;
  om_web_run_destroy(run);
  return NULL;
}

/* The name and the data stay the caller's until the run is finished. */
EXPORT void om_web_run_set_input(om_web_run *run,
                                 size_t index,
                                 const char *name,
                                 int dtype,
                                 uint32_t rank,
                                 const double *dims,
                                 void *data) {
  int64_t extents[OM_MAX_RANK] = {0};
  for (uint32_t i = 0; i < rank && i < OM_MAX_RANK; ++i) extents[i] = (int64_t)dims[i];
  run->inputs[index].name = name;
  run->inputs[index].tensor = om_tensor_of((om_dtype)dtype, rank, extents, data);
}

EXPORT void om_web_run_set_output(om_web_run *run, size_t index, const char *name) {
  run->outputs[index] = (om_named_tensor){.name = name};
}

static om_run_args args_of(om_web_run *run) {
  return (om_run_args){.struct_bytes = sizeof(om_run_args),
                       .inputs = run->inputs,
                       .input_count = run->input_count,
                       .outputs = run->outputs,
                       .output_count = run->output_count};
}

EXPORT bool om_web_run_begin(om_web_run *run, om_error *error) {
  const om_run_args args = args_of(run);
  return om_session_run_begin(run->session, &args, &run->run, error) == OM_OK;
}

EXPORT bool om_web_run_is_done(om_web_run *run) {
  bool is_done = true;
  return om_run_poll(run->run, &is_done, NULL) != OM_OK || is_done;
}

EXPORT bool om_web_run_finish(om_web_run *run, om_error *error) {
  om_run *under_way = run->run;
  run->run = NULL;
  return om_run_finish(under_way, error) == OM_OK;
}

EXPORT int om_web_output_dtype(const om_web_run *run, size_t index) {
  return (int)run->outputs[index].tensor.dtype;
}

EXPORT uint32_t om_web_output_rank(const om_web_run *run, size_t index) {
  return run->outputs[index].tensor.rank;
}

EXPORT double om_web_output_dim(const om_web_run *run, size_t index, size_t dim) {
  return (double)run->outputs[index].tensor.dims[dim];
}

EXPORT const void *om_web_output_data(const om_web_run *run, size_t index) {
  return run->outputs[index].tensor.data;
}

EXPORT size_t om_web_output_bytes(const om_web_run *run, size_t index) {
  return run->outputs[index].tensor.data_bytes;
}

/* ---- Diagnostics ---- */

/* For the shapes of the run's inputs. NULL on a failure. */
EXPORT const om_diagnostics *om_web_diagnose(om_web_run *run, om_error *error) {
  const om_diagnostics *diagnostics = NULL;
  om_status st =
      om_session_diagnose(run->session, run->inputs, run->input_count, &diagnostics, error);
  return st == OM_OK ? diagnostics : NULL;
}

EXPORT size_t om_web_node_count(const om_diagnostics *diagnostics) {
  return diagnostics->node_count;
}

EXPORT size_t om_web_region_count(const om_diagnostics *diagnostics) {
  return diagnostics->region_count;
}

EXPORT const char *om_web_node_name(const om_diagnostics *diagnostics, size_t index) {
  return diagnostics->nodes[index].name;
}

EXPORT const char *om_web_node_type(const om_diagnostics *diagnostics, size_t index) {
  return diagnostics->nodes[index].op_type;
}

EXPORT const char *om_web_node_reason(const om_diagnostics *diagnostics, size_t index) {
  return diagnostics->nodes[index].reason;
}

EXPORT int om_web_node_place(const om_diagnostics *diagnostics, size_t index) {
  return (int)diagnostics->nodes[index].place;
}

EXPORT int om_web_node_region(const om_diagnostics *diagnostics, size_t index) {
  return diagnostics->nodes[index].region;
}

/* ---- Times of the last run's steps, of a session that profiles ---- */

static om_gpu_step_time step_time(const om_session *session, size_t index) {
  const om_gpu_step_time *times = NULL;
  size_t count = 0;
  if (om_gpu_get_step_times(session, &times, &count, NULL) != OM_OK) count = 0;
  return index < count ? times[index] : (om_gpu_step_time){0};
}

EXPORT size_t om_web_step_count(const om_session *session) {
  const om_gpu_step_time *times = NULL;
  size_t count = 0;
  return om_gpu_get_step_times(session, &times, &count, NULL) == OM_OK ? count : 0;
}

EXPORT const char *om_web_step_node(const om_session *session, size_t index) {
  return step_time(session, index).node;
}

EXPORT const char *om_web_step_type(const om_session *session, size_t index) {
  return step_time(session, index).type;
}

EXPORT double om_web_step_dispatches(const om_session *session, size_t index) {
  return (double)step_time(session, index).dispatches;
}

EXPORT double om_web_step_ms(const om_session *session, size_t index) {
  return step_time(session, index).ms;
}

/* ---- The device ---- */

static om_gpu_info info_of(const om_session *session) {
  om_gpu_info info = {0};
  if (om_gpu_get_info(session, &info, NULL) != OM_OK) info = (om_gpu_info){0};
  return info;
}

/* Terminated, at most `capacity` bytes; "" on the CPU alone. */
EXPORT void om_web_device_name(const om_session *session, char *name, size_t capacity) {
  const om_gpu_info info = info_of(session);
  size_t length = 0;
  while (length + 1 < capacity && info.device.name[length]) {
    name[length] = info.device.name[length];
    ++length;
  }
  if (capacity > 0) name[length] = '\0';
}

/* As many as sessions use: cores where there are threads, else 1. */
EXPORT int om_web_thread_count(void) {
  return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* In the order of the package's list of counters. */
EXPORT double om_web_counter(const om_session *session, int which) {
  const om_gpu_info info = info_of(session);
  const om_session_statistics statistics = om_session_get_statistics(session);
  const double counters[] = {
      (double)info.arena_bytes,
      (double)info.weight_bytes,
      (double)info.allocations,
      (double)info.dispatches,
      (double)info.kernels,
      (double)statistics.run_count,
      (double)statistics.host_allocations,
      (double)statistics.host_bytes,
  };
  return counters[which];
}
