/* Sessions of any model (libFuzzer): resolving, folding, rewrites, shape rules, plans, and a run.
 *
 *     build/fuzz/fuzz_session -max_len=4096 -timeout=60 CORPUS [/usr/share/libonnx-testdata/...]
 *
 * The models of ONNX's node tests are good seeds: tests/fuzz/seeds.py copies the small ones. What a
 * model may allocate is limited, so a size that only a file asks for shows as a failure of the
 * call, and a size that is wrong as one of the sanitizer. Loops are planned, but not run: they may
 * be endless by right. */
#include <stdlib.h>

#include "base/om_base.h"
#include "onemodel/onemodel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);

enum { LIMIT_BYTES = 2 << 20, MOST_INPUTS = 16, OPEN_EXTENT = 2 };

static bool has_loops(const om_model_info *info, const om_model *model) {
  for (size_t i = 0; i < info->node_count; ++i) {
    const char *type = om_model_get_node(model, i).op_type;
    if (strcmp(type, "Loop") == 0 || strcmp(type, "Scan") == 0) return true;
  }
  return false;
}

/* Elements 0, 1, 2, ... in the bytes' own order, and the same short text for strings. */
static bool make_input(const om_value_info *info, om_named_tensor *out) {
  int64_t dims[OM_MAX_RANK] = {0};
  size_t bytes = 0;
  for (uint32_t d = 0; d < info->rank; ++d) {
    dims[d] = info->dims[d] < 0 ? OPEN_EXTENT : info->dims[d];
  }
  const om_dtype dtype = info->dtype == OM_DTYPE_NONE ? OM_DTYPE_F32 : info->dtype;
  if (om_dtype_is_nested(dtype) || !om_shape_bytes(dtype, info->rank, dims, &bytes)) return false;
  if (bytes > LIMIT_BYTES) return false;
  *out = (om_named_tensor){info->name, om_tensor_of(dtype, info->rank, dims, NULL)};
  out->tensor.data = calloc(bytes + 1, 1);
  if (!out->tensor.data) return false;
  for (size_t i = 0; i < bytes && dtype != OM_DTYPE_STRING; i += om_dtype_bits(dtype) / 8 + 1) {
    ((unsigned char *)out->tensor.data)[i] = (unsigned char)(i % 3);
  }
  for (size_t i = 0; dtype == OM_DTYPE_STRING && i < om_tensor_elems(&out->tensor); ++i) {
    ((om_string *)out->tensor.data)[i] = (om_string){"a b", 3};
  }
  return true;
}

/* Every byte of the results is read: a sanitizer watches. */
static size_t sum_of(const om_tensor *tensor) {
  size_t sum = 0, bytes = 0;
  const unsigned char *data = tensor->data;
  if (om_dtype_is_nested(tensor->dtype) ||
      !om_shape_bytes(tensor->dtype, tensor->rank, tensor->dims, &bytes)) {
    return 0;
  }
  for (size_t i = 0; i < bytes; ++i) sum += data[i];
  return sum;
}

static size_t run(om_session *session, const om_model_info *info) {
  om_named_tensor inputs[MOST_INPUTS] = {{0}}, outputs[MOST_INPUTS] = {{0}};
  size_t made = 0, sum = 0;
  if (info->input_count > MOST_INPUTS || info->output_count > MOST_INPUTS) return 0;
  while (made < info->input_count && make_input(&info->inputs[made], &inputs[made])) ++made;
  for (size_t i = 0; i < info->output_count; ++i) outputs[i].name = info->outputs[i].name;
  const om_run_args args = {
      sizeof args, inputs, info->input_count, outputs, info->output_count, NULL};
  for (int turn = 0; turn < 2 && made == info->input_count; ++turn) {
    if (om_session_run(session, &args, NULL) != OM_OK) break;
    for (size_t i = 0; i < info->output_count; ++i) {
      sum += sum_of(&outputs[i].tensor);
      outputs[i].tensor = (om_tensor){0};
    }
  }
  for (size_t i = 0; i < MOST_INPUTS; ++i) free(inputs[i].tensor.data);
  return sum;
}

static size_t use_session(const om_model *model, om_mode mode) {
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  om_session *session = NULL;
  size_t sum = 0;
  options.mode = mode;
  options.thread_count = 1;
  options.max_bytes = LIMIT_BYTES;
  if (om_session_create(model, &options, &session, NULL) != OM_OK) return 0;
  const om_model_info *info = om_model_get_info(model);
  if (!has_loops(info, model)) sum = run(session, info);
  if (om_session_get_statistics(session).host_peak_bytes > LIMIT_BYTES) abort();
  om_session_destroy(session);
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count) {
  static volatile size_t sink;
  om_model_options options = OM_MODEL_OPTIONS_INIT;
  om_model *model = NULL;
  options.max_bytes = (size_t)LIMIT_BYTES + 64 * count;
  if (om_model_load_memory(data, count, &options, &model, NULL) != OM_OK) return 0;
  sink = sink + use_session(model, OM_MODE_EXACT) + use_session(model, OM_MODE_FAST);
  om_model_destroy(model);
  return 0;
}
