/* Products and convolutions of quantized operands. */
#include <float.h>
#include <math.h>

#include "harness/om_test.h"

static const om_ref_tensor *input(const om_ref_tensor *inputs, size_t count, int index) {
  return index >= 0 && (size_t)index < count && inputs[index].values ? &inputs[index] : NULL;
}

/* A zero point or scale of a's rows or b's columns at (row, col) of a matrix of the batch. */
static double parameter(const om_ref_tensor *p,
                        const om_ref_tensor *matrix,
                        size_t batch,
                        size_t row,
                        size_t col,
                        bool is_of_rows) {
  om_ref_tensor aligned;
  int64_t index[OM_MAX_RANK] = {0};
  if (!p) return 0.0;
  if (p->elems == 1) return p->values[0];
  if (p->rank == 1) return p->values[is_of_rows ? row : col];
  aligned = *p;
  for (uint32_t d = matrix->rank - 2; d-- > 0;) {
    index[d] = (int64_t)(batch % (size_t)matrix->dims[d]);
    if (p->dims[d] == 1) index[d] = 0;
    batch /= (size_t)matrix->dims[d];
  }
  index[p->rank - 2] = is_of_rows ? (int64_t)row : 0;
  index[p->rank - 1] = is_of_rows ? 0 : (int64_t)col;
  return aligned.values[om_ref_ravel(&aligned, index)];
}

static double limit(double v, double low, double high) {
  return v < low ? low : v > high ? high : v;
}

static double requantized(
    double sum, double a_scale, double b_scale, double scale, double zero, om_dtype dtype) {
  const float factor = (float)a_scale * (float)b_scale / (float)scale;
  const double value = rint((double)((float)sum * factor)) + zero;
  return dtype == OM_DTYPE_I8 ? limit(value, -128, 127) : limit(value, 0, 255);
}

typedef struct roles { /* input indices; -1: none */
  int a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero;
} roles;

/* Where a batch of one operand repeats, its own batch is 1 or 0. */
static void multiply(
    const om_node *node, const om_ref_tensor *in, size_t count, om_ref_tensor *y, const roles *r) {
  const om_ref_tensor *a = &in[0];
  const om_ref_tensor *b = &in[r->b];
  const bool turns_a = om_ref_int(node, "transA", 0) != 0;
  const bool turns_b = om_ref_int(node, "transB", 0) != 0;
  const size_t rows = (size_t)a->dims[turns_a ? a->rank - 1 : a->rank - 2];
  const size_t depth = (size_t)a->dims[turns_a ? a->rank - 2 : a->rank - 1];
  const size_t cols = (size_t)b->dims[turns_b ? b->rank - 2 : b->rank - 1];
  const om_ref_tensor *bias = input(in, count, r->bias);
  const om_ref_tensor *y_scale = input(in, count, r->y_scale);
  const om_ref_tensor *y_zero = input(in, count, r->y_zero);
  for (size_t i = 0; i < y->elems; ++i) {
    const size_t col = i % cols;
    const size_t row = i / cols % rows;
    const size_t batch = i / cols / rows;
    const size_t a_at = a->rank == 2 ? 0 : batch;
    const size_t b_at = b->rank == 2 ? 0 : batch;
    double sum = 0.0;
    for (size_t k = 0; k < depth; ++k) {
      const size_t a_index = turns_a ? k * rows + row : row * depth + k;
      const size_t b_index = turns_b ? col * depth + k : k * cols + col;
      sum += (a->values[a_at * rows * depth + a_index] -
              parameter(input(in, count, r->a_zero), a, a_at, row, col, true)) *
             (b->values[b_at * cols * depth + b_index] -
              parameter(input(in, count, r->b_zero), b, b_at, row, col, false));
    }
    const bool is_gemm = strcmp(node->type, "QGemm") == 0;
    if (is_gemm && bias) sum += om_ref_broadcast(bias, y, i);
    const double a_scale = parameter(input(in, count, r->a_scale), a, a_at, row, col, true) *
                           om_ref_float(node, "alpha", 1.0);
    const double b_scale = parameter(input(in, count, r->b_scale), b, b_at, row, col, false);
    y->values[i] = sum;
    if (r->a_scale < 0) continue;
    if (y_scale) {
      y->values[i] = requantized(
          sum, a_scale, b_scale, y_scale->values[0], y_zero ? y_zero->values[0] : 0.0, y->dtype);
    } else {
      y->values[i] = sum * (a_scale * b_scale);
      if (bias && !is_gemm) y->values[i] += om_ref_broadcast(bias, y, i);
    }
  }
}

