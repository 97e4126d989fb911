/* The contributed operators on 8-bit tensors. */
#include <math.h>

#include "harness/om_test.h"

static double saturated(double v, om_dtype dtype) {
  if (dtype == OM_DTYPE_I8) return fmin(fmax(v, -128.0), 127.0);
  return fmin(fmax(v, 0.0), 255.0);
}

/* A scale at `index`, its zero point behind it. */
static double scale_of(const om_ref_tensor *in, size_t index) {
  return in[index].values[0];
}
static double zero_of(const om_ref_tensor *in, size_t count, size_t index) {
  return index + 1 < count && in[index + 1].values ? in[index + 1].values[0] : 0.0;
}

static float real_at(const om_ref_tensor *in, size_t count, size_t index, double byte) {
  return (float)(byte - zero_of(in, count, index)) * (float)scale_of(in, index);
}

static double byte_of(
    const om_ref_tensor *in, size_t count, size_t index, float value, om_dtype dtype) {
  const float quotient = value / (float)scale_of(in, index);
  return saturated(rint((double)quotient) + zero_of(in, count, index), dtype);
}

static void binary(const om_node *node,
                   const om_ref_tensor *in,
                   size_t count,
                   om_ref_tensor *out,
                   size_t output_count) {
  const bool adds = strcmp(node->type, "QLinearAdd") == 0;
  (void)output_count;
  for (size_t i = 0; i < out->elems; ++i) {
    const float a = real_at(in, count, 1, om_ref_broadcast(&in[0], out, i));
    const float b = real_at(in, count, 4, om_ref_broadcast(&in[3], out, i));
    out->values[i] = byte_of(in, count, 6, adds ? a + b : a * b, out->dtype);
  }
}

static void unary(const om_node *node,
                  const om_ref_tensor *in,
                  size_t count,
                  om_ref_tensor *out,
                  size_t output_count) {
  (void)output_count;
  for (size_t i = 0; i < out->elems; ++i) {
    const float x = real_at(in, count, 1, in[0].values[i]);
    float y = x < 0.0f ? x * (float)om_ref_float(node, "alpha", (double)0.01f) : x;
    if (strcmp(node->type, "QLinearSigmoid") == 0) y = (float)(1.0 / (1.0 + exp(-(double)x)));
    out->values[i] = byte_of(in, count, 3, y, out->dtype);
  }
}

static void pool(const om_node *node,
                 const om_ref_tensor *in,
                 size_t count,
                 om_ref_tensor *out,
                 size_t output_count) {
  const bool is_last = om_ref_int(node, "channels_last", 0) != 0;
  const size_t places = in[0].elems / out->elems;
  const size_t channels = (size_t)in[0].dims[is_last ? in[0].rank - 1 : 1];
  (void)output_count;
  for (size_t i = 0; i < out->elems; ++i) {
    double sum = 0.0;
    for (size_t k = 0; k < places; ++k) {
      const size_t at =
          is_last ? (i / channels * places + k) * channels + i % channels : i * places + k;
      sum += in[0].values[at] - zero_of(in, count, 1);
    }
    const float factor = (float)scale_of(in, 1) / ((float)scale_of(in, 3) * (float)places);
    const float value = (float)sum * factor;
    out->values[i] = saturated(rint((double)value) + zero_of(in, count, 3), out->dtype);
  }
}

static void concat(const om_node *node,
                   const om_ref_tensor *in,
                   size_t count,
                   om_ref_tensor *out,
                   size_t output_count) {
  const uint32_t axis = om_ref_axis(om_ref_int(node, "axis", 0), out->rank);
  (void)output_count;
  for (size_t i = 0; i < out->elems; ++i) {
    int64_t index[OM_MAX_RANK];
    size_t operand = 2;
    om_ref_unravel(out, i, index);
    while (index[axis] >= in[operand].dims[axis]) {
      index[axis] -= in[operand].dims[axis];
      operand += 3;
    }
    const float x =
        real_at(in, count, operand + 1, in[operand].values[om_ref_ravel(&in[operand], index)]);
    out->values[i] = byte_of(in, count, 0, x, out->dtype);
  }
}

static const om_op_case binary_cases[] = {
    {.name = "u8",
     .inputs = {"u8 3x70 range 0 255",
                "f32 scalar const = 0.02",
                "u8 scalar const = 128",
                "u8 3x70 range 0 255",
                "f32 scalar const = 0.03",
                "u8 scalar const = 100",
                "f32 scalar const = 0.05",
                "u8 scalar const = 127"}},
    {.name = "i8_broadcast",
     .inputs = {"i8 2x3x5 range -128 127",
                "f32 1 const = 0.02",
                "i8 1 const = 3",
                "i8 3x1 range -128 127",
                "f32 1 const = 0.03",
                "i8 1 const = -7",
                "f32 1 const = 0.04",
                "i8 1 const = 1"}},
    {.name = "no_zeros",
     .inputs = {"u8 7",
                "f32 1 const = 0.5",
                "-",
                "u8 scalar const",
                "f32 1 const = 0.25",
                "-",
                "f32 1 const = 0.75"}},
    {.name = "empty",
     .inputs = {"u8 0x3", "f32 1", "u8 1", "u8 3", "f32 1", "u8 1", "f32 1", "u8 1"},
     .declined = "no kernel for"},
    {.name = "shapes",
     .inputs = {"u8 2", "f32 1", "u8 1", "u8 3", "f32 1", "u8 1", "f32 1", "u8 1"},
     .error = "do not broadcast",
     .declined = "no kernel for"},
    {.name = "scale",
     .inputs = {"u8 2", "f32 2", "u8 1", "u8 2", "f32 1", "u8 1", "f32 1", "u8 1"},
     .error = "Input 1 has shape",
     .declined = "no kernel for"},
    {.name = "no_scale",
     .inputs = {"u8 2", "f32 1", "-", "u8 2", "f32 1"},
     .error = "Input 6 is absent",
     .declined = "no kernel for"},
    {.name = "types",
     .inputs = {"u8 2", "f32 1", "u8 1", "i8 2", "f32 1", "i8 1", "f32 1", "u8 1"},
     .error = "Input 3 is int8",
     .declined = "no kernel for"},
};

