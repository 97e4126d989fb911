/* Reductions, ArgMax and ArgMin. */
#include <math.h>

#include "harness/om_test.h"
#include "ops/op_reduce.h"

static bool is_reduced(const om_node *node,
                       const om_ref_tensor *inputs,
                       size_t input_count,
                       uint32_t axis) {
  const bool has_input = input_count > 1 && inputs[1].values;
  const size_t count = has_input ? inputs[1].elems : om_ref_ints_count(node, "axes");
  if (count == 0) return om_ref_int(node, "noop_with_empty_axes", 0) == 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t value =
        has_input ? (int64_t)inputs[1].values[i] : om_ref_ints(node, "axes", i, 0);
    if (om_ref_axis(value, inputs[0].rank) == axis) return true;
  }
  return false;
}

static double initial(const char *type) {
  if (strcmp(type, "ReduceMax") == 0) return -INFINITY;
  if (strcmp(type, "ReduceMin") == 0) return INFINITY;
  return strcmp(type, "ReduceProd") == 0 ? 1.0 : 0.0;
}

static double join(const char *type, double sum, double v) {
  if (strcmp(type, "ReduceMax") == 0) return isnan(v) || v > sum ? v : sum;
  if (strcmp(type, "ReduceMin") == 0) return isnan(v) || v < sum ? v : sum;
  if (strcmp(type, "ReduceProd") == 0) return sum * v;
  if (strcmp(type, "ReduceL1") == 0) return sum + fabs(v);
  if (strcmp(type, "ReduceL2") == 0 || strcmp(type, "ReduceSumSquare") == 0) return sum + v * v;
  return strcmp(type, "ReduceLogSumExp") == 0 ? sum + exp(v) : sum + v;
}

static double finish(const char *type, double sum, double count) {
  if (strcmp(type, "ReduceMean") == 0) return sum / count;
  if (strcmp(type, "ReduceL2") == 0) return sqrt(sum);
  if (strcmp(type, "ReduceLogSum") == 0 || strcmp(type, "ReduceLogSumExp") == 0) return log(sum);
  return sum;
}

/* Element `elem` of the result: goes over all of the input and takes what belongs to it. */
static double reduced(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      size_t elem) {
  const om_ref_tensor *x = &inputs[0];
  double sum = initial(node->type);
  size_t count = 0;
  for (size_t i = 0; i < x->elems; ++i) {
    int64_t index[OM_MAX_RANK] = {0};
    size_t at = 0;
    om_ref_unravel(x, i, index);
    for (uint32_t d = 0; d < x->rank; ++d) {
      if (!is_reduced(node, inputs, input_count, d)) {
        at = at * (size_t)x->dims[d] + (size_t)index[d];
      }
    }
    if (at != elem) continue;
    if (isnan(sum)) break;
    sum = join(node->type, sum, x->values[i]);
    ++count;
  }
  return finish(node->type, sum, (double)count);
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    outputs[0].values[i] = reduced(node, inputs, input_count, i);
  }
}

