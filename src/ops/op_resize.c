/* Attributes, extents and taps of Resize. Coordinates are float64; with sizes the scale is kept as
 * a pair of integers, so that a coordinate is rounded once and ties are ties.
 */
#include "ops/op_resize.h"

#include <math.h>

/* ---- Attributes ---- */

static om_status resolve_word(om_ctx *ctx,
                              const om_node *node,
                              const char *name,
                              const char *const *words,
                              size_t count,
                              const char *fallback,
                              int *out_index) {
  om_string text;
  OM_TRY(om_node_attr_text(ctx, node, name, fallback, &text));
  for (size_t i = 0; i < count; ++i) {
    if (om_string_is(text, words[i])) {
      *out_index = (int)i;
      return OM_OK;
    }
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "%s is \"%.*s\", which is not one of its values.",
                 name,
                 (int)(text.bytes < 64 ? text.bytes : 64),
                 text.data);
}

static om_status resolve_axes(om_ctx *ctx, const om_node *node, om_resize_params *params) {
  const int64_t *axes = NULL;
  size_t count = 0;
  OM_TRY(om_node_attr_ints(ctx, node, "axes", &axes, &count));
  if (count > OM_MAX_RANK) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "axes has %zu values; at most 8 are possible.", count);
  }
  params->axis_count = (uint32_t)count;
  for (size_t i = 0; i < count; ++i) params->axes[i] = axes[i];
  return OM_OK;
}

/* The attributes that came with opset 11 and later. */
static om_status resolve_coordinates(om_ctx *ctx, const om_node *node, om_resize_params *params) {
  static const char *const coordinates[] = {"half_pixel",
                                            "half_pixel_symmetric",
                                            "pytorch_half_pixel",
                                            "align_corners",
                                            "asymmetric",
                                            "tf_half_pixel_for_nn",
                                            "tf_crop_and_resize"};
  static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
  int word = 0;
  int64_t flag = 0;
  OM_TRY(resolve_word(ctx,
                      node,
                      "coordinate_transformation_mode",
                      coordinates,
                      OM_COUNT_OF(coordinates),
                      "half_pixel",
                      &word));
  params->coordinates = (om_resize_coordinates)word;
  OM_TRY(resolve_word(
      ctx, node, "nearest_mode", nearest, OM_COUNT_OF(nearest), "round_prefer_floor", &word));
  params->nearest = (om_resize_nearest)word;
  OM_TRY(resolve_word(
      ctx, node, "keep_aspect_ratio_policy", policies, OM_COUNT_OF(policies), "stretch", &word));
  params->policy = (om_resize_policy)word;
  OM_TRY(om_node_attr_float(ctx, node, "cubic_coeff_a", -0.75f, &params->cubic_a));
  OM_TRY(om_node_attr_float(ctx, node, "extrapolation_value", 0.0f, &params->extrapolation_value));
  OM_TRY(om_node_attr_int(ctx, node, "exclude_outside", 0, &flag));
  params->excludes_outside = flag != 0;
  OM_TRY(om_node_attr_int(ctx, node, "antialias", 0, &flag));
  params->antialias = flag != 0 && params->mode != OM_RESIZE_NEAREST;
  return resolve_axes(ctx, node, params);
}

static om_status resolve_scales(om_ctx *ctx, const om_node *node, om_resize_params *params) {
  const om_attr *attr = om_node_attr(node, "scales");
  if (!attr || attr->kind != OM_ATTR_FLOATS || attr->count == 0 || attr->count > OM_MAX_RANK) {
    return OM_FAIL(
        ctx, OM_E_INVALID_MODEL, "The attribute scales must have a number for each axis.");
  }
  params->scale_count = (uint32_t)attr->count;
  memcpy(params->scales, attr->floats, attr->count * sizeof *attr->floats);
  return OM_OK;
}

om_status om_resize_resolve(om_ctx *ctx, const om_node *node, void *out_params) {
  static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
  om_resize_params *params = out_params;
  const bool is_upsample = node->type[0] == 'U';
  int mode = 0;
  OM_TRY(resolve_word(ctx, node, "mode", modes, OM_COUNT_OF(modes), "nearest", &mode));
  *params = (om_resize_params){
      .mode = mode == 3 ? OM_RESIZE_LINEAR : (om_resize_mode)mode,
      .coordinates = OM_RESIZE_ASYMMETRIC,
      .nearest = OM_RESIZE_FLOOR,
      .cubic_a = -0.75f,
      .roi_input = OM_RESIZE_NO_INPUT,
      .scales_input = OM_RESIZE_NO_INPUT,
      .sizes_input = OM_RESIZE_NO_INPUT,
  };
  if (is_upsample && node->opset < 9) return resolve_scales(ctx, node, params);
  params->scales_input = 1;
  if (is_upsample || node->opset < 11) return OM_OK;
  params->roi_input = 1;
  params->scales_input = 2;
  params->sizes_input = 3;
  return resolve_coordinates(ctx, node, params);
}

