/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss (docs/exact.md, "Losses").
 *
 * An input [N, C, ...] has a score for each class at each place; a label names the class. Scores
 * are widened, losses of the places wait in scratch as they are reduced.
 *
 *     scratch: [scores] [losses] [weights of the places], float32 or float64
 */
#include <inttypes.h>

#include "cpu/exact/om_exact_sum.h"
#include "cpu/exact/om_real.h"
#include "cpu/exact/om_softmax.h"
#include "ops/om_rule.h"

typedef enum om_loss_reduction { OM_LOSS_NONE, OM_LOSS_SUM, OM_LOSS_MEAN } om_loss_reduction;

typedef struct om_loss_params {
  om_loss_reduction reduction;
  bool takes_softmax;
  bool ignores;
  int64_t ignored;
} om_loss_params;

static om_status resolve(om_ctx *ctx, const om_node *node, void *params) {
  om_loss_params *p = params;
  om_string reduction;
  p->takes_softmax = strcmp(node->type, "SoftmaxCrossEntropyLoss") == 0;
  p->ignores = om_node_attr(node, "ignore_index") != NULL;
  OM_TRY(om_node_attr_int(ctx, node, "ignore_index", 0, &p->ignored));
  OM_TRY(om_node_attr_text(ctx, node, "reduction", "mean", &reduction));
  p->reduction = om_string_is(reduction, "sum")    ? OM_LOSS_SUM
                 : om_string_is(reduction, "none") ? OM_LOSS_NONE
                                                   : OM_LOSS_MEAN;
  if (p->reduction != OM_LOSS_MEAN || om_string_is(reduction, "mean")) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "The attribute reduction is '%.*s', but it must be 'none', 'sum' or 'mean'.",
                 (int)(reduction.bytes < 40 ? reduction.bytes : 40),
                 reduction.data);
}

static om_status infer(om_ctx *ctx, const om_op_call *call) {
  const om_loss_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *labels = call->inputs[1];
  const om_tensor *weights = om_rule_input(call, 2);
  int64_t dims[OM_MAX_RANK] = {0};
  OM_TRY(om_rule_check_int(ctx, labels, "labels"));
  bool fits = x->rank >= 2 && labels->rank + 1 == x->rank;
  for (uint32_t d = 0; fits && d < labels->rank; ++d) {
    dims[d] = x->dims[d == 0 ? 0 : d + 1];
    fits = labels->dims[d] == dims[d];
  }
  if (fits && weights) {
    fits = weights->rank == 1 && weights->dims[0] == x->dims[1] && weights->dtype == x->dtype;
  }
  if (!fits) {
    char a[OM_SHAPE_TEXT];
    char b[OM_SHAPE_TEXT];
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Scores of shape %s do not go with labels of shape %s, or with the weights.",
                   om_shape_text(a, sizeof a, x->rank, x->dims),
                   om_shape_text(b, sizeof b, labels->rank, labels->dims));
  }
  OM_TRY(
      om_rule_set(ctx, call, 0, x->dtype, p->reduction == OM_LOSS_NONE ? labels->rank : 0, dims));
  return call->output_count > 1 ? om_rule_set(ctx, call, 1, x->dtype, x->rank, x->dims) : OM_OK;
}

static size_t elem_bytes(const om_op_call *call) {
  return call->inputs[0]->dtype == OM_DTYPE_F64 ? sizeof(double) : sizeof(float);
}

static size_t scratch_bytes(const om_op_call *call) {
  const size_t scores = om_size_align(om_tensor_elems(call->inputs[0]), 16);
  const size_t places = om_size_align(om_tensor_elems(call->inputs[1]), 16);
  return (scores + 2 * places) * elem_bytes(call);
}

/* The scores in the computing type, with SoftmaxCrossEntropyLoss the logarithm of their Softmax.
 * Not inlined, as sum_of: both hold much on the stack. */
