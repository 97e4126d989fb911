/* Maps of ai.onnx.ml: CastMap, DictVectorizer, ZipMap (docs/exact.md, "Machine learning"). A map is
 * a list of two tensors, its keys and its values. */
#include <inttypes.h>

#include "graph/om_value_copy.h"
#include "ops/op_ml.h"
#include "ops/op_nested.h"
#include "ops/op_text.h"

static const om_tensor *keys_of(const om_tensor *map) {
  return map->data;
}

static const om_tensor *values_of(const om_tensor *map) {
  return (const om_tensor *)map->data + 1;
}

/* ---- CastMap ---- */

enum { MAP_DENSE, MAP_SPARSE };

typedef struct om_cast_map_params {
  uint32_t to; /* of cast_dtypes */
  uint32_t form;
  int64_t extent; /* of the sparse form */
} om_cast_map_params;

static const om_dtype cast_dtypes[] = {OM_DTYPE_F32, OM_DTYPE_STRING, OM_DTYPE_I64};

static om_status resolve_cast(om_ctx *ctx, const om_node *node, void *params) {
  static const char *const targets[] = {"TO_FLOAT", "TO_STRING", "TO_INT64"};
  static const char *const forms[] = {"DENSE", "SPARSE"};
  om_cast_map_params *p = params;
  OM_TRY(om_ml_choice_attr(ctx, node, "cast_to", targets, OM_COUNT_OF(targets), 0, &p->to));
  OM_TRY(om_ml_choice_attr(ctx, node, "map_form", forms, OM_COUNT_OF(forms), MAP_DENSE, &p->form));
  OM_TRY(om_node_attr_int(ctx, node, "max_map", 1, &p->extent));
  if (p->extent >= 0) return OM_OK;
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute max_map is %" PRId64 ".", p->extent);
}

/* Bytes of text that the values take as strings. */
static size_t text_bytes(const om_tensor *values) {
  char text[OM_NUMBER_TEXT];
  size_t bytes = 0;
  for (size_t i = 0; i < om_tensor_elems(values); ++i) {
    bytes += om_text_of_number(values, i, text);
  }
  return bytes;
}

static om_status check_cast_keys(om_ctx *ctx, const om_op_call *call) {
  const om_cast_map_params *p = call->params;
  const om_tensor *keys = keys_of(call->inputs[0]);
  OM_TRY(om_rule_check_int(ctx, keys, "keys"));
  for (size_t i = 0; i < om_tensor_elems(keys) && p->form == MAP_SPARSE; ++i) {
    const int64_t key = om_rule_int(keys, i);
    if (key >= 0 && key < p->extent) continue;
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The key %" PRId64 " is outside 0 to max_map, %" PRId64 ".",
                   key,
                   p->extent);
  }
  return OM_OK;
}

static om_status infer_cast(om_ctx *ctx, const om_op_call *call) {
  const om_cast_map_params *p = call->params;
  const om_tensor *map = call->inputs[0];
  const om_dtype to = cast_dtypes[p->to];
  if (!map->data) {
    om_rule_set_unknown(call, 0, to);
    return OM_OK;
  }
  OM_TRY(check_cast_keys(ctx, call));
  const om_tensor *values = values_of(map);
  const int64_t count = p->form == MAP_SPARSE ? p->extent : (int64_t)om_tensor_elems(values);
  const int64_t dims[2] = {1, count};
  if (to != OM_DTYPE_STRING) return om_rule_set(ctx, call, 0, to, 2, dims);
  const bool is_text = values->dtype == OM_DTYPE_STRING;
  return om_text_set(ctx, call, 2, dims, is_text ? 0 : text_bytes(values));
}

/* One place for each key, to sort them; and where the text of the next string goes. */
static size_t cast_scratch(const om_op_call *call) {
  return (om_tensor_elems(keys_of(call->inputs[0])) + 1) * sizeof(size_t);
}

/* Sinks order[at] into the heap of `count`: the largest key stands first. */
static void sink(const om_tensor *keys, size_t *order, size_t at, size_t count) {
  for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count &&
        om_rule_int(keys, order[child + 1]) > om_rule_int(keys, order[child])) {
      ++child;
    }
    if (om_rule_int(keys, order[at]) >= om_rule_int(keys, order[child])) return;
    const size_t moved = order[at];
    order[at] = order[child];
    order[child] = moved;
    at = child;
  }
}

