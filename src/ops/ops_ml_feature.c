/* Operators of ai.onnx.ml that prepare features: Scaler, Normalizer, Imputer, FeatureVectorizer,
 * OneHotEncoder (docs/exact.md, "Machine learning"). */
#include <inttypes.h>

#include "ops/op_ml.h"
#include "ops/op_text.h"

/* A list of one value for all features, or of one for each. */
static om_status check_per_feature(
    om_ctx *ctx, const om_tensor *x, const char *name, size_t count, bool may_lack) {
  const size_t features = x->rank > 0 ? (size_t)x->dims[x->rank - 1] : 1;
  if (count == 1 || count == features || (count == 0 && may_lack)) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The attribute %s has %zu values for %zu features.",
                 name,
                 count,
                 features);
}

/* ---- Scaler ---- */

typedef struct om_scaler_params {
  om_ml_floats offset, scale;
} om_scaler_params;

static om_status resolve_scaler(om_ctx *ctx, const om_node *node, void *params) {
  om_scaler_params *p = params;
  OM_TRY(om_ml_floats_attr(ctx, node, "offset", &p->offset));
  return om_ml_floats_attr(ctx, node, "scale", &p->scale);
}

static om_status infer_scaler(om_ctx *ctx, const om_op_call *call) {
  const om_scaler_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  OM_TRY(check_per_feature(ctx, x, "offset", p->offset.count, true));
  OM_TRY(check_per_feature(ctx, x, "scale", p->scale.count, true));
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, x->rank, x->dims);
}

static double feature_value(const om_ml_floats *list, size_t feature, double fallback) {
  if (list->count == 0) return fallback;
  return (double)list->values[list->count == 1 ? 0 : feature];
}

static om_status run_scaler(om_ctx *ctx, const om_op_call *call) {
  const om_scaler_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_real real = om_ml_real(x);
  const size_t features = x->rank > 0 ? (size_t)x->dims[x->rank - 1] : 1;
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const double centred =
        om_real_round(real, om_ml_load(x, i) - feature_value(&p->offset, i % features, 0.0));
    om_real_store(call->outputs[0], i, centred * feature_value(&p->scale, i % features, 1.0));
  }
  return OM_OK;
}

/* ---- Normalizer ---- */

typedef struct om_normalizer_params {
  uint32_t norm;
} om_normalizer_params;

enum { NORM_MAX, NORM_L1, NORM_L2 };

static om_status resolve_normalizer(om_ctx *ctx, const om_node *node, void *params) {
  static const char *const names[] = {"MAX", "L1", "L2"};
  om_normalizer_params *p = params;
  return om_ml_choice_attr(ctx, node, "norm", names, OM_COUNT_OF(names), NORM_MAX, &p->norm);
}

static om_status infer_normalizer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  size_t rows, features;
  OM_TRY(om_ml_rows(ctx, x, &rows, &features));
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, x->rank, x->dims);
}

static double row_norm(uint32_t norm, const om_tensor *x, size_t first, size_t count) {
  const om_real real = om_ml_real(x);
  double result = norm == NORM_MAX && count > 0 ? om_ml_load(x, first) : 0.0;
  for (size_t i = 0; i < count; ++i) {
    const double value = om_ml_load(x, first + i);
    if (norm == NORM_MAX && (value > result || value != value)) result = value;
    if (norm == NORM_L1) result = om_real_round(real, result + fabs(value));
    if (norm == NORM_L2) result = om_real_round(real, result + om_real_round(real, value * value));
  }
  return norm == NORM_L2 ? om_real_sqrt(real, result) : result;
}

static om_status run_normalizer(om_ctx *ctx, const om_op_call *call) {
  const om_normalizer_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  size_t rows, features;
  OM_TRY(om_ml_rows(ctx, x, &rows, &features));
  for (size_t row = 0; row < rows; ++row) {
    OM_TRY(om_check_cancelled(ctx));
    const double norm = row_norm(p->norm, x, row * features, features);
    for (size_t i = row * features; i < (row + 1) * features; ++i) {
      om_real_store(call->outputs[0], i, norm == 0.0 ? om_ml_load(x, i) : om_ml_load(x, i) / norm);
    }
  }
  return OM_OK;
}

/* ---- Imputer ---- */

typedef struct om_imputer_params {
  om_ml_floats floats;
  om_rule_list ints;
  float replaced_float;
  int64_t replaced_int;
} om_imputer_params;

