/* The operators of elementwise.def: every line gets the same cases. The reference is the line read
 * in double precision. */
#include <math.h>

#include "cpu/exact/om_elementwise_f64.h"
#include "harness/om_test.h"
#include "ops/op_elementwise.h"

/* The parameters that the operator's own entry makes of the attributes. */
static om_elementwise_params params_of(const om_node *node) {
  om_elementwise_params params = {0};
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  const om_op *op = om_op_find("", node->type, node->opset, NULL);
  if (!op || op->resolve(&ctx, node, &params) != OM_OK) params.number = 0;
  return params;
}

static double apply(const om_elementwise_params *params, double x, double y) {
  double scalars[2] = {(double)params->scalars[0], (double)params->scalars[1]};
  double result = 0.0;
  const void *in[] = {&x, &y};
  om_elementwise_f64_kernel(params->number)(in, &result, 1, scalars);
  return result;
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const om_elementwise_params params = params_of(node);
  const bool is_many = params.number == OM_ELEMENTWISE_Min || params.number == OM_ELEMENTWISE_Max;
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    double value = om_ref_broadcast(&inputs[0], &outputs[0], i);
    if (input_count == 1) {
      if (!is_many) value = apply(&params, value, 0.0);
    } else {
      for (size_t k = 1; k < input_count; ++k) {
        value = apply(&params, value, om_ref_broadcast(&inputs[k], &outputs[0], i));
      }
    }
    /* A subnormal result counts as zero. */
    const bool is_tiny = outputs[0].dtype == OM_DTYPE_F32 && fabs(value) < 0x1p-126;
    outputs[0].values[i] = is_tiny ? copysign(0.0, value) : value;
  }
}

static const om_op_case unary_cases[] = {
    {.name = "rows", .inputs = {"f32 4x7"}},
    {.name = "scalar", .inputs = {"f32 scalar"}},
    {.name = "long", .inputs = {"f32 40007"}},
    {.name = "rank_8", .inputs = {"f32 2x1x3x2x1x2x3x2"}},
    {.name = "wide", .inputs = {"f32 1024 range -20 20"}},
    {.name = "edges", .inputs = {"f32 99 edges"}, .elem_error = 4e-7, .exact_only = true},
    {.name = "empty", .inputs = {"f32 3x0"}, .declined = "empty"},
    {.name = "f64", .inputs = {"f64 3x5"}, .declined = "float64"},
    {.name = "f16", .inputs = {"f16 3x65"}},
    {.name = "f16_fours", .inputs = {"f16 4x1x9x2"}},
    {.name = "f16_edges", .inputs = {"f16 99 edges"}, .exact_only = true},
    {.name = "bf16", .inputs = {"bf16 200"}, .declined = "bfloat16"},
};

/* A factor that cancels near the limit: relative errors of small results mean nothing. */
static const om_op_case cancelling_cases[] = {
    {.name = "rows", .inputs = {"f32 4x7"}},
    {.name = "wide", .inputs = {"f32 1023 range -20 20"}},
    {.name = "f64", .inputs = {"f64 3x5"}, .declined = "float64"},
    {.name = "f16", .inputs = {"f16 3x65"}},
};

static const om_op_case gelu_cases[] = {
    {.name = "erf", .inputs = {"f32 4x7"}},
    {.name = "tanh", .inputs = {"f32 1023 range -20 20"}, .attrs = "approximate=\"tanh\""},
    {.name = "neither",
     .inputs = {"f32 4"},
     .attrs = "approximate=\"other\"",
     .error = "must be 'none' or 'tanh'"},
};