static void matmul(const om_node *node,
                   const om_ref_tensor *inputs,
                   size_t input_count,
                   om_ref_tensor *outputs,
                   size_t output_count) {
  static const struct {
    const char *type;
    roles roles;
  } entries[] = {
      {"MatMulInteger", {-1, 2, 1, -1, 3, -1, -1, -1}},
      {"QLinearMatMul", {1, 2, 3, 4, 5, -1, 6, 7}},
      {"QGemm", {1, 2, 3, 4, 5, 6, 7, 8}},
      {"MatMulIntegerToFloat", {2, 4, 1, 3, 5, 6, -1, -1}},
  };
  (void)output_count;
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
    if (strcmp(node->type, entries[i].type) == 0) {
      multiply(node, inputs, input_count, &outputs[0], &entries[i].roles);
    }
  }
}

/* One spatial axis or two, no padding attribute but pads. */
static void conv(const om_node *node,
                 const om_ref_tensor *in,
                 size_t count,
                 om_ref_tensor *outputs,
                 size_t output_count) {
  const bool is_linear = strcmp(node->type, "QLinearConv") == 0;
  const om_ref_tensor *x = &in[0];
  const om_ref_tensor *w = &in[is_linear ? 3 : 1];
  const om_ref_tensor *x_zero = input(in, count, 2);
  const om_ref_tensor *w_zero = input(in, count, is_linear ? 5 : 3);
  const om_ref_tensor *bias = is_linear ? input(in, count, 8) : NULL;
  om_ref_tensor *y = &outputs[0];
  const size_t axes = x->rank - 2;
  const int64_t group = om_ref_int(node, "group", 1);
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    int64_t at[OM_MAX_RANK] = {0};
    double sum = 0.0;
    om_ref_unravel(y, i, at);
    const int64_t m = at[1];
    for (size_t k = 0; k < w->elems / (size_t)w->dims[0]; ++k) {
      int64_t tap[OM_MAX_RANK] = {0};
      int64_t from[OM_MAX_RANK] = {0};
      bool is_inside = true;
      om_ref_unravel(w, (size_t)m * (w->elems / (size_t)w->dims[0]) + k, tap);
      from[0] = at[0];
      from[1] = m / (w->dims[0] / group) * w->dims[1] + tap[1];
      for (size_t d = 0; d < axes; ++d) {
        from[d + 2] = at[d + 2] * om_ref_ints(node, "strides", d, 1) +
                      tap[d + 2] * om_ref_ints(node, "dilations", d, 1) -
                      om_ref_ints(node, "pads", d, 0);
        is_inside = is_inside && from[d + 2] >= 0 && from[d + 2] < x->dims[d + 2];
      }
      if (!is_inside) continue;
      sum += (x->values[om_ref_ravel(x, from)] - (x_zero ? x_zero->values[0] : 0.0)) *
             (w->values[om_ref_ravel(w, tap)] -
              (w_zero ? w_zero->values[w_zero->elems == 1 ? 0 : m] : 0.0));
    }
    y->values[i] = sum;
    if (!is_linear) continue;
    if (bias) sum += bias->values[m];
    y->values[i] = requantized(sum,
                               in[1].values[0],
                               in[4].values[in[4].elems == 1 ? 0 : m],
                               in[6].values[0],
                               in[7].values[0],
                               y->dtype);
  }
}