/* order[i] = the place of the i-th smallest key. */
static void sort_keys(const om_tensor *keys, size_t *order) {
  const size_t count = om_tensor_elems(keys);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  for (size_t i = count / 2; i-- > 0;) sink(keys, order, i, count);
  for (size_t end = count; end > 1; --end) {
    const size_t largest = order[0];
    order[0] = order[end - 1];
    order[end - 1] = largest;
    sink(keys, order, 0, end - 1);
  }
}

static om_status cast_value(
    om_ctx *ctx, const om_tensor *values, size_t from, om_tensor *y, size_t to, char **text) {
  const om_string *strings = values->data;
  if (values->dtype == OM_DTYPE_STRING && y->dtype == OM_DTYPE_STRING) {
    ((om_string *)y->data)[to] = strings[from];
  } else if (values->dtype == OM_DTYPE_STRING) {
    return om_number_of_text(ctx, strings[from], y, to);
  } else if (y->dtype == OM_DTYPE_STRING) {
    char number[OM_NUMBER_TEXT];
    const size_t bytes = om_text_of_number(values, from, number);
    memcpy(*text, number, bytes);
    ((om_string *)y->data)[to] = (om_string){*text, bytes};
    *text += bytes;
  } else {
    om_cast_elems(values->dtype,
                  om_cast_place(values->dtype, values->data, from),
                  y->dtype,
                  (char *)y->data + to * om_rule_elem_bytes(y->dtype),
                  1,
                  true);
  }
  return OM_OK;
}

static om_status run_cast(om_ctx *ctx, const om_op_call *call) {
  const om_cast_map_params *p = call->params;
  const om_tensor *keys = keys_of(call->inputs[0]), *values = values_of(call->inputs[0]);
  om_tensor *y = call->outputs[0];
  size_t *order = call->scratch;
  char *text = y->dtype == OM_DTYPE_STRING ? om_text_place(y) : NULL;
  OM_TRY(check_cast_keys(ctx, call));
  sort_keys(keys, order);
  for (size_t i = 0; p->form == MAP_SPARSE && i < (size_t)p->extent; ++i) {
    OM_TRY(om_check_turn(ctx, i));
    if (text) {
      ((om_string *)y->data)[i] = (om_string){"0", 1};
    } else {
      om_real_store(y, i, 0.0);
    }
  }
  for (size_t i = 0; i < om_tensor_elems(keys); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const size_t to = p->form == MAP_SPARSE ? (size_t)om_rule_int(keys, order[i]) : i;
    OM_TRY(cast_value(ctx, values, order[i], y, to, &text));
  }
  return OM_OK;
}

/* ---- DictVectorizer ---- */

typedef struct om_dict_params {
  om_rule_list ints;
  om_ml_strings strings;
} om_dict_params;

static om_status resolve_dict(om_ctx *ctx, const om_node *node, void *params) {
  om_dict_params *p = params;
  OM_TRY(om_rule_list_attr(ctx, node, "int64_vocabulary", &p->ints));
  OM_TRY(om_ml_strings_attr(ctx, node, "string_vocabulary", &p->strings));
  if ((p->ints.count > 0) != (p->strings.count > 0)) return OM_OK;
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "One of the two vocabularies is expected.");
}

static om_status infer_dict(om_ctx *ctx, const om_op_call *call) {
  const om_dict_params *p = call->params;
  const om_tensor *map = call->inputs[0];
  const om_dtype keys = p->strings.count > 0 ? OM_DTYPE_STRING : OM_DTYPE_I64;
  const int64_t dims[1] = {(int64_t)(p->strings.count > 0 ? p->strings.count : p->ints.count)};
  if (!map->data) {
    om_rule_set_unknown(call, 0, OM_DTYPE_NONE);
    return OM_OK;
  }
  if (keys_of(map)->dtype == keys && om_rule_elem_bytes(values_of(map)->dtype) > 0) {
    return om_rule_set(ctx, call, 0, values_of(map)->dtype, 1, dims);
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "The map has keys of %s; the vocabulary is of %s.",
                 om_dtype_name(keys_of(map)->dtype),
                 om_dtype_name(keys));
}

/* The place of key `index` in the vocabulary; SIZE_MAX: it has none. */
static size_t find_word(const om_dict_params *p, const om_tensor *keys, size_t index) {
  if (keys->dtype == OM_DTYPE_STRING) {
    const om_string key = ((const om_string *)keys->data)[index];
    for (size_t i = p->strings.count; i-- > 0;) {
      if (om_string_same(p->strings.values[i], key)) return i;
    }
    return SIZE_MAX;
  }
  for (size_t i = p->ints.count; i-- > 0;) {
    if (p->ints.values[i] == om_rule_int(keys, index)) return i;
  }
  return SIZE_MAX;
}

