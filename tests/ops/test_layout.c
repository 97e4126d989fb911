/* Transpose, Concat, Split, DepthToSpace, SpaceToDepth, ReverseSequence: bits move, none changes.
 */
#include "harness/om_test.h"

static void transpose_reference(const om_node *node,
                                const om_ref_tensor *inputs,
                                size_t input_count,
                                om_ref_tensor *outputs,
                                size_t output_count) {
  (void)input_count, (void)output_count;
  const om_ref_tensor *x = &inputs[0];
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    int64_t index[OM_MAX_RANK] = {0};
    int64_t from[OM_MAX_RANK] = {0};
    om_ref_unravel(&outputs[0], i, index);
    for (uint32_t axis = 0; axis < x->rank; ++axis) {
      from[om_ref_ints(node, "perm", axis, (int64_t)(x->rank - 1 - axis))] = index[axis];
    }
    outputs[0].values[i] = x->values[om_ref_ravel(x, from)];
  }
}

static const om_op_case transpose_cases[] = {
    {.name = "int4",
     .inputs = {"i8 3x3 = -8 -7 1 2 3 4 5 6 7"},
     .graph = "t = Cast(x0) to=22; u = Transpose(t) perm=1,0; y0 = Cast(u) to=3",
     .expected = {"-8 2 5 -7 3 6 1 4 7"},
     .declined = ""},
    {.name = "uint4",
     .inputs = {"u8 2x1x4 = 0 1 2 3 15 14 13 12"},
     .graph = "t = Cast(x0) to=21; u = Transpose(t); y0 = Cast(u) to=2",
     .expected = {"0 15 1 14 2 13 3 12"},
     .declined = ""},
    {.name = "matrix", .inputs = {"f32 5x7"}, .shapes = {"7x5"}},
    {.name = "list", .inputs = {"f32 9"}},
    {.name = "scalar", .inputs = {"f32 scalar"}},
    {.name = "nothing_moves", .inputs = {"f32 2x3x4"}, .attrs = "perm=0,1,2"},
    {.name = "ones_move", .inputs = {"f32 1x3x1x4"}, .attrs = "perm=2,1,0,3"},
    {.name = "tiles", .inputs = {"f32 65x130"}},
    {.name = "channels_last", .inputs = {"f32 2x19x7x9"}, .attrs = "perm=0,2,3,1"},
    {.name = "channels_first", .inputs = {"f32 2x7x9x19"}, .attrs = "perm=0,3,1,2"},
    /* On the CPU parts of a row take turns, and something is left of it. */
    {.name = "parts_of_rows", .inputs = {"f32 2x21x23x29"}, .attrs = "perm=0,2,3,1"},
    {.name = "parts_of_far_rows", .inputs = {"f32 2x19x31x22"}, .attrs = "perm=0,3,1,2"},
    {.name = "parts_of_bytes", .inputs = {"u8 1x61x37x37"}, .attrs = "perm=0,2,3,1"},
    {.name = "colours_last", .inputs = {"f32 2x3x37x41"}, .attrs = "perm=0,2,3,1"},
    {.name = "colours_first", .inputs = {"f32 2x67x71x3"}, .attrs = "perm=0,3,1,2"},
    {.name = "heads", .inputs = {"f32 1x40x3x8x15"}, .attrs = "perm=2,0,3,1,4"},
    {.name = "quads", .inputs = {"f32 5x6x8"}, .attrs = "perm=1,0,2"},
    {.name = "last_two", .inputs = {"f32 3x33x34"}, .attrs = "perm=0,2,1"},
    {.name = "all_reversed", .inputs = {"f32 2x3x4x5x6"}},
    {.name = "rank_8", .inputs = {"f32 2x3x2x3x2x3x2x3"}, .attrs = "perm=7,5,3,1,6,4,2,0"},
    {.name = "rank_8_tiles", .inputs = {"f32 2x2x2x2x2x2x9x10"}, .attrs = "perm=5,4,3,2,1,0,7,6"},
    {.name = "int64", .inputs = {"i64 5x7x3"}, .attrs = "perm=2,0,1"},
    {.name = "double", .inputs = {"f64 35x37"}},
    {.name = "int32", .inputs = {"i32 35x37"}},
    {.name = "uint8", .inputs = {"u8 5x7x3"}},
    {.name = "uint8_words", .inputs = {"u8 5x6x8"}, .attrs = "perm=1,0,2"},
    {.name = "uint8_rank_8", .inputs = {"u8 2x3x2x3x2x3x2x3"}, .attrs = "perm=7,5,3,1,6,4,2,0"},
    {.name = "half_pairs", .inputs = {"f16 5x7x6"}, .attrs = "perm=1,0,2"},
    {.name = "half", .inputs = {"f16 5x7x3"}},
    {.name = "half_tiles", .inputs = {"f16 130x66"}},
    {.name = "half_tiles_in_front", .inputs = {"f16 3x66x134"}, .attrs = "perm=0,2,1"},
    {.name = "half_tiles_around", .inputs = {"f16 2x12x3x10x8"}, .attrs = "perm=0,4,3,2,1"},
    {.name = "half_odd_rows", .inputs = {"f16 35x64"}},
    {.name = "half_odd_columns", .inputs = {"f16 64x35"}},
    {.name = "int16_tiles", .inputs = {"i16 18x70"}},
    {.name = "bool", .inputs = {"b8 5x7"}},
    {.name = "strings",
     .inputs = {"str 2x2 = a bb ccc dddd"},
     .expected = {"a ccc bb dddd"},
     .declined = "string"},
    {.name = "empty", .inputs = {"f32 0x3"}, .shapes = {"3x0"}, .declined = "empty"},
    {.name = "edges", .inputs = {"f32 9x9 edges"}},
    {.name = "perm_repeats", .inputs = {"f32 2x3"}, .attrs = "perm=1,1", .error = "perm"},
    {.name = "perm_outside",
     .inputs = {"f32 2x3"},
     .attrs = "perm=0,2",
     .error = "2 at position 1"},
    {.name = "perm_short", .inputs = {"f32 2x3"}, .attrs = "perm=[0]", .error = "perm has 1 axes"},
};