static const om_op_case binary_cases[] = {
    {.name = "same", .inputs = {"f32 4x7", "f32 4x7"}},
    {.name = "long", .inputs = {"f32 40003", "f32 40003"}},
    {.name = "scalar_second", .inputs = {"f32 5x3", "f32 scalar"}},
    {.name = "scalar_first", .inputs = {"f32 1", "f32 5x3"}},
    {.name = "constant_first", .inputs = {"f32 scalar const", "f32 5x3"}},
    {.name = "constant_second", .inputs = {"f32 5x3", "f32 1 const"}},
    {.name = "row", .inputs = {"f32 6x5", "f32 5"}},
    {.name = "column", .inputs = {"f32 6x5", "f32 6x1"}},
    {.name = "channel", .inputs = {"f32 2x3x4x5", "f32 3x1x1 const"}},
    {.name = "both_ways", .inputs = {"f32 7x1x5", "f32 4x1"}},
    {.name = "rank_8", .inputs = {"f32 2x1x3x1x2x1x2x1", "f32 2x3x1x2x1x2x1x3"}},
    {.name = "higher_second", .inputs = {"f32 2x3", "f32 1x1x2x3"}},
    {.name = "edges",
     .inputs = {"f32 1089 edges", "f32 1089 edges"},
     .elem_error = 5e-7,
     .exact_only = true},
    {.name = "unfit", .inputs = {"f32 2x3", "f32 2x4"}, .error = "do not broadcast"},
    {.name = "f64", .inputs = {"f64 3x5", "f64 5"}, .declined = "float64"},
    {.name = "f16", .inputs = {"f16 3x65", "f16 3x1"}},
    {.name = "f16_same", .inputs = {"f16 8x9", "f16 8x9"}},
    {.name = "f16_constant_first", .inputs = {"f16 1 const", "f16 5x3"}},
    {.name = "f16_row", .inputs = {"f16 7x5", "f16 5 const"}},
    {.name = "f16_both_ways", .inputs = {"f16 7x1x5", "f16 4x1"}},
    {.name = "f16_edges", .inputs = {"f16 1089 edges", "f16 1089 edges"}, .exact_only = true},
    {.name = "bf16", .inputs = {"bf16 200", "bf16 scalar"}, .declined = "bfloat16"},
};

static const om_op_case integer_cases[] = {
    {.name = "i8", .inputs = {"i8 9x5", "i8 5 = 1 -3 2 7 -1"}, .declined = "int8"},
    {.name = "i16", .inputs = {"i16 9", "i16 9 = 1 -3 2"}, .declined = "int16"},
    {.name = "i32", .inputs = {"i32 9x2", "i32 9x1 = 4 -1 3"}},
    {.name = "i32_both_ways", .inputs = {"i32 3x1x5", "i32 7x1"}},
    {.name = "i64_rank_8", .inputs = {"i64 2x1x3x1x2x1x2x1", "i64 2x3x1x2x1x2x1x3"}},
    {.name = "i64_constant", .inputs = {"i64 9x7", "i64 7 const = -2 5"}},
    {.name = "i64", .inputs = {"i64 9", "i64 1 = -2"}},
    {.name = "u8", .inputs = {"u8 4 = 5 6 7 8", "u8 4 = 1 2 3 1"}, .declined = "uint8"},
    {.name = "u32", .inputs = {"u32 4 = 5 6 7 8", "u32 4 = 1 2 3 1"}, .declined = "uint32"},
};

static const om_op_case many_cases[] = {
    {.name = "one", .inputs = {"f32 5"}},
    {.name = "three", .inputs = {"f32 5x1", "f32 1x4", "f32 2x1x1"}},
    {.name = "three_edges", .inputs = {"f32 99 edges", "f32 99 edges", "f32 9x1"}},
    {.name = "three_i64", .inputs = {"i64 5x4", "i64 4", "i64 5x1"}},
    {.name = "gap", .inputs = {"f32 5", "-", "f32 5"}, .error = "Input 1 is absent"},
    {.name = "one_half", .inputs = {"f16 70"}},
    {.name = "four_halves", .inputs = {"f16 7x3", "f16 7x1", "f16 3", "f16 7x3"}},
};

