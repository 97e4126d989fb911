/* Comparisons, logic, bits, classification, selection, remainders, Sum and Mean. */
#include <math.h>

#include "harness/om_test.h"

static double compare(const char *type, double x, double y) {
  if (strcmp(type, "Equal") == 0) return x == y;
  if (strcmp(type, "Less") == 0) return x < y;
  if (strcmp(type, "Greater") == 0) return x > y;
  if (strcmp(type, "LessOrEqual") == 0) return x <= y;
  if (strcmp(type, "GreaterOrEqual") == 0) return x >= y;
  if (strcmp(type, "And") == 0) return x != 0.0 && y != 0.0;
  if (strcmp(type, "Or") == 0) return x != 0.0 || y != 0.0;
  return (x != 0.0) != (y != 0.0);
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    outputs[0].values[i] = compare(node->type,
                                   om_ref_broadcast(&inputs[0], &outputs[0], i),
                                   om_ref_broadcast(&inputs[1], &outputs[0], i));
  }
}

static const om_op_case compare_cases[] = {
    {.name = "f32", .inputs = {"f32 4x7 = 1 2 3", "f32 7 = 1 3 2 3"}},
    {.name = "edges", .inputs = {"f32 1089 edges", "f32 1089 edges"}},
    {.name = "long", .inputs = {"f32 40001", "f32 40001"}},
    {.name = "both_ways", .inputs = {"f32 3x1x5 = 1 2 3 4", "f32 4x1 = 2 1 3"}},
    {.name = "scalar", .inputs = {"f32 5x5 = 1 2 3", "f32 scalar = 2"}},
    {.name = "rank_8", .inputs = {"f32 2x1x3x1x2x1x2x1 = 1 2", "f32 2x3x1x2x1x2x1x3 = 2 1 1"}},
    {.name = "f64", .inputs = {"f64 9 = 1 2 3", "f64 9 = 2"}, .declined = "float64"},
    {.name = "f16", .inputs = {"f16 200 edges", "f16 200 edges"}},
    {.name = "f16_rows", .inputs = {"f16 3x1x5", "f16 7x1"}},
    {.name = "bf16", .inputs = {"bf16 9 = 1 2 3", "bf16 9 = 2"}, .declined = "bfloat16"},
    {.name = "i8", .inputs = {"i8 99", "i8 99"}},
    {.name = "i16", .inputs = {"i16 99", "i16 99"}, .declined = "int16"},
    {.name = "i32", .inputs = {"i32 99", "i32 99"}},
    {.name = "i64", .inputs = {"i64 99", "i64 99"}},
    {.name = "u8", .inputs = {"u8 99", "u8 99"}},
    {.name = "u16", .inputs = {"u16 99", "u16 99"}, .declined = "uint16"},
    {.name = "u32", .inputs = {"u32 99", "u32 99"}, .declined = "uint32"},
    {.name = "u64", .inputs = {"u64 99", "u64 99"}, .declined = "uint64"},
    {.name = "empty", .inputs = {"f32 0x3", "f32 3"}, .declined = "empty"},
    {.name = "i64_edges",
     .inputs = {"i64 5 = -9223372036854775808 9223372036854775807 4294967296 -1 0",
                "i64 5x1 = 4294967295 -4294967296 9223372036854775807 0 -2147483648"},
     .bit_exact = true},
    {.name = "types", .inputs = {"f32 2", "i32 2"}, .error = "int32"},
    {.name = "unfit", .inputs = {"f32 2", "f32 3"}, .error = "do not broadcast"},
};

static const om_op_case equal_cases[] = {
    {.name = "bool", .inputs = {"b8 4 = 0 1 0 1", "b8 4 = 0 0 1 1"}},
    {.name = "subnormals",
     .inputs = {"f32 4 = 1e-40 -1e-40 1e-40 2e-38", "f32 4 = 0 0 -1e-41 0"},
     .expected = {"1 1 1 0"},
     .exact_only = true},
    {.name = "bool_rows", .inputs = {"b8 3x1x7 = 0 1 1", "b8 5x1 = 1 0"}},
    {.name = "large", .inputs = {"i64 1 = 9007199254740993", "i64 1 = 9007199254740993"}},
};

