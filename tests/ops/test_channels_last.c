/* onemodel.Conv, onemodel.ConvTranspose, the pools with the channels last, and onemodel.MatMul:
 * what rewrites make for the CPU's fast mode. Two spatial axes. */
#include <math.h>

#include "harness/om_test.h"

static double activated(const om_node *node, double y) {
  const double alpha = om_ref_float(node, "alpha", 0.0), beta = om_ref_float(node, "beta", 0.0);
  const double line = fmin(fmax(alpha * y + beta, 0.0), 1.0);
  switch (om_ref_int(node, "activation", 0)) {
    case 1:
      return fmax(y, 0.0);
    case 2:
      return y < 0.0 ? alpha * y : y;
    case 3:
      return fmin(fmax(y, alpha), beta);
    case 4:
      return 1.0 / (1.0 + exp(-y));
    case 5:
      return tanh(y);
    case 6:
      return 0.5 * y * (1.0 + erf(y * sqrt(0.5)));
    case 7:
      return y * line;
    case 8:
      return line;
    default:
      return y;
  }
}

static double value_or_0(const om_ref_tensor *tensor, size_t at) {
  return tensor->values ? tensor->values[at] : 0.0;
}

/* One element of the product over the window and the channels of a group. */
static double conv_at(const om_node *node,
                      const om_ref_tensor *x,
                      const om_ref_tensor *w,
                      const int64_t at[OM_MAX_RANK]) {
  const int64_t group = om_ref_int(node, "group", 1);
  const int64_t outs = w->dims[0] / group, ins = w->dims[1];
  double sum = 0.0;
  for (int64_t c = 0; c < ins; ++c) {
    for (int64_t i = 0; i < w->dims[2]; ++i) {
      for (int64_t j = 0; j < w->dims[3]; ++j) {
        const int64_t row = at[1] * om_ref_ints(node, "strides", 0, 1) +
                            i * om_ref_ints(node, "dilations", 0, 1) -
                            om_ref_ints(node, "pads", 0, 0);
        const int64_t col = at[2] * om_ref_ints(node, "strides", 1, 1) +
                            j * om_ref_ints(node, "dilations", 1, 1) -
                            om_ref_ints(node, "pads", 1, 0);
        if (row < 0 || row >= x->dims[1] || col < 0 || col >= x->dims[2]) continue;
        const int64_t from[OM_MAX_RANK] = {at[0], row, col, at[3] / outs * ins + c};
        const int64_t weight[OM_MAX_RANK] = {at[3], c, i, j};
        sum += x->values[om_ref_ravel(x, from)] * w->values[om_ref_ravel(w, weight)];
      }
    }
  }
  return sum;
}

/* The same with the weights [in, out / group, ...] and the input's elements spread. */
static double transposed_at(const om_node *node,
                            const om_ref_tensor *x,
                            const om_ref_tensor *w,
                            const int64_t at[OM_MAX_RANK]) {
  const int64_t group = om_ref_int(node, "group", 1);
  const int64_t ins = w->dims[0] / group, outs = w->dims[1];
  const int64_t step[2] = {om_ref_ints(node, "strides", 0, 1), om_ref_ints(node, "strides", 1, 1)};
  double sum = 0.0;
  for (int64_t c = 0; c < ins; ++c) {
    for (int64_t i = 0; i < w->dims[2]; ++i) {
      for (int64_t j = 0; j < w->dims[3]; ++j) {
        const int64_t row = at[1] + om_ref_ints(node, "pads", 0, 0) - i;
        const int64_t col = at[2] + om_ref_ints(node, "pads", 1, 0) - j;
        if (row % step[0] != 0 || col % step[1] != 0) continue;
        if (row < 0 || row / step[0] >= x->dims[1] || col < 0 || col / step[1] >= x->dims[2]) {
          continue;
        }
        const int64_t channel = at[3] / outs * ins + c;
        const int64_t from[OM_MAX_RANK] = {at[0], row / step[0], col / step[1], channel};
        const int64_t weight[OM_MAX_RANK] = {channel, at[3] % outs, i, j};
        sum += x->values[om_ref_ravel(x, from)] * w->values[om_ref_ravel(w, weight)];
      }
    }
  }
  return sum;
}

