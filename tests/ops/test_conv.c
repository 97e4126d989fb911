/* Conv and ConvTranspose against direct sums in float64. */
#include <stdlib.h>

#include "harness/om_test.h"

enum { AXES = 3 };

/* The window of the node's last operator, aligned to three axes. */
typedef struct window {
  int64_t in[AXES], out[AXES], kernel[AXES], stride[AXES], dilation[AXES], pad[AXES];
} window;

static window window_of(const om_node *node,
                        const om_ref_tensor *x,
                        const om_ref_tensor *w,
                        const om_ref_tensor *y,
                        bool is_transposed) {
  window win;
  const uint32_t axes = x->rank - 2;
  for (uint32_t i = 0; i < AXES; ++i) {
    const bool is_there = i + axes >= AXES;
    const uint32_t a = i + axes - AXES;
    win.in[i] = is_there ? x->dims[2 + a] : 1;
    win.out[i] = is_there ? y->dims[2 + a] : 1;
    win.kernel[i] = is_there ? w->dims[2 + a] : 1;
    win.stride[i] = is_there ? om_ref_ints(node, "strides", a, 1) : 1;
    win.dilation[i] = is_there ? om_ref_ints(node, "dilations", a, 1) : 1;
    win.pad[i] = is_there ? om_ref_ints(node, "pads", a, 0) : 0;
    if (om_ref_text_is(node, "auto_pad", "NOTSET", "NOTSET") &&
        om_ref_ints_count(node, "output_shape") == 0) {
      continue;
    }
    /* The pads that make the result's extent, which the shape tests check. */
    const int64_t reach = (win.kernel[i] - 1) * win.dilation[i] + 1;
    const int64_t extra = is_there ? om_ref_ints(node, "output_padding", a, 0) : 0;
    int64_t total = is_transposed ? win.stride[i] * (win.in[i] - 1) + extra + reach - win.out[i]
                                  : (win.out[i] - 1) * win.stride[i] + reach - win.in[i];
    if (total < 0 || om_ref_text_is(node, "auto_pad", "NOTSET", "VALID")) total = 0;
    win.pad[i] =
        om_ref_text_is(node, "auto_pad", "NOTSET", "SAME_UPPER") ? total / 2 : total - total / 2;
  }
  return win;
}

static int64_t extent(const int64_t dims[AXES]) {
  return dims[0] * dims[1] * dims[2];
}

static void unravel(const int64_t dims[AXES], int64_t at, int64_t index[AXES]) {
  for (int i = AXES - 1; i >= 0; --i) {
    index[i] = at % dims[i];
    at /= dims[i];
  }
}

/* The input element under tap k of result o; -1: none. */
static int64_t forward_source(const window *win, int64_t o, int64_t k) {
  int64_t out[AXES], tap[AXES], at = 0;
  unravel(win->out, o, out);
  unravel(win->kernel, k, tap);
  for (int i = 0; i < AXES; ++i) {
    const int64_t place = out[i] * win->stride[i] + tap[i] * win->dilation[i] - win->pad[i];
    if (place < 0 || place >= win->in[i]) return -1;
    at = at * win->in[i] + place;
  }
  return at;
}

static int64_t transposed_source(const window *win, int64_t o, int64_t k) {
  int64_t out[AXES], tap[AXES], at = 0;
  unravel(win->out, o, out);
  unravel(win->kernel, k, tap);
  for (int i = 0; i < AXES; ++i) {
    const int64_t place = out[i] + win->pad[i] - tap[i] * win->dilation[i];
    if (place < 0 || place % win->stride[i] != 0 || place / win->stride[i] >= win->in[i]) return -1;
    at = at * win->in[i] + place / win->stride[i];
  }
  return at;
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      bool is_transposed) {
  const om_ref_tensor *x = &inputs[0];
  const om_ref_tensor *w = &inputs[1];
  om_ref_tensor *y = &outputs[0];
  const window win = window_of(node, x, w, y, is_transposed);
  const int64_t group = om_ref_int(node, "group", 1);
  const int64_t in_channels = x->dims[1] / group;
  const int64_t out_channels = y->dims[1] / group;
  const int64_t kernel = extent(win.kernel), places = extent(win.out);
  int64_t *sources = malloc((size_t)kernel * sizeof *sources); /* of a place's taps */
  if (!sources) abort();
  for (int64_t o = 0; o < places; ++o) {
    for (int64_t k = 0; k < kernel; ++k) {
      sources[k] = is_transposed ? transposed_source(&win, o, k) : forward_source(&win, o, k);
    }
    for (int64_t plane = 0; plane < y->dims[0] * y->dims[1]; ++plane) {
      const int64_t m = plane % y->dims[1], image = plane / y->dims[1];
      double sum = input_count > 2 && inputs[2].values ? inputs[2].values[m] : 0;
      for (int64_t c = 0; c < in_channels; ++c) {
        const int64_t channel = m / out_channels * in_channels + c;
        const double *from = x->values + (image * x->dims[1] + channel) * extent(win.in);
        const double *by = w->values + (is_transposed ? channel * out_channels + m % out_channels
                                                      : m * in_channels + c) *
                                           kernel;
        for (int64_t k = 0; k < kernel; ++k) {
          if (sources[k] >= 0) sum += from[sources[k]] * by[k];
        }
      }
      y->values[plane * places + o] = sum;
    }
  }
  free(sources);
}

static void reference_conv(const om_node *node,
                           const om_ref_tensor *inputs,
                           size_t input_count,
                           om_ref_tensor *outputs,
                           size_t output_count) {
  (void)output_count;
  reference(node, inputs, input_count, outputs, false);
}

