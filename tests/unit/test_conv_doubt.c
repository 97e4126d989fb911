/* Convolutions of bytes with the bits of a Conv between DequantizeLinear and QuantizeLinear: beside
 * those three, one after the other. Scales are such that many sums lie near the middle of two
 * bytes, and that sums of integers alone would give other bytes; how far those are from the floats
 * is no more than the limits say. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu/exact/om_conv_doubt.h"
#include "cpu/exact/om_exact_math.h"
#include "cpu/exact/om_quantize.h"

enum { MOST_X = 20000, MOST_W = 60000, MOST_Y = 30000, MOST_CHANNELS = 96 };

typedef struct conv_case {
  const char *name;
  int64_t groups, in_channels, out_channels; /* of a group */
  int64_t height, width, kernel, stride, dilation, pad;
  bool is_x_signed, is_w_signed, is_y_signed;
  int32_t x_zero, y_zero;
  bool has_w_zeros, has_bias;
} conv_case;

static uint32_t seed = 1;

static uint32_t random_bits(void) {
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

static om_dtype dtype_of(bool is_signed) {
  return is_signed ? OM_DTYPE_I8 : OM_DTYPE_U8;
}

static om_conv_pass pass_of(const conv_case *c) {
  const int64_t span = (c->kernel - 1) * c->dilation + 1;
  const int64_t extents[] = {c->height, c->width};
  om_conv_pass pass = {.batch = 1,
                       .groups = c->groups,
                       .in_channels = c->in_channels,
                       .out_channels = c->out_channels,
                       .axes = {om_conv_axis_forward(1, 1, 1, 1, 1, 0)}};
  for (int i = 0; i < 2; ++i) {
    const int64_t out = (extents[i] + 2 * c->pad - span) / c->stride + 1;
    pass.axes[1 + i] =
        om_conv_axis_forward(extents[i], out, c->kernel, c->stride, c->dilation, c->pad);
  }
  return pass;
}

typedef struct tensors {
  om_conv_bytes conv;
  om_conv_floats floats;
  size_t x_count, w_count, y_count, channels, terms;
  uint8_t x[MOST_X], w[MOST_W];
  int32_t w_zeros[MOST_CHANNELS], bias[MOST_CHANNELS];
  float w_scales[MOST_CHANNELS], bias_scales[MOST_CHANNELS], factors[MOST_CHANNELS];
} tensors;

/* Scales of a kind that leaves results of some hundreds, many of which are cut off; those of
 * weights differ by channel. */
static void fill(const conv_case *c, const om_conv_pass *pass, tensors *t) {
  t->channels = (size_t)(c->groups * c->out_channels);
  t->terms = (size_t)om_conv_terms(pass);
  t->x_count = (size_t)(c->groups * c->in_channels * c->height * c->width);
  t->w_count = t->channels * t->terms;
  t->y_count = t->channels * (size_t)(pass->axes[1].count * pass->axes[2].count);
  assert_true(t->x_count <= MOST_X && t->w_count <= MOST_W && t->y_count <= MOST_Y);
  assert_true(t->channels <= MOST_CHANNELS);
  for (size_t i = 0; i < t->x_count; ++i) t->x[i] = (uint8_t)random_bits();
  for (size_t i = 0; i < t->w_count; ++i) t->w[i] = (uint8_t)random_bits();
  t->floats = (om_conv_floats){.x_scale = 0.0117f,
                               .y_scale = 0.00004f * sqrtf((float)t->terms),
                               .w_scales = t->w_scales,
                               .bias_scales = c->has_bias ? t->bias_scales : NULL};
  for (size_t i = 0; i < t->channels; ++i) {
    t->w_scales[i] = 0.0001f + (float)(random_bits() % 64) * 1e-6f;
    t->w_zeros[i] =
        c->has_w_zeros ? (int32_t)(random_bits() % 256) - (c->is_w_signed ? 128 : 0) : 0;
    t->bias[i] = (int32_t)(random_bits() % 100000) - 50000;
    t->bias_scales[i] = t->floats.x_scale * t->w_scales[i] * (i % 2 ? 1.0f : 1.0000005f);
    t->factors[i] = om_div(t->floats.x_scale * t->w_scales[i], t->floats.y_scale);
  }
  t->conv = (om_conv_bytes){.pass = pass,
                            .x = t->x,
                            .w = t->w,
                            .is_x_signed = c->is_x_signed,
                            .is_w_signed = c->is_w_signed,
                            .x_zero = c->x_zero,
                            .w_zeros = t->w_zeros,
                            .bias = c->has_bias ? t->bias : NULL,
                            .factors = t->factors,
                            .y_zero = c->y_zero,
                            .is_y_signed = c->is_y_signed};
}

/* The quotients that QuantizeLinear rounds. */
static void run_floats(om_ctx *ctx, const tensors *t, float *y) {
  static float x[MOST_X], w[MOST_W];
  float bias[MOST_CHANNELS];
  const om_conv_bytes *c = &t->conv;
  void *scratch =
      aligned_alloc(64, om_size_align(om_conv_scratch_bytes(c->pass, sizeof(float)) + 1, 64));
  assert_non_null(scratch);
  om_dequantize_bytes(dtype_of(c->is_x_signed), t->x_count, t->x, t->floats.x_scale, c->x_zero, x);
  for (size_t i = 0; i < t->channels; ++i) {
    om_dequantize_bytes(dtype_of(c->is_w_signed),
                        t->terms,
                        t->w + i * t->terms,
                        t->w_scales[i],
                        t->w_zeros[i],
                        w + i * t->terms);
    bias[i] = (float)t->bias[i] * t->bias_scales[i];
  }
  om_conv_run_f32(ctx, c->pass, x, w, c->bias ? bias : NULL, y, scratch);
  free(scratch);
}

static void run_bytes(om_ctx *ctx, const om_conv_bytes *c) {
  const size_t bytes = om_conv_bytes_scratch(c->pass, c->floats != NULL);
  void *scratch = aligned_alloc(64, om_size_align(bytes + 1, 64));
  assert_non_null(scratch);
  om_conv_bytes_run(ctx, c, scratch);
  free(scratch);
}

/* No quotient is further from the scaled sum than the channel's limit leaves. */
static void check_limits(const char *name,
                         const tensors *t,
                         const float *quotients,
                         uint32_t *sums) {
  static int16_t roundings[MOST_W];
  const size_t elems = t->y_count / t->channels;
  om_doubt_list_roundings(t->terms, roundings);
  for (size_t i = 0; i < t->y_count; ++i) {
    const size_t channel = i / elems;
    const double factor =
        (double)t->floats.x_scale * (double)t->w_scales[channel] / (double)t->floats.y_scale;
    const double scaled = (double)(int32_t)sums[i] * factor;
    const double most = 0.5 - (double)om_doubt_limit(&t->conv, channel, t->terms, roundings);
    if (!(fabs(scaled - (double)quotients[i]) <= most)) fail_msg("%s: a limit is too wide", name);
    if (!(most < 0.25)) fail_msg("%s: everything is doubtful", name);
  }
}

/* y as the scaled sums round. */
static void check_rounded(const char *name, const tensors *t, const uint32_t *sums) {
  const om_conv_bytes *c = &t->conv;
  const size_t elems = t->y_count / t->channels;
  for (size_t i = 0; i < t->y_count; ++i) {
    uint8_t want;
    const float x = (float)(int32_t)sums[i] * t->factors[i / elems];
    om_quantize_bytes(dtype_of(c->is_y_signed), 1, &x, 1.0f, (float)c->y_zero, &want);
    if (c->y[i] != want) fail_msg("%s: %d at %zu is not %d", name, c->y[i], i, want);
  }
}

/* How many results of integers alone are others than those of floats. */
static size_t check(om_ctx *ctx, const conv_case *c) {
  static tensors t;
  static float floats[MOST_Y];
  static uint8_t want[MOST_Y], y[MOST_Y];
  static uint32_t sums[MOST_Y];
  const om_conv_pass pass = pass_of(c);
  size_t others = 0;
  fill(c, &pass, &t);
  run_floats(ctx, &t, floats);
  om_quantize_bytes(
      dtype_of(c->is_y_signed), t.y_count, floats, t.floats.y_scale, (float)c->y_zero, want);
  om_conv_bytes plain = t.conv;
  plain.sums = sums;
  run_bytes(ctx, &plain);
  t.conv.y = y;
  run_bytes(ctx, &t.conv);
  check_rounded(c->name, &t, sums);
  for (size_t i = 0; i < t.y_count; ++i) others += y[i] != want[i];
  t.conv.floats = &t.floats;
  run_bytes(ctx, &t.conv);
  for (size_t i = 0; i < t.y_count; ++i) {
    if (y[i] != want[i]) fail_msg("%s: %d is not %d", c->name, y[i], want[i]);
  }
  for (size_t i = 0; i < t.y_count; ++i) floats[i] = om_div(floats[i], t.floats.y_scale);
  check_limits(c->name, &t, floats, sums);
  return others;
}

static void bytes_are_those_of_floats(void **state) {
  static const conv_case cases[] = {
      {"few_terms", 1, 24, 40, 13, 11, 1, 1, 1, 0, false, true, false, 121, 0, false, true},
      {"a_block", 1, 32, 96, 10, 10, 1, 1, 1, 0, false, true, false, 0, 128, false, true},
      {"a_group", 1, 128, 64, 7, 9, 1, 1, 1, 0, true, true, true, -128, -128, false, true},
      {"groups", 1, 300, 48, 8, 8, 1, 1, 1, 0, true, true, true, 3, 5, false, false},
      {"windows", 1, 20, 33, 12, 15, 3, 1, 1, 1, false, true, false, 7, 99, false, true},
      {"strides", 2, 9, 16, 17, 20, 3, 2, 1, 1, false, false, false, 200, 30, true, true},
      {"zeros", 1, 40, 32, 9, 9, 1, 1, 1, 0, true, false, true, -5, 0, true, true},
      {"dilated", 1, 6, 17, 19, 18, 3, 1, 2, 2, true, true, false, 0, 77, false, false},
      {"alone", 32, 1, 1, 21, 26, 3, 1, 1, 1, false, true, false, 0, 0, false, true},
      {"alone_strides", 40, 1, 1, 22, 22, 3, 2, 1, 1, false, true, false, 0, 0, false, true},
      {"alone_wide", 17, 1, 1, 30, 31, 5, 1, 1, 2, true, true, true, -128, 0, true, true},
      {"alone_high", 9, 1, 1, 500, 3, 3, 1, 1, 1, false, true, false, 3, 7, false, true},
      {"alone_column", 3, 1, 1, 2000, 1, 3, 1, 1, 1, false, true, false, 3, 7, false, true},
      {"alone_small", 96, 1, 1, 7, 7, 3, 1, 1, 1, false, true, false, 10, 0, false, true},
  };
  om_error error;
  size_t others = 0;
  (void)state;
  om_error_clear(&error);
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    for (int round = 0; round < 8; ++round) others += check(&ctx, &cases[i]);
  }
  if (others == 0) fail_msg("integers alone have the same bits: nothing is shown");
}