/* ---- Extents ---- */

const om_tensor *om_resize_operand(const om_tensor *const *inputs, uint32_t count, int8_t index) {
  if (index < 0 || (uint32_t)index >= count || !inputs[index]) return NULL;
  const om_tensor *tensor = inputs[index];
  return om_tensor_elems(tensor) == 0 ? NULL : tensor;
}

uint32_t om_resize_axis_of(const om_resize_params *params, uint32_t rank, uint32_t index) {
  if (params->axis_count == 0) return index;
  const int64_t axis = params->axes[index];
  return (uint32_t)(axis < 0 ? axis + rank : axis);
}

static void fit_scales(const om_resize_params *params,
                       const float *scales,
                       om_resize_shape *shape) {
  const uint32_t count = params->axis_count ? params->axis_count : shape->rank;
  for (uint32_t i = 0; i < count; ++i) {
    om_resize_axis *axis = &shape->axes[om_resize_axis_of(params, shape->rank, i)];
    axis->up = (double)scales[i];
    axis->down = 1;
    axis->out = (int64_t)floor((double)axis->in * axis->up);
  }
}

static void fit_sizes(const om_resize_params *params,
                      const int64_t *sizes,
                      om_resize_shape *shape) {
  const uint32_t count = params->axis_count ? params->axis_count : shape->rank;
  const om_resize_axis *chosen = NULL; /* whose scale all axes take */
  for (uint32_t i = 0; i < count; ++i) {
    om_resize_axis *axis = &shape->axes[om_resize_axis_of(params, shape->rank, i)];
    axis->out = sizes[i];
    axis->up = (double)sizes[i];
    axis->down = (double)axis->in;
    if (!chosen) {
      chosen = axis;
      continue;
    }
    const double difference = axis->up * chosen->down - chosen->up * axis->down;
    if (params->policy == OM_RESIZE_NOT_LARGER ? difference < 0 : difference > 0) chosen = axis;
  }
  if (params->policy == OM_RESIZE_STRETCH || !chosen) return;
  const double up = chosen->up;
  const double down = chosen->down;
  for (uint32_t i = 0; i < count; ++i) {
    om_resize_axis *axis = &shape->axes[om_resize_axis_of(params, shape->rank, i)];
    axis->up = up;
    axis->down = down;
    axis->out = (int64_t)floor((2 * (double)axis->in * up + down) / (2 * down)); /* half up */
  }
}

static void fit_roi(const om_resize_params *params, const om_tensor *roi, om_resize_shape *shape) {
  const uint32_t count = params->axis_count ? params->axis_count : shape->rank;
  for (uint32_t i = 0; i < count; ++i) {
    om_resize_axis *axis = &shape->axes[om_resize_axis_of(params, shape->rank, i)];
    if (roi->dtype == OM_DTYPE_F64) {
      axis->roi_begin = ((const double *)roi->data)[i];
      axis->roi_end = ((const double *)roi->data)[count + i];
    } else {
      axis->roi_begin = (double)((const float *)roi->data)[i];
      axis->roi_end = (double)((const float *)roi->data)[count + i];
    }
  }
}

/* Taps on one side of a coordinate: 1 for linear, 2 for cubic, more where antialiasing widens. */
static double half_taps(const om_resize_params *params, const om_resize_axis *axis) {
  const double half = params->mode == OM_RESIZE_CUBIC ? 2 : 1;
  if (!params->antialias || axis->up >= axis->down) return half;
  return ceil(half * axis->down / axis->up);
}

void om_resize_fit(const om_resize_params *params,
                   const om_tensor *const *inputs,
                   uint32_t input_count,
                   om_resize_shape *out_shape) {
  const om_tensor *x = inputs[0];
  const om_tensor *scales = om_resize_operand(inputs, input_count, params->scales_input);
  const om_tensor *sizes = om_resize_operand(inputs, input_count, params->sizes_input);
  const om_tensor *roi = om_resize_operand(inputs, input_count, params->roi_input);
  const bool crops = params->coordinates == OM_RESIZE_TF_CROP_AND_RESIZE;
  out_shape->rank = x->rank;
  for (uint32_t i = 0; i < x->rank; ++i) {
    out_shape->axes[i] =
        (om_resize_axis){.in = x->dims[i], .out = x->dims[i], .up = 1, .down = 1, .roi_end = 1};
  }
  if (sizes) {
    fit_sizes(params, sizes->data, out_shape);
  } else {
    fit_scales(params, scales ? scales->data : params->scales, out_shape);
  }
  if (crops && roi) fit_roi(params, roi, out_shape);
  for (uint32_t i = 0; i < x->rank; ++i) {
    om_resize_axis *axis = &out_shape->axes[i];
    /* That mode adds a half: only rounding down takes it away again. */
    const bool keeps_place =
        params->coordinates != OM_RESIZE_TF_HALF_PIXEL_FOR_NN ||
        (params->mode == OM_RESIZE_NEAREST &&
         (params->nearest == OM_RESIZE_ROUND_PREFER_FLOOR || params->nearest == OM_RESIZE_FLOOR));
    const bool is_whole = !crops || (axis->roi_begin == 0 && axis->roi_end == 1);
    axis->is_identity = axis->in == axis->out && axis->up == axis->down && is_whole && keeps_place;
    axis->taps = 1;
    if (params->mode != OM_RESIZE_NEAREST && !axis->is_identity && axis->out > 0) {
      axis->taps = (uint32_t)(2 * half_taps(params, axis));
    }
  }
}

