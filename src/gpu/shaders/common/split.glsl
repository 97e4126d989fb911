// Float32 as pairs of float16, for products on matrix hardware.
//
// A value below 2^15 in magnitude is a high and a low part, which keep 22 bits of it; a product is
// high * high + high * low + low * high. Scales are powers of two, from the largest exponent of
// many values. An infinity or NaN has no part in that, and is a low part of its own kind beside a
// high part that is a number: one product sees it.
#ifndef OM_SPLIT_GLSL
#define OM_SPLIT_GLSL

// The larger of `largest` and what stands for the values' magnitudes: their bits, one place up and
// with one added to the exponent, so that what is no number wraps around to the smallest.
uint split_largest(uint largest, vec4 values) {
  uvec4 bits = floatBitsToUint(values) * 2u + 0x01000000u;
  return max(max(largest, max(bits.x, bits.y)), max(bits.z, bits.w));
}

// The factor that takes values of at most `largest` below 2^15, and the one that undoes it.
float split_scale(uint largest) {
  return uintBitsToFloat((269u - max(largest >> 24u, 30u)) << 23u);
}

float split_factor(uint largest) {
  return uintBitsToFloat((max(largest >> 24u, 30u) - 15u) << 23u);
}

// Rounded to 11 bits.
vec4 split_high(vec4 values) {
  return uintBitsToFloat((floatBitsToUint(values) + 0x1000u) & 0xffffe000u);
}

struct split_octet {
  uvec4 high, low; // eight halves each
};

split_octet split_eight(vec4 a, vec4 b) {
  vec4 a_high = split_high(a);
  vec4 b_high = split_high(b);
  vec4 a_low = a - a_high;
  vec4 b_low = b - b_high;
  // Rarely, an infinity less itself: a number as high part leaves the infinity, or the NaN.
  vec4 sums = a_low + b_low;
  if (isnan((sums.x + sums.y) + (sums.z + sums.w))) {
    a_high = clamp(a_high, vec4(-65504.0), vec4(65504.0));
    b_high = clamp(b_high, vec4(-65504.0), vec4(65504.0));
    a_low = a - a_high;
    b_low = b - b_high;
  }
  split_octet octet;
  octet.high = uvec4(packHalf2x16(a_high.xy), packHalf2x16(a_high.zw),
                     packHalf2x16(b_high.xy), packHalf2x16(b_high.zw));
  octet.low = uvec4(packHalf2x16(a_low.xy), packHalf2x16(a_low.zw),
                    packHalf2x16(b_low.xy), packHalf2x16(b_low.zw));
  return octet;
}

#endif
