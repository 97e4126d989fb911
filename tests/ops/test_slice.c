/* Slice, Expand, Tile, Pad. */
#include "harness/om_test.h"

/* Values of a list that a case gives as a constant. */
static int64_t list_at(const om_ref_tensor *list, size_t index) {
  return (int64_t)list->values[index];
}

/* Slice by the text's words: numpy's clamps, one axis after the other. */
static void slice_reference(const om_node *node,
                            const om_ref_tensor *inputs,
                            size_t input_count,
                            om_ref_tensor *outputs,
                            size_t output_count) {
  (void)output_count;
  const om_ref_tensor *x = &inputs[0];
  const bool has_attrs = input_count == 1;
  const size_t count = has_attrs ? om_ref_ints_count(node, "starts") : inputs[1].elems;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    int64_t index[OM_MAX_RANK] = {0};
    om_ref_unravel(&outputs[0], i, index);
    for (size_t n = 0; n < count; ++n) {
      int64_t axis = (int64_t)n;
      int64_t step = 1;
      if (has_attrs) axis = om_ref_ints(node, "axes", n, axis);
      if (input_count > 3 && inputs[3].values) axis = list_at(&inputs[3], n);
      if (input_count > 4 && inputs[4].values) step = list_at(&inputs[4], n);
      const uint32_t at = om_ref_axis(axis, x->rank);
      int64_t start = has_attrs ? om_ref_ints(node, "starts", n, 0) : list_at(&inputs[1], n);
      if (start < 0) start += x->dims[at];
      if (start < 0) start = 0;
      if (step < 0 && start > x->dims[at] - 1) start = x->dims[at] - 1;
      index[at] = start + index[at] * step;
    }
    outputs[0].values[i] = x->values[om_ref_ravel(x, index)];
  }
}

static const om_op_case slice_cases[] = {
    {.name = "rows",
     .inputs = {"f32 5x4", "i64 1 const = 1", "i64 1 const = 3"},
     .shapes = {"2x4"}},
    {.name = "columns",
     .inputs = {"f32 5x9", "i64 1 const = 2", "i64 1 const = 7", "i64 1 const = 1"},
     .shapes = {"5x5"}},
    {.name = "steps",
     .inputs = {"f32 7x11",
                "i64 2 const = 1 0",
                "i64 2 const = 7 10",
                "i64 2 const = 0 1",
                "i64 2 const = 2 3"},
     .shapes = {"3x4"}},
    {.name = "backwards",
     .inputs = {"f32 7x5",
                "i64 2 const = -1 3",
                "i64 2 const = -8 0",
                "i64 2 const = 0 1",
                "i64 2 const = -1 -2"},
     .shapes = {"7x2"}},
    {.name = "backwards_far",
     .inputs = {"f32 4x3",
                "i64 1 const = 100",
                "i64 1 const = -9223372036854775808",
                "i64 1 const = 1",
                "i64 1 const = -1"},
     .shapes = {"4x3"}},
    {.name = "to_the_end",
     .inputs =
         {"f32 2x3x8", "i64 1 const = 4", "i64 1 const = 9223372036854775807", "i64 1 const = -1"},
     .shapes = {"2x3x4"}},
    {.name = "int32_lists",
     .inputs = {"f32 5x4", "i32 1 const = 1", "i32 1 const = -1", "i32 1 const = 1"},
     .shapes = {"5x2"}},
    {.name = "least_step",
     .inputs = {"f32 5",
                "i64 1 const = 4",
                "i64 1 const = -9",
                "i64 1 const = 0",
                "i64 1 const = -9223372036854775808"},
     .shapes = {"1"}},
    {.name = "attributes", .opset = 9, .inputs = {"f32 5x6"}, .attrs = "starts=1,0 ends=4,-1"},
    {.name = "attributes_axes",
     .opset = 9,
     .inputs = {"f32 5x6x7"},
     .attrs = "axes=[2] starts=[-3] ends=[1000]",
     .shapes = {"5x6x3"}},
    {.name = "int64",
     .inputs = {"i64 5x4", "i64 1 const = 1", "i64 1 const = 3", "i64 1 const = 1"}},
    {.name = "uint8",
     .inputs = {"u8 5x4", "i64 1 const = 1", "i64 1 const = 3", "i64 1 const = 1"}},
    {.name = "bool_backwards",
     .inputs =
         {"b8 3x7", "i64 1 const = -1", "i64 1 const = -9", "i64 1 const = 1", "i64 1 const = -2"}},
    {.name = "half_columns",
     .inputs = {"f16 5x7", "i64 1 const = 1", "i64 1 const = 4", "i64 1 const = 1"}},
    {.name = "strings",
     .inputs = {"str 4 = a b c d",
                "i64 1 const = 3",
                "i64 1 const = -9",
                "i64 1 const = 0",
                "i64 1 const = -2"},
     .expected = {"d b"},
     .declined = "string"},
    {.name = "rank_8",
     .inputs = {"f32 2x3x2x3x2x3x2x3",
                "i64 3 const = 1 1 0",
                "i64 3 const = 3 3 2",
                "i64 3 const = 1 5 7"}},
    {.name = "run_time", .inputs = {"f32 5", "i64 1 = 1", "i64 1 = 3"}, .declined = "run time"},
    {.name = "empty",
     .inputs = {"f32 5", "i64 1 const = 3", "i64 1 const = 3"},
     .shapes = {"0"},
     .declined = "empty"},
    {.name = "step_0",
     .inputs =
         {"f32 5", "i64 1 const = 0", "i64 1 const = 3", "i64 1 const = 0", "i64 1 const = 0"},
     .error = "A step is 0."},
    {.name = "axis_outside",
     .inputs = {"f32 5", "i64 1 const = 0", "i64 1 const = 3", "i64 1 const = 1"},
     .error = "The axis 1 is outside"},
    {.name = "axes_repeat",
     .inputs = {"f32 5x5", "i64 2 const = 0 0", "i64 2 const = 3 3", "i64 2 const = 1 -1"},
     .error = "The axis -1 occurs twice."},
    {.name = "counts_differ",
     .inputs = {"f32 5x5", "i64 2 const = 0 0", "i64 1 const = 3"},
     .error = "There are 2 starts"},
    {.name = "float_starts",
     .inputs = {"f32 5x5", "f32 1 const = 0", "i64 1 const = 3"},
     .error = "The starts are float32"},
};