static const om_op_case integer_cases[] = {
    {.name = "plain", .inputs = {"u8 3x7 range 0 255", "i8 7x5 range -128 127"}},
    {.name = "zeros",
     .inputs = {"u8 3x7 range 0 255", "u8 7x5 range 0 255", "u8 scalar = 128", "u8 1 = 9"}},
    {.name = "rows_cols", .inputs = {"u8 3x7", "i8 7x5", "u8 3 = 1 2 3", "i8 5 = -1 2 -3 4 -5"}},
    {.name = "rows_cols_batch",
     .inputs = {"u8 2x3x7", "i8 2x7x5", "u8 2x3x1", "i8 2x1x5"},
     .declined = "its scales or zero points differ in the batch"},
    {.name = "rows_of_a_batch", .inputs = {"u8 2x3x7", "i8 7x5", "u8 3 = 1 2 3", "i8 5"}},
    {.name = "batches", .inputs = {"u8 2x3x7", "i8 2x7x5", "u8 3 = 1 2 3", "i8 5"}},
    {.name = "tiles", .inputs = {"u8 65x130 range 0 255", "i8 130x129 range -128 127"}},
    {.name = "grid",
     .inputs = {"u8 65536x1x1", "u8 65536x1x1"},
     .declined = "it needs 65536 workgroups in one dimension of the grid"},
    {.name = "batch_of_a", .inputs = {"u8 2x3x7", "i8 7x5", "u8 scalar = 5", "i8 5"}},
    {.name = "deep", .inputs = {"u8 2x999 = 255", "i8 999x33 = -128"}},
    {.name = "signed", .inputs = {"i8 17x64 range -128 127", "i8 64x70 range -128 127"}},
    {.name = "empty_depth", .inputs = {"u8 2x0", "u8 0x3"}},
    {.name = "empty", .inputs = {"u8 0x2", "u8 2x3"}, .declined = "an empty tensor"},
    {.name = "depths", .inputs = {"u8 2x3", "u8 2x3"}, .error = "cannot be multiplied"},
    {.name = "b_type", .inputs = {"u8 2x3", "i32 3x2"}, .error = "Input 1 is int32"},
    {.name = "zero_shape",
     .inputs = {"u8 2x3", "u8 3x2", "u8 3"},
     .error = "does not go with its matrix"},
    {.name = "zero_of_b",
     .inputs = {"u8 2x3", "u8 3x2", "-", "u8 3x1"},
     .error = "does not go with its matrix"},
    {.name = "zero_type", .inputs = {"u8 2x3", "u8 3x2", "i8 scalar"}, .error = "Input 2 is int8"},
};

/* The kernel counts two runs of axes in a batch. */
static const om_op_case integer_batch_cases[] = {
    {.name = "first_repeats",
     .inputs = {"u8 1x2x1x2 = 1 2 3 4", "u8 2x1x2x1 = 1 0 0 1"},
     .expected = {"1 3 2 4"}},
    {.name = "in_turn",
     .inputs = {"u8 2x1x2x1x1 = 1 2 3 4", "u8 2x2x1x1 = 1 10 100 1"},
     .expected = {"1 20 100 2 3 40 300 4"},
     .declined = "its batch repeats in too many ways"},
};

static const om_op_case integer_vector_cases[] = {
    {.name = "vector", .inputs = {"u8 2 = 1 2", "u8 2 = 3 4", "u8 scalar = 1"}, .expected = {"4"}},
    {.name = "vector_zeros",
     .inputs = {"u8 2x2", "u8 2", "u8 2 = 1 1"},
     .error = "does not go with its matrix"},
};

static const om_op_case linear_cases[] = {
    {.name = "plain",
     .inputs = {"u8 3x7 range 0 255",
                "f32 scalar = 0.02",
                "u8 scalar = 120",
                "i8 7x5 range -128 127",
                "f32 scalar = 0.01",
                "i8 scalar = 3",
                "f32 scalar = 0.1",
                "u8 scalar = 128"}},
    {.name = "columns",
     .inputs = {"u8 2x3x7",
                "f32 scalar = 0.02",
                "u8 scalar = 4",
                "i8 7x4",
                "f32 4 = 0.1 0.2 0.3 0.4",
                "i8 4 = 1 2 3 4",
                "f32 scalar = 0.1",
                "i8 scalar = 3"}},
    {.name = "rows",
     .inputs = {"i8 3x7",
                "f32 3 = 0.1 0.2 0.3",
                "i8 3 = 1 2 3",
                "i8 7x4",
                "f32 1 = 0.25",
                "i8 1 = 1",
                "f32 1 = 0.1",
                "i8 1 = 3"}},
    {.name = "half_scales",
     .inputs = {"i8 3x7",
                "f16 scalar = 0.125",
                "i8 scalar = 1",
                "i8 7x4",
                "f16 scalar = 0.25",
                "i8 scalar = 1",
                "f16 scalar = 0.5",
                "i8 scalar = 3"},
     .declined = "no kernel for a scale of float16"},
    {.name = "batch_rows",
     .inputs = {"i8 2x3x7",
                "f32 2x3x1 range 0.1 1",
                "i8 2x3x1 = 1 2 3 4 5 6",
                "i8 7x4",
                "f32 1 = 0.25",
                "i8 1 = 1",
                "f32 1 = 0.1",
                "i8 1 = 3"},
     .declined = "its scales or zero points differ in the batch"},
    {.name = "y_rows",
     .inputs = {"i8 3x7",
                "f32 scalar",
                "i8 scalar",
                "i8 7x4",
                "f32 scalar",
                "i8 scalar",
                "f32 3",
                "i8 3"},
     .error = "one element or 1"},
    {.name = "y_type",
     .inputs = {"i8 3x7",
                "f32 scalar",
                "i8 scalar",
                "i8 7x4",
                "f32 scalar",
                "i8 scalar",
                "f32 1",
                "i32 1"},
     .error = "Input 7 is int32"},
};

