/* DFT, STFT, windows, MelWeightMatrix: the definitions in double precision. */
#include <math.h>

#include "harness/om_test.h"

static const double circle = 6.283185307179586476925286766559;

/* Bin k of `length` samples that lie `step` apart; those from `there` on are 0. */
static void bin(const double *x,
                const double *window,
                size_t there,
                size_t step,
                size_t parts,
                size_t length,
                size_t k,
                bool is_inverse,
                double *out) {
  out[0] = 0.0;
  out[1] = 0.0;
  for (size_t n = 0; n < there; ++n) {
    const double angle = circle * (double)(k * n % length) / (double)length;
    const double c = cos(angle);
    const double s = is_inverse ? sin(angle) : -sin(angle);
    const double w = window ? window[n] : 1.0;
    const double re = x[n * step * parts] * w;
    const double im = parts == 2 ? x[n * step * parts + 1] * w : 0.0;
    out[0] += re * c - im * s;
    out[1] += re * s + im * c;
  }
  if (!is_inverse) return;
  out[0] /= (double)length;
  out[1] /= (double)length;
}

static void dft(const om_node *node,
                const om_ref_tensor *inputs,
                size_t input_count,
                om_ref_tensor *outputs,
                size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  int64_t axis = om_ref_int(node, "axis", node->opset >= 20 ? -2 : 1);
  if (input_count > 2 && inputs[2].values) axis = (int64_t)inputs[2].values[0];
  const uint32_t at = om_ref_axis(axis, x->rank);
  const size_t parts = (size_t)x->dims[x->rank - 1];
  const size_t extent = (size_t)x->dims[at];
  const size_t length = input_count > 1 && inputs[1].values ? (size_t)inputs[1].values[0] : extent;
  const size_t bins = (size_t)outputs[0].dims[at];
  size_t inner = 1;
  (void)output_count;
  for (uint32_t d = at + 1; d + 1 < x->rank; ++d) inner *= (size_t)x->dims[d];
  for (size_t i = 0; i < outputs[0].elems / 2; ++i) {
    const size_t outer = i / inner / bins;
    bin(x->values + (outer * extent * inner + i % inner) * parts,
        NULL,
        extent < length ? extent : length,
        inner,
        parts,
        length,
        i / inner % bins,
        om_ref_int(node, "inverse", 0) != 0,
        outputs[0].values + i * 2);
  }
}

static void stft(const om_node *node,
                 const om_ref_tensor *inputs,
                 size_t input_count,
                 om_ref_tensor *outputs,
                 size_t output_count) {
  const om_ref_tensor *x = &inputs[0];
  const size_t parts = x->rank == 3 ? (size_t)x->dims[2] : 1;
  const double *window = input_count > 2 ? inputs[2].values : NULL;
  const size_t length =
      input_count > 3 && inputs[3].values ? (size_t)inputs[3].values[0] : inputs[2].elems;
  const size_t frames = (size_t)outputs[0].dims[1];
  const size_t bins = (size_t)outputs[0].dims[2];
  (void)node;
  (void)output_count;
  for (size_t i = 0; i < outputs[0].elems / 2; ++i) {
    const size_t frame = i / bins % frames;
    const size_t batch = i / bins / frames;
    const size_t first = batch * (size_t)x->dims[1] + frame * (size_t)inputs[1].values[0];
    bin(x->values + first * parts,
        window,
        length,
        1,
        parts,
        length,
        i % bins,
        false,
        outputs[0].values + i * 2);
  }
}

static void window(const om_node *node,
                   const om_ref_tensor *inputs,
                   size_t input_count,
                   om_ref_tensor *outputs,
                   size_t output_count) {
  const bool is_blackman = strcmp(node->type, "BlackmanWindow") == 0;
  const double a0 = is_blackman ? 0.42 : strcmp(node->type, "HannWindow") == 0 ? 0.5 : 25.0 / 46.0;
  const double a1 = is_blackman ? 0.5 : 1.0 - a0;
  const size_t size = outputs[0].elems;
  const double whole = (double)(om_ref_int(node, "periodic", 1) ? size : size - 1);
  (void)inputs;
  (void)input_count;
  (void)output_count;
  for (size_t i = 0; i < size; ++i) {
    const double angle = circle * (double)i / whole;
    double value = a0 - a1 * cos(angle) + (is_blackman ? 0.08 * cos(2.0 * angle) : 0.0);
    if (outputs[0].dtype == OM_DTYPE_I32) value = trunc(value);
    outputs[0].values[i] = whole > 0.0 ? value : 1.0;
  }
}

static int64_t mel_bin(const om_ref_tensor *in, int64_t edge) {
  const double low = 2595.0 * log10(1.0 + in[3].values[0] / 700.0);
  const double high = 2595.0 * log10(1.0 + in[4].values[0] / 700.0);
  const double mel = low + (double)edge * (high - low) / (in[0].values[0] + 2.0);
  const double hertz = 700.0 * (pow(10.0, mel / 2595.0) - 1.0);
  return (int64_t)floor((in[1].values[0] + 1.0) * hertz / in[2].values[0]);
}