static void expand_reference(const om_node *node,
                             const om_ref_tensor *inputs,
                             size_t input_count,
                             om_ref_tensor *outputs,
                             size_t output_count) {
  (void)node, (void)input_count, (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    outputs[0].values[i] = om_ref_broadcast(&inputs[0], &outputs[0], i);
  }
}

static const om_op_case expand_cases[] = {
    {.name = "rows", .inputs = {"f32 1x5", "i64 2 const = 3 5"}, .shapes = {"3x5"}},
    {.name = "columns", .inputs = {"f32 3x1", "i64 2 const = 3 8"}, .shapes = {"3x8"}},
    {.name = "new_axes", .inputs = {"f32 4", "i64 3 const = 2 3 4"}, .shapes = {"2x3x4"}},
    {.name = "smaller_shape", .inputs = {"f32 3x1", "i64 1 const = 1"}, .shapes = {"3x1"}},
    {.name = "both_ways", .inputs = {"f32 2x1x3", "i64 2 const = 4 1"}, .shapes = {"2x4x3"}},
    {.name = "scalar", .inputs = {"f32 scalar", "i64 2 const = 3 7"}, .shapes = {"3x7"}},
    {.name = "int64", .inputs = {"i64 2x1", "i64 2 const = 2 3"}},
    {.name = "bool", .inputs = {"b8 1x3", "i64 2 const = 2 3"}},
    {.name = "bool_both_ways", .inputs = {"b8 2x1x3", "i64 3 const = 2 5 3"}},
    {.name = "crossed_rank_8",
     .inputs = {"f32 2x1x2x1x2x1x2x1", "i64 8 const = 1 3 1 3 1 3 1 3"},
     .shapes = {"2x3x2x3x2x3x2x3"}},
    {.name = "run_time", .inputs = {"f32 1x5", "i64 2 = 3 5"}, .declined = "run time"},
    {.name = "does_not_fit",
     .inputs = {"f32 2x3", "i64 2 const = 2 4"},
     .error = "do not broadcast"},
    {.name = "negative",
     .inputs = {"f32 2x3", "i64 2 const = -1 3"},
     .error = "of the shape is -1"},
    {.name = "huge",
     .inputs = {"f32 1", "i64 1 const = 1099511627776"},
     .error = "[1099511627776] is more than"},
    {.name = "overflow",
     .inputs = {"f32 1", "i64 3 const = 4294967296 4294967296 4"},
     .error = "is more than a tensor"},
};

static void tile_reference(const om_node *node,
                           const om_ref_tensor *inputs,
                           size_t input_count,
                           om_ref_tensor *outputs,
                           size_t output_count) {
  (void)node, (void)input_count, (void)output_count;
  const om_ref_tensor *x = &inputs[0];
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    int64_t index[OM_MAX_RANK] = {0};
    om_ref_unravel(&outputs[0], i, index);
    for (uint32_t axis = 0; axis < x->rank; ++axis) index[axis] %= x->dims[axis];
    outputs[0].values[i] = x->values[om_ref_ravel(x, index)];
  }
}

