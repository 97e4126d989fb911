// Conversions between element types, on words of 32 bits: all in integer arithmetic, so that
// every device rounds alike (docs/exact.md, "Cast").
//
// One invocation converts four neighbours: whole words of every type. A value on its way is a
// float, or an integer of 64 bits in two words.
//
//! kernel cast  OM_EXACT=1
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/om_shader.glsl"
#include "abi/cast_params.h"
#include "common/half.glsl"

#define GROUP 256
layout(local_size_x = GROUP) in;

OM_CONSTANT(0, FROM, 1)            // om_dtype
OM_CONSTANT(1, TO, 1)

const uint F32 = 1u;
const uint U8 = 2u;
const uint I8 = 3u;
const uint I32 = 6u;
const uint I64 = 7u;
const uint BOOL = 9u;
const uint F16 = 10u;

layout(set = 0, binding = 0, std430) readonly buffer Input { uint input_data[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Output { uint output_data[]; };

struct whole {   // two's complement
  uint low;
  uint high;
};

whole negate(whole v) {
  whole r;
  r.low = ~v.low + 1u;
  r.high = ~v.high + (v.low == 0u ? 1u : 0u);
  return r;
}

// The number of the highest bit that is set; v is not 0. (findMSB of a uint changes its type on
// the way to WGSL.)
int top_bit(uint v) {
  int top = 0;
  if (v >= 0x10000u) { top += 16; v >>= 16; }
  if (v >= 0x100u) { top += 8; v >>= 8; }
  if (v >= 0x10u) { top += 4; v >>= 4; }
  if (v >= 4u) { top += 2; v >>= 2; }
  if (v >= 2u) top += 1;
  return top;
}

// The magnitude rounded to nearest even, with a sign.
float float_from_whole(whole v) {
  bool is_negative = (v.high & OM_SIGN_BIT) != 0u;
  if (is_negative) v = negate(v);
  if (v.low == 0u && v.high == 0u) return 0.0;
  int top = v.high != 0u ? 32 + top_bit(v.high) : top_bit(v.low);
  // The leading 32 bits, the last of which is set if anything follows.
  uint bits = v.low;
  if (top > 31) {
    int drop = top - 31;                         // 1 .. 32
    uint lost = drop == 32 ? v.low : v.low & ((1u << drop) - 1u);
    bits = drop == 32 ? v.high : (v.low >> drop) | (v.high << (32 - drop));
    bits = lost != 0u ? bits | 1u : bits;
  } else {
    bits = bits << (31 - top);
  }
  uint kept = bits >> 8;
  uint cut = bits & 255u;
  if (cut > 128u || (cut == 128u && (kept & 1u) != 0u)) kept = kept + 1u;
  return om_compose(is_negative ? OM_SIGN_BIT : 0u, kept, top);
}

// Rounded once: what is not infinite as a half is exact as a float.
uint half_from_whole(whole v) {
  bool is_negative = (v.high & OM_SIGN_BIT) != 0u;
  if (is_negative) v = negate(v);
  uint sign = is_negative ? 0x8000u : 0u;
  if (v.high != 0u || v.low >= 65520u) return sign | 0x7c00u;
  return sign | half_from_float(float(v.low));
}

// Toward zero; saturated to `limit_bits` bits behind the sign; NaN is 0.
whole whole_from_float(float x, int limit_bits) {
  whole r;
  r.low = 0u;
  r.high = 0u;
  uint u = om_bits(x);
  bool is_negative = (u & OM_SIGN_BIT) != 0u;
  int exponent = int((u >> 23) & 255u) - 127;
  uint mantissa = (u & 0x7fffffu) | 0x800000u;
  if (om_is_nan(x) || exponent < 0) return r;
  if (exponent >= limit_bits) {                  // the lowest value has exactly this exponent
    uint ones = is_negative ? 0u : 0xffffffffu;
    uint top = 1u << (limit_bits & 31);
    if (limit_bits > 31) {
      r.low = ones;
      r.high = is_negative ? top : top - 1u;
    } else {
      r.low = is_negative ? 0u - top : top - 1u;
      r.high = is_negative ? 0xffffffffu : 0u;
    }
    return r;
  }
  int shift = exponent - 23;
  if (shift < 0) {
    r.low = mantissa >> (-shift);
  } else if (shift < 32) {
    r.low = mantissa << shift;
    r.high = shift == 0 ? 0u : mantissa >> (32 - shift);
  } else {
    r.high = mantissa << (shift - 32);
  }
  if (is_negative) r = negate(r);
  return r;
}

uint byte_of(uint word, uint place) {
  return (word >> (place * 8u)) & 255u;
}

whole sign_extended(uint low) {
  whole r;
  r.low = low;
  r.high = (low & OM_SIGN_BIT) != 0u ? 0xffffffffu : 0u;
  return r;
}

bool is_float(uint type) {
  return type == F32 || type == F16;
}

float load_float(uint type, uint element) {
  if (type == F32) return om_float(input_data[element]);
  return half_to_float((input_data[element / 2u] >> (element % 2u * 16u)) & 0xffffu);
}

whole load_whole(uint type, uint element) {
  whole r;
  if (type == I32) return sign_extended(input_data[element]);
  if (type == I64) {
    r.low = input_data[element * 2u];
    r.high = input_data[element * 2u + 1u];
    return r;
  }
  r.low = byte_of(input_data[element / 4u], element % 4u);
  r.high = 0u;
  if (type == BOOL) r.low = r.low != 0u ? 1u : 0u;
  if (type == I8) return sign_extended((r.low ^ 128u) - 128u);
  return r;
}

// The bits of the result's element: two words of an int64, else the low ones of the first.
whole convert(uint from, uint to, uint element) {
  whole r;
  r.high = 0u;
  if (is_float(from)) {
    float x = load_float(from, element);
    if (to == F32) {
      r.low = om_bits(x);
    } else if (to == F16) {
      r.low = half_from_float(x);
    } else if (to == BOOL) {
      r.low = (om_bits(x) & OM_INFINITY_BITS) != 0u ? 1u : 0u;
    } else if (to == U8) {
      r = whole_from_float(x, 8);
      if ((r.high & OM_SIGN_BIT) != 0u) r.low = 0u;
    } else {
      r = whole_from_float(x, to == I8 ? 7 : (to == I32 ? 31 : 63));
    }
    return r;
  }
  whole v = load_whole(from, element);
  if (to == F32) {
    r.low = om_bits(float_from_whole(v));
  } else if (to == F16) {
    r.low = half_from_whole(v);
  } else if (to == BOOL) {
    r.low = (v.low | v.high) != 0u ? 1u : 0u;
  } else {
    r = v;
  }
  return r;
}

void main() {
  uint from = FROM;
  uint to = TO;
  uint thread = om_group_index() * uint(GROUP) + gl_LocalInvocationID.x;
  uint bytes = 0u;
  uint halves[2];
  halves[0] = 0u;
  halves[1] = 0u;
  for (uint i = 0u; i < 4u; ++i) {
    uint element = thread * 4u + i;
    if (element < P.elems) {
      whole value = convert(from, to, element);
      if (to == F32 || to == I32) output_data[element] = value.low;
      if (to == I64) {
        output_data[element * 2u] = value.low;
        output_data[element * 2u + 1u] = value.high;
      }
      bytes = bytes | ((value.low & 255u) << (i * 8u));
      halves[i / 2u] = halves[i / 2u] | ((value.low & 0xffffu) << (i % 2u * 16u));
    }
  }
  uint first = thread * 4u;
  if (first < P.elems) {
    if (to == BOOL || to == U8 || to == I8) output_data[thread] = bytes;
    if (to == F16) {
      output_data[thread * 2u] = halves[0];
      if (first + 2u < P.elems) output_data[thread * 2u + 1u] = halves[1];
    }
  }
}