static void finish(const om_node *node,
                   const om_ref_tensor *inputs,
                   size_t input_count,
                   om_ref_tensor *y,
                   size_t elem,
                   size_t column,
                   double sum) {
  if (input_count > 2) sum += value_or_0(&inputs[2], column);
  if (input_count > 3 && inputs[3].values) sum += om_ref_broadcast(&inputs[3], y, elem);
  y->values[elem] = activated(node, sum);
}

static void conv_reference(const om_node *node,
                           const om_ref_tensor *inputs,
                           size_t input_count,
                           om_ref_tensor *outputs,
                           size_t output_count) {
  int64_t at[OM_MAX_RANK];
  om_ref_tensor *y = &outputs[0];
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    om_ref_unravel(y, i, at);
    finish(node, inputs, input_count, y, i, (size_t)at[3], conv_at(node, inputs, &inputs[1], at));
  }
}

static void transposed_reference(const om_node *node,
                                 const om_ref_tensor *inputs,
                                 size_t input_count,
                                 om_ref_tensor *outputs,
                                 size_t output_count) {
  int64_t at[OM_MAX_RANK];
  om_ref_tensor *y = &outputs[0];
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    om_ref_unravel(y, i, at);
    const double sum = transposed_at(node, inputs, &inputs[1], at);
    finish(node, inputs, input_count, y, i, (size_t)at[3], sum);
  }
}

static void product_reference(const om_node *node,
                              const om_ref_tensor *inputs,
                              size_t input_count,
                              om_ref_tensor *outputs,
                              size_t output_count) {
  const om_ref_tensor *w = &inputs[1];
  const size_t depth = (size_t)w->dims[0], cols = (size_t)w->dims[1];
  om_ref_tensor *y = &outputs[0];
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    double sum = 0.0;
    for (size_t k = 0; k < depth; ++k) {
      sum += inputs[0].values[i / cols * depth + k] * w->values[k * cols + i % cols];
    }
    finish(node, inputs, input_count, y, i, i % cols, sum);
  }
}

/* All three pools: the kernel is the whole image where the attribute is absent. */
static double pool_at(const om_node *node,
                      const om_ref_tensor *x,
                      const int64_t at[OM_MAX_RANK],
                      bool is_max) {
  double best = -INFINITY, sum = 0.0;
  int64_t count = 0;
  for (int64_t i = 0; i < om_ref_ints(node, "kernel_shape", 0, x->dims[1]); ++i) {
    for (int64_t j = 0; j < om_ref_ints(node, "kernel_shape", 1, x->dims[2]); ++j) {
      const int64_t row = at[1] * om_ref_ints(node, "strides", 0, 1) -
                          om_ref_ints(node, "pads", 0, 0) +
                          i * om_ref_ints(node, "dilations", 0, 1);
      const int64_t col = at[2] * om_ref_ints(node, "strides", 1, 1) -
                          om_ref_ints(node, "pads", 1, 0) +
                          j * om_ref_ints(node, "dilations", 1, 1);
      const bool is_inside = row >= 0 && row < x->dims[1] && col >= 0 && col < x->dims[2];
      count += is_inside || om_ref_int(node, "count_include_pad", 0) ? 1 : 0;
      if (!is_inside) continue;
      const int64_t from[OM_MAX_RANK] = {at[0], row, col, at[3]};
      const double value = x->values[om_ref_ravel(x, from)];
      sum += value;
      if (isnan(value) || value > best) best = isnan(best) ? best : value;
    }
  }
  return is_max ? best : sum / (double)count;
}

static void pool_reference(const om_node *node,
                           const om_ref_tensor *inputs,
                           size_t input_count,
                           om_ref_tensor *outputs,
                           size_t output_count) {
  int64_t at[OM_MAX_RANK];
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    om_ref_unravel(&outputs[0], i, at);
    outputs[0].values[i] = pool_at(node, inputs, at, strcmp(node->type, "MaxPool") == 0);
  }
}

#define DECLINED .declined = "no kernel for this operator"

