/* DFT, STFT, the windows, MelWeightMatrix (docs/exact.md, "Signals"). */
#include <inttypes.h>
#include <math.h>

#include "cpu/exact/om_cast.h"
#include "cpu/exact/om_signal.h"
#include "ops/om_rule.h"

#define OM_DT_INDEX (OM_DT(OM_DTYPE_I32) | OM_DT(OM_DTYPE_I64))

static om_status check_single(om_ctx *ctx, const om_tensor *t, const char *what) {
  if (om_tensor_elems(t) == 1) return OM_OK;
  return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The %s must have one element.", what);
}

/* Reads a known integer that must lie in least..2^30. */
static om_status read_size(
    om_ctx *ctx, const om_tensor *t, const char *what, int64_t least, int64_t *out) {
  OM_TRY(om_rule_check_int(ctx, t, what));
  OM_TRY(check_single(ctx, t, what));
  *out = om_rule_int(t, 0);
  if (*out >= least && *out <= (int64_t)1 << 30) return OM_OK;
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "The %s is %" PRId64 "; %" PRId64 " to 2^30 are expected.",
                 what,
                 *out,
                 least);
}

/* Rounded once; to integers cut off. */
static void store(const om_tensor *y, size_t index, double value) {
  uint8_t *at = (uint8_t *)y->data + index * om_rule_elem_bytes(y->dtype);
  om_cast_elems(OM_DTYPE_F64, &value, y->dtype, at, 1, true);
}

/* ---- Transforms ---- */

typedef struct om_dft_params {
  bool is_stft;
  bool is_inverse;
  bool is_onesided;
  bool axis_is_input;
  int64_t axis;
} om_dft_params;

static om_status resolve_dft(om_ctx *ctx, const om_node *node, void *params) {
  om_dft_params *p = params;
  int64_t inverse = 0;
  int64_t onesided = 0;
  p->axis_is_input = node->opset >= 20;
  OM_TRY(om_node_attr_int(ctx, node, "inverse", 0, &inverse));
  OM_TRY(om_node_attr_int(ctx, node, "onesided", 0, &onesided));
  p->is_inverse = inverse != 0;
  p->is_onesided = onesided != 0;
  p->axis = p->axis_is_input ? -2 : 1;
  return p->axis_is_input ? OM_OK : om_node_attr_int(ctx, node, "axis", 1, &p->axis);
}

static om_status resolve_stft(om_ctx *ctx, const om_node *node, void *params) {
  om_dft_params *p = params;
  int64_t onesided = 1;
  p->is_stft = true;
  OM_TRY(om_node_attr_int(ctx, node, "onesided", 1, &onesided));
  p->is_onesided = onesided != 0;
  return OM_OK;
}

static om_status fail_complex(om_ctx *ctx, const om_tensor *x) {
  char text[OM_SHAPE_TEXT];
  return OM_FAIL(ctx,
                 OM_E_INVALID_INPUT,
                 "A signal of shape %s has no real or complex numbers in its last axis.",
                 om_shape_text(text, sizeof text, x->rank, x->dims));
}

/* Bins of a transform, onesided only where the signal is real. */
static om_status count_bins(om_ctx *ctx, const om_dft_params *p, om_dft *dft) {
  dft->bins = dft->length;
  if (!p->is_onesided) return OM_OK;
  dft->bins = dft->length / 2 + 1;
  if (dft->parts == 1) return OM_OK;
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "A complex signal has no onesided transform.");
}

