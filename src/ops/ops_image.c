/* Operators on images and grids: CenterCropPad, Col2Im, AffineGrid, MaxUnpool, MaxRoiPool
 * (docs/exact.md, "Images"). */
#include <inttypes.h>

#include "cpu/exact/om_real.h"
#include "cpu/exact/om_strided.h"
#include "ops/om_rule.h"

static om_status fail_shape(om_ctx *ctx, const om_tensor *t, const char *what) {
  char text[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "A tensor of shape %s is no %s.",
                 om_shape_text(text, sizeof text, t->rank, t->dims),
                 what);
}

/* ---- CenterCropPad ---- */

typedef struct om_crop_params {
  om_rule_list axes;
} om_crop_params;

static om_status resolve_crop(om_ctx *ctx, const om_node *node, void *params) {
  om_crop_params *p = params;
  return om_rule_list_attr(ctx, node, "axes", &p->axes);
}

static om_status infer_crop(om_ctx *ctx, const om_op_call *call) {
  const om_crop_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  int64_t extents[OM_MAX_RANK] = {0};
  int64_t dims[OM_MAX_RANK];
  uint32_t axes[OM_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  uint32_t count = 0;
  const size_t expected = p->axes.is_given ? p->axes.count : x->rank;
  OM_TRY(om_rule_check_bytes(ctx, x));
  if (expected > x->rank) return fail_shape(ctx, x, "tensor with that many axes");
  if (p->axes.is_given) {
    OM_TRY(om_rule_axes(ctx, p->axes.values, p->axes.count, x->rank, axes));
  }
  if (!om_rule_is_known(call->inputs[1])) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  OM_TRY(om_rule_ints(ctx, call->inputs[1], "extents", OM_MAX_RANK, extents, &count));
  if (count != expected) return fail_shape(ctx, call->inputs[1], "list with an extent per axis");
  memcpy(dims, x->dims, sizeof dims);
  for (uint32_t i = 0; i < count; ++i) dims[axes[i]] = extents[i];
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
}

static om_status run_crop(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  const om_tensor *y = call->outputs[0];
  const size_t bytes = om_rule_elem_bytes(x->dtype);
  int64_t in[OM_MAX_RANK] = {0};
  int64_t out[OM_MAX_RANK] = {0};
  om_strided copy = {.rank = x->rank};
  om_dense_strides(x->rank, x->dims, in);
  om_dense_strides(y->rank, y->dims, out);
  for (uint32_t d = 0; d < x->rank; ++d) {
    const int64_t extra = y->dims[d] - x->dims[d];
    copy.extents[d] = extra < 0 ? y->dims[d] : x->dims[d];
    copy.source_strides[d] = in[d];
    copy.target_strides[d] = out[d];
    if (extra < 0) copy.source_offset += -extra / 2 * in[d];
    if (extra > 0) copy.target_offset += extra / 2 * out[d];
  }
  memset(y->data, 0, om_tensor_elems(y) * bytes);
  om_strided_simplify(&copy);
  om_strided_copy(ctx, &copy, bytes, x->data, y->data);
  return OM_OK;
}

/* ---- Col2Im ---- */

typedef struct om_col2im_params {
  om_rule_list dilations, pads, strides;
} om_col2im_params;

typedef struct om_col2im { /* extents and attributes of each spatial axis */
  uint32_t axes;
  int64_t image[OM_MAX_RANK], block[OM_MAX_RANK], places[OM_MAX_RANK];
  int64_t dilation[OM_MAX_RANK], pad[OM_MAX_RANK], stride[OM_MAX_RANK];
  int64_t block_elems, place_elems;
} om_col2im;

static om_status resolve_col2im(om_ctx *ctx, const om_node *node, void *params) {
  om_col2im_params *p = params;
  OM_TRY(om_rule_list_attr(ctx, node, "dilations", &p->dilations));
  OM_TRY(om_rule_list_attr(ctx, node, "pads", &p->pads));
  return om_rule_list_attr(ctx, node, "strides", &p->strides);
}

static bool is_positive(int64_t value) {
  return value >= 1 && value <= INT32_MAX;
}

/* Both shapes are known. */
static om_status describe_col2im(om_ctx *ctx, const om_op_call *call, om_col2im *c) {
  const om_col2im_params *p = call->params;
  uint32_t blocks = 0;
  *c = (om_col2im){.block_elems = 1, .place_elems = 1};
  OM_TRY(
      om_rule_ints(ctx, call->inputs[1], "image's extents", OM_MAX_RANK - 2, c->image, &c->axes));
  OM_TRY(om_rule_ints(ctx, call->inputs[2], "block's extents", OM_MAX_RANK - 2, c->block, &blocks));
  bool fits = blocks == c->axes && (!p->dilations.count || p->dilations.count == c->axes) &&
              (!p->strides.count || p->strides.count == c->axes) &&
              (!p->pads.count || p->pads.count == 2 * (size_t)c->axes);
  for (uint32_t d = 0; fits && d < c->axes; ++d) {
    const int64_t end = p->pads.count ? p->pads.values[c->axes + d] : 0;
    c->dilation[d] = p->dilations.count ? p->dilations.values[d] : 1;
    c->stride[d] = p->strides.count ? p->strides.values[d] : 1;
    c->pad[d] = p->pads.count ? p->pads.values[d] : 0;
    fits = is_positive(c->dilation[d]) && is_positive(c->stride[d]) && is_positive(c->block[d]) &&
           is_positive(c->image[d]) && is_positive(c->pad[d] + 1) && is_positive(end + 1);
    if (!fits) break;
    const int64_t room = c->image[d] + c->pad[d] + end - c->dilation[d] * (c->block[d] - 1) - 1;
    c->places[d] = room < 0 ? 0 : room / c->stride[d] + 1;
    size_t elems = 0;
    fits = om_size_mul((size_t)c->block_elems, (size_t)c->block[d], &elems) && elems < INT64_MAX;
    c->block_elems = (int64_t)elems;
    if (!om_size_mul((size_t)c->place_elems, (size_t)c->places[d], &elems)) fits = false;
    c->place_elems = (int64_t)elems;
  }
  if (fits) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "The image's and the block's extents, pads, strides and dilations do not go "
                 "together.");
}

