/* The primitives of exact mode, in the common subset of C and GLSL: one text, read as the CPU's
 * functions and as the shaders'. docs/exact.md has the definitions, coefficients and errors.
 *
 * Rules of this text: float, int, uint and bool only; + - * each rounded on its own (OM_PRECISE
 * before a float that is computed: `precise` in GLSL); comparisons only of finite values, special
 * values are told by their bits; casts through the macros. A subnormal counts as zero: the
 * processor is told so before exact code runs, and where bits decide, om_ftz says it.
 *
 * Division and square root: C has them correctly rounded. A shader corrects the device's
 * quotient with the integer remainder, which needs nothing of the device but an estimate that is
 * off by less than four units in the last place.
 *
 * A shader defines OM_EXACT before it includes this, and so does a kernel in C for PTX. 0 maps the
 * functions that GLSL has to its own. Elsewhere in C, OM_EXACT_PORTABLE makes the shaders' division
 * and square root: for tests.
 */
#ifndef OM_EXACT_MATH_H
#define OM_EXACT_MATH_H

#ifdef __STDC_VERSION__
#  include <stdbool.h>
#  include <stdint.h>
#  ifdef __NVPTX__ /* no C library: gpu/sm90/sm90_math.h defines what is taken of one */
#    define OM_FAST (OM_EXACT == 0)
#  else
#    include <math.h>
#    include <string.h>
#    define OM_FAST 0
#  endif
typedef unsigned int uint;
#  define OM_FN     static inline
#  define OM_STRUCT struct
#  define OM_PRECISE
#  define OM_ALWAYS_PRECISE
#  define OM_REAL(x)     ((float)(x))
#  define OM_TO_INT(x)   ((int)(x))
#  define OM_TO_UINT(x)  ((uint)(x))
#  define OM_TO_FLOAT(x) ((float)(x))
#  ifndef OM_EXACT_PORTABLE
#    define OM_EXACT_PORTABLE 0
#  endif
#  ifndef OM_NATIVE_DIVISION
#    define OM_NATIVE_DIVISION (!OM_EXACT_PORTABLE)
#  endif
#  define OM_NATIVE_QUOTIENT OM_NATIVE_DIVISION
static inline uint om_bits(float x) {
  uint u;
  memcpy(&u, &x, sizeof u);
  return u;
}
static inline float om_float(uint u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
static inline float om_native_sqrt(float x) {
  return sqrtf(x);
}
#else
#  define OM_FN
#  define OM_STRUCT
#  ifndef OM_PRECISE
#    define OM_PRECISE precise
#  endif
#  define OM_ALWAYS_PRECISE  precise /* in fast variants too: its rounding is its point */
#  define OM_REAL(x)         x
#  define OM_TO_INT(x)       int(x)
#  define OM_TO_UINT(x)      uint(x)
#  define OM_TO_FLOAT(x)     float(x)
#  define OM_FAST            (OM_EXACT == 0)
#  define OM_NATIVE_DIVISION OM_FAST
#  define OM_NATIVE_QUOTIENT 0
#  define om_bits(x)         floatBitsToUint(x)
#  define om_native_sqrt(x)  sqrt(x)
/* A function, so that a NaN's bits are no constant: WGSL refuses a constant NaN. */
float om_float(uint u) {
  return uintBitsToFloat(u);
}
#endif

#define OM_SIGN_BIT      0x80000000u
#define OM_INFINITY_BITS 0x7f800000u
#define OM_NAN_BITS      0x7fc00000u

/* ---- Signs, order, rounding: bits decide, so they are the same everywhere ---- */

OM_FN bool om_is_nan(float x) {
  return (om_bits(x) & 0x7fffffffu) > OM_INFINITY_BITS;
}

OM_FN bool om_is_inf(float x) {
  return (om_bits(x) & 0x7fffffffu) == OM_INFINITY_BITS;
}

/* x, or a zero of its sign if x is subnormal. */
OM_FN float om_ftz(float x) {
  uint u = om_bits(x);
  return om_float((u & OM_INFINITY_BITS) == 0u ? (u & OM_SIGN_BIT) : u);
}

OM_FN float om_abs(float x) {
  return om_float(om_bits(om_ftz(x)) & 0x7fffffffu);
}

OM_FN float om_neg(float x) {
  return om_float(om_bits(om_ftz(x)) ^ OM_SIGN_BIT);
}

/* Integers in the order of the floats, -0 below +0. */
OM_FN int om_order(float x) {
  uint u = om_bits(om_ftz(x));
  return OM_TO_INT((u & OM_SIGN_BIT) != 0u ? u ^ 0x7fffffffu : u);
}

/* And back: the bits of the float. */
OM_FN uint om_order_bits(int order) {
  uint u = OM_TO_UINT(order);
  return order < 0 ? u ^ 0x7fffffffu : u;
}

/* The greater of the two without their signs, as bits: above infinity's if either is NaN. */
OM_FN uint om_greater_magnitude(float a, float b) {
  uint ua = om_bits(a) & 0x7fffffffu;
  uint ub = om_bits(b) & 0x7fffffffu;
  return ua > ub ? ua : ub;
}

/* NaN wins; -0 is less than +0. */
OM_FN float om_max(float a, float b) {
#if OM_FAST
  return a > b || om_is_nan(a) ? a : b;
#else
  int ka = om_order(a);
  int kb = om_order(b);
  uint bits = om_order_bits(ka > kb ? ka : kb);
  return om_float(om_greater_magnitude(a, b) > OM_INFINITY_BITS ? OM_NAN_BITS : bits);
#endif
}

OM_FN float om_min(float a, float b) {
#if OM_FAST
  return a < b || om_is_nan(a) ? a : b;
#else
  int ka = om_order(a);
  int kb = om_order(b);
  uint bits = om_order_bits(ka < kb ? ka : kb);
  return om_float(om_greater_magnitude(a, b) > OM_INFINITY_BITS ? OM_NAN_BITS : bits);
#endif
}

/* -1, 0 or 1; NaN stays. */
OM_FN float om_sign(float x) {
  uint u = om_bits(om_ftz(x));
  uint s = (u & 0x7fffffffu) == 0u ? 0u : ((u & OM_SIGN_BIT) | 0x3f800000u);
  return om_float(om_is_nan(x) ? OM_NAN_BITS : s);
}

/* The integral part of |x|, for |x| < 2^23; 0 beyond. */
OM_FN int om_whole(float x) {
  uint u = om_bits(x) & 0x7fffffffu;
  return OM_TO_INT(om_float(u < 0x4b000000u ? u : 0u));
}

/* The float |x| rounded to `whole`, with the sign of x; x itself from 2^23 on. */
OM_FN float om_with_whole(float x, int whole) {
  uint u = om_bits(x);
  uint r = om_bits(OM_TO_FLOAT(whole)) | (u & OM_SIGN_BIT);
  return om_float((u & 0x7fffffffu) < 0x4b000000u ? r : u);
}

OM_FN float om_floor(float x) {
  int whole = om_whole(x);
  OM_PRECISE float part = om_abs(x) - OM_TO_FLOAT(whole);
  bool down = (om_bits(x) & OM_SIGN_BIT) != 0u && part > 0.0f;
  return om_with_whole(x, down ? whole + 1 : whole);
}

OM_FN float om_ceil(float x) {
  int whole = om_whole(x);
  OM_PRECISE float part = om_abs(x) - OM_TO_FLOAT(whole);
  bool up = (om_bits(x) & OM_SIGN_BIT) == 0u && part > 0.0f;
  return om_with_whole(x, up ? whole + 1 : whole);
}

/* To the nearest integer, halves to the even one. */
OM_FN float om_round(float x) {
  int whole = om_whole(x);
  OM_PRECISE float part = om_abs(x) - OM_TO_FLOAT(whole);
  bool up = part > 0.5f || (part == 0.5f && (whole & 1) != 0);
  return om_with_whole(x, up ? whole + 1 : whole);
}

/* To the nearest float16, halves to the even one: what a float16 holds, its subnormals too, is
 * kept. Below 2^-14 the places of float16 end at 2^-24, as those of 0.5 do. */
OM_FN float om_round_half(float x) {
  uint u = om_bits(x) & 0x7fffffffu;
  uint bits = (u + 0xfffu + ((u >> 13) & 1u)) & 0xffffe000u;
  OM_ALWAYS_PRECISE float shifted = om_float(u) + 0.5f;
  OM_ALWAYS_PRECISE float small = shifted - 0.5f;
  bits = u < 0x38800000u ? om_bits(small) : bits;
  bits = u >= 0x477ff000u ? OM_INFINITY_BITS : bits; /* 65520, half way to 2^16 */
  bits = u > OM_INFINITY_BITS ? OM_NAN_BITS : bits;
  return om_float(bits | (om_bits(x) & OM_SIGN_BIT));
}

/* a * b + c, rounded twice. For arguments of functions, where `precise` does not reach. */
OM_FN float om_mul_add(float a, float b, float c) {
  OM_PRECISE float product = a * b;
  OM_PRECISE float sum = product + c;
  return sum;
}

/* 2^n for -126 <= n <= 127. */
OM_FN float om_exp2_int(int n) {
  return om_float(OM_TO_UINT(n + 127) << 23);
}

/* mantissa * 2^(exponent - 23) with the sign, for 2^23 <= mantissa <= 2^24: flushed to zero below
 * 2^-126, infinite beyond the largest float. */
OM_FN float om_compose(uint sign, uint mantissa, int exponent) {
  int biased = exponent + 127;
  if (mantissa == 0x1000000u) {
    mantissa = 0x800000u;
    biased = biased + 1;
  }
  uint u = (OM_TO_UINT(biased) << 23) | (mantissa & 0x7fffffu);
  u = biased < 1 ? 0u : u;
  return om_float(sign | (biased > 254 ? OM_INFINITY_BITS : u));
}

/* ---- Division and square root, correctly rounded ---- */

/* In fast variants of shaders too: what is rounded to whole numbers behind it depends on each bit. */
OM_FN float om_quotient(float a, float b) {
#if OM_NATIVE_QUOTIENT
  return a / b;
#else
  uint ua = om_bits(om_ftz(a));
  uint ub = om_bits(om_ftz(b));
  uint sign = (ua ^ ub) & OM_SIGN_BIT;
  ua = ua & 0x7fffffffu;
  ub = ub & 0x7fffffffu;
  if (ua > OM_INFINITY_BITS || ub > OM_INFINITY_BITS || (ua == 0u && ub == 0u) ||
      (ua == OM_INFINITY_BITS && ub == OM_INFINITY_BITS)) {
    return om_float(OM_NAN_BITS);
  }
  if (ua == OM_INFINITY_BITS || ub == 0u) return om_float(sign | OM_INFINITY_BITS);
  if (ub == OM_INFINITY_BITS || ua == 0u) return om_float(sign);
  /* The quotient of the mantissas as an integer with 24 bits, q = floor(ma * 2^shift / mb). */
  uint ma = (ua & 0x7fffffu) | 0x800000u;
  uint mb = (ub & 0x7fffffu) | 0x800000u;
  int shift = ma < mb ? 24 : 23;
  int exponent = OM_TO_INT(ua >> 23) - OM_TO_INT(ub >> 23) + 23 - shift;
  float estimate = OM_TO_FLOAT(ma) / OM_TO_FLOAT(mb) * (ma < mb ? 16777216.0f : 8388608.0f);
  uint q = OM_TO_UINT(estimate);
  /* The remainder is small, so its low 32 bits are all of it. */
  int rest = OM_TO_INT((ma << shift) - q * mb);
  int m = OM_TO_INT(mb);
  for (int i = 0; i < 4; ++i) {
    if (rest < 0) {
      rest = rest + m;
      q = q - 1u;
    } else if (rest >= m) {
      rest = rest - m;
      q = q + 1u;
    }
  }
  q = 2 * rest > m ? q + 1u : q;
  return om_compose(sign, q, exponent);
#endif
}

OM_FN float om_div(float a, float b) {
#if OM_NATIVE_DIVISION
  return a / b;
#else
  return om_quotient(a, b);
#endif
}

/* A divisor of many quotients. */
struct om_divisor {
  float value;
  float reciprocal; /* of the mantissa as a number of 1 to 2, correctly rounded */
  uint mantissa;    /* 24 bits */
  int exponent;     /* biased */
  bool is_plain;    /* at least 1, and finite */
};

OM_FN OM_STRUCT om_divisor om_divisor_of(float b) {
  uint u = om_bits(b);
  OM_STRUCT om_divisor d;
  d.value = b;
  d.mantissa = (u & 0x7fffffu) | 0x800000u;
  d.exponent = OM_TO_INT(u >> 23);
  d.is_plain = u >= 0x3f800000u && u < OM_INFINITY_BITS;
  d.reciprocal = om_div(1.0f, om_float((u & 0x7fffffu) | 0x3f800000u));
  return d;
}

/* om_div(a, d.value): the same bits. */
OM_FN float om_div_by(float a, OM_STRUCT om_divisor d) {
#if OM_NATIVE_DIVISION
  return om_div(a, d.value);
#else
  uint u = om_bits(a);
  uint exponent = (u >> 23) & 255u;
  if (!d.is_plain || exponent == 255u) return om_div(a, d.value);
  uint m = (u & 0x7fffffu) | 0x800000u;
  uint is_less = m < d.mantissa ? 1u : 0u;
  /* The reciprocal is off by 2^-25 at most, the product by half a unit: together by less than 1.5
   * units of the quotient's 24 bits, so that the rounded one is this or a neighbour. */
  OM_PRECISE float estimate = om_float((u & 0x7fffffu) | 0x3f800000u) * d.reciprocal;
  uint q = om_bits(estimate) + (is_less << 23) - 0x3f000000u;
  int twice = 2 * OM_TO_INT((m << (23u + is_less)) - q * d.mantissa);
  int whole = OM_TO_INT(d.mantissa);
  q = twice > whole ? q + 1u : q;
  q = twice < -whole ? q - 1u : q;
  int biased = OM_TO_INT(exponent) - d.exponent + 127 - OM_TO_INT(is_less);
  int bits = biased * 0x800000 + OM_TO_INT(q) - 0x800000;
  bits = exponent == 0u || bits < 0x800000 ? 0 : bits;
  return om_float(OM_TO_UINT(bits) | (u & OM_SIGN_BIT));
#endif
}

OM_FN float om_sqrt(float x) {
#if OM_NATIVE_DIVISION
  return om_native_sqrt(x);
#else
  uint u = om_bits(om_ftz(x));
  if ((u & 0x7fffffffu) == 0u || u == OM_INFINITY_BITS) return om_float(u);
  if (u > OM_INFINITY_BITS) return om_float(OM_NAN_BITS);
  /* x = m * 2^(2h - 23) with m < 2^25; q = floor(sqrt(m * 2^23)) has 24 bits. */
  int exponent = OM_TO_INT(u >> 23) - 127;
  int odd = exponent & 1;
  uint m = ((u & 0x7fffffu) | 0x800000u) << odd;
  uint q = OM_TO_UINT(om_native_sqrt(OM_TO_FLOAT(m)) * 2896.30938f);
  int rest = OM_TO_INT((m << 23) - q * q);
  for (int i = 0; i < 8; ++i) {
    int twice = OM_TO_INT(q) * 2;
    if (rest < 0) {
      rest = rest + twice - 1;
      q = q - 1u;
    } else if (rest > twice) {
      rest = rest - twice - 1;
      q = q + 1u;
    }
  }
  q = rest > OM_TO_INT(q) ? q + 1u : q;
  return om_compose(0u, q, (exponent - odd) / 2);
#endif
}

/* ---- Exponential and logarithm ---- */

/* t = n ln 2 + r with n whole and r within 0.347 of 0, for -88 <= t <= 89: n. */
OM_FN int om_exp_whole(float t) {
  OM_PRECISE float scaled = t * 1.44269502f;
  OM_PRECISE float shifted = scaled + (scaled < 0.0f ? -0.5f : 0.5f);
  return OM_TO_INT(shifted);
}

/* exp(r). */
OM_FN float om_exp_rest(float t, int n) {
  float k = OM_TO_FLOAT(n);
  OM_PRECISE float high = k * 0.693145752f;
  OM_PRECISE float low = k * 1.42860677e-6f;
  OM_PRECISE float r = t - high;
  r = r - low;
  OM_PRECISE float p = 0.00138144626f * r + 0.00836878084f;
  p = p * r + 0.0416683927f;
  p = p * r + 0.166665196f;
  p = p * r + 0.5f;
  OM_PRECISE float square = r * r;
  p = p * square + r;
  p = p + 1.0f;
  return p;
}

/* exp(t) * 2^extra. */
OM_FN float om_exp_scaled(float t, int extra) {
  int n = om_exp_whole(t);
  OM_PRECISE float p = om_exp_rest(t, n);
  n = n + extra;
  int half_n = n / 2;
  p = p * om_exp2_int(half_n);
  p = p * om_exp2_int(n - half_n);
  return p;
}

OM_FN float om_exp(float x) {
#if OM_FAST
  return exp(x);
#else
  float t = x > -88.0f ? x : -88.0f;
  t = t < 89.0f ? t : 89.0f;
  int n = om_exp_whole(t);
  /* Between the bounds below the result is a normal number: n is added to the exponent. */
  uint bits = om_bits(om_exp_rest(t, n)) + (OM_TO_UINT(n) << 23);
  bits = x < -87.3365402f ? 0u : bits;
  bits = x >= 88.7228394f ? OM_INFINITY_BITS : bits;
  return om_float(om_is_nan(x) ? OM_NAN_BITS : bits);
#endif
}

/* In fast variants too, for what needs it right beside 1: there a device's own may be 2^-21 off. */
OM_FN float om_ln_near(float x) {
  /* x = m * 2^n with sqrt(1/2) <= m < sqrt(2). */
  uint u = om_bits(om_ftz(x));
  uint from_root = u - 0x3f3504f3u;
  int n = (OM_TO_INT(from_root) >> 23);
  float m = om_float((from_root & 0x7fffffu) + 0x3f3504f3u);
  float k = OM_TO_FLOAT(n);
  OM_PRECISE float f = m - 1.0f;
  OM_PRECISE float p = 0.0691533685f * f + -0.117897324f;
  p = p * f + 0.118729457f;
  p = p * f + -0.123843588f;
  p = p * f + 0.142186642f;
  p = p * f + -0.16669251f;
  p = p * f + 0.200022265f;
  p = p * f + -0.249999866f;
  p = p * f + 0.333333105f;
  OM_PRECISE float square = f * f;
  OM_PRECISE float cube = square * f;
  p = p * cube;
  OM_PRECISE float low = k * 1.42860677e-6f;
  p = p + low;
  OM_PRECISE float part = 0.5f * square;
  p = p - part;
  OM_PRECISE float r = p + f;
  OM_PRECISE float high = k * 0.693145752f;
  r = r + high;
  uint bits = om_bits(r);
  bits = u == OM_INFINITY_BITS ? u : bits;
  bits = (u & 0x7fffffffu) == 0u ? (OM_INFINITY_BITS | OM_SIGN_BIT) : bits;
  /* Negative, or NaN of either sign: as unsigned numbers these are the greatest. */
  return om_float(u > OM_INFINITY_BITS && u != OM_SIGN_BIT ? OM_NAN_BITS : bits);
}

OM_FN float om_ln(float x) {
#if OM_FAST
  return log(x);
#else
  return om_ln_near(x);
#endif
}

/* exp(x) - 1 and log(1 + x) without cancellation: the error of the rounded intermediate is
 * divided out. */
OM_FN float om_expm1(float x) {
  OM_ALWAYS_PRECISE float u = om_exp(x);
  OM_ALWAYS_PRECISE float d = u - 1.0f;
  OM_PRECISE float r = d * om_div(x, om_ln_near(u));
  bool is_tiny = u == 1.0f;
  bool is_far = d == -1.0f || u > 1.0e30f;
  return is_tiny ? om_ftz(x) : (is_far || om_is_nan(x) ? d : r);
}

OM_FN float om_log1p(float x) {
  OM_ALWAYS_PRECISE float u = x + 1.0f;
  OM_ALWAYS_PRECISE float d = u - 1.0f;
  OM_PRECISE float r = om_ln_near(u) * om_div(x, d);
  bool is_tiny = d == 0.0f;
  return is_tiny ? om_ftz(x) : (u > 1.0e30f || u == 0.0f || om_is_nan(x) ? om_ln(u) : r);
}

/* ---- Functions made of the exponential ---- */

OM_FN float om_sigmoid(float x) {
  OM_PRECISE float e = om_exp(om_neg(x));
  OM_PRECISE float d = 1.0f + e;
  return om_div(1.0f, d);
}

/* log(1 + exp(x)). */
OM_FN float om_softplus(float x) {
  OM_PRECISE float e = om_exp(om_neg(om_abs(x)));
  OM_PRECISE float sum = om_max(x, 0.0f) + om_log1p(e);
  return sum;
}

OM_FN float om_tanh(float x) {
  float a = om_abs(x);
  /* Small: x + x^3 P(x^2). */
  OM_PRECISE float z = a * a;
  OM_PRECISE float p = 0.00214754324f * z + -0.00818268117f;
  p = p * z + 0.0217029694f;
  p = p * z + -0.0539472066f;
  p = p * z + 0.133332103f;
  p = p * z + -0.333333313f;
  p = p * z;
  p = p * a + a;
  /* Large: 1 - 2 / (exp(2 |x|) + 1). */
  float t = a < 10.0f ? a : 10.0f;
  OM_PRECISE float twice = t + t;
  OM_PRECISE float e = om_exp(twice);
  OM_PRECISE float d = e + 1.0f;
  OM_PRECISE float r = 1.0f - om_div(2.0f, d);
  uint bits = om_bits(a < 0.625f ? p : r) | (om_bits(x) & OM_SIGN_BIT);
  return om_float(om_is_nan(x) ? OM_NAN_BITS : bits);
}

OM_FN float om_erf(float x) {
  float a = om_abs(x);
  /* Small: x + x Q(x^2). */
  OM_PRECISE float z = a * a;
  OM_PRECISE float q = 8.37008629e-5f * z + -0.000814270054f;
  q = q * z + 0.00520103192f;
  q = q * z + -0.0268593989f;
  q = q * z + 0.112836957f;
  q = q * z + -0.376126349f;
  q = q * z + 0.128379226f;
  q = q * a + a;
  OM_PRECISE float linear = a * 1.12837923f;
  q = a < 1.0e-30f ? linear : q;
  /* Large: 1 - exp(-P(|x|)), 1 from 3.95 on. */
  float t = a < 3.95f ? a : 3.95f;
  OM_PRECISE float p = 2.11187089e-5f * t + -0.00043473611f;
  p = p * t + 0.004172388f;
  p = p * t + -0.0251229145f;
  p = p * t + 0.108285479f;
  p = p * t + 0.633342028f;
  p = p * t + 1.12951732f;
  p = p * t + -0.000175188077f;
  OM_PRECISE float r = 1.0f - om_exp(om_neg(p));
  uint bits = om_bits(a < 0.921875f ? q : (a < 3.95f ? r : 1.0f)) | (om_bits(x) & OM_SIGN_BIT);
  return om_float(om_is_nan(x) ? OM_NAN_BITS : bits);
}

/* ---- Power ---- */

/* a * b = product + error, exactly (Dekker), for magnitudes within 2^-60 .. 2^60. */
OM_FN float om_product_error(float a, float b, float product) {
  OM_PRECISE float ca = a * 4097.0f;
  OM_PRECISE float da = ca - a;
  OM_PRECISE float ah = ca - da;
  OM_PRECISE float al = a - ah;
  OM_PRECISE float cb = b * 4097.0f;
  OM_PRECISE float db = cb - b;
  OM_PRECISE float bh = cb - db;
  OM_PRECISE float bl = b - bh;
  OM_PRECISE float e = ah * bh - product;
  e = e + ah * bl;
  e = e + al * bh;
  e = e + al * bl;
  return e;
}

/* x^y for finite x > 0: the logarithm as the sum of two floats, then exp. */
OM_FN float om_pow_positive(float x, float y) {
#if OM_FAST
  return pow(x, y);
#else
  uint from_root = om_bits(x) - 0x3f3504f3u;
  float k = OM_TO_FLOAT(OM_TO_INT(from_root) >> 23);
  float m = om_float((from_root & 0x7fffffu) + 0x3f3504f3u);
  /* log(m) = 2 (s + s^3 P(s^2)) with s = (m - 1) / (m + 1) = s + s_low. */
  OM_PRECISE float f = m - 1.0f;
  OM_PRECISE float g = m + 1.0f;
  OM_PRECISE float g_back = g - 1.0f;
  OM_PRECISE float g_low = m - g_back;
  OM_PRECISE float s = om_div(f, g);
  OM_PRECISE float sg = s * g;
  OM_PRECISE float rest = f - sg;
  rest = rest - om_product_error(s, g, sg);
  rest = rest - s * g_low;
  OM_PRECISE float s_low = om_div(rest, g);
  OM_PRECISE float z = s * s;
  OM_PRECISE float p = 0.117910735f * z + 0.142686546f;
  p = p * z + 0.200001672f;
  p = p * z + 0.333333313f;
  p = p * z;
  OM_PRECISE float tail = p * s + s_low;
  tail = tail + tail;
  s = s + s;
  /* high + low = k ln 2 + s + tail; |k ln 2| >= |s| or k is 0. */
  OM_PRECISE float big = k * 0.693145752f;
  OM_PRECISE float small_part = k * 1.42860677e-6f;
  OM_PRECISE float sum = big + s;
  OM_PRECISE float back = sum - big;
  OM_PRECISE float left = s - back;
  left = left + small_part;
  left = left + tail;
  OM_PRECISE float high = sum + left;
  OM_PRECISE float high_back = high - sum;
  OM_PRECISE float low = left - high_back;
  /* exp(y (high + low)). Beyond 2^31 only the signs matter. Powers of two keep what is at
   * the ends of the range, and its correction, within it until the last step. */
  float w = y < 2147483648.0f ? y : 2147483648.0f;
  w = w > -2147483648.0f ? w : -2147483648.0f;
  OM_PRECISE float product = w * high;
  OM_PRECISE float error = om_product_error(w, high, product);
  error = error + w * low;
  bool is_up = product > 0.0f;
  float t = product < 89.0f ? product : 89.0f;
  t = t > -88.0f ? t : -88.0f;
  OM_PRECISE float base = om_exp_scaled(t, is_up ? -1 : 64);
  OM_PRECISE float r = base * error + base;
  r = r * om_exp2_int(is_up ? 1 : -64);
  uint bits = om_bits(om_ftz(r));
  bits = product > 89.0f ? OM_INFINITY_BITS : bits;
  return om_float(product < -88.0f ? 0u : bits);
#endif
}

/* As C's pow, with x^2 = x * x and x^0.5 = sqrt(x) by definition. */
OM_FN float om_pow(float x, float y) {
  x = om_ftz(x);
  y = om_ftz(y);
  uint ux = om_bits(x);
  uint uy = om_bits(y);
  uint ax = ux & 0x7fffffffu;
  uint ay = uy & 0x7fffffffu;
  OM_PRECISE float square = x * x;
  if (uy == 0x40000000u) return square;
  if (ay == 0u || ux == 0x3f800000u) return 1.0f;
  if (ax > OM_INFINITY_BITS || ay > OM_INFINITY_BITS) return om_float(OM_NAN_BITS);
  if (uy == 0x3f800000u) return x;
  if (uy == 0x3f000000u && ux < OM_INFINITY_BITS) return om_sqrt(x);
  int whole = om_whole(y);
  bool is_whole = ay >= 0x4b000000u || OM_TO_FLOAT(whole) == om_abs(y);
  bool is_odd =
      ay < 0x4b000000u ? is_whole && (whole & 1) != 0 : ay < 0x4b800000u && (ay & 1u) != 0u;
  bool is_up = (uy & OM_SIGN_BIT) == 0u;
  uint sign = is_odd ? (ux & OM_SIGN_BIT) : 0u;
  if (ay == OM_INFINITY_BITS) {
    if (ax == 0x3f800000u) return 1.0f;
    return om_float((ax > 0x3f800000u) == is_up ? OM_INFINITY_BITS : 0u);
  }
  if (ax == 0u) return om_float(sign | (is_up ? 0u : OM_INFINITY_BITS));
  if (ax == OM_INFINITY_BITS) return om_float(sign | (is_up ? OM_INFINITY_BITS : 0u));
  if (ux != ax && !is_whole) return om_float(OM_NAN_BITS);
  float r = om_pow_positive(om_float(ax), y);
  return om_float(om_bits(r) | sign);
}

/* ---- Sine and cosine ---- */

/* 32 bits of 2/pi from the bit with weight 2^-(start + 1) on, start >= 0. */
OM_FN uint om_two_over_pi_word(int index) {
  uint w = index == 0 ? 0xa2f9836eu : 0u;
  w = index == 1 ? 0x4e441529u : w;
  w = index == 2 ? 0xfc2757d1u : w;
  w = index == 3 ? 0xf534ddc0u : w;
  w = index == 4 ? 0xdb629599u : w;
  w = index == 5 ? 0x3c439041u : w;
  return index == 6 ? 0xfe5163abu : w;
}

OM_FN uint om_two_over_pi(int start) {
  int index = start >> 5;
  int shift = start & 31;
  uint high = om_two_over_pi_word(index);
  uint low = om_two_over_pi_word(index + 1);
  return shift == 0 ? high : (high << shift) | (low >> (32 - shift));
}

/* The upper 32 bits of a * b. */
OM_FN uint om_mul_high(uint a, uint b) {
  uint al = a & 0xffffu;
  uint ah = a >> 16;
  uint bl = b & 0xffffu;
  uint bh = b >> 16;
  uint mid = ah * bl + ((al * bl) >> 16);
  uint mid2 = al * bh + (mid & 0xffffu);
  return ah * bh + (mid >> 16) + (mid2 >> 16);
}

struct om_angle {
  float rest;   /* of |x|, within pi / 4 of 0 */
  int quadrant; /* multiples of pi / 2 taken off, modulo 4 */
};

/* Below 256: k pi / 2 in four parts, the first three with exact products. */
OM_FN OM_STRUCT om_angle om_reduce_small(float a) {
  OM_PRECISE float scaled = a * 0.636619747f;
  OM_PRECISE float shifted = scaled + 0.5f;
  OM_STRUCT om_angle angle;
  angle.quadrant = OM_TO_INT(shifted);
  float k = OM_TO_FLOAT(angle.quadrant);
  OM_PRECISE float r = a - k * 1.5703125f;
  r = r - k * 0.00048828125f;
  r = r + k * 4.4554472e-6f;
  r = r - k * 9.92093629e-10f;
  angle.rest = r;
  return angle;
}

/* x = m * 2^e. The 96 bits of 2/pi whose products with m count below 4, times m, modulo 2^96:
 * two bits of quadrant and 94 of fraction. */
OM_FN OM_STRUCT om_angle om_reduce_large(uint u) {
  uint m = (u & 0x7fffffu) | 0x800000u;
  int start = OM_TO_INT(u >> 23) - 152;
  int from = start < 0 ? 0 : start;
  uint w0 = om_two_over_pi(from);
  uint w1 = om_two_over_pi(from + 32);
  uint w2 = om_two_over_pi(from + 64);
  if (start < 0) { /* at least -17; the bits before the first of 2/pi are 0 */
    int skipped = -start;
    w2 = (w2 >> skipped) | (w1 << (32 - skipped));
    w1 = (w1 >> skipped) | (w0 << (32 - skipped));
    w0 = w0 >> skipped;
  }
  uint p2 = w2 * m;
  uint carry = om_mul_high(w2, m);
  uint p1 = w1 * m + carry;
  carry = om_mul_high(w1, m) + (p1 < carry ? 1u : 0u);
  uint p0 = w0 * m + carry;
  OM_STRUCT om_angle angle;
  uint half_bit = (p0 >> 29) & 1u;
  angle.quadrant = OM_TO_INT(((p0 >> 30) + half_bit) & 3u);
  /* The fraction, less one where it is at least a half. */
  p0 = (p0 << 2) | (p1 >> 30);
  p1 = (p1 << 2) | (p2 >> 30);
  p0 = half_bit != 0u ? ~p0 : p0;
  p1 = half_bit != 0u ? ~p1 : p1;
  OM_PRECISE float sum = OM_TO_FLOAT(OM_TO_INT(p1 >> 16)) * 3.55271368e-15f;
  sum = sum + OM_TO_FLOAT(OM_TO_INT(p0 & 0xffffu)) * 2.32830644e-10f;
  sum = sum + OM_TO_FLOAT(OM_TO_INT(p0 >> 16)) * 1.52587891e-5f;
  OM_PRECISE float rest = sum * 1.57079637f;
  angle.rest = om_float(om_bits(rest) | (half_bit << 31));
  return angle;
}

OM_FN OM_STRUCT om_angle om_reduce_angle(float x) {
  uint u = om_bits(om_abs(x));
  if (u < 0x43800000u) return om_reduce_small(om_float(u));
  return om_reduce_large(u);
}

OM_FN float om_sin_quadrant(float r, int quadrant) {
  OM_PRECISE float z = r * r;
  OM_PRECISE float s = 2.71823728e-6f * z + -0.000198393274f;
  s = s * z + 0.00833332911f;
  s = s * z + -0.166666672f;
  s = s * z;
  s = s * r + r;
  OM_PRECISE float c = -2.72095491e-7f * z + 2.47995122e-5f;
  c = c * z + -0.00138888834f;
  c = c * z + 0.0416666679f;
  c = c * z;
  c = c * z;
  OM_PRECISE float part = 0.5f * z;
  OM_PRECISE float first = 1.0f - part;
  c = first + c;
  float y = (quadrant & 1) != 0 ? c : s;
  return (quadrant & 2) != 0 ? om_neg(y) : y;
}

OM_FN float om_sin(float x) {
#if OM_FAST
  return sin(x);
#else
  if ((om_bits(x) & 0x7fffffffu) >= OM_INFINITY_BITS) return om_float(OM_NAN_BITS);
  OM_STRUCT om_angle angle = om_reduce_angle(x);
  float y = om_sin_quadrant(angle.rest, angle.quadrant);
  return om_float(om_bits(y) ^ (om_bits(x) & OM_SIGN_BIT));
#endif
}

OM_FN float om_cos(float x) {
#if OM_FAST
  return cos(x);
#else
  if ((om_bits(x) & 0x7fffffffu) >= OM_INFINITY_BITS) return om_float(OM_NAN_BITS);
  OM_STRUCT om_angle angle = om_reduce_angle(x);
  return om_sin_quadrant(angle.rest, angle.quadrant + 1);
#endif
}

#endif