static void mel(const om_node *node,
                const om_ref_tensor *inputs,
                size_t input_count,
                om_ref_tensor *outputs,
                size_t output_count) {
  (void)node;
  (void)input_count;
  (void)output_count;
  const int64_t bins = outputs[0].dims[0];
  const int64_t bands = outputs[0].dims[1];
  memset(outputs[0].values, 0, outputs[0].elems * sizeof(double));
  for (int64_t b = 0; b < bands; ++b) {
    const int64_t low = mel_bin(inputs, b);
    const int64_t center = mel_bin(inputs, b + 1);
    const int64_t high = mel_bin(inputs, b + 2);
    for (int64_t i = 0; i < bins; ++i) {
      double value = 0.0;
      if (i >= low && i <= center && low < center)
        value = (double)(i - low) / (double)(center - low);
      if (i == center && low == center) value = 1.0;
      if (i >= center && i < high) value = (double)(high - i) / (double)(high - center);
      outputs[0].values[i * bands + b] = value;
    }
  }
}

static const om_op_case dft_cases[] = {
    {.name = "real", .inputs = {"f32 3x16x1"}, .shapes = {"3x16x2"}},
    {.name = "complex", .inputs = {"f32 3x12x2"}},
    {.name = "odd", .inputs = {"f32 2x25x2"}},
    {.name = "prime", .inputs = {"f32 2x13x1"}},
    {.name = "length_1", .inputs = {"f32 3x1x1"}},
    {.name = "onesided", .inputs = {"f32 3x16x1"}, .attrs = "onesided=1", .shapes = {"3x9x2"}},
    {.name = "onesided_odd", .inputs = {"f32 3x15x1"}, .attrs = "onesided=1", .shapes = {"3x8x2"}},
    {.name = "inverse", .inputs = {"f32 3x20x2"}, .attrs = "inverse=1"},
    {.name = "padded", .inputs = {"f32 3x10x1", "i64 scalar const = 16"}, .shapes = {"3x16x2"}},
    {.name = "cut", .inputs = {"f32 3x10x2", "i32 scalar const = 7"}, .shapes = {"3x7x2"}},
    {.name = "axis", .inputs = {"f32 4x6x5x1", "-", "i64 scalar const = 0"}},
    {.name = "axis_middle",
     .inputs = {"f32 4x6x5x2", "i64 scalar const = 8", "i64 scalar const = -3"},
     .attrs = "onesided=0"},
    {.name = "lengths_of_a_run", .inputs = {"f32 3x10x1", "i64 scalar = 16", "i64 scalar = 1"}},
    {.name = "opset_17", .opset = 17, .inputs = {"f32 2x8x3x1"}, .attrs = "axis=1"},
    {.name = "opset_19",
     .opset = 19,
     .inputs = {"f32 2x8x3x1", "i64 scalar const = 6"},
     .attrs = "axis=-2 onesided=1"},
    {.name = "many_rows", .inputs = {"f32 37x2x64x1"}, .attrs = "onesided=1"},
    {.name = "long", .inputs = {"f32 1x400x1"}, .attrs = "onesided=1"},
    {.name = "rank_8", .inputs = {"f32 2x1x3x2x1x2x4x2"}},
    {.name = "empty", .inputs = {"f32 0x4x1"}},
    {.name = "f64", .inputs = {"f64 3x24x2"}},
    {.name = "f16", .inputs = {"f16 3x16x1"}},
    {.name = "bf16", .inputs = {"bf16 3x16x1"}},
    {.name = "parts", .inputs = {"f32 3x16x3"}, .error = "real or complex"},
    {.name = "rank", .inputs = {"f32 2"}, .error = "real or complex"},
    {.name = "last_axis",
     .inputs = {"f32 3x4x2", "-", "i64 scalar const = 2"},
     .error = "parts of complex"},
    {.name = "no_axis", .inputs = {"f32 3x4x2", "-", "i64 scalar const = 3"}, .error = "axis 3"},
    {.name = "no_length", .inputs = {"f32 3x0x2"}, .expected = {""}, .shapes = {"3x0x2"}},
    {.name = "length_0",
     .inputs = {"f32 3x4x2", "i64 scalar const = 0"},
     .error = "length of a transform is 0"},
    {.name = "onesided_complex",
     .inputs = {"f32 3x4x2"},
     .attrs = "onesided=1",
     .error = "no onesided"},
};

