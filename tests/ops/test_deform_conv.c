/* DeformConv in two axes and one. */
#include <math.h>

#include "harness/om_test.h"

/* x at a place by linear interpolation in the last `axes` axes; 0 outside. */
static double at_place(const om_ref_tensor *x,
                       int64_t index[OM_MAX_RANK],
                       const double *place,
                       uint32_t axes) {
  double sum = 0.0;
  for (uint32_t corner = 0; corner < 1u << axes; ++corner) {
    double weight = 1.0;
    bool is_inside = true;
    for (uint32_t d = 0; d < axes; ++d) {
      const double low = floor(place[d]);
      const bool is_upper = (corner >> d & 1u) != 0;
      index[d + 2] = (int64_t)low + is_upper;
      weight *= is_upper ? place[d] - low : 1.0 - (place[d] - low);
      is_inside = is_inside && index[d + 2] >= 0 && index[d + 2] < x->dims[d + 2];
    }
    if (is_inside) sum += weight * x->values[om_ref_ravel(x, index)];
  }
  return sum;
}

static void reference(const om_node *node,
                      const om_ref_tensor *in,
                      size_t count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const om_ref_tensor *x = &in[0];
  const om_ref_tensor *w = &in[1];
  const om_ref_tensor *mask = count > 4 ? &in[4] : NULL;
  om_ref_tensor *y = &outputs[0];
  const uint32_t axes = x->rank - 2;
  const int64_t group = om_ref_int(node, "group", 1);
  const int64_t offset_group = om_ref_int(node, "offset_group", 1);
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    int64_t at[OM_MAX_RANK];
    om_ref_unravel(y, i, at);
    const size_t per_row = w->elems / (size_t)w->dims[0];
    const int64_t taps = (int64_t)per_row / w->dims[1];
    double sum = count > 3 && in[3].values ? in[3].values[at[1]] : 0.0;
    for (size_t k = 0; k < per_row; ++k) {
      int64_t tap[OM_MAX_RANK];
      int64_t from[OM_MAX_RANK] = {at[0]};
      int64_t field[OM_MAX_RANK];
      double place[3];
      om_ref_unravel(w, (size_t)at[1] * per_row + k, tap);
      from[1] = at[1] / (w->dims[0] / group) * w->dims[1] + tap[1];
      const int64_t own = from[1] / (x->dims[1] / offset_group) * taps + (int64_t)k % taps;
      memcpy(field, at, sizeof field);
      for (uint32_t d = 0; d < axes; ++d) {
        field[1] = own * axes + d;
        place[d] = (double)(at[d + 2] * om_ref_ints(node, "strides", d, 1) -
                            om_ref_ints(node, "pads", d, 0) +
                            tap[d + 2] * om_ref_ints(node, "dilations", d, 1)) +
                   in[2].values[om_ref_ravel(&in[2], field)];
      }
      double value = at_place(x, from, place, axes) * w->values[om_ref_ravel(w, tap)];
      field[1] = own;
      if (mask && mask->values) value *= mask->values[om_ref_ravel(mask, field)];
      sum += value;
    }
    y->values[i] = sum;
  }
}

static const om_op_case cases[] = {
    {.name = "plain",
     .inputs = {"f32 1x2x5x6", "f32 3x2x2x3", "f32 1x12x4x4"},
     .shapes = {"1x3x4x4"}},
    {.name = "all",
     .inputs = {"f32 2x4x7x6", "f32 6x2x3x3", "f32 2x36x4x3", "f32 6", "f32 2x18x4x3"},
     .attrs = "group=2 offset_group=2 pads=1,1,1,1 strides=2,2"},
    {.name = "dilated",
     .inputs = {"f32 1x2x9x9", "f32 2x2x2x2", "f32 1x8x7x6"},
     .attrs = "dilations=2,3 kernel_shape=2,2"},
    {.name = "one_axis", .inputs = {"f32 2x3x9", "f32 2x3x3", "f32 2x3x7", "-", "f32 2x3x7"}},
    {.name = "volume", .inputs = {"f32 1x2x3x4x4", "f32 2x2x2x2x2", "f32 1x24x2x3x3"}},
    {.name = "far", .inputs = {"f32 1x1x4x4", "f32 1x1x2x2", "f32 1x8x3x3 range -6 6"}},
    {.name = "f64", .inputs = {"f64 1x2x5x6", "f64 3x2x2x3", "f64 1x12x4x4"}},
    {.name = "f16", .inputs = {"f16 1x2x5x6", "f16 3x2x2x3", "f16 1x12x4x4"}},
    {.name = "empty", .inputs = {"f32 0x2x5x6", "f32 3x2x2x3", "f32 0x12x4x4"}},
    {.name = "offsets",
     .inputs = {"f32 1x2x5x6", "f32 3x2x2x3", "f32 1x6x4x4"},
     .error = "12 channels are expected"},
    {.name = "mask",
     .inputs = {"f32 1x2x5x6", "f32 3x2x2x3", "f32 1x12x4x4", "-", "f32 1x12x4x4"},
     .error = "6 channels are expected"},
    {.name = "offset_group",
     .inputs = {"f32 1x2x5x6", "f32 3x2x2x3", "f32 1x12x4x4"},
     .attrs = "offset_group=3",
     .error = "offset_group of 3"},
    {.name = "offset_group_0",
     .inputs = {"f32 1x2x5x6", "f32 3x2x2x3", "f32 1x12x4x4"},
     .attrs = "offset_group=0",
     .error = "offset_group is 0"},
    {.name = "bias",
     .inputs = {"f32 1x2x5x6", "f32 3x2x2x3", "f32 1x12x4x4", "f32 2"},
     .error = "The bias"},
};

static const om_op_suite suites[] = {
    {.op_type = "DeformConv",
     .cases = cases,
     .case_count = sizeof cases / sizeof cases[0],
     .reference = reference,
     .declined = "no kernel for this operator"},
};

OM_OP_TESTS(suites)