static const om_op_case type_cases[] = {
    {.name = "types", .inputs = {"f32 2", "f64 2"}, .error = "float64"},
    {.name = "too_large", .inputs = {"f32 300000x1", "f32 300000"}, .error = "[300000, 300000]"},
};

/* Before opset 7 the second operand is aligned by attributes. */
#define BY_AXIS "it broadcasts by attributes"
static const om_op_case old_cases[] = {
    {.name = "axis",
     .opset = 6,
     .inputs = {"f32 2x3x2 ramp", "f32 3 = 10 20 30"},
     .attrs = "broadcast=1 axis=1",
     .expected = {"10 11 22 23 34 35 16 17 28 29 40 41"},
     .declined = BY_AXIS},
    {.name = "suffix",
     .opset = 6,
     .inputs = {"f32 2x3 ramp", "f32 3 = 10 20 30"},
     .attrs = "broadcast=1",
     .expected = {"10 21 32 13 24 35"},
     .declined = BY_AXIS},
    {.name = "same",
     .opset = 6,
     .inputs = {"f32 3 ramp", "f32 3 ramp"},
     .expected = {"0 2 4"},
     .declined = BY_AXIS},
    {.name = "scalar",
     .opset = 6,
     .inputs = {"f32 2x2 ramp", "f32 scalar = 5"},
     .attrs = "broadcast=1 axis=0",
     .expected = {"5 6 7 8"},
     .declined = BY_AXIS},
    {.name = "unfit",
     .opset = 6,
     .inputs = {"f32 2x3", "f32 3"},
     .attrs = "broadcast=1 axis=0",
     .error = "do not broadcast from axis 0"},
};

static const om_op_case newest_cases[] = {
    {.name = "rows", .opset = 24, .inputs = {"f32 4x7"}},
    {.name = "alpha", .opset = 24, .inputs = {"f32 1023 range -20 20"}, .attrs = "alpha=0.7f"},
    {.name = "f16", .opset = 24, .inputs = {"f16 3x65"}},
};

/* Values on which integers and doubles differ. */
static const om_op_case div_cases[] = {
    {.name = "signs",
     .inputs = {"i64 4 = 8 -8 7 -7", "i64 4 = -3 3 -2 2"},
     .expected = {"-2 -2 -3 -3"}},
    {.name = "wide",
     .inputs = {"i64 4 = -9223372036854775808 9223372036854775807 -9007199254740993 5",
                "i64 4 = -1 4294967297 3 -9223372036854775808"},
     .expected = {"-9223372036854775808 2147483647 -3002399751580331 0"}},
    {.name = "lowest",
     .inputs = {"i32 1 = -2147483648", "i32 1 = -1"},
     .expected = {"-2147483648"}},
    {.name = "lowest_i8",
     .inputs = {"i8 1 = -128", "i8 1 = -1"},
     .expected = {"-128"},
     .declined = "int8"},
    {.name = "by_zero",
     .inputs = {"i32 3", "i32 3 = 1 0 2"},
     .error = "Integer division by zero: element 1 of the divisor is 0."},
    {.name = "by_zero_made",
     .inputs = {"i32 6", "i32 6 = 1 2 3 2 2 0"},
     .graph = "t = Mul(x1, x1); y0 = Div(x0, t)",
     .error = "Integer division by zero: element 5 of the divisor is 0."},
    {.name = "by_zero_of_none", .inputs = {"i32 0", "i32 1 = 0"}, .declined = "empty"},
};

static const om_op_case wrap_cases[] = {
    {.name = "i32",
     .inputs = {"i32 3 = 65537 -2147483648 3", "i32 3 = 65537 -1 -5"},
     .expected = {"131073 -2147483648 -15"}},
    {.name = "i64",
     .inputs = {"i64 3 = 4294967297 9223372036854775807 -3", "i64 3 = 4294967297 2 5000000000"},
     .expected = {"8589934593 -2 -15000000000"}},
};