static const om_op_case cases[] = {
    {.name = "all", .opset = 13, .inputs = {"f32 5x7"}, .shapes = {"1x1"}},
    {.name = "last",
     .opset = 11,
     .inputs = {"f32 6x33 range 0.5 1.5"},
     .attrs = "axes=[1]",
     .shapes = {"6x1"}},
    {.name = "last_dropped",
     .opset = 11,
     .inputs = {"f32 6x33 range 0.5 1.5"},
     .attrs = "axes=[-1] keepdims=0",
     .shapes = {"6"}},
    {.name = "one_element", .opset = 11, .inputs = {"f32 9x1 range 0.5 1.5"}, .attrs = "axes=[1]"},
    {.name = "lanes_255",
     .opset = 11,
     .inputs = {"f32 3x255 range 0.98 1.02"},
     .attrs = "axes=[1]"},
    {.name = "lanes_256",
     .opset = 11,
     .inputs = {"f32 3x256 range 0.98 1.02"},
     .attrs = "axes=[1]"},
    {.name = "lanes_257",
     .opset = 11,
     .inputs = {"f32 3x257 range 0.98 1.02"},
     .attrs = "axes=[1]"},
    {.name = "long",
     .opset = 11,
     .scaled_error = 4e-6,
     .inputs = {"f32 2x5003 range 0.998 1.002"},
     .attrs = "axes=[1]"},
    {.name = "first", .opset = 11, .inputs = {"f32 19x37 range 0.5 1.5"}, .attrs = "axes=[0]"},
    {.name = "first_long",
     .opset = 11,
     .scaled_error = 4e-6,
     .inputs = {"f32 700x5 range 0.98 1.02"},
     .attrs = "axes=[0]"},
    {.name = "middle", .opset = 11, .inputs = {"f32 3x11x5 range 0.5 1.5"}, .attrs = "axes=[1]"},
    {.name = "space", .opset = 11, .inputs = {"f32 2x3x7x9 range 0.5 1.5"}, .attrs = "axes=[2,3]"},
    {.name = "apart", .opset = 11, .inputs = {"f32 2x3x7 range 0.5 1.5"}, .attrs = "axes=[0,2]"},
    {.name = "apart_from_one_another",
     .opset = 11,
     .inputs = {"f32 2x3x4x3x5x2 range 0.9 1.1"},
     .attrs = "axes=[1,3,5] keepdims=0",
     .scaled_error = 2e-6},
    {.name = "kept_apart",
     .opset = 11,
     .inputs = {"f32 3x40x5x30x2 range 0.99 1.01"},
     .attrs = "axes=[1,3]",
     .scaled_error = 1e-5},
    {.name = "rank_8",
     .opset = 11,
     .inputs = {"f32 2x1x3x2x1x2x3x2 range 0.5 1.5"},
     .attrs = "axes=[2,3,4]"},
    {.name = "axes_input",
     .opset = 18,
     .inputs = {"f32 6x33 range 0.5 1.5", "i64 1 const = -1"},
     .shapes = {"6x1"}},
    {.name = "axes_at_run_time",
     .opset = 18,
     .inputs = {"f32 6x33 range 0.5 1.5", "i64 1 = 0"},
     .declined = "run time",
     .shapes = {"1x33"}},
    {.name = "f64",
     .opset = 18,
     .inputs = {"f64 3x4 range 0.5 1.5", "i64 1 const = 1"},
     .declined = "float64"},
    {.name = "f16", .opset = 18, .inputs = {"f16 3x70 range 0.98 1.02", "i64 1 const = 1"}},
    {.name = "f16_first_axis",
     .opset = 18,
     .inputs = {"f16 300x3 range 0.99 1.01", "i64 1 const = 0"}},
    {.name = "f16_apart", .opset = 18, .inputs = {"f16 4x3x6 range 0.9 1.1", "i64 2 const = 0 2"}},
    {.name = "out_of_range",
     .opset = 11,
     .inputs = {"f32 2x3"},
     .attrs = "axes=[2]",
     .error = "outside a tensor of rank 2"},
    {.name = "twice", .opset = 11, .inputs = {"f32 2x3"}, .attrs = "axes=[1,-1]", .error = "twice"},
};

static const om_op_case extreme_cases[] = {
    {.name = "nan", .opset = 11, .inputs = {"f32 2x3 = 1 nan 2 3 -inf inf"}, .attrs = "axes=[1]"},
    {.name = "zeros", .opset = 11, .inputs = {"f32 3x2 = -0 0 0 -0 -0 -0"}, .attrs = "axes=[1]"},
    {.name = "bool",
     .opset = 20,
     .inputs = {"b8 2x2 = 0 1 1 1", "i64 1 const = 1"},
     .declined = "bool"},
    {.name = "i8", .opset = 13, .inputs = {"i8 3x4"}, .attrs = "axes=[1]", .declined = "int8"},
    {.name = "u64", .opset = 13, .inputs = {"u64 3x4"}, .attrs = "axes=[1]", .declined = "uint64"},
};

static const om_op_case nothing_cases[] = {
    {.name = "nothing",
     .opset = 18,
     .inputs = {"f32 6x3", "i64 0 const"},
     .attrs = "noop_with_empty_axes=1",
     .shapes = {"6x3"},
     .bit_exact = true},
};

static const om_op_case integer_cases[] = {
    {.name = "i32", .opset = 11, .inputs = {"i32 3x4"}, .attrs = "axes=[1]"},
    {.name = "i32_all", .opset = 13, .inputs = {"i32 5x7 range -2 3"}, .shapes = {"1x1"}},
    {.name = "i32_first", .opset = 11, .inputs = {"i32 19x7 range -2 3"}, .attrs = "axes=[0]"},
    {.name = "i32_lanes_257", .opset = 11, .inputs = {"i32 3x257 range -1 1"}, .attrs = "axes=[1]"},
    {.name = "i64", .opset = 11, .inputs = {"i64 3x4"}, .attrs = "axes=[0]"},
    {.name = "i64_middle",
     .opset = 11,
     .inputs = {"i64 3x11x5 range -2 3"},
     .attrs = "axes=[1] keepdims=0"},
    {.name = "i64_apart", .opset = 11, .inputs = {"i64 4x3x6 range -2 3"}, .attrs = "axes=[0,2]"},
    {.name = "i64_one_element", .opset = 11, .inputs = {"i64 9x1"}, .attrs = "axes=[1]"},
    {.name = "i64_long", .opset = 11, .inputs = {"i64 2x5003 range -1 1"}, .attrs = "axes=[1]"},
    {.name = "i64_rank_8",
     .opset = 11,
     .inputs = {"i64 2x1x3x2x1x2x3x2 range -2 3"},
     .attrs = "axes=[2,3,4]"},
    {.name = "i64_axes_at_run_time",
     .opset = 18,
     .inputs = {"i64 6x3", "i64 1 = 0"},
     .declined = "run time",
     .shapes = {"1x3"}},
};

