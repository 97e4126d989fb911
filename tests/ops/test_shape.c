/* Shapes as data (Shape, Size), data under another shape (Reshape and its kin), and tensors made
 * from little data (ConstantOfShape, Range, EyeLike). */
#include "harness/om_test.h"

static void same_reference(const om_node *node,
                           const om_ref_tensor *inputs,
                           size_t input_count,
                           om_ref_tensor *outputs,
                           size_t output_count) {
  (void)node, (void)input_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) outputs[0].values[i] = inputs[0].values[i];
  if (output_count < 2 || !outputs[1].values) return;
  for (size_t i = 0; i < outputs[1].elems; ++i) outputs[1].values[i] = 1.0; /* Dropout's mask */
}

static const om_op_case shape_cases[] = {
    {.name = "whole", .inputs = {"f32 2x3x4"}, .expected = {"2 3 4"}},
    {.name = "scalar", .inputs = {"f32 scalar"}, .shapes = {"0"}},
    {.name = "strings", .inputs = {"str 3 = a"}, .expected = {"3"}},
    {.name = "part",
     .opset = 15,
     .inputs = {"f32 2x3x4"},
     .attrs = "start=1 end=-1",
     .expected = {"3"}},
    {.name = "clamped",
     .opset = 15,
     .inputs = {"f32 2x3x4"},
     .attrs = "start=-9 end=9",
     .expected = {"2 3 4"}},
    {.name = "nothing",
     .opset = 15,
     .inputs = {"f32 2x3x4"},
     .attrs = "start=2 end=1",
     .shapes = {"0"}},
    {.name = "empty", .inputs = {"f32 0x3"}, .expected = {"0 3"}},
};

static const om_op_case size_cases[] = {
    {.name = "rank_3", .inputs = {"f32 2x3x4"}, .expected = {"24"}},
    {.name = "scalar", .inputs = {"f32 scalar"}, .expected = {"1"}},
    {.name = "empty", .inputs = {"f32 0x3"}, .expected = {"0"}},
};

static const om_op_case reshape_cases[] = {
    {.name = "flat", .inputs = {"f32 2x3x4", "i64 1 const = -1"}, .shapes = {"24"}},
    {.name = "copied", .inputs = {"f32 2x3x4", "i64 3 const = 0 -1 2"}, .shapes = {"2x6x2"}},
    {.name = "to_scalar", .inputs = {"f32 1", "i64 0 const"}, .shapes = {"scalar"}},
    {.name = "from_scalar", .inputs = {"f32 scalar", "i64 1 const = -1"}, .shapes = {"1"}},
    {.name = "int32_shape_of_one", .inputs = {"f32 2x3", "i64 scalar const = 6"}, .shapes = {"6"}},
    {.name = "run_time",
     .inputs = {"f32 2x3", "i64 2 = 3 2"},
     .shapes = {"3x2"},
     .declined = "run time"},
    {.name = "allow_zero",
     .inputs = {"f32 0x3", "i64 2 const = 3 0"},
     .attrs = "allowzero=1",
     .shapes = {"3x0"},
     .declined = "empty"},
    {.name = "copied_zero",
     .inputs = {"f32 0x3", "i64 2 const = 0 7"},
     .shapes = {"0x7"},
     .declined = "empty"},
    {.name = "int64", .inputs = {"i64 2x3", "i64 1 const = 6"}},
    {.name = "half", .inputs = {"f16 2x3", "i64 1 const = 6"}},
    {.name = "bool", .inputs = {"b8 3x3", "i64 1 const = 9"}},
    {.name = "strings",
     .inputs = {"str 2x1 = a b", "i64 1 const = 2"},
     .expected = {"a b"},
     .declined = "string"},
    {.name = "two_open", .inputs = {"f32 6", "i64 2 const = -1 -1"}, .error = "more than one -1"},
    {.name = "minus_2", .inputs = {"f32 6", "i64 2 const = -2 3"}, .error = "element 0 is -2"},
    {.name = "other_size",
     .inputs = {"f32 6", "i64 2 const = 4 2"},
     .error = "[6] does not fit the shape [4, 2]"},
    {.name = "not_divisible", .inputs = {"f32 6", "i64 2 const = 4 -1"}, .error = "does not fit"},
    {.name = "copies_too_far", .inputs = {"f32 6", "i64 2 const = 6 0"}, .error = "does not fit"},
    {.name = "open_and_zero",
     .inputs = {"f32 0x3", "i64 2 const = 0 -1"},
     .attrs = "allowzero=1",
     .error = "does not fit"},
    {.name = "wraps",
     .inputs = {"f32 6", "i64 3 const = 4294967296 4294967296 6"},
     .error = "does not fit"},
    {.name = "float_shape", .inputs = {"f32 6", "f32 1 const = 6"}, .error = "float32; int64"},
};

