/* Operators of ai.onnx.ml that look things up: ArrayFeatureExtractor, Binarizer, LabelEncoder,
 * CategoryMapper (docs/exact.md, "Machine learning"). */
#include <inttypes.h>
#include <stdio.h>

#include "ops/op_ml.h"
#include "ops/op_text.h"

/* ---- ArrayFeatureExtractor ---- */

static om_status infer_extractor(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  int64_t dims[OM_MAX_RANK + 1] = {1};
  const size_t count = om_tensor_elems(indices);
  if (x->rank == 0 || indices->dtype != OM_DTYPE_I64 || count == 0) {
    return OM_FAIL(
        ctx, OM_E_INVALID_INPUT, "There is no axis to select from, or there are no int64 indices.");
  }
  const uint32_t rank = x->rank > 1 ? x->rank : 2; /* of a vector: one row */
  for (uint32_t d = 0; d + 1 < x->rank; ++d) dims[d] = x->dims[d];
  dims[rank - 1] = (int64_t)count;
  return om_rule_set(ctx, call, 0, x->dtype, rank, dims);
}

static om_status run_extractor(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const size_t bytes = om_rule_elem_bytes(x->dtype);
  const size_t extent = (size_t)x->dims[x->rank - 1];
  const size_t count = om_tensor_elems(call->inputs[1]);
  const size_t rows = om_rule_product(x->dims, 0, x->rank - 1);
  for (size_t i = 0; i < count; ++i) {
    const int64_t index = om_rule_int(call->inputs[1], i);
    if (index < 0 || index >= (int64_t)extent) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "ArrayFeatureExtractor index %" PRId64
                     " is out of range for an extent of %zu.",
                     index,
                     extent);
    }
    for (size_t row = 0; row < rows; ++row) {
      OM_TRY(om_check_turn(ctx, row));
      memcpy((char *)call->outputs[0]->data + (row * count + i) * bytes,
             (const char *)x->data + (row * extent + (size_t)index) * bytes,
             bytes);
    }
  }
  return OM_OK;
}

/* ---- Binarizer ---- */

typedef struct om_binarizer_params {
  float threshold;
} om_binarizer_params;

static om_status resolve_binarizer(om_ctx *ctx, const om_node *node, void *params) {
  om_binarizer_params *p = params;
  return om_node_attr_float(ctx, node, "threshold", 0.0f, &p->threshold);
}

static om_status infer_binarizer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

static om_status run_binarizer(om_ctx *ctx, const om_op_call *call) {
  const om_binarizer_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const bool is_above = om_real_load(x, i) > (double)p->threshold;
    om_real_store(call->outputs[0], i, is_above ? 1.0 : 0.0);
  }
  return OM_OK;
}

/* ---- LabelEncoder ---- */

typedef struct om_label_list { /* borrowed from the node's attributes */
  om_dtype dtype;
  size_t count;
  const void *data;
} om_label_list;

typedef struct om_label_params {
  om_label_list keys, values, fallback;
} om_label_params;

static om_status read_labels(om_ctx *ctx,
                             const om_node *node,
                             const char *name,
                             om_label_list *out) {
  const om_attr *a = om_node_attr(node, name);
  if (!a) return OM_OK;
  switch (a->kind) {
    case OM_ATTR_STRINGS:
      *out = (om_label_list){OM_DTYPE_STRING, a->count, a->strings};
      return OM_OK;
    case OM_ATTR_INTS:
      *out = (om_label_list){OM_DTYPE_I64, a->count, a->ints};
      return OM_OK;
    case OM_ATTR_FLOATS:
      *out = (om_label_list){OM_DTYPE_F32, a->count, a->floats};
      return OM_OK;
    case OM_ATTR_STRING:
      *out = (om_label_list){OM_DTYPE_STRING, 1, &a->s};
      return OM_OK;
    case OM_ATTR_INT:
      *out = (om_label_list){OM_DTYPE_I64, 1, &a->i};
      return OM_OK;
    case OM_ATTR_FLOAT:
      *out = (om_label_list){OM_DTYPE_F32, 1, &a->f};
      return OM_OK;
    case OM_ATTR_TENSOR:
      *out = (om_label_list){a->tensor->dtype, om_tensor_elems(a->tensor), a->tensor->data};
      return OM_OK;
    default:
      return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute %s has no labels.", name);
  }
}

