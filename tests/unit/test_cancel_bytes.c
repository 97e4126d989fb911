/* Kernels of bytes end between the pieces of their scratch slots when a run is cancelled: the wish
 * lies where the first result is written. One thread, so that the pieces come in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/om_thread.h"
#include "cpu/exact/om_conv_bytes.h"
#include "cpu/exact/om_matmul_bytes.h"

enum { MOST = 128 * 64, MARK = 0x5a5a5a5a };

static uint32_t y[MOST];
static uint8_t ones[9 * MOST];
static const int32_t zeros[MOST];

static om_ctx begin(om_error *error) {
  om_error_clear(error);
  memset(ones, 1, sizeof ones);
  for (size_t i = 0; i < MOST; ++i) y[i] = i == 0 ? 0 : MARK;
  return (om_ctx){.allocator = om_default_allocator(),
                  .error = error,
                  .thread_count = 1,
                  .cancel = (const om_cancel *)(const void *)y};
}

/* The piece of the first result is written as far as `written`, and `next` is not. */
static void check_end(uint32_t first, size_t written, size_t next) {
  assert_int_equal(y[0], first);
  assert_int_equal(y[written], first);
  for (size_t i = next; i < MOST; ++i) assert_int_equal(y[i], MARK);
}

static void run_conv(int64_t groups, int64_t in_channels, int64_t width, int64_t kernel) {
  om_error error;
  om_ctx ctx = begin(&error);
  const om_conv_axis one = om_conv_axis_forward(1, 1, 1, 1, 1, 0);
  const om_conv_axis y_axis = om_conv_axis_forward(kernel, 1, kernel, 1, 1, 0);
  const om_conv_pass pass = {
      .batch = 1,
      .groups = groups,
      .in_channels = in_channels,
      .out_channels = 1,
      .axes = {one, y_axis, om_conv_axis_forward(width + kernel - 1, width, kernel, 1, 1, 0)}};
  void *scratch = aligned_alloc(64, om_size_align(om_conv_bytes_scratch(&pass, false) + 1, 64));
  assert_non_null(scratch);
  om_conv_bytes_run(
      &ctx,
      &(om_conv_bytes){.pass = &pass, .x = ones, .w = ones, .w_zeros = zeros, .sums = y},
      scratch);
  free(scratch);
}

static void convolutions_end(void **state) {
  (void)state;
  run_conv(1, 8, MOST, 1);
  check_end(8, 63, 64);
}

static void depthwise_ones_end(void **state) {
  (void)state;
  run_conv(128, 1, 64, 3);
  check_end(9, 63, 64);
}

static void products_end(void **state) {
  om_error error;
  om_ctx ctx = begin(&error);
  const om_matmul_bytes p = {.m = {.rows = 1,
                                   .depth = 7,
                                   .cols = MOST,
                                   .a_row_stride = 7,
                                   .a_depth_stride = 1,
                                   .b_depth_stride = MOST,
                                   .b_col_stride = 1},
                             .a = ones,
                             .b = ones,
                             .a_zeros = zeros,
                             .b_zeros = zeros,
                             .b_zero_count = MOST,
                             .y = y};
  void *scratch = aligned_alloc(64, om_size_align(om_matmul_bytes_scratch(&p.m, 1) + 1, 64));
  (void)state;
  assert_non_null(scratch);
  om_matmul_bytes_run(&ctx, &p, 1, scratch);
  free(scratch);
  check_end(7, 31, 32);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_end),
      cmocka_unit_test(depthwise_ones_end),
      cmocka_unit_test(products_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
