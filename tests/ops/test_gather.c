/* Reading and writing at indices: Gather and its kin, Scatter and its kin, Compress. */
#include "harness/om_test.h"

static void gather_reference(const om_node *node,
                             const om_ref_tensor *inputs,
                             size_t input_count,
                             om_ref_tensor *outputs,
                             size_t output_count) {
  (void)input_count, (void)output_count;
  const om_ref_tensor *x = &inputs[0];
  const om_ref_tensor *indices = &inputs[1];
  const uint32_t axis = om_ref_axis(om_ref_int(node, "axis", 0), x->rank);
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    int64_t y[OM_MAX_RANK] = {0};
    int64_t from[OM_MAX_RANK] = {0};
    om_ref_unravel(&outputs[0], i, y);
    for (uint32_t n = 0; n < axis; ++n) from[n] = y[n];
    for (uint32_t n = axis + 1; n < x->rank; ++n) from[n] = y[n - 1 + indices->rank];
    const double index = indices->values[om_ref_ravel(indices, y + axis)];
    from[axis] = (int64_t)index + (index < 0 ? x->dims[axis] : 0);
    outputs[0].values[i] = x->values[om_ref_ravel(x, from)];
  }
}

static const om_op_case gather_cases[] = {
    {.name = "rows", .inputs = {"f32 9x5", "i64 4 const = 1 8 -1 -9"}},
    {.name = "rows_of_quads", .inputs = {"f32 9x8", "i64 2x3 const = 1 8 -1 -9 0 0"}},
    {.name = "columns", .inputs = {"f32 3x7x5", "i64 3 const = 6 0 -2"}, .attrs = "axis=1"},
    {.name = "last_axis", .inputs = {"f32 3x7", "i32 2x2 const = 6 0 -2 3"}, .attrs = "axis=-1"},
    {.name = "scalar_index", .inputs = {"f32 3x7", "i64 scalar const = 2"}, .shapes = {"7"}},
    {.name = "list_to_scalar", .inputs = {"f32 3", "i64 scalar const = -1"}, .shapes = {"scalar"}},
    {.name = "int64_data", .inputs = {"i64 5x3", "i64 2 const = 4 0"}},
    {.name = "int32_data", .inputs = {"i32 5x3", "i64 2 const = 4 0"}},
    {.name = "bool_data", .inputs = {"b8 5x3", "i64 2 const = 4 0"}},
    {.name = "strings",
     .inputs = {"str 3 = a b c", "i64 2 const = 2 -3"},
     .expected = {"c a"},
     .declined = "string"},
    {.name = "run_time", .inputs = {"f32 3", "i64 3 = -1 0 -3"}},
    {.name = "run_time_int32", .inputs = {"i64 7x3", "i32 2x2 = -1 0 -7 6"}},
    {.name = "run_time_quads", .inputs = {"f32 5x7x8", "i64 3 = -1 0 -3"}, .attrs = "axis=1"},
    {.name = "run_time_bool", .inputs = {"b8 5x7", "i64 3 = -1 0 -3"}, .attrs = "axis=1"},
    {.name = "uint8_words", .inputs = {"u8 5x4", "i64 3 = -1 0 -3"}},
    {.name = "uint8_quads", .inputs = {"u8 5x32", "i64 3 = -1 0 -3"}},
    {.name = "half_odd", .inputs = {"f16 5x3", "i32 3 = -1 0 -3"}},
    {.name = "made_on_the_device",
     .inputs = {"f32 9x5", "i32 2x3 = 1 8 -1 -9 0 0"},
     .graph = "t = Cast(x1) to=7; y0 = Gather(x0, t)"},
    {.name = "made_out_of_range",
     .inputs = {"f32 4x5", "i32 600 = 1 3 -1"},
     .graph = "u = Cast(x1) to=1; v = Mul(u, u); w = Cast(v) to=7; y0 = Gather(x0, w)",
     .error = "Gather index 9 is out of range for an extent of 4."},
    {.name = "rank_8", .inputs = {"f32 2x2x2x3x2x2x2x2", "i64 2 const = 2 -2"}, .attrs = "axis=3"},
    {.name = "no_indices",
     .inputs = {"f32 3x2", "i64 0 const"},
     .shapes = {"0x2"},
     .declined = "empty"},
    {.name = "above",
     .inputs = {"f32 40", "i64 2 = 3 40"},
     .error = "Gather index 40 is out of range for an extent of 40."},
    {.name = "below",
     .inputs = {"f32 3", "i32 1 = -4"},
     .error = "Gather index -4 is out of range for an extent of 3."},
    {.name = "above_constant",
     .inputs = {"f32 3", "i64 1 const = 3"},
     .declined = "its index 3 is out of range for an extent of 3",
     .error = "Gather index 3 is out of range for an extent of 3."},
    {.name = "axis_outside",
     .inputs = {"f32 3", "i64 1 = 0"},
     .attrs = "axis=1",
     .error = "The axis 1 is outside"},
    {.name = "axis_least",
     .inputs = {"f32 3", "i64 1 = 0"},
     .attrs = "axis=-9223372036854775808",
     .error = "The axis -9223372036854775808 is outside"},
    {.name = "float_indices", .inputs = {"f32 3", "f32 1 = 0"}, .error = "The indices are float32"},
};

