/* Rewrites: each graph runs with the rewrite and without it. "Without" is a session that returns
 * the value between the nodes as an extra output, which keeps them apart, or exact mode for what is
 * allowed in fast mode only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/om_float16.h"
#include "harness/om_graph_builder.h"
#include "rewrite/om_rewrite.h"

enum { MOST_ELEMS = 512 };

/* Numbers in [-1, 1) that are the same everywhere. */
static void fill(float *data, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
  }
}

static om_session *make_session(om_model *model, om_mode mode, const char *extra) {
  om_error error;
  om_session *session = NULL;
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  options.mode = mode;
  options.extra_outputs = &extra;
  options.extra_output_count = extra ? 1 : 0;
  if (om_session_create(model, &options, &session, &error) != OM_OK) fail_msg("%s", error.message);
  return session;
}

static const char *reason_of(om_session *session, const char *node, om_place want) {
  om_error error;
  const om_diagnostics *d = NULL;
  assert_int_equal(om_session_diagnose(session, NULL, 0, &d, &error), OM_OK);
  for (size_t i = 0; i < d->node_count; ++i) {
    if (strcmp(d->nodes[i].name, node) != 0) continue;
    assert_int_equal(d->nodes[i].place, want);
    return d->nodes[i].reason;
  }
  fail_msg("the diagnostics lack %s", node);
  return NULL;
}

/* Runs with input "x" of this shape and copies output "y"; returns its element count. */
static size_t run(om_session *session, uint32_t rank, const int64_t *dims, float *out) {
  om_error error;
  float x[MOST_ELEMS];
  om_named_tensor input = {"x", om_tensor_of(OM_DTYPE_F32, rank, dims, x)};
  om_named_tensor output = {"y", {0}};
  om_run_args args = {sizeof args, &input, 1, &output, 1, NULL};
  assert_true(om_tensor_elems(&input.tensor) <= MOST_ELEMS);
  fill(x, om_tensor_elems(&input.tensor), 7);
  if (om_session_run(session, &args, &error) != OM_OK) fail_msg("%s", error.message);
  size_t count = om_tensor_elems(&output.tensor);
  assert_true(count <= MOST_ELEMS);
  memcpy(out, output.tensor.data, count * sizeof *out);
  return count;
}

static void check_close(const float *a, const float *b, size_t count, float limit) {
  float largest = 0.0f, difference = 0.0f;
  for (size_t i = 0; i < count; ++i) {
    float d = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
    float m = b[i] > 0 ? b[i] : -b[i];
    if (m > largest) largest = m;
    if (d > difference) difference = d;
  }
  assert_true(count > 0 && largest > 0.0f);
  if (!(difference <= limit * largest)) fail_msg("scaled error %g", (double)(difference / largest));
}

/* ---- fold_affine ---- */

typedef struct conv_case {
  const char *type;
  int64_t groups;
  bool has_bias;
  int64_t weight_dims[4];
  int64_t channels; /* of the output */
} conv_case;

static om_model *make_conv(const conv_case *c, float *weights, float *vectors) {
  om_graph_builder b;
  om_build_begin(&b, 15);
  fill(weights, MOST_ELEMS, 1);
  fill(vectors, 5 * 8, 2);
  for (int i = 0; i < 8; ++i) vectors[3 * 8 + i] += 1.5f; /* variances */
  om_value_id inputs[3];
  inputs[0] = om_build_input(&b, "x", OM_DTYPE_F32, 4, (int64_t[]){1, 4, 5, 6}, NULL);
  inputs[1] = om_build_constant(&b, "weights", OM_DTYPE_F32, 4, c->weight_dims, weights);
  if (c->has_bias) {
    inputs[2] = om_build_constant(&b, "bias", OM_DTYPE_F32, 1, &c->channels, vectors + 4 * 8);
  }
  om_value_id conv = om_build_node(&b, c->type, "conv", c->has_bias ? 3 : 2, inputs);
  om_build_int(&b, "group", c->groups);
  om_build_ints(&b, "pads", 4, (const int64_t[]){1, 1, 1, 1});
  static const char *const names[] = {"scale", "shift", "mean", "variance"};
  om_value_id norm[5] = {conv};
  for (int i = 0; i < 4; ++i) {
    norm[i + 1] = om_build_constant(&b, names[i], OM_DTYPE_F32, 1, &c->channels, vectors + i * 8);
  }
  om_build_output(&b, om_build_node(&b, "BatchNormalization", "y", 5, norm));
  om_build_float(&b, "epsilon", 1e-3f);
  return om_build_model(&b);
}