/* Fills all but what is not known yet; *out_known says whether everything was. */
static om_status describe_dft(
    om_ctx *ctx, const om_op_call *call, om_dft *out, uint32_t *out_axis, bool *out_known) {
  const om_dft_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *given = om_rule_input(call, 1);
  const om_tensor *axis_input = p->axis_is_input ? om_rule_input(call, 2) : NULL;
  int64_t axis = p->axis;
  int64_t length = 0;
  *out = (om_dft){.is_inverse = p->is_inverse};
  *out_known = (!given || om_rule_is_known(given)) && (!axis_input || om_rule_is_known(axis_input));
  if (x->rank < 2 || x->dims[x->rank - 1] < 1 || x->dims[x->rank - 1] > 2) {
    return fail_complex(ctx, x);
  }
  if (!*out_known) return OM_OK;
  if (axis_input) {
    OM_TRY(om_rule_check_int(ctx, axis_input, "axis"));
    OM_TRY(check_single(ctx, axis_input, "axis"));
    axis = om_rule_int(axis_input, 0);
  }
  OM_TRY(om_rule_axis(ctx, axis, x->rank, out_axis));
  if (*out_axis == x->rank - 1) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The last axis has the parts of complex numbers.");
  }
  length = x->dims[*out_axis];
  if (given) OM_TRY(read_size(ctx, given, "length of a transform", 1, &length));
  out->length = (size_t)length;
  out->samples = (size_t)(length < x->dims[*out_axis] ? length : x->dims[*out_axis]);
  out->parts = (size_t)x->dims[x->rank - 1];
  OM_TRY(count_bins(ctx, p, out));
  out->outer = om_rule_product(x->dims, 0, *out_axis);
  out->inner = om_rule_product(x->dims, *out_axis + 1, x->rank - 1);
  out->in_outer_step = (size_t)x->dims[*out_axis] * out->inner;
  out->in_inner_step = 1;
  out->sample_step = out->inner;
  out->out_outer_step = out->bins * out->inner;
  out->out_inner_step = 1;
  out->bin_step = out->inner;
  return OM_OK;
}

static om_status infer_dft(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_dft dft;
  uint32_t axis = 0;
  bool is_known = false;
  int64_t dims[OM_MAX_RANK];
  OM_TRY(describe_dft(ctx, call, &dft, &axis, &is_known));
  if (!is_known) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  memcpy(dims, x->dims, sizeof dims);
  dims[axis] = (int64_t)dft.bins;
  dims[x->rank - 1] = 2;
  return om_rule_set(ctx, call, 0, x->dtype, x->rank, dims);
}

static om_status describe_stft(om_ctx *ctx, const om_op_call *call, om_dft *out, bool *out_known) {
  const om_dft_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *window = om_rule_input(call, 2);
  const om_tensor *given = om_rule_input(call, 3);
  int64_t step = 1;
  int64_t length = 0;
  *out = (om_dft){.length = 0};
  *out_known = om_rule_is_known(call->inputs[1]) && (!given || om_rule_is_known(given));
  if (x->rank < 2 || x->rank > 3 || (x->rank == 3 && (x->dims[2] < 1 || x->dims[2] > 2))) {
    return fail_complex(ctx, x);
  }
  if (window && (window->rank != 1 || window->dtype != x->dtype)) {
    return OM_FAIL(ctx, OM_E_INVALID_INPUT, "The window is no list of the signal's type.");
  }
  if (!window && !given) {
    return OM_FAIL(ctx, OM_E_INVALID_MODEL, "There is neither a window nor a frame_length.");
  }
  if (!*out_known) return OM_OK;
  OM_TRY(read_size(ctx, call->inputs[1], "frame_step", 1, &step));
  length = given ? 0 : window->dims[0];
  if (given) OM_TRY(read_size(ctx, given, "frame_length", 1, &length));
  if (length < 1 || length > x->dims[1] || (window && window->dims[0] != length)) {
    return OM_FAIL(ctx,
                   OM_E_INVALID_INPUT,
                   "Frames of %" PRId64 " samples do not go with a signal of %" PRId64
                   " and a window of %" PRId64 ".",
                   length,
                   x->dims[1],
                   window ? window->dims[0] : length);
  }
  out->length = (size_t)length;
  out->samples = out->length;
  out->parts = x->rank == 3 ? (size_t)x->dims[2] : 1;
  OM_TRY(count_bins(ctx, p, out));
  out->outer = (size_t)x->dims[0];
  out->inner = (size_t)((x->dims[1] - length) / step + 1);
  out->in_outer_step = (size_t)x->dims[1];
  out->in_inner_step = (size_t)step;
  out->sample_step = 1;
  out->out_outer_step = out->inner * out->bins;
  out->out_inner_step = out->bins;
  out->bin_step = 1;
  return OM_OK;
}