static om_status run_dict(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *keys = keys_of(call->inputs[0]), *values = values_of(call->inputs[0]);
  om_tensor *y = call->outputs[0];
  const size_t bytes = om_rule_elem_bytes(y->dtype);
  for (size_t i = 0; i < om_tensor_elems(y); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const om_string nothing = {"", 0};
    memset((char *)y->data + i * bytes, 0, bytes);
    if (y->dtype == OM_DTYPE_STRING) ((om_string *)y->data)[i] = nothing;
  }
  for (size_t i = 0; i < om_tensor_elems(keys); ++i) {
    OM_TRY(om_check_cancelled(ctx));
    const size_t to = find_word(call->params, keys, i);
    if (to == SIZE_MAX) continue;
    memcpy((char *)y->data + to * bytes, (const char *)values->data + i * bytes, bytes);
  }
  return OM_OK;
}

/* ---- ZipMap ---- */

typedef struct om_zip_params {
  om_ml_labels labels;
} om_zip_params;

static om_status resolve_zip(om_ctx *ctx, const om_node *node, void *params) {
  om_zip_params *p = params;
  return om_ml_labels_attr(ctx, node, "classlabels_int64s", &p->labels);
}

/* The map of a row, whose data stay where they lie. */
static void make_map(const om_op_call *call, size_t row, om_tensor parts[2]) {
  const om_zip_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const int64_t dims[1] = {(int64_t)om_ml_label_count(&p->labels)};
  const om_dtype keys = om_ml_label_dtype(&p->labels);
  const void *labels = p->labels.strings.values;
  if (keys == OM_DTYPE_I64) labels = p->labels.ints.values;
  parts[0] = om_tensor_of(keys, 1, dims, NULL);
  parts[1] = om_tensor_of(x->dtype, 1, dims, NULL);
  memcpy(&parts[0].data, &labels, sizeof labels); /* read only, as all operands are */
  if (x->data) parts[1].data = (char *)x->data + row * parts[1].data_bytes;
}

static om_status infer_zip(om_ctx *ctx, const om_op_call *call) {
  const om_zip_params *p = call->params;
  const size_t labels = om_ml_label_count(&p->labels);
  om_nested_size size = {0};
  om_tensor parts[2];
  size_t rows, columns;
  OM_TRY(om_ml_rows(ctx, call->inputs[0], &rows, &columns));
  if (columns != labels) {
    return OM_FAIL(
        ctx, OM_E_INVALID_INPUT, "There are %zu columns for %zu labels.", columns, labels);
  }
  make_map(call, 0, parts);
  const om_tensor map = om_map_of(parts);
  om_nested_add(&size, &map); /* all rows are alike */
  size.count = rows;
  if (!om_size_mul(size.bytes, rows, &size.bytes)) size.is_too_big = true;
  return om_nested_set(ctx, call, 0, OM_DTYPE_SEQUENCE, &size);
}

static om_status run_zip(om_ctx *ctx, const om_op_call *call) {
  om_nested_writer writer = om_nested_begin(call->outputs[0]);
  for (size_t row = 0; row < (size_t)call->outputs[0]->dims[0]; ++row) {
    OM_TRY(om_check_cancelled(ctx));
    om_tensor parts[2];
    make_map(call, row, parts);
    const om_tensor map = om_map_of(parts);
    om_nested_write(&writer, &map);
  }
  return OM_OK;
}

const om_op om_ops_ml_map[] = {
    {.domain = OM_ML_DOMAIN,
     .type = "CastMap",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_MAP),
     .params_bytes = sizeof(om_cast_map_params),
     .resolve = resolve_cast,
     .infer = infer_cast,
     .scratch_bytes = cast_scratch,
     .run = run_cast},
    {.domain = OM_ML_DOMAIN,
     .type = "DictVectorizer",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_MAP),
     .params_bytes = sizeof(om_dict_params),
     .resolve = resolve_dict,
     .infer = infer_dict,
     .run = run_dict},
    {.domain = OM_ML_DOMAIN,
     .type = "ZipMap",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_F32),
     .params_bytes = sizeof(om_zip_params),
     .resolve = resolve_zip,
     .infer = infer_zip,
     .run = run_zip},
    {.type = NULL},
};
