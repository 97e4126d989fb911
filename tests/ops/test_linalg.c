/* Det by its expansion along the first row; Inverse by its product with the matrix. */
#include "harness/om_test.h"

/* The determinant of the rows from `row` on, in the columns that are not taken. */
static double expand(const double *a, size_t size, size_t row, unsigned taken) {
  double sum = 0.0;
  double sign = 1.0;
  if (row == size) return 1.0;
  for (size_t col = 0; col < size; ++col) {
    if (taken & (1u << col)) continue;
    sum += sign * a[row * size + col] * expand(a, size, row + 1, taken | 1u << col);
    sign = -sign;
  }
  return sum;
}

static void det(const om_node *node,
                const om_ref_tensor *inputs,
                size_t input_count,
                om_ref_tensor *outputs,
                size_t output_count) {
  const size_t size = (size_t)inputs[0].dims[inputs[0].rank - 1];
  (void)node;
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    outputs[0].values[i] = expand(inputs[0].values + i * size * size, size, 0, 0);
  }
}

static const om_op_case det_cases[] = {
    {.name = "two", .inputs = {"f32 2x2 = 1 2 3 4"}, .shapes = {"scalar"}},
    {.name = "batch", .inputs = {"f32 3x2x5x5"}, .scaled_error = 5e-6},
    {.name = "one", .inputs = {"f32 4x1x1"}},
    {.name = "seven", .inputs = {"f32 7x7"}, .scaled_error = 1e-5},
    {.name = "pivots", .inputs = {"f32 3x3 = 0 1 2 1 0 3 4 -3 8"}},
    {.name = "singular", .inputs = {"f32 3x3 = 1 2 3 2 4 6 1 1 1"}, .expected = {"0"}},
    {.name = "nan", .inputs = {"f32 2x2 = 1 nan 3 4"}, .expected = {"nan"}},
    {.name = "no_elements", .inputs = {"f32 2x0x0"}, .expected = {"1 1"}},
    {.name = "empty", .inputs = {"f32 0x2x2"}},
    {.name = "f64", .inputs = {"f64 2x5x5"}},
    {.name = "f16", .inputs = {"f16 2x3x3"}},
    {.name = "bf16", .opset = 22, .inputs = {"bf16 2x3x3"}},
    {.name = "shape", .inputs = {"f32 2x3"}, .error = "no square matrices"},
};

static const om_op_case inverse_cases[] = {
    {.name = "two", .inputs = {"f32 2x2 = 1 2 3 4"}, .expected = {"-2 1 1.5 -0.5"}},
    {.name = "pivots",
     .inputs = {"f32 2x3x3 = 0 2 0 1 0 0 0 0 4"},
     .expected = {"0 1 0 0.5 0 0 0 0 0.25"}},
    {.name = "f64", .inputs = {"f64 2x2 = 1 2 3 4"}, .expected = {"-2 1 1.5 -0.5"}},
    {.name = "f16", .inputs = {"f16 2x2 = 1 2 3 4"}, .expected = {"-2 1 1.5 -0.5"}},
    {.name = "empty", .inputs = {"f32 0x2x2"}},
    {.name = "shape", .inputs = {"f32 2x3"}, .error = "no square matrices"},
};

static const om_op_suite suites[] = {
    {.op_type = "Det",
     .cases = det_cases,
     .case_count = sizeof det_cases / sizeof det_cases[0],
     .reference = det,
     .declined = "no kernel for this operator"},
    {.op_type = "Inverse",
     .domain = "com.microsoft",
     .cases = inverse_cases,
     .case_count = sizeof inverse_cases / sizeof inverse_cases[0],
     .declined = "no kernel for this operator"},
};

OM_OP_TESTS(suites)