static const om_op_case conv_cases[] = {
    {.name = "plain", .inputs = {"f32 2x5x7x6", "f32 9x6x3x3 const"}, DECLINED},
    {.name = "relu",
     .inputs = {"f32 1x8x9x16", "f32 32x16x1x1 const", "f32 32 const"},
     .attrs = "activation=1",
     DECLINED},
    {.name = "residual",
     .inputs = {"f32 2x6x5x3", "f32 4x3x3x3 const", "f32 4 const", "f32 2x6x5x4"},
     .attrs = "pads=1,1,1,1 activation=1",
     DECLINED},
    {.name = "residual_alone",
     .inputs = {"f32 1x6x5x3", "f32 17x3x1x1 const", "-", "f32 1x6x5x17"},
     DECLINED},
    {.name = "residual_broadcasts",
     .inputs = {"f32 2x6x5x3", "f32 4x3x3x3 const", "f32 4 const", "f32 2x1x1x4"},
     .attrs = "pads=1,1,1,1 activation=7 alpha=0.16666667f beta=0.5f",
     DECLINED},
    {.name = "strides_dilated",
     .inputs = {"f32 1x13x11x5", "f32 6x5x3x2 const", "f32 6 const"},
     .attrs = "strides=2,3 dilations=2,1 pads=2,1,1,0 activation=2 alpha=0.1f",
     DECLINED},
    {.name = "depthwise",
     .inputs = {"f32 1x9x8x24", "f32 24x1x5x5 const", "f32 24 const"},
     .attrs = "group=24 pads=2,2,2,2 activation=3 alpha=0.0f beta=6.0f",
     DECLINED},
    {.name = "depthwise_of_many_taps",
     .inputs = {"f32 2x11x10x21", "f32 21x1x7x7 const", "f32 21 const"},
     .attrs = "group=21 pads=3,3,3,3 activation=1",
     DECLINED},
    {.name = "depthwise_of_few_channels",
     .inputs = {"f32 1x9x9x3", "f32 3x1x3x3 const", "f32 3 const"},
     .attrs = "group=3 pads=1,1,1,1 strides=2,2",
     DECLINED},
    {.name = "depthwise_inside",
     .inputs = {"f32 1x9x17x70", "f32 70x1x3x3 const"},
     .attrs = "group=70 dilations=2,2",
     DECLINED},
    {.name = "few_channels_padded",
     .inputs = {"f32 2x15x16x3", "f32 40x3x7x7 const", "f32 40 const"},
     .attrs = "strides=2,2 pads=3,3,3,3 activation=1",
     DECLINED},
    {.name = "pads_beyond_the_window",
     .inputs = {"f32 1x3x4x20", "f32 33x20x2x2 const"},
     .attrs = "pads=3,4,2,5",
     DECLINED},
    {.name = "groups",
     .inputs = {"f32 1x6x7x8", "f32 12x4x3x3 const"},
     .attrs = "group=2 activation=4",
     DECLINED},
    {.name = "tanh",
     .inputs = {"f32 1x4x4x8", "f32 8x8x1x1 const"},
     .attrs = "activation=5",
     DECLINED},
    {.name = "gelu",
     .inputs = {"f32 1x4x4x8", "f32 8x8x1x1 const"},
     .attrs = "activation=6",
     DECLINED},
    {.name = "hard_sigmoid",
     .inputs = {"f32 1x1x1x8", "f32 8x8x1x1 const"},
     .attrs = "activation=8 alpha=0.2f beta=0.5f",
     DECLINED},
    /* By Winograd's sums: blocks over the edges, channels that fill no vector, several pieces. */
    {.name = "blocks",
     .inputs = {"f32 2x9x11x37", "f32 45x37x3x3 const", "f32 45 const"},
     .attrs = "pads=1,1,1,1 activation=1",
     .scaled_error = 2e-6,
     DECLINED},
    {.name = "blocks_residual",
     .inputs = {"f32 1x10x13x32", "f32 97x32x3x3 const", "-", "f32 1x8x11x97"},
     .attrs = "activation=2 alpha=0.25f",
     .scaled_error = 2e-6,
     DECLINED},
    {.name = "blocks_residual_clip",
     .inputs = {"f32 3x8x8x48", "f32 32x48x3x3 const", "f32 32 const", "f32 3x8x8x32"},
     .attrs = "pads=1,1,1,1 activation=3 alpha=-0.5f beta=6.0f",
     .scaled_error = 2e-6,
     DECLINED},
    {.name = "blocks_far_pads",
     .inputs = {"f32 1x7x6x300", "f32 33x300x3x3 const", "f32 33 const"},
     .attrs = "pads=3,0,1,4",
     .scaled_error = 2e-6,
     DECLINED},
    {.name = "many_blocks",
     .inputs = {"f32 1x30x31x40", "f32 36x40x3x3 const", "f32 36 const"},
     .attrs = "pads=1,1,1,1 activation=1",
     .scaled_error = 2e-6,
     DECLINED},
    {.name = "weights_of_the_run", .inputs = {"f32 1x4x4x8", "f32 8x8x3x3"}, DECLINED},
    {.name = "empty", .inputs = {"f32 0x4x4x8", "f32 8x8x1x1 const"}, DECLINED},
    {.name = "unknown_activation",
     .inputs = {"f32 1x4x4x8", "f32 8x8x1x1 const"},
     .attrs = "activation=9",
     .error = "activation",
     DECLINED},
    {.name = "wrong_channels",
     .inputs = {"f32 1x4x4x7", "f32 8x8x1x1 const"},
     .error = "weights",
     DECLINED},
};