__attribute__((noinline)) static om_tensor load_scores(om_ctx *ctx, const om_op_call *call) {
  const om_loss_params *p = call->params;
  om_tensor wide = *call->inputs[0];
  wide.dtype = wide.dtype == OM_DTYPE_F64 ? OM_DTYPE_F64 : OM_DTYPE_F32;
  wide.data = call->scratch;
  om_cast_run(ctx, call->inputs[0], &wide, true);
  if (p->takes_softmax) {
    om_rows rows;
    om_rows_init(&rows, &wide, 1u << 1);
    om_softmax_run(ctx, &rows, OM_LOG_SOFTMAX, wide.data, wide.data);
  }
  return wide;
}

/* Losses and weights of all places. */
static om_status measure(om_ctx *ctx,
                         const om_op_call *call,
                         const om_tensor *scores,
                         const om_tensor *losses,
                         const om_tensor *factors) {
  const om_loss_params *p = call->params;
  const om_tensor *labels = call->inputs[1];
  const om_tensor *weights = om_rule_input(call, 2);
  const om_real real = om_real_of(scores->dtype);
  const int64_t classes = scores->dims[1];
  const size_t inner = om_rule_product(scores->dims, 2, scores->rank);
  for (size_t i = 0; i < om_tensor_elems(labels); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const int64_t label = om_rule_int(labels, i);
    const bool is_ignored = p->ignores && label == p->ignored;
    double loss = 0.0;
    double factor = 0.0;
    if (!is_ignored) {
      if (label < 0 || label >= classes) {
        return OM_FAIL(ctx,
                       OM_E_INVALID_INPUT,
                       "Element %zu of the labels is %" PRId64 ", but there are %" PRId64
                       " classes.",
                       i,
                       label,
                       classes);
      }
      const size_t at = (i / inner * (size_t)classes + (size_t)label) * inner + i % inner;
      factor = weights ? om_real_load(weights, (size_t)label) : 1.0;
      loss = om_real_round(real, -om_real_load(scores, at) * factor);
    }
    om_real_store(losses, i, loss);
    om_real_store(factors, i, factor);
  }
  return OM_OK;
}

__attribute__((noinline)) static double sum_of(const om_tensor *values, size_t count) {
  double sum = 0.0;
  if (values->dtype == OM_DTYPE_F32) return (double)om_row_sum(values->data, count, 0.0f);
  for (size_t i = 0; i < count; ++i) sum += ((const double *)values->data)[i];
  return sum;
}

static om_status run(om_ctx *ctx, const om_op_call *call) {
  const om_loss_params *p = call->params;
  const om_tensor *labels = call->inputs[1];
  const size_t places = om_tensor_elems(labels);
  const size_t bytes = elem_bytes(call);
  const om_tensor scores = load_scores(ctx, call);
  om_tensor losses = *labels;
  losses.dtype = scores.dtype;
  losses.data = (char *)call->scratch + om_size_align(om_tensor_elems(&scores), 16) * bytes;
  om_tensor factors = losses;
  factors.data = (char *)losses.data + om_size_align(places, 16) * bytes;
  OM_TRY(measure(ctx, call, &scores, &losses, &factors));
  if (call->output_count > 1 && call->outputs[1]) {
    om_cast_run(ctx, &scores, call->outputs[1], true);
  }
  if (!call->outputs[0]) return OM_OK;
  if (p->reduction == OM_LOSS_NONE) {
    om_cast_run(ctx, &losses, call->outputs[0], true);
    return OM_OK;
  }
  double loss = sum_of(&losses, places);
  if (p->reduction == OM_LOSS_MEAN) {
    loss = om_real_round(om_real_of(scores.dtype), loss / sum_of(&factors, places));
  }
  om_real_store(call->outputs[0], 0, loss);
  return OM_OK;
}

#define OM_LOSS_ENTRY(name, most_outputs)  \
  {.domain = "",                           \
   .type = name,                           \
   .first_opset = 12,                      \
   OM_RULE_COUNTS(2, 3, 1, most_outputs),  \
   .dtypes = OM_DT_FLOAT,                  \
   .params_bytes = sizeof(om_loss_params), \
   .resolve = resolve,                     \
   .infer = infer,                         \
   .scratch_bytes = scratch_bytes,         \
   .run = run}

const om_op om_ops_loss[] = {
    OM_LOSS_ENTRY("NegativeLogLikelihoodLoss", 1),
    OM_LOSS_ENTRY("SoftmaxCrossEntropyLoss", 2),
    {.type = NULL},
};