static const om_op_case lowest_cases[] = {
    {.name = "i32", .inputs = {"i32 2 = -2147483648 -5"}, .expected = {"-2147483648 5"}},
    {.name = "i64",
     .inputs = {"i64 2 = -9223372036854775808 -4294967296"},
     .expected = {"-9223372036854775808 4294967296"}},
};

static const om_op_case pow_cases[] = {
    {.name = "square", .inputs = {"f32 100 range -9 9", "f32 scalar const = 2"}, .bit_exact = true},
    {.name = "cube", .inputs = {"f32 100 range -9 9", "f32 scalar const = 3"}},
    {.name = "root", .inputs = {"f32 100 range 0 9", "f32 scalar const = 0.5"}, .bit_exact = true},
    {.name = "integer_exponent",
     .inputs = {"f32 4 = 2 -2 3 0.5", "i64 4 = 3 3 -1 -2"},
     .expected = {"8 -8 0.33333334 4"},
     .declined = "int64"},
    {.name = "whole_exponent", .inputs = {"f32 100 range -9 9", "i64 scalar const = 3"}},
    {.name = "whole_square",
     .inputs = {"f32 10x3 range -9 9", "i32 1 const = 2"},
     .bit_exact = true},
    {.name = "half_whole_exponent", .inputs = {"f16 33 range 0.5 4", "i64 scalar const = -2"}},
    {.name = "half_base",
     .inputs = {"f16 3 = 2 -2 3", "i32 3 = 3 3 2"},
     .expected = {"8 -8 9"},
     .declined = "int32"},
    {.name = "integers",
     .inputs = {"i32 6 = 2 -3 7 1 -1 5", "i32 6 = 10 3 0 -4 -3 -1"},
     .expected = {"1024 -27 1 1 -1 0"},
     .declined = "int32"},
    {.name = "integer_base",
     .inputs = {"i32 3 = 1 2 3", "f32 3 = 4 5 0.5"},
     .expected = {"1 32 1"},
     .declined = "int32"},
    {.name = "signs",
     .inputs = {"f32 10 = -2 -2 -2 0 -0 -0 1 2 -1 0", "f32 10 = 3 2 0.5 -1 -1 3 1e30 1e30 1e30 0"},
     .expected = {"-8 4 nan inf -inf -0 1 inf 1 1"}},
};

static const om_op_case clip_cases[] = {
    {.name = "attributes", .opset = 6, .inputs = {"f32 50"}, .attrs = "min=-0.5f max=0.75f"},
};