static const om_op_case float8_cases[] = {
    {.name = "f8",
     .inputs = {"f32 2x2 = 1 2 0.5 4",
                "f32 scalar = 0.5",
                "f32 scalar = 0",
                "f32 2x1 = 2 3",
                "f32 scalar = 2",
                "f32 scalar = 4"},
     .graph = "a = Cast(x0) to=17; z = Cast(x2) to=17; b = Cast(x3) to=19; u = Cast(x2) to=19; "
              "t = QLinearMatMul(a, x1, z, b, x4, u, x5, z); y0 = Cast(t) to=1",
     .expected = {"2 3.25"},
     .declined = "no kernel for float8_e4m3fn"},
};

static const om_op_case gemm_cases[] = {
    {.name = "plain",
     .inputs = {"u8 3x7",
                "f32 scalar const = 0.1",
                "u8 scalar const = 4",
                "i8 7x5",
                "f32 scalar const = 0.2",
                "i8 scalar const = 1"}},
    {.name = "transposed",
     .inputs = {"u8 7x3",
                "f32 scalar const = 0.1",
                "u8 scalar const = 4",
                "i8 5x7 const",
                "f32 5 const = 0.1 0.2 0.3 0.4 0.5",
                "i8 5 const = 1 2 3 4 5",
                "i32 5 const",
                "f32 scalar const = 0.5",
                "u8 scalar const = 9"},
     .attrs = "transA=1 transB=1 alpha=0.5f"},
    {.name = "bias_to_float",
     .inputs = {"u8 3x7",
                "f32 scalar const = 0.1",
                "u8 scalar const = 4",
                "i8 5x7 const",
                "f32 5 const = 0.1 0.2 0.3 0.4 0.5",
                "i8 5 const = 1 2 3 4 5",
                "i32 5 const"},
     .attrs = "transB=1"},
    {.name = "classes",
     .inputs = {"u8 2x300 range 0 255",
                "f32 1 const = 0.01",
                "u8 1 const = 114",
                "i8 70x300 const range -128 127",
                "f32 70 const range 0.001 0.01",
                "i8 70 const = 0",
                "i32 70 const range -3000 3000",
                "f32 1 const = 0.2",
                "u8 1 const = 60"},
     .attrs = "transB=1"},
    {.name = "deep_classes", /* few rows of a turned matrix */
     .inputs = {"i8 3x1100 range -128 127",
                "f32 1 const = 0.01",
                "i8 1 const = -14",
                "i8 33x1100 const range -128 127",
                "f32 33 const range 0.0001 0.001",
                "i8 33 const range -3 3",
                "i32 33 const range -3000 3000",
                "f32 1 const = 0.2",
                "i8 1 const = 6"},
     .attrs = "transB=1"},
    {.name = "scale_at_run_time",
     .inputs = {"u8 3x7",
                "f32 scalar = 0.1",
                "u8 scalar const = 4",
                "i8 7x5",
                "f32 scalar const = 0.2",
                "i8 scalar const = 1"},
     .declined = "no kernel for this operator"},
    {.name = "depths",
     .inputs = {"u8 3x7", "f32 scalar", "u8 scalar", "i8 5x7", "f32 1", "i8 1"},
     .error = "do not multiply",
     .declined = "no kernel for this operator"},
};

