/* CenterCropPad, Col2Im, AffineGrid, MaxUnpool, MaxRoiPool. */
#include "harness/om_test.h"

static void crop(const om_node *node,
                 const om_ref_tensor *inputs,
                 size_t input_count,
                 om_ref_tensor *outputs,
                 size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  om_ref_tensor *y = &outputs[0];
  (void)node;
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    int64_t index[OM_MAX_RANK];
    bool is_inside = true;
    om_ref_unravel(y, i, index);
    for (uint32_t d = 0; d < y->rank; ++d) {
      const int64_t extra = y->dims[d] - x->dims[d];
      index[d] += extra < 0 ? -extra / 2 : -(extra / 2);
      is_inside = is_inside && index[d] >= 0 && index[d] < x->dims[d];
    }
    y->values[i] = is_inside ? x->values[om_ref_ravel(x, index)] : 0.0;
  }
}

static void col2im(const om_node *node,
                   const om_ref_tensor *inputs,
                   size_t input_count,
                   om_ref_tensor *outputs,
                   size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  om_ref_tensor *y = &outputs[0];
  const size_t axes = inputs[1].elems;
  const int64_t blocks = x->dims[2];
  int64_t block_elems = 1;
  (void)input_count;
  (void)output_count;
  for (size_t d = 0; d < axes; ++d) block_elems *= (int64_t)inputs[2].values[d];
  memset(y->values, 0, y->elems * sizeof(double));
  for (size_t i = 0; i < x->elems; ++i) {
    int64_t block = (int64_t)i % blocks;
    int64_t element = (int64_t)i / blocks % block_elems;
    const int64_t channel = (int64_t)i / blocks / block_elems;
    int64_t index[OM_MAX_RANK] = {channel / y->dims[1], channel % y->dims[1]};
    bool is_inside = true;
    for (size_t d = axes; d-- > 0;) {
      const int64_t extent = (int64_t)inputs[1].values[d];
      const int64_t size = (int64_t)inputs[2].values[d];
      const int64_t begin = om_ref_ints(node, "pads", d, 0);
      const int64_t end = om_ref_ints(node, "pads", axes + d, 0);
      const int64_t stride = om_ref_ints(node, "strides", d, 1);
      const int64_t dilation = om_ref_ints(node, "dilations", d, 1);
      const int64_t places = (extent + begin + end - dilation * (size - 1) - 1) / stride + 1;
      index[d + 2] = block % places * stride + element % size * dilation - begin;
      is_inside = is_inside && index[d + 2] >= 0 && index[d + 2] < extent;
      block /= places;
      element /= size;
    }
    if (is_inside) y->values[om_ref_ravel(y, index)] += x->values[i];
  }
}

static void affine(const om_node *node,
                   const om_ref_tensor *inputs,
                   size_t input_count,
                   om_ref_tensor *outputs,
                   size_t output_count) {
  const om_ref_tensor *theta = &inputs[0];
  om_ref_tensor *y = &outputs[0];
  const uint32_t axes = (uint32_t)theta->dims[1];
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    int64_t index[OM_MAX_RANK];
    om_ref_unravel(y, i, index);
    const double *row = theta->values + (index[0] * axes + index[axes + 1]) * (axes + 1);
    double sum = row[axes];
    for (uint32_t d = 0; d < axes; ++d) {
      const double extent = (double)y->dims[axes - d];
      const double at = (double)index[axes - d];
      const double place = om_ref_int(node, "align_corners", 0)
                               ? (extent > 1.0 ? 2.0 * at / (extent - 1.0) - 1.0 : -1.0)
                               : (2.0 * at + 1.0) / extent - 1.0;
      sum += row[d] * place;
    }
    y->values[i] = sum;
  }
}

static const om_op_case crop_cases[] = {
    {.name = "crop", .inputs = {"f32 10x7", "i64 2 const = 4 4"}, .shapes = {"4x4"}},
    {.name = "pad", .inputs = {"f32 3x4", "i64 2 const = 8 9"}, .shapes = {"8x9"}},
    {.name = "both", .inputs = {"f32 9x4x3", "i64 3 const = 4 9 3"}},
    {.name = "axes", .inputs = {"f32 3x9x4", "i64 2 const = 4 9"}, .attrs = "axes=-2,2"},
    {.name = "axes_turned", .inputs = {"f32 3x9x4", "i32 2 const = 4 9"}, .attrs = "axes=2,0"},
    {.name = "of_a_run", .inputs = {"f32 9x4", "i64 2 = 4 9"}},
    {.name = "rank_8", .inputs = {"f32 2x1x3x2x1x2x3x2", "i64 2 const = 1 5"}, .attrs = "axes=2,6"},
    {.name = "empty", .inputs = {"f32 0x4", "i64 2 const = 2 2"}},
    {.name = "i64", .inputs = {"i64 5x4", "i64 2 const = 2 7"}},
    {.name = "f16", .inputs = {"f16 5x4", "i64 2 const = 2 7"}},
    {.name = "b8", .inputs = {"b8 5x4", "i64 2 const = 2 7"}},
    {.name = "count", .inputs = {"f32 5x4", "i64 1 const = 2"}, .error = "an extent per axis"},
    {.name = "twice",
     .inputs = {"f32 5x4", "i64 2 const = 2 2"},
     .attrs = "axes=0,-2",
     .error = "occurs twice"},
    {.name = "too_many",
     .inputs = {"f32 5x4", "i64 3 const = 2 2 2"},
     .attrs = "axes=0,1,1",
     .error = "that many axes"},
};