static om_status infer_col2im(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_col2im c;
  if (x->rank != 3) return fail_shape(ctx, x, "batch of columns");
  if (!om_rule_is_known(call->inputs[1]) || !om_rule_is_known(call->inputs[2])) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  OM_TRY(describe_col2im(ctx, call, &c));
  if (x->dims[1] % c.block_elems != 0 || x->dims[2] != c.place_elems) {
    return fail_shape(ctx, x, "batch of columns of such blocks");
  }
  int64_t dims[OM_MAX_RANK] = {x->dims[0], x->dims[1] / c.block_elems};
  for (uint32_t d = 0; d < c.axes; ++d) dims[d + 2] = c.image[d];
  return om_rule_set(ctx, call, 0, x->dtype, c.axes + 2, dims);
}

/* The place in the image of an element of a block; -1: in the padding. */
static int64_t image_place(const om_col2im *c, int64_t element, int64_t block) {
  int64_t place = 0;
  int64_t unit = 1;
  for (uint32_t d = c->axes; d-- > 0;) {
    const int64_t at =
        block % c->places[d] * c->stride[d] - c->pad[d] + element % c->block[d] * c->dilation[d];
    if (at < 0 || at >= c->image[d]) return -1;
    place += at * unit;
    unit *= c->image[d];
    block /= c->places[d];
    element /= c->block[d];
  }
  return place;
}

