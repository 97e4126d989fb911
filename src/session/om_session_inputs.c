/* The caller's tensors against the model's inputs: every way in which they can differ has its
 * sentence. */
#include <stdio.h>

#include "graph/om_value_copy.h"
#include "session/om_session.h"
#include "session/om_text.h"

/* "x (float32, [N, 3, ?, 320]), y (int64, [2])": for messages about names. */
static void list_inputs(const om_graph *graph, char *buffer, size_t buffer_bytes) {
  om_text text = om_text_in(buffer, buffer_bytes);
  for (size_t i = 0; i < graph->input_count; ++i) {
    const om_value *value = &graph->values[graph->inputs[i]];
    om_text_add(
        &text, "%s'%.100s' (%s, ", i == 0 ? "" : ", ", value->name, om_dtype_name(value->dtype));
    om_text_add_declared_shape(&text, value);
    om_text_add(&text, ")");
  }
}

/* Callers mostly keep the model's order: `position` is looked at first. */
static size_t find_input(const om_graph *graph, const char *name, size_t position) {
  if (position < graph->input_count &&
      strcmp(graph->values[graph->inputs[position]].name, name) == 0) {
    return position;
  }
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (strcmp(graph->values[graph->inputs[i]].name, name) == 0) return i;
  }
  return SIZE_MAX;
}

static om_status fail_name(om_ctx *ctx, const om_graph *graph, const char *name, const char *what) {
  char list[512];
  list_inputs(graph, list, sizeof list);
  return OM_FAIL(
      ctx, OM_E_INVALID_INPUT, "%s '%.100s'; the model's inputs are: %s.", what, name, list);
}

static om_status check_shape(om_ctx *ctx, const om_value *value, const om_tensor *given) {
  char shape[OM_SHAPE_TEXT], buffer[256];
  om_text declared = om_text_in(buffer, sizeof buffer);
  bool does_fit = !value->has_rank || value->rank == given->rank;
  for (uint32_t d = 0; does_fit && value->has_rank && d < value->rank; ++d) {
    if (value->dims[d] >= 0 && value->dims[d] != given->dims[d]) does_fit = false;
  }
  if (does_fit) return OM_OK;
  om_text_add_declared_shape(&declared, value);
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Input '%.100s' has the shape %s, but the model wants %s.",
                 value->name,
                 om_shape_text(shape, sizeof shape, given->rank, given->dims),
                 buffer);
}

static om_status check_type(om_ctx *ctx, const om_value *value, const om_tensor *given) {
  size_t bytes;
  if (om_dtype_bits(given->dtype) == 0) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input '%.100s' has the type number %d, which is none.",
                   value->name,
                   (int)given->dtype);
  }
  if (value->dtype != OM_DTYPE_NONE && value->dtype != given->dtype) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input '%.100s' is %s, but the model wants %s.",
                   value->name,
                   om_dtype_name(given->dtype),
                   om_dtype_name(value->dtype));
  }
  if (given->rank > OM_MAX_RANK) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input '%.100s' has rank %u, above the limit of %d.",
                   value->name,
                   given->rank,
                   OM_MAX_RANK);
  }
  if (!om_shape_bytes(given->dtype, given->rank, given->dims, &bytes)) {
    char shape[OM_SHAPE_TEXT];
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input '%.100s' has the shape %s, whose size is negative or overflows.",
                   value->name,
                   om_shape_text(shape, sizeof shape, given->rank, given->dims));
  }
  return OM_OK;
}