static void folds_batchnorm_into_the_convolution(void **state) {
  static const conv_case cases[] = {
      {"Conv", 1, false, {6, 4, 3, 3}, 6},
      {"Conv", 1, true, {6, 4, 3, 3}, 6},
      {"Conv", 2, true, {6, 2, 3, 2}, 6},
      {"Conv", 4, false, {4, 1, 3, 3}, 4},
      {"ConvTranspose", 1, false, {4, 5, 3, 3}, 5},
      {"ConvTranspose", 2, true, {4, 3, 3, 3}, 6},
  };
  static const int64_t dims[] = {1, 4, 5, 6};
  static float weights[MOST_ELEMS], vectors[5 * 8];
  float folded[MOST_ELEMS], apart[MOST_ELEMS];
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_model *model = make_conv(&cases[i], weights, vectors);
    for (om_mode mode = OM_MODE_FAST; mode <= OM_MODE_EXACT; ++mode) {
      om_session *with = make_session(model, mode, NULL);
      om_session *without = make_session(model, mode, "conv");
      assert_string_equal(reason_of(with, "y", OM_PLACE_FOLDED),
                          "merged into the weights of 'conv'");
      reason_of(without, "y", OM_PLACE_CPU);
      size_t count = run(with, 4, dims, folded);
      assert_int_equal(run(without, 4, dims, apart), count);
      check_close(folded, apart, count, 2e-6f);
      om_session_destroy(with);
      om_session_destroy(without);
    }
    om_model_destroy(model);
  }
}

/* x -> Cast -> Conv of float16 -> BatchNormalization -> Cast -> y. */
static om_model *make_half_conv(bool is_tiny, uint16_t *weights, uint16_t *vectors) {
  static const char *const names[] = {"scale", "shift", "mean", "variance"};
  static const int64_t channels = 6;
  om_graph_builder b;
  float values[MOST_ELEMS];
  fill(values, 6 * 4 * 9, 1);
  for (int i = 0; i < 6 * 4 * 9; ++i) weights[i] = om_f16_from_f32(values[i]);
  fill(values, 4 * 6, 2);
  for (int i = 0; i < 4 * 6; ++i) {
    const float value = i < 6 && is_tiny ? 1e-4f : i < 18 ? values[i] : values[i] + 1.5f;
    vectors[i] = om_f16_from_f32(value);
  }
  om_build_begin(&b, 15);
  om_value_id inputs[2];
  inputs[0] = om_build_input(&b, "x", OM_DTYPE_F32, 4, (int64_t[]){1, 4, 5, 6}, NULL);
  inputs[0] = om_build_node(&b, "Cast", "halves", 1, inputs);
  om_build_int(&b, "to", 10);
  inputs[1] = om_build_constant(&b, "weights", OM_DTYPE_F16, 4, (int64_t[]){6, 4, 3, 3}, weights);
  om_value_id norm[5] = {om_build_node(&b, "Conv", "conv", 2, inputs)};
  for (int i = 0; i < 4; ++i) {
    norm[i + 1] = om_build_constant(&b, names[i], OM_DTYPE_F16, 1, &channels, vectors + i * 6);
  }
  om_value_id normed = om_build_node(&b, "BatchNormalization", "normed", 5, norm);
  om_build_output(&b, om_build_node(&b, "Cast", "y", 1, &normed));
  om_build_int(&b, "to", 1);
  return om_build_model(&b);
}