static void reference_transposed(const om_node *node,
                                 const om_ref_tensor *inputs,
                                 size_t input_count,
                                 om_ref_tensor *outputs,
                                 size_t output_count) {
  (void)output_count;
  reference(node, inputs, input_count, outputs, true);
}

static const om_op_case conv_cases[] = {
    {.name = "windows_of_padding_alone", /* the last columns read no input */
     .inputs = {"f32 6x6x4x1x1", "f32 4x6x3x1x1 const", "f32 4 const"},
     .attrs = "dilations=1,2,2 pads=0,0,1,2,1,2 strides=1,2,2"},
    {.name = "first_axis_of_padding_alone", /* its one result reads no input */
     .inputs = {"f32 3x5x1x5x3", "f32 4x5x1x3x3 const", "f32 4 const"},
     .attrs = "pads=1,0,2,0,0,1 strides=2,2,1"},
    {.name = "one_term_of_minus_0", /* a sum begins with 0 */
     .inputs = {"f32 1x1x1x4 = 0 -0 1 2", "f32 1x1x1x1 const = -1"}},
    {.name = "terms_of_minus_0", .inputs = {"f32 1x1x5x5 = 0", "f32 2x1x3x3 const = -1"}},
    {.name = "one_column_of_results",
     .inputs = {"f32 1x1x4x3", "f32 1x1x1x3 const"},
     .attrs = "pads=0,0,0,1 strides=1,2"},
    {.name = "one_column_of_a_volume",
     .inputs = {"f32 2x1x3x6x2", "f32 1x1x1x2x3 const", "f32 1 const"},
     .attrs = "pads=0,0,1,0,1,1 strides=2,1,2"},
    {.name = "pads_longer_than_the_kernel",
     .inputs = {"f32 1x3x5x4", "f32 2x3x2x1 const"},
     .attrs = "pads=3,2,0,1"},
    {.name = "one_axis",
     .inputs = {"f32 2x3x17", "f32 5x3x4 const", "f32 5 const"},
     .attrs = "pads=1,2"},
    {.name = "one_axis_strided",
     .inputs = {"f32 1x40x33", "f32 7x40x3 const"},
     .attrs = "strides=[2] dilations=[3] pads=2,0"},
    {.name = "3x3",
     .inputs = {"f32 1x5x13x11", "f32 9x5x3x3 const", "f32 9 const"},
     .attrs = "pads=1,1,1,1"},
    {.name = "3x3_run_time_weights",
     .inputs = {"f32 1x5x13x11", "f32 9x5x3x3", "f32 9"},
     .attrs = "pads=1,1,1,1"},
    {.name = "3x3_stride_2",
     .inputs = {"f32 2x3x32x30", "f32 16x3x3x3 const"},
     .attrs = "pads=1,1,1,1 strides=2,2"},
    {.name = "long_sum",
     .inputs = {"f32 1x64x9x9", "f32 40x64x3x3 const", "f32 40 const"},
     .attrs = "pads=1,1,1,1",
     .scaled_error = 2e-6},
    {.name = "very_long_sum",
     .inputs = {"f32 1x256x3x3", "f32 8x256x3x3 const"},
     .attrs = "pads=1,1,1,1",
     .scaled_error = 2e-6},
    {.name = "asymmetric",
     .inputs = {"f32 1x4x9x12", "f32 6x4x2x5 const"},
     .attrs = "pads=0,3,1,2 strides=1,3 dilations=3,1"},
    {.name = "wide_tiles", .inputs = {"f32 1x20x40x64", "f32 70x20x1x1 const"}},
    {.name = "wide_tiles_3x3",
     .inputs = {"f32 1x6x66x65", "f32 66x6x3x3 const"},
     .attrs = "pads=1,1,1,1"},
    {.name = "1x1", .inputs = {"f32 2x33x6x10", "f32 24x33x1x1 const", "f32 24 const"}},
    {.name = "1x1_odd_plane", .inputs = {"f32 1x33x5x7", "f32 24x33x1x1 const"}},
    {.name = "1x1_strided",
     .inputs = {"f32 1x8x9x9", "f32 24x8x1x1 const"},
     .attrs = "strides=2,2"},
    {.name = "1x1_long_split",
     .inputs = {"f32 1x700x2x8", "f32 36x700x1x1 const", "f32 36 const"},
     .scaled_error = 2e-6},
    {.name = "1x1_few_channels", .inputs = {"f32 1x3x8x16", "f32 2x3x1x1 const"}},
    {.name = "point",
     .inputs = {"f32 2x300x1x1", "f32 70x300x1x1 const", "f32 70 const"},
     .scaled_error = 2e-6},
    {.name = "point_large_squeeze",
     .inputs = {"f32 3x404x1x1", "f32 101x404x1x1 const", "f32 101 const"},
     .scaled_error = 2e-6},
    {.name = "point_two_pixels", .inputs = {"f32 1x33x1x2", "f32 5x33x1x1 const"}},
    {.name = "groups",
     .inputs = {"f32 2x12x7x9", "f32 6x4x3x3 const", "f32 6 const"},
     .attrs = "group=3 pads=1,1,1,1"},
    {.name = "depthwise_3x3",
     .inputs = {"f32 2x7x10x13", "f32 7x1x3x3 const", "f32 7 const"},
     .attrs = "group=7 pads=1,1,1,1"},
    {.name = "depthwise_3x3_stride_2",
     .inputs = {"f32 1x7x11x14", "f32 7x1x3x3 const"},
     .attrs = "group=7 pads=1,1,1,1 strides=2,2"},
    {.name = "depthwise_5x5",
     .inputs = {"f32 1x3x9x9", "f32 3x1x5x5 const", "f32 3 const"},
     .attrs = "group=3 pads=2,2,2,2"},
    {.name = "depthwise_5x5_stride_2_1",
     .inputs = {"f32 1x3x12x9", "f32 3x1x5x5 const"},
     .attrs = "group=3 pads=2,2,2,2 strides=2,1"},
    {.name = "depthwise_5x5_stride_1_2",
     .inputs = {"f32 1x3x9x15", "f32 3x1x5x5 const"},
     .attrs = "group=3 pads=2,2,2,2 strides=1,2"},
    /* Of results enough for rows of quads. */
    {.name = "depthwise_wide_3x3",
     .inputs = {"f32 2x9x225x260", "f32 9x1x3x3 const", "f32 9 const"},
     .attrs = "group=9 pads=0,1,2,1",
     .hopper_kernel = "conv_depthwise_wide_k3s1"},
    {.name = "depthwise_wide_3x3_stride_2",
     .inputs = {"f32 3x8x421x424", "f32 8x1x3x3 const"},
     .attrs = "group=8 pads=1,1,1,1 strides=2,2",
     .hopper_kernel = "conv_depthwise_wide_k3s2"},
    {.name = "depthwise_wide_5x5",
     .inputs = {"f32 1x9x225x260", "f32 18x1x5x5 const"},
     .attrs = "group=9 pads=2,2,2,2",
     .hopper_kernel = "conv_depthwise_wide_k5s1"},
    {.name = "depthwise_wide_5x5_stride_2",
     .inputs = {"f32 3x8x421x424", "f32 8x1x5x5 const", "f32 8 const"},
     .attrs = "group=8 pads=2,2,2,2 strides=2,2",
     .hopper_kernel = "conv_depthwise_wide_k5s2"},
    {.name = "depthwise_multiplied",
     .inputs = {"f32 1x3x8x9", "f32 6x1x3x3 const"},
     .attrs = "group=3"},
    {.name = "depthwise_one_axis",
     .inputs = {"f32 2x5x43", "f32 10x1x4 const", "f32 10 const"},
     .attrs = "group=5 pads=2,1 strides=[3] dilations=[2]"},
    {.name = "depthwise_15x10",
     .inputs = {"f32 1x2x20x19", "f32 2x1x15x10 const"},
     .attrs = "group=2 pads=7,4,7,5"},
    {.name = "depthwise_dilated",
     .inputs = {"f32 1x2x11x11", "f32 2x1x3x3 const"},
     .attrs = "group=2 pads=2,2,2,2 dilations=2,2"},
    {.name = "three_axes",
     .inputs = {"f32 1x2x5x6x7", "f32 3x2x2x3x3 const", "f32 3 const"},
     .attrs = "pads=1,0,1,0,1,1 strides=1,2,1"},
    {.name = "three_axes_dilated_groups",
     .inputs = {"f32 2x6x7x6x9", "f32 4x3x2x2x3 const", "f32 4 const"},
     .attrs = "group=2 dilations=3,1,2 strides=2,1,3 pads=1,1,0,2,0,1"},
    {.name = "three_axes_depthwise",
     .inputs = {"f32 1x5x4x5x6", "f32 10x1x3x3x3 const"},
     .attrs = "group=5 pads=1,1,1,1,1,1"},
    {.name = "three_axes_run_time_weights",
     .inputs = {"f32 1x3x4x5x6", "f32 7x3x2x1x3", "f32 7"},
     .attrs = "auto_pad=\"SAME_UPPER\" strides=1,2,2"},
    {.name = "three_axes_long_sum",
     .inputs = {"f32 1x20x4x4x5", "f32 40x20x3x3x3 const"},
     .attrs = "pads=1,1,1,1,1,1",
     .scaled_error = 2e-6},
    {.name = "three_axes_1x1x1", .inputs = {"f32 2x9x3x4x7", "f32 8x9x1x1x1 const", "f32 8 const"}},
    {.name = "three_axes_1x3x3",
     .inputs = {"f32 1x4x3x6x7", "f32 5x4x1x3x3 const"},
     .attrs = "pads=0,1,1,0,1,1"},
    {.name = "three_axes_of_one",
     .inputs = {"f32 1x4x1x6x7", "f32 5x4x1x3x3 const"},
     .attrs = "pads=0,1,1,0,1,1"},
    {.name = "same_upper",
     .inputs = {"f32 1x1x4x4 ramp", "f32 1x1x3x3 const = 1"},
     .attrs = "strides=2,2 auto_pad=\"SAME_UPPER\"",
     .expected = {"45 39 66 50"}},
    {.name = "same_lower",
     .inputs = {"f32 1x1x4x4 ramp", "f32 1x1x3x3 const = 1 0 0 0 0 0 0 0 0"},
     .attrs = "strides=2,2 auto_pad=\"SAME_LOWER\"",
     .expected = {"0 0 0 5"}},
    {.name = "same_upper_one_axis",
     .inputs = {"f32 1x2x17", "f32 3x2x4 const"},
     .attrs = "strides=[3] auto_pad=\"SAME_UPPER\"",
     .shapes = {"1x3x6"}},
    {.name = "valid",
     .inputs = {"f32 1x2x9x9", "f32 3x2x3x2 const"},
     .attrs = "strides=2,3 auto_pad=\"VALID\"",
     .shapes = {"1x3x4x3"}},
    {.name = "infinities_and_padding",
     .inputs = {"f32 1x1x4x4 = 0 -0 1e30 inf -inf 1 2", "f32 2x1x3x3 const = 1 2 3 0 1 -0 1 1 1"},
     .attrs = "pads=1,1,1,1",
     .exact_only = true},
    /* In fast mode these are for matrix hardware, by the tile in the name. */
    {.name = "matrix_16x64",
     .inputs = {"f32 3x100x40x40", "f32 8x100x3x3 const", "f32 8 const"},
     .attrs = "pads=1,1,1,1",
     .scaled_error = 2e-6},
    {.name = "matrix_32x32",
     .inputs = {"f32 2x203x13x11", "f32 45x203x1x1 const", "f32 45 const"},
     .scaled_error = 2e-6},
    {.name = "matrix_32x32_split",
     .inputs = {"f32 1x72x9x9", "f32 37x72x3x3 const", "f32 37 const"},
     .attrs = "pads=0,1,2,1 strides=1,2 dilations=2,1",
     .scaled_error = 2e-6},
    {.name = "matrix_32x64",
     .inputs = {"f32 3x64x28x28", "f32 200x64x1x1 const"},
     .scaled_error = 2e-6},
    {.name = "matrix_64x32",
     .inputs = {"f32 1x20x33x33", "f32 260x20x3x3 const", "f32 260 const"},
     .attrs = "pads=1,1,1,1",
     .scaled_error = 2e-6},
    {.name = "matrix_64x64",
     .inputs = {"f32 3x33x40x40", "f32 300x33x1x1 const", "f32 300 const"},
     .scaled_error = 2e-6},
    {.name = "matrix_mixed",
     .inputs = {"f32 1x3x57x56", "f32 500x3x3x3 const", "f32 500 const"},
     .attrs = "pads=1,1,1,1 dilations=1,2"},
    {.name = "matrix_small_values",
     .inputs = {"f32 1x72x9x9 range -1e-7 1e-7", "f32 37x72x3x3 const range -1e-9 1e-9"},
     .attrs = "pads=1,1,1,1",
     .scaled_error = 2e-6},
    {.name = "matrix_large_values",
     .inputs = {"f32 1x72x9x9 range -1e9 1e9", "f32 37x72x3x3 const range -1e7 1e7"},
     .attrs = "pads=1,1,1,1",
     .scaled_error = 2e-6},
    {.name = "matrix_infinities",
     .inputs = {"f32 1x72x3x3 = 1 2 inf 3 0.5 7 8 9", "f32 37x72x3x3 const range 0.5 1"},
     .attrs = "pads=1,1,1,1"},
    /* In fast mode these are for the kernels for Hopper, where there are any, by the way that
     * windows come: one step of terms, taps in turn, nine taps at once, rows of the kernel. */
    {.name = "sm90_short",
     .inputs = {"f32 9x64x40x39", "f32 130x64x1x1 const", "f32 130 const"},
     .hopper_kernel = "conv_sm90_short"},
    {.name = "sm90_gather_1",
     .inputs = {"f32 3x264x40x40", "f32 130x264x1x1 const", "f32 130 const"},
     .scaled_error = 2e-6,
     .hopper_kernel = "conv_sm90_gather_1"},
    {.name = "sm90_gather_2",
     .inputs = {"f32 9x264x29x29", "f32 130x264x1x1 const", "f32 130 const"},
     .attrs = "strides=2,2",
     .scaled_error = 2e-6,
     .hopper_kernel = "conv_sm90_gather_2"},
    {.name = "sm90_gather_128_2",
     .inputs = {"f32 9x136x27x26", "f32 140x136x1x2 const", "f32 140 const"},
     .attrs = "pads=0,1,2,1 strides=1,2 dilations=2,1",
     .scaled_error = 2e-6,
     .hopper_kernel = "conv_sm90_gather_128_2"},
    {.name = "sm90_gather_256_1",
     .inputs = {"f32 9x72x29x29", "f32 200x72x1x1 const", "f32 200 const"},
     .hopper_kernel = "conv_sm90_gather_256_1"},
    {.name = "sm90_window",
     .inputs = {"f32 9x72x13x14", "f32 70x72x3x3 const", "f32 70 const"},
     .attrs = "pads=1,1,1,1",
     .scaled_error = 2e-6,
     .hopper_kernel = "conv_sm90_window_2"},
    {.name = "sm90_rows",
     .inputs = {"f32 7x3x51x50", "f32 40x3x7x7 const", "f32 40 const"},
     .attrs = "pads=3,3,3,3 strides=2,2",
     .hopper_kernel = "conv_sm90_rows"},
    {.name = "sm90_small_values",
     .inputs = {"f32 3x72x28x28 range -1e-7 1e-7", "f32 40x72x3x3 const range -1e-9 1e-9"},
     .attrs = "pads=1,1,1,1",
     .scaled_error = 2e-6,
     .hopper_kernel = "conv_sm90_window_2"},
    {.name = "sm90_large_values",
     .inputs = {"f32 3x136x29x29 range -1e9 1e9", "f32 200x136x1x1 const range -1e7 1e7"},
     .scaled_error = 2e-6,
     .hopper_kernel = "conv_sm90_gather_128_2"},
    {.name = "sm90_infinities",
     .inputs = {"f32 3x136x29x29 = 1 2 inf 3 0.5 7 8 9", "f32 200x136x1x1 const range 0.5 1"},
     .hopper_kernel = "conv_sm90_gather_128_2"},
    {.name = "sm90_zeros",
     .inputs = {"f32 3x136x29x29 = 0", "f32 200x136x1x1 const", "f32 200 const"},
     .hopper_kernel = "conv_sm90_gather_128_2"},
    {.name = "half",
     .inputs = {"f16 1x6x9x9", "f16 4x6x3x3 const", "f16 4 const"},
     .attrs = "pads=1,1,1,1"},
    {.name = "half_1x1", .inputs = {"f16 2x33x6x10", "f16 24x33x1x1 const", "f16 24 const"}},
    {.name = "half_wide_tiles", .inputs = {"f16 1x20x40x64", "f16 70x20x1x1 const"}},
    {.name = "half_point", .inputs = {"f16 2x300x1x1", "f16 70x300x1x1 const", "f16 70 const"}},
    {.name = "half_split",
     .inputs = {"f16 1x70x3x3", "f16 37x70x3x3 const", "f16 37 const"},
     .attrs = "pads=1,1,1,1"},
    {.name = "half_1x1_split", .inputs = {"f16 1x700x2x8", "f16 36x700x1x1 const", "f16 36"}},
    {.name = "half_depthwise",
     .inputs = {"f16 2x7x10x13", "f16 7x1x3x3 const", "f16 7 const"},
     .attrs = "group=7 pads=1,1,1,1"},
    {.name = "half_depthwise_wide_3x3",
     .inputs = {"f16 2x9x225x260", "f16 9x1x3x3 const", "f16 9 const"},
     .attrs = "group=9 pads=0,1,2,1",
     .hopper_kernel = "conv_depthwise_wide_k3s1_half"},
    {.name = "half_depthwise_wide_5x5_stride_2",
     .inputs = {"f16 3x8x421x424", "f16 8x1x5x5 const", "f16 8 const"},
     .attrs = "group=8 pads=2,2,2,2 strides=2,2",
     .hopper_kernel = "conv_depthwise_wide_k5s2_half"},
    {.name = "half_depthwise_7x7",
     .inputs = {"f16 1x2x11x11", "f16 2x1x7x7"},
     .attrs = "group=2 pads=3,3,3,3"},
    {.name = "half_groups",
     .inputs = {"f16 1x12x7x9", "f16 6x4x3x3 const", "f16 6 const"},
     .attrs = "group=3 strides=2,1"},
    {.name = "half_run_time_weights",
     .inputs = {"f16 1x5x13x11", "f16 9x5x3x3", "f16 9"},
     .attrs = "pads=1,1,1,1"},
    {.name = "half_three_axes",
     .inputs = {"f16 1x3x4x5x6", "f16 7x3x2x1x3 const", "f16 7"},
     .attrs = "strides=1,2,2"},
    {.name = "half_matrix_16x64",
     .inputs = {"f16 3x200x80x80", "f16 8x200x1x1 const", "f16 8 const"}},
    {.name = "half_matrix_32x32",
     .inputs = {"f16 2x203x13x11", "f16 45x203x1x1 const", "f16 45 const"}},
    {.name = "half_matrix_32x32_split",
     .inputs = {"f16 1x130x9x9", "f16 37x130x3x3 const", "f16 37 const"},
     .attrs = "pads=0,1,2,1 strides=1,2 dilations=2,1"},
    {.name = "half_matrix_32x64",
     .inputs = {"f16 3x64x80x80", "f16 20x64x1x1 const", "f16 20 const"}},
    {.name = "half_matrix_64x32",
     .inputs = {"f16 1x72x80x80", "f16 33x72x3x3 const"},
     .attrs = "pads=1,1,1,1"},
    {.name = "half_matrix_64x64",
     .inputs = {"f16 3x20x28x28", "f16 500x20x1x1 const", "f16 500 const"}},
    {.name = "half_matrix_mixed",
     .inputs = {"f16 1x3x41x39", "f16 500x3x3x3 const", "f16 500 const"},
     .attrs = "pads=1,1,1,1 dilations=1,2"},
    {.name = "half_sm90_short",
     .inputs = {"f16 9x24x29x30", "f16 70x24x1x1 const", "f16 70 const"},
     .hopper_kernel = "conv_sm90_short_half"},
    {.name = "half_sm90_gather_1",
     .inputs = {"f16 3x72x40x40", "f16 130x72x1x1 const", "f16 130 const"},
     .hopper_kernel = "conv_sm90_gather_1_half"},
    {.name = "half_sm90_gather_2",
     .inputs = {"f16 9x72x29x29", "f16 130x72x1x1 const", "f16 130 const"},
     .attrs = "strides=2,2",
     .hopper_kernel = "conv_sm90_gather_2_half"},
    {.name = "half_sm90_gather_4",
     .inputs = {"f16 5x136x14x14", "f16 260x136x1x1 const", "f16 260 const"},
     .hopper_kernel = "conv_sm90_gather_4_half"},
    {.name = "half_sm90_gather_128_1",
     .inputs = {"f16 9x72x40x40", "f16 70x72x1x1 const", "f16 70 const"},
     .hopper_kernel = "conv_sm90_gather_128_1_half"},
    {.name = "half_sm90_gather_128_2",
     .inputs = {"f16 9x136x27x26", "f16 140x136x1x2 const", "f16 140 const"},
     .attrs = "pads=0,1,2,1 strides=1,2 dilations=2,1",
     .hopper_kernel = "conv_sm90_gather_128_2_half"},
    {.name = "half_sm90_window_1",
     .inputs = {"f16 12x56x27x28", "f16 24x56x3x3 const", "f16 24 const"},
     .attrs = "pads=1,1,1,1",
     .hopper_kernel = "conv_sm90_window_1_half"},
    {.name = "half_sm90_window_4",
     .inputs = {"f16 9x136x13x14", "f16 70x136x3x3 const", "f16 70 const"},
     .attrs = "pads=1,1,1,1",
     .hopper_kernel = "conv_sm90_window_4_half"},
    {.name = "half_sm90_rows",
     .inputs = {"f16 3x3x111x112", "f16 70x3x3x3 const", "f16 70 const"},
     .attrs = "pads=1,1,1,1 strides=2,2",
     .hopper_kernel = "conv_sm90_rows_half"},
    {.name = "half_large_and_small",
     .inputs = {"f16 1x4x5x5 range -60000 60000", "f16 3x4x1x1 const range -0.001 0.001"}},
    {.name = "bfloat16",
     .opset = 22,
     .inputs = {"bf16 1x6x9x9", "bf16 4x6x3x3 const"},
     .declined = "bfloat16"},
    {.name = "double",
     .inputs = {"f64 1x60x9x9", "f64 4x60x3x3 const", "f64 4 const"},
     .attrs = "pads=1,1,1,1",
     .declined = "float64"},
    {.name = "no_images",
     .inputs = {"f32 0x3x8x8", "f32 4x3x3x3 const"},
     .shapes = {"0x4x6x6"},
     .declined = "empty"},
    {.name = "no_room", .inputs = {"f32 1x1x2x2", "f32 1x1x3x3 const"}, .error = "does not fit"},
    {.name = "wrong_channels",
     .inputs = {"f32 1x4x8x8", "f32 2x3x3x3 const"},
     .error = "do not go with"},
    {.name = "wrong_group",
     .inputs = {"f32 1x4x8x8", "f32 3x2x3x3 const"},
     .attrs = "group=2",
     .error = "do not go with"},
    {.name = "wrong_rank", .inputs = {"f32 1x4x8x8", "f32 2x4x3 const"}, .error = "do not go with"},
    {.name = "wrong_bias",
     .inputs = {"f32 1x4x8x8", "f32 2x4x3x3 const", "f32 3 const"},
     .error = "The bias"},
    {.name = "wrong_kernel_shape",
     .inputs = {"f32 1x4x8x8", "f32 2x4x3x3 const"},
     .attrs = "kernel_shape=3,2",
     .error = "kernel_shape[1] is 2"},
    {.name = "stride_0",
     .inputs = {"f32 1x4x8x8", "f32 2x4x3x3 const"},
     .attrs = "strides=0,1",
     .error = "strides[0] is 0"},
    {.name = "negative_pad",
     .inputs = {"f32 1x4x8x8", "f32 2x4x3x3 const"},
     .attrs = "pads=0,0,-1,0",
     .error = "pads[2] is -1"},
    {.name = "group_0",
     .inputs = {"f32 1x4x8x8", "f32 2x4x3x3 const"},
     .attrs = "group=0",
     .error = "group is 0"},
    {.name = "wrong_lists",
     .inputs = {"f32 1x4x8x8", "f32 2x4x3x3 const"},
     .attrs = "strides=1,1 dilations=[1]",
     .error = "dilations has 1 values"},
    {.name = "wrong_axes",
     .inputs = {"f32 1x4x8x8", "f32 2x4x3x3 const"},
     .attrs = "strides=[1]",
     .error = "for 1 spatial axes"},
    {.name = "no_axis", .inputs = {"f32 1x4", "f32 2x4 const"}, .error = "no spatial axis"},
    {.name = "wrong_auto_pad",
     .inputs = {"f32 1x4x8x8", "f32 2x4x3x3 const"},
     .attrs = "auto_pad=\"BOTH\"",
     .error = "auto_pad is \"BOTH\""},
    {.name = "four_axes",
     .inputs = {"f32 1x1x2x2x2x2", "f32 1x1x1x1x1x1 const"},
     .error = "more than 3"},
};

