/* The primitives of exact mode: errors against double precision, special values, and the shaders'
 * division and square root against the processor's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/om_float16.h"
#include "base/om_thread.h"
#include "cpu/exact/om_elementwise.h"
#include "cpu/exact/om_exact_sum.h"
#include "cpu/exact/om_exact_trig.h"
#include "cpu/exact/om_extremes.h"
#include "harness/om_exact_portable.h"

static uint32_t next_bits(uint32_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

/* |got - want| in units in the last place of `want`; a subnormal wanted counts as zero. */
static double error_of(float got, double want) {
  int exponent = 0;
  if (isnan(want)) return om_is_nan(got) ? 0.0 : HUGE_VAL;
  if (fabs(want) < 0x1p-126) return fabsf(got) <= 0x1.00001p-126f ? 0.0 : HUGE_VAL;
  if (isinf((float)want) || om_is_inf(got)) {
    const bool is_near = fabs(want) > 0x1.fffff0p127;
    return got == (float)want || (is_near && fabsf(got) > 0x1.fffff0p127f) ? 0.0 : HUGE_VAL;
  }
  (void)frexp(want, &exponent);
  return fabs((double)got - want) / ldexp(1.0, exponent - 24);
}

typedef struct function_case {
  const char *name;
  float (*function)(float);
  double (*reference)(double);
  double low, high; /* of half of the arguments; the others are any bits */
  double limit;     /* units in the last place */
} function_case;

static double sigmoid(double x) {
  return 1.0 / (1.0 + exp(-x));
}

static double softplus(double x) {
  return fmax(x, 0.0) + log1p(exp(-fabs(x)));
}

static double sign(double x) {
  return isnan(x) ? x : (double)((x > 0.0) - (x < 0.0));
}

static const function_case functions[] = {
    {"exp", om_exp, exp, -90, 90, 1.2},
    {"ln", om_ln, log, 0.5, 2, 1.0},
    {"tanh", om_tanh, tanh, -5, 5, 1.5},
    {"erf", om_erf, erf, -4, 4, 2.0},
    {"sigmoid", om_sigmoid, sigmoid, -20, 20, 2.6},
    {"softplus", om_softplus, softplus, -20, 20, 2.6},
    {"sin", om_sin, sin, -300, 300, 2.8},
    {"cos", om_cos, cos, -300, 300, 2.8},
    {"expm1", om_expm1, expm1, -2, 2, 2.6},
    {"log1p", om_log1p, log1p, -0.9, 2, 2.6},
    {"sqrt", om_sqrt, sqrt, 0, 10, 0.5},
    {"tan", om_tan, tan, -300, 300, 5.0},
    {"asin", om_asin, asin, -1, 1, 3.5},
    {"acos", om_acos, acos, -1, 1, 3.5},
    {"atan", om_atan, atan, -3, 3, 2.0},
    {"sinh", om_sinh, sinh, -90, 90, 4.0},
    {"cosh", om_cosh, cosh, -90, 90, 3.0},
    {"asinh", om_asinh, asinh, -3, 3, 4.5},
    {"acosh", om_acosh, acosh, 1, 4, 4.5},
    {"atanh", om_atanh, atanh, -1, 1, 4.5},
    {"floor", om_floor, floor, -100, 100, 0.0},
    {"ceil", om_ceil, ceil, -100, 100, 0.0},
    {"round", om_round, rint, -100, 100, 0.0},
    {"sign", om_sign, sign, -1, 1, 0.0},
};

static void test_functions_are_near(void **unused) {
  uint32_t state = 12345;
  (void)unused;
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; ++f) {
    const function_case *c = &functions[f];
    for (uint32_t i = 0; i < 200000; ++i) {
      const double part = (double)next_bits(&state) / 4294967296.0;
      const uint32_t bits = next_bits(&state);
      float x = om_ftz(om_float(bits));
      if (i % 2) x = om_ftz((float)(c->low + (c->high - c->low) * part));
      const double error = error_of(c->function(x), c->reference((double)x));
      if (error > c->limit) {
        fail_msg(
            "%s(%.9g) is %.9g, off by %g units", c->name, (double)x, (double)c->function(x), error);
      }
    }
  }
}

static void test_pow_is_near(void **unused) {
  uint32_t state = 99;
  (void)unused;
  for (uint32_t i = 0; i < 600000; ++i) {
    const double a = (double)next_bits(&state) / 4294967296.0;
    const double b = (double)next_bits(&state) / 4294967296.0;
    float x = om_ftz(om_float(next_bits(&state)));
    float y = om_ftz(om_float(next_bits(&state)));
    if (i % 3 == 1) {
      x = om_abs(x);
      y = (float)((b - 0.5) * 4.0);
    } else if (i % 3 == 2) {
      x = (float)(a * 4.0);
      y = (float)((b - 0.5) * 200.0);
    }
    const double error = error_of(om_pow(x, y), pow((double)x, (double)y));
    if (error > 2.6) fail_msg("pow(%.9g, %.9g) is off by %g units", (double)x, (double)y, error);
  }
}