static void folds_batchnorm_of_float16_in_fast_mode(void **state) {
  static const int64_t dims[] = {1, 4, 5, 6};
  static uint16_t weights[6 * 4 * 9], vectors[4 * 6];
  float folded[MOST_ELEMS], apart[MOST_ELEMS];
  (void)state;
  om_model *model = make_half_conv(false, weights, vectors);
  om_session *fast = make_session(model, OM_MODE_FAST, NULL);
  om_session *exact = make_session(model, OM_MODE_EXACT, NULL);
  assert_string_equal(reason_of(fast, "normed", OM_PLACE_FOLDED),
                      "merged into the weights of 'conv'");
  reason_of(exact, "normed", OM_PLACE_CPU);
  const size_t count = run(fast, 4, dims, folded);
  assert_int_equal(run(exact, 4, dims, apart), count);
  check_close(folded, apart, count, 1.5e-3f);
  om_session_destroy(fast);
  om_session_destroy(exact);
  om_model_destroy(model);
}

static void leaves_batchnorm_beyond_float16(void **state) {
  static uint16_t weights[6 * 4 * 9], vectors[4 * 6];
  (void)state;
  om_model *model = make_half_conv(true, weights, vectors);
  om_session *session = make_session(model, OM_MODE_FAST, NULL);
  reason_of(session, "normed", OM_PLACE_CPU);
  om_session_destroy(session);
  om_model_destroy(model);
}

static void leaves_batchnorm_that_does_not_fit(void **state) {
  /* A variance of 5 for 6 channels: the run says what is wrong, not the rewrite. */
  static const conv_case wrong = {"Conv", 1, false, {6, 4, 3, 3}, 5};
  static float weights[MOST_ELEMS], vectors[5 * 8];
  om_error error;
  om_session *session = NULL;
  (void)state;
  om_model *model = make_conv(&wrong, weights, vectors);
  om_session_options options = OM_SESSION_OPTIONS_INIT;
  assert_int_not_equal(om_session_create(model, &options, &session, &error), OM_OK);
  assert_memory_equal(error.message, "Node 'y' (BatchNormalization): ", 31);
  om_model_destroy(model);
}

/* Conv, then what a text recogniser has after it: a scale and a shift of one value, or per channel.
 */
static om_model *make_affine(bool has_scale,
                             bool has_bias,
                             const float *weights,
                             const float *vectors) {
  static const int64_t one = 1;
  om_graph_builder b;
  om_build_begin(&b, 13);
  om_value_id inputs[3];
  inputs[0] = om_build_input(&b, "x", OM_DTYPE_F32, 4, (int64_t[]){1, 4, 5, 6}, NULL);
  inputs[1] = om_build_constant(&b, "weights", OM_DTYPE_F32, 4, (int64_t[]){6, 4, 3, 3}, weights);
  if (has_bias) inputs[2] = om_build_constant(&b, "bias", OM_DTYPE_F32, 1, (int64_t[]){6}, vectors);
  om_value_id y = om_build_node(&b, "Conv", "conv", has_bias ? 3 : 2, inputs);
  if (has_scale) {
    om_value_id scale = om_build_constant(&b, "scale", OM_DTYPE_F32, 1, &one, vectors + 8);
    y = om_build_node(&b, "Mul", "scaled", 2, (om_value_id[]){scale, y});
  }
  om_value_id shift =
      om_build_constant(&b, "shift", OM_DTYPE_F32, 4, (int64_t[]){1, 6, 1, 1}, vectors + 16);
  om_build_output(&b, om_build_node(&b, "Add", "y", 2, (om_value_id[]){y, shift}));
  return om_build_model(&b);
}

static void folds_scales_and_shifts_into_the_convolution(void **state) {
  static const int64_t dims[] = {1, 4, 5, 6};
  static float weights[MOST_ELEMS], vectors[24];
  float folded[MOST_ELEMS], apart[MOST_ELEMS];
  (void)state;
  fill(weights, MOST_ELEMS, 5);
  fill(vectors, 24, 6);
  for (int i = 0; i < 4; ++i) {
    bool has_scale = (i & 1) != 0, has_bias = (i & 2) != 0;
    om_model *model = make_affine(has_scale, has_bias, weights, vectors);
    om_session *with = make_session(model, OM_MODE_EXACT, NULL);
    om_session *without = make_session(model, OM_MODE_EXACT, "conv");
    assert_string_equal(reason_of(with, "y", OM_PLACE_FOLDED), "merged into the weights of 'conv'");
    reason_of(without, "y", OM_PLACE_CPU);
    size_t count = run(with, 4, dims, folded);
    assert_int_equal(run(without, 4, dims, apart), count);
    check_close(folded, apart, count, 2e-6f);
    /* A shift alone is the bias that the convolution adds at its end: the same bits. */
    if (!has_scale && !has_bias) assert_memory_equal(folded, apart, count * sizeof *apart);
    om_session_destroy(with);
    om_session_destroy(without);
    om_model_destroy(model);
  }
}

