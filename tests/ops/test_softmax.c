/* Softmax, LogSoftmax and Hardmax. */
#include <math.h>

#include "harness/om_test.h"

/* One row: elements `stride` apart. */
static void row(const char *type, const double *x, double *y, size_t count, size_t stride) {
  double largest = -INFINITY;
  double sum = 0.0;
  bool is_found = false;
  for (size_t i = 0; i < count; ++i) {
    const double v = x[i * stride];
    if (isnan(v) || v > largest) largest = v;
    if (isnan(v)) break;
  }
  for (size_t i = 0; i < count; ++i) sum += exp(x[i * stride] - largest);
  for (size_t i = 0; i < count; ++i) {
    const double difference = x[i * stride] - largest;
    if (strcmp(type, "Softmax") == 0) {
      y[i * stride] = exp(difference) / sum;
    } else if (strcmp(type, "LogSoftmax") == 0) {
      y[i * stride] = difference - log(sum);
    } else {
      const bool is_best = x[i * stride] == largest || (isnan(x[i * stride]) && isnan(largest));
      y[i * stride] = is_best && !is_found ? 1.0 : 0.0;
      is_found = is_found || is_best;
    }
  }
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const bool is_flat = node->opset < 13;
  const int64_t axis_attr = om_ref_int(node, "axis", is_flat ? 1 : -1);
  const uint32_t axis = axis_attr == (int64_t)x->rank ? x->rank : om_ref_axis(axis_attr, x->rank);
  size_t inner = 1;
  size_t count = 1;
  (void)input_count;
  (void)output_count;
  for (uint32_t d = axis; d < x->rank; ++d) {
    if (is_flat || d == axis) {
      count *= (size_t)x->dims[d];
    } else {
      inner *= (size_t)x->dims[d];
    }
  }
  for (size_t i = 0; count > 0 && i < x->elems / count; ++i) {
    const size_t begin = i / inner * inner * count + i % inner;
    row(node->type, x->values + begin, outputs[0].values + begin, count, inner);
  }
}

static const om_op_case cases[] = {
    {.name = "rows", .inputs = {"f32 4x7"}},
    {.name = "one_element", .inputs = {"f32 3x1"}},
    {.name = "vector", .inputs = {"f32 31"}},
    {.name = "lanes_256", .inputs = {"f32 5x256 range -9 9"}},
    {.name = "lanes_257", .inputs = {"f32 5x257 range -9 9"}},
    {.name = "wide", .inputs = {"f32 2x10007 range -3 3"}, .scaled_error = 2e-6},
    {.name = "many_rows", .inputs = {"f32 3001x3"}},
    {.name = "axis_first", .inputs = {"f32 9x7"}, .attrs = "axis=0"},
    {.name = "axis_middle", .inputs = {"f32 3x19x5"}, .attrs = "axis=1"},
    {.name = "axis_middle_long", .inputs = {"f32 2x300x3"}, .attrs = "axis=-2"},
    {.name = "rank_8", .inputs = {"f32 2x1x3x2x1x2x3x2"}, .attrs = "axis=5"},
    {.name = "large", .inputs = {"f32 2x3 = 1000 1001 999 -1000 -999 -1001"}},
    {.name = "flat", .opset = 11, .inputs = {"f32 3x4x5"}},
    {.name = "flat_all", .opset = 11, .inputs = {"f32 3x4x5"}, .attrs = "axis=0"},
    {.name = "flat_last", .opset = 11, .inputs = {"f32 3x4x5"}, .attrs = "axis=-1"},
    {.name = "flat_none", .opset = 11, .inputs = {"f32 3x4"}, .attrs = "axis=2"},
    {.name = "f64", .inputs = {"f64 3x4"}, .declined = "float64"},
    {.name = "f16", .inputs = {"f16 3x70"}},
    {.name = "f16_wide", .inputs = {"f16 3x1007 range -9 9"}},
    {.name = "f16_axis_middle", .inputs = {"f16 3x19x5"}, .attrs = "axis=1"},
    {.name = "f16_large", .inputs = {"f16 2x3 = 60000 59968 -60000 -6e-8 0 6e-8"}},
    {.name = "bf16", .inputs = {"bf16 3x7"}, .attrs = "axis=0", .declined = "bfloat16"},
    {.name = "empty", .inputs = {"f32 0x3"}, .declined = "empty"},
    {.name = "outside", .inputs = {"f32 2x3"}, .attrs = "axis=2", .error = "outside a tensor"},
};

static const om_op_case special_cases[] = {
    {.name = "infinite", .inputs = {"f32 2x2 = -inf 0 -inf -inf"}, .expected = {"0 1 nan nan"}},
    {.name = "nan", .inputs = {"f32 1x3 = 1 nan 2"}, .expected = {"nan nan nan"}},
    {.name = "flat_of_four",
     .opset = 11,
     .inputs = {"f32 1x2x2 = 0 1 2 3"},
     .expected = {"0.0320586033 0.0871443187 0.2368828181 0.6439142599"}},
};

static const om_op_case hard_cases[] = {
    {.name = "ties", .inputs = {"f32 2x3 = 1 3 3 2 2 1"}},
    {.name = "axis", .inputs = {"f32 5x4"}, .attrs = "axis=0"},
    {.name = "flat", .opset = 9, .inputs = {"f32 2x3x2"}},
    {.name = "nan", .inputs = {"f32 1x3 = 1 nan 5"}},
    {.name = "f64", .inputs = {"f64 2x3"}},
    {.name = "f16", .inputs = {"f16 2x3"}},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("Softmax", cases, reference),
    OM_OP_SUITE("LogSoftmax", cases, reference),
    OM_OP_SUITE("Softmax", special_cases, NULL),
    {.op_type = "Hardmax",
     .cases = hard_cases,
     .case_count = sizeof hard_cases / sizeof hard_cases[0],
     .reference = reference,
     .declined = "no kernel for this operator"},
};

OM_OP_TESTS(suites)