static void concat_reference(const om_node *node,
                             const om_ref_tensor *inputs,
                             size_t input_count,
                             om_ref_tensor *outputs,
                             size_t output_count) {
  (void)output_count;
  const uint32_t axis = om_ref_axis(om_ref_int(node, "axis", 1), outputs[0].rank);
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    int64_t index[OM_MAX_RANK] = {0};
    size_t n = 0;
    om_ref_unravel(&outputs[0], i, index);
    while (n + 1 < input_count && index[axis] >= inputs[n].dims[axis]) {
      index[axis] -= inputs[n++].dims[axis];
    }
    outputs[0].values[i] = inputs[n].values[om_ref_ravel(&inputs[n], index)];
  }
}

static const om_op_case concat_cases[] = {
    {.name = "two", .inputs = {"f32 2x3", "f32 2x4"}, .attrs = "axis=1"},
    {.name = "first_axis", .inputs = {"f32 2x3", "f32 5x3"}, .attrs = "axis=0"},
    {.name = "last_axis", .inputs = {"f32 2x3x5", "f32 2x3x7", "f32 2x3x1"}, .attrs = "axis=-1"},
    {.name = "one", .inputs = {"f32 2x3"}, .attrs = "axis=0"},
    {.name = "four_maps",
     .inputs = {"f32 1x24x6x6", "f32 1x24x6x6", "f32 1x24x6x6", "f32 1x24x6x6"},
     .attrs = "axis=1"},
    {.name = "five",
     .inputs = {"f32 2x1", "f32 2x2", "f32 2x3", "f32 2x4", "f32 2x5"},
     .attrs = "axis=1"},
    {.name = "eight_quads",
     .inputs =
         {"f32 3x4", "f32 3x8", "f32 3x4", "f32 3x4", "f32 3x12", "f32 3x4", "f32 3x4", "f32 3x8"},
     .attrs = "axis=1"},
    {.name = "with_constant", .inputs = {"f32 2x3", "f32 2x3 const"}, .attrs = "axis=0"},
    {.name = "int64", .inputs = {"i64 2x3", "i64 2x4"}, .attrs = "axis=1"},
    {.name = "bool", .inputs = {"b8 2x3", "b8 2x4"}, .attrs = "axis=1"},
    {.name = "bool_words", .inputs = {"b8 2x8", "b8 2x4", "b8 2x4"}, .attrs = "axis=1"},
    {.name = "bool_quads", .inputs = {"b8 2x16", "b8 2x32"}, .attrs = "axis=1"},
    {.name = "bool_eight",
     .inputs = {"b8 3x1", "b8 3x3", "b8 3x1", "b8 3x5", "b8 3x2", "b8 3x7", "b8 3x1", "b8 3x4"},
     .attrs = "axis=1"},
    {.name = "half_odd", .inputs = {"f16 3x3", "f16 3x4", "f16 3x5"}, .attrs = "axis=1"},
    {.name = "strings",
     .inputs = {"str 2 = a b", "str 1 = c"},
     .attrs = "axis=0",
     .expected = {"a b c"},
     .declined = "string"},
    {.name = "empty_between",
     .inputs = {"f32 1x2", "f32 0x2", "f32 2x2"},
     .attrs = "axis=0",
     .shapes = {"3x2"}},
    {.name = "empty_first", .inputs = {"b8 3x0", "b8 3x5", "b8 3x0", "b8 3x2"}, .attrs = "axis=1"},
    {.name = "opset_4", .opset = 7, .inputs = {"f32 2x3", "f32 2x4"}, .attrs = "axis=1"},
    {.name = "axis_missing", .inputs = {"f32 2"}, .error = "The attribute axis is missing."},
    {.name = "axis_outside",
     .inputs = {"f32 2x3"},
     .attrs = "axis=2",
     .error = "The axis 2 is outside"},
    {.name = "ranks_differ",
     .inputs = {"f32 2x3", "f32 2"},
     .attrs = "axis=0",
     .error = "does not go behind"},
    {.name = "extents_differ",
     .inputs = {"f32 2x3", "f32 2x4"},
     .attrs = "axis=0",
     .error = "does not go behind"},
    {.name = "types_differ",
     .inputs = {"f32 2x3", "i32 2x3"},
     .attrs = "axis=0",
     .error = "does not go behind"},
};

