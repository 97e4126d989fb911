/* GridSample and RoiAlign (docs/exact.md, "Samples"): float32, in which narrower types are
 * computed, and float64. */
#include "cpu/exact/om_exact_sample.h"
#include "ops/om_rule.h"
#include "ops/op_sample.h"
#include "ops/op_widen.h"

typedef struct word { /* of an attribute, and the number that it stands for */
  const char *text;
  uint32_t number;
} word;

static om_status read_word(om_ctx *ctx,
                           const om_node *node,
                           const char *name,
                           const char *fallback,
                           const word *words,
                           size_t count,
                           uint32_t *out_number) {
  om_string text;
  OM_TRY(om_node_attr_text(ctx, node, name, fallback, &text));
  for (size_t i = 0; i < count; ++i) {
    if (!om_string_is(text, words[i].text)) continue;
    *out_number = words[i].number;
    return OM_OK;
  }
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "%s is \"%.*s\", which is none of its values.",
                 name,
                 (int)text.bytes,
                 text.data);
}

static om_status fail_shape(om_ctx *ctx, const char *what, const om_tensor *x) {
  char text[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "The %s has shape %s, which does not go with the other inputs.",
                 what,
                 om_shape_text(text, sizeof text, x->rank, x->dims));
}

/* Scratch: float32 copies of what is narrower. */
static size_t wide_elems(const om_tensor *x) {
  return om_widen_needed(x->dtype) ? om_size_align(om_tensor_elems(x), 16) : 0;
}

static const float *widened(const om_tensor *x, float **scratch) {
  float *target = *scratch;
  if (!om_widen_needed(x->dtype)) return x->data;
  *scratch += wide_elems(x);
  return om_widen(x, target);
}

/* Coordinates are float64 where the elements are, and nowhere else. */
static om_status check_sampled(om_ctx *ctx, const char *what, const om_tensor *x, om_dtype elems) {
  const bool is_wide = elems == OM_DTYPE_F64;
  if (OM_DT(x->dtype) & OM_DT_FLOAT && (x->dtype == OM_DTYPE_F64) == is_wide) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_UNSUPPORTED,
                 "The %s is %s, which is not implemented for elements of %s.",
                 what,
                 om_dtype_name(x->dtype),
                 om_dtype_name(elems));
}

/* ---- GridSample ---- */

static om_status resolve_grid(om_ctx *ctx, const om_node *node, void *out_params) {
  static const word modes[] = {
      {"linear", OM_SAMPLE_LINEAR},
      {"bilinear", OM_SAMPLE_LINEAR},
      {"nearest", OM_SAMPLE_NEAREST},
      {"cubic", OM_SAMPLE_CUBIC},
      {"bicubic", OM_SAMPLE_CUBIC},
  };
  static const word paddings[] = {
      {"zeros", OM_SAMPLE_ZEROS},
      {"border", OM_SAMPLE_BORDER},
      {"reflection", OM_SAMPLE_REFLECTION},
  };
  om_grid_sample_params *params = out_params;
  int64_t is_aligned = 0;
  OM_TRY(read_word(ctx, node, "mode", "linear", modes, OM_COUNT_OF(modes), &params->mode));
  OM_TRY(read_word(
      ctx, node, "padding_mode", "zeros", paddings, OM_COUNT_OF(paddings), &params->padding));
  OM_TRY(om_node_attr_int(ctx, node, "align_corners", 0, &is_aligned));
  params->is_aligned = is_aligned != 0;
  return OM_OK;
}

static om_status infer_grid(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *grid = call->inputs[1];
  int64_t dims[OM_MAX_RANK] = {0};
  if (x->rank < 3 || x->rank > 2 + OM_SAMPLE_AXES) {
    return OM_FAIL(ctx,
                   OM_E_UNSUPPORTED,
                   "The input has %u axes; 3 to %d are supported.",
                   x->rank,
                   2 + OM_SAMPLE_AXES);
  }
  OM_TRY(check_sampled(ctx, "grid", grid, x->dtype));
  if (grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
      grid->dims[grid->rank - 1] != x->rank - 2) {
    return fail_shape(ctx, "grid", grid);
  }
  for (uint32_t i = 2; i < x->rank; ++i) {
    if (x->dims[i] > 1 << 24) {
      return OM_FAIL(ctx, OM_E_UNSUPPORTED, "Axis %u is longer than 2^24.", i);
    }
    if (x->dims[i] == 0) return OM_FAIL(ctx, OM_E_INVALID_INPUT, "Axis %u has no elements.", i);
    dims[i] = grid->dims[i - 1];
  }
  dims[0] = x->dims[0];
  dims[1] = x->dims[1];
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
}