static const om_op_case to_float_cases[] = {
    {.name = "plain",
     .inputs = {"u8 2x3x7",
                "i8 7x5",
                "f32 scalar = 0.1",
                "f32 5 = 0.1 0.2 0.3 0.4 0.5",
                "u8 scalar = 3",
                "i8 5 = 1 2 3 4 5",
                "f32 5"}},
    {.name = "no_zeros", .inputs = {"u8 3x7", "u8 7x5", "f32 1 = 0.1", "f32 1 = 0.2"}},
    {.name = "wide",
     .inputs = {"u8 3x300 range 0 255",
                "i8 300x70 range -128 127",
                "f32 scalar = 0.02",
                "f32 70 range 0.001 0.01",
                "u8 3 = 0 9 255",
                "i8 70 range -3 3",
                "f32 70"}},
    {.name = "one_scale",
     .inputs = {"i8 2x9x40 range -128 127",
                "u8 40x33 range 0 255",
                "f32 1 = 0.1",
                "f32 scalar = 0.2",
                "i8 1 = -7",
                "u8 1 = 128"}},
    {.name = "empty_depth",
     .inputs = {"u8 2x0", "i8 0x3", "f32 1 = 0.1", "f32 1 = 0.2", "-", "-", "f32 3"}},
    {.name = "bias_of_rows",
     .inputs = {"u8 3x7", "u8 7x5", "f32 1 = 0.1", "f32 1 = 0.2", "-", "-", "f32 3x1"},
     .declined = "its bias is no list of float32"},
    {.name = "bias_shape",
     .inputs = {"u8 3x7", "u8 7x5", "f32 1", "f32 1", "-", "-", "f32 4"},
     .error = "Input 6"},
};

static const om_op_case to_float_vector_cases[] = {
    {.name = "vector",
     .inputs = {"u8 2 = 1 2", "i8 2x2 = 1 2 3 4", "f32 1 = 0.5", "f32 1 = 0.25", "u8 1 = 1"},
     .expected = {"0.375 0.5"}},
};

static const om_op_case dynamic_cases[] = {
    {.name = "two",
     .inputs = {"f32 1x2 = 255 0", "i8 2x2 = 1 2 3 4", "f32 scalar = 0.5"},
     .expected = {"127.5 255"}},
    {.name = "zero_and_bias",
     .inputs = {"f32 2x2 = -127 128 0 1", "i8 2x1 = 5 7", "f32 1 = 2", "i8 1 = 1", "f32 1 = 0.5"},
     .expected = {"520.5 12.5"}},
};

