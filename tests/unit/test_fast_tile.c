/* Tiles of every width of vectors that this processor has, against double precision: all heights,
 * full and partial panels, taps inside and outside, sums added to others; Winograd's sums. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/fast/om_tile.h"

enum { PLACES = 20, DEPTH = 7, TAPS = 5, MANY_TAPS = 30, CHANNELS = 45, GUARD = -7 };

static float x[PLACES * CHANNELS];
static float w[MANY_TAPS * CHANNELS * 2];
static float y[OM_TILE_ROWS][CHANNELS + 1];
static float bias[CHANNELS];
static const float zeros[CHANNELS];
static om_tile_tap taps[MANY_TAPS];
static const om_fast_epilogue none = {.scale = 1.0f};

static void fill(float *to, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    to[i] = (float)(int32_t)seed * 0x1p-31f;
  }
}

/* Rows at places 0, 1, ... of `depth` elements each; tap i is i - 2 places further. */
static om_tile make_tile(size_t rows, size_t depth, size_t tap_count) {
  om_tile t = {.rows = rows,
               .x = x,
               .has_outside = true,
               .taps = taps,
               .tap_count = tap_count,
               .depth = depth,
               .in = {1, 1, PLACES},
               .zeros = zeros,
               .bias = bias,
               .epilogue = &none};
  for (size_t i = 0; i < tap_count; ++i) {
    taps[i] =
        (om_tile_tap){.offset = ((int64_t)i - 2) * (int64_t)depth, .at = {0, 0, (int32_t)i - 2}};
  }
  for (size_t r = 0; r < rows; ++r) {
    t.x_at[r] = (int64_t)(r * depth);
    t.place[2][r] = (int32_t)r;
    t.y[r] = y[r];
  }
  return t;
}

static double clamped(const om_tile *t, double sum) {
  if (!t->is_clamped) return sum;
  return sum<(double)t->low ? (double)t->low : sum>(double) t->high ? (double)t->high : sum;
}

static double wanted(const om_tile *t, size_t row, size_t col, bool is_apart) {
  double sum = (double)bias[col] + (t->adds ? (double)GUARD : 0.0);
  if (t->has_residual) sum += (double)t->residual[row][col];
  for (size_t i = 0; i < t->tap_count; ++i) {
    const int64_t place = (int64_t)row + t->taps[i].at[2];
    if (place < 0 || place >= PLACES) continue;
    for (size_t k = 0; k < (is_apart ? 1 : t->depth); ++k) {
      const size_t at = (size_t)place * (is_apart ? CHANNELS : t->depth) + (is_apart ? col : k);
      sum += (double)x[at] * (double)w[(i * (is_apart ? 1 : t->depth) + k) * t->w_step + col];
    }
  }
  return clamped(t, sum);
}

static void check(const om_tile *t, om_tile_fn fn, size_t rows, bool is_apart) {
  for (size_t r = 0; r < OM_TILE_ROWS; ++r) {
    for (size_t c = 0; c <= CHANNELS; ++c) y[r][c] = GUARD;
  }
  fn(t);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < t->cols; ++c) {
      const double difference = fabs((double)y[r][c] - wanted(t, r, c, is_apart));
      if (!(difference < 1e-5)) fail_msg("row %zu of %zu, column %zu: %g", r, rows, c, difference);
    }
    for (size_t c = t->cols; c <= CHANNELS; ++c) assert_true(y[r][c] == (float)GUARD);
  }
  for (size_t r = rows; r < OM_TILE_ROWS; ++r) assert_true(y[r][0] == (float)GUARD);
}

static void check_panels(const om_tile_set *set) {
  for (size_t i = 0; i < OM_TILE_HEIGHTS && set->heights[i] > 0; ++i) {
    for (size_t cols = 1; cols <= 2 * set->lanes; ++cols) {
      om_tile t = make_tile(set->heights[i], DEPTH, TAPS);
      const bool is_narrow = cols <= set->lanes;
      t.w = w;
      t.w_step = is_narrow ? set->lanes : 2 * set->lanes;
      t.cols = cols;
      check(&t, is_narrow ? set->narrow[i] : set->wide[i], set->heights[i], false);
      t.is_clamped = true;
      t.low = -0.25f;
      t.high = 0.5f;
      check(&t, is_narrow ? set->narrow[i] : set->wide[i], set->heights[i], false);
      t.adds = true; /* to the guards */
      t.low += (float)GUARD;
      t.high += (float)GUARD;
      check(&t, is_narrow ? set->narrow[i] : set->wide[i], set->heights[i], false);
      t.has_residual = true;
      for (size_t r = 0; r < set->heights[i]; ++r) t.residual[r] = x + 3 * r;
      check(&t, is_narrow ? set->narrow[i] : set->wide[i], set->heights[i], false);
    }
  }
}

