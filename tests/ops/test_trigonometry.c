/* Trigonometric and hyperbolic functions. */
#include <math.h>

#include "harness/om_test.h"

static const struct {
  const char *type;
  double (*function)(double);
} functions[] = {
    {"Tan", tan},
    {"Asin", asin},
    {"Acos", acos},
    {"Atan", atan},
    {"Sinh", sinh},
    {"Cosh", cosh},
    {"Asinh", asinh},
    {"Acosh", acosh},
    {"Atanh", atanh},
};

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  (void)input_count;
  (void)output_count;
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; ++f) {
    if (strcmp(functions[f].type, node->type) != 0) continue;
    for (size_t i = 0; i < outputs[0].elems; ++i) {
      outputs[0].values[i] = functions[f].function(inputs[0].values[i]);
    }
  }
}

static const om_op_case cases[] = {
    {.name = "rows", .inputs = {"f32 4x7 range -1 1"}},
    {.name = "beyond", .inputs = {"f32 100"}, .elem_error = 6e-7},
    {.name = "long", .inputs = {"f32 20003 range 1.01 1.5"}},
    {.name = "edges", .inputs = {"f32 99 edges"}, .elem_error = 6e-7},
    {.name = "rank_8", .inputs = {"f32 2x1x3x2x1x2x3x2 range -0.9 0.9"}},
    {.name = "f64", .inputs = {"f64 3x5"}},
    {.name = "f16", .inputs = {"f16 70 range -0.9 0.9"}},
    {.name = "bf16", .inputs = {"bf16 7 range -0.9 0.9"}},
};

#define SUITE(name)                              \
  {.op_type = (name),                            \
   .cases = cases,                               \
   .case_count = sizeof cases / sizeof cases[0], \
   .reference = reference,                       \
   .declined = "no kernel for this operator"}

static const om_op_suite suites[] = {
    SUITE("Tan"),
    SUITE("Asin"),
    SUITE("Acos"),
    SUITE("Atan"),
    SUITE("Sinh"),
    SUITE("Cosh"),
    SUITE("Asinh"),
    SUITE("Acosh"),
    SUITE("Atanh"),
};

OM_OP_TESTS(suites)