static const om_op_case transposed_cases[] = {
    {.name = "plain",
     .inputs = {"f32 1x5x6x4", "f32 4x3x2x2 const", "f32 3 const"},
     .attrs = "strides=2,2 activation=1",
     DECLINED},
    {.name = "padded",
     .inputs = {"f32 2x5x6x4", "f32 4x8x3x3 const"},
     .attrs = "strides=2,1 pads=1,1,1,1",
     DECLINED},
    {.name = "groups_and_residual",
     .inputs = {"f32 1x3x3x4", "f32 4x2x3x3 const", "-", "f32 1x7x7x4"},
     .attrs = "strides=2,2 group=2",
     DECLINED},
};

static const om_op_case product_cases[] = {
    {.name = "bias", .inputs = {"f32 3x5x16", "f32 16x24 const", "f32 24 const"}, DECLINED},
    {.name = "gelu",
     .inputs = {"f32 7x33", "f32 33x17 const", "f32 17 const"},
     .attrs = "activation=6",
     DECLINED},
    {.name = "residual",
     .inputs = {"f32 2x3x8", "f32 8x8 const", "f32 8 const", "f32 2x3x8"},
     .attrs = "activation=1",
     DECLINED},
    {.name = "residual_broadcasts",
     .inputs = {"f32 2x3x8", "f32 8x9 const", "-", "f32 3x1"},
     .attrs = "activation=5",
     DECLINED},
    {.name = "one_row", .inputs = {"f32 64", "f32 64x10 const", "f32 10 const"}, DECLINED},
    {.name = "no_depth", .inputs = {"f32 3x0", "f32 0x4 const", "f32 4 const"}, DECLINED},
    {.name = "does_not_fit",
     .inputs = {"f32 3x5", "f32 4x4 const"},
     .error = "multiplied",
     DECLINED},
};

static const om_op_case max_cases[] = {
    {.name = "3x3",
     .inputs = {"f32 2x9x10x70"},
     .attrs = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
     .bit_exact = true,
     DECLINED},
    {.name = "dilated",
     .inputs = {"f32 1x9x10x5"},
     .attrs = "kernel_shape=2,3 dilations=3,2",
     .bit_exact = true,
     DECLINED},
    {.name = "edges",
     .inputs = {"f32 1x8x8x8 edges"},
     .attrs = "kernel_shape=2,2",
     .bit_exact = true,
     DECLINED},
};

static const om_op_case average_cases[] = {
    {.name = "padded",
     .inputs = {"f32 2x9x10x7"},
     .attrs = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
     DECLINED},
    {.name = "counts_pads",
     .inputs = {"f32 1x5x5x65"},
     .attrs = "kernel_shape=3,2 pads=1,1,1,1 count_include_pad=1",
     DECLINED},
};

static const om_op_case global_cases[] = {
    {.name = "plane", .inputs = {"f32 2x37x53x130"}, DECLINED},
    {.name = "one_place", .inputs = {"f32 1x1x1x3"}, DECLINED},
};

#define SUITE(type, table, function)                 \
  {.op_type = (type),                                \
   .domain = "onemodel",                             \
   .cases = (table),                                 \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = (function)}

static const om_op_suite suites[] = {
    SUITE("Conv", conv_cases, conv_reference),
    SUITE("ConvTranspose", transposed_cases, transposed_reference),
    SUITE("MatMul", product_cases, product_reference),
    SUITE("MaxPool", max_cases, pool_reference),
    SUITE("AveragePool", average_cases, pool_reference),
    SUITE("GlobalAveragePool", global_cases, pool_reference),
};

OM_OP_TESTS(suites)
