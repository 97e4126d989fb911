// Float32 as pairs of float16, for products on matrix hardware.
//
// A value below 2^15 in magnitude is a high and a low part, which keep 22 bits of it; a product is
// high * high + high * low + low * high. Scales are powers of two, from the largest exponent of
// many values. An infinity or NaN is a low part beside a high part of zero: only one product sees
// it.
#ifndef OM_SPLIT_GLSL
#define OM_SPLIT_GLSL

#define SPLIT_EXPONENTS 0x7f800000u

// The larger of `largest` and the values' magnitudes, as bits: above all numbers' where one is none.
uint split_largest(uint largest, vec4 values) {
  uvec4 bits = floatBitsToUint(values) & 0x7fffffffu;
  return max(max(largest, max(bits.x, bits.y)), max(bits.z, bits.w));
}

// Zero where the value is an infinity or NaN.
vec4 split_numbers(vec4 kept, vec4 values) {
  bvec4 is_none = equal(floatBitsToUint(values) & SPLIT_EXPONENTS, uvec4(SPLIT_EXPONENTS));
  return mix(kept, vec4(0.0), is_none);
}

// The factor that takes values of at most `largest` below 2^15, and the one that undoes it.
float split_scale(uint largest) {
  return uintBitsToFloat((268u - max(largest >> 23u, 29u)) << 23u);
}

float split_factor(uint largest) {
  return uintBitsToFloat((max(largest >> 23u, 29u) - 14u) << 23u);
}

// Rounded to 11 bits.
vec4 split_high(vec4 values) {
  return uintBitsToFloat((floatBitsToUint(values) + 0x1000u) & 0xffffe000u);
}

struct split_octet {
  uvec4 high, low; // eight halves each
};

// The branch costs less than to look at each value, and next to nothing where all are numbers.
split_octet split_eight(vec4 a, vec4 b, bool are_numbers) {
  vec4 a_high = split_high(a);
  vec4 b_high = split_high(b);
  if (!are_numbers) {
    a_high = split_numbers(a_high, a);
    b_high = split_numbers(b_high, b);
  }
  vec4 a_low = a - a_high;
  vec4 b_low = b - b_high;
  split_octet octet;
  octet.high = uvec4(packHalf2x16(a_high.xy), packHalf2x16(a_high.zw),
                     packHalf2x16(b_high.xy), packHalf2x16(b_high.zw));
  octet.low = uvec4(packHalf2x16(a_low.xy), packHalf2x16(a_low.zw),
                    packHalf2x16(b_low.xy), packHalf2x16(b_low.zw));
  return octet;
}

#endif
