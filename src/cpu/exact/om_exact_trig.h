/* Rarer primitives of exact mode, made of those in om_exact_math.h and by its rules: inverse and
 * hyperbolic functions. */
#ifndef OM_EXACT_TRIG_H
#define OM_EXACT_TRIG_H

#include "cpu/exact/om_exact_math.h"

#define OM_HALF_PI     1.57079637f
#define OM_HALF_PI_LOW -4.37113883e-8f /* pi/2 is the sum of the two */
#define OM_LN_2        0.693147182f

OM_FN float om_tan(float x) {
  return om_div(om_sin(x), om_cos(x));
}

/* x + x^3 P(x^2) up to 1; above, pi/2 less the arc of 1/x. */
OM_FN float om_atan(float x) {
  float a = om_abs(x);
  bool is_large = a > 1.0f;
  float t = is_large ? om_div(1.0f, a) : a;
  OM_PRECISE float z = t * t;
  OM_PRECISE float p = 0.00113481923f * z + -0.00742232567f;
  p = p * z + 0.0227596369f;
  p = p * z + -0.0449455604f;
  p = p * z + 0.0675950423f;
  p = p * z + -0.0881881565f;
  p = p * z + 0.110602349f;
  p = p * z + -0.142801285f;
  p = p * z + 0.199996918f;
  p = p * z + -0.333333284f;
  p = p * z;
  p = p * t;
  OM_PRECISE float r = p + t;
  OM_PRECISE float rest = OM_HALF_PI_LOW - p;
  OM_PRECISE float flipped = rest - t;
  flipped = OM_HALF_PI + flipped;
  uint bits = om_bits(is_large ? flipped : r) | (om_bits(x) & OM_SIGN_BIT);
  return om_float(om_is_nan(x) ? OM_NAN_BITS : bits);
}

/* x^3 P(x^2), what the arc sine is beyond x, for |x| <= 0.5. */
OM_FN float om_asin_tail(float x) {
  OM_PRECISE float z = x * x;
  OM_PRECISE float p = 0.0375652574f * z + 0.0144025655f;
  p = p * z + 0.0318176225f;
  p = p * z + 0.0445157178f;
  p = p * z + 0.0750051066f;
  p = p * z + 0.166666597f;
  p = p * z;
  p = p * x;
  return p;
}

/* sqrt((1 - a) / 2) for a in 0.5 .. 1: twice its arc sine is the arc cosine of a. */
OM_FN float om_half_angle(float a) {
  OM_PRECISE float d = 1.0f - a;
  OM_PRECISE float h = d * 0.5f;
  return om_sqrt(h);
}

OM_FN float om_asin(float x) {
  float a = om_abs(x);
  bool is_large = a > 0.5f;
  float t = is_large ? om_half_angle(a) : a;
  OM_PRECISE float tail = om_asin_tail(t);
  OM_PRECISE float r = t + tail;
  OM_PRECISE float twice = r + r;
  OM_PRECISE float flipped = OM_HALF_PI_LOW - twice;
  flipped = OM_HALF_PI + flipped;
  uint bits = om_bits(is_large ? flipped : r) | (om_bits(x) & OM_SIGN_BIT);
  return om_float(om_is_nan(x) || a > 1.0f ? OM_NAN_BITS : bits);
}

OM_FN float om_acos(float x) {
  float a = om_abs(x);
  bool is_large = a > 0.5f;
  bool is_negative = (om_bits(x) & OM_SIGN_BIT) != 0u;
  float t = is_large ? om_half_angle(a) : om_ftz(x);
  OM_PRECISE float tail = om_asin_tail(t);
  OM_PRECISE float arc = t + tail;
  OM_PRECISE float twice = arc + arc;
  OM_PRECISE float other = 2.0f * OM_HALF_PI_LOW - twice;
  other = 2.0f * OM_HALF_PI + other;
  OM_PRECISE float middle = OM_HALF_PI_LOW - arc;
  middle = OM_HALF_PI + middle;
  float r = is_large ? (is_negative ? other : twice) : middle;
  return om_float(om_is_nan(x) || a > 1.0f ? OM_NAN_BITS : om_bits(r));
}

/* exp(a) / 2 for a >= 0; infinite above 89.4. */
OM_FN float om_half_exp(float a) {
  float t = a < 89.0f ? a : 89.0f;
  OM_PRECISE float near = om_exp_scaled(t, -1);
  OM_PRECISE float rest = a - 89.0f;
  OM_PRECISE float far = near * om_exp(rest);
  return a < 89.0f ? near : far;
}

OM_FN float om_sinh(float x) {
  float a = om_abs(x);
  OM_PRECISE float e = om_expm1(a);
  OM_PRECISE float plus = e + 1.0f;
  OM_PRECISE float small_sum = e + om_div(e, plus);
  OM_PRECISE float near = small_sum * 0.5f;
  float r = a < 20.0f ? near : om_half_exp(a);
  uint bits = om_bits(r) | (om_bits(x) & OM_SIGN_BIT);
  return om_float(om_is_nan(x) ? OM_NAN_BITS : bits);
}

OM_FN float om_cosh(float x) {
  float a = om_abs(x);
  OM_PRECISE float h = om_half_exp(a);
  OM_PRECISE float r = h + om_div(0.25f, h);
  return om_float(om_is_nan(x) ? OM_NAN_BITS : om_bits(r));
}

OM_FN float om_asinh(float x) {
  float a = om_abs(x);
  float t = a < 1.0e9f ? a : 1.0e9f;
  OM_PRECISE float square = t * t;
  OM_PRECISE float root = square + 1.0f;
  root = om_sqrt(root);
  OM_PRECISE float below = root + 1.0f;
  OM_PRECISE float sum = t + om_div(square, below);
  float near = om_log1p(sum);
  OM_PRECISE float far = om_ln(a) + OM_LN_2;
  uint bits = om_bits(a < 1.0e9f ? near : far) | (om_bits(x) & OM_SIGN_BIT);
  return om_float(om_is_nan(x) ? OM_NAN_BITS : bits);
}

OM_FN float om_acosh(float x) {
  float t = x < 1.0e9f ? x : 1.0e9f;
  OM_PRECISE float d = t - 1.0f;
  OM_PRECISE float square = d * d;
  OM_PRECISE float radicand = d + d;
  radicand = radicand + square;
  OM_PRECISE float sum = d + om_sqrt(radicand);
  float near = om_log1p(sum);
  OM_PRECISE float far = om_ln(x) + OM_LN_2;
  float r = x < 1.0e9f ? near : far;
  return om_float(om_is_nan(x) || x < 1.0f ? OM_NAN_BITS : om_bits(r));
}

OM_FN float om_atanh(float x) {
  float a = om_abs(x);
  OM_PRECISE float below = 1.0f - a;
  OM_PRECISE float twice = a + a;
  OM_PRECISE float r = 0.5f * om_log1p(om_div(twice, below));
  uint bits = om_bits(r) | (om_bits(x) & OM_SIGN_BIT);
  return om_float(om_is_nan(x) || a > 1.0f ? OM_NAN_BITS : bits);
}

#endif
