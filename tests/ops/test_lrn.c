/* LRN against its formula in float64. */
#include <math.h>

#include "harness/om_test.h"

static void reference(const om_node *node,
                      const om_ref_tensor *inputs,
                      size_t input_count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const int64_t size = om_ref_int(node, "size", 1);
  const int64_t channels = x->dims[1];
  int64_t inner = 1;
  (void)input_count;
  (void)output_count;
  for (uint32_t i = 2; i < x->rank; ++i) inner *= x->dims[i];
  for (size_t i = 0; i < x->elems; ++i) {
    const int64_t channel = (int64_t)i / inner % channels;
    double sum = 0;
    for (int64_t c = channel - (size - 1) / 2; c <= channel + size / 2; ++c) {
      if (c < 0 || c >= channels) continue;
      const double value = x->values[(int64_t)i + (c - channel) * inner];
      sum += value * value;
    }
    const double scale =
        om_ref_float(node, "bias", 1) + om_ref_float(node, "alpha", 0.0001) / (double)size * sum;
    outputs[0].values[i] = x->values[i] / pow(scale, om_ref_float(node, "beta", 0.75));
  }
}

static const om_op_case cases[] = {
    {.name = "images", .inputs = {"f32 2x9x5x7"}, .attrs = "size=3 alpha=0.5f"},
    {.name = "even", .inputs = {"f32 2x9x5x7"}, .attrs = "size=4 alpha=0.5f beta=0.5f bias=2.0f"},
    {.name = "more_than_all", .inputs = {"f32 1x3x33"}, .attrs = "size=11 alpha=0.1f beta=1.25f"},
    {.name = "one_channel", .inputs = {"f32 3x1x4"}, .attrs = "size=5"},
    {.name = "matrix", .inputs = {"f32 3x10"}, .attrs = "size=5 alpha=1.0f"},
    {.name = "rank_8", .inputs = {"f32 2x5x1x2x1x3x2x2"}, .attrs = "size=3 alpha=0.5f"},
    {.name = "half", .inputs = {"f16 2x5x4x3"}, .attrs = "size=3 alpha=0.5f"},
    {.name = "bfloat16",
     .inputs = {"bf16 2x5x4x3"},
     .attrs = "size=3 alpha=0.5f",
     .declined = "bfloat16"},
    {.name = "f64", .inputs = {"f64 2x9x5"}, .attrs = "size=3 alpha=0.5f", .declined = "float64"},
    {.name = "empty", .inputs = {"f32 2x5x0"}, .attrs = "size=3", .declined = "empty"},
    {.name = "no_channels", .inputs = {"f32 9"}, .attrs = "size=3", .error = "at least 2"},
    {.name = "no_size", .inputs = {"f32 2x3"}, .error = "size is 0"},
};
OM_OP_TEST("LRN", cases, reference)
