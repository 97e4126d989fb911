/* Lists, scores and labels: see op_ml.h. */
#include "ops/op_ml.h"

#include <inttypes.h>

om_status om_ml_floats_attr(om_ctx *ctx, const om_node *node, const char *name, om_ml_floats *out) {
  const om_attr *attr = om_node_attr(node, name);
  *out = (om_ml_floats){NULL, 0};
  if (!attr) return OM_OK;
  if (attr->kind != OM_ATTR_FLOATS) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute %s is no list of floats.", name);
  }
  *out = (om_ml_floats){attr->floats, attr->count};
  return OM_OK;
}

om_status om_ml_strings_attr(om_ctx *ctx,
                             const om_node *node,
                             const char *name,
                             om_ml_strings *out) {
  const om_attr *attr = om_node_attr(node, name);
  *out = (om_ml_strings){NULL, 0};
  if (!attr) return OM_OK;
  if (attr->kind != OM_ATTR_STRINGS) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute %s is no list of strings.", name);
  }
  *out = (om_ml_strings){attr->strings, attr->count};
  return OM_OK;
}

om_status om_ml_choice_attr(om_ctx *ctx,
                            const om_node *node,
                            const char *name,
                            const char *const *names,
                            uint32_t name_count,
                            uint32_t fallback,
                            uint32_t *out) {
  om_string text;
  OM_TRY(om_node_attr_text(ctx, node, name, names[fallback], &text));
  for (uint32_t i = 0; i < name_count; ++i) {
    if (!om_string_is(text, names[i])) continue;
    *out = i;
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The attribute %s is '%.*s', which is none of its values.",
                 name,
                 (int)(text.bytes < 60 ? text.bytes : 60),
                 text.data);
}

om_status om_ml_rows(om_ctx *ctx, const om_tensor *x, size_t *out_rows, size_t *out_features) {
  if (x->rank != 1 && x->rank != 2) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "The input has rank %" PRIu32 "; rows of features are expected.",
                   x->rank);
  }
  *out_rows = x->rank == 2 ? (size_t)x->dims[0] : 1;
  *out_features = (size_t)x->dims[x->rank - 1];
  return OM_OK;
}

double om_ml_dot(const om_tensor *x, size_t row, size_t count, const float *weights) {
  const om_real real = om_ml_real(x);
  double sum = 0.0;
  for (size_t i = 0; i < count; ++i) {
    const double product = om_ml_load(x, row * count + i) * (double)weights[i];
    sum = om_real_round(real, sum + om_real_round(real, product));
  }
  return sum;
}

/* ---- Scores ---- */

om_status om_ml_transform_attr(om_ctx *ctx, const om_node *node, om_ml_transform *out) {
  static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  uint32_t choice = OM_ML_NONE;
  OM_TRY(om_ml_choice_attr(
      ctx, node, "post_transform", names, OM_COUNT_OF(names), OM_ML_NONE, &choice));
  *out = (om_ml_transform)choice;
  return OM_OK;
}

/* With keeps_zero a score of 0 stays 0. */
static void softmax(om_real real, bool keeps_zero, double *scores, size_t count) {
  double largest = count > 0 ? scores[0] : 0.0;
  double total = 0.0;
  for (size_t i = 1; i < count; ++i) {
    if (scores[i] > largest) largest = scores[i];
  }
  for (size_t i = 0; i < count; ++i) {
    if (!keeps_zero || scores[i] != 0.0) {
      scores[i] = om_real_exp(real, om_real_round(real, scores[i] - largest));
    }
    total = om_real_round(real, total + scores[i]);
  }
  for (size_t i = 0; i < count && total != 0.0; ++i) {
    scores[i] = om_real_round(real, scores[i] / total);
  }
}

static double logistic(om_real real, double x) {
  const double e = om_real_exp(real, -x);
  return om_real_round(real, 1.0 / om_real_round(real, 1.0 + e));
}

/* sqrt(2) * erfinv(2x - 1) by Winitzki's formula with a = 0.147, as every engine has it: an error
 * of 0.002 at most. */
static double probit(om_real r, double x) {
  const double y = om_real_round(r, om_real_round(r, 2.0 * x) - 1.0);
  const double product = om_real_round(r, om_real_round(r, 1.0 - y) * om_real_round(r, 1.0 + y));
  const double ln = om_real_ln(r, product);
  const double half =
      om_real_round(r, om_real_round(r, 4.33074675) + om_real_round(r, 0.5 * ln)); /* 2 / (pi a) */
  const double rest = om_real_round(r, ln / om_real_round(r, 0.147));
  const double inner = om_real_round(r, om_real_round(r, half * half) - rest);
  const double root = om_real_sqrt(r, om_real_round(r, om_real_sqrt(r, inner) - half));
  return om_real_round(r, om_real_round(r, 1.41421356) * (y < 0.0 ? -root : root));
}

void om_ml_transform_scores(om_ml_transform transform, om_real real, double *scores, size_t count) {
  if (transform == OM_ML_SOFTMAX || transform == OM_ML_SOFTMAX_ZERO) {
    softmax(real, transform == OM_ML_SOFTMAX_ZERO, scores, count);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    if (transform == OM_ML_LOGISTIC) scores[i] = logistic(real, scores[i]);
    if (transform == OM_ML_PROBIT) scores[i] = probit(real, scores[i]);
  }
}

void om_ml_second_score(om_ml_transform transform, om_real real, bool is_signed, double *scores) {
  const double s = scores[0];
  const bool is_plain = transform == OM_ML_NONE || transform == OM_ML_PROBIT;
  scores[0] = is_plain && !is_signed ? om_real_round(real, 1.0 - s) : -s;
  scores[1] = s;
}

/* ---- Labels ---- */

om_status om_ml_labels_attr(om_ctx *ctx,
                            const om_node *node,
                            const char *ints_name,
                            om_ml_labels *out) {
  OM_TRY(om_rule_list_attr(ctx, node, ints_name, &out->ints));
  OM_TRY(om_ml_strings_attr(ctx, node, "classlabels_strings", &out->strings));
  if ((out->ints.count > 0) != (out->strings.count > 0)) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "There are %zu integer labels and %zu string labels; one kind is expected.",
                 out->ints.count,
                 out->strings.count);
}

void om_ml_label_store(const om_ml_labels *labels, om_tensor *out, size_t row, size_t index) {
  if (labels->strings.count > 0) {
    ((om_string *)out->data)[row] =
        index < labels->strings.count ? labels->strings.values[index] : (om_string){"", 0};
  } else {
    ((int64_t *)out->data)[row] = index < labels->ints.count ? labels->ints.values[index] : 0;
  }
}
