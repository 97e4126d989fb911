/* LinearRegressor and LinearClassifier of ai.onnx.ml (docs/exact.md, "Machine learning"). */
#include "ops/op_ml.h"

typedef struct om_linear_params {
  om_ml_floats coefficients, intercepts;
  int64_t targets; /* of the regressor */
  om_ml_transform transform;
  om_ml_labels labels; /* of the classifier */
  size_t score_count;  /* rows of coefficients */
} om_linear_params;

static om_status resolve_common(om_ctx *ctx, const om_node *node, om_linear_params *p) {
  OM_TRY(om_ml_floats_attr(ctx, node, "coefficients", &p->coefficients));
  OM_TRY(om_ml_floats_attr(ctx, node, "intercepts", &p->intercepts));
  return om_ml_transform_attr(ctx, node, &p->transform);
}

static om_status check_counts(om_ctx *ctx, const om_linear_params *p) {
  const size_t intercepts = p->intercepts.count;
  if (p->score_count > 0 && p->coefficients.count % p->score_count == 0 &&
      (intercepts == 0 || intercepts == p->score_count)) {
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "%zu coefficients and %zu intercepts do not give %zu scores.",
                 p->coefficients.count,
                 intercepts,
                 p->score_count);
}

static om_status resolve_regressor(om_ctx *ctx, const om_node *node, void *params) {
  om_linear_params *p = params;
  OM_TRY(resolve_common(ctx, node, p));
  OM_TRY(om_node_attr_int(ctx, node, "targets", 1, &p->targets));
  p->score_count = p->targets > 0 ? (size_t)p->targets : 0;
  return check_counts(ctx, p);
}

/* As many scores as labels, or as intercepts: two labels may have one score. */
static om_status resolve_classifier(om_ctx *ctx, const om_node *node, void *params) {
  om_linear_params *p = params;
  OM_TRY(resolve_common(ctx, node, p));
  OM_TRY(om_ml_labels_attr(ctx, node, "classlabels_ints", &p->labels));
  const size_t labels = om_ml_label_count(&p->labels);
  p->score_count = labels == 2 && p->intercepts.count == 1 ? 1 : labels;
  return check_counts(ctx, p);
}

static om_status find_rows(om_ctx *ctx, const om_op_call *call, size_t *rows) {
  const om_linear_params *p = call->params;
  size_t features;
  OM_TRY(om_ml_rows(ctx, call->inputs[0], rows, &features));
  if (features == p->coefficients.count / p->score_count) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "A row has %zu features; there are coefficients for %zu.",
                 features,
                 p->coefficients.count / p->score_count);
}

static om_status infer_regressor(om_ctx *ctx, const om_op_call *call) {
  const om_linear_params *p = call->params;
  size_t rows;
  OM_TRY(find_rows(ctx, call, &rows));
  const int64_t dims[2] = {(int64_t)rows, p->targets};
  return om_rule_set(ctx, call, 0, OM_DTYPE_F32, 2, dims);
}

static om_status infer_classifier(om_ctx *ctx, const om_op_call *call) {
  const om_linear_params *p = call->params;
  size_t rows;
  OM_TRY(find_rows(ctx, call, &rows));
  const int64_t dims[2] = {(int64_t)rows, (int64_t)om_ml_label_count(&p->labels)};
  OM_TRY(om_rule_set(ctx, call, 0, om_ml_label_dtype(&p->labels), 1, dims));
  return om_rule_set(ctx, call, 1, OM_DTYPE_F32, 2, dims);
}

static size_t scratch_bytes(const om_op_call *call) {
  const om_linear_params *p = call->params;
  return (p->score_count + 1) * sizeof(double);
}

static void compute_scores(const om_op_call *call, size_t row, double *scores) {
  const om_linear_params *p = call->params;
  const size_t features = p->coefficients.count / p->score_count;
  const om_real real = om_ml_real(call->inputs[0]);
  for (size_t i = 0; i < p->score_count; ++i) {
    const float *weights = p->coefficients.values ? p->coefficients.values + i * features : NULL;
    scores[i] = om_ml_dot(call->inputs[0], row, features, weights);
    if (p->intercepts.count > 0) {
      scores[i] = om_real_round(real, scores[i] + (double)p->intercepts.values[i]);
    }
  }
}

static void store_scores(const om_op_call *call, uint32_t output, size_t row, size_t count) {
  const om_linear_params *p = call->params;
  double *scores = call->scratch;
  om_tensor *y = om_rule_output(call, output);
  om_ml_transform_scores(p->transform, om_ml_real(call->inputs[0]), scores, count);
  for (size_t i = 0; y && i < count; ++i) om_real_store(y, row * count + i, scores[i]);
}

static om_status run_regressor(om_ctx *ctx, const om_op_call *call) {
  const om_linear_params *p = call->params;
  size_t rows;
  OM_TRY(find_rows(ctx, call, &rows));
  for (size_t row = 0; row < rows; ++row) {
    OM_TRY(om_check_cancelled(ctx));
    compute_scores(call, row, call->scratch);
    store_scores(call, 0, row, p->score_count);
  }
  return OM_OK;
}

/* One score speaks for the second of two labels, or for the only one, where it is above 0; of
 * several the first of the largest wins. */
static size_t find_label(const om_linear_params *p, const double *scores) {
  size_t best = 0;
  if (p->score_count == 1 && scores[0] > 0.0) return om_ml_label_count(&p->labels) - 1;
  if (p->score_count == 1) return om_ml_label_count(&p->labels) == 2 ? 0 : SIZE_MAX;
  for (size_t i = 1; i < p->score_count; ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

static om_status run_classifier(om_ctx *ctx, const om_op_call *call) {
  const om_linear_params *p = call->params;
  const size_t labels = om_ml_label_count(&p->labels);
  double *scores = call->scratch;
  size_t rows;
  OM_TRY(find_rows(ctx, call, &rows));
  for (size_t row = 0; row < rows; ++row) {
    OM_TRY(om_check_cancelled(ctx));
    compute_scores(call, row, scores);
    if (call->outputs[0]) {
      om_ml_label_store(&p->labels, call->outputs[0], row, find_label(p, scores));
    }
    if (p->score_count < labels) {
      om_ml_second_score(p->transform, om_ml_real(call->inputs[0]), false, scores);
    }
    store_scores(call, 1, row, labels);
  }
  return OM_OK;
}

const om_op om_ops_ml_linear[] = {
    {.domain = OM_ML_DOMAIN,
     .type = "LinearRegressor",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 1),
     .dtypes = OM_DT_ML,
     .params_bytes = sizeof(om_linear_params),
     .resolve = resolve_regressor,
     .infer = infer_regressor,
     .scratch_bytes = scratch_bytes,
     .run = run_regressor},
    {.domain = OM_ML_DOMAIN,
     .type = "LinearClassifier",
     .first_opset = 1,
     OM_RULE_COUNTS(1, 1, 1, 2),
     .dtypes = OM_DT_ML,
     .params_bytes = sizeof(om_linear_params),
     .resolve = resolve_classifier,
     .infer = infer_classifier,
     .scratch_bytes = scratch_bytes,
     .run = run_classifier},
    {.type = NULL},
};
