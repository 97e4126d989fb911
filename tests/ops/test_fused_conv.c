/* The contributed FusedConv, in one spatial axis. */
#include <math.h>

#include "harness/om_test.h"

static double activated(const om_node *node, double x) {
  const om_attr *values = om_node_attr(node, "activation_params");
  const double p = values ? (double)values->floats[0] : 0.0;
  const double q = values && values->count > 1 ? (double)values->floats[1] : 0.0;
  if (om_ref_text_is(node, "activation", "", "Relu")) return fmax(x, 0.0);
  if (om_ref_text_is(node, "activation", "", "Tanh")) return tanh(x);
  if (om_ref_text_is(node, "activation", "", "Sigmoid")) return 1.0 / (1.0 + exp(-x));
  if (om_ref_text_is(node, "activation", "", "LeakyRelu")) return x < 0.0 ? x * p : x;
  if (om_ref_text_is(node, "activation", "", "Clip")) return fmin(fmax(x, p), q);
  if (om_ref_text_is(node, "activation", "", "HardSigmoid")) return fmin(fmax(x * p + q, 0.0), 1.0);
  return x;
}

static void reference(const om_node *node,
                      const om_ref_tensor *in,
                      size_t count,
                      om_ref_tensor *outputs,
                      size_t output_count) {
  om_ref_tensor *y = &outputs[0];
  const size_t channels = (size_t)in[0].dims[1];
  const size_t length = (size_t)in[0].dims[2];
  const size_t taps = (size_t)in[1].dims[2];
  const int64_t pad = om_ref_ints(node, "pads", 0, 0);
  (void)output_count;
  for (size_t i = 0; i < y->elems; ++i) {
    int64_t at[OM_MAX_RANK];
    om_ref_unravel(y, i, at);
    double sum = count > 2 && in[2].values ? in[2].values[at[1]] : 0.0;
    for (size_t k = 0; k < channels * taps; ++k) {
      const int64_t x = at[2] - pad + (int64_t)(k % taps);
      if (x < 0 || x >= (int64_t)length) continue;
      sum += in[0].values[((size_t)at[0] * channels + k / taps) * length + (size_t)x] *
             in[1].values[(size_t)at[1] * channels * taps + k];
    }
    if (count > 3 && in[3].values) sum += in[3].values[i];
    y->values[i] = activated(node, sum);
  }
}

#define INPUTS {"f32 2x3x9", "f32 4x3x3", "f32 4"}

static const om_op_case cases[] = {
    {.name = "none", .inputs = INPUTS},
    {.name = "relu", .inputs = INPUTS, .attrs = "activation=\"Relu\" pads=1,1"},
    {.name = "tanh", .inputs = INPUTS, .attrs = "activation=\"Tanh\""},
    {.name = "sigmoid", .inputs = INPUTS, .attrs = "activation=\"Sigmoid\""},
    {.name = "leaky",
     .inputs = INPUTS,
     .attrs = "activation=\"LeakyRelu\" activation_params=[0.25f]"},
    {.name = "clip", .inputs = INPUTS, .attrs = "activation=\"Clip\" activation_params=0.0f,6.0f"},
    {.name = "hard_sigmoid",
     .inputs = INPUTS,
     .attrs = "activation=\"HardSigmoid\" activation_params=0.2f,0.5f"},
    {.name = "z",
     .inputs = {"f32 2x3x9", "f32 4x3x3", "f32 4", "f32 2x4x7"},
     .attrs = "activation=\"Relu\""},
    {.name = "z_alone", .inputs = {"f32 2x3x9", "f32 4x3x3", "-", "f32 2x4x7"}},
    {.name = "f64",
     .inputs = {"f64 2x3x9", "f64 4x3x3", "f64 4", "f64 2x4x7"},
     .attrs = "activation=\"LeakyRelu\" activation_params=[0.25f]"},
    {.name = "f16", .inputs = {"f16 2x3x9", "f16 4x3x3", "f16 4"}, .attrs = "activation=\"Relu\""},
    {.name = "empty", .inputs = {"f32 0x3x9", "f32 4x3x3"}},
    {.name = "z_shape",
     .inputs = {"f32 2x3x9", "f32 4x3x3", "-", "f32 2x4x9"},
     .error = "Z is float32 [2, 4, 9]"},
    {.name = "unknown",
     .inputs = INPUTS,
     .attrs = "activation=\"Cube\"",
     .error = "'Cube' is unknown"},
    {.name = "params",
     .inputs = INPUTS,
     .attrs = "activation=\"Clip\"",
     .error = "activation_params"},
};

static const om_op_suite suites[] = {
    {.op_type = "FusedConv",
     .domain = "com.microsoft",
     .cases = cases,
     .case_count = sizeof cases / sizeof cases[0],
     .reference = reference,
     .declined = "no kernel for this operator"},
};

OM_OP_TESTS(suites)