/* Sums of one channel's image, in doubles. */
static om_status add_columns(
    om_ctx *ctx, const om_op_call *call, const om_col2im *c, size_t channel, double *image) {
  const om_tensor *x = call->inputs[0];
  const om_real real = om_real_of(x->dtype);
  const bool is_float = (OM_DT(x->dtype) & OM_DT_FLOAT) != 0;
  for (int64_t element = 0; element < c->block_elems; ++element) {
    for (int64_t block = 0; block < c->place_elems; ++block) {
      OM_TRY(om_check_turn(ctx, (size_t)block));
      const int64_t place = image_place(c, element, block);
      if (place < 0) continue;
      const size_t at =
          (channel * (size_t)c->block_elems + (size_t)element) * (size_t)c->place_elems +
          (size_t)block;
      const double sum = image[place] + om_real_load(x, at);
      image[place] = is_float ? om_real_round(real, sum) : sum;
    }
  }
  return OM_OK;
}

static size_t scratch_col2im(const om_op_call *call) {
  const om_tensor *y = call->outputs[0];
  return om_rule_product(y->dims, 2, y->rank) * sizeof(double);
}

static om_status run_col2im(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *y = call->outputs[0];
  const size_t plane = om_rule_product(y->dims, 2, y->rank);
  double *image = call->scratch;
  om_col2im c;
  OM_TRY(describe_col2im(ctx, call, &c));
  for (size_t channel = 0; channel < (size_t)(y->dims[0] * y->dims[1]); ++channel) {
    memset(image, 0, plane * sizeof *image);
    OM_TRY(add_columns(ctx, call, &c, channel, image));
    for (size_t i = 0; i < plane; ++i) om_real_store(y, channel * plane + i, image[i]);
  }
  return OM_OK;
}

/* ---- AffineGrid ---- */

typedef struct om_affine_params {
  bool aligns;
} om_affine_params;

static om_status resolve_affine(om_ctx *ctx, const om_node *node, void *params) {
  om_affine_params *p = params;
  int64_t aligns = 0;
  OM_TRY(om_node_attr_int(ctx, node, "align_corners", 0, &aligns));
  p->aligns = aligns != 0;
  return OM_OK;
}

static om_status infer_affine(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *theta = call->inputs[0];
  int64_t size[OM_MAX_RANK] = {0};
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t count = 0;
  if (theta->rank != 3 || theta->dims[1] < 2 || theta->dims[1] > 3 ||
      theta->dims[2] != theta->dims[1] + 1) {
    return fail_shape(ctx, theta, "batch of affine matrices");
  }
  if (!om_rule_is_known(call->inputs[1])) {
    om_rule_set_unknown(call, 0, theta->dtype);
    return OM_OK;
  }
  OM_TRY(om_rule_ints(ctx, call->inputs[1], "extents", OM_MAX_RANK, size, &count));
  if ((int64_t)count != theta->dims[1] + 2 || size[0] != theta->dims[0]) {
    return fail_shape(ctx, theta, "batch of affine matrices for that size");
  }
  dims[0] = size[0];
  for (uint32_t d = 2; d < count; ++d) dims[d - 1] = size[d];
  dims[count - 1] = theta->dims[1];
  return om_rule_set(ctx, call, 0, theta->dtype, count, dims);
}

/* The coordinate of element `index` of `extent`, in -1..1. */
static double grid_coordinate(om_real real, bool aligns, size_t index, size_t extent) {
  if (aligns && extent == 1) return -1.0;
  const double way = aligns ? (double)(2 * index) : (double)(2 * index + 1);
  const double whole = aligns ? (double)(extent - 1) : (double)extent;
  return om_real_round(real, om_real_round(real, way / whole) - 1.0);
}