static void split_reference(const om_node *node,
                            const om_ref_tensor *inputs,
                            size_t input_count,
                            om_ref_tensor *outputs,
                            size_t output_count) {
  (void)input_count;
  const uint32_t axis = om_ref_axis(om_ref_int(node, "axis", 0), inputs[0].rank);
  int64_t before = 0;
  for (size_t n = 0; n < output_count; ++n) {
    for (size_t i = 0; i < outputs[n].elems; ++i) {
      int64_t index[OM_MAX_RANK] = {0};
      om_ref_unravel(&outputs[n], i, index);
      index[axis] += before;
      outputs[n].values[i] = inputs[0].values[om_ref_ravel(&inputs[0], index)];
    }
    before += outputs[n].dims[axis];
  }
}

static const om_op_case split_cases[] = {
    {.name = "equal",
     .opset = 13,
     .inputs = {"f32 6x5"},
     .output_count = 3,
     .shapes = {"2x5", "2x5"}},
    {.name = "sizes",
     .inputs = {"f32 2x7", "i64 3 const = 1 4 2"},
     .attrs = "axis=1",
     .output_count = 3},
    {.name = "sizes_at_run_time",
     .inputs = {"f32 2x7", "i64 2 = 3 4"},
     .attrs = "axis=1",
     .output_count = 2,
     .declined = "run time"},
    {.name = "heads",
     .inputs = {"f32 2x12x8", "i64 3 const = 4 4 4"},
     .attrs = "axis=-2",
     .output_count = 3},
    {.name = "num_outputs",
     .opset = 18,
     .inputs = {"f32 7"},
     .attrs = "num_outputs=3",
     .output_count = 3,
     .shapes = {"3", "3", "1"}},
    {.name = "attribute",
     .opset = 11,
     .inputs = {"f32 2x7"},
     .attrs = "axis=1 split=3,4",
     .output_count = 2},
    {.name = "opset_7", .opset = 7, .inputs = {"f32 6x2"}, .output_count = 2},
    {.name = "zero_size",
     .inputs = {"f32 3", "i64 2 const = 0 3"},
     .output_count = 2,
     .shapes = {"0", "3"},
     .declined = "empty"},
    {.name = "int64",
     .inputs = {"i64 2x7", "i64 2 const = 3 4"},
     .attrs = "axis=1",
     .output_count = 2},
    {.name = "half",
     .inputs = {"f16 2x7", "i64 2 const = 3 4"},
     .attrs = "axis=1",
     .output_count = 2},
    {.name = "bool",
     .inputs = {"b8 3x9", "i64 2 const = 4 5"},
     .attrs = "axis=1",
     .output_count = 2},
    {.name = "sum_differs",
     .inputs = {"f32 5", "i64 2 const = 2 2"},
     .output_count = 2,
     .error = "extent of 5"},
    {.name = "negative",
     .inputs = {"f32 5", "i64 2 const = 6 -1"},
     .output_count = 2,
     .error = "Part 1 has -1 elements"},
    {.name = "wraps",
     .inputs = {"f32 5", "i64 3 const = 9223372036854775807 9223372036854775807 7"},
     .output_count = 3,
     .error = "extent of 5"},
    {.name = "not_divisible",
     .opset = 13,
     .inputs = {"f32 5"},
     .output_count = 2,
     .error = "2 equal parts"},
    {.name = "count_differs",
     .inputs = {"f32 5", "i64 3 const = 1 1 3"},
     .output_count = 2,
     .error = "3 sizes for 2"},
};