static void check_apart(const om_tile_set *set) {
  for (size_t cols = set->lanes; cols <= CHANNELS; ++cols) {
    for (size_t count = TAPS; count <= MANY_TAPS; count += MANY_TAPS - TAPS) {
      for (size_t i = 0; i < OM_COUNT_OF(set->apart); ++i) {
        om_tile t = make_tile(set->apart_heights[i], CHANNELS, count);
        t.w = w;
        t.w_step = cols;
        t.cols = cols;
        check(&t, set->apart[i], set->apart_heights[i], true);
      }
    }
    for (size_t i = 0; i < OM_COUNT_OF(set->inside); ++i) {
      om_tile t = make_tile(set->inside_heights[i], CHANNELS, TAPS);
      for (size_t k = 0; k < TAPS; ++k) { /* places 0 to 4: none is outside */
        taps[k].at[2] += 2;
        taps[k].offset += 2 * CHANNELS;
      }
      t.w = w;
      t.w_step = cols;
      t.cols = cols;
      check(&t, set->inside[i], set->inside_heights[i], true);
    }
  }
}

static void tiles_add_their_terms(void **state) {
  (void)state;
  fill(x, OM_COUNT_OF(x), 1);
  fill(w, OM_COUNT_OF(w), 2);
  fill(bias, OM_COUNT_OF(bias), 3);
  for (size_t lanes = 4; lanes <= 16; lanes *= 2) {
    const om_tile_set *set = om_tile_set_for(lanes);
    assert_non_null(set);
    check_panels(set);
    check_apart(set);
  }
  assert_null(om_tile_set_for(3));
}

static void each_epilogue_finishes(void **state) {
  static const struct {
    om_fast_activation activation;
    float alpha, beta;
    double values[4]; /* of -3, -0.5, 0.5, 3 */
  } cases[] = {
      {OM_FAST_NONE, 0, 0, {-3, -0.5, 0.5, 3}},
      {OM_FAST_RELU, 0, 0, {0, 0, 0.5, 3}},
      {OM_FAST_LEAKY_RELU, 0.5f, 0, {-1.5, -0.25, 0.5, 3}},
      {OM_FAST_CLIP, -1, 2, {-1, -0.5, 0.5, 2}},
      {OM_FAST_SIGMOID,
       0,
       0,
       {0.047425873177566781, 0.37754066879814541, 0.62245933120185459, 0.95257412682243336}},
      {OM_FAST_TANH,
       0,
       0,
       {-0.99505475368673046, -0.46211715726000979, 0.46211715726000979, 0.99505475368673046}},
      {OM_FAST_GELU,
       0,
       0,
       {-0.0040496940948850339, -0.15426876936299344, 0.34573123063700656, 2.995950305905115}},
      {OM_FAST_HARD_SWISH, 1.0f / 6, 0.5f, {0, -0.20833333333333334, 0.29166666666666669, 3}},
      {OM_FAST_HARD_SIGMOID, 0.25f, 0.5f, {0, 0.375, 0.625, 1}},
  };
  static const float inputs[] = {-3, -0.5f, 0.5f, 3};
  static float residual[OM_TILE_COLS];
  (void)state;
  for (size_t i = 0; i < OM_COUNT_OF(cases); ++i) {
    for (size_t lanes = 4; lanes <= 16; lanes *= 2) {
      const om_fast_epilogue e = {.scale = 2.0f,
                                  .has_residual = true,
                                  .activation = cases[i].activation,
                                  .alpha = cases[i].alpha,
                                  .beta = cases[i].beta};
      om_tile t = make_tile(1, DEPTH, TAPS);
      t.cols = OM_TILE_COLS - 1;
      t.epilogue = &e;
      t.residual[0] = residual;
      t.residual_step = (int64_t)(i % 2); /* one for all columns, or one for each */
      t.low = e.activation == OM_FAST_RELU ? 0 : e.activation == OM_FAST_CLIP ? e.alpha : -INFINITY;
      t.high = e.activation == OM_FAST_CLIP ? e.beta : INFINITY;
      for (size_t c = 0; c < OM_TILE_COLS; ++c) {
        residual[c] = t.residual_step ? (float)c : 4.0f;
        y[0][c] = (inputs[c % 4] - (t.residual_step ? (float)c : 4.0f)) / 2.0f;
      }
      om_tile_set_for(lanes)->finish(&t, 1);
      for (size_t c = 0; c < t.cols; ++c) {
        const double difference = fabs((double)y[0][c] - cases[i].values[c % 4]);
        if (!(difference < 1e-6)) fail_msg("activation %zu, column %zu: %g", i, c, difference);
      }
    }
  }
}

