/* Normalisations. */
#include <math.h>

#include "harness/om_test.h"

typedef struct moments {
  double mean;
  double variance;
} moments;

static moments measure(const double *x, size_t count, bool is_centered) {
  moments m = {0.0, 0.0};
  for (size_t i = 0; is_centered && i < count; ++i) m.mean += x[i] / (double)count;
  for (size_t i = 0; i < count; ++i) {
    m.variance += (x[i] - m.mean) * (x[i] - m.mean) / (double)count;
  }
  return m;
}

/* Scale and bias of the last axes, aligned to the right. */
static double aligned(const om_ref_tensor *t, const om_ref_tensor *x, size_t elem) {
  return om_ref_broadcast(t, x, elem);
}

static void last_axes(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const uint32_t axis = om_ref_axis(om_ref_int(node, "axis", -1), x->rank);
  const double epsilon = om_ref_float(node, "epsilon", 1e-5);
  const bool is_centered = strcmp(node->type, "LayerNormalization") == 0;
  const bool has_bias = input_count > 2 && inputs[2].values;
  size_t count = 1;
  for (uint32_t d = axis; d < x->rank; ++d) count *= (size_t)x->dims[d];
  for (size_t r = 0; r < x->elems / count; ++r) {
    const moments m = measure(x->values + r * count, count, is_centered);
    const double inverse = 1.0 / sqrt(m.variance + epsilon);
    for (size_t i = r * count; i < (r + 1) * count; ++i) {
      double y = (x->values[i] - m.mean) * inverse * aligned(&inputs[1], x, i);
      if (has_bias) y += aligned(&inputs[2], x, i);
      outputs[0].values[i] = y;
    }
    if (output_count > 1 && outputs[1].values) outputs[1].values[r] = m.mean;
    if (output_count > 2 && outputs[2].values) outputs[2].values[r] = inverse;
  }
}

static const om_op_case last_cases[] = {
    {.name = "rows", .inputs = {"f32 4x7", "f32 7"}},
    {.name = "lanes_256", .inputs = {"f32 3x256", "f32 256 const"}},
    {.name = "long", .inputs = {"f32 3x769", "f32 769"}, .scaled_error = 2e-6},
    {.name = "axis_1", .inputs = {"f32 3x4x5", "f32 4x5"}, .attrs = "axis=1"},
    {.name = "axis_0", .inputs = {"f32 3x4", "f32 3x4"}, .attrs = "axis=0 epsilon=0.1f"},
    {.name = "scale_of_one", .inputs = {"f32 3x4", "f32 1"}},
    {.name = "scale_repeats", .inputs = {"f32 3x4x5", "f32 5"}, .attrs = "axis=1"},
    {.name = "scale_a_row", .inputs = {"f32 3x4x5", "f32 4x1"}, .attrs = "axis=1"},
    {.name = "rank_8", .inputs = {"f32 2x1x3x2x1x2x3x2", "f32 2x3x2"}, .attrs = "axis=-3"},
    {.name = "f64", .inputs = {"f64 4x7", "f64 7"}, .declined = "float64"},
    {.name = "f16", .inputs = {"f16 4x70", "f16 70"}, .scaled_error = 2e-3},
    {.name = "f16_quads", .inputs = {"f16 70x44", "f16 44"}, .scaled_error = 2e-3},
    {.name = "f16_of_two", .inputs = {"f16 3x4", "f32 4"}, .opset = 17, .declined = "input 1"},
    {.name = "quads", .inputs = {"f32 3x5x384", "f32 384"}},
    {.name = "one_quad", .inputs = {"f32 65x4", "f32 4"}},
    {.name = "quads_512", .inputs = {"f32 2x512", "f32 512"}, .scaled_error = 2e-6},
    {.name = "quads_1024", .inputs = {"f32 2x1024", "f32 1024"}, .scaled_error = 2e-6},
    {.name = "longer", .inputs = {"f32 2x4100", "f32 4100"}, .scaled_error = 2e-6},
    {.name = "empty", .inputs = {"f32 0x3", "f32 3"}, .declined = "empty"},
    {.name = "unfit", .inputs = {"f32 3x4", "f32 3"}, .error = "does not fit the axes"},
    {.name = "outside", .inputs = {"f32 3x4", "f32 4"}, .attrs = "axis=2", .error = "outside"},
};