static const om_op_case col2im_cases[] = {
    {.name = "plain",
     .inputs = {"f32 1x12x4", "i64 2 const = 4 3", "i64 2 const = 3 2"},
     .shapes = {"1x2x4x3"}},
    {.name = "overlaps", .inputs = {"f32 2x12x12", "i64 2 const = 5 5", "i64 2 const = 2 3"}},
    {.name = "pads",
     .inputs = {"f32 1x5x15", "i64 2 const = 5 5", "i64 2 const = 1 5"},
     .attrs = "pads=0,1,0,1"},
    {.name = "strides",
     .inputs = {"f32 1x9x4", "i64 2 const = 5 5", "i64 2 const = 3 3"},
     .attrs = "strides=2,2"},
    {.name = "dilations",
     .inputs = {"f32 1x4x5", "i64 2 const = 6 6", "i64 2 const = 2 2"},
     .attrs = "dilations=1,5"},
    {.name = "one_axis", .inputs = {"f32 2x6x9", "i64 1 const = 10", "i64 1 const = 2"}},
    {.name = "volume", .inputs = {"f32 1x10x12", "i64 3 const = 3 4 5", "i64 3 const = 1 1 5"}},
    {.name = "of_a_run", .inputs = {"f32 1x12x4", "i64 2 = 4 3", "i64 2 = 3 2"}},
    {.name = "f64", .inputs = {"f64 2x12x12", "i64 2 const = 5 5", "i64 2 const = 2 3"}},
    {.name = "i32", .inputs = {"i32 2x12x12", "i64 2 const = 5 5", "i64 2 const = 2 3"}},
    {.name = "rank",
     .inputs = {"f32 12x12", "i64 2 const = 5 5", "i64 2 const = 2 3"},
     .error = "no batch of columns"},
    {.name = "blocks",
     .inputs = {"f32 1x12x5", "i64 2 const = 4 3", "i64 2 const = 3 2"},
     .error = "columns of such blocks"},
    {.name = "counts",
     .inputs = {"f32 1x12x5", "i64 2 const = 4 3", "i64 1 const = 3"},
     .error = "do not go"},
    {.name = "stride_0",
     .inputs = {"f32 1x12x5", "i64 2 const = 4 3", "i64 2 const = 3 2"},
     .attrs = "strides=0,1",
     .error = "do not go"},
};

static const om_op_case affine_cases[] = {
    {.name = "plane", .inputs = {"f32 2x2x3", "i64 4 const = 2 3 4 5"}, .shapes = {"2x4x5x2"}},
    {.name = "volume", .inputs = {"f32 2x3x4", "i64 5 const = 2 3 4 5 6"}, .shapes = {"2x4x5x6x3"}},
    {.name = "corners",
     .inputs = {"f32 2x2x3", "i64 4 const = 2 3 4 5"},
     .attrs = "align_corners=1"},
    {.name = "corners_of_one",
     .inputs = {"f32 1x2x3", "i64 4 const = 1 1 1 5"},
     .attrs = "align_corners=1"},
    {.name = "of_a_run", .inputs = {"f32 2x2x3", "i64 4 = 2 3 4 5"}},
    {.name = "f64", .inputs = {"f64 2x2x3", "i64 4 const = 2 3 4 5"}},
    {.name = "f16", .inputs = {"f16 2x2x3", "i64 4 const = 2 3 4 5"}},
    {.name = "matrix",
     .inputs = {"f32 2x3x3", "i64 4 const = 2 3 4 5"},
     .error = "batch of affine matrices"},
    {.name = "size", .inputs = {"f32 2x2x3", "i64 5 const = 2 3 4 5 6"}, .error = "for that size"},
};