static const om_op_case logic_cases[] = {
    {.name = "pairs", .inputs = {"b8 4 = 0 1 0 1", "b8 4 = 0 0 1 1"}},
    {.name = "rows", .inputs = {"b8 2x2x5 = 1 1 0", "b8 5 = 1 0 1 0 1"}},
    {.name = "both_ways", .inputs = {"b8 3x1x5 = 1 1 0 0", "b8 7x1 = 1 0 1 0 1"}},
    {.name = "constant", .inputs = {"b8 9x7 = 1 1 0 0 1", "b8 scalar const = 1"}},
    {.name = "rank_8", .inputs = {"b8 2x1x3x1x2x1x2x1 = 1 0 0", "b8 2x3x1x2x1x2x1x3 = 1 0 1 1"}},
};

static const om_op_case not_cases[] = {
    {.name = "both", .inputs = {"b8 3 = 0 1 0"}, .expected = {"1 0 1"}},
    {.name = "words", .inputs = {"b8 9 = 0 1"}, .expected = {"1 0"}},
};

static const om_op_case and_cases[] = {
    {.name = "u8", .inputs = {"u8 2 = 12 255", "u8 2 = 10 15"}, .expected = {"8 15"}},
    {.name = "i64", .inputs = {"i64 2 = -1 6", "i64 1 = 3"}, .expected = {"3 2"}},
};
static const om_op_case or_cases[] = {
    {.name = "u16", .inputs = {"u16 2 = 12 256", "u16 2 = 10 15"}, .expected = {"14 271"}},
};
static const om_op_case xor_cases[] = {
    {.name = "i32", .inputs = {"i32 2 = 12 -1", "i32 2 = 10 15"}, .expected = {"6 -16"}},
};
static const om_op_case bit_not_cases[] = {
    {.name = "i8", .inputs = {"i8 3 = 0 -1 5"}, .expected = {"-1 0 -6"}},
    {.name = "u32", .inputs = {"u32 2 = 0 1"}, .expected = {"4294967295 4294967294"}},
};
static const om_op_case shift_cases[] = {
    {.name = "left",
     .inputs = {"u8 4 = 1 3 129 1", "u8 4 = 0 7 1 8"},
     .attrs = "direction=\"LEFT\"",
     .expected = {"1 128 2 0"}},
    {.name = "right",
     .inputs = {"u32 3 = 16 5 4294967295", "u32 3 = 2 0 32"},
     .attrs = "direction=\"RIGHT\"",
     .expected = {"4 5 0"}},
    {.name = "long",
     .inputs = {"u64 1 = 1", "u64 1 = 40"},
     .attrs = "direction=\"LEFT\"",
     .expected = {"1099511627776"}},
    {.name = "nowhere", .inputs = {"u8 1", "u8 1"}, .error = "must be 'LEFT' or 'RIGHT'"},
};

static const om_op_case nan_cases[] = {
    {.name = "f32", .inputs = {"f32 4 = nan 1 inf -inf"}, .expected = {"1 0 0 0"}},
    {.name = "f64", .inputs = {"f64 2 = nan 1"}, .expected = {"1 0"}, .declined = "float64"},
    {.name = "f16", .inputs = {"f16 3 = nan 1 inf"}, .expected = {"1 0 0"}},
    {.name = "f8",
     .inputs = {"f32 3 = 1 nan -448"},
     .graph = "t = Cast(x0) to=17; y0 = IsNaN(t)",
     .expected = {"0 1 0"},
     .declined = ""},
};
static const om_op_case inf_cases[] = {
    {.name = "f8",
     .inputs = {"f32 4 = 1 inf -inf nan"},
     .graph = "t = Cast(x0) to=19 saturate=0; y0 = IsInf(t); y1 = IsInf(t) detect_negative=0",
     .output_count = 2,
     .expected = {"0 1 1 0", "0 1 0 0"},
     .declined = ""},
    {.name = "both", .inputs = {"f32 4 = nan 1 inf -inf"}, .expected = {"0 0 1 1"}},
    {.name = "positive",
     .inputs = {"f32 3 = 1 inf -inf"},
     .attrs = "detect_negative=0",
     .expected = {"0 1 0"}},
    {.name = "negative",
     .inputs = {"f64 3 = 1 inf -inf"},
     .attrs = "detect_positive=0",
     .expected = {"0 0 1"},
     .declined = "float64"},
    {.name = "negative_f32",
     .inputs = {"f32 5 = 1 inf -inf nan 0"},
     .attrs = "detect_positive=0",
     .expected = {"0 0 1 0 0"}},
    {.name = "f16", .inputs = {"f16 3 = 1 inf -inf"}, .expected = {"0 1 1"}},
};