static const om_op_case flatten_cases[] = {
    {.name = "default", .inputs = {"f32 2x3x4"}, .shapes = {"2x12"}},
    {.name = "axis_0", .inputs = {"f32 2x3x4"}, .attrs = "axis=0", .shapes = {"1x24"}},
    {.name = "axis_rank", .inputs = {"f32 2x3x4"}, .attrs = "axis=3", .shapes = {"24x1"}},
    {.name = "axis_negative", .inputs = {"f32 2x3x4"}, .attrs = "axis=-1", .shapes = {"6x4"}},
    {.name = "scalar", .inputs = {"f32 scalar"}, .attrs = "axis=0", .shapes = {"1x1"}},
    {.name = "axis_outside",
     .inputs = {"f32 2x3"},
     .attrs = "axis=3",
     .error = "The axis 3 is outside"},
};

static const om_op_case squeeze_cases[] = {
    {.name = "all", .inputs = {"f32 1x3x1"}, .shapes = {"3"}},
    {.name = "some", .inputs = {"f32 1x3x1", "i64 1 const = -1"}, .shapes = {"1x3"}},
    {.name = "axis_of_rank_0", .inputs = {"f32 1x3x1", "i64 scalar const = 0"}, .shapes = {"3x1"}},
    {.name = "to_scalar", .inputs = {"f32 1x1"}, .shapes = {"scalar"}},
    {.name = "no_axes", .inputs = {"f32 1x3", "i64 0 const"}, .shapes = {"1x3"}},
    {.name = "attribute",
     .opset = 11,
     .inputs = {"f32 1x3x1"},
     .attrs = "axes=0,2",
     .shapes = {"3"}},
    {.name = "run_time",
     .inputs = {"f32 1x3", "i64 1 = 0"},
     .shapes = {"3"},
     .declined = "run time"},
    {.name = "not_one", .inputs = {"f32 2x3", "i64 1 const = 0"}, .error = "axis 0 has 2 elements"},
    {.name = "outside", .inputs = {"f32 1x3", "i64 1 const = 2"}, .error = "The axis 2 is outside"},
};

static const om_op_case unsqueeze_cases[] = {
    {.name = "front", .inputs = {"f32 3x4", "i64 1 const = 0"}, .shapes = {"1x3x4"}},
    {.name = "unordered", .inputs = {"f32 3x4", "i64 2 const = -1 1"}, .shapes = {"3x1x4x1"}},
    {.name = "axis_of_rank_0", .inputs = {"f32 2", "i64 scalar const = 1"}, .shapes = {"2x1"}},
    {.name = "axis_of_rank_0_run_time",
     .inputs = {"f32 2", "i64 scalar = 1"},
     .shapes = {"2x1"},
     .declined = "run time"},
    {.name = "attribute",
     .opset = 11,
     .inputs = {"f32 3x4"},
     .attrs = "axes=0,3",
     .shapes = {"1x3x4x1"}},
    {.name = "repeats", .inputs = {"f32 3", "i64 2 const = 0 -3"}, .error = "occurs twice"},
    {.name = "outside", .inputs = {"f32 3", "i64 1 const = 2"}, .error = "The axis 2 is outside"},
    {.name = "rank_9", .inputs = {"f32 1x1x1x1x1x1x1x3", "i64 1 const = 0"}, .error = "rank 9"},
};