static const om_op_case conv_integer_cases[] = {
    {.name = "pads",
     .inputs = {"u8 1x2x5x6", "i8 3x2x3x3", "u8 scalar = 3", "i8 scalar = -1"},
     .attrs = "pads=1,1,1,1"},
    {.name = "channels",
     .inputs = {"u8 2x4x9", "i8 6x2x3", "u8 scalar = 3", "i8 6 = 1 2 3 4 5 6"},
     .attrs = "group=2 strides=[2] pads=2,1"},
    {.name = "dilated", .inputs = {"i8 1x1x9x9", "u8 2x1x3x2"}, .attrs = "dilations=2,3"},
    {.name = "volume",
     .inputs = {"u8 1x2x4x4x4", "u8 2x2x2x2x2", "u8 1 = 1"},
     .attrs = "pads=1,0,0,1,0,0"},
    {.name = "deep", .inputs = {"u8 1x150x3x3 = 255", "u8 5x150x3x3 = 255"}},
    {.name = "tiles",
     .inputs = {"u8 2x9x13x11 range 0 255", "i8 70x9x3x3 range -128 127", "u8 1 = 99"},
     .attrs = "pads=1,2,1,0 strides=[1,1]"},
    {.name = "depthwise",
     .inputs = {"i8 2x5x9x7", "i8 10x1x3x3", "i8 1 = 3", "i8 10"},
     .attrs = "group=5 pads=1,1,1,1 strides=2,2"},
    /* a channel alone */
    {.name = "alone",
     .inputs = {"u8 2x5x9x7 range 0 255", "i8 5x1x3x3 range -128 127", "u8 1 = 3"},
     .attrs = "group=5 pads=1,1,1,1"},
    {.name = "alone_zeros",
     .inputs =
         {"i8 1x3x37x40 range -128 127", "u8 3x1x5x5 range 0 255", "i8 1 = -3", "u8 3 = 0 128 7"},
     .attrs = "group=3 pads=2,1,2,3 strides=2,2"},
    {.name = "alone_long",
     .inputs = {"u8 1x2x4x700 range 0 255", "i8 2x1x2x3 range -128 127", "u8 1 = 200"},
     .attrs = "group=2 pads=0,1,1,0 strides=1,3"},
    {.name = "alone_dilated",
     .inputs = {"i8 1x3x21x40 range -128 127", "i8 3x1x6x2 range -128 127", "i8 1 = 9", "i8 1 = 5"},
     .attrs = "group=3 dilations=3,9 pads=5,4,2,0"},
    {.name = "alone_far", /* each tap has a plane */
     .inputs = {"u8 1x2x3x3 range 0 255", "i8 2x1x2x2 range -128 127", "u8 1 = 9"},
     .attrs = "group=2 dilations=90,90 pads=44,44,44,44"},
    {.name = "alone_1d",
     .inputs = {"u8 1x3x50 range 0 255", "i8 3x1x7 range -128 127", "u8 1 = 9"},
     .attrs = "group=3 pads=3,3 strides=[2]"},
    {.name = "alone_deep",
     .inputs = {"u8 1x3x5x6x7 range 0 255", "i8 3x1x2x3x3 range -128 127", "u8 1 = 9"},
     .attrs = "group=3 pads=1,1,1,0,1,1"},
    /* windows: planes for each remainder of the strides, or for each tap */
    {.name = "strided",
     .inputs = {"u8 2x3x35x37 range 0 255", "i8 33x3x3x3 range -128 127", "u8 1 = 99"},
     .attrs = "pads=1,1,0,0 strides=2,2"},
    {.name = "strided_far",
     .inputs = {"u8 1x3x20x20 range 0 255", "u8 4x3x2x3 range 0 255", "u8 1 = 99", "u8 1 = 1"},
     .attrs = "strides=5,4 dilations=7,2"},
    {.name = "parts", .inputs = {"i8 1x5x6x7", "i8 300x5x2x2 range -128 127", "i8 1 = -9"}},
    {.name = "no_channels", .inputs = {"u8 1x0x5x4", "u8 3x0x3x2", "u8 1 = 9"}},
    {.name = "no_taps", .inputs = {"u8 1x2x5x4", "u8 3x2x0x2", "u8 1 = 9"}, .error = "kernel"},
    {.name = "wide_pads",
     .inputs = {"u8 1x2x1x1", "i8 3x2x3x3 range -128 127", "u8 1 = 7"},
     .attrs = "pads=2,2,2,2"},
    {.name = "long_pad",
     .inputs = {"u8 1x1x3", "u8 1x1x1"},
     .attrs = "pads=16777217,0 strides=[16777216]",
     .declined = "an extent or pad is too large for the kernel"},
    /* one place alone: products */
    {.name = "points",
     .inputs =
         {"u8 2x37x5x7 range 0 255", "i8 130x37x1x1 range -128 127", "u8 1 = 99", "i8 1 = -3"}},
    {.name = "points_alike",
     .inputs = {"i8 3x6x11 range -128 127", "i8 5x6x1 range -128 127", "i8 1 = -7", "i8 5"}},
    {.name = "points_no_zeros",
     .inputs = {"u8 2x5x3x3x2 range 0 255", "u8 33x5x1x1x1 range 0 255"}},
    {.name = "points_padded",
     .inputs = {"u8 2x5x3x4", "u8 7x5x1x1", "u8 1 = 9"},
     .attrs = "pads=1,0,0,2"},
    {.name = "points_strided", /* as many results as elements */
     .inputs = {"u8 1x5x3", "u8 7x5x1", "u8 1 = 9"},
     .attrs = "strides=[2] pads=0,2"},
    {.name = "empty", .inputs = {"u8 0x2x5", "u8 3x2x3"}, .declined = "an empty tensor"},
    {.name = "w_type", .inputs = {"u8 1x2x5", "f32 3x2x3"}, .error = "Input 1 is float32"},
    {.name = "zeros",
     .inputs = {"u8 1x2x5", "u8 3x2x3", "u8 scalar", "u8 2"},
     .error = "one element or 3"},
    {.name = "channels_differ", .inputs = {"u8 1x2x5", "u8 3x3x3"}, .error = "do not go with"},
};

