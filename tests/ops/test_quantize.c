/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. */
#include <float.h>
#include <math.h>

#include "harness/om_test.h"

/* The scale's index for an element. */
static size_t place(const om_node *node, const om_ref_tensor *x, const om_ref_tensor *s, size_t i) {
  const int64_t block = om_ref_int(node, "block_size", 0);
  int64_t index[OM_MAX_RANK];
  if (s->elems == 1 && block == 0) return 0;
  const uint32_t axis = om_ref_axis(om_ref_int(node, "axis", 1), x->rank);
  om_ref_unravel(x, i, index);
  if (block == 0) return (size_t)index[axis];
  index[axis] /= block;
  return om_ref_ravel(s, index);
}

static double limit(double v, double low, double high) {
  return v < low ? low : v > high ? high : v;
}

static double saturated(om_dtype dtype, double v) {
  switch (dtype) {
    case OM_DTYPE_I8:
      return limit(v, -128, 127);
    case OM_DTYPE_U16:
      return limit(v, 0, 65535);
    case OM_DTYPE_I16:
      return limit(v, -32768, 32767);
    case OM_DTYPE_U8:
      return limit(v, 0, 255);
    default:
      return v;
  }
}

static void quantize(const om_node *node,
                     const om_ref_tensor *inputs,
                     size_t input_count,
                     om_ref_tensor *outputs,
                     size_t output_count) {
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    const size_t at = place(node, &inputs[0], &inputs[1], i);
    const double zero = input_count > 2 && inputs[2].values ? inputs[2].values[at] : 0.0;
    const float q = (float)inputs[0].values[i] / (float)inputs[1].values[at];
    outputs[0].values[i] = saturated(outputs[0].dtype, rint((double)q) + zero);
  }
}

static void dequantize(const om_node *node,
                       const om_ref_tensor *inputs,
                       size_t input_count,
                       om_ref_tensor *outputs,
                       size_t output_count) {
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    const size_t at = place(node, &inputs[0], &inputs[1], i);
    const double zero = input_count > 2 && inputs[2].values ? inputs[2].values[at] : 0.0;
    outputs[0].values[i] = (inputs[0].values[i] - zero) * inputs[1].values[at];
  }
}

static void dynamic(const om_node *node,
                    const om_ref_tensor *inputs,
                    size_t input_count,
                    om_ref_tensor *outputs,
                    size_t output_count) {
  double low = 0.0;
  double high = 0.0;
  (void)node;
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < inputs[0].elems; ++i) {
    low = fmin(low, inputs[0].values[i]);
    high = fmax(high, inputs[0].values[i]);
  }
  float scale = ((float)high - (float)low) / 255.0f;
  if (!(scale > 0.0f)) scale = 1.0f;
  const double zero = limit(rint((double)((float)-low / scale)), 0, 255);
  if (outputs[1].values) outputs[1].values[0] = (double)scale;
  if (outputs[2].values) outputs[2].values[0] = zero;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    const float q = (float)inputs[0].values[i] / scale;
    outputs[0].values[i] = limit(rint((double)q) + zero, 0, 255);
  }
}