static void test_pow_special_values(void **unused) {
  static const float values[] = {
      0.0f,   -0.0f,      1.0f,         -1.0f,         2.0f,       -2.0f,      3.0f,      -3.0f,
      0.5f,   -0.5f,      2.5f,         1e30f,         -1e30f,     INFINITY,   -INFINITY, NAN,
      1e-30f, 8388609.0f, -16777217.0f, 4294967296.0f, 1.0000001f, 0.99999994f};
  const size_t count = sizeof values / sizeof values[0];
  (void)unused;
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < count; ++k) {
      const float got = om_pow(values[i], values[k]);
      const double want = pow((double)values[i], (double)values[k]);
      const bool same_sign = isnan(want) || !signbit(got) == !signbit(want);
      if (error_of(got, want) > 2.6 || !same_sign) {
        fail_msg("pow(%g, %g) is %g", (double)values[i], (double)values[k], (double)got);
      }
    }
  }
}

/* Quotients near ties, of any exponents, and special values. */
static void test_portable_division(void **unused) {
  uint32_t state = 777;
  (void)unused;
  for (uint32_t i = 0; i < 1500000; ++i) {
    uint32_t a = next_bits(&state);
    uint32_t b = next_bits(&state);
    if (i % 4 == 0) a = (a & 0xfffu) | 0x3f800000u;
    if (i % 8 == 0) b = a + (b & 3u);
    if (i % 16 == 3) b &= 0x80ffffffu;
    if (i % 16 == 5) b = (a & 0x7f800000u) + (b & 0x7fffffu);
    if (i % 1024 == 7) a = b & 0xff800000u;
    const float x = om_float(a);
    const float y = om_float(b);
    const float want = om_div(x, y);
    const float got = om_portable_div(x, y);
    if (om_bits(got) != om_bits(want) && !(om_is_nan(got) && om_is_nan(want))) {
      fail_msg("%08x / %08x is %08x, not %08x", a, b, om_bits(got), om_bits(want));
    }
    const float root = om_sqrt(x);
    const float portable_root = om_portable_sqrt(x);
    if (om_bits(root) != om_bits(portable_root) && !(om_is_nan(root) && om_is_nan(portable_root))) {
      fail_msg("sqrt %08x is %08x, not %08x", a, om_bits(portable_root), om_bits(root));
    }
  }
}

/* Quotients by one divisor: probabilities by their sums, near ties, and what is no such pair. */
static void test_portable_division_by(void **unused) {
  uint32_t state = 4242;
  (void)unused;
  for (uint32_t i = 0; i < 1500000; ++i) {
    uint32_t a = next_bits(&state);
    uint32_t b = next_bits(&state);
    if (i % 8 != 7) b = (b & 0x7fffffu) | ((127 + (b >> 23) % 40) << 23);
    if (i % 2 == 0) a = (a & 0x7fffffu) | ((64 + (a >> 23) % 64) << 23);
    if (i % 4 == 1) b = (b & 0xff800000u) | ((a + (b & 7u)) & 0x7fffffu);
    if (i % 16 == 2) b = (b & 0xff800fffu);
    if (i % 16 == 6) b |= 0x7ff000u;
    if (i % 32 == 9) a = (a & 0x80000fffu) | (b & 0x7f800000u);
    const float want = om_div(om_float(a), om_float(b));
    const float got = om_portable_div_by(om_float(a), om_float(b));
    if (om_bits(got) != om_bits(want) && !(om_is_nan(got) && om_is_nan(want))) {
      fail_msg("%08x / %08x is %08x, not %08x", a, b, om_bits(got), om_bits(want));
    }
  }
}

/* The arguments beside the bounds of exp, where adding to the exponent ends. */
static void test_exp_bounds(void **unused) {
  (void)unused;
  assert_int_equal(om_bits(om_exp(om_float(0x42b17217u))), 0x7f7fff84u);
  assert_int_equal(om_bits(om_exp(om_float(0x42b17218u))), OM_INFINITY_BITS);
  assert_int_equal(om_bits(om_exp(om_float(0xc2aeac4fu))), 0x00800026u);
  assert_int_equal(om_bits(om_exp(om_float(0xc2aeac50u))), 0u);
  assert_int_equal(om_bits(om_exp(-INFINITY)), 0u);
  assert_true(om_is_nan(om_exp(NAN)));
}

static void test_order_of_largest(void **unused) {
  (void)unused;
  assert_int_equal(om_bits(om_max(-0.0f, 0.0f)), 0);
  assert_int_equal(om_bits(om_max(0.0f, -0.0f)), 0);
  assert_int_equal(om_bits(om_min(0.0f, -0.0f)), OM_SIGN_BIT);
  assert_true(om_is_nan(om_max(NAN, 1.0f)));
  assert_true(om_is_nan(om_max(1.0f, NAN)));
  assert_true(om_is_nan(om_min(NAN, -INFINITY)));
  assert_true(om_max(-INFINITY, -1.0f) == -1.0f);
}

