/* Microsoft's operators for transformers, which are composed of others: each against its text in
 * double, written here for the values a model's export has. */
#include <math.h>

#include "harness/om_test.h"

static double gelu(double x) {
  return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
}

static double fast_gelu(double x) {
  return 0.5 * x * (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

/* ---- Activations ---- */

static void activation(const om_node *node,
                       const om_ref_tensor *inputs,
                       size_t input_count,
                       om_ref_tensor *outputs,
                       size_t output_count) {
  const double alpha = om_ref_float(node, "alpha", (double)1.702f);
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    double x = inputs[0].values[i];
    if (input_count > 1) x += om_ref_broadcast(&inputs[1], &outputs[0], i);
    outputs[0].values[i] = strcmp(node->type, "FastGelu") == 0    ? fast_gelu(x)
                           : strcmp(node->type, "QuickGelu") == 0 ? x / (1.0 + exp(-alpha * x))
                                                                  : gelu(x);
  }
}

static const om_op_case gelu_cases[] = {
    {.name = "plain", .opset = 1, .inputs = {"f32 3x70 range -4 4"}},
    {.name = "half", .opset = 1, .inputs = {"f16 3x70 range -4 4"}},
};
static const om_op_case bias_gelu_cases[] = {
    {.name = "rows", .opset = 1, .inputs = {"f32 2x3x70", "f32 70 const"}},
};
static const om_op_case fast_gelu_cases[] = {
    {.name = "plain", .opset = 1, .inputs = {"f32 3x70 range -4 4"}},
    {.name = "bias", .opset = 1, .inputs = {"f32 2x3x70", "f32 70"}},
};
static const om_op_case quick_gelu_cases[] = {
    {.name = "plain", .opset = 1, .inputs = {"f32 3x70 range -4 4"}},
    {.name = "alpha", .opset = 1, .inputs = {"f32 3x7"}, .attrs = "alpha=1.0f"},
};

/* ---- Normalisations ---- */

static void normalise(const double *sums,
                      const om_ref_tensor *scale,
                      const om_ref_tensor *bias,
                      double epsilon,
                      bool is_centered,
                      om_ref_tensor *y) {
  const size_t size = (size_t)y->dims[y->rank - 1];
  for (size_t row = 0; row < y->elems / size; ++row) {
    const double *x = sums + row * size;
    double mean = 0.0, square = 0.0;
    for (size_t i = 0; is_centered && i < size; ++i) mean += x[i] / (double)size;
    for (size_t i = 0; i < size; ++i) square += (x[i] - mean) * (x[i] - mean) / (double)size;
    for (size_t i = 0; i < size; ++i) {
      const double value = (x[i] - mean) / sqrt(square + epsilon) * scale->values[i];
      y->values[row * size + i] = value + (bias && bias->values ? bias->values[i] : 0.0);
    }
  }
}

static void skip_layer(const om_node *node,
                       const om_ref_tensor *inputs,
                       size_t input_count,
                       om_ref_tensor *outputs,
                       size_t output_count) {
  static double sums[4096];
  const bool is_simple = strcmp(node->type, "SkipSimplifiedLayerNormalization") == 0;
  const size_t bias_at = is_simple ? 3 : 4;
  const om_ref_tensor *beta = !is_simple && input_count > 3 ? &inputs[3] : NULL;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    sums[i] = inputs[0].values[i] + om_ref_broadcast(&inputs[1], &outputs[0], i);
    if (input_count > bias_at) sums[i] += om_ref_broadcast(&inputs[bias_at], &outputs[0], i);
    if (output_count > 1) outputs[output_count - 1].values[i] = sums[i];
  }
  normalise(sums, &inputs[2], beta, om_ref_float(node, "epsilon", 1e-12), !is_simple, &outputs[0]);
}

static void simplified(const om_node *node,
                       const om_ref_tensor *inputs,
                       size_t input_count,
                       om_ref_tensor *outputs,
                       size_t output_count) {
  (void)input_count;
  (void)output_count;
  normalise(
      inputs[0].values, &inputs[1], NULL, om_ref_float(node, "epsilon", 1e-5), false, &outputs[0]);
}

static const om_op_case simplified_cases[] = {
    {.name = "rows", .opset = 1, .inputs = {"f32 4x70", "f32 70 const"}},
    {.name = "epsilon",
     .opset = 1,
     .inputs = {"f32 4x7", "f32 7"},
     .attrs = "epsilon=0.5f axis=-1 stash_type=1"},
};
static const om_op_case skip_cases[] = {
    {.name = "no_beta", .opset = 1, .inputs = {"f32 2x3x20", "f32 2x3x20", "f32 20"}},
    {.name = "bias",
     .opset = 1,
     .inputs = {"f32 2x3x20", "f32 2x3x20", "f32 20", "f32 20", "f32 20"},
     .attrs = "epsilon=0.001f"},
    {.name = "skip_repeats", .opset = 1, .inputs = {"f32 2x3x20", "f32 3x20", "f32 20", "f32 20"}},
    {.name = "sum",
     .opset = 1,
     .inputs = {"f32 2x3x20", "f32 2x3x20", "f32 20", "f32 20"},
     .graph = "y0, \"\", \"\", y1 = SkipLayerNormalization(x0, x1, x2, x3)"},
    {.name = "mean",
     .opset = 1,
     .inputs = {"f32 2x3x20", "f32 2x3x20", "f32 20"},
     .output_count = 2,
     .error = "for training"},
};
static const om_op_case skip_simplified_cases[] = {
    {.name = "plain", .opset = 1, .inputs = {"f32 2x3x20", "f32 2x3x20", "f32 20"}},
    {.name = "bias", .opset = 1, .inputs = {"f32 2x3x20", "f32 2x3x20", "f32 20", "f32 20"}},
};