static const om_op_case identity_cases[] = {
    {.name = "float", .inputs = {"f32 2x3 edges"}},
    {.name = "scalar", .inputs = {"f32 scalar"}},
    {.name = "half", .inputs = {"f16 2x3"}},
    {.name = "strings", .inputs = {"str 2 = a b"}, .expected = {"a b"}, .declined = "string"},
};

static const om_op_case dropout_cases[] = {
    {.name = "alone", .inputs = {"f32 2x3"}},
    {.name = "with_mask", .inputs = {"f32 2x3"}, .output_count = 2, .declined = "its mask is read"},
    {.name = "ratio", .inputs = {"f32 2x3", "f32 scalar const = 0.3"}},
    {.name = "not_training",
     .inputs = {"f32 2x3", "f32 scalar const = 0.3", "b8 scalar const = 0"}},
    {.name = "opset_7", .opset = 7, .inputs = {"f32 2x3"}, .attrs = "ratio=0.3f"},
    {.name = "training_nothing",
     .inputs = {"f32 2x3", "f32 scalar const = 0", "b8 scalar const = 1"},
     .output_count = 2,
     .declined = "mask"},
};

static const om_op_case fill_cases[] = {
    {.name = "zeros", .inputs = {"i64 2 = 2 3"}, .expected = {"0 0 0 0 0 0"}, .shapes = {"2x3"}},
    {.name = "value", .inputs = {"i64 1 = 3"}, .attrs = "value={i64 1 = 7}", .expected = {"7 7 7"}},
    {.name = "scalar", .inputs = {"i64 0"}, .attrs = "value={f32 1 = 2.5}", .expected = {"2.5"}},
    {.name = "int4",
     .inputs = {"i64 2 = 1 3"},
     .graph = "t = ConstantOfShape(x0) value={i4 1 = -3}; y0 = Cast(t) to=3",
     .expected = {"-3 -3 -3"}},
    {.name = "uint4",
     .inputs = {"i64 1 = 4"},
     .graph = "t = ConstantOfShape(x0) value={u4 1 = 15}; y0 = Cast(t) to=2",
     .expected = {"15 15 15 15"}},
    {.name = "empty", .inputs = {"i64 2 = 0 3"}, .shapes = {"0x3"}},
    {.name = "bool", .inputs = {"i64 1 = 2"}, .attrs = "value={b8 1 = 1}", .expected = {"1 1"}},
    {.name = "negative", .inputs = {"i64 1 = -3"}, .error = "-3"},
    {.name = "huge",
     .inputs = {"i64 1 = 1099511627776"},
     .error = "is more than a tensor of float32"},
    {.name = "two_values",
     .inputs = {"i64 1 = 2"},
     .attrs = "value={f32 2 = 1 2}",
     .error = "value"},
};

/* Above what is computed while planning (16 MiB). */
static const om_op_case large_fill_cases[] = {
    {.name = "float",
     .inputs = {"i64 2 const = 4201 1001"},
     .attrs = "value={f32 1 = 2.5}",
     .expected = {"2.5"}},
    {.name = "int64",
     .inputs = {"i64 1 const = 2100001"},
     .attrs = "value={i64 1 = -3}",
     .expected = {"-3"}},
    {.name = "bool",
     .inputs = {"i64 1 const = 16777219"},
     .attrs = "value={b8 1 = 1}",
     .expected = {"1"}},
};

static const om_op_case large_range_cases[] = {
    {.name = "int64",
     .inputs = {"i64 scalar const = 5",
                "i64 scalar const = -21000000000",
                "i64 scalar const = -10000"}},
    {.name = "int32",
     .inputs = {"i32 scalar const = -7", "i32 scalar const = 4200007", "i32 scalar const = 1"}},
    {.name = "float",
     .inputs = {"f32 scalar const = 0.3", "f32 scalar const = 420000.1", "f32 scalar const = 0.1"}},
    {.name = "past_exact_counts",
     .inputs = {"f32 scalar const = 0", "f32 scalar const = 16777217.9", "f32 scalar const = 0.99"},
     .declined = "2^24"},
};