/* Every half, the float half way to the next, and those around both. */
static void test_rounding_to_half(void **unused) {
  (void)unused;
  for (uint32_t i = 0; i < 1u << 16; ++i) {
    const uint32_t half = om_bits(om_f16_to_f32((uint16_t)i));
    const uint32_t bits[] = {half, half + 1, half - 1, half | 0xfff, half | 0x1000, half | 0x1001};
    for (size_t k = 0; k < sizeof bits / sizeof bits[0]; ++k) {
      const float want = om_f16_to_f32(om_f16_from_f32(om_float(bits[k])));
      const float is = om_round_half(om_float(bits[k]));
      if (om_bits(is) == om_bits(want) || (om_is_nan(is) && om_is_nan(want))) continue;
      fail_msg("%08x as a half is %08x, not %08x", bits[k], om_bits(is), om_bits(want));
    }
  }
}

/* The lanes of a sum, written plainly. */
static float plain_row_sum(const float *x, size_t count) {
  float lanes[OM_ROW_LANES] = {0};
  for (size_t i = 0; i < count; ++i) lanes[i % OM_ROW_LANES] += x[i];
  for (size_t half = OM_ROW_LANES / 2; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

static void test_sums_keep_their_order(void **unused) {
  enum { LONGEST = 1500 };
  static float x[LONGEST];
  uint32_t state = 5;
  (void)unused;
  for (size_t i = 0; i < LONGEST; ++i) x[i] = (float)((double)next_bits(&state) / 1e9 - 2.0);
  for (size_t n = 0; n <= LONGEST; n += n < 600 ? 1 : 53) {
    assert_true(om_row_sum(x, n, 0.0f) == plain_row_sum(x, n));
  }
}

static void check_bits(const char *what, float a, float b, float is, float want) {
  if (om_bits(is) == om_bits(want) || (om_is_nan(is) && om_is_nan(want))) return;
  fail_msg("%s of %08x, %08x is %08x, not %08x",
           what,
           om_bits(a),
           om_bits(b),
           om_bits(is),
           om_bits(want));
}

/* Zeros, subnormals, limits and NaN of both signs; then any bits. */
static float next_value(size_t i, uint32_t *state) {
  static const uint32_t special[] = {0,
                                     1,
                                     0x7fffff,
                                     0x800000,
                                     0x3f800000,
                                     0x40c00000,
                                     0x7f7fffff,
                                     0x7f800000,
                                     0x7f800001,
                                     0x7fc00000,
                                     0x7fffffff};
  const size_t count = sizeof special / sizeof special[0];
  if (i >= 2 * count) return om_float(next_bits(state));
  return om_float(special[i % count] | (i < count ? 0 : OM_SIGN_BIT));
}

static void test_extremes_of_lanes(void **unused) {
  enum { VALUES = 300 };
  uint32_t state = 3;
  static float x[VALUES], y[VALUES];
  (void)unused;
  for (size_t i = 0; i < VALUES; ++i) x[i] = next_value(i, &state);
  const void *in[] = {x};
  for (size_t i = 0; i < VALUES; ++i) {
    for (size_t k = 0; k < VALUES; ++k) {
      check_bits("the greater", x[i], x[k], om_lane_max(x[i], x[k]), om_max(x[i], x[k]));
      check_bits("the lesser", x[i], x[k], om_lane_min(x[i], x[k]), om_min(x[i], x[k]));
    }
    for (int has_low = 0; has_low < 2; ++has_low) {
      const float bounds[] = {has_low ? x[VALUES - 1 - i] : 0.0f, x[i]};
      om_elementwise_kernel(OM_ELEMENTWISE_Clip, OM_DTYPE_F32)(in, y, VALUES, bounds);
      for (size_t k = 0; k < VALUES; ++k) {
        const float want = om_min(om_max(x[k], bounds[0]), bounds[1]);
        check_bits("Clip", x[k], bounds[1], y[k], want);
      }
    }
  }
}

static int begin_flushing(void **state) {
  static uint64_t kept;
  kept = om_flush_subnormals_begin();
  *state = &kept;
  return 0;
}

static int end_flushing(void **state) {
  om_flush_subnormals_end(*(uint64_t *)*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_functions_are_near),
      cmocka_unit_test(test_pow_is_near),
      cmocka_unit_test(test_pow_special_values),
      cmocka_unit_test(test_portable_division),
      cmocka_unit_test(test_portable_division_by),
      cmocka_unit_test(test_exp_bounds),
      cmocka_unit_test(test_order_of_largest),
      cmocka_unit_test(test_rounding_to_half),
      cmocka_unit_test(test_extremes_of_lanes),
      cmocka_unit_test(test_sums_keep_their_order),
  };
  return cmocka_run_group_tests(tests, begin_flushing, end_flushing);
}