static const om_op_case clip_input_cases[] = {
    {.name = "both",
     .inputs = {"f32 5 = -2 -0.5 0 0.5 2", "f32 scalar const = -1", "f32 scalar const = 1"},
     .expected = {"-1 -0.5 0 0.5 1"}},
    {.name = "least", .inputs = {"f32 3 = -2 0 2", "f32 scalar const = 0"}, .expected = {"0 0 2"}},
    {.name = "most",
     .inputs = {"f32 3 = -2 0 2", "-", "f32 scalar const = 0"},
     .expected = {"-2 0 0"}},
    {.name = "crossed",
     .inputs = {"f32 3 = -2 0 2", "f32 scalar const = 1", "f32 scalar const = -1"},
     .expected = {"-1 -1 -1"}},
    {.name = "infinite", .inputs = {"f32 2 = -inf inf"}, .expected = {"-inf inf"}},
    {.name = "run_time",
     .inputs = {"f32 2 = -3 3", "f32 scalar = 0"},
     .expected = {"0 3"},
     .shapes = {"2"}},
    {.name = "both_at_run_time",
     .inputs = {"f32 2x4 = -3 -1 0 1 2 3 nan -0", "f32 1 = -0.5", "f32 scalar = 2"},
     .expected = {"-0.5 -0.5 0 1 2 2 nan -0"}},
    {.name = "crossed_at_run_time",
     .inputs = {"f32 3 = -2 0 2", "f32 scalar = 1", "f32 scalar const = -1"},
     .expected = {"-1 -1 -1"}},
    {.name = "i32",
     .inputs = {"i32 5 = -2147483648 -5 5 100 2147483647",
                "i32 scalar const = -7",
                "i32 scalar const = 100"},
     .expected = {"-7 -5 5 100 100"}},
    {.name = "i32_run_time",
     .inputs = {"i32 4 = -100 -5 5 100", "-", "i32 scalar = 6"},
     .expected = {"-100 -5 5 6"}},
    {.name = "i64",
     .inputs = {"i64 5 = -9223372036854775808 -4294967297 0 4294967296 9223372036854775807",
                "i64 scalar const = -4294967296",
                "i64 1 = 4294967297"},
     .expected = {"-4294967296 -4294967296 0 4294967296 4294967297"}},
    {.name = "i64_crossed",
     .inputs = {"i64 3 = -2 0 2", "i64 scalar = 1", "i64 scalar = -1"},
     .expected = {"-1 -1 -1"}},
    {.name = "i64_without_bounds", .inputs = {"i64 3 = -2 0 2"}, .expected = {"-2 0 2"}},
    {.name = "integers_of_old",
     .opset = 6,
     .inputs = {"i32 3 = -2 0 2"},
     .attrs = "min=-1.0f",
     .error = "begins with opset 11"},
    {.name = "integers",
     .inputs = {"i8 4 = -100 -5 5 100", "i8 scalar = -7"},
     .expected = {"-7 -5 5 100"},
     .declined = "int8"},
    {.name = "unsigned",
     .inputs = {"u64 3 = 1 5 9", "-", "u64 scalar = 6"},
     .expected = {"1 5 6"},
     .declined = "uint64"},
    {.name = "half",
     .inputs = {"f16 4 = -3 -1 1 3", "f16 scalar const = -2", "f16 scalar const = 2"},
     .expected = {"-2 -1 1 2"}},
    {.name = "half_run_time",
     .inputs = {"f16 2 = -1 1", "f16 scalar = 0"},
     .expected = {"0 1"},
     .shapes = {"2"}},
    {.name = "double",
     .inputs = {"f64 2 = -3 3", "f64 scalar = -2.5"},
     .expected = {"-2.5 3"},
     .declined = "float64"},
    {.name = "vector_bound", .inputs = {"f32 2", "f32 2"}, .error = "must have one element"},
};

/* Operators in one pass: on the CPU each rounds its own result, and so must the device's chain. */
static const om_op_case chain_cases[] = {
    {.name = "largest_of_three",
     .inputs = {"f32 5x4", "f32 5x4", "f32 4"},
     .graph = "t = Exp(x0); u = Max(t, x1, x2); y0 = Neg(u)"},
    {.name = "sum_and_mean",
     .inputs = {"f32 3x5", "f32 3x5", "f32 5"},
     .graph = "t = Exp(x0); u = Sum(t, x1, x2); v = Mean(u, x1, t); y0 = Sum(v, x0)"},
    {.name = "f16_sum_and_mean",
     .inputs = {"f16 3x5", "f16 3x5", "f16 5"},
     .graph = "t = Exp(x0); u = Sum(t, x1, x2); v = Mean(u, x1, t); y0 = Sum(v, x0)"},
    {.name = "clipped_by_what_is_made",
     .inputs = {"f32 5x3", "f32 scalar = -0.25", "f32 scalar = 0.5", "f32 3"},
     .graph = "t = Mul(x0, x3); u = Clip(t, x1, x2); y0 = Add(u, x3)"},
    {.name = "f16_row",
     .inputs = {"f16 9x7", "f16 7 const"},
     .graph = "t = Mul(x0, x1); u = Add(t, x1); v = Tanh(u); y0 = Div(v, x1)"},
    {.name = "f16_kept",
     .inputs = {"f16 4x6", "f16 4x6"},
     .graph = "t = Mul(x0, x1); u = Sigmoid(t); v = Mul(t, u); y0 = Sub(x1, v)"},
    {.name = "f16_scalars",
     .inputs = {"f16 33 range -400 400", "f16 1 const = 300"},
     .graph = "t = Mul(x0, x1); u = Div(t, x1); y0 = LeakyRelu(u) alpha=0.3f"},
    {.name = "f16_small",
     .inputs = {"f16 64 range -1e-4 1e-4", "f16 1 const = 0.013"},
     .graph = "t = Mul(x0, x1); u = Add(t, t); v = Div(u, x1); y0 = Abs(v)"},
    {.name = "f16_edges",
     .inputs = {"f16 121 edges", "f16 121 edges"},
     .graph = "t = Mul(x0, x1); u = Add(t, x1); y0 = Div(u, x0)"},
    {.name = "f16_long",
     .inputs = {"f16 31"},
     .graph =
         "a = Exp(x0); b = Neg(a); c = Exp(b); d = Sin(c); e = Exp(d); f = Sqrt(e); g = Cos(f); "
         "h = Exp(g); i = Log(h); y0 = Erf(i)"},
};

