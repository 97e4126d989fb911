/* Reads, runs and compares test folders. */
#include "harness/om_folder.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "graph/om_value_copy.h"
#include "onnx/om_model.h"
#include "onnx/om_nested_proto.h"

bool om_path_exists(const char *path) {
  return access(path, F_OK) == 0;
}

void om_folder_close(om_ctx *ctx, om_folder *folder) {
  om_model_destroy(folder->model);
  for (size_t i = 0; i < folder->map_count; ++i) om_file_map_close(ctx, &folder->maps[i]);
  om_delete(ctx, folder->maps);
  om_pool_deinit(ctx, &folder->pool);
  *folder = (om_folder){0};
}

static om_status read_value(
    om_ctx *ctx, om_folder *folder, const char *path, om_dtype kind, om_tensor *out) {
  om_tensor_reading how = {.pool = &folder->pool, .align_below_bytes = SIZE_MAX};
  OM_TRY(OM_GROW(ctx, folder->maps, folder->map_count, folder->map_capacity));
  om_file_map *map = &folder->maps[folder->map_count];
  OM_TRY(om_file_map_open(ctx, path, map));
  ++folder->map_count;
  om_string bytes = {.data = (const char *)map->bytes, .bytes = map->byte_count};
  return om_nested_proto_read(ctx, &how, kind, bytes, out);
}

/* numpy has no bfloat16: files that it wrote hold the bits as uint16. */
static void restore_bfloat16(om_tensor *tensor, om_dtype wanted) {
  if (wanted == OM_DTYPE_BF16 && tensor->dtype == OM_DTYPE_U16) tensor->dtype = OM_DTYPE_BF16;
}

static om_status read_inputs(om_ctx *ctx, om_folder *folder, const char *path, om_folder_set *set) {
  const char *file = NULL;
  size_t count = folder->info->input_count;
  set->inputs = OM_POOL_NEW(ctx, &folder->pool, om_named_tensor, count);
  if (!set->inputs) return OM_E_OUT_OF_MEMORY;
  /* Files past the last input stand for inputs that have initializers: they must be readable. */
  for (size_t i = 0;; ++i) {
    om_tensor tensor;
    file = om_pool_format(ctx, &folder->pool, "%s/input_%zu.pb", path, i);
    if (!file) return OM_E_OUT_OF_MEMORY;
    if (!om_path_exists(file)) break;
    om_dtype kind = i < count ? folder->info->inputs[i].dtype : OM_DTYPE_NONE;
    OM_TRY(read_value(ctx, folder, file, kind, &tensor));
    if (i >= count) continue;
    restore_bfloat16(&tensor, folder->info->inputs[i].dtype);
    set->inputs[i] = (om_named_tensor){folder->info->inputs[i].name, tensor};
    set->input_count = i + 1;
  }
  return OM_OK;
}

static om_status read_set(om_ctx *ctx, om_folder *folder, const char *path, om_folder_set *set) {
  const char *file = NULL;
  OM_TRY(read_inputs(ctx, folder, path, set));
  set->expected = OM_POOL_NEW(ctx, &folder->pool, om_tensor *, folder->info->output_count);
  if (!set->expected) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < folder->info->output_count; ++i) {
    file = om_pool_format(ctx, &folder->pool, "%s/output_%zu.pb", path, i);
    if (!file) return OM_E_OUT_OF_MEMORY;
    if (!om_path_exists(file)) continue;
    set->expected[i] = OM_POOL_NEW(ctx, &folder->pool, om_tensor, 1);
    if (!set->expected[i]) return OM_E_OUT_OF_MEMORY;
    OM_TRY(read_value(ctx, folder, file, folder->info->outputs[i].dtype, set->expected[i]));
    restore_bfloat16(set->expected[i], folder->info->outputs[i].dtype);
  }
  return OM_OK;
}

om_status om_folder_open(om_ctx *ctx,
                         const char *path,
                         const om_model_options *options,
                         om_folder *out_folder) {
  om_status st = OM_OK;
  const char *file = NULL;
  om_folder folder = {0};
  file = om_pool_format(ctx, &folder.pool, "%s/model.onnx", path);
  if (!file) OM_GO(OM_E_OUT_OF_MEMORY);
  OM_GO(om_model_load_file(file, options, &folder.model, ctx->error));
  folder.info = om_model_get_info(folder.model);
  for (size_t i = 0; i < OM_FOLDER_SETS; ++i) {
    file = om_pool_format(ctx, &folder.pool, "%s/test_data_set_%zu", path, i);
    if (!file) OM_GO(OM_E_OUT_OF_MEMORY);
    if (!om_path_exists(file)) break;
    OM_GO(read_set(ctx, &folder, file, &folder.sets[i]));
    folder.set_count = i + 1;
  }
  *out_folder = folder;
  folder = (om_folder){0};
done:
  om_folder_close(ctx, &folder);
  return st;
}

