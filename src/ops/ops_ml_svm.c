/* SVMRegressor and SVMClassifier of ai.onnx.ml (docs/exact.md, "Machine learning").
 *
 * With support vectors a row is compared with each of them by a kernel, and coefficients weigh the
 * results; without any it is a linear model. A classifier decides between each two classes:
 *
 *     classes i < j:  rho + sum over the vectors of i of coefficients[j - 1] * kernel
 *                         + sum over the vectors of j of coefficients[i] * kernel
 *
 * and above 0 the vote is for i.
 */
#include <inttypes.h>

#include "ops/op_ml.h"

enum { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_SIGMOID };

typedef struct om_svm_params {
  om_ml_floats coefficients, rho, vectors;
  size_t vector_count;
  uint32_t kernel;
  double gamma, coef0, degree;
  om_ml_transform transform;
  int64_t is_one_class;   /* of the regressor */
  om_ml_labels labels;    /* of the classifier, with all below */
  om_rule_list per_class; /* how many vectors each class has */
  om_ml_floats prob_a, prob_b;
  size_t class_count, pair_count;
} om_svm_params;

static om_status resolve_common(om_ctx *ctx, const om_node *node, om_svm_params *p) {
  static const char *const kernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  om_ml_floats numbers;
  OM_TRY(om_ml_floats_attr(ctx, node, "coefficients", &p->coefficients));
  OM_TRY(om_ml_floats_attr(ctx, node, "rho", &p->rho));
  OM_TRY(om_ml_floats_attr(ctx, node, "support_vectors", &p->vectors));
  OM_TRY(om_ml_floats_attr(ctx, node, "kernel_params", &numbers));
  OM_TRY(om_ml_choice_attr(
      ctx, node, "kernel_type", kernels, OM_COUNT_OF(kernels), KERNEL_LINEAR, &p->kernel));
  OM_TRY(om_ml_transform_attr(ctx, node, &p->transform));
  if (p->rho.count == 0 || (numbers.count != 0 && numbers.count < 3)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_MODEL,
                   "There are %zu values of rho and %zu of kernel_params; at least 1 and 3 are "
                   "expected.",
                   p->rho.count,
                   numbers.count);
  }
  if (numbers.count == 0) return OM_OK;
  p->gamma = (double)numbers.values[0];
  p->coef0 = (double)numbers.values[1];
  p->degree = (double)numbers.values[2];
  return OM_OK;
}

static om_status mismatch(om_ctx *ctx, const om_svm_params *p) {
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "%zu coefficients, %zu values of rho and %zu of support vectors do not go "
                 "together with %zu vectors of %zu classes.",
                 p->coefficients.count,
                 p->rho.count,
                 p->vectors.count,
                 p->vector_count,
                 p->class_count);
}

static om_status resolve_regressor(om_ctx *ctx, const om_node *node, void *params) {
  om_svm_params *p = params;
  int64_t count = 0;
  OM_TRY(resolve_common(ctx, node, p));
  OM_TRY(om_node_attr_int(ctx, node, "n_supports", 0, &count));
  OM_TRY(om_node_attr_int(ctx, node, "one_class", 0, &p->is_one_class));
  p->vector_count = count > 0 ? (size_t)count : 0;
  if (p->vector_count == 0) return OM_OK;
  const bool fits =
      p->coefficients.count == p->vector_count && p->vectors.count % p->vector_count == 0;
  return fits ? OM_OK : mismatch(ctx, p);
}

/* Sets vector_count; false where the counts are negative, or more than there are vectors. */
static bool count_vectors(om_svm_params *p) {
  for (size_t i = 0; i < p->per_class.count; ++i) {
    const int64_t count = p->per_class.values[i];
    if (count < 0 || (uint64_t)count > p->vectors.count - p->vector_count) return false;
    p->vector_count += (size_t)count;
  }
  return p->vector_count == 0 || p->vectors.count % p->vector_count == 0;
}

