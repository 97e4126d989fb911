/* OneHot, NonZero, Trilu, CumSum, TopK. */
#include "harness/om_test.h"

static const om_op_case one_hot_cases[] = {
    {.name = "last_axis",
     .inputs = {"i64 3 = 0 -1 7", "i64 scalar = 3", "f32 2 = 2 5"},
     .expected = {"5 2 2 2 2 5 2 2 2"}},
    {.name = "first_axis",
     .inputs = {"i32 2 = 1 0", "i64 1 = 2", "i64 2 = 0 1"},
     .attrs = "axis=0",
     .expected = {"0 1 1 0"}},
    {.name = "middle_axis",
     .inputs = {"u8 1x2 = 1 0", "f32 scalar = 2", "b8 2 = 0 1"},
     .attrs = "axis=1",
     .expected = {"0 1 1 0"}},
    {.name = "float_indices",
     .inputs = {"f32 2 = 1 0", "i64 scalar = 2", "f64 2 = 0 1"},
     .expected = {"0 1 1 0"}},
    {.name = "depth_negative",
     .inputs = {"i64 2 = 1 0", "i64 scalar = -3", "f32 2 = 0 1"},
     .error = "The depth is -3"},
    {.name = "depth_huge",
     .inputs = {"i64 2 = 1 0", "i64 scalar = 1099511627776", "f32 2 = 0 1"},
     .error = "is more than a tensor"},
    {.name = "values",
     .inputs = {"i64 2 = 1 0", "i64 scalar = 3", "f32 3 = 0 1"},
     .error = "no pair"},
};

static const om_op_case nonzero_cases[] = {
    {.name = "matrix", .inputs = {"f32 2x3 = 1 0 -2 0 -0.0 nan"}, .expected = {"0 0 1 0 2 2"}},
    {.name = "bools", .inputs = {"b8 4 = 0 1 1 0"}, .expected = {"1 2"}},
    {.name = "half", .inputs = {"f16 3 = 0 -0.0 1"}, .expected = {"2"}},
    {.name = "scalar", .inputs = {"i64 scalar = 5"}, .expected = {"0"}, .shapes = {"1x1"}},
    {.name = "none", .inputs = {"i32 2x2 = 0"}, .shapes = {"2x0"}},
    {.name = "double", .inputs = {"f64 2 = 0 1"}, .expected = {"1"}},
};

static const om_op_case trilu_cases[] = {
    {.name = "upper", .inputs = {"f32 3x3 = 1 2 3 4 5 6 7 8 9"}, .expected = {"1 2 3 0 5 6 0 0 9"}},
    {.name = "lower",
     .inputs = {"i64 2x3 = 1 2 3 4 5 6", "i64 scalar = 1"},
     .attrs = "upper=0",
     .expected = {"1 2 0 4 5 6"}},
    {.name = "batch",
     .inputs = {"i32 2x2x2 = 1", "i64 scalar = 1"},
     .expected = {"0 1 0 0 0 1 0 0"}},
    {.name = "far",
     .inputs = {"f32 2x2 = 1 2 3 4", "i64 scalar = -9223372036854775808"},
     .expected = {"1 2 3 4"}},
    {.name = "far_lower",
     .inputs = {"f32 2x2 = 1 2 3 4", "i64 scalar = -9"},
     .attrs = "upper=0",
     .expected = {"0 0 0 0"}},
    {.name = "list", .inputs = {"f32 2"}, .error = "rank is below 2"},
};

static const om_op_case cumsum_cases[] = {
    {.name = "list", .inputs = {"f32 4 = 1 2 3 4", "i64 scalar = 0"}, .expected = {"1 3 6 10"}},
    {.name = "exclusive",
     .inputs = {"f64 4 = 1 2 3 4", "i32 scalar = 0"},
     .attrs = "exclusive=1",
     .expected = {"0 1 3 6"}},
    {.name = "reverse",
     .inputs = {"i32 4 = 1 2 3 4", "i32 1 = 0"},
     .attrs = "reverse=1",
     .expected = {"10 9 7 4"}},
    {.name = "both",
     .inputs = {"i64 4 = 1 2 3 4", "i32 scalar = 0"},
     .attrs = "reverse=1 exclusive=1",
     .expected = {"9 7 4 0"}},
    {.name = "axis_0", .inputs = {"f16 2x2 = 1 2 3 4", "i64 scalar = -2"}, .expected = {"1 2 4 6"}},
    {.name = "axis_outside",
     .inputs = {"f32 2", "i64 scalar = 1"},
     .error = "The axis 1 is outside"},
};

static const om_op_case topk_cases[] = {
    {.name = "largest",
     .inputs = {"f32 2x4 = 0 3 3 1 -5 -0.0 0 -1", "i64 1 = 2"},
     .output_count = 2,
     .expected = {"3 3 -0.0 0", "1 2 1 2"}},
    {.name = "smallest",
     .inputs = {"i64 4 = 4 -1 9 -1", "i64 1 = 3"},
     .attrs = "largest=0",
     .output_count = 2,
     .expected = {"-1 -1 4", "1 3 0"}},
    {.name = "axis_0",
     .inputs = {"f16 3x2 = 1 6 5 2 3 4", "i64 1 = 2"},
     .attrs = "axis=0",
     .output_count = 2,
     .expected = {"5 6 3 4", "1 0 2 2"}},
    {.name = "all_in_order",
     .inputs = {"u8 7 = 3 1 4 1 5 9 2", "i64 1 = 7"},
     .output_count = 2,
     .expected = {"9 5 4 3 2 1 1", "5 4 2 0 6 1 3"}},
    {.name = "uint64_above_int64",
     .inputs = {"u64 3 = 1 18446744073709549568 2", "i64 1 = 1"},
     .output_count = 2,
     .expected = {"18446744073709549568", "1"}},
    {.name = "nan_is_largest",
     .inputs = {"f32 3 = inf nan 2", "i64 1 = 2"},
     .output_count = 2,
     .expected = {"nan inf", "1 0"}},
    {.name = "none", .inputs = {"f32 3", "i64 1 = 0"}, .output_count = 2, .shapes = {"0", "0"}},
    {.name = "opset_7",
     .opset = 7,
     .inputs = {"f32 3 = 1 3 2"},
     .attrs = "k=1",
     .output_count = 2,
     .expected = {"3", "1"}},
    {.name = "too_many",
     .inputs = {"f32 3", "i64 1 = 4"},
     .output_count = 2,
     .error = "K is 4 for an axis of 3"},
};

#define OM_CPU_SUITE(type, table)                    \
  {.op_type = (type),                                \
   .cases = (table),                                 \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .declined = ""}

static const om_op_suite suites[] = {
    OM_CPU_SUITE("OneHot", one_hot_cases),
    OM_CPU_SUITE("NonZero", nonzero_cases),
    OM_CPU_SUITE("Trilu", trilu_cases),
    OM_CPU_SUITE("CumSum", cumsum_cases),
    OM_CPU_SUITE("TopK", topk_cases),
};
OM_OP_TESTS(suites)