/* Channels alone: rows that are parts of a vector, one, or several. */
static void windows_have_any_size(void **state) {
  om_error error;
  (void)state;
  om_error_clear(&error);
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  for (int64_t width = 5; width <= 70; width += width < 20 ? 1 : 7) {
    for (int64_t kind = 0; kind < 24; ++kind) {
      const conv_case c = {.name = "window",
                           .groups = 5,
                           .in_channels = 1,
                           .out_channels = 1,
                           .height = 5 + kind % 3 * 4,
                           .width = width,
                           .kernel = 2 + kind % 4,
                           .stride = 1 + kind % 3,
                           .dilation = kind % 5 == 4 && kind % 4 < 2 ? 2 : 1,
                           .pad = kind / 2 % 3,
                           .is_x_signed = kind / 4 % 2 != 0,
                           .is_w_signed = kind / 8 % 2 == 0,
                           .is_y_signed = kind / 3 % 2 != 0,
                           .x_zero = 9,
                           .has_bias = kind % 2 != 0};
      (void)check(&ctx, &c);
    }
  }
}

/* Scales may be anything: NaN, and 0 times infinity, become the byte 0 on every processor. */
static void factors_are_any_floats(void **state) {
  static tensors t;
  static uint8_t y[MOST_Y];
  static uint32_t sums[MOST_Y];
  static const float factors[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 0.0f};
  const conv_case c = {.name = "factors",
                       .groups = OM_COUNT_OF(factors),
                       .in_channels = 1,
                       .out_channels = 1,
                       .height = 9,
                       .width = 12,
                       .kernel = 3,
                       .stride = 1,
                       .dilation = 1,
                       .pad = 1,
                       .is_w_signed = true,
                       .x_zero = 128,
                       .y_zero = 3};
  const om_conv_pass pass = pass_of(&c);
  om_error error;
  (void)state;
  om_error_clear(&error);
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  fill(&c, &pass, &t);
  memcpy(t.factors, factors, sizeof factors);
  for (size_t i = 0; i < t.x_count; i += 2) memset(t.x + i, i / 54 % 2 == 0 ? 128 : 77, 2);
  om_conv_bytes plain = t.conv;
  plain.sums = sums;
  run_bytes(&ctx, &plain);
  t.conv.y = y;
  run_bytes(&ctx, &t.conv);
  check_rounded(c.name, &t, sums);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_are_those_of_floats),
      cmocka_unit_test(windows_have_any_size),
      cmocka_unit_test(factors_are_any_floats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