static void leaves_shifts_that_are_not_per_channel(void **state) {
  static float weights[MOST_ELEMS], vectors[24];
  (void)state;
  om_graph_builder b;
  om_build_begin(&b, 13);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 4, (int64_t[]){1, 4, 6, 6}, NULL);
  om_value_id w =
      om_build_constant(&b, "weights", OM_DTYPE_F32, 4, (int64_t[]){6, 4, 1, 1}, weights);
  om_value_id conv = om_build_node(&b, "Conv", "conv", 2, (om_value_id[]){x, w});
  /* As many values as channels, but along the width. */
  om_value_id shift = om_build_constant(&b, "shift", OM_DTYPE_F32, 1, (int64_t[]){6}, vectors);
  om_build_output(&b, om_build_node(&b, "Add", "y", 2, (om_value_id[]){conv, shift}));
  om_model *model = om_build_model(&b);
  om_session *session = make_session(model, OM_MODE_EXACT, NULL);
  reason_of(session, "y", OM_PLACE_CPU);
  om_session_destroy(session);
  om_model_destroy(model);
}

/* ---- hardswish_from_parts ---- */

static om_model *make_hardswish(bool divides_first, bool swaps, int64_t opset) {
  static const float three = 3.0f, zero = 0.0f, six = 6.0f;
  om_graph_builder b;
  om_build_begin(&b, opset);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 2, (int64_t[]){8, 8}, NULL);
  om_value_id c3 = om_build_constant(&b, "three", OM_DTYPE_F32, 0, NULL, &three);
  om_value_id c6 = om_build_constant(&b, "six", OM_DTYPE_F32, 0, NULL, &six);
  om_value_id scale = om_build_node(&b, "Add", "wide", 2, (om_value_id[]){x, x});
  scale = om_build_node(&b, "Add", "wider", 2, (om_value_id[]){scale, scale});
  om_value_id add = om_build_node(&b, "Add", "add", 2, (om_value_id[]){scale, c3});
  om_value_id clip;
  if (opset >= 11) {
    om_value_id c0 = om_build_constant(&b, "zero", OM_DTYPE_F32, 0, NULL, &zero);
    clip = om_build_node(&b, "Clip", "clip", 3, (om_value_id[]){add, c0, c6});
  } else {
    clip = om_build_node(&b, "Clip", "clip", 1, &add);
    om_build_float(&b, "min", 0.0f);
    om_build_float(&b, "max", 6.0f);
  }
  if (divides_first) clip = om_build_node(&b, "Div", "div", 2, (om_value_id[]){clip, c6});
  om_value_id y =
      om_build_node(&b,
                    "Mul",
                    divides_first ? "y" : "mul",
                    2,
                    swaps ? (om_value_id[]){clip, scale} : (om_value_id[]){scale, clip});
  if (!divides_first) y = om_build_node(&b, "Div", "y", 2, (om_value_id[]){y, c6});
  om_build_output(&b, y);
  return om_build_model(&b);
}

static void makes_one_hardswish_of_its_parts(void **state) {
  static const int64_t dims[] = {8, 8};
  float merged[MOST_ELEMS], parts[MOST_ELEMS];
  (void)state;
  for (int i = 0; i < 8; ++i) {
    om_model *model = make_hardswish((i & 1) != 0, (i & 2) != 0, (i & 4) != 0 ? 13 : 9);
    om_session *fast = make_session(model, OM_MODE_FAST, NULL);
    om_session *exact = make_session(model, OM_MODE_EXACT, NULL);
    reason_of(fast, "clip", OM_PLACE_FOLDED);
    reason_of(fast, "y", OM_PLACE_CPU);
    reason_of(exact, "clip", OM_PLACE_CPU);
    size_t count = run(fast, 2, dims, merged);
    assert_int_equal(run(exact, 2, dims, parts), count);
    check_close(merged, parts, count, 1e-6f);
    om_session_destroy(fast);
    om_session_destroy(exact);
    om_model_destroy(model);
  }
}

