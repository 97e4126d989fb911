/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. */
#include <math.h>

#include "harness/om_test.h"

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const om_ref_tensor *labels = &inputs[1];
  const double *weights = input_count > 2 ? inputs[2].values : NULL;
  const bool takes_softmax = strcmp(node->type, "SoftmaxCrossEntropyLoss") == 0;
  const size_t classes = (size_t)x->dims[1];
  const size_t inner = labels->elems / (size_t)(x->dims[0] ? x->dims[0] : 1);
  double sum = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < labels->elems; ++i) {
    const double *scores = x->values + i / inner * classes * inner + i % inner;
    double exps = 0.0;
    for (size_t c = 0; c < classes; ++c) exps += exp(scores[c * inner]);
    for (size_t c = 0; c < classes && output_count > 1 && outputs[1].values; ++c) {
      outputs[1].values[i / inner * classes * inner + c * inner + i % inner] =
          scores[c * inner] - log(exps);
    }
    const int64_t label = (int64_t)labels->values[i];
    const bool is_ignored =
        om_node_attr(node, "ignore_index") && label == om_ref_int(node, "ignore_index", 0);
    const double weight = is_ignored ? 0.0 : weights ? weights[label] : 1.0;
    double score = is_ignored ? 0.0 : scores[(size_t)label * inner];
    if (takes_softmax && !is_ignored) score -= log(exps);
    if (om_ref_text_is(node, "reduction", "mean", "none")) outputs[0].values[i] = -score * weight;
    sum += -score * weight;
    total += weight;
  }
  if (om_ref_text_is(node, "reduction", "mean", "sum")) outputs[0].values[0] = sum;
  if (om_ref_text_is(node, "reduction", "mean", "mean")) outputs[0].values[0] = sum / total;
}

static const om_op_case cases[] = {
    {.name = "mean", .inputs = {"f32 3x5", "i64 3 = 0 4 2"}, .shapes = {"scalar"}},
    {.name = "sum", .inputs = {"f32 3x5", "i32 3 = 0 4 2"}, .attrs = "reduction=\"sum\""},
    {.name = "none",
     .inputs = {"f32 3x5", "i64 3 = 0 4 2"},
     .attrs = "reduction=\"none\"",
     .shapes = {"3"}},
    {.name = "weights", .inputs = {"f32 3x5", "i64 3 = 0 4 2", "f32 5 range 0.1 1"}},
    {.name = "places", .inputs = {"f32 2x3x5x4", "i64 2x5x4 = 0 2 1", "f32 3 range 0.1 1"}},
    {.name = "places_none",
     .inputs = {"f32 2x3x5x4", "i64 2x5x4 = 0 2 1"},
     .attrs = "reduction=\"none\""},
    {.name = "many", .inputs = {"f32 40x3x300", "i64 40x300 = 0 2 1 1"}, .scaled_error = 2e-6},
    {.name = "ignored",
     .inputs = {"f32 4x5", "i64 4 = 0 -1 2 -1", "f32 5 range 0.1 1"},
     .attrs = "ignore_index=-1"},
    {.name = "ignored_none",
     .inputs = {"f32 4x5", "i64 4 = 0 9 2 9"},
     .attrs = "ignore_index=9 reduction=\"none\""},
    {.name = "all_ignored",
     .inputs = {"f32 2x5", "i64 2 = 1 1"},
     .attrs = "ignore_index=1",
     .expected = {"nan"}},
    {.name = "opset_12", .opset = 12, .inputs = {"f32 3x5", "i64 3 = 0 4 2"}},
    {.name = "f64", .inputs = {"f64 3x5x2", "i64 3x2 = 0 4 2", "f64 5"}},
    {.name = "f16", .inputs = {"f16 3x5x2", "i64 3x2 = 0 4 2"}},
    {.name = "bf16",
     .opset = 22,
     .inputs = {"bf16 3x5x2", "i64 3x2 = 0 4 2"},
     .attrs = "reduction=\"none\""},
    {.name = "label",
     .inputs = {"f32 2x5", "i64 2 = 1 5"},
     .error = "is 5, but there are 5 classes"},
    {.name = "shapes", .inputs = {"f32 2x5", "i64 3 = 1"}, .error = "do not go with labels"},
    {.name = "weight_count",
     .inputs = {"f32 2x5", "i64 2 = 1", "f32 4"},
     .error = "do not go with labels"},
    {.name = "label_type", .inputs = {"f32 2x5", "f32 2 = 1"}, .error = "labels are float32"},
    {.name = "reduction",
     .inputs = {"f32 2x5", "i64 2 = 1"},
     .attrs = "reduction=\"max\"",
     .error = "reduction is 'max'"},
};

static const om_op_case two_cases[] = {
    {.name = "both",
     .inputs = {"f32 2x3x5", "i64 2x5 = 0 2 1"},
     .output_count = 2,
     .shapes = {"scalar", "2x3x5"}},
    {.name = "both_f16", .inputs = {"f16 2x3", "i64 2 = 0 2"}, .output_count = 2},
};

#define OM_LOSS_SUITE(type, table)                   \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = reference,                           \
   .declined = "no kernel for this operator"}

static const om_op_suite suites[] = {
    OM_LOSS_SUITE("NegativeLogLikelihoodLoss", cases),
    OM_LOSS_SUITE("SoftmaxCrossEntropyLoss", cases),
    OM_LOSS_SUITE("SoftmaxCrossEntropyLoss", two_cases),
};

OM_OP_TESTS(suites)