/* ---- Constants in place of inputs ---- */

enum { MOST_FIXED_ELEMS = 4096 };

static bool is_small(const om_tensor *tensor) {
  return tensor->dtype != OM_DTYPE_STRING && tensor->data &&
         om_tensor_elems(tensor) <= MOST_FIXED_ELEMS;
}

om_status om_folder_fix_inputs(om_ctx *ctx, om_folder *folder, bool *out_did_change) {
  om_graph *graph = (om_graph *)(uintptr_t)om_model_get_graph(folder->model);
  om_folder_set *set = &folder->sets[0];
  om_value_id *kept = NULL;
  size_t count = 0;
  *out_did_change = false;
  if (folder->set_count != 1 || set->input_count != graph->input_count) return OM_OK;
  kept = OM_POOL_NEW(ctx, &folder->pool, om_value_id, set->input_count);
  if (!kept) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < set->input_count; ++i) {
    om_value *value = &graph->values[graph->inputs[i]];
    const om_named_tensor *given = &set->inputs[i];
    if (i == 0 || value->is_output || !given->name || !is_small(&given->tensor)) {
      kept[count] = graph->inputs[i];
      set->inputs[count++] = *given;
      continue;
    }
    om_tensor *constant = OM_POOL_NEW(ctx, &folder->pool, om_tensor, 1);
    if (!constant) return OM_E_OUT_OF_MEMORY;
    *constant = given->tensor;
    value->constant = constant;
    value->is_input = false;
    *out_did_change = true;
  }
  graph->inputs = kept;
  graph->input_count = set->input_count = count;
  return OM_OK;
}

/* ---- Running ---- */

static om_status keep_result(om_ctx *ctx, om_pool *pool, const om_tensor *from, om_tensor *to) {
  size_t bytes = 0;
  if (!om_value_bytes(from, &bytes)) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "A result has an impossible shape or type.");
  }
  void *memory = om_pool_new_bytes(ctx, pool, bytes, 1);
  if (!memory) return OM_E_OUT_OF_MEMORY;
  om_value_copy(from, memory, to);
  return OM_OK;
}

static om_status run_set(om_ctx *ctx,
                         om_folder *folder,
                         om_session *session,
                         const om_folder_set *set,
                         om_tensor *results) {
  size_t count = folder->info->output_count;
  om_named_tensor *outputs = OM_POOL_NEW(ctx, &folder->pool, om_named_tensor, count);
  if (!outputs) return OM_E_OUT_OF_MEMORY;
  for (size_t i = 0; i < count; ++i) outputs[i].name = folder->info->outputs[i].name;
  om_run_args args = {.struct_bytes = sizeof args,
                      .inputs = set->inputs,
                      .input_count = set->input_count,
                      .outputs = outputs,
                      .output_count = count};
  OM_TRY(om_session_run(session, &args, ctx->error));
  for (size_t i = 0; i < count; ++i) {
    OM_TRY(keep_result(ctx, &folder->pool, &outputs[i].tensor, &results[i]));
  }
  return OM_OK;
}

om_status om_folder_run(om_ctx *ctx,
                        om_folder *folder,
                        const om_session_options *options,
                        om_folder_results *out_results,
                        om_folder_places *out_places) {
  om_status st = OM_OK;
  om_session *session = NULL;
  const om_diagnostics *diagnostics = NULL;
  om_folder_set none = {0};
  size_t set_count = folder->set_count > 0 ? folder->set_count : 1;
  size_t count = folder->info->output_count;
  *out_places = (om_folder_places){0};
  *out_results = OM_POOL_NEW(ctx, &folder->pool, om_tensor, set_count * count);
  if (!*out_results) OM_GO(OM_E_OUT_OF_MEMORY);
  OM_GO(om_session_create(folder->model, options, &session, ctx->error));
  for (size_t i = 0; i < set_count; ++i) {
    const om_folder_set *set = i < folder->set_count ? &folder->sets[i] : &none;
    OM_GO(run_set(ctx, folder, session, set, *out_results + i * count));
    OM_GO(om_session_diagnose(session, set->inputs, set->input_count, &diagnostics, ctx->error));
    *out_places = (om_folder_places){diagnostics->nodes_on_cpu, diagnostics->nodes_on_device};
  }
done:
  om_session_destroy(session);
  return st;
}