static om_status check_data(om_ctx *ctx, const om_value *value, const om_tensor *given) {
  size_t need = om_tensor_need(given);
  if (need == 0) return OM_OK;
  if (!given->data) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "Input '%.100s' has no data: it is NULL.", value->name);
  }
  if (given->data_bytes < need) {
    char shape[OM_SHAPE_TEXT];
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input '%.100s' has %zu bytes, but %s of shape %s takes %zu.",
                   value->name,
                   given->data_bytes,
                   om_dtype_name(given->dtype),
                   om_shape_text(shape, sizeof shape, given->rank, given->dims),
                   need);
  }
  size_t elem_bytes = om_dtype_bits(given->dtype) / 8;
  if (elem_bytes > 8) elem_bytes = 8; /* pairs of numbers, and om_string */
  if (elem_bytes > 1 && (uintptr_t)given->data % elem_bytes != 0) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Input '%.100s' has data that is not aligned to %zu bytes.",
                   value->name,
                   elem_bytes);
  }
  return OM_OK;
}

/* ---- Sequences, optionals and maps ---- */

static om_status check_list(om_ctx *ctx, const om_value *value, const om_tensor *given) {
  char shape[OM_SHAPE_TEXT];
  bool is_optional = given->dtype == OM_DTYPE_OPTIONAL;
  if (given->rank == 1 && (!is_optional || given->dims[0] <= 1)) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Input '%.100s' is an %s of shape %s; a list of %s is expected.",
                 value->name,
                 is_optional ? "optional" : "array",
                 om_shape_text(shape, sizeof shape, given->rank, given->dims),
                 is_optional ? "0 or 1 elements" : "tensors, of rank 1,");
}

/* Keys and values, whose own types are checked like those of other elements. */
static om_status check_map(om_ctx *ctx, const om_value *value, const om_tensor *given) {
  const om_tensor *parts = given->data;
  if (given->rank == 1 && given->dims[0] == 2 && parts && parts[0].rank == 1 &&
      parts[1].rank == 1 && parts[0].dims[0] == parts[1].dims[0] &&
      !om_dtype_is_nested(parts[0].dtype) && !om_dtype_is_nested(parts[1].dtype)) {
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "Input '%.100s' is no map: a list of two, keys and values of rank 1 and of one "
                 "length.",
                 value->name);
}

/* As deep as OM_VALUE_DEPTH: what holds tensors is checked with all that it holds. */
static om_status check_value(
    om_ctx *ctx, const om_value *value, const om_tensor *given, bool need_data, uint32_t depth) {
  char name[160];
  static const om_value untyped = {.dtype = OM_DTYPE_NONE};
  OM_TRY(check_type(ctx, value, given));
  bool is_nested = om_dtype_is_nested(given->dtype);
  const bool is_map = given->dtype == OM_DTYPE_MAP;
  if (is_nested && !is_map) OM_TRY(check_list(ctx, value, given));
  if (need_data) OM_TRY(check_data(ctx, value, given));
  if (!is_nested || !need_data) return OM_OK;
  if (is_map) OM_TRY(check_map(ctx, value, given));
  if (depth == OM_VALUE_DEPTH) {
    return OM_FAIL(
        ctx, OM_E_INVALID_INPUT, "Input '%.100s' holds values too deep in values.", value->name);
  }
  const om_tensor *elems = given->data;
  for (size_t i = 0; i < om_tensor_elems(given); ++i) {
    om_value elem = value->elem ? *value->elem : untyped;
    (void)snprintf(name, sizeof name, "%.100s[%zu]", value->name, i);
    elem.name = name;
    if (is_map && i == 0) elem.dtype = value->key_dtype;
    if (given->dtype == OM_DTYPE_SEQUENCE && i > 0) elem.dtype = elems[0].dtype; /* one for all */
    OM_TRY(check_value(ctx, &elem, &elems[i], need_data, depth + 1));
  }
  return OM_OK;
}