static om_status resolve_classifier(om_ctx *ctx, const om_node *node, void *params) {
  om_svm_params *p = params;
  size_t twice = 0, wanted = 0;
  OM_TRY(resolve_common(ctx, node, p));
  OM_TRY(om_ml_labels_attr(ctx, node, "classlabels_ints", &p->labels));
  OM_TRY(om_rule_list_attr(ctx, node, "vectors_per_class", &p->per_class));
  OM_TRY(om_ml_floats_attr(ctx, node, "prob_a", &p->prob_a));
  OM_TRY(om_ml_floats_attr(ctx, node, "prob_b", &p->prob_b));
  p->class_count = om_ml_label_count(&p->labels);
  if (!count_vectors(p)) return mismatch(ctx, p);
  if (p->vector_count == 0) {
    return p->coefficients.count % p->class_count == 0 ? OM_OK : mismatch(ctx, p);
  }
  if (!om_size_mul(p->class_count, p->class_count - 1, &twice) ||
      !om_size_mul(p->vector_count, p->class_count - 1, &wanted)) {
    return mismatch(ctx, p);
  }
  p->pair_count = twice / 2;
  const size_t probs = p->prob_a.count;
  const bool fits = p->class_count >= 2 && p->per_class.count == p->class_count &&
                    p->coefficients.count == wanted && p->rho.count >= p->pair_count &&
                    (probs == 0 || probs >= p->pair_count) && p->prob_b.count == probs;
  return fits ? OM_OK : mismatch(ctx, p);
}

/* ---- Shapes ---- */

/* The features that the model was made for. */
static size_t feature_count(const om_svm_params *p) {
  if (p->vector_count > 0) return p->vectors.count / p->vector_count;
  return p->coefficients.count / (p->class_count > 0 ? p->class_count : 1);
}

static om_status find_rows(om_ctx *ctx, const om_op_call *call, size_t *rows) {
  const om_svm_params *p = call->params;
  size_t features;
  OM_TRY(om_ml_rows(ctx, call->inputs[0], rows, &features));
  if (features == feature_count(p)) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "A row has %zu features; the model is for %zu.",
                 features,
                 feature_count(p));
}

static om_status infer_regressor(om_ctx *ctx, const om_op_call *call) {
  size_t rows;
  OM_TRY(find_rows(ctx, call, &rows));
  const int64_t dims[2] = {(int64_t)rows, 1};
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, 2, dims);
}

/* Scores before a second one is added. */
static size_t score_count(const om_svm_params *p) {
  return p->vector_count == 0 || p->prob_a.count > 0 ? p->class_count : p->pair_count;
}

static size_t column_count(const om_svm_params *p) {
  const size_t count = score_count(p);
  return count == 1 && p->class_count == 2 ? 2 : count;
}

static om_status infer_classifier(om_ctx *ctx, const om_op_call *call) {
  const om_svm_params *p = call->params;
  size_t rows;
  OM_TRY(find_rows(ctx, call, &rows));
  const int64_t dims[2] = {(int64_t)rows, (int64_t)column_count(p)};
  OM_TRY(om_rule_set(ctx, call, 0, om_ml_label_dtype(&p->labels), 1, dims));
  return om_rule_set(ctx, call, 1, OM_DTYPE_F32, 2, dims);
}

/* ---- Kernels ---- */

static double squared_distance(const om_tensor *x, size_t row, size_t count, const float *vector) {
  const om_real r = om_ml_real(x);
  double sum = 0.0;
  for (size_t i = 0; i < count; ++i) {
    const double d = om_real_round(r, om_ml_load(x, row * count + i) - (double)vector[i]);
    sum = om_real_round(r, sum + om_real_round(r, d * d));
  }
  return sum;
}

static double kernel_of(const om_op_call *call, size_t row, size_t index) {
  const om_svm_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_real r = om_ml_real(x);
  const size_t count = feature_count(p);
  const float *vector = p->vectors.values + index * count;
  if (p->kernel == KERNEL_RBF) {
    return om_real_exp(r, om_real_round(r, -p->gamma * squared_distance(x, row, count, vector)));
  }
  const double dot = om_ml_dot(x, row, count, vector);
  if (p->kernel == KERNEL_LINEAR) return dot;
  const double scaled = om_real_round(r, om_real_round(r, p->gamma * dot) + p->coef0);
  return p->kernel == KERNEL_POLY ? om_real_pow(r, scaled, p->degree) : om_real_tanh(r, scaled);
}

/* ---- SVMRegressor ---- */

static om_status run_regressor(om_ctx *ctx, const om_op_call *call) {
  const om_svm_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_real r = om_ml_real(x);
  size_t rows;
  OM_TRY(find_rows(ctx, call, &rows));
  for (size_t row = 0; row < rows; ++row) {
    double score = 0.0;
    for (size_t i = 0; i < p->vector_count; ++i) {
      OM_TRY(om_check_cancelled(ctx));
      const double term = (double)p->coefficients.values[i] * kernel_of(call, row, i);
      score = om_real_round(r, score + om_real_round(r, term));
    }
    if (p->vector_count == 0) score = om_ml_dot(x, row, feature_count(p), p->coefficients.values);
    score = om_real_round(r, score + (double)p->rho.values[0]);
    if (p->is_one_class) {
      score = score > 0.0 ? 1.0 : -1.0;
    } else {
      om_ml_transform_scores(p->transform, r, &score, 1);
    }
    om_real_store(call->outputs[0], row, score);
  }
  return OM_OK;
}