static const om_op_case stft_cases[] = {
    {.name = "window",
     .inputs = {"f32 2x50x1", "i64 scalar const = 5", "f32 16"},
     .shapes = {"2x7x9x2"}},
    {.name = "no_window",
     .inputs = {"f32 2x50x1", "i64 scalar const = 8", "-", "i64 scalar const = 12"}},
    {.name = "both",
     .inputs = {"f32 2x50", "i64 scalar const = 8", "f32 12", "i64 scalar const = 12"}},
    {.name = "complex",
     .inputs = {"f32 1x40x2", "i64 scalar const = 10", "f32 10"},
     .attrs = "onesided=0"},
    {.name = "twosided",
     .inputs = {"f32 1x40x1", "i64 scalar const = 10", "f32 10"},
     .attrs = "onesided=0"},
    {.name = "of_a_run", .inputs = {"f32 1x40x1", "i64 scalar = 10", "f32 10", "i64 scalar = 10"}},
    {.name = "f64", .inputs = {"f64 2x50x1", "i32 scalar const = 5", "f64 16"}},
    {.name = "f16", .inputs = {"f16 2x50x1", "i64 scalar const = 5", "f16 16"}},
    {.name = "too_long",
     .inputs = {"f32 2x10x1", "i64 scalar const = 5", "f32 16"},
     .error = "Frames of 16"},
    {.name = "no_length",
     .inputs = {"f32 2x10x1", "i64 scalar const = 5"},
     .error = "neither a window"},
    {.name = "window_type",
     .inputs = {"f32 2x10x1", "i64 scalar const = 5", "f64 4"},
     .error = "no list"},
    {.name = "step_0",
     .inputs = {"f32 2x10x1", "i64 scalar const = 0", "f32 4"},
     .error = "frame_step is 0"},
    {.name = "rank",
     .inputs = {"f32 10", "i64 scalar const = 1", "f32 4"},
     .error = "real or complex"},
};

static const om_op_case window_cases[] = {
    {.name = "periodic", .inputs = {"i64 scalar const = 10"}, .shapes = {"10"}},
    {.name = "symmetric", .inputs = {"i32 scalar const = 11"}, .attrs = "periodic=0"},
    {.name = "of_a_run", .inputs = {"i64 scalar = 400"}},
    {.name = "one", .inputs = {"i64 scalar const = 1"}},
    {.name = "one_symmetric", .inputs = {"i64 scalar const = 1"}, .attrs = "periodic=0"},
    {.name = "empty", .inputs = {"i64 scalar const = 0"}},
    {.name = "f64", .inputs = {"i64 scalar const = 37"}, .attrs = "output_datatype=11"},
    {.name = "f16", .inputs = {"i64 scalar const = 37"}, .attrs = "output_datatype=10"},
    {.name = "i32", .inputs = {"i64 scalar const = 7"}, .attrs = "output_datatype=6"},
    {.name = "negative", .inputs = {"i64 scalar const = -1"}, .error = "size is -1"},
    {.name = "list", .inputs = {"i64 2 const = 1 1"}, .error = "one element"},
    {.name = "no_type",
     .inputs = {"i64 scalar const = 7"},
     .attrs = "output_datatype=8",
     .error = "output_datatype"},
};

static const om_op_case mel_cases[] = {
    {.name = "whisper",
     .inputs = {"i64 scalar const = 80",
                "i64 scalar const = 400",
                "i64 scalar const = 16000",
                "f32 scalar const = 0",
                "f32 scalar const = 8000"},
     .shapes = {"201x80"}},
    {.name = "small",
     .inputs = {"i32 scalar const = 8",
                "i32 scalar const = 16",
                "i32 scalar const = 8192",
                "f32 scalar const = 0",
                "f32 scalar const = 4096"}},
    {.name = "above_nyquist",
     .inputs = {"i64 scalar const = 9",
                "i64 scalar const = 64",
                "i64 scalar const = 8000",
                "f32 scalar const = 20",
                "f32 scalar const = 7000"}},
    {.name = "of_a_run",
     .inputs = {"i64 scalar = 9",
                "i64 scalar = 64",
                "i64 scalar = 8000",
                "f32 scalar = 20",
                "f32 scalar = 4000"}},
    {.name = "f64",
     .inputs = {"i64 scalar const = 9",
                "i64 scalar const = 64",
                "i64 scalar const = 8000",
                "f64 scalar const = 20",
                "f64 scalar const = 4000"},
     .attrs = "output_datatype=11"},
    {.name = "edge",
     .inputs = {"i64 scalar const = 9",
                "i64 scalar const = 64",
                "i64 scalar const = 8000",
                "f32 scalar const = -20",
                "f32 scalar const = 4000"},
     .error = "An edge of the frequencies is -20"},
};

#define OM_SIGNAL_SUITE(type, table, function)       \
  {.op_type = type,                                  \
   .cases = table,                                   \
   .case_count = sizeof(table) / sizeof((table)[0]), \
   .reference = function,                            \
   .declined = "no kernel for this operator"}

static const om_op_suite suites[] = {
    OM_SIGNAL_SUITE("DFT", dft_cases, dft),
    OM_SIGNAL_SUITE("STFT", stft_cases, stft),
    OM_SIGNAL_SUITE("HannWindow", window_cases, window),
    OM_SIGNAL_SUITE("HammingWindow", window_cases, window),
    OM_SIGNAL_SUITE("BlackmanWindow", window_cases, window),
    OM_SIGNAL_SUITE("MelWeightMatrix", mel_cases, mel),
};

OM_OP_TESTS(suites)
