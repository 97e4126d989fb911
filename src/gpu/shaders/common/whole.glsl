// Integers of 64 bits in two words, low and high, two's complement.
#ifndef OM_WHOLE_GLSL
#define OM_WHOLE_GLSL

uvec2 whole_extend(uint low) {
  return uvec2(low, (low & OM_SIGN_BIT) != 0u ? 0xffffffffu : 0u);
}

bool whole_is_negative(uvec2 v) {
  return (v.y & OM_SIGN_BIT) != 0u;
}

bool whole_is_zero(uvec2 v) {
  return (v.x | v.y) == 0u;
}

uvec2 whole_add(uvec2 a, uvec2 b) {
  uint low = a.x + b.x;
  return uvec2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}

uvec2 whole_negate(uvec2 v) {
  return whole_add(uvec2(~v.x, ~v.y), uvec2(1u, 0u));
}

uvec2 whole_subtract(uvec2 a, uvec2 b) {
  return uvec2(a.x - b.x, a.y - b.y - (a.x < b.x ? 1u : 0u));
}

// The high word of a product of words.
uint whole_high_product(uint a, uint b) {
  uint a_low = a & 0xffffu;
  uint a_high = a >> 16;
  uint b_low = b & 0xffffu;
  uint b_high = b >> 16;
  uint low = a_low * b_low;
  uint middle = a_high * b_low + (low >> 16);
  uint other = a_low * b_high + (middle & 0xffffu);
  return a_high * b_high + (middle >> 16) + (other >> 16);
}

uvec2 whole_multiply(uvec2 a, uvec2 b) {
  return uvec2(a.x * b.x, whole_high_product(a.x, b.x) + a.x * b.y + a.y * b.x);
}

bool whole_is_less_unsigned(uvec2 a, uvec2 b) {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}

bool whole_is_less(uvec2 a, uvec2 b) {
  return int(a.y) < int(b.y) || (a.y == b.y && a.x < b.x);
}

// Quotient (x, y) and remainder (z, w) of magnitudes up to 2^63; all 0 for a divisor of 0.
uvec4 whole_divide_unsigned(uvec2 n, uvec2 d) {
  if (whole_is_zero(d)) return uvec4(0u, 0u, 0u, 0u);
  if ((n.y | d.y) == 0u) return uvec4(n.x / d.x, 0u, n.x % d.x, 0u);
  uvec2 quotient = uvec2(0u, 0u);
  uvec2 rest = uvec2(0u, 0u);
  for (uint i = 0u; i < 64u; ++i) {
    rest = uvec2((rest.x << 1) | (n.y >> 31), (rest.y << 1) | (rest.x >> 31));
    n = uvec2(n.x << 1, (n.y << 1) | (n.x >> 31));
    quotient = uvec2(quotient.x << 1, (quotient.y << 1) | (quotient.x >> 31));
    if (!whole_is_less_unsigned(rest, d)) {
      rest = whole_subtract(rest, d);
      quotient.x = quotient.x | 1u;
    }
  }
  return uvec4(quotient, rest);
}

// Quotient toward zero, and the remainder with the dividend's sign.
uvec4 whole_divide(uvec2 n, uvec2 d) {
  bool is_negative = whole_is_negative(n);
  bool differs = is_negative != whole_is_negative(d);
  uvec2 dividend = n;
  uvec2 divisor = d;
  if (is_negative) dividend = whole_negate(n);
  if (whole_is_negative(d)) divisor = whole_negate(d);
  uvec4 both = whole_divide_unsigned(dividend, divisor);
  uvec2 quotient = both.xy;
  uvec2 rest = both.zw;
  if (differs) quotient = whole_negate(quotient);
  if (is_negative) rest = whole_negate(rest);
  return uvec4(quotient, rest);
}

#endif