/* ---- SVMClassifier ---- */

typedef struct svm_work { /* parts of the scratch memory */
  double *kernels;        /* vector_count */
  double *votes;          /* class_count */
  double *scores;         /* of pairs or of classes, and a second one */
  double *pairs, *q;      /* class_count squared each, for probabilities */
  double *qp;             /* class_count */
} svm_work;

/* The doubles that the parts take; `at` NULL: only counts. */
static size_t lay_out(const om_svm_params *p, double *at, svm_work *out) {
  const size_t square = p->prob_a.count > 0 ? p->class_count * p->class_count : 0;
  const size_t scores = (p->pair_count > p->class_count ? p->pair_count : p->class_count) + 1;
  const size_t sizes[] = {p->vector_count, p->class_count, scores, square, square, p->class_count};
  double **places[] = {&out->kernels, &out->votes, &out->scores, &out->pairs, &out->q, &out->qp};
  size_t count = 0;
  for (size_t i = 0; i < OM_COUNT_OF(sizes); ++i) {
    if (at) *places[i] = at + count;
    count += sizes[i];
  }
  return count;
}

static size_t classifier_scratch(const om_op_call *call) {
  svm_work work;
  return lay_out(call->params, NULL, &work) * sizeof(double);
}

static double weighted(om_real r, const float *weights, const double *kernels, size_t count) {
  double sum = 0.0;
  for (size_t i = 0; i < count; ++i) {
    sum = om_real_round(r, sum + om_real_round(r, (double)weights[i] * kernels[i]));
  }
  return sum;
}

/* The scores of all pairs, and the votes. */
static void decide_pairs(const om_svm_params *p, om_real r, svm_work *w) {
  size_t pair = 0, begin_i = 0;
  for (size_t i = 0; i < p->class_count; ++i) w->votes[i] = 0.0;
  for (size_t i = 0; i < p->class_count; ++i) {
    const size_t count_i = (size_t)p->per_class.values[i];
    size_t begin_j = begin_i + count_i;
    for (size_t j = i + 1; j < p->class_count; ++j, ++pair) {
      const size_t count_j = (size_t)p->per_class.values[j];
      const float *first = p->coefficients.values + (j - 1) * p->vector_count + begin_i;
      const float *second = p->coefficients.values + i * p->vector_count + begin_j;
      double s = (double)p->rho.values[pair];
      s = om_real_round(r, s + weighted(r, first, w->kernels + begin_i, count_i));
      s = om_real_round(r, s + weighted(r, second, w->kernels + begin_j, count_j));
      w->scores[pair] = s;
      w->votes[s > 0.0 ? i : j] += 1.0;
      begin_j += count_j;
    }
    begin_i += count_i;
  }
}

/* pairs[i][j] is the probability of i where it is i or j, from the pair's score by a sigmoid. */
static void pair_probabilities(const om_svm_params *p, om_real r, svm_work *w) {
  const double least = 1e-7;
  size_t pair = 0;
  for (size_t i = 0; i < p->class_count; ++i) {
    for (size_t j = i + 1; j < p->class_count; ++j, ++pair) {
      const double scaled = om_real_round(r, w->scores[pair] * (double)p->prob_a.values[pair]);
      double value = om_real_round(r, scaled + (double)p->prob_b.values[pair]);
      om_ml_transform_scores(OM_ML_LOGISTIC, r, &value, 1);
      value = 1.0 - value;
      if (!(value > least)) value = least;
      if (value > 1.0 - least) value = 1.0 - least;
      w->pairs[i * p->class_count + j] = value;
      w->pairs[j * p->class_count + i] = 1.0 - value;
    }
  }
}

/* q of the quadratic form that the probabilities make smallest. */
static void make_form(size_t k, svm_work *w) {
  for (size_t t = 0; t < k; ++t) {
    double own = 0.0;
    for (size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      own += w->pairs[j * k + t] * w->pairs[j * k + t];
      w->q[t * k + j] = -w->pairs[j * k + t] * w->pairs[t * k + j];
    }
    w->q[t * k + t] = own;
  }
}