static void depth_reference(const om_node *node,
                            const om_ref_tensor *inputs,
                            size_t input_count,
                            om_ref_tensor *outputs,
                            size_t output_count) {
  (void)input_count, (void)output_count;
  const om_ref_tensor *x = &inputs[0];
  const int64_t block = om_ref_int(node, "blocksize", 1);
  const bool is_crd = om_ref_text_is(node, "mode", "DCR", "CRD");
  const int64_t channels = outputs[0].dims[1];
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    int64_t y[OM_MAX_RANK] = {0};
    om_ref_unravel(&outputs[0], i, y);
    const int64_t row = y[2] % block;
    const int64_t col = y[3] % block;
    const int64_t channel =
        is_crd ? (y[1] * block + row) * block + col : (row * block + col) * channels + y[1];
    const int64_t from[OM_MAX_RANK] = {y[0], channel, y[2] / block, y[3] / block};
    outputs[0].values[i] = x->values[om_ref_ravel(x, from)];
  }
}

static const om_op_case depth_cases[] = {
    {.name = "dcr", .inputs = {"f32 2x12x3x4"}, .attrs = "blocksize=2"},
    {.name = "crd", .inputs = {"f32 2x12x3x4"}, .attrs = "blocksize=2 mode=\"CRD\""},
    {.name = "block_3", .inputs = {"f32 1x18x2x5"}, .attrs = "blocksize=3"},
    {.name = "opset_7", .opset = 7, .inputs = {"f32 1x8x2x2"}, .attrs = "blocksize=2"},
    {.name = "uint8", .inputs = {"u8 1x8x2x2"}, .attrs = "blocksize=2"},
    {.name = "channels",
     .inputs = {"f32 1x6x2x2"},
     .attrs = "blocksize=2",
     .error = "Blocks of 2 by 2"},
    {.name = "block_0",
     .inputs = {"f32 1x6x2x2"},
     .attrs = "blocksize=0",
     .error = "blocksize is 0"},
};

static void space_reference(const om_node *node,
                            const om_ref_tensor *inputs,
                            size_t input_count,
                            om_ref_tensor *outputs,
                            size_t output_count) {
  (void)input_count, (void)output_count;
  const om_ref_tensor *x = &inputs[0];
  const int64_t block = om_ref_int(node, "blocksize", 1);
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    int64_t y[OM_MAX_RANK] = {0};
    om_ref_unravel(&outputs[0], i, y);
    const int64_t cell = y[1] / x->dims[1];
    const int64_t from[OM_MAX_RANK] = {
        y[0], y[1] % x->dims[1], y[2] * block + cell / block, y[3] * block + cell % block};
    outputs[0].values[i] = x->values[om_ref_ravel(x, from)];
  }
}

static const om_op_case space_cases[] = {
    {.name = "block_2", .inputs = {"f32 2x3x4x6"}, .attrs = "blocksize=2"},
    {.name = "block_3", .inputs = {"f32 1x2x6x9"}, .attrs = "blocksize=3"},
    {.name = "does_not_fit",
     .inputs = {"f32 1x2x5x4"},
     .attrs = "blocksize=2",
     .error = "Blocks of 2 by 2"},
};

static const om_op_case reverse_cases[] = {
    {.name = "time_first",
     .inputs = {"f32 4x3 ramp", "i64 3 = 1 2 4"},
     .expected = {"0 4 11 3 1 8 6 7 5 9 10 2"}},
    {.name = "batch_first",
     .inputs = {"f32 2x3 ramp", "i64 2 = 2 3"},
     .attrs = "batch_axis=0 time_axis=1",
     .expected = {"1 0 2 5 4 3"}},
    {.name = "rows_of_two", .inputs = {"i32 2x1x2 ramp", "i64 1 = 2"}, .expected = {"2 3 0 1"}},
    {.name = "too_long", .inputs = {"f32 4x3", "i64 3 = 1 5 4"}, .error = "length 5 of sequence 1"},
    {.name = "axes",
     .inputs = {"f32 4x3", "i64 3 = 1 1 1"},
     .attrs = "batch_axis=1 time_axis=1",
     .error = "time_axis"},
    {.name = "axes_whose_sum_overflows",
     .inputs = {"f32 4x3", "i64 3 = 1 1 1"},
     .attrs = "batch_axis=9223372036854775807 time_axis=9223372036854775807",
     .error = "time_axis"},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("Transpose", transpose_cases, transpose_reference),
    OM_OP_SUITE("Concat", concat_cases, concat_reference),
    OM_OP_SUITE("Split", split_cases, split_reference),
    OM_OP_SUITE("DepthToSpace", depth_cases, depth_reference),
    OM_OP_SUITE("SpaceToDepth", space_cases, space_reference),
    {.op_type = "ReverseSequence",
     .cases = reverse_cases,
     .case_count = sizeof reverse_cases / sizeof reverse_cases[0],
     .declined = "kernel"},
};
OM_OP_TESTS(suites)
