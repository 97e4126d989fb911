/* Long sums of fast products and convolutions, whose terms all have one sign: the error that
 * additions leave grows with the length of a chain. Against double precision; lengths around those
 * at which a sum is cut, and results that fill no panel. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu/fast/om_fast.h"

#define LIMIT 1e-6 /* of scaled errors; one chain of 9216 terms has 1e-5 */

typedef struct rig {
  om_error error;
  om_ctx ctx;
  om_fast *fast;
} rig;

static void open_rig(rig *r) {
  om_error_clear(&r->error);
  r->ctx = (om_ctx){.allocator = om_default_allocator(), .error = &r->error, .thread_count = 1};
  r->fast = NULL;
  assert_int_equal(om_fast_create(&r->ctx, (om_fast_lender){0}, &r->fast), OM_OK);
}

static float *random_values(size_t count, uint32_t seed) {
  float *values = malloc(count * sizeof *values);
  assert_non_null(values);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = 0.5f + (float)(seed >> 8) * 0x1p-25f;
  }
  return values;
}

static void run(rig *r, om_fast_kernel *kernel, const om_fast_operands *operands) {
  om_fast_operands o = *operands;
  o.scratch = aligned_alloc(64, om_size_align(om_fast_scratch_bytes(kernel) + 1, 64));
  assert_non_null(o.scratch);
  assert_int_equal(om_fast_run(&r->ctx, kernel, &o), OM_OK);
  free(o.scratch);
  om_fast_kernel_destroy(&r->ctx, kernel);
}

/* With a cut that would show in a part of a sum. */
static void check_product(rig *r, int64_t rows, int64_t depth, int64_t cols) {
  float *a = random_values((size_t)(rows * depth), 1);
  float *b = random_values((size_t)(cols * depth), 2);
  float *bias = random_values((size_t)cols, 3);
  float *y = calloc((size_t)(rows * cols), sizeof *y);
  om_fast_kernel *kernel = NULL;
  const om_fast_product p = {.rank = 2,
                             .a_dims = {rows, depth},
                             .a_strides = {depth, 1},
                             .b_dims = {depth, cols},
                             .b_strides = {cols, 1},
                             .y_dims = {rows, cols},
                             .b = {.data = b},
                             .epilogue = {.scale = 1.0f,
                                          .has_bias = true,
                                          .activation = OM_FAST_CLIP,
                                          .alpha = (float)depth * 0.3f,
                                          .beta = 1e6f}};
  assert_non_null(y);
  assert_int_equal(om_fast_product_create(&r->ctx, r->fast, &p, &kernel), OM_OK);
  run(r, kernel, &(om_fast_operands){.x = a, .w = b, .bias = bias, .y = y});
  for (int64_t at = 0; at < rows * cols; ++at) {
    double sum = (double)bias[at % cols];
    for (int64_t k = 0; k < depth; ++k) {
      sum += (double)a[at / cols * depth + k] * (double)b[k * cols + at % cols];
    }
    const double error = fabs((double)y[at] - sum) / sum;
    if (!(error < LIMIT)) {
      fail_msg("%dx%dx%d, result %d: %g", (int)rows, (int)depth, (int)cols, (int)at, error);
    }
  }
  free(a);
  free(b);
  free(bias);
  free(y);
}

static void products_are_near(void **state) {
  static const int64_t depths[] = {1, 255, 256, 257, 511, 513, 1000, 9216};
  rig r;
  (void)state;
  open_rig(&r);
  for (size_t i = 0; i < OM_COUNT_OF(depths); ++i) check_product(&r, 17, depths[i], 45);
  om_fast_destroy(&r.ctx, r.fast);
}

/* One row is no number: its results are none, either, whatever they are cut to. */
static void a_cut_leaves_nan(void **state) {
  enum { DEPTH = 16, COLS = 24 };
  const float bias[COLS] = {0};
  float w[DEPTH * COLS];
  float x[2 * DEPTH];
  float y[2 * COLS];
  rig r;
  om_fast_kernel *kernel = NULL;
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(w); ++i) w[i] = 1.0f;
  for (size_t i = 0; i < OM_COUNT_OF(x); ++i) x[i] = i == 3 ? NAN : 9.0f;
  open_rig(&r);
  const om_fast_product p = {.rank = 2,
                             .a_dims = {2, DEPTH},
                             .a_strides = {DEPTH, 1},
                             .b_dims = {DEPTH, COLS},
                             .b_strides = {COLS, 1},
                             .y_dims = {2, COLS},
                             .b = {.data = w},
                             .epilogue = {.scale = 1.0f,
                                          .has_bias = true,
                                          .activation = OM_FAST_CLIP,
                                          .alpha = 0.0f,
                                          .beta = 6.0f}};
  assert_int_equal(om_fast_product_create(&r.ctx, r.fast, &p, &kernel), OM_OK);
  run(&r, kernel, &(om_fast_operands){.x = x, .w = w, .bias = bias, .y = y});
  for (size_t i = 0; i < COLS; ++i) assert_true(isnan(y[i]) && y[COLS + i] == 6.0f);
  om_fast_destroy(&r.ctx, r.fast);
}

