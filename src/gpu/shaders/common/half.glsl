// float16 values, as the low 16 bits of a word: for kernels of words that no 16-bit storage is asked for.
#ifndef OM_HALF_GLSL
#define OM_HALF_GLSL

float half_to_float(uint h) {
  uint sign = (h & 0x8000u) << 16;
  uint exponent = (h >> 10) & 31u;
  uint mantissa = h & 0x3ffu;
  uint bits = ((exponent + 112u) << 23) | (mantissa << 13);
  if (exponent == 31u) bits = OM_INFINITY_BITS | (mantissa << 13);
  if (exponent == 0u) bits = om_bits(float(mantissa) * 5.9604644775390625e-8);  // 2^-24
  return om_float(sign | bits);
}

uint half_from_float(float x) {
  uint u = om_bits(x);
  uint sign = (u >> 16) & 0x8000u;
  u = u & 0x7fffffffu;
  if (u > OM_INFINITY_BITS) return sign | 0x7e00u;
  if (u >= 0x47800000u) return sign | 0x7c00u;   // 65536 and more
  uint shift = 13u;
  uint mantissa = u;
  uint base = 0x38000000u;                       // the exponents' difference, 112
  if (u < 0x38800000u) {                         // below 2^-14: a subnormal half
    if (u < 0x33000000u) return sign;            // below 2^-25
    shift = 126u - (u >> 23);
    mantissa = (u & 0x7fffffu) | 0x800000u;
    base = 0u;
  }
  uint kept = (mantissa - base) >> shift;
  uint cut = mantissa & ((1u << shift) - 1u);
  uint middle = 1u << (shift - 1u);
  if (cut > middle || (cut == middle && (kept & 1u) != 0u)) kept = kept + 1u;
  return sign | kept;
}

#endif