static om_status infer_stft(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *x = call->inputs[0];
  om_dft dft;
  bool is_known = false;
  OM_TRY(describe_stft(ctx, call, &dft, &is_known));
  if (!is_known) {
    om_rule_set_unknown(call, 0, x->dtype);
    return OM_OK;
  }
  const int64_t dims[4] = {x->dims[0], (int64_t)dft.inner, (int64_t)dft.bins, 2};
  return om_rule_set(ctx, call, 0, x->dtype, 4, dims);
}

static om_status describe(om_ctx *ctx, const om_op_call *call, om_dft *out) {
  const om_dft_params *p = call->params;
  uint32_t axis = 0;
  bool is_known = false;
  return p->is_stft ? describe_stft(ctx, call, out, &is_known)
                    : describe_dft(ctx, call, out, &axis, &is_known);
}

static const om_tensor *window_of(const om_op_call *call) {
  const om_dft_params *p = call->params;
  return p->is_stft ? om_rule_input(call, 2) : NULL;
}

/* What every description fits into: the shapes alone say enough. */
static size_t transform_scratch(const om_op_call *call) {
  const om_dft_params *p = call->params;
  const om_tensor *x = call->inputs[0];
  const om_tensor *y = call->outputs[0];
  const om_tensor *given = om_rule_input(call, p->is_stft ? 3 : 1);
  const om_tensor *window = window_of(call);
  om_dft dft = {.length = 0, .outer = om_tensor_elems(y), .inner = 1};
  if (window) dft.length = (size_t)window->dims[0];
  for (uint32_t d = 0; !p->is_stft && d < x->rank; ++d) {
    if ((size_t)x->dims[d] > dft.length) dft.length = (size_t)x->dims[d];
  }
  if (given) dft.length = (size_t)om_rule_int(given, 0);
  size_t elems = om_dft_scratch_elems(&dft);
  if (x->dtype != OM_DTYPE_F64) {
    elems += om_tensor_elems(x) + om_tensor_elems(y) + (window ? om_tensor_elems(window) : 0);
  }
  return elems * sizeof(double);
}

/* The tensor as float64: its data, or a copy at *rest, which moves on. */
static const double *widen(om_ctx *ctx, const om_tensor *t, double **rest) {
  if (!t) return NULL;
  if (t->dtype == OM_DTYPE_F64) return t->data;
  om_tensor wide = *t;
  wide.dtype = OM_DTYPE_F64;
  wide.data = *rest;
  *rest += om_tensor_elems(t);
  om_cast_run(ctx, t, &wide, true);
  return wide.data;
}

static om_status run_transform(om_ctx *ctx, const om_op_call *call) {
  om_tensor *y = call->outputs[0];
  double *rest = call->scratch;
  om_tensor wide = *y;
  om_dft dft;
  OM_TRY(describe(ctx, call, &dft));
  const double *x = widen(ctx, call->inputs[0], &rest);
  const double *window = widen(ctx, window_of(call), &rest);
  if (y->dtype == OM_DTYPE_F64) {
    om_dft_run(ctx, &dft, x, window, y->data, rest);
    return OM_OK;
  }
  wide.dtype = OM_DTYPE_F64;
  wide.data = rest;
  om_dft_run(ctx, &dft, x, window, wide.data, rest + om_tensor_elems(y));
  om_cast_run(ctx, &wide, y, true);
  return OM_OK;
}

/* ---- Windows ---- */

typedef struct om_window_kind {
  const char *type;
  double factors[3];
} om_window_kind;

static const om_window_kind window_kinds[] = {
    {"HannWindow", {0.5, 0.5, 0.0}},
    {"HammingWindow", {0.54347826086956521739, 0.45652173913043478261, 0.0}},
    {"BlackmanWindow", {0.42, 0.5, 0.08}},
};

typedef struct om_signal_params { /* of windows and MelWeightMatrix */
  const om_window_kind *kind;
  om_dtype dtype;
  bool is_periodic;
} om_signal_params;