static const om_op_case elements_cases[] = {
    {.name = "axis_1",
     .inputs = {"f32 2x2 = 1 2 3 4", "i64 2x2 = 0 0 1 -2"},
     .attrs = "axis=1",
     .expected = {"1 1 4 3"}},
    {.name = "axis_0",
     .inputs = {"i32 3x3 = 1 2 3 4 5 6 7 8 9", "i64 2x3 = 1 2 0 2 0 -3"},
     .expected = {"4 8 3 7 2 3"}},
    {.name = "fewer", .inputs = {"f32 3x3 ramp", "i32 1x2 = 2 -1"}, .expected = {"6 7"}},
    {.name = "above",
     .inputs = {"f32 3", "i64 1 = 3"},
     .error = "GatherElements index 3 is out of range for an extent of 3."},
    {.name = "shape",
     .inputs = {"f32 3x3", "i64 1x4 = 0"},
     .error = "[1, 4] do not fit data of shape [3, 3]"},
};

static const om_op_case nd_cases[] = {
    {.name = "elements", .inputs = {"f32 2x2 ramp", "i64 2x2 = 0 0 1 -1"}, .expected = {"0 3"}},
    {.name = "rows", .inputs = {"f32 2x2 ramp", "i64 2x1 = 1 -2"}, .expected = {"2 3 0 1"}},
    {.name = "batch",
     .inputs = {"i64 2x2x2 ramp", "i64 2x1 = 1 0"},
     .attrs = "batch_dims=1",
     .expected = {"2 3 4 5"}},
    {.name = "below",
     .inputs = {"f32 3x2", "i64 1x2 = 0 -4"},
     .error = "GatherND index -4 is out of range for an extent of 2."},
    {.name = "tuple_too_long",
     .inputs = {"f32 3", "i64 1x2 = 0"},
     .error = "do not fit data of shape [3]"},
    {.name = "no_batch", .inputs = {"f32 3x2", "i64 0x2"}, .shapes = {"0"}},
};

static const om_op_case compress_cases[] = {
    {.name = "axis_0",
     .inputs = {"f32 3x2 ramp", "b8 3 = 0 1 1"},
     .attrs = "axis=0",
     .expected = {"2 3 4 5"}},
    {.name = "axis_1",
     .inputs = {"f32 3x2 ramp", "b8 2 = 0 1"},
     .attrs = "axis=1",
     .expected = {"1 3 5"}},
    {.name = "flat", .inputs = {"f32 3x2 ramp", "b8 5 = 0 1 0 0 1"}, .expected = {"1 4"}},
    {.name = "none", .inputs = {"f32 3 ramp", "b8 3 = 0"}, .shapes = {"0"}},
    {.name = "too_long", .inputs = {"f32 3 ramp", "b8 4 = 0"}, .error = "at most 3 bools"},
};