static const om_op_case transposed_cases[] = {
    {.name = "2x2_stride_2",
     .inputs = {"f32 1x24x6x10", "f32 24x5x2x2 const", "f32 5 const"},
     .attrs = "strides=2,2"},
    {.name = "one_channel",
     .inputs = {"f32 2x24x7x5", "f32 24x1x2x2 const", "f32 1 const"},
     .attrs = "strides=2,2"},
    {.name = "3x3_stride_2",
     .inputs = {"f32 1x7x5x6", "f32 7x20x3x3 const"},
     .attrs = "strides=2,2 pads=1,1,1,1 output_padding=1,1"},
    {.name = "4x4_stride_2",
     .inputs = {"f32 2x3x5x6", "f32 3x17x4x4 const", "f32 17 const"},
     .attrs = "strides=2,2 pads=1,1,1,1"},
    {.name = "stride_1", .inputs = {"f32 1x9x8x8", "f32 9x4x3x3 const"}, .attrs = "pads=1,1,1,1"},
    {.name = "stride_above_kernel",
     .inputs = {"f32 1x3x4x5", "f32 3x4x2x1 const", "f32 4 const"},
     .attrs = "strides=3,4"},
    {.name = "dilated",
     .inputs = {"f32 1x3x9x8", "f32 3x4x3x5 const"},
     .attrs = "strides=2,1 dilations=3,1 pads=4,2,4,2"},
    {.name = "dilation_shares_a_factor",
     .inputs = {"f32 1x3x6x6", "f32 3x2x3x3 const"},
     .attrs = "strides=2,4 dilations=2,6"},
    {.name = "groups",
     .inputs = {"f32 1x6x5x5", "f32 6x4x3x3 const", "f32 12 const"},
     .attrs = "group=3 strides=2,2"},
    {.name = "depthwise",
     .inputs = {"f32 1x6x5x5", "f32 6x1x3x3 const"},
     .attrs = "group=6 strides=2,1 pads=1,1,1,1"},
    {.name = "long_sum",
     .inputs = {"f32 1x200x4x4", "f32 200x3x3x3 const"},
     .attrs = "strides=2,2",
     .scaled_error = 2e-6},
    {.name = "one_axis",
     .inputs = {"f32 1x1x3 = 1 2 3", "f32 1x1x3 const = 1 10 100"},
     .attrs = "strides=[2] pads=1,1 output_padding=[1]",
     .expected = {"10 102 20 203 30 300"}},
    {.name = "same_upper",
     .inputs = {"f32 1x1x3 = 1 2 3", "f32 1x1x3 const = 1 10 100"},
     .attrs = "strides=[2] auto_pad=\"SAME_UPPER\"",
     .expected = {"1 10 102 20 203 30"}},
    {.name = "same_lower",
     .inputs = {"f32 2x3x5x6", "f32 3x4x3x4 const"},
     .attrs = "strides=2,3 auto_pad=\"SAME_LOWER\"",
     .shapes = {"2x4x10x18"}},
    {.name = "output_shape",
     .inputs = {"f32 1x2x3x3", "f32 2x2x3x3 const"},
     .attrs = "strides=3,2 output_shape=10,8",
     .shapes = {"1x2x10x8"}},
    {.name = "97_rows",
     .inputs = {"f32 1x1x50x50 = 1", "f32 1x3x3x5 const"},
     .attrs = "dilations=3,1 pads=4,2,4,2 strides=2,1",
     .shapes = {"1x3x97x50"}},
    {.name = "three_axes",
     .inputs = {"f32 1x2x3x4x3", "f32 2x3x2x3x2 const", "f32 3 const"},
     .attrs = "strides=2,1,2"},
    {.name = "three_axes_padded",
     .inputs = {"f32 2x4x3x4x3", "f32 4x3x3x3x2 const"},
     .attrs = "strides=2,3,1 pads=1,1,0,1,0,1 output_padding=1,0,0"},
    {.name = "three_axes_dilated_groups",
     .inputs = {"f32 1x4x3x3x5", "f32 4x3x2x3x2 const", "f32 6 const"},
     .attrs = "group=2 strides=2,2,3 dilations=3,2,1"},
    {.name = "three_axes_run_time_weights",
     .inputs = {"f32 1x3x2x3x4", "f32 3x5x3x2x3", "f32 5"},
     .attrs = "strides=2,1,2 pads=1,0,1,1,0,1"},
    {.name = "2x2_many_channels",
     .inputs = {"f32 1x33x8x12", "f32 33x24x2x2 const", "f32 24 const"},
     .attrs = "strides=2,2"},
    {.name = "1x4_kernel",
     .inputs = {"f32 2x5x3x8", "f32 5x3x1x4", "f32 3"},
     .attrs = "strides=1,4"},
    {.name = "3x2_kernel", .inputs = {"f32 1x5x4x4", "f32 5x2x3x2 const"}, .attrs = "strides=3,2"},
    {.name = "2x2_left_over",
     .inputs = {"f32 1x5x4x4", "f32 5x2x2x2 const"},
     .attrs = "strides=2,2 output_padding=1,0"},
    {.name = "run_time_weights", .inputs = {"f32 1x3x4x4", "f32 3x2x3x3"}, .attrs = "strides=2,2"},
    {.name = "run_time_weights_dilated_groups",
     .inputs = {"f32 1x6x5x4", "f32 6x3x3x4", "f32 9"},
     .attrs = "group=3 strides=2,4 dilations=3,2 pads=1,2,0,1"},
    {.name = "run_time_weights_one_axis",
     .inputs = {"f32 2x6x9", "f32 6x3x5"},
     .attrs = "strides=[3] auto_pad=\"SAME_LOWER\""},
    {.name = "half", .inputs = {"f16 1x6x9x9", "f16 6x4x3x3 const"}, .attrs = "strides=2,2"},
    {.name = "half_shuffle",
     .inputs = {"f16 1x24x6x10", "f16 24x8x2x2 const", "f16 8 const"},
     .attrs = "strides=2,2"},
    {.name = "half_run_time_weights",
     .inputs = {"f16 1x3x4x4", "f16 3x20x3x3"},
     .attrs = "strides=2,2"},
    {.name = "half_three_axes",
     .inputs = {"f16 1x4x3x3x5", "f16 4x3x2x3x2 const", "f16 6 const"},
     .attrs = "group=2 strides=2,2,3 dilations=3,2,1"},
    {.name = "double",
     .inputs = {"f64 1x6x9x9", "f64 6x4x3x3 const"},
     .attrs = "strides=2,2",
     .declined = "float64"},
    {.name = "no_images",
     .inputs = {"f32 0x3x4x4", "f32 3x2x2x2 const"},
     .attrs = "strides=2,2",
     .shapes = {"0x2x8x8"},
     .declined = "empty"},
    {.name = "wrong_channels",
     .inputs = {"f32 1x4x8x8", "f32 2x4x3x3 const"},
     .error = "do not go with"},
    {.name = "pads_too_large",
     .inputs = {"f32 1x1x2x2", "f32 1x1x2x2 const"},
     .attrs = "pads=3,3,3,3",
     .error = "does not fit"},
};

