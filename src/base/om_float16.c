/* float16 and bfloat16 in integer arithmetic, so that neither the compiler nor the float
 * environment (rounding, subnormals) has a say in the bits. Subnormals of float16 are kept. */
#include "base/om_float16.h"

#include <string.h>

static uint32_t bits_of_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* value >> shift, rounded to nearest, ties to even; shift is 1..63. */
static uint64_t shift_round(uint64_t value, unsigned shift) {
  uint64_t half = (uint64_t)1 << (shift - 1);
  uint64_t rest = value & ((half << 1) - 1);
  uint64_t result = value >> shift;
  if (rest > half || (rest == half && (result & 1))) ++result;
  return result;
}

/* Packs a finite value: mantissa with its leading one at bit `mantissa_bits` (or zero), exponent
 * unbiased. A mantissa that rounds up carries into the exponent, and from there to infinity. */
static uint16_t pack_f16(uint16_t sign, int exponent, uint64_t mantissa, unsigned mantissa_bits) {
  if (exponent > 15) return (uint16_t)(sign | 0x7c00);
  if (exponent < -25) return sign;
  unsigned shift = mantissa_bits - 10;
  if (exponent < -14) { /* subnormal: the leading one moves into the fraction */
    shift += (unsigned)(-14 - exponent);
    return (uint16_t)(sign | shift_round(mantissa, shift));
  }
  uint64_t rounded = shift_round(mantissa, shift); /* 0x400..0x800 */
  return (uint16_t)(sign | (((uint64_t)(exponent + 14) << 10) + rounded));
}

uint16_t om_f16_from_f32(float value) {
  uint32_t bits = bits_of_f32(value);
  uint16_t sign = (uint16_t)((bits >> 16) & 0x8000);
  uint32_t exponent = (bits >> 23) & 0xff;
  uint32_t fraction = bits & 0x7fffff;
  if (exponent == 0xff) {
    return (uint16_t)(sign | 0x7c00 | (fraction ? 0x200 | (fraction >> 13) : 0));
  }
  if (exponent == 0) return sign; /* below half of the smallest float16 */
  return pack_f16(sign, (int)exponent - 127, fraction | 0x800000, 23);
}

uint16_t om_f16_from_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint16_t sign = (uint16_t)((bits >> 48) & 0x8000);
  uint64_t exponent = (bits >> 52) & 0x7ff;
  uint64_t fraction = bits & 0xfffffffffffffu;
  if (exponent == 0x7ff) {
    return (uint16_t)(sign | 0x7c00 | (fraction ? 0x200 | (fraction >> 42) : 0));
  }
  if (exponent == 0) return sign;
  return pack_f16(sign, (int)exponent - 1023, fraction | 0x10000000000000u, 52);
}

float om_f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f;
  uint32_t fraction = bits & 0x3ff;
  if (exponent == 0x1f) return f32_of_bits(sign | 0x7f800000 | (fraction << 13));
  if (exponent == 0) {
    if (fraction == 0) return f32_of_bits(sign);
    exponent = 1;
    while (!(fraction & 0x400)) { /* subnormal there, normal here */
      fraction <<= 1;
      --exponent; /* may pass zero: unsigned arithmetic comes back with the bias below */
    }
    fraction &= 0x3ff;
  }
  return f32_of_bits(sign | ((exponent + 112) << 23) | (fraction << 13));
}

uint16_t om_bf16_from_f32(float value) {
  uint32_t bits = bits_of_f32(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)((bits >> 16) | 0x40); /* NaN, quiet */
  return (uint16_t)shift_round(bits, 16);
}

float om_bf16_to_f32(uint16_t bits) {
  return f32_of_bits((uint32_t)bits << 16);
}
