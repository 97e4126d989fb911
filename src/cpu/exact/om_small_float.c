/* Small floats by their parameters: one encoder and one decoder for the 8- and 4-bit types. */
#include "cpu/exact/om_small_float.h"

#include "base/om_float16.h"
#include "cpu/exact/om_exact_math.h"

typedef struct om_format {
  int mantissa_bits;
  int bias;
  uint32_t largest;  /* bits of the largest finite value */
  uint32_t nan;      /* bits of NaN; 0: the type has none */
  uint32_t infinity; /* 0: none */
  uint32_t sign;     /* the sign's bit */
  bool has_minus_zero;
} om_format;

static const om_format formats[OM_DTYPE_COUNT] = {
    [OM_DTYPE_F8E4M3FN] = {3, 7, 0x7e, 0x7f, 0, 0x80, true},
    [OM_DTYPE_F8E4M3FNUZ] = {3, 8, 0x7f, 0x80, 0, 0x80, false},
    [OM_DTYPE_F8E5M2] = {2, 15, 0x7b, 0x7e, 0x7c, 0x80, true},
    [OM_DTYPE_F8E5M2FNUZ] = {2, 16, 0x7f, 0x80, 0, 0x80, false},
    [OM_DTYPE_F4E2M1] = {1, 1, 0x7, 0, 0, 0x8, true},
};

bool om_is_small_float(om_dtype dtype) {
  return dtype == OM_DTYPE_F16 || dtype == OM_DTYPE_BF16 || formats[dtype].largest != 0;
}

static float decode(const om_format *f, uint32_t bits) {
  uint32_t magnitude = bits & (f->sign - 1);
  uint32_t sign = (bits & f->sign) ? OM_SIGN_BIT : 0;
  bool is_nan =
      f->nan != 0 &&
      (f->has_minus_zero ? magnitude > (f->infinity ? f->infinity : f->largest) : bits == f->nan);
  if (is_nan) return om_float(OM_NAN_BITS);
  if (f->infinity != 0 && magnitude == f->infinity) return om_float(sign | OM_INFINITY_BITS);
  uint32_t exponent = magnitude >> f->mantissa_bits;
  uint32_t mantissa = magnitude & ((1u << f->mantissa_bits) - 1);
  int scale = (exponent == 0 ? 1 : (int)exponent) - f->bias - f->mantissa_bits;
  if (exponent != 0) mantissa |= 1u << f->mantissa_bits;
  float value = (float)(int)mantissa * om_exp2_int(scale);
  return om_float(om_bits(value) | sign);
}

float om_small_float_decode(om_dtype dtype, uint32_t bits) {
  if (dtype == OM_DTYPE_F16) return om_f16_to_f32((uint16_t)bits);
  if (dtype == OM_DTYPE_BF16) return om_bf16_to_f32((uint16_t)bits);
  return decode(&formats[dtype], bits);
}

/* The magnitude's bits, rounded to nearest even; may be above `largest`. */
static uint32_t round_magnitude(const om_format *f, uint32_t u) {
  int exponent = (int)(u >> 23) - 127 + f->bias;
  uint32_t mantissa = u & 0x7fffff;
  if ((u >> 23) == 0) return 0;
  int shift = 23 - f->mantissa_bits;
  mantissa |= 0x800000;
  if (exponent < 1) { /* subnormal in the small type */
    shift += 1 - exponent;
    exponent = 0;
    if (shift > 25) return 0;
  } else {
    exponent -= 1; /* the mantissa's leading bit adds one */
  }
  uint32_t kept = mantissa >> shift;
  uint32_t cut = mantissa & ((1u << shift) - 1);
  uint32_t half = 1u << (shift - 1);
  if (cut > half || (cut == half && (kept & 1))) ++kept;
  return ((uint32_t)exponent << f->mantissa_bits) + kept;
}

static uint32_t encode(const om_format *f, float value, bool saturates) {
  uint32_t u = om_bits(value) & 0x7fffffff;
  uint32_t sign = (om_bits(value) & OM_SIGN_BIT) ? f->sign : 0;
  if (u > OM_INFINITY_BITS) return f->has_minus_zero ? f->nan | (f->nan ? sign : 0) : f->nan;
  uint32_t bits = u == OM_INFINITY_BITS ? UINT32_MAX : round_magnitude(f, u);
  if (bits > f->largest) {
    if (saturates || f->nan == 0) return f->largest | sign;
    if (f->infinity != 0) return f->infinity | sign;
    return f->has_minus_zero ? f->nan | sign : f->nan;
  }
  return bits == 0 && !f->has_minus_zero ? 0 : bits | sign;
}

uint32_t om_small_float_encode(om_dtype dtype, float value, bool saturates) {
  if (dtype == OM_DTYPE_F16) return om_f16_from_f32(value);
  if (dtype == OM_DTYPE_BF16) return om_bf16_from_f32(value);
  return encode(&formats[dtype], value, saturates);
}

float om_f32_sticky(double value) {
  float nearest = (float)value;
  if (om_is_nan(nearest) || (double)nearest == value) return nearest;
  if (om_is_inf(nearest)) return nearest;
  uint32_t u = om_bits(nearest);
  /* One step toward zero if it was rounded away from it. */
  double magnitude = value < 0 ? -value : value;
  if ((double)om_float(u & 0x7fffffff) > magnitude) --u;
  return om_float(u | 1);
}
