// float16 values, as the low 16 bits of a word.
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

#endif