static om_status resolve_datatype(om_ctx *ctx, const om_node *node, om_signal_params *p) {
  int64_t dtype = OM_DTYPE_F32;
  OM_TRY(om_node_attr_int(ctx, node, "output_datatype", OM_DTYPE_F32, &dtype));
  if (dtype > 0 && dtype < OM_DTYPE_COUNT && OM_DT(dtype) & OM_DT_NUMBER) {
    p->dtype = (om_dtype)dtype;
    return OM_OK;
  }
  return OM_FAIL(ctx, OM_E_INVALID_MODEL, "The attribute output_datatype is %" PRId64 ".", dtype);
}

static om_status resolve_window(om_ctx *ctx, const om_node *node, void *params) {
  om_signal_params *p = params;
  int64_t periodic = 1;
  for (size_t i = 0; i < OM_COUNT_OF(window_kinds); ++i) {
    if (strcmp(node->type, window_kinds[i].type) == 0) p->kind = &window_kinds[i];
  }
  OM_TRY(om_node_attr_int(ctx, node, "periodic", 1, &periodic));
  p->is_periodic = periodic != 0;
  return resolve_datatype(ctx, node, p);
}

static om_status infer_window(om_ctx *ctx, const om_op_call *call) {
  const om_signal_params *p = call->params;
  int64_t size = 0;
  if (!om_rule_is_known(call->inputs[0])) {
    om_rule_set_unknown(call, 0, p->dtype);
    return OM_OK;
  }
  OM_TRY(read_size(ctx, call->inputs[0], "window's size", 0, &size));
  return om_rule_set(ctx, call, 0, p->dtype, 1, &size);
}

static om_status run_window(om_ctx *ctx, const om_op_call *call) {
  const om_signal_params *p = call->params;
  const om_tensor *y = call->outputs[0];
  const double *a = p->kind->factors;
  const size_t size = (size_t)y->dims[0];
  const size_t whole = p->is_periodic ? size : size - 1;
  for (size_t i = 0; i < size; ++i) {
    OM_TRY(om_check_turn(ctx, i));
    double value = 1.0; /* a symmetric window of one element */
    if (whole > 0) {
      value = a[0] - a[1] * om_signal_turn(i % whole, whole).cosine;
      value = value + a[2] * om_signal_turn(i * 2 % whole, whole).cosine;
    }
    store(y, i, value);
  }
  return OM_OK;
}

/* ---- MelWeightMatrix ---- */

typedef struct om_mel {
  int64_t bands, length, rate;
  double lowest, step; /* mel */
} om_mel;

static om_status read_mel(om_ctx *ctx, const om_op_call *call, om_mel *out) {
  const double ln10 = 2.30258509299404568402;
  double mels[2];
  OM_TRY(read_size(ctx, call->inputs[0], "num_mel_bins", 0, &out->bands));
  OM_TRY(read_size(ctx, call->inputs[1], "dft_length", 0, &out->length));
  OM_TRY(read_size(ctx, call->inputs[2], "sample_rate", 1, &out->rate));
  for (uint32_t i = 0; i < 2; ++i) {
    const om_tensor *edge = call->inputs[3 + i];
    OM_TRY(check_single(ctx, edge, "edge of the frequencies"));
    double hertz = 0.0;
    om_cast_elems(edge->dtype, edge->data, OM_DTYPE_F64, &hertz, 1, true);
    if (!(hertz >= 0.0 && hertz <= 1e9)) {
      return OM_FAIL(ctx, OM_E_INVALID_INPUT, "An edge of the frequencies is %g.", hertz);
    }
    mels[i] = 2595.0 * (om_signal_ln(1.0 + hertz / 700.0) / ln10);
  }
  out->lowest = mels[0];
  out->step = (mels[1] - mels[0]) / (double)(out->bands + 2);
  return OM_OK;
}

/* The bin of the transform at a band's edge. */
static int64_t mel_bin(const om_mel *mel, int64_t edge) {
  const double ln10 = 2.30258509299404568402;
  const double mels = (double)edge * mel->step + mel->lowest;
  const double hertz = 700.0 * (om_signal_exp(mels / 2595.0 * ln10) - 1.0);
  const double bin = floor((double)(mel->length + 1) * hertz / (double)mel->rate);
  return bin < 1e9 ? (int64_t)bin : (int64_t)1000000000;
}

