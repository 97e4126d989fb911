/* What operators of ai.onnx.ml have in common: lists that are attributes, rows of features, class
 * labels, and what is done to scores at the end (docs/exact.md, "Machine learning"). */
#ifndef OP_ML_H
#define OP_ML_H

#include "cpu/exact/om_real.h"
#include "ops/om_rule.h"

#define OM_ML_DOMAIN "ai.onnx.ml"
#define OM_DT_ML \
  (OM_DT(OM_DTYPE_F32) | OM_DT(OM_DTYPE_F64) | OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64))

typedef struct om_ml_floats { /* borrowed from the node; count 0 where it is absent */
  const float *values;
  size_t count;
} om_ml_floats;

typedef struct om_ml_strings {
  const om_string *values;
  size_t count;
} om_ml_strings;

om_status om_ml_floats_attr(om_ctx *ctx, const om_node *node, const char *name, om_ml_floats *out);
om_status om_ml_strings_attr(om_ctx *ctx,
                             const om_node *node,
                             const char *name,
                             om_ml_strings *out);

/* *out = the index of the attribute's text in `names`, `fallback` where it is absent; any other
 * text is OM_E_INVALID_MODEL. */
om_status om_ml_choice_attr(om_ctx *ctx,
                            const om_node *node,
                            const char *name,
                            const char *const *names,
                            uint32_t name_count,
                            uint32_t fallback,
                            uint32_t *out);

/* Rows of features: [N, F], or [F] as one row. OM_E_INVALID_INPUT for other ranks. */
om_status om_ml_rows(om_ctx *ctx, const om_tensor *x, size_t *out_rows, size_t *out_features);

/* The arithmetic for values of this type: float64 for float64, else float32. */
static inline om_real om_ml_real(const om_tensor *x) {
  return om_real_of(x->dtype);
}

/* Element `index` as a value of that arithmetic: 64-bit integers are rounded to float32. */
static inline double om_ml_load(const om_tensor *x, size_t index) {
  return om_real_round(om_ml_real(x), om_real_load(x, index));
}

/* The sum over i < count of row[i] * weights[i], each operation rounded, in increasing i. */
double om_ml_dot(const om_tensor *x, size_t row, size_t count, const float *weights);

/* ---- Scores ---- */

typedef enum om_ml_transform {
  OM_ML_NONE,
  OM_ML_SOFTMAX,
  OM_ML_LOGISTIC,
  OM_ML_SOFTMAX_ZERO,
  OM_ML_PROBIT,
} om_ml_transform;

om_status om_ml_transform_attr(om_ctx *ctx, const om_node *node, om_ml_transform *out);

/* Changes scores[0..count) in place. */
void om_ml_transform_scores(om_ml_transform transform, om_real real, double *scores, size_t count);

/* Two labels, but one score s, which speaks for the second: scores[0..2) become 1 - s and s, or,
 * where `is_signed` or there is a transform to apply, -s and s. */
void om_ml_second_score(om_ml_transform transform, om_real real, bool is_signed, double *scores);

/* ---- Labels ---- */

typedef struct om_ml_labels { /* the one that is there */
  om_rule_list ints;
  om_ml_strings strings;
} om_ml_labels;

om_status om_ml_labels_attr(om_ctx *ctx,
                            const om_node *node,
                            const char *ints_name,
                            om_ml_labels *out);

static inline size_t om_ml_label_count(const om_ml_labels *labels) {
  return labels->strings.count > 0 ? labels->strings.count : labels->ints.count;
}

static inline om_dtype om_ml_label_dtype(const om_ml_labels *labels) {
  return labels->strings.count > 0 ? OM_DTYPE_STRING : OM_DTYPE_I64;
}

/* Writes label `index` as the row's; SIZE_MAX: the label of none, 0 or "". */
void om_ml_label_store(const om_ml_labels *labels, om_tensor *out, size_t row, size_t index);

#endif