static const om_op_case tile_cases[] = {
    {.name = "both", .inputs = {"f32 2x3", "i64 2 const = 2 3"}, .shapes = {"4x9"}},
    {.name = "rows", .inputs = {"f32 2x4", "i64 2 const = 3 1"}, .shapes = {"6x4"}},
    {.name = "list", .inputs = {"f32 5", "i64 1 const = 7"}, .shapes = {"35"}},
    {.name = "rank_4", .inputs = {"f32 2x3x2x3", "i64 4 const = 2 1 2 2"}},
    {.name = "rank_8", .inputs = {"f32 1x2x1x2x1x2x1x2", "i64 8 const = 2 1 2 1 2 1 2 1"}},
    {.name = "rank_8_all",
     .inputs = {"f32 2x2x2x2x2x2x2x2", "i64 8 const = 2 2 2 2 2 2 2 2"},
     .declined = "more axes move"},
    {.name = "int64", .inputs = {"i64 2x3", "i64 2 const = 2 3"}},
    {.name = "half", .inputs = {"f16 2x3", "i64 2 const = 2 3"}},
    {.name = "bool", .inputs = {"b8 2x3", "i64 2 const = 2 3"}},
    {.name = "none",
     .inputs = {"f32 2x3", "i64 2 const = 0 3"},
     .shapes = {"0x9"},
     .declined = "empty"},
    {.name = "counts",
     .inputs = {"f32 2x3", "i64 1 const = 2"},
     .error = "1 repeats for a tensor of rank 2"},
    {.name = "negative", .inputs = {"f32 2", "i64 1 const = -1"}, .error = "of the repeats is -1"},
    {.name = "huge", .inputs = {"f32 2", "i64 1 const = 549755813888"}, .error = "is more than"},
    {.name = "overflow",
     .inputs = {"f32 2", "i64 1 const = 9223372036854775807"},
     .error = "overflow"},
};

static int64_t pad_from(const om_node *node, int64_t at, int64_t extent) {
  if (om_ref_text_is(node, "mode", "constant", "edge")) {
    return at < 0 ? 0 : at >= extent ? extent - 1 : at;
  }
  if (om_ref_text_is(node, "mode", "constant", "wrap")) return (at % extent + extent) % extent;
  while (at < 0 || at >= extent) {
    if (extent == 1) return 0;
    at = at < 0 ? -at : 2 * (extent - 1) - at;
  }
  return at;
}

static void pad_reference(const om_node *node,
                          const om_ref_tensor *inputs,
                          size_t input_count,
                          om_ref_tensor *outputs,
                          size_t output_count) {
  (void)output_count;
  const om_ref_tensor *x = &inputs[0];
  const bool is_constant = om_ref_text_is(node, "mode", "constant", "constant");
  const bool has_value = input_count > 2 && inputs[2].values;
  const double value = has_value ? inputs[2].values[0] : om_ref_float(node, "value", 0.0);
  int64_t before[OM_MAX_RANK] = {0};
  const size_t axes = input_count > 3 ? inputs[3].elems : x->rank;
  for (size_t n = 0; n < axes; ++n) {
    const int64_t axis = input_count > 3 ? list_at(&inputs[3], n) : (int64_t)n;
    before[om_ref_axis(axis, x->rank)] =
        input_count > 1 ? list_at(&inputs[1], n) : om_ref_ints(node, "pads", n, 0);
  }
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    int64_t index[OM_MAX_RANK] = {0};
    bool is_inside = true;
    om_ref_unravel(&outputs[0], i, index);
    for (uint32_t axis = 0; axis < x->rank; ++axis) {
      index[axis] -= before[axis];
      if (!is_constant) index[axis] = pad_from(node, index[axis], x->dims[axis]);
      is_inside = is_inside && index[axis] >= 0 && index[axis] < x->dims[axis];
    }
    outputs[0].values[i] = is_inside ? x->values[om_ref_ravel(x, index)] : value;
  }
}