static const om_op_case quantize_cases[] = {
    {.name = "u8", .inputs = {"f32 3x7 range -40 40", "f32 scalar = 0.25", "u8 scalar = 128"}},
    {.name = "i8", .inputs = {"f32 3x7 range -40 40", "f32 scalar = 0.3", "i8 scalar = -3"}},
    {.name = "no_zero", .inputs = {"f32 9 range -2 9", "f32 1 = 0.03"}},
    {.name = "ties",
     .inputs = {"f32 6 = 0.25 0.75 1.25 1.75 -0.25 -0.75", "f32 scalar = 0.5", "i8 scalar"}},
    {.name = "axis", .inputs = {"f32 2x3x5 range -9 9", "f32 3 = 0.1 0.2 0.3", "u8 3 = 1 128 255"}},
    {.name = "axis_last",
     .inputs = {"f32 4x5 range -9 9", "f32 5 = 0.1 0.2 0.3 0.4 0.5", "i8 5"},
     .attrs = "axis=-1"},
    {.name = "axis_first",
     .inputs = {"f32 3x50 range -9 9", "f32 3 = 0.1 0.2 0.3"},
     .attrs = "axis=0"},
    {.name = "blocks",
     .inputs = {"f32 2x7x3 range -9 9", "f32 2x3x3 range 0.1 1", "u8 2x3x3"},
     .attrs = "axis=1 block_size=3"},
    {.name = "blocks_last",
     .inputs = {"f32 2x8 range -9 9", "f32 2x2 range 0.1 1", "i16 2x2"},
     .attrs = "axis=1 block_size=4"},
    {.name = "i16", .inputs = {"f32 40 range -9 9", "f32 scalar = 0.0002", "i16 scalar = 5"}},
    {.name = "u16", .inputs = {"f32 40 range -9 9", "f32 scalar = 0.0002", "u16 scalar = 30000"}},
    {.name = "i32", .inputs = {"i32 40", "f32 scalar = 0.7", "i8 scalar = 5"}},
    {.name = "f16", .inputs = {"f16 40", "f16 scalar = 0.125", "i8 scalar = 5"}},
    {.name = "bf16",
     .inputs = {"bf16 40", "bf16 scalar = 0.125", "u8 scalar = 5"},
     .declined = "no kernel for bfloat16"},
    {.name = "output_dtype",
     .inputs = {"f32 40 range -9 9", "f32 scalar = 0.001"},
     .attrs = "output_dtype=5"},
    {.name = "rank_8", .inputs = {"f32 2x1x3x2x1x2x3x2", "f32 3 = 0.1 0.2 0.3"}, .attrs = "axis=6"},
    {.name = "scalar", .inputs = {"f32 scalar = 3", "f32 scalar = 2", "u8 scalar = 1"}},
    {.name = "empty", .inputs = {"f32 0x3", "f32 3 = 1", "u8 3"}, .declined = "an empty tensor"},
    {.name = "empty_axis", .inputs = {"f32 3x0", "f32 0", "u8 0"}},
    {.name = "opset_10",
     .opset = 10,
     .inputs = {"f32 3x7 range -40 40", "f32 scalar = 0.25", "u8 scalar = 128"}},
    {.name = "opset_13",
     .opset = 13,
     .inputs = {"f32 2x3x5 range -9 9", "f32 3 = 0.1 0.2 0.3", "u8 3 = 1 128 255"}},
    {.name = "many",
     .inputs = {"f32 3x20011 range -40 40", "f32 scalar = 0.25", "u8 scalar = 128"}},
    {.name = "scale_shape", .inputs = {"f32 2x3", "f32 2"}, .error = "does not go with"},
    {.name = "blocks_shape",
     .inputs = {"f32 2x7", "f32 2x2"},
     .attrs = "block_size=3",
     .error = "does not go with"},
    {.name = "zero_shape",
     .inputs = {"f32 2x3", "f32 3", "u8 scalar"},
     .error = "zero point has 1"},
    {.name = "zero_type",
     .inputs = {"f32 2x3", "f32 scalar", "i32 scalar"},
     .error = "Input 2 is int32"},
    {.name = "two_types",
     .inputs = {"f32 3", "f32 scalar", "u8 scalar"},
     .attrs = "output_dtype=3",
     .error = "output_dtype is int8"},
    {.name = "no_type",
     .inputs = {"f32 3", "f32 scalar"},
     .attrs = "output_dtype=1",
     .error = "no quantized type"},
    {.name = "axis_outside", .inputs = {"f32 2x3", "f32 3"}, .attrs = "axis=2", .error = "axis"},
    {.name = "block_size",
     .inputs = {"f32 2x3", "f32 3"},
     .attrs = "block_size=-1",
     .error = "block_size"},
    {.name = "precision",
     .inputs = {"f32 2x3", "f32 scalar"},
     .attrs = "precision=10",
     .error = "precision"},
};