static const om_op_case layer_cases[] = {
    {.name = "bias", .inputs = {"f32 5x9", "f32 9 const", "f32 9 const"}},
    {.name = "offset",
     .inputs = {"f32 5x33 range 100 101", "f32 33", "f32 33"},
     .scaled_error = 1e-4},
    {.name = "no_result",
     .inputs = {"f32 5x9", "f32 9"},
     .graph = "\"\", y0 = LayerNormalization(x0, x1)",
     .error = "Output 0 is absent"},
    {.name = "outputs",
     .inputs = {"f32 5x9", "f32 9", "f32 9"},
     .output_count = 3,
     .shapes = {"5x9", "5x1", "5x1"},
     .declined = "mean or deviation"},
};

static const om_op_case rms_cases[] = {
    {.name = "rows", .opset = 23, .inputs = {"f32 4x7", "f32 7"}},
    {.name = "long", .opset = 23, .inputs = {"f32 4x700", "f32 700"}, .scaled_error = 2e-6},
    {.name = "axis_1", .opset = 23, .inputs = {"f32 3x4x5", "f32 4x5"}, .attrs = "axis=1"},
    {.name = "f64", .opset = 23, .inputs = {"f64 3x4", "f64 4"}, .declined = "float64"},
    /* The result has the scale's type. */
    {.name = "f16_by_f32", .opset = 23, .inputs = {"f16 3x70", "f32 70"}, .declined = "input 1"},
    {.name = "f32_by_f16",
     .opset = 23,
     .inputs = {"f32 3x70", "f16 70"},
     .scaled_error = 1e-3,
     .declined = "input 1"},
    {.name = "f32_by_f64", .opset = 23, .inputs = {"f32 3x70", "f64 70"}, .declined = "input 1"},
    {.name = "f64_by_f32", .opset = 23, .inputs = {"f64 3x70", "f32 70"}, .declined = "float64"},
    {.name = "type_of_the_sum",
     .opset = 23,
     .inputs = {"f16 3x70", "f32 70", "f32 3x70"},
     .graph = "n = RMSNormalization(x0, x1); y0 = Add(n, x2)",
     .declined = "input 1"},
};

/* With the addition before it, and what follows. */
static const om_op_case fused_cases[] = {
    {.name = "residual",
     .inputs = {"f32 9x300", "f32 9x300", "f32 300 const", "f32 300 const"},
     .graph = "s = Add(x0, x1); y0 = LayerNormalization(s, x2, x3)"},
    {.name = "residual_of_long_rows",
     .inputs = {"f32 9x1492", "f32 9x1492", "f32 1492 const", "f32 1492 const"},
     .graph = "s = Add(x0, x1); y0 = LayerNormalization(s, x2, x3)"},
    {.name = "residual_of_a_product",
     .inputs = {"f32 130x64", "f32 64x384 const", "f32 130x384", "f32 384 const", "f32 384 const"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); y0 = LayerNormalization(s, x3, x4)"},
    {.name = "half_residual_of_octets",
     .inputs = {"f16 700x1480", "f16 700x1480", "f16 1480 const", "f16 1480 const"},
     .graph = "s = Add(x0, x1); y0 = LayerNormalization(s, x2, x3)"},
    {.name = "half_residual_between_products",
     .inputs = {"f16 1500x64",
                "f16 64x384 const",
                "f16 1500x384",
                "f16 384 const",
                "f16 384 const",
                "f16 384x64 const"},
     .graph = "p = MatMul(x0, x1); s = Add(p, x2); n = LayerNormalization(s, x3, x4); "
              "y0 = MatMul(n, x5)"},
    {.name = "half_residual_and_chain",
     .inputs = {"f16 2200x376", "f16 2200x376", "f16 376 const", "f16 376 const", "f16 2200x376"},
     .graph = "s = Add(x0, x1); n = LayerNormalization(s, x2, x3); m = Mul(n, x3); "
              "a = Add(m, x4); y0 = Gelu(a)"},
};

/* ---- Channels ---- */

static void channels(const om_node *node,
                     const om_ref_tensor *inputs,
                     size_t input_count,
                     om_ref_tensor *outputs,
                     size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const double epsilon = om_ref_float(node, "epsilon", 1e-5);
  const size_t channel_count = (size_t)x->dims[1];
  const size_t groups = (size_t)om_ref_int(node, "num_groups", x->dims[1]);
  const size_t space = x->elems / ((size_t)x->dims[0] * channel_count);
  const size_t count = channel_count / groups * space;
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < x->elems; ++i) {
    const size_t r = i / count;
    const size_t channel = i / space % channel_count;
    const size_t place =
        inputs[1].elems == channel_count ? channel : channel * groups / channel_count;
    const moments m = measure(x->values + r * count, count, true);
    outputs[0].values[i] =
        (x->values[i] - m.mean) / sqrt(m.variance + epsilon) * inputs[1].values[place] +
        inputs[2].values[place];
  }
}