static const om_op_case range_cases[] = {
    {.name = "up",
     .inputs = {"i64 scalar = 3", "i64 scalar = 10", "i64 scalar = 3"},
     .expected = {"3 6 9"}},
    {.name = "down",
     .inputs = {"i64 scalar = 10", "i64 scalar = 3", "i64 scalar = -3"},
     .expected = {"10 7 4"}},
    {.name = "empty",
     .inputs = {"i64 scalar = 3", "i64 scalar = 3", "i64 scalar = 1"},
     .shapes = {"0"}},
    {.name = "wrong_way",
     .inputs = {"i32 scalar = 3", "i32 scalar = 9", "i32 scalar = -1"},
     .shapes = {"0"}},
    {.name = "int16",
     .inputs = {"i16 scalar = 1", "i16 scalar = 6", "i16 scalar = 2"},
     .expected = {"1 3 5"}},
    {.name = "float",
     .inputs = {"f32 scalar = 1", "f32 scalar = 2.1", "f32 scalar = 0.5"},
     .expected = {"1 1.5 2"}},
    {.name = "double_down",
     .inputs = {"f64 scalar = 1", "f64 scalar = -1", "f64 scalar = -0.75"},
     .expected = {"1 0.25 -0.5"}},
    {.name = "step_0",
     .inputs = {"i64 scalar = 1", "i64 scalar = 2", "i64 scalar = 0"},
     .error = "steps of 0"},
    {.name = "step_0_float",
     .inputs = {"f32 scalar = 1", "f32 scalar = 2", "f32 scalar = 0"},
     .error = "steps of 0"},
    {.name = "huge",
     .inputs = {"i64 scalar = 0", "i64 scalar = 4611686018427387904", "i64 scalar = 1"},
     .error = "is more than a tensor"},
    {.name = "extremes",
     .inputs = {"i64 scalar = -9223372036854775808",
                "i64 scalar = 9223372036854775807",
                "i64 scalar = 1"},
     .error = "no range"},
    {.name = "types_differ",
     .inputs = {"i64 scalar = 0", "i32 scalar = 4", "i64 scalar = 1"},
     .error = "Input 1"},
};

static const om_op_case eye_cases[] = {
    {.name = "square", .inputs = {"i32 2x2"}, .expected = {"1 0 0 1"}},
    {.name = "above", .inputs = {"f32 2x3"}, .attrs = "k=1", .expected = {"0 1 0 0 0 1"}},
    {.name = "below", .inputs = {"f32 3x2"}, .attrs = "k=-1", .expected = {"0 0 1 0 0 1"}},
    {.name = "typed", .inputs = {"f32 2x2"}, .attrs = "dtype=10", .expected = {"1 0 0 1"}},
    {.name = "far",
     .inputs = {"f32 2x2"},
     .attrs = "k=9223372036854775807",
     .expected = {"0 0 0 0"}},
    {.name = "rank_1", .inputs = {"f32 2"}, .error = "rank 1"},
};

#define OM_CPU_SUITE(type, table)                    \
  {.op_type = (type),                                \
   .cases = (table),                                 \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .declined = ""}

static const om_op_suite suites[] = {
    OM_CPU_SUITE("Shape", shape_cases),
    OM_CPU_SUITE("Size", size_cases),
    OM_OP_SUITE("Reshape", reshape_cases, same_reference),
    OM_OP_SUITE("Flatten", flatten_cases, same_reference),
    OM_OP_SUITE("Squeeze", squeeze_cases, same_reference),
    OM_OP_SUITE("Unsqueeze", unsqueeze_cases, same_reference),
    OM_OP_SUITE("Identity", identity_cases, same_reference),
    OM_OP_SUITE("Dropout", dropout_cases, same_reference),
    OM_CPU_SUITE("ConstantOfShape", fill_cases),
    OM_OP_SUITE("ConstantOfShape", large_fill_cases, NULL),
    OM_CPU_SUITE("Range", range_cases),
    OM_OP_SUITE("Range", large_range_cases, NULL),
    OM_CPU_SUITE("EyeLike", eye_cases),
};
OM_OP_TESTS(suites)