static const om_op_case scatter_cases[] = {
    {.name = "axis_0",
     .inputs = {"f32 3x3 = 0", "i64 2x3 = 1 0 2 0 2 1", "f32 2x3 = 1 1.5 2 3 4 5"},
     .expected = {"3 1.5 0 1 0 5 0 4 2"}},
    {.name = "negative",
     .inputs = {"f32 1x5 = 1 2 3 4 5", "i32 1x2 = 1 -3", "f32 1x2 = 9 8"},
     .attrs = "axis=1",
     .expected = {"1 9 8 4 5"}},
    {.name = "add",
     .inputs = {"f32 3 = 1 2 3", "i64 3 = 1 1 -1", "f32 3 = 10 20 30"},
     .attrs = "reduction=\"add\"",
     .expected = {"1 32 33"}},
    {.name = "mul",
     .inputs = {"i32 3 = 1 2 3", "i64 2 = 1 1", "i32 2 = 10 -20"},
     .attrs = "reduction=\"mul\"",
     .expected = {"1 -400 3"}},
    {.name = "max",
     .inputs = {"i64 3 = 1 2 3", "i64 2 = 1 1", "i64 2 = 10 -20"},
     .attrs = "reduction=\"max\"",
     .expected = {"1 10 3"}},
    {.name = "min",
     .inputs = {"f64 3 = 1 2 3", "i64 2 = 1 1", "f64 2 = 10 -20"},
     .attrs = "reduction=\"min\"",
     .expected = {"1 -20 3"}},
    {.name = "max_nan",
     .inputs = {"f32 2 = 1 2", "i64 2 = 0 0", "f32 2 = nan 5"},
     .attrs = "reduction=\"max\"",
     .expected = {"nan 2"}},
    {.name = "half_add",
     .inputs = {"f16 2 = 1 2", "i64 2 = 0 0", "f16 2 = 0.5 0.25"},
     .attrs = "reduction=\"add\"",
     .expected = {"1.75 2"}},
    {.name = "uint8_wraps",
     .inputs = {"u8 2 = 200 2", "i64 1 = 0", "u8 1 = 100"},
     .attrs = "reduction=\"add\"",
     .expected = {"44 2"}},
    {.name = "bool_add",
     .inputs = {"b8 2 = 1 0", "i64 2 = 0 1", "b8 2 = 1 1"},
     .attrs = "reduction=\"add\"",
     .expected = {"1 1"}},
    {.name = "strings", .inputs = {"str 2 = a b", "i64 1 = 1", "str 1 = c"}, .expected = {"a c"}},
    {.name = "strings_add",
     .inputs = {"str 2 = a b", "i64 1 = 1", "str 1 = c"},
     .attrs = "reduction=\"add\"",
     .error = "no reduction"},
    {.name = "above",
     .inputs = {"f32 3", "i64 1 = 3", "f32 1"},
     .error = "ScatterElements index 3 is out of range for an extent of 3."},
    {.name = "shapes",
     .inputs = {"f32 3", "i64 1 = 0", "f32 2"},
     .error = "updates of [2] do not go together"},
    {.name = "types", .inputs = {"f32 3", "i64 1 = 0", "i32 1"}, .error = "The updates are int32"},
    {.name = "reduction",
     .inputs = {"f32 3", "i64 1 = 0", "f32 1"},
     .attrs = "reduction=\"sum\"",
     .error = "reduction"},
};

static const om_op_case old_scatter_cases[] = {
    {.name = "opset_9",
     .opset = 9,
     .inputs = {"f32 1x5 = 1 2 3 4 5", "i64 1x2 = 1 3", "f32 1x2 = 9 8"},
     .attrs = "axis=1",
     .expected = {"1 9 3 8 5"}},
};

static const om_op_case scatter_nd_cases[] = {
    {.name = "elements",
     .inputs = {"f32 5 ramp", "i64 2x1 = 3 -5", "f32 2 = 9 8"},
     .expected = {"8 1 2 9 4"}},
    {.name = "rows",
     .inputs = {"i32 3x2 ramp", "i64 1x1 = 1", "i32 1x2 = 9 8"},
     .expected = {"0 1 9 8 4 5"}},
    {.name = "add_same_place",
     .inputs = {"f32 2x2 ramp", "i64 2x2 = 1 1 1 1", "f32 2 = 10 20"},
     .attrs = "reduction=\"add\"",
     .expected = {"0 1 2 33"}},
    {.name = "below",
     .inputs = {"f32 3", "i64 1x1 = -4", "f32 1"},
     .error = "ScatterND index -4 is out of range for an extent of 3."},
    {.name = "shapes", .inputs = {"f32 3", "i64 1x1 = 0", "f32 2"}, .error = "do not go together"},
};

#define OM_CPU_SUITE(type, table)                    \
  {.op_type = (type),                                \
   .cases = (table),                                 \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .declined = ""}

static const om_op_suite suites[] = {
    OM_OP_SUITE("Gather", gather_cases, gather_reference),
    OM_CPU_SUITE("GatherElements", elements_cases),
    OM_CPU_SUITE("GatherND", nd_cases),
    OM_CPU_SUITE("Compress", compress_cases),
    OM_CPU_SUITE("ScatterElements", scatter_cases),
    OM_CPU_SUITE("Scatter", old_scatter_cases),
    OM_CPU_SUITE("ScatterND", scatter_nd_cases),
};
OM_OP_TESTS(suites)