static const om_op_case where_cases[] = {
    {.name = "scalar",
     .inputs = {"b8 1 = 1", "f32 2x3 ramp", "f32 1 = 9"},
     .expected = {"0 1 2 3 4 5"}},
    {.name = "rows",
     .inputs = {"b8 3x1 = 1 0 1", "f32 1x5 ramp", "f32 scalar = -1"},
     .expected = {"0 1 2 3 4 -1 -1 -1 -1 -1 0 1 2 3 4"}},
    {.name = "f16",
     .inputs = {"b8 2 = 1 0", "f16 2 = 1 2", "f16 2 = 3 nan"},
     .expected = {"1 nan"}},
    {.name = "i64",
     .inputs = {"b8 2 = 1 0", "i64 2 = 9007199254740993 2", "i64 1 = 3"},
     .expected = {"9007199254740993 3"}},
    {.name = "u8", .inputs = {"b8 2 = 0 1", "u8 2 = 1 2", "u8 2 = 3 4"}, .expected = {"3 2"}},
    {.name = "bool", .inputs = {"b8 2 = 0 1", "b8 1 = 1", "b8 1 = 0"}, .expected = {"0 1"}},
    {.name = "str",
     .inputs = {"b8 2 = 0 1", "str 2 = a b", "str 2 = c d"},
     .expected = {"c b"},
     .declined = "string"},
    {.name = "three_ways",
     .inputs = {"b8 2x1x1 = 1 0", "i32 3x1 = 1 2 3", "i32 4 = 4 5 6 7"},
     .expected = {"1 1 1 1 2 2 2 2 3 3 3 3 4 5 6 7 4 5 6 7 4 5 6 7"}},
    {.name = "i64_rows",
     .inputs = {"b8 3x1 = 1 0 1", "i64 1x3 = 1 2 3", "i64 scalar const = -1"},
     .expected = {"1 2 3 -1 -1 -1 1 2 3"}},
    {.name = "bool_rows",
     .inputs = {"b8 3x1 = 1 0 1", "b8 1x3 = 1 0 1", "b8 scalar = 1"},
     .expected = {"1 0 1 1 1 1 1 0 1"}},
    {.name = "f64", .inputs = {"b8 2 = 1 0", "f64 2 = 1 2", "f64 2 = 3 4"}, .expected = {"1 4"}},
    {.name = "attention_mask",
     .inputs = {"i64 2x5 = 1 1 1 0 0",
                "i64 5x1 ramp",
                "i64 5 const ramp",
                "i64 2 const = 1 2",
                "i64 4 const = 2 1 5 5",
                "f32 2x3x5x5",
                "f32 scalar const = -3.4e38",
                "f32 scalar const = 0"},
     .graph = "b = Cast(x0) to=9; u = Unsqueeze(b, x3); e = Expand(u, x4); "
              "c = LessOrEqual(x2, x1); a = And(e, c); n = Not(a); k = Where(n, x6, x7); "
              "s = Add(x5, k); y0 = Softmax(s) axis=-1"},
    {.name = "types", .inputs = {"b8 1", "f32 1", "i32 1"}, .error = "input 2 is int32"},
};

/* ---- Remainders ---- */

