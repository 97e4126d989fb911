/* GridSample and RoiAlign against direct formulas in float64. */
#include <math.h>

#include "harness/om_test.h"

/* ---- GridSample ---- */

static double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  double from_low = fmod(fabs(x - low), 2 * range);
  if (from_low > range) from_low = 2 * range - from_low;
  return low + from_low;
}

/* One axis: extent, the coordinate in the grid. */
typedef struct axis {
  int64_t in;
  double n;
} axis;

static double weight(const om_node *node, double distance) {
  const double d = fabs(distance);
  const double a = -0.75;
  if (om_ref_text_is(node, "mode", "linear", "nearest")) return 1;
  if (!om_ref_text_is(node, "mode", "linear", "cubic") &&
      !om_ref_text_is(node, "mode", "linear", "bicubic")) {
    return d < 1 ? 1 - d : 0;
  }
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* The taps of an axis: an element (-1: outside) and a weight each. */
static int taps_of(const om_node *node, const axis *a, int64_t elems[8], double weights[8]) {
  const bool aligned = om_ref_int(node, "align_corners", 0) != 0;
  const bool is_nearest = om_ref_text_is(node, "mode", "linear", "nearest");
  const bool is_border = om_ref_text_is(node, "padding_mode", "zeros", "border");
  const bool reflects = om_ref_text_is(node, "padding_mode", "zeros", "reflection");
  const double last = (double)(a->in - 1);
  const double low = aligned ? 0 : -0.5;
  const double high = aligned ? last : last + 0.5;
  double x = aligned ? (a->n + 1) / 2 * last : ((a->n + 1) * (double)a->in - 1) / 2;
  if (is_nearest) x = nearbyint(x);
  if (x < low || x > high) {
    if (is_border) x = fmin(fmax(x, 0), last);
    if (reflects) x = reflected(x, low, high);
  }
  int count = 0;
  /* Far outside is as good as a little outside; NaN is outside. */
  const int64_t first = (int64_t)floor(fmin(fmax(x, -100), last + 100));
  const int64_t before = is_nearest ? 0 : 3;
  for (int64_t e = first - before; e <= first + before; ++e) {
    const double w = is_nearest ? 1 : weight(node, (double)e - x);
    if (w == 0) continue;
    int64_t at = e;
    if (at < 0 || at >= a->in) {
      at = is_border  ? (e < 0 ? 0 : a->in - 1)
           : reflects ? (int64_t)reflected((double)e, low, high)
                      : -1;
    }
    elems[count] = at;
    weights[count++] = w;
  }
  return count;
}

static void reference_grid(const om_node *node,
                           const om_ref_tensor *inputs,
                           size_t input_count,
                           om_ref_tensor *outputs,
                           size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const om_ref_tensor *y = &outputs[0];
  const uint32_t axes = x->rank - 2;
  size_t pixels = 1, in_elems = 1;
  (void)input_count;
  (void)output_count;
  for (uint32_t i = 2; i < x->rank; ++i) {
    pixels *= (size_t)y->dims[i];
    in_elems *= (size_t)x->dims[i];
  }
  for (size_t i = 0; i < y->elems; ++i) {
    const size_t plane = i / pixels;
    const double *point =
        inputs[1].values + (plane / (size_t)x->dims[1] * pixels + i % pixels) * axes;
    int64_t elems[3][8];
    double weights[3][8];
    int counts[3] = {1, 1, 1};
    double sum = 0;
    for (uint32_t a = 0; a < axes; ++a) { /* from the last one on, as in the grid */
      const axis one = {x->dims[x->rank - 1 - a], point[a]};
      counts[a] = taps_of(node, &one, elems[a], weights[a]);
    }
    for (int t = 0; t < counts[0] * counts[1] * counts[2]; ++t) {
      int64_t at = 0;
      double w = 1;
      bool is_inside = true;
      for (uint32_t a = axes; a-- > 0;) {
        const int k = a == 0   ? t % counts[0]
                      : a == 1 ? t / counts[0] % counts[1]
                               : t / counts[0] / counts[1];
        at = at * x->dims[x->rank - 1 - a] + elems[a][k];
        is_inside = is_inside && elems[a][k] >= 0;
        w *= weights[a][k];
      }
      if (is_inside) sum += w * x->values[plane * in_elems + (size_t)at];
    }
    outputs[0].values[i] = sum;
  }
}

#define GRID "f32 2x5x7x2 range -1.4 1.4"

static const om_op_case grid_cases[] = {
    {.name = "linear", .opset = 20, .inputs = {"f32 2x3x6x5", GRID}},
    {.name = "linear_aligned",
     .opset = 20,
     .inputs = {"f32 2x3x6x5", GRID},
     .attrs = "align_corners=1"},
    {.name = "bilinear_border",
     .opset = 16,
     .inputs = {"f32 2x3x6x5", GRID},
     .attrs = "mode=\"bilinear\" padding_mode=\"border\""},
    {.name = "linear_reflection",
     .opset = 20,
     .inputs = {"f32 2x3x6x5", "f32 2x5x7x2 range -5 5"},
     .attrs = "padding_mode=\"reflection\"",
     .scaled_error = 1e-5},
    {.name = "linear_reflection_aligned",
     .opset = 20,
     .inputs = {"f32 2x3x6x5", "f32 2x5x7x2 range -5 5"},
     .attrs = "padding_mode=\"reflection\" align_corners=1",
     .scaled_error = 1e-5},
    {.name = "nearest", .opset = 20, .inputs = {"f32 2x3x6x5", GRID}, .attrs = "mode=\"nearest\""},
    {.name = "nearest_border",
     .opset = 20,
     .inputs = {"f32 2x3x6x5", GRID},
     .attrs = "mode=\"nearest\" padding_mode=\"border\" align_corners=1"},
    {.name = "nearest_ties",
     .opset = 20,
     .inputs = {"f32 1x1x4 ramp", "f32 1x7x1 = -1 -0.5 0 0.5 1 -0.75 0.25"},
     .attrs = "mode=\"nearest\"",
     .expected = {"0 0 2 2 0 0 2"},
     .exact_only = true},
    {.name = "cubic",
     .opset = 20,
     .inputs = {"f32 2x3x6x5", GRID},
     .attrs = "mode=\"cubic\"",
     .scaled_error = 2e-6},
    {.name = "bicubic_border",
     .opset = 16,
     .inputs = {"f32 2x3x6x5", GRID},
     .attrs = "mode=\"bicubic\" padding_mode=\"border\" align_corners=1",
     .scaled_error = 2e-6},
    {.name = "cubic_reflection",
     .opset = 20,
     .inputs = {"f32 2x3x6x5", GRID},
     .attrs = "mode=\"cubic\" padding_mode=\"reflection\"",
     .scaled_error = 2e-6},
    {.name = "one_axis", .opset = 20, .inputs = {"f32 2x3x9", "f32 2x7x1 range -1.2 1.2"}},
    {.name = "three_axes",
     .opset = 20,
     .inputs = {"f32 1x2x3x4x5", "f32 1x2x3x4x3 range -1.3 1.3"}},
    {.name = "three_axes_nearest",
     .opset = 22,
     .inputs = {"f32 1x2x3x4x5", "f32 1x2x3x4x3 range -1.3 1.3"},
     .attrs = "mode=\"nearest\" padding_mode=\"reflection\""},
    {.name = "to_one_element",
     .opset = 20,
     .inputs = {"f32 1x2x1x1", "f32 1x3x3x2 range -3 3"},
     .attrs = "padding_mode=\"reflection\" align_corners=1"},
    {.name = "not_finite",
     .opset = 20,
     .inputs = {"f32 1x1x3 = 1 2 3", "f32 1x5x1 = nan inf -inf 1e30 0"},
     .attrs = "padding_mode=\"border\"",
     .expected = {"1 3 1 3 2"},
     .exact_only = true},
    {.name = "half",
     .opset = 20,
     .inputs = {"f16 1x2x4x5", "f16 1x3x3x2 range -1 1"},
     .scaled_error = 3e-3},
    {.name = "half_cubic",
     .opset = 20,
     .inputs = {"f16 1x2x4x5", "f16 1x3x3x2 range -1 1"},
     .attrs = "mode=\"cubic\" padding_mode=\"border\"",
     .scaled_error = 3e-3},
    {.name = "half_grid",
     .opset = 20,
     .inputs = {"f32 1x2x4x5", "f16 1x3x3x2 range -1 1"},
     .declined = "its input 1 is float16"},
    {.name = "no_images",
     .opset = 20,
     .inputs = {"f32 0x2x4x5", "f32 0x3x3x2"},
     .shapes = {"0x2x3x3"},
     .declined = "empty"},
    {.name = "wrong_grid",
     .opset = 20,
     .inputs = {"f32 1x2x4x5", "f32 1x3x3x3"},
     .error = "does not go with"},
    {.name = "wrong_batch",
     .opset = 20,
     .inputs = {"f32 1x2x4x5", "f32 2x3x3x2"},
     .error = "does not go with"},
    {.name = "no_elements",
     .opset = 20,
     .inputs = {"f32 1x2x0x5", "f32 1x3x3x2"},
     .error = "has no elements"},
    {.name = "four_axes",
     .opset = 20,
     .inputs = {"f32 1x1x1x1x1x1", "f32 1x1x1x1x1x4"},
     .error = "3 to 5 are supported"},
    {.name = "double_grid",
     .opset = 20,
     .inputs = {"f32 1x2x4x5", "f64 1x3x3x2"},
     .error = "grid is float64, which is not implemented for elements of float32"},
    {.name = "f64",
     .opset = 20,
     .inputs = {"f64 2x3x5x7", "f64 2x4x6x2 range -1.2 1.2"},
     .declined = "float64"},
    {.name = "f64_cubic_reflected",
     .opset = 20,
     .inputs = {"f64 1x2x5x7", "f64 1x4x6x2 range -2.5 2.5"},
     .attrs = "mode=\"cubic\" padding_mode=\"reflection\"",
     .declined = "float64"},
    {.name = "f64_volume_aligned",
     .opset = 20,
     .inputs = {"f64 1x2x3x4x5", "f64 1x2x2x3x3 range -1 1"},
     .attrs = "align_corners=1 padding_mode=\"border\"",
     .declined = "float64"},
    {.name = "wrong_mode",
     .opset = 20,
     .inputs = {"f32 1x2x4x5", "f32 1x3x3x2"},
     .attrs = "mode=\"quintic\"",
     .error = "mode is \"quintic\""},
    {.name = "wrong_padding",
     .opset = 20,
     .inputs = {"f32 1x2x4x5", "f32 1x3x3x2"},
     .attrs = "padding_mode=\"wrap\"",
     .error = "padding_mode is \"wrap\""},
};

/* ---- RoiAlign ---- */

/* The four terms of a sample at (y, x). */
static void sample_terms(
    const double *plane, int64_t height, int64_t width, double y, double x, double terms[4]) {
  for (int i = 0; i < 4; ++i) terms[i] = 0;
  if (y < -1 || y > (double)height || x < -1 || x > (double)width) return;
  y = fmax(y, 0);
  x = fmax(x, 0);
  int64_t at_y = (int64_t)y, at_x = (int64_t)x;
  double part_y = y - (double)at_y, part_x = x - (double)at_x;
  if (at_y >= height - 1) at_y = height - 1, part_y = 0;
  if (at_x >= width - 1) at_x = width - 1, part_x = 0;
  for (int i = 0; i < 4; ++i) {
    const int64_t row = at_y + (i / 2 && part_y > 0), col = at_x + (i % 2 && part_x > 0);
    terms[i] =
        (i / 2 ? part_y : 1 - part_y) * (i % 2 ? part_x : 1 - part_x) * plane[row * width + col];
  }
}

static double roi_bin(const om_node *node,
                      const om_ref_tensor *x,
                      const double *plane,
                      const double *roi,
                      int64_t bin_y,
                      int64_t bin_x) {
  const bool is_max = om_ref_text_is(node, "mode", "avg", "max");
  const bool is_half =
      node->opset >= 16 &&
      om_ref_text_is(node, "coordinate_transformation_mode", "half_pixel", "half_pixel");
  const double scale = om_ref_float(node, "spatial_scale", 1);
  const int64_t given = om_ref_int(node, "sampling_ratio", 0);
  const char *const names[2] = {"output_height", "output_width"};
  double begin[2], size[2];
  int64_t samples[2];
  for (int a = 0; a < 2; ++a) {
    begin[a] = roi[1 - a] * scale - (is_half ? 0.5 : 0);
    size[a] = roi[3 - a] * scale - (is_half ? 0.5 : 0) - begin[a];
    if (!is_half) size[a] = fmax(size[a], 1);
    size[a] /= (double)om_ref_int(node, names[a], 1);
    samples[a] = given > 0 ? given : (int64_t)ceil(size[a]);
  }
  double value = 0, terms[4];
  for (int64_t i = 0; i < samples[0] * samples[1]; ++i) {
    const double y = begin[0] + (double)bin_y * size[0] +
                     ((double)(i / samples[1]) + 0.5) * size[0] / (double)samples[0];
    const double place_x = begin[1] + (double)bin_x * size[1] +
                           ((double)(i % samples[1]) + 0.5) * size[1] / (double)samples[1];
    sample_terms(plane, x->dims[2], x->dims[3], y, place_x, terms);
    const double most = fmax(fmax(terms[0], terms[1]), fmax(terms[2], terms[3]));
    if (is_max) value = i == 0 ? most : fmax(value, most);
    if (!is_max) value += terms[0] + terms[1] + terms[2] + terms[3];
  }
  const double count = (double)(samples[0] * samples[1]);
  return is_max || count == 0 ? value : value / count;
}

static void reference_roi(const om_node *node,
                          const om_ref_tensor *inputs,
                          size_t input_count,
                          om_ref_tensor *outputs,
                          size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const om_ref_tensor *y = &outputs[0];
  const size_t in_elems = (size_t)(x->dims[2] * x->dims[3]);
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    int64_t at[OM_MAX_RANK];
    om_ref_unravel(y, i, at);
    const size_t image = (size_t)inputs[2].values[at[0]];
    const double *plane = x->values + (image * (size_t)x->dims[1] + (size_t)at[1]) * in_elems;
    y->values[i] = roi_bin(node, x, plane, inputs[1].values + at[0] * 4, at[2], at[3]);
  }
}