/* ONNX's own defaults. */
static om_label_list default_of(om_dtype dtype) {
  static const om_string text = {"_Unused", 7};
  static const float f32 = -0.0f;
  static const double f64 = -0.0;
  static const uint64_t minus_one = UINT64_MAX;
  const void *data = &minus_one;
  if (dtype == OM_DTYPE_STRING) data = &text;
  if (dtype == OM_DTYPE_F32) data = &f32;
  if (dtype == OM_DTYPE_F64) data = &f64;
  return (om_label_list){dtype, 1, data};
}

/* The default that has the values' type; the others do not matter. */
static om_status read_default(om_ctx *ctx, const om_node *node, om_label_params *p) {
  static const char *const names[] = {
      "default_tensor", "default_string", "default_int64", "default_float"};
  p->fallback = default_of(p->values.dtype);
  for (size_t i = 0; i < OM_COUNT_OF(names); ++i) {
    om_label_list list = {OM_DTYPE_NONE, 0, NULL};
    OM_TRY(read_labels(ctx, node, names[i], &list));
    if (list.count != 1 || list.dtype != p->values.dtype) continue;
    p->fallback = list;
    break;
  }
  return OM_OK;
}

static om_status resolve_encoder(om_ctx *ctx, const om_node *node, void *params) {
  static const char *const forms[] = {"strings", "int64s", "floats", "tensor"};
  om_label_params *p = params;
  for (size_t i = 0; i < OM_COUNT_OF(forms); ++i) {
    char name[24];
    snprintf(name, sizeof name, "keys_%s", forms[i]);
    OM_TRY(read_labels(ctx, node, name, &p->keys));
    snprintf(name, sizeof name, "values_%s", forms[i]);
    OM_TRY(read_labels(ctx, node, name, &p->values));
  }
  if (p->keys.data && p->values.data && p->keys.count == p->values.count &&
      om_rule_elem_bytes(p->values.dtype) > 0) {
    return read_default(ctx, node, p);
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "There are %zu keys, but %zu values.",
                 p->keys.count,
                 p->values.count);
}

/* Version 1: labels and their places, in either direction. CategoryMapper: strings and integers. */

typedef struct om_mapper_params {
  om_ml_strings strings;
  om_rule_list ints; /* absent: the strings' places */
  om_string default_string;
  int64_t default_int;
} om_mapper_params;

static om_status resolve_mapper(om_ctx *ctx, const om_node *node, void *params) {
  om_mapper_params *p = params;
  const bool is_first = strcmp(node->type, "LabelEncoder") == 0;
  OM_TRY(om_ml_strings_attr(ctx, node, is_first ? "classes_strings" : "cats_strings", &p->strings));
  OM_TRY(om_rule_list_attr(ctx, node, "cats_int64s", &p->ints));
  OM_TRY(om_node_attr_text(ctx, node, "default_string", "_Unused", &p->default_string));
  OM_TRY(om_node_attr_int(ctx, node, "default_int64", -1, &p->default_int));
  if (is_first || p->ints.count == p->strings.count) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "There are %zu strings, but %zu integers.",
                 p->strings.count,
                 p->ints.count);
}

static om_status infer_mapper(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_dtype to = x->dtype == OM_DTYPE_STRING ? OM_DTYPE_I64 : OM_DTYPE_STRING;
  return om_rule_set(ctx, call, 0, to, x->rank, x->dims);
}

static int64_t int_of(const om_mapper_params *p, size_t index) {
  return p->ints.is_given ? p->ints.values[index] : (int64_t)index;
}