om_grid_sample om_grid_sample_fit(const om_grid_sample_params *params,
                                  const om_tensor *x,
                                  const om_tensor *grid) {
  om_grid_sample job = {
      .mode = params->mode,
      .padding = params->padding,
      .is_aligned = params->is_aligned,
      .axis_count = x->rank - 2,
      .in = {1, 1, 1},
      .batch = (size_t)x->dims[0],
      .channels = (size_t)x->dims[1],
      .pixels = om_rule_product(grid->dims, 1, grid->rank - 1),
  };
  for (uint32_t i = 0; i < job.axis_count; ++i) {
    job.in[OM_SAMPLE_AXES - job.axis_count + i] = x->dims[2 + i];
  }
  return job;
}

static size_t scratch_bytes(const om_op_call *call) {
  const om_tensor *y = call->outputs[0];
  return (wide_elems(call->inputs[0]) + wide_elems(call->inputs[1]) + (y ? wide_elems(y) : 0)) *
         sizeof(float);
}

static om_status run_grid(om_ctx *ctx, const om_op_call *call) {
  om_tensor *y = call->outputs[0];
  float *scratch = call->scratch;
  if (om_tensor_elems(y) == 0) return OM_OK;
  const om_grid_sample job = om_grid_sample_fit(call->params, call->inputs[0], call->inputs[1]);
  if (y->dtype == OM_DTYPE_F64) {
    om_grid_sample_run_f64(ctx, &job, call->inputs[0]->data, call->inputs[1]->data, y->data);
    return OM_OK;
  }
  const float *x = widened(call->inputs[0], &scratch);
  const float *grid = widened(call->inputs[1], &scratch);
  float *result = om_widen_needed(y->dtype) ? scratch : y->data;
  om_grid_sample_run(ctx, &job, x, grid, result);
  if (om_widen_needed(y->dtype)) om_narrow(result, y);
  return OM_OK;
}

/* ---- RoiAlign ---- */

enum {
  MOST_BINS = 1 << 16, /* of an axis */
  MOST_SAMPLES =
      1 << 10, /* of a bin's side: a few are usual, and a file must not keep us for days */
};

static om_status read_extent(om_ctx *ctx,
                             const om_node *node,
                             const char *name,
                             int64_t fallback,
                             int64_t most,
                             int64_t *out) {
  OM_TRY(om_node_attr_int(ctx, node, name, fallback, out));
  if (*out >= fallback && *out <= most) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_MODEL,
                 "%s is %lld; it must lie in %lld..%lld.",
                 name,
                 (long long)*out,
                 (long long)fallback,
                 (long long)most);
}

static om_status resolve_roi(om_ctx *ctx, const om_node *node, void *out_params) {
  static const word modes[] = {{"avg", 0}, {"max", 1}};
  static const word places[] = {{"output_half_pixel", 0}, {"half_pixel", 1}};
  om_roi_align_params *params = out_params;
  uint32_t is_max = 0;
  uint32_t is_half_pixel = 0;
  OM_TRY(read_word(ctx, node, "mode", "avg", modes, OM_COUNT_OF(modes), &is_max));
  if (node->opset >= 16) {
    OM_TRY(read_word(ctx,
                     node,
                     "coordinate_transformation_mode",
                     "half_pixel",
                     places,
                     OM_COUNT_OF(places),
                     &is_half_pixel));
  }
  params->is_max = is_max != 0;
  params->is_half_pixel = is_half_pixel != 0;
  OM_TRY(om_node_attr_float(ctx, node, "spatial_scale", 1.0f, &params->scale));
  OM_TRY(read_extent(ctx, node, "sampling_ratio", 0, MOST_SAMPLES, &params->samples));
  OM_TRY(read_extent(ctx, node, "output_height", 1, MOST_BINS, &params->out[0]));
  return read_extent(ctx, node, "output_width", 1, MOST_BINS, &params->out[1]);
}