static const om_op_case instance_cases[] = {
    {.name = "image", .inputs = {"f32 2x3x5x7", "f32 3", "f32 3"}},
    {.name = "one_axis", .inputs = {"f32 2x3x300", "f32 3 const", "f32 3 const"}},
    {.name = "epsilon", .inputs = {"f32 2x3x4", "f32 3", "f32 3"}, .attrs = "epsilon=0.5f"},
    {.name = "f16", .inputs = {"f16 2x3x4", "f16 3", "f16 3"}, .scaled_error = 2e-3},
    {.name = "scale", .inputs = {"f32 2x3x4", "f32 4", "f32 3"}, .error = "there must be 3"},
    {.name = "no_channels", .inputs = {"f32 2", "f32 1", "f32 1"}, .error = "at least 2"},
};

static const om_op_case group_cases[] = {
    {.name = "channels", .inputs = {"f32 2x6x5", "f32 6", "f32 6"}, .attrs = "num_groups=2"},
    {.name = "groups",
     .opset = 18,
     .inputs = {"f32 2x6x5", "f32 2", "f32 2"},
     .attrs = "num_groups=2"},
    {.name = "all", .inputs = {"f32 2x6x5x11", "f32 6", "f32 6"}, .attrs = "num_groups=1"},
    {.name = "uneven",
     .inputs = {"f32 2x6x5", "f32 6", "f32 6"},
     .attrs = "num_groups=4",
     .error = "do not divide into 4 groups"},
};

/* ---- BatchNormalization ---- */

static void batch(const om_node *node,
                  const om_ref_tensor *inputs,
                  size_t input_count,
                  om_ref_tensor *outputs,
                  size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const double epsilon = om_ref_float(node, "epsilon", 1e-5);
  const size_t channel_count = x->rank > 1 ? (size_t)x->dims[1] : 1;
  const size_t outer = x->rank > 0 ? (size_t)x->dims[0] : 1;
  const size_t space = x->rank > 1 ? x->elems / (outer * channel_count) : 1;
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < x->elems; ++i) {
    const size_t c = i / space % channel_count;
    const double s = inputs[1].values[c] / sqrt(inputs[4].values[c] + epsilon);
    outputs[0].values[i] = x->values[i] * s + (inputs[2].values[c] - inputs[3].values[c] * s);
  }
}

#define FACTORS(n)                                                       \
  "f32 " n " const range 0.5 1.5", "f32 " n " const", "f32 " n " const", \
      "f32 " n " const range 0.5 2"
static const om_op_case batch_cases[] = {
    {.name = "image", .inputs = {"f32 2x3x5x7", FACTORS("3")}},
    {.name = "matrix", .inputs = {"f32 9x4", FACTORS("4")}},
    {.name = "vector", .inputs = {"f32 9", FACTORS("1")}},
    {.name = "volume",
     .opset = 9,
     .inputs = {"f32 2x3x2x3x2", FACTORS("3")},
     .attrs = "epsilon=0.01f"},
    {.name = "run_time", .inputs = {"f32 2x3x4", "f32 3", "f32 3", "f32 3", "f32 3 range 0.5 2"}},
    {.name = "run_time_variance",
     .inputs = {"f32 2x9x33", "f32 9 const", "f32 9 const", "f32 9 const", "f32 9 range 0.5 2"},
     .attrs = "epsilon=0.25f"},
    {.name = "run_time_half_scale",
     .inputs = {"f32 2x3x4", "f16 3", "f32 3", "f32 3", "f32 3 range 0.5 2"},
     .opset = 15,
     .declined = "its input 1 is float16"},
    {.name = "f64",
     .inputs = {"f64 2x3x4", "f64 3", "f64 3", "f64 3", "f64 3 range 0.5 2"},
     .declined = "float64"},
    {.name = "f16", .inputs = {"f16 2x3x70", "f16 3", "f16 3", "f16 3", "f16 3 range 0.5 2"}},
    {.name = "f16_constants",
     .inputs =
         {"f16 2x3x35", "f16 3 const", "f16 3 const", "f16 3 const", "f16 3 const range 0.5 2"}},
    {.name = "unfit",
     .inputs = {"f32 2x3x4", "f32 3", "f32 4", "f32 3", "f32 3"},
     .error = "there are 3 channels"},
};