static om_status run_mapper(om_ctx *ctx, const om_op_call *call) {
  const om_mapper_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_cancelled(ctx));
    size_t k = p->strings.count;
    if (x->dtype == OM_DTYPE_STRING) {
      const om_string text = ((const om_string *)x->data)[i];
      while (k-- > 0 && !om_string_same(p->strings.values[k], text)) {
      }
      ((int64_t *)call->outputs[0]->data)[i] = k == SIZE_MAX ? p->default_int : int_of(p, k);
    } else {
      const int64_t value = om_rule_int(x, i);
      while (k-- > 0 && int_of(p, k) != value) {
      }
      ((om_string *)call->outputs[0]->data)[i] =
          k == SIZE_MAX ? p->default_string : p->strings.values[k];
    }
  }
  return OM_OK;
}

static om_status infer_encoder(om_ctx *ctx, const om_op_call *call) {
  const om_label_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  if (x->dtype == p->keys.dtype) {
    return om_rule_set(ctx, call, 0, p->values.dtype, x->rank, x->dims);
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The keys are %s, but the input is %s.",
                 om_dtype_name(p->keys.dtype),
                 om_dtype_name(x->dtype));
}

static bool is_same(om_dtype dtype, const void *a, const void *b) {
  float f32[2];
  double f64[2];
  switch (dtype) {
    case OM_DTYPE_STRING:
      return om_string_same(*(const om_string *)a, *(const om_string *)b);
    case OM_DTYPE_F32:
      memcpy(&f32[0], a, sizeof f32[0]);
      memcpy(&f32[1], b, sizeof f32[1]);
      return f32[0] == f32[1] || (f32[0] != f32[0] && f32[1] != f32[1]);
    case OM_DTYPE_F64:
      memcpy(&f64[0], a, sizeof f64[0]);
      memcpy(&f64[1], b, sizeof f64[1]);
      return f64[0] == f64[1] || (f64[0] != f64[0] && f64[1] != f64[1]);
    default:
      return memcmp(a, b, om_rule_elem_bytes(dtype)) == 0;
  }
}

/* The last of equal keys counts. */
static om_status run_encoder(om_ctx *ctx, const om_op_call *call) {
  const om_label_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const size_t key_bytes = om_rule_elem_bytes(p->keys.dtype);
  const size_t bytes = om_rule_elem_bytes(p->values.dtype);
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_cancelled(ctx));
    const char *elem = (const char *)x->data + i * key_bytes;
    const char *value = p->fallback.data;
    for (size_t k = p->keys.count; k-- > 0;) {
      if (!is_same(x->dtype, elem, (const char *)p->keys.data + k * key_bytes)) continue;
      value = (const char *)p->values.data + k * bytes;
      break;
    }
    memcpy((char *)call->outputs[0]->data + i * bytes, value, bytes);
  }
  return OM_OK;
}

const om_op om_ops_ml[] = {
    {.domain = OM_ML_DOMAIN,
     .type = "ArrayFeatureExtractor",
     .first_opset = 1,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_ML | OM_DT(OM_DTYPE_STRING),
     .infer = infer_extractor,
     .run = run_extractor},
    {.domain = OM_ML_DOMAIN,
     .type = "Binarizer",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ML,
     .params_bytes = sizeof(om_binarizer_params),
     .resolve = resolve_binarizer,
     .infer = infer_binarizer,
     .run = run_binarizer},
    {.domain = OM_ML_DOMAIN,
     .type = "LabelEncoder",
     .first_opset = 2,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ML | OM_DT(OM_DTYPE_I16) | OM_DT(OM_DTYPE_STRING),
     .params_bytes = sizeof(om_label_params),
     .resolve = resolve_encoder,
     .infer = infer_encoder,
     .run = run_encoder},
    {.domain = OM_ML_DOMAIN,
     .type = "LabelEncoder",
     .first_opset = 1,
     .last_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_I64) | OM_DT(OM_DTYPE_STRING),
     .params_bytes = sizeof(om_mapper_params),
     .resolve = resolve_mapper,
     .infer = infer_mapper,
     .run = run_mapper},
    {.domain = OM_ML_DOMAIN,
     .type = "CategoryMapper",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT(OM_DTYPE_I64) | OM_DT(OM_DTYPE_STRING),
     .params_bytes = sizeof(om_mapper_params),
     .resolve = resolve_mapper,
     .infer = infer_mapper,
     .run = run_mapper},
    {.type = NULL},
};