static om_status bind_one(om_ctx *ctx,
                          om_session *session,
                          const om_named_tensor *given,
                          size_t position,
                          bool need_data) {
  const om_graph *graph = &session->scope.graph;
  if (!given->name) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The name of input %zu is NULL.", position);
  }
  size_t index = find_input(graph, given->name, position);
  if (index == SIZE_MAX) return fail_name(ctx, graph, given->name, "There is no input");
  if (session->is_bound[index]) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "Input '%.100s' is given twice.", given->name);
  }
  const om_value *value = &graph->values[graph->inputs[index]];
  OM_TRY(check_type(ctx, value, &given->tensor));
  OM_TRY(check_shape(ctx, value, &given->tensor));
  OM_TRY(check_value(ctx, value, &given->tensor, need_data, 1));
  session->scope.bound[index] = given->tensor;
  session->is_bound[index] = true;
  return OM_OK;
}

/* An input that was left out where only shapes count: the model's own shape, if it is fixed. */
static om_status bind_declared(om_ctx *ctx, om_session *session, size_t index) {
  const om_graph *graph = &session->scope.graph;
  const om_value *value = &graph->values[graph->inputs[index]];
  om_tensor tensor = {.dtype = value->dtype, .rank = value->rank};
  if (om_dtype_is_nested(value->dtype)) { /* what it holds counts during the run alone */
    session->scope.bound[index] = om_tensor_of(value->dtype, 1, (int64_t[]){0}, NULL);
    return OM_OK;
  }
  bool is_fixed = value->has_rank && value->dtype != OM_DTYPE_NONE;
  for (uint32_t d = 0; is_fixed && d < value->rank; ++d) {
    tensor.dims[d] = value->dims[d];
    if (value->dims[d] < 0) is_fixed = false;
  }
  if (!is_fixed) {
    return fail_name(ctx, graph, value->name, "The shape is not fixed by the model for input");
  }
  OM_TRY(check_type(ctx, value, &tensor));
  session->scope.bound[index] = tensor;
  return OM_OK;
}

/* Dimensions of one name have one extent. */
static om_status check_symbols(om_ctx *ctx, const om_session *session, size_t input, uint32_t dim) {
  const om_graph *graph = &session->scope.graph;
  const om_value *value = &graph->values[graph->inputs[input]];
  const char *symbol = value->dim_names[dim];
  for (size_t i = 0; i <= input; ++i) {
    const om_value *other = &graph->values[graph->inputs[i]];
    uint32_t end = i == input ? dim : other->rank;
    for (uint32_t d = 0; d < end; ++d) {
      if (!other->dim_names[d] || strcmp(other->dim_names[d], symbol) != 0) continue;
      int64_t have = session->scope.bound[input].dims[dim], want = session->scope.bound[i].dims[d];
      if (have == want) return OM_OK;
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "Input '%.100s' has the extent %lld in dimension %u, which the model calls "
                     "'%.60s', but input '%.100s' has %lld there (dimension %u).",
                     value->name,
                     (long long)have,
                     dim,
                     symbol,
                     other->name,
                     (long long)want,
                     d);
    }
  }
  return OM_OK;
}

om_status om_session_bind_inputs(om_ctx *ctx,
                                 om_session *session,
                                 const om_named_tensor *inputs,
                                 size_t input_count,
                                 bool need_data) {
  const om_graph *graph = &session->scope.graph;
  memset(session->is_bound, 0, graph->input_count * sizeof *session->is_bound);
  for (size_t i = 0; i < input_count; ++i) OM_TRY(bind_one(ctx, session, &inputs[i], i, need_data));
  for (size_t i = 0; i < graph->input_count; ++i) {
    if (session->is_bound[i]) continue;
    const om_value *value = &graph->values[graph->inputs[i]];
    if (need_data) return fail_name(ctx, graph, value->name, "The run lacks input");
    OM_TRY(bind_declared(ctx, session, i));
  }
  for (size_t i = 0; i < graph->input_count; ++i) {
    const om_value *value = &graph->values[graph->inputs[i]];
    for (uint32_t d = 0; value->has_rank && d < value->rank; ++d) {
      if (value->dim_names[d]) OM_TRY(check_symbols(ctx, session, i, d));
    }
  }
  return OM_OK;
}