/* ---- layernorm_from_parts ---- */

typedef struct norm_case {
  bool squares_by_mul;
  bool has_beta;
  bool swaps;         /* gamma * y and beta + y */
  bool axes_as_input; /* opset 18 */
  bool subtracts_twice;
} norm_case;

static om_value_id reduce_mean(om_graph_builder *b,
                               const norm_case *c,
                               const char *name,
                               om_value_id x) {
  static const int64_t last = -1;
  if (!c->axes_as_input) {
    om_value_id mean = om_build_node(b, "ReduceMean", name, 1, &x);
    om_build_ints(b, "axes", 1, &last);
    return mean;
  }
  const char *axes_name = strcmp(name, "mean") == 0 ? "axes0" : "axes1";
  om_value_id axes = om_build_constant(b, axes_name, OM_DTYPE_I64, 1, (int64_t[]){1}, &last);
  return om_build_node(b, "ReduceMean", name, 2, (om_value_id[]){x, axes});
}

static om_model *make_norm(const norm_case *c, const float *gamma, const float *beta) {
  static const float two = 2.0f, epsilon = 1e-5f;
  static const int64_t length = 12;
  om_graph_builder b;
  om_build_begin(&b, c->axes_as_input ? 18 : 13);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 3, (int64_t[]){2, 3, 12}, NULL);
  om_value_id mean = reduce_mean(&b, c, "mean", x);
  om_value_id d = om_build_node(&b, "Sub", "d", 2, (om_value_id[]){x, mean});
  om_value_id e = d;
  if (c->subtracts_twice) e = om_build_node(&b, "Sub", "e", 2, (om_value_id[]){x, mean});
  om_value_id exponent = om_build_constant(&b, "two", OM_DTYPE_F32, 0, NULL, &two);
  om_value_id square = c->squares_by_mul
                           ? om_build_node(&b, "Mul", "square", 2, (om_value_id[]){e, e})
                           : om_build_node(&b, "Pow", "square", 2, (om_value_id[]){e, exponent});
  om_value_id variance = reduce_mean(&b, c, "variance", square);
  om_value_id eps = om_build_constant(&b, "epsilon", OM_DTYPE_F32, 0, NULL, &epsilon);
  om_value_id sum = om_build_node(&b, "Add", "sum", 2, (om_value_id[]){variance, eps});
  om_value_id root = om_build_node(&b, "Sqrt", "root", 1, &sum);
  om_value_id div = om_build_node(&b, "Div", "div", 2, (om_value_id[]){d, root});
  om_value_id g = om_build_constant(&b, "gamma", OM_DTYPE_F32, 1, &length, gamma);
  const char *scaled_name = c->has_beta ? "scaled" : "y";
  om_value_id y = om_build_node(
      &b, "Mul", scaled_name, 2, c->swaps ? (om_value_id[]){g, div} : (om_value_id[]){div, g});
  if (c->has_beta) {
    om_value_id t = om_build_constant(&b, "beta", OM_DTYPE_F32, 1, &length, beta);
    y = om_build_node(&b, "Add", "y", 2, c->swaps ? (om_value_id[]){t, y} : (om_value_id[]){y, t});
  }
  om_build_output(&b, y);
  return om_build_model(&b);
}

static void makes_one_layernorm_of_its_parts(void **state) {
  static const norm_case cases[] = {
      {.has_beta = true},
      {.squares_by_mul = true, .has_beta = true, .swaps = true},
      {.axes_as_input = true},
      {.subtracts_twice = true, .has_beta = true},
  };
  static const int64_t dims[] = {2, 3, 12};
  static float gamma[12], beta[12];
  float merged[MOST_ELEMS], parts[MOST_ELEMS];
  (void)state;
  fill(gamma, 12, 3);
  fill(beta, 12, 4);
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    om_model *model = make_norm(&cases[i], gamma, beta);
    om_session *fast = make_session(model, OM_MODE_FAST, NULL);
    om_session *exact = make_session(model, OM_MODE_EXACT, NULL);
    assert_string_equal(reason_of(fast, "div", OM_PLACE_FOLDED), "merged into 'y'");
    reason_of(fast, "variance", OM_PLACE_FOLDED);
    reason_of(fast, "y", OM_PLACE_CPU);
    reason_of(exact, "div", OM_PLACE_CPU);
    size_t count = run(fast, 3, dims, merged);
    assert_int_equal(run(exact, 3, dims, parts), count);
    check_close(merged, parts, count, 2e-6f);
    om_session_destroy(fast);
    om_session_destroy(exact);
    /* A value inside that the caller wants keeps what makes it. */
    om_session *kept = make_session(model, OM_MODE_FAST, "div");
    reason_of(kept, "div", OM_PLACE_CPU);
    om_session_destroy(kept);
    om_model_destroy(model);
  }
}