static const om_op_case conv_linear_cases[] = {
    {.name = "plain",
     .inputs = {"u8 1x2x5x6 range 0 255",
                "f32 scalar = 0.02",
                "u8 scalar = 100",
                "i8 3x2x3x3 range -128 127",
                "f32 3 = 0.01 0.02 0.03",
                "i8 3 = 1 0 -2",
                "f32 scalar = 0.2",
                "u8 scalar = 128"},
     .attrs = "pads=1,1,1,1"},
    {.name = "signed_groups",
     .inputs = {"i8 2x4x9",
                "f32 1 = 0.5",
                "i8 1 = 1",
                "i8 6x2x3",
                "f32 1 = 0.25",
                "i8 1",
                "f32 1 = 0.75",
                "i8 1 = -7"},
     .attrs = "group=2 strides=[2]"},
    {.name = "points",
     .inputs = {"u8 2x35x4x9 range 0 255",
                "f32 scalar = 0.02",
                "u8 scalar = 100",
                "i8 40x35x1x1 range -128 127",
                "f32 40 range 0.001 0.01",
                "i8 40 = 0",
                "f32 scalar = 0.2",
                "u8 scalar = 128",
                "i32 40 range -3000 3000"}},
    {.name = "alone",
     .inputs = {"u8 2x5x14x15 range 0 255",
                "f32 scalar = 0.02",
                "u8 scalar = 100",
                "i8 5x1x3x3 range -128 127",
                "f32 5 range 0.001 0.1",
                "i8 5 = 0",
                "f32 scalar = 0.2",
                "u8 scalar = 128",
                "i32 5 range -3000 3000"},
     .attrs = "group=5 pads=1,1,1,1"},
    {.name = "strided",
     .inputs = {"i8 1x3x35x33 range -128 127",
                "f32 scalar = 0.02",
                "i8 scalar = -100",
                "u8 33x3x3x3 range 0 255",
                "f32 33 range 0.001 0.1",
                "u8 33 range 100 140",
                "f32 scalar = 0.9",
                "i8 scalar = 28",
                "i32 33 range -3000 3000"},
     .attrs = "pads=1,1,1,1 strides=2,2"},
    {.name = "scale_shape",
     .inputs = {"u8 1x2x5", "f32 2", "u8 1", "u8 3x2x3", "f32 1", "u8 1", "f32 1", "u8 1"},
     .error = "Input 1"},
};

static const om_op_case conv_bias_cases[] = {
    {.name = "bias",
     .inputs = {"u8 1x1x2 = 1 2",
                "f32 1 = 1",
                "u8 1 = 0",
                "u8 2x1x1 = 1 2",
                "f32 1 = 1",
                "u8 1 = 0",
                "f32 1 = 1",
                "u8 1 = 3",
                "i32 2 = 10 -1"},
     .expected = {"14 15 4 6"}},
};

#define OM_QUANTIZED_SUITE(type, own_domain, table, function) \
  {.op_type = type,                                           \
   .cases = table,                                            \
   .case_count = sizeof(table) / sizeof((table)[0]),          \
   .reference = function,                                     \
   .domain = own_domain}

static const om_op_suite suites[] = {
    OM_QUANTIZED_SUITE("MatMulInteger", NULL, integer_cases, matmul),
    OM_QUANTIZED_SUITE("MatMulInteger", NULL, integer_batch_cases, NULL),
    OM_QUANTIZED_SUITE("MatMulInteger", NULL, integer_vector_cases, NULL),
    OM_QUANTIZED_SUITE("QLinearMatMul", NULL, linear_cases, matmul),
    OM_QUANTIZED_SUITE("QLinearMatMul", NULL, float8_cases, NULL),
    {.op_type = "QGemm",
     .domain = "com.microsoft",
     .cases = gemm_cases,
     .case_count = sizeof gemm_cases / sizeof gemm_cases[0],
     .reference = matmul},
    OM_QUANTIZED_SUITE("MatMulIntegerToFloat", "com.microsoft", to_float_cases, matmul),
    OM_QUANTIZED_SUITE("MatMulIntegerToFloat", "com.microsoft", to_float_vector_cases, NULL),
    OM_QUANTIZED_SUITE("DynamicQuantizeMatMul", "com.microsoft", dynamic_cases, NULL),
    OM_QUANTIZED_SUITE("ConvInteger", NULL, conv_integer_cases, conv),
    OM_QUANTIZED_SUITE("QLinearConv", NULL, conv_linear_cases, conv),
    OM_QUANTIZED_SUITE("QLinearConv", NULL, conv_bias_cases, NULL),
};

OM_OP_TESTS(suites)