static const om_op_case pad_cases[] = {
    {.name = "uint4",
     .inputs = {"u8 1x3 = 15 1 2", "i64 4 = 0 1 1 0", "u8 1 = 9"},
     .graph = "t = Cast(x0) to=21; v = Cast(x2) to=21; u = Pad(t, x1, v); y0 = Cast(u) to=2",
     .expected = {"9 15 1 2 9 9 9 9"},
     .shapes = {"2x4"},
     .declined = ""},
    {.name = "int4_edge",
     .inputs = {"i8 3 = -8 1 7", "i64 2 = 2 2"},
     .graph = "t = Cast(x0) to=22; u = Pad(t, x1) mode=\"edge\"; y0 = Cast(u) to=3",
     .expected = {"-8 -8 -8 1 7 7 7"},
     .declined = ""},
    {.name = "int4_cut",
     .inputs = {"i8 3 = -8 1 7", "i64 2 const = -1 1"},
     .graph = "t = Cast(x0) to=22; u = Pad(t, x1); y0 = Cast(u) to=3",
     .expected = {"1 7 0"},
     .declined = ""},
    {.name = "zeros", .inputs = {"f32 2x3", "i64 4 const = 1 0 2 3"}, .shapes = {"5x6"}},
    {.name = "value", .inputs = {"f32 2x3", "i64 4 const = 1 1 1 1", "f32 scalar const = 2.5"}},
    {.name = "images", .inputs = {"f32 1x3x5x6", "i64 8 const = 0 0 1 2 0 0 3 1"}},
    {.name = "axes",
     .inputs = {"f32 2x3x4", "i64 2 const = 1 2", "-", "i64 1 const = -1"},
     .shapes = {"2x3x7"}},
    {.name = "crop", .inputs = {"f32 5x6", "i64 4 const = -1 2 -2 -3"}, .shapes = {"2x5"}},
    {.name = "crop_all_but_pads", .inputs = {"f32 3", "i64 2 const = 5 -4"}, .shapes = {"4"}},
    {.name = "reflect",
     .inputs = {"f32 3x4", "i64 4 const = 2 3 1 2"},
     .attrs = "mode=\"reflect\""},
    {.name = "reflect_often",
     .inputs = {"f32 3", "i64 2 const = 7 9"},
     .attrs = "mode=\"reflect\""},
    {.name = "reflect_one",
     .inputs = {"f32 1x2", "i64 4 const = 2 1 1 1"},
     .attrs = "mode=\"reflect\""},
    {.name = "edge", .inputs = {"f32 3x4", "i64 4 const = 2 3 4 5"}, .attrs = "mode=\"edge\""},
    {.name = "wrap", .inputs = {"f32 3x4", "i64 4 const = 4 3 1 9"}, .attrs = "mode=\"wrap\""},
    {.name = "attributes", .opset = 9, .inputs = {"f32 2x3"}, .attrs = "pads=0,1,2,0 value=1.5f"},
    {.name = "opset_11", .opset = 11, .inputs = {"f32 2x3", "i64 4 const = 1 0 2 3"}},
    {.name = "rank_8",
     .inputs = {"f32 2x1x2x1x2x1x2x3", "i64 16 const = 1 0 1 0 1 0 1 1 0 1 0 1 0 1 0 1"}},
    {.name = "int32", .inputs = {"i32 2x3", "i64 4 const = 1 0 2 3", "i32 scalar const = 7"}},
    {.name = "int64", .inputs = {"i64 2x3", "i64 4 const = 1 0 2 3", "i64 scalar const = -7"}},
    {.name = "bool", .inputs = {"b8 2x3", "i64 4 const = 1 0 2 3", "b8 scalar const = 1"}},
    {.name = "double_value", .opset = 9, .inputs = {"f64 3"}, .attrs = "pads=1,1 value=0.5f"},
    {.name = "uint8_reflect",
     .inputs = {"u8 3x5", "i64 4 const = 2 3 1 2"},
     .attrs = "mode=\"reflect\""},
    {.name = "half", .opset = 9, .inputs = {"f16 3"}, .attrs = "pads=1,1 value=0.5f"},
    {.name = "pads_at_run_time", .inputs = {"f32 2", "i64 2 = 1 1"}, .declined = "run time"},
    {.name = "value_at_run_time",
     .inputs = {"f32 2", "i64 2 const = 1 1", "f32 scalar"},
     .declined = "run time"},
    {.name = "below_nothing",
     .inputs = {"f32 2", "i64 2 const = -5 1"},
     .error = "Pads of -5 and 1"},
    {.name = "huge", .inputs = {"f32 2", "i64 2 const = 1099511627776 0"}, .error = "is more than"},
    {.name = "overflow",
     .inputs = {"f32 2", "i64 2 const = 9223372036854775807 9223372036854775807"},
     .error = "do not fit an extent of 2"},
    {.name = "count", .inputs = {"f32 2x2", "i64 2 const = 1 1"}, .error = "2 pads for 2 axes"},
    {.name = "mode",
     .inputs = {"f32 2", "i64 2 const = 1 1"},
     .attrs = "mode=\"mirror\"",
     .error = "mode"},
    {.name = "value_type",
     .inputs = {"f32 2", "i64 2 const = 1 1", "i32 scalar const = 7"},
     .error = "no single float32"},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("Slice", slice_cases, slice_reference),
    OM_OP_SUITE("Expand", expand_cases, expand_reference),
    OM_OP_SUITE("Tile", tile_cases, tile_reference),
    OM_OP_SUITE("Pad", pad_cases, pad_reference),
};
OM_OP_TESTS(suites)