static om_status run_affine(om_ctx *ctx, const om_op_call *call) {
  const om_affine_params *p = call->params;
  const om_tensor *theta = call->inputs[0];
  const om_tensor *y = call->outputs[0];
  const om_real real = om_real_of(theta->dtype);
  const size_t axes = (size_t)theta->dims[1];
  const size_t points = om_rule_product(y->dims, 1, y->rank - 1);
  for (size_t i = 0; i < (size_t)y->dims[0] * points; ++i) {
    OM_TRY(om_check_turn(ctx, i));
    double position[3] = {0.0, 0.0, 0.0}; /* x first: the last spatial axis */
    size_t rest = i % points;
    for (size_t d = 0; d < axes; ++d) {
      const size_t extent = (size_t)y->dims[axes - d];
      position[d] = grid_coordinate(real, p->aligns, rest % extent, extent);
      rest /= extent;
    }
    for (size_t row = 0; row < axes; ++row) {
      const size_t first = (i / points * axes + row) * (axes + 1);
      double sum = 0.0;
      for (size_t d = 0; d < axes; ++d) {
        const double term = om_real_round(real, om_real_load(theta, first + d) * position[d]);
        sum = om_real_round(real, sum + term);
      }
      sum = om_real_round(real, sum + om_real_load(theta, first + axes));
      om_real_store(y, i * axes + row, sum);
    }
  }
  return OM_OK;
}

/* ---- MaxUnpool ---- */

typedef struct om_unpool_params {
  om_rule_list kernel, pads, strides;
} om_unpool_params;

static om_status resolve_unpool(om_ctx *ctx, const om_node *node, void *params) {
  om_unpool_params *p = params;
  OM_TRY(om_rule_list_attr(ctx, node, "kernel_shape", &p->kernel));
  OM_TRY(om_rule_list_attr(ctx, node, "pads", &p->pads));
  OM_TRY(om_rule_list_attr(ctx, node, "strides", &p->strides));
  if (p->kernel.count > 0) return OM_OK;
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute kernel_shape is absent.");
}

static om_status infer_unpool(om_ctx *ctx, const om_op_call *call) {
  const om_unpool_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *indices = call->inputs[1];
  const om_tensor *given = om_rule_input(call, 2);
  const size_t axes = p->kernel.count;
  int64_t dims[OM_MAX_RANK] = {0};
  uint32_t count = 0;
  if (indices->dtype != OM_DTYPE_I64 || indices->rank != x->rank ||
      memcmp(indices->dims, x->dims, x->rank * sizeof *x->dims) != 0) {
    return fail_shape(ctx, indices, "int64 index for each element of the input");
  }
  if (x->rank != axes + 2 || (p->strides.count && p->strides.count != axes) ||
      (p->pads.count && p->pads.count != 2 * axes)) {
    return fail_shape(ctx, x, "input for that kernel_shape, those strides and pads");
  }
  if (given && !om_rule_is_known(given)) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  if (given) {
    OM_TRY(om_rule_ints(ctx, given, "extents", OM_MAX_RANK, dims, &count));
    if (count == x->rank) return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
    return fail_shape(ctx, given, "list with an extent per axis");
  }
  dims[0] = x->dims[0];
  dims[1] = x->dims[1];
  for (size_t d = 0; d < axes; ++d) {
    const int64_t stride = p->strides.count ? p->strides.values[d] : 1;
    const int64_t pads = p->pads.count ? p->pads.values[d] + p->pads.values[axes + d] : 0;
    if (!is_positive(stride) || x->dims[d + 2] > INT32_MAX || !is_positive(p->kernel.values[d])) {
      return fail_shape(ctx, x, "input for that kernel_shape and those strides");
    }
    dims[d + 2] = (x->dims[d + 2] - 1) * stride + p->kernel.values[d] - pads;
  }
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
}