static const om_op_case unpool_cases[] = {
    {.name = "plain",
     .inputs = {"f32 1x1x2x2 = 1 2 3 4", "i64 1x1x2x2 = 5 7 13 15"},
     .attrs = "kernel_shape=2,2 strides=2,2",
     .expected = {"0 0 0 0 0 1 0 2 0 0 0 0 0 3 0 4"},
     .shapes = {"1x1x4x4"}},
    {.name = "output_shape",
     .inputs = {"f32 1x1x1x2 = 1 2", "i64 1x1x1x2 = 1 7", "i64 4 const = 1 1 3 5"},
     .attrs = "kernel_shape=2,2 strides=2,2",
     .expected = {"0 1 0 0 0 0 0 0 2 0 0 0 0 0 0"},
     .shapes = {"1x1x3x5"}},
    {.name = "pads",
     .inputs = {"f64 1x1x2 = 1 2", "i64 1x1x2 = 0 2"},
     .attrs = "kernel_shape=[3] pads=0,1",
     .expected = {"1 0 2"},
     .shapes = {"1x1x3"}},
    {.name = "f16_channels",
     .inputs = {"f16 1x2x1 = 1 2", "i64 1x2x1 = 1 2"},
     .attrs = "kernel_shape=[2] strides=[2]",
     .expected = {"0 1 2 0"}},
    {.name = "outside",
     .inputs = {"f32 1x1x2 = 1 2", "i64 1x1x2 = 0 9"},
     .attrs = "kernel_shape=[2]",
     .error = "MaxUnpool index 9"},
    {.name = "negative",
     .inputs = {"f32 1x1x2 = 1 2", "i64 1x1x2 = 0 -1"},
     .attrs = "kernel_shape=[2]",
     .error = "MaxUnpool index -1"},
    {.name = "indices",
     .inputs = {"f32 1x1x2", "i64 1x1x3"},
     .attrs = "kernel_shape=[2]",
     .error = "index for each element"},
    {.name = "axes",
     .inputs = {"f32 1x1x2", "i64 1x1x2"},
     .attrs = "kernel_shape=2,2",
     .error = "that kernel_shape"},
    {.name = "no_kernel", .inputs = {"f32 1x1x2", "i64 1x1x2"}, .error = "kernel_shape is absent"},
    {.name = "stride_0",
     .inputs = {"f32 1x1x2", "i64 1x1x2"},
     .attrs = "kernel_shape=[2] strides=[0]",
     .error = "those strides"},
};

static const om_op_case roi_cases[] = {
    {.name = "plain",
     .inputs = {"f32 1x1x4x4 ramp", "f32 2x5 = 0 0 0 3 3 0 1 1 2 2"},
     .attrs = "pooled_shape=2,2",
     .expected = {"5 7 13 15 5 6 9 10"},
     .shapes = {"2x1x2x2"}},
    {.name = "scaled",
     .inputs = {"f32 1x1x4x4 ramp", "f32 1x5 = 0 0 0 6 6"},
     .attrs = "pooled_shape=1,1 spatial_scale=0.5f",
     .expected = {"15"}},
    {.name = "outside",
     .inputs = {"f32 1x1x2x2 ramp", "f32 1x5 = 0 5 5 9 9"},
     .attrs = "pooled_shape=1,1",
     .expected = {"0"}},
    {.name = "second_image",
     .inputs = {"f64 2x1x1x2 ramp", "f64 1x5 = 1 0 0 1 0"},
     .attrs = "pooled_shape=1,2",
     .expected = {"2 3"}},
    {.name = "nan",
     .inputs = {"f16 1x1x1x3 = 1 nan 2", "f16 1x5 = 0 0 0 2 0"},
     .attrs = "pooled_shape=1,1",
     .expected = {"nan"}},
    {.name = "no_image",
     .inputs = {"f32 1x1x2x2", "f32 1x5 = 1 0 0 1 1"},
     .attrs = "pooled_shape=1,1",
     .error = "of image 1"},
    {.name = "regions",
     .inputs = {"f32 1x1x2x2", "f32 1x4"},
     .attrs = "pooled_shape=1,1",
     .error = "list of regions"},
    {.name = "rank",
     .inputs = {"f32 1x2x2", "f32 1x5"},
     .attrs = "pooled_shape=1,1",
     .error = "batch of images"},
    {.name = "pooled_shape",
     .inputs = {"f32 1x1x2x2", "f32 1x5"},
     .attrs = "pooled_shape=[1]",
     .error = "pooled_shape"},
};

#define OM_IMAGE_SUITE(type, table, function)        \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = function,                            \
   .declined = "no kernel for this operator"}

static const om_op_suite suites[] = {
    OM_IMAGE_SUITE("CenterCropPad", crop_cases, crop),
    OM_IMAGE_SUITE("Col2Im", col2im_cases, col2im),
    OM_IMAGE_SUITE("AffineGrid", affine_cases, affine),
    OM_IMAGE_SUITE("MaxUnpool", unpool_cases, NULL),
    OM_IMAGE_SUITE("MaxRoiPool", roi_cases, NULL),
};

OM_OP_TESTS(suites)