/* One round over the classes; false: the probabilities are good enough. In float64. */
static bool improve(size_t k, svm_work *w) {
  double *prob = w->scores;
  double all = 0.0, worst = 0.0;
  for (size_t t = 0; t < k; ++t) {
    w->qp[t] = 0.0;
    for (size_t j = 0; j < k; ++j) w->qp[t] += w->q[t * k + j] * prob[j];
    all += prob[t] * w->qp[t];
  }
  for (size_t t = 0; t < k; ++t) worst = fmax(worst, fabs(w->qp[t] - all));
  if (!(worst >= 0.005 / (double)k)) return false;
  for (size_t t = 0; t < k; ++t) {
    const double own = w->q[t * k + t];
    const double diff = (all - w->qp[t]) / own;
    prob[t] += diff;
    all = (all + diff * (diff * own + 2.0 * w->qp[t])) / (1.0 + diff) / (1.0 + diff);
    for (size_t j = 0; j < k; ++j) {
      w->qp[j] = (w->qp[j] + diff * w->q[t * k + j]) / (1.0 + diff);
      prob[j] /= 1.0 + diff;
    }
  }
  return true;
}

/* The scores of pairs become the classes' probabilities (Wu, Lin and Weng's second method). */
static void class_probabilities(const om_svm_params *p, om_real r, svm_work *w) {
  const size_t k = p->class_count;
  pair_probabilities(p, r, w);
  make_form(k, w);
  for (size_t i = 0; i < k; ++i) w->scores[i] = 1.0 / (double)k;
  for (size_t round = 0; round < (k > 100 ? k : 100) && improve(k, w); ++round) {
  }
  for (size_t i = 0; i < k; ++i) w->scores[i] = om_real_round(r, w->scores[i]);
}

static void classify_linear(const om_op_call *call, size_t row, svm_work *w) {
  const om_svm_params *p = call->params;
  const size_t features = feature_count(p);
  const om_real r = om_ml_real(call->inputs[0]);
  for (size_t i = 0; i < p->class_count; ++i) {
    const float *weights = p->coefficients.values ? p->coefficients.values + i * features : NULL;
    const double dot = om_ml_dot(call->inputs[0], row, features, weights);
    w->scores[i] = om_real_round(r, dot + (double)p->rho.values[0]);
    w->votes[i] = w->scores[i];
  }
}

static om_status classify_by_vectors(om_ctx *ctx, const om_op_call *call, size_t row, svm_work *w) {
  const om_svm_params *p = call->params;
  const om_real r = om_ml_real(call->inputs[0]);
  for (size_t i = 0; i < p->vector_count; ++i) {
    OM_TRY(om_check_cancelled(ctx));
    w->kernels[i] = kernel_of(call, row, i);
  }
  decide_pairs(p, r, w);
  if (p->prob_a.count > 0) class_probabilities(p, r, w);
  return OM_OK;
}

static om_status run_classifier(om_ctx *ctx, const om_op_call *call) {
  const om_svm_params *p = call->params;
  const om_real r = om_ml_real(call->inputs[0]);
  const size_t columns = column_count(p);
  om_tensor *z = om_rule_output(call, 1);
  svm_work w;
  size_t rows;
  (void)lay_out(p, call->scratch, &w);
  OM_TRY(find_rows(ctx, call, &rows));
  for (size_t row = 0; row < rows; ++row) {
    OM_TRY(om_check_cancelled(ctx));
    if (p->vector_count > 0) OM_TRY(classify_by_vectors(ctx, call, row, &w));
    if (p->vector_count == 0) classify_linear(call, row, &w);
    size_t best = 0;
    for (size_t i = 1; i < p->class_count; ++i) {
      if (w.votes[i] > w.votes[best]) best = i;
    }
    if (call->outputs[0]) om_ml_label_store(&p->labels, call->outputs[0], row, best);
    if (columns > score_count(p)) om_ml_second_score(p->transform, r, true, w.scores);
    om_ml_transform_scores(p->transform, r, w.scores, columns);
    for (size_t i = 0; z && i < columns; ++i) om_real_store(z, row * columns + i, w.scores[i]);
  }
  return OM_OK;
}

const om_op om_ops_ml_svm[] = {
    {.domain = OM_ML_DOMAIN,
     .type = "SVMRegressor",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ML,
     .params_bytes = sizeof(om_svm_params),
     .resolve = resolve_regressor,
     .infer = infer_regressor,
     .run = run_regressor},
    {.domain = OM_ML_DOMAIN,
     .type = "SVMClassifier",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 2),
     .dtypes = OM_DT_ML,
     .params_bytes = sizeof(om_svm_params),
     .resolve = resolve_classifier,
     .infer = infer_classifier,
     .scratch_bytes = classifier_scratch,
     .run = run_classifier},
    {.type = NULL},
};