/* Indices count in the tensor as the attributes give it, also where output_shape is larger. */
static om_status run_unpool(om_ctx *ctx, const om_op_call *call) {
  const om_unpool_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *y = call->outputs[0];
  const size_t bytes = om_rule_elem_bytes(x->dtype);
  const size_t axes = p->kernel.count;
  const size_t total = om_tensor_elems(y);
  int64_t own[OM_MAX_RANK] = {y->dims[0], y->dims[1]};
  for (size_t d = 0; d < axes; ++d) {
    const int64_t stride = p->strides.count ? p->strides.values[d] : 1;
    const int64_t pads = p->pads.count ? p->pads.values[d] + p->pads.values[axes + d] : 0;
    own[d + 2] = (x->dims[d + 2] - 1) * stride + p->kernel.values[d] - pads;
  }
  memset(y->data, 0, total * bytes);
  for (size_t i = 0; i < om_tensor_elems(x); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    int64_t rest = om_rule_int(call->inputs[1], i);
    int64_t place = 0;
    int64_t unit = 1;
    bool is_inside = rest >= 0;
    for (uint32_t d = y->rank; is_inside && d-- > 0;) {
      const int64_t extent = own[d];
      is_inside = extent > 0 && (d == 0 ? rest < y->dims[0] : rest % extent < y->dims[d]);
      if (!is_inside) break;
      place += (d == 0 ? rest : rest % extent) * unit;
      unit *= y->dims[d];
      rest /= extent;
    }
    if (!is_inside) {
      return OM_FAIL(ctx,
                     OM_E_INVALID_INPUT,
                     "MaxUnpool index %" PRId64 " is outside the result.",
                     om_rule_int(call->inputs[1], i));
    }
    memcpy((uint8_t *)y->data + (size_t)place * bytes, (const uint8_t *)x->data + i * bytes, bytes);
  }
  return OM_OK;
}

/* ---- MaxRoiPool ---- */

typedef struct om_roi_pool_params {
  int64_t height, width;
  float scale;
} om_roi_pool_params;

static om_status resolve_roi_pool(om_ctx *ctx, const om_node *node, void *params) {
  om_roi_pool_params *p = params;
  om_rule_list shape;
  OM_TRY(om_rule_list_attr(ctx, node, "pooled_shape", &shape));
  OM_TRY(om_node_attr_float(ctx, node, "spatial_scale", 1.0f, &p->scale));
  if (shape.count != 2 || !is_positive(shape.values[0]) || !is_positive(shape.values[1])) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute pooled_shape is no pair of extents.");
  }
  p->height = shape.values[0];
  p->width = shape.values[1];
  return OM_OK;
}

static om_status infer_roi_pool(om_ctx *ctx, const om_op_call *call) {
  const om_roi_pool_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *rois = call->inputs[1];
  if (x->rank != 4) return fail_shape(ctx, x, "batch of images");
  if (rois->rank != 2 || rois->dims[1] != 5 || rois->dtype != x->dtype) {
    return fail_shape(ctx, rois, "list of regions of the image's type");
  }
  const int64_t dims[4] = {rois->dims[0], x->dims[1], p->height, p->width};
  return om_rule_set(ctx, call, 0, x->dtype, 4, dims);
}

/* Elements [begin, end) of an axis that cell `index` of `count` covers; a region is `length` long
 * from `first` on. */
static void cell_range(om_real real,
                       int64_t index,
                       int64_t count,
                       double first,
                       double length,
                       int64_t extent,
                       int64_t range[2]) {
  const double size = om_real_round(real, length / (double)count);
  const double begin = floor(om_real_round(real, (double)index * size)) + first;
  const double end = ceil(om_real_round(real, (double)(index + 1) * size)) + first;
  const double most = (double)extent;
  range[0] = (int64_t)(begin < 0.0 ? 0.0 : begin > most ? most : begin);
  range[1] = (int64_t)(end < 0.0 ? 0.0 : end > most ? most : end);
}

/* Half away from zero, as the operator's origin rounds. */
static double round_away(double x) {
  return x < 0.0 ? ceil(x - 0.5) : floor(x + 0.5);
}

