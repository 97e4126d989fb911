/* The exact convolution's pass where kernels are larger than what they meet: groups of terms that
 * only padding would feed are left out, and the bits are those of the whole sum (docs/exact.md,
 * "Products"). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/om_base.h"
#include "cpu/exact/om_conv.h"

enum { BLOCK = 32, GROUP = 128, MOST_WEIGHTS = 20000, MOST_RESULTS = 20000, MOST_INPUTS = 2000 };

static float x[MOST_INPUTS], w[MOST_WEIGHTS], y[MOST_RESULTS], want[MOST_RESULTS];

static float drawn(uint32_t i) {
  i = (i ^ i >> 16) * 0x7feb352du;
  i = (i ^ i >> 15) * 0x846ca68bu;
  return (float)(int32_t)(i ^ i >> 16) * 0x1p-31f;
}

/* The input's element under term k of result o (places of a pass); 0 outside. */
static float element(const om_conv_pass *p, int64_t image, int64_t group, int64_t k, int64_t o) {
  const om_conv_axis *a = p->axes;
  int64_t at[OM_CONV_AXES];
  for (int d = OM_CONV_AXES - 1; d >= 0; --d) {
    at[d] = o % a[d].count * a[d].in_step + a[d].tap_first + k % a[d].taps * a[d].tap_step;
    if (at[d] < 0 || at[d] >= a[d].in) return 0.0f;
    o /= a[d].count;
    k /= a[d].taps;
  }
  const int64_t channel = (image * p->groups + group) * p->in_channels + k;
  return x[((channel * a[0].in + at[0]) * a[1].in + at[1]) * a[2].in + at[2]];
}

/* As the definition has it: chains of 32 products, four of them to a group. */
static float sum_of(const om_conv_pass *p, int64_t image, int64_t channel, int64_t o) {
  const int64_t terms = om_conv_terms(p);
  float total = 0.0f;
  for (int64_t k = 0; k < terms; k += GROUP) {
    float group = 0.0f;
    for (int64_t b = k; b < terms && b < k + GROUP; b += BLOCK) {
      float chain = 0.0f;
      for (int64_t i = b; i < terms && i < b + BLOCK; ++i) {
        const float product =
            element(p, image, channel / p->out_channels, i, o) * w[channel * terms + i];
        chain = chain + product;
      }
      group = group + chain;
    }
    total = total + group;
  }
  return total;
}

static int64_t place_of(const om_conv_axis *a, int64_t o) {
  int64_t place = 0, unit = 1;
  for (int d = OM_CONV_AXES - 1; d >= 0; --d) {
    place += (o % a[d].count * a[d].out_step + a[d].out_first) * unit;
    unit *= a[d].out;
    o /= a[d].count;
  }
  return place;
}

static void run(const om_conv_pass *p, const float *from, const float *by, float *to) {
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error, .thread_count = 1};
  void *scratch = om_new_bytes(&ctx, om_conv_scratch_bytes(p, sizeof(float)), 1);
  assert_non_null(scratch);
  om_conv_run_f32(&ctx, p, from, by, NULL, to, scratch);
  om_delete(&ctx, scratch);
}

static void check(const om_conv_pass *p) {
  const om_conv_axis *a = p->axes;
  const int64_t count = a[0].count * a[1].count * a[2].count;
  const int64_t plane = a[0].out * a[1].out * a[2].out;
  const int64_t channels = p->groups * p->out_channels;
  assert_true(channels * om_conv_terms(p) <= MOST_WEIGHTS && channels * plane <= MOST_RESULTS);
  memset(y, 0, sizeof y);
  memset(want, 0, sizeof want);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t o = 0; o < count; ++o) want[c * plane + place_of(a, o)] = sum_of(p, 0, c, o);
  }
  run(p, x, w, y);
  for (int64_t i = 0; i < channels * plane; ++i) {
    if (isnan(want[i]) && isnan(y[i])) continue; /* of any bits */
    assert_memory_equal(&want[i], &y[i], sizeof *y);
  }
}

static const om_conv_axis one = {.in = 1,
                                 .out = 1,
                                 .kernel = 1,
                                 .count = 1,
                                 .in_step = 1,
                                 .out_step = 1,
                                 .taps = 1,
                                 .tap_step = 1,
                                 .kernel_step = 1};

/* Kernels before, across and behind the input; strides, dilations, and passes that go back. */
static void the_bits_are_those_of_the_whole_sum(void **state) {
  (void)state;
  for (uint32_t i = 0; i < MOST_INPUTS; ++i) x[i] = drawn(i);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < MOST_WEIGHTS; ++i) w[i] = drawn(i + 77777);
    if (round == 1) w[5] = INFINITY; /* times a zero outside it is no number */
    check(&(om_conv_pass){1, 1, 1, 1, {one, one, om_conv_axis_forward(3, 702, 700, 1, 1, 699)}});
    check(&(om_conv_pass){1, 1, 1, 8, {one, om_conv_axis_forward(3, 702, 700, 1, 1, 699), one}});
    check(&(om_conv_pass){1,
                          2,
                          3,
                          2,
                          {one,
                           om_conv_axis_forward(5, 20, 25, 2, 1, 29),
                           om_conv_axis_forward(6, 24, 31, 1, 3, 55)}});
    check(&(om_conv_pass){1,
                          1,
                          1,
                          8,
                          {om_conv_axis_forward(2, 6, 5, 1, 1, 4),
                           om_conv_axis_forward(7, 13, 7, 1, 1, 6),
                           om_conv_axis_forward(4, 12, 9, 1, 1, 8)}});
    check(
        &(om_conv_pass){1, 1, 2, 8, {one, one, om_conv_axis_transposed(4, 803, 800, 1, 1, 0, 0)}});
    check(&(om_conv_pass){1,
                          1,
                          2,
                          3,
                          {one,
                           om_conv_axis_transposed(3, 24, 20, 2, 1, 0, 1),
                           om_conv_axis_transposed(4, 63, 60, 1, 1, 0, 0)}});
    check(&(om_conv_pass){
        1,
        1,
        1,
        8,
        {one, one, om_conv_axis_forward(3, 9, 200, 1, 1, 400)}}); /* all of it outside */
  }
}

/* 300,000 results of as many taps, of which one element is met: 90 thousand million products, were
 * each tap looked at. */
static void taps_that_meet_nothing_cost_nothing(void **state) {
  enum { TAPS = 300000 };
  om_error error = {0};
  om_ctx ctx = {.allocator = om_default_allocator(), .error = &error};
  float *weights = om_new_bytes(&ctx, 2 * (size_t)TAPS, sizeof *weights);
  const float two = 2.0f;
  (void)state;
  assert_non_null(weights);
  float *results = weights + TAPS;
  for (uint32_t i = 0; i < TAPS; ++i) weights[i] = drawn(i);
  const clock_t begun = clock();
  run(&(om_conv_pass){1, 1, 1, 1, {one, om_conv_axis_transposed(1, TAPS, TAPS, 1, 1, 0, 0), one}},
      &two,
      weights,
      results);
  const double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
  for (uint32_t i = 0; i < TAPS; ++i) assert_true(results[i] == 2.0f * weights[i]);
  printf("# %.3f s\n", seconds);
  assert_true(seconds < 5.0); /* of the processor's time; under a sanitizer, too */
  om_delete(&ctx, weights);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bits_are_those_of_the_whole_sum),
      cmocka_unit_test(taps_that_meet_nothing_cost_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
