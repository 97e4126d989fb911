/* Resize and Upsample against the text's formulas in float64, axis by axis. */
#include <math.h>

#include "harness/om_test.h"

/* One axis of the application: extents, scale, region. */
typedef struct axis {
  int64_t in, out;
  double scale, begin, end;
} axis;

static double coordinate(const om_node *node, const axis *a, int64_t o) {
  const double x = (double)o;
  const double half = (x + 0.5) / a->scale - 0.5;
  const double resized = a->scale * (double)a->in;
  const char *name = "coordinate_transformation_mode";
  if (node->type[0] == 'U' || node->opset < 11 ||
      om_ref_text_is(node, name, "half_pixel", "asymmetric")) {
    return x / a->scale;
  }
  if (om_ref_text_is(node, name, "half_pixel", "pytorch_half_pixel")) return a->out > 1 ? half : 0;
  if (om_ref_text_is(node, name, "half_pixel", "align_corners")) {
    return a->out > 1 ? x * (double)(a->in - 1) / (resized - 1) : 0;
  }
  if (om_ref_text_is(node, name, "half_pixel", "half_pixel_symmetric")) {
    return (double)a->in / 2 * (1 - (double)a->out / resized) + half;
  }
  if (om_ref_text_is(node, name, "half_pixel", "tf_half_pixel_for_nn")) return half + 0.5;
  if (om_ref_text_is(node, name, "half_pixel", "tf_crop_and_resize")) {
    if (a->out == 1) return (a->begin + a->end) * (double)(a->in - 1) / 2;
    return (a->begin + x * (a->end - a->begin) / (double)(a->out - 1)) * (double)(a->in - 1);
  }
  return half;
}

static double nearest(const om_node *node, double x) {
  if (node->type[0] == 'U' || node->opset < 11) return floor(x);
  if (om_ref_text_is(node, "nearest_mode", "round_prefer_floor", "round_prefer_ceil"))
    return floor(x + 0.5);
  if (om_ref_text_is(node, "nearest_mode", "round_prefer_floor", "floor")) return floor(x);
  if (om_ref_text_is(node, "nearest_mode", "round_prefer_floor", "ceil")) return ceil(x);
  return ceil(x - 0.5);
}

/* The weight of the input element `element` for a result at x; the filter widens by 1 / scale. */
static double weight(const om_node *node, const axis *a, double x, int64_t element) {
  const bool widens = om_ref_int(node, "antialias", 0) != 0 && a->scale < 1;
  const double d = fabs((double)element - x) * (widens ? a->scale : 1);
  if (!om_ref_text_is(node, "mode", "nearest", "cubic")) return d < 1 ? 1 - d : 0;
  const double k = om_ref_float(node, "cubic_coeff_a", -0.75);
  if (d <= 1) return (k + 2) * d * d * d - (k + 3) * d * d + 1;
  return d < 2 ? k * d * d * d - 5 * k * d * d + 8 * k * d - 4 * k : 0;
}

static double resized_value(
    const om_node *node, const axis *a, int64_t o, const double *x, size_t step) {
  const double at = coordinate(node, a, o);
  const int64_t last = a->in - 1;
  if (om_ref_text_is(node, "coordinate_transformation_mode", "half_pixel", "tf_crop_and_resize") &&
      (at < 0 || at > (double)last)) {
    return om_ref_float(node, "extrapolation_value", 0);
  }
  if (om_ref_text_is(node, "mode", "nearest", "nearest")) {
    const double chosen = fmin(fmax(nearest(node, at), 0), (double)last);
    return x[(size_t)chosen * step];
  }
  const bool excludes = om_ref_int(node, "exclude_outside", 0) != 0;
  double sum = 0, weights = 0;
  for (int64_t e = -4 * a->in - 4; e <= 5 * a->in + 4; ++e) {
    if (excludes && (e < 0 || e > last)) continue;
    const double w = weight(node, a, at, e);
    const int64_t inside = e < 0 ? 0 : e > last ? last : e;
    if (w != 0) sum += w * x[(size_t)inside * step];
    weights += w;
  }
  return sum / weights;
}