/* Products that float64 holds. */
static const om_op_case product_cases[] = {
    {.name = "i32", .opset = 11, .inputs = {"i32 3x4"}, .attrs = "axes=[1]"},
    {.name = "i64", .opset = 11, .inputs = {"i64 3x4"}, .attrs = "axes=[0]"},
    {.name = "i64_lanes", .opset = 11, .inputs = {"i64 5x300 = 1 -1 1 1"}, .attrs = "axes=[1]"},
    {.name = "i64_wide", .opset = 11, .inputs = {"i64 1x3 = 65537 -65539 3"}, .attrs = "axes=[1]"},
};

/* Integers whose results are computed in float64. */
static const om_op_case root_cases[] = {
    {.name = "i32",
     .opset = 13,
     .inputs = {"i32 1x2 = 3 4"},
     .attrs = "axes=[1]",
     .declined = "int32"},
};

static const om_op_case wide_sum[] = {
    {.name = "i64_wide",
     .opset = 13,
     .inputs = {"i64 2x3 = 4294967295 1 -8589934592 9223372036854775807 1 0", "i64 1 const = 1"},
     .expected = {"-4294967296 -9223372036854775808"}},
    {.name = "i32_wraps",
     .opset = 13,
     .inputs = {"i32 1x2 = 2147483647 1", "i64 1 const = 1"},
     .expected = {"-2147483648"}},
};
static const om_op_case wide_mean[] = {
    {.name = "i64_wide",
     .opset = 18,
     .inputs = {"i64 3x2 = -4294967296 -4294967299 7 -2 -7 2", "i64 1 const = 1"},
     .expected = {"-4294967297 2 -2"}},
    {.name = "i32_in_64_bits",
     .opset = 18,
     .inputs = {"i32 1x2 = 2147483647 2147483645", "i64 1 const = 1"},
     .expected = {"2147483646"}},
};
static const om_op_case wide_largest[] = {
    {.name = "i64_wide",
     .opset = 18,
     .inputs = {"i64 2x3 = 1 4294967296 2 -4294967296 -9223372036854775808 -4294967295",
                "i64 1 const = 1"},
     .expected = {"4294967296 -4294967295"}},
};
static const om_op_case wide_smallest[] = {
    {.name = "i64_wide",
     .opset = 18,
     .inputs = {"i64 2x3 = 1 4294967296 2 -4294967296 9223372036854775807 -4294967297",
                "i64 1 const = 1"},
     .expected = {"1 -4294967297"}},
};

/* ---- Empty sets ---- */

#define EMPTY(result)                        \
  {.name = "empty",                          \
   .opset = 18,                              \
   .inputs = {"f32 2x0", "i64 1 const = 1"}, \
   .expected = {result},                     \
   .shapes = {"2x1"},                        \
   .declined = "empty"}
static const om_op_case empty_zero[] = {EMPTY("0")};
static const om_op_case empty_one[] = {EMPTY("1")};
static const om_op_case empty_lowest[] = {EMPTY("-inf")};
static const om_op_case empty_highest[] = {EMPTY("inf")};
static const om_op_case empty_nan[] = {EMPTY("nan")};
static const om_op_case exp_cases[] = {
    {.name = "large",
     .opset = 18,
     .inputs = {"f32 1x2 = 1000 1000", "i64 1 const = 1"},
     .expected = {"1000.6931"}},
    {.name = "infinite",
     .opset = 18,
     .inputs = {"f32 3x2 = -inf -inf inf 0 -inf 0", "i64 1 const = 1"},
     .expected = {"-inf inf 0"}},
};

/* ---- The places ---- */

static void arg_reference(const om_node *node,
                          const om_ref_tensor *inputs,
                          size_t input_count,
                          om_ref_tensor *outputs,
                          size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const uint32_t axis = om_ref_axis(om_ref_int(node, "axis", 0), x->rank);
  const bool wants_last = om_ref_int(node, "select_last_index", 0) != 0;
  const double sign = strcmp(node->type, "ArgMax") == 0 ? 1.0 : -1.0;
  size_t inner = 1;
  (void)input_count;
  (void)output_count;
  for (uint32_t d = axis + 1; d < x->rank; ++d) inner *= (size_t)x->dims[d];
  const size_t extent = (size_t)x->dims[axis];
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    const double *row = x->values + i / inner * inner * extent + i % inner;
    size_t best = 0;
    for (size_t k = 1; k < extent; ++k) {
      const double v = sign * row[k * inner];
      const double b = sign * row[best * inner];
      if (isnan(b) && !(isnan(v) && wants_last)) continue;
      if (isnan(v) || v > b || (v == b && wants_last)) best = k;
    }
    outputs[0].values[i] = (double)best;
  }
}