/* Fast mode too is within its limit of these. */
static const om_op_case turning_cases[] = {
    {.name = "hundreds", .inputs = {"f32 4096 range -700 700"}},
    {.name = "thousands", .inputs = {"f32 33x131 range -1e5 1e5"}},
    {.name = "millions", .inputs = {"f32 1000 range -1e9 1e9"}},
    {.name = "small", .inputs = {"f32 1000 range -0.01 0.01"}, .elem_error = 4e-7},
    {.name = "thousands_of_halves", .inputs = {"f16 4096 range -60000 60000"}},
};

/* Quotients that a bit makes a whole number more or less, as QuantizeLinear spelled out has them.
 * Fast mode too has the right ones. */
#define QUOTIENT_INPUTS                                                                \
  "f32 48 = 0.0196078438 0.0294117667 0.0588235334 0.0686274543 0.117647067 "          \
  "0.127450988 0.215686277 0.225490198 0.509803951 0.519607842 0.960784376 "           \
  "0.970588267 0.100000001 0.150000006 0.300000012 0.349999994 0.600000024 "           \
  "0.650000036 1.10000002 1.14999998 2.60000014 2.6500001 4.9000001 4.95000029 "       \
  "0.333333343 0.5 1 1.16666675 2 2.16666675 3.66666675 3.83333349 8.66666698 "        \
  "8.83333397 16.333334 16.5 0.0274509806 0.0411764719 0.0823529437 0.0960784331 "     \
  "0.164705887 0.178431377 0.301960796 0.315686285 0.713725507 0.727450967 "           \
  "1.34509802 1.35882354",                                                             \
      "f32 48 = 0.0196078438 0.0196078438 0.0196078438 0.0196078438 0.0196078438 "     \
      "0.0196078438 0.0196078438 0.0196078438 0.0196078438 0.0196078438 0.0196078438 " \
      "0.0196078438 0.100000001 0.100000001 0.100000001 0.100000001 0.100000001 "      \
      "0.100000001 0.100000001 0.100000001 0.100000001 0.100000001 0.100000001 "       \
      "0.100000001 0.333333343 0.333333343 0.333333343 0.333333343 0.333333343 "       \
      "0.333333343 0.333333343 0.333333343 0.333333343 0.333333343 0.333333343 "       \
      "0.333333343 0.0274509806 0.0274509806 0.0274509806 0.0274509806 0.0274509806 "  \
      "0.0274509806 0.0274509806 0.0274509806 0.0274509806 0.0274509806 0.0274509806 " \
      "0.0274509806"