static om_status infer_roi(om_ctx *ctx, const om_op_call *call) {
  const om_roi_align_params *params = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *rois = call->inputs[1];
  const om_tensor *images = call->inputs[2];
  if (x->rank != 4) return fail_shape(ctx, "input", x);
  if (rois->rank != 2 || rois->dims[1] != 4) return fail_shape(ctx, "input rois", rois);
  if (images->rank != 1 || images->dims[0] != rois->dims[0]) {
    return fail_shape(ctx, "input batch_indices", images);
  }
  OM_TRY(check_sampled(ctx, "input rois", rois, x->dtype));
  OM_TRY(om_rule_check_int(ctx, images, "batch_indices"));
  if (x->dims[2] == 0 || x->dims[3] == 0) return fail_shape(ctx, "input", x);
  if (x->dims[2] > 1 << 24 || x->dims[3] > 1 << 24) {
    return OM_FAIL(ctx, OM_E_UNSUPPORTED, "An axis of the input is longer than 2^24.");
  }
  const int64_t dims[4] = {rois->dims[0], x->dims[1], params->out[0], params->out[1]};
  return om_rule_set(ctx, call, 0, x->dtype, 4, dims);
}

om_roi_align om_roi_align_fit(const om_roi_align_params *params,
                              const om_tensor *x,
                              const om_tensor *rois) {
  return (om_roi_align){
      .is_max = params->is_max,
      .is_half_pixel = params->is_half_pixel,
      .scale = params->scale,
      .samples = (uint32_t)params->samples,
      .in = {(uint32_t)x->dims[2], (uint32_t)x->dims[3]},
      .out = {(uint32_t)params->out[0], (uint32_t)params->out[1]},
      .channels = (size_t)x->dims[1],
      .regions = (size_t)rois->dims[0],
  };
}

static size_t roi_scratch_bytes(const om_op_call *call) {
  return scratch_bytes(call) + om_tensor_elems(call->inputs[2]) * sizeof(int64_t);
}

static om_status run_roi(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *images = call->inputs[2];
  om_tensor *y = call->outputs[0];
  int64_t *places = call->scratch;
  const size_t regions = om_tensor_elems(images);
  float *scratch = (float *)(void *)(places + regions);
  for (size_t i = 0; i < regions; ++i) {
    size_t image = 0;
    OM_TRY(om_rule_index(
        ctx, call->node->type, om_rule_int(images, i), call->inputs[0]->dims[0], &image));
    places[i] = (int64_t)image;
  }
  if (om_tensor_elems(y) == 0) return OM_OK;
  const om_roi_align job = om_roi_align_fit(call->params, call->inputs[0], call->inputs[1]);
  if (y->dtype == OM_DTYPE_F64) {
    om_roi_align_run_f64(ctx, &job, call->inputs[0]->data, call->inputs[1]->data, places, y->data);
    return OM_OK;
  }
  const float *x = widened(call->inputs[0], &scratch);
  const float *rois = widened(call->inputs[1], &scratch);
  float *result = om_widen_needed(y->dtype) ? scratch : y->data;
  om_roi_align_run(ctx, &job, x, rois, places, result);
  if (om_widen_needed(y->dtype)) om_narrow(result, y);
  return OM_OK;
}

const om_op om_ops_sample[] = {
    {.domain = "",
     .type = "GridSample",
     .first_opset = 16,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_grid_sample_params),
     .resolve = resolve_grid,
     .infer = infer_grid,
     .scratch_bytes = scratch_bytes,
     .run = run_grid},
    {.domain = "",
     .type = "RoiAlign",
     .first_opset = 10,
     OM_RULE_COUNTS(3, 3, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_roi_align_params),
     .resolve = resolve_roi,
     .infer = infer_roi,
     .scratch_bytes = roi_scratch_bytes,
     .run = run_roi},
    {.type = NULL},
};