static om_status resolve_imputer(om_ctx *ctx, const om_node *node, void *params) {
  om_imputer_params *p = params;
  OM_TRY(om_ml_floats_attr(ctx, node, "imputed_value_floats", &p->floats));
  OM_TRY(om_rule_list_attr(ctx, node, "imputed_value_int64s", &p->ints));
  OM_TRY(om_node_attr_float(ctx, node, "replaced_value_float", 0.0f, &p->replaced_float));
  return om_node_attr_int(ctx, node, "replaced_value_int64", 0, &p->replaced_int);
}

static om_status infer_imputer(om_ctx *ctx, const om_op_call *call) {
  const om_imputer_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const bool is_float = (OM_DT(x->dtype) & OM_DT_FLOAT) != 0;
  const char *name = is_float ? "imputed_value_floats" : "imputed_value_int64s";
  OM_TRY(check_per_feature(ctx, x, name, is_float ? p->floats.count : p->ints.count, false));
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, x->dims);
}

static bool is_replaced(const om_imputer_params *p, const om_tensor *x, size_t i) {
  if (!(OM_DT(x->dtype) & OM_DT_FLOAT)) return om_rule_int(x, i) == p->replaced_int;
  const double value = om_real_load(x, i);
  const double wanted = (double)p->replaced_float;
  return wanted != wanted ? value != value : value == wanted;
}

static void impute(const om_imputer_params *p, om_tensor *y, size_t i, size_t feature) {
  if (OM_DT(y->dtype) & OM_DT_FLOAT) {
    om_real_store(y, i, (double)p->floats.values[p->floats.count == 1 ? 0 : feature]);
    return;
  }
  const int64_t value = p->ints.values[p->ints.count == 1 ? 0 : feature];
  const int32_t narrow = (int32_t)value;
  const bool is_wide = y->dtype == OM_DTYPE_I64;
  memcpy((char *)y->data + i * om_rule_elem_bytes(y->dtype),
         is_wide ? (const void *)&value : &narrow,
         om_rule_elem_bytes(y->dtype));
}

static om_status run_imputer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_tensor *y = call->outputs[0];
  const size_t bytes = om_rule_elem_bytes(x->dtype);
  const size_t features = x->rank > 0 ? (size_t)x->dims[x->rank - 1] : 1;
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    memcpy((char *)y->data + i * bytes, (const char *)x->data + i * bytes, bytes);
    if (is_replaced(call->params, x, i)) impute(call->params, y, i, i % features);
  }
  return OM_OK;
}

/* ---- FeatureVectorizer ---- */

typedef struct om_vectorizer_params {
  om_rule_list widths; /* of each input's rows in the result: cut, or filled up with 0 */
} om_vectorizer_params;

static om_status resolve_vectorizer(om_ctx *ctx, const om_node *node, void *params) {
  om_vectorizer_params *p = params;
  OM_TRY(om_rule_list_attr(ctx, node, "inputdimensions", &p->widths));
  bool fits = !p->widths.is_given || p->widths.count == node->input_count;
  for (size_t i = 0; i < p->widths.count; ++i) fits = fits && p->widths.values[i] >= 0;
  if (fits) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The attribute inputdimensions does not say how wide each of %" PRIu32
                 " inputs is.",
                 node->input_count);
}

static size_t width_of(const om_op_call *call, uint32_t input) {
  const om_vectorizer_params *p = call->params;
  const om_tensor *x = call->inputs[input];
  if (p->widths.is_given) return (size_t)p->widths.values[input];
  return x->rank == 2 ? (size_t)x->dims[1] : 1;
}

static om_status infer_vectorizer(om_ctx *ctx, const om_op_call *call) {
  int64_t dims[2] = {call->inputs[0]->rank > 0 ? call->inputs[0]->dims[0] : 0, 0};
  size_t width = 0;
  for (uint32_t i = 0; i < call->input_count; ++i) {
    const om_tensor *x = call->inputs[i];
    const bool fits =
        x && (x->rank == 1 || x->rank == 2) && x->dims[0] == dims[0] && OM_DT(x->dtype) & OM_DT_ML;
    if (!fits || !om_size_add(width, width_of(call, i), &width) || width > INT64_MAX) {
      return OM_FAIL(
          ctx, OM_E_INVALID_INPUT, "Input %" PRIu32 " has not the rows of the first.", i);
    }
  }
  dims[1] = (int64_t)width;
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, 2, dims);
}