static const om_op_case quotient_cases[] = {
    {.name = "of_a_tie",
     .inputs = {QUOTIENT_INPUTS},
     .graph = "t = Div(x0, x1); y0 = Round(t)",
     .expected = {"1 2 3 4 6 6 11 12 26 26 49 50 1 2 3 4 6 7 11 12 26 26 49 50 1 2 3 4 6 6 11 12 "
                  "26 27 49 50 1 2 3 4 6 6 11 12 26 26 49 50"}},
    {.name = "of_a_whole",
     .inputs = {QUOTIENT_INPUTS},
     .graph = "t = Div(x0, x1); y0 = Floor(t)",
     .expected = {"1 1 3 3 6 6 11 11 26 26 49 49 1 1 3 3 6 6 11 11 26 26 49 49 1 1 3 3 6 6 11 11 "
                  "26 26 49 49 1 1 3 3 6 6 11 11 26 26 49 49"}},
};

/* Fast mode too has most digits of small results. */
static const om_op_case small_result_cases[] = {
    {.name = "far_below", .inputs = {"f32 1000 range -14 -8"}, .elem_error = 3e-5},
};
static const om_op_case near_zero_cases[] = {
    {.name = "near_zero", .inputs = {"f32 1000 range -0.001 0.001"}, .elem_error = 3e-5},
};

/* Behind a kernel of another kind, where other operations join its chain. */
static const om_op_case turned_cases[] = {
    {.name = "behind_a_product",
     .inputs = {"f32 4x8 range -900 900", "f32 8x6 const"},
     .graph = "t = MatMul(x0, x1); u = Cos(t); y0 = Neg(u)",
     .exact_only = true},
    {.name = "behind_a_sum",
     .inputs = {"f32 4x800 range 1 2"},
     .graph = "t = ReduceSum(x0); u = Sin(t); y0 = Neg(u)",
     .exact_only = true},
    {.name = "behind_an_operation",
     .inputs = {"f32 4x80 range -900 900", "f32 80"},
     .graph = "t = Add(x0, x1); u = Sin(t); v = Sigmoid(u); y0 = Mul(v, t)"},
};

static const om_op_case hard_sigmoid_cases[] = {
    {.name = "attributes", .inputs = {"f32 50 range -9 9"}, .attrs = "alpha=0.4f beta=0.3f"},
};
static const om_op_case alpha_cases[] = {
    {.name = "alpha", .inputs = {"f32 50 range -9 9"}, .attrs = "alpha=0.7f"},
};
static const om_op_case unsigned_cases[] = {
    {.name = "i8", .inputs = {"i8 20"}, .declined = "int8"},
    {.name = "i64", .inputs = {"i64 20"}},
    {.name = "i32", .inputs = {"i32 5x7"}},
};

static const om_op_case prelu_cases[] = {
    {.name = "i32",
     .inputs = {"i32 4 = -2 -1 0 3", "i32 1 = 5"},
     .expected = {"-10 -5 0 3"},
     .declined = "int32"},
    {.name = "i64_wraps",
     .inputs = {"i64 1 = -9223372036854775808", "i64 1 = 2"},
     .expected = {"0"},
     .declined = "int64"},
    {.name = "u32",
     .inputs = {"u32 3 = 0 1 9", "u32 3 = 5"},
     .expected = {"0 1 9"},
     .declined = "uint32"},
};
static const om_op_case erf_cases[] = {
    {.name = "i8",
     .inputs = {"i8 6 = -128 -6 -5 5 6 127"},
     .expected = {"-1 -1 0 0 1 1"},
     .declined = "int8"},
    {.name = "u64", .inputs = {"u64 3 = 0 5 6"}, .expected = {"0 0 1"}, .declined = "uint64"},
};
static const om_op_case shrink_cases[] = {
    {.name = "attributes",
     .inputs = {"f32 7 = -3 -1.5 -1 0 1 1.5 3"},
     .attrs = "lambd=1.25f bias=0.5f",
     .expected = {"-2.5 -1 0 0 0 1 2.5"}},
    {.name = "nan", .inputs = {"f32 2 = nan inf"}, .expected = {"0 inf"}},
    {.name = "i8",
     .inputs = {"i8 5 = -128 -2 0 2 127"},
     .attrs = "lambd=1.5f bias=-2.5f",
     .expected = {"-128 -4 0 4 127"},
     .declined = "int8"},
    {.name = "u64",
     .inputs = {"u64 3 = 0 2 5"},
     .attrs = "lambd=1.0f bias=1.5f",
     .expected = {"0 0 3"},
     .declined = "uint64"},
};