/* The inputs' places depend on the opset: scales alone, or roi, scales, sizes. */
static axis axis_of(const om_node *node,
                    const om_ref_tensor *in,
                    size_t count,
                    const om_ref_tensor *y,
                    uint32_t i) {
  const bool is_old = node->type[0] == 'U' || node->opset < 11;
  const om_ref_tensor *scales = is_old ? &in[1] : count > 2 ? &in[2] : NULL;
  const size_t named = om_ref_ints_count(node, "axes");
  axis a = {in[0].dims[i], y->dims[i], (double)y->dims[i] / (double)in[0].dims[i], 0, 1};
  size_t place = i;
  if (named != 0) {
    for (place = 0; place < named; ++place) {
      const int64_t axis_number = om_ref_ints(node, "axes", place, 0);
      if (axis_number == i || axis_number + y->rank == i) break;
    }
    if (place == named) return a;
  }
  const size_t listed = named ? named : y->rank;
  if (scales && scales->values && scales->elems != 0) a.scale = scales->values[place];
  if (!is_old && in[1].values && in[1].elems != 0) {
    a.begin = in[1].values[place];
    a.end = in[1].values[listed + place];
  }
  return a;
}

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  enum { ROOM = 4096 };
  static double turn[2][ROOM];
  const om_ref_tensor *y = &outputs[0];
  const double *from = inputs[0].values;
  size_t inner = 1;
  size_t elems = inputs[0].elems;
  if (y->elems == 0) return;
  (void)output_count;
  for (uint32_t i = y->rank; i-- > 0;) {
    const axis a = axis_of(node, inputs, input_count, y, i);
    double *to = i == 0 ? y->values : turn[i % 2];
    const size_t outer = elems / inner / (size_t)a.in;
    for (size_t k = 0; k < outer * (size_t)a.out * inner; ++k) {
      const size_t row = k / inner;
      const double *x = from + row / (size_t)a.out * (size_t)a.in * inner + k % inner;
      to[k] = resized_value(node, &a, (int64_t)(row % (size_t)a.out), x, inner);
    }
    elems = outer * (size_t)a.out * inner;
    inner *= (size_t)a.out;
    from = to;
  }
}

#define NO_ROI    "f32 0 const"
#define NO_SCALES "f32 0 const"

