/* Pools against direct sums and maxima in float64. */
#include <math.h>

#include "harness/om_test.h"

enum { AXES = 3 };

typedef struct window {
  int64_t in[AXES], out[AXES], kernel[AXES], stride[AXES], dilation[AXES], pad[AXES], pad_end[AXES];
} window;

static window window_of(const om_node *node, const om_ref_tensor *x, const om_ref_tensor *y) {
  window win;
  const uint32_t axes = x->rank - 2;
  const bool is_global = om_ref_ints_count(node, "kernel_shape") == 0;
  for (uint32_t i = 0; i < AXES; ++i) {
    const bool is_there = i + axes >= AXES;
    const uint32_t a = i + axes - AXES;
    win.in[i] = is_there ? x->dims[2 + a] : 1;
    win.out[i] = is_there ? y->dims[2 + a] : 1;
    win.kernel[i] = !is_there   ? 1
                    : is_global ? x->dims[2 + a]
                                : om_ref_ints(node, "kernel_shape", a, 1);
    win.stride[i] = is_there ? om_ref_ints(node, "strides", a, 1) : 1;
    win.dilation[i] = is_there ? om_ref_ints(node, "dilations", a, 1) : 1;
    win.pad[i] = is_there ? om_ref_ints(node, "pads", a, 0) : 0;
    win.pad_end[i] = is_there ? om_ref_ints(node, "pads", axes + a, 0) : 0;
    if (om_ref_text_is(node, "auto_pad", "NOTSET", "NOTSET")) continue;
    const int64_t reach = (win.kernel[i] - 1) * win.dilation[i] + 1;
    int64_t total = (win.out[i] - 1) * win.stride[i] + reach - win.in[i];
    if (total < 0) total = 0;
    win.pad[i] =
        om_ref_text_is(node, "auto_pad", "NOTSET", "SAME_UPPER") ? total / 2 : total - total / 2;
    win.pad_end[i] = total - win.pad[i];
  }
  return win;
}

static int64_t extent(const int64_t dims[AXES]) {
  return dims[0] * dims[1] * dims[2];
}

typedef enum kind { MAXIMUM, MEAN, POWERS } kind;

/* One window: its result, and the place of its first maximum. */
static double pooled(const om_node *node,
                     const window *win,
                     kind k,
                     const double *x,
                     int64_t o,
                     int64_t *out_place) {
  const double p = (double)om_ref_int(node, "p", 2);
  const bool counts_padding = om_ref_int(node, "count_include_pad", 0) != 0;
  double value = k == MAXIMUM ? -INFINITY : 0;
  int64_t count = 0;
  *out_place = -1;
  for (int64_t t = 0; t < extent(win->kernel); ++t) {
    int64_t at = 0, rest_o = o, rest_t = t, place[AXES];
    bool is_inside = true, is_padded = true;
    for (int i = AXES - 1; i >= 0; --i) {
      place[i] = rest_o % win->out[i] * win->stride[i] +
                 rest_t % win->kernel[i] * win->dilation[i] - win->pad[i];
      rest_o /= win->out[i];
      rest_t /= win->kernel[i];
      is_inside = is_inside && place[i] >= 0 && place[i] < win->in[i];
      is_padded = is_padded && place[i] < win->in[i] + win->pad_end[i];
    }
    for (int i = 0; i < AXES; ++i) at = at * win->in[i] + place[i];
    if (counts_padding ? is_padded : is_inside) ++count;
    if (!is_inside) continue;
    if (k == MEAN) value += x[at];
    if (k == POWERS) value += pow(fabs(x[at]), p);
    if (k == MAXIMUM && (*out_place < 0 || x[at] > value)) {
      value = x[at];
      *out_place = om_ref_int(node, "storage_order", 0) == 0
                       ? at
                       : place[0] + win->in[0] * (place[1] + win->in[1] * place[2]);
    }
  }
  if (k == MEAN) value /= (double)count;
  return k == POWERS ? pow(value, 1 / p) : value;
}