/* Rows and columns around those at which work is cut into pieces. */
static void pieces_hold_all_results(void **state) {
  static const int64_t rows[] = {1, 11, 12, 13, 23, 24, 35, 36, 49, 97, 108, 109, 241};
  static const int64_t cols[] = {1, 33, 160, 300};
  rig r;
  (void)state;
  open_rig(&r);
  for (size_t i = 0; i < OM_COUNT_OF(rows); ++i) {
    for (size_t k = 0; k < OM_COUNT_OF(cols); ++k) {
      check_product(&r, rows[i], 20, cols[k]);
      check_product(&r, rows[i], 600, cols[k]);
    }
  }
  om_fast_destroy(&r.ctx, r.fast);
}

enum { MOST_EXTENT = 9, OUT = 37 };

/* 3x3 with pads over `channels`, the channels last. */
static void check_convolution(rig *r, int64_t extent, int64_t channels) {
  static float y[MOST_EXTENT * MOST_EXTENT * OUT];
  float *x = random_values((size_t)(extent * extent * channels), 1);
  float *w = random_values((size_t)(OUT * channels * 9), 2);
  om_fast_kernel *kernel = NULL;
  const om_fast_conv c = {.is_channels_last = true,
                          .batch = 1,
                          .groups = 1,
                          .in_channels = channels,
                          .out_channels = OUT,
                          .in = {1, extent, extent},
                          .out = {1, extent, extent},
                          .kernel = {1, 3, 3},
                          .stride = {1, 1, 1},
                          .dilation = {1, 1, 1},
                          .pad_begin = {0, 1, 1},
                          .w = {.data = w},
                          .epilogue = {.scale = 1.0f}};
  assert_int_equal(om_fast_conv_create(&r->ctx, r->fast, &c, &kernel), OM_OK);
  run(r, kernel, &(om_fast_operands){.x = x, .w = w, .y = y});
  for (int64_t at = 0; at < extent * extent * OUT; ++at) {
    const int64_t row = at / OUT / extent, col = at / OUT % extent;
    double sum = 0.0;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t from = row + tap / 3 - 1, from_col = col + tap % 3 - 1;
      if (from < 0 || from >= extent || from_col < 0 || from_col >= extent) continue;
      for (int64_t k = 0; k < channels; ++k) {
        sum += (double)x[(from * extent + from_col) * channels + k] *
               (double)w[(at % OUT * channels + k) * 9 + tap];
      }
    }
    const double error = fabs((double)y[at] - sum) / sum;
    if (!(error < LIMIT)) {
      fail_msg("%d channels of %d, result %d: %g", (int)channels, (int)extent, (int)at, error);
    }
  }
  free(x);
  free(w);
}

/* The larger extent goes by Winograd's sums, where there are channels enough. */
static void convolutions_are_near(void **state) {
  static const int64_t channels[] = {1, 17, 28, 29, 64, 300, 1024};
  rig r;
  (void)state;
  open_rig(&r);
  for (size_t i = 0; i < OM_COUNT_OF(channels); ++i) {
    check_convolution(&r, 5, channels[i]);
    check_convolution(&r, MOST_EXTENT, channels[i]);
  }
  om_fast_destroy(&r.ctx, r.fast);
}