#define ROIS "f32 3x4 = 0.3 1.2 5.7 6.1  2 -1 9 4.5  1 1 1.4 1.2"

static const om_op_case roi_cases[] = {
    {.name = "mean",
     .inputs = {"f32 2x3x7x9", ROIS, "i64 3 = 1 0 1"},
     .attrs = "output_height=3 output_width=2 sampling_ratio=2"},
    {.name = "f64",
     .inputs = {"f64 2x3x7x9", "f64 2x4 range 0 8", "i64 2 = 1 0"},
     .attrs = "output_height=3 output_width=2 sampling_ratio=2",
     .declined = "float64"},
    {.name = "f64_greatest",
     .opset = 16,
     .inputs = {"f64 2x3x7x9", "f64 2x4 range 0 30", "i64 2 = 1 0"},
     .attrs = "output_height=3 output_width=4 sampling_ratio=3 spatial_scale=0.25f mode=\"max\"",
     .declined = "float64"},
    {.name = "adaptive",
     .inputs = {"f32 2x3x7x9", ROIS, "i64 3 const = 1 0 1"},
     .attrs = "output_height=2 output_width=2"},
    {.name = "greatest",
     .inputs = {"f32 2x3x7x9", ROIS, "i64 3 = 1 0 1"},
     .attrs = "output_height=3 output_width=2 sampling_ratio=2 mode=\"max\""},
    {.name = "scaled",
     .opset = 16,
     .inputs = {"f32 2x3x7x9", "f32 2x4 range 0 30", "i64 2 = 1 0"},
     .attrs = "output_height=3 output_width=4 sampling_ratio=3 spatial_scale=0.25f"},
    {.name = "opset_10",
     .opset = 10,
     .inputs = {"f32 2x3x7x9", ROIS, "i64 3 = 1 0 1"},
     .attrs = "output_height=2 output_width=3"},
    {.name = "whole_pixels",
     .opset = 16,
     .inputs = {"f32 2x3x7x9", ROIS, "i64 3 = 1 0 1"},
     .attrs =
         "output_height=2 output_width=3 coordinate_transformation_mode=\"output_half_pixel\""},
    {.name = "of_no_size",
     .inputs = {"f32 1x1x4x4", "f32 1x4 = 2 2 2 2", "i64 1 = 0"},
     .expected = {"0"}},
    {.name = "half",
     .inputs = {"f16 2x3x7x9", "f16 2x4 = 0 1 5 6 2 1 8 5", "i64 2 = 1 0"},
     .attrs = "output_height=2 output_width=2 sampling_ratio=2",
     .scaled_error = 3e-3},
    {.name = "no_regions",
     .inputs = {"f32 2x3x7x9", "f32 0x4", "i64 0"},
     .shapes = {"0x3x1x1"},
     .declined = "empty"},
    {.name = "wrong_image",
     .inputs = {"f32 2x3x7x9", ROIS, "i64 3 = 1 2 1"},
     .error = "out of range for an extent of 2"},
    {.name = "wrong_rois",
     .inputs = {"f32 2x3x7x9", "f32 3x5", "i64 3 = 1 0 1"},
     .error = "rois has shape [3, 5]"},
    {.name = "wrong_count",
     .inputs = {"f32 2x3x7x9", ROIS, "i64 2 = 1 0"},
     .error = "batch_indices has shape"},
    {.name = "wrong_rank", .inputs = {"f32 2x3x7", ROIS, "i64 3 = 1 0 1"}, .error = "does not go"},
    {.name = "wrong_output",
     .inputs = {"f32 2x3x7x9", ROIS, "i64 3 = 1 0 1"},
     .attrs = "output_height=0",
     .error = "output_height is 0"},
    {.name = "too_many_samples",
     .inputs = {"f32 2x3x7x9", ROIS, "i64 3 = 1 0 1"},
     .attrs = "sampling_ratio=1025",
     .error = "sampling_ratio is 1025; it must lie in 0..1024"},
    {.name = "wrong_mode",
     .inputs = {"f32 2x3x7x9", ROIS, "i64 3 = 1 0 1"},
     .attrs = "mode=\"sum\"",
     .error = "mode is \"sum\""},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("GridSample", grid_cases, reference_grid),
    OM_OP_SUITE("RoiAlign", roi_cases, reference_roi),
};
OM_OP_TESTS(suites)