static om_status infer_mel(om_ctx *ctx, const om_op_call *call) {
  const om_signal_params *p = call->params;
  om_mel mel;
  for (uint32_t i = 0; i < 5; ++i) {
    if (om_rule_is_known(call->inputs[i])) continue;
    om_rule_set_unknown(call, 0, p->dtype);
    return OM_OK;
  }
  OM_TRY(read_mel(ctx, call, &mel));
  const int64_t dims[2] = {mel.length / 2 + 1, mel.bands};
  return om_rule_set(ctx, call, 0, p->dtype, 2, dims);
}

/* Sets the part of a triangle that lies in the matrix. */
static void mel_store(const om_tensor *y, int64_t bin, int64_t band, double value) {
  if (bin < 0 || bin >= y->dims[0]) return;
  store(y, (size_t)(bin * y->dims[1] + band), value);
}

static om_status run_mel(om_ctx *ctx, const om_op_call *call) {
  const om_tensor *y = call->outputs[0];
  om_mel mel;
  OM_TRY(read_mel(ctx, call, &mel));
  memset(y->data, 0, om_tensor_elems(y) * om_rule_elem_bytes(y->dtype));
  for (int64_t band = 0; band < mel.bands; ++band) {
    OM_TRY(om_check_cancelled(ctx));
    const int64_t low = mel_bin(&mel, band);
    const int64_t center = mel_bin(&mel, band + 1);
    const int64_t high = mel_bin(&mel, band + 2);
    const int64_t last = high < y->dims[0] ? high : y->dims[0];
    if (low == center) mel_store(y, center, band, 1.0);
    for (int64_t bin = low; low < center && bin <= center && bin <= last; ++bin) {
      mel_store(y, bin, band, (double)(bin - low) / (double)(center - low));
    }
    for (int64_t bin = center; center < high && bin < last; ++bin) {
      mel_store(y, bin, band, (double)(high - bin) / (double)(high - center));
    }
  }
  return OM_OK;
}

#define OM_TRANSFORM_ENTRY(name, first, last, least, most, resolve_fn, infer_fn) \
  {.domain = "",                                                                 \
   .type = name,                                                                 \
   .first_opset = first,                                                         \
   .last_opset = last,                                                           \
   OM_RULE_COUNTS(least, most, 1, 1),                                            \
   .dtypes = OM_DT_FLOAT,                                                        \
   .params_bytes = sizeof(om_dft_params),                                        \
   .resolve = resolve_fn,                                                        \
   .infer = infer_fn,                                                            \
   .scratch_bytes = transform_scratch,                                           \
   .run = run_transform}
#define OM_SIGNAL_ENTRY(name, count, resolve_fn, infer_fn, run_fn) \
  {.domain = "",                                                   \
   .type = name,                                                   \
   .first_opset = 17,                                              \
   OM_RULE_COUNTS(count, count, 1, 1),                             \
   .dtypes = OM_DT_INDEX,                                          \
   .params_bytes = sizeof(om_signal_params),                       \
   .resolve = resolve_fn,                                          \
   .infer = infer_fn,                                              \
   .run = run_fn}

static om_status resolve_mel(om_ctx *ctx, const om_node *node, void *params) {
  return resolve_datatype(ctx, node, params);
}

const om_op om_ops_signal[] = {
    OM_TRANSFORM_ENTRY("DFT", 17, 19, 1, 2, resolve_dft, infer_dft),
    OM_TRANSFORM_ENTRY("DFT", 20, 0, 1, 3, resolve_dft, infer_dft),
    OM_TRANSFORM_ENTRY("STFT", 17, 0, 2, 4, resolve_stft, infer_stft),
    OM_SIGNAL_ENTRY("HannWindow", 1, resolve_window, infer_window, run_window),
    OM_SIGNAL_ENTRY("HammingWindow", 1, resolve_window, infer_window, run_window),
    OM_SIGNAL_ENTRY("BlackmanWindow", 1, resolve_window, infer_window, run_window),
    OM_SIGNAL_ENTRY("MelWeightMatrix", 5, resolve_mel, infer_mel, run_mel),
    {.type = NULL},
};