/* Values worked out by hand: channel means 1.5 and 5.5, variances 0.25 and 0.25. */
static const om_op_case training_cases[] = {
    {.name = "training",
     .inputs = {"f32 1x2x2 = 1 2 5 6", "f32 2 = 1 2", "f32 2 = 0 1", "f32 2 = 0 10", "f32 2 = 1 1"},
     .attrs = "training_mode=1 momentum=0.5f epsilon=0.0f",
     .output_count = 3,
     .shapes = {"1x2x2", "2", "2"},
     .expected = {"-1 1 -1 3", "0.75 7.75", "0.625 0.625"},
     .declined = "training"},
    {.name = "outputs",
     .inputs = {"f32 1x2x2", "f32 2", "f32 2", "f32 2", "f32 2"},
     .output_count = 2,
     .error = "one of training"},
};

/* ---- By a norm ---- */

static void by_norm(const om_node *node,
                    const om_ref_tensor *inputs,
                    size_t input_count,
                    om_ref_tensor *outputs,
                    size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const uint32_t axis = om_ref_axis(om_ref_int(node, "axis", -1), x->rank);
  const bool is_l1 = om_ref_int(node, "p", 2) == 1;
  size_t inner = 1;
  const size_t extent = (size_t)x->dims[axis];
  (void)input_count;
  (void)output_count;
  for (uint32_t d = axis + 1; d < x->rank; ++d) inner *= (size_t)x->dims[d];
  for (size_t i = 0; i < x->elems; ++i) {
    const size_t begin = i / (inner * extent) * (inner * extent) + i % inner;
    double sum = 0.0;
    for (size_t k = 0; k < extent; ++k) {
      const double v = x->values[begin + k * inner];
      sum += is_l1 ? fabs(v) : v * v;
    }
    outputs[0].values[i] = x->values[i] / (is_l1 ? sum : sqrt(sum));
  }
}

static const om_op_case lp_cases[] = {
    {.name = "l2", .inputs = {"f32 4x9"}},
    {.name = "l1", .inputs = {"f32 4x9"}, .attrs = "p=1"},
    {.name = "axis", .inputs = {"f32 3x4x5"}, .attrs = "axis=1"},
    {.name = "f64", .inputs = {"f64 3x4"}},
    {.name = "p", .inputs = {"f32 3x4"}, .attrs = "p=3", .error = "must be 1 or 2"},
};

static void mean_variance(const om_node *node,
                          const om_ref_tensor *inputs,
                          size_t input_count,
                          om_ref_tensor *outputs,
                          size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const size_t rows = (size_t)x->dims[0];
  const size_t count = x->elems / rows;
  (void)node;
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < x->elems; ++i) {
    const moments m = measure(x->values + i / count * count, count, true);
    outputs[0].values[i] = (x->values[i] - m.mean) / (sqrt(m.variance) + 1e-9);
  }
}

static const om_op_case mean_variance_cases[] = {
    {.name = "axes", .inputs = {"f32 3x4x5"}, .attrs = "axes=1,2"},
    {.name = "f64", .inputs = {"f64 3x4x5"}, .attrs = "axes=1,2"},
    {.name = "rank", .inputs = {"f32 3x4"}, .error = "outside a tensor"},
};

#define CPU_SUITE(type, table, function)             \
  {.op_type = (type),                                \
   .cases = (table),                                 \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = (function),                          \
   .declined = "no kernel for this operator"}

static const om_op_suite suites[] = {
    OM_OP_SUITE("LayerNormalization", last_cases, last_axes),
    OM_OP_SUITE("LayerNormalization", layer_cases, last_axes),
    OM_OP_SUITE("LayerNormalization", fused_cases, NULL),
    OM_OP_SUITE("RMSNormalization", rms_cases, last_axes),
    OM_OP_SUITE("InstanceNormalization", instance_cases, channels),
    OM_OP_SUITE("GroupNormalization", group_cases, channels),
    OM_OP_SUITE("BatchNormalization", batch_cases, batch),
    OM_OP_SUITE("BatchNormalization", training_cases, NULL),
    CPU_SUITE("LpNormalization", lp_cases, by_norm),
    CPU_SUITE("MeanVarianceNormalization", mean_variance_cases, mean_variance),
};

OM_OP_TESTS(suites)