static const om_op_case unary_cases[] = {
    {.name = "scale_at_run_time",
     .inputs = {"u8 5", "f32 1 = 0.5", "u8 1 const = 3", "f32 1 const = 0.01", "u8 1 const = 3"},
     .declined = "no kernel for"},
    {.name = "zero_at_run_time",
     .inputs = {"u8 5", "f32 1 const = 0.5", "u8 1 = 3", "f32 1 const = 0.01", "u8 1 const = 3"},
     .declined = "no kernel for"},
    {.name = "u8",
     .inputs = {"u8 3x70 range 0 255",
                "f32 scalar const = 0.04",
                "u8 scalar const = 128",
                "f32 scalar const = 0.004",
                "u8 scalar const = 3"}},
    {.name = "i8",
     .inputs = {"i8 300 range -128 127",
                "f32 scalar const = 0.05",
                "i8 scalar const = 4",
                "f32 scalar const = 0.0078",
                "i8 scalar const = -100"}},
    {.name = "no_zeros", .inputs = {"u8 5", "f32 1 const = 0.5", "-", "f32 1 const = 0.01"}},
    {.name = "zero_type",
     .inputs = {"u8 5", "f32 1 = 0.5", "i8 1", "f32 1 = 0.01"},
     .error = "Input 2 is int8",
     .declined = "no kernel for"},
};

static const om_op_case pool_cases[] = {
    {.name = "line",
     .inputs = {"i8 1x3x300 range -128 127",
                "f32 scalar const = 0.02",
                "i8 scalar const = -100",
                "f32 scalar const = 0.03",
                "i8 scalar const = -90"}},
    {.name = "no_zeros",
     .inputs =
         {"u8 1x4x3x5x2 range 0 255", "f32 scalar const = 0.02", "-", "f32 scalar const = 0.03"}},
    {.name = "u8",
     .inputs = {"u8 2x3x7x7 range 0 255",
                "f32 1 const = 0.02",
                "u8 1 const = 100",
                "f32 1 const = 0.015",
                "u8 1 const = 90"},
     .shapes = {"2x3x1x1"}},
    {.name = "i8_last",
     .inputs = {"i8 2x5x7x3 range -128 127",
                "f32 1 const = 0.02",
                "i8 1 const = 3",
                "f32 1 const = 0.015",
                "i8 1 const = 9"},
     .attrs = "channels_last=1",
     .shapes = {"2x1x1x3"}},
    {.name = "pieces", /* for threads, and of results in them */
     .inputs = {"u8 3x200x7x7 range 0 255",
                "f32 1 const = 0.02",
                "u8 1 const = 100",
                "f32 1 const = 0.015",
                "u8 1 const = 90"}},
    {.name = "rank",
     .inputs = {"u8 2x3", "f32 1", "u8 1", "f32 1", "u8 1"},
     .error = "3 or more",
     .declined = "no kernel for"},
};

static const om_op_case concat_cases[] = {
    {.name = "two",
     .inputs = {"f32 1 const = 0.05",
                "u8 1 const = 7",
                "u8 2x3 range 0 255",
                "f32 1 const = 0.02",
                "u8 1 const = 100",
                "u8 2x4 range 0 255",
                "f32 1 const = 0.05",
                "u8 1 const = 7"},
     .attrs = "axis=1",
     .shapes = {"2x7"}},
    {.name = "one",
     .inputs = {"f32 1 const = 0.05",
                "i8 1 const = 7",
                "i8 2x3 range -128 127",
                "f32 1 const = 0.02",
                "i8 1 const = -3"},
     .attrs = "axis=-1"},
    {.name = "count",
     .inputs = {"f32 1", "u8 1", "u8 2", "f32 1", "u8 1", "u8 2"},
     .error = "There are 6 inputs",
     .declined = "no kernel for"},
    {.name = "shapes",
     .inputs = {"f32 1", "u8 1", "u8 2x3", "f32 1", "u8 1", "u8 3x3", "f32 1", "u8 1"},
     .attrs = "axis=1",
     .error = "does not go with the others",
     .declined = "no kernel for"},
};

#define OM_QLINEAR_SUITE(type, table, function)      \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = function,                            \
   .domain = "com.microsoft"}

static const om_op_suite suites[] = {
    OM_QLINEAR_SUITE("QLinearAdd", binary_cases, binary),
    OM_QLINEAR_SUITE("QLinearMul", binary_cases, binary),
    OM_QLINEAR_SUITE("QLinearSigmoid", unary_cases, unary),
    OM_QLINEAR_SUITE("QLinearLeakyRelu", unary_cases, unary),
    OM_QLINEAR_SUITE("QLinearGlobalAveragePool", pool_cases, pool),
    OM_QLINEAR_SUITE("QLinearConcat", concat_cases, concat),
};

OM_OP_TESTS(suites)