/* ---- Comparing ---- */

static om_status check_type(om_ctx *ctx, const om_tensor *got, const om_tensor *right) {
  char got_shape[OM_SHAPE_TEXT];
  char right_shape[OM_SHAPE_TEXT];
  bool is_same = got->dtype == right->dtype && got->rank == right->rank;
  for (uint32_t i = 0; i < right->rank && is_same; ++i) is_same = got->dims[i] == right->dims[i];
  if (is_same) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INTERNAL,
                 "It is %s %s, right is %s %s.",
                 om_dtype_name(got->dtype),
                 om_shape_text(got_shape, sizeof got_shape, got->rank, got->dims),
                 om_dtype_name(right->dtype),
                 om_shape_text(right_shape, sizeof right_shape, right->rank, right->dims));
}

static bool is_near(double got, double right, double rtol, double atol) {
  if (isnan(right)) return isnan(got);
  if (got == right) return true;
  if (!isfinite(got) || !isfinite(right)) return false;
  return fabs(got - right) <= atol + rtol * fabs(right);
}

static bool is_number(om_dtype dtype) {
  return dtype != OM_DTYPE_STRING && dtype != OM_DTYPE_C64 && dtype != OM_DTYPE_C128;
}

static om_status check_tensor(
    om_ctx *ctx, const om_tensor *got, const om_tensor *right, double rtol, double atol) {
  size_t elem = 0;
  OM_TRY(check_type(ctx, got, right));
  if (om_tensor_same(got, right, &elem)) return OM_OK;
  if (!is_number(got->dtype)) {
    return OM_FAIL(ctx, OM_E_INTERNAL, "It differs from the right one at element %zu.", elem);
  }
  size_t count = om_tensor_elems(right);
  for (elem = 0; elem < count; ++elem) {
    double a = om_tensor_value(got, elem);
    double b = om_tensor_value(right, elem);
    if (is_near(a, b, rtol, atol)) continue;
    return OM_FAIL(
        ctx, OM_E_INTERNAL, "Element %zu of %zu is %.9g, right is %.9g.", elem, count, a, b);
  }
  return OM_OK;
}

/* As deep as values nest. */
static om_status check_value(
    om_ctx *ctx, const om_tensor *got, const om_tensor *right, double rtol, double atol) {
  if (!om_dtype_is_nested(right->dtype)) return check_tensor(ctx, got, right, rtol, atol);
  OM_TRY(check_type(ctx, got, right));
  for (size_t i = 0; i < om_tensor_elems(right); ++i) {
    om_status st = check_value(
        ctx, (const om_tensor *)got->data + i, (const om_tensor *)right->data + i, rtol, atol);
    if (st == OM_OK) continue;
    om_error_prefix(ctx, "Its element %zu", i);
    return st;
  }
  return OM_OK;
}

om_status om_folder_check(
    om_ctx *ctx, const om_folder *folder, om_folder_results results, double rtol, double atol) {
  size_t count = folder->info->output_count;
  for (size_t i = 0; i < folder->set_count; ++i) {
    for (size_t k = 0; k < count; ++k) {
      const om_tensor *right = folder->sets[i].expected[k];
      if (!right) continue;
      om_status st = check_value(ctx, &results[i * count + k], right, rtol, atol);
      if (st == OM_OK) continue;
      om_error_prefix(ctx, "Output '%s' of set %zu", folder->info->outputs[k].name, i);
      return st;
    }
  }
  return OM_OK;
}

om_status om_folder_same(om_ctx *ctx,
                         const om_folder *folder,
                         om_folder_results a,
                         om_folder_results b) {
  size_t count = folder->info->output_count;
  size_t total = count * (folder->set_count > 0 ? folder->set_count : 1);
  for (size_t i = 0; i < total; ++i) {
    size_t elem = 0;
    if (om_dtype_is_nested(a[i].dtype)) {
      OM_TRY(check_value(ctx, &a[i], &b[i], 0.0, 0.0));
      continue;
    }
    if (om_tensor_same(&a[i], &b[i], &elem)) continue;
    return OM_FAIL(ctx,
                   OM_E_INTERNAL,
                   "The bits of output '%s' differ from element %zu on: %.9g and %.9g.",
                   folder->info->outputs[i % count].name,
                   elem,
                   elem == SIZE_MAX ? 0 : om_tensor_value(&a[i], elem),
                   elem == SIZE_MAX ? 0 : om_tensor_value(&b[i], elem));
  }
  return OM_OK;
}