static const om_op_case mod_cases[] = {
    {.name = "signs",
     .inputs = {"i64 4 = -7 7 -7 7", "i64 4 = 3 -3 -3 3"},
     .expected = {"2 -2 -1 1"}},
    {.name = "fmod",
     .inputs = {"i32 4 = -7 7 -7 7", "i32 4 = 3 -3 -3 3"},
     .attrs = "fmod=1",
     .expected = {"-1 1 -1 1"}},
    {.name = "large",
     .inputs = {"i64 5 = 3 1234567890 999999999 1999999993 1500000001", "i64 1 = 13"},
     .expected = {"3 10 11 4 6"}},
    {.name = "lowest", .inputs = {"i32 1 = -2147483648", "i32 1 = -1"}, .expected = {"0"}},
    {.name = "u32",
     .inputs = {"u32 2 = 4294967295 7", "u32 1 = 10"},
     .expected = {"5 7"},
     .declined = "uint32"},
    {.name = "i8",
     .inputs = {"i8 2 = -128 127", "i8 2 = 7 -7"},
     .expected = {"5 -6"},
     .declined = "int8"},
    {.name = "f32",
     .inputs = {"f32 4 = -4.3 7.2 5 -4.3", "f32 4 = 2.1 -3.4 8 2.1"},
     .attrs = "fmod=1",
     .expected = {"-0.1 0.4 5 -0.1"},
     .scaled_error = 1e-5,
     .declined = "float32"},
    {.name = "f16",
     .inputs = {"f16 2 = -7 7", "f16 1 = 3"},
     .attrs = "fmod=1",
     .expected = {"-1 1"},
     .declined = "float16"},
    {.name = "wide",
     .inputs = {"i64 4 = -9223372036854775808 9223372036854775807 -9007199254740993 5",
                "i64 3x1 = 4294967297 -3 9223372036854775807"},
     .bit_exact = true},
    {.name = "fmod_wide",
     .inputs = {"i64 4 = -9223372036854775808 9223372036854775807 -9007199254740993 5",
                "i64 3x1 = 4294967297 -3 -9223372036854775808"},
     .attrs = "fmod=1"},
    {.name = "by_zero_constant",
     .inputs = {"i32 2", "i32 2 const = 1 0"},
     .error = "division by zero",
     .declined = "its divisor is 0"},
    {.name = "by_zero_made",
     .inputs = {"i64 2", "i32 2 = 1 0"},
     .graph = "t = Cast(x1) to=7; y0 = Mod(x0, t)",
     .error = "Integer division by zero: element 1 of the divisor is 0."},
    {.name = "by_zero", .inputs = {"i32 2", "i32 2 = 1 0"}, .error = "division by zero"},
};

/* ---- Several tensors ---- */

static void several(const om_node *node,
                    const om_ref_tensor *inputs,
                    size_t input_count,
                    om_ref_tensor *outputs,
                    size_t output_count) {
  const bool is_mean = strcmp(node->type, "Mean") == 0;
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    double sum = 0.0;
    for (size_t k = 0; k < input_count; ++k) sum += om_ref_broadcast(&inputs[k], &outputs[0], i);
    outputs[0].values[i] = is_mean ? sum / (double)input_count : sum;
  }
}

static const om_op_case several_cases[] = {
    {.name = "one", .inputs = {"f32 5"}},
    {.name = "three", .inputs = {"f32 5x1", "f32 1x4", "f32 2x1x1"}},
    {.name = "gap", .inputs = {"f32 5", "-", "f32 5"}, .error = "Input 1 is absent"},
    {.name = "two", .inputs = {"f32 3x5", "f32 5"}},
    {.name = "f64", .inputs = {"f64 5", "f64 5"}, .declined = "float64"},
    {.name = "f16", .inputs = {"f16 70", "f16 70", "f16 1"}, .scaled_error = 2e-3},
    {.name = "bf16", .inputs = {"bf16 70", "bf16 70", "bf16 1"}, .declined = "bfloat16"},
};

#define ON_CPU(type, table, function)                \
  {.op_type = (type),                                \
   .cases = (table),                                 \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = (function),                          \
   .declined = "no kernel for this operator"}

static const om_op_suite suites[] = {
    OM_OP_SUITE("Equal", compare_cases, reference),
    OM_OP_SUITE("Less", compare_cases, reference),
    OM_OP_SUITE("Greater", compare_cases, reference),
    OM_OP_SUITE("LessOrEqual", compare_cases, reference),
    OM_OP_SUITE("GreaterOrEqual", compare_cases, reference),
    OM_OP_SUITE("Equal", equal_cases, reference),
    OM_OP_SUITE("And", logic_cases, reference),
    OM_OP_SUITE("Or", logic_cases, reference),
    OM_OP_SUITE("Xor", logic_cases, reference),
    OM_OP_SUITE("Not", not_cases, NULL),
    ON_CPU("BitwiseAnd", and_cases, NULL),
    ON_CPU("BitwiseOr", or_cases, NULL),
    ON_CPU("BitwiseXor", xor_cases, NULL),
    ON_CPU("BitwiseNot", bit_not_cases, NULL),
    ON_CPU("BitShift", shift_cases, NULL),
    OM_OP_SUITE("IsNaN", nan_cases, NULL),
    OM_OP_SUITE("IsInf", inf_cases, NULL),
    OM_OP_SUITE("Where", where_cases, NULL),
    OM_OP_SUITE("Mod", mod_cases, NULL),
    OM_OP_SUITE("Sum", several_cases, several),
    OM_OP_SUITE("Mean", several_cases, several),
};

OM_OP_TESTS(suites)