static const om_op_suite suites[] = {
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define IS_CANCELLING(number) \
  ((number) == OM_ELEMENTWISE_Gelu || (number) == OM_ELEMENTWISE_GeluTanh)
#define OM_UNARY(number, type, name, opset, scalar_count, expression) \
  {.op_type = (opset) == 0 ? "Gelu" : #type,                          \
   .cases = (opset) > 21            ? newest_cases                    \
            : IS_CANCELLING(number) ? cancelling_cases                \
                                    : unary_cases,                    \
   .case_count = (opset) > 21            ? COUNT(newest_cases)        \
                 : IS_CANCELLING(number) ? COUNT(cancelling_cases)    \
                                         : COUNT(unary_cases),        \
   .reference = reference},
#define OM_BINARY(number, type, name, opset, expression) \
  OM_OP_SUITE(#type, binary_cases, reference),
#include "ops/elementwise.def"
#undef OM_UNARY
#undef OM_BINARY
    OM_OP_SUITE("Gelu", gelu_cases, reference),
    OM_OP_SUITE("Sin", turning_cases, reference),
    OM_OP_SUITE("Cos", turning_cases, reference),
    OM_OP_SUITE("Sin", turned_cases, NULL),
    OM_OP_SUITE("Div", quotient_cases, NULL),
    OM_OP_SUITE("Softplus", small_result_cases, reference),
    OM_OP_SUITE("Mish", small_result_cases, reference),
    OM_OP_SUITE("Elu", near_zero_cases, reference),
    OM_OP_SUITE("Selu", near_zero_cases, reference),
    OM_OP_SUITE("Celu", near_zero_cases, reference),
    OM_OP_SUITE("Add", integer_cases, reference),
    OM_OP_SUITE("Sub", integer_cases, reference),
    OM_OP_SUITE("Mul", integer_cases, reference),
    OM_OP_SUITE("Min", integer_cases, reference),
    OM_OP_SUITE("Max", integer_cases, reference),
    OM_OP_SUITE("Min", many_cases, reference),
    OM_OP_SUITE("Max", many_cases, reference),
    OM_OP_SUITE("Div", div_cases, NULL),
    OM_OP_SUITE("Mul", wrap_cases, NULL),
    OM_OP_SUITE("Neg", lowest_cases, NULL),
    OM_OP_SUITE("Abs", lowest_cases, NULL),
    OM_OP_SUITE("Pow", pow_cases, reference),
    OM_OP_SUITE("Clip", clip_cases, reference),
    OM_OP_SUITE("Clip", clip_input_cases, NULL),
    OM_OP_SUITE("HardSigmoid", hard_sigmoid_cases, reference),
    OM_OP_SUITE("Elu", alpha_cases, reference),
    OM_OP_SUITE("Celu", alpha_cases, reference),
    OM_OP_SUITE("LeakyRelu", alpha_cases, reference),
    OM_OP_SUITE("ThresholdedRelu", alpha_cases, reference),
    OM_OP_SUITE("Mul", chain_cases, NULL),
    OM_OP_SUITE("Add", type_cases, NULL),
    OM_OP_SUITE("Add", old_cases, NULL),
    OM_OP_SUITE("Shrink", shrink_cases, NULL),
    OM_OP_SUITE("PRelu", prelu_cases, NULL),
    OM_OP_SUITE("Erf", erf_cases, NULL),
    OM_OP_SUITE("Neg", unsigned_cases, reference),
    OM_OP_SUITE("Abs", unsigned_cases, reference),
    OM_OP_SUITE("Sign", unsigned_cases, reference),
    OM_OP_SUITE("Relu", unsigned_cases, reference),
};

OM_OP_TESTS(suites)
