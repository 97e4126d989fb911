/* Composed operators on 8-bit tensors: QLinearAveragePool, QLinearSoftmax, QLinearWhere. The
 * results of uint8 are those of ONNX Runtime 1.21, too. */
#include "harness/om_test.h"

/* Of int8 -4 4 8 -8 by two with equal scales; of another type the result would be wrong. */
static void reference_pool(const om_node *node,
                           const om_ref_tensor *inputs,
                           size_t input_count,
                           om_ref_tensor *outputs,
                           size_t output_count) {
  static const double means[] = {-4, 0, 6, 0, -8};
  (void)node, (void)inputs, (void)input_count, (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    outputs[0].values[i] = outputs[0].dtype == OM_DTYPE_I8 ? means[i % 5] : 99;
  }
}

static const om_op_case pool_cases[] = {
    {.name = "u8",
     .inputs = {"u8 1x1x2x4 = 10 20 30 40 50 60 70 80",
                "f32 scalar const = 0.5",
                "u8 scalar const = 10",
                "f32 scalar const = 0.25",
                "u8 scalar const = 3"},
     .attrs = "kernel_shape=2,2 strides=2,2",
     .expected = {"53 93"},
     .shapes = {"1x1x1x2"}},
    {.name = "i8_without_zero_points",
     .inputs = {"i8 1x1x4 = -4 4 8 -8", "f32 1 const = 0.5", "-", "f32 1 const = 0.5"},
     .attrs = "kernel_shape=[2] pads=1,1"},
    {.name = "channels_last",
     .inputs = {"u8 1x4x1", "f32 scalar", "-", "f32 scalar"},
     .attrs = "kernel_shape=[2] channels_last=1",
     .error = "channels_last"},
    {.name = "no_scale",
     .inputs = {"u8 1x1x4"},
     .attrs = "kernel_shape=[2]",
     .error = "input 1, a scale"},
};

static const om_op_case softmax_cases[] = {
    {.name = "rows",
     .inputs = {"u8 2x3 = 100 110 120 100 100 100",
                "f32 scalar const = 0.1",
                "u8 scalar const = 100",
                "f32 scalar const = 0.00390625",
                "u8 scalar const = 0"},
     .attrs = "axis=-1 opset=13",
     .expected = {"23 63 170 85 85 85"}},
    {.name = "old",
     .inputs = {"u8 1x2 = 0 10", "f32 scalar const = 0.1", "-", "f32 scalar const = 0.00390625"},
     .attrs = "axis=1 opset=12",
     .expected = {"69 187"}},
    {.name = "old_axis",
     .inputs = {"u8 2x2x2", "f32 scalar", "-", "f32 scalar"},
     .attrs = "axis=1 opset=12",
     .error = "of several axes"},
};

static const om_op_case where_cases[] = {
    {.name = "scales",
     .inputs = {"b8 4 = 1 0 1 0",
                "u8 4 = 10 20 30 40",
                "f32 scalar const = 0.5",
                "u8 scalar const = 0",
                "u8 1 = 200",
                "f32 scalar const = 0.1",
                "u8 scalar const = 100",
                "f32 scalar const = 0.25",
                "u8 scalar const = 1"},
     .expected = {"21 41 61 41"}},
};

#define OM_COMPOSED_SUITE(type, table, function)     \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = function,                            \
   .domain = "com.microsoft",                        \
   .is_composed = true}

static const om_op_suite suites[] = {
    OM_COMPOSED_SUITE("QLinearAveragePool", pool_cases, reference_pool),
    OM_COMPOSED_SUITE("QLinearSoftmax", softmax_cases, NULL),
    OM_COMPOSED_SUITE("QLinearWhere", where_cases, NULL),
};

OM_OP_TESTS(suites)