static om_status run_vectorizer(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *y = call->outputs[0];
  size_t place = 0;
  for (size_t row = 0; row < (size_t)y->dims[0]; ++row) {
    OM_TRY(om_check_cancelled(ctx));
    for (uint32_t k = 0; k < call->input_count; ++k) {
      const om_tensor *x = call->inputs[k];
      const size_t there = x->rank == 2 ? (size_t)x->dims[1] : 1;
      const size_t width = width_of(call, k);
      for (size_t i = 0; i < width; ++i) {
        om_real_store(y, place++, i < there ? om_real_load(x, row * there + i) : 0.0);
      }
    }
  }
  return OM_OK;
}

/* ---- OneHotEncoder ---- */

typedef struct om_encoder_params {
  om_rule_list ints;
  om_ml_strings strings;
  int64_t zeros;
} om_encoder_params;

static om_status resolve_encoder(om_ctx *ctx, const om_node *node, void *params) {
  om_encoder_params *p = params;
  OM_TRY(om_rule_list_attr(ctx, node, "cats_int64s", &p->ints));
  OM_TRY(om_ml_strings_attr(ctx, node, "cats_strings", &p->strings));
  return om_node_attr_int(ctx, node, "zeros", 1, &p->zeros);
}

static om_status infer_encoder(om_ctx *ctx, const om_op_call *call) {
  const om_encoder_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const size_t count = x->dtype == OM_DTYPE_STRING ? p->strings.count : p->ints.count;
  int64_t dims[OM_MAX_RANK + 1] = {0};
  if (count == 0) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "There are no categories for an input of %s.",
                   om_dtype_name(x->dtype));
  }
  for (uint32_t d = 0; d < x->rank; ++d) dims[d] = x->dims[d];
  dims[x->rank] = (int64_t)count;
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, x->rank + 1, dims);
}

/* The last of equal categories; SIZE_MAX for none. */
static size_t find_category(const om_encoder_params *p, const om_tensor *x, size_t index) {
  if (x->dtype == OM_DTYPE_STRING) {
    const om_string text = ((const om_string *)x->data)[index];
    for (size_t i = p->strings.count; i-- > 0;) {
      if (om_string_same(p->strings.values[i], text)) return i;
    }
    return SIZE_MAX;
  }
  int64_t value = 0;
  om_cast_elems(x->dtype, om_cast_place(x->dtype, x->data, index), OM_DTYPE_I64, &value, 1, true);
  for (size_t i = p->ints.count; i-- > 0;) {
    if (p->ints.values[i] == value) return i;
  }
  return SIZE_MAX;
}

static om_status run_encoder(om_ctx *ctx, const om_op_call *call) {
  const om_encoder_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const size_t count = (size_t)call->outputs[0]->dims[x->rank];
  float *y = call->outputs[0]->data;
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_cancelled(ctx));
    const size_t category = find_category(p, x, i);
    if (category == SIZE_MAX && p->zeros == 0) {
      return OM_FAIL(ctx, OM_E_INVALID_INPUT, "Element %zu is none of the categories.", i);
    }
    for (size_t k = 0; k < count; ++k) y[i * count + k] = k == category ? 1.0f : 0.0f;
  }
  return OM_OK;
}

#define OM_ML_ENTRY(name, struct_type, kin)                                                      \
  .domain = OM_ML_DOMAIN, .type = (name), .first_opset = 1, .params_bytes = sizeof(struct_type), \
  .resolve = resolve_##kin, .infer = infer_##kin, .run = run_##kin

const om_op om_ops_ml_feature[] = {
    {OM_ML_ENTRY("Scaler", om_scaler_params, scaler),
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ML},
    {OM_ML_ENTRY("Normalizer", om_normalizer_params, normalizer),
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ML},
    {OM_ML_ENTRY("Imputer", om_imputer_params, imputer),
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ML},
    {OM_ML_ENTRY("FeatureVectorizer", om_vectorizer_params, vectorizer),
     OM_RULE_COUNTS(1, UINT8_MAX, 1, 1),
     .dtypes = OM_DT_ML},
    {OM_ML_ENTRY("OneHotEncoder", om_encoder_params, encoder),
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ML | OM_DT(OM_DTYPE_STRING)},
    {.type = NULL},
};