/* Squeeze-and-excite: backends are compared with each other. */
#define EXCITE(act, gate)                                    \
  "p = GlobalAveragePool(x0); a = Conv(p, x1, x2); b = " act \
  "(a); c = Conv(b, x3, x4); "                               \
  "d = " gate "(c); y0 = Mul(x0, d)"

static const om_op_case excite_cases[] = {
    {.name = "few_channels",
     .inputs = {"f32 1x40x6x7",
                "f32 10x40x1x1 const",
                "f32 10 const",
                "f32 40x10x1x1 const",
                "f32 40 const"},
     .graph = EXCITE("Relu", "HardSigmoid")},
    {.name = "images",
     .inputs = {"f32 3x33x9x11",
                "f32 8x33x1x1 const",
                "f32 8 const",
                "f32 33x8x1x1 const",
                "f32 33 const"},
     .graph = EXCITE("HardSwish", "Sigmoid")},
    {.name = "many_terms",
     .inputs = {"f32 1x300x2x3",
                "f32 70x300x1x1 const",
                "f32 70 const",
                "f32 300x70x1x1 const",
                "f32 300 const"},
     .graph = EXCITE("Relu", "HardSigmoid")},
    {.name = "more_terms_than_a_round",
     .inputs = {"f32 1x264x2x3",
                "f32 40x264x1x1 const",
                "f32 40 const",
                "f32 264x40x1x1 const",
                "f32 264 const"},
     .graph = EXCITE("Sigmoid", "HardSwish")},
    {.name = "half",
     .inputs = {"f16 2x40x6x7",
                "f16 10x40x1x1 const",
                "f16 10 const",
                "f16 40x10x1x1 const",
                "f16 40 const"},
     .graph = EXCITE("Relu", "HardSigmoid")},
    {.name = "half_fused",
     .inputs = {"f16 1x6x9x8", "f16 4x6x3x3 const", "f16 4 const", "f16 1x4x9x8"},
     .graph = "t = Conv(x0, x1, x2) pads=1,1,1,1; u = HardSwish(t); y0 = Add(u, x3)"},
    {.name = "other_operation",
     .inputs = {"f32 1x40x6x7",
                "f32 10x40x1x1 const",
                "f32 10 const",
                "f32 40x10x1x1 const",
                "f32 40 const"},
     .graph = EXCITE("Tanh", "HardSigmoid")},
    {.name = "read_elsewhere",
     .inputs = {"f32 1x40x6x7",
                "f32 10x40x1x1 const",
                "f32 10 const",
                "f32 40x10x1x1 const",
                "f32 40 const"},
     .output_count = 2,
     .graph = EXCITE("Relu", "HardSigmoid") "; y1 = Neg(b)"},
    {.name = "swish",
     .inputs = {"f32 1x6x9x8", "f32 24x6x3x3 const", "f32 24 const"},
     .graph = "a = Conv(x0, x1, x2); b = Sigmoid(a); y0 = Mul(a, b)"},
    {.name = "broadcast_residual",
     .inputs = {"f32 2x6x9x8", "f32 24x6x3x3 const", "f32 24 const", "f32 1x24x1x1", "f32 2x1x7x6"},
     .graph = "a = Conv(x0, x1, x2); b = Add(a, x3); y0 = Add(b, x4)"},
    {.name = "residual_of_planes",
     .inputs = {"f32 2x6x9x8", "f32 24x6x3x3 const", "f32 24 const", "f32 2x1x7x6"},
     .graph = "a = Conv(x0, x1, x2); b = Add(x3, a); y0 = Relu(b)"},
    {.name = "half_residual_of_planes",
     .inputs = {"f16 3x6x9x8", "f16 6x1x3x3 const", "f16 6 const", "f16 3x1x7x6"},
     .graph = "a = Conv(x0, x1, x2) group=6; b = Relu(a); y0 = Sub(b, x3)"},
};