static const om_op_case edge_cases[] = {
    {.name = "edges",
     .inputs = {"f32 6 = inf -inf nan 1e30 -1e30 -0", "f32 scalar = 0.5", "i8 scalar = 3"},
     .expected = {"127 -128 0 127 -128 3"}},
    {.name = "u4",
     .inputs = {"f32 7 = -9 0.5 1.5 2.5 7 15 99", "f32 scalar = 1"},
     .graph = "t = QuantizeLinear(x0, x1) output_dtype=21; y0 = Cast(t) to=6",
     .expected = {"0 0 2 2 7 15 15"},
     .declined = "no kernel for a result of uint4"},
    {.name = "i4",
     .inputs = {"f32 7 = -9 -8 -0.5 2.5 7 8 1", "f32 scalar = 1"},
     .graph = "t = QuantizeLinear(x0, x1) output_dtype=22; y0 = Cast(t) to=6",
     .expected = {"-8 -8 0 2 7 7 1"},
     .declined = "no kernel for a result of int4"},
    {.name = "f8",
     .inputs = {"f32 5 = 1 3.3 1000 -2 0.25", "f32 scalar = 2"},
     .graph = "t = QuantizeLinear(x0, x1) output_dtype=17; y0 = Cast(t) to=1",
     .expected = {"0.5 1.625 448 -1 0.125"},
     .declined = "no kernel for a result of float8_e4m3fn"},
    {.name = "f8_infinite",
     .inputs = {"f32 2 = 1 200000", "f32 scalar = 2"},
     .graph = "t = QuantizeLinear(x0, x1) output_dtype=19 saturate=0; y0 = Cast(t) to=1",
     .expected = {"0.5 inf"},
     .declined = "no kernel for a result of float8_e5m2"},
};

static const om_op_case dequantize_cases[] = {
    {.name = "f64_scale",
     .inputs = {"u8 2x3 = 0 128 255 3 2 1", "f64 3 = 0.1 0.5 3", "u8 3 = 128 1 0"},
     .attrs = "axis=1",
     .expected = {"-12.8 63.5 765 -12.5 0.5 3"},
     .declined = "no kernel for a result of float64"},
    {.name = "int4_f64_scale",
     .inputs = {"i8 3 = -8 7 1", "f64 scalar = 0.1"},
     .graph = "t = Cast(x0) to=22; y0 = DequantizeLinear(t, x1)",
     .expected = {"-0.8 0.7 0.1"},
     .declined = ""},
    {.name = "u8", .inputs = {"u8 3x7", "f32 scalar = 0.25", "u8 scalar = 4"}},
    {.name = "i8", .inputs = {"i8 3x7", "f32 scalar = 0.3", "i8 scalar = -3"}},
    {.name = "i32", .inputs = {"i32 3x7", "f32 scalar = 0.3"}},
    {.name = "i32_extremes",
     .inputs = {"i32 2 = 2147483647 -2147483648", "f32 scalar = 1", "i32 scalar = -5"}},
    {.name = "axis", .inputs = {"u8 2x3x5", "f32 3 = 0.1 0.2 0.3", "u8 3 = 1 128 255"}},
    {.name = "axis_negative",
     .inputs = {"i8 2x3x5", "f32 5 = 0.1 0.2 0.3 0.4 0.5"},
     .attrs = "axis=-1"},
    {.name = "float_scale_to_half",
     .inputs = {"u8 3x5", "f32 5 = 0.1 0.2 0.3 0.4 0.5", "u8 5 = 1 2 3 4 5"},
     .attrs = "axis=-1 output_dtype=10"},
    {.name = "blocks",
     .inputs = {"i8 2x7x3", "f32 2x3x3 range 0.1 1", "i8 2x3x3"},
     .attrs = "axis=1 block_size=3"},
    {.name = "i16", .inputs = {"i16 40", "f32 scalar = 0.0002", "i16 scalar = 5"}},
    {.name = "u16", .inputs = {"u16 40", "f32 scalar = 0.0002", "u16 scalar = 30000"}},
    {.name = "f16", .inputs = {"u8 40", "f16 scalar = 0.0625", "u8 scalar = 3"}},
    {.name = "bf16",
     .inputs = {"u8 40", "bf16 scalar = 0.0625", "u8 scalar = 3"},
     .declined = "no kernel for a result of bfloat16"},
    {.name = "scalar", .inputs = {"u8 scalar = 3", "f32 scalar = 2", "u8 scalar = 1"}},
    {.name = "empty",
     .inputs = {"u8 0x3", "f32 scalar", "u8 scalar"},
     .declined = "an empty tensor"},
    {.name = "opset_10", .opset = 10, .inputs = {"u8 3x7", "f32 scalar = 0.25", "u8 scalar = 4"}},
    {.name = "zero_type",
     .inputs = {"u8 2x3", "f32 scalar", "i8 scalar"},
     .error = "Input 2 is int8"},
    {.name = "scale_type", .inputs = {"u8 2x3", "i32 scalar"}, .error = "Input 1 is int32"},
    {.name = "no_float",
     .inputs = {"u8 2x3", "f32 scalar"},
     .attrs = "output_dtype=6",
     .error = "no float"},
};