static void reference(const om_node *node,
                      kind k,
                      const om_ref_tensor *inputs,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const window win = window_of(node, &inputs[0], &outputs[0]);
  const int64_t out = extent(win.out);
  for (size_t i = 0; i < outputs[0].elems; ++i) {
    const int64_t first = (int64_t)i / out * extent(win.in);
    int64_t place = 0;
    outputs[0].values[i] =
        pooled(node, &win, k, inputs[0].values + first, (int64_t)i % out, &place);
    if (output_count > 1) {
      /* A column-major place counts the columns of its own plane: axes 1 and 2 of the window. */
      outputs[1].values[i] = (double)(first + place);
    }
  }
}

#define OM_REFERENCE(name, k)                          \
  static void name(const om_node *node,                \
                   const om_ref_tensor *inputs,        \
                   size_t input_count,                 \
                   om_ref_tensor *outputs,             \
                   size_t output_count) {              \
    (void)input_count;                                 \
    reference(node, k, inputs, outputs, output_count); \
  }
OM_REFERENCE(reference_max, MAXIMUM)
OM_REFERENCE(reference_mean, MEAN)
OM_REFERENCE(reference_powers, POWERS)

static const om_op_case max_cases[] = {
    {.name = "3x3",
     .inputs = {"f32 2x3x9x11"},
     .attrs = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
     .bit_exact = true},
    {.name = "one_axis",
     .inputs = {"f32 2x3x19"},
     .attrs = "kernel_shape=[4] strides=[3]",
     .bit_exact = true},
    {.name = "ceiling",
     .inputs = {"f32 1x2x7x6"},
     .attrs = "kernel_shape=3,2 strides=2,3 ceil_mode=1",
     .bit_exact = true},
    {.name = "ceiling_of_less_than_a_kernel",
     .inputs = {"f32 1x2x2x5 ramp"},
     .attrs = "kernel_shape=3,3 strides=2,2 ceil_mode=1",
     .shapes = {"1x2x1x2"},
     .expected = {"7 9 17 19"},
     .bit_exact = true},
    {.name = "ceiling_reaches_no_window",
     .inputs = {"f32 1x1x1x5"},
     .attrs = "kernel_shape=3,3 strides=2,2 ceil_mode=1",
     .error = "does not fit into an extent of 1"},
    {.name = "no_window_in_the_padding",
     .inputs = {"f32 1x1x3x6x5 ramp"},
     .attrs = "kernel_shape=3,3,3 strides=3,3,3 pads=1,1,1,1,1,1 ceil_mode=1",
     .shapes = {"1x1x2x3x2"},
     .expected = {"36 39 51 54 56 59 66 69 81 84 86 89"}},
    {.name = "dilated",
     .inputs = {"f32 1x2x9x9"},
     .attrs = "kernel_shape=2,3 dilations=3,2",
     .bit_exact = true},
    {.name = "same_upper",
     .inputs = {"f32 1x2x7x9"},
     .attrs = "kernel_shape=2,3 strides=2,2 auto_pad=\"SAME_UPPER\"",
     .bit_exact = true},
    {.name = "same_lower",
     .inputs = {"f32 1x2x7x9"},
     .attrs = "kernel_shape=2,3 strides=2,2 auto_pad=\"SAME_LOWER\"",
     .bit_exact = true},
    {.name = "negative",
     .inputs = {"f32 1x1x4x4 range -9 -1"},
     .attrs = "kernel_shape=3,3 pads=1,1,1,1",
     .bit_exact = true},
    {.name = "zeros_and_nan",
     .inputs = {"f32 1x1x1x8 = -0 0 -0 -0 nan 1 -inf -inf"},
     .attrs = "kernel_shape=1,2 strides=1,2",
     .expected = {"0 -0 nan -inf"}},
    {.name = "indices",
     .inputs = {"f32 2x2x5x6"},
     .attrs = "kernel_shape=3,3 pads=1,1,1,1 strides=2,2",
     .output_count = 2,
     .bit_exact = true},
    {.name = "indices_by_column",
     .inputs = {"f32 2x2x5x6"},
     .attrs = "kernel_shape=2,3 storage_order=1",
     .output_count = 2,
     .bit_exact = true},
    {.name = "indices_of_a_volume",
     .inputs = {"f32 2x2x3x4x5"},
     .attrs = "kernel_shape=2,2,3 strides=1,2,1 pads=1,0,1,0,1,1",
     .output_count = 2,
     .bit_exact = true},
    {.name = "indices_of_a_volume_by_column",
     .inputs = {"f32 1x2x3x4x5"},
     .attrs = "kernel_shape=2,2,3 dilations=2,1,2 storage_order=1",
     .output_count = 2,
     .bit_exact = true},
    {.name = "indices_of_equals",
     .inputs = {"f32 1x1x10 = -0 0 0 nan nan -inf -inf 2 2 1e-40"},
     .attrs = "kernel_shape=[2] strides=[2]",
     .output_count = 2,
     .expected = {"0 nan nan 2 2", "1 3 4 7 8"},
     .exact_only = true},
    {.name = "indices_alone",
     .inputs = {"f32 1x1x4 = 1 3 2 0"},
     .graph = "t, y0 = MaxPool(x0) kernel_shape=[2] strides=[2]",
     .expected = {"1 2"}},
    {.name = "bytes",
     .opset = 12,
     .inputs = {"i8 1x2x5x5 range -128 -1"},
     .attrs = "kernel_shape=3,3 pads=1,1,1,1",
     .declined = "int8"},
    {.name = "half", .inputs = {"f16 1x2x5x5"}, .attrs = "kernel_shape=3,3", .bit_exact = true},
    {.name = "half_indices",
     .inputs = {"f16 1x2x5x6"},
     .attrs = "kernel_shape=3,3 pads=1,1,1,1 strides=2,2",
     .output_count = 2,
     .bit_exact = true},
    {.name = "double",
     .inputs = {"f64 1x2x5x5"},
     .attrs = "kernel_shape=3,3",
     .bit_exact = true,
     .declined = "float64"},
    {.name = "no_images",
     .inputs = {"f32 0x2x5x5"},
     .attrs = "kernel_shape=3,3",
     .shapes = {"0x2x3x3"},
     .declined = "empty"},
    {.name = "too_large",
     .inputs = {"f32 1x1x3x3"},
     .attrs = "kernel_shape=4,4",
     .error = "does not fit"},
    {.name = "no_kernel_shape", .inputs = {"f32 1x1x3x3"}, .error = "kernel_shape is missing"},
    {.name = "wrong_order",
     .inputs = {"f32 1x1x3x3"},
     .attrs = "kernel_shape=2,2 storage_order=2",
     .error = "storage_order is 2"},
};