/* What each weight of a window of three adds to the four weights of Winograd's form. */
static const double spread_of[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

static double spread_weight(const double *window, size_t sum) {
  double result = 0.0;
  for (size_t i = 0; i < 9; ++i) {
    result += spread_of[sum / 4][i / 3] * spread_of[sum % 4][i % 3] * window[i];
  }
  return result;
}

/* A window of its own for each channel, over 4x4 places; the result at (1, 0) is not wanted. */
static void check_block(const om_tile_set *set, size_t channels) {
  static float sums[OM_TILE_SUMS * CHANNELS];
  const float *places[OM_TILE_SUMS];
  float *results[4] = {y[0], y[1], NULL, y[3]};
  const om_tile t = {
      .bias = bias, .cols = channels, .is_clamped = true, .low = -1.0f, .high = 2.0f};
  for (size_t i = 0; i < OM_TILE_SUMS; ++i) places[i] = x + i * CHANNELS;
  for (size_t r = 0; r < 4; ++r) {
    for (size_t c = 0; c <= CHANNELS; ++c) y[r][c] = GUARD;
  }
  set->spread(places, channels, sums, CHANNELS);
  for (size_t i = 0; i < OM_TILE_SUMS * channels; ++i) {
    const size_t c = i % channels, sum = i / channels;
    double window[9];
    for (size_t k = 0; k < 9; ++k) window[k] = (double)w[k * CHANNELS + c];
    sums[sum * CHANNELS + c] *= (float)spread_weight(window, sum);
  }
  set->collect(&t, results, sums, CHANNELS);
  for (size_t r = 0; r < 4; ++r) {
    for (size_t c = 0; c <= CHANNELS; ++c) {
      if (r == 2 || c >= channels) {
        assert_true(y[r][c] == (float)GUARD);
        continue;
      }
      double sum = (double)bias[c];
      for (size_t k = 0; k < 9; ++k) {
        const size_t place = (r / 2 + k / 3) * 4 + r % 2 + k % 3;
        sum += (double)x[place * CHANNELS + c] * (double)w[k * CHANNELS + c];
      }
      const double difference = fabs((double)y[r][c] - clamped(&t, sum));
      if (!(difference < 2e-6)) fail_msg("result %zu, channel %zu: %g", r, c, difference);
    }
  }
}

static void blocks_give_the_direct_sums(void **state) {
  (void)state;
  fill(x, OM_COUNT_OF(x), 4);
  fill(w, OM_COUNT_OF(w), 5);
  fill(bias, OM_COUNT_OF(bias), 6);
  for (size_t lanes = 4; lanes <= 16; lanes *= 2) {
    const om_tile_set *set = om_tile_set_for(lanes);
    for (size_t channels = lanes; channels <= 2 * lanes; ++channels) check_block(set, channels);
  }
}

/* Gelu's quotient over its range and beyond, and where it takes the limit. */
static void gelu_is_near(void **state) {
  enum { COUNT = 4001 };
  static float row[COUNT];
  const om_fast_epilogue e = {.scale = 1.0f, .activation = OM_FAST_GELU};
  (void)state;
  for (size_t lanes = 4; lanes <= 16; lanes *= 2) {
    om_tile t = {.cols = COUNT, .epilogue = &e};
    t.y[0] = row;
    for (int i = 0; i < COUNT; ++i) row[i] = (float)(i - COUNT / 2) / 200.0f;
    row[0] = -INFINITY;
    row[1] = INFINITY;
    row[2] = NAN;
    row[3] = -1e30f;
    row[4] = 1e30f;
    om_tile_set_for(lanes)->finish(&t, 1);
    assert_true(isnan(row[0]) && row[1] > 0 && isinf(row[1]) && isnan(row[2]));
    assert_true(row[3] == 0.0f && row[4] == 1e30f);
    for (int i = 5; i < COUNT; ++i) {
      const double from = (double)((float)(i - COUNT / 2) / 200.0f);
      const double difference = fabs((double)row[i] - 0.5 * from * (1.0 + erf(from * sqrt(0.5))));
      if (!(difference < 2e-6)) fail_msg("%g: %g", from, difference);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_add_their_terms),
      cmocka_unit_test(each_epilogue_finishes),
      cmocka_unit_test(gelu_is_near),
      cmocka_unit_test(blocks_give_the_direct_sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