/* 3x3 over each channel alone, `height` by `width` of them. */
static void check_depthwise(rig *r, int64_t height, int64_t width, int64_t channels) {
  const size_t elems = (size_t)(height * width * channels);
  float *x = random_values(elems, 1);
  float *w = random_values((size_t)channels * 9, 2);
  float *y = calloc(elems, sizeof *y);
  om_fast_kernel *kernel = NULL;
  const om_fast_conv c = {.is_channels_last = true,
                          .batch = 1,
                          .groups = channels,
                          .in_channels = channels,
                          .out_channels = channels,
                          .in = {1, height, width},
                          .out = {1, height, width},
                          .kernel = {1, 3, 3},
                          .stride = {1, 1, 1},
                          .dilation = {1, 1, 1},
                          .pad_begin = {0, 1, 1},
                          .w = {.data = w},
                          .epilogue = {.scale = 1.0f}};
  assert_non_null(y);
  assert_int_equal(om_fast_conv_create(&r->ctx, r->fast, &c, &kernel), OM_OK);
  run(r, kernel, &(om_fast_operands){.x = x, .w = w, .y = y});
  for (int64_t at = 0; at < (int64_t)elems; ++at) {
    const int64_t row = at / channels / width, col = at / channels % width, k = at % channels;
    double sum = 0.0;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t from = row + tap / 3 - 1, from_col = col + tap % 3 - 1;
      if (from < 0 || from >= height || from_col < 0 || from_col >= width) continue;
      sum += (double)x[(from * width + from_col) * channels + k] * (double)w[k * 9 + tap];
    }
    const double error = fabs((double)y[at] - sum) / sum;
    if (!(error < LIMIT)) {
      fail_msg("%d channels of %dx%d: %g", (int)channels, (int)height, (int)width, error);
    }
  }
  free(x);
  free(w);
  free(y);
}

/* Lines that pieces end with, and some too long for it. */
static void depthwise_pieces_hold_all_results(void **state) {
  static const int64_t extents[][2] = {{1, 1}, {7, 7}, {14, 13}, {3, 240}, {2, 500}, {60, 1}};
  rig r;
  (void)state;
  open_rig(&r);
  for (size_t i = 0; i < OM_COUNT_OF(extents); ++i) {
    check_depthwise(&r, extents[i][0], extents[i][1], 20);
    check_depthwise(&r, extents[i][0], extents[i][1], 24);
    check_depthwise(&r, extents[i][0], extents[i][1], 500);
  }
  om_fast_destroy(&r.ctx, r.fast);
}

typedef struct told {
  const float *weights;
  size_t count;
  size_t bytes;
} told;

static void hear(const void *lender, const void *data, size_t bytes) {
  told *t = *(told *const *)lender;
  assert_ptr_equal((const char *)data, (const char *)t->weights + t->bytes);
  t->count += 1;
  t->bytes += bytes;
}

/* Large weights whose columns lie one after the other are let go panel by panel; others, and those
 * of a caller who may change them, are not. */
static void tells_of_packed_panels(void **state) {
  enum { DEPTH = 40000, COLS = 70 };
  rig r;
  told t = {.weights = random_values((size_t)DEPTH * COLS, 1)};
  told *lender = &t;
  (void)state;
  open_rig(&r);
  om_fast_destroy(&r.ctx, r.fast);
  assert_int_equal(om_fast_create(&r.ctx, (om_fast_lender){hear, &lender}, &r.fast), OM_OK);
  om_fast_product p = {.rank = 2,
                       .a_dims = {1, DEPTH},
                       .a_strides = {DEPTH, 1},
                       .b_dims = {DEPTH, COLS},
                       .b_strides = {COLS, 1},
                       .y_dims = {1, COLS},
                       .b = {.data = t.weights, .is_kept = true},
                       .epilogue = {.scale = 1.0f}};
  for (int i = 0; i < 3; ++i) {
    om_fast_kernel *kernel = NULL;
    if (i > 0) memcpy(p.b_strides, (int64_t[]){1, DEPTH}, 2 * sizeof(int64_t));
    p.b.is_kept = i != 1;
    assert_int_equal(om_fast_product_create(&r.ctx, r.fast, &p, &kernel), OM_OK);
    om_fast_kernel_destroy(&r.ctx, kernel);
    if (i < 2) assert_int_equal(t.count, 0);
  }
  assert_true(t.count > 1);
  assert_true(t.bytes <= (size_t)DEPTH * COLS * sizeof(float));
  assert_true(t.bytes >= (size_t)DEPTH * (COLS - 6) * sizeof(float));
  om_fast_destroy(&r.ctx, r.fast);
  free((void *)(uintptr_t)t.weights);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_are_near),
      cmocka_unit_test(a_cut_leaves_nan),
      cmocka_unit_test(pieces_hold_all_results),
      cmocka_unit_test(convolutions_are_near),
      cmocka_unit_test(depthwise_pieces_hold_all_results),
      cmocka_unit_test(tells_of_packed_panels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