static double largest_in(const om_ctx *ctx,
                         const om_tensor *x,
                         size_t plane,
                         const int64_t rows[2],
                         const int64_t cols[2]) {
  double best = 0.0; /* of an empty cell */
  bool is_found = false;
  for (int64_t row = rows[0]; row < rows[1] && !om_is_cancelled(ctx); ++row) {
    for (int64_t col = cols[0]; col < cols[1]; ++col) {
      const double v = om_real_load(x, plane + (size_t)(row * x->dims[3] + col));
      if (!is_found || v > best || v != v) best = v;
      is_found = true;
      if (best != best) return best;
    }
  }
  return best;
}

static om_status run_roi_pool(om_ctx *ctx, const om_op_call *call) {
  const om_roi_pool_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *y = call->outputs[0];
  const om_real real = om_real_of(x->dtype);
  const size_t cells = (size_t)(p->height * p->width);
  const size_t area = (size_t)(x->dims[2] * x->dims[3]);
  for (size_t i = 0; i < om_tensor_elems(y); ++i) {
    OM_TRY(om_check_turn(ctx, i));
    const size_t roi = i / cells / (size_t)y->dims[1];
    const size_t channel = i / cells % (size_t)y->dims[1];
    double corners[4];
    int64_t rows[2];
    int64_t cols[2];
    const double batch = om_real_load(call->inputs[1], roi * 5);
    if (!(batch >= 0.0 && batch < (double)x->dims[0])) {
      return OM_FAIL(ctx, OM_E_INVALID_INPUT, "Region %zu is of image %g.", roi, batch);
    }
    for (size_t k = 0; k < 4; ++k) {
      const double corner = om_real_load(call->inputs[1], roi * 5 + 1 + k) * (double)p->scale;
      corners[k] = round_away(om_real_round(real, corner));
    }
    const double width = corners[2] - corners[0] + 1.0;
    const double height = corners[3] - corners[1] + 1.0;
    cell_range(real,
               (int64_t)(i % cells) / p->width,
               p->height,
               corners[1],
               height > 1.0 ? height : 1.0,
               x->dims[2],
               rows);
    cell_range(real,
               (int64_t)(i % cells) % p->width,
               p->width,
               corners[0],
               width > 1.0 ? width : 1.0,
               x->dims[3],
               cols);
    const size_t plane = ((size_t)batch * (size_t)x->dims[1] + channel) * area;
    om_real_store(y, i, largest_in(ctx, x, plane, rows, cols));
  }
  return OM_OK;
}

const om_op om_ops_image[] = {
    {.domain = "",
     .type = "CenterCropPad",
     .first_opset = 18,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_ALL,
     .params_bytes = sizeof(om_crop_params),
     .resolve = resolve_crop,
     .infer = infer_crop,
     .run = run_crop},
    {.domain = "",
     .type = "Col2Im",
     .first_opset = 18,
     OM_RULE_COUNTS(3, 3, 1, 1),
     .dtypes = OM_DT_NUMBER,
     .params_bytes = sizeof(om_col2im_params),
     .resolve = resolve_col2im,
     .infer = infer_col2im,
     .scratch_bytes = scratch_col2im,
     .run = run_col2im},
    {.domain = "",
     .type = "AffineGrid",
     .first_opset = 20,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_affine_params),
     .resolve = resolve_affine,
     .infer = infer_affine,
     .run = run_affine},
    {.domain = "",
     .type = "MaxUnpool",
     .first_opset = 9,
     OM_RULE_COUNTS(2, 3, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_unpool_params),
     .resolve = resolve_unpool,
     .infer = infer_unpool,
     .run = run_unpool},
    {.domain = "",
     .type = "MaxRoiPool",
     .first_opset = 1,
     OM_RULE_COUNTS(2, 2, 1, 1),
     .dtypes = OM_DT_FLOAT,
     .params_bytes = sizeof(om_roi_pool_params),
     .resolve = resolve_roi_pool,
     .infer = infer_roi_pool,
     .run = run_roi_pool},
    {.type = NULL},
};