/* ---- Taps ---- */

/* Where result o lies on the input's axis. */
static double coordinate(const om_resize_params *params, const om_resize_axis *axis, int64_t o) {
  const double at = (double)o;
  const double in = (double)axis->in;
  const double up = axis->up;
  const double down = axis->down;
  const double half_pixel = ((2 * at + 1) * down - up) / (2 * up);
  switch (params->coordinates) {
    case OM_RESIZE_HALF_PIXEL:
      return half_pixel;
    case OM_RESIZE_HALF_PIXEL_SYMMETRIC:
      return in / 2 * (1 - (double)axis->out * down / (in * up)) + half_pixel;
    case OM_RESIZE_PYTORCH_HALF_PIXEL:
      return axis->out > 1 ? half_pixel : 0;
    case OM_RESIZE_ALIGN_CORNERS:
      return axis->out > 1 ? at * (in - 1) * down / (in * up - down) : 0;
    case OM_RESIZE_ASYMMETRIC:
      return at * down / up;
    case OM_RESIZE_TF_HALF_PIXEL_FOR_NN:
      return (2 * at + 1) * down / (2 * up);
    case OM_RESIZE_TF_CROP_AND_RESIZE:
      if (axis->out <= 1) return (axis->roi_begin + axis->roi_end) * (in - 1) / 2;
      return axis->roi_begin * (in - 1) +
             at * (axis->roi_end - axis->roi_begin) * (in - 1) / (double)(axis->out - 1);
  }
  return 0;
}

static double round_nearest(om_resize_nearest mode, double x) {
  switch (mode) {
    case OM_RESIZE_ROUND_PREFER_FLOOR:
      return ceil(x - 0.5);
    case OM_RESIZE_ROUND_PREFER_CEIL:
      return floor(x + 0.5);
    case OM_RESIZE_FLOOR:
      return floor(x);
    case OM_RESIZE_CEIL:
      return ceil(x);
  }
  return x;
}

/* The filter's weight at a distance, in units of its own width. */
static double filter(const om_resize_params *params, double distance) {
  const double d = fabs(distance);
  if (params->mode == OM_RESIZE_LINEAR) return d < 1 ? 1 - d : 0;
  const double a = (double)params->cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static int32_t clamped(double element, int64_t in) {
  const double last = (double)(in - 1);
  if (!(element > 0)) return 0;
  return element < last ? (int32_t)element : (int32_t)last;
}

bool om_resize_taps(const om_resize_params *params,
                    const om_resize_axis *axis,
                    int64_t o,
                    int32_t *out_elems,
                    double *out_weights) {
  const double x = coordinate(params, axis, o);
  out_elems[0] = 0;
  out_weights[0] = 1;
  if (params->coordinates == OM_RESIZE_TF_CROP_AND_RESIZE &&
      !(x >= 0 && x <= (double)(axis->in - 1))) {
    return false;
  }
  if (params->mode == OM_RESIZE_NEAREST || axis->is_identity) {
    out_elems[0] =
        axis->is_identity ? (int32_t)o : clamped(round_nearest(params->nearest, x), axis->in);
    return true;
  }
  const bool widens = params->antialias && axis->up < axis->down;
  const double width = widens ? axis->up / axis->down : 1;
  const double first = floor(x) - (double)axis->taps / 2 + 1;
  double sum = 0;
  for (uint32_t t = 0; t < axis->taps; ++t) {
    const double element = first + (double)t;
    const bool is_outside = element < 0 || element >= (double)axis->in;
    out_elems[t] = clamped(element, axis->in);
    out_weights[t] =
        is_outside && params->excludes_outside ? 0 : filter(params, (element - x) * width);
    sum += out_weights[t];
  }
  if ((widens || params->excludes_outside) && sum != 0) {
    for (uint32_t t = 0; t < axis->taps; ++t) out_weights[t] /= sum;
  }
  return true;
}