static const om_op_case mean_cases[] = {
    {.name = "3x3",
     .inputs = {"f32 2x3x9x11"},
     .attrs = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"},
    {.name = "padding_counts",
     .inputs = {"f32 2x3x9x11"},
     .attrs = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 count_include_pad=1"},
    {.name = "ceiling",
     .inputs = {"f32 1x2x8x7"},
     .attrs = "kernel_shape=3,2 strides=2,3 ceil_mode=1"},
    {.name = "ceiling_of_less_than_a_kernel",
     .inputs = {"f32 1x2x2x1"},
     .attrs = "kernel_shape=4,3 strides=2,3 pads=0,0,1,1 ceil_mode=1 count_include_pad=1",
     .shapes = {"1x2x1x1"}},
    {.name = "ceiling_and_padding",
     .inputs = {"f32 1x2x8x7"},
     .attrs = "kernel_shape=3,4 strides=2,3 pads=1,2,0,1 ceil_mode=1 count_include_pad=1"},
    {.name = "one_axis",
     .inputs = {"f32 2x3x19"},
     .attrs = "kernel_shape=[5] strides=[2] pads=2,1"},
    {.name = "dilated",
     .opset = 19,
     .inputs = {"f32 1x2x9x9"},
     .attrs = "kernel_shape=2,3 dilations=3,2 pads=1,1,1,1 count_include_pad=1"},
    {.name = "same_lower",
     .inputs = {"f32 1x2x7x9"},
     .attrs = "kernel_shape=2,3 strides=2,2 auto_pad=\"SAME_LOWER\""},
    {.name = "three_axes",
     .inputs = {"f32 1x2x5x6x4"},
     .attrs = "kernel_shape=2,3,2 pads=0,1,0,1,1,1"},
    {.name = "three_axes_counting_padding",
     .inputs = {"f32 1x2x5x6x4"},
     .attrs = "kernel_shape=2,3,2 pads=1,1,0,1,1,1 strides=2,1,3 count_include_pad=1 ceil_mode=1"},
    {.name = "half", .inputs = {"f16 1x2x7x7"}, .attrs = "kernel_shape=3,3"},
    {.name = "double",
     .inputs = {"f64 1x2x7x7"},
     .attrs = "kernel_shape=3,3",
     .declined = "float64"},
};

static const om_op_case power_cases[] = {
    {.name = "squares", .inputs = {"f32 1x2x7x9"}, .attrs = "kernel_shape=3,3 pads=1,1,1,1"},
    {.name = "magnitudes", .inputs = {"f32 1x2x7x9"}, .attrs = "kernel_shape=3,3 p=1 strides=2,2"},
    {.name = "cubes", .inputs = {"f32 1x2x7x9"}, .attrs = "kernel_shape=2,3 p=3"},
    {.name = "double",
     .inputs = {"f64 1x2x7"},
     .attrs = "kernel_shape=[3] p=3",
     .declined = "float64"},
    {.name = "three_axes",
     .inputs = {"f32 1x2x5x4x6"},
     .attrs = "kernel_shape=2,2,3 strides=1,2,1 pads=0,1,1,1,0,1"},
    {.name = "half", .inputs = {"f16 1x2x7x9"}, .attrs = "kernel_shape=3,3"},
    {.name = "power_0",
     .inputs = {"f32 1x2x7x9"},
     .attrs = "kernel_shape=2,3 p=0",
     .error = "p is 0"},
};

static const om_op_case global_mean_cases[] = {
    {.name = "one_lane", .inputs = {"f32 2x3x1x1"}},
    {.name = "few_lanes", .inputs = {"f32 2x3x5x7"}},
    {.name = "many_rounds", .inputs = {"f32 1x3x33x61"}},
    {.name = "one_axis", .inputs = {"f32 2x3x257"}},
    {.name = "three_axes", .inputs = {"f32 2x3x4x5x6"}},
    {.name = "half", .inputs = {"f16 1x2x20x20"}},
    {.name = "double", .inputs = {"f64 1x2x20x20"}, .declined = "float64"},
};

static const om_op_case global_max_cases[] = {
    {.name = "few_lanes", .inputs = {"f32 2x3x5x7"}, .bit_exact = true},
    {.name = "half", .inputs = {"f16 2x3x5x77"}, .bit_exact = true},
    {.name = "many_rounds", .inputs = {"f32 1x3x33x61"}, .bit_exact = true},
    {.name = "negative", .inputs = {"f32 1x2x3x3 range -9 -1"}, .bit_exact = true},
    {.name = "nan", .inputs = {"f32 1x1x300 = 1 2 nan 4"}, .expected = {"nan"}},
};

static const om_op_case global_power_cases[] = {
    {.name = "squares", .inputs = {"f32 2x3x17x19"}},
    {.name = "cubes", .inputs = {"f32 2x3x5x4"}, .attrs = "p=3"},
    {.name = "half", .inputs = {"f16 2x3x5x4"}},
    {.name = "magnitudes", .inputs = {"f32 1x2x300"}, .attrs = "p=1"},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("MaxPool", max_cases, reference_max),
    OM_OP_SUITE("AveragePool", mean_cases, reference_mean),
    OM_OP_SUITE("LpPool", power_cases, reference_powers),
    OM_OP_SUITE("GlobalAveragePool", global_mean_cases, reference_mean),
    OM_OP_SUITE("GlobalMaxPool", global_max_cases, reference_max),
    OM_OP_SUITE("GlobalLpPool", global_power_cases, reference_powers),
};
OM_OP_TESTS(suites)
