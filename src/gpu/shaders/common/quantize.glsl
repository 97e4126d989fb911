// Elements of quantized tensors and their scales, in words of 32 bits (docs/exact.md, "Quantization").
#ifndef OM_QUANTIZE_GLSL
#define OM_QUANTIZE_GLSL

#include "common/half.glsl"

const uint TYPE_NONE = 0u;   // om_dtype
const uint TYPE_F32 = 1u;
const uint TYPE_U8 = 2u;
const uint TYPE_I8 = 3u;
const uint TYPE_U16 = 4u;
const uint TYPE_I16 = 5u;
const uint TYPE_I32 = 6u;
const uint TYPE_F16 = 10u;

// Bits of an element.
uint type_bits(uint type) {
  if (type == TYPE_U8 || type == TYPE_I8) return 8u;
  if (type == TYPE_U16 || type == TYPE_I16 || type == TYPE_F16) return 16u;
  return 32u;
}

// Word `at / (32 / bits)` holds element `at`: its value, of a float16 or float32 its bits.
int element_of(uint word, uint type, uint at) {
  uint bits = type_bits(type);
  if (bits == 32u) return int(word);
  uint shift = at % (32u / bits) * bits;
  uint low = (word >> shift) & ((1u << bits) - 1u);
  uint sign = 1u << (bits - 1u);
  if (type == TYPE_I8 || type == TYPE_I16) return int(low ^ sign) - int(sign);
  return int(low);
}

float real_of(uint word, uint type, uint at) {
  if (type == TYPE_F16) return half_to_float(uint(element_of(word, type, at)));
  return om_float(word);
}

// x * 2^16 + low, rounded once: both parts are exact as floats.
float float_of_parts(int high, int low) {
  OM_PRECISE float upper = float(high) * 65536.0;
  OM_PRECISE float sum = upper + float(low);
  return sum;
}

// a - b as a float, rounded once; the difference may need 33 bits.
float float_of_difference(int a, int b) {
  return float_of_parts((a >> 16) - (b >> 16), (a & 0xffff) - (b & 0xffff));
}

// A whole number as an element of the type, its low bits: saturated; NaN is 0.
uint saturated_bits(float x, uint type) {
  float low = 0.0;
  float high = 255.0;
  if (type == TYPE_I8) {
    low = -128.0;
    high = 127.0;
  }
  if (type == TYPE_U16) high = 65535.0;
  if (type == TYPE_I16) {
    low = -32768.0;
    high = 32767.0;
  }
  if (om_is_nan(x)) return 0u;
  if (x < low) x = low;
  if (x > high) x = high;
  uint bits = type_bits(type);
  return uint(int(x)) & ((1u << bits) - 1u);
}

#endif