static const om_op_case arg_cases[] = {
    {.name = "first_axis", .inputs = {"f32 5x7"}, .shapes = {"1x7"}},
    {.name = "last_axis",
     .inputs = {"f32 3x4x9"},
     .attrs = "axis=-1 keepdims=0",
     .shapes = {"3x4"}},
    {.name = "ties", .inputs = {"i32 4x9"}, .attrs = "axis=1"},
    {.name = "ties_last", .inputs = {"i32 4x9"}, .attrs = "axis=1 select_last_index=1"},
    {.name = "nan", .inputs = {"f32 2x4 = 1 nan 3 nan -inf 0 inf 2"}, .attrs = "axis=1"},
    {.name = "nan_last",
     .inputs = {"f32 1x4 = 1 nan 3 nan"},
     .attrs = "axis=1 select_last_index=1"},
    {.name = "i64",
     .inputs = {"i64 2x3 = 4294967296 -4294967297 4294967297 1 -1 -9223372036854775808"},
     .attrs = "axis=1"},
    {.name = "long", .inputs = {"f32 3x1000x2"}, .attrs = "axis=1"},
    {.name = "f64", .inputs = {"f64 3x4"}, .declined = "float64"},
    {.name = "f16", .inputs = {"f16 3x4"}},
    {.name = "f16_axis", .inputs = {"f16 3x5x7"}, .attrs = "axis=1 select_last_index=1"},
    {.name = "u8", .inputs = {"u8 3x4"}, .declined = "uint8"},
    {.name = "no_elements",
     .inputs = {"f32 2x0"},
     .attrs = "axis=1",
     .error = "no elements to choose from"},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("ReduceSum", cases, reference),
    OM_OP_SUITE("ReduceMean", cases, reference),
    OM_OP_SUITE("ReduceMax", cases, reference),
    OM_OP_SUITE("ReduceMin", cases, reference),
    OM_OP_SUITE("ReduceProd", cases, reference),
    OM_OP_SUITE("ReduceL1", cases, reference),
    OM_OP_SUITE("ReduceL2", cases, reference),
    OM_OP_SUITE("ReduceSumSquare", cases, reference),
    OM_OP_SUITE("ReduceLogSum", cases, reference),
    OM_OP_SUITE("ReduceLogSumExp", cases, reference),
    OM_OP_SUITE("ReduceMax", extreme_cases, reference),
    OM_OP_SUITE("ReduceMin", extreme_cases, reference),
    OM_OP_SUITE("ReduceSum", nothing_cases, reference),
    OM_OP_SUITE("ReduceSum", integer_cases, reference),
    OM_OP_SUITE("ReduceMax", integer_cases, reference),
    OM_OP_SUITE("ReduceMin", integer_cases, reference),
    OM_OP_SUITE("ReduceProd", product_cases, reference),
    OM_OP_SUITE("ReduceL1", integer_cases, reference),
    OM_OP_SUITE("ReduceSumSquare", integer_cases, reference),
    OM_OP_SUITE("ReduceL2", root_cases, reference),
    OM_OP_SUITE("ReduceSum", wide_sum, NULL),
    OM_OP_SUITE("ReduceMean", wide_mean, NULL),
    OM_OP_SUITE("ReduceMax", wide_largest, NULL),
    OM_OP_SUITE("ReduceMin", wide_smallest, NULL),
    OM_OP_SUITE("ReduceSum", empty_zero, NULL),
    OM_OP_SUITE("ReduceL1", empty_zero, NULL),
    OM_OP_SUITE("ReduceL2", empty_zero, NULL),
    OM_OP_SUITE("ReduceSumSquare", empty_zero, NULL),
    OM_OP_SUITE("ReduceProd", empty_one, NULL),
    OM_OP_SUITE("ReduceMax", empty_lowest, NULL),
    OM_OP_SUITE("ReduceLogSum", empty_lowest, NULL),
    OM_OP_SUITE("ReduceLogSumExp", empty_lowest, NULL),
    OM_OP_SUITE("ReduceMin", empty_highest, NULL),
    OM_OP_SUITE("ReduceMean", empty_nan, NULL),
    OM_OP_SUITE("ReduceLogSumExp", exp_cases, NULL),
    OM_OP_SUITE("ArgMax", arg_cases, arg_reference),
    OM_OP_SUITE("ArgMin", arg_cases, arg_reference),
};

OM_OP_TESTS(suites)