/* ---- Products ---- */

static void matmul(const om_node *node,
                   const om_ref_tensor *inputs,
                   size_t input_count,
                   om_ref_tensor *outputs,
                   size_t output_count) {
  const om_ref_tensor *a = &inputs[0], *b = &inputs[1], *y = &outputs[0];
  const bool turns_a = om_ref_int(node, "transA", 0), turns_b = om_ref_int(node, "transB", 0);
  const int64_t rows = y->dims[y->rank - 2], cols = y->dims[y->rank - 1];
  const int64_t depth = a->dims[turns_a ? a->rank - 2 : a->rank - 1];
  (void)input_count;
  (void)output_count;
  for (int64_t i = 0; i < (int64_t)y->elems; ++i) {
    const int64_t batch = i / (rows * cols), row = i / cols % rows, col = i % cols;
    const double *x = a->values + batch * rows * depth;
    const double *w = b->values + (b->rank > 2 ? batch * depth * cols : 0);
    double sum = 0.0;
    for (int64_t k = 0; k < depth; ++k) {
      sum += x[turns_a ? k * rows + row : row * depth + k] *
             w[turns_b ? col * depth + k : k * cols + col];
    }
    y->values[i] = sum * om_ref_float(node, "alpha", 1.0);
  }
}

static const om_op_case matmul_cases[] = {
    {.name = "plain", .opset = 1, .inputs = {"f32 2x3x40", "f32 40x5"}},
    {.name = "turned",
     .opset = 1,
     .inputs = {"f32 2x40x3", "f32 2x5x40"},
     .attrs = "transA=1 transB=1 alpha=0.25f"},
    {.name = "weights",
     .opset = 1,
     .inputs = {"f32 3x40", "f32 5x40 const"},
     .attrs = "transB=1 alpha=2.0f"},
    {.name = "batches_turned",
     .opset = 1,
     .inputs = {"f32 2x3x40", "f32 2x40x5"},
     .attrs = "transBatchA=1",
     .error = "transBatchA"},
};

/* ---- Embeddings ---- */

static void embed(const om_node *node,
                  const om_ref_tensor *inputs,
                  size_t input_count,
                  om_ref_tensor *outputs,
                  size_t output_count) {
  static double sums[4096];
  const om_ref_tensor *ids = &inputs[0];
  const size_t size = (size_t)inputs[2].dims[1], length = (size_t)ids->dims[1];
  const double *positions = input_count > 8 ? inputs[8].values : NULL;
  const double *mask = input_count > 7 ? inputs[7].values : NULL;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    const size_t token = i / size, col = i % size;
    const size_t position = positions ? (size_t)positions[token] : token % length;
    sums[i] = inputs[2].values[(size_t)ids->values[token] * size + col] +
              inputs[3].values[position * size + col];
    if (inputs[1].values) {
      sums[i] += inputs[4].values[(size_t)inputs[1].values[token] * size + col];
    }
  }
  normalise(sums, &inputs[5], &inputs[6], om_ref_float(node, "epsilon", 1e-12), true, &outputs[0]);
  for (size_t row = 0; output_count > 1 && row < outputs[1].elems; ++row) {
    outputs[1].values[row] = 0.0;
    for (size_t i = 0; mask && i < length; ++i) outputs[1].values[row] += mask[row * length + i];
  }
}

#define TABLES "f32 9x20 const", "f32 6x20 const"
#define NORM   "f32 20 const", "f32 20 const"

static const om_op_case embed_cases[] = {
    {.name = "segments",
     .opset = 1,
     .inputs = {"i32 2x5 = 1 8 0 3", "i32 2x5 = 0 1 1", TABLES, "f32 2x20 const", NORM}},
    {.name = "no_segments", .opset = 1, .inputs = {"i32 2x5 = 1 8 0 3", "-", TABLES, "-", NORM}},
    {.name = "mask",
     .opset = 1,
     .inputs = {"i32 2x5 = 1 8 0 3", "-", TABLES, "-", NORM, "i32 2x5 = 1 1 1 0 1 1 0"},
     .output_count = 2},
    {.name = "no_mask",
     .opset = 1,
     .inputs = {"i32 2x5 = 1 8 0 3", "-", TABLES, "-", NORM},
     .output_count = 2},
    {.name = "no_words",
     .opset = 1,
     .inputs = {"i32 2x5 = 1 8 0 3", "-", "-", "f32 6x20 const", "-", NORM},
     .error = "Input 2 is absent"},
};

#define SUITE(type, table, function)               \
  {.op_type = (type),                              \
   .domain = "com.microsoft",                      \
   .cases = (table),                               \
   .case_count = sizeof(table) / sizeof(table)[0], \
   .reference = (function),                        \
   .is_composed = true}

static const om_op_suite suites[] = {
    SUITE("Gelu", gelu_cases, activation),
    SUITE("BiasGelu", bias_gelu_cases, activation),
    SUITE("FastGelu", fast_gelu_cases, activation),
    SUITE("QuickGelu", quick_gelu_cases, activation),
    SUITE("SimplifiedLayerNormalization", simplified_cases, simplified),
    SUITE("SkipLayerNormalization", skip_cases, skip_layer),
    SUITE("SkipSimplifiedLayerNormalization", skip_simplified_cases, skip_layer),
    SUITE("FusedMatMul", matmul_cases, matmul),
    SUITE("EmbedLayerNormalization", embed_cases, embed),
    {.op_type = "SimplifiedLayerNormalization",
     .cases = simplified_cases,
     .case_count = sizeof simplified_cases / sizeof simplified_cases[0],
     .reference = simplified,
     .is_composed = true},
};

OM_OP_TESTS(suites)