/* A depthwise convolution, its planes and their means. */
#define MEANS(attrs) "a = Conv(x0, x1, x2) " attrs "; y0 = HardSwish(a); y1 = GlobalAveragePool(y0)"

static const om_op_case mean_cases[] = {
    {.name = "3x3",
     .inputs = {"f32 2x9x14x14", "f32 9x1x3x3", "f32 9"},
     .output_count = 2,
     .graph = MEANS("group=9 pads=1,1,1,1")},
    {.name = "3x3_strided",
     .inputs = {"f32 1x5x29x27", "f32 5x1x3x3", "f32 5"},
     .output_count = 2,
     .graph = MEANS("group=5 pads=1,1,1,1 strides=2,2")},
    {.name = "5x5",
     .inputs = {"f32 2x3x28x28", "f32 3x1x5x5", "f32 3"},
     .output_count = 2,
     .graph = MEANS("group=3 pads=2,2,2,2")},
    {.name = "5x5_strided",
     .inputs = {"f32 3x20x13x14", "f32 20x1x5x5", "f32 20"},
     .output_count = 2,
     .graph = MEANS("group=20 pads=2,2,2,2 strides=2,2")},
    {.name = "of_one_result",
     .inputs = {"f32 1x300x3x3", "f32 300x1x3x3", "f32 300"},
     .output_count = 2,
     .graph = MEANS("group=300")},
    {.name = "two_a_channel",
     .inputs = {"f32 2x4x7x7", "f32 8x1x5x5", "f32 8"},
     .output_count = 2,
     .graph = MEANS("group=4 pads=2,2,2,2")},
    {.name = "many",
     .inputs = {"f32 3x224x28x28", "f32 224x1x3x3", "f32 224"},
     .output_count = 2,
     .graph = MEANS("group=224 pads=1,1,1,1"),
     .hopper_kernel = "conv_depthwise_k3s1_pool"},
    {.name = "large_planes",
     .inputs = {"f32 1x2x40x33", "f32 2x1x3x3", "f32 2"},
     .output_count = 2,
     .graph = MEANS("group=2 pads=1,1,1,1")},
    {.name = "half",
     .inputs = {"f16 2x33x14x14", "f16 33x1x3x3", "f16 33"},
     .output_count = 2,
     .graph = MEANS("group=33 pads=1,1,1,1")},
    {.name = "half_strided",
     .inputs = {"f16 2x17x14x14", "f16 17x1x5x5", "f16 17"},
     .output_count = 2,
     .graph = MEANS("group=17 pads=2,2,2,2 strides=2,2")},
};

static const om_op_suite suites[] = {
    {.op_type = "Means",
     .cases = mean_cases,
     .case_count = sizeof mean_cases / sizeof mean_cases[0]},
    {.op_type = "Excite",
     .cases = excite_cases,
     .case_count = sizeof excite_cases / sizeof excite_cases[0]},
    OM_OP_SUITE("Conv", conv_cases, reference_conv),
    OM_OP_SUITE("ConvTranspose", transposed_cases, reference_transposed),
};
OM_OP_TESTS(suites)