static const om_op_case resize_cases[] = {
    {.name = "twice",
     .inputs = {"f32 2x3x4x5", NO_ROI, "f32 4 const = 1 1 2 2"},
     .attrs = "coordinate_transformation_mode=\"asymmetric\" nearest_mode=\"floor\"",
     .bit_exact = true},
    {.name = "opset_10",
     .opset = 10,
     .inputs = {"f32 1x2x5x6", "f32 4 const = 1 1 2 0.5"},
     .bit_exact = true},
    {.name = "opset_10_linear",
     .opset = 10,
     .inputs = {"f32 1x2x5x6", "f32 4 const = 1 1 2 1.5"},
     .attrs = "mode=\"linear\""},
    {.name = "ties",
     .inputs = {"f32 1x1x1x20 ramp", NO_ROI, NO_SCALES, "i64 4 const = 1 1 1 6"},
     .attrs = "nearest_mode=\"round_prefer_ceil\"",
     .expected = {"1 5 8 11 15 18"},
     .opset = 13},
    {.name = "prefer_floor",
     .inputs = {"f32 1x2x7x9", "-", "-", "i64 4 const = 1 2 5 14"},
     .bit_exact = true},
    {.name = "ceil",
     .inputs = {"f32 1x2x7x9", "-", "-", "i64 4 const = 1 2 5 14"},
     .attrs = "nearest_mode=\"ceil\"",
     .bit_exact = true},
    {.name = "for_nn",
     .opset = 11,
     .inputs = {"f32 1x2x7x9", NO_ROI, "f32 4 const = 1 1 0.5 2"},
     .attrs = "nearest_mode=\"floor\" coordinate_transformation_mode=\"tf_half_pixel_for_nn\"",
     .bit_exact = true},
    {.name = "linear",
     .inputs = {"f32 2x2x5x7", "-", "f32 4 const = 1 1 2 3"},
     .attrs = "mode=\"linear\""},
    {.name = "linear_sizes",
     .inputs = {"f32 2x2x5x7", "-", "-", "i64 4 const = 2 2 9 4"},
     .attrs = "mode=\"linear\""},
    {.name = "linear_one_axis",
     .inputs = {"f32 2x2x7", "-", "-", "i64 3 const = 2 2 13"},
     .attrs = "mode=\"linear\""},
    {.name = "linear_rows_only",
     .inputs = {"f32 1x2x5x7", "-", "-", "i64 4 const = 1 2 11 7"},
     .attrs = "mode=\"linear\""},
    {.name = "align_corners",
     .inputs = {"f32 1x2x5x7", "-", "-", "i64 4 const = 1 2 9 3"},
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"align_corners\""},
    {.name = "align_corners_to_one",
     .inputs = {"f32 1x1x1x3 = 10 20 30", "-", "-", "i64 4 const = 1 1 1 1"},
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"align_corners\"",
     .expected = {"10"}},
    {.name = "pytorch_to_one",
     .inputs = {"f32 1x1x3x3 = 10 20 30 40 50 60 70 80 90", "-", "-", "i64 4 const = 1 1 1 1"},
     .attrs = "mode=\"cubic\" coordinate_transformation_mode=\"pytorch_half_pixel\"",
     .expected = {"10"}},
    {.name = "cubic",
     .inputs = {"f32 1x2x5x7", "-", "f32 4 const = 1 1 2 0.8"},
     .attrs = "mode=\"cubic\"",
     .scaled_error = 2e-6},
    {.name = "cubic_excluding",
     .inputs = {"f32 1x2x5x7", "-", "f32 4 const = 1 1 2 1.5"},
     .attrs = "mode=\"cubic\" cubic_coeff_a=-0.5f exclude_outside=1",
     .scaled_error = 2e-6},
    {.name = "antialias",
     .opset = 18,
     .inputs = {"f32 1x2x9x8", "-", "f32 4 const = 1 1 0.4 0.6"},
     .attrs = "mode=\"linear\" antialias=1"},
    {.name = "antialias_cubic",
     .opset = 18,
     .inputs = {"f32 1x2x9x8", "-", "-", "i64 4 const = 1 2 4 3"},
     .attrs = "mode=\"cubic\" antialias=1",
     .scaled_error = 2e-6},
    {.name = "antialias_wide",
     .opset = 18,
     .inputs = {"f32 1x1x1x200", "-", "-", "i64 4 const = 1 1 1 3"},
     .attrs = "mode=\"linear\" antialias=1"},
    {.name = "symmetric",
     .opset = 19,
     .inputs = {"f32 1x1x4x5", "-", "f32 4 const = 1 1 0.6 2.3"},
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"half_pixel_symmetric\""},
    {.name = "crop",
     .inputs =
         {"f32 1x2x5x7", "f32 8 const = 0 0 0.4 -0.2 1 1 0.6 1.3", "-", "i64 4 const = 1 2 3 6"},
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"tf_crop_and_resize\" "
              "extrapolation_value=10.0f"},
    {.name = "axes",
     .opset = 18,
     .inputs = {"f32 1x2x4x5", "-", "f32 2 const = 2 3"},
     .attrs = "axes=-1,2",
     .bit_exact = true},
    {.name = "not_larger",
     .opset = 18,
     .inputs = {"f32 1x1x2x4", "-", "-", "i64 2 const = 7 8"},
     .attrs = "axes=2,3 keep_aspect_ratio_policy=\"not_larger\"",
     .shapes = {"1x1x4x8"},
     .bit_exact = true},
    {.name = "not_smaller",
     .opset = 18,
     .inputs = {"f32 1x1x2x4", "-", "-", "i64 2 const = 7 8"},
     .attrs = "axes=2,3 keep_aspect_ratio_policy=\"not_smaller\"",
     .shapes = {"1x1x7x14"},
     .bit_exact = true},
    {.name = "identity",
     .inputs = {"f32 1x2x4x5", "-", "f32 4 const = 1 1 1 1"},
     .attrs = "mode=\"linear\"",
     .bit_exact = true},
    {.name = "channels",
     .inputs = {"f32 1x2x3x4", "-", "f32 4 const = 1 2 1 1"},
     .bit_exact = true},
    {.name = "outer_linear",
     .inputs = {"f32 3x5x4x7", "-", "f32 4 const = 1 1.7 1 1"},
     .attrs = "mode=\"linear\""},
    {.name = "apart_cubic",
     .inputs = {"f32 3x5x4x7", "-", "f32 4 const = 2 1 1.3 1"},
     .attrs = "mode=\"cubic\"",
     .scaled_error = 2e-6},
    {.name = "three_axes",
     .inputs = {"f32 1x2x3x4x5", "-", "-", "i64 5 const = 1 2 5 6 7"},
     .attrs = "mode=\"linear\""},
    {.name = "three_axes_nearest",
     .inputs = {"f32 1x2x3x4x5", "-", "-", "i64 5 const = 1 3 5 4 7"},
     .bit_exact = true},
    {.name = "four_axes",
     .inputs = {"f32 2x3x2x3", "-", "f32 4 const = 1.5 2 1.5 0.7"},
     .attrs = "mode=\"linear\""},
    {.name = "rank_8",
     .inputs = {"f32 1x2x1x2x1x3x2x2", "-", "f32 8 const = 2 1 1 2 1 1 1 2"},
     .bit_exact = true},
    {.name = "crop_of_three",
     .opset = 18,
     .inputs =
         {"f32 1x4x5x6", "f32 6 const = 0.4 -0.2 0.1 0.6 1.3 1.2", "-", "i64 3 const = 3 6 4"},
     .attrs = "axes=1,2,3 mode=\"linear\" extrapolation_value=10.0f "
              "coordinate_transformation_mode=\"tf_crop_and_resize\""},
    {.name = "run_time_scales",
     .inputs = {"f32 1x2x3x4", "-", "f32 4 = 1 1 2 2"},
     .bit_exact = true,
     .declined = ""},
    {.name = "bytes", .inputs = {"u8 1x1x3x4", "-", "f32 4 const = 1 1 2 2"}, .declined = "uint8"},
    {.name = "wide_integers",
     .inputs = {"i64 1x1x1x3 = 0 10 20", "-", "-", "i64 4 const = 1 1 1 5"},
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"align_corners\"",
     .expected = {"0 5 10 15 20"},
     .declined = "int64"},
    {.name = "half",
     .inputs = {"f16 1x2x4x5", "-", "f32 4 const = 1 1 2 2"},
     .attrs = "mode=\"linear\""},
    {.name = "half_nearest_of_three",
     .inputs = {"f16 1x2x3x4x5", "-", "-", "i64 5 const = 1 3 5 4 7"},
     .bit_exact = true},
    {.name = "half_of_three",
     .inputs = {"f16 1x2x3x4x5", "-", "-", "i64 5 const = 1 2 5 6 7"},
     .attrs = "mode=\"linear\""},
    {.name = "half_cubic_of_five",
     .inputs = {"f16 2x3x4x3x5", "-", "-", "i64 5 const = 3 2 5 4 7"},
     .attrs = "mode=\"cubic\" exclude_outside=1"},
    {.name = "half_antialias_of_three",
     .inputs = {"f16 1x4x6x5x7", "-", "f32 5 const = 1 0.5 0.5 1 0.6"},
     .attrs = "mode=\"linear\" antialias=1"},
    {.name = "half_cropped_of_three",
     .inputs = {"f16 3x4x5", "f32 6 const = 0.2 -0.3 0.1 0.8 0.9 1.2", "-", "i64 3 const = 4 5 6"},
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"tf_crop_and_resize\" "
              "extrapolation_value=0.3"},
    {.name = "half_long",
     .inputs = {"f16 1x1x1x1040", "-", "f32 4 const = 1 1 1 2"},
     .bit_exact = true},
    {.name = "double",
     .inputs = {"f64 1x2x4x5", "-", "f32 4 const = 1 1 2 2"},
     .attrs = "mode=\"linear\"",
     .declined = "float64"},
    {.name = "to_nothing",
     .inputs = {"f32 1x2x4x5", "-", "-", "i64 4 const = 1 2 0 5"},
     .shapes = {"1x2x0x5"},
     .declined = "empty"},
    {.name = "scale_0",
     .inputs = {"f32 1x2x4x5", "-", "f32 4 const = 1 1 0 2"},
     .error = "The scale 0"},
    {.name = "scale_nan",
     .inputs = {"f32 1x2x4x5", "-", "f32 4 const = 1 1 nan 2"},
     .error = "nan"},
    {.name = "scale_huge",
     .inputs = {"f32 1x2x4x5", "-", "f32 4 const = 1 1 1e30 2"},
     .error = "2^31"},
    {.name = "size_negative",
     .inputs = {"f32 1x2x4x5", "-", "-", "i64 4 const = 1 2 -1 2"},
     .error = "cannot become -1"},
    {.name = "three_scales",
     .inputs = {"f32 1x2x4x5", "-", "f32 3 const = 1 1 2"},
     .error = "4 elements are needed"},
    {.name = "both",
     .inputs = {"f32 1x2x4x5", "-", "f32 4 const = 1 1 1 2", "i64 4 const = 1 2 4 10"},
     .error = "Either scales or sizes"},
    {.name = "no_roi",
     .inputs = {"f32 1x2x4x5", "-", "f32 4 const = 1 1 1 2"},
     .attrs = "coordinate_transformation_mode=\"tf_crop_and_resize\"",
     .error = "needs the input roi"},
    {.name = "wrong_mode",
     .inputs = {"f32 1x2x4x5", "-", "f32 4 const = 1 1 1 2"},
     .attrs = "mode=\"quintic\"",
     .error = "mode is \"quintic\""},
    {.name = "axis_twice",
     .opset = 18,
     .inputs = {"f32 1x2x4x5", "-", "f32 2 const = 1 2"},
     .attrs = "axes=2,-2",
     .error = "there twice"},
};

static const om_op_case upsample_cases[] = {
    {.name = "twice",
     .opset = 9,
     .inputs = {"f32 1x2x3x4", "f32 4 const = 1 1 2 3"},
     .bit_exact = true},
    {.name = "linear",
     .opset = 9,
     .inputs = {"f32 1x2x3x4", "f32 4 const = 1 1 2 2"},
     .attrs = "mode=\"linear\""},
};

static const om_op_case old_upsample_cases[] = {
    {.name = "attribute",
     .opset = 7,
     .inputs = {"f32 1x1x2x2 = 1 2 3 4"},
     .attrs = "scales=1.0f,1.0f,2.0f,3.0f",
     .expected = {"1 1 1 2 2 2 1 1 1 2 2 2 3 3 3 4 4 4 3 3 3 4 4 4"}},
    {.name = "no_attribute",
     .opset = 7,
     .inputs = {"f32 1x1x2x2"},
     .error = "The attribute scales"},
};

static const om_op_suite suites[] = {
    OM_OP_SUITE("Resize", resize_cases, reference),
    OM_OP_SUITE("Upsample", upsample_cases, reference),
    OM_OP_SUITE("Upsample", old_upsample_cases, NULL),
};
OM_OP_TESTS(suites)