static const om_op_case small_cases[] = {
    {.name = "i4",
     .inputs = {"i32 7 = -8 -1 0 1 2 3 7", "f32 scalar = 0.5"},
     .graph = "t = Cast(x0) to=22; y0 = DequantizeLinear(t, x1)",
     .expected = {"-4 -0.5 0 0.5 1 1.5 3.5"},
     .declined = "no kernel for int4"},
    {.name = "u4_zero",
     .inputs = {"i32 3 = 0 9 15", "f32 3 = 0.5 1 2", "i32 3 = 1 2 3"},
     .graph = "t = Cast(x0) to=21; z = Cast(x2) to=21; y0 = DequantizeLinear(t, x1, z) axis=0",
     .expected = {"-0.5 7 24"},
     .declined = "no kernel for uint4"},
    {.name = "f8",
     .inputs = {"f32 3 = 0.5 448 -2", "f32 scalar = 0.5"},
     .graph = "t = Cast(x0) to=17; y0 = DequantizeLinear(t, x1)",
     .expected = {"0.25 224 -1"},
     .declined = "no kernel for float8_e4m3fn"},
    {.name = "f8_e5m2fnuz",
     .inputs = {"f32 2 = 0.5 -2", "f16 scalar = 0.5"},
     .graph = "t = Cast(x0) to=20; y0 = DequantizeLinear(t, x1)",
     .expected = {"0.25 -1"},
     .declined = "no kernel for float8_e5m2fnuz"},
};

static const om_op_case dynamic_cases[] = {
    {.name = "both_signs",
     .inputs = {"f32 3x7 range -3 5"},
     .output_count = 3,
     .shapes = {"3x7", "scalar", "scalar"}},
    {.name = "positive", .inputs = {"f32 4 = 1 2 3 4"}, .output_count = 3},
    {.name = "f64",
     .inputs = {"f64 3 = -1 0 1.55"},
     .output_count = 3,
     .expected = {"0 100 255", "0.01", "100"},
     .scaled_error = 1e-6,
     .declined = "no kernel for float64"},
    {.name = "negative", .inputs = {"f32 4 = -1 -2 -3 -4"}, .output_count = 3},
    {.name = "zeros", .inputs = {"f32 2x2 = 0"}, .output_count = 3},
    {.name = "empty", .inputs = {"f32 0"}, .output_count = 3},
    {.name = "large", .inputs = {"f32 3x7001 range -3 50"}, .output_count = 3},
};

#define OM_QUANTIZE_SUITE(type, table, function)     \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = function}

static const om_op_case contributed_cases[] = {
    {.name = "u16", .inputs = {"f32 40 range -9 9", "f32 scalar = 0.0002", "u16 scalar = 30000"}},
    {.name = "i8_axis",
     .inputs = {"f32 4x5 range -9 9", "f32 4 range 0.1 1", "i8 4"},
     .attrs = "axis=0"},
};

static const om_op_case contributed_back_cases[] = {
    {.name = "u16", .inputs = {"u16 40", "f32 scalar = 0.0002", "u16 scalar = 30000"}},
    {.name = "i8_axis", .inputs = {"i8 4x5", "f32 4 range 0.1 1", "i8 4"}, .attrs = "axis=0"},
};

static const om_op_suite suites[] = {
    {.op_type = "QuantizeLinear",
     .domain = "com.microsoft",
     .cases = contributed_cases,
     .case_count = sizeof contributed_cases / sizeof contributed_cases[0],
     .reference = quantize},
    {.op_type = "DequantizeLinear",
     .domain = "com.microsoft",
     .cases = contributed_back_cases,
     .case_count = sizeof contributed_back_cases / sizeof contributed_back_cases[0],
     .reference = dequantize},
    OM_QUANTIZE_SUITE("QuantizeLinear", quantize_cases, quantize),
    OM_QUANTIZE_SUITE("QuantizeLinear", edge_cases, NULL),
    OM_QUANTIZE_SUITE("DequantizeLinear", dequantize_cases, dequantize),
    OM_QUANTIZE_SUITE("DequantizeLinear", small_cases, NULL),
    OM_QUANTIZE_SUITE("DynamicQuantizeLinear", dynamic_cases, dynamic),
};

OM_OP_TESTS(suites)