/* ---- drop_identity ---- */

static void drops_identities(void **state) {
  static const int64_t dims[] = {6};
  float y[MOST_ELEMS], with_all[MOST_ELEMS];
  om_graph_builder b;
  (void)state;
  om_build_begin(&b, 13);
  om_value_id x = om_build_input(&b, "x", OM_DTYPE_F32, 1, dims, NULL);
  om_value_id a = om_build_node(&b, "Identity", "a", 1, &x);
  om_value_id c = om_build_node(&b, "Dropout", "c", 1, &a);
  static const float one = 1.0f;
  om_value_id factor = om_build_constant(&b, "one", OM_DTYPE_F32, 0, NULL, &one);
  om_value_id same = om_build_node(&b, "Mul", "same", 2, (om_value_id[]){factor, c});
  om_value_id relu = om_build_node(&b, "Relu", "relu", 1, &same);
  om_value_id e = om_build_node(&b, "Identity", "e", 1, &relu);
  om_build_output(&b, om_build_node(&b, "Identity", "y", 1, &e));
  om_build_output(&b, om_build_node(&b, "Identity", "copy", 1, &x));
  om_model *model = om_build_model(&b);
  om_session *session = make_session(model, OM_MODE_EXACT, NULL);
  assert_string_equal(reason_of(session, "a", OM_PLACE_FOLDED),
                      "left out: it only passes its input on");
  reason_of(session, "c", OM_PLACE_FOLDED);
  reason_of(session, "e", OM_PLACE_FOLDED);
  reason_of(session, "same", OM_PLACE_FOLDED);
  reason_of(session, "y", OM_PLACE_FOLDED);
  reason_of(session, "relu", OM_PLACE_CPU);
  reason_of(session, "copy", OM_PLACE_CPU); /* an input as an output needs someone to write it */
  size_t count = run(session, 1, dims, y);
  om_session *apart = make_session(model, OM_MODE_EXACT, "c");
  reason_of(apart, "c", OM_PLACE_CPU);
  assert_int_equal(run(apart, 1, dims, with_all), count);
  assert_memory_equal(y, with_all, count * sizeof *y);
  om_session_destroy(session);
  om_session_destroy(apart);
  om_model_destroy(model);
}

static void lists_its_rewrites(void **state) {
  size_t count = 0;
  (void)state;
  for (; om_rewrite_get(count); ++count) {
    const om_rewrite *rewrite = om_rewrite_get(count);
    assert_non_null(rewrite->name);
    assert_non_null(rewrite->apply);
    assert_true(rewrite->in_fast || rewrite->in_exact);
    for (size_t i = 0; i < count; ++i) {
      assert_string_not_equal(rewrite->name, om_rewrite_get(i)->name);
    }
  }
  assert_true(count > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(folds_batchnorm_into_the_convolution),
      cmocka_unit_test(folds_batchnorm_of_float16_in_fast_mode),
      cmocka_unit_test(leaves_batchnorm_beyond_float16),
      cmocka_unit_test(leaves_batchnorm_that_does_not_fit),
      cmocka_unit_test(folds_scales_and_shifts_into_the_convolution),
      cmocka_unit_test(leaves_shifts_that_are_not_per_channel),
      cmocka_unit_test(makes_one_hardswish_of_its_parts),
      cmocka_unit_test(makes_one_layernorm_of_its_parts),
      cmocka_unit_test(drops_identities),
      cmocka_unit_test(lists_its_rewrites),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
